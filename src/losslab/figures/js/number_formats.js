/**
 * What a number format can tell apart: two cosines over a temperature are two logits, and each format rounds them to its own numbers.
 * Traits: `temperature`, `positive` (cosine of the positive), `gap` (how much lower the negative's cosine is).
 */
import { BF16, FP16, FP32, round, spacing } from "./formats.js";
import { NOTE, SIZE, brief, linear, logarithmic, longestOf, mount, num, range, steps } from "./kit.js";
import { balance, drawFacts } from "./plots.js";
import { TEMPERATURES, temperature } from "./temperature.js";

const GAPS = [0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05];
const FORMATS = [BF16, FP16, FP32];
const CLAMP = 100, START = 1 / 0.07; // Radford et al. (2021): the learned scale starts at 1/0.07 and is clamped at 100
const HALO = `${NOTE} ll-halo`;
const FINE = 4; // px: ticks closer than this are a band

/** A number with six digits that count and no zeros at its end. */
const plain = (value) => num(value, value < 1 ? 6 : value < 10 ? 5 : value < 100 ? 4 : 3).replace(/\.?0+$/, "");

/** Odds, to three digits after the point or to three that count. */
const ratio = (odds) => (odds < 10 ? num(odds, 3) : brief(odds));

/** 2⁻² */
const power = (e) => `2${String(e).replace(/./g, (sign) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(sign)])}`;

/** What there is to draw and to say for the traits. */
function outcome({ temperature, positive, gap }) {
  const cosines = [positive, Math.round((positive - gap) * 1e4) / 1e4], logits = cosines.map((s) => s / temperature);
  const rows = FORMATS.map((format) => {
    const [high, low] = logits.map((z) => round(z, format));
    return { format, unit: spacing(logits[0], format), high, low, apart: high - low, same: high === low };
  });
  const over = FORMATS.filter(({ top }) => Math.exp(logits[0]) > top).map(({ name }) => name);
  return { temperature, cosines, logits, apart: logits[0] - logits[1], rows, over };
}

/** The figure in words. */
function sentence({ temperature, cosines, logits, apart, rows }) {
  const [a, b] = cosines.map((s) => num(s)), [high, low] = logits.map((z) => num(z, 3));
  const found = rows.slice(0, 2).map(({ format: { name }, unit, high: z, apart: left, same }) =>
    same ? `${name} steps by ${plain(unit)} there: both become ${plain(z)}, and it can no longer tell them apart.`
      : `${name} steps by ${plain(unit)} there and puts them ${plain(left)} apart.`);
  const clamp = 1 / temperature > CLAMP + 1e-9 ? ` CLIP’s clamp would not let the scale above ${CLAMP}.` : "";
  return `At τ = ${temperature} cosines of ${a} and ${b} are logits of ${high} and ${low}, ${num(apart)} apart. ${found.join(" ")}${clamp}`;
}

/** The learned scale on its axis: where CLIP starts it, and where its clamp ends. */
function drawScale({ ink, room, hatch, temperature, measure }, y) {
  const sx = logarithmic([1, 200], [12, room - 12]), line = y + 62;
  const title = "Learned temperature";
  ink.text("scale-title", 0, y + 14, title, "ll-strong");
  const wide = room >= 600, name = wide ? "logit scale 1/τ = exp(t), t is what is learned" : "1/τ = exp(t)";
  ink.text("scale-note", measure(title, SIZE.text, 600) + 10, y + 14, name, NOTE);
  ink("scale-clamped", "rect", { x: sx(CLAMP), y: line - 7, width: sx(200) - sx(CLAMP), height: 14, class: "ll-ghost ll-solid", fill: hatch });
  ink("scale-line", "path", { d: `M${sx(1)} ${line}H${sx(CLAMP)}`, class: "ll-zero" });
  for (const tick of [1, 2, 5, 10, 20, 50, 100, 200]) {
    ink(`scale-mark-${tick}`, "path", { d: `M${sx(tick)} ${line}v6`, class: "ll-zero" });
    ink.text(`scale-tick-${tick}`, sx(tick), line + 26, String(tick), NOTE, "middle");
  }
  ink("scale-start", "path", { d: `M${sx(START)} ${line - 12}v12`, class: "ll-zero" });
  ink.text("scale-start-name", sx(START), line - 18, wide ? "CLIP starts at 1/0.07" : "CLIP starts", NOTE, "middle");
  ink.text("scale-clamp-name", room, line - 18, wide ? `and is clamped at ${CLAMP}` : `clamp ${CLAMP}`, NOTE, "end");
  ink("scale-now", "circle", { cx: sx(1 / temperature), cy: line, r: 8, class: "ll-now ll-is-ink" });
  return line + 30;
}

const circle = (x, y) => `M${x - 6} ${y}a6 6 0 1 0 12 0a6 6 0 1 0 -12 0Z`;
const diamond = (x, y) => `M${x - 7} ${y}L${x} ${y - 7}L${x + 7} ${y}L${x} ${y + 7}Z`;

/** The two logits as they are, and below them what each format makes of them. Returns the y below. */
function drawRulers(view, y) {
  const { ink, room, measure, logits, apart, rows } = view;
  const wide = room >= 600, gutter = wide ? 142 : 0, aside = wide ? 158 : 0;
  const left = gutter + 8, right = room - aside - 8, middle = (logits[0] + logits[1]) / 2;
  const half = Math.max(2.4 * rows[0].unit, 0.75 * apart);
  const domain = [middle - half, middle + half], sx = linear(domain, [left, right]);
  const [high, low] = logits.map(sx);
  ink.text("rulers-title", 0, y + 14, "Where the two logits land", "ll-strong");
  const names = [["low", "negative", low], ["high", "positive", high]].map(([key, name, x]) => {
    const text = `${name} ${num(logits[key === "low" ? 1 : 0], 3)}`;
    return { key, text, x, width: measure(text, SIZE.small, 600) };
  });
  const top = y + 44, pitch = wide ? 74 : 96, first = top + (wide ? 44 : 66), end = first + 2 * pitch + 12;
  balance(names, gutter, room - aside, 14).forEach((x, i) => {
    const { key, text } = names[i];
    ink.text(`exact-${key}`, x, top, text, `ll-small ll-strong ${key === "high" ? "ll-is-best" : "ll-muted"}`, "middle");
    ink(`exact-${key}-to`, "path", { d: `M${x} ${top + 5}L${names[i].x} ${top + 18}V${end}`, class: key === "high" ? "ll-exact" : "ll-limit" });
  });
  rows.forEach(({ format: { name }, unit, high: up, low: down, apart: left_apart, same }, i) => {
    const line = first + i * pitch, id = `row-${name}`, px = sx(domain[0] + unit) - sx(domain[0]);
    const note = `every ${power(Math.log2(unit))}${unit > 1e-3 ? ` = ${plain(unit)}` : ""}`;
    const base = wide ? line - 3 : line - 25;
    ink.text(`${id}-name`, 0, base, name, "ll-strong ll-halo");
    ink.text(`${id}-note`, wide ? 0 : measure(`${name} `, SIZE.text, 600) + 4, wide ? line + 16 : base, note, HALO);
    ink(`${id}-line`, "path", { d: `M${left} ${line}H${right}`, class: "ll-zero" });
    let d = "";
    if (px < FINE) d = `M${left} ${line - 5}H${right}V${line + 5}H${left}Z`;
    else for (let k = Math.ceil(domain[0] / unit); k * unit <= domain[1]; k++) d += `M${sx(k * unit).toFixed(1)} ${line - 5}v10`;
    ink(`${id}-ticks`, "path", { d, class: px < FINE ? "ll-other" : "ll-tick" });
    if (i === 0) {
      const wordy = measure(plain(up + unit)) + 18, step = 2 ** Math.max(0, Math.ceil(Math.log2(wordy / px)));
      for (let k = Math.ceil(domain[0] / unit / step) * step; k * unit <= domain[1]; k += step) {
        const x = sx(k * unit), text = plain(k * unit), side = measure(text) / 2;
        if (x - side >= gutter && x + side <= room - aside) ink.text(`${id}-tick-${k / step}`, x, line + 30, text, HALO, "middle");
      }
    }
    ink(`${id}-low-now`, "path", { d: diamond(sx(down), line + 8), class: "ll-now ll-is-other" });
    ink(`${id}-high-now`, "path", { d: circle(sx(up), line - 8), class: "ll-now ll-is-best" });
    const verdict = same ? `both ${plain(up)}` : `${plain(left_apart)} apart`;
    const [is, exact] = [left_apart, apart].map((gap) => ratio(Math.exp(gap)));
    const odds = is === exact ? `odds ${exact}, as exact` : `odds ${is}, not ${exact}`;
    ink.text(`${id}-verdict`, room, base, verdict, `ll-small ll-strong ll-halo ${same ? "ll-is-wrong" : ""}`, "end");
    if (wide) ink.text(`${id}-odds`, room, line + 16, odds, NOTE, "end");
    else if (same) {
      const end = room - measure(`${verdict} `, SIZE.small, 600) - 4, free = end - measure(`${name} `, SIZE.text, 600) - measure(note) - 12;
      if (free > measure("same number:")) ink.text(`${id}-same`, end, base, "same number:", "ll-small ll-halo ll-is-wrong", "end");
    }
  });
  return end + 14;
}

function draw(base) {
  const view = { ...base, ...outcome(base) }, { room, temperature, logits, apart, cosines, over } = view;
  const [z, t] = [num(logits[0], 1), num(Math.log(1 / temperature), 2)];
  let y = drawFacts(view, 0, [
    { key: "fact-scale", title: "Logit scale 1/τ", value: brief(1 / temperature), note: `exp(t), t = ${t}` },
    { key: "fact-logit", title: "Positive’s logit", value: brief(logits[0]), note: over.length ? `exp(${z}) overflows ${over.length > 2 ? "all three" : over[0]}` : `exp(${z}) fits all three` },
    { key: "fact-gap", title: "Gap in logits", value: num(apart, 3), note: `${num(cosines[0] - cosines[1])} in cosine` },
  ]);
  y = drawScale(view, y + 34);
  return { height: drawRulers(view, y + 36) + (room >= 600 ? 8 : 0), says: sentence(view) };
}

const LONGEST = longestOf(
  [0.1, 0.111, 0.555, 0.777, 0.999].flatMap((positive) =>
    GAPS.flatMap((gap) => TEMPERATURES.map((temperature) => sentence(outcome({ temperature, positive, gap })))),
  ),
);

export default {
  render: ({ model, el }) =>
    mount({
      model, el, draw, longest: LONGEST,
      label: "The learned logit scale with its clamp, and two logits on rulers of the numbers that bf16, fp16 and fp32 have there",
      traits: ["temperature", "positive", "gap"],
      controls: [
        temperature(),
        range("positive", { label: "Cosine of the positive", min: 0.1, max: 1, step: 0.001, say: (s) => num(s, 3) }),
        steps("gap", { label: "The negative is lower by", values: GAPS, say: (gap) => `${num(gap)} in cosine` }),
      ],
    }),
};
