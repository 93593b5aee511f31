"""A padded batch of texts: what is summed, what is counted, and the perplexity that comes of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil, floor, log
from typing import Any

import numpy as np
import traitlets
from matplotlib.figure import Figure as Canvas

from losslab.figures._amounts import RAISED, amount, power, wrapped
from losslab.figures._batches import MASKS, SHIFTS, Batch, Cell, score
from losslab.figures._choice import Choice
from losslab.figures._numbers import fixed, listed, num, plural
from losslab.figures._sheet import BIG, TEXT, Sheet, linear, measure
from losslab.figures.base import Figure, FigureError, Table, Whole

WIDEST = 24  # columns that a phone has room for
_DATA = ("texts", "right", "left")
_BARS, _TILE, _BELOW, _GAP, _GUTTER, _TOP = 52, 28, 17, 3, 84, 54


class TokenBatch(Figure):
    """A batch of a few short texts, padded: which predictions a perplexity sums, and which it counts.

    Nothing is computed here but sums: the caller measures a model and hands over what each label costs at each place.
    A prediction is right to score where its logits and its label belong to neighbouring real tokens, so a text of T
    tokens has T − 1 of them, alone or in any batch. `from_model` fills the tables from a model that scores a batch.

    Texts padded on the right are measured at the widest batch alone, since a causal model never sees what comes later.
    Texts padded on the left are measured at every width, since a model may read the padding before a text; if it
    does, real tokens cost something else there, and the figure says so. Where padding is masked for the model too,
    `left` just repeats what `right` has, behind the padding.

    Attributes
    ----------
    texts : list of str, R of them
        Two to four, one character a token, at least three tokens each; the longest has three more than the shortest
        or more (so that no switch is idle), and with what is added no more than 24.
    right : list, shape (3, R, W)
        Padded on the right to the widest batch, W: cost in nats of the label at place q under the logits at place
        q − s, for s = 0, 1 and 2. Where q < s no logits come before, and whatever stands there is not used.
    left : list, shape (E, 3, R, longest + e)
        The same padded on the left, for each number e of added columns, 0 to E − 1.
    extra : int
        Columns added to the longest text, as if somebody else's text were longer; 0 to E − 1. At first the most.
    side : str
        Where the padding is: ``"right"`` or ``"left"``.
    shift : str
        ``"once"`` (logits meet the next token), ``"none"`` (the token that they have read) or ``"twice"``.
    mask : str
        What it asks of a prediction: ``"both"``, logits and label of real tokens; ``"labels"``, a real label;
        ``"wrong"``, both by a mask made for padding on the other side.
    numerator, denominator : bool
        Whether what the mask stops is summed all the same, and whether it is counted.
    row, place : int
        The chosen cell: a text, and a place in its row, from 1.

    Raises
    ------
    TypeError
        If texts or a table are missing.
    FigureError
        If texts and tables disagree, or a trait is none that is offered.
    """

    NAME = "token_batch"
    TITLE = "What a perplexity counts"

    texts = traitlets.List(traitlets.Unicode()).tag(sync=True)
    right = Table(3).tag(sync=True)
    left = Table(4).tag(sync=True)
    extra = Whole(0, 0, WIDEST).tag(sync=True)
    side = Choice("right", ("right", "left")).tag(sync=True)
    shift = Choice("once", SHIFTS).tag(sync=True)
    mask = Choice("both", MASKS).tag(sync=True)
    numerator = traitlets.Bool(False).tag(sync=True)
    denominator = traitlets.Bool(True).tag(sync=True)
    row = Whole(1, 1, 4).tag(sync=True)
    place = Whole(4, 1, WIDEST).tag(sync=True)

    def __init__(self, **traits: Any) -> None:  # noqa: ANN401  # checked one by one
        self._need(traits, *_DATA)
        for name, depth in (("right", 3), ("left", 4)):
            table = Table(depth)
            table.name = name
            traits[name] = _rounded(table.validate(self, traits[name]))
        traits.setdefault("extra", max(0, len(traits["left"]) - 1))
        super().__init__(**traits)
        self._seal()

    @classmethod
    def from_model(
        cls,
        texts: Sequence[str],
        log_probs: Callable[[list[list[int]]], Any],
        *,
        pad: int,
        ids: Sequence[Sequence[int]] | None = None,
        most: int = 6,
        **traits: Any,  # noqa: ANN401  # of any figure
    ) -> TokenBatch:
        """Measure a model on the batch at every width and side of padding.

        Parameters
        ----------
        texts : sequence of str
            As the trait.
        log_probs : callable
            Takes token numbers, R lists of W, and returns natural logarithms of the probabilities that the model gives
            to each token of its vocabulary next, shape (R, W, V); as a NumPy array or what turns into one.
        pad : int
            The token to pad with; it needs a place in the vocabulary.
        ids : sequence of sequences of int, optional
            The texts' tokens; by default their bytes in UTF-8.
        most : int
            Columns to add at most.
        **traits
            Others of this figure.
        """
        rows = [list(text.encode()) if ids is None else [int(i) for i in ids[r]] for r, text in enumerate(texts)]
        for text, tokens in zip(texts, rows, strict=True):
            if len(tokens) != len(text):
                raise FigureError(
                    f"{cls.__name__}: {text!r} must have one token a character, not {len(tokens)} of {len(text)}"
                )
        longest = max(map(len, rows))

        def costs(side: str, width: int) -> np.ndarray:
            fill = [[pad] * (width - len(tokens)) for tokens in rows]
            batch = [a + b if side == "right" else b + a for a, b in zip(rows, fill, strict=True)]
            given = np.asarray(log_probs(batch), dtype=np.float64)
            if given.ndim != 3 or given.shape[:2] != (len(rows), width):
                expected = f"({len(rows)}, {width}, V)"
                raise FigureError(f"{cls.__name__}: log_probs must return shape {expected}, not {given.shape}")
            table = np.zeros((3, len(rows), width))
            for r, row in enumerate(batch):
                for s in range(3):
                    table[s, r, s:] = [-given[r, q - s, row[q]] for q in range(s, width)]
            if not np.isfinite(table).all() or table.min() < -1e-6:
                off = table[~(np.isfinite(table) & (table >= -1e-6))][0]
                raise FigureError(f"{cls.__name__}: log_probs must be finite and at most 0, not {-off}")
            return np.maximum(table, 0.0)

        right = costs("right", longest + most)
        left = [costs("left", longest + e) for e in range(most + 1)]
        return cls(texts=list(texts), right=right, left=left, **traits)

    @traitlets.validate(*_DATA, "extra", "row", "place")
    def _agree(self, proposal: dict[str, Any]) -> object:
        name, value = proposal["trait"].name, proposal["value"]
        if name in _DATA:
            self._keep(name, value)
        texts, right, left, extra, row = (
            value if key == name else getattr(self, key) for key in ("texts", "right", "left", "extra", "row")
        )
        if not 2 <= len(texts) <= 4:
            self._refuse(f"texts must be two to four, not {len(texts)}")
        if strange := [text for text in texts if not text.isprintable()]:
            self._refuse(f"texts must be printable characters, one a token, not {strange[0]!r}")
        lengths = [len(text) for text in texts]
        longest, shortest = max(lengths), min(lengths)
        if shortest < 3 or longest - shortest < 3:
            self._refuse(
                f"texts must be of 3 tokens or more, the longest at least 3 more than the shortest, not {lengths}"
            )
        if not left or longest + len(left) - 1 > WIDEST:
            self._refuse(
                f"left must hold one table for each of 1 to {WIDEST + 1 - longest} numbers of added columns, so that"
                f" no batch is wider than {WIDEST}, not {len(left)}"
            )
        widest = longest + len(left) - 1
        self._check("right", right, len(texts), widest)
        for e, table in enumerate(left):
            self._check(f"left[{e}]", table, len(texts), longest + e)
        if extra >= len(left):
            self._refuse(f"extra must be from 0 to {len(left) - 1}, not {extra}")
        if row > len(texts):
            self._refuse(f"row must be from 1 to {len(texts)}, not {row}")
        return value

    def _check(self, name: str, table: list[list[list[float]]], rows: int, width: int) -> None:
        """Refuse a table of another shape, or with costs below 0."""
        shape = (len(table), {len(one) for one in table}, {len(row) for one in table for row in one})
        if shape != (3, {rows}, {width}):
            self._refuse(f"{name} must have shape (3, {rows}, {width}): shifts, texts, places")
        if below := [v for one in table for row in one for v in row if v < 0]:
            self._refuse(f"{name} must be costs in nats of 0 or more, not {below[0]}")

    def _score(self, extra: int) -> Batch:
        s = SHIFTS.index(str(self.shift))
        return score(
            self.texts,
            (self.right if self.side == "right" else self.left[extra])[s],
            self.right[1],
            self._width(extra),
            side=str(self.side),
            shift=str(self.shift),
            mask=str(self.mask),
            numerator=self.numerator,
            denominator=self.denominator,
        )

    def _width(self, extra: int) -> int:
        return max(len(text) for text in self.texts) + extra

    def _reads(self) -> bool:
        """Whether the model reads padding on the left: real tokens cost something else behind it."""
        if self.side == "right":
            return False
        s, width = SHIFTS.index(str(self.shift)), self._width(self.extra)
        return any(
            abs(self.left[self.extra][s][r][width - len(text) + t] - self.right[s][r][t]) > 5e-5
            for r, text in enumerate(self.texts)
            for t in range(s, len(text))
        )

    def _mistakes(self) -> list[str]:
        """Return what is wrong with the way that the batch is scored."""
        both, found = self.numerator and self.denominator, []
        if self.shift != "once":
            found.append("no shift" if self.shift == "none" else "a second shift")
        if not both and self.mask == "wrong":
            found.append(f"a mask for padding on the {self._other()}")
        if not both and self.mask == "labels" and self.side == "left" and self.shift != "none":
            found.append("a mask of the label alone")
        if self.numerator or self.denominator:
            one = "the numerator only" if self.numerator else "the denominator only"
            found.append(f"pads in {'numerator and denominator' if both else one}")
        if self._reads():
            found.append("a model that reads the pads")
        return found

    def _other(self) -> str:
        return "left" if self.side == "right" else "right"

    def describe(self) -> str:
        """Return in words what the figure now shows."""
        batch, found = self._score(self.extra), self._mistakes()
        now, right = amount(power(batch.mean)), amount(power(batch.right_mean))
        if not found:
            return (
                f"Padded on the {self.side} to {batch.width} tokens, shifted once, pads neither summed nor counted: "
                f"perplexity is {right}, as for each text alone."
            )
        what = listed(found) if len(found) > 1 else found[0]
        start = f"{what[0].upper()}{what[1:]}: perplexity reads {now}"
        if now == right:
            return f"{start}, as it should, which is chance."
        better = "better" if batch.mean < batch.right_mean else "worse"
        return f"{start} instead of {right}, and the model looks {better} than it is."

    def _rule(self) -> str:
        """Return what the mask lets through."""
        if self.numerator and self.denominator:
            return "mask: never asked"
        if self.mask == "wrong":
            return f"mask: as if pads were on the {self._other()}"
        return "mask: logits and label of real tokens" if self.mask == "both" else "mask: label of a real token"

    def _words(self, batch: Batch) -> tuple[str, str, str]:
        """Return the chosen cell in three lines: what it costs, what meets what, and whether that is in order."""
        place = min(self.place, batch.width)
        cells = batch.rows[self.row - 1]
        cell = cells[place - 1]
        head = f"{'A pad' if cell.token is None else _quoted(cell)}, place {place} of text {self.row}"
        aim, nll = cell.aim, cell.nll
        should = "it should be neither" if aim is None else f"it should be both, at {num(aim, 2)} nats"
        if nll is None:
            if aim is None:
                lack = "No logits come before it: nothing can predict it."
                return f"{head}: not scored", lack, "Neither summed nor counted, as it should be."
            lack = "Its logits are sought where the text has not begun."
            return f"{head}: not scored", lack, f"Neither summed nor counted; {should}."
        read = _quoted(cells[cell.start])
        meets = f"The logits of place {cell.start + 1}, after {read}, meet the label of place {place}."
        if cell.start == place - 1:
            meets = f"The logits of place {place}, after {read}, meet that very label."
        state = {
            (True, True): "Summed and counted",
            (True, False): "Summed, not counted",
            (False, True): "Counted, not summed",
            (False, False): "Neither summed nor counted",
        }[cell.summed, cell.counted]
        fine = not cell.summed and not cell.counted if aim is None else cell.summed and cell.counted
        verdict = ", as it should be"
        if not fine:
            verdict = f"; {should}"
        elif aim is not None and num(aim, 2) != num(nll, 2):
            verdict = f"; it should be {num(aim, 2)} nats"
        return f"{head}: {num(nll, 2)} nats", meets, f"{state}{verdict}."

    def twin(self) -> Canvas:
        """Return the still twin of the current state."""
        batch = self._score(self.extra)
        pace = _BARS + _GAP + _TILE + _BELOW
        below = _TOP + len(self.texts) * pace + 14.0
        sheet = Sheet(height=below + 250)
        pitch = min(36.0, (sheet.width - _GUTTER + _GAP) / self._width(len(self.left) - 1))
        most = max(v for v in _flat([self.right, self.left]))
        self._drawn_key(sheet, most)
        for r in range(len(self.texts)):
            self._drawn_row(sheet, batch, r, _TOP + r * pace, pitch, most)
        self._drawn_result(sheet, batch, below)
        breadth = floor(sheet.width * 0.46)
        head, *rest = self._words(batch)
        y = below + 154
        sheet.text(0, y, head, strong=True)
        y += 20
        for text in rest:
            for line in wrapped(text, breadth):
                sheet.text(0, y, line, colour="muted")
                y += 18
        return sheet.canvas

    def _drawn_key(self, sheet: Sheet, most: float) -> None:
        """Draw samples of the marks, each with what it means."""
        x = 0.0
        for look, text, wide, rise in (
            ("best", f"summed (tallest: {num(most, 1)} nats)", 8, 11),
            ("good", "counted", 14, 10),
            ("ghost-hatched", "padding", 14, 10),
            ("aim", "should be", 14, 10),
        ):
            sheet.rect(x + 1, 14 - rise, wide, 12, look)
            sheet.text(x + wide + 7, 14, text)
            x += wide + 7 + measure(text) + 18
        sheet.text(0, 34, self._rule(), colour="muted")

    def _drawn_row(self, sheet: Sheet, batch: Batch, r: int, y: float, pitch: float, most: float) -> None:
        """Draw one row: bars of what is summed, tiles of what is counted."""
        base, side, tall = y + _BARS, pitch - _GAP, _BARS / most
        sheet.text(0, base + 12, f"Text {r + 1}", size=TEXT, strong=True)
        sheet.text(0, base + 29, plural(len(self.texts[r]), "token"), colour="muted")
        for q, cell in enumerate(batch.rows[r]):
            x, aim, nll = _GUTTER + q * pitch, cell.aim, cell.nll

            def bar(value: float, look: str, x: float = x) -> None:
                high = max(1.0, value * tall)
                sheet.rect(x + 0.5, base - high, side - 1, high, look)

            off = aim is not None and (not cell.summed or nll is None or abs(nll - aim) > 5e-5)
            if cell.summed and nll is not None:
                bar(nll, "ghost-solid-hatched" if cell.pads else "wrong" if aim is None or off else "best")
            elif nll is not None and aim is None:
                bar(nll, "ghost")
            if off and aim is not None:
                bar(aim, "aim" if cell.summed and nll is not None and nll > aim else "aim-over")
            if cell.token is None:
                look = "counted-pad" if cell.counted else "ghost-hatched"
            elif cell.counted:
                look = "good-thick" if aim is not None else "counted-wrong"
            else:
                look = "aim" if aim is not None else "other"
            sheet.rect(x + 1, base + _GAP + 1, side - 2, _TILE - 2, look, radius=3)
            if cell.token is not None:
                sheet.text(x + side / 2, base + _GAP + 19, _glyph(cell.token), anchor="middle")
        if r == self.row - 1:
            place = min(self.place, batch.width)
            self._drawn_chosen(sheet, batch.rows[r][place - 1].start, place - 1, base, pitch)

    def _drawn_chosen(self, sheet: Sheet, start: int, q: int, base: float, pitch: float) -> None:
        """Draw a frame around the chosen cell, and an arrow to it from the logits that are scored there."""
        x, side, under = _GUTTER + q * pitch, pitch - _GAP, base + _GAP + _TILE
        sheet.rect(x - 1.5, base + _GAP - 1.5, side + 3, _TILE + 3, "frame", radius=5)
        if start < 0:
            return
        middle = x + side / 2
        left, right = (middle - 6, middle + 6) if start == q else (_GUTTER + start * pitch + side / 2, middle)
        sheet.line([(left, under + 3), (left, under + 11), (right, under + 11), (right, under + 6)], "frame")
        sheet.polygon([(right - 4, under + 7), (right, under + 2), (right + 4, under + 7)], "ink")

    def _drawn_result(self, sheet: Sheet, batch: Batch, y: float) -> None:
        """Draw perplexity: the number, how it comes about, and at every width."""
        now, right = amount(power(batch.mean)), amount(power(batch.right_mean))
        off, low = now != right, batch.mean < batch.right_mean
        colour = "wrong" if off else "right"
        verdict = ("too low: it flatters" if low else "too high") if off else "as it should be"
        sheet.text(0, y + 14, "Perplexity of the batch", size=TEXT, strong=True)
        sheet.text(0, y + 54, now, size=BIG, strong=True, colour="wrong" if off else "ink")
        sheet.text(measure(now, BIG, strong=True) + 14, y + 54, verdict, strong=True, colour=colour)
        sheet.text(0, y + 80, f"exp({num(batch.sum, 2)} nats summed ÷ {batch.count} counted)")
        should = f"should be exp({num(batch.right_sum, 2)} ÷ {batch.right_count}) = {right}"
        sheet.text(0, y + 100, should, colour="right")

        x, end = floor(sheet.width * 0.46) + 30.0, sheet.width
        every = [self._score(e).mean for e in range(len(self.left))]
        least, most = min(*every, batch.right_mean) - 0.25, max(*every, batch.right_mean) + 0.25
        top, bottom = y + 44, y + 172
        sx, sy = linear((0, max(1, len(every) - 1)), (x + 58, end - 10)), linear((most, least), (top, bottom))
        sheet.text(x, y + 14, "Perplexity by width of the batch", size=TEXT, strong=True)
        sheet.text(x, y + 33, f"- - should be {right}, whatever the width", colour="right")
        labels = dict(ticks(least, most))
        sheet.levels(sy, list(labels), x + 52, end, lambda at: labels[at])
        for e in range(0, len(every), 2 if len(every) > 7 else 1):
            sheet.text(sx(e), bottom + 20, str(self._width(e)), colour="muted", anchor="middle")
        sheet.text(end, bottom + 40, "tokens a row (log scale upwards)", colour="muted", anchor="end")
        sheet.line([(x + 52, sy(batch.right_mean)), (end, sy(batch.right_mean))], "line-right")
        sheet.line([(sx(e), sy(v)) for e, v in enumerate(every)], "line-wrong" if off else "line-other")
        sheet.line([(sx(self.extra), sy(batch.right_mean)), (sx(self.extra), sy(batch.mean))], "gap")
        for e, v in enumerate(every):
            sheet.dot(sx(e), sy(v), 3, "wrong" if off else "muted")
        sheet.dot(sx(self.extra), sy(batch.mean), 7, colour, ringed=True)


def ticks(low: float, high: float) -> list[tuple[float, str]]:
    """Return round perplexities between two means, each with its text."""
    first, last = floor(low / log(10)), ceil(high / log(10))
    found: list[tuple[float, float, int]] = []
    for steps in ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 4, 5, 6, 8)):
        tries = [(log(m) + e * log(10), m, e) for e in range(first, last + 1) for m in steps]
        found = [one for one in tries if low <= one[0] <= high]
        if len(found) >= 3:
            break
    return [(at, _tick(m, e)) for at, m, e in found[:: ceil(len(found) / 5)]]


def _tick(digit: float, power: int) -> str:
    if power < 4:
        return f"{float(fixed(digit * 10.0**power, 3)):,g}"
    return f"{'' if digit == 1 else f'{digit:g}·'}10{str(power).translate(RAISED)}"


def _glyph(token: str) -> str:
    return "␣" if token == " " else token


def _quoted(cell: Cell) -> str:
    return "a pad" if cell.token is None else f"“{_glyph(cell.token)}”"


def _rounded(values: Any) -> Any:  # noqa: ANN401  # nested to any depth
    return [_rounded(v) for v in values] if isinstance(values, list) else round(float(values), 4) + 0.0


def _flat(values: Any) -> list[float]:  # noqa: ANN401  # nested to any depth
    return [v for one in values for v in _flat(one)] if isinstance(values, list) else [values]
