/**
 * A sweep: what was measured at each of several x, as curves with their intervals, one panel at a time.
 * Traits: `at` (one of `x`), `panel` (the name of one of `panels`), and what was measured: `x`, `x_text` (each as printed), `x_label`,
 * `log`, `y_label`, `note`, `percent`, `digits`, `panel_label`, `panels` ([{name, series: [{name, values, low, high, dashed}]}], null
 * where nothing was measured), and what follows from those: `axes` (of each panel the ends of its upright axis and its ticks, [value,
 * text]) and `looks` (of each series of each panel its tone and the number of its shape).
 */
import { NOTE, SIZE, fit, linear, logarithmic, longestOf, mount, num, percent as share, radios, steps } from "./kit.js";
import { SHAPES, beside, named, pointing, runs } from "./marks.js";
import { balance } from "./plots.js";
import { select } from "./select.js";

const STEP = 16; // between marks side by side, px

/** The letter that stands for x where its label ends in one: τ of "temperature τ". */
function symbol({ x_label }) {
  const last = x_label.split(" ").at(-1);
  return [...last].length === 1 ? last : "";
}
const stop = (traits, i) => (symbol(traits) ? `${symbol(traits)} = ${traits.x_text[i]}` : traits.x_text[i]);
const where = (traits, i) => (symbol(traits) ? stop(traits, i) : `${traits.x_label} ${traits.x_text[i]}`);

/** A series at one x as printed: its value and its interval, if it has them. */
function reading({ percent, digits }, { values, low, high }, i) {
  if (values[i] === null) return ["not measured", ""];
  const value = percent ? share(values[i], digits) : num(values[i], digits);
  if (low[i] === null) return [value, ""];
  const [from, to] = [low[i], high[i]].map((v) => num(percent ? 100 * v : v, digits));
  return [value, `[${from}, ${to}]`];
}

/** The figure in words. */
function sentence(traits, panel, i) {
  if (panel.series.every(({ values }) => values[i] === null)) return `${panel.name} at ${where(traits, i)}: nothing was measured.`;
  const each = panel.series.map((one) => {
    const [value, interval] = reading(traits, one, i);
    return one.values[i] === null ? `${one.name} (${value})` : [one.name, value, interval].filter(Boolean).join(" ");
  });
  return `${panel.name} at ${where(traits, i)}: ${each.join("; ")}.`;
}

/** Words in lines of at most `most` px. */
function wrap(text, most, wide) {
  const lines = [""];
  for (const word of text.split(" ")) {
    const longer = lines.at(-1) ? `${lines.at(-1)} ${word}` : word;
    if (lines.at(-1) && wide(longer) > most) lines.push(word);
    else lines[lines.length - 1] = longer;
  }
  return lines;
}

/** Widths that depend on the data and the font alone, so that no panel and no x moves the plot. */
const known = new WeakMap();
function widthsOf(traits, measure) {
  if (!known.has(measure)) {
    const all = traits.panels.flatMap(({ series }) => series), strong = (text) => measure(text, SIZE.small, 600);
    const read = all.flatMap((one) => traits.x.map((_, i) => reading(traits, one, i)));
    known.set(measure, {
      name: Math.max(...all.map(({ name }) => strong(name))),
      reading: Math.max(...read.map(([value, interval]) => strong(value) + (interval ? 5 + measure(interval) : 0))),
      head: Math.max(...traits.x.map((_, i) => strong(`at ${where(traits, i)}`))),
      tick: Math.max(...traits.axes.flatMap(({ ticks }) => ticks).map(([, text]) => measure(text))),
      stops: traits.x_text.map((text) => strong(text)),
    });
  }
  return known.get(measure);
}

/** A name with its value and interval at the current x. */
function drawReading({ ink, measure }, traits, key, one, i, [x, y], [name, at, line], tone) {
  const [value, interval] = reading(traits, one, i), none = one.values[i] === null;
  ink.text(`${key}-name`, x, y, name, `ll-small ll-strong ll-toned ll-tone-${tone}`);
  ink.text(key, at, line, value, none ? NOTE : "ll-small ll-strong");
  if (interval) ink.text(`${key}-interval`, at + measure(value, SIZE.small, 600) + 5, line, interval, NOTE);
}

function draw(view) {
  const { ink, room, measure, x, x_text, x_label, log, y_label, note, panels, panel, at, axes, looks, plot } = view;
  const p = panels.findIndex(({ name }) => name === panel), now = x.indexOf(at), { series } = panels[p];
  const most = widthsOf(view, measure), gutter = Math.max(most.name, most.reading, most.head) + 30;
  const aside = room >= 560 && gutter <= 0.45 * room; // names beside the ends of their lines, or in a list below
  const left = Math.max(36, most.tick + 12), right = aside ? room - gutter : room - 4;

  const wide = (text) => measure(text), notes = panels.map(({ name }) => wrap(note ? `${name}, ${note}` : name, aside ? right : room, wide));
  const titles = wrap(y_label, aside ? right : room, (text) => measure(text, SIZE.text, 600));
  titles.forEach((text, i) => ink.text(`title-${i}`, 0, 14 + 20 * i, text, "ll-strong"));
  notes[p].forEach((text, i) => ink.text(`note-${i}`, 0, 14 + 20 * (titles.length + i), text, NOTE));
  const top = 18 + 20 * (titles.length + Math.max(...notes.map((lines) => lines.length - 1))) + 12, bottom = top + (aside ? 290 : 240);

  const { ends: [least, greatest], ticks } = axes[p], sx = (log ? logarithmic : linear)([x[0], x.at(-1)], [left + 12, right - 12]);
  const sy = linear([least, greatest], [bottom - (least === 0 ? 0 : 10), top + 10]), places = x.map(sx);
  ticks.forEach(([tick, text], i) => {
    ink(`grid-${i}`, "path", { d: `M${left} ${sy(tick)}H${right}`, class: tick === 0 ? "ll-zero" : "ll-grid" });
    ink.text(`tick-${i}`, left - 8, sy(tick) + 4.5, text, NOTE, "end");
  });
  ink("stops", "path", { d: places.map((px) => `M${px} ${bottom}v5`).join(""), class: "ll-tick" });
  ink("foot", "path", { d: `M${left} ${bottom}H${right}`, class: "ll-zero" });
  ink("at", "path", { d: `M${places[now]} ${top}V${bottom}`, class: "ll-here-line" });
  const centre = (i) => Math.min(room - most.stops[i] / 2, Math.max(most.stops[i] / 2, places[i])); // no text leaves the figure
  const middles = places.map((_, i) => centre(i));
  for (const i of named(middles, most.stops)) {
    if (i === now || Math.abs(middles[i] - middles[now]) < (most.stops[i] + most.stops[now]) / 2 + 7) continue;
    ink.text(`stop-${i}`, middles[i], bottom + 21, x_text[i], NOTE, "middle");
  }
  ink.text("stop-at", middles[now], bottom + 21, x_text[now], "ll-small ll-strong", "middle");
  ink.text("x-name", right, bottom + 42, `${x_label}${log ? " (log scale)" : ""}`, NOTE, "end");

  const ends = series.map(({ values }) => values.findLastIndex((v) => v !== null));
  const order = [...series.keys()].sort((a, b) => sy(series[a].values[ends[a]]) - sy(series[b].values[ends[b]]) || a - b);
  const drawn = [...order].reverse(), widest = Math.max(...panels.map((one) => one.series.length));
  for (let i = 0; i < widest; i++) { // all that any panel has, for a band that joins later would lie on the lines
    if (!series[i]) {
      ink(`s${i}-band`, "path", { d: "M0 0", class: "ll-span" });
      continue;
    }
    const { low, high } = series[i], spans = runs(x.length, (j) => low[j] !== null);
    const band = spans.filter((run) => run.length > 1).map((run) => {
      const there = run.map((j) => `${places[j]} ${sy(high[j])}`), back = [...run].reverse().map((j) => `${places[j]} ${sy(low[j])}`);
      return `M${[...there, ...back].join("L")}Z`;
    });
    ink(`s${i}-band`, "path", { d: band.join("") || "M0 0", class: `ll-span ll-tone-${looks[p][i][0]}` });
  }
  for (const i of drawn) {
    const { values, low, high, dashed } = series[i], [tone, shape] = looks[p][i], open = dashed ? "ll-open" : "";
    const whisker = (j, cap) => `M${places[j] - cap} ${sy(low[j])}h${2 * cap}m${-cap} 0V${sy(high[j])}m${-cap} 0h${2 * cap}`;
    const alone = runs(x.length, (j) => low[j] !== null).filter((run) => run.length === 1).map(([j]) => whisker(j, 3));
    const has = runs(x.length, (j) => values[j] !== null);
    const d = has.map((run) => `M${run.map((j) => `${places[j]} ${sy(values[j])}`).join("L")}`).join("");
    ink(`s${i}-alone`, "path", { d: alone.join("") || "M0 0", class: `ll-whisker ll-tone-${tone}` });
    ink(`s${i}-line`, "path", { d, class: `ll-curve ${dashed ? "ll-curve-dashed" : ""} ll-tone-${tone}` });
    ink(`s${i}-marks`, "path", { d: has.flat().map((j) => SHAPES[shape](places[j], sy(values[j]), 3.5)).join(""), class: `ll-mark ${open} ll-tone-${tone}` });
  }
  const extents = series.map(({ values, low, high }) => {
    if (values[now] === null) return null;
    return [Math.min(sy(values[now]) - 8, sy(high[now] ?? values[now])), Math.max(sy(values[now]) + 8, sy(low[now] ?? values[now]))];
  });
  const shifts = beside(extents);
  for (const i of drawn) {
    if (!extents[i]) continue;
    const { values, low, high, dashed } = series[i], [tone, shape] = looks[p][i], [shift, half] = shifts[i], reach = STEP * half + 8;
    const px = Math.min(right - reach, Math.max(left + reach, places[now])) + STEP * shift; // the group stays on the plot
    if (low[now] !== null) {
      ink(`s${i}-whisker`, "path", { d: `M${px - 5} ${sy(low[now])}h10m-5 0V${sy(high[now])}m-5 0h10`, class: `ll-whisker ll-tone-${tone}` });
    }
    ink(`s${i}-now`, "path", { d: SHAPES[shape](px, sy(values[now]), 6), class: `ll-mark ll-mark-now ${dashed ? "ll-open" : ""} ll-tone-${tone}` });
  }
  let height = bottom + 48;
  if (aside) {
    const start = right + 24, rows = order.map((i) => ({ x: sy(series[i].values[ends[i]]), width: 34 }));
    ink.text("head", start, top - 16, `at ${where(view, now)}`, NOTE);
    balance(rows, top - 8, bottom + 8, 7).forEach((y, n) => {
      const i = order[n], [px, py] = [places[ends[i]] + 8, rows[n].x];
      ink(`s${i}-leader`, "path", { d: `M${px} ${py}L${Math.max(px, right + 4)} ${py}L${start - 5} ${y - 5}`, class: "ll-leader" });
      drawReading(view, view, `s${i}`, series[i], now, [start, y - 1], [series[i].name, start, y + 16], looks[p][i][0]);
    });
  } else {
    const two = 36 + most.name + 14 + most.reading > room, pitch = two ? 44 : 26, start = bottom + 70;
    const column = room - most.reading;
    ink.text("head", two ? 36 : column, start, `at ${where(view, now)}`, NOTE);
    if (!two && column + most.head > room) ink.text("head", room, start, `at ${where(view, now)}`, NOTE, "end");
    order.forEach((i, n) => {
      const y = start + 24 + pitch * n, [tone, shape] = looks[p][i], { name, dashed } = series[i];
      ink(`s${i}-sample`, "path", { d: `M0 ${y - 4.5}h28`, class: `ll-curve ${dashed ? "ll-curve-dashed" : ""} ll-tone-${tone}` });
      ink(`s${i}-key`, "path", { d: SHAPES[shape](14, y - 4.5, 5), class: `ll-mark ${dashed ? "ll-open" : ""} ll-tone-${tone}` });
      const cut = fit(name, room - 36, (text) => measure(text, SIZE.small, 600));
      drawReading(view, view, `s${i}`, series[i], now, [36, y], [cut, two ? 36 : column, two ? y + 18 : y], tone);
    });
    height = start + 24 + pitch * widest - (two ? 18 : 14);
  }
  ink("ground", "path", { d: `M${left} ${top}H${right}V${bottom}H${left}Z`, class: "ll-ground" });
  Object.assign(plot, { places, box: [left, top, right, bottom] });
  return { height, says: sentence(view, panels[p], now) };
}

const DATA = ["x", "x_text", "x_label", "log", "y_label", "note", "percent", "digits", "panels", "axes", "looks"];

/** A slider or list begins with a capital, unless a symbol or a name does. */
const capital = (text) => text.replace(/^[a-z](?=[a-z]+(?![A-Za-z]))/, (letter) => letter.toUpperCase());

export default {
  render({ model, el }) {
    const traits = Object.fromEntries(DATA.map((key) => [key, model.get(key)])), { x, panels, x_label, y_label } = traits;
    const options = panels.map(({ name }) => [name, name]), letters = options.reduce((sum, [name]) => sum + name.length + 4, 0);
    const label = model.get("panel_label"), list = letters > 70;
    const choose = list ? select("panel", { label, options }) : radios("panel", { label, options, inline: true });
    return mount({
      model, el, draw, extend: pointing((link, near) => link.get("x")[near] !== link.get("at") && link.set({ at: link.get("x")[near] })),
      longest: longestOf(panels.flatMap((panel) => x.map((_, i) => sentence(traits, panel, i)))),
      label: `${y_label} against ${x_label}: curves of what was measured, with their intervals, read out at one ${x_label}`,
      traits: ["panel", "at", ...DATA],
      controls: [
        ...(panels.length > 1 ? [choose] : []),
        steps("at", { label: capital(x_label), values: x, say: (t) => stop(traits, x.indexOf(t)) }),
      ],
    });
  },
};
