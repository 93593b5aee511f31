/**
 * Norm bias: what happens to a ranking when a prefix is not renormalised, so that a document's score is its cosine times the length of
 * its prefix. One query at a time, with the documents that compete for its first places at some size.
 * Traits: `query` (its place), `dim` (one of `dims`), `renormalised`, and what was measured: `queries`, `texts` (one each), `names`
 * and `relevant` (of each query its candidates, and which of them are right, by place), `norms` and `cosines`, `by_cosine` and
 * `by_inner` (of each query, at each of the dims, of each candidate: the length of its prefix, its cosine, and its ranks among all
 * `documents`), `mean_norm` (of all documents, at each of the dims), and over `asked` queries at each of the dims: `top_inner` and
 * `top_cosine` (mean length of the ten best, in mean lengths), and `correlation` (of the ranks gained with the length, or null).
 */
import { NOTE, SIZE, axis, count, fit, linear, logarithmic, longestOf, mount, num, radios, signed, steps } from "./kit.js";
import { named, pointing } from "./marks.js";
import { balance } from "./plots.js";
import { select } from "./select.js";

const LISTED = 5, ANSWERS = 2, POINTS = 24;
const ordinal = (n) => `${count(n)}${n % 100 > 10 && n % 100 < 14 ? "th" : ["th", "st", "nd", "rd"][n % 10] ?? "th"}`;
const times = (v) => `${num(v, 2)} times`;

/** What there is to draw and to say. */
export function outcome({ query, dim, dims, names, norms, cosines, by_cosine, by_inner, mean_norm, relevant }) {
  const d = dims.indexOf(dim), docs = names[query].map((name, j) => ({
    j, name, length: norms[query][d][j] / mean_norm[d], cosine: cosines[query][d][j], fair: by_cosine[query][d][j], raw: by_inner[query][d][j],
    right: relevant[query].includes(j),
  }));
  const best = (rank) => [...docs].sort((a, b) => a[rank] - b[rank] || a.j - b.j);
  const raw = best("raw"), fair = best("fair");
  const risen = raw.filter((doc) => doc.raw <= LISTED && doc.fair > doc.raw).sort((a, b) => b.fair - b.raw - (a.fair - a.raw) || a.j - b.j)[0];
  return { d, docs, raw, fair, risen, score: ({ length, cosine }) => length * cosine };
}

/** The figure in words. */
function sentence({ query, queries, renormalised, dims, asked, top_inner, top_cosine, correlation }, { d, raw: [raw], fair: [fair], risen }) {
  const where = `At ${count(dims[d])} of ${count(dims.at(-1))} dimensions, ${renormalised ? "" : "not "}renormalised`, of = `for ${queries[query]}`;
  const long = (doc) => `its prefix is ${times(doc.length)} as long as the mean`;
  let what;
  if (!risen) what = `${raw.name} is first ${of}, and no document of the five best is there for its length.`;
  else if (raw.j !== fair.j && renormalised) what = `${fair.name} is first ${of}; without it, ${raw.name} would be, ${ordinal(raw.fair)} by cosine: ${long(raw)}.`;
  else if (raw.j !== fair.j) what = `${raw.name} is first ${of} and only ${ordinal(raw.fair)} by cosine: ${long(raw)}. By cosine the first is ${fair.name}.`;
  else if (renormalised) what = `${fair.name} is first ${of}; without it, ${risen.name} would rise from ${ordinal(risen.fair)} to ${ordinal(risen.raw)}: ${long(risen)}.`;
  else what = `${fair.name} is first ${of} either way, but ${risen.name} rises from ${ordinal(risen.fair)} to ${ordinal(risen.raw)}: ${long(risen)}.`;
  const r = correlation[d], gained = r === null ? "no rank is gained" : `ranks gained go with length (correlation ${num(r, 2)})`;
  const over = `Over ${count(asked)} queries, the ten best by inner product are ${times(top_inner[d])} as long as the mean, by cosine ${num(top_cosine[d], 2)}, and ${gained}.`;
  return `${where}: ${what} ${over}`;
}

const dots = (places) => places.map(([x, y]) => `M${x.toFixed(1)} ${y.toFixed(1)}h0`).join("") || "M0 0";
const diamond = ([x, y], r) => `M${x.toFixed(1)} ${(y - r).toFixed(1)}l${r} ${r}l${-r} ${r}l${-r} ${-r}Z`;

/** Ends of the plane's axes, the same at all sizes: of length over all queries, of the cosine for each. */
const known = new WeakMap();
function rangeOf({ norms, cosines, mean_norm }, query) {
  if (!known.has(norms)) known.set(norms, new Map());
  const cache = known.get(norms);
  if (!cache.has(query)) {
    const lengths = norms.flatMap((one) => one.flatMap((row, d) => row.map((norm) => norm / mean_norm[d]))), own = cosines[query].flat();
    const low = (values, step) => Math.floor(Math.min(...values) / step + 1e-9) * step, high = (values, step) => Math.ceil(Math.max(...values) / step - 1e-9) * step;
    const foot = Math.max(0, low(own, 0.2)); // what is below 0 competes for nothing
    cache.set(query, { x: [Math.min(0.8, low(lengths, 0.2)), Math.max(1.2, high(lengths, 0.2))], y: [foot, Math.max(foot + 0.2, high(own, 0.2))] });
  }
  return cache.get(query);
}
const ladder = ([from, to], step) => Array.from({ length: Math.round((to - from) / step) + 1 }, (_, i) => Number((from + i * step).toFixed(6)));

/** All points with one score, inside the plot: a line if lengths are brought to 1, else a hyperbola. Always as many points. */
function equal(score, flat, [x0, x1], [y0, y1], sx, sy) {
  const from = flat ? x0 : Math.max(x0, score / y1), to = flat ? x1 : Math.min(x1, y0 > 0 ? score / y0 : x1);
  if (from >= to || score <= 0 || (flat && (score < y0 || score > y1))) return "M0 0";
  const at = Array.from({ length: POINTS + 1 }, (_, i) => (flat ? from + ((to - from) * i) / POINTS : from * (to / from) ** (i / POINTS)));
  return `M${at.map((x) => `${sx(x).toFixed(1)} ${sy(flat ? score : score / x).toFixed(1)}`).join("L")}`;
}

/** The plane of length and cosine. Returns the y below. */
function drawPlane(view, now, breadth) {
  const { ink, measure, queries, texts, query, renormalised } = view, { docs, raw: [raw], fair: [fair], score } = now, same = raw.j === fair.j;
  const strong = (t) => measure(t, SIZE.small, 600), left = 40, top = 122, bottom = top + Math.min(320, Math.max(230, breadth * 0.75));
  ink.text("title", 0, 14, fit(queries[query], breadth, (t) => measure(t, SIZE.text, 600)), "ll-strong");
  ink.text("label", 0, 35, fit(texts[query], breadth, (t) => measure(t)), NOTE);
  const first = [
    ["raw", "first by inner product: ", raw, "ll-is-wrong", { class: same ? "ll-now ll-is-best" : "ll-now ll-is-wrong" }],
    ["fair", "first by cosine: ", fair, "ll-is-right", { class: "ll-right-outline" }],
  ];
  first.forEach(([key, text, doc, look, mark], i) => {
    const y = 58 + 20 * i, name = 20 + measure(text);
    ink(`${key}-key`, "circle", { cx: 7, cy: y - 4.5, r: i ? 5.5 : 6.5, ...mark });
    ink.text(`${key}-text`, 20, y, text.trim(), NOTE);
    ink.text(`${key}-name`, name, y, fit(doc.name, breadth - name, strong), `ll-small ll-strong ${same && !i ? "ll-is-best" : look}`);
  });
  const range = rangeOf(view, query), sx = linear(range.x, [left + 6, breadth - 14]), sy = linear(range.y, [bottom, top + 8]);
  const wide = (range.x[1] - range.x[0]) / 0.2 > (breadth < 360 ? 7 : 12), ticks = ladder(range.x, 0.2).filter((_, i) => !wide || i % 2 === 0);
  axis(ink, "y", { side: "left", scale: sy, ticks: ladder(range.y, 0.2), at: left, to: breadth, show: (t) => num(t, 1) });
  axis(ink, "x", { side: "bottom", scale: sx, ticks, at: bottom + 2, show: (t) => num(t, 1) });
  ink.text("y-name", 0, 106, "↑ cosine", NOTE);
  ink.text("lines", breadth, 106, renormalised ? "dotted: equal cosine" : "dotted: equal inner product", NOTE, "end");
  const long = "length of the prefix, 1 = mean of all documents →";
  ink.text("x-name", breadth, bottom + 42, measure(long) > breadth ? "length of the prefix, mean = 1 →" : long, NOTE, "end");
  for (const [i, s] of ladder([0.1, 1.5], 0.1).entries()) ink(`equal-${i}`, "path", { d: equal(s, renormalised, range.x, range.y, sx, sy), class: "ll-contour" });
  ink("mean", "path", { d: `M${sx(1)} ${top}V${bottom}`, class: "ll-at" });
  ink("border-fair", "path", { d: equal(fair.cosine, true, range.x, range.y, sx, sy), class: "ll-line-right" });
  ink("border-raw", "path", { d: renormalised ? "M0 0" : equal(score(raw), false, range.x, range.y, sx, sy), class: same ? "ll-line-best" : "ll-line-wrong" });
  const place = ({ length, cosine }) => [sx(length), sy(cosine)], seen = docs.filter((doc) => doc.cosine >= range.y[0]);
  if (seen.length < docs.length) ink.text("below", left + 6, bottom - 8, `${docs.length - seen.length} below 0`, NOTE);
  ink("others", "path", { d: dots(seen.filter((doc) => !doc.right).map(place)), class: "ll-dots" });
  ink("answers", "path", { d: seen.filter(({ right }) => right).map((doc) => diamond(place(doc), 7)).join("") || "M0 0", class: "ll-good ll-heavy" });
  const circle = (key, doc, r, look) => ink(key, "circle", { cx: place(doc)[0], cy: place(doc)[1], r, class: look });
  circle("raw", raw, renormalised && !same ? 4.5 : 6.5, first[0][4].class);
  circle("fair", fair, same ? 9 : 6.5, same ? "ll-published ll-tone-right" : "ll-right-outline");
  return bottom + 46;
}

/** The first places of the ranking that holds, and what each owes to its length. Returns the y below. */
function drawList(view, { raw, fair }, x, y, breadth) {
  const { ink, measure, renormalised } = view, order = renormalised ? fair : raw;
  ink.text("list-title", x, y + 14, renormalised ? "Ranked by cosine" : "Ranked by inner product", "ll-strong");
  ink.text("list-note", x, y + 34, renormalised ? "as the prefix is brought to length 1" : "of the prefix as it was cut", NOTE);
  const entry = (key, doc, at) => {
    const lifted = !renormalised && doc.fair > doc.raw, [rank, other] = renormalised ? [doc.fair, doc.raw] : [doc.raw, doc.fair];
    const number = count(rank), after = Math.max(18, measure(number, SIZE.small, 600) + 10), start = x + after + (doc.right ? 18 : 0);
    ink.text(`${key}-rank`, x, at, number, "ll-small ll-strong");
    if (doc.right) ink(`${key}-right`, "path", { d: diamond([x + after + 6, at - 4.5], 6), class: "ll-good ll-heavy" });
    ink.text(key, start, at, fit(doc.name, breadth - start + x, (t) => measure(t, SIZE.small, 600)), "ll-small ll-strong");
    const elsewhere = renormalised ? (other === rank ? "" : `by inner product ${ordinal(other)}`) : other === rank ? "in its place" : `by cosine ${ordinal(other)}`;
    const notes = [`length ${num(doc.length, 2)}`, `cosine ${num(doc.cosine, 2)}`, elsewhere].filter(Boolean).join(" · ");
    ink.text(`${key}-note`, x + 18, at + 18, fit(notes, breadth - 18, (t) => measure(t)), lifted ? "ll-small ll-is-wrong" : NOTE);
  };
  order.slice(0, LISTED).forEach((doc, i) => entry(`doc-${i}`, doc, y + 62 + 42 * i));
  const answers = order.filter(({ right }) => right), under = y + 76 + 42 * LISTED;
  ink.text("answers-title", x, under, answers.length > ANSWERS ? `Right answers: the first ${ANSWERS} of ${answers.length}` : "Right answers", "ll-small ll-strong ll-muted");
  answers.slice(0, ANSWERS).forEach((doc, i) => entry(`answer-${i}`, doc, under + 26 + 42 * i));
  if (!answers.length) ink.text("answers-none", x, under + 26, "none among these", NOTE);
  return under + 52 + 42 * (Math.min(ANSWERS, Math.max(1, ...view.relevant.map((one) => one.length))) - 1);
}

/** Over all queries: how long the ten best prefixes are. Returns the y below. */
function drawSummary(view, { d }, y) {
  const { ink, room, measure, dims, dim, top_inner, top_cosine, correlation, asked, plot } = view, wide = room >= 600;
  const strong = (t) => measure(t, SIZE.small, 600), gutter = strong("by inner product") + 34, left = 40, right = wide ? room - gutter : room - 6;
  ink.text("sum-title", 0, y + 14, "Length of the ten best prefixes", "ll-strong");
  ink.text("sum-note", 0, y + 34, `mean of ${count(asked)} queries, 1 = mean of all documents`, NOTE);
  const all = [...top_inner, ...top_cosine, 1], step = Math.max(...all) - Math.min(...all) > 0.5 ? 0.2 : 0.1;
  const ends = [Math.floor(Math.min(...all) / step + 1e-9) * step, Math.ceil(Math.max(...all) / step - 1e-9) * step];
  const range = ends[1] > ends[0] ? ends : [1 - step, 1 + step], top = y + 48, bottom = top + 130;
  const sx = logarithmic([dims[0], dims.at(-1)], [left + 10, right - 10]), sy = linear(range, [bottom, top + 6]), places = dims.map(sx);
  for (const [i, tick] of ladder(range, step).entries()) {
    ink(`sum-grid-${i}`, "path", { d: `M${left} ${sy(tick)}H${right}`, class: tick === 1 ? "ll-zero" : "ll-grid" });
    ink.text(`sum-tick-${i}`, left - 8, sy(tick) + 4.5, num(tick, 1), NOTE, "end");
  }
  ink("stops", "path", { d: places.map((x) => `M${x} ${bottom + 4}v5`).join(""), class: "ll-tick" });
  ink("here", "path", { d: `M${sx(dim)} ${top}V${bottom + 4}`, class: "ll-here-line" });
  const widths = dims.map((v) => strong(count(v))), middles = places.map((x, i) => Math.min(room - widths[i] / 2, x));
  for (const i of named(middles, widths)) if (i !== d && Math.abs(middles[i] - middles[d]) >= (widths[i] + widths[d]) / 2 + 7) ink.text(`stop-${i}`, middles[i], bottom + 25, count(dims[i]), NOTE, "middle");
  ink.text("stop-at", middles[d], bottom + 25, count(dim), "ll-small ll-strong", "middle");
  ink.text("sum-x", right, bottom + 46, "dimensions kept (log scale)", NOTE, "end");
  const path = (values) => `M${values.map((v, i) => `${places[i].toFixed(1)} ${sy(v).toFixed(1)}`).join("L")}`;
  ink("sum-cosine", "path", { d: path(top_cosine), class: "ll-line-right" });
  ink("sum-inner", "path", { d: path(top_inner), class: "ll-line-wrong" });
  dims.forEach((_, i) => ink(`sum-inner-${i}`, "circle", { cx: places[i], cy: sy(top_inner[i]), r: 3, class: "ll-is-wrong" }));
  ink("sum-inner-now", "circle", { cx: places[d], cy: sy(top_inner[d]), r: 6, class: "ll-now ll-is-wrong" });
  ink("sum-cosine-now", "circle", { cx: places[d], cy: sy(top_cosine[d]), r: 5, class: "ll-right-outline" });
  const said = [["inner", "by inner product", top_inner[d], "ll-is-wrong"], ["cosine", "by cosine", top_cosine[d], "ll-is-right"]];
  const gain = correlation[d] === null ? "none gained" : `correlation ${signed(correlation[d], 2)}`;
  ink("ground", "path", { d: `M${left} ${top}H${right}V${bottom}H${left}Z`, class: "ll-ground" });
  Object.assign(plot, { places, box: [left, top, right, bottom] });
  if (wide) {
    const order = [...said].sort((a, b) => b[2] - a[2]), x = right + 20, rows = order.map(([, , v]) => ({ x: sy(v), width: 34 }));
    balance(rows, top - 30, bottom - 20, 4).forEach((at, n) => {
      const [key, text, value, look] = order[n];
      ink(`sum-${key}-leader`, "path", { d: `M${right + 2} ${rows[n].x}L${x - 4} ${at}`, class: "ll-leader" });
      ink.text(`sum-${key}-name`, x, at - 1, text, `ll-small ${look}`);
      ink.text(`sum-${key}-value`, x, at + 16, `${num(value, 2)} × mean`, `ll-small ll-strong ${look}`);
    });
    ink.text("gain-text", x, bottom + 25, "rank gain vs length:", NOTE);
    ink.text("gain", x, bottom + 43, gain, "ll-small ll-strong");
    return bottom + 52;
  }
  said.forEach(([key, text, value, look], n) => {
    ink.text(`sum-${key}-name`, 0, bottom + 74 + 22 * n, text, `ll-small ${look}`);
    ink.text(`sum-${key}-value`, room, bottom + 74 + 22 * n, `${num(value, 2)} × mean`, `ll-small ll-strong ${look}`, "end");
  });
  ink.text("gain-text", 0, bottom + 118, "rank gain with length", NOTE);
  ink.text("gain", room, bottom + 118, gain, "ll-small ll-strong", "end");
  return bottom + 124;
}

function draw(view) {
  const { room } = view, now = outcome(view), wide = room >= 680, breadth = wide ? Math.floor(room * 0.56) : room;
  const plane = drawPlane(view, now, breadth), x = wide ? breadth + 34 : 0;
  const list = drawList(view, now, x, wide ? 0 : plane + 20, room - x);
  return { height: drawSummary(view, now, (wide ? Math.max(plane, list) : list) + 24), says: sentence(view, now) };
}

const DATA = ["queries", "texts", "dims", "names", "relevant", "norms", "cosines", "by_cosine", "by_inner", "mean_norm", "documents", "asked", "top_inner", "top_cosine", "correlation"];

export default {
  render({ model, el }) {
    const data = Object.fromEntries(DATA.map((key) => [key, model.get(key)])), { queries, dims } = data;
    const every = queries.flatMap((_, query) => dims.flatMap((dim) => [true, false].map((renormalised) => ({ ...data, query, dim, renormalised }))));
    return mount({
      model, el, draw, longest: longestOf(every.map((view) => sentence(view, outcome(view)))),
      extend: pointing((link, near) => dims[near] !== link.get("dim") && link.set({ dim: dims[near] })),
      label: "One query’s candidates by length of their prefix and cosine, with lines of equal score, the first places of the ranking, and how long the ten best are at every size",
      traits: ["query", "dim", "renormalised", ...DATA],
      controls: [
        steps("dim", { label: "Dimensions kept", values: dims, say: (d) => `${count(d)} of ${count(dims.at(-1))}` }),
        radios("renormalised", { label: "Renormalised after the cut", inline: true, options: [[false, "no: inner product"], [true, "yes: cosine"]] }),
        ...(queries.length > 1 ? [select("query", { label: "Query", options: queries.map((name, i) => [i, name]) })] : []),
      ],
    });
  },
};
