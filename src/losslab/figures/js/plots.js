/** Parts of the temperature figures: numbers in large, and curves against the temperature with the point that now holds. */
import { NOTE, SIZE, axis, linear, logarithmic, percent, spread } from "./kit.js";
import { FINE, TEMPERATURES } from "./temperature.js";

/** A share of 1 as a percentage that rounds neither something to nothing nor nearly all to all. */
export const portion = (share) =>
  share > 0 && share < 0.0005 ? "<0.1%" : share < 1 && share >= 0.9995 ? ">99.9%" : percent(share);

/** `spread`, but labels that are pushed apart give way to both sides: halfway between a push to the right and one to the left. */
export function balance(labels, lo, hi, gap = 12) {
  const turned = labels.map(({ x, width }) => ({ x: lo + hi - x, width })).reverse();
  const left = spread(turned, lo, hi, gap).reverse();
  return spread(labels, lo, hi, gap).map((x, i) => (x + lo + hi - left[i]) / 2);
}

/**
 * Numbers in large, each with its title and a note: side by side, or where that is too tight below each other. Returns the y below.
 * @param {object} view
 * @param {number} y
 * @param {{key: string, title: string, value: string, note: string, look?: string, noted?: string}[]} facts  looks of value and note
 */
export function drawFacts({ ink, room }, y, facts) {
  const wide = room >= 700, pitch = room / facts.length;
  facts.forEach(({ key, title, value, note, look = "", noted = NOTE }, i) => {
    const [x, top] = wide ? [i * pitch, y] : [0, y + 72 * i];
    ink.text(`${key}-title`, x, top + (wide ? 14 : 28), title, "ll-strong");
    ink.text(`${key}-note`, x, top + (wide ? 74 : 50), note, noted);
    ink.text(key, wide ? x : room, top + (wide ? 51 : 32), value, `ll-big ${look}`, wide ? "start" : "end");
  });
  return wide ? y + 78 : y + 72 * facts.length - 18;
}

/** Points of a curve's mark: a filled circle, or a diamond where a second curve must differ by more than its colour. */
const shape = (x, y, r, square) =>
  square ? `M${x - r} ${y}L${x} ${y - r}L${x + r} ${y}L${x} ${y + r}Z` : `M${x - r} ${y}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0Z`;

/**
 * Curves against the temperature, with limits as dotted lines. Returns the y below.
 * @param {object} view
 * @param {object} plot
 * @param {string} plot.id
 * @param {string} plot.title
 * @param {string} plot.note  below the title
 * @param {{key: string, name: string, value: string, line: string, look: string, square?: boolean, values: number[], now: number}[]} plot.curves
 *   `values` at the temperatures FINE; `name` and `value` are written above, beside a sample of the line
 * @param {number} plot.lines  rows kept for those names
 * @param {[number, number]} plot.domain  values at the upper and the lower end
 * @param {number[]} plot.ticks
 * @param {boolean} plot.log  whether the upright axis is logarithmic
 * @param {[number, string][]} plot.limits  values that a curve tends to, and what stands beside them, right of the plot
 */
export function drawCurves(view, plot) {
  const { ink, temperature, measure } = view;
  const { id, title, note, x, y, breadth, curves, lines, domain, ticks, log = false, limits, show = String, gutter } = plot;
  ink.text(`${id}-title`, x, y + 14, title, "ll-strong");
  ink.text(`${id}-note`, x, y + 34, note, NOTE);
  const top = y + 50 + 20 * lines, bottom = top + 160, left = x + 46, right = x + breadth - gutter;
  const sx = logarithmic([TEMPERATURES[0], TEMPERATURES.at(-1)], [left + 8, right - 8]);
  const sy = (log ? logarithmic : linear)(domain, [top, bottom]);
  axis(ink, `${id}-y`, { side: "left", scale: sy, ticks, at: left, to: right, show });
  axis(ink, `${id}-x`, { side: "bottom", scale: sx, ticks: [0.005, 0.02, 0.1, 0.3, 1], at: bottom + 2 });
  ink.text(`${id}-x-name`, right, bottom + 42, "temperature τ (log scale)", NOTE, "end");
  for (const [i, [value, text]] of limits.entries()) {
    ink(`${id}-limit-${i}`, "path", { d: `M${left} ${sy(value)}H${right}`, class: "ll-limit" });
    if (text) ink.text(`${id}-limit-${i}-name`, right + 8, sy(value) + 4.5, text, NOTE);
  }
  ink(`${id}-at`, "path", { d: `M${sx(temperature)} ${top}V${bottom}`, class: "ll-at" });
  curves.forEach(({ key, name, value, line, look, square, values, now }, i) => {
    const at = y + 56 + 20 * i;
    ink(`${id}-${key}-sample`, "path", { d: `M${x} ${at - 4.5}h26`, class: line });
    ink(`${id}-${key}-dot`, "path", { d: shape(x + 13, at - 4.5, 5, square), class: look });
    ink.text(`${id}-${key}-name`, x + 34, at, name, `ll-small ${look}`);
    ink.text(`${id}-${key}`, x + 34 + measure(`${name} `, SIZE.small), at, value, `ll-small ll-strong ${look}`);
    ink(`${id}-${key}-line`, "path", { d: `M${values.map((v, j) => `${sx(FINE[j]).toFixed(1)} ${sy(v).toFixed(1)}`).join("L")}`, class: line });
    ink(`${id}-${key}-now`, "path", { d: shape(sx(temperature), sy(now), 7, square), class: `ll-now ${look}` });
  });
  return bottom + 46;
}
