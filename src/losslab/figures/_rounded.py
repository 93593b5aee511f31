"""A trait for sliders with a decimal step."""

from __future__ import annotations

import traitlets

from losslab.figures.base import FigureError, _number


class Rounded(traitlets.TraitType[float, object]):
    """A float from `low` to `high`, rounded to the `digits` after the point at which the slider can stand."""

    def __init__(self, default: float, low: float, high: float, digits: int) -> None:
        super().__init__(default)
        self.low, self.high, self.digits = low, high, digits

    def validate(self, obj: object, value: object) -> float:
        """Return `value` as a float, rounded."""
        number = _number(value)
        if number is None or not self.low <= number <= self.high:
            where = f"{type(obj).__name__}: {self.name}"
            raise FigureError(f"{where} must be a finite number from {self.low:g} to {self.high:g}, not {value!r}")
        return round(number, self.digits)
