"""Let go: pairs on a circle or a sphere descend InfoNCE, and loss, alignment and uniformity are traced."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import cos, floor, log, pi, radians, sin

import numpy as np
import traitlets
from matplotlib.figure import Figure as Canvas

from losslab.figures._choice import Choice
from losslab.figures._descent import LAST, Floats, Run, descend, floor_of
from losslab.figures._numbers import num
from losslab.figures._sheet import TEXT, Sheet, linear, measure, spread
from losslab.figures._vectors import Box, Label, besides
from losslab.figures.base import Figure, Whole

TEMPERATURES = (0.05, 0.07, 0.1, 0.16, 0.2, 0.3, 0.5, 0.7, 1.0)
_TRAIL = 30

_Look = Callable[[Floats], tuple[float, float, float]]


class Descent(Figure):
    """Pairs of a query and its positive, let go on a circle or a sphere, step by step down the gradient of InfoNCE.

    One direction, query to document, with the batch's other documents as negatives. Each step goes 0.01 times the
    gradient of the sum over queries along the surface. A run is worked out from its settings alone, the same on the
    page and in Python, so every step can be gone back to.

    Attributes
    ----------
    step : int
        0 to 200.
    pairs : int
        2 to 12.
    surface : str
        "circle" or "sphere".
    temperature : float
        One of 0.05, 0.07, 0.1, 0.16, 0.2, 0.3, 0.5, 0.7, 1.
    seed : int
        Where the points start, 1 to 30.
    shared : bool
        Whether pairs 1 and 2 share a positive, so that each has a negative which is its positive: the mean loss then
        stays above (2/N) ln 2.
    turn, tilt : int
        The view of the sphere in degrees, 0 to 359 and −90 to 90.
    """

    NAME = "descent"
    TITLE = "Let go"

    step = Whole(0, 0, LAST).tag(sync=True)
    pairs = Whole(8, 2, 12).tag(sync=True)
    surface = Choice("sphere", ("circle", "sphere")).tag(sync=True)
    temperature = Choice(0.2, TEMPERATURES).tag(sync=True)
    seed = Whole(1, 1, 30).tag(sync=True)
    shared = traitlets.Bool(False).tag(sync=True)
    turn = Whole(30, 0, 359).tag(sync=True)
    tilt = Whole(20, -90, 90).tag(sync=True)

    def _run(self) -> Run:
        return descend(self.pairs, self.surface, self.temperature, self.seed, self.shared)

    def describe(self) -> str:
        """Return in words what the figure now shows."""
        run, at = self._run(), self.step
        alike = f"ln {self.pairs} = {num(log(self.pairs))} if all scores were alike"
        least = f" and a floor of {num(floor_of(self.pairs, shared=True))}, since two pairs share a positive"
        loss = f"the loss is {num(float(run.loss[at]))} nats, against {alike}{least if self.shared else ''}"
        apart = f"A query and its positive are {num(float(run.alignment[at]), 3)} apart (mean squared distance)"
        even = f"uniformity is {num(float(run.uniformity[at]), 3)}"
        return f"Step {at} of {LAST}: {loss}. {apart}, and {even}."

    def twin(self) -> Canvas:
        """Return the still twin of the current state."""
        run, side = self._run(), 400.0
        sheet = Sheet(height=440)
        self._drawn_pairs(sheet, run, side)
        self._key(sheet, side)
        alike, least = log(self.pairs), floor_of(self.pairs, shared=self.shared)
        limits = [(alike, f"ln {self.pairs}"), *([(least, "floor")] if self.shared else [])]
        high = max(float(run.loss.max()), alike) * 1.04
        far = max(2.0, float(run.alignment.max())) * 1.04
        low = -4 * self.pairs / (self.pairs - 1)
        y = self._trace(sheet, "Loss (nats)", run.loss, 4, (high, 0), _up_to(high), 4, limits)
        y = self._trace(sheet, "Alignment (squared distance)", run.alignment, 3, (far, 0), _up_to(far), y + 8)
        depths = [0 - t for t in _up_to(-low)]
        self._trace(sheet, "Uniformity (lower: more even)", run.uniformity, 3, (0, low), depths, y + 8, last=True)
        return sheet.canvas

    def _camera(self, middle: float, unit: float) -> _Look:
        """From a point to the drawing: x, y, and how far it lies towards the reader, −1 to 1."""
        if self.surface == "circle":
            return lambda p: (middle + p[0] * unit, middle - p[1] * unit, 1.0)
        ct, st = cos(radians(self.turn)), sin(radians(self.turn))
        cv, sv = cos(radians(self.tilt)), sin(radians(self.tilt))

        def look(p: Floats) -> tuple[float, float, float]:
            x, y = p[0] * ct - p[1] * st, p[0] * st + p[1] * ct
            return middle + x * unit, middle - (p[2] * cv + y * sv) * unit, float(p[2] * sv - y * cv)

        return look

    def _drawn_pairs(self, sheet: Sheet, run: Run, side: float) -> None:
        """Draw the pairs where they now are, joined by lines, with the way that they came."""
        middle, unit = side / 2, side / 2 - 34
        look = self._camera(middle, unit)
        sheet.circle(middle, middle, unit, "rim")
        if self.surface == "sphere":
            axes = np.eye(3)
            for a, b in ((0, 1), (0, 2), (1, 2)):
                ring = [look(axes[a] * cos(k * pi / 30) + axes[b] * sin(k * pi / 30)) for k in range(61)]
                for here, there in pairwise(ring):
                    if there[2] >= 0:
                        sheet.line([here[:2], there[:2]], "grid")
        first = max(0, self.step - _TRAIL)
        for i in range(self.pairs if self.step else 0):
            for states, shade in ((run.queries, "spoke"), (run.documents, "spoke")):
                sheet.line([look(states[s, i])[:2] for s in range(first, self.step + 1)], shade)
        marks = [(look(run.queries[self.step, i]), look(run.documents[self.step, i])) for i in range(self.pairs)]
        for q, d in marks:
            sheet.line([q[:2], d[:2]], "bond")
        boxes: list[Box] = []
        for i, (q, d) in reversed(list(enumerate(marks))):
            if not (self.shared and i == 1):
                both = self.shared and i == 0
                behind = "hollow-best" if d[2] < 0 else "best"
                sheet.circle(d[0], d[1], 5.5 + 1.5 * d[2] + 2 * both, "double" if both else behind)
            r = (5.5 + 1.5 * q[2]) * 0.9 * 2**0.5
            corners = [(q[0] - r, q[1]), (q[0], q[1] - r), (q[0] + r, q[1]), (q[0], q[1] + r)]
            sheet.polygon(corners, "hollow" if q[2] < 0 else "query")
            boxes += [(x - 8, y - 8, x + 8, y + 8) for x, y, _ in (q, d)]
        texts, labels = [], []
        for i, (q, d) in enumerate(marks):
            x, y, _ = q if self.shared and i < 2 else d
            texts.append((str(i + 1), "ink" if self.shared and i < 2 else "best"))
            labels.append(Label(x, y, x - middle, y - middle, 10, measure(str(i + 1), strong=True) + 6))
        if self.shared:
            x, y, _ = marks[0][1]
            texts.append(("1 and 2", "best"))
            labels.append(Label(x, y, x - middle, y - middle, 12, measure("1 and 2", strong=True) + 6))
        for (text, colour), (x, y) in zip(texts, besides(labels, boxes, (0, 0, side, side)), strict=True):
            sheet.text(x, y + 4.5, text, strong=True, colour=colour, anchor="middle", halo=True)

    def _key(self, sheet: Sheet, side: float) -> None:
        """Say what the marks mean, below the plane."""
        names = ["query", "its positive", *(["hollow: behind"] if self.surface == "sphere" else [])]
        wide = [20 + measure(name) for name in names]
        at, y = (side - sum(wide) - 18 * (len(names) - 1)) / 2, side + 10
        for i, (name, width) in enumerate(zip(names, wide, strict=True)):
            x = at + 7
            if i == 0:
                sheet.polygon([(x - 7, y), (x, y - 7), (x + 7, y), (x, y + 7)], "query")
            else:
                sheet.circle(x, y, 6.5 if i == 1 else 4.5, "best" if i == 1 else "hollow-best")
            sheet.text(at + 20, y + 4.5, name, colour="muted")
            at += width + 18

    def _trace(
        self,
        sheet: Sheet,
        title: str,
        values: Floats,
        digits: int,
        domain: tuple[float, float],
        ticks: Sequence[float],
        y: float,
        limits: Sequence[tuple[float, str]] = (),
        *,
        last: bool = False,
    ) -> float:
        """Draw one number over the steps so far; return the y below."""
        x, tall, top = 428.0, 70, y + 26
        left, right = x + 30, sheet.width - 12 - max(measure(f"ln {self.pairs}"), measure("floor"))
        sheet.text(x, y + 12, title, size=TEXT, strong=True)
        sheet.text(sheet.width, y + 12, num(float(values[self.step]), digits), size=TEXT, strong=True, anchor="end")
        sy, sx = linear(domain, (top, top + tall)), linear((0, LAST), (left, right))
        sheet.levels(sy, ticks, left, right, lambda t: num(t, 0))
        for value, _ in limits:
            sheet.line([(left, sy(value)), (right, sy(value))], "limit")
        named = sorted((sy(value), name) for value, name in limits)
        for centre, (_, name) in zip(
            spread([(c, 14) for c, _ in named], top - 8, top + tall + 10, 1), named, strict=True
        ):
            sheet.text(right + 8, centre + 4.5, name, colour="muted")
        if self.step:
            sheet.line([(sx(s), sy(float(values[s]))) for s in range(self.step + 1)], "line-best")
        sheet.dot(sx(self.step), sy(float(values[self.step])), 6, "best", ringed=True)
        if not last:
            return top + tall + 22
        for tick in range(0, LAST + 1, 50):
            sheet.text(sx(tick), top + tall + 24, str(tick), colour="muted", anchor="middle")
        sheet.text(right, top + tall + 44, "step", colour="muted", anchor="end")
        return top + tall + 50


def _up_to(top: float) -> list[int]:
    """Return round ticks for an axis from 0 to `top`, at most four."""
    gap = next((g for g in (1, 2, 5, 10) if top / g <= 3.5), 20)
    return [gap * i for i in range(floor(top / gap) + 1)]
