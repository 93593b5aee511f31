/**
 * A padded batch of texts: which predictions are summed, which are counted, and what perplexity comes of it.
 * Traits: `extra` (columns added, as if somebody else's text were longer), `side` of the padding ("right", "left"), `shift` ("none",
 * "once", "twice"), `mask` ("both", "labels", "wrong"), `numerator` and `denominator` (are pads in it?), `row` and `place` (the cell
 * chosen, from 1), and what a model measured, in nats: `texts`, `right` and `left` (see batches.js and the Python class).
 */
import { RAISED, amount, write } from "./amounts.js";
import { SHIFTS, leaks, reads, score, unmasked, widthOf } from "./batches.js";
import { NOTE, SIZE, axis, count, linear, listed, longestOf, mount, num, plural, radios, range } from "./kit.js";
import { handles } from "./points.js";

const BARS = 52, TILE = 28, BELOW = 17, GAP = 3;
const other = (side) => (side === "right" ? "left" : "right");
const glyph = (token) => (token === " " ? "␣" : token);

/** What is wrong with the way that the batch is scored. */
function mistakes(view) {
  const { side, shift, mask, numerator, denominator, extra } = view, found = [];
  if (shift !== "once") found.push(shift === "none" ? "no shift" : "a second shift");
  if (!unmasked(view) && mask === "wrong") found.push(`a mask for padding on the ${other(side)}`);
  if (!unmasked(view) && mask === "labels" && leaks(view)) found.push("a mask of the label alone");
  if (numerator || denominator) found.push(`pads in ${unmasked(view) ? "numerator and denominator" : numerator ? "the numerator only" : "the denominator only"}`);
  if (view.read ?? reads(view, extra)) found.push("a model that reads the pads");
  return found;
}

/** The figure in one sentence. */
function sentence(view, { width, mean, rightMean }) {
  const found = listed(mistakes(view)), now = amount(Math.exp(mean)), right = amount(Math.exp(rightMean));
  if (!found) return `Padded on the ${view.side} to ${width} tokens, shifted once, pads neither summed nor counted: perplexity is ${right}, as for each text alone.`;
  const start = `${found[0].toUpperCase()}${found.slice(1)}: perplexity reads ${now}`;
  if (now === right) return `${start}, as it should, which is chance.`;
  return `${start} instead of ${right}, and the model looks ${mean < rightMean ? "better" : "worse"} than it is.`;
}

/** What the mask lets through, in words. */
function rule(view) {
  if (unmasked(view)) return "mask: never asked";
  if (view.mask === "wrong") return `mask: as if pads were on the ${other(view.side)}`;
  return view.mask === "both" ? "mask: logits and label of real tokens" : "mask: label of a real token";
}

/** The chosen cell in three lines: what it costs, what meets what, and whether that is in order. */
function words(batch, { texts, row, place }) {
  const { cells } = batch.rows[row - 1], q = place - 1, { token, from, nll, aim, summed, counted } = cells[q];
  const name = token === null ? "a pad" : `“${glyph(token)}”`, where = `place ${place} of text ${row}`;
  const head = `${name[0].toUpperCase()}${name.slice(1)}, ${where}`;
  const should = aim === null ? "it should be neither" : `it should be both, at ${num(aim, 2)} nats`;
  if (from < 0) {
    const lack = aim === null ? "No logits come before it: nothing can predict it." : "Its logits are sought where the text has not begun.";
    return [`${head}: not scored`, lack, aim === null ? "Neither summed nor counted, as it should be." : `Neither summed nor counted; ${should}.`];
  }
  const read = cells[from].token === null ? "a pad" : `“${glyph(cells[from].token)}”`;
  const meets = from === q ? `The logits of place ${place}, after ${read}, meet that very label.` : `The logits of place ${from + 1}, after ${read}, meet the label of place ${place}.`;
  const state = summed ? (counted ? "Summed and counted" : "Summed, not counted") : counted ? "Counted, not summed" : "Neither summed nor counted";
  const fine = aim === null ? !summed && !counted : summed && counted;
  const verdict = !fine ? `; ${should}` : aim !== null && num(aim, 2) !== num(nll, 2) ? `; it should be ${num(aim, 2)} nats` : ", as it should be";
  return [`${head}: ${num(nll, 2)} nats`, meets, `${state}${verdict}.`];
}

/** The sizes that the column leaves for a batch at its widest. */
function layout({ room, texts, left }) {
  const wide = room >= 600, gutter = wide ? 84 : 0, most = widthOf({ texts }, left.length - 1);
  const pitch = Math.min(36, (room - gutter + GAP) / most), pace = (wide ? 0 : 22) + BARS + GAP + TILE + BELOW;
  return { wide, gutter, pitch, side: pitch - GAP, pace, top: wide ? 54 : 74 };
}

/** What the marks mean, beside samples of them. Returns nothing: its room is `top` of the layout. */
function drawKey(view, plan, most) {
  const { ink, hatch, measure } = view;
  const items = [
    ["bar", `summed (tallest: ${num(most, 1)} nats)`, { class: "ll-best", y: -11, height: 13 }],
    ["tile", "counted", { class: "ll-good ll-thick", y: -10, height: 12 }],
    ["pad", "padding", { class: "ll-ghost", fill: hatch, y: -10, height: 12 }],
    ["aim", "should be", { class: "ll-right-outline ll-dashed", y: -10, height: 12 }],
  ];
  let x = 0, y = 14;
  for (const [name, text, { y: dy, height, ...look }] of items) {
    const wide = name === "bar" ? 8 : 14;
    if (!plan.wide && name === "tile") (x = 0), (y = 34);
    ink(`key-${name}-sample`, "rect", { x: x + 1, y: y + dy, width: wide, height, ...look });
    ink.text(`key-${name}`, x + wide + 7, y, text);
    x += wide + 7 + measure(text) + (plan.wide ? 18 : 12);
  }
  ink.text("key-rule", 0, y + 20, rule(view), NOTE);
}

/** One row: bars of what is summed, tiles of what is counted. */
function drawRow(view, plan, batch, r, tall) {
  const { ink, hatch } = view, { wide, gutter, pitch, side, pace, top } = plan, { cells, long } = batch.rows[r];
  const y = top + r * pace, base = y + (wide ? 0 : 22) + BARS;
  ink.text(`row-${r}-name`, 0, wide ? base + 12 : y + 14, `Text ${r + 1}`, "ll-strong");
  const note = plural(long, "token");
  ink.text(`row-${r}-note`, wide ? 0 : view.measure(`Text ${r + 1}`, SIZE.text, 600) + 10, wide ? base + 29 : y + 14, note, NOTE);
  const pads = { counted: "", "left-out": "", "bars-summed": "", "bars-left-out": "" }; // many alike: a path of each kind
  cells.forEach(({ token, t, nll, aim, pads: hatched, summed, counted }, q) => {
    const x = gutter + q * pitch, high = (v) => Math.max(1, v * tall);
    if (token === null) {
      pads[counted ? "counted" : "left-out"] += box(x + 1, base + GAP + 1, side - 2, TILE - 2, 3);
      if (nll !== null) pads[summed ? "bars-summed" : "bars-left-out"] += box(x + 0.5, base - high(nll), side - 1, high(nll), 0);
      return;
    }
    const key = `cell-${r}-${t}`; // a token keeps its marks wherever it stands
    const bar = (name, value, look) => ink(`${key}-${name}`, "rect", { x: x + 0.5, y: base - high(value), width: side - 1, height: high(value), ...look });
    const should = aim !== null, off = should && (!summed || Math.abs(nll - aim) > 5e-5);
    if (summed) bar("bar", nll, hatched ? { class: "ll-ghost ll-solid", fill: hatch } : { class: off || !should ? "ll-wrong" : "ll-best", fill: "" });
    else if (nll !== null && !should) bar("bar", nll, { class: "ll-ghost", fill: "none" });
    if (off) bar("should", aim, { class: summed && nll > aim ? "ll-right-outline ll-dashed" : "ll-line-right ll-thin" });
    const look = counted ? (should ? "ll-good ll-thick" : "ll-good ll-counted-wrong") : should ? "ll-right-outline ll-dashed ll-thick" : "ll-other";
    ink(`${key}-tile`, "rect", { x: x + 1, y: base + GAP + 1, width: side - 2, height: TILE - 2, rx: 3, class: look });
    ink.text(`${key}-token`, x + side / 2, base + GAP + 19, glyph(token), "ll-small", "middle");
  });
  const look = { counted: ["ll-ghost ll-counted-wrong", hatch], "left-out": ["ll-ghost", hatch], "bars-summed": ["ll-ghost ll-solid", hatch], "bars-left-out": ["ll-ghost", "none"] };
  for (const kind in pads) ink(`row-${r}-pads-${kind}`, "path", { d: pads[kind] || "M0 0", class: look[kind][0], fill: look[kind][1] });
}

/** Path of a box with round corners. */
const box = (x, y, width, height, r) => {
  const [left, top, w, h] = [x, y, width - 2 * r, height - 2 * r].map((v) => v.toFixed(1));
  if (!r) return `M${left} ${top}h${w}v${h}h${-w}Z`;
  const turn = (dx, dy) => `a${r} ${r} 0 0 1 ${dx} ${dy}`;
  return `M${(x + r).toFixed(1)} ${top}h${w}${turn(r, r)}v${h}${turn(-r, r)}h${-w}${turn(-r, -r)}v${-h}${turn(r, -r)}Z`;
};

/** A frame around the chosen cell, and an arrow to it from the logits that are scored there. */
function drawChosen({ ink, row, place }, { wide, gutter, pitch, side, pace, top }, batch) {
  const base = top + (row - 1) * pace + (wide ? 0 : 22) + BARS, q = place - 1, { from } = batch.rows[row - 1].cells[q];
  const x = gutter + q * pitch, middle = x + side / 2, under = base + GAP + TILE;
  ink("chosen", "rect", { x: x - 1.5, y: base + GAP - 1.5, width: side + 3, height: TILE + 3, rx: 5, class: "ll-here" });
  if (from >= 0) {
    const start = from === q ? middle - 6 : gutter + from * pitch + side / 2, end = from === q ? middle + 6 : middle;
    ink("meets", "path", { d: `M${start} ${under + 3}V${under + 11}H${end}V${under + 6}`, class: "ll-arc" });
    ink("meets-head", "path", { d: `M${end - 4} ${under + 7}L${end} ${under + 2}L${end + 4} ${under + 7}Z`, class: "ll-is-ink" });
  }
  return { x: middle, y: base + GAP + TILE / 2 };
}

/** Round perplexities between two means, three to five of them, each with its text. */
export function ticks(low, high) {
  const [a, b] = [Math.floor(low / Math.LN10), Math.ceil(high / Math.LN10)];
  let found = [];
  for (const steps of [[1], [1, 3], [1, 2, 5], [1, 1.5, 2, 3, 4, 5, 6, 8]]) {
    found = [];
    for (let e = a; e <= b; e++) for (const m of steps) found.push([Math.log(m) + e * Math.LN10, m, e]);
    found = found.filter(([at]) => at >= low && at <= high);
    if (found.length >= 3) break;
  }
  const every = Math.ceil(found.length / 5);
  return found.filter((_, i) => i % every === 0).map(([at, m, e]) => [at, e < 4 ? count(Number((m * 10 ** e).toFixed(3))) : `${m === 1 ? "" : `${m}·`}10${[...String(e)].map((d) => RAISED[d]).join("")}`]);
}

/** Perplexity: the number, how it comes about, and at every width. Returns the y below. */
function drawResult(view, batch, x, y, breadth, low) {
  const { ink, left, extra, measure } = view, now = amount(Math.exp(batch.mean)), right = amount(Math.exp(batch.rightMean)), off = now !== right;
  const look = off ? "ll-is-wrong" : "ll-is-right";
  ink.text("ppl-title", 0, y + 14, "Perplexity of the batch", "ll-strong");
  ink.text("ppl", 0, y + 54, now, `ll-big ${off ? "ll-is-wrong" : ""}`);
  ink.text("ppl-verdict", measure(now, SIZE.big, 600) + 14, y + 54, off ? (batch.mean < batch.rightMean ? "too low: it flatters" : "too high") : "as it should be", `ll-small ll-strong ${look}`);
  ink.text("ppl-how", 0, y + 80, `exp(${num(batch.sum, 2)} nats summed ÷ ${batch.count} counted)`);
  ink.text("ppl-should", 0, y + 100, `should be exp(${num(batch.rightSum, 2)} ÷ ${batch.rightCount}) = ${right}`, "ll-small ll-is-right");

  const every = left.map((_, e) => score(view, e).mean), top = low + 44, bottom = top + 128, start = x + 52, end = x + breadth - 10;
  const all = [...every, batch.rightMean], [least, most] = [Math.min(...all) - 0.25, Math.max(...all) + 0.25];
  const sx = linear([0, left.length - 1], [start + 6, end]), sy = linear([most, least], [top, bottom]), widest = widthOf(view, 0);
  ink.text("curve-title", x, low + 14, "Perplexity by width of the batch", "ll-strong");
  ink.text("curve-note", x, low + 33, `- - should be ${right}, whatever the width`, "ll-small ll-is-right");
  const labels = new Map(ticks(least, most));
  axis(ink, "curve-y", { side: "left", scale: sy, ticks: [...labels.keys()], at: start, to: x + breadth, show: (at) => labels.get(at) });
  const step = left.length > 7 ? 2 : 1;
  axis(ink, "curve-x", { side: "bottom", scale: sx, ticks: left.map((_, e) => e).filter((e) => e % step === 0), at: bottom, show: (e) => widest + e });
  ink.text("curve-x-name", x + breadth, bottom + 40, "tokens a row (log scale upwards)", NOTE, "end");
  ink("curve-right", "path", { d: `M${start} ${sy(batch.rightMean)}H${x + breadth}`, class: "ll-line-right" });
  ink("curve-line", "path", { d: `M${every.map((v, e) => `${sx(e).toFixed(1)} ${sy(v).toFixed(1)}`).join("L")}`, class: off ? "ll-line-wrong" : "ll-line-other" });
  ink("curve-gap", "path", { d: `M${sx(extra)} ${sy(batch.rightMean)}V${sy(batch.mean)}`, class: "ll-gap" });
  every.forEach((v, e) => ink(`curve-${e}`, "circle", { cx: sx(e), cy: sy(v), r: 3, class: off ? "ll-is-wrong" : "ll-is-other" }));
  ink("curve-now", "circle", { cx: sx(extra), cy: sy(batch.mean), r: 7, class: `ll-now ${look}` });
  return bottom + 44;
}

function draw(base) {
  const { room, texts, right, left, extra } = base, plan = layout(base), batch = score(base);
  const row = Math.min(base.row, texts.length), place = Math.min(base.place, batch.width), view = { ...base, row, place };
  const most = highest(right, left), tall = BARS / most;
  drawKey(view, plan, most);
  texts.forEach((_, r) => drawRow(view, plan, batch, r, tall));
  const point = drawChosen(view, plan, batch), below = plan.top + texts.length * plan.pace + (plan.wide ? 14 : 10);
  const breadth = plan.wide ? Math.floor(room * 0.46) : room, [head, ...rest] = words(batch, view);
  const result = below + (plan.wide ? 0 : 128), x = plan.wide ? breadth + 30 : 0, low = plan.wide ? below : result + 132;
  let y = plan.wide ? below + 140 : below;
  base.ink.text("chosen-head", 0, y + 14, head, "ll-small ll-strong");
  y += 34;
  for (const [i, line] of rest.entries()) y = write(base, `chosen-${i}`, 0, y, line, breadth, NOTE);
  const height = drawResult(view, batch, x, result, room - x, low);
  const label = `Text ${row}: place`, text = words(batch, view).join(" ");
  Object.assign(base.held, { plan, batch });
  return {
    height: Math.max(height, plan.wide ? below + 244 : 0), says: sentence(view, batch),
    points: [{ key: "cell", ...point, label, min: 1, max: batch.width, now: place, text: `${place}: ${text}`, size: Math.max(24, plan.side), pan: "pan-y" }],
  };
}

/** The largest of all that a model measured; worked out once for each table. */
const known = new WeakMap();
function highest(right, left) {
  if (!known.has(left)) known.set(left, Math.max(...[right, left].flat(4)));
  return known.get(left);
}

/** Sentences as long as any: every way to score, at numbers of many digits. */
function longest(texts) {
  const all = [];
  for (const shift of SHIFTS)
    for (const mask of ["both", "labels", "wrong"])
      for (const [numerator, denominator] of [[false, false], [true, false], [false, true], [true, true]])
        for (const mean of [6.7, 6.8, 26.4]) all.push(sentence({ texts, side: "left", shift, mask, numerator, denominator, read: true }, { width: 22, mean, rightMean: 6.75 }));
  return longestOf(all, 6);
}

/** Radio buttons that have nothing to decide while pads are in both sums. */
const ifAsked = (build) => (link) => {
  const node = build(link);
  const show = () => (node.disabled = link.get("numerator") && link.get("denominator"));
  for (const trait of ["numerator", "denominator"]) link.watch(trait, show);
  return node;
};

const DATA = ["texts", "right", "left"];

export default {
  render({ model, el }) {
    const held = {}, texts = model.get("texts");
    const choose = (link, row, place) => {
      const chosen = { row: Math.min(Math.max(row, 1), texts.length), place: Math.min(Math.max(place, 1), held.batch.width) };
      if (chosen.row !== link.get("row") || chosen.place !== link.get("place")) link.set(chosen);
    };
    const at = (link, [x, y]) => {
      const { gutter, pitch, pace, top } = held.plan;
      if (y < top || y >= top + texts.length * pace || x < gutter) return;
      choose(link, Math.floor((y - top) / pace) + 1, Math.floor((x - gutter) / pitch) + 1);
    };
    const moves = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0], Home: [0, -99], End: [0, 99] };
    return mount({
      model, el, draw, longest: longest(texts),
      label: "A padded batch of texts token by token, with what each prediction costs, which are summed and which are counted, and the perplexity at every width of the batch",
      traits: ["extra", "side", "shift", "mask", "numerator", "denominator", "row", "place", ...DATA],
      extend({ drawing, link }) {
        const click = (event) => {
          const box = drawing.getBoundingClientRect();
          at(link, [event.clientX - box.left, event.clientY - box.top]);
        };
        drawing.addEventListener("click", click);
        return { held, off: () => drawing.removeEventListener("click", click) };
      },
      over: [
        handles({
          drag: (link, _, point) => at(link, point),
          press(link, _, key) {
            const move = moves[key];
            if (move) choose(link, link.get("row") + move[0], Math.min(link.get("place"), held.batch.width) + move[1]);
            return Boolean(move);
          },
        }),
      ],
      controls: [
        range("extra", { label: "Somebody else’s longer text adds", min: 0, max: model.get("left").length - 1, say: (e) => plural(e, "column") }),
        radios("side", { label: "Padding on the", inline: true, options: [["right", "right"], ["left", "left"]] }),
        radios("shift", { label: "Labels shifted", inline: true, options: [["none", "not at all"], ["once", "once"], ["twice", "twice"]] }),
        ifAsked(radios("mask", { label: "Mask by", inline: true, options: [["both", "logits and label"], ["labels", "label alone"], ["wrong", "wrong side"]] })),
        radios("numerator", { label: "Pads in the numerator", inline: true, options: [[false, "no"], [true, "yes"]] }),
        radios("denominator", { label: "Pads in the denominator", inline: true, options: [[false, "no"], [true, "yes"]] }),
      ],
    });
  },
};
