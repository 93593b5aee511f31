"""Slow, plain float64 loops for whole objectives: the specification that fast losses are held to.

Each takes one list as plain numbers and gives its value and the gradient by its logits. They share no code with
`losslab.losses`, and no trick: what a formula says is what a loop does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch

from losslab.contracts.model import Conventions, Order, Query

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
