/**
 * Let go: pairs of a query and its positive on a circle or a sphere descend InfoNCE, and loss, alignment and uniformity are traced.
 * Traits: `step` of the run that `pairs`, `surface`, `temperature`, `seed` and `shared` (do two pairs share a positive?) lead to;
 * `turn` and `tilt`, the view of the sphere in degrees.
 */
import { NOTE, SIZE, axis, linear, longestOf, mount, num, radios, range, spread, steps } from "./kit.js";
import { LAST, floorOf, runOf } from "./descend.js";
import { player } from "./play.js";
import { handles } from "./points.js";
import { besides } from "./vectors.js";

const TEMPERATURES = [0.05, 0.07, 0.1, 0.16, 0.2, 0.3, 0.5, 0.7, 1];
const TRAIL = 30; // steps that stay visible behind a point
const RADIANS = Math.PI / 180;

/** The figure in one sentence. */
function sentence({ step, pairs, shared, loss, alignment, uniformity }) {
  const alike = `ln ${pairs} = ${num(Math.log(pairs))} if all scores were alike`;
  const floor = shared ? ` and a floor of ${num(floorOf(pairs, shared))}, since two pairs share a positive` : "";
  const apart = `A query and its positive are ${num(alignment, 3)} apart (mean squared distance), and uniformity is ${num(uniformity, 3)}`;
  return `Step ${step} of ${LAST}: the loss is ${num(loss)} nats, against ${alike}${floor}. ${apart}.`;
}

/** From a point to the drawing: [x, y, towards], the last from −1, behind, to 1, before. */
function camera({ surface, turn, tilt }, { cx, cy, unit }) {
  if (surface === "circle") return (points, i) => [cx + points[2 * i] * unit, cy - points[2 * i + 1] * unit, 1];
  const [ct, st, cv, sv] = [Math.cos(turn * RADIANS), Math.sin(turn * RADIANS), Math.cos(tilt * RADIANS), Math.sin(tilt * RADIANS)];
  return (points, i) => {
    const [px, py, pz] = [points[3 * i], points[3 * i + 1], points[3 * i + 2]];
    const x = px * ct - py * st, y = px * st + py * ct;
    return [cx + x * unit, cy - (pz * cv + y * sv) * unit, pz * sv - y * cv];
  };
}

/** The sphere's equator and two meridians, each in what lies before and what lies behind. */
function drawGlobe({ ink, surface }, look) {
  const rings = [[[1, 0, 0], [0, 1, 0]], [[1, 0, 0], [0, 0, 1]], [[0, 1, 0], [0, 0, 1]]];
  rings.forEach(([a, b], r) => {
    const parts = ["", ""];
    let last = null;
    for (let k = 0; surface === "sphere" && k <= 60; k++) {
      const [c, s] = [Math.cos((k * Math.PI) / 30), Math.sin((k * Math.PI) / 30)];
      const at = look(a.map((value, i) => value * c + b[i] * s), 0);
      const here = `${at[0].toFixed(1)} ${at[1].toFixed(1)}`, side = at[2] >= 0 ? 0 : 1;
      if (last) parts[side] += `M${last}L${here}`;
      last = here;
    }
    ink(`ring-${r}-behind`, "path", { d: parts[1] || "M0 0", class: "ll-ring-behind" });
    ink(`ring-${r}`, "path", { d: parts[0] || "M0 0", class: "ll-ring" });
  });
}

/** The pairs where they now are, joined by lines, with the way that they came. */
function drawPairs(view, plane) {
  const { ink, run, step, pairs, shared, measure } = view, { x, y, side, cx, cy, unit } = plane;
  const look = camera(view, plane);
  ink("rim", "circle", { cx, cy, r: unit, class: "ll-rim" });
  drawGlobe(view, look);
  const trail = (states, i) => {
    let path = "";
    for (let s = Math.max(step % 2, step - TRAIL); s <= step; s += 2) {
      const [px, py] = look(states[s], i);
      path += `${path ? "L" : "M"}${px.toFixed(1)} ${py.toFixed(1)}`;
    }
    return path;
  };
  for (let i = 0; i < pairs; i++) {
    ink(`trail-q-${i}`, "path", { d: trail(run.queries, i), class: "ll-trail" });
    ink(`trail-d-${i}`, "path", { d: trail(run.documents, i), class: "ll-trail ll-trail-best" });
  }
  const boxes = [], names = [], marks = [];
  for (let i = 0; i < pairs; i++) {
    const q = look(run.queries[step], i), d = look(run.documents[step], i);
    ink(`bond-${i}`, "path", { d: `M${q[0]} ${q[1]}L${d[0]} ${d[1]}`, class: "ll-bond" });
    marks.push([q, d]);
  }
  const size = ([, , towards]) => 5.5 + 1.5 * towards;
  const twin = (i) => shared && i === 1; // the second of two pairs that share a positive draws none of its own
  for (let i = pairs - 1; i >= 0; i--) {
    const [q, d] = marks[i];
    if (!twin(i)) {
      const both = shared && i === 0;
      ink(`doc-${i}`, "circle", { at: d.slice(0, 2), r: size(d) + (both ? 2 : 0), class: `${d[2] < 0 ? "ll-hollow-best" : "ll-best"} ${both ? "ll-double" : ""}` });
    }
    const half = size(q) * 0.9;
    ink(`query-${i}`, "rect", { x: -half, y: -half, width: 2 * half, height: 2 * half, at: [q[0], q[1], 45], class: q[2] < 0 ? "ll-hollow" : "ll-query" });
    boxes.push([q[0] - 8, q[1] - 8, q[0] + 8, q[1] + 8], [d[0] - 8, d[1] - 8, d[0] + 8, d[1] + 8]);
  }
  for (let i = 0; i < pairs; i++) {
    const at = marks[i][twin(i) || (shared && i === 0) ? 0 : 1];
    names.push({ i, text: String(i + 1), x: at[0], y: at[1], dx: at[0] - cx, dy: at[1] - cy, clear: 10, width: measure(String(i + 1), SIZE.small, 600) + 4 });
  }
  if (shared) {
    const d = marks[0][1];
    names.push({ i: "shared", text: "1 and 2", x: d[0], y: d[1], dx: d[0] - cx, dy: d[1] - cy, clear: 12, width: measure("1 and 2", SIZE.small, 600) + 4 });
  }
  besides(names, boxes, [x, y, x + side, y + side]).forEach(([mx, my], n) => {
    const { i, text } = names[n], document = i === "shared" || !shared || i > 1;
    ink.text(`pair-${i}-name`, mx, my + 4.5, text, `ll-small ll-strong ll-halo ${document ? "ll-is-best" : ""}`, "middle");
  });
}

/** What the marks mean, below the plane. Returns the y below. */
function drawKey({ ink, measure, surface }, { x, y, side }) {
  const parts = [["query", "query"], ["document", "its positive"], ...(surface === "sphere" ? [["hollow", "hollow: behind"]] : [])];
  const wide = parts.map(([, text]) => 20 + measure(text)), total = wide.reduce((a, b) => a + b) + 18 * (parts.length - 1);
  let at = x + (side - total) / 2;
  parts.forEach(([key, text], i) => {
    if (key === "query") ink("key-query", "rect", { x: -5, y: -5, width: 10, height: 10, at: [at + 7, y + 10, 45], class: "ll-query" });
    else ink(`key-${key}`, "circle", { cx: at + 7, cy: y + 10, r: key === "hollow" ? 4.5 : 6.5, class: key === "hollow" ? "ll-hollow-best" : "ll-best" });
    ink.text(`key-${key}-text`, at + 20, y + 14.5, text, NOTE);
    at += wide[i] + 18;
  });
  return y + 20;
}

/** One number over the steps so far. Returns the y below. */
function drawTrace(view, { key, title, digits, values, domain, ticks, limits = [], x, y, breadth, gutter, bottom }) {
  const { ink, step } = view, tall = 70, top = y + 26, left = x + 30, right = x + breadth - gutter;
  const value = num(values[step], digits), taken = view.measure(title, SIZE.text, 600) + view.measure("−0.0000", SIZE.text, 600) + 14;
  ink.text(`${key}-title`, x, y + 12, taken <= breadth ? title : title.split(" (")[0], "ll-strong");
  ink.text(`${key}`, x + breadth, y + 12, value, "ll-strong", "end");
  const sy = linear(domain, [top, top + tall]), sx = linear([0, LAST], [left, right]);
  axis(ink, `${key}-y`, { side: "left", scale: sy, ticks, at: left, to: right, show: (t) => num(t, 0) });
  limits.forEach(([value], i) => ink(`${key}-limit-${i}`, "path", { d: `M${left} ${sy(value)}H${right}`, class: "ll-limit" }));
  const names = limits.map(([value, text], i) => ({ i, text, x: sy(value), width: 14 })).sort((a, b) => a.x - b.x);
  spread(names, top - 8, top + tall + 10, 1).forEach((middle, n) => ink.text(`${key}-limit-${names[n].i}-name`, right + 8, middle + 4.5, names[n].text, NOTE));
  let path = "";
  for (let s = 0; s <= step; s++) path += `${s ? "L" : "M"}${sx(s).toFixed(1)} ${sy(values[s]).toFixed(1)}`;
  ink(`${key}-line`, "path", { d: path, class: "ll-line-best" });
  ink(`${key}-dot`, "circle", { cx: sx(step), cy: sy(values[step]), r: 6, class: "ll-now ll-is-best" });
  if (!bottom) return top + tall + 22;
  axis(ink, `${key}-x`, { side: "bottom", scale: sx, ticks: [0, 50, 100, 150, 200], at: top + tall + 4 });
  ink.text(`${key}-x-name`, right, top + tall + 44, "step", NOTE, "end");
  return top + tall + 50;
}

/** Round ticks for an axis from 0 to `top`, at most four. */
const upTo = (top) => {
  const gap = [1, 2, 5, 10].find((g) => top / g <= 3.5) ?? 20;
  return Array.from({ length: Math.floor(top / gap) + 1 }, (_, i) => i * gap);
};

function draw(base) {
  const { room, pairs, shared, step, surface, turn, tilt } = base, run = runOf(base);
  const now = { loss: run.loss[step], alignment: run.alignment[step], uniformity: run.uniformity[step] };
  const view = { ...base, ...now, run }, wide = room >= 600;
  const side = wide ? Math.min(400, room - 300) : Math.min(room, 400), left = wide ? 0 : (room - side) / 2;
  const plane = { x: left, y: 0, side, cx: left + side / 2, cy: side / 2, unit: side / 2 - 34 };
  drawPairs(view, plane);
  const key = drawKey(view, { x: left, y: side, side });
  const x = wide ? side + 28 : 0, breadth = room - x, names = { alike: `ln ${pairs}`, floor: "floor" };
  const gutter = 12 + Math.max(view.measure(names.alike), view.measure(names.floor));
  const limits = [[Math.log(pairs), names.alike], ...(shared ? [[floorOf(pairs, shared), names.floor]] : [])];
  const high = Math.max(...run.loss, Math.log(pairs)) * 1.04, far = Math.max(2, ...run.alignment) * 1.04, low = (-4 * pairs) / (pairs - 1);
  const chart = { x, breadth, gutter };
  let y = drawTrace(view, { ...chart, key: "loss", title: "Loss (nats)", digits: 4, values: run.loss, domain: [high, 0], ticks: upTo(high), limits, y: wide ? 4 : key + 28 });
  y = drawTrace(view, { ...chart, key: "alignment", title: "Alignment (squared distance)", digits: 3, values: run.alignment, domain: [far, 0], ticks: upTo(far), y: y + 8 });
  const depths = upTo(-low).map((t) => 0 - t);
  y = drawTrace(view, { ...chart, key: "uniformity", title: "Uniformity (lower: more even)", digits: 3, values: run.uniformity, domain: [0, low], ticks: depths, y: y + 8, bottom: true });
  const text = `turned ${turn}°, tilted ${num(tilt, 0)}°`;
  const points = surface === "sphere" ? [{ key: "view", x: plane.cx, y: plane.cy, size: 2 * plane.unit, label: "view of the sphere", now: turn, text, pan: "pan-y" }] : [];
  return { height: Math.max(key + 4, y), says: sentence(view), points, plane };
}

/** Turns the sphere by drag or arrow keys. */
function turning() {
  let from = null;
  const tilted = (degrees) => Math.min(90, Math.max(-90, Math.round(degrees)));
  const around = (degrees) => ((Math.round(degrees) % 360) + 360) % 360;
  return {
    take: (link) => (from = { turn: link.get("turn"), tilt: link.get("tilt") }),
    drag(link, _, [x, y], { plane }) {
      const next = { turn: around(from.turn + ((x - plane.cx) / plane.unit) * 90), tilt: tilted(from.tilt + ((y - plane.cy) / plane.unit) * 90) };
      if (next.turn !== link.get("turn") || next.tilt !== link.get("tilt")) link.set(next);
    },
    press(link, _, key, shift) {
      const by = shift ? 1 : 5, side = { ArrowRight: by, ArrowLeft: -by, PageUp: 30, PageDown: -30 }[key], up = { ArrowUp: -by, ArrowDown: by }[key];
      if (side) link.set({ turn: around(link.get("turn") + side) });
      else if (up) link.set({ tilt: tilted(link.get("tilt") + up) });
      else if (key === "Home") link.set({ turn: 0, tilt: 0 });
      else return false;
      return true;
    },
  };
}

const WORST = { step: LAST, pairs: 12, loss: 18.8888, alignment: 2.888, uniformity: -2.888 };

export default {
  render: ({ model, el }) =>
    mount({
      model, el, draw, over: [handles(turning())],
      longest: longestOf([true, false].map((shared) => sentence({ ...WORST, shared }))),
      label: "Pairs of a query and its positive on a circle or a sphere, and their loss, alignment and uniformity over the steps so far",
      traits: ["step", "pairs", "surface", "temperature", "seed", "shared", "turn", "tilt"],
      controls: [
        range("step", { label: "Step of gradient descent", min: 0, max: LAST }),
        player("step", { label: "Let go", last: LAST }),
        range("pairs", { label: "Pairs in the batch", min: 2, max: 12, say: (n) => `${n} pairs` }),
        steps("temperature", { label: "Temperature", values: TEMPERATURES }),
        radios("surface", { label: "Points live on a", options: [["circle", "circle"], ["sphere", "sphere"]], inline: true }),
        radios("shared", { label: "Positives", options: [[false, "all different"], [true, "1 and 2 share one"]], inline: true }),
        range("seed", { label: "Random start", min: 1, max: 30 }),
      ],
    }),
};
