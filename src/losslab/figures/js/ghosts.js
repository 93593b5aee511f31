/**
 * Ghost documents: how the length of somebody else's list changes what our query teaches.
 * Traits: `width` (2..12, the longest list in the batch), `fixed` (mask before the sum?), `logit_b` (score of document B).
 */
import { NOTE, SIZE, longestOf, mount, num, percent, plural, radios, range, spread, upOrDown } from "./kit.js";
import { LOGIT_A, LOOKS, MOST, NAMES, WIDTHS, drawOther, drawOurs, rowHead } from "./lists.js";
import { listMle } from "./listwise.js";
import { drawLoss } from "./loss.js";
import { drawPushes } from "./pushes.js";

/** Each choice as one bar of probability: the right document, the other, the ghosts; and what the choice costs. */
function drawChoices(view, y) {
  const { ink, room, gutter, aside, now, padding, measure } = view;
  const inner = room - gutter - aside;
  now.choices.forEach((choice, i) => {
    const top = rowHead(view, `choice-${i}`, y, `Choice ${i + 1}`, `${NAMES[i]} should win`);
    const labels = [];
    let x = gutter;
    [...choice.shares, choice.ghosts].forEach((share, j) => {
      const length = share * inner;
      const look = j < 2 ? { class: LOOKS[j] } : { class: "ll-ghost ll-solid", fill: view.hatch };
      ink(`choice-${i}-part-${j}`, "rect", { x, y: top + 0.5, width: length, height: SIZE.bar - 1, ...look });
      const text = `${NAMES[j] ?? plural(padding, "ghost")} ${percent(share)}`;
      if (share) labels.push({ j, text, x: x + length / 2, width: measure(text, SIZE.small, 600) });
      x += length;
    });
    spread(labels, gutter, gutter + inner).forEach((centre, n) => {
      const { j, text } = labels[n];
      ink.text(`choice-${i}-share-${j}`, centre, top + SIZE.bar + 17, text, `ll-small ${i === j ? "ll-strong" : ""}`, "middle");
    });
    const cost = num(choice.cost);
    ink.text(`choice-${i}-cost`, room, y + (gutter ? 35 : 14), cost, "ll-strong", "end");
    const end = gutter ? room : room - measure(cost, SIZE.text, 600) - 8;
    ink.text(`choice-${i}-cost-note`, end, y + (gutter ? 16 : 14), "−ln(share)", NOTE, "end");
    y = top + SIZE.bar + 44;
  });
  return y - 26;
}

/** The figure in one sentence. */
function sentence({ width, fixed, padding, now, right }) {
  const [pushA, pushB] = now.gradient.map((g) => upOrDown(-g));
  const loss = num(now.loss, 3);
  const pushes = `A is pushed ${pushA} and B ${pushB}`;
  if (!padding) return `With lists of equal length nothing is padded: the loss is ${loss}, ${pushes}, mask or no mask.`;
  if (fixed) return `Padded to ${width}, masked before the sum: the loss stays ${loss}, ${pushes}, as with no padding at all.`;
  const [first, second] = now.choices.map((choice) => percent(choice.ghosts, 0));
  const hold = `${plural(padding, "ghost")} ${padding > 1 ? "hold" : "holds"} ${first} of choice 1 and ${second} of choice 2`;
  const flipped = now.gradient[1] * right.gradient[1] < 0;
  const effect = `B is pushed ${pushB} ${flipped ? `instead of ${upOrDown(-right.gradient[1])}` : "by the wrong amount"}`;
  return `Padded to ${width}: ${hold}, the loss reads ${loss} instead of ${num(right.loss, 3)}, and ${effect}.`;
}

/** What there is to draw and to say for the traits. */
function outcome({ width, fixed, logit_b }) {
  const logits = [LOGIT_A, logit_b], padding = width - 2;
  return { width, fixed, logits, padding, now: listMle(logits, padding, fixed), right: listMle(logits, padding, true) };
}

const LONGEST = longestOf(
  [0.3, 1.5].flatMap((logit_b) => WIDTHS.flatMap((width) => [true, false].map((fixed) => sentence(outcome({ width, fixed, logit_b }))))),
);

/** Lays the four parts out: beside each other where the column is wide, below each other where it is not. */
function draw(base) {
  const { room, width, fixed } = base;
  const wide = room >= 600, result = outcome(base), { logits, now, right } = result;
  const view = { ...base, ...result, gutter: wide ? 130 : 0, aside: wide ? 108 : 0, highest: 4 };
  let y = drawOurs(view, 0, "logits of A and B", `adds ${fixed ? "0" : "exp(1e-16) = 1"}${wide ? " to the sums below" : ""}`);
  y = drawChoices(view, drawOther(view, y + 18) + 40) + 40;
  const docs = NAMES.map((name, i) => ({ key: i, name, look: LOOKS[i], is: -now.gradient[i], aim: -right.gradient[i] }));
  const breadth = wide ? room * 0.44 : room;
  const below = drawPushes(view, { x: 0, y, breadth, docs, domain: [1.1, -0.75], ticks: [1, 0.5, 0, -0.5] });
  const x = wide ? room * 0.53 : 0;
  const height = drawLoss(view, {
    x, y: wide ? y : below + 40, breadth: room - x,
    widths: WIDTHS, losses: WIDTHS.map((w) => listMle(logits, w - 2, false).loss), ticks: [2, 4, 6, 8, 10, 12],
    width, loss: now.loss, right: right.loss,
    words: { note: "sum of both choices", wrong: "ghosts summed", right: `masked: ${num(right.loss)}` },
  });
  return { height, says: sentence(view) };
}

export default {
  render: ({ model, el }) =>
    mount({
      model, el, draw, longest: LONGEST,
      label: "A padded batch of two queries; our query’s two choices, the push on each of its scores, and its loss",
      traits: ["width", "fixed", "logit_b"],
      controls: [
        range("width", { label: "The other query’s list", min: 2, max: MOST, say: (w) => plural(w, "document") }),
        radios("fixed", {
          label: "Our query’s empty slots are",
          options: [[false, "summed, then masked (the bug)"], [true, "masked before the sum (fixed)"]],
        }),
        range("logit_b", { label: "Our query’s logit for B", min: -1, max: 2, step: 0.1, say: (z) => num(z, 1) }),
      ],
    }),
};
