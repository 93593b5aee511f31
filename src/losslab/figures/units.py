"""Units: what the same cost of the same text reads, divided by bytes, characters, words or tokens, in nats or bits."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, log
from typing import Any

import traitlets
from matplotlib.figure import Figure as Canvas

from losslab.figures import _text as texts
from losslab.figures._amounts import amount
from losslab.figures._choice import Choice
from losslab.figures._numbers import num
from losslab.figures._sheet import BIG, TEXT, Sheet, fit, measure
from losslab.figures.base import Figure

_LINE, _BOX = 30, 24


class Units(Figure):
    """One text, what two models spend on it, and what becomes of that by unit, by logarithm and by power.

    Nothing is computed here but quotients, logarithms of 2 and powers: the caller measures what a model spends on the
    whole text, −Σ ln p in nats, and cuts the text with its tokenizer. Words are what white space parts; white space
    belongs to no word, but its cost does count. Characters are code points; a token may end within one.

    Attributes
    ----------
    text : str
        Up to 160 bytes of UTF-8, with a word in it.
    tokenizers : list of dict, up to three
        Given on construction: ``name``; ``vocabulary``, an int; and ``pieces``, str or bytes that join to the text, or
        ``ends``, where each token ends in bytes of UTF-8.
    models : list of dict, two of them
        ``name``; ``unit``, what the model predicts: ``"bytes"``, ``"characters"``, ``"words"`` or a tokenizer's name;
        and ``nats``, what it spends on the whole text.
    units : list of dict, read-only
        Worked out: bytes, characters, words and the tokenizers', from fine to coarse: ``name``, ``vocabulary`` (0: not
        known) and ``spans``, [start, end) in bytes.
    unit, model : str
        The unit to divide by and the model shown, by name; at first the first model and what it predicts.
    base : str
        The logarithm's: ``"nats"`` or ``"bits"``.
    power : str
        ``"mean"``: the cost a unit as it is; ``"e"`` or ``"2"``: that power of it, a perplexity if it fits the base.

    Raises
    ------
    TypeError
        If the text or the models are missing.
    FigureError
        If a tokenizer does not cut this text, or a trait is none that is offered; the message names it.
    """

    NAME = "units"
    TITLE = "Per what, and in what"

    text = traitlets.Unicode().tag(sync=True)
    units: traitlets.List[Any] = traitlets.List(read_only=True).tag(sync=True)
    models: traitlets.List[Any] = traitlets.List().tag(sync=True)
    unit = traitlets.Unicode().tag(sync=True)
    model = traitlets.Unicode().tag(sync=True)
    base = Choice("nats", ("nats", "bits")).tag(sync=True)
    power = Choice("e", ("mean", "e", "2")).tag(sync=True)

    def __init__(self, *, tokenizers: Sequence[Any] = (), **traits: Any) -> None:  # noqa: ANN401  # checked one by one
        self._need(traits, "text", "models")
        try:
            text = texts.read_text(traits["text"])
            if len(tokenizers) > 3:
                self._refuse(f"tokenizers must be up to three, not {len(tokenizers)}")
            cut = texts.spans_of(text)
            units: list[texts.Unit] = [
                {"name": n, "vocabulary": 256 if n == "bytes" else 0, "spans": cut[n]} for n in texts.OWN
            ]
            units += [texts.read_tokenizer(f"tokenizers[{i}]", one, text) for i, one in enumerate(tokenizers)]
            names = [unit["name"] for unit in units]
            if len(set(names)) < len(names):
                self._refuse(f"tokenizers must have a name each, not {names[3:]}")
            units.sort(key=lambda unit: -len(unit["spans"]))  # a sort that keeps bytes first among equals
            traits["models"] = texts.read_models(traits["models"], units)
        except ValueError as error:
            if isinstance(error, traitlets.TraitError):
                raise
            self._refuse(str(error))
        self.set_trait("units", units)
        traits.setdefault("model", traits["models"][0]["name"])
        traits.setdefault("unit", traits["models"][0]["unit"])
        super().__init__(**traits)
        self._seal()

    @traitlets.validate("text", "models", "unit", "model")
    def _agree(self, proposal: dict[str, Any]) -> object:
        name, value = proposal["trait"].name, proposal["value"]
        if name in ("text", "models"):
            self._keep(name, value)
            return value
        offered = [one["name"] for one in (self.units if name == "unit" else self.models)]
        if value not in offered:
            self._refuse(f"{name} must be one of {offered}, not {value!r}")
        return value

    def _unit(self, name: str) -> texts.Unit:
        return next(unit for unit in self.units if unit["name"] == name)

    def _now(self) -> tuple[texts.Unit, texts.Model]:
        return self._unit(self.unit), next(model for model in self.models if model["name"] == self.model)

    def _reading(self, nats: float, count: int) -> float:
        return texts.reading(nats, count, str(self.base), str(self.power))

    def _mixed(self) -> bool:
        """Whether the power and the logarithm disagree."""
        return bool(self.power != "mean" and (self.power == "e") != (self.base == "nats"))

    def _bits_per_byte(self, model: texts.Model) -> float:
        return float(model["nats"]) / len(self.units[0]["spans"]) / log(2)

    def _own(self) -> list[float]:
        """Return the perplexity of each model per token of its own."""
        return [texts.perplexity(m["nats"], len(self._unit(m["unit"])["spans"])) for m in self.models]

    def describe(self) -> str:
        """Return in words what the figure now shows."""
        unit, model = self._now()
        n, nats = len(unit["spans"]), model["nats"]
        value, mean = amount(self._reading(nats, n)), amount(texts.reading(nats, n, str(self.base), "mean"))
        first = f"{model['name']} spends {num(nats, 1)} nats on {n:,} {texts.noun(unit, n)}: "
        first += f"{mean} {self.base} per {texts.noun(unit)}"
        if self.power == "mean":
            first += "."
        elif self._mixed():
            right = amount(texts.perplexity(nats, n))
            first += f"; {self.power} to the power of {self.base} reads {value}, but the perplexity is {right}."
        else:
            first += f", a perplexity of {value}."
        own, bits = self._own(), [self._bits_per_byte(model) for model in self.models]
        seems, best = _lower(own), _lower(bits)

        def told(values: list[float], i: int, verb: str = "is better") -> str:
            if i < 0:
                return f"the two are level at {amount(values[0])}"
            against = f"({amount(values[i])} against {amount(values[1 - i])})"
            return f"{self.models[i]['name']} {verb} {against}"

        split = seems >= 0 and best >= 0 and seems != best
        a = told(own, seems, "looks better" if split else "is better")
        b = told(bits, best, "is" if split else "is better")
        return f"{first} By perplexity per own token {a}; in bits per byte {b}."

    def twin(self) -> Canvas:
        """Return the still twin of the current state."""
        all_boxes = [_lines(self.text, unit["spans"]) for unit in self.units]
        lines = 1 + max(boxes[-1][1] for boxes in all_boxes)
        below = 26 + _LINE * lines + 14 + 72 + 30.0
        left = below + 88 + 10 + 22 + 28 * len(self.units) + 8 + 48
        sheet = Sheet(height=max(left, below + 132 + 24 + 132) + 4)
        unit, model = self._now()
        self._drawn_text(sheet, all_boxes[self.units.index(unit)], unit)
        self._drawn_total(sheet, unit, model, below - 102)
        breadth = floor(sheet.width * 0.46)
        self._drawn_number(sheet, unit, model, below, breadth)
        self._drawn_table(sheet, model, below + 98, breadth)
        x, own, bits = breadth + 40.0, self._own(), [self._bits_per_byte(m) for m in self.models]
        split = -1 not in (_lower(own), _lower(bits)) and _lower(own) != _lower(bits)
        says, colour = ("looks better", "wrong") if split else ("lower", "muted")
        titles = ("Perplexity per own token", "in units that differ: not to be compared")
        self._drawn_pair(sheet, x, below, titles, own, says, colour, named=True)
        titles = ("Bits per byte", "of the same bytes: comparable")
        self._drawn_pair(sheet, x, below + 156, titles, bits, "is better", "right", named=False)
        return sheet.canvas

    def _drawn_text(self, sheet: Sheet, boxes: Sequence[tuple[float, int, float, str]], unit: texts.Unit) -> None:
        """Draw the text, cut into units."""
        n = len(unit["spans"])
        sheet.text(0, 14, f"The text in {n:,} {texts.noun(unit, n)}", size=TEXT, strong=True)
        for i, (x, line, width, text) in enumerate(boxes):
            y = 26 + _LINE * line
            sheet.rect(x + 0.5, y + 0.5, width - 1, _BOX - 1, "piece" if i % 2 else "other", radius=3)
            sheet.text(x + width / 2, y + 17, text, anchor="middle")

    def _drawn_total(self, sheet: Sheet, unit: texts.Unit, model: texts.Model, y: float) -> None:
        """Draw all that the model spends as one bar, in as many equal parts as there are units."""
        n, scale = len(unit["spans"]), log(2) if self.base == "bits" else 1
        long = sheet.width * model["nats"] / max(one["nats"] for one in self.models)
        part = long / n
        parts = "one part" if n == 1 else f"{n:,} equal parts"
        sheet.text(0, y + 14, f"{num(model['nats'] / scale, 1)} {self.base} in {parts}", size=TEXT, strong=True)
        sheet.rect(0.5, y + 26.5, long - 1, 21, "good")
        sheet.rect(0.5, y + 26.5, max(1, part - 1), 21, "best")
        for i in range(1, n):
            sheet.line([(i * part, y + 27), (i * part, y + 47)], "cut")
        at = min(part / 2, 12)
        sheet.line([(at, y + 51), (at, y + 60), (at + 8, y + 60)], "line-other")
        sheet.text(at + 13, y + 65, f"{amount(model['nats'] / scale / n)} {self.base} each")

    def _drawn_number(self, sheet: Sheet, unit: texts.Unit, model: texts.Model, y: float, breadth: float) -> None:
        """Draw the number, large, and how it comes about."""
        n, wrong = len(unit["spans"]), self._mixed()
        value = amount(self._reading(model["nats"], n))
        what = "Perplexity per"
        if self.power == "mean":
            what = f"{str(self.base).capitalize()} per"
        elif wrong:
            what = f"{self.power} to the power of {self.base} per"
        title = fit(f"{what} {texts.noun(unit)}", breadth, size=TEXT, strong=True)
        sheet.text(0, y + 14, title, size=TEXT, strong=True)
        sheet.text(0, y + 54, value, size=BIG, strong=True, colour="wrong" if wrong else "ink")
        total = num(model["nats"] / (log(2) if self.base == "bits" else 1), 1)
        mean = f"{total} {self.base} ÷ {n:,}"
        sheet.text(0, y + 80, mean if self.power == "mean" else f"{self.power} to the power of ({mean})")
        if wrong:
            beside = measure(value, BIG, strong=True) + 14
            sheet.text(beside, y + 38, "no perplexity", strong=True, colour="wrong")
            should = f"should be {amount(texts.perplexity(model['nats'], n))}"
            sheet.text(beside, y + 56, should, colour="right")

    def _drawn_table(self, sheet: Sheet, model: texts.Model, y: float, breadth: float) -> None:
        """Draw the same for every unit, and what no tokenizer moves."""
        column, wrong = breadth - 84, self._mixed()
        what = self.base if self.power == "mean" else "reads" if wrong else "perplexity"
        sheet.text(column, y + 12, "how many", colour="muted", anchor="end")
        sheet.text(breadth - 8, y + 12, str(what), colour="muted", anchor="end")
        for i, one in enumerate(self.units):
            now, at, n = one["name"] == self.unit, y + 22 + 28 * i, len(one["spans"])
            size = TEXT if now else 13
            if now:
                sheet.rect(0.5, at + 0.5, breadth - 1, 27, "frame", radius=4)
            name = fit(f"per {texts.noun(one)}", column - 60, size=size, strong=now)
            sheet.text(8, at + 19, name, size=size, strong=now)
            sheet.text(column, at + 19, f"{n:,}", colour="muted", anchor="end")
            value, colour = amount(self._reading(model["nats"], n)), "wrong" if wrong else "ink"
            sheet.text(breadth - 8, at + 19, value, size=size, strong=now, colour=colour, anchor="end")
        y += 22 + 28 * len(self.units) + 8
        sheet.rect(0.5, y + 0.5, breadth - 1, 47, "aim", radius=4)
        sheet.text(8, y + 20, "bits per byte", strong=True, colour="right")
        sheet.text(8, y + 38, "stays, however the text is cut", colour="right")
        value = amount(self._bits_per_byte(model))
        sheet.text(breadth - 8, y + 30, value, size=TEXT, strong=True, colour="right", anchor="end")

    def _drawn_pair(
        self,
        sheet: Sheet,
        x: float,
        y: float,
        titles: tuple[str, str],
        values: list[float],
        says: str,
        colour: str,
        *,
        named: bool,
    ) -> None:
        """Draw both models by one measure, the lower the better."""
        breadth = sheet.width - x
        sheet.text(x, y + 14, titles[0], size=TEXT, strong=True)
        sheet.text(x, y + 33, titles[1], colour="muted")
        for i, model in enumerate(self.models):
            top, now = y + 44 + 44 * i, model["name"] == self.model
            vocabulary = self._unit(model["unit"])["vocabulary"]
            choice = f", {vocabulary:,} to choose from" if vocabulary else ""
            mark = says if i == _lower(values) else ""
            room = breadth - (measure(mark, strong=True) + 14 if mark else 0)
            name = f"{model['name']}: {model['unit']}{choice}" if named else model["name"]
            sheet.text(x, top + 12, fit(name, room, strong=now), strong=now)
            if mark:
                sheet.text(x + breadth, top + 12, mark, strong=True, colour=colour, anchor="end")
            share = 1.0 if values[i] == max(values) else values[i] / max(values)  # also where both are infinite
            long = max(1, (breadth - 70) * share)
            sheet.rect(x + 0.5, top + 18.5, long, 15, "best" if now else "good")
            sheet.text(x + long + 8, top + 31, amount(values[i]), strong=True)


def _lower(values: list[float]) -> int:
    """Return which of two numbers is lower as printed; −1 for neither."""
    first, second = values
    return -1 if amount(first) == amount(second) else 0 if first < second else 1


def _lines(text: str, spans: Sequence[Sequence[int]]) -> list[tuple[float, int, float, str]]:
    """Return the boxes of the pieces in lines: x, line, width and what is written."""
    room, x, line, boxes = 760.0, 0.0, 0, []
    for i, piece in enumerate(texts.pieces(text, spans)):
        shown = fit(piece, room - 10)
        width = max(15.0, floor(measure(shown)) + 8)
        if i:
            x += 10 if spans[i][0] > spans[i - 1][1] else 2  # white space that no unit owns
        if x + width > room:
            x, line = 0.0, line + 1
        boxes.append((x, line, width, shown))
        x += width
    return boxes
