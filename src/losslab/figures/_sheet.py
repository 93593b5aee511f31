"""Draw the still twins of live figures with matplotlib, in the live figures' own pixels and colours."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import cache
from html import escape
from io import StringIO
from math import log
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure as Canvas
from matplotlib.font_manager import FontProperties
from matplotlib.patches import Circle, FancyBboxPatch, PathPatch, Polygon, Rectangle
from matplotlib.path import Path as Curve
from matplotlib.textpath import TextPath

STYLE = Path(__file__).with_name("style.mplstyle")
WIDTH = 760  # px: the column of the book
SMALL, TEXT, BIG = 13, 15, 34  # px, as SIZE in kit.js

Point = tuple[float, float]


def style() -> AbstractContextManager[None]:
    """Return a context in which matplotlib draws in the project's style: ``with losslab.figures.style(): …``."""
    return matplotlib.rc_context(fname=STYLE)


@cache
def palette() -> dict[str, str]:
    """Return the light colour of every name in ``figure.css``; colours are defined there alone."""
    css = (Path(__file__).parent / "js" / "figure.css").read_text(encoding="utf-8")
    return dict(re.findall(r"--ll-([\w-]+):[^;]*?light-dark\((#[0-9a-f]{6}),", css))


# What a mark looks like: (fill, outline, line width, dashes, hatched); the names are those of figure.css without "ll-".
_LOOKS: dict[str, tuple[str | None, str, float, tuple[float, ...] | None, bool]] = {
    "best": ("best", "best", 1, None, False),
    "good": ("good", "best", 1, None, False),
    "other": ("other", "muted", 1, None, False),
    "ghost": (None, "ghost", 1, (4, 3), False),
    "ghost-hatched": (None, "ghost", 1, (4, 3), True),
    "ghost-solid": (None, "ghost", 1, None, False),
    "ghost-solid-hatched": (None, "ghost", 1, None, True),
    "wrong": ("wrong", "wrong", 1, None, False),
    "page": ("page", "page", 0, None, False),
    "right-outline": ("page", "right", 1.5, None, False),
    "line-wrong": (None, "wrong", 2, None, False),
    "line-right": (None, "right", 2, (6, 4), False),
    "line-other": (None, "muted", 1.5, None, False),
    "gap": (None, "wrong", 1.5, (2, 3), False),
    "grid": (None, "grid", 1, None, False),
    "zero": (None, "muted", 1, None, False),
    "negative": ("muted", "muted", 1, None, False),
    "negative-ringed": ("muted", "page", 2.5, None, False),
    "exact": (None, "best", 1.5, (4, 3), False),
    "tick": (None, "muted", 1.5, None, False),
    "ink": ("ink", "ink", 0, None, False),
    "ink-ringed": ("ink", "page", 2.5, None, False),
    "wrong-ringed": ("wrong", "page", 2.5, None, False),
    "line-ink": (None, "ink", 2, None, False),
    "line-wrong-dashed": (None, "wrong", 2, (7, 4), False),
    "limit": (None, "muted", 1.5, (1.5, 4), False),
    "at": (None, "grid", 2, None, False),
    "good-hatched": ("good", "best", 1, None, True),
    "band": ("wrong-pale", "wrong-pale", 0, None, False),
    "frame": (None, "ink", 1.5, None, False),
    "frame-halo": (None, "page", 4.5, None, False),
    "edge": (None, "muted", 1, None, False),
    "bar": ("muted", "muted", 0, None, False),
    "bar-best": ("best", "best", 0, None, False),
    "query": ("ink", "page", 1.5, None, False),
    "pull": ("best", "page", 1, None, False),
    "push": ("muted", "page", 1, None, False),
    "step": ("page", "ink", 2, None, False),
    "rim": (None, "muted", 1.5, None, False),
    "spoke": (None, "grid", 1.5, None, False),
    "chosen": (None, "ink", 1, (2, 3), False),
    "track": ("grid", "grid", 0, None, False),
    "heavier": ("wrong-pale", "wrong", 1, None, False),
    "bar-good": ("good", "good", 0, None, False),
    "bond": (None, "muted", 1, (3, 3), False),
    "hollow": ("page", "ink", 1.5, None, False),
    "hollow-best": ("page", "best", 1.5, None, False),
    "double": ("best", "ink", 2.5, None, False),
    "line-best": (None, "best", 2, None, False),
    "here-line": (None, "muted", 1, (2, 3), False),
    "leader": (None, "muted", 1, (1.5, 3), False),
    "contour": (None, "muted", 0.7, (1.5, 4), False),
    "aim": ("page", "right", 1.5, (3, 2), False),
    "aim-over": (None, "right", 1.5, (4, 3), False),
    "good-thick": ("good", "best", 2, None, False),
    "counted-wrong": ("good", "wrong", 2.5, None, False),
    "counted-pad": (None, "wrong", 2.5, None, True),
    "piece": ("page", "muted", 1, None, False),
    "cut": (None, "page", 1.5, None, False),
}
for _tone in ("best", "plum", "ink", "ghost", "muted", "wrong", "right"):  # series of a sweep
    _LOOKS |= {
        f"curve-{_tone}": (None, _tone, 2, None, False),
        f"curve-{_tone}-dashed": (None, _tone, 2, (6, 4), False),
        f"whisker-{_tone}": (None, _tone, 1.5, None, False),
        f"mark-{_tone}": (_tone, _tone, 0, None, False),
        f"mark-{_tone}-ringed": (_tone, "page", 2, None, False),
        f"mark-{_tone}-open": ("page", _tone, 1.5, None, False),
    }


def linear(domain: tuple[float, float], reach: tuple[float, float]) -> Callable[[float], float]:
    """Return the straight line that takes `domain` to `reach`."""
    (d0, d1), (r0, r1) = domain, reach
    return lambda value: r0 + (value - d0) * (r1 - r0) / (d1 - d0)


def logarithmic(domain: tuple[float, float], reach: tuple[float, float]) -> Callable[[float], float]:
    """Return the same for a logarithmic axis."""
    scale = linear((log(domain[0]), log(domain[1])), reach)
    return lambda value: scale(log(value))


@cache
def measure(text: str, size: float = SMALL, *, strong: bool = False) -> float:
    """Return the width of `text` in px."""
    font = FontProperties(family=["DejaVu Sans"], weight="bold" if strong else "normal")
    return float(TextPath((0, 0), text, size=size, prop=font).get_extents().width) if text.strip() else 0.0


class Sheet:
    """An empty drawing whose unit is one CSS pixel, y pointing down; marks stack in the order drawn.

    Parameters
    ----------
    height, width : float
        In px.
    """

    def __init__(self, height: float, width: float = WIDTH) -> None:
        self.width, self.height = width, height
        self.canvas = Canvas(figsize=(width / 72, height / 72), dpi=72)
        self._axes = self.canvas.add_axes((0, 0, 1, 1))
        self._axes.set_xlim(0, width)
        self._axes.set_ylim(height, 0)
        self._axes.set_axis_off()
        self._level = 0

    def _next(self) -> int:
        self._level += 1
        return self._level

    def _ink(self, look: str) -> dict[str, Any]:
        fill, outline, thickness, dashes, hatched = _LOOKS[look]
        colours = palette()
        return {
            "facecolor": colours[fill] if fill else "none",
            "edgecolor": colours[outline],
            "linewidth": thickness,
            "linestyle": (0, [d / thickness for d in dashes]) if dashes else "solid",  # matplotlib counts in widths
            "hatch": "////" if hatched else None,
            "zorder": self._next(),
        }

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        size: float = SMALL,
        strong: bool = False,
        colour: str = "ink",
        anchor: str = "start",
        halo: bool = False,
    ) -> None:
        """Write `text` with its baseline at (x, y); with a halo no line behind it crosses its letters."""
        if halo:  # a plate, for a stroke around the letters would turn them into outlines
            wide = measure(text, size, strong=strong)
            left = x - {"start": 0, "middle": wide / 2, "end": wide}[anchor]
            self.rect(left - 2, y - 0.8 * size, wide + 4, size, "page")
        self._axes.text(
            x,
            y,
            text,
            size=size,
            weight="bold" if strong else "normal",
            color=palette()[colour],
            ha={"start": "left", "middle": "center", "end": "right"}[anchor],
            va="baseline",
            zorder=self._next(),
            parse_math=False,
        )

    def rect(self, x: float, y: float, width: float, height: float, look: str, radius: float = 0) -> None:
        """Draw a rectangle with its upper left corner at (x, y)."""
        with style():  # the colour and width of the hatching
            if radius:
                shape = f"round,pad=0,rounding_size={radius}"
                self._axes.add_patch(FancyBboxPatch((x, y), width, height, boxstyle=shape, **self._ink(look)))
            elif width > 0:
                self._axes.add_patch(Rectangle((x, y), width, height, **self._ink(look)))

    def boxes(self, boxes: Sequence[tuple[float, float, float, float]], look: str, colour: str | None = None) -> None:
        """Draw many rectangles (x, y, width, height) as one mark; a `colour` (hex) fills them with no outline."""
        if not boxes:
            return
        corners = [[(x, y), (x + w, y), (x + w, y + h), (x, y + h), (x, y)] for x, y, w, h in boxes]
        codes = [Curve.MOVETO, *[Curve.LINETO] * 3, Curve.CLOSEPOLY] * len(boxes)
        ink = self._ink(look)
        if colour:
            ink |= {"facecolor": colour, "edgecolor": "none", "linewidth": 0}
        self._axes.add_patch(PathPatch(Curve([point for box in corners for point in box], codes), **ink))

    def line(self, points: Sequence[Point], look: str) -> None:
        """Draw a line through `points`."""
        self._axes.add_patch(Polygon(points, closed=False, fill=False, **self._ink(look)))

    def polygon(self, points: Sequence[Point], look: str) -> None:
        """Draw the closed shape with its corners at `points`."""
        self._axes.add_patch(Polygon(points, closed=True, **self._ink(look)))

    def veil(self, points: Sequence[Point], colour: str) -> None:
        """Cover the closed shape with its corners at `points` thinly, so that what is beneath shows."""
        ink = {"facecolor": palette()[colour], "edgecolor": "none", "alpha": 0.12, "zorder": self._next()}
        self._axes.add_patch(Polygon(points, closed=True, **ink))

    def circle(self, x: float, y: float, radius: float, look: str) -> None:
        """Draw a circle around (x, y)."""
        self._axes.add_patch(Circle((x, y), radius, **self._ink(look)))

    def curve(self, points: Sequence[Point], look: str) -> None:
        """Draw a Bézier curve through its end points, bent towards the two in between."""
        path = Curve(points, [Curve.MOVETO, *[Curve.CURVE4] * 3])
        self._axes.add_patch(PathPatch(path, **{**self._ink(look), "facecolor": "none"}))

    def dot(self, x: float, y: float, radius: float, colour: str, *, ringed: bool = False) -> None:
        """Draw a round point, with a ring of the page's colour around it if `ringed`."""
        self._axes.plot(
            [x],
            [y],
            "o",
            markersize=2 * radius,
            markerfacecolor=palette()[colour],
            markeredgecolor=palette()["page"] if ringed else palette()[colour],
            markeredgewidth=2.5 if ringed else 0,
            zorder=self._next(),
        )

    def arrow(self, x: float, start: float, end: float, breadth: float, look: str) -> None:
        """Draw an upright block arrow from `start` to `end`, as `arrow` in kit.js does."""
        shaft, head, way = breadth / 4, breadth / 2, 1 if end > start else -1
        neck = end - way * min(breadth * 0.75, abs(end - start) * 0.6)
        left = [(x - shaft, start), (x - shaft, neck), (x - head, neck), (x, end)]
        right = [(2 * x - a, b) for a, b in reversed(left[:3])]
        self._axes.add_patch(Polygon(left + right, closed=True, joinstyle="miter", **self._ink(look)))

    def levels(
        self,
        scale: Callable[[float], float],
        ticks: Sequence[float],
        at: float,
        to: float,
        show: Callable[[float], str],
    ) -> None:
        """Draw a grid line from x = `at` to `to` at each tick of an upright axis, its label to the left."""
        for tick in ticks:
            self.line([(at, scale(tick)), (to, scale(tick))], "zero" if tick == 0 else "grid")
            self.text(at - 8, scale(tick) + 4.5, show(tick), colour="muted", anchor="end")


def to_svg(canvas: Canvas, title: str, description: str) -> str:
    """Return `canvas` as SVG text of its own: the same bytes for the same state, with a title and a description.

    One unit is one px and text stays text, so that it can be read aloud, searched and selected. Nothing in it names a
    date, a version or an address that could be fetched.
    """
    out = StringIO()
    with style():
        canvas.savefig(out, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    text = out.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    text = re.sub(r'\b(width|height)="([\d.]+)pt"', r'\1="\2"', text, count=2)
    text = re.sub(r'<g id="[^"]*"', "<g", text)  # two twins may stand on one page, and nothing refers to these ids
    text = re.sub(r' transform="rotate\(-0 [^"]*"', "", text)
    head, body = text.split(">", 1)
    label = f'role="img" aria-label="{escape(f"{title}. {description}", quote=True)}"'
    return f"{head} {label}>\n <title>{escape(title)}</title>\n <desc>{escape(description)}</desc>{body}"


def fit(text: str, most: float, *, size: float = SMALL, strong: bool = False) -> str:
    """Return `text` cut to `most` px (`fit` in kit.js): a dotted name loses its head, others their end."""
    if measure(text, size, strong=strong) <= most:
        return text
    head = "." in text and " " not in text
    for keep in range(len(text) - 1, 0, -1):
        cut = f"…{text[-keep:].removeprefix('.')}" if head else f"{text[:keep]}…"
        if measure(cut, size, strong=strong) <= most:
            return cut
    return "…"


def spread(labels: Sequence[tuple[float, float]], low: float, high: float, gap: float = 12) -> list[float]:
    """Return centres for labels in a row, near what they name but apart (`spread` in kit.js).

    Parameters
    ----------
    labels : sequence of (centre, width)
        As wanted, from left to right.
    low, high : float
        The row's ends.
    """
    left = [centre - width / 2 for centre, width in labels]
    start = low
    for i, (_, width) in enumerate(labels):
        left[i] = max(left[i], start)
        start = left[i] + width + gap
    end = high
    for i in reversed(range(len(labels))):
        left[i] = min(left[i], end - labels[i][1])
        end = left[i] - gap
    return [x + width / 2 for x, (_, width) in zip(left, labels, strict=True)]
