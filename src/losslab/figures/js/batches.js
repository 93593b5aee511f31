/**
 * A padded batch of texts, prediction by prediction: which logits meet which label, what is summed and what is counted.
 * Tests hold this to Python and to a slow loop over logits.
 */
export const SHIFTS = ["none", "once", "twice"];

/** The batch's width, px aside: tokens of the longest text and what is added. */
export const widthOf = ({ texts }, extra) => Math.max(...texts.map((text) => [...text].length)) + extra;

/** Whether nothing is left for a mask to decide. */
export const unmasked = ({ numerator, denominator }) => numerator && denominator;

/** Whether a mask of labels alone lets a prediction through that a mask of both places stops. */
export const leaks = ({ side, shift }) => side === "left" && shift !== "none";

/**
 * Every place of every row: `from` is the place of the logits that meet the label there (−1: none do), `nll` what that costs,
 * `aim` what should be summed there (null: nothing), `pads` whether either place is padding.
 */
export function score(traits, extra = traits.extra) {
  const { texts, side, shift, mask, numerator, denominator, right, left } = traits;
  const width = widthOf(traits, extra), s = SHIFTS.indexOf(shift), table = (side === "right" ? right : left[extra])[s];
  const batch = { width, rows: [], sum: 0, count: 0, rightSum: 0, rightCount: 0 };
  texts.forEach((text, r) => {
    const tokens = [...text], long = tokens.length, start = side === "right" ? 0 : width - long;
    const real = (q) => q >= start && q < start + long;
    const mirrored = (q) => (side === "right" ? q >= width - long : q < long);
    const kept = (p, q) => (mask === "labels" ? real(q) : mask === "both" ? real(p) && real(q) : mirrored(p) && mirrored(q));
    const cells = [];
    for (let q = 0; q < width; q++) {
      const t = q - start, scored = q >= s, allowed = scored && kept(q - s, q);
      const aim = real(q) && t >= 1 ? right[1][r][t] : null, nll = scored ? table[r][q] : null;
      const summed = scored && (numerator || allowed), counted = scored && (denominator || allowed);
      cells.push({ token: real(q) ? tokens[t] : null, t, from: scored ? q - s : -1, nll, aim, pads: scored && !(real(q - s) && real(q)), summed, counted });
      if (summed) batch.sum += nll;
      if (counted) batch.count += 1;
      if (aim !== null) (batch.rightSum += aim), (batch.rightCount += 1);
    }
    batch.rows.push({ cells, start, long });
  });
  batch.mean = batch.sum / batch.count;
  batch.rightMean = batch.rightSum / batch.rightCount;
  return batch;
}

/** Whether the model reads padding on the left: real tokens cost something else behind it. */
export function reads({ texts, side, shift, right, left }, extra) {
  if (side === "right") return false;
  const width = widthOf({ texts }, extra), s = SHIFTS.indexOf(shift);
  return texts.some((text, r) => {
    const long = [...text].length;
    for (let t = s; t < long; t++) if (Math.abs(left[extra][s][r][width - long + t] - right[s][r][t]) > 5e-5) return true;
    return false;
  });
}
