/** Arrows in any direction, and labels that find room beside what they name. */

/**
 * Path of an arrow. Always the same commands, so one arrow can turn into another; too short for its head, it is all head.
 * @param {[number, number]} from
 * @param {[number, number]} to
 * @param {number} width  px, of the shaft; the head is three times as wide
 */
export function vector([x0, y0], [x1, y1], width) {
  const long = Math.hypot(x1 - x0, y1 - y0) || 1e-9;
  const [ux, uy] = [(x1 - x0) / long, (y1 - y0) / long];
  const head = Math.min(long, 3.4 * width), shaft = width / 2, wing = (1.5 * width * head) / (3.4 * width);
  const at = (along, aside) => `${(x0 + ux * along - uy * aside).toFixed(2)} ${(y0 + uy * along + ux * aside).toFixed(2)}`;
  const neck = long - head;
  return `M${at(0, shaft)}L${at(neck, shaft)}L${at(neck, wing)}L${at(long, 0)}L${at(neck, -wing)}L${at(neck, -shaft)}L${at(0, -shaft)}Z`;
}

/** Boxes along a line, for labels to keep clear of. */
export function along([x0, y0], [x1, y1], half = 6) {
  const parts = Math.max(1, Math.ceil(Math.hypot(x1 - x0, y1 - y0) / 12)), boxes = [];
  for (let i = 0; i <= parts; i++) {
    const x = x0 + ((x1 - x0) * i) / parts, y = y0 + ((y1 - y0) * i) / parts;
    boxes.push([x - half, y - half, x + half, y + half]);
  }
  return boxes;
}

const overlap = (a, b) => Math.max(0, Math.min(a[2], b[2]) - Math.max(a[0], b[0])) * Math.max(0, Math.min(a[3], b[3]) - Math.max(a[1], b[1]));

/**
 * Middles for labels beside what they name: each takes, in turn, the place that covers least of what is there, the nearest of these,
 * and of the nearest the one most in the direction that it wants.
 * @param {{x: number, y: number, dx: number, dy: number, clear: number, width: number, height?: number}[]} labels  middle of
 *   what it names, direction it wants, px to stay clear of the middle, own size
 * @param {number[][]} taken  boxes: left, top, right, bottom
 * @param {number[]} bounds  a box that no label leaves
 * @returns {[number, number][]}
 */
export function besides(labels, taken, bounds) {
  const there = [...taken];
  return labels.map(({ x, y, dx, dy, clear, width, height = 16 }) => {
    const want = Math.atan2(dy, dx);
    let best = null, least = Infinity;
    for (let ring = 0; ring < 4; ring++)
      for (let k = 0; k < 16; k++) {
        const side = ((k % 2 ? 1 : -1) * Math.ceil(k / 2) * Math.PI) / 8, angle = want + side;
        const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
        const reach = clear + ring * 14 + Math.min(width / 2 / Math.max(Math.abs(cos), 1e-6), height / 2 / Math.max(Math.abs(sin), 1e-6));
        const mx = Math.min(Math.max(x + cos * reach, bounds[0] + width / 2), bounds[2] - width / 2);
        const my = Math.min(Math.max(y + sin * reach, bounds[1] + height / 2), bounds[3] - height / 2);
        const box = [mx - width / 2, my - height / 2, mx + width / 2, my + height / 2];
        let cost = ring * 30 + Math.abs(side) * 8;
        for (const other of there) if ((cost += 10 * overlap(box, other)) >= least) break;
        if (cost < least) [least, best] = [cost, box];
      }
    there.push(best);
    return [(best[0] + best[2]) / 2, (best[1] + best[3]) / 2];
  });
}
