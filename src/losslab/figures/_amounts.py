"""Amounts of any size as the perplexity figures print them, and words in lines (`amounts.js`)."""

from __future__ import annotations

from math import exp, inf

from losslab.figures._numbers import num
from losslab.figures._sheet import SMALL, measure

RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def amount(value: float) -> str:
    """Return a positive number with about three digits that count: 0.051, 7.39, 31.4, 1,024, 2.0 × 10¹¹."""
    if value == inf:
        return "∞"
    if value < 0.0995:
        return num(value, 3)
    if value < 99.95:
        return num(value, 2 if value < 9.995 else 1)
    if value < 999_999.5:
        return f"{int(num(value, 0)):,}"
    digits, power = f"{value:.1e}".split("e+")
    return f"{digits} × 10{str(int(power)).translate(RAISED)}"


def power(exponent: float, base: float | None = None) -> float:
    """Return e, or `base`, to an exponent: infinity where a double holds no such number."""
    try:
        return exp(exponent) if base is None else float(base**exponent)
    except OverflowError:
        return inf


def wrapped(text: str, most: float, *, size: float = SMALL) -> list[str]:
    """Return the words of `text` in lines of at most `most` px."""
    lines = [""]
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}" if lines[-1] else word
        if lines[-1] and measure(longer, size) > most:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines
