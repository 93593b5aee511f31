"""Rubric and hidden tests of "A mask that knows": slow float64 loops, and what every step is asked.

Scores and margins are drawn on grids of 1/32, so that "exactly as near" is exact in float32 too.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from losslab.grading import Item, Lab, Promises, Values

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Case = dict[str, Any]


# ---- what should come out ------------------------------------------------------------------------------------------


def chance_of_meeting(right: int, pairs: int, width: int) -> float:
    """Draw the batch-mates one after another: each misses with the share of wrong ones among those that are left."""
    missed = 1.0
    for drawn in range(width - 1):
        left = pairs - 1 - drawn
        missed *= max(left - right, 0) / left  # the right ones are all still there
    return 1 - missed


def allowed_by_ids(query_ids: NDArray[np.int64], document_ids: NDArray[np.int64]) -> Mask:
    """Cell by cell: nobody's text again, or the query's own document."""
    b = len(query_ids)
    allowed = np.zeros((b, b), dtype=bool)
    for i in range(b):
        for j in range(b):
            allowed[i, j] = i == j or (query_ids[i] != query_ids[j] and document_ids[i] != document_ids[j])
    return allowed


def allowed_by_guide(guide_scores: Array, margin: float) -> Mask:
    """Cell by cell: further from the query than its positive, by more than the margin; or the positive."""
    b = len(guide_scores)
    allowed = np.zeros((b, b), dtype=bool)
    for i in range(b):
        for j in range(b):
            allowed[i, j] = i == j or guide_scores[i, j] < guide_scores[i, i] - margin
    return allowed


def masked_info_nce(queries: Array, documents: Array, negatives: Mask, temperature: float) -> float:
    """Mean over the rows of log-sum-exp minus the positive's logit, over the positive and what is allowed."""
    losses = [_row(i, queries, documents, negatives, temperature)[0] for i in range(len(queries))]
    return sum(losses) / len(losses)


def masked_info_nce_gradients(
    queries: Array, documents: Array, negatives: Mask, temperature: float
) -> dict[str, Array]:
    """By the chain rule: of the loss by each cosine, and of each cosine by both vectors."""
    by_query, by_document = np.zeros(queries.shape), np.zeros(documents.shape)
    for i in range(len(queries)):
        for j, push in _row(i, queries, documents, negatives, temperature)[1].items():
            q, d = queries[i], documents[j]
            long_q, long_d = math.sqrt(q @ q), math.sqrt(d @ d)
            cosine = q @ d / (long_q * long_d)
            share = push / len(queries)
            by_query[i] += share * (d / long_d - cosine * q / long_q) / long_q
            by_document[j] += share * (q / long_q - cosine * d / long_d) / long_d
    return {"queries": by_query, "documents": by_document}


def _row(
    i: int, queries: Array, documents: Array, negatives: Mask, temperature: float
) -> tuple[float, dict[int, float]]:
    """Loss of one query, and its gradient by the cosine of every candidate."""
    logits = {
        j: float(queries[i] @ d) / math.sqrt(queries[i] @ queries[i]) / math.sqrt(d @ d) / temperature
        for j, d in enumerate(documents)
        if j == i or negatives[i, j]
    }
    top = max(logits.values())
    total = sum(math.exp(logit - top) for logit in logits.values())
    pushes = {j: (math.exp(logit - top) / total - (j == i)) / temperature for j, logit in logits.items()}
    return top - logits[i] + math.log(total), pushes


def count_masked(allowed: Mask, wrong: Mask) -> dict[str, int]:
    """Go through all cells but the positives'."""
    masked = caught = alone = 0
    for i in range(len(allowed)):
        others = [j for j in range(len(allowed)) if j != i]
        masked += sum(not allowed[i, j] for j in others)
        caught += sum(not allowed[i, j] and bool(wrong[i, j]) for j in others)
        alone += all(not allowed[i, j] for j in others)
    return {"masked": masked, "caught": caught, "lost": masked - caught, "alone": alone}


# ---- what is asked -------------------------------------------------------------------------------------------------


def some_draw(random: Generator, size: int) -> Case:
    """A corpus, a query that has other right answers in it, and a batch small enough to miss them all."""
    pairs = int(random.integers(5, 10)) * 4 ** (size - 1) if size < 6 else int(random.integers(2000, 6000))
    right = int(random.integers(1, max(2, pairs // 8)))
    return {"right": right, "pairs": pairs, "width": int(random.integers(2, max(3, min(pairs - right, 1024) // 2)))}


def certain_draw(random: Generator, size: int) -> Case:
    """Nothing to meet; or a batch just so wide that it cannot be missed."""
    pairs = int(random.integers(4, 12)) * size
    if size % 2:
        return {"right": 0, "pairs": pairs, "width": int(random.integers(2, pairs + 1))}
    right = int(random.integers(2, pairs - 1))
    return {"right": right, "pairs": pairs, "width": pairs - right + 1}  # one less, and it could be missed


def some_ids(random: Generator, size: int) -> Case:
    """Ids of which some come twice, on either side, and seldom on both."""
    b = 2 + size
    ids = {"query_ids": random.integers(0, 2 * b, b), "document_ids": random.integers(0, 2 * b, b)}
    side = ("document_ids", "query_ids")[size % 2]
    ids[side][-1] = ids[side][0]
    return ids


def some_guide(random: Generator, size: int) -> Case:
    """A guide that finds nobody exactly as near as the bound."""
    b = 2 + size
    scores = random.integers(-8, 25, (b, b)) / 32
    own = random.integers(12, 29, b) / 32
    np.fill_diagonal(scores, own)
    margin = float(random.choice([3, 5, 9])) / 64
    scores[0, 1] = own[0] - (margin - 1 / 64)  # a little behind the positive: within the margin, in every case
    return {"guide_scores": scores, "margin": margin}


def guide_of_copies(random: Generator, size: int) -> Case:
    """Each positive has a copy in the batch, which the guide must find exactly as near; the margin is 0."""
    b = 2 + size
    scores = random.integers(-8, 25, (b, b)) / 32
    own = random.integers(12, 29, b) / 32
    np.fill_diagonal(scores, own)
    for i in range(b):
        scores[i, (i + 1 + int(random.integers(0, b - 1))) % b] = own[i]
    return {"guide_scores": scores, "margin": 0.0}


def masked_batch(random: Generator, size: int) -> Case:
    """A batch, its last documents nobody's, and a mask that leaves every query a negative and its positive."""
    b, m, dimensions = 2 + size // 2, 3 + size, 2 + size // 2
    case = _embeddings(random, b, m, dimensions)
    negatives = random.random((b, m)) < 0.7
    negatives[np.arange(b), (np.arange(b) + 1) % m] = True
    negatives[:, -1] = np.arange(b) % 2 == 1  # somebody is masked in the smallest case, too
    negatives[np.arange(b), np.arange(b)] = True
    return {**case, "negatives": negatives, "temperature": float(random.choice([1.0, 0.2, 0.05]))}


def lonely_batch(random: Generator, size: int) -> Case:
    """The same, and some query has no negative left."""
    case = masked_batch(random, size)
    lonely = int(random.integers(0, len(case["queries"])))
    case["negatives"][lonely] = False
    case["negatives"][lonely, lonely] = True
    return {**case, "temperature": float(random.choice([1.0, 0.5, 0.2]))}  # colder, and it might pay 0 by itself


def mask_without_positives(random: Generator, size: int) -> Case:
    """The same, and some query's own document is forbidden by mistake."""
    case = masked_batch(random, size)
    forgotten = random.random(len(case["queries"])) < 0.5
    forgotten[random.integers(0, len(forgotten))] = True
    case["negatives"][forgotten.nonzero()[0], forgotten.nonzero()[0]] = False
    return case


def some_masks(random: Generator, size: int) -> Case:
    """A mask, and what it should have caught. Some query may have nobody left."""
    b = 2 + size
    allowed, wrong = random.random((b, b)) < 0.6, random.random((b, b)) < 0.3
    np.fill_diagonal(allowed, True)
    wrong[np.arange(b), np.arange(b)] = random.random(b) < 0.5  # a query's own document answers it: not to be counted
    if size % 2:
        allowed[0, 1:] = False
    return {"allowed": allowed, "wrong": wrong}


def _embeddings(random: Generator, queries: int, documents: int, dimensions: int) -> Case:
    """Small whole numbers and halves, of all lengths but 0."""
    q, d = (random.integers(-3, 4, (rows, dimensions)).astype(float) for rows in (queries, documents))
    for vectors in (q, d):
        vectors[~vectors.any(axis=1), 0] = 1
        vectors *= random.choice([0.5, 1.0, 2.0], (len(vectors), 1))
    return {"queries": q, "documents": d}


# ---- what it is worth ----------------------------------------------------------------------------------------------

LAB = Lab(
    name="false-negatives",
    title="A mask that knows",
    chapter="false-negatives",
    minutes=50,
    items=[
        Item(
            "chance",
            "The chance of meeting one",
            3,
            1,
            Values(
                "chance_of_meeting",
                some_draw,
                chance_of_meeting,
                atol=0.0,
                what="chance_of_meeting is the chance that width − 1 batch-mates, drawn without replacement from the "
                "pairs − 1 others, hold at least one of the right answers.",
            ),
        ),
        Item(
            "chance-certain",
            "Never, and always",
            1,
            1,
            Values(
                "chance_of_meeting",
                certain_draw,
                chance_of_meeting,
                what="chance_of_meeting is 0 where there is nothing to meet, and 1 where the batch leaves no room to "
                "miss.",
            ),
        ),
        Item(
            "ids",
            "Known by id",
            3,
            2,
            Values(
                "allowed_by_ids",
                some_ids,
                allowed_by_ids,
                what="allowed_by_ids forbids a document of the positive's id, and the document of a query that asks "
                "the same; a query's own document is always True.",
            ),
        ),
        Item(
            "guide",
            "Known by a guide",
            2,
            3,
            Values(
                "allowed_by_guide",
                some_guide,
                allowed_by_guide,
                what="allowed_by_guide forbids what the guide puts less than margin behind that query's positive, or "
                "ahead of it; a query's own document is always True.",
            ),
        ),
        Item(
            "guide-copies",
            "A guide and exact copies",
            2,
            3,
            Values(
                "allowed_by_guide",
                guide_of_copies,
                allowed_by_guide,
                what="allowed_by_guide forbids an exact copy of the positive, which the guide finds exactly as near, "
                "at a margin of 0 too.",
            ),
        ),
        Item(
            "loss",
            "The loss with a mask",
            3,
            4,
            Values(
                "masked_info_nce",
                masked_batch,
                masked_info_nce,
                gradients=("queries", "documents"),
                oracle_gradients=masked_info_nce_gradients,
                rtol=1e-4,
                what="masked_info_nce is the mean over all queries of −log p(positive), where p is a softmax over the "
                "positive and the documents that are allowed, and nothing else.",
            ),
        ),
        Item(
            "loss-alone",
            "A query with no negative left",
            2,
            4,
            Values(
                "masked_info_nce",
                lonely_batch,
                masked_info_nce,
                gradients=("queries", "documents"),
                oracle_gradients=masked_info_nce_gradients,
                rtol=1e-4,
                what="masked_info_nce counts a query that has no negative left: it pays 0, gets gradient 0, and makes "
                "nothing NaN.",
            ),
        ),
        Item(
            "loss-positive",
            "The positive is never masked",
            1,
            4,
            Values(
                "masked_info_nce",
                mask_without_positives,
                masked_info_nce,
                gradients=("queries", "documents"),
                oracle_gradients=masked_info_nce_gradients,
                rtol=1e-4,
                what="masked_info_nce keeps a query's own document in the sum, whatever the mask says of it.",
            ),
        ),
        Item(
            "loss-promises",
            "The promises of InfoNCE",
            2,
            4,
            Promises(
                "masked_info_nce",
                "contrastive",
                ("blind", "one_pair", "more_negatives", "duplicates"),
            ),
        ),
        Item(
            "count",
            "What was masked",
            1,
            5,
            Values(
                "count_masked",
                some_masks,
                count_masked,
                what="count_masked counts cells off the diagonal: all that are masked, those of them that are wrong "
                "and those that are not, and the queries that have no negative left.",
            ),
        ),
        Item("open", "Choose a mask from evidence", 4, 6),
        Item("reflection", "What you would ask of your data", 2, 6),
    ],
)
