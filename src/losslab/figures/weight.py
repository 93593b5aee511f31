"""Weight and direction: a long list beside ours leaves our query's gradient its direction and takes its weight."""

from __future__ import annotations

from collections.abc import Callable
from math import floor, hypot, log10
from typing import Any

import traitlets
from matplotlib.figure import Figure as Canvas

from losslab.figures import _parts as parts
from losslab.figures._numbers import brief, num, percent
from losslab.figures._sheet import BIG, TEXT, Sheet, linear, logarithmic, measure, spread
from losslab.figures.base import Figure, Table, Whole

_DATA = ("names", "widths", "alone", "gradients", "weights", "cosines")
_MEAN = 2  # two queries in the batch: a mean over queries halves each one's gradient
_KEPT = 0.9995


class WeightAndDirection(Figure):
    """How much of one query's gradient several losses leave when a longer list joins the batch, and where it points.

    Nothing is computed here but lengths and angles: the caller measures real losses and hands over their gradients,
    from batches of two queries. What should be is a mean over both, which halves the gradient at every width.

    Attributes
    ----------
    names : list of str, shape (L,)
        The losses, 1 to 8, each name once.
    widths : list of int, shape (W,)
        Lengths of the other list, ascending; at least two.
    alone : list of list of float, shape (L, n)
        Gradient with respect to our query's logits when it is the whole batch.
    gradients : list of list of list of float, shape (L, W, n)
        The same gradient in the batch of two, at each width.
    weights : list of list of float, shape (L, W)
        |alone| / |in the batch|; worked out from the gradients if left out, and else held to them.
    cosines : list of list of float, shape (L, W)
        Cosine between alone and in the batch; likewise.
    loss : str
        The loss now shown, one of `names`; at first the one that loses the most weight.
    width : int
        The width now shown, one of `widths`; at first the last.

    Raises
    ------
    TypeError
        If names, widths, alone or gradients are missing.
    FigureError
        If tables disagree, a gradient is zero, or `loss` or `width` is none of those given.
    """

    NAME = "weight"
    TITLE = "Weight and direction"

    names = traitlets.List(traitlets.Unicode()).tag(sync=True)
    widths = Table(whole=True).tag(sync=True)
    alone = Table(2).tag(sync=True)
    gradients = Table(3).tag(sync=True)
    weights = Table(2).tag(sync=True)
    cosines = Table(2).tag(sync=True)
    loss = traitlets.Unicode().tag(sync=True)
    width = Whole(0, 0, 100_000).tag(sync=True)

    def __init__(self, **traits: object) -> None:
        self._need(traits, "names", "widths", "alone", "gradients")
        super().__init__(**traits)
        self._seal()

    def _derived(self, of: Callable[[list[float], list[float]], float]) -> list[list[float]]:
        return [[of(a, g) for g in rows] for a, rows in zip(self.alone, self.gradients, strict=True)]

    @traitlets.default("weights")
    def _from_lengths(self) -> list[list[float]]:
        return self._derived(_weight)

    @traitlets.default("cosines")
    def _from_angles(self) -> list[list[float]]:
        return self._derived(_cosine)

    @traitlets.default("loss")
    def _lightest(self) -> str:
        return max(zip(self.names, self.weights, strict=True), key=lambda pair: float(f"{pair[1][-1]:.3g}"))[0]

    @traitlets.default("width")
    def _widest(self) -> int:
        return int(self.widths[-1])

    @traitlets.validate(*_DATA, "loss", "width")
    def _agree(self, proposal: dict[str, Any]) -> object:
        name, value = proposal["trait"].name, proposal["value"]
        if name in _DATA:
            self._keep(name, value)

        def get(key: str) -> Any:  # noqa: ANN401  # not before the tables it may be worked out from have been checked
            return value if key == name else getattr(self, key)

        names, widths, alone, gradients = map(get, ("names", "widths", "alone", "gradients"))
        if not 1 <= len(names) <= 8 or len(set(names)) < len(names) or not all(names):
            self._refuse(f"names must be 1 to 8 losses, each once, not {names}")
        if len(widths) < 2 or widths != sorted(set(widths)):
            self._refuse(f"widths must be two or more, ascending, not {widths}")
        for key, table in (("alone", alone), ("gradients", gradients)):
            if len(table) != len(names):
                self._refuse(f"{key} must hold one entry for each of the {len(names)} names, not {len(table)}")
        many = len(alone[0])
        if not 2 <= many <= len(parts.LETTERS):
            self._refuse(f"alone must be of 2 or 3 documents, not {many}")
        for label, single, rows in zip(names, alone, gradients, strict=True):
            if len(rows) != len(widths):
                self._refuse(
                    f"gradients of {label} must hold one entry for each of the {len(widths)} widths, not {len(rows)}"
                )
            for where, row in [("alone", single), *zip(widths, rows, strict=True)]:
                if len(row) != many or not any(row):
                    self._refuse(f"the gradient of {label} at {where} must be {many} numbers, not all 0, not {row}")
        for key, of in (("weights", _weight), ("cosines", _cosine)):
            table = get(key)
            if [len(row) for row in table] != [len(widths)] * len(names):
                self._refuse(f"{key} must be {len(names)} rows of {len(widths)} numbers")
            for label, single, rows, given in zip(names, alone, gradients, table, strict=True):
                for w, row, number in zip(widths, rows, given, strict=True):
                    if abs(number - of(single, row)) > 1e-3 * max(1, abs(number)):
                        self._refuse(f"{key} of {label} at width {w} is {number}, its gradients give {of(single, row)}")
        if get("loss") not in names:
            self._refuse(f"loss must be one of {names}, not {get('loss')!r}")
        if get("width") not in widths:
            self._refuse(f"width must be one of {widths}, not {get('width')}")
        return value

    def describe(self) -> str:
        """Return in words what the figure now shows."""
        row, at = self.names.index(self.loss), self.widths.index(self.width)
        weight, cosine = self.weights[row][at], self.cosines[row][at]
        turned, light = cosine < _KEPT, _is_light(weight)
        direction = f"our query’s gradient {'loses' if turned else 'keeps'} its direction (cosine {num(cosine)})"
        beside = f"{self.loss} beside a list of {self.width}: {direction} {'and' if turned or not light else 'but'} is"
        if not light:
            return f"{beside} {brief(weight)} times smaller than alone, as a mean over both queries would make it."
        left = f"{_share(weight)} of the weight that a per-query mean would leave it"
        return f"{beside} {brief(weight)} times smaller than alone, not {_MEAN} times: {left}."

    def twin(self) -> Canvas:
        """Return the still twin of the current state."""
        row, at = self.names.index(self.loss), self.widths.index(self.width)
        alone, now = self.alone[row], self.gradients[row][at]
        weight, cosine = self.weights[row][at], self.cosines[row][at]
        kept, light = cosine >= _KEPT, _is_light(weight)
        sheet = Sheet(height=646)
        words = (num(cosine), "cosine, batch to alone", "kept" if kept else "turned")
        y = self._panel(sheet, 0, "Direction (scaled to length 1)", hypot(*now), "1 = its own length", words, kept)
        verdict = f"{brief(weight)}× smaller, not {_MEAN}×" if light else "as it should be"
        words = (_share(weight), "of a per-query mean", verdict)
        mean = hypot(*alone) / _MEAN
        half = sheet.width * 0.52
        self._panel(sheet, half, "Weight (true to size)", mean, "1 = a per-query mean’s length", words, not light)
        self._drawn_weights(sheet, y + 36)
        return sheet.canvas

    def _panel(
        self,
        sheet: Sheet,
        x: float,
        title: str,
        unit: float,
        unit_name: str,
        words: tuple[str, str, str],
        good: bool,
    ) -> float:
        """Draw our query's pushes in a unit, beside what should be, with a verdict above; return the y below."""
        row, at = self.names.index(self.loss), self.widths.index(self.width)
        alone, now = self.alone[row], self.gradients[row][at]
        docs = [
            parts.Push(letter, "best", -g / unit, -a / hypot(*alone))
            for letter, g, a in zip(parts.LETTERS, now, alone, strict=False)
        ]
        ticks = (1, 0.5, 0, -0.5, -1)
        y = parts.arrows(sheet, x, 0, sheet.width * 0.48, title, docs, (1.25, -1.25), ticks, head=66, indent=44)
        value, note, verdict = words
        sheet.text(x, 56, value, size=BIG, strong=True, colour="ink" if good else "wrong")
        beside = x + measure(value, BIG, strong=True) + 14
        sheet.text(beside, 38, note, colour="muted")
        sheet.text(beside, 56, verdict, strong=True, colour="right" if good else "wrong")
        sheet.text(x + 44, y + 20, unit_name, colour="muted")
        return y + 24

    def _drawn_weights(self, sheet: Sheet, y: float) -> None:
        """Draw every loss's weight against the width, on a log axis, each named where its line ends."""
        found = [weight for row in self.weights for weight in row]
        low, high = 10.0 ** floor(log10(min(1.0, *found))), 1.5 * max(10.0, *found)
        gutter = max(measure(name, strong=True) for name in self.names) + 14
        first, last, left, right = self.widths[0], self.widths[-1], 44, sheet.width - gutter
        sx, sy = linear((first, last), (left + 10, right)), logarithmic((high, low), (y + 32, y + 240))
        decades = [10.0**k for k in range(round(log10(low)), floor(log10(high)) + 1)]
        title = "Times smaller than alone"
        sheet.text(0, y + 14, title, size=TEXT, strong=True)
        sheet.text(measure(title, TEXT, strong=True) + 10, y + 14, "log scale", colour="muted")
        sheet.levels(sy, decades, left, right, lambda t: f"{t:g}×")
        for i, w in enumerate(self.widths):
            if i == 0 or (w % 10 == 0 and w - first > 4):
                sheet.text(sx(w), y + 260, str(w), colour="muted", anchor="middle")
        sheet.text(right, y + 280, "longest list in the batch (documents)", colour="muted", anchor="end")

        at, chosen = self.widths.index(self.width), self.names.index(self.loss)
        strays = any(map(_is_light, self.weights[chosen]))
        colour = "wrong" if strays else "right"
        for row in self.weights:
            sheet.line([(sx(w), sy(v)) for w, v in zip(self.widths, row, strict=True)], "line-other")
        sheet.line([(sx(first), sy(_MEAN)), (sx(last), sy(_MEAN))], "line-right")
        points = [(sx(w), sy(v)) for w, v in zip(self.widths, self.weights[chosen], strict=True)]
        sheet.line(points, "line-wrong" if strays else "line-right")
        sheet.line([(points[at][0], sy(_MEAN)), points[at]], "gap")
        for px, py in points:
            sheet.dot(px, py, 3, colour)
        sheet.dot(*points[at], 8, "wrong" if _is_light(self.weights[chosen][at]) else "right", ringed=True)
        mean = f"per-query mean: {_MEAN}"
        sheet.text(sx(last) - 12, sy(_MEAN) + 17, mean, colour="right", anchor="end", halo=True)
        ends = sorted((sy(row[-1]), i) for i, row in enumerate(self.weights))
        for centre, (_, i) in zip(spread([(end, 16) for end, _ in ends], y + 30, y + 250, 1), ends, strict=True):
            strong = i == chosen
            sheet.text(right + 12, centre + 4.5, self.names[i], strong=strong, colour=colour if strong else "muted")


def _weight(alone: list[float], batch: list[float]) -> float:
    return hypot(*alone) / hypot(*batch)


def _cosine(alone: list[float], batch: list[float]) -> float:
    dot = sum(a * b for a, b in zip(alone, batch, strict=True))
    return dot / hypot(*alone) / hypot(*batch)


def _share(weight: float) -> str:
    return percent(_MEAN / weight, 1 if _MEAN / weight < 0.0995 else 0)


def _is_light(weight: float) -> bool:
    return _share(weight) != "100%"
