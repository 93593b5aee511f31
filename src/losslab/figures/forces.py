"""Forces on the circle: what each document of a query does to the query's vector, with points to drag."""

from __future__ import annotations

from math import ceil, hypot, log
from typing import Any

import numpy as np
import traitlets
from matplotlib.figure import Figure as Canvas

from losslab.figures._choice import Choice
from losslab.figures._contrastive import Floats
from losslab.figures._numbers import num, percent, plural
from losslab.figures._pulls import Pulls, polar, pulls
from losslab.figures._sheet import BIG, SMALL, TEXT, Point, Sheet, linear, measure
from losslab.figures._vectors import Box, Label, along, besides, vector
from losslab.figures.base import Figure, Table, Whole

TEMPERATURES = (0.02, 0.03, 0.05, 0.07, 0.1, 0.16, 0.2, 0.3, 0.5, 0.7, 1.0)
SHORTEST, LONGEST = 0.2, 1.4
_LETTERS = "ABCDEFGH"
_MARK, _RIM = 26, 16  # px: a point, and where an arrow starts from the query's middle
_ANGLES = (62, 97, 28, 108, 170, 215, 320)  # one negative is nearer than the positive, one hides behind it
_LENGTHS = (0.8, 0.9, 0.7, 1.3, 1.0, 0.6, 1.1)


class Forces(Figure):
    """A query, its positive and its negatives as points to drag; arrows show each document's part of the gradient.

    The loss is InfoNCE of one query. Minus its gradient by the query's vector is a sum with one term a document: a pull
    along the positive, a push against each negative. With cosines only what lies across the query turns it.

    Attributes
    ----------
    angles : list of int, length 2 + the number of negatives (1 to 8)
        Degrees from 0 to 359: the query, its positive, the negatives.
    lengths : list of float, as long as `angles`
        Lengths of the same vectors, 0.2 to 1.4 in tenths; they count only where `normalize` is False.
    temperature : float
        One of 0.02, 0.03, 0.05, 0.07, 0.1, 0.16, 0.2, 0.3, 0.5, 0.7, 1.
    normalize : bool
        True: scores are cosines. False: they are dot products.
    arrows : str
        "shares": arrows are drawn over the length of all the negatives' pushes together, so that shares can be compared
        at every temperature. "forces": they are drawn as they are, times the temperature.
    chosen : int
        The point whose length the slider changes: 0 the query, 1 the positive, 2 and on the negatives.

    Raises
    ------
    FigureError
        If a trait is out of its range, or `angles` and `lengths` differ in number.
    """

    NAME = "forces"
    TITLE = "Forces on the circle"

    angles = Table(whole=True).tag(sync=True)
    lengths = Table().tag(sync=True)
    temperature = Choice(0.1, TEMPERATURES).tag(sync=True)
    normalize = traitlets.Bool(True).tag(sync=True)
    arrows = Choice("shares", ("shares", "forces")).tag(sync=True)
    chosen = Whole(0, 0, 9).tag(sync=True)

    @traitlets.default("angles")
    def _places(self) -> list[int]:
        return list(_ANGLES)

    @traitlets.default("lengths")
    def _sizes(self) -> list[float]:
        count = len(self.angles)
        return [_LENGTHS[k] if k < len(_LENGTHS) else 1.0 for k in range(count)]

    def __init__(self, **traits: object) -> None:
        super().__init__(**traits)
        self._count = len(self.angles)

    @traitlets.validate("angles", "lengths", "chosen")
    def _agree(self, proposal: dict[str, Any]) -> object:
        name, value = proposal["trait"].name, proposal["value"]
        if name == "chosen":
            if value >= len(self.angles):
                self._refuse(f"chosen must be a point from 0 to {len(self.angles) - 1}, not {value}")
            return value
        if not 3 <= len(value) <= 2 + len(_LETTERS):
            self._refuse(
                f"{name} must be of a query, a positive and 1 to {len(_LETTERS)} negatives, not {len(value)} numbers"
            )
        if name == "angles":
            if beyond := [a for a in value if a >= 360]:
                self._refuse(f"angles must be whole degrees from 0 to 359, not {beyond[0]}")
            if hasattr(self, "_count") and len(value) != self._count:
                self._refuse(f"angles must stay {self._count} numbers, not {len(value)}; build another figure for more")
            return value
        if wrong := [r for r in value if not SHORTEST <= r <= LONGEST]:
            self._refuse(f"lengths must be from {SHORTEST} to {LONGEST}, not {wrong[0]}")
        if len(value) != len(self.angles):
            self._refuse(f"lengths must hold one number for each of the {len(self.angles)} angles, not {len(value)}")
        return [round(r, 1) for r in value]

    def _now(self) -> Pulls:
        return pulls(self.angles, self.lengths, self.temperature, normalize=self.normalize)

    def describe(self) -> str:
        """Return in words what the figure now shows."""
        now = self._now()
        hardest = _hardest(now)
        by = "By cosine" if self.normalize else f"By dot product, with a query of length {num(self.lengths[0], 1)},"
        share = percent(float(now.portions[hardest]), 0)
        push = f"{by} at temperature {self.temperature:g}, {_name(hardest + 1)} pushes hardest: {share} of all the push"
        many = len(now.portions) - 1
        count = f"{plural(many, 'negative')} {'count' if many > 1 else 'counts'} as {num(now.row.effective, 1)}"
        first = f"the positive ranks {now.row.rank} of {many + 1}"
        turn, stretch = now.step
        way = "nowhere" if num(turn, 6) == "0.000000" else "counter-clockwise" if turn > 0 else "clockwise"
        longer = "" if num(stretch, 6) == "0.000000" else f" and {'lengthens' if stretch > 0 else 'shortens'} it"
        step = f"the step turns the query {way}{longer}"
        return f"{push}, and the {count}. The loss is {num(now.row.loss)} nats, {first}, and {step}."

    def twin(self) -> Canvas:
        """Return the still twin of the current state."""
        now = self._now()
        sheet, side = Sheet(height=max(446.0, 262.0 + 33 * len(now.scores))), 440.0
        self._plane(sheet, now, side)
        x = side + 24
        breadth = sheet.width - x
        sheet.text(x, 14, "Loss (nats)", size=TEXT, strong=True)
        digits = 4 if now.row.loss < 9.99995 else 3 if now.row.loss < 99.9995 else 2
        sheet.text(x, 52, num(now.row.loss, digits), size=BIG, strong=True)
        beside, title = x + max(breadth * 0.46, measure("0.0000", BIG, strong=True) + 20), "Effective negatives"
        fits = measure(title, TEXT, strong=True) <= x + breadth - beside
        sheet.text(beside, 14, title, size=TEXT if fits else SMALL, strong=True)
        value = num(now.row.effective, 1)
        sheet.text(beside, 52, value, size=BIG, strong=True)
        sheet.text(beside + measure(value, BIG, strong=True) + 8, 52, f"of {len(now.scores) - 1}", colour="muted")
        self._list(sheet, now, x, 78, breadth)
        self._scaling(sheet, now, x, 120 + 33 * len(now.scores), breadth)
        return sheet.canvas

    def _plane(self, sheet: Sheet, now: Pulls, side: float) -> None:
        """Draw the circle, the points and the arrows."""
        middle, unit, reach = side / 2, side * 0.31, side * 0.155
        long = [1.0] * len(self.angles) if self.normalize else self.lengths
        vectors = [polar(a, r) for a, r in zip(self.angles, long, strict=True)]
        place = [(middle + v[0] * unit, middle - v[1] * unit) for v in vectors]
        sheet.circle(middle, middle, unit, "rim")
        for point in [] if self.normalize else place:
            sheet.line([(middle, middle), point], "spoke")
        sheet.dot(middle, middle, 2.5, "muted")
        boxes: list[Box] = []

        def arrow(force: Floats) -> tuple[Point, Point]:
            (px, py), long = place[0], hypot(*force) * reach
            if long < 1:
                return place[0], place[0]
            ux, uy = force[0] * reach / long, -force[1] * reach / long
            ends = [(px + ux * r, py + uy * r) for r in (_RIM, _RIM + long)]
            start, tip = [(min(side - 4, max(4.0, x)), min(side - 4, max(4.0, y))) for x, y in ends]
            return start, tip

        shares = self.arrows == "shares"
        turn, stretch = now.unit_step if shares else now.step
        step = turn * polar(self.angles[0] + 90) + stretch * polar(self.angles[0])
        forces = [*(now.units if shares else now.forces), step]
        drawn = [arrow(f) for f in forces]
        last, hardest = len(drawn) - 1, _hardest(now)
        texts, labels = [], []
        for k in (0, 1):
            (px, py), wide = place[k], measure(_name(k), strong=True)
            texts.append((_name(k), "best" if k else "ink"))
            labels.append(Label(px, py, px - middle, py - middle, 17, wide + 8))
        for j in [*reversed(range(last)), last]:
            look, width = ("step", 6) if j == last else ("push", 4) if j else ("pull", 5)
            if drawn[j][0] != drawn[j][1]:
                sheet.polygon(vector(*drawn[j], width), look)
        for j, (start, (x, y)) in enumerate(drawn):
            dx, dy = x - start[0], y - start[1]
            if dx or dy:
                boxes += along(start, (x, y))
            if hypot(dx, dy) >= 12:
                letter = f"{_letter(j + 1)} pushes" if j == hardest else _letter(j + 1)
                text = "step" if j == last else letter if j else "pull"
                texts.append((text, "ink" if j == last else "muted" if j else "best"))
                labels.append(Label(x, y, dx, dy, 9, measure(text, strong=True) + 8))
        if not self.normalize:
            sheet.circle(*place[self.chosen], _MARK / 2 + 7 if self.chosen else 20, "chosen")
        for k, (x, y) in reversed(list(enumerate(place))):
            size = 11 if k == 0 else _MARK / 2
            _mark(sheet, k, x, y, size)
            boxes.append((x - 15, y - 15, x + 15, y + 15))
        about = "every vector has length 1" if self.normalize else "length 1"
        texts.append((about, "muted"))
        low = middle if self.normalize else middle + unit
        labels.append(Label(middle, low, 0, 1, 10, measure(about) + 8))
        for (text, colour), (x, y) in zip(texts, besides(labels, boxes, (0, 0, side, side)), strict=True):
            sheet.text(x, y + 4.5, text, strong=text != about, colour=colour, anchor="middle", halo=True)

    def _list(self, sheet: Sheet, now: Pulls, x: float, y: float, breadth: float) -> None:
        """Draw each document's score, probability and part of the push."""
        first, second = x + 78, x + 102
        pitch = (x + breadth - second + 16) / 2
        third = second + pitch
        sheet.text(first, y + 12, "cosine" if self.normalize else "dot", colour="muted", anchor="end")
        sheet.text(second, y + 12, "probability", colour="muted")
        sheet.text(third, y + 12, "push share", colour="muted")

        def bar(at: float, to: float, top: float, share: float, text: str, look: str) -> None:
            sheet.text(at, top + 14.5, text)
            sheet.rect(at, top + 19, to - at, 6, "track")
            if share * (to - at) >= 0.5:
                sheet.rect(at, top + 19, share * (to - at), 6, look)

        for j, score in enumerate(now.scores):
            top, p, part = y + 20 + j * 33, float(now.row.probabilities[j]), float(now.portions[j])
            _mark(sheet, j + 1, x + 10, top + 15, 9.5)
            sheet.text(first, top + 19.5, num(float(score), 2), anchor="end")
            bar(second, third - 16, top, p, percent(p), "negative" if j else "best")
            if j:
                bar(third, x + breadth, top, part, percent(part, 0), "negative")
            else:
                sheet.text(third, top + 19.5, "the only pull", colour="best")

    def _scaling(self, sheet: Sheet, now: Pulls, x: float, y: float, breadth: float) -> None:
        """Draw the loss against the query's length, all else as it is."""
        at = np.linspace(SHORTEST, LONGEST, 25)
        losses = [
            pulls(self.angles, [r, *self.lengths[1:]], self.temperature, normalize=self.normalize).row.loss for r in at
        ]
        title = "Loss (nats), only the query’s length changed"
        short = "Loss by the query’s length"
        sheet.text(x, y + 14, title if measure(title, TEXT, strong=True) <= breadth else short, size=TEXT, strong=True)
        start = max(*losses, log(len(self.angles) - 1))
        gap = next(s for s in (0.5, 1, 2, 5, 10, 20, 50, 100) if start / s <= 3)
        top = ceil(start / gap) * gap
        sy, left = linear((top, 0), (y + 32, y + 112)), x + 34
        sx = linear((0, LONGEST), (left, x + breadth - 8))
        ticks = [gap * i for i in range(round(top / gap) + 1)]
        sheet.levels(sy, ticks, left, x + breadth, lambda t: f"{t:g}")
        for tick in (0, 0.5, 1):
            sheet.text(sx(tick), y + 132, f"{tick:g}", colour="muted", anchor="middle")
        sheet.text(x + breadth, y + 132, "length", colour="muted", anchor="end")
        look = "line-other" if self.normalize else "line-best"
        sheet.line([(sx(r), sy(loss)) for r, loss in zip(at, losses, strict=True)], look)
        where = 1.0 if self.normalize else self.lengths[0]
        sheet.dot(sx(where), sy(now.row.loss), 7, "muted" if self.normalize else "best", ringed=True)
        level = sy(losses[12])
        if self.normalize:
            name, right = "cosines see no length", sx(LONGEST) - 4
            sheet.text(right, level + 20 if level < y + 60 else level - 12, name, colour="muted", anchor="end")
        elif losses[-1] < losses[-2]:
            low = level + 22 if level < y + 60 else level - 12
            sheet.text(x + breadth - 4, low, "longer is enough", colour="best", anchor="end")
        elif losses[-1] > losses[-2]:
            sheet.text(x + breadth - 4, sy(0) - 8, "longer makes it worse", colour="muted", anchor="end")


def _hardest(now: Pulls) -> int:
    return 1 + int(np.argmax(now.portions[1:]))


def _name(k: int) -> str:
    return ("query", "positive")[k] if k < 2 else f"negative {_LETTERS[k - 2]}"


def _letter(k: int) -> str:
    return "q+"[k] if k < 2 else _LETTERS[k - 2]


def _mark(sheet: Sheet, k: int, x: float, y: float, half: float) -> None:
    """Draw a point: the query a diamond, the positive round, the negatives square, each with its letter."""
    if k == 0:
        d = half * 2**0.5
        sheet.polygon([(x - d, y), (x, y - d), (x + d, y), (x, y + d)], "query")
    elif k == 1:
        sheet.circle(x, y, half, "best")
    else:
        sheet.rect(x - half, y - half, 2 * half, 2 * half, "other", radius=4)
    sheet.text(x, y + 4.5, _letter(k), strong=True, colour="page" if k < 2 else "ink", anchor="middle")
