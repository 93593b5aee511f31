/** Binary number formats: what a value becomes in one, and how far apart its numbers are. Tests hold this to torch and to fractions. */

/** Bits of the significand (the hidden one too), exponents of the smallest normal and of the largest number; `top` is that largest. */
const format = (name, bits, low, high) => ({ name, bits, low, top: (2 - 2 ** (1 - bits)) * 2 ** high });
export const BF16 = format("bf16", 8, -126, 127);
export const FP16 = format("fp16", 11, -14, 15);
export const FP32 = format("fp32", 24, -126, 127);

/** Largest e with 2^e ≤ |value|. The logarithm may be off by one next to a power of two. */
function exponent(value) {
  const size = Math.abs(value), e = Math.floor(Math.log2(size));
  return 2 ** e > size ? e - 1 : 2 ** (e + 1) <= size ? e + 1 : e;
}

/** Distance from a value to the next number of a format, away from zero. */
export const spacing = (value, { bits, low }) => 2 ** ((value ? Math.max(exponent(value), low) : low) - bits + 1);

/** The number of a format that is nearest to `value`; of two equally near the even one, as IEEE 754 has it; beyond the largest, infinity. */
export function round(value, format) {
  if (!Number.isFinite(value) || value === 0) return value;
  const unit = spacing(value, format), units = Math.abs(value) / unit; // exact: the unit is a power of two
  const below = Math.floor(units), over = units - below;
  const nearest = over > 0.5 || (over === 0.5 && below % 2) ? below + 1 : below;
  const size = nearest * unit > format.top ? Infinity : nearest * unit;
  return value < 0 ? -size : size;
}
