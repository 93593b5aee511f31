"""Rubric and hidden tests of "InfoNCE from scratch": plain float64 loops, and what each function is asked."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from losslab.grading import Item, Lab, Promises, Raises, Values

Array = NDArray[np.float64]
Case = dict[str, Any]


# ---- what should come out ------------------------------------------------------------------------------------------


def cosine_scores(queries: Array, documents: Array) -> Array:
    """Cosine of each query with each document, one at a time."""
    scores = np.zeros((len(queries), len(documents)))
    for i, q in enumerate(queries):
        for j, d in enumerate(documents):
            scores[i, j] = sum(a * b for a, b in zip(q, d, strict=True)) / (_length(q) * _length(d))
    return scores


def info_nce(queries: Array, documents: Array, temperature: float) -> float:
    """Mean over queries of minus the logarithm of the own document's share."""
    scores = cosine_scores(queries, documents)
    return math.fsum(-math.log(_shares(row, temperature)[i]) for i, row in enumerate(scores)) / len(scores)


def expected_start(width: int, dimension: int, temperature: float) -> float:
    """Price of guessing among ``width``, and half the variance of a score over the temperature."""
    return math.log(width) + (1 / dimension) / temperature**2 / 2


def score_gradient(scores: Array, temperature: float) -> Array:
    """Share, minus 1 at the own document, over the temperature and the number of rows."""
    gradient = np.zeros(scores.shape)
    for i, row in enumerate(scores):
        for j, share in enumerate(_shares(row, temperature)):
            gradient[i, j] = (share - (1 if i == j else 0)) / temperature / len(scores)
    return gradient


def query_gradient(queries: Array, documents: Array, temperature: float) -> Array:
    """Each score's derivative by each coordinate of its query, (d - s q) / |q| in unit vectors, times its gradient."""
    scores = cosine_scores(queries, documents)
    by_score = score_gradient(scores, temperature)
    gradient = np.zeros(queries.shape)
    for i, q in enumerate(queries):
        for j, d in enumerate(documents):
            turn = (d / _length(d) - scores[i, j] * q / _length(q)) / _length(q)
            gradient[i] += by_score[i, j] * turn
    return gradient


def _length(vector: Array) -> float:
    return math.sqrt(sum(x * x for x in vector))


def _shares(row: Array, temperature: float) -> list[float]:
    top = max(row)
    exponentials = [math.exp((s - top) / temperature) for s in row]
    return [e / math.fsum(exponentials) for e in exponentials]


# ---- what is asked -------------------------------------------------------------------------------------------------


def vectors(random: Generator, size: int) -> Case:
    """First two pairs in a plane, then more pairs, dimensions and further documents; lengths from 0.1 to 10."""
    pairs, dimension, further = 1 + size // 2, 1 + size, size // 3
    lengths = 10 ** random.uniform(-1, 1, (2 * pairs + further + 1, 1))
    drawn = lengths * random.normal(size=(2 * pairs + further + 1, dimension + 1))
    return {"queries": drawn[:pairs], "documents": drawn[pairs:]}


def batches(random: Generator, size: int) -> Case:
    """Vectors, and a temperature at which every share counts."""
    return {**vectors(random, size), "temperature": float(random.choice([1.0, 0.5, 0.2, 0.1]))}


def cold_batches(random: Generator, size: int) -> Case:
    """The first query lies close to a document, its own or another's, and the temperature is 0.01 or less: its
    exponential alone, near exp(100), is more than float32 holds.
    """  # noqa: D205
    case = vectors(random, size)
    near = int(random.integers(0, len(case["documents"])))
    case["documents"][near] = 2 * case["queries"][0]
    return {**case, "temperature": float(random.choice([0.01, 0.005]))}


def settings(random: Generator, size: int) -> Case:
    """A width, a dimension and a temperature as they occur in training."""
    width = int(2 ** random.integers(size, size + 4))
    dimension = int(random.choice([64, 128, 384, 768, 1024]))
    return {"width": width, "dimension": dimension, "temperature": float(random.choice([1.0, 0.2, 0.1, 0.05]))}


def scores(random: Generator, size: int) -> Case:
    """Cosines by themselves, first one row of two; at least as many columns as rows."""
    rows = (size + 1) // 2
    drawn = random.uniform(-1, 1, (rows, rows + int(random.integers(1, 3))))
    return {"scores": drawn, "temperature": float(random.choice([1.0, 0.5, 0.1]))}


def bad_temperatures(random: Generator, size: int) -> Case:
    """0 first, then numbers below it."""
    return {**vectors(random, 2), "temperature": 0.0 if size == 1 else float(-random.uniform(0.01, 1))}


LAB = Lab(
    name="infonce",
    title="InfoNCE from scratch",
    chapter="infonce",
    minutes=45,
    items=(
        Item(
            "scores",
            "cosines of all queries with all documents",
            2,
            1,
            Values("cosine_scores", vectors, cosine_scores, what="each score is the cosine of its query and document"),
        ),
        Item(
            "loss",
            "the loss, and the gradients that autograd takes from it",
            4,
            2,
            Values(
                "info_nce",
                batches,
                info_nce,
                gradients=("queries", "documents"),
                rtol=1e-4,
                what="value and gradient are those of the mean over queries of -log of the own document's share",
            ),
        ),
        Item(
            "cold",
            "low temperatures",
            2,
            2,
            Values(
                "info_nce",
                cold_batches,
                info_nce,
                rtol=1e-4,
                atol=1e-3,
                what="at a temperature of 0.01 and below the loss is finite and right in float32",
            ),
        ),
        Item(
            "promises",
            "promises of any InfoNCE",
            3,
            2,
            Promises("info_nce", "contrastive", ("blind", "scale", "score_gradients")),
        ),
        Item(
            "refusal",
            "a temperature that is not above 0 is refused",
            1,
            2,
            Raises(
                "info_nce",
                bad_temperatures,
                accepts=batches,
                what="a temperature that is not above 0 raises ValueError",
            ),
        ),
        Item(
            "start",
            "the loss that training starts at",
            2,
            3,
            Values(
                "expected_start", settings, expected_start, what="the price of guessing, and what random scores add"
            ),
        ),
        Item(
            "score-gradient",
            "gradient by the scores, by hand",
            3,
            4,
            Values("score_gradient", scores, score_gradient, what="the gradient of the mean loss by each score"),
        ),
        Item(
            "query-gradient",
            "gradient by the queries, by hand",
            3,
            5,
            Values(
                "query_gradient",
                batches,
                query_gradient,
                rtol=1e-4,
                what="the gradient of the mean loss by each query, whatever its length",
            ),
        ),
        Item("open-question", "open question", 3, 6),
        Item("reflection", "reflection", 2, 6),
    ),
)
