"""The parts that several still twins share; each draws what the module of the same name under ``js/`` draws live."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil

from losslab.figures._numbers import num, plural, signed, up_or_down
from losslab.figures._sheet import BIG, TEXT, Sheet, linear, measure

NAMES = ("A", "B")  # documents of our query, best first
LOOKS = ("best", "good")
LETTERS = "ABC"  # documents, as given: no more can be told apart in a column of 320 px
LOGIT_A = 1.5
MOST = 12  # slots a row
TILE = 40


@dataclass(frozen=True)
class Slots:
    """Where the tiles of a padded batch stand."""

    room: float
    gutter: float

    @property
    def gap(self) -> float:
        """Space between tiles, px."""
        return 6 if self.gutter else 4

    @property
    def pitch(self) -> float:
        """From one tile to the next, px."""
        return (self.room - self.gutter + self.gap) / MOST

    @property
    def side(self) -> float:
        """Width of a tile, px."""
        return self.pitch - self.gap

    def x(self, slot: int) -> float:
        """Return the left edge of a slot."""
        return self.gutter + slot * self.pitch

    def head(self, sheet: Sheet, y: float, name: str, note: str) -> float:
        """Write a row's name and note; return the y at which the row starts."""
        sheet.text(0, y + (16 if self.gutter else 14), name, size=TEXT, strong=True)
        if self.gutter:
            sheet.text(0, y + 35, note, colour="muted")
            return y
        sheet.text(measure(name, TEXT, strong=True) + 10, y + 14, note, colour="muted")
        return y + 24

    def tile(self, sheet: Sheet, slot: int, y: float, look: str) -> None:
        """Draw one tile."""
        sheet.rect(self.x(slot) + 0.5, y + 0.5, self.side - 1, TILE - 1, look, radius=4)

    def ours(
        self, sheet: Sheet, y: float, logits: Sequence[float], width: int, fixed: bool, note: str, counted: str
    ) -> float:
        """Draw our query's two documents and its empty slots; return the y below."""
        y = self.head(sheet, y, "Our query", note)
        for i, z in enumerate(logits):
            colour, middle = "ink" if i else "page", self.x(i) + self.side / 2
            self.tile(sheet, i, y, LOOKS[i])
            sheet.text(middle, y + 17, NAMES[i], strong=True, colour=colour, anchor="middle")
            sheet.text(middle, y + 33, num(z, 1), colour=colour, anchor="middle")
        for slot in range(2, width):
            self.tile(sheet, slot, y, "ghost" if fixed else "ghost-hatched")
        y += TILE
        if padding := width - 2:
            text = f"{plural(padding, 'empty slot')}{', each' if padding > 1 else ''} {counted}"
            left, right = self.x(2), self.x(width - 1) + self.side
            sheet.line([(left, y + 5), (left, y + 10), (right, y + 10), (right, y + 5)], "ghost-solid")
            sheet.text(max(self.gutter, min(left, self.room - measure(text))), y + 27, text)
        return y + 32

    def other(self, sheet: Sheet, y: float, width: int) -> float:
        """Draw another query's documents; return the y below."""
        y = self.head(sheet, y, "Another query", plural(width, "document"))
        for slot in range(width):
            self.tile(sheet, slot, y, "other")
            sheet.text(self.x(slot) + self.side / 2, y + 25, str(slot + 1), colour="muted", anchor="middle")
        return y + TILE


@dataclass(frozen=True)
class Push:
    """A document's push (minus its gradient): the one that is, and the one that should be."""

    name: str
    look: str
    now: float
    aim: float

    @property
    def flips(self) -> bool:
        """Whether it points against the one that should be."""
        return self.now * self.aim < 0


def pair(sheet: Sheet, push: Push, x: float, scale: Callable[[float], float], size: float = 1) -> None:
    """Draw one document's two arrows around x, and a word for the way that it is pushed."""
    up, at = push.now > 0, x - 13 * size
    sheet.arrow(at, scale(0), scale(push.now), 24 * size, "wrong" if push.flips else push.look)
    sheet.arrow(x + 15 * size, scale(0), scale(push.aim), 16 * size, "right-outline")
    tip = max(push.now, push.aim) if up else min(push.now, push.aim)
    base = scale(push.now if push.flips else tip) + (-11 if up else 22)
    if push.flips:
        plate = measure("wrong way", strong=True) + 16
        sheet.rect(at - plate / 2, base - 16, plate, 22, "wrong", radius=11)
        sheet.text(at, base, "wrong way", strong=True, colour="page", anchor="middle")
    else:
        sheet.text(at, base, up_or_down(push.now), strong=True, anchor="middle", halo=True)


def arrows(
    sheet: Sheet,
    x: float,
    y: float,
    breadth: float,
    title: str,
    docs: Sequence[Push],
    domain: tuple[float, float],
    ticks: Sequence[float],
    head: float = 34,
    indent: float = 76,
) -> float:
    """Draw the pushes on every score of a list on one axis, each document named below; return the y below."""
    sheet.text(x, y + 14, title, size=TEXT, strong=True)
    scale = linear(domain, (y + head, y + head + 192))
    left, right = x + indent, x + breadth
    sheet.levels(scale, ticks, left, right, lambda t: num(t, 1 if t else 0))
    named = next((i for i, doc in enumerate(docs) if doc.aim > 0 and not doc.flips), None)
    for i, doc in enumerate(docs):
        middle = left + (right - left) * (i + 0.5) / len(docs)
        if i == named:
            sheet.text(middle + 15, scale(0) + 19, "should be", colour="right", anchor="middle", halo=True)
        pair(sheet, doc, middle, scale)
        sheet.text(middle, y + head + 220, doc.name, size=TEXT, strong=True, anchor="middle")
    return y + head + 224


def pushes(
    sheet: Sheet,
    x: float,
    y: float,
    breadth: float,
    docs: Sequence[Push],
    domain: tuple[float, float],
    ticks: Sequence[float],
) -> float:
    """Draw `arrows` with the gradients in numbers below; return the y below."""
    y = arrows(sheet, x, y, breadth, "Push on each score (−gradient)", docs, domain, ticks) + 18
    left, right = x + 76, x + breadth
    for i, key in enumerate(("gradient", "should be")):
        sheet.text(left - 8, y + 20 * i, key, colour="muted", anchor="end")
    for i, doc in enumerate(docs):
        middle = left + (right - left) * (i + 0.5) / len(docs)
        colour = "wrong" if doc.flips else "ink"
        sheet.text(middle, y, signed(-doc.now), size=TEXT, strong=True, colour=colour, anchor="middle")
        sheet.text(middle, y + 20, signed(-doc.aim), size=TEXT, colour="right", anchor="middle")
    return y + 24


def number(sheet: Sheet, x: float, y: float, loss: float, right: float, title: str, note: str = "") -> str:
    """Draw the loss, large, and how far off it is; return the colour of the verdict."""
    off, value = num(loss) != num(right), num(loss)
    sheet.text(x, y + 14, title, size=TEXT, strong=True)
    sheet.text(x, y + 56, value, size=BIG, strong=True, colour="wrong" if off else "ink")
    far = num(abs(loss - right))
    verdict = f"{far} too {'high' if loss > right else 'low'}" if off else "as it should be"
    colour = "wrong" if off else "right"
    beside = x + measure(value, BIG, strong=True) + 14
    if note:
        sheet.text(beside, y + 38, note, colour="muted")
    sheet.text(beside if note else x, y + (56 if note else 79), verdict, strong=True, colour=colour)
    return colour


def curve(
    sheet: Sheet,
    sx: Callable[[float], float],
    sy: Callable[[float], float],
    losses: Mapping[int, float],
    width: int,
    loss: float,
    right: float,
    colour: str,
    dot: float = 3,
) -> None:
    """Draw the loss over widths: as it is, as it should be, and where it now stands."""
    widths = list(losses)
    sheet.line([(sx(widths[0]), sy(right)), (sx(widths[-1]), sy(right))], "line-right")
    sheet.line([(sx(w), sy(value)) for w, value in losses.items()], "line-wrong")
    sheet.line([(sx(width), sy(right)), (sx(width), sy(loss))], "gap")
    for w, value in losses.items():
        sheet.dot(sx(w), sy(value), dot, "wrong")
    sheet.dot(sx(width), sy(loss), 8, colour, ringed=True)


def loss_picture(
    sheet: Sheet,
    x: float,
    y: float,
    breadth: float,
    *,
    losses: Mapping[int, float],
    width: int,
    loss: float,
    right: float,
    ticks: Sequence[int],
    note: str,
    wrong_name: str,
    right_name: str,
    highest: int = 1,
) -> float:
    """Draw the loss as a number and over every width; return the y below."""
    colour = number(sheet, x, y, loss, right, "Loss of our query (nats)", note)
    highest = max(highest, ceil(max(losses.values()) + 0.05))
    first, last = min(losses), max(losses)
    sx = linear((first, last), (x + 26, x + breadth - 8))
    sy = linear((highest, 0), (y + 90, y + 256))
    sheet.levels(sy, range(highest + 1), x + 18, x + breadth, str)
    for tick in ticks:
        sheet.text(sx(tick), y + 276, str(tick), colour="muted", anchor="middle")
    sheet.text(x + breadth, y + 296, "longest list in the batch (documents)", colour="muted", anchor="end")
    curve(sheet, sx, sy, losses, width, loss, right, colour)
    sheet.text(sx(last), sy(right) - 9, right_name, colour="right", anchor="end", halo=True)
    sheet.text(sx(last) - 4, sy(losses[last]) - 14, wrong_name, colour="wrong", anchor="end")
    return y + 300
