/**
 * Pairs on a circle or a sphere that descend InfoNCE, deterministic from a seed. The same run stands in `_descent.py`; tests hold
 * both to each other over every step, and the gradient to torch.
 */

export const LAST = 200; // steps of a run
export const RATE = 0.01; // learning rate, on the sum over queries

/** What the mean loss cannot fall below. */
export const floorOf = (pairs, shared) => (shared ? (2 / pairs) * Math.LN2 : 0);

/** Numbers from 0 up to 1 that depend on the seed alone: a linear congruential generator, its first eight left out. */
export function uniforms(seed, count) {
  const found = [];
  for (let n = 0, state = seed; n < count + 8; n++) {
    state = (state * 1664525 + 1013904223) % 4294967296;
    if (n >= 8) found.push(state / 4294967296);
  }
  return found;
}

/** Queries and documents before the first step, each a flat array of N points, spread at random. */
export function startOf({ pairs, surface, seed, shared }) {
  const d = surface === "circle" ? 2 : 3, draws = uniforms(seed, 4 * pairs), points = new Float64Array(2 * pairs * d);
  for (let i = 0; i < 2 * pairs; i++) {
    const turn = 2 * Math.PI * draws[2 * i], height = 2 * draws[2 * i + 1] - 1;
    const wide = d === 2 ? 1 : Math.sqrt(1 - height * height);
    points.set([wide * Math.cos(turn), wide * Math.sin(turn), height].slice(0, d), i * d);
  }
  const queries = points.slice(0, pairs * d), documents = points.slice(pairs * d);
  if (shared) documents.copyWithin(d, 0, d);
  return { d, queries, documents };
}

/**
 * The mean loss, and the gradient of the sum over queries by queries and documents. InfoNCE in one direction: each query's softmax
 * goes over all N columns. A shared document is one point, whose gradient is the sum over both of its columns.
 */
export function slopes({ d, queries, documents, temperature, shared }) {
  const n = queries.length / d, byQueries = new Float64Array(n * d), byDocuments = new Float64Array(n * d);
  const logits = new Float64Array(n);
  let loss = 0;
  for (let i = 0; i < n; i++) {
    let most = -Infinity, total = 0;
    for (let j = 0; j < n; j++) {
      let dot = 0;
      for (let k = 0; k < d; k++) dot += queries[i * d + k] * documents[j * d + k];
      logits[j] = dot / temperature;
      if (logits[j] > most) most = logits[j];
    }
    loss += most - logits[i];
    for (let j = 0; j < n; j++) total += logits[j] = Math.exp(logits[j] - most);
    loss += Math.log(total);
    for (let j = 0; j < n; j++) {
      const byScore = (logits[j] / total - (i === j ? 1 : 0)) / temperature;
      for (let k = 0; k < d; k++) {
        byQueries[i * d + k] += byScore * documents[j * d + k];
        byDocuments[j * d + k] += byScore * queries[i * d + k];
      }
    }
  }
  if (shared) for (let k = 0; k < d; k++) byDocuments[k] = byDocuments[d + k] = byDocuments[k] + byDocuments[d + k];
  return { loss: loss / n, byQueries, byDocuments };
}

/** One step along the surface: the gradient without its part along the point, then back to length 1. */
function moved(points, gradient, d) {
  const next = new Float64Array(points.length);
  for (let i = 0; i < points.length; i += d) {
    let along = 0, square = 0;
    for (let k = i; k < i + d; k++) along += gradient[k] * points[k];
    for (let k = i; k < i + d; k++) {
      next[k] = points[k] - RATE * (gradient[k] - along * points[k]);
      square += next[k] * next[k];
    }
    const length = Math.sqrt(square);
    for (let k = i; k < i + d; k++) next[k] /= length;
  }
  return next;
}

function gap(a, i, b, j, d) {
  let sum = 0;
  for (let k = 0; k < d; k++) sum += (a[i * d + k] - b[j * d + k]) ** 2;
  return sum;
}

/** ln of the mean of exp(−2 ‖x − y‖²) over pairs of different points (Wang & Isola 2020). */
export function uniformity(points, d) {
  const n = points.length / d;
  let sum = 0;
  for (let i = 0; i < n; i++) for (let j = i + 1; j < n; j++) sum += Math.exp(-2 * gap(points, i, points, j, d));
  return Math.log(sum / ((n * (n - 1)) / 2));
}

/**
 * A whole run.
 * @param {{pairs: number, surface: string, temperature: number, seed: number, shared: boolean}} settings
 * @returns {{d: number, queries: Float64Array[], documents: Float64Array[], loss: number[], alignment: number[], uniformity: number[]}}
 *   states before each step and after the last; mean loss; mean squared distance of a query and its positive; the mean of the
 *   queries' and the documents' uniformity
 */
export function descend(settings) {
  const { pairs: n, temperature, shared } = settings;
  let { d, queries, documents } = startOf(settings);
  const run = { d, queries: [], documents: [], loss: [], alignment: [], uniformity: [] };
  for (let step = 0; step <= LAST; step++) {
    const { loss, byQueries, byDocuments } = slopes({ d, queries, documents, temperature, shared });
    let apart = 0;
    for (let i = 0; i < n; i++) apart += gap(queries, i, documents, i, d);
    run.queries.push(queries);
    run.documents.push(documents);
    run.loss.push(loss);
    run.alignment.push(apart / n);
    run.uniformity.push((uniformity(queries, d) + uniformity(documents, d)) / 2);
    [queries, documents] = [moved(queries, byQueries, d), moved(documents, byDocuments, d)];
  }
  return run;
}

/** `descend`, which keeps what it has worked out. */
const kept = new Map();
export function runOf({ pairs, surface, temperature, seed, shared }) {
  const key = [pairs, surface, temperature, seed, shared].join(" ");
  if (!kept.has(key)) {
    if (kept.size > 40) kept.clear();
    kept.set(key, descend({ pairs, surface, temperature, seed, shared }));
  }
  return kept.get(key);
}
