"""What a batch taught against what it should have: the comparison most contrastive contracts end in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Protocol

import numpy as np
import torch

from losslab.contracts import closeness
from losslab.contracts.agreement import compare
from losslab.contracts.contrastive.subject import ContrastiveSubject, Taught
from losslab.contracts.model import BrokenPromise, Counterexample, Pairs, Quantity


class HasRoom(Protocol):
    """Says how much rounding explains."""

    def rooms(self, pairs: Pairs, temperature: float | None = None) -> tuple[float, float]:
        """Absolute room of a value, and of a gradient's entry."""
        ...


def must_agree(
    loss: HasRoom,
    got: Taught,
    want: Taught,
    pairs: Pairs,
    sentence: str,
    setting: Mapping[str, str] | None = None,
    *,
    wanted: Literal["should be", "as before"] = "should be",
    half: torch.dtype | None = None,
    temperature: float | None = None,
) -> None:
    """Raise `BrokenPromise` unless value and every embedding's gradient agree to the accuracy of float32.

    ``half`` names a half-precision format that the gradient was rounded to (and the value, if it comes in it); its
    rounding is then allowed as well. ``temperature`` is the one it was called with, if not its own.
    """
    of_value, of_gradient = loss.rooms(pairs, temperature)
    values = closeness.value_errors(got.values, want.values, of_value, half if got.dtype == half else None)
    rows = [
        (name, g, w, compare(g, w, of_gradient, half))
        for name, g, w in zip(names(pairs), embeddings(got), embeddings(want), strict=True)
    ]
    if values.max() <= 1 and all(difference.error <= 1 for *_, difference in rows):
        return
    name, g, w, difference = max(rows, key=lambda row: row[3].severity)
    wrong = difference.error > 1
    worst = int(values.argmax())
    of_query = f" of query {worst + 1}" if len(values) > 1 else ""
    quantities = [Quantity("loss" + of_query, float(got.values[worst]), float(want.values[worst]))]
    if wrong:
        shown = (np.where(np.abs(x) < of_gradient, 0.0, x) for x in (g, w))  # nothing that is but rounding
        quantities.append(Quantity(f"gradient of {name}", *map(closeness.as_tuple, shown)))
    raise BrokenPromise(
        Counterexample(
            f"{sentence} The gradient of {name} {difference}" if wrong else f"{sentence} The gradients are right.",
            (),
            dict(setting or {}),
            tuple(quantities),
            difference.direction if wrong else None,
            difference.factor if wrong else None,
            difference.cosine if wrong else None,
            pairs,
            wanted,
        )
    )


def embeddings(taught: Taught) -> list[closeness.Array]:
    """Every embedding's gradient: queries, documents, hard negatives."""
    rows = [*taught.queries, *taught.documents]
    return rows if taught.hard is None else [*rows, *taught.hard.reshape(-1, taught.hard.shape[-1])]


def names(pairs: Pairs) -> list[str]:
    """What to call them."""
    said = [f"query {i + 1}" for i in range(len(pairs.queries))]
    said += [f"document {j + 1}" for j in range(len(pairs.documents))]
    if pairs.hard is not None:
        b, h, _ = pairs.hard.shape
        said += [f"hard negative {k + 1} of query {i + 1}" for i in range(b) for k in range(h)]
    return said


def value_broken(
    sentence: str,
    pairs: Pairs,
    quantity: Quantity,
    setting: Mapping[str, str] | None = None,
    wanted: Literal["should be", "as before", "at least"] = "should be",
) -> BrokenPromise:
    """The exception for one number that is wrong."""
    return BrokenPromise(Counterexample(sentence, (), dict(setting or {}), (quantity,), pairs=pairs, wanted=wanted))


def total(loss: ContrastiveSubject, taught: Taught) -> float:
    """The batch's value as a mean over its queries, whatever the reduction."""
    if loss.conventions.reduction == "mean":
        return float(taught.values[0])
    return float(taught.values.sum()) / len(taught.queries)


def off(got: float, want: float, room: float) -> bool:
    """Whether a value is wrong."""
    return bool(closeness.value_errors(np.array([got]), np.array([want]), room)[0] > 1)
