"""The temperature of a figure: the same stops in every figure, which its page keeps in ``js/temperature.js``."""

from __future__ import annotations

from itertools import pairwise
from math import sqrt

import traitlets

from losslab.figures.base import FigureError, _number

# fmt: off
TEMPERATURES = (
    0.005, 0.006, 0.007, 0.008, 0.01, 0.0125, 0.014, 0.016, 0.02, 0.025, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.1, 0.125,
    0.16, 0.2, 0.25, 0.3, 0.4, 0.5, 0.7, 1.0,
)
# fmt: on

# The temperatures of a curve: the stops, and between two of them one more point, so that it is smooth.
FINE = (*(t for low, high in pairwise(TEMPERATURES) for t in (low, sqrt(low * high))), TEMPERATURES[-1])


class Temperature(traitlets.TraitType[float, object]):
    """A temperature that the slider can stand at: one of `TEMPERATURES`."""

    def validate(self, obj: object, value: object) -> float:
        """Return `value` as a float."""
        number = _number(value)
        if number is None or number not in TEMPERATURES:
            stops = ", ".join(f"{t:g}" for t in TEMPERATURES)
            raise FigureError(f"{type(obj).__name__}: {self.name} must be one of {stops}, not {value!r}")
        return number
