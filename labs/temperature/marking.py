"""Rubric and hidden tests of "Who gets the gradient": slow float64 loops, and what every step is asked.

Scores are drawn on a grid of 1/32 or 1/64, so that they are the same number in float32 and in float64.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from losslab.grading import Item, Lab, Values

Array = NDArray[np.float64]
Case = dict[str, Any]


# ---- what should come out ------------------------------------------------------------------------------------------


def score_gradient(scores: Array, positive: Array, temperature: float) -> Array:
    """Gradient of each row's loss by each of its scores: one exponential a cell, relative to the row's largest."""
    gradient = np.zeros(scores.shape)
    for i, row in enumerate(scores):
        top = max(row)
        total = sum(math.exp((s - top) / temperature) for s in row)
        for j, s in enumerate(row):
            probability = math.exp((s - top) / temperature) / total
            gradient[i, j] = (probability - (1 if j == positive[i] else 0)) / temperature
    return gradient


def negative_shares(scores: Array, positive: Array, temperature: float) -> Array:
    """Each negative's part of what all negatives of its row get; 0 for the positive."""
    shares = np.zeros(scores.shape)
    for i, row in enumerate(scores):
        negatives = [j for j in range(len(row)) if j != positive[i]]
        top = max(row[j] for j in negatives)
        total = sum(math.exp((row[j] - top) / temperature) for j in negatives)
        for j in negatives:
            shares[i, j] = math.exp((row[j] - top) / temperature) / total
    return shares


def effective_negatives(shares: Array) -> Array:
    """Exponential of each row's entropy in nats; what has no share adds nothing."""
    return np.array([math.exp(-sum(w * math.log(w) for w in row if w > 0)) for row in shares])


def takeover_temperature(negatives: Array, suspect: int) -> float:
    """Temperature at which the suspect gets exactly half; halved in until nothing is left between the ends."""
    others = [s for j, s in enumerate(negatives) if j != suspect]
    if max(others) >= negatives[suspect]:
        return 0.0
    low, high = 1e-4, 100.0
    for _ in range(200):
        middle = math.sqrt(low * high)
        if sum(math.exp((s - negatives[suspect]) / middle) for s in others) < 1:
            low = middle  # the others together get less than the suspect: it has more than half
        else:
            high = middle
    return low


def spacing(numbers: Array, bits: int) -> Array:
    """Count down, or up, the powers of two until the number lies between two of them."""
    gaps = np.zeros(numbers.shape)
    for index, number in np.ndenumerate(numbers):
        power = 0
        while abs(number) < math.ldexp(1, power):
            power -= 1
        while abs(number) >= math.ldexp(1, power + 1):
            power += 1
        gaps[index] = math.ldexp(1, power - (bits - 1))
    return gaps


def rounding_price(scores: Array, positive: Array, temperature: float) -> Array:
    """How far each row's loss moves when its logits are rounded to eight significant bits."""
    price = np.zeros(len(scores))
    for i, row in enumerate(scores):
        exact = [s / temperature for s in row]
        rounded = [to_bfloat16(logit) for logit in exact]
        price[i] = abs(_loss(rounded, int(positive[i])) - _loss(exact, int(positive[i])))
    return price


def to_bfloat16(number: float) -> float:
    """Round to eight significant bits, a tie to the even neighbour."""
    fraction, power = math.frexp(number)
    return math.ldexp(round(fraction * 2**8), power - 8)


def _loss(logits: list[float], positive: int) -> float:
    top = max(logits)
    return top - logits[positive] + math.log(sum(math.exp(logit - top) for logit in logits))


# ---- what is asked -------------------------------------------------------------------------------------------------


def some_rows(random: Generator, size: int) -> Case:
    """Rows of scores; the positive stands anywhere. First one row of three, then more and wider ones."""
    rows, documents = 1 + size // 2, 2 + size
    return {
        "scores": _on_grid(random, (rows, documents)),
        "positive": random.integers(0, documents, rows),
        "temperature": float(random.choice([1.0, 0.5, 0.2, 0.1])),
    }


def cold_rows(random: Generator, size: int) -> Case:
    """Logits of a hundred and more on either side: an exponential of them does not fit into float32."""
    case = some_rows(random, size)
    case["scores"][:, 0] = -1 + random.integers(0, 4, len(case["scores"])) / 32
    case["scores"][:, -1] = 1 - random.integers(0, 4, len(case["scores"])) / 32
    return {**case, "temperature": float(random.choice([0.01, 0.005]))}


def won_rows(random: Generator, size: int) -> Case:
    """The positive is so far ahead that float32 knows its probability as 1, and some negatives' as 0."""
    case = some_rows(random, size)
    rows, documents = case["scores"].shape
    case["scores"] = random.integers(-32, 0, (rows, documents)) / 64  # below 0: nobody may set the positive to that
    case["scores"][np.arange(rows), case["positive"]] = 1 - random.integers(0, 4, rows) / 64
    return {**case, "temperature": float(random.choice([0.01, 0.0075, 0.005]))}


def full_shares(random: Generator, size: int) -> Case:
    """Rows that sum to 1, without a zero."""
    counts = random.integers(1, 9, (1 + size // 2, 1 + size)).astype(float)
    return {"shares": counts / counts.sum(1, keepdims=True)}


def shares_with_zeros(random: Generator, size: int) -> Case:
    """Rows that sum to 1, at least one entry 0 in each: where the positive stands, and whom the cold left nothing."""
    counts = random.integers(1, 9, (1 + size // 2, 1 + size)).astype(float)
    counts[:, 1:] *= random.random((len(counts), size)) < 0.6
    counts[np.arange(len(counts)), 1 + random.integers(0, size, len(counts))] = 0
    for row in counts:
        random.shuffle(row)
    return {"shares": counts / counts.sum(1, keepdims=True)}


def hardest_suspect(random: Generator, size: int) -> Case:
    """The suspect scores above all other negatives."""
    others = random.integers(-32, 48, 1 + 2 * size) / 64
    return _with_suspect(random, others, float(others.max()) + int(random.integers(1, 16)) / 64)


def other_suspect(random: Generator, size: int) -> Case:
    """Somebody scores above the suspect, or, every second time, just as high. Every third time nobody does: else always
    to say never would be right.
    """  # noqa: D205
    if size % 3 == 0:
        return hardest_suspect(random, size)
    others = random.integers(-32, 48, 1 + 2 * size) / 64
    behind = int(random.integers(1, 8)) / 64 if size % 2 else 0.0
    return _with_suspect(random, others, float(others.max()) - behind)


def some_numbers(random: Generator, size: int) -> Case:
    """Numbers of either sign between 1/16 and 256, powers of two among them."""
    numbers = random.integers(64, 128, 1 + size) / 64 * 2.0 ** random.integers(-4, 8, 1 + size)
    numbers[random.integers(0, 1 + size)] = 2.0 ** random.integers(-3, 8)
    signs = random.choice([-1.0, 1.0], 1 + size)
    return {"numbers": numbers * signs, "bits": int(random.choice([8, 11, 24]))}


def rows_to_round(random: Generator, size: int) -> Case:
    """Rows of which no logit lies at the very middle of two bfloat16s, where float32 and float64 may part."""
    while True:
        case = some_rows(random, size)
        case["temperature"] = float(random.choice([0.07, 0.03, 0.02, 0.013]))
        logits = case["scores"] / case["temperature"]
        fraction = np.abs(np.frexp(logits)[0]) * 2**8
        if (np.abs(fraction % 1 - 0.5) > 1e-3).all() and rounding_price(**case).max() > 1e-3:
            return case


def _on_grid(random: Generator, shape: tuple[int, int]) -> Array:
    return random.integers(-24, 25, shape) / 32


def _with_suspect(random: Generator, others: Array, score: float) -> Case:
    suspect = int(random.integers(0, len(others) + 1))
    return {"negatives": np.insert(others, suspect, score), "suspect": suspect}


# ---- what it is worth ----------------------------------------------------------------------------------------------

LAB = Lab(
    name="temperature",
    title="Who gets the gradient",
    chapter="temperature",
    minutes=50,
    items=[
        Item(
            "gradient",
            "The gradient by every score",
            3,
            1,
            Values(
                "score_gradient",
                some_rows,
                score_gradient,
                rtol=1e-4,
                what="score_gradient gives, for each row by itself, the derivative of its loss −log p(positive) by "
                "each of its scores (not by its logits, and not of a mean over rows).",
            ),
        ),
        Item(
            "gradient-cold",
            "The gradient at a low temperature",
            2,
            1,
            Values(
                "score_gradient",
                cold_rows,
                score_gradient,
                rtol=1e-4,
                what="score_gradient is finite and right when a score over the temperature is a hundred and more.",
            ),
        ),
        Item(
            "shares",
            "Each negative's share",
            3,
            2,
            Values(
                "negative_shares",
                some_rows,
                negative_shares,
                rtol=1e-4,
                atol=1e-6,
                what="negative_shares divides each row's push among its negatives alone: they sum to 1, and the "
                "positive has 0.",
            ),
        ),
        Item(
            "shares-won",
            "Shares of a query that is won",
            2,
            2,
            Values(
                "negative_shares",
                won_rows,
                negative_shares,
                rtol=1e-4,
                atol=1e-6,
                what="negative_shares still sum to 1 when the positive is so far ahead that nothing seems left.",
            ),
        ),
        Item(
            "effective",
            "The effective number of negatives",
            2,
            3,
            Values(
                "effective_negatives",
                full_shares,
                effective_negatives,
                rtol=1e-4,
                what="effective_negatives is the exponential of each row's entropy in nats: n where n share equally.",
            ),
        ),
        Item(
            "effective-zeros",
            "Who has no share does not count",
            1,
            3,
            Values(
                "effective_negatives",
                shares_with_zeros,
                effective_negatives,
                rtol=1e-4,
                what="effective_negatives takes a share of 0 to add nothing to the entropy.",
            ),
        ),
        Item(
            "takeover",
            "When the suspect takes over",
            2,
            4,
            Values(
                "takeover_temperature",
                hardest_suspect,
                takeover_temperature,
                rtol=1e-3,
                what="takeover_temperature is where the suspect's share of the push is one half, to a thousandth.",
            ),
        ),
        Item(
            "takeover-never",
            "A suspect who never does",
            1,
            4,
            Values(
                "takeover_temperature",
                other_suspect,
                takeover_temperature,
                rtol=1e-3,
                what="takeover_temperature is 0.0 when another negative scores as high as the suspect, or higher, and "
                "only then.",
            ),
        ),
        Item(
            "spacing",
            "The next number of a format",
            2,
            5,
            Values(
                "spacing",
                some_numbers,
                spacing,
                rtol=1e-6,
                atol=0.0,
                what="spacing is the distance between neighbours where a number stands, in a format of so many "
                "significant bits: the same from one power of two up to the next, on both sides of 0.",
            ),
        ),
        Item(
            "price",
            "What rounding costs",
            2,
            5,
            Values(
                "rounding_price",
                rows_to_round,
                rounding_price,
                rtol=1e-3,
                what="rounding_price is how far each row's loss moves, up or down, when its logits alone are rounded "
                "to bfloat16 and everything else is float64.",
            ),
        ),
        Item("open", "Choose a temperature from evidence", 4, 6),
        Item("reflection", "What you would log", 2, 6),
    ],
)
