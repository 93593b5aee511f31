/**
 * Forces on the circle: a query, its positive and its negatives as points to drag, and what each document does to the query.
 * Traits: `angles` (whole degrees) and `lengths` (tenths) of the query, its positive and the negatives; `temperature`;
 * `normalize` (cosine or dot product); `arrows` (shares or forces); `chosen`, the point whose length the slider changes.
 */
import { NOTE, SIZE, axis, html, linear, longestOf, mount, num, percent, plural, radios, steps, uid } from "./kit.js";
import { handles, turned } from "./points.js";
import { polar, pulls } from "./pulls.js";
import { along, besides, vector } from "./vectors.js";

export const TEMPERATURES = [0.02, 0.03, 0.05, 0.07, 0.1, 0.16, 0.2, 0.3, 0.5, 0.7, 1];
const SHORTEST = 0.2, LONGEST = 1.4;
const LETTERS = "ABCDEFGH";
const MARK = 26, RIM = 16; // px: a point, and where an arrow starts from the query's middle

const nameOf = (k) => (k === 0 ? "query" : k === 1 ? "positive" : `negative ${LETTERS[k - 2]}`);
const letterOf = (k) => (k === 0 ? "q" : k === 1 ? "+" : LETTERS[k - 2]);
const changed = (list, at, value) => list.map((old, i) => (i === at ? value : old));
const atLength = (length) => Math.min(LONGEST, Math.max(SHORTEST, Math.round(length * 10) / 10));

const hardestOf = (portions) => portions.reduce((best, part, j) => (part > portions[best] ? j : best), 1);

/** The figure in one sentence. */
function sentence({ normalize, temperature, loss, portions, effective, turn, stretch, rank, lengths }) {
  const hardest = hardestOf(portions);
  const by = normalize ? "By cosine" : `By dot product, with a query of length ${num(lengths[0], 1)},`;
  const push = `${by} at temperature ${temperature}, ${nameOf(hardest + 1)} pushes hardest: ${percent(portions[hardest], 0)} of all the push`;
  const count = `${plural(portions.length - 1, "negative")} ${portions.length > 2 ? "count" : "counts"} as ${num(effective, 1)}`;
  const first = `the positive ranks ${rank} of ${portions.length}`;
  const still = num(turn, 6) === "0.000000", towards = turn > 0 ? "counter-clockwise" : "clockwise";
  const longer = num(stretch, 6) === "0.000000" ? "" : stretch > 0 ? " and lengthens it" : " and shortens it";
  const step = `the step turns the query ${still ? "nowhere" : towards}${normalize ? "" : longer}`;
  return `${push}, and the ${count}. The loss is ${num(loss)} nats, ${first}, and ${step}.`;
}

/** Where things stand in the plane: its middle, and px for one unit of length and for an arrow of length 1. */
function planeOf(x, y, side) {
  return { x, y, side, cx: x + side / 2, cy: y + side / 2, unit: side * 0.31, reach: side * 0.155 };
}

/** The circle, the points, an arrow from the query for what each document does to it, and one for the step. */
function drawPlane(view, plane) {
  const { ink, angles, lengths, normalize, arrows, chosen, measure } = view;
  const { cx, cy, unit, reach, x, y, side } = plane;
  const place = angles.map((degrees, k) => {
    const [px, py] = polar(degrees, normalize ? 1 : lengths[k]);
    return [cx + px * unit, cy - py * unit];
  });
  ink("circle", "circle", { cx, cy, r: unit, class: "ll-rim" });
  place.forEach(([px, py], k) => {
    const [ex, ey] = normalize ? [cx, cy] : [px, py]; // always there: marks stack in the order in which they first appeared
    ink(`spoke-${k}`, "path", { d: `M${cx} ${cy}L${ex} ${ey}`, class: "ll-spoke" });
  });
  ink("middle", "circle", { cx, cy, r: 2.5, class: "ll-is-other" });

  const inside = (value, low, high) => Math.min(high - 4, Math.max(low + 4, value));
  /** An arrow from the query's rim, as long as the force; none where it would be shorter than a pixel. */
  const arrowOf = ([fx, fy]) => {
    const long = Math.hypot(fx, fy) * reach, [px, py] = place[0];
    if (long < 1) return [place[0], place[0]];
    const at = (r) => [inside(px + (fx * reach * r) / long, x, x + side), inside(py - (fy * reach * r) / long, y, y + side)];
    return [at(RIM), at(RIM + long)];
  };
  const shares = arrows === "shares", vectors = shares ? view.units : view.forces;
  const hardest = hardestOf(view.portions);
  const drawn = vectors.map(arrowOf), labels = [], boxes = [];
  const named = (key, text, look, [from, tip]) => {
    if (from === tip) return;
    boxes.push(...along(from, tip));
    const [dx, dy] = [tip[0] - from[0], tip[1] - from[1]];
    if (Math.hypot(dx, dy) >= 12) labels.push({ key, text, look, x: tip[0], y: tip[1], dx, dy, clear: 9, width: measure(text, SIZE.small, 600) + 8 });
  };
  [...drawn.keys()].reverse().forEach((j) => ink(`arrow-${j}`, "path", { d: vector(...drawn[j], j ? 4 : 5), class: j ? "ll-push" : "ll-pull" }));
  drawn.forEach((one, j) => {
    const text = !j ? "pull" : j === hardest ? `${letterOf(j + 1)} pushes` : letterOf(j + 1);
    named(`arrow-${j}-name`, text, j ? "ll-muted" : "ll-is-best", one);
  });
  const step = arrowOf(shares ? view.unitStep : view.step);
  ink("step", "path", { d: vector(...step, 6), class: "ll-step" });
  named("step-name", "step", "", step);

  const [ox, oy] = place[chosen];
  ink("chosen", "circle", { at: [ox, oy], r: normalize ? 0 : chosen ? MARK / 2 + 7 : 20, class: "ll-chosen" });
  const order = [...place.keys()].reverse(); // the query on top of its positive, both on top of the negatives
  for (const k of order) {
    const [px, py] = place[k], half = k === 0 ? 11 : MARK / 2, look = k === 0 ? "ll-query" : k === 1 ? "ll-best" : "ll-other";
    const box = { x: -half, y: -half, width: 2 * half, height: 2 * half, rx: k === 0 ? 2 : k === 1 ? half : 4 };
    ink(`point-${k}-now`, "rect", { ...box, at: k === 0 ? [px, py, 45] : [px, py], class: look });
    ink.text(`point-${k}-now-name`, px, py + 4.5, letterOf(k), `ll-small ll-strong ${k < 2 ? "ll-on-best" : ""}`, "middle");
    boxes.push([px - 15, py - 15, px + 15, py + 15]);
  }
  const words = [0, 1].map((k) => {
    const [px, py] = place[k];
    return { key: `word-${k}`, text: nameOf(k), look: k ? "ll-is-best" : "", x: px, y: py, dx: px - cx, dy: py - cy, clear: 17, width: measure(nameOf(k), SIZE.small, 600) + 8 };
  });
  const about = normalize ? "every vector has length 1" : "length 1";
  const rim = { key: "circle-name", text: about, look: "ll-muted", plain: true, x: cx, y: normalize ? cy : cy + unit, dx: 0, dy: 1, clear: 10, width: measure(about) + 8 };
  const all = [...words, ...labels, rim];
  besides(all, boxes, [x, y, x + side, y + side]).forEach(([mx, my], i) => {
    ink.text(all[i].key, mx, my + 4.5, all[i].text, `ll-small ${all[i].plain ? "" : "ll-strong"} ll-halo ${all[i].look}`, "middle");
  });
  return place;
}

/** Each document's score, probability and part of the pull or push, as numbers with bars below. Returns the y below. */
function drawList(view, x, y, breadth) {
  const { ink, scores, probabilities, portions, normalize } = view;
  const first = x + 78, second = first + 24, pitch = (x + breadth - second + 16) / 2, third = second + pitch;
  const reach = [pitch - 16, pitch - 16];
  ink.text("list-score", first, y + 12, normalize ? "cosine" : "dot", NOTE, "end");
  ink.text("list-p", second, y + 12, "probability", NOTE);
  ink.text("list-part", third, y + 12, "push share", NOTE);
  scores.forEach((score, j) => {
    const top = y + 20 + j * 33, k = j + 1, look = j ? "ll-other" : "ll-best";
    ink(`row-${j}`, "rect", { x: x + 0.5, y: top + 5.5, width: 19, height: 19, rx: j ? 3 : 9.5, class: look });
    ink.text(`row-${j}-letter`, x + 10, top + 19.5, letterOf(k), `ll-small ll-strong ${j ? "" : "ll-on-best"}`, "middle");
    ink.text(`row-${j}-score`, first, top + 19.5, num(score, 2), "ll-small", "end");
    const bar = (key, at, long, share, text, looks) => {
      ink.text(`${key}-text`, at, top + 14.5, text, "ll-small");
      ink(`${key}-track`, "rect", { x: at, y: top + 19, width: long, height: 6, rx: 1, class: "ll-track" });
      ink(key, "rect", { x: at, y: top + 19, width: Math.max(0, share * long), height: 6, rx: 1, class: `${looks} ll-bar` });
    };
    bar(`row-${j}-p`, second, reach[0], probabilities[j], percent(probabilities[j]), j ? "ll-negative" : "ll-best");
    if (j) bar(`row-${j}-part`, third, reach[1], portions[j], percent(portions[j], 0), "ll-negative");
    else ink.text("row-0-part", third, top + 19.5, "the only pull", "ll-small ll-is-best");
  });
  return y + 20 + scores.length * 33;
}

/** The loss against the query's length, all angles and all documents as they are. Returns the y below. */
function drawScaling(view, x, y, breadth) {
  const { ink, angles, lengths, temperature, normalize, measure, loss } = view;
  const at = Array.from({ length: 25 }, (_, i) => SHORTEST + (i * (LONGEST - SHORTEST)) / 24);
  const losses = at.map((long) => (normalize ? loss : pulls({ angles, temperature, normalize, lengths: changed(lengths, 0, long) }).loss));
  const title = "Loss (nats), only the query’s length changed", short = "Loss by the query’s length";
  ink.text("scaling-title", x, y + 14, measure(title, SIZE.text, 600) <= breadth ? title : short, "ll-strong");
  const start = Math.max(...losses, Math.log(angles.length - 1)), step = [0.5, 1, 2, 5, 10, 20, 50, 100].find((s) => start / s <= 3);
  const top = Math.ceil(start / step) * step, ticks = [];
  for (let tick = 0; tick <= top + 1e-9; tick += step) ticks.push(tick);
  const sy = linear([top, 0], [y + 32, y + 112]), left = x + 34, sx = linear([0, LONGEST], [left, x + breadth - 8]);
  axis(ink, "scaling-y", { side: "left", scale: sy, ticks, at: left, to: x + breadth });
  axis(ink, "scaling-x", { side: "bottom", scale: sx, ticks: [0, 0.5, 1], at: y + 112 });
  ink.text("scaling-x-name", x + breadth, y + 132, "length", NOTE, "end");
  const path = losses.map((value, i) => `${sx(at[i]).toFixed(2)} ${sy(value).toFixed(2)}`).join("L");
  ink("scaling", "path", { d: `M${path}`, class: normalize ? "ll-line-other" : "ll-line-best" });
  const now = normalize ? 1 : lengths[0];
  ink("scaling-dot", "circle", { cx: sx(now), cy: sy(loss), r: 7, class: `ll-now ${normalize ? "ll-is-other" : "ll-is-best"}` });
  const middle = (sy(losses[0]) + sy(losses.at(-1))) / 2, low = (sy(losses[12]) < y + 60 ? sy(losses[12]) + 22 : sy(losses[12]) - 12);
  if (normalize) ink.text("scaling-name", sx(LONGEST) - 4, middle < y + 60 ? middle + 20 : middle - 12, "cosines see no length", `${NOTE} ll-halo`, "end");
  else if (losses.at(-1) < losses.at(-2)) ink.text("scaling-name", x + breadth - 4, low, "longer is enough", "ll-small ll-is-best ll-halo", "end");
  else if (losses.at(-1) > losses.at(-2)) ink.text("scaling-name", x + breadth - 4, sy(0) - 8, "longer makes it worse", `${NOTE} ll-halo`, "end");
  return y + 136;
}

/** The loss and the effective number of negatives, large. Returns the y below. */
function drawNumbers({ ink, loss, effective, scores, measure }, x, y, breadth) {
  const beside = x + Math.max(breadth * 0.46, measure("0.0000", SIZE.big, 600) + 14), title = "Effective negatives";
  const fits = measure(title, SIZE.text, 600) <= x + breadth - beside;
  ink.text("loss-title", x, y + 14, "Loss (nats)", "ll-strong");
  ink.text("loss", x, y + 52, num(loss, loss < 9.99995 ? 4 : loss < 99.9995 ? 3 : 2), "ll-big");
  ink.text("effective-title", beside, y + 14, title, `ll-strong ${fits ? "" : "ll-small"}`);
  const value = num(effective, 1);
  ink.text("effective", beside, y + 52, value, "ll-big");
  ink.text("effective-of", beside + measure(value, SIZE.big, 600) + 8, y + 52, `of ${scores.length - 1}`, NOTE);
  return y + 60;
}

function draw(base) {
  const { room, angles, lengths, normalize } = base;
  const view = { ...base, ...pulls(base) }, wide = room >= 600;
  const side = wide ? Math.min(440, room - 312) : Math.min(room, 440);
  const plane = planeOf(wide ? 0 : (room - side) / 2, 0, side);
  const place = drawPlane(view, plane);
  const x = wide ? side + 24 : 0, breadth = room - x;
  let y = drawNumbers(view, x, wide ? 0 : side + 20, breadth);
  y = drawList(view, x, y + 18, breadth) + 22;
  y = drawScaling(view, x, y, breadth);
  const points = place.map(([px, py], k) => {
    const long = normalize ? "" : `, length ${num(lengths[k], 1)}`;
    return { key: k, x: px, y: py, label: nameOf(k), now: angles[k], text: `${nameOf(k)} at ${angles[k]}°${long}` };
  });
  return { height: Math.max(y, plane.y + side), says: sentence(view), points, plane };
}

const act = {
  drag(link, { key }, [x, y], { plane }) {
    const dx = (x - plane.cx) / plane.unit, dy = (plane.cy - y) / plane.unit;
    const degrees = (Math.round((Math.atan2(dy, dx) * 180) / Math.PI) + 360) % 360;
    const angles = link.get("angles"), lengths = link.get("lengths"), length = atLength(Math.hypot(dx, dy));
    const moves = {};
    if (degrees !== angles[key]) moves.angles = changed(angles, key, degrees);
    if (!link.get("normalize") && length !== lengths[key]) moves.lengths = changed(lengths, key, length);
    if (Object.keys(moves).length) link.set(moves);
  },
  press(link, { key: k }, key, shift) {
    const angles = link.get("angles"), lengths = link.get("lengths");
    const longer = { ArrowUp: 0.1, ArrowRight: 0.1, ArrowDown: -0.1, ArrowLeft: -0.1 }[key];
    if (shift && longer && !link.get("normalize")) {
      link.set({ lengths: changed(lengths, k, atLength(lengths[k] + longer)) });
      return true;
    }
    const degrees = turned(angles[k], key, shift);
    if (degrees !== null) link.set({ angles: changed(angles, k, degrees) });
    return degrees !== null;
  },
  choose(link, { key }) {
    if (link.get("chosen") !== key) link.set({ chosen: key });
  },
};

/** A labelled native slider on the length of the chosen point, which only the dot product lets move. */
const length = (link) => {
  const id = uid();
  const input = html("input", { id, type: "range", min: SHORTEST, max: LONGEST, step: 0.1 });
  const name = html("label", { for: id }), value = html("span", { class: "ll-value", "aria-hidden": "true" });
  input.addEventListener("input", () => {
    link.set({ lengths: changed(link.get("lengths"), link.get("chosen"), atLength(input.valueAsNumber)) });
  });
  const show = () => {
    const unit = link.get("normalize"), chosen = link.get("chosen"), long = link.get("lengths")[chosen];
    name.textContent = `Length of ${chosen > 1 ? "" : "the "}${nameOf(chosen)}`;
    input.disabled = unit;
    input.value = unit ? 1 : long;
    value.textContent = unit ? "1, normalised" : num(long, 1);
    input.setAttribute("aria-valuetext", value.textContent);
  };
  for (const trait of ["normalize", "chosen", "lengths"]) link.watch(trait, show);
  return html("div", { class: "ll-control ll-told" }, name, value, input);
};

/** Sentences as long as any: the longest words, the widest numbers. */
function longest(model) {
  const count = model.get("angles").length, portions = Array(count - 1).fill(0);
  portions[Math.min(2, count - 2)] = 1;
  const base = { temperature: 0.02, portions, effective: 8, rank: 8, lengths: [0.8], turn: 1, stretch: 1 };
  return [{ ...base, normalize: true, loss: 88.8888 }, { ...base, normalize: false, loss: 188.8888 }].map(sentence);
}

export default {
  render: ({ model, el }) =>
    mount({
      model, el, draw, longest: longestOf(longest(model)), over: [handles(act)],
      label: "A query, its positive and its negatives as points of a plane, the force of each document on the query, and a list of their shares",
      traits: ["angles", "lengths", "temperature", "normalize", "arrows", "chosen"],
      controls: [
        steps("temperature", { label: "Temperature", values: TEMPERATURES }),
        radios("normalize", {
          label: "Score", inline: true,
          options: [[true, "cosine (length 1)"], [false, "raw dot product"]],
        }),
        length,
        radios("arrows", {
          label: "Arrows show", inline: true,
          options: [["shares", "shares of the push"], ["forces", "force × temperature"]],
        }),
      ],
    }),
};
