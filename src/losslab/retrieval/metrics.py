r"""Retrieval metrics from the ranks of the right documents: nothing else of a ranking matters to them.

For a right document with gain :math:`g` at rank :math:`r`, cut off at :math:`k`:

.. math:: \mathrm{nDCG@}k = \frac{\sum_{r \le k} g / \log_2(r + 1)}{\text{the same in the best order}}, \quad
          \mathrm{MRR@}k = \text{mean of } \frac{1}{\min r} \text{ (0 if } \min r > k), \quad
          \mathrm{recall@}k = \frac{\#\{r \le k\}}{\text{number of right documents}}.

Equal scores: a document with `above` better scores and `tied` equal ones (itself counted) can stand at any rank from
``above + 1`` to ``above + tied``. ``ties="docid"`` lets ids decide, and gives what ir-measures gives, which has two
orders: its nDCG, recall and MRR come from trec_eval, where the larger id (as a string) goes first; its MRR with a
cutoff comes from MS MARCO's script, where the smaller goes first. ``ties="average"`` favours no id: it gives the mean
over all orders of the tied documents, as scikit-learn's ``ndcg_score`` does.

References
----------
Järvelin and Kekäläinen, "Cumulated gain-based evaluation of IR techniques", ACM TOIS 20(4), 2002 (gains taken as they
are, discount from rank 2 on in base 2); McSherry and Najork, "Computing information retrieval performance measures
efficiently in the presence of tied scores", ECIR 2008.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import comb
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from losslab.retrieval.judgements import Judgements

Ties = Literal["docid", "average"]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_NAMES = {"ndcg": "nDCG", "mrr": "MRR", "rr": "MRR", "recall": "recall", "r": "recall"}


@dataclass(frozen=True)
class Ranks:
    """Where the P right documents of `Judgements` stand.

    Attributes
    ----------
    above : (P,) int64
        Documents with a better score.
    tied : (P,) int64
        Documents with the same score, itself counted; 1 without a tie.
    before : (P,) int64
        Those of the tied that go before it in trec_eval's order: those with a larger id.
    """

    above: Ints
    tied: Ints
    before: Ints


def parse(metric: str) -> tuple[str, int | None]:
    """Name and cutoff of ``"nDCG@10"``, ``"MRR"`` (or ``RR``) and ``"recall@100"`` (or ``R``), in any case.

    Raises
    ------
    ValueError
        Another metric, or a cutoff below 1.
    """
    match = re.fullmatch(r"([a-z]+)(?:@(-?\d+))?", metric.lower()) if isinstance(metric, str) else None
    if match is None or match[1] not in _NAMES:
        raise ValueError(f"a metric must be nDCG@k, MRR@k or recall@k with a whole k, or without @k, got {metric!r}")
    if match[2] is not None and int(match[2]) < 1:
        raise ValueError(f"the cutoff k of a metric must be at least 1, got {metric!r}")
    return _NAMES[match[1]], None if match[2] is None else int(match[2])


def per_query(metric: str, ranks: Ranks, judged: Judgements, ties: Ties) -> Floats:
    """One metric of each query, (Q,).

    Parameters
    ----------
    metric
        As `parse` reads it.
    ranks, judged
        Of the same P right documents.
    ties
        "docid" or "average".
    """
    name, cutoff = parse(metric)
    k = min(cutoff or judged.documents, judged.documents)  # no rank is beyond the last document
    if name == "nDCG":
        return _ndcg(ranks, judged, ties, k)
    if name == "recall":
        seen = _mean_over_ties(np.concatenate([[0.0], np.ones(k)]), ranks, ties)
        return np.bincount(judged.query, seen, judged.queries) / judged.counts
    smaller_first = cutoff is not None  # MS MARCO's order, which ir-measures has here and only here
    before = ranks.tied - 1 - ranks.before if smaller_first else ranks.before
    return _reciprocal_rank(Ranks(ranks.above, ranks.tied, before), judged, ties, k)


def _ndcg(ranks: Ranks, judged: Judgements, ties: Ties, k: int) -> Floats:
    discount = np.concatenate([[0.0], 1 / np.log2(np.arange(k) + 2)])
    gained = judged.gain * _mean_over_ties(discount, ranks, ties)
    best_first = np.lexsort((-judged.gain, judged.query))  # the query column itself stays as it is: it is sorted
    place = np.arange(len(judged.query)) - (np.cumsum(judged.counts) - judged.counts)[judged.query] + 1
    ideal = judged.gain[best_first] * np.where(place <= k, discount[np.minimum(place, k)], 0)
    dcg, best = (np.bincount(judged.query, each, judged.queries) for each in (gained, ideal))
    return np.asarray(dcg / best)


def _mean_over_ties(weight: Floats, ranks: Ranks, ties: Ties) -> Floats:
    """Weight of each right document's rank, ``weight[r]`` for r = 1 … k and 0 beyond; the mean of it over a tie."""
    k = len(weight) - 1
    if ties == "docid":
        rank = ranks.above + ranks.before + 1
        return np.where(rank <= k, weight[np.minimum(rank, k)], 0)
    total = np.cumsum(weight)
    last, first = np.minimum(ranks.above + ranks.tied, k), np.minimum(ranks.above, k)
    return np.asarray((total[last] - total[first]) / ranks.tied)


def _reciprocal_rank(ranks: Ranks, judged: Judgements, ties: Ties, k: int) -> Floats:
    starts = np.cumsum(judged.counts) - judged.counts
    if ties == "docid":
        best = np.minimum.reduceat(ranks.above + ranks.before + 1, starts)
        return np.where(best <= k, 1 / best, 0)
    above = np.minimum.reduceat(ranks.above, starts)
    first = ranks.above == above[judged.query]  # right documents in the best tie that has any
    right = np.bincount(judged.query, first, judged.queries).astype(np.int64)
    tied = np.maximum.reduceat(np.where(first, ranks.tied, 0), starts)
    cases, which = np.unique(np.stack([above, tied, right], 1), axis=0, return_inverse=True)
    values = np.array([_mean_reciprocal(int(a), int(t), int(m), k) for a, t, m in cases])
    return np.asarray(values[which.reshape(-1)])


@cache
def _mean_reciprocal(above: int, tied: int, right: int, k: int) -> float:
    """Mean of 1 / rank of the first of ``right`` documents among ``tied`` in random order, after ``above`` others.

    It stands j-th in comb(tied - j, right - 1) of the comb(tied, right) ways to choose their places.
    """
    reach = min(k - above, tied - right + 1)
    ways = sum(comb(tied - j, right - 1) / (above + j) / comb(tied, right) for j in range(1, reach + 1))
    return float(ways)


def check_ties(ties: str) -> Ties:
    """Return ``ties`` if it is one of the two.

    Raises
    ------
    ValueError
        It is none.
    """
    if ties == "docid":
        return "docid"
    if ties == "average":
        return "average"
    raise ValueError(f'ties must be "docid" or "average", got {ties!r}')


def check_metrics(metrics: Sequence[str]) -> list[str]:
    """Return the metrics if each can be read.

    Raises
    ------
    ValueError
        One cannot, or there is none.
    """
    chosen = [metrics] if isinstance(metrics, str) else list(metrics)
    if not chosen:
        raise ValueError("metrics must name at least one, e.g. nDCG@10")
    for metric in chosen:
        parse(metric)
    return chosen
