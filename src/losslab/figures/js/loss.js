/** A loss as a number, and the picture of it over every width that the slider offers. */
import { NOTE, SIZE, axis, linear, num } from "./kit.js";

/** Is the loss off, as far as the reader can see it? */
export const isOff = (loss, right) => num(loss) !== num(right);

/**
 * The number, large, and how far it is from what it should be: beside it with a note above, or without a note below it.
 * Returns the verdict's look.
 */
export function drawNumber({ ink, measure }, { x, y, loss, right, title = "Loss of our query (nats)", note }) {
  const value = num(loss), off = isOff(loss, right);
  ink.text("loss-title", x, y + 14, title, "ll-strong");
  ink.text("loss", x, y + 56, value, `ll-big ${off ? "ll-is-wrong" : ""}`);
  const far = num(Math.abs(loss - right));
  const [verdict, look] = off ? [`${far} too ${loss > right ? "high" : "low"}`, "ll-is-wrong"] : ["as it should be", "ll-is-right"];
  const beside = x + measure(value, SIZE.big, 600) + 14;
  if (note) ink.text("loss-note", beside, y + 38, note, NOTE);
  ink.text("loss-verdict", note ? beside : x, note ? y + 56 : y + 79, verdict, `ll-small ll-strong ${look}`);
  return look;
}

/** The lines and points of the loss over widths: as it is, as it should be, and where it now stands. */
export function drawCurve({ ink }, { sx, sy, widths, losses, width, loss, right, look, dot = 3 }) {
  const path = losses.map((value, i) => `${sx(widths[i])} ${sy(value)}`).join("L");
  ink("curve-right", "path", { d: `M${sx(widths[0])} ${sy(right)}H${sx(widths.at(-1))}`, class: "ll-line-right" });
  ink("curve-wrong", "path", { d: `M${path}`, class: "ll-line-wrong" });
  ink("excess", "path", { d: `M${sx(width)} ${sy(right)}V${sy(loss)}`, class: "ll-gap" });
  widths.forEach((w, i) => ink(`curve-${w}`, "circle", { cx: sx(w), cy: sy(losses[i]), r: dot, class: "ll-is-wrong" }));
  ink("loss-now", "circle", { cx: sx(width), cy: sy(loss), r: 8, class: `ll-now ${look}` });
}

/**
 * Number and picture. Returns the y below.
 * @param {object} view
 * @param {object} chart
 * @param {number[]} chart.widths
 * @param {number[]} chart.losses  at each width
 * @param {number} chart.width  the current one
 * @param {number} chart.loss  now, which may be on the right line
 * @param {number} chart.right  what the loss should be at every width
 * @param {number[]} chart.ticks  of the width axis
 * @param {{note: string, wrong: string, right: string}} chart.words
 */
export function drawLoss(view, { x: x0, y, breadth, widths, losses, width, loss, right, ticks, words }) {
  const { ink } = view;
  const look = drawNumber(view, { x: x0, y, loss, right, note: words.note });
  const highest = Math.max(view.highest ?? 1, Math.ceil(Math.max(...losses) + 0.05));
  const [first, last] = [widths[0], widths.at(-1)];
  const sx = linear([first, last], [x0 + 26, x0 + breadth - 8]);
  const sy = linear([highest, 0], [y + 90, y + 256]);
  axis(ink, "loss-y", { side: "left", scale: sy, ticks: [...Array(highest + 1).keys()], at: x0 + 18, to: x0 + breadth });
  axis(ink, "loss-x", { side: "bottom", scale: sx, ticks, at: y + 256 });
  ink.text("loss-x-name", x0 + breadth, y + 296, "longest list in the batch (documents)", NOTE, "end");
  drawCurve(view, { sx, sy, widths, losses, width, loss, right, look });
  ink.text("curve-right-name", sx(last), sy(right) - 9, words.right, "ll-small ll-is-right ll-halo", "end");
  ink.text("curve-wrong-name", sx(last) - 4, sy(losses.at(-1)) - 14, words.wrong, "ll-small ll-is-wrong", "end");
  return y + 300;
}
