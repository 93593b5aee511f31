"""Exact search: every query against every document, some queries at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from losslab.retrieval.judgements import tie_order

CHUNK_BYTES = 32 << 20  # of scores held at a time


def search(
    queries: Tensor | NDArray[np.floating],  # (Q, d)
    documents: Tensor | NDArray[np.floating],  # (N, d)
    k: int = 10,
    *,
    document_ids: Sequence[str] | None = None,
    chunk_size: int | None = None,
) -> tuple[Tensor, Tensor]:
    """The k documents with the largest scalar product, best first; equal scores by id, descending, as trec_eval.

    Parameters
    ----------
    queries, documents
        Rows of one width, finite. For cosines, bring them to length 1 first.
    k
        At least 1; with fewer documents, all are returned.
    document_ids
        Distinct strings; by default the row numbers. They matter only where scores are equal.
    chunk_size
        Queries scored at a time; by default as many as make 32 MiB of scores.

    Returns
    -------
    scores : (Q, min(k, N)) floating
        Those too small for their format are 0; the ranking is right even then.
    rows : (Q, min(k, N)) int64

    Raises
    ------
    ValueError
        A shape or type is wrong, a row is not finite, there are no documents, ids disagree or repeat, k < 1, or a score
        is too large for its format.
    """
    queries, documents = check_rows(queries, documents)
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1:
        raise ValueError(f"k must be a whole number of at least 1, got {k!r}")
    order = torch.from_numpy(tie_order(document_ids, len(documents))).to(documents.device)
    asked, held = power_of_two(queries, each=True), power_of_two(documents)
    chunks = score_chunks(queries / asked, documents[order] / held, chunk_size)
    found = [_best(scores, min(int(k), len(documents))) for _, scores in chunks]
    # float64 holds what lies between, and a power of two rounds nothing
    scores = (torch.cat([each[0] for each in found]).double() * asked.double() * held.double()).to(queries.dtype)
    if not scores.isfinite().all():
        norms = [f"{_largest_norm(rows):.3g}" for rows in (queries, documents)]
        raise ValueError(
            f"queries has norms up to {norms[0]} and documents up to {norms[1]}: their scores are beyond "
            f"{queries.dtype}; rescale the rows, to length 1 for cosines"
        )
    return scores, order[torch.cat([each[1] for each in found])]


def score_chunks(queries: Tensor, documents: Tensor, chunk_size: int | None) -> Iterator[tuple[int, Tensor]]:
    """First query and scores (c, N) of one chunk after the other.

    Raises
    ------
    ValueError
        ``chunk_size`` is below 1.
    """
    if chunk_size is None:
        chunk_size = max(1, CHUNK_BYTES // (len(documents) * queries.element_size()))
    if chunk_size < 1:
        raise ValueError(f"chunk_size must be at least 1, got {chunk_size}")
    for start in range(0, len(queries), chunk_size):
        yield start, queries[start : start + chunk_size] @ documents.T


def check_rows(
    queries: Tensor | NDArray[np.floating], documents: Tensor | NDArray[np.floating]
) -> tuple[Tensor, Tensor]:
    """Queries and documents as tensors of one type, at least float32, on one device.

    Raises
    ------
    ValueError
        As for `search`.
    """
    first, second = check_embeddings(queries, "queries"), check_embeddings(documents, "documents")
    if first.shape[1] != second.shape[1]:
        raise ValueError(f"queries have width {first.shape[1]} but documents have width {second.shape[1]}")
    if first.device != second.device:
        raise ValueError(f"queries are on {first.device} but documents on {second.device}; move them together")
    dtype = torch.promote_types(torch.promote_types(first.dtype, second.dtype), torch.float32)
    return first.to(dtype), second.to(dtype)


def near_one(rows: Tensor, *, each: bool = False) -> Tensor:
    """Rows over a power of two that brings the largest entry, of all of them or of each, to 1 or more, below 2.

    That rounds nothing, and no ranking depends on it; but squares and products of very large or very small numbers are
    no numbers of the format.
    """
    return rows / power_of_two(rows, each=each)


def power_of_two(rows: Tensor, *, each: bool = False) -> Tensor:
    """Largest power of two up to the largest entry of all rows, (), or of each, (N, 1); 1 where all is 0."""
    largest = rows.abs().amax(1, keepdim=True) if each else rows.abs().amax()
    return torch.where(largest > 0, largest / (2 * torch.frexp(largest).mantissa), 1)


def _largest_norm(rows: Tensor) -> float:
    return float(torch.linalg.vector_norm(rows.double(), dim=1).max())


def check_embeddings(given: Tensor | NDArray[np.floating], name: str) -> Tensor:
    """One set of rows as a tensor, in its own type.

    Raises
    ------
    ValueError
        It is no floating-point matrix, it is empty, or a row is not finite; ``name`` is what the message calls it.
    """
    tensor = torch.from_numpy(given) if isinstance(given, np.ndarray) and given.dtype.kind == "f" else given
    if not isinstance(tensor, Tensor) or tensor.ndim != 2 or not tensor.is_floating_point():
        seen = f"{getattr(given, 'dtype', type(given).__name__)} of shape {tuple(getattr(given, 'shape', ()))}"
        raise ValueError(f"{name} must be floating-point rows of shape (rows, width), got {seen}")
    if not len(tensor):
        raise ValueError(f"{name} is empty, shape {tuple(tensor.shape)}; there is nothing to search")
    # a finite sum has only finite terms; one that is not may merely be too large
    if not tensor.sum().isfinite():
        bad = (~tensor.isfinite()).any(1).nonzero()
        if len(bad):
            raise ValueError(f"{name} has {len(bad)} rows that are not finite, the first is row {int(bad[0])}")
    return tensor.detach()


def _best(scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k largest of each row, best first, ties by column: what a stable sort of all would give, without it."""
    values, columns = scores.topk(k, dim=1)
    columns, by_column = columns.sort(dim=1)
    values, by_value = values.gather(1, by_column).sort(dim=1, descending=True, stable=True)
    columns = columns.gather(1, by_value)
    # topk may have taken any of the documents that tie for the last place
    crowded = ((scores >= values[:, -1:]).sum(1) > k).nonzero()[:, 0]
    if len(crowded):
        every, where = scores[crowded].sort(dim=1, descending=True, stable=True)
        values[crowded], columns[crowded] = every[:, :k], where[:, :k]
    return values, columns
