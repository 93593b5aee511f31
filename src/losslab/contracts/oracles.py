"""Slow, plain float64 loops for whole objectives: the specification that fast losses are held to.

A listwise one takes one list as plain numbers and gives its value and the gradient by its logits; a contrastive one
takes a batch of embeddings and gives one value a query and the gradients of their sum by the embeddings; a token one
takes the logits and labels of a batch of texts and gives the value and the gradient by the logits. They share no code
with `losslab.losses` and `losslab.language`, and no trick: what a formula says is what a loop does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch

from losslab.contracts.model import ContrastiveConventions, Conventions, Order, Pairs, Query, Texts, TokenConventions

Oracle = Callable[[Sequence[float], Sequence[float], Order], tuple[float, list[float]]]


def ranking(labels: Sequence[float], order: Order) -> list[int]:
    """Documents best first: by label, equal labels in the order given; or as given."""
    if order == "given":
        return list(range(len(labels)))
    return sorted(range(len(labels)), key=lambda i: -labels[i])  # Python's sort is stable


def log_sum_exp(numbers: Sequence[float]) -> float:
    """log(sum(exp(x))), safe at any magnitude."""
    peak = max(numbers)
    return peak + math.log(math.fsum(math.exp(x - peak) for x in numbers))


def list_mle(logits: Sequence[float], labels: Sequence[float], order: Order = "labels") -> tuple[float, list[float]]:
    """ListMLE of one list: -log of the Plackett-Luce probability of the right ranking.

    Documents are chosen one after the other; each choice is a softmax over those left. Xia et al., "Listwise approach
    to learning to rank", ICML 2008, eq. 8.
    """
    return _plackett_luce(logits, ranking(labels, order), [1.0] * len(logits))


def p_list_mle(logits: Sequence[float], labels: Sequence[float], order: Order = "labels") -> tuple[float, list[float]]:
    """Position-aware ListMLE of one list: the choice at rank r weighs 2^(n-r) - 1, ranks from 1, weights summing to 1.

    Lan et al., "Position-aware ListMLE", UAI 2014, section 4.2. The weights' sum is 2^n - 1 - n; both are divided by
    2^n, which leaves the quotient as it is and keeps lists of thousands finite.
    """
    n = len(logits)
    scaled = [2.0**-rank - 2.0**-n for rank in range(1, n + 1)]
    total = math.fsum(scaled)
    return _plackett_luce(logits, ranking(labels, order), [w / total if total else 0.0 for w in scaled])


def list_net(logits: Sequence[float], labels: Sequence[float], order: Order = "labels") -> tuple[float, list[float]]:  # noqa: ARG001
    """ListNet (top one) of one list: cross-entropy of softmax(labels) against softmax(logits); no ranking is needed.

    Cao et al., "Learning to rank: from pairwise approach to listwise approach", ICML 2007, eq. 7.
    """
    if len(logits) < 2:
        return 0.0, [0.0] * len(logits)
    wanted = [math.exp(y - log_sum_exp(labels)) for y in labels]
    normaliser = log_sum_exp(logits)
    value = -math.fsum(p * (z - normaliser) for p, z in zip(wanted, logits, strict=True))
    return value, [math.exp(z - normaliser) - p for p, z in zip(wanted, logits, strict=True)]


def _plackett_luce(logits: Sequence[float], best_first: list[int], weights: list[float]) -> tuple[float, list[float]]:
    """Weighted sum over choices of -log softmax(the logits still left)[the right one], and its gradient."""
    if len(logits) < 2:
        return 0.0, [0.0] * len(logits)
    terms, gradient = [], [0.0] * len(logits)
    for choice, (document, weight) in enumerate(zip(best_first, weights, strict=True)):
        if weight == 0:
            continue
        left = best_first[choice:]
        normaliser = log_sum_exp([logits[i] for i in left])
        terms.append(weight * (normaliser - logits[document]))
        gradient[document] -= weight
        for i in left:
            gradient[i] += weight * math.exp(logits[i] - normaliser)
    return math.fsum(terms), gradient


LISTWISE: dict[str, Oracle] = {"list_mle": list_mle, "p_list_mle": p_list_mle, "list_net": list_net}


def resolve(against: str | Callable[..., object]) -> Callable[[Query, Conventions], tuple[float, Sequence[float]]]:
    """What `check` compares a list with: an oracle by name, or any loss, run in float64 on one list at a time.

    Raises
    ------
    ValueError
        If there is no oracle of that name.
    TypeError
        If it is neither a name nor callable.
    """
    if isinstance(against, str):
        if against not in LISTWISE:
            raise ValueError(f"against must be a callable or one of {', '.join(LISTWISE)}, got {against!r}")
        oracle = LISTWISE[against]
        return lambda query, conventions: oracle(query.logits, query.labels, conventions.order)
    if not callable(against):
        raise TypeError(f"against must be a callable or one of {', '.join(LISTWISE)}, got {against!r}")

    def other_loss(query: Query, conventions: Conventions) -> tuple[float, Sequence[float]]:  # noqa: ARG001
        logits = torch.tensor([query.logits], dtype=torch.float64, requires_grad=True)
        labels = torch.tensor([query.labels], dtype=torch.float64)
        value = against(logits, labels, torch.ones_like(labels, dtype=torch.bool))
        if not isinstance(value, torch.Tensor) or value.numel() != 1:
            raise TypeError(f"against must return one value for one list, got {value!r}")
        (gradient,) = torch.autograd.grad(value.sum(), logits)
        return value.item(), gradient[0].tolist()

    return other_loss


Matrix = Sequence[Sequence[float]]
#: Values, and the gradients of their sum by queries and documents: (B,) or (1,), (B, d), (M, d).
BatchValue = tuple[list[float], list[list[float]], list[list[float]]]
ContrastiveOracle = Callable[[Matrix, Matrix, ContrastiveConventions, Matrix | None], BatchValue]


def _dot(a: Sequence[float], b: Sequence[float]) -> float:
    return math.fsum(x * y for x, y in zip(a, b, strict=True))


def _length(a: Sequence[float], conventions: ContrastiveConventions) -> float:
    return math.sqrt(_dot(a, a)) if conventions.normalize else 1.0


def scores(queries: Matrix, documents: Matrix, conventions: ContrastiveConventions) -> list[list[float]]:
    """Cosines or dot products, not yet divided by the temperature: (B, M)."""
    return [[_dot(q, d) / (_length(q, conventions) * _length(d, conventions)) for d in documents] for q in queries]


def _to_embeddings(
    queries: Matrix, documents: Matrix, by_score: Matrix, conventions: ContrastiveConventions
) -> tuple[list[list[float]], list[list[float]]]:
    """The chain rule from scores s_ij = u_i v_j to the embeddings; u = q / |q| drops what points along u."""

    def one_side(rows: Matrix, others: Matrix, weight: Callable[[int, int], float]) -> list[list[float]]:
        gradients = []
        for i, row in enumerate(rows):
            length = _length(row, conventions)
            unit = [x / length for x in row]
            by_unit = [0.0] * len(row)
            for j, other in enumerate(others):
                for k, x in enumerate(other):
                    by_unit[k] += weight(i, j) * x / _length(other, conventions)
            along = _dot(by_unit, unit) if conventions.normalize else 0.0
            gradients.append([(g - along * u) / length for g, u in zip(by_unit, unit, strict=True)])
        return gradients

    return (
        one_side(queries, documents, lambda i, j: by_score[i][j]),
        one_side(documents, queries, lambda j, i: by_score[i][j]),
    )


def _choice(logits: Sequence[float], positives: Sequence[int]) -> tuple[float, list[float]]:
    """-log of the softmax mass of the positives, and its gradient by the logits."""
    everything, right = log_sum_exp(logits), log_sum_exp([logits[j] for j in positives])
    gradient = [math.exp(z - everything) for z in logits]
    for j in positives:
        gradient[j] -= math.exp(logits[j] - right)
    return everything - right, gradient


def info_nce(
    queries: Matrix, documents: Matrix, conventions: ContrastiveConventions, positives: Matrix | None = None
) -> BatchValue:
    """InfoNCE: each query chooses among all documents, -log of the softmax share of its positives' mass.

    van den Oord et al., "Representation learning with contrastive predictive coding", 2018, eq. 4; document i is query
    i's positive unless ``positives`` (B, M) marks more. With ``symmetric``, half of that and half of each document's
    choice among the queries.
    """
    s, t = scores(queries, documents, conventions), conventions.temperature
    values, by_score = [], [[0.0] * len(documents) for _ in queries]
    share = 0.5 if conventions.symmetric else 1.0
    for i, row in enumerate(s):
        right = [j for j in range(len(documents)) if (positives[i][j] if positives is not None else i == j)]
        value, gradient = _choice([x / t for x in row], right)
        values.append(share * value)
        for j, g in enumerate(gradient):
            by_score[i][j] += share * g / t
    for j in range(len(documents) if conventions.symmetric else 0):
        value, gradient = _choice([row[j] / t for row in s], [j])
        values[j] += value / 2
        for i, g in enumerate(gradient):
            by_score[i][j] += g / (2 * t)
    return values, *_to_embeddings(queries, documents, by_score, conventions)


def graded_info_nce(
    queries: Matrix, documents: Matrix, conventions: ContrastiveConventions, labels: Matrix | None = None
) -> BatchValue:
    """Cross-entropy of softmax(labels) against softmax(scores / temperature); labels (B, M), the identity if None."""
    s, t = scores(queries, documents, conventions), conventions.temperature
    values, by_score = [], []
    for i, row in enumerate(s):
        gains = [float(i == j) for j in range(len(documents))] if labels is None else labels[i]
        wanted = [math.exp(y - log_sum_exp(gains)) for y in gains]
        normaliser = log_sum_exp([x / t for x in row])
        values.append(-math.fsum(p * (x / t - normaliser) for p, x in zip(wanted, row, strict=True)))
        by_score.append([(math.exp(x / t - normaliser) - p) / t for p, x in zip(wanted, row, strict=True)])
    return values, *_to_embeddings(queries, documents, by_score, conventions)


CONTRASTIVE: dict[str, ContrastiveOracle] = {
    "info_nce": info_nce,
    "multi_positive_info_nce": info_nce,
    "graded_info_nce": graded_info_nce,
}


def resolve_contrastive(
    against: str | Callable[..., object],
) -> Callable[[Pairs, ContrastiveConventions, Matrix | None], BatchValue]:
    """What `check` compares a batch with: an oracle by name, or any loss, run in float64.

    Raises
    ------
    ValueError
        If there is no oracle of that name.
    TypeError
        If it is neither a name nor callable.
    """
    if isinstance(against, str):
        if against not in CONTRASTIVE:
            raise ValueError(f"against must be a callable or one of {', '.join(CONTRASTIVE)}, got {against!r}")
        oracle = CONTRASTIVE[against]

        def by_name(pairs: Pairs, conventions: ContrastiveConventions, targets: Matrix | None) -> BatchValue:
            values, *gradients = oracle(pairs.queries.tolist(), pairs.documents.tolist(), conventions, targets)
            weight = 1 / len(values) if conventions.reduction == "mean" else 1.0
            by_query, by_document = ([[g * weight for g in row] for row in rows] for rows in gradients)
            return values if conventions.reduction == "none" else [math.fsum(values) * weight], by_query, by_document

        return by_name
    if not callable(against):
        raise TypeError(f"against must be a callable or one of {', '.join(CONTRASTIVE)}, got {against!r}")

    def other_loss(pairs: Pairs, conventions: ContrastiveConventions, targets: Matrix | None) -> BatchValue:  # noqa: ARG001
        queries, documents = (torch.tensor(x, requires_grad=True) for x in (pairs.queries, pairs.documents))
        value = against(queries, documents)
        if not isinstance(value, torch.Tensor) or value.numel() not in (1, len(pairs.queries)):
            raise TypeError(f"against must return one value for a batch, or one a query, got {value!r}")
        by_query, by_document = torch.autograd.grad(value.sum(), (queries, documents))
        return value.reshape(-1).tolist(), by_query.tolist(), by_document.tolist()

    return other_loss


Cube = Sequence[Matrix]
#: Value, and its gradient by the logits, (B, T, V); of a perplexity, those of its logarithm.
TextsValue = tuple[float, list[list[list[float]]]]
TokenOracle = Callable[[Cube, Sequence[Sequence[int]], TokenConventions], TextsValue]


def token_nll(logits: Cube, labels: Sequence[Sequence[int]], conventions: TokenConventions) -> TextsValue:
    """Cross-entropy of the next token: the mean, or sum, of -log softmax(row t)[label t + 1] over all targets.

    Jelinek et al., "Perplexity: a measure of the difficulty of speech recognition tasks", JASA 62, 1977, has its
    exponential, the perplexity; of a loss that returns that, value and gradient here are its logarithm's, in nats. With
    ``shift=False`` row t meets label t.
    """
    ahead = 1 if conventions.shift else 0
    values: list[float] = []
    gradient = [[[0.0] * len(row) for row in rows] for rows in logits]
    for i, (rows, tokens) in enumerate(zip(logits, labels, strict=True)):
        for t in range(len(rows) - ahead):
            right = tokens[t + ahead]
            if right == conventions.ignore_index:
                continue
            value, slope = _choice(rows[t], [right])
            values.append(value)
            gradient[i][t] = slope
    base = math.e if conventions.returns == "perplexity" else conventions.base
    weight = 1 / (math.log(base) * (len(values) if conventions.reduction == "mean" else 1))
    return math.fsum(values) * weight, [[[g * weight for g in row] for row in rows] for rows in gradient]


TOKEN: dict[str, TokenOracle] = {"token_nll": token_nll, "cross_entropy": token_nll}


def resolve_token(against: str | Callable[..., object]) -> Callable[[Texts, TokenConventions], TextsValue]:
    """What `check` compares a batch of texts with: an oracle by name, or any loss of the same call form, in float64.

    Raises
    ------
    ValueError
        If there is no oracle of that name.
    TypeError
        If it is neither a name nor callable.
    """
    if isinstance(against, str):
        if against not in TOKEN:
            raise ValueError(f"against must be a callable or one of {', '.join(TOKEN)}, got {against!r}")
        oracle = TOKEN[against]
        return lambda texts, conventions: oracle(texts.logits.tolist(), texts.labels.tolist(), conventions)
    if not callable(against):
        raise TypeError(f"against must be a callable or one of {', '.join(TOKEN)}, got {against!r}")

    def other_loss(texts: Texts, conventions: TokenConventions) -> TextsValue:
        logits = torch.tensor(texts.logits, requires_grad=True)
        value = against(logits, torch.tensor(texts.labels))
        if not isinstance(value, torch.Tensor) or value.numel() != 1:
            raise TypeError(f"against must return one value for a batch, got {value!r}")
        value = value.log() if conventions.returns == "perplexity" else value
        (gradient,) = torch.autograd.grad(value.sum(), logits)
        return value.item(), gradient.tolist()

    return other_loss
