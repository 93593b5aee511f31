/** Buttons that play a whole-number trait from 0 to its last step: play or pause, one step, back to the start. */
import { html } from "./kit.js";

const PER_SECOND = 30; // steps, where motion is welcome
const LEAP = 10; // steps at once, one leap a second, where it is not

/**
 * A control for `mount`. Playing never blocks: it takes what steps are due in a frame and lets go. It stops at the last step, when
 * somebody else moves the trait, when the page is hidden or the figure scrolled away, and when the figure is taken off the page.
 * @param {string} trait
 * @param {{label: string, last: number}} options
 */
export const player = (trait, { label, last }) => (link) => {
  const play = html("button", { type: "button", class: "ll-button" }, "Play");
  const step = html("button", { type: "button", class: "ll-button" }, "Step");
  const again = html("button", { type: "button", class: "ll-button" }, "Restart");
  const node = html("div", { class: "ll-control ll-player", role: "group", "aria-label": label }, html("span", {}, label), play, step, again);
  const calm = matchMedia("(prefers-reduced-motion: reduce)");
  let playing = false, ours = false, due = 0, seen = 0;

  const move = (to) => {
    ours = true;
    link.set({ [trait]: Math.min(last, to) });
    ours = false;
  };
  function set(on) {
    if (on === playing) return;
    playing = on;
    play.textContent = on ? "Pause" : "Play";
    link.hold({ still: on, quiet: on }); // at the end the sentence says where it stopped
    if (!on) return;
    if (link.get(trait) >= last) move(0);
    [due, seen] = [0, performance.now()];
    requestAnimationFrame(frame);
  }
  function frame(now) {
    if (!playing) return;
    if (!node.isConnected) return void (playing = false);
    due += Math.max(0, now - seen);
    seen = now;
    const pause = calm.matches ? 1000 : 1000 / PER_SECOND;
    if (due >= pause) {
      move(link.get(trait) + (calm.matches ? LEAP : Math.min(4, Math.floor(due / pause)))); // a late frame may catch up a little
      due %= pause;
    }
    if (link.get(trait) >= last) return set(false);
    requestAnimationFrame(frame);
  }

  play.addEventListener("click", () => set(!playing));
  step.addEventListener("click", () => (set(false), move(link.get(trait) + 1)));
  again.addEventListener("click", () => (set(false), move(0)));
  link.watch(trait, () => ours || set(false));
  const hidden = () => (node.isConnected ? document.hidden && set(false) : document.removeEventListener("visibilitychange", hidden));
  document.addEventListener("visibilitychange", hidden);
  const watch = new IntersectionObserver(([entry]) => {
    if (!node.isConnected) watch.disconnect();
    else if (!entry.isIntersecting) set(false);
  });
  requestAnimationFrame(() => watch.observe(node.closest(".ll-fig") ?? node));
  return node;
};
