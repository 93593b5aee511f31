/**
 * The flip: one slider, somebody else's list; one document of ours, pushed the wrong way. The book in one figure.
 * Trait: `width` (2..12, the longest list in the batch).
 */
import { NOTE, linear, longestOf, mount, num, plural, range, signed, upOrDown } from "./kit.js";
import { LOGIT_A, LOOKS, MOST, WIDTHS, drawOther, drawOurs } from "./lists.js";
import { listMle } from "./listwise.js";
import { drawCurve, drawNumber } from "./loss.js";
import { drawPair, flips } from "./pushes.js";

const LOGITS = [LOGIT_A, 0.3];
const RIGHT = listMle(LOGITS, 0, true);
const LOSSES = WIDTHS.map((width) => listMle(LOGITS, width - 2, false).loss);
const COLUMN = 156; // px for the arrows

/** What happens to B: two large arrows, and the gradient in numbers. */
function drawB(view, x0, y) {
  const { ink, now } = view;
  const doc = { key: "b", look: LOOKS[1], is: -now.gradient[1], aim: -RIGHT.gradient[1] };
  const x = x0 + 72, zero = y + 138, scale = linear([0.8, 0], [y + 58, zero]);
  ink.text("b-title", x0, y + 14, "Push on B", "ll-strong");
  ink("b-zero", "path", { d: `M${x0} ${zero}H${x0 + COLUMN}`, class: "ll-zero" });
  drawPair(view, doc, { x, scale, size: 1.6 });
  ink.text("b-aim-name", x + 8, scale(doc.aim) + 22, "should be", "ll-small ll-is-right");
  ink.text("b-key-now", x0, y + 208, "gradient", NOTE);
  ink.text("b-now", x0 + COLUMN, y + 208, signed(-doc.is), `ll-strong ${flips(doc) ? "ll-is-wrong" : ""}`, "end");
  ink.text("b-key-right", x0, y + 228, "should be", NOTE);
  ink.text("b-right", x0 + COLUMN, y + 228, signed(-doc.aim), "ll-is-right", "end");
}

/** Our query's loss: the number, and a small picture of it at every width. */
function drawOurLoss(view, x0, y, breadth) {
  const { ink, now, width } = view;
  const look = drawNumber(view, { x: x0, y, loss: now.loss, right: RIGHT.loss, title: "Loss (nats)" });
  const sx = linear([2, MOST], [x0 + 8, x0 + breadth - 8]), sy = linear([3.4, 0], [y + 104, y + 200]);
  ink("loss-zero", "path", { d: `M${x0} ${sy(0)}H${x0 + breadth}`, class: "ll-zero" });
  drawCurve(view, { sx, sy, widths: WIDTHS, losses: LOSSES, width, loss: now.loss, right: RIGHT.loss, look, dot: 2.5 });
  ink.text("loss-first", sx(2), y + 222, 2, NOTE, "middle");
  ink.text("loss-unit", x0 + breadth / 2, y + 222, "documents", NOTE, "middle");
  ink.text("loss-last", sx(MOST), y + 222, MOST, NOTE, "middle");
}

/** What there is to draw and to say at a width. */
const outcome = (width) => ({ width, padding: width - 2, now: listMle(LOGITS, width - 2, false) });

/** The figure in one sentence. */
function sentence({ width, padding, now }) {
  const push = -now.gradient[1], aim = -RIGHT.gradient[1], loss = num(now.loss);
  if (!padding)
    return `Beside a list of ${width} our query needs no padding: the loss reads ${loss}, and B is pushed ${upOrDown(push)}, as it should be.`;
  const slots = `Beside a list of ${width} our query has ${plural(padding, "empty slot")}. The loss counts ${padding > 1 ? "them" : "it"}:`;
  return `${slots} it reads ${loss} instead of ${num(RIGHT.loss)}, and B is pushed ${upOrDown(push)} instead of ${upOrDown(aim)}.`;
}

function draw(base) {
  const { room, width } = base;
  const wide = room >= 660, gap = room >= 720 ? 36 : 24;
  const loss = wide ? 136 : Math.min(320, room - COLUMN - Math.min(48, room - COLUMN - 138));
  const x = wide ? room - loss - gap - COLUMN : 0, right = wide ? room - loss : COLUMN + Math.min(48, room - COLUMN - loss);
  const view = { ...base, ...outcome(width), logits: LOGITS, fixed: false, gutter: 0, room: wide ? x - gap : room };
  const below = drawOurs(view, drawOther(view, 0) + 24, "never changes", "counted as a document");
  const y = wide ? 0 : below + 24;
  drawB(view, x, y);
  drawOurLoss(view, right, y, loss);
  return { height: y + 232, says: sentence(view) };
}

export default {
  render: ({ model, el }) =>
    mount({
      model, el, draw, longest: longestOf(WIDTHS.map((width) => sentence(outcome(width)))),
      label: "Another query’s list, our query’s two documents with empty slots beside them, the push on B, and our query’s loss",
      traits: ["width"],
      controls: [range("width", { label: "Another query’s list", min: 2, max: MOST, say: (w) => plural(w, "document") })],
    }),
};
