"""Measured series: a trait that checks them, the ticks of their axis, and what tells them apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import floor, inf, log10
from typing import Any

import traitlets

from losslab.figures._numbers import fixed, num
from losslab.figures.base import FigureError, _number

TONES = ("best", "plum", "ink", "ghost", "muted", "wrong", "right")  # the first five are handed out
MOST = 5  # series a panel: as many as there are shapes
_KEYS = ("name", "values", "low", "high", "dashed", "tone")

Series = dict[str, Any]
Panel = dict[str, Any]


class Panels(traitlets.TraitType[list[Panel], object]):
    """Named panels of measured series, kept as ``[{"name": …, "series": [{"name", "values", …}, …]}, …]``.

    A mapping from names to lists of series is taken too; arrays and tensors are kept as lists.
    """

    def __init__(self) -> None:
        super().__init__([])

    def validate(self, obj: object, value: object) -> list[Panel]:
        """Return `value` as plain lists, every series with all its keys."""
        place = f"{type(obj).__name__}: {self.name}"
        if isinstance(value, Mapping):
            pairs = list(value.items())
        elif isinstance(value, Sequence) and all(
            isinstance(one, Mapping) and set(one) == {"name", "series"} for one in value
        ):
            pairs = [(one["name"], one["series"]) for one in value]
        else:
            raise FigureError(f"{place} must map the name of each panel to its list of series, not {value!r}")
        names = [name for name, _ in pairs]
        if not 1 <= len(pairs) <= 6 or any(not isinstance(name, str) or not 1 <= len(name) <= 30 for name in names):
            raise FigureError(f"{place} must be 1 to 6, named in 1 to 30 characters, not {names!r}")
        if len(set(names)) < len(names):
            raise FigureError(f"{place} must each have a name of its own, not {names!r}")
        return [{"name": name, "series": _all_series(f"{place}[{name!r}]", given)} for name, given in pairs]


def _all_series(place: str, given: object) -> list[Series]:
    if not isinstance(given, Sequence) or isinstance(given, str) or not 1 <= len(given) <= MOST:
        raise FigureError(f"{place} must be a list of 1 to {MOST} series, not {given!r}")
    series = [_series(f"{place}[{i}]", one) for i, one in enumerate(given)]
    names = [one["name"] for one in series]
    if len(set(names)) < len(names):
        raise FigureError(f"{place} must be series with different names, not {names!r}")
    return series


def _series(place: str, given: object) -> Series:
    if not isinstance(given, Mapping) or not {"name", "values"} <= set(given) <= set(_KEYS):
        raise FigureError(f"{place} must be a dict with name, values and perhaps {', '.join(_KEYS[2:])}, not {given!r}")
    name, dashed, tone = given["name"], given.get("dashed", False), given.get("tone")
    if not isinstance(name, str) or not 1 <= len(name) <= 40:
        raise FigureError(f"{place}['name'] must be a text of 1 to 40 characters, not {name!r}")
    if not isinstance(dashed, bool):
        raise FigureError(f"{place}['dashed'] must be True or False, not {dashed!r}")
    if tone is not None and tone not in TONES:
        raise FigureError(f"{place}['tone'] must be one of {', '.join(TONES)}, not {tone!r}")
    values = _numbers(f"{place}['values']", given["values"])
    if not any(value is not None for value in values):
        raise FigureError(f"{place}['values'] must hold a number at one x at least, not {values}")
    ends = []
    for key in ("low", "high"):
        raw = given.get(key)
        ends.append([None] * len(values) if raw is None else _numbers(f"{place}[{key!r}]", raw))
        if len(ends[-1]) != len(values):
            raise FigureError(f"{place}[{key!r}] must hold {len(values)} numbers, one a value, not {len(ends[-1])}")
    for i, (low, value, high) in enumerate(zip(ends[0], values, ends[1], strict=True)):
        ordered = None not in (low, value, high) and low <= value <= high  # type: ignore[operator]
        if not ordered and (low is not None or high is not None):
            what = f"low {low!r}, value {value!r}, high {high!r}"
            raise FigureError(
                f"{place} must have low ≤ value ≤ high, or neither low nor high, at index {i}, not {what}"
            )
    return {"name": name, "values": values, "low": ends[0], "high": ends[1], "dashed": dashed, "tone": tone}


def _numbers(place: str, value: object) -> list[float | None]:
    value = value.tolist() if hasattr(value, "tolist") else value
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise FigureError(f"{place} must be a list, not {value!r}")
    for i, item in enumerate(value):
        if item is not None and _number(item) is None:
            raise FigureError(f"{place}[{i}] must be a finite number, or None where nothing was measured, not {item!r}")
    return [None if item is None else _number(item) for item in value]


def known(series: Sequence[Series]) -> list[float]:
    """All values and ends of intervals that were measured."""
    return [v for one in series for key in ("values", "low", "high") for v in one[key] if v is not None]


def axis(numbers: Sequence[float], *, percent: bool = False) -> dict[str, Any]:
    """Return the ends of an axis for `numbers` and its ticks, two to seven round values with their texts, upwards.

    The ends are the least and the greatest number, or the next tick if it is near. One value stands in the middle.
    """
    scale = 100 if percent else 1
    low, high = scale * min(numbers), scale * max(numbers)
    if high - low < 1e-9 * max(abs(low), abs(high), 1e-9):
        room = abs(low) / 10 or 1.0
        low, high = low - room, high + room
    power = floor(log10((high - low) / 6))
    digits, step = next(
        (max(0, extra - power), factor * 10.0**power)
        for factor, extra in ((1, 0), (2, 0), (2.5, 1), (5, 0), (10, -1))
        if (high - low) / (factor * 10.0**power) <= 6.000001
    )
    below, above = floor(low / step + 1e-9) * step, -floor(-high / step + 1e-9) * step
    low = below if low - below < 0.5 * step else low
    high = above if above - high < 0.5 * step else high
    first, last = -floor(-low / step + 1e-9), floor(high / step + 1e-9)
    values = [float(fixed(k * step, digits)) for k in range(first, last + 1)]
    texts = [f"{num(value, digits)}{'%' if percent else ''}" for value in values]
    ends = [low / scale or 0.0, high / scale or 0.0]
    return {"ends": ends, "ticks": [[value / scale, text] for value, text in zip(values, texts, strict=True)]}


def beside(extents: Sequence[tuple[float, float] | None]) -> list[tuple[float, float]]:
    """Move marks at one x apart where they would cover each other (`beside` in ``js/sweep.js``).

    Returned are of each the steps that it is moved by, and the most steps in its group.

    Parameters
    ----------
    extents : sequence of (upper, lower) or None
        Ends of each mark with its interval, px; None where there is nothing.
    """
    there = [(*extent, i) for i, extent in enumerate(extents) if extent is not None]
    groups: list[list[int]] = []
    end = -inf
    for upper, lower, i in sorted(there, key=lambda one: (one[0], one[2])):
        if upper < end:
            groups[-1].append(i)
        else:
            groups.append([i])
        end = max(end, lower)
    found = [(0.0, 0.0)] * len(extents)
    for group in groups:
        half = (len(group) - 1) / 2
        for n, i in enumerate(sorted(group)):
            found[i] = (n - half, half)
    return found


def looks(panels: Sequence[Panel]) -> list[list[tuple[str, int]]]:
    """Tone and shape of each series of each panel; a name keeps both in all panels, if there are five names at most.

    A tone that a series asks for is its own. Of the others, what is dashed takes the quiet tones first.
    """
    every = {one["name"]: one for panel in panels for one in panel["series"]}
    if len(every) <= MOST:
        given = _looks(list(every.values()))
        return [[given[one["name"]] for one in panel["series"]] for panel in panels]
    return [list(_looks(panel["series"]).values()) for panel in panels]


def _looks(series: Sequence[Series]) -> dict[str, tuple[str, int]]:
    free = [tone for tone in TONES[:MOST] if tone not in {one["tone"] for one in series}]
    quiet = sorted(free, key=("muted", "ink", "ghost", "plum", "best").index)
    found = {}
    for shape, one in enumerate(series):
        tone = one["tone"] or (quiet if one["dashed"] else free)[0]
        if tone in free:
            free.remove(tone)
            quiet.remove(tone)
        found[one["name"]] = (tone, shape)
    return found
