/**
 * Truncation: what retrieval keeps when embeddings are cut to some of their dimensions, by several reductions.
 * Traits: `set` (the name of one of `sets`), `dim` (one of its `dims`), `kinds` (what is drawn beside the prefix), `centred`,
 * `renormalised`, `scale` ("score" or "retention"), `axis` ("dimensions" or "fraction"), and what was measured: `metric`, and `sets`,
 * [{name, size, dims, runs: [{kind, centred, renormalised, …}]}]. A run holds at each of the dims `values` with `low` and `high`,
 * `gap` with `gap_low` and `gap_high` (the paired difference to the prefix, not centred and renormalised as the run is), `gain` with
 * `gain_low` and `gain_high` (to the run without renormalising), `keep_low` and `keep_high` (the interval of its retention), `least`
 * and `most` (the range of its draws) and `published`; what nobody measured is null, and a list of it is empty.
 */
import { NOTE, SIZE, count, fit, html, linear, logarithmic, longestOf, mount, num, percent, radios, signed, steps, uid } from "./kit.js";
import { SHAPES, beside, named, pointing, runs } from "./marks.js";
import { balance } from "./plots.js";
import { select } from "./select.js";

const KINDS = ["random dims", "random rotation", "SVD", "PCA"];
const LOOKS = { prefix: ["best", 0], "random dims": ["ghost", 4], "random rotation": ["muted", 3], SVD: ["plum", 2], PCA: ["ink", 1] };
const STEP = 15; // between marks side by side, px
const STILL = "M0 0";
const QUICK = `${NOTE} ll-quick`; // what is read out is at once where it belongs: many texts under way would cost a frame

const find = (set, kind, centred, renormalised) =>
  set.runs.find((run) => run.kind === kind && run.centred === centred && run.renormalised === renormalised);

/** What a switch can reach: the prefix must have been measured there. */
const settingOf = (set, { centred, renormalised }) => {
  const kept = renormalised || !find(set, "prefix", false, false);
  return { kept, moved: centred && Boolean(find(set, "prefix", true, kept)) };
};
/** The run of a kind in a setting; SVD is never centred, and PCA always is. */
const runOf = (set, kind, { kept, moved }) => find(set, kind, kind === "PCA" || (kind !== "SVD" && moved), kept);
const nearest = (set, dim) => set.dims.reduce((best, d, i) => (Math.abs(d - dim) < Math.abs(set.dims[best] - dim) ? i : best), 0);
const setOf = ({ sets, set }) => sets.find(({ name }) => name === set);
const value = (run, i) => run.values[i] ?? run.published[i] ?? null;
const at = (list, i) => list[i] ?? null;
const fullOf = (set) => value(find(set, "prefix", false, true), set.dims.length - 1);

/** What there is to draw; the first is the prefix that all differences are taken to, and the right one stands beside a wrong one. */
function outcome(view) {
  const set = setOf(view), i = nearest(set, view.dim), setting = settingOf(set, view), { kept, moved } = setting;
  const tone = kept ? "best" : "wrong", shape = 0, far = "gap";
  const curves = [{ key: "base", name: moved ? "prefix as it is" : "prefix", run: find(set, "prefix", false, kept), tone, shape, dashed: moved, far }];
  if (moved) curves.push({ key: "centred", name: "centred prefix", run: find(set, "prefix", true, kept), tone, shape, far });
  if (!kept) curves.push({ key: "right", name: "renormalised", run: find(set, "prefix", false, true), tone: "right", shape, dashed: true, far: "gain" });
  for (const kind of KINDS) {
    const run = view.kinds.includes(kind) && runOf(set, kind, setting);
    if (run) curves.push({ key: kind.replace(" ", "-"), name: kind, run, tone: LOOKS[kind][0], shape: LOOKS[kind][1], far });
  }
  for (const curve of curves) curve.dashed = Boolean(curve.dashed) || curve.run.values.every((v) => v === null);
  return { set, i, curves, full: fullOf(set), ...setting };
}

const shown = (v, full, scale) => (scale === "retention" ? percent(v / full) : num(v, 3));

/** A curve at the i-th size as printed: its value and its interval, if it has one. */
function reading({ run }, i, full, scale) {
  const v = value(run, i), keep = scale === "retention";
  if (v === null) return ["not measured", ""];
  const low = at(keep ? run.keep_low : run.low, i), high = at(keep ? run.keep_high : run.high, i);
  if (low === null) return [shown(v, full, scale), run.values[i] === null ? "published" : ""];
  return [shown(v, full, scale), `[${[low, high].map((end) => (keep ? num(100 * end, 1) : num(end, 3))).join(", ")}]`];
}

/** Its difference to the first curve as printed, its interval, and whether that holds 0. */
function difference({ run, far }, i) {
  const gap = at(run[far], i), low = at(run[`${far}_low`], i), high = at(run[`${far}_high`], i);
  if (gap === null) return null;
  const verdict = low === null ? "" : low > 0 ? "better" : high < 0 ? "worse" : low === 0 && high === 0 ? "the same" : "holds 0";
  return { text: signed(gap, 3), interval: low === null ? "" : `[${signed(low, 3)}, ${signed(high, 3)}]`, verdict };
}

const settings = ({ moved, kept }) => [moved && "centred", !kept && "not renormalised"].filter(Boolean).join(", ");

/** The figure in words. */
function sentence(view, { set, i, curves, full, ...rest }) {
  const { scale, metric } = view, [plain, ...others] = curves, keep = scale === "retention", { kept, moved } = rest;
  const where = `${set.name}, ${count(set.dims[i])} of ${count(set.size)} dimensions${kept ? "" : ", not renormalised"}`, v = value(plain.run, i);
  const start = v === null ? `the ${plain.name} was not measured` : keep
    ? `the ${plain.name} keeps ${percent(v / full)} of ${metric} ${num(full, 3)}`
    : `the ${plain.name} scores ${num(v, 3)} in ${metric}, ${percent(v / full)} of full size`;
  const each = others.map((curve) => {
    const far = difference(curve, i), [text] = reading(curve, i, full, scale);
    if (!far) return `${curve.name} ${text}`;
    const { text: gap, interval, verdict } = far;
    if (verdict === "the same") return `${curve.name} ${text} (the same)`;
    return `${curve.name} ${text} (${gap}${interval && ` ${interval}`}${verdict === "holds 0" ? " holds 0" : verdict && `, ${verdict}`})`;
  });
  if (!each.length) return `${where}: ${start}.`;
  return `${where}: ${start}. Difference to it${moved ? " when centred" : ""}: ${each.join("; ")}.`;
}

/** Round steps for an axis: so few that at most `most` fit between the ends. */
function ladder(low, high, most, choice) {
  const step = choice.find((s) => (high - low) / s <= most) ?? choice.at(-1);
  const [from, to] = [Math.floor(low / step + 1e-9), Math.ceil(high / step - 1e-9)];
  return { ends: [from * step, to * step], ticks: Array.from({ length: to - from + 1 }, (_, i) => (from + i) * step || 0), step };
}

/** Axes that stay while the slider moves: worked out once for each set, of differences for each setting, of retention for all. */
const known = new WeakMap();
function axesOf({ sets }, { set, kept, moved }) {
  if (!known.has(sets)) known.set(sets, new Map());
  const cache = known.get(sets), once = (key, work) => (cache.has(key) || cache.set(key, work()), cache.get(key));
  const all = (list, ...keys) => list.flatMap((run) => keys.flatMap((key) => run[key])).filter((v) => v !== null);
  const top = ({ runs }) => Math.max(...all(runs, "values", "high", "published", "most"));
  const inside = (run) => run.renormalised === kept && (run.kind === "PCA" || run.kind === "SVD" || run.centred === moved);
  return {
    score: once(`${set.name} score`, () => ladder(0, top(set), 7, [0.05, 0.1, 0.2])),
    retention: once("retention", () => ladder(0, Math.max(1, ...sets.map((one) => top(one) / fullOf(one))), 6, [0.2, 0.5])),
    gap: once(`${set.name} ${kept} ${moved}`, () => {
      const far = all(set.runs.filter(inside), "gap", "gap_low", "gap_high");
      if (!kept) far.push(...all([find(set, "prefix", false, true)], "gain", "gain_low", "gain_high"));
      return ladder(Math.min(far.length ? 0 : -0.05, ...far), Math.max(far.length ? 0 : 0.05, ...far), 5, [0.01, 0.02, 0.05, 0.1, 0.2]);
    }),
  };
}

/** Whether what others published stands beside what was measured. */
const ringed = ({ values, published }) => published.length > 0 && values.some((v) => v !== null);

/** Lines through what is there, gaps elsewhere. */
const line = (places, heights) =>
  runs(places.length, (j) => heights[j] !== null).map((run) => `M${run.map((j) => `${places[j].toFixed(1)} ${heights[j].toFixed(1)}`).join("L")}`).join("") || STILL;
const band = (places, upper, lower) =>
  runs(places.length, (j) => upper[j] !== null && lower[j] !== null).filter((run) => run.length > 1).map((run) => {
    const point = (heights) => (j) => `${places[j].toFixed(1)} ${heights[j].toFixed(1)}`;
    return `M${[...run.map(point(upper)), ...[...run].reverse().map(point(lower))].join("L")}Z`;
  }).join("") || STILL;

/** One of the two plots: bands, lines and marks of some curves, and the large marks at the chosen size. */
function drawCurves({ ink }, id, curves, places, i, sy, right) {
  const heights = (list) => places.map((_, j) => (at(list, j) === null ? null : sy(list[j])));
  const drawn = curves.map((curve) => ({ ...curve, ys: heights(curve.line), low: heights(curve.low), high: heights(curve.high) }));
  for (const { key, tone, low, high } of drawn) ink(`${id}-${key}-band`, "path", { d: band(places, high, low), class: `ll-span ll-tone-${tone}` });
  for (const { key, tone, shape, dashed, ys, rings } of [...drawn].reverse()) {
    const marks = places.map((px, j) => (ys[j] === null ? "" : SHAPES[shape](px, ys[j], 3))).join("");
    ink(`${id}-${key}-line`, "path", { d: line(places, ys), class: `ll-curve ${dashed ? "ll-curve-dashed" : ""} ll-tone-${tone}` });
    ink(`${id}-${key}-marks`, "path", { d: marks || STILL, class: `ll-mark ${dashed ? "ll-open" : ""} ll-tone-${tone}` });
    const around = heights(rings ?? []).map((y, j) => (y === null ? "" : SHAPES[0](places[j], y, 6.5))).join("");
    if (around) ink(`${id}-${key}-published`, "path", { d: around, class: `ll-published ll-tone-${tone}` });
  }
  const whiskers = id === "gap";
  const extents = drawn.map(({ ys, low, high }) => (ys[i] === null ? null : whiskers ? [Math.min(ys[i] - 7, high[i] ?? ys[i]), Math.max(ys[i] + 7, low[i] ?? ys[i])] : [ys[i] - 5, ys[i] + 5]));
  const shifts = whiskers ? beside(extents) : extents.map(() => [0, 0]);
  for (const [n, { key, tone, shape, dashed, ys, low, high }] of [...drawn.entries()].reverse()) {
    if (ys[i] === null) continue;
    const [shift, half] = shifts[n], reach = STEP * half + 8, px = Math.min(right - reach, Math.max(places[0] - 6 + reach, places[i])) + STEP * shift;
    if (whiskers && low[i] !== null) ink(`${id}-${key}-whisker`, "path", { d: `M${px - 4} ${low[i]}h8m-4 0V${high[i]}m-4 0h8`, class: `ll-whisker ll-tone-${tone}` });
    ink(`${id}-${key}-now`, "path", { d: SHAPES[shape](px, ys[i], 5.5), class: `ll-mark ll-mark-now ${dashed ? "ll-open" : ""} ll-tone-${tone}` });
  }
  return drawn;
}

function draw(view) {
  const { ink, room, measure, scale, axis, metric, kinds, plot } = view, now = outcome(view), { set, i, curves, full } = now;
  const keep = scale === "retention", aside = room >= 600, strong = (text) => measure(text, SIZE.small, 600);
  const reach = strong("−0.888") + 5 + measure("[−0.888, −0.888]");
  const left = Math.max(46, measure("−0.00") + 12), right = aside ? room - reach - 48 : room - 6, start = right + 28, { dims, size } = set, axes = axesOf(view, now);

  const fraction = axis === "fraction", texts = dims.map((d) => (fraction ? percent(d / size, d / size < 0.0995 ? 1 : 0) : count(d)));
  const sx = fraction ? linear([0, 1], [left + 8, right - 10]) : logarithmic([dims[0], size], [left + 12, right - 10]), places = dims.map((d) => sx(fraction ? d / size : d));
  const state = settings(now), plain = curves[0].run, parts = [];
  if ((keep ? plain.keep_low : plain.low).length) parts.push("95% band of the prefix");
  if (curves.some(({ run }) => run.least.length)) parts.push("random: range of draws");
  if (curves.some(({ run }) => ringed(run))) parts.push("rings: published");
  const notes = [""];
  for (const part of parts) {
    const longer = notes.at(-1) ? `${notes.at(-1)}; ${part}` : part;
    if (measure(longer) > (aside ? right : room)) notes.push(part);
    else notes[notes.length - 1] = longer;
  }
  ink.text("title", 0, 14, keep ? `${metric} kept of full size` : metric, "ll-strong");
  ink.text("note", 0, 34, fit(`${set.name}${state ? `: ${state}` : ""}`, aside ? right : room, (text) => measure(text)), NOTE);
  notes.slice(0, aside ? 1 : 2).forEach((text, n) => ink.text(`note-${n}`, 0, 52 + 18 * n, text, NOTE));
  const top = aside ? 70 : 88, bottom = top + (aside ? 260 : 230), upper = bottom + 66, lower = upper + 130;

  const { ends: [y0, y1], ticks } = axes[scale], sy = linear([y0, y1], [bottom, top + 6]);
  for (const [n, tick] of ticks.entries()) {
    ink(`grid-${n}`, "path", { d: `M${left} ${sy(tick)}H${right}`, class: tick === 0 ? "ll-zero" : "ll-grid" });
    ink.text(`tick-${n}`, left - 8, sy(tick) + 4.5, keep ? percent(tick, 0) : num(tick, axes.score.step < 0.1 ? 2 : 1), NOTE, "end");
  }
  const { ends: [g0, g1], ticks: far, step } = axes.gap, sg = linear([g0, g1], [lower, upper + 6]);
  ink.text("gap-title", 0, bottom + 30, `Difference to the ${aside ? `${curves[0].name} in ${metric}` : "prefix"}`, "ll-strong");
  ink.text("gap-note", 0, bottom + 50, `${aside ? "paired over queries; " : ""}bold: 0 is outside the interval`, NOTE);
  for (const [n, tick] of far.entries()) {
    ink(`gap-grid-${n}`, "path", { d: `M${left} ${sg(tick)}H${right}`, class: Math.abs(tick) < 1e-9 ? "ll-zero" : "ll-grid" });
    ink.text(`gap-tick-${n}`, left - 8, sg(tick) + 4.5, Math.abs(tick) < 1e-9 ? "0" : signed(tick, step < 0.1 ? 2 : 1), NOTE, "end");
  }
  ink("stops", "path", { d: places.map((px) => `M${px} ${lower + 4}v5`).join(""), class: "ll-tick" });
  ink("at", "path", { d: `M${places[i]} ${top}V${bottom}M${places[i]} ${upper}V${lower + 4}`, class: "ll-here-line" });
  const widths = texts.map(strong), middles = places.map((px, j) => Math.min(room - widths[j] / 2, Math.max(widths[j] / 2, px)));
  for (const j of named(middles, widths)) {
    if (j === i || Math.abs(middles[j] - middles[i]) < (widths[j] + widths[i]) / 2 + 7) continue;
    ink.text(`stop-${j}`, middles[j], lower + 25, texts[j], NOTE, "middle");
  }
  ink.text("stop-at", middles[i], lower + 25, texts[i], "ll-small ll-strong", "middle");
  ink.text("x-name", right, lower + 46, fraction ? "share of the dimensions kept" : "dimensions kept (log scale)", NOTE, "end");

  const share = (list) => list.map((v) => (v === null ? null : keep ? v / full : v));
  const tops = drawCurves(view, "top", curves.map((curve) => {
    const { run } = curve, draws = run.least.length > 0, own = run === plain ? (keep ? [run.keep_low, run.keep_high] : [run.low, run.high]) : [[], []];
    const [low, high] = draws ? [share(run.least), share(run.most)] : own;
    return { ...curve, line: share(dims.map((_, j) => value(run, j))), low, high, rings: ringed(run) ? share(run.published) : [] };
  }), places, i, sy, right);
  const others = curves.slice(1).filter(({ run, far }) => run[far].length);
  const gaps = drawCurves(view, "gap", others.map((curve) => ({ ...curve, line: curve.run[curve.far], low: curve.run[`${curve.far}_low`], high: curve.run[`${curve.far}_high`] })), places, i, sg, right);
  if (!others.length) ink.text("gap-none", (left + right) / 2, sg(0) - 8, "no paired differences here", NOTE, "middle");

  const order = [...curves.keys()].sort((a, b) => (tops[a].ys[i] ?? Infinity) - (tops[b].ys[i] ?? Infinity) || a - b);
  const key = (name, { tone, shape, dashed }, x, y) => ink(name, "path", { d: SHAPES[shape](x, y, 5), class: `ll-mark ll-quick ${dashed ? "ll-open" : ""} ll-tone-${tone}` });
  const two = (name, [text, interval], x, y, bold = true) => {
    ink.text(name, x, y, text, bold ? "ll-small ll-strong ll-quick" : QUICK);
    if (interval) ink.text(`${name}-interval`, x + (bold ? strong(text) : measure(text)) + 5, y, interval, QUICK);
  };
  const pointer = (id, tone, from, to) => { // from the height of a mark, at the edge of its plot, to what is written about it
    ink(`${id}-tick`, "path", { d: `M${right - 2} ${from}h7`, class: `ll-whisker ll-quick ll-tone-${tone}` });
    ink(`${id}-leader`, "path", { d: `M${right + 6} ${from}L${start - 4} ${to}`, class: "ll-leader ll-quick" });
  };
  const head = `at ${count(dims[i])} of ${count(size)}`;
  let height = lower + 50;
  if (aside) {
    ink.text("head", start, top - 18, head, NOTE);
    const rows = order.map((n) => ({ x: tops[n].ys[i] ?? top, width: 34 }));
    balance(rows, top - 8, bottom + 10, 4).forEach((y, row) => {
      const n = order[row], { key: id, name, tone } = curves[n];
      if (tops[n].ys[i] !== null) pointer(id, tone, rows[row].x, y - 5.5);
      key(`${id}-key`, curves[n], start + 6, y - 5.5);
      ink.text(`${id}-name`, start + 18, y - 1, name, `ll-small ll-strong ll-toned ll-quick ll-tone-${tone}`);
      two(id, reading(curves[n], i, full, scale), start + 18, y + 15);
    });
    const there = [...others.keys()].filter((n) => gaps[n].ys[i] !== null).sort((a, b) => gaps[a].ys[i] - gaps[b].ys[i] || a - b);
    const spots = there.map((n) => ({ x: gaps[n].ys[i], width: 17 }));
    balance(spots, upper - 8, lower + 30, 3).forEach((y, row) => {
      const { key: id, ...curve } = others[there[row]], { text, interval, verdict } = difference(curve, i);
      pointer(`${id}-gap`, curve.tone, spots[row].x, y);
      key(`${id}-gap-key`, curve, start + 6, y);
      two(`${id}-gap`, [text, interval], start + 18, y + 4.5, verdict === "better" || verdict === "worse");
    });
  } else {
    const pitch = 46, list = lower + 76;
    ink.text("head", 0, list, head, NOTE);
    order.forEach((n, row) => {
      const y = list + 24 + pitch * row, curve = curves[n], { key: id, name, tone } = curve, far = difference(curve, i);
      const [text, interval] = reading(curve, i, full, scale), x = Math.max(room - reach, 22 + strong("random rotation") + 8);
      key(`${id}-key`, curve, 7, y - 4.5);
      ink.text(`${id}-name`, 22, y, name, `ll-small ll-strong ll-toned ll-quick ll-tone-${tone}`);
      two(id, [text, interval], x, y);
      if (far) two(`${id}-gap`, [far.text, far.interval], Math.min(x, room - reach), y + 18, far.verdict === "better" || far.verdict === "worse");
    });
    const prefixes = 1 + Boolean(find(set, "prefix", true, true)) + Boolean(find(set, "prefix", false, false)); // at most, in any setting
    height = list + 24 + pitch * (kinds.length + prefixes) - 26;
  }
  ink("ground", "path", { d: `M${left} ${top}H${right}V${lower}H${left}Z`, class: "ll-ground" });
  Object.assign(plot, { places, box: [left, top, right, lower] });
  return { height, says: sentence(view, now) };
}

/** Native check boxes: a list that holds some of the options; one that `can` not be drawn now is closed. */
const checks = (trait, { label, options, can, follows }) => (link) => {
  const boxes = options.map((text) => {
    const input = html("input", { type: "checkbox", id: uid() });
    input.dataset.lmSuppressShortcuts = "true";
    input.addEventListener("change", () => link.set({ [trait]: options.filter((one) => (one === text ? input.checked : link.get(trait).includes(one))) }));
    const show = () => ((input.disabled = !can(link.get, text)), (input.checked = link.get(trait).includes(text)));
    for (const name of [trait, ...follows]) link.watch(name, show);
    return html("label", {}, input, text);
  });
  return html("fieldset", { class: "ll-control ll-inline" }, html("legend", {}, label), ...boxes);
};

/** Radio buttons that show what holds, and are closed where a set was measured in one way only. */
const able = (trait, { label, options, shows, can, follows }) => (link) => {
  const get = (name) => (name === trait ? shows(link.get) : link.get(name));
  const node = radios(trait, { label, options, inline: true })({ ...link, get }), inputs = [...node.querySelectorAll("input")];
  const show = () => inputs.forEach((input, i) => ((input.disabled = !can(link.get)), (input.checked = options[i][0] === shows(link.get))));
  for (const name of [trait, ...follows]) link.watch(name, show);
  return node;
};

const current = (get) => {
  const set = setOf({ sets: get("sets"), set: get("set") });
  return { set, ...settingOf(set, { centred: get("centred"), renormalised: get("renormalised") }) };
};

export default {
  render({ model, el }) {
    const sets = model.get("sets"), metric = model.get("metric"), options = sets.map(({ name }) => [name, name]);
    const list = options.reduce((sum, [name]) => sum + name.length + 4, 0) > 60, choice = { label: "Corpus and model", options };
    const every = sets.flatMap((set) => set.dims.flatMap((dim) => [[true, true], [true, false], [false, true], [false, false]].flatMap(([centred, renormalised]) =>
      ["score", "retention"].map((scale) => ({ sets, set: set.name, dim, kinds: KINDS, centred, renormalised, scale, metric })))));
    return mount({
      model, el, draw, longest: longestOf(every.map((view) => sentence(view, outcome(view)))),
      extend: pointing((link, near) => {
        const { dims } = current(link.get).set;
        if (dims[near] !== link.get("dim")) link.set({ dim: dims[near] });
      }),
      label: `${metric} against the dimensions kept, for the prefix and other reductions with their intervals, and below it their paired differences to the prefix`,
      traits: ["set", "dim", "kinds", "centred", "renormalised", "scale", "axis", "sets", "metric"],
      controls: [
        (link) => steps("dim", {
          label: "Dimensions kept", values: (get) => setOf({ sets, set: get("set") }).dims, follows: ["set"],
          say: (d) => `${count(d)} of ${count(current(link.get).set.size)}`,
        })({ ...link, get: (name) => (name === "dim" ? current(link.get).set.dims[nearest(current(link.get).set, link.get("dim"))] : link.get(name)) }),
        ...(sets.length > 1 ? [list ? select("set", choice) : radios("set", { ...choice, inline: true })] : []),
        checks("kinds", {
          label: "Beside the prefix", options: KINDS.filter((kind) => sets.some(({ runs }) => runs.some((run) => run.kind === kind))),
          can: (get, kind) => Boolean(runOf(current(get).set, kind, current(get))), follows: ["set", "centred", "renormalised"],
        }),
        able("renormalised", {
          label: "Renormalised after the cut", options: [[true, "yes"], [false, "no"]], shows: (get) => current(get).kept,
          can: (get) => Boolean(find(current(get).set, "prefix", false, false)), follows: ["set"],
        }),
        able("centred", {
          label: "Centred before the cut", options: [[false, "no"], [true, "yes"]], shows: (get) => current(get).moved,
          can: (get) => Boolean(find(current(get).set, "prefix", true, current(get).kept)), follows: ["set", "renormalised"],
        }),
        radios("scale", { label: "Upright", inline: true, options: [["score", metric], ["retention", "retention"]] }),
        radios("axis", { label: "Across", inline: true, options: [["dimensions", "dimensions, log"], ["fraction", "share kept"]] }),
      ],
    });
  },
};
