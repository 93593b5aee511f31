/**
 * The parts that every live figure shares: tokens, drawing, axes, controls, and the frame that ties them to a model.
 *
 * A figure is one pure function from (room, traits) to marks. It is called again for every change and draws everything;
 * `pen` keeps the node behind each key, so a redraw touches only what changed and CSS can animate it.
 */

/** The look of whatever explains: names of axes, units, notes. */
export const NOTE = "ll-small ll-muted";

/** Sizes in px, for layout here and as `--ll-*` for the style sheet. Colours live in figure.css alone. */
export const SIZE = { small: 13, text: 15, big: 34, tile: 40, bar: 28 };

/** Ids must differ between figures even when each ships its own copy of this file: hence the random part. */
const copy = Math.random().toString(36).slice(2, 8);
let serial = 0;
export const uid = () => `ll-${copy}-${++serial}`;

/** A number as printed: fixed digits and a true minus sign. */
export function num(value, digits = 4) {
  const text = value.toFixed(digits);
  return Number(text) ? text.replace("-", "−") : text.replace("-", ""); // no sign on zero
}
export function signed(value, digits = 4) {
  const text = num(value, digits);
  return value > 0 && Number(text) ? `+${text}` : text;
}
export const percent = (share, digits = 1) => `${num(100 * share, digits)}%`;
export const plural = (n, noun) => `${n} ${noun}${n === 1 ? "" : "s"}`;
/** A whole number with its thousands apart: 1,024. */
export const count = (n) => String(n).replace(/\B(?=(\d{3})+$)/g, ",");
export const upOrDown = (push) => (push > 0 ? "up" : push < 0 ? "down" : "nowhere");

/** A, B and C. */
export const listed = (names) => names.join(", ").replace(/, ([^,]*)$/, " and $1");

/** The `n` longest of some texts, by their letters. */
export const longestOf = (texts, n = 4) => [...new Set(texts)].sort((a, b) => b.length - a.length).slice(0, n);

/** Digits after the point that leave about three that count: 2.00, 12.3, 345. */
export const brief = (value) => num(value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0);

/** A text cut to `most` px: a dotted name loses its head, others their end; `wide` tells the width of a text. */
export function fit(text, most, wide) {
  const head = text.includes(".") && !text.includes(" ");
  let cut = text;
  for (let keep = text.length - 1; keep > 0 && wide(cut) > most; keep--) cut = head ? `…${text.slice(-keep).replace(/^\./, "")}` : `${text.slice(0, keep)}…`;
  return cut;
}

/** The straight line that takes the domain [d0, d1] to the range [r0, r1]. */
export const linear = ([d0, d1], [r0, r1]) => (value) => r0 + ((value - d0) * (r1 - r0)) / (d1 - d0);

/** The same on a logarithmic axis. */
export const logarithmic = ([d0, d1], reach) => {
  const scale = linear([Math.log(d0), Math.log(d1)], reach);
  return (value) => scale(Math.log(value));
};

/** An element with attributes and children. */
function make(space, tag, attrs, ...children) {
  const node = document.createElementNS(space, tag);
  for (const name in attrs) node.setAttribute(name, attrs[name]);
  node.append(...children);
  return node;
}
export const html = (...parts) => make("http://www.w3.org/1999/xhtml", ...parts);
export const svg = (...parts) => make("http://www.w3.org/2000/svg", ...parts);

const moved = ([x, y, turn]) => `translate(${x}px, ${y}px)${turn ? ` rotate(${turn}deg)` : ""}`;

/**
 * Draws by key. Marks stack in the order in which their keys first appeared; a key always comes with the same attributes;
 * `sweep` ends a frame and removes the marks that it did not draw.
 * @param {SVGElement} root
 */
export function pen(root) {
  const kept = new Map();
  let frame = 0;

  /** @param {{at?: number[]}} attrs  SVG attributes; `at` moves the mark by a CSS transform, which can be animated, and its third number turns it by degrees */
  function ink(key, tag, attrs, text = "") {
    if (!kept.has(key)) kept.set(key, { node: root.appendChild(svg(tag, { "data-key": key })), attrs: {}, text: "" });
    const mark = kept.get(key);
    for (const name in attrs) {
      const value = name === "at" ? moved(attrs.at) : attrs[name];
      if (mark.attrs[name] === value) continue;
      mark.attrs[name] = value;
      if (name === "at") mark.node.style.transform = value;
      else mark.node.setAttribute(name, value);
    }
    if (mark.text !== text) mark.node.textContent = mark.text = text;
    mark.frame = frame;
  }

  /** Text with its baseline at (x, y). `look` holds class names of figure.css. */
  ink.text = (key, x, y, text, look = "ll-small", anchor = "start") =>
    ink(key, "text", { at: [x, y], class: look, "text-anchor": anchor }, text);

  ink.sweep = () => {
    for (const [key, mark] of kept) if (mark.frame !== frame) (mark.node.remove(), kept.delete(key));
    frame += 1;
  };
  return ink;
}

/** Width in px of a text in the font that `el` inherits. */
function measurer(el) {
  const canvas = document.createElement("canvas").getContext("2d");
  const { fontFamily } = getComputedStyle(el);
  const known = new Map(); // setting a font costs more than the rest of many a frame
  return (text, size = SIZE.small, weight = 400) => {
    const key = `${weight} ${size} ${text}`;
    if (!known.has(key)) {
      if (known.size > 2000) known.clear();
      canvas.font = `${weight} ${size}px ${fontFamily}`;
      known.set(key, canvas.measureText(text).width);
    }
    return known.get(key);
  };
}

/** The pattern that means "not a document": slanted lines, so that it survives any colour vision and any printer. */
function hatch(root) {
  const tile = { id: uid(), width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" };
  root.append(svg("pattern", tile, svg("path", { d: "M1 0V6", class: "ll-hatch" })));
  return `url(#${tile.id})`;
}

/** Ticks of one axis. Left: a grid line from `at` to `to` at each tick. Bottom: the label alone, below `at`. */
export function axis(ink, key, { side, scale, ticks, at, to, show = String }) {
  for (const tick of ticks) {
    const p = scale(tick), left = side === "left";
    const [x, y, anchor] = left ? [at - 8, p + 4.5, "end"] : [p, at + 20, "middle"];
    if (left) ink(`${key}-grid-${tick}`, "path", { d: `M${at} ${p}H${to}`, class: tick === 0 ? "ll-zero" : "ll-grid" });
    ink.text(`${key}-tick-${tick}`, x, y, show(tick), NOTE, anchor);
  }
}

/** Path of a vertical arrow. Always the same commands, so one arrow can turn into another. */
export function arrow(x, from, to, width) {
  const shaft = width / 4, head = width / 2;
  const neck = to - Math.sign(to - from) * Math.min(width * 0.75, Math.abs(to - from) * 0.6);
  return `M${x - shaft} ${from}V${neck}H${x - head}L${x} ${to}L${x + head} ${neck}H${x + shaft}V${from}Z`;
}

/**
 * Centres for labels in a row, near what they name but apart: pushed right from `lo`, then back left from `hi`.
 * @param {{x: number, width: number}[]} labels  wanted centre and width, from left to right
 */
export function spread(labels, lo, hi, gap = 12) {
  const left = labels.map(({ x, width }) => x - width / 2);
  labels.reduce((start, { width }, i) => (left[i] = Math.max(left[i], start)) + width + gap, lo);
  labels.reduceRight((end, { width }, i) => (left[i] = Math.min(left[i], end - width)) - gap, hi);
  return left.map((x, i) => x + labels[i].width / 2);
}

/**
 * A labelled native slider on a numeric trait; `say` writes its value for eyes and for screen readers. Where `max` depends on
 * other traits it is a function of `link.get`, and `follows` names those traits.
 */
export const range = (trait, { label, min, max, step = 1, say = String, follows = [] }) => (link) => {
  const id = uid();
  const most = () => (typeof max === "function" ? max(link.get) : max);
  const input = html("input", { id, type: "range", min, max: most(), step });
  const value = html("span", { class: "ll-value", "aria-hidden": "true" });
  input.addEventListener("input", () => link.set({ [trait]: input.valueAsNumber }));
  const show = () => {
    input.max = most(); // before the value, which it limits
    input.value = link.get(trait);
    value.textContent = say(link.get(trait));
    input.setAttribute("aria-valuetext", value.textContent);
  };
  for (const name of [trait, ...follows]) link.watch(name, show);
  return html("div", { class: "ll-control" }, html("label", { for: id }, label), value, input);
};

/**
 * The same on a trait that takes only `values`, in the order in which the slider steps through them; a function of `link.get`
 * where they depend on the traits that `follows` names.
 */
export const steps = (trait, { label, values, say = String, follows = [] }) => (link) => {
  const offered = () => (typeof values === "function" ? values(link.get) : values);
  const at = { get: () => offered().indexOf(link.get(trait)), set: ({ at }) => link.set({ [trait]: offered()[at] }) };
  const watch = (name, react) => link.watch(name === "at" ? trait : name, react);
  const max = () => offered().length - 1;
  return range("at", { label, min: 0, max, follows, say: (i) => say(offered()[i] ?? link.get(trait)) })({ ...at, watch });
};

/** Labelled native radio buttons on a trait: every state has its name, and all names are always in view. */
export const radios = (trait, { label, options, inline = false }) => (link) => {
  const name = uid();
  const buttons = options.map(([value, text]) => {
    const input = html("input", { type: "radio", name });
    input.addEventListener("change", () => link.set({ [trait]: value }));
    link.watch(trait, () => (input.checked = link.get(trait) === value));
    return html("label", {}, input, text);
  });
  return html("fieldset", { class: inline ? "ll-control ll-inline" : "ll-control" }, html("legend", {}, label), ...buttons);
};

/**
 * Puts a figure on the page: controls and reset, the live sentence, the drawing; redraws on every change of trait or width.
 * Returns what takes it off again.
 * @param {object} figure
 * @param {object} figure.model  anywidget model: get, set, save_changes, on, off
 * @param {HTMLElement} figure.el
 * @param {string} figure.label  what the drawing is, for screen readers; what it shows now is the live sentence
 * @param {string[]} figure.traits
 * @param {((link: object) => HTMLElement)[]} figure.controls
 * @param {(view: object) => {height: number, says: string}} figure.draw  view: ink, room (px), measure, hatch and every trait
 * @param {(frame: object) => object} [figure.extend]  called once with group, drawing, link and redraw; returns what joins the
 *   view that `draw` gets, and `off` if there is something to end
 * @param {string[]} figure.longest  sentences as long as any that `draw` may say: their room is kept, so the drawing never jumps
 * @param {((link: object) => {node: HTMLElement, place: (drawn: object) => void})[]} figure.over  layers over the drawing, such as
 *   the handles of points.js; each is handed what `draw` returned
 */
export function mount({ model, el, label, traits, controls, draw, longest, over = [], extend }) {
  const offs = [];
  const held = { still: false, quiet: false, back: false };
  let told = -Infinity;
  const read = () => Object.fromEntries(traits.map((trait) => [trait, model.get(trait)]));
  const link = {
    get: (trait) => model.get(trait),
    set(changes) {
      held.back = true; // several changes are one redraw
      for (const trait in changes) model.set(trait, changes[trait]);
      held.back = false;
      redraw();
      model.save_changes();
    },
    watch(trait, react) {
      model.on(`change:${trait}`, react);
      offs.push(() => model.off(`change:${trait}`, react));
      react();
    },
    /** While something moves: `still` lets no mark lag behind it, `quiet` lets the sentence change once a second at most. */
    hold(changes) {
      Object.assign(held, changes);
      group.classList.toggle("ll-held", held.still);
      if (!held.quiet) redraw();
    },
  };

  const start = read();
  const reset = html("button", { type: "button", class: "ll-reset" }, "Reset");
  reset.addEventListener("click", () => link.set(start));
  const live = html("p", { class: "ll-live", "aria-live": "polite", "aria-atomic": "true" });
  const unseen = longest.map((text) => html("p", { class: "ll-live ll-unseen", "aria-hidden": "true" }, text));
  const says = html("div", { class: "ll-says" }, live, ...unseen);
  const drawing = svg("svg", { role: "img", "aria-label": label });
  const panel = html("div", { class: controls.length > 1 ? "ll-controls" : "ll-controls ll-single" });
  panel.append(...controls.map((build) => build(link)), reset);
  // JupyterLab takes arrow keys for itself before a control sees them, but not on an element that says no.
  for (const node of panel.querySelectorAll("input, button")) node.dataset.lmSuppressShortcuts = "true";
  const group = html("div", { class: "ll-fig", role: "group", "aria-label": model.get("title") || label }, panel, says, drawing);
  for (const name in SIZE) group.style.setProperty(`--ll-${name}`, `${SIZE[name]}px`);
  const layers = over.map((build) => build(link));
  if (layers.length) {
    const stage = html("div", { class: "ll-stage" }, ...layers.map((layer) => layer.node));
    drawing.replaceWith(stage);
    stage.prepend(drawing);
  }
  el.append(group);

  const view = { ink: pen(drawing), hatch: hatch(drawing), measure: null, room: 0 };
  function redraw() {
    if (!view.room || held.back) return;
    const drawn = draw({ ...view, ...read() }), { height, says } = drawn;
    view.ink.sweep();
    drawing.setAttribute("width", view.room); // one unit is one CSS pixel: a new width lays out anew and never scales text
    drawing.setAttribute("height", height);
    for (const layer of layers) layer.place(drawn);
    if (held.quiet && performance.now() - told < 1000) return;
    told = performance.now();
    live.textContent = says;
  }
  if (extend) {
    const { off, ...more } = extend({ group, drawing, link, redraw });
    Object.assign(view, more);
    if (off) offs.push(off);
  }
  for (const trait of traits) link.watch(trait, () => (drawing.classList.remove("ll-still"), redraw()));
  const observer = new ResizeObserver(([entry]) => {
    const room = Math.floor(entry.contentRect.width);
    if (room === view.room) return;
    view.room = room;
    view.measure = measurer(group); // not before: some hosts put `el` into the page after they rendered it
    drawing.classList.add("ll-still"); // a new layout appears at once; only changes of traits move
    redraw();
  });
  observer.observe(group);

  return () => {
    observer.disconnect();
    for (const off of offs) off();
    group.remove();
  };
}
