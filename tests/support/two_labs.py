"""Two labs that are small, and what students might hand in: right, wrong, unfinished."""

import json

import numpy as np

from losslab.grading import Item, Lab, Promises, Raises, Values

TEMPERATURE = 0.5


def slow_info_nce(queries, documents, temperature=TEMPERATURE):
    """Mean over queries of -log softmax of the cosine with the own document, as loops over Python floats."""
    total = 0.0
    for i, query in enumerate(queries):
        scores = []
        for document in documents:
            dot = sum(float(a) * float(b) for a, b in zip(query, document, strict=True))
            length = sum(float(a) ** 2 for a in query) ** 0.5 * sum(float(b) ** 2 for b in document) ** 0.5
            scores.append(dot / length / temperature)
        total += np.log(sum(np.exp(s) for s in scores)) - scores[i]
    return total / len(queries)


def draw_batch(random, size):
    b, m = size, size + 1
    return {
        "queries": random.normal(size=(b, 3)).round(2) + 0.001,
        "documents": random.normal(size=(m, 3)).round(2) + 0.001,
        "temperature": TEMPERATURE,
    }


def draw_bad_batch(random, size):
    return draw_batch(random, size) | {"temperature": -1.0}


LAB = Lab(
    "small",
    "A small lab",
    "infonce",
    20,
    [
        Item(
            "value",
            "Value",
            4,
            1,
            Values("info_nce", draw_batch, slow_info_nce, cases=4, what="InfoNCE is a mean over queries."),
        ),
        Item(
            "gradient",
            "Gradient",
            2,
            1,
            Values("info_nce", draw_batch, slow_info_nce, gradients=("queries", "documents"), cases=3),
        ),
        Item(
            "promises",
            "Promises",
            2,
            2,
            Promises("info_nce", "contrastive", ("one_pair", "scale"), declared={"temperature": TEMPERATURE}),
        ),
        Item("bad", "Bad input", 1, 3, Raises("info_nce", draw_bad_batch, accepts=draw_batch)),
        Item("open", "Open question", 3, 3),
    ],
)

RIGHT = """\
def info_nce(queries, documents, temperature=0.5):
    if temperature <= 0:
        raise ValueError(f"temperature must be above 0, got {temperature}")
    queries = F.normalize(queries, dim=1)
    documents = F.normalize(documents, dim=1)
    scores = queries @ documents.T / temperature
    return F.cross_entropy(scores, torch.arange(len(queries)))
"""
NOT_NORMALISED = RIGHT.replace("F.normalize(queries, dim=1)", "queries")
EMPTY = """\
def info_nce(queries, documents, temperature=0.5):
    raise NotImplementedError("Step 1 is not written yet: info_nce")
"""

MODULE = Lab(
    "plain",
    "A plain module",
    "perplexity",
    20,
    [
        Item(
            "mean",
            "Mean",
            2,
            1,
            Values(
                "mean",
                lambda random, size: {"numbers": random.normal(size=size).round(3), "weights": [1] * size},
                lambda numbers, weights: sum(numbers) / sum(weights),
                cases=4,
                partial=True,
            ),
        ),
        Item(
            "counts",
            "Counts",
            2,
            2,
            Values(
                "counts",
                lambda _, size: {"text": "abba"[:size]},
                lambda text: {c: text.count(c) for c in text},
                cases=4,
            ),
        ),
    ],
    form="module",
)
PLAIN = """\
def mean(numbers, weights):
    return sum(numbers) / len(numbers)

def counts(text):
    return {c: text.count(c) for c in text}
"""


def notebook(*cells, locked=()):
    """A notebook of these code cells; those in ``locked`` (by number, from 0) are locked."""
    listed = [
        {
            "cell_type": "code",
            "metadata": {"nbgrader": {"grade": False, "solution": False, "locked": True}} if i in locked else {},
            "source": source.splitlines(keepends=True),
            "outputs": [],
            "execution_count": None,
        }
        for i, source in enumerate(cells)
    ]
    return json.dumps({"cells": listed, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
