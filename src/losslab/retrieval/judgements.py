"""Which documents are right for which query, in every form that people keep it in; and the order of ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

#: One of: Q index arrays of right documents; Q mappings row -> gain; a (Q, N) matrix of gains, dense or sparse
#: (scipy or torch); or a mapping query id -> mapping document id -> gain.
Relevant = Sequence[Any] | Mapping[str, Mapping[str, float]] | NDArray[Any] | Tensor | Any


@dataclass(frozen=True)
class Judgements:
    """The P right documents of Q queries, query by query.

    Attributes
    ----------
    query : (P,) int64
        Row of the query, ascending.
    document : (P,) int64
        Row of the document.
    gain : (P,) float64
        Above 0; 1 where relevance is yes or no.
    queries, documents
        Q and N.
    """

    query: NDArray[np.int64]
    document: NDArray[np.int64]
    gain: NDArray[np.float64]
    queries: int
    documents: int

    @property
    def counts(self) -> NDArray[np.int64]:
        """Right documents of each query, (Q,)."""
        return np.bincount(self.query, minlength=self.queries)


def read_judgements(
    relevant: Relevant,
    queries: int,
    documents: int,
    query_ids: Sequence[str] | None,
    document_ids: Sequence[str] | None,
) -> Judgements:
    """Bring ``relevant`` into one form.

    Raises
    ------
    ValueError
        Shapes or lengths disagree; a row or id that there is not; a gain that is negative or not finite; a document
        judged twice for one query; a query without a right document.
    """
    if isinstance(relevant, Mapping):
        query, document, gain = _from_ids(relevant, queries, documents, query_ids, document_ids)
    elif hasattr(relevant, "tocoo") or (isinstance(relevant, (np.ndarray, Tensor)) and relevant.ndim == 2):
        query, document, gain = _from_matrix(relevant, queries, documents)
    else:
        query, document, gain = _from_lists(relevant, queries, documents)
    if not np.isfinite(gain).all() or (gain < 0).any():
        at = int(np.flatnonzero(~np.isfinite(gain) | (gain < 0))[0])
        raise ValueError(
            f"gains must be finite and not negative, got {gain[at]} for query {query[at]}, document {document[at]}"
        )
    order = np.lexsort((document, query))
    query, document, gain = query[order], document[order], gain[order]
    twice = np.flatnonzero((np.diff(query) == 0) & (np.diff(document) == 0))
    if len(twice):
        raise ValueError(f"relevant names document {document[twice[0]]} twice for query {query[twice[0]]}")
    real = gain > 0
    judgements = Judgements(query[real], document[real], gain[real], queries, documents)
    without = np.flatnonzero(judgements.counts == 0)
    if len(without):
        name = f"{without[0]}" if query_ids is None else f"{without[0]} (id {query_ids[without[0]]!r})"
        raise ValueError(
            f"relevant has no right document for {len(without)} of {queries} queries, the first is query {name}; "
            "leave such queries out"
        )
    return judgements


def check_ids(ids: Sequence[str] | None, name: str, length: int) -> list[str]:
    """Ids as strings; by default the row numbers.

    Raises
    ------
    ValueError
        Another number of ids than rows, an id that is no string, or one that occurs twice.
    """
    if ids is None:
        return [str(row) for row in range(length)]
    if isinstance(ids, str) or len(ids) != length:
        raise ValueError(f"{name} must hold one id for each of the {length} rows, got {len(ids)}")
    found = [str(one) if isinstance(one, np.str_) else one for one in ids]
    wrong = next((one for one in found if not isinstance(one, str)), None)
    if wrong is not None:
        raise ValueError(f"{name} must be strings, got {wrong!r} ({type(wrong).__name__})")
    if len(set(found)) != length:
        seen: set[str] = set()
        twice = next(one for one in found if one in seen or seen.add(one))  # type: ignore[func-returns-value]
        raise ValueError(f"{name} must be distinct, but {twice!r} occurs more than once")
    return found


def tie_order(document_ids: Sequence[str] | None, documents: int) -> NDArray[np.int64]:
    """Rows in the order in which equal scores rank them: by id, as bytes, descending, as trec_eval does; (N,)."""
    ids = [one.encode() for one in check_ids(document_ids, "document_ids", documents)]
    return np.array(sorted(range(documents), key=ids.__getitem__, reverse=True), dtype=np.int64)


_Triples = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]


def _from_ids(
    relevant: Mapping[str, Mapping[str, float]],
    queries: int,
    documents: int,
    query_ids: Sequence[str] | None,
    document_ids: Sequence[str] | None,
) -> _Triples:
    row_of = {one: row for row, one in enumerate(check_ids(document_ids, "document_ids", documents))}
    names = check_ids(query_ids, "query_ids", queries)
    foreign = list(relevant.keys() - set(names))
    if foreign:
        raise ValueError(
            f"relevant judges {len(foreign)} queries that are not among the {queries} query_ids, e.g. {foreign[0]!r}"
        )
    triples = []
    for row, name in enumerate(names):
        for document, gain in relevant.get(name, {}).items():
            if document not in row_of:
                raise ValueError(
                    f"relevant judges document {document!r} for query {name!r}, which is not among the {documents} "
                    "document_ids"
                )
            triples.append((row, row_of[document], gain))
    return _split(triples)


def _from_matrix(relevant: Any, queries: int, documents: int) -> _Triples:  # noqa: ANN401
    if tuple(relevant.shape) != (queries, documents):
        raise ValueError(f"relevant must have shape ({queries}, {documents}), got {tuple(relevant.shape)}")
    if isinstance(relevant, Tensor):
        if relevant.layout is torch.strided:
            return _from_matrix(relevant.detach().cpu().numpy(), queries, documents)
        entries = relevant.detach().cpu().to_sparse_coo().coalesce()  # type: ignore[no-untyped-call]
        row, column = entries.indices().numpy()
        gain = entries.values().numpy()
    elif isinstance(relevant, np.ndarray):
        row, column = np.nonzero(relevant)
        gain = relevant[row, column]
    else:
        entries = relevant.tocoo()
        row, column, gain = entries.row, entries.col, entries.data
    return row.astype(np.int64), column.astype(np.int64), gain.astype(np.float64)


def _from_lists(relevant: Any, queries: int, documents: int) -> _Triples:  # noqa: ANN401
    if isinstance(relevant, (str, bytes)) or not hasattr(relevant, "__len__"):
        raise ValueError(
            "relevant must be a list of index arrays, a matrix of gains, or a mapping of ids, "
            f"got {type(relevant).__name__}"
        )
    if len(relevant) != queries:
        raise ValueError(f"relevant must have one entry for each of the {queries} queries, got {len(relevant)}")
    rows, columns, gains = [], [], []
    for row, entry in enumerate(relevant):
        if isinstance(entry, Mapping):
            right, gain = np.array(list(entry), dtype=object), np.array(list(entry.values()), dtype=np.float64)
        else:
            right = np.asarray(entry.cpu() if isinstance(entry, Tensor) else entry)
            gain = np.ones(right.shape, dtype=np.float64)
        if right.ndim != 1 or (right.size and not all(type(one) is int for one in right.tolist())):
            raise ValueError(f"relevant[{row}] must be a list of whole row numbers, got {entry!r}")
        outside = [one for one in right.tolist() if not 0 <= one < documents]
        if outside:
            raise ValueError(f"relevant[{row}] names document {outside[0]}, but there are {documents} documents")
        rows.append(np.full(right.shape, row, dtype=np.int64))
        columns.append(right.astype(np.int64))
        gains.append(gain)
    return np.concatenate(rows), np.concatenate(columns), np.concatenate(gains)


def _split(triples: Sequence[tuple[int, int, float]]) -> _Triples:
    rows, columns, gains = zip(*triples, strict=True) if triples else ((), (), ())
    return np.array(rows, np.int64), np.array(columns, np.int64), np.array(gains, np.float64)
