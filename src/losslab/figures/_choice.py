"""A trait that takes one of a few values, as radio buttons and stepped sliders do."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any

import traitlets

from losslab.figures.base import FigureError


class Choice(traitlets.TraitType[Any, object]):
    """One of `values`, all numbers or all texts; a number is kept as the one that the page's slider stands at."""

    def __init__(self, default: float | str, values: Sequence[float | str]) -> None:
        super().__init__(default)
        self.values = list(values)

    def validate(self, obj: object, value: object) -> float | str:
        """Return the one of `values` that `value` equals."""
        if isinstance(value, (Real, str)) and not isinstance(value, bool):
            for one in self.values:
                if value == one:
                    return one
        allowed = ", ".join(repr(one) for one in self.values)
        raise FigureError(f"{type(obj).__name__}: {self.name} must be one of {allowed}, not {value!r}")
