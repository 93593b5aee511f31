"""Binary number formats, as in ``js/formats.js``: what a value becomes in one, and how far apart its numbers are."""

from __future__ import annotations

from dataclasses import dataclass
from math import floor, frexp, inf, isfinite, ldexp


@dataclass(frozen=True)
class Format:
    """A binary format: bits of the significand (the hidden one too), least normal exponent, greatest exponent."""

    name: str
    bits: int
    low: int
    high: int

    @property
    def top(self) -> float:
        """The largest finite number."""
        return ldexp(2 - ldexp(1, 1 - self.bits), self.high)

    def spacing(self, value: float) -> float:
        """Distance from `value` to the next number of the format, away from zero."""
        return ldexp(1, max(frexp(value)[1] - 1 if value else self.low, self.low) - self.bits + 1)

    def round(self, value: float) -> float:
        """The nearest number of the format, the even one of two; beyond the largest, infinity (IEEE 754)."""
        if not isfinite(value) or value == 0:
            return value
        unit = self.spacing(value)
        units = abs(value) / unit  # exact: the unit is a power of two
        below = floor(units)
        over = units - below
        size = (below + 1 if over > 0.5 or (over == 0.5 and below % 2) else below) * unit
        if size > self.top:
            size = inf
        return -size if value < 0 else size


BF16, FP16, FP32 = Format("bf16", 8, -126, 127), Format("fp16", 11, -14, 15), Format("fp32", 24, -126, 127)
