/**
 * Weight and direction: a long list beside ours leaves our query's gradient its direction and takes its weight.
 * Traits: `loss` (one of `names`), `width` (one of `widths`), and what was measured: for each loss `alone`, the gradient of
 * our query by itself; `gradients`, in the batch at each width; `weights`, |alone| / |in the batch|; `cosines` between both.
 */
import { NOTE, SIZE, axis, brief, linear, logarithmic, longestOf, mount, num, percent, plural, radios, spread, steps } from "./kit.js";
import { drawArrows } from "./pushes.js";

const MEAN = 2; // two queries in the batch: a mean over queries halves each one's gradient
const KEPT = 0.9995;

const length = (vector) => Math.hypot(...vector);
const share = (weight) => percent(MEAN / weight, MEAN / weight < 0.0995 ? 1 : 0);
const isLight = (weight) => share(weight) !== "100%";

/** The push as drawn on one of the two axes; what should be has length 1 on both. */
const documents = ({ now, alone }, unit) =>
  now.map((g, i) => ({ key: i, name: "ABC"[i], look: "ll-best", is: -g / unit, aim: -alone[i] / length(alone) }));

/** A panel's number in large, with a note above its verdict. */
function drawVerdict({ ink, measure }, key, x, y, { value, note, verdict, good }) {
  const look = good ? "ll-is-right" : "ll-is-wrong";
  ink.text(`${key}-value`, x, y + 30, value, `ll-big ${good ? "" : look}`);
  const beside = x + measure(value, SIZE.big, 600) + 14;
  ink.text(`${key}-note`, beside, y + 12, note, NOTE);
  ink.text(`${key}-verdict`, beside, y + 30, verdict, `ll-small ll-strong ${look}`);
}

/** Every loss's weight against the width of the batch, on a log axis, each named where its line ends. */
function drawWeights(view, y) {
  const { ink, room, measure, names, weights, widths, width, loss, weight } = view;
  const all = weights.flat(), first = widths[0], last = widths.at(-1);
  const low = 10 ** Math.floor(Math.log10(Math.min(1, ...all))), high = 1.5 * Math.max(10, ...all);
  const gutter = Math.max(...names.map((name) => measure(name, SIZE.small, 600))) + 14;
  const left = 44, right = room - gutter, sx = linear([first, last], [left + 10, right]);
  const sy = logarithmic([high, low], [y + 32, y + 240]);
  const ticks = [];
  for (let tick = low; tick <= high; tick *= 10) ticks.push(Number(tick.toPrecision(1)));
  const title = "Times smaller than alone", unit = "longest list in the batch (documents)";
  ink.text("weights-title", 0, y + 14, title, "ll-strong");
  ink.text("weights-note", measure(title, SIZE.text, 600) + 10, y + 14, "log scale", NOTE);
  axis(ink, "weights-y", { side: "left", scale: sy, ticks, at: left, to: right, show: (t) => `${t}×` });
  const rounds = widths.filter((w, i) => i === 0 || (w % 10 === 0 && w - first > 4));
  axis(ink, "weights-x", { side: "bottom", scale: sx, ticks: rounds, at: y + 240 });
  ink.text("weights-x-name", Math.max(right, measure(unit)), y + 280, unit, NOTE, "end");

  const line = (row) => `M${row.map((value, i) => `${sx(widths[i])} ${sy(value)}`).join("L")}`;
  const chosen = names.indexOf(loss), strays = weights[chosen].some(isLight);
  weights.forEach((row, i) => ink(`line-${i}`, "path", { d: line(row), class: "ll-line-other" }));
  ink("mean", "path", { d: `M${sx(first)} ${sy(MEAN)}H${sx(last)}`, class: "ll-line-right" });
  ink("chosen", "path", { d: line(weights[chosen]), class: strays ? "ll-line-wrong" : "ll-line-right" });
  ink("lost", "path", { d: `M${sx(width)} ${sy(MEAN)}V${sy(weight)}`, class: "ll-gap" });
  const colour = strays ? "ll-is-wrong" : "ll-is-right";
  widths.forEach((w, i) => ink(`chosen-${w}`, "circle", { cx: sx(w), cy: sy(weights[chosen][i]), r: 3, class: colour }));
  const now = isLight(weight) ? "ll-is-wrong" : "ll-is-right";
  ink("weight-now", "circle", { cx: sx(width), cy: sy(weight), r: 8, class: `ll-now ${now}` });
  ink.text("mean-name", sx(last) - 12, sy(MEAN) + 17, `per-query mean: ${MEAN}`, "ll-small ll-is-right ll-halo", "end");
  const ends = names.map((_, i) => ({ i, x: sy(weights[i].at(-1)), width: 16 })).sort((a, b) => a.x - b.x || a.i - b.i);
  spread(ends, y + 30, y + 250, 1).forEach((centre, n) => {
    const { i } = ends[n];
    ink.text(`end-${i}`, right + 12, centre + 4.5, names[i], `ll-small ${i === chosen ? `ll-strong ${colour}` : "ll-muted"}`);
  });
  return y + 284;
}

/** What was measured for a loss at a width. */
function outcome({ loss, width, names, widths, alone, gradients, weights, cosines }) {
  const row = names.indexOf(loss), at = widths.indexOf(width);
  return { loss, width, alone: alone[row], now: gradients[row][at], weight: weights[row][at], cosine: cosines[row][at] };
}

/** The figure in one sentence. */
function sentence({ loss, width, weight, cosine }) {
  const turned = cosine < KEPT;
  const direction = `our query’s gradient ${turned ? "loses" : "keeps"} its direction (cosine ${num(cosine)})`;
  const beside = `${loss} beside a list of ${width}: ${direction} ${turned || !isLight(weight) ? "and" : "but"} is ${brief(weight)} times smaller`;
  if (!isLight(weight)) return `${beside} than alone, as a mean over both queries would make it.`;
  return `${beside} than alone, not ${MEAN} times: ${share(weight)} of the weight that a per-query mean would leave it.`;
}

function draw(base) {
  const { room } = base;
  const wide = room >= 600;
  const view = { ...base, ...outcome(base) };
  const { alone, now, weight, cosine } = view;
  const breadth = wide ? room * 0.48 : room, x = wide ? room * 0.52 : 0;
  const panel = (id, x, y, title, unit, measure, verdict) => {
    const chart = { id, title, x, y, breadth, domain: [1.25, -1.25], ticks: [1, 0.5, 0, -0.5, -1], head: 66, indent: 44 };
    const below = drawArrows(view, { ...chart, docs: documents(view, unit) });
    drawVerdict(view, id, x, y + 26, verdict);
    view.ink.text(`${id}-unit`, x + chart.indent, below + 20, measure, NOTE);
    return below + 24;
  };
  const kept = cosine >= KEPT, light = isLight(weight);
  const below = panel("direction", 0, 0, "Direction (scaled to length 1)", length(now), "1 = its own length", {
    value: num(cosine), note: "cosine, batch to alone", good: kept, verdict: kept ? "kept" : "turned",
  });
  const bottom = panel("weight", x, wide ? 0 : below + 36, "Weight (true to size)", length(alone) / MEAN,
    "1 = a per-query mean’s length", {
      value: share(weight), note: "of a per-query mean", good: !light,
      verdict: light ? `${brief(weight)}× smaller, not ${MEAN}×` : "as it should be",
    });
  return { height: drawWeights(view, bottom + 36), says: sentence(view) };
}

const DATA = ["names", "widths", "alone", "gradients", "weights", "cosines"];

/** Every sentence that the data can lead to. */
function sentences(model) {
  const data = Object.fromEntries(DATA.map((key) => [key, model.get(key)]));
  return data.names.flatMap((loss) => data.widths.map((width) => sentence(outcome({ ...data, loss, width }))));
}

export default {
  render: ({ model, el }) =>
    mount({
      model, el, draw, longest: longestOf(sentences(model)),
      label: "Pushes on our query’s scores scaled to length 1 and true to size, and the weight that each loss leaves at every width",
      traits: ["loss", "width", ...DATA],
      controls: [
        radios("loss", { label: "Loss", options: model.get("names").map((name) => [name, name]), inline: true }),
        steps("width", { label: "Longest list in the batch", values: model.get("widths"), say: (w) => plural(w, "document") }),
      ],
    }),
};
