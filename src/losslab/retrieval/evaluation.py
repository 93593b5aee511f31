"""Retrieval metrics, query by query, of embeddings or of scores."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from losslab.retrieval.exact_search import check_rows, near_one, score_chunks
from losslab.retrieval.judgements import Judgements, Relevant, check_ids, read_judgements, tie_order
from losslab.retrieval.metrics import Floats, Ranks, check_metrics, check_ties, per_query

METRICS = ("nDCG@10", "MRR@10", "recall@100")
FEW = 12  # right documents a query, on average, up to which counting is faster than sorting


def evaluate(
    queries: Tensor | NDArray[np.floating],  # (Q, d)
    documents: Tensor | NDArray[np.floating],  # (N, d)
    relevant: Relevant,
    metrics: Sequence[str] = METRICS,
    *,
    ties: str = "docid",
    query_ids: Sequence[str] | None = None,
    document_ids: Sequence[str] | None = None,
    chunk_size: int | None = None,
) -> dict[str, Floats]:
    """Score every query against every document by scalar product, and measure the ranking.

    Parameters
    ----------
    queries, documents
        Rows of one width, finite. For cosines, bring them to length 1 first.
    relevant
        For each query the rows of its right documents; or mappings row → gain; or a (Q, N) matrix of gains, dense or
        sparse; or a mapping query id → document id → gain, with the ids below.
    metrics
        Any of nDCG@k, MRR@k, recall@k in any case; without @k, to the end of the ranking. Gains count as they are (for
        :math:`2^g - 1`, pass that); MRR and recall take every gain above 0 as right. A cutoff beyond N is allowed.
    ties
        Equal scores: "docid", ids decide as in ir-measures (the larger string first, as in trec_eval; for MRR@k the
        smaller, as in MS MARCO's script); "average", the mean over all orders.
    query_ids, document_ids
        Distinct strings; by default the row numbers, as strings.
    chunk_size
        Queries scored at a time; by default as many as make 32 MiB of scores, which is all that is ever held.

    Returns
    -------
    dict of str to (Q,) float64
        Each metric as it was named; its ``.mean()`` is what is usually reported.

    Raises
    ------
    ValueError
        A shape disagrees, a row is not finite, there are no documents; ids disagree or repeat; a query has no right
        document; a metric or its cutoff is wrong.
    """
    chosen, how = check_metrics(metrics), check_ties(ties)
    queries, documents = check_rows(queries, documents)
    check_ids(query_ids, "query_ids", len(queries))
    judged = read_judgements(relevant, len(queries), len(documents), query_ids, document_ids)
    place = tie_places(document_ids, len(documents)).to(documents.device)
    chunks = score_chunks(near_one(queries, each=True), near_one(documents), chunk_size)
    ranks = join([ranks_of(scores, start, judged, place) for start, scores in chunks])
    return {metric: per_query(metric, ranks, judged, how) for metric in chosen}


def evaluate_scores(
    scores: Tensor | NDArray[np.floating],  # (Q, N)
    relevant: Relevant,
    metrics: Sequence[str] = METRICS,
    *,
    ties: str = "docid",
    query_ids: Sequence[str] | None = None,
    document_ids: Sequence[str] | None = None,
    chunk_size: int = 1024,
) -> dict[str, Floats]:
    """Measure a ranking that is given by scores, of whatever model; otherwise as `evaluate`.

    Parameters
    ----------
    scores
        Larger is better; −∞ is allowed (a document that was not retrieved), NaN and +∞ are not.
    """
    chosen, how = check_metrics(metrics), check_ties(ties)
    tensor = torch.from_numpy(scores) if isinstance(scores, np.ndarray) and scores.dtype.kind == "f" else scores
    if chunk_size < 1:
        raise ValueError(f"chunk_size must be at least 1, got {chunk_size}")
    if not isinstance(tensor, Tensor) or tensor.ndim != 2 or not tensor.is_floating_point() or not tensor.numel():
        seen = f"{getattr(scores, 'dtype', type(scores).__name__)} of shape {tuple(getattr(scores, 'shape', ()))}"
        raise ValueError(f"scores must be floating-point, of shape (queries, documents), not empty; got {seen}")
    bad = (tensor.isnan() | tensor.isposinf()).any(1).nonzero()
    if len(bad):
        raise ValueError(f"scores has NaN or +inf in {len(bad)} rows, the first is row {int(bad[0])}")
    check_ids(query_ids, "query_ids", len(tensor))
    judged = read_judgements(relevant, len(tensor), tensor.shape[1], query_ids, document_ids)
    place = tie_places(document_ids, tensor.shape[1]).to(tensor.device)
    starts = range(0, len(tensor), chunk_size)
    ranks = join([ranks_of(tensor[start : start + chunk_size].detach(), start, judged, place) for start in starts])
    return {metric: per_query(metric, ranks, judged, how) for metric in chosen}


def tie_places(ids: Sequence[str] | None, documents: int) -> Tensor:
    """Each row's place in the order of equal scores, (N,)."""
    order = tie_order(ids, documents)
    place = np.empty_like(order)
    place[order] = np.arange(documents)
    return torch.from_numpy(place)


def ranks_of(scores: Tensor, start: int, judged: Judgements, place: Tensor) -> Ranks:
    """Ranks of the right documents of the queries from ``start`` on, from their scores (c, N)."""
    first, last = np.searchsorted(judged.query, [start, start + len(scores)])
    rows = torch.from_numpy(judged.query[first:last] - start).to(scores.device)
    columns = torch.from_numpy(judged.document[first:last]).to(scores.device)
    find = _by_counting if len(rows) <= FEW * len(scores) else _by_sorting
    above, tied, before = (each.cpu().numpy() for each in find(scores, rows, columns, place))
    return Ranks(above, tied, before)


def _by_counting(scores: Tensor, rows: Tensor, columns: Tensor, place: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Two passes over a query's scores for each right document: nothing is sorted."""
    if scores.device.type == "cpu" and scores.dtype in (torch.float32, torch.float64):
        return _by_counting_on_cpu(scores, rows, columns, place)
    own = scores[rows, columns]
    above, tied, before = (torch.zeros_like(rows) for _ in range(3))
    block = len(scores)  # as many at a time as the chunk has queries: the memory of one more chunk of scores
    for at in range(0, len(rows), block):
        part = slice(at, at + block)
        them, mine = scores[rows[part]], own[part, None]
        equal = them == mine
        above[part] = (them > mine).sum(1)
        tied[part] = equal.sum(1)
        shared = (tied[part] > 1).nonzero()[:, 0]
        if len(shared):
            earlier = equal[shared] & (place < place[columns[part][shared], None])
            before[at + shared] = earlier.sum(1)
    return above, tied, before


def _by_counting_on_cpu(scores: Tensor, rows: Tensor, columns: Tensor, place: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The same in numpy, which compares and counts four times as fast, and copies nothing that it need not."""
    table, row, column = scores.numpy(), rows.numpy(), columns.numpy()
    own = table[row, column]
    above, tied, before = (np.zeros(len(row), dtype=np.int64) for _ in range(3))
    first = np.diff(row, prepend=-1) != 0  # of its query: these need no copy of its scores
    rest, block = np.flatnonzero(~first), len(table)  # the others as many at a time as make one more chunk of scores
    for pairs in (np.flatnonzero(first), *(rest[at : at + block] for at in range(0, len(rest), block))):
        them = table if first[pairs].all() and len(pairs) == len(table) else table[row[pairs]]
        mine = own[pairs, None]
        equal = them == mine
        alone = np.count_nonzero(equal) == len(pairs)  # each equals only itself: the rule, and quickly seen
        tied[pairs] = 1 if alone else _count(equal)
        above[pairs] = _count(them >= mine) - tied[pairs]
    shared, order = np.flatnonzero(tied > 1), place.numpy().astype(np.int32)  # half as much to read for each pair
    for pairs in (shared[at : at + block] for at in range(0, len(shared), block)):
        equal = table[row[pairs]] == own[pairs, None]
        equal &= order < order[column[pairs], None]
        before[pairs] = _count(equal)
    return torch.from_numpy(above), torch.from_numpy(tied), torch.from_numpy(before)


def _count(found: NDArray[np.bool_]) -> NDArray[np.int64]:
    """True entries of each row; summed as bytes, which is faster than asking numpy to count them."""
    return np.asarray(np.add.reduce(found.view(np.uint8), axis=1, dtype=np.uint32), dtype=np.int64)


def _by_sorting(scores: Tensor, rows: Tensor, columns: Tensor, place: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """One stable sort of a query's scores for all its right documents."""
    negative = torch.empty_like(scores)
    negative[:, place] = -scores  # best first is now ascending, as searchsorted wants it, and ties stand in order
    rising, order = negative.sort(dim=1, stable=True)
    rank = torch.empty_like(order)
    rank.scatter_(1, order, torch.arange(scores.shape[1], device=scores.device).expand_as(order))
    above = torch.searchsorted(rising, negative, side="left")
    through = torch.searchsorted(rising, negative, side="right")
    at = (rows, place[columns])
    return above[at], through[at] - above[at], rank[at] - above[at]


def join(parts: Sequence[Ranks]) -> Ranks:
    """The ranks of several chunks of queries, one after the other."""
    return Ranks(*(np.concatenate([getattr(part, name) for part in parts]) for name in ("above", "tied", "before")))
