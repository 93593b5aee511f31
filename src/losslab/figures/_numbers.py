"""Numbers as the live figures print them, so that the same state reads the same in Python and on the page."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal


def fixed(value: float, digits: int) -> str:
    """Return JavaScript's ``value.toFixed(digits)``: halves go away from zero; in Python's own format they do not."""
    return str(Decimal(value).quantize(Decimal(1).scaleb(-digits), rounding=ROUND_HALF_UP))


def num(value: float, digits: int = 4) -> str:
    """Return `value` with fixed digits, a true minus sign, and no sign on zero (`num` in kit.js)."""
    text = fixed(value, digits)
    return text.replace("-", "−") if float(text) else text.removeprefix("-")


def signed(value: float, digits: int = 4) -> str:
    """Return `num`, with a plus sign before what is above zero."""
    text = num(value, digits)
    return text if text.startswith("−") or not float(text) else f"+{text}"


def percent(share: float, digits: int = 1) -> str:
    """Return a share of 1 as a percentage."""
    return f"{num(100 * share, digits)}%"


def plural(count: int, noun: str) -> str:
    """Return the count with its noun: 1 ghost, 2 ghosts."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def up_or_down(push: float) -> str:
    """Return where a push takes a score."""
    return "up" if push > 0 else "down" if push < 0 else "nowhere"


def listed(names: Sequence[str]) -> str:
    """Return names in a sentence: A, B and C."""
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def brief(value: float) -> str:
    """Return `value` with the digits after the point that leave about three that count: 2.00, 12.3, 345."""
    return num(value, 2 if value < 9.995 else 1 if value < 99.95 else 0)
