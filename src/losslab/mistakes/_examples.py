"""How tiny inputs are put to a function: `Example.show` of most mistakes. Those that look at more have their own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from losslab.mistakes._parts import own_costs
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


def tokens(loss: Function, *, logits: list[Any], labels: list[Any], dtype: torch.dtype = torch.float64) -> float:
    """Value of a token loss: logits (B, T, V), labels (B, T)."""
    return float(loss(tensor(logits, dtype), torch.tensor(labels)).item())


def alternating(ids: Sequence[int], p_next: float) -> tuple[Tensor, Tensor]:
    """Logits of a model that gives so much to the next token of 0, 1, 0, …, and labels: (1, T, 2), (1, T)."""
    rows = [[math.log(p_next if token != read else 1 - p_next) for token in (0, 1)] for read in ids]
    return tensor([rows]), torch.tensor([ids])


def costing(*texts: Sequence[float]) -> tuple[Tensor, Tensor]:
    """Logits and labels of texts whose tokens cost so many nats, after a first one that costs nothing.

    (B, T + 1, 2), (B, T + 1); every token is 0, and the labels of a shorter text end in -100.
    """
    width = max(map(len, texts))
    padded = [[*text, *[1.0] * (width - len(text)), 1.0] for text in texts]  # the last row predicts nothing
    rows = [[[-cost, math.log(-math.expm1(-cost))] for cost in text] for text in padded]
    labels = [[0] * (len(text) + 1) + [-100] * (width - len(text)) for text in texts]
    return tensor(rows), torch.tensor(labels)


def nested(
    wrap: Function,
    *,
    queries: list[list[float]],
    documents: list[list[float]],
    dims: list[int],
    dtype: torch.dtype = torch.float64,
) -> float:
    """Value of InfoNCE of dot products at temperature 1, wrapped for these sizes: (B, d) twice."""
    loss = wrap(lambda q, d: own_costs(q @ d.T).mean(), dims)
    return float(loss(tensor(queries, dtype), tensor(documents, dtype)).item())
