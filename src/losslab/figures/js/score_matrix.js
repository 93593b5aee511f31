/**
 * The score matrix of a batch: cosines, the softmax of each row, and what one row costs beside a model that knows nothing.
 * Traits: `source` ("real": the pairs that Python packed, or "random": seeded directions), `width` (pairs in the batch),
 * `temperature`, `dimension` (so many first entries of each vector, made unit length again), `row` (from 1), `colour`
 * ("cosine" or "share"), and the data: `embeddings`, `pairs`, `entries`, `names`.
 */
import { NOTE, SIZE, axis, brief, count, fit, linear, logarithmic, mount, num, percent, radios, range, spread, steps, uid } from "./kit.js";
import { infoNceRow, logSumExp } from "./contrastive.js";
import { randomPairs, rowCosines, unpack } from "./directions.js";
import { backdrop, colours, onTheme, shades } from "./paint.js";
import { startEngine } from "./painter.js";

const MOST = 1024, SEED = 1;
const WIDTHS = [2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];
const TEMPERATURES = [0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.2, 0.3, 0.5, 1];
const DIMENSIONS = [2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];
const LISTED = 5;

const limitOf = (get) => (get("source") === "real" ? get("pairs") : MOST);
const widthsOf = (get) => [...WIDTHS.filter((w) => w < limitOf(get)), limitOf(get)];
const dimensionsOf = (get) => [...DIMENSIONS.filter((d) => d < get("entries")), get("entries")];

/** A share in percent with two digits that count. */
const portion = (p) => percent(p, p < 5e-5 ? 0 : p < 0.00995 ? 2 : p < 0.0995 ? 1 : 0);

/** What the focused row holds for the traits. */
function outcome(view) {
  const { source, temperature, dimension, data } = view;
  const limit = source === "real" ? view.pairs : MOST;
  const width = Math.min(view.width, limit), at = Math.min(view.row, width) - 1;
  const cosines = rowCosines(data[source], at, limit, dimension);
  const batch = cosines.subarray(0, width), row = infoNceRow(batch, at, temperature);
  const order = [...row.probabilities.keys()].sort((a, b) => batch[b] - batch[a] || a - b);
  const rival = order[0] === at ? order[1] : order[0];
  const logits = cosines.map((c) => c / temperature);
  const losses = widthsOf((name) => view[name]).map((w) => [w, at < w ? logSumExp(logits.subarray(0, w)) - logits[at] : null]);
  let squares = 0;
  batch.forEach((c, j) => (squares += j === at ? 0 : c * c));
  const spread = Math.sqrt(squares / (width - 1));
  return { source, width, limit, at, temperature, dimension, batch, row, order, rival, losses, spread, blind: Math.log(width) };
}

const nameOf = ({ source, names }, j) => (source === "real" && names[j]) || `document ${count(j + 1)}`;

/** The figure in one sentence. */
function sentence(view, { source, width, at, temperature, dimension, batch, row, rival, spread, blind }) {
  const where = `at τ = ${temperature} in ${dimension} dimensions`;
  const cost = `the loss is ${num(row.loss, 3)} where a blind model’s is ln ${count(width)} = ${num(blind, 3)}`;
  const rank = `rank ${count(row.rank)} of ${count(width)}`;
  const own = num(batch[at], 3);
  if (source === "random") {
    return `Row ${count(at + 1)} of ${count(width)} random directions ${where}: the cosines with other documents are 0 ± ${num(spread, 3)}, the positive’s is ${own}, ${rank}, and ${cost}.`;
  }
  const beside = `${row.rank > 1 ? "behind" : "ahead of"} ${nameOf(view, rival)}`;
  return `Row ${at + 1} of ${width} ${where}: ${view.names[at] || "the query"} and its own document have cosine ${own}, ${rank}, ${beside}; it takes ${portion(row.probabilities[at])} of the softmax, and ${cost}.`;
}

/** Bars side by side as one path; where there is less than a pixel for each, the highest of a pixel's. */
function bars(values, x0, side, scale, without = -1) {
  const n = values.length, slots = Math.min(n, Math.floor(side)), pitch = side / slots;
  const gap = pitch > 12 ? 3 : pitch > 4 ? 1 : 0, base = scale(0);
  let path = "";
  for (let s = 0; s < slots; s++) {
    let best = null;
    for (let j = Math.floor((s * n) / slots); j < Math.floor(((s + 1) * n) / slots); j++) {
      if (j !== without && (best === null || values[j] > best)) best = values[j];
    }
    if (best === null) continue;
    path += `M${(x0 + s * pitch + gap / 2).toFixed(2)} ${base.toFixed(1)}V${scale(best).toFixed(1)}h${(pitch - gap).toFixed(2)}V${base.toFixed(1)}Z`;
  }
  return path || "M0 0";
}

/** The map's title and key, the frame around the focused row, and what a pixel stands for. Returns the y below. */
function drawMap(view, result, y) {
  const { ink, measure, colour, source, gradients, side, sharp } = view, { width, at } = result;
  const share = colour === "share";
  ink.text("map-title", 0, y + 14, share ? "Softmax of every row" : "Cosine of every pair", "ll-strong");
  ink.text("map-note", 0, y + 35, "rows: queries, columns: documents", NOTE);
  const low = share ? `1/${count(width)} or less` : "−1", start = measure(low) + 8;
  ink.text("key-low", 0, y + 58, low, NOTE);
  ink("key", "rect", { x: start, y: y + 47, width: 110, height: 13, fill: gradients[colour], class: "ll-key" });
  ink.text("key-high", start + 118, y + 58, share ? "1 (log scale)" : "1", NOTE);
  const top = y + 70, cell = side / width, thick = Math.max(cell, 5);
  const y0 = Math.min(top + side - thick, Math.max(top, top + (at + 0.5) * cell - thick / 2));
  ink("map-edge", "rect", { x: -0.5, y: top - 0.5, width: side + 1, height: side + 1, class: "ll-edge" });
  ink("row-halo", "rect", { x: -1, y: y0 - 1, width: side + 2, height: thick + 2, class: "ll-frame ll-frame-halo" });
  ink("row-frame", "rect", { x: -1, y: y0 - 1, width: side + 2, height: thick + 2, class: "ll-frame" });
  const mark = Math.max(cell, 9), x = (at + 0.5) * cell;
  ink("own-frame", "rect", {
    x: Math.min(side - mark, Math.max(0, x - mark / 2)), y: top + (at + 0.5) * cell - mark / 2, width: mark, height: mark, class: "ll-frame ll-own",
  });
  const pixels = side * sharp, covered = Math.ceil(width / pixels);
  const said = covered > 1 ? `a pixel shows the highest of ${covered} × ${covered} cells` : "click or tap a row";
  ink.text("map-pixels", 0, top + side + 19, said, NOTE);
  if (view.painted.id !== view.wished) {
    ink.text("map-pending", side, y + 14, "computing …", `${NOTE} ll-late`, "end");
  }
  view.place(top, source);
  return top + side + 28;
}

/** The focused row pulled out below its columns: its cosines, and what the softmax makes of them. Returns the y below. */
function drawStrips(view, result, y) {
  const { ink, side, measure } = view, { batch, row, at, width, temperature } = result;
  const low = Math.min(0, ...batch), high = Math.max(0.05, ...batch);
  const cosine = linear([low, high], [y + 80, y + 26]);
  const place = (at + 0.5) * (side / width);
  const own = (values, scale) => {
    const slots = Math.min(width, Math.floor(side)), pitch = side / slots, gap = pitch > 12 ? 3 : pitch > 4 ? 1 : 0;
    const wide = Math.max(3, pitch - gap), x = Math.min(side - wide, Math.max(0, place - wide / 2));
    return `M${x} ${scale(0)}V${scale(values[at])}h${wide}V${scale(0)}Z`;
  };
  ink.text("cosines-title", 0, y + 14, `Row ${count(at + 1)}: its cosines`, "ll-small ll-strong");
  ink.text("cosines-range", side, y + 14, `${num(Math.min(...batch), 2)} to ${num(Math.max(...batch), 2)}`, NOTE, "end");
  ink("cosines-others", "path", { d: bars(batch, 0, side, cosine, at), class: "ll-strip" });
  ink("cosines-own", "path", { d: own(batch, cosine), class: "ll-strip ll-strip-own" });
  ink("cosines-zero", "path", { d: `M0 ${cosine(0)}H${side}`, class: "ll-zero" });
  const most = Math.max(...row.probabilities), softmax = linear([0, most], [y + 182, y + 114]);
  const title = `Softmax at τ = ${temperature}`;
  ink.text("softmax-title", 0, y + 104, title, "ll-small ll-strong");
  ink.text("softmax-range", side, y + 104, `up to ${portion(most)}`, NOTE, "end");
  ink("softmax-others", "path", { d: bars(row.probabilities, 0, side, softmax, at), class: "ll-strip" });
  ink("softmax-own", "path", { d: own(row.probabilities, softmax), class: "ll-strip ll-strip-own" });
  ink("softmax-zero", "path", { d: `M0 ${y + 182}H${side}`, class: "ll-zero" });
  const half = measure("positive", SIZE.small, 600) / 2;
  ink("own-tick", "path", { d: `M${place - 5} ${y + 193}L${place} ${y + 185}L${place + 5} ${y + 193}Z`, class: "ll-best" });
  ink.text("own-name", Math.min(side - half, Math.max(half, place)), y + 207, "positive", "ll-small ll-strong ll-is-best", "middle");
  return y + 212;
}

/** The row's loss in large beside ln B, and who takes its softmax. Returns the y below. */
function drawRow(view, result, x, y, breadth) {
  const { ink, measure, painted, wished } = view, { row, at, width, order, blind } = result;
  const strong = (text) => measure(text, SIZE.text, 600);
  const title = view.source === "real" ? view.names[at] || `Query ${at + 1}` : `Random direction ${count(at + 1)}`;
  ink.text("row-title", x, y + 14, fit(title, breadth, strong), "ll-strong");
  ink.text("row-note", x, y + 35, `row ${count(at + 1)}: the positive has rank ${count(row.rank)} of ${count(width)}`, NOTE);
  const value = num(row.loss, row.loss < 99.9995 ? 3 : 1), off = Math.abs(blind - row.loss), worse = row.loss > blind && num(off, 2) !== "0.00";
  ink.text("loss", x, y + 82, value, "ll-big");
  const beside = x + measure(value, SIZE.big, 600) + 14;
  ink.text("loss-note", beside, y + 64, "loss (nats)", NOTE);
  const verdict = num(off, 2) === "0.00" ? "as blind as ln B" : `${brief(off)} ${worse ? "above" : "below"} blind`;
  ink.text("loss-verdict", beside, y + 82, verdict, `ll-small ll-strong ${worse ? "ll-is-wrong" : "ll-is-right"}`);
  const fresh = painted.id === wished ? "" : "ll-muted";
  const mean = painted.id ? `batch: mean ${num(painted.loss, 3)}, right first: ${percent(painted.correct, 0)}` : "batch: being computed …";
  ink.text("mean", x, y + 108, mean, `ll-small ${fresh}`);

  ink.text("takes-title", x, y + 144, "Who takes its softmax", "ll-strong");
  const shown = order.slice(0, LISTED);
  if (!shown.includes(at)) shown.push(at);
  const rest = width - shown.length;
  const lines = shown.map((j) => ({ key: j === at ? "own" : `rank-${order.indexOf(j)}`, j, p: row.probabilities[j], own: j === at }));
  if (rest > 0) lines.push({ key: "rest", p: Math.max(0, 1 - shown.reduce((sum, j) => sum + row.probabilities[j], 0)), rest });
  const column = breadth * 0.6, start = x + column, long = breadth - column - 48;
  lines.forEach(({ key, j, p, own, rest: others }, n) => {
    const base = y + 167 + 22 * n;
    const name = others ? `${count(others)} other${others === 1 ? "" : "s"}` : nameOf(view, j);
    const look = own ? "ll-small ll-strong" : others ? NOTE : "ll-small";
    const label = own ? `${fit(name, column - 66, (t) => measure(t, SIZE.small, 600))} ✓` : fit(name, column - 8, (t) => measure(t));
    ink.text(`${key}-takes`, x, base, label, look);
    ink(`${key}-bar`, "rect", { x: start, y: base - 12, width: Math.max(0.5, p * long), height: 14, class: own ? "ll-best" : others ? "ll-rest" : "ll-other" });
    ink.text(`${key}-share`, x + breadth, base, portion(p), look, "end");
  });
  return y + 167 + 22 * (LISTED + 2) - 8;
}

/** The loss over the widths that the slider offers, beside ln B. Returns the y below. */
function drawWidths(view, result, x, y, breadth, height) {
  const { ink, measure, painted, wished } = view, { losses, width, row, limit, blind } = result;
  const named = [["blind", "ln B: blind"], ["row", "this row"], ["batch", "batch mean"]];
  const gutter = Math.max(...named.map(([, text]) => measure(text, SIZE.small, 600))) + 16;
  const known = losses.filter(([, loss]) => loss !== null);
  const most = Math.max(Math.log(limit), painted.loss ?? 0, ...known.map(([, loss]) => loss));
  const step = [1, 2, 5, 10, 20, 50].find((s) => most / s <= 5) ?? 100, highest = step * Math.ceil((most + 0.02 * step) / step);
  const left = x + 36, right = x + breadth - gutter, top = y + 28, bottom = y + height - 44;
  const sx = logarithmic([2, Math.max(limit, 4)], [left + 8, right]), sy = linear([highest, 0], [top, bottom]);
  ink.text("widths-title", x, y + 14, "Loss against batch width", "ll-strong");
  const ticks = Array.from({ length: Math.round(highest / step) + 1 }, (_, i) => i * step);
  axis(ink, "widths-y", { side: "left", scale: sy, ticks, at: left, to: right });
  const rounds = losses.map(([w]) => w).filter((w, i, all) => (all.length < 8 ? true : i % 3 === 0) && (i === all.length - 1 || sx(all.at(-1)) - sx(w) > 34));
  axis(ink, "widths-x", { side: "bottom", scale: sx, ticks: rounds, at: bottom, show: count });
  ink.text("widths-x-name", right, bottom + 40, "pairs in the batch (log scale)", NOTE, "end");
  ink("widths-blind", "path", { d: `M${losses.map(([w]) => `${sx(w)} ${sy(Math.log(w))}`).join("L")}`, class: "ll-line-right" });
  if (known.length) ink("widths-row", "path", { d: `M${known.map(([w, loss]) => `${sx(w)} ${sy(loss)}`).join("L")}`, class: "ll-line-best" });
  ink("widths-mark", "circle", { cx: sx(width), cy: sy(row.loss), r: 7, class: "ll-now ll-is-best" });
  ink("widths-should", "circle", { cx: sx(width), cy: sy(blind), r: 5, class: "ll-right-outline" });
  const ends = [["blind", sy(Math.log(limit)), "ll-is-right"], ["row", sy(known.at(-1)[1]), "ll-is-best ll-strong"]];
  if (painted.id) {
    const cx = sx(painted.width), cy = sy(painted.loss), look = painted.id === wished ? "" : "ll-muted";
    ink("widths-mean", "path", { d: `M${cx} ${cy - 7}L${cx + 7} ${cy}L${cx} ${cy + 7}L${cx - 7} ${cy}Z`, class: `ll-now ll-diamond ${look}` });
    ends.push(["batch", cy, ""]);
  }
  ends.sort((a, b) => a[1] - b[1]);
  spread(ends.map(([, p]) => ({ x: p, width: 16 })), top - 8, bottom + 8, 1).forEach((centre, n) => {
    const [key, , look] = ends[n], text = named.find(([name]) => name === key)[1];
    ink.text(`widths-${key}-end`, right + 12, centre + 4.5, text, `ll-small ${look}`);
  });
  return y + height;
}

function draw(base) {
  const { room } = base, wide = room >= 680;
  const side = wide ? Math.min(384, Math.floor(room * 0.5)) : Math.min(room, 420);
  const result = outcome(base), view = { ...base, side, sharp: Math.min(2, Math.max(1, globalThis.devicePixelRatio || 1)) };
  view.wished = base.wish(view, result);
  view.painted = base.painted();
  const below = drawStrips(view, result, drawMap(view, result, 0) + 10);
  const x = wide ? side + 36 : 0, breadth = room - x;
  const next = drawRow(view, result, x, wide ? 0 : below + 34, breadth) + 34;
  const height = drawWidths(view, result, x, next, breadth, wide ? Math.max(220, below - next) : 240);
  return { height: Math.max(below, height), says: sentence(view, result) };
}

/** The canvas with its colours, the engine behind it, and the pointer that picks a row. */
function painting({ group, drawing, link, redraw }) {
  const get = link.get, dims = dimensionsOf(get), entries = get("entries");
  const data = { real: unpack(get("embeddings"), get("pairs"), entries), random: randomPairs(MOST, entries, SEED) };
  const canvas = backdrop(drawing), brush = canvas.getContext("2d");
  const ids = { cosine: uid(), share: uid() }, defs = document.createElementNS("http://www.w3.org/2000/svg", "defs");
  const stops = { cosine: ["low", "middle", "high"], share: ["middle", "high"] };
  defs.innerHTML = Object.entries(stops).map(([key, names]) => `<linearGradient id="${ids[key]}">${names
    .map((name, i) => `<stop offset="${i / (names.length - 1)}" class="ll-map-${name}"/>`).join("")}</linearGradient>`).join("");
  drawing.prepend(defs);
  let theme = 0, palettes = null, wished = "", painted = {}, area = null;
  const engine = startEngine(
    Object.entries(data).map(([name, { n, d, queries, documents }]) => ({ name, n, d, dims, queries: queries.slice(), documents: documents.slice() })),
    (done) => {
      if (canvas.width !== done.side) canvas.width = canvas.height = done.side;
      brush.putImageData(new ImageData(new Uint8ClampedArray(done.pixels), done.side, done.side), 0, 0);
      painted = { id: done.id, loss: done.loss, correct: done.correct, width: Number(done.id.split(" ")[1]) };
      canvas.dataset.shows = done.id; // tests wait for it
      redraw();
    },
  );
  const repaint = () => {
    palettes = null;
    theme += 1;
    redraw();
  };
  const off = onTheme(repaint);

  /** Asks for the picture of a state, once. */
  function wish({ side, sharp, colour }, { source, width, dimension, temperature }) {
    const id = [source, width, dimension, temperature, colour, Math.round(side * sharp), theme].join(" ");
    if (id === wished) return id;
    wished = id;
    palettes ??= Object.fromEntries(Object.entries(stops).map(([key, names]) => [key, shades(colours(group, names.map((name) => `map-${name}`)))]));
    engine.wish({ id, source, width, dimension, temperature, share: colour === "share", side: Math.round(side * sharp), shades: palettes[colour] });
    return id;
  }

  /** Puts the canvas where the map is, and remembers it for the pointer. */
  function place(top, source) {
    const side = Number(drawing.querySelector('[data-key="map-edge"]').getAttribute("width")) - 1;
    area = { top, side, limit: source === "real" ? get("pairs") : MOST };
    canvas.style.top = `${top}px`;
    canvas.style.width = canvas.style.height = `${side}px`;
    canvas.classList.toggle("ll-pending", painted.id !== wished);
  }
  const pick = (event) => {
    if (!area || (event.type === "pointermove" && !(event.buttons && event.pointerType === "mouse"))) return;
    const box = drawing.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top - area.top;
    if (x < 0 || x > area.side || y < 0 || y >= area.side) return;
    const width = Math.min(get("width"), area.limit), row = 1 + Math.min(width - 1, Math.floor((y / area.side) * width));
    if (row !== get("row")) link.set({ row });
  };
  drawing.addEventListener("click", pick);
  drawing.addEventListener("pointermove", pick);
  const gradients = Object.fromEntries(Object.entries(ids).map(([key, id]) => [key, `url(#${id})`]));
  return { data, wish, place, gradients, painted: () => painted, off: () => (off(), engine.end()) };
}

/** A batch no wider than its source, and a row that is in it: what follows when another trait changes. */
function settled(link) {
  const set = (changes) => {
    const get = (name) => changes[name] ?? link.get(name);
    const width = Math.min(get("width"), limitOf(get));
    link.set({ ...changes, width, row: Math.min(get("row"), width) });
  };
  return { ...link, set };
}
const settling = (build) => (link) => build(settled(link));

/** Sentences as long as any that the data can lead to. */
function longest(model) {
  const names = model.get("names"), wordy = names.reduce((a, b) => (b.length > a.length ? b : a), "document 1,024");
  const row = { loss: 88.888, rank: 1024, probabilities: [0.0888] };
  const worst = { at: 0, temperature: 0.05, dimension: model.get("entries"), batch: [-0.888], row, rival: 0, spread: 0.888 };
  return ["real", "random"].map((source) => {
    const width = source === "real" ? model.get("pairs") : MOST;
    const view = { source, names: [wordy] };
    return sentence(view, { ...worst, source, width, row: { ...row, rank: width }, blind: Math.log(width) }).replace(/Row 1 /, `Row ${count(width)} `);
  });
}

export default {
  render: ({ model, el }) =>
    mount({
      model, el, draw, longest: longest(model), extend: painting,
      label: "Heat map of every query with every document of a batch, one row of it as bars before and after the softmax, and its loss against batch width",
      traits: ["source", "width", "temperature", "dimension", "row", "colour", "embeddings", "pairs", "entries", "names"],
      controls: [
        radios("source", { label: "Vectors", options: [["real", "a real batch"], ["random", "random directions"]], inline: true }),
        radios("colour", { label: "Colour shows", options: [["cosine", "cosine"], ["share", "softmax share"]], inline: true }),
        steps("width", { label: "Batch width", values: widthsOf, follows: ["source"], say: (w) => `${count(w)} pairs` }),
        range("row", {
          label: "Row", min: 1, max: (get) => Math.min(get("width"), limitOf(get)), follows: ["width", "source"],
          say: (r) => count(r),
        }),
        steps("temperature", { label: "Temperature τ", values: TEMPERATURES }),
        steps("dimension", { label: "Dimensions kept", values: dimensionsOf(model.get.bind(model)), say: (d) => `${d} dimensions` }),
      ].map(settling),
    }),
};
