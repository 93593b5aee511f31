"""What a batch taught against what it should have: the comparison most token contracts end in."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

import numpy as np
import torch

from losslab.contracts import closeness
from losslab.contracts.agreement import Difference, compare
from losslab.contracts.model import BrokenPromise, Counterexample, Quantity, Texts
from losslab.contracts.token.subject import Array, Taught, TokenSubject, costs, count

Wanted = Literal["should be", "as before", "at least"]
ULPS = 16.0  # of the largest logit
HALF_ULPS = 2.0  # of the largest cost, where a loss answers in half precision


def rooms(loss: TokenSubject, texts: Texts, half: torch.dtype | None = None) -> tuple[float, float]:
    """Absolute room for rounding, in nats: of the value, of a gradient's entry.

    A cost is known to a few ulps of the largest logit. A loss that answers in a half-precision format has rounded every
    cost to it.
    """
    finite = texts.logits[np.isfinite(texts.logits)]
    magnitude = max(1.0, float(np.abs(finite).max(initial=0.0)))
    n = count(texts)
    room = ULPS * torch.finfo(torch.float32).eps * magnitude
    value = room * (n if loss.conventions.reduction == "sum" else 1)
    entry = loss.weight(max(n, 1))
    gradient = room * entry
    if half is not None:
        eps = HALF_ULPS * torch.finfo(half).eps
        value += eps * max(1.0, float(costs(texts)[0].max(initial=0.0))) * max(1, entry * n)
        gradient += eps * entry
    return value, gradient


def off(got: float, want: float, room: float) -> bool:
    """Whether a value is wrong."""
    return not abs(got - want) <= closeness.VALUE * abs(want) + room  # nan is wrong


def must_agree(
    loss: TokenSubject,
    got: Taught,
    want: Taught,
    texts: Texts,
    sentence: str,
    setting: Mapping[str, str] | None = None,
    *,
    wanted: Wanted = "should be",
    half: torch.dtype | None = None,
    of_value: bool = True,
) -> None:
    """Raise `BrokenPromise` unless value and gradient agree to the accuracy of float32.

    ``half`` names a half-precision format that the gradient was rounded to; if the value comes in it too, the loss was
    computed in it, which is allowed for. Without ``of_value`` only the gradient is compared.
    """
    native = half if got.dtype == half else None
    room, of_gradient = rooms(loss, texts, native)
    value_off = of_value and off(got.value, want.value, room)
    rows = compared(got, want, of_gradient, half)
    if not value_off and all(difference.error <= 1 for _, _, difference in rows):
        return
    shown = got if value_off else replace(got, raw=want.raw)  # rounding is nothing to show
    raise broken(loss, shown, want, texts, sentence, setting, wanted, rows)


Row = tuple[int, int, Difference]


def compared(got: Taught, want: Taught, room: float, half: torch.dtype | None = None) -> list[Row]:
    """Every row's gradient with the right one; none where there are no gradients."""
    if got.gradient is None or want.gradient is None:
        return []
    b, t, _ = got.gradient.shape
    return [(i, j, compare(got.gradient[i, j], want.gradient[i, j], room, half)) for i in range(b) for j in range(t)]


def broken(
    loss: TokenSubject,
    got: Taught,
    want: Taught,
    texts: Texts,
    sentence: str,
    setting: Mapping[str, str] | None = None,
    wanted: Wanted = "should be",
    rows: list[Row] | None = None,
) -> BrokenPromise:
    """The exception that shows a difference: the value, and the gradient of the row that fares worst."""
    quantities = [Quantity(loss.noun, got.raw, want.raw)]
    worst = max(rows or [], key=lambda row: row[2].severity, default=None)
    difference = None
    if worst is not None and worst[2].error > 1 and got.gradient is not None and want.gradient is not None:
        i, j, difference = worst
        of_row = f"row {j + 1}" + (f" of text {i + 1}" if len(texts.labels) > 1 else "")
        shown = (tidy(as_returned(loss, taught)[i, j]) for taught in (got, want))
        quantities.append(Quantity(f"gradient of {of_row}", *map(closeness.as_tuple, shown)))
        sentence = f"{sentence} The gradient of {of_row} {difference}"
    elif rows:
        sentence = f"{sentence} The gradients are right."
    return BrokenPromise(
        Counterexample(
            sentence,
            (),
            dict(setting or {}),
            tuple(quantities),
            difference.direction if difference else None,
            difference.factor if difference else None,
            difference.cosine if difference else None,
            texts=loss.seen(texts),
            wanted=wanted,
        )
    )


def as_returned(loss: TokenSubject, taught: Taught) -> Array:
    """A gradient in the loss's own unit."""
    assert taught.gradient is not None
    with np.errstate(all="ignore"):
        return np.asarray(taught.gradient * (taught.raw if loss.perplexity else 1 / math.log(loss.base)))


def tidy(gradient: Array) -> Array:
    """Nothing that is but rounding."""
    return np.where(np.abs(gradient) < 1e-7, 0.0, gradient)
