/** What one training step does to scores: an arrow for the push that is, beside an outlined one for the push that should be. */
import { NOTE, SIZE, arrow, axis, linear, num, signed, upOrDown } from "./kit.js";

/** Is this push against the one it should be? */
export const flips = ({ is, aim }) => is * aim < 0;

/**
 * One document's two arrows around `x`, and a word for the way that it is pushed.
 * @param {object} view
 * @param {{key: string, look: string, is: number, aim: number}} doc  pushes, i.e. minus gradients
 * @param {{x: number, scale: (push: number) => number, size?: number}} place
 */
export function drawPair({ ink, measure }, doc, { x, scale, size = 1 }) {
  const { key, is, aim } = doc;
  const wrong = flips(doc), up = is > 0;
  const at = x - 13 * size;
  ink(`push-${key}`, "path", { d: arrow(at, scale(0), scale(is), 24 * size), class: wrong ? "ll-wrong" : doc.look });
  ink(`aim-${key}`, "path", { d: arrow(x + 15 * size, scale(0), scale(aim), 16 * size), class: "ll-right-outline" });
  const tip = up ? Math.max(is, aim) : Math.min(is, aim); // beyond both arrows, where they point the same way
  const base = scale(wrong ? is : tip) + (up ? -11 : 22);
  if (wrong) {
    const plate = measure("wrong way", SIZE.small, 600) + 16;
    const box = { x: at - plate / 2, y: base - 16, width: plate, height: 22, rx: 11 };
    ink(`flip-${key}`, "rect", { ...box, class: "ll-wrong ll-appear" });
    ink.text(`flip-${key}-name`, at, base, "wrong way", "ll-small ll-strong ll-on-wrong ll-appear", "middle");
  } else ink.text(`push-${key}-way`, at, base, upOrDown(is), "ll-small ll-strong", "middle");
}

/**
 * The pushes on every score of a list, on one axis, with the gradients in numbers below. Returns the y below.
 * @param {object} view
 * @param {object} chart
 * @param {{key: string, name: string, look: string, is: number, aim: number}[]} chart.docs
 * @param {[number, number]} chart.domain  push at the upper and at the lower end of the axis
 * @param {number[]} chart.ticks
 */
export function drawPushes(view, { x: x0, y, breadth, docs, domain, ticks }) {
  const { ink } = view;
  ink.text("push-title", x0, y + 14, "Push on each score (−gradient)", "ll-strong");
  const scale = linear(domain, [y + 34, y + 226]);
  const left = x0 + 76, to = x0 + breadth;
  axis(ink, "push", { side: "left", scale, ticks, at: left, to, show: (t) => num(t, t ? 1 : 0) });
  ["gradient", "should be"].forEach((key, i) => ink.text(`push-key-${i}`, left - 8, y + 276 + 20 * i, key, NOTE, "end"));
  const named = docs.findIndex(({ aim }) => aim > 0); // "should be" stands below the first outlined arrow that points up
  docs.forEach((doc, i) => {
    const x = left + (to - left) * ((i + 0.5) / docs.length);
    if (i === named) ink.text("aim-name", x + 15, scale(0) + 19, "should be", "ll-small ll-is-right", "middle");
    drawPair(view, doc, { x, scale });
    ink.text(`push-${doc.key}-name`, x, y + 254, doc.name, "ll-strong", "middle");
    ink.text(`push-${doc.key}-now`, x, y + 276, signed(-doc.is), `ll-strong ${flips(doc) ? "ll-is-wrong" : ""}`, "middle");
    ink.text(`push-${doc.key}-right`, x, y + 296, signed(-doc.aim), "ll-is-right", "middle");
  });
  return y + 300;
}
