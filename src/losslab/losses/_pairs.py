"""What every contrastive loss needs: checked queries and documents, unit rows in good precision, values reduced.

Shapes: B queries, M documents, d dimensions. Document ``i + positive_offset`` is query i's positive.
"""

import math
from numbers import Real
from typing import Literal

import torch
from torch import Tensor

from losslab.losses._lists import seen

Reduction = Literal["mean", "sum", "none"]


def fine_dtype(tensor: Tensor) -> torch.dtype:
    """Float64, where the device has it."""
    return torch.float32 if tensor.device.type == "mps" else torch.float64


def check_embeddings(queries: Tensor, documents: Tensor) -> None:
    """Refuse what is not two matrices of one width, one floating-point type and one device."""
    for name, tensor in (("queries", queries), ("documents", documents)):
        if not isinstance(tensor, Tensor) or not tensor.is_floating_point() or tensor.ndim != 2:
            raise ValueError(
                f"{name} must be a floating-point tensor of shape ({name}, dimensions), got {seen(tensor)}"
            )
        if not tensor.numel():
            raise ValueError(f"{name} must not be empty, got {seen(tensor)}; drop the batch")
    if documents.shape[1] != queries.shape[1]:
        raise ValueError(
            f"documents must have the queries' {queries.shape[1]} dimensions, got {seen(documents)}; "
            "both must come from encoders of one embedding size"
        )
    check_same_kind("documents", documents, queries)


def check_same_kind(name: str, tensor: Tensor, queries: Tensor) -> None:
    """Refuse embeddings of another type than the queries, or on another device."""
    if tensor.dtype != queries.dtype:
        raise ValueError(f"{name} must have the queries' type, got {tensor.dtype} beside {queries.dtype}; convert one")
    check_device(name, tensor, queries)


def check_device(name: str, tensor: Tensor, queries: Tensor) -> None:
    """Refuse a tensor that is not where the queries are."""
    if tensor.device != queries.device:
        raise ValueError(f"{name} is on {tensor.device} but queries is on {queries.device}; move it there")


def check_positive(name: str, value: object) -> None:
    """Refuse what is not a finite number above 0."""
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value) or value <= 0:
        got = seen(value) if isinstance(value, Tensor) else repr(value)
        learnt = "; to learn it, normalise, divide the queries by it and pass normalize=False, temperature=1"
        hint = learnt if isinstance(value, Tensor) else "; usual ones lie between 0.01 and 1"
        raise ValueError(f"{name} must be a finite number above 0, got {got}{hint}")


def check_reals(name: str, value: object) -> None:
    """Refuse what is not a finite number."""
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        raise ValueError(f"{name} must be a finite number, got {seen(value) if isinstance(value, Tensor) else value!r}")


def check_chunk(chunk_size: object) -> None:
    """Refuse what is not a whole number of at least 1."""
    if isinstance(chunk_size, bool) or not isinstance(chunk_size, int) or chunk_size < 1:
        raise ValueError(f"chunk_size must be a whole number of at least 1, got {chunk_size!r}; try 512")


def check_offset(positive_offset: object, queries: int, documents: int) -> None:
    """Refuse an offset that gives some query no positive."""
    if isinstance(positive_offset, bool) or not isinstance(positive_offset, int) or positive_offset < 0:
        raise ValueError(f"positive_offset must be a whole number of at least 0, got {positive_offset!r}")
    if documents < queries + positive_offset:
        raise ValueError(
            f"documents must hold a positive for each query, at least {queries} + positive_offset {positive_offset} "
            f"rows, got {documents}"
        )


def check_cells(name: str, mask: object, queries: Tensor, documents: Tensor, *, true: str) -> None:
    """Refuse what is not a bool matrix of one cell a (query, document); ``true`` says what True stands for."""
    shape = (len(queries), len(documents))
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool or mask.shape != shape:
        raise ValueError(f"{name} must be a bool tensor of shape {shape}, True = {true}, got {seen(mask)}")
    check_device(name, mask, queries)


def check_own_cells(negatives: Tensor, positive_offset: int) -> None:
    """Refuse a mask that forbids a query's own positive: it is inverted, or its offset is another."""
    wrong = ~negatives.diagonal(positive_offset)
    if wrong.any():
        row = int(wrong.nonzero()[0])
        raise ValueError(
            f"negatives must be True at every query's own positive, got False at [{row}, {row + positive_offset}] and "
            f"{int(wrong.sum())} such in all; True = allowed, so an inverted mask shows here, and a wrong offset"
        )


def check_hard_negatives(hard: object, mask: object, queries: Tensor) -> None:
    """Refuse what is not (B, H, d) like the queries, with a mask of (B, H)."""
    if hard is None:
        if mask is not None:
            raise ValueError(f"hard_mask must come with hard_negatives, got {seen(mask)} alone")
        return
    b, d = queries.shape
    if not isinstance(hard, Tensor) or hard.ndim != 3 or (hard.shape[0], hard.shape[2]) != (b, d):
        raise ValueError(
            f"hard_negatives must be a tensor of shape ({b}, hard negatives a query, {d}), got {seen(hard)}; "
            "pad the shorter lists and pass a hard_mask"
        )
    check_same_kind("hard_negatives", hard, queries)
    if mask is None:
        return
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool or mask.shape != hard.shape[:2]:
        raise ValueError(
            f"hard_mask must be a bool tensor of shape {tuple(hard.shape[:2])}, True = real, got {seen(mask)}"
        )
    check_device("hard_mask", mask, queries)


def check_norms(name: str, norms: Tensor, *, normalize: bool, first: int = 0, used: Tensor | None = None) -> None:
    """Refuse embeddings that are not finite, or 0 where they are to be normalised.

    ``first`` is the row that the first norm belongs to; ``used`` marks those that count.
    """
    if used is None and norms.numel():  # the usual case, in one pass
        least, most = (float(end) for end in norms.aminmax())
        if most < math.inf and (least > 0 or not normalize):
            return
    wrong = ~norms.isfinite() | (norms == 0) if normalize else ~norms.isfinite()
    if used is not None:
        wrong &= used
    if wrong.any():
        place = wrong.nonzero()[0].tolist()
        norm = norms[tuple(place)].item()
        place[0] += first
        at = place[0] if len(place) == 1 else place
        if norm == 0:
            raise ValueError(
                f"{name} must have no zero vector where normalize=True, got one at row {at}; "
                "it has no direction: look for empty texts, or pass normalize=False"
            )
        raise ValueError(f"{name} must be finite, got a vector of norm {norm} at row {at}")


def check_reduction(reduction: str) -> None:
    """Refuse what is not one of the three."""
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"reduction must be 'mean', 'sum' or 'none', got {reduction!r}")


def row_norms(embeddings: Tensor) -> Tensor:
    """Length of each vector along the last dimension, summed in float64 where the device has it."""
    norms: Tensor = torch.linalg.vector_norm(embeddings.detach(), dim=-1, dtype=fine_dtype(embeddings))
    return norms


def unit_rows(embeddings: Tensor) -> Tensor:
    """Rows of length 1 in fine precision, differentiable; a zero vector stays zero and gets no gradient."""
    fine = embeddings.to(fine_dtype(embeddings))
    squares = fine.square().sum(-1, keepdim=True)
    return fine * squares.where(squares > 0, 1).rsqrt()


def scores(queries: Tensor, documents: Tensor, *, normalize: bool, validate: bool) -> Tensor:
    """Cosines (or dot products) of every query with every document, (B, M), in fine precision, differentiable."""
    if validate:
        check_norms("queries", row_norms(queries), normalize=normalize)
        check_norms("documents", row_norms(documents), normalize=normalize)
    if normalize:
        return unit_rows(queries) @ unit_rows(documents).T
    return queries.to(fine_dtype(queries)) @ documents.to(fine_dtype(documents)).T


def reduce_rows(values: Tensor, reduction: Reduction) -> Tensor:
    """One value a query, (B,), reduced by "mean", "sum" or "none"."""
    check_reduction(reduction)
    if reduction == "none":
        return values
    return values.sum() if reduction == "sum" else values.mean()
