"""Averaging: the same token losses of the same texts, and what four averages make of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil, exp, floor, fsum, log, log10
from typing import Any

import traitlets
from matplotlib.figure import Figure as Canvas

from losslab.figures._averages import ORDERS, orders_of, perplexity_of, weights_of
from losslab.figures._choice import Choice
from losslab.figures._numbers import num, percent, plural
from losslab.figures._sheet import BIG, TEXT, Sheet, fit, linear, measure
from losslab.figures.base import Figure, Table, Whole

AVERAGES = {
    "tokens": "every token once",
    "batches": "mean of batch means",
    "texts": "mean of text means",
    "perplexities": "mean of text perplexities",
}
_LETTERS = "ABCDEFGHIJKL"
_DATA = ("names", "tokens", "means")
_MOST = 20  # nats: no vocabulary is as large as e to this


@dataclass(frozen=True)
class _Outcome:
    """What the figure holds for its traits."""

    order: list[int]
    weights: list[float]
    shares: list[float]
    values: dict[str, float]
    value: float
    right: float

    @property
    def off(self) -> bool:
        """Whether the perplexity differs from the right one as far as a reader can see."""
        return _confusion(self.value) != _confusion(self.right)

    @property
    def far(self) -> float:
        """How far off the perplexity is, as a share of the right one."""
        return self.value / self.right - 1

    def times(self, i: int) -> float:
        """How many times the weight of text i is what its tokens give it."""
        return self.weights[i] / self.shares[i]

    @property
    def most(self) -> int:
        """The text that is heaviest for its tokens, the first of equals."""
        best = 0
        for i in range(len(self.weights)):
            if self.times(i) > self.times(best) + 1e-9:
                best = i
        return best


class Averaging(Figure):
    """Texts as bars, whose width is the weight that an average gives them, and the perplexity that comes out.

    The right perplexity counts every token once: exp(sum of all token losses / number of tokens). The mean of batch
    means gives every batch the same weight, as gradient accumulation does where each micro-batch takes its own mean.

    Attributes
    ----------
    names : list of str, shape (N,)
        The texts, 3 to 12.
    tokens : list of int, shape (N,)
        How many tokens of each were scored, 1 or more.
    means : list of float, shape (N,)
        Mean loss of these tokens in nats, 0 to 20; kept with six digits.
    average : str
        ``"tokens"`` (right), ``"batches"`` (mean of batch means), ``"texts"`` (mean of text means) or
        ``"perplexities"`` (mean of text perplexities).
    batch : int
        Texts a batch, 1 to N; the last batch may hold fewer.
    seed : int
        Order of the texts, 0 to 20: 0 as given, else a shuffle of its own.

    Parameters
    ----------
    nll : list of lists of float, arrays or tensors, shape (N, any)
        Instead of `tokens` and `means`: the loss of every scored token in nats, a list a text.

    Raises
    ------
    TypeError
        If names or losses are missing, or losses are given twice.
    FigureError
        If lists disagree, a text has no token, or a trait is none that is offered.
    """

    NAME = "averaging"
    TITLE = "Averaging"

    names = traitlets.List(traitlets.Unicode()).tag(sync=True)
    tokens = Table(whole=True).tag(sync=True)
    means = Table().tag(sync=True)
    average = Choice("batches", tuple(AVERAGES)).tag(sync=True)
    batch = Whole(2, 1, len(_LETTERS)).tag(sync=True)
    seed = Whole(0, 0, ORDERS - 1).tag(sync=True)

    def __init__(self, *, nll: Sequence[Any] | None = None, **traits: Any) -> None:  # noqa: ANN401  # checked one by one
        if nll is not None:
            if twice := [name for name in ("tokens", "means") if name in traits]:
                raise TypeError(f"Averaging takes nll or tokens and means, not nll and {' and '.join(twice)}")
            rows = []
            for i, losses in enumerate(nll):
                table = Table()
                table.name = f"nll[{i}]"
                row = table.validate(self, losses)
                if not row:
                    self._refuse(f"nll[{i}] has no token; leave out texts of which nothing was scored")
                if min(row) < 0:
                    self._refuse(f"nll[{i}] must be losses of 0 or more, not {min(row)}")
                rows.append(row)
            traits |= {"tokens": [len(row) for row in rows], "means": [fsum(row) / len(row) for row in rows]}
        self._need(traits, *_DATA)
        table = Table()
        table.name = "means"
        traits["means"] = [round(mean, 6) for mean in table.validate(self, traits["means"])]
        traits["names"] = list(traits["names"])
        super().__init__(**traits)
        self._seal()

    @traitlets.validate(*_DATA, "batch")
    def _agree(self, proposal: dict[str, Any]) -> object:
        name, value = proposal["trait"].name, proposal["value"]
        if name in _DATA:
            self._keep(name, value)
        names, tokens, means = (value if key == name else getattr(self, key) for key in _DATA)
        n = len(tokens)
        if not len(names) == len(means) == n or not 3 <= n <= len(_LETTERS):
            counted = f"names {len(names)}, tokens {n}, means {len(means)}"
            self._refuse(f"names, tokens and means must hold one entry for each of 3 to 12 texts, not {counted}")
        if not all(text.strip() for text in names):
            self._refuse("names must name every text, not leave one empty")
        if min(tokens) < 1:
            self._refuse("tokens must be 1 or more; leave out texts of which nothing was scored")
        if strange := [mean for mean in means if not 0 <= mean <= _MOST]:
            self._refuse(f"means must be from 0 to {_MOST} nats, not {strange[0]}")
        batch = value if name == "batch" else self.batch
        if batch > n:
            self._refuse(f"batch must be an int from 1 to {n}, the number of texts, not {batch}")
        return value

    @cached_property
    def _orders(self) -> list[list[int]]:
        return orders_of(len(self.tokens))

    def _value(self, average: str, batch: int, seed: int) -> float:
        return perplexity_of(average, self.means, weights_of(average, self.tokens, self._orders[seed], batch))

    @cached_property
    def _spans(self) -> list[tuple[float, float]]:
        """The least and the greatest mean of batch means over all orders, for every batch size."""
        sizes = range(1, len(self.tokens) + 1)
        all_values = [[self._value("batches", size, seed) for seed in range(ORDERS)] for size in sizes]
        return [(min(values), max(values)) for values in all_values]

    def _outcome(self) -> _Outcome:
        average, order = str(self.average), self._orders[self.seed]
        values = {one: self._value(one, self.batch, self.seed) for one in AVERAGES}
        weights, shares = (weights_of(one, self.tokens, order, self.batch) for one in (average, "tokens"))
        return _Outcome(order, weights, shares, values, values[average], values["tokens"])

    def describe(self) -> str:
        """Return in words what the figure now shows."""
        now, average, total = self._outcome(), str(self.average), f"{sum(self.tokens):,}"
        value, right = _confusion(now.value), _confusion(now.right)
        if average == "tokens":
            start = f"Every token once: the perplexity of all {total} tokens is {value}"
            return f"{start}, in whatever batches and order they come."
        how = f", {plural(self.batch, 'text')} a batch, order {_placed(self.seed)}" if average == "batches" else ""
        start = f"{AVERAGES[average].capitalize()}{how}: perplexity {value}"
        verdict = f"{start}, as over all {total} tokens."
        if now.off:
            way = f"{_share(now.far)} too {'high' if now.far > 0 else 'low'}"
            verdict = f"{start}, {way}; over all {total} tokens it is {right}."
        most = now.most
        if now.times(most) < 1.005:
            return verdict
        tokens, weight = _portion(now.shares[most]), _portion(now.weights[most])
        return f"{verdict} {self.names[most]} has {tokens} of the tokens and {weight} of the weight."

    def twin(self) -> Canvas:
        """Return the still twin of the current state."""
        now = self._outcome()
        most, off = now.most, "wrong" if now.off else "ink"
        heavy = now.times(most) >= 1.005
        bars = floor(760 * 0.58)
        listed = 112 + 62 + 23 * (len(self.names) - 1) + 6
        below = max(112 + 66 + 116 + 56 + 46 + 116 + 22, listed) + 30
        sheet = Sheet(height=below + 66 + 90 + 66 + 6)
        aim, ratio = _confusion(now.right), now.times(most)
        size = f"{num(ratio, 2 if ratio < 9.95 else 1)}×"
        loads = f"{_portion(now.shares[most])} of tokens, {_portion(now.weights[most])} of weight"
        sign = ("+" if now.far > 0 else "−") if now.off else ""
        given = [
            ("Perplexity", _confusion(now.value), off, f"should be {aim}" if now.off else "as it should be"),
            ("Off by", f"{sign}{_share(now.far)}" if now.off else "0%", off, "same model, same tokens"),
            (f"Heaviest for its size: {_LETTERS[most]}", size, "wrong", loads)
            if heavy
            else ("Heaviest for its size", "none", "ink", "each weighs what it should"),
        ]
        for i, (title, value, colour, note) in enumerate(given):
            x = i * sheet.width / 3
            sheet.text(x, 14, title, size=TEXT, strong=True)
            sheet.text(x, 51, value, size=BIG, strong=True, colour=colour)
            sheet.text(x, 74, note, colour="right" if i == 0 and now.off else "muted")
        self._drawn_bars(sheet, now, 112, bars)
        self._drawn_texts(sheet, now, floor(760 * 0.63), 112)
        self._drawn_averages(sheet, now, below)
        return sheet.canvas

    def _drawn_bars(self, sheet: Sheet, now: _Outcome, y: float, breadth: float) -> None:
        """Draw the texts as the average weighs them, and below as their tokens do."""
        average, batch, n = str(self.average), self.batch, len(self.tokens)
        left, end, high = 34.0, breadth - 58, 116
        batches = ceil(n / batch)
        grouped = average == "batches" and batch < n
        raw = average == "perplexities"

        def places(widths: Sequence[float], apart: float) -> dict[int, tuple[float, float]]:
            room, x, at = end - left - apart * (batches - 1), left, {}
            for place, i in enumerate(now.order):
                x += apart if place and place % batch == 0 else 0
                at[i] = (x, widths[i] * room)
                x += widths[i] * room
            return at

        above, below = places(now.weights, 6 if grouped else 0), places(now.shares, 0)
        base, foot = y + 66 + high, y + 66 + high + 102 + high
        sheet.text(0, y + 14, f"As it is: {AVERAGES[average]}", size=TEXT, strong=True)
        note = "↑ perplexity of a text, → weight" if raw else "↑ mean loss (nats), → weight"
        sheet.text(0, y + 34, note, colour="muted")
        sheet.text(0, foot - high - 30, "As it should be: every token once", size=TEXT, strong=True)
        sheet.text(0, foot - high - 11, "↑ mean loss (nats), → tokens", colour="muted")
        heavy = [now.times(i) > 1.02 for i in range(n)]
        for i in now.order:
            (a, wide), (b, broad), from_, to = above[i], below[i], base + 22, foot - high - 50
            right = a + 0.5 + max(0.5, wide - 1)
            ribbon = [(a + 0.5, from_), (right, from_), (b + broad - 0.5, to), (b + 0.5, to)]
            sheet.polygon(ribbon, "band" if heavy[i] else "track")
        heights: list[tuple[float, dict[int, tuple[float, float]], Callable[[float], float]]] = [
            (base, above, exp if raw else float),
            (foot, below, float),
        ]
        for k, (ground, at, of) in enumerate(heights):
            top = of(max(self.means)) * 1.04 or 1.0
            sy = linear((0, top), (ground, ground - high))
            sheet.levels(sy, _ticks_to(top), left, end, lambda t: f"{t:g}")
            for i in now.order:
                x, width = at[i]
                tall = of(self.means[i]) * (high / top)
                look = "heavier" if heavy[i] and k == 0 else "other"
                sheet.rect(x + 0.5, ground - tall, max(0.5, width - 1), tall, look)
                if width >= measure(_LETTERS[i]) + 3:
                    colour = "wrong" if look == "heavier" else "muted"
                    at_x = x + width / 2
                    sheet.text(at_x, ground + 16, _LETTERS[i], strong=colour == "wrong", colour=colour, anchor="middle")
            self._drawn_means(sheet, now, (left, end), ground, high, sy, first=k == 0, raw=raw and k == 0)
        if grouped:
            for k in range(batches):
                texts = now.order[k * batch : (k + 1) * batch]
                a, (b, width), line = above[texts[0]][0], above[texts[-1]], base - high - 6
                corners = [(a + 1, line + 5), (a + 1, line), (b + width - 1, line), (b + width - 1, line + 5)]
                sheet.line(corners, "whisker-muted")
                if b + width - a > measure(name := f"1/{batches}") + 4:
                    sheet.text((a + b + width) / 2, line - 5, name, colour="muted", anchor="middle")

    def _drawn_means(
        self,
        sheet: Sheet,
        now: _Outcome,
        span: tuple[float, float],
        ground: float,
        high: float,
        sy: Callable[[float], float],
        *,
        first: bool,
        raw: bool,
    ) -> None:
        """Draw the mean that should be, and over the upper bars the one that is."""
        left, end = span
        lines = [("right", now.right, "should")]
        if first and now.off:
            lines.append(("wrong", now.value, "is"))
        levels = [value if raw else log(value) for _, value, _ in lines]
        ys = [sy(level) for level in levels]
        for i, (colour, _, word) in enumerate(lines):
            sheet.line([(left, ys[i]), (end, ys[i])], f"line-{colour}")
            push = 0.0
            if len(ys) > 1 and abs(ys[0] - ys[1]) < 34:
                push = (17 - abs(ys[0] - ys[1]) / 2) * (1 if ys[i] > ys[1 - i] else -1)
            line = max(ground - high + 2, min(ground - 18, ys[i] + push))
            sheet.text(end + 6, line - 2, word if len(lines) > 1 else "mean", colour=colour)
            shown = _confusion(levels[i]) if raw else num(levels[i], 3)
            sheet.text(end + 6, line + 13, shown, strong=True, colour=colour)

    def _drawn_texts(self, sheet: Sheet, now: _Outcome, x: float, y: float) -> None:
        """Draw every text with its tokens, its weight, and the weight that it should have."""
        breadth = sheet.width - x
        ends = [x + breadth - 128, x + breadth - 66, x + breadth]
        sheet.text(x, y + 14, "The texts", size=TEXT, strong=True)
        for end, head in zip(ends, ("tokens", "weight", "should"), strict=True):
            sheet.text(end, y + 38, head, colour="right" if head == "should" else "muted", anchor="end")
        for i, name in enumerate(self.names):
            row, heavy = y + 62 + 23 * i, now.times(i) > 1.02
            colour = "wrong" if heavy else "ink"
            sheet.text(x, row, _LETTERS[i], strong=True, colour=colour)
            sheet.text(x + 18, row, fit(name, breadth - 154 - measure("10,000")))
            sheet.text(ends[0], row, f"{self.tokens[i]:,}", colour="muted", anchor="end")
            sheet.text(ends[1], row, _portion(now.weights[i]), strong=True, colour=colour, anchor="end")
            sheet.text(ends[2], row, _portion(now.shares[i]), colour="right", anchor="end")

    def _drawn_averages(self, sheet: Sheet, now: _Outcome, y: float) -> None:
        """Draw all averages on one axis of perplexity."""
        fixed = [now.right, now.values["texts"], now.values["perplexities"]]
        spanned = [*fixed, *(value for span in self._spans for value in span)]
        low, high = min(spanned), max(spanned)
        pad = (high - low) * 0.06 or 0.05 * now.right
        left, end, pitch, first = 190.0, sheet.width - 76, 30, y + 66
        sx, last = linear((low - pad, high + pad), (left, end)), first + 90
        sheet.text(0, y + 14, "Perplexity by every average", size=TEXT, strong=True)
        sheet.line([(sx(now.right), y + 48), (sx(now.right), last + 14)], "line-right")
        label = f"should be {_confusion(now.right)}"
        half = measure(label) / 2
        middle = min(sheet.width - half, max(half, sx(now.right)))
        sheet.text(middle, y + 42, label, colour="right", anchor="middle")
        for i, (key, name) in enumerate(AVERAGES.items()):
            line, value, mine = first + pitch * i, now.values[key], key == self.average
            off = _confusion(value) != _confusion(now.right)
            sheet.text(0, line + 4.5, name, strong=mine, colour="ink" if mine else "muted")
            sheet.line([(left, line), (end, line)], "grid")
            if key == "batches":
                a, b = (sx(one) for one in self._spans[self.batch - 1])
                sheet.line(
                    [(a, line - 5), (a, line + 5), (a, line), (b, line), (b, line - 5), (b, line + 5)], "whisker-wrong"
                )
            if off:
                sheet.dot(sx(value), line, 7 if mine else 5, "wrong", ringed=True)
            else:
                sheet.circle(sx(value), line, 7 if mine else 5, "right-outline")
            colour = "wrong" if off else "right"
            sheet.text(sheet.width, line + 4.5, _confusion(value), strong=mine, colour=colour, anchor="end")
        foot, step = last + 20, _ticks_to(high - low + 2 * pad)[1]
        sheet.line([(left, foot), (end, foot)], "zero")
        tick = ceil((low - pad) / step)
        while tick * step <= high + pad:
            sheet.line([(sx(tick * step), foot), (sx(tick * step), foot + 5)], "tick")
            sheet.text(sx(tick * step), foot + 21, f"{tick * step:.6g}", colour="muted", anchor="middle")
            tick += 1
        sheet.text(end, foot + 42, "perplexity (bar: the batch means over 21 orders)", colour="muted", anchor="end")


def _confusion(value: float) -> str:
    """A perplexity with about four digits that count."""
    return num(value, 3 if value < 99.95 else 1 if value < 9999.5 else 0)


def _portion(share: float) -> str:
    return percent(share, 1 if share < 0.9995 else 0)


def _share(far: float) -> str:
    return percent(abs(far), 2 if abs(far) < 0.0995 else 1)


def _placed(seed: int) -> str:
    return f"shuffle {seed}" if seed else "as given"


def _ticks_to(top: float) -> list[float]:
    """Ticks from 0 to at most `top`, three to six of them."""
    ten = 10.0 ** floor(log10(top))
    step = next(s * ten for s in (0.1, 0.2, 0.5, 1, 2) if top / (s * ten) <= 5.2)
    return [float(f"{i * step:.6g}") for i in range(floor(top / step + 1e-9) + 1)]
