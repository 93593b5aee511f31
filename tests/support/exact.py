"""The objectives as their papers write them: one list, one document at a time, in exact-enough decimal arithmetic.

Nothing here is shared with losslab. Fifty decimal digits leave no rounding to argue about, at any size of logit.
"""

from decimal import Decimal, getcontext

getcontext().prec = 50


def _exact(values):
    return [Decimal(float(v)) for v in values]


def choices(logits, weights):
    """Value and gradient of sum_i w_i [log sum_{j>=i} exp z_j - z_i], best document first."""
    z, value, gradient = _exact(logits), Decimal(0), [Decimal(0)] * len(logits)
    for i, weight in enumerate(weights):
        peak = max(z[i:])
        mass = [(v - peak).exp() for v in z[i:]]
        value += weight * (sum(mass).ln() + peak - z[i])
        gradient[i] -= weight
        for j, m in enumerate(mass):
            gradient[i + j] += weight * m / sum(mass)
    return value, gradient


def rank(labels, order):
    """Indices best first; ties as given."""
    n = range(len(labels))
    return list(n) if order == "given" else sorted(n, key=lambda i: -float(labels[i]))


def _in_rank_order(logits, labels, order, weights):
    by_rank = rank(labels, order)
    value, ranked = choices([logits[i] for i in by_rank], weights)
    gradient = [Decimal(0)] * len(logits)
    for place, i in enumerate(by_rank):
        gradient[i] = ranked[place]
    return value, gradient


def list_mle(logits, labels, order="labels"):
    return _in_rank_order(logits, labels, order, [Decimal(1)] * len(logits))


def p_list_mle(logits, labels, order="labels"):
    n = len(logits)
    raw = [2 ** (n - rank) - 1 for rank in range(1, n + 1)]
    return _in_rank_order(logits, labels, order, [Decimal(w) / sum(raw) for w in raw])


def list_net(logits, labels, order="labels"):  # noqa: ARG001 - the call form of the others
    z, y = _exact(logits), _exact(labels)
    mass = [(v - max(z)).exp() for v in z]
    target = [(v - max(y)).exp() for v in y]
    shares = [m / sum(mass) for m in mass]
    target = [t / sum(target) for t in target]
    value = sum(t * (sum(mass).ln() + max(z) - v) for t, v in zip(target, z, strict=True))
    return value, [s - t for s, t in zip(shares, target, strict=True)]
