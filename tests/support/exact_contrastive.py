"""The contrastive objectives as their formulas stand: one query at a time, in fifty-digit decimal arithmetic.

Nothing here is shared with losslab. Embeddings enter as the numbers they are; scores, norms and gradients by embeddings
are all worked out in decimals, so that no rounding is left to argue about.
"""

from decimal import Decimal

import torch

import exact  # noqa: F401 - sets fifty digits

ZERO, ONE = Decimal(0), Decimal(1)


def _rows(tensor):
    return [[Decimal(v) for v in row] for row in tensor.detach().cpu().double().tolist()]


def _dot(a, b):
    return sum((x * y for x, y in zip(a, b, strict=True)), ZERO)


class Embeddings:
    """Vectors with their unit forms, and a gradient by the unit forms that is carried back to the vectors."""

    def __init__(self, rows, normalize):
        self.norms = [_dot(r, r).sqrt() if normalize else ONE for r in rows]
        self.units = [[v / n for v in r] for r, n in zip(rows, self.norms, strict=True)]
        self.pushes = [[ZERO] * len(r) for r in rows]
        self.normalize = normalize

    def push(self, row, weight, towards):
        self.pushes[row] = [p + weight * t for p, t in zip(self.pushes[row], towards, strict=True)]

    def gradient(self):
        result = []
        for unit, norm, push in zip(self.units, self.norms, self.pushes, strict=True):
            if not any(push):  # not used: padding, whatever it holds
                result.append([0.0] * len(push))
                continue
            along = _dot(unit, push) if self.normalize else ZERO
            result.append([float((p - along * u) / norm) for u, p in zip(unit, push, strict=True)])
        return torch.tensor(result, dtype=torch.float64)


def softmax(logits):
    """Log of the normaliser, and the shares."""
    peak = max(logits)
    mass = [(x - peak).exp() for x in logits]
    return sum(mass).ln() + peak, [m / sum(mass) for m in mass]


class Problem:
    """Queries and documents, with value and gradient of a loss added up term by term."""

    def __init__(self, queries, documents, temperature=0.05, normalize=True, hard=None):
        self.q = Embeddings(_rows(queries), normalize)
        self.d = Embeddings(_rows(documents), normalize)
        self.hard = None if hard is None else [Embeddings(_rows(h), normalize) for h in hard]
        self.t = Decimal(temperature)
        self.values = []

    def logit(self, i, j):
        return _dot(self.q.units[i], self.d.units[j]) / self.t

    def pull(self, i, j, weight):
        """Let the loss have this derivative by logit (i, j)."""
        self.q.push(i, weight / self.t, self.d.units[j])
        self.d.push(j, weight / self.t, self.q.units[i])

    def pull_hard(self, i, h, weight):
        self.q.push(i, weight / self.t, self.hard[i].units[h])
        self.hard[i].push(h, weight / self.t, self.q.units[i])

    def gradients(self):
        found = [self.q.gradient(), self.d.gradient()]
        return found if self.hard is None else [*found, torch.stack([h.gradient() for h in self.hard])]


def info_nce(queries, documents, *, negatives=None, hard=None, hard_mask=None, offset=0, symmetric=False, **kw):
    """Value of each query, and gradients of their mean by queries, documents and hard negatives."""
    p = Problem(queries, documents, hard=hard, **kw)
    b, m = len(queries), len(documents)
    share = ONE / b / (2 if symmetric else 1)
    for i in range(b):
        candidates = [j for j in range(m) if negatives is None or negatives[i, j]]
        extra = [] if hard is None else [h for h in range(hard.shape[1]) if hard_mask is None or hard_mask[i, h]]
        logits = [p.logit(i, j) for j in candidates]
        logits += [_dot(p.q.units[i], p.hard[i].units[h]) / p.t for h in extra]
        normaliser, shares = softmax(logits)
        value = normaliser - p.logit(i, i + offset)
        for j, s in zip(candidates, shares, strict=False):
            p.pull(i, j, share * (s - (1 if j == i + offset else 0)))
        for h, s in zip(extra, shares[len(candidates) :], strict=True):
            p.pull_hard(i, h, share * s)
        if symmetric:
            candidates = [k for k in range(b) if negatives is None or negatives[k, i]]
            normaliser, shares = softmax([p.logit(k, i) for k in candidates])
            value = (value + normaliser - p.logit(i, i)) / 2
            for k, s in zip(candidates, shares, strict=True):
                p.pull(k, i, share * (s - (1 if k == i else 0)))
        p.values.append(value)
    return p.values, p.gradients()


def multi_positive(queries, documents, positives, *, negatives=None, **kw):
    p = Problem(queries, documents, **kw)
    b, m = positives.shape
    for i in range(b):
        right = [j for j in range(m) if positives[i, j]]
        candidates = [j for j in range(m) if negatives is None or negatives[i, j]]
        near, near_shares = softmax([p.logit(i, j) for j in right])
        far, far_shares = softmax([p.logit(i, j) for j in candidates])
        p.values.append(far - near)
        for j, s in zip(candidates, far_shares, strict=True):
            p.pull(i, j, s / b)
        for j, s in zip(right, near_shares, strict=True):
            p.pull(i, j, -s / b)
    return p.values, p.gradients()


def graded(queries, documents, labels, *, label_temperature=1.0, mask=None, **kw):
    p = Problem(queries, documents, **kw)
    b, m = labels.shape
    for i in range(b):
        judged = [j for j in range(m) if mask is None or mask[i, j]]
        normaliser, shares = softmax([p.logit(i, j) for j in judged])
        _, targets = softmax([Decimal(float(labels[i, j])) / Decimal(label_temperature) for j in judged])
        p.values.append(sum(t * (normaliser - p.logit(i, j)) for j, t in zip(judged, targets, strict=True)))
        for j, s, t in zip(judged, shares, targets, strict=True):
            p.pull(i, j, (s - t) / b)
    return p.values, p.gradients()
