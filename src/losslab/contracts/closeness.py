"""When two results count as equal.

A value must agree to 1e-6 of itself and a gradient to 1e-5 of its largest entry, plus room for what no implementation
in the number format can avoid: a log-sum-exp of logits near z is only known to an ulp of z, once for each document.
That room grows with the magnitude of the logits, the length of the list and the loss's own unit, and shrinks with the
format's epsilon; so a loss multiplied by 1000 is judged as the loss itself is.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from losslab.contracts.model import Direction, Query

Array = NDArray[np.float64]

VALUE = 1e-6  # relative to the value
GRADIENT = 1e-5  # relative to the gradient's largest entry
ULPS = 4.0  # of the largest logit, for each document
SAME_DIRECTION = 1e-3  # largest difference of two unit gradients that point the same way


def room(queries: Sequence[Query], scale: float, dtype: torch.dtype) -> float:
    """Absolute room for rounding, in the loss's unit."""
    magnitude = max([1.0, *(abs(z) for query in queries for z in query.logits)])
    documents = max([1, *map(len, queries)])
    return ULPS * torch.finfo(dtype).eps * magnitude * documents * scale


def value_errors(got: Array, want: Array, room: float, half: torch.dtype | None = None) -> Array:
    """Error of each value in units of what is allowed; infinite where ``got`` is not finite."""
    return _errors(got, want, VALUE * np.abs(want) + room, half)


def gradient_error(got: Array, want: Array, room: float, half: torch.dtype | None = None) -> float:
    """Largest error of a gradient's entries in units of what is allowed: at most 1 means equal."""
    allowed = GRADIENT * np.abs(want).max(initial=0.0) + room
    return float(_errors(got, want, np.full_like(want, allowed), half).max(initial=0.0))


def compare_directions(got: Array, want: Array, room: float) -> tuple[Direction | None, float | None, float | None]:
    """Whether ``got`` points where ``want`` does; if so, how much longer it is; and their cosine.

    All None where one of them has no direction: a gradient not clear of rounding, or not finite.
    """
    if not np.isfinite(got).all() or min(np.linalg.norm(got), np.linalg.norm(want)) <= 10 * room:
        return None, None, None
    length, right_length = float(np.linalg.norm(got)), float(np.linalg.norm(want))
    cosine = float(got @ want / (length * right_length))
    if np.abs(got / length - want / right_length).max() <= SAME_DIRECTION + 4 * room / min(length, right_length):
        return "kept", length / right_length, cosine
    return "changed", None, cosine


def as_tuple(array: Array) -> tuple[float, ...]:
    """The numbers of an array, plain."""
    return tuple(float(x) for x in array)


def _errors(got: Array, want: Array, allowed: Array, half: torch.dtype | None) -> Array:
    beyond = np.zeros(want.shape, dtype=bool)
    if half is not None:
        info = torch.finfo(half)
        allowed = allowed + info.eps / 2 * np.abs(want) + info.smallest_normal * info.eps
        beyond = (
            (np.abs(want) > info.max) & np.isinf(got) & (np.sign(got) == np.sign(want))
        )  # right, but not a number of the format
    with np.errstate(invalid="ignore"):
        errors = np.abs(got - want) / allowed
    return np.where(beyond, 0.0, np.where(np.isfinite(got), errors, np.inf))
