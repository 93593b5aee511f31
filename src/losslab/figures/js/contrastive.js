/**
 * InfoNCE of one query, as the figures need it. The same formulas stand in `_contrastive.py`; tests hold both to torch.
 */

/** ln Σ exp(x), shifted by the largest, so that nothing overflows. */
export function logSumExp(values) {
  let most = -Infinity, sum = 0;
  for (const value of values) if (value > most) most = value;
  if (most === -Infinity) return most;
  for (const value of values) sum += Math.exp(value - most);
  return most + Math.log(sum);
}

/** exp(entropy) of shares that sum to 1: how many equal shares would be as spread out. */
export function effective(shares) {
  let entropy = 0;
  for (const share of shares) if (share > 0) entropy -= share * Math.log(share);
  return Math.exp(entropy);
}

/**
 * One row of the score matrix.
 * @param {ArrayLike<number>} scores  s_j, before the temperature
 * @param {number} positive  index of the positive
 * @param {number} temperature
 * @param {(j: number) => boolean} allowed  whether a negative is counted; the positive always is
 * @returns {{loss: number, probabilities: Float64Array, gradient: Float64Array, shares: Float64Array, effective: number, rank: number}}
 *   loss in nats; softmax probabilities; gradient by each score, (p_j − [j = positive]) / τ; each negative's share of all the
 *   push on negatives, p_j / (1 − p_positive); exp(entropy) of those shares; the positive's rank from 1 among what is allowed
 */
export function infoNceRow(scores, positive, temperature, allowed = () => true) {
  const n = scores.length, logits = new Float64Array(n);
  for (let j = 0; j < n; j++) logits[j] = j === positive || allowed(j) ? scores[j] / temperature : -Infinity;
  const total = logSumExp(logits);
  const negatives = logits.slice();
  negatives[positive] = -Infinity;
  const rest = logSumExp(negatives);
  const probabilities = logits.map((z) => Math.exp(z - total));
  const gradient = probabilities.map((p) => p / temperature);
  gradient[positive] = -Math.exp(rest - total) / temperature; // not p − 1, which cancels where the positive has won
  const shares = negatives.map((z) => (rest === -Infinity ? 0 : Math.exp(z - rest)));
  let rank = 1;
  for (const z of negatives) if (z > logits[positive]) rank += 1;
  return { loss: total - logits[positive], probabilities, gradient, shares, effective: effective(shares), rank };
}
