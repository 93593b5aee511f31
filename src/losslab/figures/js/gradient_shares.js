/**
 * Who gets the gradient: the negatives of a query, hardest first, with each one's share of the push on negatives.
 * Traits: `query`, `temperature`, `width` (documents in the batch, one of `widths`), and what was measured, for each query:
 * `queries` (its text), `positives` (cosine), `negatives` (cosines, in the order in which they join the batch), `names` of the
 * negatives that can be among the hardest, `mislabelled` (index of a negative that is really right, or −1).
 */
import { infoNceRow } from "./contrastive.js";
import { NOTE, SIZE, brief, fit, linear, longestOf, mount, num, percent, plural, steps } from "./kit.js";
import { drawCurves, drawFacts, portion } from "./plots.js";
import { select } from "./select.js";
import { FINE, TEMPERATURES, temperature } from "./temperature.js";

const MOST = 10; // negatives that are named

/** The hardest first; of equal ones the one that joined the batch first. */
const byHardness = (scores) => [...scores.keys()].sort((a, b) => scores[b] - scores[a] || a - b);

/** The curves of a query in a batch. They do not depend on the temperature, so they are worked out once for each batch. */
function curvesOf({ positive, scores, mislabelled, order }) {
  const rows = FINE.map((t) => infoNceRow([positive, ...scores], 0, t));
  return {
    effective: rows.map((row) => row.effective),
    hardest: rows.map((row) => row.shares[1 + order[0]]),
    mislabelled: mislabelled < 0 ? [] : rows.map((row) => row.shares[1 + mislabelled]),
  };
}

/** What there is to draw and to say for the traits. */
function outcome({ query, temperature, width, positives, negatives, names, mislabelled }) {
  const scores = negatives[query].slice(0, width - 1), positive = positives[query];
  const row = infoNceRow([positive, ...scores], 0, temperature);
  const order = byHardness(scores), wrong = mislabelled[query] < scores.length ? mislabelled[query] : -1;
  const bars = order.map((j, place) => ({ j, place, name: names[query][j], score: scores[j], share: row.shares[1 + j], wrong: j === wrong }));
  const shown = bars.slice(0, MOST), stray = bars.find((bar) => bar.wrong && bar.place >= MOST);
  if (stray) shown[MOST - 1] = stray;
  return {
    query, temperature, width, scores, positive, row, order, bars, shown, mislabelled: wrong, labelled: mislabelled[query] >= 0,
    hardest: bars[0], wrong: bars.find((bar) => bar.wrong), top: bars.slice(0, MOST).reduce((sum, { share }) => sum + share, 0),
    rest: bars.filter((bar) => !shown.includes(bar)).reduce((sum, { share }) => sum + share, 0),
  };
}

/** The figure in words. */
function sentence({ temperature, bars, hardest, wrong, labelled, top, row }) {
  const n = bars.length, gets = `gets ${portion(hardest.share)} of the gradient on negatives`;
  const ten = n > MOST ? ` and the ${MOST} hardest together ${portion(top)}` : "";
  const spread = `as if there were ${brief(row.effective)} equal negatives`;
  const base = `At τ = ${temperature} the hardest of ${n} negatives, ${hardest.name}, ${gets}${ten}, ${spread}.`;
  if (!labelled) return base;
  if (!wrong) return `${base} The negative that is really right has not joined this batch.`;
  if (wrong === hardest) return `${base} It is really right, and is pushed away all the same.`;
  return `${base} ${wrong.name} is really right, and is pushed away with ${portion(wrong.share)}.`;
}

/** `fit`, once for each name, room and weight: what is cut does not change with the temperature, and measuring is slow. */
const cuts = new WeakMap();
function fitted(measure, name, most, weight) {
  if (!cuts.has(measure)) cuts.set(measure, new Map()); // a new one for every width of the figure
  const known = cuts.get(measure), key = `${weight} ${most} ${name}`;
  if (!known.has(key)) known.set(key, fit(name, most, (text) => measure(text, SIZE.small, weight)));
  return known.get(key);
}

/** The negatives as bars of their share, the hardest named and the others summed. */
function drawBars(view, y) {
  const { ink, room, measure, shown, bars, rest, labelled } = view;
  const wide = room >= 600, n = bars.length, tag = "really right";
  const share = wide ? 62 : 0, cosine = wide ? 324 : room - 66; // where the column of cosines ends
  const left = wide ? cosine + 16 : 0, right = room - share;
  const pitch = wide ? 25 : 37, sx = linear([0, 1], [left, right]);
  ink.text("bars-title", 0, y + 14, "Each negative’s share of that push", "ll-strong");
  ink.text("bars-note", 0, y + 34, "hardest first", NOTE);
  ink.text("bars-cosine", cosine, y + 34, "cosine", NOTE, "end");
  ink.text("bars-share", wide ? left : room, y + 34, "share", NOTE, wide ? "start" : "end");
  const start = y + 44, count = MOST + 1, bottom = start + count * pitch + (!wide && labelled ? 17 : 0);
  for (const tick of [0, 0.25, 0.5, 0.75, 1]) {
    if (wide) ink(`bars-grid-${tick}`, "path", { d: `M${sx(tick)} ${start}V${bottom}`, class: tick ? "ll-grid" : "ll-zero" });
    const anchor = wide || tick % 1 ? "middle" : tick ? "end" : "start";
    ink.text(`bars-tick-${tick}`, sx(tick), bottom + 18, percent(tick, 0), NOTE, anchor);
  }
  let top = start, even = "";
  const rows = shown.map((bar) => ({ ...bar, key: bar.place === shown.indexOf(bar) ? bar.place : "stray" }));
  if (n > shown.length) rows.push({ key: "rest", name: `the other ${n - shown.length}`, share: rest });
  for (const { key, name, place, score, share: part, wrong } of rows) {
    const base = top + (wide ? 17 : 16), look = wrong ? "ll-is-wrong ll-strong" : "", id = `bar-${key}`;
    const [bar, height] = wide ? [top + 4, 17] : [top + 22, 9];
    const space = cosine - 66 - 22 - (wide && wrong ? measure(` ${tag}`, SIZE.small, 600) : 0);
    const text = fitted(measure, name, space, wrong ? 600 : 400);
    if (place !== undefined) {
      ink.text(`${id}-place`, 16, base, String(place + 1), NOTE, "end");
      ink.text(`${id}-cosine`, cosine, base, num(score, 3), NOTE, "end");
    }
    ink.text(`${id}-name`, 24, base, text, `ll-small ${look}`);
    if (wrong) {
      const [x, line] = wide ? [24 + measure(`${text} `, SIZE.small, 600), base] : [24, top + 47];
      ink.text("bars-tag", x, line, wide ? tag : `${tag}, pushed away all the same`, "ll-small ll-is-wrong");
    }
    const kind = wrong ? "ll-wrong" : key === "rest" ? "ll-other" : "ll-negative";
    ink(`${id}-bar`, "rect", { x: left, y: bar, width: Math.max(0, sx(part) - left), height, class: kind });
    ink.text(id, wide ? sx(part) + 7 : room, base, portion(part), `ll-small ll-strong ${wrong ? "ll-is-wrong" : ""}`, wide ? "start" : "end");
    if (sx(1 / n) > left + 4) even += `M${sx(1 / n)} ${bar - 3}v${height + 6}`;
    top += pitch + (wrong && !wide ? 17 : 0);
  }
  ink("bars-even", "path", { d: `${even}M${left + 1} ${bottom + 27}v14`, class: "ll-limit" });
  ink.text("bars-even-name", left + 9, bottom + 39, `equal shares: 1/${n} = ${percent(1 / n)}`, NOTE);
  return bottom + 42;
}

/** Lays the parts out. */
function draw(base) {
  const { room } = base, wide = room >= 600, now = outcome(base), view = { ...base, ...now };
  const { row, bars, hardest, wrong, positive, width, temperature, curves } = view;
  const n = bars.length, lost = 1 - row.probabilities[0];
  let y = drawFacts(view, 0, [
    { key: "loss", title: "Loss (nats)", value: num(row.loss, 3), note: `ln ${width} = ${num(Math.log(width), 3)} if it knew nothing` },
    { key: "chance", title: "p of the positive", value: portion(row.probabilities[0]), note: `rank ${row.rank} of ${width}, cosine ${num(positive, 3)}` },
    { key: "push", title: "Push on the negatives", value: brief(-row.gradient[0]), note: "(1 − p)/τ, shared out below" },
  ]);
  y = drawBars(view, y + 30) + 34;
  const breadth = wide ? room * 0.47 : room, given = curves(view);
  const below = drawCurves(view, {
    id: "eff", title: "Effective number of negatives", note: `from 1 as τ → 0 to ${n} as τ → ∞`,
    x: 0, y, breadth, lines: wide && wrong ? 2 : 1, gutter: 56,
    curves: [{
      key: "n", name: "exp(entropy of the shares)", value: brief(row.effective), line: "ll-line-ink", look: "ll-is-ink",
      values: given.effective, now: row.effective,
    }],
    domain: [n, 1], ticks: [1, 3, 10, 30, 100].filter((t) => t < 0.75 * n), log: true, limits: [[n, `all ${n}`], [1, ""]],
  });
  const pair = [{
    key: "hard", name: "the hardest", value: portion(hardest.share), line: "ll-line-ink", look: "ll-is-ink",
    values: given.hardest, now: hardest.share,
  }];
  if (wrong) pair.push({
    key: "wrong", name: wrong === hardest ? "which is really right" : "the one that is really right", value: portion(wrong.share),
    line: "ll-line-wrong ll-broken", look: "ll-is-wrong", square: true, values: given.mislabelled, now: wrong.share,
  });
  const height = drawCurves(view, {
    id: "share", title: "Share of the hardest", note: `from 100% as τ → 0 to 1/${n} as τ → ∞`,
    x: wide ? room - breadth : 0, y: wide ? y : below + 34, breadth, lines: wrong || wide ? pair.length : 1, gutter: 56, curves: pair,
    domain: [1, 0], ticks: [0, 0.25, 0.5, 0.75, 1], limits: [[1, ""], [1 / n, `1/${n}`]], show: (t) => percent(t, 0),
  });
  return { height, says: sentence(view), temperature };
}

const DATA = ["queries", "widths", "positives", "negatives", "names", "mislabelled"];

/** Every sentence that the controls can lead to. */
function sentences(model) {
  const data = Object.fromEntries(DATA.map((key) => [key, model.get(key)]));
  return data.queries.flatMap((_, query) =>
    data.widths.flatMap((width) => TEMPERATURES.map((temperature) => sentence(outcome({ ...data, query, width, temperature })))),
  );
}

export default {
  render({ model, el }) {
    const cache = new Map();
    const curves = (now) => {
      const key = `${now.query} ${now.width}`;
      if (!cache.has(key)) cache.set(key, curvesOf(now));
      return cache.get(key);
    };
    return mount({
      model, el, draw: (view) => draw({ ...view, curves }), longest: longestOf(sentences(model)),
      label: "A query’s negatives with each one’s share of the gradient, their effective number and the hardest one’s share at every temperature",
      traits: ["query", "temperature", "width", ...DATA],
      controls: [
        temperature(),
        steps("width", { label: "Batch width", values: model.get("widths"), say: (w) => plural(w, "document") }),
        select("query", { label: "Query", options: model.get("queries").map((text, i) => [i, text]) }),
      ],
    });
  },
};
