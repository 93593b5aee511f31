"""What a number format can tell apart: two cosines over a temperature, and where bf16, fp16 and fp32 put them."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, exp, floor, log, log2

import traitlets
from matplotlib.figure import Figure as Canvas

from losslab.figures import _plots as plots
from losslab.figures._formats import BF16, FP16, FP32, Format
from losslab.figures._numbers import brief, num
from losslab.figures._rounded import Rounded
from losslab.figures._sheet import TEXT, Sheet, linear, logarithmic, measure
from losslab.figures._temperature import Temperature
from losslab.figures.base import Figure, FigureError, _number

GAPS = (0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05)
FORMATS = (BF16, FP16, FP32)
_CLAMP, _START = 100, 1 / 0.07
_FINE = 4  # px: ticks closer than this are a band


class _Gap(traitlets.TraitType[float, object]):
    """One of `GAPS`."""

    def validate(self, obj: object, value: object) -> float:
        number = _number(value)
        if number is None or number not in GAPS:
            stops = ", ".join(f"{gap:g}" for gap in GAPS)
            raise FigureError(f"{type(obj).__name__}: {self.name} must be one of {stops}, not {value!r}")
        return number


@dataclass(frozen=True)
class _Row:
    """What a format makes of the two logits."""

    form: Format
    unit: float
    high: float
    low: float

    @property
    def apart(self) -> float:
        return self.high - self.low

    @property
    def same(self) -> bool:
        return self.high == self.low


class NumberFormats(Figure):
    """Two logits, cosine / τ, on rulers of the numbers that bf16, fp16 and fp32 have there, and the learned scale 1/τ.

    Rounding is to nearest, ties to even, from the exact quotient: as kind as a format can be to a logit.

    Attributes
    ----------
    temperature : float
        One of the slider's stops, 0.005 to 1.
    positive : float
        Cosine of the positive, 0.1 to 1, in thousandths.
    gap : float
        How much lower the negative's cosine is: one of 0.0001, 0.0002, 0.0005, … 0.05.

    Notes
    -----
    The learned scale exp(t), its start at 1/0.07 and its clamp at 100: Radford et al. (2021), arXiv:2103.00020, §2.5.
    """

    NAME = "number_formats"
    TITLE = "What a number format can tell apart"

    temperature = Temperature(0.014).tag(sync=True)
    positive = Rounded(0.7, 0.1, 1.0, 3).tag(sync=True)
    gap = _Gap(0.001).tag(sync=True)

    def _cosines(self) -> tuple[float, float]:
        return self.positive, floor((self.positive - self.gap) * 1e4 + 0.5) / 1e4

    def _logits(self) -> tuple[float, float]:
        high, low = self._cosines()
        return high / self.temperature, low / self.temperature

    def _rows(self) -> list[_Row]:
        high, low = self._logits()
        return [_Row(form, form.spacing(high), form.round(high), form.round(low)) for form in FORMATS]

    def describe(self) -> str:
        """Return in words what the figure now shows."""
        (a, b), (high, low) = self._cosines(), self._logits()
        found = []
        for row in self._rows()[:2]:
            steps = f"{row.form.name} steps by {_plain(row.unit)} there"
            if row.same:
                found.append(f"{steps}: both become {_plain(row.high)}, and it can no longer tell them apart.")
            else:
                found.append(f"{steps} and puts them {_plain(row.apart)} apart.")
        if 1 / self.temperature > _CLAMP + 1e-9:
            found.append(f"CLIP’s clamp would not let the scale above {_CLAMP}.")
        cosines, logits = f"{num(a)} and {num(b)}", f"{num(high, 3)} and {num(low, 3)}, {num(high - low)} apart"
        return f"At τ = {self.temperature:g} cosines of {cosines} are logits of {logits}. {' '.join(found)}"

    def twin(self) -> Canvas:
        """Return the still twin of the current state."""
        (a, b), (high, low) = self._cosines(), self._logits()
        over = [form.name for form in FORMATS if exp(high) > form.top]
        z = f"exp({num(high, 1)})"
        fate = f"{z} overflows {'all three' if len(over) > 2 else over[0]}" if over else f"{z} fits all three"
        sheet = Sheet(height=530)
        scale = 1 / self.temperature
        given = [
            ("Logit scale 1/τ", brief(scale), f"exp(t), t = {num(log(scale), 2)}"),
            ("Positive’s logit", brief(high), fate),
            ("Gap in logits", num(high - low, 3), f"{num(a - b)} in cosine"),
        ]
        y = self._scale(sheet, plots.facts(sheet, 0, given) + 34)
        self._rulers(sheet, y + 36)
        return sheet.canvas

    def _scale(self, sheet: Sheet, y: float) -> float:
        """Draw the learned scale on its axis: where CLIP starts it, where its clamp ends; return the y below."""
        sx, line, title = logarithmic((1, 200), (12, sheet.width - 12)), y + 62, "Learned temperature"
        sheet.text(0, y + 14, title, size=TEXT, strong=True)
        name = "logit scale 1/τ = exp(t), t is what is learned"
        sheet.text(measure(title, TEXT, strong=True) + 10, y + 14, name, colour="muted")
        sheet.rect(sx(_CLAMP), line - 7, sx(200) - sx(_CLAMP), 14, "ghost-solid-hatched")
        sheet.line([(sx(1), line), (sx(_CLAMP), line)], "zero")
        for tick in (1, 2, 5, 10, 20, 50, 100, 200):
            sheet.line([(sx(tick), line), (sx(tick), line + 6)], "zero")
            sheet.text(sx(tick), line + 26, str(tick), colour="muted", anchor="middle")
        sheet.line([(sx(_START), line - 12), (sx(_START), line)], "zero")
        sheet.text(sx(_START), line - 18, "CLIP starts at 1/0.07", colour="muted", anchor="middle")
        sheet.text(sheet.width, line - 18, f"and is clamped at {_CLAMP}", colour="muted", anchor="end")
        sheet.dot(sx(1 / self.temperature), line, 8, "ink", ringed=True)
        return line + 30

    def _rulers(self, sheet: Sheet, y: float) -> None:
        """Draw the two logits as they are, and below them what each format makes of them."""
        logits, rows, gutter, aside = self._logits(), self._rows(), 142, 158
        apart, middle = logits[0] - logits[1], (logits[0] + logits[1]) / 2
        half = max(2.4 * rows[0].unit, 0.75 * apart)
        left, right, start = gutter + 8, sheet.width - aside - 8, middle - half
        sx = linear((start, middle + half), (left, right))
        sheet.text(0, y + 14, "Where the two logits land", size=TEXT, strong=True)
        top, pitch = y + 44, 74
        first = top + 44
        end = first + 2 * pitch + 12
        names = [f"negative {num(logits[1], 3)}", f"positive {num(logits[0], 3)}"]
        labels = [(sx(z), measure(t, strong=True)) for z, t in zip(logits[::-1], names, strict=True)]
        centres = plots.balance(labels, gutter, sheet.width - aside, 14)
        looks = (("muted", "limit"), ("best", "exact"))
        for centre, (x, _), text, (colour, look) in zip(centres, labels, names, looks, strict=True):
            sheet.text(centre, top, text, strong=True, colour=colour, anchor="middle")
            sheet.line([(centre, top + 5), (x, top + 18), (x, end)], look)
        for i, row in enumerate(rows):
            line, px = first + i * pitch, sx(start + row.unit) - sx(start)
            near = f" = {_plain(row.unit)}" if row.unit > 1e-3 else ""
            sheet.text(0, line - 3, row.form.name, size=TEXT, strong=True)
            sheet.text(0, line + 16, f"every {_power(round(log2(row.unit)))}{near}", colour="muted")
            sheet.line([(left, line), (right, line)], "zero")
            ks = range(ceil(start / row.unit), floor((middle + half) / row.unit) + 1)
            if px < _FINE:
                sheet.rect(left, line - 5, right - left, 10, "other")
            else:
                for k in ks:
                    sheet.line([(sx(k * row.unit), line - 5), (sx(k * row.unit), line + 5)], "tick")
            if i == 0:
                wordy = measure(_plain(row.high + row.unit)) + 18
                step = 2 ** max(0, ceil(log2(wordy / px)))
                for k in (k for k in ks if k % step == 0):
                    x, text = sx(k * row.unit), _plain(k * row.unit)
                    if gutter <= x - measure(text) / 2 and x + measure(text) / 2 <= sheet.width - aside:
                        sheet.text(x, line + 30, text, colour="muted", anchor="middle", halo=True)
            x = sx(row.low)
            sheet.polygon([(x - 7, line + 8), (x, line + 1), (x + 7, line + 8), (x, line + 15)], "negative-ringed")
            sheet.dot(sx(row.high), line - 8, 6, "best", ringed=True)
            verdict = f"both {_plain(row.high)}" if row.same else f"{_plain(row.apart)} apart"
            colour = "wrong" if row.same else "ink"
            sheet.text(sheet.width, line - 3, verdict, strong=True, colour=colour, anchor="end")
            is_, exact = (_ratio(exp(gap)) for gap in (row.apart, apart))
            odds = f"odds {exact}, as exact" if is_ == exact else f"odds {is_}, not {exact}"
            sheet.text(sheet.width, line + 16, odds, colour="muted", anchor="end")


def _plain(value: float) -> str:
    """A number with six digits that count and no zeros at its end."""
    digits = 6 if value < 1 else 5 if value < 10 else 4 if value < 100 else 3
    return num(value, digits).rstrip("0").rstrip(".")


def _ratio(odds: float) -> str:
    """Odds, to three digits after the point or to three that count."""
    return num(odds, 3) if odds < 10 else brief(odds)


def _power(exponent: int) -> str:
    """Return 2 to a power, as it is written: 2⁻²."""
    return "2" + str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
