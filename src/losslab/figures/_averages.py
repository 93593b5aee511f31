"""Averages of token losses over texts, as in ``js/averages.js``: one counts every token once, three do not."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from math import ceil, exp, floor

from losslab.figures._descent import uniforms

ORDERS = 21  # orders of the texts to choose from: as given, and shuffled ones


def orders_of(n: int) -> list[list[int]]:
    """Return all orders of n ≥ 3 texts; none is the one before it, and only the first is as given."""
    given = list(range(n))
    orders = [given]
    for seed in count(1):
        if len(orders) == ORDERS:
            break
        order, draws = [*given], uniforms(seed, n)
        for i in range(n - 1, 0, -1):
            j = floor(draws[i] * (i + 1))
            order[i], order[j] = order[j], order[i]
        if order not in (given, orders[-1]):
            orders.append(order)
    return orders


def weights_of(average: str, tokens: Sequence[int], order: Sequence[int], batch: int) -> list[float]:
    """Return the weight of each text under an average, in the order of the data; they sum to 1."""
    n = len(tokens)
    if average == "tokens":
        return [t / sum(tokens) for t in tokens]
    if average != "batches":
        return [1 / n] * n
    weights, batches = [0.0] * n, ceil(n / batch)
    for b in range(batches):
        texts = order[b * batch : (b + 1) * batch]
        within = sum(tokens[i] for i in texts)
        for i in texts:
            weights[i] = tokens[i] / within / batches
    return weights


def perplexity_of(average: str, means: Sequence[float], weights: Sequence[float]) -> float:
    """Return the perplexity that an average reports: exp of a mean loss, or a mean of exps."""
    if average == "perplexities":
        return sum(w * exp(mean) for w, mean in zip(weights, means, strict=True))
    return exp(sum(w * mean for w, mean in zip(weights, means, strict=True)))
