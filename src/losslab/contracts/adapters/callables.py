"""Any PyTorch callable, with its conventions declared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from losslab.contracts.model import Conventions, Order, Reduction


@dataclass(frozen=True)
class CallableLoss:
    """A callable that knows its name and conventions."""

    loss: Callable[..., Any]
    conventions: Conventions
    name: str
    has_validate: bool = False

    def __call__(self, logits: Tensor, labels: Tensor, mask: Tensor | None = None, **options: Any) -> Any:  # noqa: ANN401
        """Call it."""
        return self.loss(logits, labels, mask, **options)


def callable_loss(
    loss: Callable[..., Any],
    *,
    order: Order = "labels",
    count_short_lists: bool = False,
    reduction: Reduction = "mean",
    name: str | None = None,
) -> CallableLoss:
    """Declare the conventions of a callable or ``nn.Module``, ``loss(logits (B, N), labels (B, N), mask (B, N) bool)``.

    Raises
    ------
    TypeError
        If it is not callable.

    Examples
    --------
    >>> import torch
    >>> from losslab.contracts.adapters import callable_loss
    >>> def top_one(logits, labels, mask):
    ...     logits = logits.masked_fill(~mask, -torch.inf)
    ...     return torch.logsumexp(logits, 1).sum() - logits[:, 0].sum()
    >>> callable_loss(top_one, order="given", reduction="sum").conventions.order
    'given'
    """
    if not callable(loss):
        raise TypeError(f"loss must be callable, got {type(loss).__name__}")
    name = name or str(getattr(loss, "__name__", type(loss).__name__))
    return CallableLoss(loss, Conventions(order, count_short_lists, reduction), name)
