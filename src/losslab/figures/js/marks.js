/** Curves through measured points: the shapes of their marks, gaps, names below an axis, marks side by side, and a pointer. */

/** The outline of a mark: disc, diamond, square, triangle, triangle on its tip; all about as large to the eye. */
export const SHAPES = [
  (x, y, r) => `M${x - r} ${y}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0Z`,
  (x, y, r) => `M${x - 1.25 * r} ${y}L${x} ${y - 1.25 * r}L${x + 1.25 * r} ${y}L${x} ${y + 1.25 * r}Z`,
  (x, y, r) => `M${x - 0.9 * r} ${y - 0.9 * r}H${x + 0.9 * r}V${y + 0.9 * r}H${x - 0.9 * r}Z`,
  (x, y, r) => `M${x - 1.15 * r} ${y + 0.85 * r}L${x} ${y - 1.15 * r}L${x + 1.15 * r} ${y + 0.85 * r}Z`,
  (x, y, r) => `M${x - 1.15 * r} ${y - 0.85 * r}L${x} ${y + 1.15 * r}L${x + 1.15 * r} ${y - 0.85 * r}Z`,
];

/** Stretches of neighbouring indices for which `there` holds. */
export function runs(n, there) {
  const found = [];
  for (let i = 0; i < n; i++) {
    if (!there(i)) continue;
    if (i && there(i - 1)) found.at(-1).push(i);
    else found.push([i]);
  }
  return found;
}

/** Which of the stops are named below the axis: the first, the last, and from the left those that keep clear of both. */
export function named(places, widths) {
  const last = places.length - 1, clear = (i, j) => places[j] - places[i] >= (widths[i] + widths[j]) / 2 + 9;
  const kept = [0];
  for (let i = 1; i < last; i++) if (clear(kept.at(-1), i) && clear(i, last)) kept.push(i);
  return [...kept, last];
}

/**
 * Where the marks at the current x stand: at x, but side by side where they or their intervals would cover each other. Returns
 * of each the steps that it is moved by, and the most steps in its group.
 * @param {([number, number] | null)[]} extents  upper and lower end of each, px; null where there is nothing
 */
export function beside(extents) {
  const order = [...extents.keys()].filter((i) => extents[i]).sort((a, b) => extents[a][0] - extents[b][0] || a - b);
  const groups = [];
  let end = -Infinity;
  for (const i of order) {
    if (extents[i][0] < end) groups.at(-1).push(i);
    else groups.push([i]);
    end = Math.max(end, extents[i][1]);
  }
  const found = extents.map(() => [0, 0]);
  for (const group of groups) {
    const half = (group.length - 1) / 2;
    group.sort((a, b) => a - b).forEach((i, n) => (found[i] = [n - half, half]));
  }
  return found;
}

/**
 * A pointer on the plot takes the nearest of the places at which something was measured, as the slider does for the keyboard.
 * The drawing writes into `plot` of its view where those `places` are, and the `box` around them: left, top, right, bottom.
 * @param {(link: object, near: number) => void} choose  is told the index of the place
 */
export const pointing = (choose) => ({ drawing, link }) => {
  const plot = { places: [], box: [0, 0, 0, 0] }, offs = [];
  let held = false;
  const place = ({ clientX, clientY }) => {
    const frame = drawing.getBoundingClientRect();
    return [clientX - frame.left, clientY - frame.top];
  };
  const pick = ([px]) => {
    const near = plot.places.reduce((best, x, i) => (Math.abs(x - px) < Math.abs(plot.places[best] - px) ? i : best), 0);
    choose(link, near);
  };
  const on = (name, react) => {
    drawing.addEventListener(name, react);
    offs.push(() => drawing.removeEventListener(name, react));
  };
  on("pointerdown", (event) => {
    const [px, py] = place(event), [left, top, right, bottom] = plot.box;
    held = event.button === 0 && px >= left && px <= right && py >= top && py <= bottom;
    if (!held) return;
    drawing.setPointerCapture(event.pointerId);
    pick([px]);
  });
  on("pointermove", (event) => held && pick(place(event)));
  for (const end of ["pointerup", "pointercancel"]) on(end, () => (held = false));
  return { plot, off: () => offs.forEach((off) => off()) };
};
