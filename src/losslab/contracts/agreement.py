"""What came out against what should have: the comparison every contract ends in, and the words for a difference."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from losslab.contracts import closeness
from losslab.contracts.model import BrokenPromise, Counterexample, Direction, Quantity, Query
from losslab.contracts.subject import Outcome, Subject
from losslab.contracts.wording import show


@dataclass(frozen=True)
class Difference:
    """How one query's gradient differs from the right one; ``error`` is in units of what is allowed."""

    error: float
    direction: Direction | None = None
    factor: float | None = None
    cosine: float | None = None

    @property
    def severity(self) -> tuple[bool, bool, float, float]:
        """Order of what to show: a wrong direction before a wrong weight, the larger first."""
        weight = abs(math.log(self.factor)) if self.factor else 0.0
        return self.error > 1, self.direction == "changed", weight, self.error

    def __str__(self) -> str:
        if self.direction == "kept" and self.factor is not None and abs(self.factor - 1) > 0.005:
            return f"keeps its direction; its weight is off by a factor of {show(self.factor, 3)}."
        if self.direction == "changed" and self.cosine is not None and self.cosine < 0.9995:
            return f"changes direction: cosine {show(self.cosine, 3)} with what it should be."
        return "is off."


def must_agree(
    loss: Subject,
    got: Outcome,
    want: Outcome,
    queries: Sequence[Query],
    sentence: str,
    setting: Mapping[str, str] | None = None,
    *,
    half: torch.dtype | None = None,
) -> None:
    """Raise `BrokenPromise` unless value and every query's gradient agree to the accuracy of float32.

    ``half`` names a half-precision format that the gradient was rounded to (and the value, if it comes in it); its
    rounding is then allowed as well.
    """
    room = closeness.room(queries, loss.scale, torch.float32)
    half_value = half if got.dtype == half else None  # a loss may answer half-precision logits in float32
    values = closeness.value_errors(got.values, want.values, room, half_value)
    gradients = [compare(g, w, room, half) for g, w in zip(got.gradients, want.gradients, strict=True)]
    if values.max() > 1 or any(gradient.error > 1 for gradient in gradients):
        raise broken(got, want, queries, gradients, list(values), sentence, setting)


def compare(got: closeness.Array, want: closeness.Array, room: float, half: torch.dtype | None = None) -> Difference:
    """One query's gradient against the right one."""
    return Difference(closeness.gradient_error(got, want, room, half), *closeness.compare_directions(got, want, room))


def broken(
    got: Outcome,
    want: Outcome,
    queries: Sequence[Query],
    gradients: Sequence[Difference],
    values: Sequence[float],
    sentence: str,
    setting: Mapping[str, str] | None = None,
) -> BrokenPromise:
    """The exception that shows a difference: the value, and the gradient of the query that fares worst."""
    worst = max(range(len(queries)), key=lambda i: gradients[i].severity)
    value = max(range(len(values)), key=lambda i: values[i])
    if len(values) > 1:  # one value a query: speak of one query only
        worst = value = worst if gradients[worst].error > 1 else value
    of_query = f" of query {worst + 1}" if len(queries) > 1 else ""
    difference = gradients[worst]
    verb = str(difference) if difference.error > 1 else "is right; the value is not."
    return BrokenPromise(
        Counterexample(
            f"{sentence} The gradient{of_query} {verb}",
            tuple(queries),
            dict(setting or {}),
            (
                Quantity("loss" + (of_query if len(values) > 1 else ""), *_floats(got, want, value)),
                Quantity(
                    "gradient" + of_query,
                    closeness.as_tuple(got.gradients[worst]),
                    closeness.as_tuple(want.gradients[worst]),
                ),
            ),
            difference.direction,
            difference.factor,
            difference.cosine,
        )
    )


def _floats(got: Outcome, want: Outcome, i: int) -> tuple[float, float]:
    return float(got.values[i]), float(want.values[i])
