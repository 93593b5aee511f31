/**
 * False negatives: your batch-mate's positive may be yours. One query, a pool of documents in a fixed random order, of which the
 * first B − 1 are its negatives; some of them are right answers to it.
 * Traits: `width` (B), `mask` ("none", "exact", "threshold", "guide"), `threshold` (on the query's own cosine), `margin` (below the
 * guide's cosine of the positive), and what was measured: `query`, `label`, `positive`, `positive_guide`, `names`, `cosines`,
 * `guides`, `kinds` (a letter a document: d same text, s same summary, n near, - a true negative), `temperature`, `rate` (ρ over all
 * queries), and over `widths` the share of queries that meet a false negative: `measured`, `low`, `high`.
 */
import { infoNceRow } from "./contrastive.js";
import { NOTE, SIZE, axis, count, fit, linear, logarithmic, mount, num, percent, plural, radios, range, steps } from "./kit.js";
import { drawNumber } from "./loss.js";

const WIDTHS = [2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024];
const KINDS = { d: "same text", s: "same summary", n: "near-duplicate" };
const LISTED = 3;

const widthsOf = (most) => [...WIDTHS.filter((w) => w < most), most];
const expected = (n) => num(n, n < 0.0995 ? 3 : n < 9.95 ? 2 : 0);
const portion = (p) => percent(p, p < 5e-5 ? 0 : p < 0.00995 ? 2 : p < 0.0995 ? 1 : 0);

/** Whether a mask takes document j out; a tie with its limit stays in, as in the libraries. */
function masked({ mask, threshold, margin, positive_guide, cosines, guides, kinds }, j) {
  if (mask === "exact") return kinds[j] === "d" || kinds[j] === "s";
  if (mask === "threshold") return cosines[j] > threshold;
  return mask === "guide" && guides[j] > Number((positive_guide - margin).toFixed(4)); // as many digits as the data have
}

/** What there is to draw and to say for the traits. */
function outcome(view) {
  const { positive, cosines, kinds, temperature, rate } = view, width = Math.min(view.width, cosines.length + 1);
  const batch = [...Array(width - 1).keys()], wrong = batch.map((j) => kinds[j] !== "-"), out = batch.map((j) => masked(view, j));
  const scores = [positive, ...cosines.slice(0, width - 1)];
  const now = infoNceRow(scores, 0, temperature, (j) => !out[j - 1]);
  const right = infoNceRow(scores, 0, temperature, (j) => !wrong[j - 1]);
  const tally = (test) => batch.filter(test).length;
  const closest = (test) => batch.filter(test).sort((a, b) => cosines[b] - cosines[a] || a - b);
  return {
    width, wrong, out, now, right, left: tally((j) => !out[j]),
    found: tally((j) => wrong[j]), rightly: tally((j) => wrong[j] && out[j]), wrongly: tally((j) => !wrong[j] && out[j]),
    chance: 1 - (1 - rate) ** (width - 1), expected: rate * (width - 1),
    stolen: batch.reduce((sum, j) => sum + (wrong[j] ? now.shares[j + 1] : 0), 0),
    falses: closest((j) => wrong[j]), hardest: closest((j) => !wrong[j]),
  };
}

const RULES = {
  none: () => "",
  exact: () => "exact duplicates",
  threshold: ({ threshold }) => `whatever is above cosine ${num(threshold, 2)}`,
  guide: ({ margin }) => `whatever the guide puts above the positive ${margin < 0 ? "+" : "−"} ${num(Math.abs(margin), 2)}`,
};

/** The figure in one sentence. */
function sentence(view, { width, found, rightly, wrongly, expected: mean, stolen, left, now, right }) {
  const some = found ? plural(found, "false negative") : "no false negative";
  const meets = `In a batch of ${count(width)}, ${view.query} meets ${some} (an average query: ${expected(mean)})`;
  const lost = `${count(wrongly)} true negative${wrongly === 1 ? "" : "s"}`;
  const rule = RULES[view.mask](view), removed = found ? `${rightly} of them and ${lost}` : lost;
  const start = rule ? `${meets}. Masking ${rule} removes ${removed}` : `${meets}, and nothing is masked`;
  if (!left) return `${start}: no negative is left, and nothing is taught.`;
  const off = num(now.loss, 3) === num(right.loss, 3) ? "as it should be" : `instead of ${num(right.loss, 3)}`;
  return `${start}: right answers take ${portion(stolen)} of the push on negatives, and the loss reads ${num(now.loss, 3)} ${off}.`;
}

const dots = (places) => places.map(([x, y]) => `M${x.toFixed(1)} ${y.toFixed(1)}h0`).join("") || "M0 0";
const crosses = (places) => places.map(([x, y]) => `M${(x - 3).toFixed(1)} ${(y - 3).toFixed(1)}l6 6m0 -6l-6 6`).join("") || "M0 0";

/** Every document of the batch by the query's cosine and the guide's, with the mask's border. Returns the y below. */
function drawPool(view, result, y, breadth) {
  const { ink, measure, cosines, guides, positive, positive_guide, mask, threshold, margin } = view, { wrong, out } = result;
  const all = [...cosines, positive], theirs = [...guides, positive_guide];
  const nice = (v, up) => (up ? Math.ceil(v * 5) : Math.floor(v * 5)) / 5;
  const [x0, x1] = [nice(Math.min(0, ...all)), 1], [y0, y1] = [nice(Math.min(0, ...theirs)), 1];
  const left = 40, top = y + 92, bottom = top + Math.min(300, Math.max(220, breadth * 0.7));
  const sx = linear([x0, x1], [left + 6, breadth - 14]), sy = linear([y0, y1], [bottom - 6, top + 8]);
  ink.text("pool-title", 0, y + 14, fit(view.query, breadth, (t) => measure(t, SIZE.text, 600)), "ll-strong");
  ink.text("pool-label", 0, y + 35, fit(view.label, breadth, (t) => measure(t)), NOTE);
  const key = [["own", "positive", "ll-best"], ["false", "right answer", "ll-good"], ["true", "other", ""]];
  let x = 0;
  for (const [name, text, look] of key) {
    if (name === "own") ink("key-own", "circle", { cx: x + 7, cy: y + 57, r: 6, class: look });
    else if (name === "false") ink("key-false", "path", { d: diamond(x + 7, y + 57, 7), class: look });
    else ink("key-true", "path", { d: dots([[x + 7, y + 57]]), class: "ll-dots" });
    ink.text(`key-${name}-text`, x + 19, y + 62, text);
    x += 19 + measure(text) + 12;
  }
  ink("key-lost", "path", { d: crosses([[x + 7, y + 57]]), class: "ll-crosses" });
  ink.text("key-lost-text", x + 17, y + 62, breadth < 360 ? "lost" : "lost to the mask");
  const fifths = (from, to) => Array.from({ length: Math.round((to - from) * 5) + 1 }, (_, i) => Math.round(from * 5 + i) / 5);
  const show = (t) => num(t, 1);
  axis(ink, "pool-y", { side: "left", scale: sy, ticks: fifths(y0, y1), at: left, to: breadth, show });
  axis(ink, "pool-x", { side: "bottom", scale: sx, ticks: fifths(x0, x1), at: bottom, show });
  ink.text("pool-y-name", 0, y + 84, "↑ guide’s cosine", NOTE);
  ink.text("pool-x-name", breadth, bottom + 40, "cosine with the query →", NOTE, "end");

  const place = (j) => [sx(cosines[j]), sy(guides[j])];
  const limit = Math.min(1, Math.max(y0, positive_guide - margin));
  const areas = { threshold: [sx(Math.max(x0, threshold)), top, breadth - sx(Math.max(x0, threshold)), bottom - top], guide: [left, top, breadth - left, sy(limit) - top] };
  if (areas[mask]) {
    const [ax, ay, width, height] = areas[mask];
    ink("area", "rect", { x: ax, y: ay, width: Math.max(0, width), height: Math.max(0, height), class: "ll-area" });
    const border = mask === "threshold" ? `M${ax} ${top}V${bottom}` : `M${left} ${sy(limit)}H${breadth}`;
    ink("border", "path", { d: border, class: "ll-line-right" });
  }
  const batch = wrong.map((_, j) => j);
  ink("kept-true", "path", { d: dots(batch.filter((j) => !wrong[j] && !out[j]).map(place)), class: "ll-dots" });
  ink("lost-true", "path", { d: crosses(batch.filter((j) => !wrong[j] && out[j]).map(place)), class: "ll-crosses" });
  const diamonds = (test, r) => batch.filter(test).map((j) => diamond(...place(j), r)).join("") || "M0 0";
  ink("kept-false", "path", { d: diamonds((j) => wrong[j] && !out[j], 7), class: "ll-good ll-heavy" });
  ink("lost-false", "path", { d: diamonds((j) => wrong[j] && out[j], 6), class: "ll-right-outline ll-dashed" });
  ink("own", "circle", { cx: sx(positive), cy: sy(positive_guide), r: 7, class: "ll-now ll-is-best" });
  return bottom + 46;
}

const diamond = (x, y, r) => `M${x.toFixed(1)} ${(y - r).toFixed(1)}l${r} ${r}l${-r} ${r}l${-r} ${-r}Z`;

/** The chance to meet a false negative over batch widths, as counted and by the formula. Returns the y below. */
function drawChance(view, result, y, breadth) {
  const { ink, widths, measured, low, high, rate } = view, { width } = result;
  const left = 40, right = breadth - 8, top = y + 52, bottom = top + 150, most = Math.max(widths.at(-1), view.cosines.length + 1);
  const sx = logarithmic([2, most], [left + 6, right]), peak = Math.max(...high, 1 - (1 - rate) ** (most - 1));
  const step = [0.02, 0.05, 0.1, 0.2].find((s) => peak / s <= 5) ?? 0.25, roof = Math.min(1, step * Math.max(1, Math.ceil(peak / step - 1e-9)));
  const sy = linear([roof, 0], [top, bottom]), formula = (w) => 1 - (1 - rate) ** (w - 1);
  ink.text("chance-title", 0, y + 14, "Queries that meet a false negative", "ll-strong");
  ink.text("chance-note", 0, y + 35, "counted, with its range", "ll-small ll-is-wrong");
  const noted = view.measure("counted, with its range") + 14;
  ink.text("chance-formula", noted, y + 35, "- - 1 − (1 − ρ)^(B−1)", "ll-small ll-is-right");
  const ticks = Array.from({ length: Math.round(roof / step) + 1 }, (_, i) => i * step);
  axis(ink, "chance-y", { side: "left", scale: sy, ticks, at: left, to: right, show: (t) => percent(t, 0) });
  axis(ink, "chance-x", { side: "bottom", scale: sx, ticks: [2, 8, 32, 128, 512].filter((w) => w <= most), at: bottom, show: count });
  ink.text("chance-x-name", right, bottom + 40, "batch width B (log scale)", NOTE, "end");
  const path = (values) => values.map((v, i) => `${sx(widths[i]).toFixed(1)} ${sy(v).toFixed(1)}`);
  ink("chance-band", "path", { d: `M${[...path(high), ...path(low).reverse()].join("L")}Z`, class: "ll-band" });
  ink("chance-rule", "path", { d: `M${widthsOf(most).map((w) => `${sx(w).toFixed(1)} ${sy(formula(w)).toFixed(1)}`).join("L")}`, class: "ll-line-right" });
  ink("chance-line", "path", { d: `M${path(measured).join("L")}`, class: "ll-line-wrong" });
  widths.forEach((w, i) => ink(`chance-${w}`, "circle", { cx: sx(w), cy: sy(measured[i]), r: 3, class: "ll-is-wrong" }));
  ink("chance-here", "path", { d: `M${sx(width)} ${top}V${bottom}`, class: "ll-here" });
  ink("chance-mark", "circle", { cx: sx(width), cy: sy(formula(width)), r: 5, class: "ll-right-outline" });
  return bottom + 44;
}

/** One document: its name, what it is, and its share of the push. */
function drawDocument(view, result, key, j, x, y, breadth) {
  const { ink, measure, cosines, kinds, hatch, query, positive } = view, { now, wrong, out } = result;
  const own = j < 0, share = own ? 0 : now.shares[j + 1], column = breadth * 0.66, long = breadth - column - 50;
  const name = own ? query : view.names[j], state = own ? "" : wrong[j] ? KINDS[kinds[j]] : "";
  const fate = own ? "pulled" : out[j] ? (wrong[j] ? "masked" : "masked wrongly") : "pushed away";
  ink.text(`${key}-doc`, x, y + 12, fit(name, column - 10, (t) => measure(t, SIZE.small, 600)), "ll-small ll-strong");
  const notes = [num(own ? positive : cosines[j], 2), state, fate].filter(Boolean).join(" · ");
  const wrongly = !own && (wrong[j] ? !out[j] : out[j]);
  ink.text(`${key}-what`, x, y + 29, notes, wrongly ? "ll-small ll-is-wrong" : NOTE);
  if (own) {
    ink(`${key}-bar`, "rect", { x: x + column, y: y + 4, width: long, height: 15, class: "ll-best" });
    ink.text(`${key}-share`, x + breadth, y + 16, "100%", "ll-small", "end");
    return;
  }
  const length = Math.max(0.5, share * long), bar = { x: x + column, y: y + 4, width: length, height: 15 };
  ink(`${key}-bar`, "rect", { ...bar, class: out[j] ? "ll-rest ll-dashed" : wrong[j] ? "ll-good" : "ll-other" });
  if (wrong[j] && !out[j]) ink(`${key}-hatch`, "rect", { ...bar, fill: hatch, class: "ll-plain" });
  ink.text(`${key}-share`, x + breadth, y + 16, out[j] ? "0" : portion(share), "ll-small", "end");
}

/** The top of the row in three groups. Returns the y below. */
function drawTop(view, result, x, y, breadth) {
  const { ink } = view, { found, rightly, wrongly, falses, hardest } = result;
  ink.text("top-title", x, y + 14, "Shares of the push", "ll-strong");
  drawDocument(view, result, "own", -1, x, y + 26, breadth);
  const groups = [
    ["false", `Right answers here: ${count(found)}`, `${count(rightly)} masked`, falses],
    ["true", "Hardest true negatives", wrongly ? `${count(wrongly)} lost` : "none lost", hardest],
  ];
  const most = Math.min(LISTED, Math.max(1, [...view.kinds].filter((kind) => kind !== "-").length)); // no room for what never comes
  y += 72;
  for (const [key, title, note, order] of groups) {
    const places = key === "false" ? most : LISTED;
    ink.text(`${key}-title`, x, y + 12, title, "ll-small ll-strong ll-muted");
    ink.text(`${key}-note`, x + breadth, y + 12, note, key === "true" && wrongly ? "ll-small ll-is-wrong" : NOTE, "end");
    order.slice(0, places).forEach((j, n) => drawDocument(view, result, `${key}-${n}`, j, x, y + 20 + 38 * n, breadth));
    if (!order.length) ink.text(`${key}-none`, x, y + 38, "none in this batch", NOTE);
    y += 20 + 38 * places + 14;
  }
  return y - 14;
}

/** All of the push on negatives as one bar: what falls on right answers, and the rest. Returns the y below. */
function drawShare(view, result, x, y, breadth) {
  const { ink, hatch } = view, { stolen, left, found, expected: mean } = result;
  ink.text("share-title", x, y + 14, "Push on right answers", "ll-strong");
  const length = stolen * breadth;
  ink("share-all", "rect", { x: x + 0.5, y: y + 26.5, width: breadth - 1, height: 19, class: left ? "ll-other" : "ll-rest" });
  ink("share-false", "rect", { x, y: y + 26.5, width: length, height: 19, class: "ll-good" });
  ink("share-hatch", "rect", { x, y: y + 26.5, width: length, height: 19, fill: hatch, class: "ll-plain" });
  ink.text("share", x, y + 64, left ? portion(stolen) : "no negative left", `ll-small ll-strong ${stolen > 0.0005 ? "ll-is-wrong" : "ll-is-right"}`);
  ink.text("share-should", x + breadth, y + 64, "should be 0%", "ll-small ll-is-right", "end");
  ink.text("share-count", x, y + 86, `here: ${count(found)} · an average query: ${expected(mean)}`);
  return y + 92;
}

function draw(base) {
  const { room } = base, wide = room >= 680, result = outcome(base);
  const breadth = wide ? Math.floor(room * 0.52) : room, x = wide ? breadth + 34 : 0;
  const pool = drawPool(base, result, 0, breadth);
  const chance = wide ? drawChance(base, result, pool + 26, breadth) : pool;
  let y = wide ? 0 : pool + 32;
  drawNumber(base, { x, y, loss: result.now.loss, right: result.right.loss, title: "Loss of this query (nats)", note: `should be ${num(result.right.loss)}` });
  y = drawTop(base, result, x, drawShare(base, result, x, y + 84, room - x) + 26, room - x);
  const height = wide ? Math.max(chance, y) : drawChance(base, result, y + 34, breadth);
  return { height, says: sentence(base, result) };
}

const DATA = ["query", "label", "positive", "positive_guide", "names", "cosines", "guides", "kinds", "temperature", "rate", "widths", "measured", "low", "high"];

/** Sentences as long as any that the data can lead to. */
function longest(model) {
  const data = Object.fromEntries(DATA.map((key) => [key, model.get(key)])), most = data.cosines.length + 1;
  const row = { width: most, found: 88, rightly: 44, wrongly: 888, expected: 8.88, stolen: 0.0888, left: 1, now: { loss: 8.888 }, right: { loss: 7.777 } };
  return Object.keys(RULES).map((mask) => sentence({ ...data, mask, threshold: 0.88, margin: -0.08 }, row));
}

/** A slider that has something to say under one mask alone. */
const only = (mask, build) => (link) => {
  const node = build(link);
  link.watch("mask", () => (node.querySelector("input").disabled = link.get("mask") !== mask));
  return node;
};

export default {
  render: ({ model, el }) =>
    mount({
      model, el, draw, longest: longest(model),
      label: "One query’s negatives by its own cosine and a guide’s, its loss, its share of push on right answers, and the chance of meeting one against batch width",
      traits: ["width", "mask", "threshold", "margin", ...DATA],
      controls: [
        steps("width", { label: "Batch width B", values: widthsOf(model.get("cosines").length + 1), say: (w) => `${count(w)} documents` }),
        radios("mask", {
          label: "Masked as negatives", inline: true,
          options: [["none", "none"], ["exact", "exact duplicates"], ["threshold", "above a threshold"], ["guide", "by a guide"]],
        }),
        only("threshold", range("threshold", { label: "Threshold on the cosine", min: 0.2, max: 1, step: 0.01, say: (t) => num(t, 2) })),
        only("guide", range("margin", { label: "Guide’s margin below the positive", min: -0.1, max: 0.5, step: 0.01, say: (m) => num(m, 2) })),
      ],
    }),
};
