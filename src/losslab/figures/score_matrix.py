"""The score matrix of a batch: cosines, the softmax of each row, and what it costs to know nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from math import ceil, log
from typing import Any

import numpy as np
import traitlets
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure as Canvas
from numpy.typing import ArrayLike, NDArray

from losslab.figures._contrastive import Row, info_nce_row, log_sum_exp
from losslab.figures._directions import Bytes, Floats, cosines, packed, quantised, random_pairs
from losslab.figures._numbers import brief, num, percent
from losslab.figures._sheet import BIG, TEXT, Sheet, fit, linear, logarithmic, measure, palette, spread
from losslab.figures.base import Figure, FigureError, Whole

MOST = 1024  # random pairs
SEED = 1
MOST_REAL = 128  # what a page can carry
WIDTHS = (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
TEMPERATURES = (0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.2, 0.3, 0.5, 1.0)
DIMENSIONS = (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
_LISTED = 5
_SIDE = 380  # px of the twin's map
_CELLS = 64  # of the twin's map, a side
_LEVELS = 33  # shades of the twin's map; odd, so that one of them is 0


@cache
def _random(entries: int) -> tuple[Bytes, Bytes]:
    return random_pairs(MOST, entries, SEED)


@dataclass(frozen=True)
class _Outcome:
    """What the figure holds for its traits; `cosines` are of the focused query with all that its source offers."""

    width: int
    at: int
    cosines: Floats
    row: Row
    order: list[int]

    @property
    def batch(self) -> Floats:
        return self.cosines[: self.width]

    @property
    def blind(self) -> float:
        return log(self.width)

    @property
    def rival(self) -> int:
        """The negative with the highest cosine."""
        return next(j for j in self.order if j != self.at)

    @property
    def spread(self) -> float:
        """Root mean square of the negatives' cosines."""
        others = np.delete(self.batch, self.at)
        return float(np.sqrt((others * others).mean()))


class ScoreMatrix(Figure):
    """A batch as a B×B matrix of cosines, softmax row by row, one row in focus, beside a loss that knows nothing.

    ``ScoreMatrix(queries, documents, names=…)``: row i of `queries` and row i of `documents` belong together. They are
    given once, kept as whole numbers of one byte an entry (see `losslab.figures._directions.quantised`: a cosine moves
    by less than 0.003), and travel inside the page: 98 KB for 128 pairs of 384. A batch of width B is the first B.
    Random directions need no data: they are the same on every page.

    Attributes
    ----------
    source : str
        ``"real"``: the pairs given. ``"random"``: up to 1,024 pairs of independent random directions.
    width : int
        Pairs in the batch, 2 to 1,024 in powers of two; of real ones at most all that were given.
    temperature : float
        τ, one of `losslab.figures.score_matrix.TEMPERATURES`.
    dimension : int
        How many first entries of each vector are used, made unit length again: a power of two, or all.
    row : int
        The focused row, from 1 to `width`.
    colour : str
        ``"cosine"``, or ``"share"`` for the softmax, on a log scale from the even share 1/B to 1.
    names : list of str
        What the pairs are called, one each; may be left out.

    Raises
    ------
    FigureError
        If the vectors disagree in shape, hold a zero row or what is no number, or a trait is none that is offered.
    """

    NAME = "score_matrix"
    TITLE = "The score matrix"

    source = traitlets.Unicode("real").tag(sync=True)
    width = Whole(32, 2, MOST).tag(sync=True)
    temperature = traitlets.Float(0.05).tag(sync=True)
    dimension = Whole(384, 2, 4096).tag(sync=True)
    row = Whole(1, 1, MOST).tag(sync=True)
    colour = traitlets.Unicode("cosine").tag(sync=True)
    embeddings = traitlets.Unicode(read_only=True).tag(sync=True)
    pairs = Whole(2, 2, MOST_REAL).tag(sync=True)
    entries = Whole(384, 2, 4096).tag(sync=True)
    names = traitlets.List(traitlets.Unicode()).tag(sync=True)

    def __init__(
        self, queries: ArrayLike, documents: ArrayLike, *, names: Sequence[str] = (), **traits: object
    ) -> None:
        real = self._vectors("queries", queries), self._vectors("documents", documents)
        if real[0].shape != real[1].shape:
            self._refuse(f"queries are {real[0].shape} and documents {real[1].shape}; row i of both must be a pair")
        pairs, entries = real[0].shape
        if len(names) not in (0, pairs) or not all(isinstance(name, str) and name.strip() for name in names):
            self._refuse(f"names must be {pairs} texts, one a pair, or none, not {len(names)}: {list(names)[:3]!r} …")
        self._pairs = tuple(quantised(rows) for rows in real)
        widest = max((w for w in WIDTHS if w <= pairs), default=2)
        first: dict[str, Any] = {"width": min(32, widest), "dimension": entries}
        super().__init__(pairs=pairs, entries=entries, names=list(names), **{**first, **traits})
        self.set_trait("embeddings", packed(*self._pairs))
        self._seal()

    def _vectors(self, name: str, given: ArrayLike) -> NDArray[np.float64]:
        """Return what was given as an array that can be shown."""
        try:
            rows = np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise FigureError(f"{type(self).__name__}: {name} must be an array of numbers: {error}") from error
        if rows.ndim != 2 or not 2 <= len(rows) <= MOST_REAL or not 2 <= rows.shape[1] <= 4096:
            self._refuse(f"{name} must be 2 to {MOST_REAL} rows of 2 to 4096 numbers, not of shape {rows.shape}")
        if not np.isfinite(rows).all():
            self._refuse(f"{name}[{int(np.argmin(np.isfinite(rows).all(axis=1)))}] holds what is not finite")
        if (zero := ~rows.any(axis=1)).any():
            self._refuse(f"{name}[{int(np.argmax(zero))}] is all zeros: it has no direction")
        return rows

    @property
    def _limit(self) -> int:
        return self.pairs if self.source == "real" else MOST

    def _widths(self) -> list[int]:
        return [*(w for w in WIDTHS if w < self._limit), self._limit]

    @traitlets.validate("source", "width", "temperature", "dimension", "row", "colour", "pairs", "entries", "names")
    def _agree(self, proposal: dict[str, Any]) -> object:
        name, value = proposal["trait"].name, proposal["value"]
        if name in ("pairs", "entries", "names"):
            self._keep(name, value)
        elif name == "source" and value not in ("real", "random"):
            self._refuse(f'source must be "real" or "random", not {value!r}')
        elif name == "colour" and value not in ("cosine", "share"):
            self._refuse(f'colour must be "cosine" or "share", not {value!r}')
        elif name == "temperature" and value not in TEMPERATURES:
            self._refuse(f"temperature must be one of {list(TEMPERATURES)}, not {value!r}")
        elif name == "width" and value not in (offered := self._widths()):
            self._refuse(f"width must be one of {offered} with {self.source} vectors, not {value}")
        elif name == "dimension":
            offered = [*(d for d in DIMENSIONS if d < self.entries), self.entries]
            if value not in offered:
                self._refuse(f"dimension must be one of {offered}, not {value}")
        elif name == "row" and value > self.width:
            self._refuse(f"row must be an int from 1 to {self.width}, the width of the batch, not {value}")
        return value

    @traitlets.observe("source", "width")
    def _settle(self, _change: object) -> None:
        """Keep the batch no wider than its source, and the row in it, as the page does."""
        self.width = min(self.width, self._limit)
        self.row = min(self.row, self.width)

    def _vectors_now(self) -> tuple[Bytes, Bytes]:
        real: tuple[Bytes, Bytes] = self._pairs  # type: ignore[assignment]
        return real if self.source == "real" else _random(self.entries)

    def _outcome(self) -> _Outcome:
        queries, documents = self._vectors_now()
        at, width = self.row - 1, self.width
        found = cosines(queries[at : at + 1], documents[: self._limit], self.dimension)[0]
        batch = found[:width]
        order = sorted(range(width), key=lambda j: (-batch[j], j))
        return _Outcome(width, at, found, info_nce_row(batch, at, self.temperature), order)

    def _name(self, j: int) -> str:
        return self.names[j] if self.source == "real" and self.names else f"document {j + 1:,}"

    def describe(self) -> str:
        """Return in words what the figure now shows."""
        now = self._outcome()
        where = f"at τ = {self.temperature:g} in {self.dimension} dimensions"
        cost = f"the loss is {num(now.row.loss, 3)} where a blind model’s is ln {now.width:,} = {num(now.blind, 3)}"
        rank, own = f"rank {now.row.rank:,} of {now.width:,}", num(now.batch[now.at], 3)
        if self.source == "random":
            return (
                f"Row {self.row:,} of {now.width:,} random directions {where}: the cosines with other documents are "
                f"0 ± {num(now.spread, 3)}, the positive’s is {own}, {rank}, and {cost}."
            )
        beside = f"{'behind' if now.row.rank > 1 else 'ahead of'} {self._name(now.rival)}"
        query = self.names[now.at] if self.names else "the query"
        return (
            f"Row {self.row} of {now.width} {where}: {query} and its own document have cosine {own}, {rank}, {beside}; "
            f"it takes {_portion(now.row.probabilities[now.at])} of the softmax, and {cost}."
        )

    def twin(self) -> Canvas:
        """Return the still twin of the current state; its map, vector too, has at most 64 squares a side."""
        now = self._outcome()
        sheet = Sheet(height=706)
        below = self._strips(sheet, now, self._map(sheet, now) + 10)
        x = _SIDE + 36.0
        y = self._row_panel(sheet, now, x, sheet.width - x)
        self._drawn_widths(sheet, now, x, y + 34, sheet.width - x, below - y - 34)
        return sheet.canvas

    def _matrix(self) -> Floats:
        queries, documents = self._vectors_now()
        return cosines(queries[: self.width], documents[: self.width], self.dimension)

    def _map(self, sheet: Sheet, now: _Outcome) -> float:
        """Draw the matrix with its key and the frame around the focused row; return the y below."""
        share, width, values = self.colour == "share", now.width, self._matrix()
        low, high = (0.0, 1.0) if share else (-1.0, 1.0)
        if share:
            logits = values / self.temperature
            sums = np.array([log_sum_exp(row) for row in logits])
            values = (logits - sums[:, None]) / log(width) + 1  # ln(p · B) / ln B: 0 is the even share, 1 is everything
        cells = min(width, _CELLS)
        starts = np.arange(cells) * width // cells
        values = np.maximum.reduceat(np.maximum.reduceat(values, starts, axis=0), starts, axis=1)
        levels = np.clip((values - low) / (high - low) * (_LEVELS - 1) + 0.5, 0, _LEVELS - 1).astype(int)

        shades = _shades("middle", "high") if share else _shades("low", "middle", "high")
        sheet.text(0, 14, "Softmax of every row" if share else "Cosine of every pair", size=TEXT, strong=True)
        sheet.text(0, 35, "rows: queries, columns: documents", colour="muted")
        least = f"1/{width:,} or less" if share else "−1"
        start, piece = measure(least) + 8, 110 / _LEVELS
        sheet.text(0, 58, least, colour="muted")
        for level, shade in enumerate(shades):
            sheet.boxes([(start + level * piece, 47, piece + (level < _LEVELS - 1) / 2, 13)], "page", shade)
        sheet.rect(start, 47, 110, 13, "edge")
        sheet.text(start + 118, 58, "1 (log scale)" if share else "1", colour="muted")

        top, square = 70.0, _SIDE / cells
        for level, shade in enumerate(shades):
            places = [(j * square, top + i * square, square, square) for i, j in np.argwhere(levels == level).tolist()]
            sheet.boxes(places, "page", shade)
        sheet.rect(-0.5, top - 0.5, _SIDE + 1, _SIDE + 1, "edge")
        cell = _SIDE / width
        thick, middle = max(cell, 5.0), (now.at + 0.5) * cell
        y = min(top + _SIDE - thick, max(top, top + middle - thick / 2))
        for look in ("frame-halo", "frame"):
            sheet.rect(0.75, y - 1, _SIDE - 1.5, thick + 2, look)
        mark = max(cell, 9.0)
        sheet.rect(min(_SIDE - mark, max(0, middle - mark / 2)), top + middle - mark / 2, mark, mark, "frame")
        covered = ceil(width / cells)
        note = f"a square shows the highest of {covered} × {covered} cells" if covered > 1 else "one square a pair"
        sheet.text(0, top + _SIDE + 19, note, colour="muted")
        return top + _SIDE + 28

    def _strips(self, sheet: Sheet, now: _Outcome, y: float) -> float:
        """Draw the focused row below its columns: cosines, then softmax; return the y below."""
        batch, shares, at = now.batch, now.row.probabilities, now.at
        lowest, highest, most = float(batch.min()), float(batch.max()), float(shares.max())
        sheet.text(0, y + 14, f"Row {self.row:,}: its cosines", strong=True)
        sheet.text(_SIDE, y + 14, f"{num(lowest, 2)} to {num(highest, 2)}", colour="muted", anchor="end")
        scale = linear((min(0.0, lowest), max(0.05, highest)), (y + 80, y + 26))
        _bars(sheet, batch, at, scale)
        sheet.text(0, y + 104, f"Softmax at τ = {self.temperature:g}", strong=True)
        sheet.text(_SIDE, y + 104, f"up to {_portion(most)}", colour="muted", anchor="end")
        _bars(sheet, shares, at, linear((0, most), (y + 182, y + 114)))
        place, half = (at + 0.5) * _SIDE / now.width, measure("positive", strong=True) / 2
        sheet.polygon([(place - 5, y + 193), (place, y + 185), (place + 5, y + 193)], "best")
        x = min(_SIDE - half, max(half, place))
        sheet.text(x, y + 207, "positive", strong=True, colour="best", anchor="middle")
        return y + 212

    def _row_panel(self, sheet: Sheet, now: _Outcome, x: float, breadth: float) -> float:
        """Draw the row's loss beside ln B, and who takes its softmax; return the y below."""
        row, at, width = now.row, now.at, now.width
        title = f"Random direction {self.row:,}"
        if self.source == "real":
            title = self.names[at] if self.names else f"Query {self.row}"
        sheet.text(x, 14, fit(title, breadth, size=TEXT, strong=True), size=TEXT, strong=True)
        rank = f"row {self.row:,}: the positive has rank {row.rank:,} of {width:,}"
        sheet.text(x, 35, rank, colour="muted")
        value, off = num(row.loss, 3 if row.loss < 99.9995 else 1), num(abs(now.blind - row.loss), 2)
        sheet.text(x, 82, value, size=BIG, strong=True)
        beside, worse = x + measure(value, BIG, strong=True) + 14, row.loss > now.blind and off != "0.00"
        sheet.text(beside, 64, "loss (nats)", colour="muted")
        verdict = (
            "as blind as ln B"
            if off == "0.00"
            else f"{brief(abs(now.blind - row.loss))} {'above' if worse else 'below'} blind"
        )
        sheet.text(beside, 82, verdict, strong=True, colour="wrong" if worse else "right")
        mean, right = self._batch_now
        sheet.text(x, 108, f"batch: mean {num(mean, 3)}, right first: {percent(right, 0)}")

        sheet.text(x, 144, "Who takes its softmax", size=TEXT, strong=True)
        shown = now.order[:_LISTED]
        shown += [at] if at not in shown else []
        lines = [(self._name(j), float(row.probabilities[j]), "best" if j == at else "other") for j in shown]
        if others := width - len(shown):
            lines.append(
                (f"{others:,} other{'' if others == 1 else 's'}", max(0.0, 1 - sum(p for _, p, _ in lines)), "edge")
            )
        column = breadth * 0.6
        start, long = x + column, breadth - column - 48
        for n, (name, p, look) in enumerate(lines):
            base, own = 167 + 22 * n, look == "best"
            colour = "muted" if look == "edge" else "ink"
            label = f"{fit(name, column - 26, strong=True)} ✓" if own else fit(name, column - 8)
            sheet.text(x, base, label, strong=own, colour=colour)
            sheet.rect(start, base - 12, max(0.5, p * long), 14, look)
            sheet.text(x + breadth, base, _portion(p), strong=own, colour=colour, anchor="end")
        return 167 + 22 * (_LISTED + 2) - 8

    @property
    def _batch_now(self) -> tuple[float, float]:
        """Mean loss of the batch, and in how large a part of its rows the positive comes first."""
        values = self._matrix()
        logits = values / self.temperature
        own = np.diagonal(values)
        losses = [log_sum_exp(row) - row[i] for i, row in enumerate(logits)]
        return float(np.mean(losses)), float((values <= own[:, None]).all(axis=1).mean())

    def _drawn_widths(self, sheet: Sheet, now: _Outcome, x: float, y: float, breadth: float, height: float) -> None:
        """Draw the loss over the widths that the slider offers, beside ln B."""
        limit, (mean, _) = self._limit, self._batch_now
        widths = self._widths()
        logits = now.cosines / self.temperature
        known = [(w, log_sum_exp(logits[:w]) - float(logits[now.at])) for w in widths if now.at < w]
        names = {"blind": "ln B: blind", "row": "this row", "batch": "batch mean"}
        gutter = max(measure(name, strong=True) for name in names.values()) + 16
        most = max(log(limit), mean, *(loss for _, loss in known))
        step = next((s for s in (1, 2, 5, 10, 20, 50) if most / s <= 5), 100)
        highest = step * ceil((most + 0.02 * step) / step)
        left, right, top, bottom = x + 36, x + breadth - gutter, y + 28, y + height - 44
        sx = logarithmic((2, max(limit, 4)), (left + 8, right))
        sy = linear((highest, 0), (top, bottom))
        sheet.text(x, y + 14, "Loss against batch width", size=TEXT, strong=True)
        sheet.levels(sy, range(0, highest + 1, step), left, right, str)
        for i, w in enumerate(widths):
            if (len(widths) < 8 or i % 3 == 0) and (w == limit or sx(limit) - sx(w) > 34):
                sheet.text(sx(w), bottom + 20, f"{w:,}", colour="muted", anchor="middle")
        sheet.text(right, bottom + 40, "pairs in the batch (log scale)", colour="muted", anchor="end")
        sheet.line([(sx(w), sy(log(w))) for w in widths], "line-right")
        if len(known) > 1:
            sheet.line([(sx(w), sy(loss)) for w, loss in known], "line-best")
        sheet.dot(sx(now.width), sy(now.row.loss), 7, "best", ringed=True)
        sheet.dot(sx(now.width), sy(now.blind), 5, "right", ringed=True)
        cx, cy = sx(now.width), sy(mean)
        sheet.polygon([(cx, cy - 7), (cx + 7, cy), (cx, cy + 7), (cx - 7, cy)], "ink-ringed")
        ends = sorted([(sy(log(limit)), "blind", "right"), (sy(known[-1][1]), "row", "best"), (cy, "batch", "ink")])
        centres = spread([(end, 16) for end, _, _ in ends], top - 8, bottom + 8, 1)
        for centre, (_, key, colour) in zip(centres, ends, strict=True):
            sheet.text(right + 12, centre + 4.5, names[key], strong=key == "row", colour=colour)


def _bars(sheet: Sheet, values: Floats, at: int, scale: Callable[[float], float]) -> None:
    """Draw values as bars below the columns of the map, the positive's in blue; the highest where many share a px."""
    width = len(values)
    slots = min(width, _SIDE)
    pitch = _SIDE / slots
    gap = 3 if pitch > 12 else 1 if pitch > 4 else 0
    base, boxes = scale(0), []
    for s in range(slots):
        cells = range(s * width // slots, (s + 1) * width // slots)
        if others := [float(values[j]) for j in cells if j != at]:
            tip = scale(max(others))
            boxes.append((s * pitch + gap / 2, min(base, tip), pitch - gap, abs(base - tip)))
    sheet.boxes(boxes, "bar")
    wide, middle, tip = max(3.0, pitch - gap), (at + 0.5) * _SIDE / width, scale(float(values[at]))
    left = min(_SIDE - wide, max(0.0, middle - wide / 2))
    sheet.boxes([(left, min(base, tip), wide, abs(base - tip))], "bar-best")
    sheet.line([(0, base), (_SIDE, base)], "zero")


def _shades(*names: str) -> list[str]:
    """Return colours from the first of figure.css's map colours to the last, evenly spaced."""
    stops = [to_rgb(palette()[f"map-{name}"]) for name in names]
    at = np.linspace(0, len(stops) - 1, _LEVELS)
    channels = [np.interp(at, range(len(stops)), channel) for channel in zip(*stops, strict=True)]
    return [to_hex(shade) for shade in zip(*channels, strict=True)]


def _portion(share: float) -> str:
    """Return a share in percent with two digits that count."""
    return percent(share, 0 if share < 5e-5 else 2 if share < 0.00995 else 1 if share < 0.0995 else 0)
