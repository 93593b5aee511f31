"""False negatives in a random batch, counted: how many of a query's in-batch negatives are right answers to it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from math import comb

import numpy as np
from numpy.typing import NDArray

from losslab.measure.record import Measurement, Progress, Row, Value

WIDTHS = (16, 32, 64, 128, 256, 512, 1024)
BATCHES, SEED = 200, 0
NEAR = 0.9
NEARLY = f"near-duplicate (cosine > {NEAR})"

Related = NDArray[np.bool_]


def count(related: Related, width: int, *, batches: int = BATCHES, seed: int = SEED) -> dict[str, float]:
    """Draw batches of pairs and count the false negatives in them.

    Parameters
    ----------
    related
        (P, P) bool: whether document j is a right answer to query i; the diagonal does not matter.
    width
        Pairs in a batch, drawn without replacement.

    Returns
    -------
    dict of str to float
        ``at least one``: share of a batch's queries with a false negative, mean over batches, with ``at least one lo``
        and ``hi``, the 95 % interval of that mean (1.96 standard errors, from 0 to 1); ``a query``: false negatives a
        query, mean; ``a batch``: false negatives in the whole batch, mean; ``formula``: 1 − (1 − ρ)^(B − 1) with ρ the
        share of all ordered pairs that are related, which takes every query to be alike; ``by query``: for
        each query the chance that B − 1 others drawn without replacement hold one of its own right answers,
        1 − C(P − 1 − k, B − 1) / C(P − 1, B − 1) with k of them, then averaged.
    """
    pairs = len(related)
    if related.shape != (pairs, pairs):
        raise ValueError(f"related must be square, got shape {related.shape}")
    if not 2 <= width <= pairs:
        raise ValueError(f"width must be from 2 to the {pairs} pairs there are, got {width}")
    others = related.copy()
    np.fill_diagonal(others, False)
    random = np.random.default_rng([seed, width])
    some, each = np.empty(batches), np.empty(batches)
    for batch in range(batches):
        rows = random.choice(pairs, width, replace=False)
        false = others[np.ix_(rows, rows)].sum(1)
        some[batch], each[batch] = (false > 0).mean(), false.mean()
    rates = others.sum(1) / (pairs - 1)
    error = 1.96 * some.std(ddof=1) / np.sqrt(batches)
    return {
        "at least one": float(some.mean()),
        "at least one lo": max(0.0, float(some.mean() - error)),
        "at least one hi": min(1.0, float(some.mean() + error)),
        "a query": float(each.mean()),
        "a batch": float(each.mean() * width),
        "formula": float(1 - (1 - rates.mean()) ** (width - 1)),
        "by query": float(np.mean([1 - _missed(pairs - 1, int(k), width - 1) for k in others.sum(1)])),
    }


@cache
def _missed(total: int, marked: int, drawn: int) -> float:
    """Chance that ``drawn`` of ``total``, without replacement, hold none of ``marked``."""
    return comb(total - marked, drawn) / comb(total, drawn)


def collect(progress: Progress) -> Iterator[Row]:
    """Counts for every corpus, notion of a right answer, and width."""
    for corpus, notions in relations(progress).items():
        for notion, related in notions.items():
            progress(f"{corpus}: {notion}, {len(related)} pairs")
            conditions: dict[str, Value] = {"corpus": corpus, "right if": notion, "pairs": len(related)}
            for width in WIDTHS:
                if width > len(related):
                    continue
                for metric, value in count(related, width).items():
                    yield {**conditions, "batch": width, "metric": metric, "value": value}


def relations(progress: Progress) -> dict[str, dict[str, Related]]:
    """For each corpus, whether document j answers query i, by several notions, (P, P) bool each."""
    from losslab.corpora import apidocs, scifact

    corpus = apidocs.load()
    by_summary = corpus.summary_group[:, None] == corpus.summary_group
    by_text = corpus.document_group[:, None] == corpus.document_group
    near = (corpus.documents @ corpus.documents.T > NEAR).numpy() | (corpus.queries @ corpus.queries.T > NEAR).numpy()
    found: dict[str, dict[str, Related]] = {
        "apidocs": {
            "same document": by_text,
            "same summary or document": by_summary | by_text,
            NEARLY: near,
        }
    }
    progress("SciFact: training pairs that share no document with the test split")
    data = scifact.load()
    query_rows, document_rows = data.training_pairs()
    queried, answering = query_rows.tolist(), document_rows.tolist()
    relevant = set(zip(queried, answering, strict=True))
    queries, documents = data.queries[query_rows].double(), data.documents[document_rows].double()
    found["SciFact"] = {
        "judged relevant": np.array([[(q, d) in relevant for d in answering] for q in queried]),
        NEARLY: (documents @ documents.T > NEAR).numpy() | (queries @ queries.T > NEAR).numpy(),
    }
    return found


MEASUREMENT = Measurement(
    name="false-negatives",
    title="False negatives in random batches of apidocs and SciFact, counted, by batch width",
    columns=("corpus", "right if", "pairs", "batch", "metric", "value"),
    collect=collect,
    settings={"batches": BATCHES, "seed": SEED, "near": NEAR},
)
