/**
 * Averages of token losses over texts: the one that counts every token once, and three that do not. The same lines stand in
 * `_averages.py`; tests hold both to sums over single tokens.
 */

/** How many orders of the texts there are to choose from: as given, and shuffled ones. */
export const ORDERS = 21;

/** Numbers from 0 up to 1 that depend on the seed alone: a linear congruential generator, its first eight left out. */
function uniforms(seed, n) {
  const found = [];
  for (let i = 0, state = seed; i < n + 8; i++) {
    state = (state * 1664525 + 1013904223) % 4294967296;
    if (i >= 8) found.push(state / 4294967296);
  }
  return found;
}

/** All orders of n ≥ 3 texts; none is the one before it, and only the first is as given. */
export function ordersOf(n) {
  const given = [...Array(n).keys()], orders = [given], same = (a, b) => a.every((text, i) => text === b[i]);
  for (let seed = 1; orders.length < ORDERS; seed++) {
    const order = [...given], draws = uniforms(seed, n);
    for (let i = n - 1; i > 0; i--) {
      const j = Math.floor(draws[i] * (i + 1));
      [order[i], order[j]] = [order[j], order[i]];
    }
    if (!same(order, given) && !same(order, orders.at(-1))) orders.push(order);
  }
  return orders;
}

const sum = (values) => values.reduce((a, b) => a + b, 0);

/** A text's weight under an average, in the order of the data; they sum to 1. */
export function weightsOf(average, tokens, order, batch) {
  const all = sum(tokens), n = tokens.length;
  if (average === "tokens") return tokens.map((t) => t / all);
  if (average !== "batches") return tokens.map(() => 1 / n);
  const weights = Array(n), batches = Math.ceil(n / batch);
  for (let b = 0; b < batches; b++) {
    const texts = order.slice(b * batch, (b + 1) * batch), within = sum(texts.map((i) => tokens[i]));
    for (const i of texts) weights[i] = tokens[i] / within / batches;
  }
  return weights;
}

/** The perplexity that an average reports: exp of a mean loss, or a mean of exps. */
export function perplexityOf(average, means, weights) {
  const each = (height) => sum(means.map((mean, i) => weights[i] * height(mean)));
  return average === "perplexities" ? each(Math.exp) : Math.exp(each((mean) => mean));
}
