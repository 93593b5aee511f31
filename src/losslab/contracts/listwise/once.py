"""What every example asks of a loss again, and need be found out only once."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeVar

import numpy as np
import torch

from losslab.contracts.model import Query
from losslab.contracts.subject import Subject

T = TypeVar("T")


def once(loss: Subject, what: Hashable, find: Callable[[], T]) -> T:
    """What ``find`` gave when this subject was first asked for ``what``; kept with the subject, for one contract."""
    found: dict[Hashable, T] = vars(loss).setdefault("_found_once", {})
    if what not in found:
        found[what] = find()
    return found[what]


def filler(width: int) -> Query:
    """A list of so many documents, all alike, to stand beside a shorter one."""
    return Query((0.0,) * width, (1.0,) * width)


def value_of_filler(loss: Subject, width: int) -> float:
    """The loss of such a list alone."""
    return once(loss, ("filler", width), lambda: float(loss.alone(filler(width)).values[0]))


def does_not_mind_being_moved(loss: Subject) -> bool:
    """Whether, near 0 and in float64, only differences of logits count."""

    def find() -> bool:
        at = [Query((z, z + 1.0, z - 1.5), (0.0, 2.0, 1.0)) for z in (0.0, 3.0)]
        near, far = (loss.run([query], dtype=torch.float64) for query in at)
        return np.allclose(near.values, far.values, rtol=1e-5) and np.allclose(
            near.gradients[0], far.gradients[0], rtol=1e-4, atol=1e-5 * loss.scale
        )

    return once(loss, "movable", find)
