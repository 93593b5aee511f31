"""Underflow: a token far below the rest, and its loss by log(softmax) and by log-softmax in four number formats."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, exp, floor, inf, log, log1p

from matplotlib.figure import Figure as Canvas

from losslab.figures._choice import Choice
from losslab.figures._numbers import num, plural
from losslab.figures._rounded import Rounded
from losslab.figures._rounded_loss import KINDS, Kind, bits_left, exact_loss, loss_of
from losslab.figures._sheet import BIG, TEXT, Sheet, linear, logarithmic, measure
from losslab.figures.base import Figure

# Stops that every format holds exactly: close together where one of them fails.
_RUNS = ((1, 20, 0.25), (20, 84, 1), (84, 106, 0.5), (106, 200, 2), (200, 700, 20), (700, 760, 4), (760, 801, 20))
GAPS = tuple(start + i * step for start, end, step in _RUNS for i in range(ceil((end - start) / step)))
OTHERS = (1, 10, 100, 1000, 10000, 100000)
TOKENS, _PLACE = 100, 62  # of the text, and where in it our token stands
_LIMIT = 2  # nats: room that is left beyond the last number
_LN2 = log(2)


@dataclass(frozen=True)
class _Outcome:
    """What the figure holds for its traits."""

    kind: Kind
    p: float
    wrong: float
    right: float
    exact: float
    bits: int
    is_: float
    should: float

    @property
    def off(self) -> bool:
        """Whether the two losses differ as far as a reader can see."""
        return _nats(self.wrong) != _nats(self.right)


class Underflow(Figure):
    """One token's loss in two orders: log(softmax), which forms its probability, and log-softmax, which does not.

    The right token's logit lies `gap` below those of `others` tokens, all equal. It stands in a text of 100 tokens.
    What is drawn is what PyTorch computes on a CPU: exponentials, sum and reciprocal in float32 (for float64 in
    float64), the probability rounded to the format and the log of it again. Log-softmax is likewise rounded once.

    Attributes
    ----------
    gap : float
        How far the logit lies below the rest, in nats: 1 to 800, one of `GAPS`, which every format holds exactly.
    others : int
        How many tokens compete: 1, 10, 100, 1,000, 10,000 or 100,000.
    format : str
        ``"float64"``, ``"float32"``, ``"bfloat16"`` or ``"float16"``.
    rest : float
        Mean loss of the other 99 tokens of the text, in nats: 0 to 20, in thousandths.

    Notes
    -----
    Subnormal numbers and rounding to nearest, ties to even: IEEE 754-2019, §3.3 and §4.3. Log-sum-exp shifted by its
    maximum, and its errors: Blanchard, Higham & Higham (2021), doi:10.1093/imanum/draa038.
    """

    NAME = "underflow"
    TITLE = "Underflow"

    gap = Choice(104.0, GAPS).tag(sync=True)
    others = Choice(1, OTHERS).tag(sync=True)
    format = Choice("float32", tuple(KINDS)).tag(sync=True)
    rest = Rounded(0.0, 0.0, 20.0, 3).tag(sync=True)

    def _outcome(self) -> _Outcome:
        gap, others, kind = float(self.gap), int(self.others), KINDS[str(self.format)]
        loss = loss_of(gap, others, kind)
        texts = [exp((one + (TOKENS - 1) * self.rest) / TOKENS) for one in (loss.wrong, loss.right)]
        exact = exact_loss(gap, others)
        return _Outcome(kind, loss.p, loss.wrong, loss.right, exact, bits_left(loss.p, kind), *texts)

    def describe(self) -> str:
        """Return in words what the figure now shows."""
        now = self._outcome()
        kind = now.kind
        rivals = f"{self.others:,} others" if self.others > 1 else "one other"
        if not now.p:
            kept = f"{kind.name} makes it 0, for its smallest number is {_power(kind.least)}"
        elif now.bits < kind.bits:
            kept = f"{kind.name} keeps {now.bits} of {kind.bits} bits of it"
        else:
            kept = f"{kind.name} keeps all {kind.bits} bits of it"
        wrong, right, is_, should = _nats(now.wrong), _nats(now.right), _confusion(now.is_), _confusion(now.should)
        gives = f"log(softmax) gives {wrong}" + (f" instead of {right}" if now.off else ", as it should")
        text = is_ if is_ == should else f"{is_} instead of {should}"
        start = f"A token {self.gap:g} below {rivals} has probability {_tiny(now.exact)}."
        return f"{start} {kept}: {gives}, and {TOKENS} tokens with it have perplexity {text}."

    def twin(self) -> Canvas:
        """Return the still twin of the current state."""
        now = self._outcome()
        kind = now.kind
        sheet = Sheet(height=766)
        far = _confusion(now.is_) != _confusion(now.should)
        keeps = f"all {kind.bits} bits"
        if not now.p:
            keeps = f"below half of {_power(kind.least)}"
        elif now.bits < kind.bits:
            keeps = f"{plural(now.bits, 'bit')} of {kind.bits} left"
        aims = [(_nats(now.right), now.off), (_confusion(now.should), far)]
        notes = [(f"should be {aim}", "right") if off else ("as it should be", "muted") for aim, off in aims]
        notes[1] = (f"of {TOKENS} tokens, {notes[1][0]}", notes[1][1])
        given = [
            ("Probability kept", _tiny(-log(now.p)) if now.p else "0", now.off, (keeps, "muted")),
            ("−log(softmax)", _nats(now.wrong), now.off, notes[0]),
            ("Perplexity", _confusion(now.is_), far, notes[1]),
        ]
        for i, (title, value, off, (note, colour)) in enumerate(given):
            x = i * sheet.width / 3
            sheet.text(x, 14, title, size=TEXT, strong=True)
            sheet.text(x, 51, value, size=BIG, strong=True, colour="wrong" if off else "ink")
            sheet.text(x, 74, note, colour=colour)
        below = self._drawn_orders(sheet, now, 112) + 40
        self._drawn_reach(sheet, now, below, sheet.width * 0.53)
        self._drawn_text(sheet, now, sheet.width * 0.58, below)
        return sheet.canvas

    def _drawn_orders(self, sheet: Sheet, now: _Outcome, y: float) -> float:
        """Draw both orders around the token, and the numbers that the format has there; return the y below."""
        reach, left, end = 14, 40.0, sheet.width - 6
        start = max(log(self.others + 1) - 0.5, min(now.exact - 0.7 * reach, _zero(now.kind) + _LIMIT - reach))
        stop = start + reach
        lane, bottom = y + 84, y + 294
        sx, sy = linear((start, stop), (left, end)), linear((start, stop), (bottom, lane + 20))
        sheet.text(0, y + 14, "One token’s loss in two orders (nats)", size=TEXT, strong=True)
        names = (("wrong", "log(softmax): the probability first"), ("right", "log-softmax: no probability is formed"))
        for i, (colour, name) in enumerate(names):
            sheet.line([(0, y + 31.5 + 20 * i), (28, y + 31.5 + 20 * i)], f"line-{colour}")
            sheet.text(36, y + 36 + 20 * i, name, colour=colour)
        sheet.line([(left, lane), (end, lane)], "limit")
        sheet.text(left - 8, lane + 5, "∞", size=TEXT, strong=True, colour="muted", anchor="end")
        for tick in range(ceil(start), ceil(start) + reach):
            if tick % 2 == 0 and left + 6 < sx(tick) < end - 10:
                sheet.line([(left, sy(tick)), (end, sy(tick))], "grid")
                sheet.text(left - 8, sy(tick) + 4.5, str(tick), colour="muted", anchor="end")
                sheet.text(sx(tick), bottom + 20, str(tick), colour="muted", anchor="middle")
        sheet.line([(left, bottom), (end, bottom)], "zero")
        here = sx(min(now.exact, stop))
        sheet.line([(here, lane), (here, bottom)], "here-line")
        self._drawn_lines(sheet, now, (start, stop), sx, sy, lane)
        if now.off and now.p:
            sheet.line([(here, sy(now.wrong)), (here, sy(now.right))], "gap")
        if now.exact <= stop:
            sheet.circle(here, sy(now.right), 7, "right-outline")
        else:
            beyond = f"now {_nats(now.right)}, beyond →"
            sheet.text(end - 4, bottom - 10, beyond, strong=True, colour="right", anchor="end", halo=True)
        colour = "wrong" if now.off else "ink"
        sheet.dot(here, sy(now.wrong) if now.p else lane, 6 if now.off else 4, colour, ringed=True)
        sheet.text(0, bottom + 42, f"The numbers that {now.kind.name} has there", strong=True)
        sheet.text(end, bottom + 42, "exact −ln p (nats)", colour="muted", anchor="end")
        return self._drawn_ladder(sheet, now, bottom + 52, (left, end), (start, stop))

    def _drawn_lines(
        self,
        sheet: Sheet,
        now: _Outcome,
        span: tuple[float, float],
        sx: Callable[[float], float],
        sy: Callable[[float], float],
        lane: float,
    ) -> None:
        """Draw the loss by both orders, against what it is."""
        others, (start, stop) = int(self.others), span
        stairs, smooth = [], []
        fell = None
        pieces = round((sx(stop) - sx(start)) / 1.5)
        for i in range(pieces + 1):
            x = start + (stop - start) * i / pieces
            if x < log(others + 1):
                continue
            one = loss_of(max(0.0, x + log1p(-exp(-x)) - log(others)), others, now.kind)
            if one.p:
                stairs.append((sx(x), sy(one.wrong)))
            elif fell is None:
                fell = sx(x)
            smooth.append((sx(x), sy(one.right)))
        if fell is not None:
            stairs += [(stairs[-1][0] if stairs else fell, lane), (sx(stop), lane)]
        sheet.line(stairs, "line-wrong")
        sheet.line(smooth, "line-right")

    def _drawn_ladder(
        self, sheet: Sheet, now: _Outcome, y: float, place: tuple[float, float], span: tuple[float, float]
    ) -> float:
        """Draw the format's numbers: too close to be told apart, then one by one, then none; return the y below."""
        (left, end), (start, stop), kind, high = place, span, now.kind, 22
        sx, scale = linear(span, place), (end - left) / (stop - start)
        last, zero = -kind.least * _LN2, _zero(kind)

        def within(x: float) -> float:
            return min(end, max(left, sx(x)))

        for a, b, look in ((-kind.low * _LN2, zero, "band"), (start, -kind.low * _LN2, "bar-good")):
            sheet.rect(within(a), y, within(b) - within(a), high, look)
        for k in range(floor(scale / 3.5), 0, -1):
            at = sx(last - log(k))
            if left <= at <= end:
                sheet.line([(at, y), (at, y + high)], "tick")
        sheet.rect(within(zero), y, end - within(zero), high, "ghost-solid-hatched")
        sheet.line([(left, y + high), (within(zero), y + high)], "zero")
        kept = -log(now.p) if now.p else min(max(now.exact, zero + 10 / scale), stop - 10 / scale)
        if now.exact <= stop:
            sheet.line([(sx(now.exact), y - 6), (sx(now.exact), y + high + 6)], "line-right")
        sheet.dot(sx(kept), y + high / 2, 6, "wrong" if now.off else "ink", ringed=True)
        row = y + high + 19
        sheet.text(left - 8, row, "bits", colour="muted", anchor="end")
        every = ceil(22 / (scale * _LN2))
        for e in range(kind.least, 1, every):
            x, n = sx(-(e + 0.5) * _LN2), min(kind.bits, e - kind.least + 1)
            if x < left + 8:
                break
            if x <= end - 8:
                sheet.text(x, row, str(n), colour="ink" if n < kind.bits else "muted", anchor="middle")
        if end - within(zero) >= 56:
            sheet.text(end, row, "becomes 0", strong=True, colour="wrong", anchor="end")
        return row + 6

    def _drawn_reach(self, sheet: Sheet, now: _Outcome, y: float, breadth: float) -> None:
        """Draw how far down each format goes, and what it makes of the token."""
        sx, first, pitch = logarithmic((1, 1000), (74, breadth - 66)), y + 58, 32
        sheet.text(0, y + 14, "log(softmax) here in every format", size=TEXT, strong=True)
        at = 0.0
        for text, look in (("all bits", "bar-good"), ("fewer", "band"), ("0, loss ∞", "ghost-solid-hatched")):
            sheet.rect(at + 0.5, y + 27.5, 13, 11, look)
            sheet.text(at + 20, y + 38, text, colour="muted")
            at += 20 + measure(text) + 16
        for i, kind in enumerate(KINDS.values()):
            top, loss, mine = first + pitch * i, loss_of(float(self.gap), int(self.others), kind), kind is now.kind
            sheet.text(0, top + 12, kind.name, strong=mine, colour="ink" if mine else "muted")
            ends = (1.0, -kind.low * _LN2, _zero(kind), 1000.0)
            for a, b, look in zip(ends, ends[1:], ("bar-good", "band", "ghost-solid-hatched"), strict=False):
                sheet.rect(sx(a), top, sx(b) - sx(a), 14, look)
            off = _nats(loss.wrong) != _nats(loss.right)
            colour = "wrong" if off else "ink" if mine else "muted"
            sheet.text(breadth, top + 12, _nats(loss.wrong), strong=mine, colour=colour, anchor="end")
        below, here = first + 4 * pitch - 12, min(breadth - 66, sx(now.exact))
        for look in ("frame-halo", "frame"):
            sheet.line([(here, first - 8), (here, below)], look)
        for tick in (1, 10, 100, 1000):
            sheet.text(sx(tick), below + 20, f"{tick:,}", colour="muted", anchor="middle")
        sheet.text(breadth - 66, below + 40, "exact −ln p (log scale)", colour="muted", anchor="end")

    def _drawn_text(self, sheet: Sheet, now: _Outcome, x: float, y: float) -> None:
        """Draw the text that the token stands in, and what it makes of the two losses."""
        columns = 20
        pitch = min(17.0, (sheet.width - x) / columns)
        side = pitch - 3
        sheet.text(x, y + 14, f"A text of {TOKENS} tokens", size=TEXT, strong=True)
        cells = [(x + (i % columns) * pitch, y + 30 + (i // columns) * pitch, side, side) for i in range(TOKENS)]
        cx, cy, *_ = cells.pop(_PLACE)
        sheet.boxes(cells, "track")
        sheet.rect(cx - 1.5, cy - 1.5, side + 3, side + 3, "wrong" if now.off else "query")
        below = y + 50 + 5 * pitch
        is_ = ("is", now.wrong, now.is_, "wrong" if now.off else "ink")
        for i, (name, loss, value, colour) in enumerate((is_, ("should be", now.right, now.should, "right"))):
            line = below + 44 * i
            mean = f"({_nats(loss)} + {TOKENS - 1} × {num(self.rest, 2)})/{TOKENS}"
            sheet.text(x, line, name, colour=colour)
            sheet.text(x + 68, line, f"mean {mean}", colour=colour)
            sheet.text(x + 68, line + 19, f"perplexity {_confusion(value)}", strong=True, colour=colour)


def _zero(kind: Kind) -> float:
    """−ln p from which on a probability becomes 0: half of the smallest number."""
    return (1 - kind.least) * _LN2


def _nats(loss: float) -> str:
    return "∞" if loss == inf else num(loss, 3)


def _confusion(value: float) -> str:
    """A perplexity with three digits after the point, or one where it is large."""
    return "∞" if value == inf else num(value, 3 if value < 999.95 else 1)


def _tiny(loss: float) -> str:
    """exp(−loss) as 0.269 or 1.4e−45, also where no double holds it."""
    if loss < 6.9:
        return num(exp(-loss), 3)
    ten = -loss / log(10)
    power = floor(ten)
    digits = num(10 ** (ten - power), 1)
    if digits == "10.0":
        digits, power = "1.0", power + 1
    return f"{digits}e{num(power, 0)}"


def _power(exponent: int) -> str:
    """Return 2 to a power, as it is written: 2⁻²."""
    return "2" + str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
