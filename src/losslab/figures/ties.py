"""Tie order: equal labels, and a sort that keeps their order only while every list in the batch is short."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import traitlets
from matplotlib.figure import Figure as Canvas

from losslab.figures import _parts as parts
from losslab.figures._numbers import listed, num, plural, up_or_down
from losslab.figures._sheet import TEXT, Sheet, measure
from losslab.figures.base import Figure, Table, Whole

_DATA = ("widths", "losses", "gradients", "orders", "labels", "logits")


class TieOrder(Figure):
    """What a loss made of one query at each width of the batch, where an unstable sort decides between equal labels.

    Nothing is computed here: the caller measures the real loss and hands over what it saw. What should be is what was
    measured at the first width, since our query is the same at every width.

    Attributes
    ----------
    widths : list of int, shape (W,)
        Lengths of the longest list in the batch, ascending; at least two.
    losses : list of float, shape (W,)
        Our query's loss at each width, nats.
    gradients : list of list of float, shape (W, n)
        Gradient of that loss with respect to our query's logits.
    orders : list of list of int, shape (W, n)
        Our query's documents, best first, as the sort left them.
    labels, logits : list of float, shape (n,)
        Our query: 2 or 3 documents, as given.
    width : int
        The width now shown, one of `widths`; at first the narrowest at which the order differs, or else the last.

    Raises
    ------
    TypeError
        If a table of the data is missing.
    FigureError
        If tables disagree in shape, an order is no ranking by label, or `width` is none of `widths`.
    """

    NAME = "ties"
    TITLE = "Tie order"

    widths = Table(whole=True).tag(sync=True)
    losses = Table().tag(sync=True)
    gradients = Table(2).tag(sync=True)
    orders = Table(2, whole=True).tag(sync=True)
    labels = Table().tag(sync=True)
    logits = Table().tag(sync=True)
    width = Whole(0, 0, 100_000).tag(sync=True)

    def __init__(self, **traits: object) -> None:
        self._need(traits, *_DATA)
        super().__init__(**traits)
        self._seal()

    @traitlets.default("width")
    def _first_moved(self) -> int:
        return self._turn() or self.widths[-1]

    @traitlets.validate(*_DATA, "width")
    def _agree(self, proposal: dict[str, Any]) -> object:
        name, value = proposal["trait"].name, proposal["value"]
        if name in _DATA:
            self._keep(name, value)
        data = {key: value if key == name else getattr(self, key) for key in _DATA}
        widths, labels = data["widths"], data["labels"]
        wide, many = len(widths), len(labels)
        if wide < 2 or widths != sorted(set(widths)):
            self._refuse(f"widths must be two or more, ascending, not {widths}")
        if not 2 <= many <= len(parts.LETTERS):
            self._refuse(f"labels must be of 2 or 3 documents, not {many}")
        if len(data["logits"]) != many:
            self._refuse(f"logits must be {many} numbers, one a label, not {len(data['logits'])}")
        for key in ("losses", "gradients", "orders"):
            if len(data[key]) != wide:
                self._refuse(f"{key} must hold one entry for each of the {wide} widths, not {len(data[key])}")
        for key in ("gradients", "orders"):
            for w, row in zip(widths, data[key], strict=True):
                if len(row) != many:
                    self._refuse(f"{key} at width {w} must be {many} numbers, one a document, not {len(row)}")
        for w, order in zip(widths, data["orders"], strict=True):
            if sorted(order) != list(range(many)) or any(labels[a] < labels[b] for a, b in pairwise(order)):
                self._refuse(
                    f"orders at width {w} must rank documents 0 to {many - 1} by label, best first, not {order}"
                )
        width = value if name == "width" else self.width
        if width not in widths:
            self._refuse(f"width must be one of {widths}, not {width}")
        return value

    def _docs(self) -> list[parts.Push]:
        now, right, top = self.gradients[self.widths.index(self.width)], self.gradients[0], max(self.labels)
        return [
            parts.Push(letter, "best" if label == top else "good", -a, -b)
            for letter, label, a, b in zip(parts.LETTERS, self.labels, now, right, strict=False)
        ]

    def _moved(self) -> list[int]:
        order = self.orders[self.widths.index(self.width)]
        return sorted(doc for doc, best in zip(order, self.orders[0], strict=True) if doc != best)

    def describe(self) -> str:
        """Return in words what the figure now shows."""
        at = self.widths.index(self.width)
        loss, right = num(self.losses[at]), num(self.losses[0])
        ranking, best = (", ".join(parts.LETTERS[doc] for doc in order) for order in (self.orders[at], self.orders[0]))
        beside = f"Beside a list of {self.width}"
        moved = [parts.LETTERS[doc] for doc in self._moved()]
        if not moved and loss == right:
            kept = "the sort leaves tied documents as they were given"
            return f"{beside} {kept}: our query is ranked {ranking}, and the loss reads {right}."
        sort = f"the sort moves {listed(moved)}, which tie" if moved else "the sort leaves our query as it was"
        ranked = f"it ranks {ranking} instead of {best}" if moved else f"it ranks {ranking}"
        turned = [doc for doc in self._docs() if doc.flips]
        pushed = "no push is turned"
        if turned:
            one = len(turned) == 1
            ways = f"{up_or_down(turned[0].now)} instead of {up_or_down(turned[0].aim)}" if one else "the wrong way"
            pushed = f"{listed([doc.name for doc in turned])} {'is' if one else 'are'} pushed {ways}"
        return f"{beside} {sort}: {ranked}, the loss reads {loss} instead of {right}, and {pushed}."

    def twin(self) -> Canvas:
        """Return the still twin of the current state."""
        at, sheet = self.widths.index(self.width), Sheet(height=590)
        y = self._drawn_orders(sheet) + 44
        found = [-g for row in self.gradients for g in row]
        high, low = max(0.0, *found), min(0.0, *found)
        room = (high - low) * 0.24
        domain = (high + room, low - room)
        ticks = [t / 2 for t in range(-4, 5) if domain[1] <= t / 2 <= domain[0]]
        parts.pushes(sheet, 0, y, sheet.width * 0.5, self._docs(), domain, ticks)
        turn = self._turn()
        parts.loss_picture(
            sheet,
            sheet.width * 0.55,
            y,
            sheet.width * 0.45,
            losses=dict(zip(self.widths, self.losses, strict=True)),
            width=self.width,
            loss=self.losses[at],
            right=self.losses[0],
            ticks=[
                w
                for i, w in enumerate(self.widths)
                if w == turn or i == 0 or (w % 10 == 0 and (turn is None or abs(w - turn) >= 4))
            ],
            note="sum of its choices",
            wrong_name="ties as the sort left them",
            right_name=f"ties as given: {num(self.losses[0])}",
        )
        return sheet.canvas

    def _turn(self) -> int | None:
        """Return the first width at which the order is not that of the first width."""
        return next((w for w, order in zip(self.widths, self.orders, strict=True) if order != self.orders[0]), None)

    def _drawn_orders(self, sheet: Sheet) -> float:
        """Draw another query's list and our query as given, as sorted, and as it should be; return the y below."""
        gutter, moved, top = 130.0, self._moved(), max(self.labels)
        order = self.orders[self.widths.index(self.width)]

        def head(y: float, name: str, note: str) -> None:
            sheet.text(0, y + 16, name, size=TEXT, strong=True)
            sheet.text(0, y + 35, note, colour="muted")

        head(0, "Another query", plural(self.width, "document"))
        pitch = (sheet.width - gutter + 2) / self.widths[-1]
        for slot in range(self.width):
            sheet.rect(gutter + slot * pitch + 0.5, 4.5, pitch - 3, 17, "other", radius=2)
        if turn := self._turn():
            x, words = gutter + (turn - 0.5) * pitch - 1, f"from {turn} on the order changes"
            sheet.line([(x, 26), (x, 32)], "zero")
            sheet.text(min(x - 12, sheet.width - measure(words)), 45, words, colour="muted")

        pitch = min(152, (sheet.width - gutter + 12) / len(order))

        def row(y: float, docs: Sequence[int], plain: bool) -> dict[int, float]:
            middles = {}
            for place, doc in enumerate(docs):
                x, strong = gutter + place * pitch, self.labels[doc] == top
                middles[doc] = middle = x + (pitch - 20) / 2
                if plain:
                    sheet.rect(x + 0.5, y + 0.5, pitch - 21, 27, "right-outline", radius=4)
                    sheet.text(middle, y + 19, parts.LETTERS[doc], strong=True, colour="right", anchor="middle")
                    continue
                colour = "page" if strong else "ink"
                sheet.rect(x + 0.5, y + 0.5, pitch - 21, parts.TILE - 1, "best" if strong else "good", radius=4)
                text = f"label {_short(self.labels[doc])}"
                if pitch - 20 > 100:
                    text += f", logit {num(self.logits[doc], 1)}"
                sheet.text(middle, y + 17, parts.LETTERS[doc], strong=True, colour=colour, anchor="middle")
                sheet.text(middle, y + 33, text, colour=colour, anchor="middle")
            return middles

        head(70, "Our query", "as given")
        given = row(70, range(len(order)), plain=False)
        head(156, "Sorted", "best label first")
        ranked = row(156, order, plain=False)
        for doc in order:
            start, end = (given[doc], 114), (ranked[doc], 152)
            sheet.curve([start, (start[0], 133), (end[0], 133), end], "line-wrong" if doc in moved else "line-other")
        head(212, "Should be", "ties as given")
        row(212, self.orders[0], plain=True)
        return 240


def _short(value: float) -> str:
    """Return a number as JavaScript prints it: 1, not 1.0."""
    return str(int(value)) if value == int(value) else repr(value)
