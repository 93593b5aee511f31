/**
 * Averaging: the same token losses of the same texts, and what four averages make of them. A text is a bar: its width is its weight,
 * its height the mean loss of its tokens, so that its area is what it adds.
 * Traits: `average` ("tokens", "batches", "texts", "perplexities"), `batch` (texts a batch), `seed` (of the texts' order; 0 as given),
 * and what was measured: `names`, `tokens` (counts) and `means` (mean losses in nats), one a text.
 */
import { NOTE, SIZE, count, fit, linear, longestOf, mount, num, percent, plural, range } from "./kit.js";
import { drawFacts } from "./plots.js";
import { select } from "./select.js";
import { ORDERS, ordersOf, perplexityOf, weightsOf } from "./averages.js";

const AVERAGES = { tokens: "every token once", batches: "mean of batch means", texts: "mean of text means", perplexities: "mean of text perplexities" };
const LETTERS = "ABCDEFGHIJKL";
const RIGHT = "ll-small ll-is-right";

const confusion = (value) => num(value, value < 99.95 ? 3 : value < 9999.5 ? 1 : 0);
const capital = (text) => text[0].toUpperCase() + text.slice(1);
const portion = (share) => percent(share, share < 0.9995 ? 1 : 0);

/** What depends on the data alone: orders, the right perplexity, and the reach of all averages over all batches and orders. */
function known({ tokens, means }) {
  const orders = ordersOf(tokens.length), value = (average, batch, seed) => perplexityOf(average, means, weightsOf(average, tokens, orders[seed], batch));
  const spans = tokens.map((_, i) => {
    const values = orders.map((_, seed) => value("batches", i + 1, seed));
    return [Math.min(...values), Math.max(...values)];
  });
  const right = value("tokens", 1, 0), fixed = ["texts", "perplexities"].map((average) => value(average, 1, 0));
  return { orders, right, spans, ends: [Math.min(right, ...fixed, ...spans.flat()), Math.max(right, ...fixed, ...spans.flat())] };
}

/** What there is to draw and to say for the traits. */
function outcome({ average, batch, seed, tokens, means, names }, { orders, right }) {
  const order = orders[seed], weights = weightsOf(average, tokens, order, batch), shares = weightsOf("tokens", tokens, order, batch);
  const values = Object.fromEntries(Object.keys(AVERAGES).map((one) => [one, perplexityOf(one, means, weightsOf(one, tokens, order, batch))]));
  const value = values[average], off = confusion(value) !== confusion(right);
  const most = weights.reduce((best, w, i) => (w / shares[i] > weights[best] / shares[best] + 1e-9 ? i : best), 0);
  return { average, batch, seed, names, tokens, order, weights, shares, values, value, right, off, far: value / right - 1, most };
}

const placed = (seed) => (seed ? `shuffle ${seed}` : "as given");
const far = (share) => `${percent(Math.abs(share), Math.abs(share) < 0.0995 ? 2 : 1)} too ${share > 0 ? "high" : "low"}`;

/** The figure in words. */
function sentence({ average, batch, seed, names, tokens, weights, shares, value, right, off, far: share, most }) {
  const all = count(tokens.reduce((a, b) => a + b, 0));
  if (average === "tokens") return `Every token once: the perplexity of all ${all} tokens is ${confusion(value)}, in whatever batches and order they come.`;
  const how = average === "batches" ? `, ${plural(batch, "text")} a batch, order ${placed(seed)}` : "";
  const start = `${capital(AVERAGES[average])}${how}: perplexity ${confusion(value)}`;
  const verdict = off ? `${start}, ${far(share)}; over all ${all} tokens it is ${confusion(right)}.` : `${start}, as over all ${all} tokens.`;
  if (weights[most] / shares[most] < 1.005) return verdict;
  return `${verdict} ${names[most]} has ${portion(shares[most])} of the tokens and ${portion(weights[most])} of the weight.`;
}

/** Ticks from 0 to at most `top`, three to six of them. */
function ticksTo(top) {
  const ten = 10 ** Math.floor(Math.log10(top)), step = [0.1, 0.2, 0.5, 1, 2].map((s) => s * ten).find((s) => top / s <= 5.2);
  return Array.from({ length: Math.floor(top / step + 1e-9) + 1 }, (_, i) => Number((i * step).toPrecision(6)));
}

/** The texts as bars: as the average weighs them, and as their tokens do. Returns the y below. */
function drawBars(view, y, breadth) {
  const { ink, measure, average, batch, order, weights, shares, means, value, right, off } = view, n = order.length;
  const left = 34, end = breadth - 58, high = 116, grouped = average === "batches" && batch < n, gap = grouped ? 6 : 0;
  const raw = average === "perplexities", height = raw ? Math.exp : (mean) => mean, level = (v) => (raw ? v : Math.log(v));
  const places = (widths, apart) => {
    const room = end - left - apart * (Math.ceil(n / batch) - 1), at = {};
    let x = left;
    order.forEach((i, place) => {
      if (place && place % batch === 0) x += apart;
      at[i] = [x, widths[i] * room];
      x += widths[i] * room;
    });
    return at;
  };
  const rows = [
    { key: "is", title: `As it is: ${AVERAGES[average]}`, base: y + 66 + high, at: places(weights, gap), of: height, to: level },
    { key: "should", title: "As it should be: every token once", base: y + 66 + high + 56 + 46 + high, at: places(shares, 0), of: (mean) => mean, to: Math.log },
  ];
  for (const { key, title, base, at, of, to } of rows) {
    const top = of(Math.max(...means)) * 1.04 || 1, sy = linear([0, top], [base, base - high]), first = key === "is";
    ink.text(`${key}-title`, 0, first ? y + 14 : base - high - 30, title, "ll-strong");
    ink.text(`${key}-note`, 0, first ? y + 34 : base - high - 11, first && raw ? "↑ perplexity of a text, → weight" : `↑ mean loss (nats), → ${first ? "weight" : "tokens"}`, NOTE);
    for (const [i, tick] of ticksTo(top).entries()) {
      ink(`${key}-grid-${i}`, "path", { d: `M${left} ${sy(tick)}H${end}`, class: tick ? "ll-grid" : "ll-zero" });
      ink.text(`${key}-tick-${i}`, left - 8, sy(tick) + 4.5, String(tick), NOTE, "end");
    }
    for (const i of order) {
      const [x, width] = at[i], tall = of(means[i]) * (high / top), heavy = first && weights[i] > 1.02 * shares[i];
      ink(`${key}-bar-${i}`, "rect", { x: x + 0.5, y: base - tall, width: Math.max(0.5, width - 1), height: tall, class: heavy ? "ll-heavier" : "ll-other" });
      if (width >= measure(LETTERS[i]) + 3) ink.text(`${key}-letter-${i}`, x + width / 2, base + 16, LETTERS[i], heavy ? "ll-small ll-strong ll-is-wrong" : NOTE, "middle");
    }
    const lines = [["right", to(right), "should"], ...(first && off ? [["wrong", to(value), "is"]] : [])];
    const ys = lines.map(([, v]) => sy(v));
    lines.forEach(([look, v, word], i) => {
      ink(`${key}-line-${look}`, "path", { d: `M${left} ${sy(v)}H${end}`, class: `ll-line-${look}` });
      const push = ys.length > 1 && Math.abs(ys[0] - ys[1]) < 34 ? (17 - Math.abs(ys[0] - ys[1]) / 2) * Math.sign(ys[i] - ys[1 - i] || 1) : 0;
      const line = Math.max(base - high + 2, Math.min(base - 18, sy(v) + push));
      ink.text(`${key}-${look}-word`, end + 6, line - 2, first && lines.length > 1 ? word : "mean", `ll-small ll-is-${look}`);
      ink.text(`${key}-${look}`, end + 6, line + 13, raw && first ? confusion(v) : num(v, 3), `ll-small ll-strong ll-is-${look}`);
    });
  }
  const [is, should] = rows, from = is.base + 22, until = should.base - high - 50;
  for (const i of order) {
    const [a, wide] = is.at[i], [b, broad] = should.at[i], heavy = weights[i] > 1.02 * shares[i];
    ink(`ribbon-${i}`, "path", { d: `M${a + 0.5} ${from}h${Math.max(0.5, wide - 1)}L${b + broad - 0.5} ${until}H${b + 0.5}Z`, class: heavy ? "ll-band" : "ll-track" });
  }
  if (grouped) {
    const batches = Math.ceil(n / batch);
    for (let k = 0; k < batches; k++) {
      const texts = order.slice(k * batch, (k + 1) * batch), [a] = is.at[texts[0]], [b, width] = is.at[texts.at(-1)], line = is.base - high - 6;
      ink(`batch-${k}`, "path", { d: `M${a + 1} ${line + 5}v-5H${b + width - 1}v5`, class: "ll-whisker ll-tone-muted" });
      const name = `1/${batches}`;
      if (b + width - a > measure(name) + 4) ink.text(`batch-${k}-name`, (a + b + width) / 2, line - 5, name, NOTE, "middle");
    }
  }
  return should.base + 22;
}

/** Every text with its tokens, its weight, and the weight that it should have. Returns the y below. */
function drawTexts({ ink, measure, names, tokens, weights, shares }, x, y, breadth) {
  const ends = [breadth - 128, breadth - 66, breadth].map((end) => x + end);
  ink.text("texts-title", x, y + 14, "The texts", "ll-strong");
  for (const [i, head] of ["tokens", "weight", "should"].entries()) ink.text(`texts-head-${i}`, ends[i], y + 38, head, i === 2 ? RIGHT : NOTE, "end");
  names.forEach((name, i) => {
    const row = y + 62 + 23 * i, heavy = weights[i] > 1.02 * shares[i];
    ink.text(`text-${i}-letter`, x, row, LETTERS[i], heavy ? "ll-small ll-strong ll-is-wrong" : "ll-small ll-strong");
    ink.text(`text-${i}-name`, x + 18, row, fit(name, breadth - 128 - 18 - measure("10,000") - 8, (text) => measure(text)), "ll-small");
    ink.text(`text-${i}-tokens`, ends[0], row, count(tokens[i]), NOTE, "end");
    ink.text(`text-${i}-weight`, ends[1], row, portion(weights[i]), `ll-small ll-strong ${heavy ? "ll-is-wrong" : ""}`, "end");
    ink.text(`text-${i}-share`, ends[2], row, portion(shares[i]), RIGHT, "end");
  });
  return y + 62 + 23 * (names.length - 1) + 6;
}

/** All averages on one axis of perplexity, with the reach of the one that depends on batches over every order. Returns the y below. */
function drawAverages(view, y) {
  const { ink, room, measure, average: chosen, batch, values, right, spans, ends } = view, wide = room >= 560;
  const left = wide ? 190 : 8, end = room - (wide ? 76 : 12), pad = (ends[1] - ends[0]) * 0.06 || 0.05 * right;
  const sx = linear([ends[0] - pad, ends[1] + pad], [left, end]), pitch = wide ? 30 : 46, first = y + (wide ? 66 : 82);
  ink.text("averages-title", 0, y + 14, "Perplexity by every average", "ll-strong");
  const last = first + 3 * pitch, label = `should be ${confusion(right)}`, half = measure(label) / 2;
  ink("averages-right", "path", { d: `M${sx(right)} ${y + 48}V${last + 14}`, class: "ll-line-right" });
  ink.text("averages-right-name", Math.min(room - half, Math.max(half, sx(right))), y + 42, label, RIGHT, "middle");
  Object.entries(AVERAGES).forEach(([key, name], i) => {
    const line = first + pitch * i, x = sx(values[key]), off = confusion(values[key]) !== confusion(right), mine = key === chosen;
    const look = mine ? "ll-small ll-strong" : NOTE, base = wide ? line + 4.5 : line - 14;
    ink.text(`average-${key}-name`, 0, base, name, `${look} ll-halo`);
    ink(`average-${key}-track`, "path", { d: `M${left} ${line}H${end}`, class: "ll-grid" });
    if (key === "batches") {
      const [a, b] = spans[batch - 1].map(sx);
      ink("average-span", "path", { d: `M${a} ${line - 5}v10m0 -5H${b}m0 -5v10`, class: "ll-whisker ll-tone-wrong" });
    }
    if (off) ink(`average-${key}-now`, "circle", { cx: x, cy: line, r: mine ? 7 : 5, class: "ll-now ll-is-wrong" });
    else ink(`average-${key}-now`, "circle", { cx: x, cy: line, r: mine ? 7 : 5, class: "ll-right-outline" });
    ink.text(`average-${key}`, room, base, confusion(values[key]), `ll-small ${mine ? "ll-strong" : ""} ll-halo ${off ? "ll-is-wrong" : "ll-is-right"}`, "end");
  });
  const foot = last + 20;
  ink("averages-foot", "path", { d: `M${left} ${foot}H${end}`, class: "ll-zero" });
  const step = ticksTo(ends[1] - ends[0] + 2 * pad)[1];
  for (let t = Math.ceil((ends[0] - pad) / step), i = 0; t * step <= ends[1] + pad; t++, i++) {
    ink(`averages-mark-${i}`, "path", { d: `M${sx(t * step)} ${foot}v5`, class: "ll-tick" });
    ink.text(`averages-tick-${i}`, sx(t * step), foot + 21, String(Number((t * step).toPrecision(6))), NOTE, "middle");
  }
  ink.text("averages-x", end, foot + 42, wide ? "perplexity (bar: the batch means over 21 orders)" : "perplexity (bar: over 21 orders)", NOTE, "end");
  return foot + 46;
}

function draw(base) {
  const view = { ...base, ...outcome(base, base) }, { room, names, value, right, off, far: share, most, weights, shares } = view;
  const wide = room >= 680, times = weights[most] / shares[most], heavy = times >= 1.005, look = off ? "ll-is-wrong" : "";
  const y = drawFacts(view, 0, [
    { key: "perplexity", title: "Perplexity", value: confusion(value), note: off ? `should be ${confusion(right)}` : "as it should be", look, noted: off ? RIGHT : NOTE },
    { key: "far", title: "Off by", value: off ? `${share > 0 ? "+" : "−"}${percent(Math.abs(share), Math.abs(share) < 0.0995 ? 2 : 1)}` : "0%", note: "same model, same tokens", look },
    {
      key: "most", title: heavy ? `Heaviest for its size: ${LETTERS[most]}` : "Heaviest for its size", value: heavy ? `${num(times, times < 9.95 ? 2 : 1)}×` : "none",
      note: heavy ? `${portion(shares[most])} of tokens, ${portion(weights[most])} of weight` : "each weighs what it should", look: heavy ? "ll-is-wrong" : "",
    },
  ]);
  const bars = wide ? Math.floor(room * 0.58) : room, x = wide ? Math.floor(room * 0.63) : 0;
  const below = drawBars(view, y + 34, bars), listed = drawTexts(view, x, wide ? y + 34 : below + 24, room - x);
  return { height: drawAverages(view, Math.max(below, listed) + 30), says: sentence(view) };
}

export default {
  render({ model, el }) {
    const data = Object.fromEntries(["names", "tokens", "means"].map((key) => [key, model.get(key)])), n = data.tokens.length, fixed = known(data);
    const all = Object.keys(AVERAGES).flatMap((average) =>
      data.tokens.flatMap((_, i) => fixed.orders.map((_, seed) => sentence(outcome({ ...data, average, batch: i + 1, seed }, fixed)))),
    );
    return mount({
      model, el, draw, longest: longestOf(all, 8), extend: () => fixed,
      label: "Texts as bars, weighed by the chosen average and by their tokens, and the perplexity that every average reports",
      traits: ["average", "batch", "seed", "names", "tokens", "means"],
      controls: [
        select("average", { label: "Average", options: Object.entries(AVERAGES).map(([key, name]) => [key, key === "tokens" ? `${name} (right)` : name]) }),
        range("batch", { label: "Batch size", min: 1, max: n, say: (b) => plural(b, "text") }),
        range("seed", { label: "Order of the texts", min: 0, max: ORDERS - 1, say: (seed) => (seed ? placed(seed) : "0, as given") }),
      ],
    });
  },
};
