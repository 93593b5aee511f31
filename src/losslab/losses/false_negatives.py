"""Which documents of a batch may serve a query as negatives: masks for `info_nce`, (B, M), True = allowed.

In-batch negatives are other queries' documents, and some of them are right for this query too. Each function here
knows such cells by another sign; combine masks with ``&``. A query's own positive is always True.
"""

from collections.abc import Hashable, Sequence
from typing import Literal

import torch
from torch import Tensor

from losslab.losses._lists import seen
from losslab.losses._pairs import check_embeddings, check_norms, check_offset, check_reals, row_norms, scores

#: Cosines that differ by less are taken to be equal: what float32 embeddings of one text in two batches may differ by.
ROUNDING = 1e-6


def exact_duplicates(
    ids: Sequence[Hashable] | Tensor,
    *,
    queries: int | None = None,
    positive_offset: int = 0,
    device: torch.device | str | None = None,
) -> Tensor:
    """Forbid documents that are the positive once more: those of the same id.

    Parameters
    ----------
    ids : M hashable values, or a tensor (M,) of whole numbers
        One a document: its text, a hash, a group. Pass ids of the *queries* to forbid the documents of queries that ask
        the same, and combine both with ``&``.
    queries : int, optional
        B, the number of queries. By default M - ``positive_offset``.
    positive_offset : int
        As for `info_nce`: document i + ``positive_offset`` is query i's positive.
    device
        Where the mask is wanted; by default with ``ids``, or on the CPU.

    Raises
    ------
    ValueError
        If there are fewer ids than queries need, or ``ids`` is one string or not one-dimensional.
    """
    if isinstance(ids, Tensor):
        if ids.ndim != 1 or ids.is_floating_point() or ids.is_complex():
            raise ValueError(f"ids must be whole numbers of shape (documents,), got {seen(ids)}")
        codes = ids if device is None else ids.to(device)
    else:
        if isinstance(ids, (str, bytes)):
            raise ValueError(f"ids must hold one id a document, got one {type(ids).__name__}: {ids!r}")
        known: dict[Hashable, int] = {}
        codes = torch.tensor([known.setdefault(one, len(known)) for one in ids], dtype=torch.long, device=device)
    count = len(codes) - positive_offset if queries is None else queries
    if len(codes) < count + positive_offset or count < 1:
        raise ValueError(
            f"ids must hold one id a document, at least {max(count, 1)} queries + positive_offset {positive_offset}, "
            f"got {len(codes)}"
        )
    check_offset(positive_offset, count, len(codes))
    own = codes[positive_offset : positive_offset + count]
    return _with_own(own[:, None] != codes, positive_offset)


def above_threshold(similarities: Tensor, threshold: float, *, positive_offset: int = 0) -> Tensor:
    """Forbid documents that are too similar: at ``threshold`` or above.

    Parameters
    ----------
    similarities : (B, M) floating
        Of queries with documents, or of each query's positive with all documents; under any model.
    threshold : float
        In the units of ``similarities``. A fixed one means different things to different queries; see `guided`.
    positive_offset : int
        As for `info_nce`.

    Raises
    ------
    ValueError
        If ``similarities`` is no matrix, holds NaN or too few columns, or ``threshold`` is not a finite number.
    """
    if not isinstance(similarities, Tensor) or similarities.ndim != 2 or not similarities.is_floating_point():
        raise ValueError(f"similarities must be floating, of shape (queries, documents), got {seen(similarities)}")
    check_offset(positive_offset, *similarities.shape)
    check_reals("threshold", threshold)
    if similarities.isnan().any():
        row, column = similarities.isnan().nonzero()[0].tolist()
        raise ValueError(f"similarities must be numbers, got nan at [{row}, {column}]")
    return _with_own(similarities < threshold, positive_offset)


def guided(
    guide_queries: Tensor,  # (B, g)
    guide_documents: Tensor,  # (M, g)
    *,
    margin: float = 0.0,
    kind: Literal["absolute", "relative"] = "absolute",
    positive_offset: int = 0,
) -> Tensor:
    """Forbid documents that a guide model finds about as right as the positive, by cosine.

    Document j is forbidden to query i from ``pos - margin`` ("absolute") or ``pos - margin * |pos|`` ("relative") up,
    where pos is the guide's cosine of query i and its positive. What equals that bound, to 1e-6, is forbidden too:
    an exact copy of the positive scores exactly as the positive does, and would otherwise stay.

    Parameters
    ----------
    guide_queries, guide_documents : (B, g), (M, g) floating
        Embeddings by the guide, in the order of the batch; g need not be the trained model's.
    margin : float
        How far below the positive a document must be to count as wrong; negative to forbid only what is above it.
    kind : {"absolute", "relative"}
    positive_offset : int
        As for `info_nce`.

    Raises
    ------
    ValueError
        If shapes or types disagree, an embedding is zero or not finite, ``margin`` is not finite or ``kind`` unknown.

    References
    ----------
    Solatorio, "GISTEmbed: guided in-sample selection of training negatives for text embedding fine-tuning", 2024;
    de Souza P. Moreira et al., "NV-Retriever", 2024, section 3 (the margins; there for mining).
    """
    check_embeddings(guide_queries, guide_documents)
    check_offset(positive_offset, len(guide_queries), len(guide_documents))
    check_reals("margin", margin)
    if kind not in ("absolute", "relative"):
        raise ValueError(f"kind must be 'absolute' or 'relative', got {kind!r}")
    check_norms("guide_queries", row_norms(guide_queries), normalize=True)
    check_norms("guide_documents", row_norms(guide_documents), normalize=True)
    with torch.no_grad():
        cosines = scores(guide_queries, guide_documents, normalize=True, validate=False)
        own = cosines.diagonal(positive_offset)[: len(cosines)]
        bound = own - (margin if kind == "absolute" else margin * own.abs())
        return _with_own(cosines < bound[:, None] - ROUNDING, positive_offset)


def _with_own(allowed: Tensor, positive_offset: int) -> Tensor:
    """Allow every query's own positive."""
    allowed.diagonal(positive_offset).fill_(True)
    return allowed
