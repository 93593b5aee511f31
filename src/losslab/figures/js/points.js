/**
 * Points that a reader can take hold of: a layer of handles over a drawing, one for each point that the drawing returns as `points`.
 *
 * Each handle is a slider to whoever uses a keyboard or a screen reader, and something to drag for mouse, pen and finger. The
 * handles are seen only by their focus; the drawing below draws the points.
 */
import { html } from "./kit.js";

export const REACH = 36; // px: what a fingertip hits

/**
 * @param {object} act
 * @param {(link: object, point: object, at: [number, number], drawn: object) => void} act.drag  the pointer took the point there, in
 *   px of the drawing
 * @param {(link: object, point: object, key: string, shift: boolean) => boolean} act.press  whether the key meant something
 * @param {(link: object, point: object) => void} act.take  a drag begins
 * @param {(link: object, point: object) => void} act.choose  the point was touched or came into focus
 * @returns a layer for `mount`. A drawn point is {key, x, y, label, now, text} with `now` from `min` to `max` (0 to 359 degrees),
 *   `size` (px) and `pan` (which way a finger that starts on it still scrolls the page) if they differ from the usual.
 */
export const handles = ({ drag, press, choose = () => {}, take = () => {} }) => (link) => {
  const node = html("div", {}), kept = new Map();
  let drawn = { points: [] };

  function handle(key) {
    const grip = html("div", { class: "ll-handle", role: "slider", tabindex: 0, "data-point": key });
    grip.dataset.lmSuppressShortcuts = "true"; // JupyterLab takes arrow keys for itself otherwise
    const point = () => drawn.points.find((one) => one.key === key);
    let hold = null; // what pointer holds it, and how far from its middle
    const where = (event) => {
      const box = node.parentElement.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    grip.addEventListener("pointerdown", (event) => {
      if (hold || event.button > 0) return;
      event.preventDefault(); // no text is selected
      grip.focus({ preventScroll: true });
      grip.setPointerCapture(event.pointerId);
      const [x, y] = where(event), { x: px, y: py } = point();
      hold = { id: event.pointerId, dx: px - x, dy: py - y };
      take(link, point());
      link.hold({ still: true });
    });
    grip.addEventListener("pointermove", (event) => {
      if (hold?.id !== event.pointerId) return;
      const [x, y] = where(event);
      drag(link, point(), [x + hold.dx, y + hold.dy], drawn);
    });
    for (const end of ["pointerup", "pointercancel", "lostpointercapture"])
      grip.addEventListener(end, (event) => {
        if (hold?.id !== event.pointerId) return;
        hold = null;
        link.hold({ still: false });
      });
    grip.addEventListener("focus", () => choose(link, point()));
    grip.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (press(link, point(), event.key, event.shiftKey)) event.preventDefault();
    });
    return node.appendChild(grip);
  }

  function place(next) {
    drawn = next;
    for (const { key, x, y, label, now, text, min = 0, max = 359, size = REACH, pan = "none" } of next.points) {
      if (!kept.has(key)) kept.set(key, handle(key));
      const grip = kept.get(key);
      Object.assign(grip.style, { width: `${size}px`, height: `${size}px`, touchAction: pan });
      grip.style.transform = `translate(${x - size / 2}px, ${y - size / 2}px)`;
      const spoken = { label, valuemin: min, valuemax: max, valuenow: now, valuetext: text };
      for (const name in spoken) grip.setAttribute(`aria-${name}`, spoken[name]);
    }
    for (const [key, grip] of kept) if (!next.points.some((one) => one.key === key)) (grip.remove(), kept.delete(key));
  }
  return { node, place };
};

/** Degrees after a key: arrows 1 or, with Shift, 5; Page keys 15; Home and End at 0 and 180. Null for other keys. */
export function turned(degrees, key, shift = false) {
  const way = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 15, PageDown: -15 }[key];
  if (way) return (degrees + way * (shift && Math.abs(way) === 1 ? 5 : 1) + 360) % 360;
  return { Home: 0, End: 180 }[key] ?? null;
}
