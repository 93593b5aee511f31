/** Pixels beneath the marks: a canvas under a drawing, and the colours of the style sheet for what is painted by hand. */
import { html } from "./kit.js";

/** Calls `react` whenever the page may have changed its colours: a theme of the host, or the reader's own wish. */
export function onTheme(react) {
  const wish = matchMedia("(prefers-color-scheme: dark)");
  const observer = new MutationObserver(react);
  const attributeFilter = ["class", "style", "theme", "data-theme", "data-mode", "data-jp-theme-light"];
  for (const node of [document.documentElement, document.body]) observer.observe(node, { attributes: true, attributeFilter });
  wish.addEventListener("change", react);
  return () => (observer.disconnect(), wish.removeEventListener("change", react));
}

/** The colours that names of figure.css now stand for, each as [red, green, blue] of 0 to 255. */
export function colours(el, names) {
  const brush = Object.assign(document.createElement("canvas"), { width: 1, height: 1 }).getContext("2d", { willReadFrequently: true });
  const probe = el.appendChild(html("span", { hidden: "" }));
  const found = names.map((name) => {
    probe.style.color = `var(--ll-${name})`;
    brush.fillStyle = getComputedStyle(probe).color; // in whatever notation: a painted pixel tells
    brush.fillRect(0, 0, 1, 1);
    return [...brush.getImageData(0, 0, 1, 1).data.slice(0, 3)];
  });
  probe.remove();
  return found;
}

/** 256 shades along colours that are evenly spaced, as 32-bit pixels. */
export function shades(stops) {
  const bytes = new Uint8ClampedArray(4 * 256).fill(255);
  for (let i = 0; i < 256; i++) {
    const at = (i / 255) * (stops.length - 1), k = Math.min(stops.length - 2, Math.floor(at));
    for (let c = 0; c < 3; c++) bytes[4 * i + c] = stops[k][c] + (at - k) * (stops[k + 1][c] - stops[k][c]);
  }
  return new Uint32Array(bytes.buffer);
}

/** A canvas beneath the marks of a drawing; eyes see it, and the drawing's label and sentence speak for it. */
export function backdrop(drawing) {
  const canvas = html("canvas", { class: "ll-canvas", width: 1, height: 1, "aria-hidden": "true" });
  if (drawing.parentNode.classList.contains("ll-stage")) drawing.before(canvas);
  else {
    const stage = html("div", { class: "ll-stage" });
    drawing.replaceWith(stage);
    stage.append(canvas, drawing);
  }
  return canvas;
}
