"""A student's numbers beside the target's: the same axes, and what is between the two."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from html import escape
from typing import Any, Literal

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from losslab.contracts.wording import show_apart
from losslab.figures import style

Array = NDArray[np.float64]
Kind = Literal["curve", "map", "bars"]
YOURS, TARGET, BETWEEN = "#1a5a9e", "#222832", "#b3420b"
LONGEST_WRITTEN = 12  # rows or columns of a map whose cells have their numbers written in


class Picture:
    """A matplotlib figure that a notebook shows as a vector image with its description as alt text.

    Parameters
    ----------
    figure
        What is shown.
    description
        The same in words.
    """

    def __init__(self, figure: Figure, description: str) -> None:
        self.figure = figure
        self.description = description

    def __repr__(self) -> str:
        return self.description

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        return {"text/html": self.to_html(), "text/plain": self.description}

    def to_html(self) -> str:
        """An image that carries its own bytes: it needs no file beside it and asks no host."""
        with style():  # fonts stay text, and ids do not change from call to call
            buffer = io.BytesIO()
            self.figure.savefig(buffer, format="svg", metadata={"Date": None})
        data = base64.b64encode(buffer.getvalue()).decode("ascii")
        alt = escape(self.description, quote=True)
        return f'<img alt="{alt}" style="max-width:100%" src="data:image/svg+xml;base64,{data}">'


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
        As the last expression of a cell it is shown; its description is the image's alt text.

    Raises
    ------
    ValueError
        The shapes differ or do not fit the kind, or there is no such kind.
    """
    drawn = {"curve": _curve, "bars": _bars, "map": _map}
    if kind not in drawn:
        raise ValueError(f"kind must be one of {', '.join(drawn)}, got {kind!r}")
    mine, right = _numbers("yours", yours), _numbers("target", target)
    if mine.shape != right.shape:
        raise ValueError(f"yours has shape {mine.shape}, target {right.shape}: there is nothing to lay side by side")
    dimensions = 2 if kind == "map" else 1
    if mine.ndim != dimensions or mine.size == 0:
        raise ValueError(f"a {kind} needs numbers in {dimensions} dimension(s), at least one, got shape {mine.shape}")
    places = np.arange(mine.shape[-1]) if x is None else x
    if kind != "map" and len(places) != mine.size:  # type: ignore[arg-type]
        raise ValueError(f"x has {len(places)} places for {mine.size} values")  # type: ignore[arg-type]
    with style():
        figure = drawn[kind](mine, right, places, xlabel, ylabel, names)
        if title:
            figure.suptitle(title, x=0.01, ha="left", weight="bold", size=15)
    return Picture(
        figure, _describe(mine, right, title or ylabel or kind, None if kind == "map" else places, xlabel, names)
    )


def _numbers(name: str, values: Any) -> Array:  # noqa: ANN401
    if isinstance(values, torch.Tensor):
        values = values.detach().cpu().double().numpy()
    elif isinstance(values, (list, tuple)):
        values = [v.item() if isinstance(v, torch.Tensor) and v.numel() == 1 else v for v in values]
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be numbers, got {type(values).__name__}") from None


def _describe(mine: Array, right: Array, what: str, x: Any, xlabel: str, names: tuple[str, str]) -> str:  # noqa: ANN401
    between = np.abs(mine - right)
    if not np.isfinite(mine).all():
        return f"{what}: of {mine.size} values of {names[0]} {int((~np.isfinite(mine)).sum())} are not finite."
    worst = float(between.max())
    if worst <= 1e-5 * float(np.abs(right).max()) + 1e-8:
        return f"{what}: {names[0]} and {names[1]} lie on each other, {mine.size} values."
    at = np.unravel_index(int(between.argmax()), between.shape)
    place = f"row {at[0] + 1}, column {at[-1] + 1}" if x is None else f"{xlabel} {x[at[0]]}".strip()
    yours, target = show_apart(float(mine[at]), float(right[at]))
    return f"{what}: furthest apart at {place}, where {names[0]} is {yours} and {names[1]} {target}."


def _side_by_side(xlabel: str, ylabel: str, names: tuple[str, str]) -> tuple[Figure, Axes, Axes]:
    figure = Figure(figsize=(10.5, 4.2), layout="constrained")
    main, rest = figure.subplots(1, 2, width_ratios=[2, 1])
    main.set(xlabel=xlabel, ylabel=ylabel)
    rest.set(xlabel=xlabel)
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
    return figure


def _label_ends(axes: Axes, places: Array, mine: Array, right: Array, names: tuple[str, str]) -> None:
    """Write each curve's name where the two are furthest apart; one above, one below."""
    between = np.where(np.isfinite(mine - right), np.abs(mine - right), 0)
    at = int(between.argmax()) if between.max() > 0 else mine.size // 2
    above = mine[at] >= right[at] or not np.isfinite(mine[at])
    for name, values, colour, up in ((names[0], mine, YOURS, above), (names[1], right, TARGET, not above)):
        if np.isfinite(values[at]):
            axes.annotate(
                name,
                (float(places[at]), float(values[at])),
                xytext=(0, 14 if up else -14),
                textcoords="offset points",
                ha="center",
                va="bottom" if up else "top",
                color=colour,
                weight="bold",
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
            )
    main.margins(y=0.15)
    rest.bar(places, mine - right, 0.5, color=BETWEEN)
    _limit(rest, mine - right, right)
    step = max(1, -(-mine.size // 16))
    for axes in (main, rest):
        axes.set_xticks(places[::step], words[::step], rotation=30 if max(map(len, words)) > 6 else 0)
    return figure


def _map(mine: Array, right: Array, _: object, xlabel: str, ylabel: str, names: tuple[str, str]) -> Figure:
    figure = Figure(figsize=(10.5, 4.2), layout="constrained")
    panels = figure.subplots(1, 3)
    finite = np.concatenate([mine[np.isfinite(mine)], right[np.isfinite(right)]])
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    between = mine - right
    span = float(np.abs(between[np.isfinite(between)]).max(initial=0.0))
    least = 1e-4 * max(abs(low), abs(high), 1e-4)
    shown: list[tuple[str, Array, str, float, float]] = [
        (names[1], right, "Blues", low, high),
        (names[0], mine, "Blues", low, high),
        (f"{names[0]} − {names[1]}", between, "PuOr", -max(span, least), max(span, least)),
    ]
    for axes, (name, values, colours, start, end) in zip(panels, shown, strict=True):
        image = axes.imshow(values, cmap=colours, vmin=start, vmax=end, aspect="auto")
        axes.set(xlabel=xlabel, ylabel=ylabel if name == names[1] else "")
        axes.set_title(name, size=13)
        axes.grid(visible=False)
        axes.set_xticks([])
        axes.set_yticks([])
        if max(values.shape) <= LONGEST_WRITTEN:
            _write(axes, values, start, end, diverging=colours == "PuOr")
        else:
            figure.colorbar(image, ax=axes, shrink=0.8)
    return figure


def _write(axes: Axes, values: Array, low: float, high: float, *, diverging: bool) -> None:
    size = 12 if max(values.shape) <= 6 else 9
    for (row, column), value in np.ndenumerate(values):
        share = (value - low) / (high - low) if high > low else 0.0
        dark = abs(share - 0.5) > 0.35 if diverging else share > 0.6
        colour = "white" if dark and np.isfinite(value) else TARGET
        axes.text(column, row, _short(float(value)), ha="center", va="center", color=colour, size=size)


def _short(value: float) -> str:
    return f"{value:.0e}" if 0 < abs(value) < 0.005 else f"{value:.2f}"
