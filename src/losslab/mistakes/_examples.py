"""How tiny inputs are put to a function: `Example.show` of most mistakes. Those that look at more have their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from losslab.mistakes._record import Function


def tensor(rows: Sequence[Any], dtype: torch.dtype = torch.float64) -> Tensor:
    """Return numbers as a tensor, float64 unless told otherwise; truth values stay what they are."""
    given = torch.tensor(rows)
    return given if given.dtype == torch.bool else torch.tensor(rows, dtype=dtype)


def value(function: Function, **inputs: Any) -> float:  # noqa: ANN401
    """Call with every list as a tensor, in order, and all else by name; return the number, the mean if it is several.

    The rows of a batch that is given whole: queries and documents, say, or a matrix of scores.
    """
    tensors = [tensor(given) for given in inputs.values() if isinstance(given, list)]
    options = {name: given for name, given in inputs.items() if not isinstance(given, list)}
    return float(function(*tensors, **options).mean().item())


def one_list(
    loss: Function,
    logits: Sequence[float],
    labels: Sequence[float],
    *,
    width: int | None = None,
    padding: float = 0.0,
    dtype: torch.dtype = torch.float64,
) -> tuple[float, list[float]]:
    """Value and gradient (N,) of one list in a row of so many slots; ``padding`` stands in the empty ones."""
    slots = width or len(logits)
    empty = [padding] * (slots - len(logits))
    z, y = (tensor([[*row, *empty]], dtype) for row in (logits, labels))
    mask = (torch.arange(slots) < len(logits))[None]
    result = loss(z.requires_grad_(), y, mask)
    (gradient,) = torch.autograd.grad(result, z)
    return result.item(), gradient[0].tolist()


def list_value(loss: Function, *, logits: Sequence[float], labels: Sequence[float], **how: Any) -> float:  # noqa: ANN401
    """Value of one list."""
    return one_list(loss, logits, labels, **how)[0]


def by_width(
    loss: Function, *, logits: Sequence[float], labels: Sequence[float], widths: Sequence[int]
) -> dict[str, float]:
    """Value of one list beside others that make the batch so wide."""
    return {f"width {width}": one_list(loss, logits, labels, width=width)[0] for width in widths}
