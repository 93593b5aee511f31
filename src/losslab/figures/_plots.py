"""Parts of the temperature figures' twins; each draws what ``js/plots.js`` draws live."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from losslab.figures._numbers import percent
from losslab.figures._sheet import BIG, TEXT, Sheet, linear, logarithmic, measure, spread
from losslab.figures._temperature import FINE, TEMPERATURES

_GUTTER = 56


@dataclass(frozen=True)
class Curve:
    """A quantity against the temperature: its values at the temperatures `FINE`, and the one now.

    ``square`` marks its points with diamonds and dashes its line, so that it differs by more than its colour.
    """

    name: str
    value: str
    colour: str
    values: Sequence[float]
    now: float
    square: bool = False


def portion(share: float) -> str:
    """A share of 1 as a percentage that rounds neither something to nothing nor nearly all to all."""
    if 0 < share < 0.0005:
        return "<0.1%"
    return ">99.9%" if 0.9995 <= share < 1 else percent(share)


def balance(labels: Sequence[tuple[float, float]], low: float, high: float, gap: float = 12) -> list[float]:
    """`spread`, but labels that are pushed apart give way to both sides."""
    turned = [(low + high - centre, width) for centre, width in reversed(labels)]
    left = reversed(spread(turned, low, high, gap))
    return [(x + low + high - y) / 2 for x, y in zip(spread(labels, low, high, gap), left, strict=True)]


def facts(sheet: Sheet, y: float, given: Sequence[tuple[str, str, str]]) -> float:
    """Draw numbers in large, each (title, value, note), side by side; return the y below."""
    pitch = sheet.width / len(given)
    for i, (title, value, note) in enumerate(given):
        sheet.text(i * pitch, y + 14, title, size=TEXT, strong=True)
        sheet.text(i * pitch, y + 51, value, size=BIG, strong=True)
        sheet.text(i * pitch, y + 74, note, colour="muted")
    return y + 78


def _mark(sheet: Sheet, x: float, y: float, radius: float, curve: Curve, *, ringed: bool = False) -> None:
    if not curve.square:
        sheet.dot(x, y, radius, curve.colour, ringed=ringed)
        return
    corners = [(x - radius, y), (x, y - radius), (x + radius, y), (x, y + radius)]
    sheet.polygon(corners, f"{curve.colour}-ringed" if ringed else curve.colour)


def curves(
    sheet: Sheet,
    place: tuple[float, float, float],
    temperature: float,
    title: str,
    note: str,
    given: Sequence[Curve],
    *,
    lines: int,
    domain: tuple[float, float],
    ticks: Sequence[float],
    limits: Sequence[tuple[float, str]],
    logarithm: bool = False,
    show: Callable[[float], str] = str,
) -> float:
    """Draw curves against the temperature at ``place`` (x, y, breadth), with limits dotted; return the y below."""
    x, y, breadth = place
    sheet.text(x, y + 14, title, size=TEXT, strong=True)
    sheet.text(x, y + 34, note, colour="muted")
    top, left, right = y + 50 + 20 * lines, x + 46, x + breadth - _GUTTER
    bottom = top + 160
    sx = logarithmic((TEMPERATURES[0], TEMPERATURES[-1]), (left + 8, right - 8))
    sy = (logarithmic if logarithm else linear)(domain, (top, bottom))
    sheet.levels(sy, ticks, left, right, show)
    for tick in (0.005, 0.02, 0.1, 0.3, 1):
        sheet.text(sx(tick), bottom + 22, f"{tick:g}", colour="muted", anchor="middle")
    sheet.text(right, bottom + 42, "temperature τ (log scale)", colour="muted", anchor="end")
    for value, text in limits:
        sheet.line([(left, sy(value)), (right, sy(value))], "limit")
        sheet.text(right + 8, sy(value) + 4.5, text, colour="muted")
    sheet.line([(sx(temperature), top), (sx(temperature), bottom)], "at")
    for i, curve in enumerate(given):
        at, look = y + 56 + 20 * i, f"line-{curve.colour}{'-dashed' if curve.square else ''}"
        sheet.line([(x, at - 4.5), (x + 26, at - 4.5)], look)
        _mark(sheet, x + 13, at - 4.5, 5, curve)
        sheet.text(x + 34, at, curve.name, colour=curve.colour)
        sheet.text(x + 34 + measure(curve.name) + 6, at, curve.value, strong=True, colour=curve.colour)
        sheet.line([(sx(t), sy(v)) for t, v in zip(FINE, curve.values, strict=True)], look)
        _mark(sheet, sx(temperature), sy(curve.now), 7, curve, ringed=True)
    return bottom + 46
