"""A student's numbers beside the target's: the same axes, and what is between the two."""

from __future__ import annotations

import base64
import io
import math
import re
from collections.abc import Sequence
from html import escape
from typing import Any, Literal

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator
from numpy.typing import ArrayLike, NDArray

from losslab.contracts.wording import show_apart
from losslab.figures import style

Array = NDArray[np.float64]
Kind = Literal["curve", "map", "bars"]
YOURS, TARGET, BETWEEN = "#1a5a9e", "#222832", "#b3420b"
BEHIND = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1}  # a name stays legible on a line
LONGEST_LABEL = 24  # letters that fit under the narrow panel
LONGEST_WRITTEN = 12  # rows or columns of a map whose cells have their numbers written in


class Picture:
    """A matplotlib figure that a notebook shows as a vector image with its description as alt text.

    Parameters
    ----------
    figure
        What is shown; None if there is nothing to draw, and the description alone is shown.
    description
        The same in words.
    """

    def __init__(self, figure: Figure | None, description: str) -> None:
        self.figure = figure
        self.description = description

    def __repr__(self) -> str:
        return self.description

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        html = {} if self.figure is None else {"text/html": self.to_html()}
        return html | {"text/plain": self.description}

    def to_html(self) -> str:
        """An image that carries its own bytes: it needs no file beside it and asks no host."""
        if self.figure is None:
            return f"<p><strong>{escape(self.description)}</strong></p>"
        with style():  # fonts stay text, and ids do not change from call to call
            buffer = io.BytesIO()
            self.figure.savefig(buffer, format="svg", metadata={"Date": None})
        data = base64.b64encode(_numbered(buffer.getvalue())).decode("ascii")
        alt = escape(self.description, quote=True)
        return f'<img alt="{alt}" style="max-width:100%" src="data:image/svg+xml;base64,{data}">'


def _numbered(svg: bytes) -> bytes:
    """The image with its ids counted: matplotlib takes some of them from addresses in memory."""
    for number, name in enumerate(dict.fromkeys(re.findall(rb'id="([a-z]+[0-9a-f]{10})"', svg))):
        svg = svg.replace(name, b"id%d" % number)
    return svg


def picture(
    yours: Any,  # noqa: ANN401
    target: Any,  # noqa: ANN401
    *,
    kind: Kind = "curve",
    x: ArrayLike | Sequence[str] | None = None,
    title: str = "",
    xlabel: str = "",
    ylabel: str = "",
    names: tuple[str, str] = ("yours", "target"),
) -> Picture:
    """Draw the target beside yours, and their difference. Yours is solid, the target dashed or outlined.

    Parameters
    ----------
    yours, target
        Numbers of one shape: (n,) for a curve or bars, (rows, columns) for a map. Tensors, arrays or lists.
    kind
        ``"curve"``: over ``x``. ``"bars"``: a pair of bars each. ``"map"``: cells, light to dark.
    x
        (n,): where the values stand, 0, 1, … by default; words for bars.
    title, xlabel, ylabel
        What it shows, and its axes with their units.
    names
        What the two are called, for example ``("yours", "measured")``.

    Returns
    -------
    Picture
        As the last expression of a cell it is shown; its description is the image's alt text. Where ``yours`` cannot
        be drawn beside the target (another shape, no numbers), it is one line that says so. While the function checked
        last fails, it says that the counterexample is not what is drawn.

    Raises
    ------
    ValueError
        The target or ``x`` does not fit the kind, or there is no such kind.
    """
    drawn = {"curve": _curve, "bars": _bars, "map": _map}
    if kind not in drawn:
        raise ValueError(f"kind must be one of {', '.join(drawn)}, got {kind!r}")
    right = _numbers("target", target)
    dimensions = 2 if kind == "map" else 1
    if right.ndim != dimensions or right.size == 0:
        raise ValueError(f"a {kind} needs numbers in {dimensions} dimension(s), at least one, got shape {right.shape}")
    what = title or ylabel or kind
    try:
        mine = _numbers("yours", yours)
    except ValueError as problem:
        return Picture(None, f"{what}: nothing to draw, {problem}.".replace("yours", names[0]))
    if mine.shape != right.shape:
        shapes = f"{names[0]} has shape {mine.shape}, {names[1]} {right.shape}"
        return Picture(None, f"{what}: nothing to draw, {shapes}.")
    places = np.arange(mine.shape[-1]) if x is None else x
    if kind != "map" and len(places) != mine.size:  # type: ignore[arg-type]
        raise ValueError(f"x has {len(places)} places for {mine.size} values")  # type: ignore[arg-type]
    with style():
        figure = drawn[kind](mine, right, places, xlabel, ylabel, names)
        note = _FAILING.sentence()
        if title or note:
            figure.suptitle("\n".join(filter(None, (title, note))), x=0.01, ha="left", weight="bold", size=15)
    said = _describe(mine, right, what, None if kind == "map" else places, xlabel, names)
    return Picture(figure, f"{said} {note}".rstrip())


class _Failing:
    """Which checks of the function that was checked last do not hold."""

    def __init__(self) -> None:
        self.function = ""
        self.checks: set[str] = set()

    def sentence(self) -> str:
        return f"The check of {self.function} fails on other inputs than these." if self.checks else ""


_FAILING = _Failing()


def noted(function: str, check: str, *, kept: bool) -> None:
    """Remember what came of a function's check, for the picture that follows it."""
    if function != _FAILING.function:
        _FAILING.function, _FAILING.checks = function, set()
    (_FAILING.checks.discard if kept else _FAILING.checks.add)(check)


def _numbers(name: str, values: Any) -> Array:  # noqa: ANN401
    if isinstance(values, torch.Tensor):
        values = values.detach().cpu().double().numpy()
    elif isinstance(values, (list, tuple)):
        values = [v.item() if isinstance(v, torch.Tensor) and v.numel() == 1 else v for v in values]
    try:
        if values is None:
            raise TypeError
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be numbers, got {type(values).__name__}") from None


def _describe(mine: Array, right: Array, what: str, x: Any, xlabel: str, names: tuple[str, str]) -> str:  # noqa: ANN401
    between = np.abs(mine - right)
    if not np.isfinite(mine).all():
        return f"{what}: of {mine.size} values of {names[0]} {int((~np.isfinite(mine)).sum())} are not finite."
    worst = float(between.max())
    if worst <= _rounding(right):
        return f"{what}: {names[0]} and {names[1]} lie on each other, {mine.size} values."
    at = np.unravel_index(int(between.argmax()), between.shape)
    place = f"row {at[0] + 1}, column {at[-1] + 1}" if x is None else f"{xlabel} {x[at[0]]}".strip()
    yours, target = show_apart(float(mine[at]), float(right[at]))
    return f"{what}: furthest apart at {place}, where {names[0]} is {yours} and {names[1]} {target}."


def _side_by_side(xlabel: str, ylabel: str, names: tuple[str, str]) -> tuple[Figure, Axes, Axes]:
    figure = Figure(figsize=(10.5, 4.2), layout="constrained")
    main, rest = figure.subplots(1, 2, width_ratios=[2, 1])
    main.set(xlabel=xlabel, ylabel=ylabel)
    rest.set(xlabel=xlabel if len(xlabel) <= LONGEST_LABEL else "")  # it is the same axis, in half the room
    rest.set_title(f"{names[0]} − {names[1]}", size=13, weight="normal", color=BETWEEN)
    rest.axhline(0, color=TARGET, linewidth=1)
    return figure, main, rest


def _limit(axes: Axes, between: Array, right: Array) -> None:
    """Keep rounding from looking like a mistake: the difference is drawn on the scale of the target at least."""
    finite = between[np.isfinite(between)]
    least = 1e-4 * max(float(np.abs(right[np.isfinite(right)]).max(initial=0.0)), 1e-4)
    span = max(float(np.abs(finite).max(initial=0.0)) * 1.15, least)
    axes.set_ylim(-span, span)


def _curve(mine: Array, right: Array, x: Any, xlabel: str, ylabel: str, names: tuple[str, str]) -> Figure:  # noqa: ANN401
    figure, main, rest = _side_by_side(xlabel, ylabel, names)
    places = np.asarray(x, dtype=np.float64)
    main.plot(places, mine, color=YOURS, linewidth=2.5, marker="o", markersize=5)
    main.plot(
        places, right, color=TARGET, linestyle=(0, (4, 3)), linewidth=2, marker="s", markersize=9, fillstyle="none"
    )
    _label_ends(main, places, mine, right, names)
    rest.plot(places, mine - right, color=BETWEEN, marker="d", markersize=5)
    _limit(rest, mine - right, right)
    if places.size > 2 and places.min() > 0 and places.max() / places.min() >= 30:
        for axes in (main, rest):
            axes.set_xscale("log")
            axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if axes is main else (1.0,)))
            axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            axes.xaxis.set_minor_locator(NullLocator())
    return figure


def _label_ends(axes: Axes, places: Array, mine: Array, right: Array, names: tuple[str, str]) -> None:
    """Write each curve's name where the two are furthest apart; one above, one below."""
    between = np.where(np.isfinite(mine - right), np.abs(mine - right), 0)
    apart = between.max() > _rounding(right)
    at = int(between.argmax()) if apart else mine.size // 2
    room = at / max(mine.size - 1, 1)
    side = "left" if room < 0.2 else "right" if room > 0.8 else "center"
    above = mine[at] >= right[at] or not np.isfinite(mine[at])
    for name, values, colour, up in ((names[0], mine, YOURS, above), (names[1], right, TARGET, not above)):
        if np.isfinite(values[at]):
            axes.annotate(
                name,
                (float(places[at]), float(values[at])),
                xytext=(0, 14 if up else -14),
                textcoords="offset points",
                ha=side,
                va="bottom" if up else "top",
                color=colour,
                weight="bold",
                bbox=BEHIND,
            )
    axes.margins(y=0.2)


def _bars(mine: Array, right: Array, x: Any, xlabel: str, ylabel: str, names: tuple[str, str]) -> Figure:  # noqa: ANN401
    figure, main, rest = _side_by_side(xlabel, ylabel, names)
    places, words = np.arange(mine.size), [str(one) for one in x]
    main.bar(places - 0.2, mine, 0.38, color=YOURS)
    main.bar(places + 0.2, right, 0.38, facecolor="none", edgecolor=TARGET, linewidth=1.5, linestyle=(0, (4, 3)))
    main.axhline(0, color=TARGET, linewidth=1)
    finite = np.where(np.isfinite(right), np.abs(right), 0)
    at = int(finite.argmax())
    for name, values, colour, shift in ((f"{names[0]} ", mine, YOURS, -0.02), (f" {names[1]}", right, TARGET, 0.02)):
        if np.isfinite(values[at]):
            main.annotate(
                name,
                (at + shift, float(values[at])),
                xytext=(0, 4 if values[at] >= 0 else -4),
                textcoords="offset points",
                ha="right" if shift < 0 else "left",
                va="bottom" if values[at] >= 0 else "top",
                color=colour,
                weight="bold",
                bbox=BEHIND,
            )
    main.margins(y=0.15)
    rest.bar(places, mine - right, 0.5, color=BETWEEN)
    _limit(rest, mine - right, right)
    for axes, room in ((main, 16), (rest, 8)):  # labels that have room below a panel
        step = max(1, -(-mine.size // room))
        axes.set_xticks(places[::step], words[::step], rotation=30 if max(map(len, words)) > 6 else 0)
    return figure


def _map(mine: Array, right: Array, _: object, xlabel: str, ylabel: str, names: tuple[str, str]) -> Figure:
    figure = Figure(figsize=(10.5, 4.2), layout="constrained")
    panels = figure.subplots(1, 3)
    finite = np.concatenate([mine[np.isfinite(mine)], right[np.isfinite(right)], [0.0]])
    low, high = float(finite.min()), float(finite.max())
    signed = -low > 0.2 * high  # zero then has a colour of its own: white
    largest = max(-low, high)
    between = np.where(np.abs(mine - right) <= _rounding(right), 0, mine - right)
    span = float(np.abs(between[np.isfinite(between)]).max(initial=0.0))
    shown = [(names[1], right, signed, largest), (names[0], mine, signed, largest)]
    shown += [(f"{names[0]} − {names[1]}", between, True, span)]
    for axes, (name, values, diverging, top) in zip(panels, shown, strict=True):
        top = top or 1.0
        start = -top if diverging else low
        image = axes.imshow(values, cmap="PuOr" if diverging else "Blues", vmin=start, vmax=top, aspect="auto")
        axes.set(xlabel=xlabel, ylabel=ylabel if name == names[1] else "")
        axes.grid(visible=False)
        axes.set_xticks([])
        axes.set_yticks([])
        if max(values.shape) <= LONGEST_WRITTEN:
            unit = 10.0 ** math.floor(math.log10(top)) if top < 0.1 else 1.0
            name += f" (× {unit:g})" if unit != 1 else ""
            _write(axes, values, start, top, unit, diverging=diverging)
        else:
            figure.colorbar(image, ax=axes, shrink=0.8)
        axes.set_title(name, size=13)
    return figure


def _write(axes: Axes, values: Array, low: float, high: float, unit: float, *, diverging: bool) -> None:
    size = 12 if max(values.shape) <= 6 else 9
    for (row, column), value in np.ndenumerate(values):
        share = (value - low) / (high - low) if high > low else 0.0
        dark = abs(share - 0.5) > 0.35 if diverging else share > 0.6
        colour = "white" if dark and np.isfinite(value) else TARGET
        text = "0" if value == 0 else f"{value / unit:.2f}".replace("-", "−")
        axes.text(column, row, text, ha="center", va="center", color=colour, size=size)


def _rounding(right: Array) -> float:
    """How far apart two ways to compute the same may be."""
    return 1e-5 * float(np.abs(right[np.isfinite(right)]).max(initial=0.0)) + 1e-8
