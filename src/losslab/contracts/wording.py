"""How numbers are written for people and for JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

LONGEST_SHOWN = 12  # of a list's numbers; a thousand of them would bury the one that matters


def show(number: float, digits: int = 4) -> str:
    """A number with so many significant digits, without the noise of trailing zeros."""
    if math.isfinite(number) and number == round(number) and abs(number) < 1e6:
        return str(round(number))
    return f"{number:.{digits}g}"


def show_all(numbers: Sequence[float], digits: int = 4) -> str:
    """Numbers in brackets, the middle of a long list left out."""
    if len(numbers) <= LONGEST_SHOWN:
        return "[" + ", ".join(show(x, digits) for x in numbers) + "]"
    first = ", ".join(show(x, digits) for x in numbers[:5])
    last = ", ".join(show(x, digits) for x in numbers[-2:])
    return f"[{first}, ... {len(numbers) - 7} more ..., {last}]"


def show_rows(rows: Sequence[Sequence[float]] | NDArray[np.float64]) -> str:
    """Rows of numbers, each in brackets, the middle of many left out."""
    texts = [show_all([float(x) for x in row]) for row in rows]
    if len(texts) > 8:
        texts = [*texts[:4], f"... {len(texts) - 6} more ...", *texts[-2:]]
    return ", ".join(texts) or "none"


def show_apart(a: float | Sequence[float], b: float | Sequence[float]) -> tuple[str, str]:
    """Two numbers, or two lists, with as many digits as it takes to see them differ."""
    texts = [("", "")]
    for digits in range(4, 18):
        texts.append(tuple(show(x, digits) if isinstance(x, (int, float)) else show_all(x, digits) for x in (a, b)))  # type: ignore[arg-type]
        if texts[-1][0] != texts[-1][1]:
            return texts[-1]
    return texts[1]


def json_number(value: float | Sequence[Any] | None) -> Any:  # noqa: ANN401
    """A number, or list of them, that strict JSON can hold: nan and the infinities become words."""
    if value is None:
        return None
    if isinstance(value, (int, float)):
        return value if math.isfinite(value) else str(float(value))
    return [json_number(x) for x in value]
