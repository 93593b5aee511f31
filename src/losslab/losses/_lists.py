"""What every listwise loss needs: checked input, documents in rank order, one value a query reduced as asked.

Shapes: B queries, N slots a list. A slot is a document where ``mask`` is True and padding where it is False.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

Order = Literal["labels", "given"]
Reduction = Literal["mean", "sum", "none"]


@dataclass(frozen=True)
class Lists:
    """A batch of lists that is safe to compute on: nothing of what stood in padded slots is left in it."""

    logits: Tensor  # (B, N) floating, 0 at padding
    labels: Tensor  # (B, N) floating, 0 at padding
    mask: Tensor  # (B, N) bool, True = a document


def read_lists(logits: Tensor, labels: Tensor, mask: Tensor | None, *, validate: bool) -> Lists:
    """Check a batch of lists and clear its padding.

    Shapes and types are always checked. ``validate=False`` skips only what has to look at the values, and so waits for
    the device.

    Raises
    ------
    ValueError
        If shapes disagree, a type is wrong, a document's logit or label is not finite, or no list has two documents.
    """
    if not isinstance(logits, Tensor) or not logits.is_floating_point() or logits.ndim != 2:
        raise ValueError(f"logits must be a floating-point tensor of shape (queries, documents), got {seen(logits)}")
    if not isinstance(labels, Tensor) or labels.is_complex() or labels.shape != logits.shape:
        raise ValueError(
            f"labels must be a real tensor of the logits' shape {tuple(logits.shape)}, got {seen(labels)}; "
            "pad the shorter lists and pass a mask"
        )
    if mask is None:
        mask = torch.ones_like(logits, dtype=torch.bool)
    elif not isinstance(mask, Tensor) or mask.dtype != torch.bool or mask.shape != logits.shape:
        raise ValueError(
            f"mask must be a bool tensor of the logits' shape {tuple(logits.shape)}, True at documents, "
            f"got {seen(mask)}"
        )
    for name, tensor in (("labels", labels), ("mask", mask)):
        if tensor.device != logits.device:
            raise ValueError(f"{name} is on {tensor.device} but logits is on {logits.device}; move it there")
    if not labels.is_floating_point():
        labels = labels.to(working_dtype(logits))
    if validate:
        _look_at_values(logits, labels, mask)
    padding = ~mask
    return Lists(logits.masked_fill(padding, 0), labels.masked_fill(padding, 0), mask)


def working_dtype(logits: Tensor) -> torch.dtype:
    """Float64, where the device has it.

    A choice's cost is a difference of two numbers as large as the logits: near 1000, float32 would leave four digits.
    """
    return torch.float32 if logits.device.type == "mps" else torch.float64


def rank_documents(lists: Lists, order: Order) -> tuple[Tensor, Tensor]:
    """Logits and mask of each list, best document first: highest label first, or as given. Ties keep the order given.

    Padding goes last under ``"labels"`` and stays where it is under ``"given"``.
    """
    if order == "given":
        return lists.logits, lists.mask
    if order != "labels":
        raise ValueError(f"order must be 'labels' or 'given', got {order!r}")
    # Stable, or the order of ties would depend on the width: torch's default sort reorders them from 17 columns on.
    by_label = lists.labels.masked_fill(~lists.mask, -torch.inf).argsort(dim=1, descending=True, stable=True)
    return lists.logits.gather(1, by_label), lists.mask.gather(1, by_label)


def reduce_queries(values: Tensor, mask: Tensor, reduction: Reduction, *, count_short_lists: bool) -> Tensor:
    """Reduce one value a query, (B,), by "mean", "sum" or "none". A list of fewer than two documents contributes 0."""
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"reduction must be 'mean', 'sum' or 'none', got {reduction!r}")
    rankable = mask.sum(1) >= 2
    values = values.masked_fill(~rankable, 0)
    if reduction == "none":
        return values
    if reduction == "sum":
        return values.sum()
    # The clamp only matters with validate=False: with no list to rank, the mean of nothing is taken to be 0.
    counted = values.shape[0] if count_short_lists else rankable.sum().clamp(min=1)
    return values.sum() / counted


def _look_at_values(logits: Tensor, labels: Tensor, mask: Tensor) -> None:
    for name, tensor in (("logits", logits), ("labels", labels)):
        wrong = mask & ~tensor.isfinite()
        if wrong.any():
            query, slot = wrong.nonzero()[0].tolist()
            raise ValueError(
                f"{name} must be finite at every document, got {tensor[query, slot].item()} at [{query}, {slot}]; "
                "if that slot is padding, set mask to False there"
            )
    sizes = mask.sum(1)
    if not (sizes >= 2).any():
        longest = int(sizes.max()) if sizes.numel() else 0
        raise ValueError(
            f"no list has two documents, so there is nothing to rank: logits has shape {tuple(logits.shape)} and the "
            f"longest list has {longest}; drop the batch, or check mask"
        )


def seen(value: object) -> str:
    """What an error message says about a value."""
    if isinstance(value, Tensor):
        return f"{str(value.dtype).removeprefix('torch.')} of shape {tuple(value.shape)}"
    return type(value).__name__
