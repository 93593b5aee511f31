/**
 * The loss of one token in a number format, computed in two orders: log(softmax), and log-softmax by subtracting log-sum-exp.
 *
 * The right token's logit lies `gap` below those of `others` competing tokens, all equal. As PyTorch has it on a CPU, exponentials,
 * their sum and its reciprocal are float32 (in float64: float64); the probability is then rounded to the format, and so is each log.
 * The same lines stand in `_rounded_loss.py`; tests hold both to torch.
 */
import { BF16, FP16, FP32, round } from "./formats.js";

const kind = (name, { bits, low }, keep, inside) => ({ name, bits, low, least: low - bits + 1, keep, inside });
const native = (value) => value;

/** By name: bits of the significand, exponents of the smallest normal number and of the smallest number at all, and its rounding. */
export const KINDS = {
  float64: kind("float64", { bits: 53, low: -1022 }, native, native),
  float32: kind("float32", FP32, Math.fround, Math.fround),
  bfloat16: kind("bfloat16", BF16, (value) => round(value, BF16), Math.fround),
  float16: kind("float16", FP16, (value) => round(value, FP16), Math.fround),
};

/** −log p as it is, with no rounding but float64's. */
export const exactLoss = (gap, others) => gap + Math.log(others + Math.exp(-gap));

/** @returns {{p: number, wrong: number, right: number}} the probability that is kept, minus its log, and the loss without it */
export function lossOf(gap, others, { keep, inside }) {
  const e = inside(Math.exp(-gap)), sum = inside(others + e);
  const p = keep(inside(e * inside(1 / sum)));
  const right = keep(inside(gap + inside(Math.log(sum)))); // the largest logit is 0
  return { p, wrong: p ? keep(inside(-Math.log(p))) : Infinity, right };
}

/** How many bits a probability is kept with: all in the normal range, fewer below it, none at 0. */
export function bitsLeft(p, { bits, low, least }) {
  if (!p) return 0;
  return p >= 2 ** low ? bits : Math.floor(Math.log2(p) + 1e-9) - least + 1;
}
