"""The score gap: what a temperature makes of two near cosines, and who is pushed how hard."""

from __future__ import annotations

from math import exp

from matplotlib.figure import Figure as Canvas

from losslab.figures import _parts as parts
from losslab.figures import _plots as plots
from losslab.figures._contrastive import Row, info_nce_row
from losslab.figures._numbers import brief, num, signed
from losslab.figures._rounded import Rounded
from losslab.figures._sheet import TEXT, Sheet, linear, measure
from losslab.figures._temperature import FINE, Temperature
from losslab.figures.base import Figure

_REACH = 6  # logits to either side of the positive
_NAMES = ("positive", "negative", "twin")
_LOOKS = ("best", "negative", "good")
_COLOURS = ("best", "muted", "wrong")
_RAYS = ("line-best", "line-other", "line-wrong")


class ScoreGap(Figure):
    """A positive, a hard negative and a *twin*: a document as right as the positive that is labelled a negative.

    The loss is InfoNCE of the three, −ln p of the positive. What should be is −ln(p + q) with the twin's q, the loss of
    a query with two positives.

    Attributes
    ----------
    temperature : float
        One of the slider's stops, 0.005 to 1.
    positive, negative, mislabelled : float
        Cosines, 0 to 1, in hundredths; the last one is the twin's.

    Notes
    -----
    Pushes are minus the gradient by each logit; by each cosine they are 1/τ times that. InfoNCE: van den Oord, Li &
    Vinyals (2018), arXiv:1807.03748, eq. 4. Two positives inside the logarithm: Khosla et al. (2020), arXiv:2004.11362,
    eq. 3.
    """

    NAME = "score_gap"
    TITLE = "The score gap"

    temperature = Temperature(0.05).tag(sync=True)
    positive = Rounded(0.7, 0.0, 1.0, 2).tag(sync=True)
    negative = Rounded(0.65, 0.0, 1.0, 2).tag(sync=True)
    mislabelled = Rounded(0.75, 0.0, 1.0, 2).tag(sync=True)

    def _cosines(self) -> list[float]:
        return [self.positive, self.negative, self.mislabelled]

    def _row(self) -> Row:
        return info_nce_row(self._cosines(), 0, self.temperature)

    @property
    def _gap(self) -> float:
        return (self.positive - self.negative) / self.temperature

    def describe(self) -> str:
        """Return in words what the figure now shows."""
        s, hard, twin = (num(c, 2) for c in self._cosines())
        gap, share = self._gap, plots.portion(float(self._row().shares[2]))
        makes = f"At τ = {self.temperature:g} the gap between {s} and {hard} is {num(gap, 2)} logits"
        likely = f"the positive is {_times(exp(gap))} times as likely as the negative"
        return (
            f"{makes}: {likely}. The twin, at {twin} as right as the positive, takes {share} of the push on negatives."
        )

    def twin(self) -> Canvas:
        """Return the still twin of the current state."""
        row, gap, cosines = self._row(), self._gap, self._cosines()
        sheet = Sheet(height=672)
        s, hard = num(self.positive, 2), num(self.negative, 2)
        given = [
            ("Gap in logits", num(gap, 2), f"({s} − {hard})/{self.temperature:g}"),
            ("Odds", _times(exp(gap)), "positive to negative, exp(gap)"),
            ("Loss (nats)", num(row.loss, 3), "of all three, twin a negative"),
        ]
        y = self._fan(sheet, plots.facts(sheet, 0, given) + 32) + 36
        breadth = sheet.width * 0.48
        below = parts.pushes(sheet, 0, y, breadth, self._pushes(), (1.1, -1.1), (1, 0.5, 0, -0.5, -1))
        sheet.text(breadth, below + 18, "should be: with the twin labelled right", colour="muted", anchor="end")
        twin, negative = self.mislabelled, self.negative
        to = "to 100%" if twin > negative else "to 0%" if twin < negative else "and 50%"
        shares = [float(info_nce_row(cosines, 0, t).shares[2]) for t in FINE]
        share = float(row.shares[2])
        plots.curves(
            sheet,
            (sheet.width * 0.54, y, sheet.width * 0.46),
            self.temperature,
            "The twin’s share of the push",
            f"from 50% as τ → ∞ {to} as τ → 0",
            [plots.Curve("twin", plots.portion(share), "wrong", shares, share, square=True)],
            lines=1,
            domain=(1, 0),
            ticks=(0, 0.25, 0.5, 0.75, 1),
            limits=[(0.5, "1/2")],
            show=lambda t: f"{num(100 * t, 0)}%",
        )
        return sheet.canvas

    def _pushes(self) -> list[parts.Push]:
        row = self._row()
        p = row.probabilities
        right = float(p[0] + p[2])  # with the twin labelled right too, the loss is −ln(p + q)
        pushes = []
        for i, name in enumerate(_NAMES):
            now = float(-row.gradient[i] * self.temperature)
            pushes.append(parts.Push(name, _LOOKS[i], now, now if i == 1 else float(p[i]) * (1 / right - 1)))
        return pushes

    def _fan(self, sheet: Sheet, y: float) -> float:
        """Draw the cosines on their ruler, and fanned out below it as logits; return the y below."""
        cosines, left, right, above, below = self._cosines(), 136, sheet.width - 8, y + 62, y + 158
        sx, sz = linear((0, 1), (left, right)), linear((-_REACH, _REACH), (left, right))
        logits = [(s - cosines[0]) / self.temperature for s in cosines]
        order = sorted(range(3), key=lambda i: (cosines[i], -i))
        sheet.text(0, y + 14, "What the softmax sees", size=TEXT, strong=True)
        for name, note, line in (("Cosines", "as they are", above), ("Logits", "from the positive’s", below)):
            sheet.text(0, line - 2, name, size=TEXT, strong=True)
            sheet.text(0, line + 16, note, colour="muted")
            sheet.line([(left, line), (right, line)], "zero")
        for tick in range(6):
            sheet.line([(sx(tick / 5), above - 4), (sx(tick / 5), above + 4)], "tick")
        for tick in range(-_REACH, _REACH + 1):
            sheet.line([(sz(tick), below - 4), (sz(tick), below + 4)], "tick")
        ends = [max(-_REACH, min(_REACH, z)) for z in logits]
        for i in order:
            sheet.line([(sx(cosines[i]), above), (sz(ends[i]), below)], _RAYS[i])
        for end in (0, 1):
            sheet.text(sx(end), above + 20, str(end), colour="muted", anchor="middle", halo=True)
        names = [(sx(cosines[i]), measure(_NAMES[i], strong=True)) for i in order]
        for i, x in zip(order, plots.balance(names, left - 8, sheet.width), strict=True):
            sheet.text(x, above - 30, _NAMES[i], strong=True, colour=_COLOURS[i], anchor="middle")
            sheet.text(x, above - 14, num(cosines[i], 2), colour=_COLOURS[i], anchor="middle")
        texts = [_placed(logits[i]) for i in order]
        wanted = [(sz(ends[i]), measure(t, strong=True)) for i, t in zip(order, texts, strict=True)]
        for i, text, x in zip(order, texts, plots.balance(wanted, left - 8, sheet.width), strict=True):
            sheet.text(x, below + 26, text, strong=True, colour=_COLOURS[i], anchor="middle")
        for i in order:
            _mark(sheet, i, sx(cosines[i]), above)
            if abs(logits[i]) <= _REACH:
                _mark(sheet, i, sz(ends[i]), below)
        return below + 30


def _mark(sheet: Sheet, which: int, x: float, y: float) -> None:
    """Draw a document's mark: a circle, a diamond or a square."""
    if which == 0:
        sheet.dot(x, y, 7, "best", ringed=True)
    elif which == 1:
        sheet.polygon([(x - 8, y), (x, y - 8), (x + 8, y), (x, y + 8)], "negative-ringed")
    else:
        sheet.polygon([(x - 6.5, y - 6.5), (x + 6.5, y - 6.5), (x + 6.5, y + 6.5), (x - 6.5, y + 6.5)], "wrong-ringed")


def _placed(logit: float) -> str:
    """Write a logit, with an arrow where it is beyond the ruler's end."""
    text = signed(logit, 2)
    return text if abs(logit) <= _REACH else f"← {text}" if logit < 0 else f"{text} →"


def _times(odds: float) -> str:
    """exp(gap) as a reader can take it in."""
    return ">100,000" if odds >= 1e5 else "<0.01" if odds < 0.005 else brief(odds)
