/** What one training step does to scores: an arrow for the push that is, beside an outlined one for the push that should be. */
import { NOTE, SIZE, arrow, axis, linear, num, signed, upOrDown } from "./kit.js";

/** Is this push against the one it should be? */
export const flips = ({ is, aim }) => is * aim < 0;

/**
 * One document's two arrows around `x`, and a word for the way that it is pushed.
 * @param {object} view
 * @param {{key: string, look: string, is: number, aim: number}} doc  pushes, i.e. minus gradients
 * @param {{x: number, scale: (push: number) => number, size?: number, id?: string}} place
 */
export function drawPair({ ink, measure }, doc, { x, scale, size = 1, id = "push" }) {
  const { is, aim } = doc, key = `${id}-${doc.key}`;
  const wrong = flips(doc), up = is > 0;
  const at = x - 13 * size;
  ink(`${key}-is`, "path", { d: arrow(at, scale(0), scale(is), 24 * size), class: wrong ? "ll-wrong" : doc.look });
  ink(`${key}-aim`, "path", { d: arrow(x + 15 * size, scale(0), scale(aim), 16 * size), class: "ll-right-outline" });
  const tip = up ? Math.max(is, aim) : Math.min(is, aim); // beyond both arrows, where they point the same way
  const base = scale(wrong ? is : tip) + (up ? -11 : 22);
  if (wrong) {
    const plate = measure("wrong way", SIZE.small, 600) + 16;
    const box = { x: at - plate / 2, y: base - 16, width: plate, height: 22, rx: 11 };
    ink(`${key}-flip`, "rect", { ...box, class: "ll-wrong ll-appear" });
    ink.text(`${key}-flip-name`, at, base, "wrong way", "ll-small ll-strong ll-on-wrong ll-appear", "middle");
  } else ink.text(`${key}-way`, at, base, upOrDown(is), "ll-small ll-strong ll-halo", "middle");
}

/**
 * The pushes on every score of a list, on one axis, each document named below. Returns the y below.
 * @param {object} view
 * @param {object} chart
 * @param {string} chart.id  start of its keys
 * @param {string} chart.title
 * @param {{key: string, name: string, look: string, is: number, aim: number}[]} chart.docs
 * @param {[number, number]} chart.domain  push at the upper and at the lower end of the axis
 * @param {number[]} chart.ticks
 * @param {number} chart.head  px from the title's line to the upper end of the axis
 */
export function drawArrows(view, { id, title, x: x0, y, breadth, docs, domain, ticks, head = 34, indent = 76 }) {
  const { ink } = view;
  ink.text(`${id}-title`, x0, y + 14, title, "ll-strong");
  const scale = linear(domain, [y + head, y + head + 192]);
  const left = x0 + indent, to = x0 + breadth;
  axis(ink, id, { side: "left", scale, ticks, at: left, to, show: (t) => num(t, t ? 1 : 0) });
  const pitch = (to - left) / docs.length;
  // "should be" stands below the first outlined arrow that points up, clear of the next document's arrow.
  const named = docs.findIndex((doc) => doc.aim > 0 && !flips(doc));
  const shift = Math.min(15, pitch - 30 - view.measure("should be") / 2);
  docs.forEach((doc, i) => {
    const x = left + pitch * (i + 0.5);
    if (i === named) ink.text(`${id}-aim-name`, x + shift, scale(0) + 19, "should be", "ll-small ll-is-right ll-halo", "middle");
    drawPair(view, doc, { x, scale, id });
    ink.text(`${id}-${doc.key}-name`, x, y + head + 220, doc.name, "ll-strong", "middle");
  });
  return y + head + 224;
}

/** `drawArrows` with the gradients in numbers below. */
export function drawPushes(view, chart) {
  const { ink } = view, left = chart.x + 76, to = chart.x + chart.breadth;
  const y = drawArrows(view, { ...chart, id: "push", title: "Push on each score (−gradient)" }) + 18;
  ["gradient", "should be"].forEach((key, i) => ink.text(`push-key-${i}`, left - 8, y + 20 * i, key, NOTE, "end"));
  chart.docs.forEach((doc, i) => {
    const x = left + (to - left) * ((i + 0.5) / chart.docs.length), look = flips(doc) ? "ll-is-wrong" : "";
    ink.text(`push-${doc.key}-now`, x, y, signed(-doc.is), `ll-strong ${look}`, "middle");
    ink.text(`push-${doc.key}-right`, x, y + 20, signed(-doc.aim), "ll-is-right", "middle");
  });
  return y + 24;
}
