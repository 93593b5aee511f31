/** Amounts of any size as the perplexity figures print them, and words in lines. */
import { NOTE, count, num } from "./kit.js";

export const RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹";

/** A positive number with about three digits that count: 0.051, 7.39, 31.4, 1,024, 2.0 × 10¹¹. */
export function amount(value) {
  if (value === Infinity) return "∞";
  if (value < 99.95) return num(value, value < 0.0995 ? 3 : value < 9.995 ? 2 : 1);
  if (value < 999999.5) return count(num(value, 0));
  const [digits, power] = value.toExponential(1).split("e+");
  return `${digits} × 10${[...power].map((d) => RAISED[d]).join("")}`;
}

/** Words in lines of at most `most` px. */
export function wrapped(text, most, wide) {
  const lines = [""];
  for (const word of text.split(" ")) {
    const longer = lines.at(-1) ? `${lines.at(-1)} ${word}` : word;
    if (lines.at(-1) && wide(longer) > most) lines.push(word);
    else lines[lines.length - 1] = longer;
  }
  return lines;
}

/** Writes words in lines, 18 px apart. Returns the y of the next line. */
export function write({ ink, measure }, key, x, y, text, most, look = NOTE) {
  const lines = wrapped(text, most, (t) => measure(t));
  lines.forEach((line, i) => ink.text(`${key}-${i}`, x, y + 18 * i, line, look));
  return y + 18 * lines.length;
}
