"""Rubric and hidden tests of the matryoshka lab: slow float64 loops, and eigenvectors in place of singular vectors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import NDArray

from losslab.grading import Item, Lab, Raises, Values

Array = NDArray[np.float64]
Case = dict[str, Any]


# What should come out.


def truncate(x: Array, dim: int) -> Array:
    """Each row's first numbers, divided by their length if they have one."""
    cut = np.zeros((len(x), dim))
    for i, row in enumerate(x):
        length = math.sqrt(math.fsum(v * v for v in row[:dim]))
        for j in range(dim):
            cut[i, j] = row[j] / length if length else 0.0
    return cut


def ndcg(scores: Array, relevant: Array, k: int) -> Array:
    """Query by query and rank by rank."""
    values = []
    for row, good in zip(scores.tolist(), relevant.tolist(), strict=True):
        ranking = sorted(range(len(row)), key=lambda i, row=row: -row[i])
        gained = math.fsum(1 / math.log2(rank + 2) for rank, i in enumerate(ranking[:k]) if good[i])
        values.append(gained / math.fsum(1 / math.log2(rank + 2) for rank in range(min(k, sum(good)))))
    return np.array(values)


def svd_scores(queries: Array, documents: Array, dim: int) -> Array:
    """The documents' longest directions are the leading eigenvectors of the sum of d d' over documents."""
    moments = np.zeros((documents.shape[1],) * 2)
    for row in documents:
        moments += np.outer(row, row)
    _, vectors = np.linalg.eigh(moments)
    kept = vectors[:, ::-1][:, :dim]
    return np.array([[_cosine(q @ kept, d @ kept) for d in documents] for q in queries])


def _cosine(a: Array, b: Array) -> float:
    return float(a @ b) / math.sqrt(float(a @ a) * float(b @ b))


def draw_queries(queries: int, resamples: int, seed: int) -> NDArray[np.int64]:
    """As the lab prescribes: one generator, one call."""
    generator = torch.Generator().manual_seed(seed)
    return np.asarray(torch.randint(queries, (resamples, queries), generator=generator).numpy())


def paired_interval(ours: Array, baseline: Array, drawn: Array, level: float) -> tuple[float, float, float]:
    """Set by set; quantiles between neighbours are interpolated by hand."""
    gaps = [a - b for a, b in zip(ours.tolist(), baseline.tolist(), strict=True)]
    means = sorted(math.fsum(gaps[int(i)] for i in one) / len(one) for one in drawn)

    def quantile(q: float) -> float:
        place = q * (len(means) - 1)
        below = math.floor(place)
        above = min(below + 1, len(means) - 1)
        return means[below] + (place - below) * (means[above] - means[below])

    return math.fsum(gaps) / len(gaps), quantile((1 - level) / 2), quantile((1 + level) / 2)


def verdict(low: float, high: float) -> str:
    """Whether 0 lies below, in or above the interval."""
    return "tie" if low <= 0 <= high else "win" if low > 0 else "loss"


# What goes in.


def _grid(random: Generator, *shape: int) -> Array:
    return np.asarray(np.round(random.normal(0, 1, shape) * 64) / 64)


def embeddings(random: Generator, size: int) -> Case:
    """One row, then more; unit length, so that whoever normalises first and cuts then is found out."""
    x = _grid(random, size, size + 1) + 1 / 128  # no row of zeros
    return {"x": x / np.linalg.norm(x, axis=1, keepdims=True), "dim": int(random.integers(1, size + 2))}


def empty_prefixes(random: Generator, size: int) -> Case:
    """Rows that have nothing in front; one of them nothing at all."""
    x, dim = _grid(random, size, size + 2), int(random.integers(1, size + 2))
    x[random.integers(size), :dim] = 0
    if size % 2 == 0:
        x[0] = 0
    return {"x": x, "dim": dim}


def wrong_sizes(random: Generator, size: int) -> Case:
    """No number, fewer, or more than there are."""
    return {"x": _grid(random, 2, size + 1), "dim": (0, -1, size + 2)[size % 3]}


def _ranked(random: Generator, lists: int, width: int, share: float) -> tuple[Array, NDArray[np.bool_]]:
    scores = np.array([random.permutation(width) for _ in range(lists)]) / 32
    relevant = random.random((lists, width)) < share
    relevant[np.arange(lists), random.integers(width, size=lists)] = True
    return scores, relevant


def rankings(random: Generator, size: int) -> Case:
    """Few right documents, and more places than the cutoff from the third case on."""
    scores, relevant = _ranked(random, (size + 1) // 2, 2 * size, 0.2)
    return {"scores": scores, "relevant": relevant, "k": int(random.integers(1, 6))}


def many_right(random: Generator, size: int) -> Case:
    """More right documents than the cutoff has places, or fewer documents than the cutoff."""
    scores, relevant = _ranked(random, size, size + 2, 0.8)
    relevant[:, :2] = True
    return {"scores": scores, "relevant": relevant, "k": 1 if size == 1 else (2, 50)[size % 2]}


def equal_scores(random: Generator, size: int) -> Case:
    """Two different scores alone; from the fifth case on more than 16 documents."""
    width = size + 2 if size < 5 else 4 * size
    _, relevant = _ranked(random, size, width, 0.1)
    return {"scores": random.integers(0, 2, (size, width)) / 2, "relevant": relevant, "k": min(10, width)}


def clouds(random: Generator, size: int) -> Case:
    """Documents away from the origin, longest in random directions; queries spread along other ones."""
    d = size + 1
    axes = np.linalg.qr(random.normal(0, 1, (d, d)))[0]
    spread = 0.6 ** np.arange(d)
    documents = (random.normal(0, 1, (4 * d, d)) * spread) @ axes.T + 2 * axes[:, -1]
    queries = (random.normal(0, 1, (size + 1, d)) * spread[::-1]) @ axes.T
    return {"queries": queries, "documents": documents, "dim": int(random.integers(1, d + 1)) if size > 1 else 1}


def draws(random: Generator, size: int) -> Case:
    """One query drawn again and again, then more."""
    return {"queries": size, "resamples": 2 * size + 1, "seed": int(random.integers(1000))}


def metrics(random: Generator, size: int) -> Case:
    """Two systems' nDCG of the same queries, hard ones and easy ones, and sets drawn of them."""
    hard = random.random(size + 1)
    ours, baseline = (np.clip(hard + random.normal(0, 0.2, size + 1), 0, 1).round(3) for _ in range(2))
    drawn = random.integers(size + 1, size=(4 + 8 * size, size + 1))
    return {"ours": ours, "baseline": baseline, "drawn": drawn, "level": float(random.choice([0.5, 0.8, 0.95]))}


def always_better(random: Generator, size: int) -> Case:
    """One is better by the same amount at every query."""
    case = metrics(random, size)
    return case | {"ours": case["baseline"] + float(random.integers(-8, 9)) / 32}


def intervals(random: Generator, size: int) -> Case:
    """Above 0, below it, around it, and ending there."""
    low, high = sorted(round(float(v), 3) for v in random.uniform(0.001, 0.2, 2))
    return dict(
        zip(
            ("low", "high"), [(low, high), (-high, -low), (-low, high), (0.0, high), (-low, 0.0)][size % 5], strict=True
        )
    )


LAB = Lab(
    name="matryoshka",
    title="How much may be cut off?",
    chapter="matryoshka",
    minutes=50,
    items=[
        Item(
            "truncate",
            "cut, then bring to length 1",
            2,
            1,
            Values(
                "truncate", embeddings, truncate, what="The first dim numbers of each row, divided by their own length."
            ),
        ),
        Item(
            "empty-prefix",
            "a row with nothing left",
            1,
            1,
            Values(
                "truncate", empty_prefixes, truncate, what="A row whose first dim numbers are 0 stays 0, without NaN."
            ),
        ),
        Item(
            "wrong-size",
            "a size that cannot be",
            1,
            1,
            Raises("truncate", wrong_sizes, accepts=embeddings, what="A size below 1 or above the width is refused."),
        ),
        Item(
            "ndcg",
            "nDCG@k of each query",
            3,
            2,
            Values(
                "ndcg",
                rankings,
                ndcg,
                what="The gains of 1 / log2(rank + 1) up to rank k, over those of the best order.",
            ),
        ),
        Item(
            "ndcg-ideal",
            "the best order, cut at k too",
            1,
            2,
            Values("ndcg", many_right, ndcg, what="The best order has no more than k right documents, and is worth 1."),
        ),
        Item(
            "ndcg-ties",
            "equal scores",
            1,
            2,
            Values("ndcg", equal_scores, ndcg, what="Of two equal scores the document that stands first goes first."),
        ),
        Item(
            "svd",
            "directions fitted on the documents, not centred",
            3,
            3,
            Values(
                "svd_scores",
                clouds,
                svd_scores,
                dtype="float64",
                what="The cosines in the dim directions in which the documents, as they are, are longest.",
            ),
        ),
        Item(
            "draws",
            "sets of queries from a seed",
            2,
            4,
            Values(
                "draw_queries", draws, draw_queries, what="One generator with this seed, one call of torch.randint."
            ),
        ),
        Item(
            "interval",
            "a difference and its interval",
            3,
            5,
            Values(
                "paired_interval",
                metrics,
                paired_interval,
                dtype="float64",
                what="The mean difference, and quantiles (1 - level) / 2 and (1 + level) / 2 of the sets' means.",
            ),
        ),
        Item(
            "paired",
            "the pairs are kept",
            1,
            5,
            Values(
                "paired_interval",
                always_better,
                paired_interval,
                dtype="float64",
                what="Where every query differs by the same amount, the interval has no width.",
            ),
        ),
        Item(
            "verdict",
            "win, tie or loss",
            2,
            6,
            Values("verdict", intervals, verdict, what="A tie if the interval holds 0, its ends included."),
        ),
        Item("open-question", "open question: 95 % of what?", 3, 6),
        Item("reflection", "reflection: how many queries?", 2, 6),
    ],
)
