"""Rubric and hidden tests of the padding lab: slow float64 loops over one list at a time."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from losslab.grading import Item, Lab, Promises, Raises, Values

Array = NDArray[np.float64]
Case = dict[str, Any]


# What should come out.


def log_sum(logits: Any) -> float:  # noqa: ANN401
    """Logarithm of a sum of exponentials, relative to the largest."""
    top = max(logits)
    return float(top) + math.log(math.fsum(math.exp(z - top) for z in logits))


def pick_costs(logits: Any) -> list[float]:  # noqa: ANN401
    """What each pick of one list costs: everything from it on is a candidate."""
    return [log_sum(logits[i:]) - float(logits[i]) for i in range(len(logits))]


def pick_gradient(logits: Any) -> list[float]:  # noqa: ANN401
    """By each logit: its share of all picks that it stands for, less 1 for its own."""
    shares = []
    for k in range(len(logits)):
        stood_for = [math.exp(logits[k] - log_sum(logits[i:])) for i in range(k + 1)]
        shares.append(math.fsum(stood_for) - 1)
    return shares


def one_list(logits: Array) -> float:
    """All picks of one list."""
    return math.fsum(pick_costs(logits))


def one_list_gradient(logits: Array) -> dict[str, Any]:
    """Of that."""
    return {"logits": np.array(pick_gradient(logits))}


def mass_left(logits: Array) -> Array:
    """Row by row and pick by pick."""
    return np.array([[log_sum(row[i:]) for i in range(len(row))] for row in logits])


def choice_costs(logits: Array, mask: Array) -> Array:
    """Each list's documents alone, and back into their places."""
    costs = np.zeros(logits.shape)
    for b in range(len(logits)):
        places = [i for i in range(logits.shape[1]) if mask[b, i]]
        for place, cost in zip(places, pick_costs([logits[b, i] for i in places]), strict=True):
            costs[b, place] = cost
    return costs


def choice_costs_gradient(logits: Array, mask: Array) -> dict[str, Any]:
    """Of their sum; 0 in empty slots."""
    gradient = np.zeros(logits.shape)
    for b in range(len(logits)):
        places = [i for i in range(logits.shape[1]) if mask[b, i]]
        for place, slope in zip(places, pick_gradient([logits[b, i] for i in places]), strict=True):
            gradient[b, place] = slope
    return {"logits": gradient}


def by_label(labels: Array, mask: Array) -> NDArray[np.int64]:
    """Python's sort, which is stable, of each list's places."""
    rows = []
    for row, real in zip(labels.tolist(), mask.tolist(), strict=True):
        documents = sorted((i for i in range(len(row)) if real[i]), key=lambda i: -row[i])
        rows.append(documents + [i for i in range(len(row)) if not real[i]])
    return np.array(rows)


def _ranked(labels: Array, mask: Array) -> list[list[int]]:
    """Places of the documents of each list that can be ranked, best first; none for the others."""
    sizes = mask.sum(1)
    return [row[:n] if n >= 2 else [] for row, n in zip(by_label(labels, mask).tolist(), sizes, strict=True)]


def list_mle(logits: Array, labels: Array, mask: Array) -> float:
    """Mean over lists of two documents or more."""
    lists = _ranked(labels, mask)
    costs = [math.fsum(pick_costs([logits[b, i] for i in row])) for b, row in enumerate(lists) if row]
    return math.fsum(costs) / len(costs)


def list_mle_gradient(logits: Array, labels: Array, mask: Array) -> dict[str, Any]:
    """Of that mean."""
    lists, gradient = _ranked(labels, mask), np.zeros(logits.shape)
    counted = sum(bool(row) for row in lists)
    for b, row in enumerate(lists):
        for place, slope in zip(row, pick_gradient([logits[b, i] for i in row]) if row else [], strict=True):
            gradient[b, place] = slope / counted
    return {"logits": gradient}


# What goes in. Logits lie on a grid of 1/64: the same numbers in float32 and in float64.


def _logits(random: Generator, *shape: int, spread: float = 2.0) -> Array:
    return np.asarray(np.round(random.normal(0, spread, shape) * 64) / 64)


def a_list(random: Generator, size: int) -> Case:
    """One document, then more."""
    return {"logits": _logits(random, size)}


def rows(random: Generator, size: int) -> Case:
    """One list of one document, then more of more."""
    return {"logits": _logits(random, (size + 2) // 3, size)}


def far_rows(random: Generator, size: int) -> Case:
    """Logits near 900, near -900, or from one to the other."""
    centre = np.array([900.0, -900.0, 0.0])[size % 3]
    return {"logits": _logits(random, 1, size + 1, spread=2.0 if centre else 400.0) + centre}


def _mask(random: Generator, lists: int, width: int, least: int) -> NDArray[np.bool_]:
    """Documents anywhere, at least so many a list, and an empty slot in the first."""
    mask = random.random((lists, width)) < 0.6
    for row in mask:
        row[random.permutation(width)[:least]] = True
    if width > least:
        mask[0, random.permutation(width)[0]] = False
        mask[0, np.flatnonzero(~mask[0])[: max(0, least - int(mask[0].sum()))]] = True
    return mask


def slots(random: Generator, size: int) -> Case:
    """Lists with empty slots, which hold ordinary numbers."""
    lists, width = (size + 1) // 2, size + 1
    return {"logits": _logits(random, lists, width), "mask": _mask(random, lists, width, 1)}


def nan_slots(random: Generator, size: int) -> Case:
    """Lists whose empty slots hold NaN or a huge number."""
    case = slots(random, size)
    case["logits"][~case["mask"]] = 1e6 if size % 3 == 0 else math.nan
    return case


def tied_labels(random: Generator, size: int) -> Case:
    """Few different labels; from the fifth case on 17 slots or more, where an unstable sort shows."""
    lists, width = (1, size + 1) if size < 5 else (size - 4, 12 + size)
    labels = random.integers(-1, 2, (lists, width)).astype(float)
    return {"labels": labels, "mask": _mask(random, lists, width, 1)}


def graded(random: Generator, size: int) -> Case:
    """Lists of several lengths with graded, often equal labels, some too short to be ranked."""
    lists, width = (size + 1) // 2, size + 1
    mask = _mask(random, lists, width, min(2, width))
    if lists > 2:
        mask[1] = False
        mask[1, : size % 2] = True  # a list of one document, or of none
    logits = _logits(random, lists, width)
    return {"logits": logits, "labels": random.integers(0, 3, (lists, width)).astype(float), "mask": mask}


def nothing_to_rank(random: Generator, size: int) -> Case:
    """Lists of one document, or none."""
    mask = np.zeros((size, size + 1), dtype=bool)
    mask[:, 0] = random.random(size) < 0.5
    return {"logits": _logits(random, size, size + 1), "labels": np.zeros((size, size + 1)), "mask": mask}


LAB = Lab(
    name="padding",
    title="A ListMLE that does not know its neighbours",
    chapter="padding",
    minutes=45,
    items=[
        Item(
            "one-list",
            "the cost of picking one list in order",
            2,
            1,
            Values(
                "one_list",
                a_list,
                one_list,
                gradients=("logits",),
                oracle_gradients=one_list_gradient,
                what="Pick i costs the log of the mass from i to the end, less logit i.",
            ),
        ),
        Item(
            "mass-left",
            "all picks at once",
            2,
            2,
            Values(
                "mass_left", rows, mass_left, what="Column i holds the log of the sum of exp from column i to the end."
            ),
        ),
        Item(
            "mass-left-far",
            "logits of any size",
            1,
            2,
            Values("mass_left", far_rows, mass_left, what="Logits near -900 and 900 neither overflow nor vanish."),
        ),
        Item(
            "empty-slots",
            "empty slots cannot be picked and cost nothing",
            2,
            3,
            Values(
                "choice_costs",
                slots,
                choice_costs,
                gradients=("logits",),
                oracle_gradients=choice_costs_gradient,
                what="An empty slot is no candidate of any pick, makes no pick, and gets no gradient.",
            ),
        ),
        Item(
            "nan-slots",
            "what stands in an empty slot does not matter",
            2,
            3,
            Values(
                "choice_costs",
                nan_slots,
                choice_costs,
                gradients=("logits",),
                oracle_gradients=choice_costs_gradient,
                what="NaN or a huge number in an empty slot changes nothing, and gets gradient exactly 0.",
            ),
        ),
        Item(
            "by-label",
            "highest label first, ties as they stand",
            2,
            4,
            Values(
                "by_label",
                tied_labels,
                by_label,
                what="Highest label first, equal labels in the order they stand at any width, empty slots last.",
            ),
        ),
        Item(
            "loss",
            "value and gradient of the loss",
            3,
            5,
            Values(
                "list_mle",
                graded,
                list_mle,
                gradients=("logits",),
                oracle_gradients=list_mle_gradient,
                what="The mean, over lists of at least two documents, of what all picks cost.",
            ),
        ),
        Item(
            "neighbours",
            "a query does not know its neighbours",
            2,
            5,
            Promises("list_mle", "listwise", ("padding_invariance", "batch_invariance")),
        ),
        Item(
            "short-and-tied",
            "short lists and ties",
            2,
            5,
            # Together: anything that sees no order, a mean of all logits too, puts ties in the same one.
            Promises("list_mle", "listwise", ("short_lists", "tie_order"), partial=False),
        ),
        Item(
            "far",
            "logits of any size",
            1,
            5,
            # Together: a finite number, the same in float64, is soon found; that it is the same from 0 on is not.
            Promises("list_mle", "listwise", ("extreme_logits", "shift_invariance"), partial=False),
        ),
        Item(
            "nothing-to-rank",
            "no list to rank is an error",
            1,
            5,
            Raises(
                "list_mle",
                nothing_to_rank,
                accepts=graded,
                what="A batch without a list of two documents is refused.",
            ),
        ),
        Item("open-question", "open question: an order among the zeros", 3, 5),
        Item("reflection", "reflection: who depends on whom", 2, 5),
    ],
)
