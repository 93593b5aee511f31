/**
 * Pairs of directions as whole numbers from −127 to 127: dot products are then exact, here and in `_directions.py`, whatever the
 * order of the sum. A cosine knows no length, so no scale is kept.
 */

const SPREAD = 40; // standard deviation of the entries of random directions: fine enough to point anywhere, and inside int8

/** Row-major int8 matrices of queries and of documents, with how many pairs and dimensions they hold. */
const pairsOf = (n, d, queries, documents) => ({ n, d, queries, documents, lengths: new Map() });

/** What Python packed: base64 of n × d queries, then n × d documents. */
export function unpack(text, n, d) {
  const bytes = Int8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return pairsOf(n, d, bytes.subarray(0, n * d), bytes.subarray(n * d));
}

/** The normal distribution on whole numbers as a table of 65,536 entries: 16 random bits look their number up. */
function normalTable() {
  const table = new Int8Array(65536), density = (k) => Math.exp((-k * k) / (2 * SPREAD * SPREAD));
  let total = 0, sum = 0, at = 0;
  for (let k = -127; k <= 127; k++) total += density(k);
  for (let k = -127; k <= 127; k++) {
    sum += density(k);
    const end = Math.round((65536 * sum) / total);
    table.fill(k, at, end);
    at = end;
  }
  return table;
}

/** A number's 32 well-mixed bits (the finaliser of MurmurHash3). */
function mixed(h) {
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}

/** `n` pairs of independent random directions, the same for the same seed. */
export function randomPairs(n, d, seed) {
  const table = normalTable(), all = new Int8Array(2 * n * d);
  for (let i = 0; i < n * d; i++) {
    const bits = mixed(seed + i);
    all[2 * i] = table[bits & 65535];
    all[2 * i + 1] = table[bits >>> 16];
  }
  for (let at = 0; at < all.length; at += d) if (!all[at] && !all[at + 1]) all[at] = 1; // two entries already point somewhere
  return pairsOf(n, d, all.subarray(0, n * d), all.subarray(n * d));
}

/** Squared lengths of the first `dims` entries of every row. */
function squares(rows, n, d, dims) {
  return Float64Array.from({ length: n }, (_, i) => {
    let sum = 0;
    for (let k = i * d; k < i * d + dims; k++) sum += rows[k] * rows[k];
    return sum;
  });
}

/** Cosines of one query with the first `width` documents, from the first `dims` entries of each. */
export function rowCosines(pairs, row, width, dims) {
  const { n, d, queries, documents, lengths } = pairs;
  if (!lengths.has(dims)) lengths.set(dims, [squares(queries, n, d, dims), squares(documents, n, d, dims)]);
  const [ours, theirs] = lengths.get(dims), cosines = new Float64Array(width);
  for (let j = 0; j < width; j++) {
    let dot = 0;
    for (let k = 0, a = row * d, b = j * d; k < dims; k++) dot = (dot + queries[a + k] * documents[b + k]) | 0;
    cosines[j] = dot / Math.sqrt(ours[row] * theirs[j]);
  }
  return cosines;
}
