/**
 * Units: one text and what a model spends on it, divided by bytes, characters, words or tokens, in nats or bits, exponentiated or not.
 * Traits: `unit` (the name of one of `units`), `model` (the name of one of `models`), `base` ("nats", "bits"), `power` ("mean", "e",
 * "2"), and what was given: `text`, `units` ([{name, vocabulary, spans}], spans [start, end) in bytes of UTF-8; bytes, characters, words and the
 * tokenizers', from fine to coarse), `models` (two of [{name, unit, nats}]).
 */
import { amount } from "./amounts.js";
import { NOTE, SIZE, count, fit, longestOf, mount, num, radios, steps } from "./kit.js";

const OWN = ["bytes", "characters", "words"];
const LINE = 30, BOX = 24;

/** What a unit is called, one of it or `n`. */
export const noun = ({ name }, n = 1) => (OWN.includes(name) ? (n === 1 ? name.slice(0, -1) : name) : `token${n === 1 ? "" : "s"} of ${name}`);

/** How many there are, with what they are called. */
const many = (unit) => `${count(unit.spans.length)} ${noun(unit, unit.spans.length)}`;

/** The pieces of a text between byte offsets, as shown: what is no whole character is written in hexadecimal. */
export function pieces(text, spans) {
  const bytes = new TextEncoder().encode(text), whole = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  return spans.map(([start, end]) => {
    const part = bytes.slice(start, end);
    try {
      return whole.decode(part).replace(/ /g, "␣").replace(/\n/g, "↵").replace(/\t/g, "⇥");
    } catch {
      return [...part].map((byte) => byte.toString(16).toUpperCase().padStart(2, "0")).join(" ");
    }
  });
}

/** A total in nats over n units, in nats or bits, as it is, or as the power of e or 2. */
export function reading(nats, n, { base, power }) {
  const mean = nats / n / (base === "bits" ? Math.LN2 : 1);
  return power === "mean" ? mean : power === "e" ? Math.exp(mean) : 2 ** mean;
}

/** Whether the power and the logarithm disagree. */
const mixed = ({ base, power }) => power !== "mean" && (power === "e") !== (base === "nats");

const bitsPerByte = ({ units }, { nats }) => nats / units[0].spans.length / Math.LN2;
const unitOf = ({ units }, name) => units.find((unit) => unit.name === name);
const own = (view, model) => Math.exp(model.nats / unitOf(view, model.unit).spans.length);

/** Which of two numbers is lower as printed: 0, 1, or −1 for neither. */
const lower = ([a, b]) => (amount(a) === amount(b) ? -1 : a < b ? 0 : 1);

/** What perplexity and bits per byte say of the two models. */
function verdicts(view) {
  const { models } = view, perplexities = models.map((model) => own(view, model)), bits = models.map((model) => bitsPerByte(view, model));
  return { perplexities, bits, seems: lower(perplexities), is: lower(bits) };
}

/** The figure in words. */
function sentence(view) {
  const { models, base, power } = view, model = models.find(({ name }) => name === view.model), unit = unitOf(view, view.unit), n = unit.spans.length;
  const total = num(model.nats, 1), per = `per ${noun(unit)}`, value = amount(reading(model.nats, n, view)), mean = amount(reading(model.nats, n, { base, power: "mean" }));
  const start = `${model.name} spends ${total} nats on ${many(unit)}: ${mean} ${base} ${per}`;
  const right = amount(Math.exp(model.nats / n));
  const first = power === "mean" ? `${start}.` : mixed(view) ? `${start}; ${power} to the power of ${base} reads ${value}, but the perplexity is ${right}.` : `${start}, a perplexity of ${value}.`;
  const { perplexities, bits, seems, is } = verdicts(view), against = (values, i) => `${amount(values[i])} against ${amount(values[1 - i])}`;
  const name = (i) => models[i].name;
  const told = (values, i) => (i < 0 ? `the two are level at ${amount(values[0])}` : `${name(i)} is better (${against(values, i)})`);
  if (seems >= 0 && is >= 0 && seems !== is) return `${first} By perplexity per own token ${name(seems)} looks better (${against(perplexities, seems)}); in bits per byte ${name(is)} is (${against(bits, is)}).`;
  return `${first} By perplexity per own token ${told(perplexities, seems)}; in bits per byte ${told(bits, is)}.`;
}

/** Boxes of the pieces in lines, for one unit: [{x, line, width, text}]. */
function lines(view, unit) {
  const { measure, room, text } = view, spans = unit.spans;
  let x = 0, line = 0;
  return pieces(text, spans).map((piece, i) => {
    const shown = fit(piece, room - 10, (t) => measure(t)), width = Math.max(15, Math.ceil(measure(shown)) + 7);
    const apart = i && spans[i][0] > spans[i - 1][1] ? 10 : 2; // white space that no unit owns
    if (i) x += apart;
    if (x + width > room) (x = 0), (line += 1);
    const at = { x, line, width, text: shown };
    x += width;
    return at;
  });
}

/** The boxes of every unit, worked out once for each width and font. */
const known = new WeakMap();
function laidOut(view) {
  if (!known.has(view.measure)) known.set(view.measure, new Map());
  const rooms = known.get(view.measure);
  if (!rooms.has(view.room)) rooms.set(view.room, view.units.map((unit) => lines(view, unit)));
  return rooms.get(view.room);
}

/** The text, cut into units. Returns the y below, the same for all of them. */
function drawText(view, unit) {
  const { ink, units, room, measure } = view, all = laidOut(view), boxes = all[units.indexOf(unit)];
  const title = `The text in ${many(unit)}`;
  ink.text("text-title", 0, 14, fit(title, room, (t) => measure(t, SIZE.text, 600)), "ll-strong");
  boxes.forEach(({ x, line, width, text }, i) => {
    const y = 26 + LINE * line;
    ink(`piece-${i}`, "rect", { x: x + 0.5, y: y + 0.5, width: width - 1, height: BOX - 1, rx: 3, class: i % 2 ? "ll-piece" : "ll-piece ll-piece-odd" });
    ink.text(`piece-${i}-text`, x + width / 2, y + 17, text, "ll-small ll-piece-text", "middle");
  });
  return 26 + LINE * (1 + Math.max(...all.map((each) => each.at(-1).line)));
}

/** All that the model spends as one bar, in as many equal parts as there are units. Returns the y below. */
function drawTotal(view, unit, model, y) {
  const { ink, room, models, base } = view, n = unit.spans.length, long = (room * model.nats) / Math.max(...models.map(({ nats }) => nats));
  const part = long / n, scale = base === "bits" ? Math.LN2 : 1;
  ink.text("total-title", 0, y + 14, `${num(model.nats / scale, 1)} ${base} in ${n === 1 ? "one part" : `${count(n)} equal parts`}`, "ll-strong");
  ink("total", "rect", { x: 0.5, y: y + 26.5, width: long - 1, height: 21, class: "ll-good" });
  ink("total-part", "rect", { x: 0.5, y: y + 26.5, width: Math.max(1, part - 1), height: 21, class: "ll-best" });
  ink("total-cuts", "path", { d: Array.from({ length: n - 1 }, (_, i) => `M${((i + 1) * part).toFixed(1)} ${y + 27}v20`).join("") || "M0 0", class: "ll-cuts" });
  ink("total-hook", "path", { d: `M${Math.min(part / 2, 12)} ${y + 51}v9h8`, class: "ll-line-other" });
  ink.text("total-each", Math.min(part / 2, 12) + 13, y + 65, `${amount(model.nats / scale / n)} ${base} each`);
  return y + 72;
}

/** The number, large, and how it comes about. Returns the y below. */
function drawNumber(view, unit, model, y, breadth) {
  const { ink, measure, base, power } = view, n = unit.spans.length, wrong = mixed(view), value = amount(reading(model.nats, n, view));
  const cut = (text, size = SIZE.small, weight = 400) => fit(text, breadth, (t) => measure(t, size, weight));
  const what = power === "mean" ? `${base === "nats" ? "Nats" : "Bits"} per` : wrong ? `${power} to the power of ${base} per` : "Perplexity per";
  ink.text("value-title", 0, y + 14, cut(`${what} ${noun(unit)}`, SIZE.text, 600), "ll-strong");
  ink.text("value", 0, y + 54, value, `ll-big ${wrong ? "ll-is-wrong" : ""}`);
  const total = num(model.nats / (base === "bits" ? Math.LN2 : 1), 1), mean = `${total} ${base} ÷ ${count(n)}`;
  ink.text("value-how", 0, y + 80, power === "mean" ? mean : `${power} to the power of (${mean})`);
  const beside = measure(value, SIZE.big, 600) + 14;
  if (wrong) ink.text("value-verdict", beside, y + 38, "no perplexity", "ll-small ll-strong ll-is-wrong");
  if (wrong) ink.text("value-should", beside, y + 56, `should be ${amount(Math.exp(model.nats / n))}`, "ll-small ll-is-right");
  return y + 88;
}

/** The same for every unit, and what no tokenizer moves. Returns the y below. */
function drawTable(view, model, y, breadth) {
  const { ink, units, unit, measure } = view, column = breadth - 84;
  ink.text("table-count", column, y + 12, "how many", NOTE, "end");
  ink.text("table-value", breadth - 8, y + 12, view.power === "mean" ? view.base : mixed(view) ? "reads" : "perplexity", NOTE, "end");
  units.forEach((one, i) => {
    const now = one.name === unit, at = y + 22 + 28 * i, look = now ? "ll-strong" : "ll-small", size = now ? SIZE.text : SIZE.small;
    if (now) ink("row-frame", "rect", { x: 0.5, y: at + 0.5, width: breadth - 1, height: 27, rx: 4, class: "ll-here" });
    ink.text(`row-${i}-name`, 8, at + 19, fit(`per ${noun(one)}`, column - 60, (t) => measure(t, size, now ? 600 : 400)), look);
    ink.text(`row-${i}-count`, column, at + 19, count(one.spans.length), NOTE, "end");
    ink.text(`row-${i}`, breadth - 8, at + 19, amount(reading(model.nats, one.spans.length, view)), `${look} ${mixed(view) ? "ll-is-wrong" : ""}`, "end");
  });
  y += 22 + 28 * units.length + 8;
  ink("same", "rect", { x: 0.5, y: y + 0.5, width: breadth - 1, height: 47, rx: 4, class: "ll-right-outline ll-dashed" });
  ink.text("same-name", 8, y + 20, "bits per byte", "ll-small ll-strong ll-is-right");
  ink.text("same-note", 8, y + 38, "stays, however the text is cut", "ll-small ll-is-right");
  ink.text("same-value", breadth - 8, y + 30, amount(bitsPerByte(view, model)), "ll-strong ll-is-right", "end");
  return y + 48;
}

/** Both models by one measure, the lower the better. Returns the y below. */
function drawPair(view, key, x, y, breadth, { title, note, values, best, says, look }) {
  const { ink, models, measure } = view, most = Math.max(...values);
  ink.text(`${key}-title`, x, y + 14, title, "ll-strong");
  ink.text(`${key}-note`, x, y + 33, note, NOTE);
  models.forEach((model, i) => {
    const top = y + 44 + 44 * i, now = model.name === view.model, long = Math.max(1, (breadth - 70) * (values[i] === most ? 1 : values[i] / most)); // also where both are ∞
    const unit = unitOf(view, model.unit), choice = unit.vocabulary ? `, ${count(unit.vocabulary)} to choose from` : "";
    const mark = i === best ? says : "";
    const name = fit(key === "own" ? `${model.name}: ${model.unit}${choice}` : model.name, breadth - (mark ? measure(mark, SIZE.small, 600) + 14 : 0), (t) => measure(t, SIZE.small, now ? 600 : 400));
    ink.text(`${key}-${i}-name`, x, top + 12, name, now ? "ll-small ll-strong" : "ll-small");
    if (mark) ink.text(`${key}-${i}-mark`, x + breadth, top + 12, mark, `ll-small ll-strong ${look}`, "end");
    ink(`${key}-${i}-bar`, "rect", { x: x + 0.5, y: top + 18.5, width: long, height: 15, class: now ? "ll-best" : "ll-good" });
    ink.text(`${key}-${i}`, x + long + 8, top + 31, amount(values[i]), "ll-small ll-strong");
  });
  return y + 44 + 88;
}

function draw(view) {
  const { room, units, models } = view, wide = room >= 640, breadth = wide ? Math.floor(room * 0.46) : room;
  const unit = unitOf(view, view.unit) ?? units[0], model = models.find(({ name }) => name === view.model) ?? models[0];
  const below = drawTotal(view, unit, model, drawText(view, unit) + 14) + 30;
  const left = drawTable(view, model, drawNumber(view, unit, model, below, breadth) + 10, breadth);
  const { perplexities, bits, seems, is } = verdicts(view), split = seems >= 0 && is >= 0 && seems !== is;
  const x = wide ? breadth + 40 : 0, across = room - x;
  const mid = drawPair(view, "own", x, wide ? below : left + 34, across, {
    title: "Perplexity per own token", note: "in units that differ: not to be compared",
    values: perplexities, best: seems, says: split ? "looks better" : "lower", look: split ? "ll-is-wrong" : "ll-is-other",
  });
  const end = drawPair(view, "bits", x, mid + 24, across, {
    title: "Bits per byte", note: "of the same bytes: comparable", values: bits, best: is, says: "is better", look: "ll-is-right",
  });
  return { height: Math.max(left, end), says: sentence(view) };
}

const DATA = ["text", "units", "models"];

/** The longest sentences, of all states that there are. */
function longest(given) {
  const all = [];
  for (const model of given.models) for (const unit of given.units) for (const base of ["nats", "bits"]) for (const power of ["mean", "e", "2"]) all.push(sentence({ ...given, model: model.name, unit: unit.name, base, power }));
  return longestOf(all);
}

export default {
  render({ model, el }) {
    const given = Object.fromEntries(DATA.map((name) => [name, model.get(name)]));
    return mount({
      model, el, draw, longest: longest(given),
      label: "A text cut into units, the cost of it in equal parts, the number per unit for every unit, and two models by perplexity per token and by bits per byte",
      traits: ["unit", "model", "base", "power", ...DATA],
      controls: [
        steps("unit", { label: "Divide by", values: given.units.map(({ name }) => name), say: (name) => many(unitOf(given, name)) }),
        radios("model", { label: "Model", inline: true, options: given.models.map(({ name }) => [name, name]) }),
        radios("base", { label: "Logarithm in", inline: true, options: [["nats", "nats (base e)"], ["bits", "bits (base 2)"]] }),
        radios("power", { label: "Shown", inline: true, options: [["mean", "the mean"], ["e", "e to the mean"], ["2", "2 to the mean"]] }),
      ],
    });
  },
};
