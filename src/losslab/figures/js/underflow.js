/**
 * Underflow: a token far below the rest, its loss computed in two orders. log(softmax) takes the log of a probability that a number
 * format may no longer hold; log-softmax never forms it.
 * Traits: `gap` (how far the token's logit lies below the rest), `others` (how many tokens those are), `format`, and `rest`, the
 * mean loss of the other 99 tokens of its text.
 */
import { NOTE, SIZE, axis, count, linear, logarithmic, longestOf, mount, num, plural, radios, steps } from "./kit.js";
import { drawFacts } from "./plots.js";
import { KINDS, bitsLeft, exactLoss, lossOf } from "./rounded_loss.js";

/** Stops that every format holds exactly: close together where one of them fails. */
const GAPS = [[1, 20, 0.25], [20, 84, 1], [84, 106, 0.5], [106, 200, 2], [200, 700, 20], [700, 760, 4], [760, 801, 20]].flatMap(
  ([from, to, step]) => Array.from({ length: Math.ceil((to - from) / step) }, (_, i) => from + i * step),
);
const OTHERS = [1, 10, 100, 1000, 10000, 100000];
const TOKENS = 100, PLACE = 62; // of the text, and where in it our token stands
const LIMIT = 2; // nats: room that is left beyond the last number
const RIGHT = "ll-small ll-is-right", WRONG = "ll-small ll-is-wrong";

const power = (e) => `2${String(e).replace(/./g, (sign) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(sign)])}`;
const nats = (loss) => (loss === Infinity ? "∞" : num(loss, 3));

/** exp(−loss) as 0.269 or 1.4e−45, also where no double holds it. */
function tiny(loss) {
  if (loss < 6.9) return num(Math.exp(-loss), 3);
  if (loss === Infinity) return "0";
  const ten = -loss / Math.LN10, e = Math.floor(ten), digits = num(10 ** (ten - e), 1);
  return digits === "10.0" ? `1.0e${num(e + 1, 0)}` : `${digits}e${num(e, 0)}`;
}

/** A perplexity with three digits after the point, or four that count. */
const confusion = (value) => (value === Infinity ? "∞" : num(value, value < 999.95 ? 3 : 1));

/** What there is to draw and to say for the traits. */
function outcome({ gap, others, format, rest }) {
  const kind = KINDS[format], { p, wrong, right } = lossOf(gap, others, kind);
  const text = (loss) => Math.exp((loss + (TOKENS - 1) * rest) / TOKENS);
  return {
    gap, others, rest, kind, p, wrong, right, exact: exactLoss(gap, others), bits: bitsLeft(p, kind), off: nats(wrong) !== nats(right),
    is: text(wrong), should: text(right),
  };
}

/** The figure in words. */
function sentence({ gap, others, kind, p, wrong, right, exact, bits, off, is, should }) {
  const start = `A token ${gap} below ${others > 1 ? count(others) : "one"} other${others > 1 ? "s" : ""} has probability ${tiny(exact)}.`;
  const kept = !p ? `${kind.name} makes it 0, for its smallest number is ${power(kind.least)}`
    : bits < kind.bits ? `${kind.name} keeps ${bits} of ${kind.bits} bits of it` : `${kind.name} keeps all ${kind.bits} bits of it`;
  const [a, b] = [confusion(is), confusion(should)];
  const gives = off ? `log(softmax) gives ${nats(wrong)} instead of ${nats(right)}` : `log(softmax) gives ${nats(wrong)}, as it should`;
  return `${start} ${kept}: ${gives}, and ${TOKENS} tokens with it have perplexity ${a === b ? a : `${a} instead of ${b}`}.`;
}

/** Where along −ln p a format begins to lose bits, has its smallest number, and rounds to 0. */
const ends = ({ low, least }) => ({ normal: -low * Math.LN2, last: -least * Math.LN2, zero: (1 - least) * Math.LN2 });

const tenth = (px) => Math.round(10 * px) / 10;

/**
 * Both orders over a stretch of −ln p, as points: fine where one of them climbs in stairs that can be seen, else few. `fell` is where
 * the probability becomes 0.
 */
function linesOf(kind, others, from, to, pieces) {
  const stairs = [], smooth = [], step = (to - from) / pieces, last = -kind.least * Math.LN2, log = Math.log(others);
  const put = (line, x, v) => {
    if (line.length > 1 && line.at(-1)[1] === v && line.at(-2)[1] === v) line.at(-1)[0] = x; // on along the same stair
    else line.push([x, v]);
  };
  let fell = null;
  for (let x = Math.max(from, Math.log(others + 1)), end = false; !end; ) {
    end = x >= to;
    const at = Math.min(x, to), gap = Math.max(0, at + Math.log1p(-Math.exp(-at)) - log), one = lossOf(gap, others, kind);
    if (one.p) put(stairs, at, one.wrong);
    else fell ??= at;
    put(smooth, at, one.right);
    const stair = Math.max(Math.exp(at - last), 2 ** (Math.floor(Math.log2(at)) + 1 - kind.bits));
    x += stair < 2 * step ? 8 * step : step;
  }
  return { stairs, smooth, fell };
}

/** Both orders around the token, and below them, on the same axis, the numbers that the format has there. Returns the y below. */
function drawOrders(view, y) {
  const { ink, room, hatch, kind, others, exact, wrong, right, p, off } = view, { normal, last, zero } = ends(kind);
  const wide = room >= 600, reach = wide ? 14 : 9, left = 40, end = room - 6;
  const from = Math.max(Math.log(others + 1) - 0.5, Math.min(exact - 0.7 * reach, zero + LIMIT - reach)), to = from + reach;
  const lane = y + 84, top = lane + 20, bottom = top + (wide ? 190 : 170);
  const sx = linear([from, to], [left, end]), sy = linear([from, to], [bottom, top]);
  ink.text("orders-title", 0, y + 14, "One token’s loss in two orders (nats)", "ll-strong");
  [["wrong", "log(softmax): the probability first"], ["right", "log-softmax: no probability is formed"]].forEach(([key, name], i) => {
    ink(`orders-${key}-sample`, "path", { d: `M0 ${y + 31.5 + 20 * i}h28`, class: `ll-line-${key}` });
    ink.text(`orders-${key}-name`, 36, y + 36 + 20 * i, name, `ll-small ll-is-${key}`);
  });
  const ticks = Array.from({ length: reach }, (_, i) => Math.ceil(from) + i).filter((t) => t % 2 === 0 && sx(t) > left + 6 && sx(t) < end - 10);
  ink("lane", "path", { d: `M${left} ${lane}H${end}`, class: "ll-limit" });
  ink.text("lane-name", left - 8, lane + 5, "∞", "ll-strong ll-muted", "end");
  for (const [i, t] of ticks.entries()) ink(`grid-${i}`, "path", { d: `M${left} ${sy(t)}H${end}`, class: "ll-grid ll-plain" });
  ticks.forEach((t, i) => {
    ink.text(`level-${i}`, left - 8, sy(t) + 4.5, String(t), `${NOTE} ll-plain`, "end");
    ink.text(`tick-${i}`, sx(t), bottom + 20, String(t), `${NOTE} ll-plain`, "middle");
  });
  ink("foot", "path", { d: `M${left} ${bottom}H${end}`, class: "ll-zero" });
  ink("here", "path", { d: `M${sx(Math.min(exact, to))} ${lane}V${bottom}`, class: "ll-here-line ll-plain" });

  const { stairs, smooth, fell } = linesOf(kind, others, from, to, (end - left) / 1.5), path = (points) => points.map(([x, v]) => `${tenth(sx(x))} ${tenth(sy(v))}`).join("L");
  const falls = fell === null ? "" : stairs.length ? `V${lane}H${end}` : `M${left} ${lane}H${end}`;
  ink("orders-wrong", "path", { d: `${stairs.length ? `M${path(stairs)}` : ""}${falls}`, class: "ll-line-wrong ll-plain" });
  ink("orders-right", "path", { d: `M${path(smooth)}`, class: "ll-line-right ll-plain" });
  if (off && p) ink("orders-apart", "path", { d: `M${sx(exact)} ${sy(wrong)}V${sy(right)}`, class: "ll-gap" });
  if (exact <= to) ink("right-now", "circle", { cx: sx(exact), cy: sy(right), r: 7, class: "ll-right-outline ll-plain" });
  else ink.text("beyond", end - 4, bottom - 10, `now ${nats(right)}, beyond →`, `${RIGHT} ll-strong ll-halo`, "end");
  ink("wrong-now", "circle", { cx: sx(Math.min(exact, to)), cy: p ? sy(wrong) : lane, r: off ? 6 : 4, class: `ll-now ll-plain ${off ? "ll-is-wrong" : "ll-is-ink"}` });

  // The format's numbers: too close to be told apart, then one by one, then none.
  ink.text("ladder-x", end, bottom + 42, "exact −ln p (nats)", NOTE, "end");
  const ladder = bottom + (wide ? 52 : 74), high = 22, scale = (end - left) / reach;
  ink.text("ladder-title", 0, wide ? bottom + 42 : ladder - 10, `The numbers that ${kind.name} has there`, "ll-small ll-strong");
  const single = Math.floor(scale / 3.5), within = (x) => Math.min(end, Math.max(left, sx(x)));
  const block = (a, b) => `M${within(a)} ${ladder}H${within(b)}V${ladder + high}H${within(a)}Z`;
  ink("ladder-few", "path", { d: block(normal, zero), class: "ll-band ll-plain" });
  ink("ladder-all", "path", { d: block(from, normal), class: "ll-good ll-bar ll-plain" });
  let marks = "";
  for (let k = single; k >= 1; k--) if (sx(last - Math.log(k)) <= end && sx(last - Math.log(k)) >= left) marks += `M${sx(last - Math.log(k)).toFixed(1)} ${ladder}v${high}`;
  ink("ladder-marks", "path", { d: marks || "M0 0", class: "ll-tick ll-plain" });
  const nothing = { x: within(zero), y: ladder, width: end - within(zero), height: high };
  ink("ladder-zero", "rect", { ...nothing, class: "ll-ghost ll-solid ll-plain", fill: hatch });
  ink("ladder-foot", "path", { d: `M${left} ${ladder + high}H${within(zero)}`, class: "ll-zero ll-plain" });
  const kept = p ? -Math.log(p) : Math.min(Math.max(exact, zero + 10 / scale), to - 10 / scale), at = ladder + high / 2;
  if (exact <= to) ink("ladder-exact", "path", { d: `M${sx(exact)} ${ladder - 6}v${high + 12}`, class: "ll-line-right ll-plain" });
  ink("ladder-now", "circle", { cx: sx(kept), cy: at, r: 6, class: `ll-now ll-plain ${off ? "ll-is-wrong" : "ll-is-ink"}` });

  // How many bits the numbers of each power of two keep.
  const every = Math.ceil(22 / (scale * Math.LN2)), row = ladder + high + 19;
  ink.text("bits-name", left - 8, row, "bits", NOTE, "end");
  for (let e = kind.least; ; e += every) {
    const x = -(e + 0.5) * Math.LN2, n = Math.min(kind.bits, e - kind.least + 1);
    if (sx(x) < left + 8 || e > 0) break;
    if (sx(x) <= end - 8) ink.text(`bits-${(e - kind.least) / every}`, sx(x), row, String(n), `${n < kind.bits ? "ll-small" : NOTE} ll-plain`, "middle");
  }
  if (nothing.width >= 56) ink.text("bits-zero", end, row, "becomes 0", `${WRONG} ll-strong`, "end");
  return row + 6;
}

/** How far down each format goes, and what it makes of the token. Returns the y below. */
function drawReach(view, x, y, breadth) {
  const { ink, hatch, gap, others, kind: now, exact, measure } = view, left = x + 74, right = x + breadth - 66;
  const sx = logarithmic([1, 1000], [left, right]), first = y + 58, pitch = 32, stop = Math.min(right, sx(exact));
  ink.text("reach-title", x, y + 14, "log(softmax) here in every format", "ll-strong");
  let at = x;
  for (const [key, text, look] of [["all", "all bits", "ll-good ll-bar"], ["few", "fewer", "ll-band"], ["none", "0, loss ∞", "ll-ghost ll-solid"]]) {
    ink(`reach-key-${key}`, "rect", { x: at + 0.5, y: y + 27.5, width: 13, height: 11, class: look, fill: key === "none" ? hatch : "" });
    ink.text(`reach-key-${key}-name`, at + 20, y + 38, text, NOTE);
    at += 20 + measure(text) + 16;
  }
  Object.values(KINDS).forEach((kind, i) => {
    const { normal, zero } = ends(kind), top = first + pitch * i, { wrong, right: should } = lossOf(gap, others, kind), mine = kind === now;
    const key = `reach-${kind.name}`, bar = (a, b) => ({ x: sx(a), y: top, width: sx(b) - sx(a), height: 14 });
    ink.text(`${key}-name`, x, top + 12, kind.name, mine ? "ll-small ll-strong" : NOTE);
    ink(`${key}-all`, "rect", { ...bar(1, normal), class: "ll-good ll-bar" });
    ink(`${key}-few`, "rect", { ...bar(normal, zero), class: "ll-band" });
    ink(`${key}-none`, "rect", { ...bar(zero, 1000), class: "ll-ghost ll-solid", fill: hatch });
    const off = nats(wrong) !== nats(should);
    ink.text(key, x + breadth, top + 12, nats(wrong), `ll-small ${mine ? "ll-strong" : ""} ${off ? "ll-is-wrong" : mine ? "" : "ll-muted"}`, "end");
  });
  const below = first + 4 * pitch - 12;
  ink("reach-halo", "path", { d: `M${stop} ${first - 8}V${below}`, class: "ll-frame ll-frame-halo" });
  ink("reach-here", "path", { d: `M${stop} ${first - 8}V${below}`, class: "ll-here" });
  axis(ink, "reach-x", { side: "bottom", scale: sx, ticks: [1, 10, 100, 1000], at: below, show: count });
  ink.text("reach-x-name", right, below + 40, "exact −ln p (log scale)", NOTE, "end");
  return below + 44;
}

/** The text that the token stands in: its tokens, and what they make of the two losses. Returns the y below. */
function drawText(view, x, y, breadth) {
  const { ink, rest, wrong, right, off, is, should } = view, columns = 20, pitch = Math.min(17, breadth / columns), side = pitch - 3;
  ink.text("text-title", x, y + 14, `A text of ${TOKENS} tokens`, "ll-strong");
  const cell = (i) => [x + (i % columns) * pitch, y + 30 + Math.floor(i / columns) * pitch];
  if (view.cells.at !== `${x} ${y} ${pitch}`) { // the same at every step of a slider
    view.cells.at = `${x} ${y} ${pitch}`;
    view.cells.d = Array.from({ length: TOKENS }, (_, i) => (i === PLACE ? "" : `M${cell(i)}h${side}v${side}h${-side}Z`)).join("");
  }
  ink("text-cells", "path", { d: view.cells.d, class: "ll-track ll-plain" });
  const [cx, cy] = cell(PLACE);
  ink("text-cell", "rect", { x: cx - 1.5, y: cy - 1.5, width: side + 3, height: side + 3, class: off ? "ll-wrong" : "ll-query" });
  const below = y + 30 + 5 * pitch + 20, mean = (loss) => `(${nats(loss)} + ${TOKENS - 1} × ${num(rest, 2)})/${TOKENS}`;
  [["is", "is", wrong, is, off ? WRONG : "ll-small"], ["should", "should be", right, should, RIGHT]].forEach(([key, name, loss, value, look], i) => {
    const line = below + 44 * i;
    ink.text(`text-${key}-name`, x, line, name, look);
    ink.text(`text-${key}-mean`, x + 68, line, `mean ${mean(loss)}`, look);
    ink.text(`text-${key}`, x + 68, line + 19, `perplexity ${confusion(value)}`, `${look} ll-strong`);
  });
  return below + 68;
}

function draw(base) {
  const view = { ...base, ...outcome(base) }, { room, kind, p, wrong, right, bits, off, is, should } = view;
  const wide = room >= 680, far = confusion(is) !== confusion(should), note = off ? RIGHT : NOTE;
  const keeps = p ? (bits < kind.bits ? `${plural(bits, "bit")} of ${kind.bits} left` : `all ${kind.bits} bits`) : `below half of ${power(kind.least)}`;
  const y = drawFacts(view, 0, [
    { key: "kept", title: "Probability kept", value: p ? tiny(-Math.log(p)) : "0", note: keeps, look: off ? "ll-is-wrong" : "" },
    { key: "loss", title: "−log(softmax)", value: nats(wrong), note: off ? `should be ${nats(right)}` : "as it should be", look: off ? "ll-is-wrong" : "", noted: note },
    { key: "perplexity", title: "Perplexity", value: confusion(is), note: `of ${TOKENS} tokens, ${far ? `should be ${confusion(should)}` : "as it should be"}`, look: far ? "ll-is-wrong" : "", noted: far ? RIGHT : NOTE },
  ]);
  const below = drawOrders(view, y + 34) + 40, half = wide ? room * 0.53 : room;
  const reach = drawReach(view, 0, below, half);
  const text = drawText(view, wide ? room * 0.58 : 0, wide ? below : reach + 34, wide ? room * 0.42 : room);
  return { height: Math.max(reach, text), says: sentence(view) };
}

export default {
  render({ model, el }) {
    const rest = model.get("rest");
    const all = Object.keys(KINDS).flatMap((format) => OTHERS.flatMap((others) => GAPS.map((gap) => sentence(outcome({ gap, others, format, rest })))));
    return mount({
      model, el, draw, longest: longestOf(all, 8), extend: () => ({ cells: {} }),
      label: "A token’s loss by log(softmax) and by log-softmax, the numbers that a format has for its probability, and the perplexity of its text",
      traits: ["gap", "others", "format", "rest"],
      controls: [
        steps("gap", { label: "Right token’s logit", values: GAPS, say: (gap) => `${gap} below` }),
        steps("others", { label: "Competing tokens", values: OTHERS, say: count }),
        radios("format", { label: "Number format", options: Object.keys(KINDS).map((name) => [name, name]), inline: true }),
      ],
    });
  },
};
