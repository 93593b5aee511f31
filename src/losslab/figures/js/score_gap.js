/**
 * The score gap: what a temperature makes of a positive and a negative that are nearly as close, and who is pushed how hard.
 * Traits: `temperature`, and the cosines `positive`, `negative` and `mislabelled`: a twin of the positive, as right as it is but labelled a negative.
 */
import { infoNceRow } from "./contrastive.js";
import { NOTE, SIZE, brief, linear, longestOf, mount, num, range, signed } from "./kit.js";
import { balance, drawCurves, drawFacts, portion } from "./plots.js";
import { drawPushes } from "./pushes.js";
import { FINE, TEMPERATURES, temperature } from "./temperature.js";

const REACH = 6; // logits to either side of the positive
const NAMES = ["positive", "negative", "twin"], LOOKS = ["ll-best", "ll-negative", "ll-good"];
const COLOURS = ["ll-is-best", "ll-is-other", "ll-is-wrong"], LINES = ["ll-line-best", "ll-line-other", "ll-line-wrong"];

/** exp(gap) as a reader can take it in. */
const times = (odds) => (odds >= 1e5 ? ">100,000" : odds < 0.005 ? "<0.01" : brief(odds));

/** What there is to draw and to say for the traits. */
function outcome({ temperature, positive, negative, mislabelled }) {
  const cosines = [positive, negative, mislabelled], row = infoNceRow(cosines, 0, temperature), [p, , q] = row.probabilities;
  const right = p + q; // with the twin labelled right too, the loss is −ln(p + q)
  return {
    temperature, cosines, row, gap: (positive - negative) / temperature, share: row.shares[2],
    docs: NAMES.map((name, i) => {
      const is = -row.gradient[i] * temperature;
      return { key: name, name, look: LOOKS[i], is, aim: i === 1 ? is : row.probabilities[i] * (1 / right - 1) };
    }),
  };
}

/** The figure in words. */
function sentence({ temperature, cosines, gap, share }) {
  const [s, hard, twin] = cosines.map((c) => num(c, 2));
  const makes = `At τ = ${temperature} the gap between ${s} and ${hard} is ${num(gap, 2)} logits`;
  const likely = `the positive is ${times(Math.exp(gap))} times as likely as the negative`;
  return `${makes}: ${likely}. The twin, at ${twin} as right as the positive, takes ${portion(share)} of the push on negatives.`;
}

const marks = [
  (x, y) => `M${x - 7} ${y}a7 7 0 1 0 14 0a7 7 0 1 0 -14 0Z`,
  (x, y) => `M${x - 8} ${y}L${x} ${y - 8}L${x + 8} ${y}L${x} ${y + 8}Z`,
  (x, y) => `M${x - 6.5} ${y - 6.5}H${x + 6.5}V${y + 6.5}H${x - 6.5}Z`,
];

/** The cosines on their ruler, and fanned out below it as logits, each from the positive's. Returns the y below. */
function drawFan({ ink, room, measure, cosines, temperature }, y) {
  const wide = room >= 600, left = wide ? 136 : 8, right = room - 8;
  const above = y + (wide ? 62 : 92), below = above + (wide ? 96 : 118);
  const sx = linear([0, 1], [left, right]), sz = linear([-REACH, REACH], [left, right]);
  const logits = cosines.map((s) => (s - cosines[0]) / temperature);
  const order = [0, 1, 2].sort((a, b) => cosines[a] - cosines[b] || b - a);
  ink.text("fan-title", 0, y + 14, "What the softmax sees", "ll-strong");
  for (const [key, line] of [["cosine", above], ["logit", below]]) {
    ink(`fan-${key}-line`, "path", { d: `M${left} ${line}H${right}`, class: "ll-zero" });
  }
  for (const tick of [0, 0.2, 0.4, 0.6, 0.8, 1]) {
    ink(`fan-mark-${tick}`, "path", { d: `M${sx(tick)} ${above - 4}v8`, class: "ll-tick" });
  }
  for (let tick = -REACH; tick <= REACH; tick += 1) ink(`fan-logit-${tick}`, "path", { d: `M${sz(tick)} ${below - 4}v8`, class: "ll-tick" });

  const ends = logits.map((z) => Math.max(-REACH, Math.min(REACH, z)));
  order.forEach((i) => {
    const d = `M${sx(cosines[i])} ${above}L${sz(ends[i])} ${below}`;
    ink(`fan-${NAMES[i]}-ray`, "path", { d, class: LINES[i] });
  });
  for (const [key, name, note, line] of [["cosine", "Cosines", "as they are", above], ["logit", "Logits", "from the positive’s", below]]) {
    ink.text(`fan-${key}`, 0, wide ? line - 2 : line - (key === "cosine" ? 52 : 16), name, "ll-strong ll-halo");
    const aside = wide ? [0, line + 16] : [measure(`${name} `, SIZE.text, 600) + 4, line - (key === "cosine" ? 52 : 16)];
    ink.text(`fan-${key}-note`, ...aside, note, `${NOTE} ll-halo`);
  }
  for (const end of [0, 1]) ink.text(`fan-end-${end}`, sx(end), above + 20, String(end), `${NOTE} ll-halo`, "middle");
  const names = order.map((i) => ({ i, x: sx(cosines[i]), width: measure(NAMES[i], SIZE.small, 600) }));
  balance(names, left - 8, room).forEach((x, n) => {
    const { i } = names[n];
    ink.text(`fan-${NAMES[i]}-name`, x, above - 30, NAMES[i], `ll-small ll-strong ${COLOURS[i]}`, "middle");
    ink.text(`fan-${NAMES[i]}-cosine`, x, above - 14, num(cosines[i], 2), `ll-small ${COLOURS[i]}`, "middle");
  });
  const values = order.map((i) => {
    const off = Math.abs(logits[i]) > REACH, text = signed(logits[i], 2);
    return { i, text: off ? (logits[i] < 0 ? `← ${text}` : `${text} →`) : text, x: sz(ends[i]) };
  }).map((value) => ({ ...value, width: measure(value.text, SIZE.small, 600) }));
  balance(values, left - 8, room).forEach((x, n) => {
    const { i, text } = values[n];
    ink.text(`fan-${NAMES[i]}-logit`, x, below + 26, text, `ll-small ll-strong ${COLOURS[i]}`, "middle");
  });
  for (const i of order) {
    ink(`fan-${NAMES[i]}-cosine-now`, "path", { d: marks[i](sx(cosines[i]), above), class: `ll-now ${COLOURS[i]}` });
    if (Math.abs(logits[i]) <= REACH) ink(`fan-${NAMES[i]}-logit-now`, "path", { d: marks[i](sz(ends[i]), below), class: `ll-now ${COLOURS[i]}` });
  }
  return below + 30;
}

function draw(base) {
  const view = { ...base, ...outcome(base) }, { room, temperature, positive, negative, mislabelled, row, gap, share, docs } = view;
  const wide = room >= 680, [s, hard] = [num(positive, 2), num(negative, 2)];
  let y = drawFacts(view, 0, [
    { key: "gap", title: "Gap in logits", value: num(gap, 2), note: `(${s} − ${hard})/${temperature}` },
    { key: "odds", title: "Odds", value: times(Math.exp(gap)), note: "positive to negative, exp(gap)" },
    { key: "loss", title: "Loss (nats)", value: num(row.loss, 3), note: "of all three, twin a negative" },
  ]);
  y = drawFan(view, y + 32) + 36;
  const breadth = wide ? room * 0.48 : room;
  const below = drawPushes(view, { x: 0, y, breadth, docs, domain: [1.1, -1.1], ticks: [1, 0.5, 0, -0.5, -1] });
  view.ink.text("push-note", breadth, below + 18, "should be: with the twin labelled right", NOTE, "end");
  const to = mislabelled > negative ? "to 100%" : mislabelled < negative ? "to 0%" : "and 50%";
  const height = drawCurves(view, {
    id: "share", title: "The twin’s share of the push", note: `from 50% as τ → ∞ ${to} as τ → 0`,
    x: wide ? room * 0.54 : 0, y: wide ? y : below + 54, breadth: wide ? room * 0.46 : room, lines: 1, gutter: 36,
    curves: [{
      key: "twin", name: "twin", value: portion(share), line: "ll-line-wrong ll-broken", look: "ll-is-wrong", square: true,
      values: FINE.map((t) => infoNceRow(view.cosines, 0, t).shares[2]), now: share,
    }],
    domain: [1, 0], ticks: [0, 0.25, 0.5, 0.75, 1], limits: [[0.5, "1/2"]], show: (t) => `${num(100 * t, 0)}%`,
  });
  return { height: Math.max(height, below + 22), says: sentence(view) };
}

const LONGEST = longestOf(
  [[1, 0.99, 0.5], [0.7, 0.65, 0.75], [0, 1, 0.5], [0.5, 1, 0.99], [1, 0, 0.05], [0.25, 0.75, 0.7]].flatMap(([positive, negative, mislabelled]) =>
    TEMPERATURES.map((temperature) => sentence(outcome({ temperature, positive, negative, mislabelled }))),
  ),
);

const cosine = (trait, label) => range(trait, { label, min: 0, max: 1, step: 0.01, say: (s) => num(s, 2) });

export default {
  render: ({ model, el }) =>
    mount({
      model, el, draw, longest: LONGEST,
      label: "Three cosines fanned out into logits by the temperature, the push on each score, and the mislabelled twin’s share of it",
      traits: ["temperature", "positive", "negative", "mislabelled"],
      controls: [
        temperature(),
        cosine("positive", "Positive’s cosine"),
        cosine("negative", "Hard negative’s cosine"),
        cosine("mislabelled", "Twin’s cosine (right, labelled a negative)"),
      ],
    }),
};
