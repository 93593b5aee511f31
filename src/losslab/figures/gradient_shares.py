"""Who gets the gradient: a query's negatives, hardest first, with each one's share of the push on negatives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from typing import Any

import traitlets
from matplotlib.figure import Figure as Canvas

from losslab.figures import _plots as plots
from losslab.figures._contrastive import Row, info_nce_row
from losslab.figures._numbers import brief, num, percent
from losslab.figures._sheet import TEXT, Sheet, fit, linear, measure
from losslab.figures._temperature import FINE, Temperature
from losslab.figures.base import Figure, FigureError, Table, Whole

WIDTHS = (8, 16, 32, 64, 128, 256)
_MOST = 10  # negatives that are named
_DATA = ("queries", "widths", "positives", "negatives", "names", "mislabelled")


class _Cosines(Table):
    """A `Table` of cosines, kept to four digits: all that is drawn, and a third of the page's weight."""

    def _entry(self, place: str, value: object) -> float | int:
        number = super()._entry(place, value)
        if not -1.0005 <= number <= 1.0005:
            raise FigureError(f"{place} must be a cosine, from -1 to 1, not {value!r}")
        return min(1.0, max(-1.0, round(number, 4)))


@dataclass(frozen=True)
class _Bar:
    """One negative: where it stands among all, what it is called, its cosine and its share."""

    place: int
    name: str
    score: float
    share: float
    wrong: bool


@dataclass(frozen=True)
class _Now:
    """What there is to draw and to say."""

    row: Row
    scores: list[float]
    order: list[int]
    bars: list[_Bar]
    wrong: _Bar | None

    @property
    def hardest(self) -> _Bar:
        return self.bars[0]

    @property
    def shown(self) -> list[_Bar]:
        """The bars that are named: the hardest, and among them in any case the one that is really right."""
        shown = self.bars[:_MOST]
        if self.wrong is not None and self.wrong.place >= _MOST:
            shown[-1] = self.wrong
        return shown


class GradientShares(Figure):
    """How the softmax shares one query's push out among its negatives, at every temperature and several batch widths.

    Handed over are cosines of real queries; the figure works out what InfoNCE makes of them: −ln p of the positive,
    p = exp(s⁺/τ) / Σ exp(s/τ). The gradient by a negative's cosine is its own p/τ, and all of them together equal the
    positive's (1 − p)/τ; a negative's *share* is its part of that sum.

    Attributes
    ----------
    queries : list of str, shape (Q,)
        What each query is called in the list of choices, 1 to 12, each once; 90 characters at most.
    positives : list of float, shape (Q,)
        Cosine of each query with its own document. Cosines are kept to four digits.
    negatives : list of list of float, shape (Q, N)
        Cosines with the other documents of its batch, in the order in which they join it: a batch of width B holds the
        first B − 1. N is 7 to 255 and the same for all queries.
    names : list of list of str, shape (Q, N)
        What the negatives are called. Only names that a batch can show are kept; the others become "".
    mislabelled : list of int, shape (Q,)
        Index of a negative that is really right, such as a labelled duplicate of the positive; −1 where there is none
        (the default for all).
    widths : list of int
        Batch widths on offer; worked out from N: those of 8, 16, …, 256 that N fills.
    query : int
        Index of the query now shown.
    temperature : float
        One of the slider's stops, 0.005 to 1.
    width : int
        Documents in the batch, one of `widths`; at first the last.

    Raises
    ------
    TypeError
        If queries, positives, negatives or names are missing.
    FigureError
        If tables disagree, a cosine is none, or query, temperature or width cannot be selected.

    Notes
    -----
    InfoNCE: van den Oord, Li & Vinyals (2018), arXiv:1807.03748, eq. 4. What temperature does to its gradient: Wang &
    Liu (2021), arXiv:2012.09740.
    """

    NAME = "gradient_shares"
    TITLE = "Who gets the gradient"

    queries = traitlets.List(traitlets.Unicode()).tag(sync=True)
    positives = _Cosines().tag(sync=True)
    negatives = _Cosines(2).tag(sync=True)
    names = traitlets.List(traitlets.List(traitlets.Unicode())).tag(sync=True)
    mislabelled = traitlets.List(traitlets.Int()).tag(sync=True)
    widths = Table(whole=True).tag(sync=True)
    query = Whole(0, 0, 11).tag(sync=True)
    temperature = Temperature(0.05).tag(sync=True)
    width = Whole(0, 0, 256).tag(sync=True)

    def __init__(self, **traits: object) -> None:
        self._need(traits, "queries", "positives", "negatives", "names")
        super().__init__(**traits)
        self._seal()

    @traitlets.default("mislabelled")
    def _none(self) -> list[int]:
        return [-1] * len(self.queries)

    @traitlets.default("widths")
    def _filled(self) -> list[int]:
        return [width for width in WIDTHS if width <= len(self.negatives[0]) + 1]

    @traitlets.default("width")
    def _widest(self) -> int:
        return int(self.widths[-1])

    @traitlets.validate(*_DATA, "query", "width")
    def _agree(self, proposal: dict[str, Any]) -> object:
        name, value = proposal["trait"].name, proposal["value"]

        if name in _DATA and name != "names":  # of which only some are kept
            self._keep(name, value)

        def get(key: str) -> Any:  # noqa: ANN401  # not before the tables it may be worked out from have been checked
            return value if key == name else getattr(self, key)

        queries, positives, negatives, names = map(get, ("queries", "positives", "negatives", "names"))
        if not 1 <= len(queries) <= 12 or len(set(queries)) < len(queries) or not all(queries):
            self._refuse(f"queries must be 1 to 12 texts, each once, not {queries}")
        if long := [text for text in queries if len(text) > 90]:
            self._refuse(f"queries must have 90 characters at most, not {len(long[0])}: {long[0]!r}")
        for key, table in (("positives", positives), ("negatives", negatives), ("names", names)):
            if len(table) != len(queries):
                self._refuse(f"{key} must hold one entry for each of the {len(queries)} queries, not {len(table)}")
        many = len(negatives[0])
        if not 7 <= many <= 255:
            self._refuse(f"negatives must be 7 to 255 a query, not {many}")
        for i, (row, named) in enumerate(zip(negatives, names, strict=True)):
            if len(row) != many:
                self._refuse(f"negatives[{i}] must hold {many} cosines, as for the first query, not {len(row)}")
            if len(named) != many:
                self._refuse(f"names[{i}] must hold {many} names, one a negative, not {len(named)}")
        wrong, widths = get("mislabelled"), get("widths")
        if len(wrong) != len(queries) or not all(-1 <= j < many for j in wrong):
            self._refuse(f"mislabelled must be {len(queries)} indices from -1 (none) to {many - 1}, not {wrong}")
        if not widths or widths != sorted(set(widths)) or widths[0] < 8 or widths[-1] > many + 1:
            self._refuse(f"widths must ascend from 8 or more to {many + 1} at most, not {widths}")
        if get("query") >= len(queries):
            self._refuse(f"query must be from 0 to {len(queries) - 1}, not {get('query')}")
        if get("width") not in widths:
            self._refuse(f"width must be one of {widths}, not {get('width')}")
        for i, (row, named, j) in enumerate(zip(negatives, names, wrong, strict=True)):
            if missing := sorted(k for k in _seen(row, widths, j) if not named[k]):
                self._refuse(f"names[{i}][{missing[0]}] is empty, but that negative is among the hardest of a batch")
        if name == "names":
            seen = [_seen(row, widths, j) for row, j in zip(negatives, wrong, strict=True)]
            value = [[n if k in keep else "" for k, n in enumerate(row)] for row, keep in zip(names, seen, strict=True)]
            self._keep(name, value)
        return value

    def _now(self) -> _Now:
        scores = self.negatives[self.query][: self.width - 1]
        row = info_nce_row([self.positives[self.query], *scores], 0, self.temperature)
        order, wrong = _by_hardness(scores), self.mislabelled[self.query]
        bars = [
            _Bar(place, self.names[self.query][j], scores[j], float(row.shares[1 + j]), j == wrong)
            for place, j in enumerate(order)
        ]
        return _Now(row, scores, order, bars, next((bar for bar in bars if bar.wrong), None))

    def describe(self) -> str:
        """Return in words what the figure now shows."""
        now = self._now()
        n, hardest, wrong = len(now.bars), now.hardest, now.wrong
        top = sum(bar.share for bar in now.bars[:_MOST])
        ten = f" and the {_MOST} hardest together {plots.portion(top)}" if n > _MOST else ""
        gets = f"gets {plots.portion(hardest.share)} of the gradient on negatives{ten}"
        spread = f"as if there were {brief(now.row.effective)} equal negatives"
        base = f"At τ = {self.temperature:g} the hardest of {n} negatives, {hardest.name}, {gets}, {spread}."
        if self.mislabelled[self.query] < 0:
            return base
        if wrong is None:
            return f"{base} The negative that is really right has not joined this batch."
        if wrong is hardest:
            return f"{base} It is really right, and is pushed away all the same."
        return f"{base} {wrong.name} is really right, and is pushed away with {plots.portion(wrong.share)}."

    def twin(self) -> Canvas:
        """Return the still twin of the current state."""
        now, width = self._now(), self.width
        n, row, wrong = len(now.bars), now.row, now.wrong
        curves = [info_nce_row([self.positives[self.query], *now.scores], 0, t) for t in FINE]
        sheet = Sheet(height=812)
        rank = f"rank {row.rank} of {width}, cosine {num(self.positives[self.query], 3)}"
        y = plots.facts(
            sheet,
            0,
            [
                ("Loss (nats)", num(row.loss, 3), f"ln {width} = {num(log(width), 3)} if it knew nothing"),
                ("p of the positive", plots.portion(float(row.probabilities[0])), rank),
                ("Push on the negatives", brief(float(-row.gradient[0])), "(1 − p)/τ, shared out below"),
            ],
        )
        y = self._bars(sheet, now, y + 30) + 34
        breadth = sheet.width * 0.47
        spread = plots.Curve(
            "exp(entropy of the shares)", brief(row.effective), "ink", [c.effective for c in curves], row.effective
        )
        plots.curves(
            sheet,
            (0, y, breadth),
            self.temperature,
            "Effective number of negatives",
            f"from 1 as τ → 0 to {n} as τ → ∞",
            [spread],
            lines=2 if wrong else 1,
            domain=(n, 1),
            ticks=[t for t in (1, 3, 10, 30, 100) if t < 0.75 * n],
            logarithm=True,
            limits=[(n, f"all {n}"), (1, "")],
        )
        first = now.order[0]
        pair = [
            plots.Curve("the hardest", plots.portion(now.hardest.share), "ink", _of(curves, first), now.hardest.share),
        ]
        if wrong is not None:
            name = "which is really right" if wrong is now.hardest else "the one that is really right"
            values = _of(curves, self.mislabelled[self.query])
            pair.append(plots.Curve(name, plots.portion(wrong.share), "wrong", values, wrong.share, square=True))
        plots.curves(
            sheet,
            (sheet.width - breadth, y, breadth),
            self.temperature,
            "Share of the hardest",
            f"from 100% as τ → 0 to 1/{n} as τ → ∞",
            pair,
            lines=len(pair),
            domain=(1, 0),
            ticks=(0, 0.25, 0.5, 0.75, 1),
            limits=[(1, ""), (1 / n, f"1/{n}")],
            show=lambda t: percent(t, 0),
        )
        return sheet.canvas

    def _bars(self, sheet: Sheet, now: _Now, y: float) -> float:
        """Draw the negatives as bars of their share, the hardest named and the others summed; return the y below."""
        n, shown, cosine, left, pitch, tag = len(now.bars), now.shown, 324, 340, 25, "really right"
        sx = linear((0, 1), (left, sheet.width - 62))
        sheet.text(0, y + 14, "Each negative’s share of that push", size=TEXT, strong=True)
        sheet.text(0, y + 34, "hardest first", colour="muted")
        sheet.text(cosine, y + 34, "cosine", colour="muted", anchor="end")
        sheet.text(left, y + 34, "share", colour="muted")
        start = y + 44
        bottom = start + (_MOST + 1) * pitch
        for tick in (0, 0.25, 0.5, 0.75, 1):
            sheet.line([(sx(tick), start), (sx(tick), bottom)], "grid" if tick else "zero")
            sheet.text(sx(tick), bottom + 18, percent(tick, 0), colour="muted", anchor="middle")
        top = start
        for bar in shown:
            wide = 236 - (measure(f" {tag}", strong=True) if bar.wrong else 0)
            text, colour = fit(bar.name, wide, strong=bar.wrong), "wrong" if bar.wrong else "ink"
            sheet.text(16, top + 17, str(bar.place + 1), colour="muted", anchor="end")
            sheet.text(cosine, top + 17, num(bar.score, 3), colour="muted", anchor="end")
            sheet.text(24, top + 17, text, colour=colour, strong=bar.wrong)
            if bar.wrong:
                sheet.text(28 + measure(text, strong=True), top + 17, tag, colour="wrong")
            sheet.rect(left, top + 4, sx(bar.share) - left, 17, "wrong" if bar.wrong else "negative")
            sheet.text(sx(bar.share) + 7, top + 17, plots.portion(bar.share), strong=True, colour=colour)
            self._even(sheet, sx(1 / n), top)
            top += pitch
        if n > len(shown):
            rest = sum(bar.share for bar in now.bars if bar not in shown)
            sheet.text(24, top + 17, f"the other {n - len(shown)}")
            sheet.rect(left, top + 4, sx(rest) - left, 17, "other")
            sheet.text(sx(rest) + 7, top + 17, plots.portion(rest), strong=True)
            self._even(sheet, sx(1 / n), top)
        sheet.line([(left + 1, bottom + 27), (left + 1, bottom + 41)], "limit")
        sheet.text(left + 9, bottom + 39, f"equal shares: 1/{n} = {percent(1 / n)}", colour="muted")
        return bottom + 42

    @staticmethod
    def _even(sheet: Sheet, x: float, top: float) -> None:
        """Mark in a row where a bar would end if all negatives had the same share."""
        if x > 344:  # elsewhere it cannot be told from the axis
            sheet.line([(x, top + 1), (x, top + 24)], "limit")


def _by_hardness(scores: Sequence[float]) -> list[int]:
    """Indices of the negatives, hardest first; of equal ones the one that joined the batch first."""
    return sorted(range(len(scores)), key=lambda j: (-scores[j], j))


def _seen(scores: Sequence[float], widths: Sequence[int], wrong: int) -> set[int]:
    """Indices of the negatives that are named at one of the widths."""
    named = {j for width in widths for j in _by_hardness(scores[: width - 1])[:_MOST]}
    return named | ({wrong} if wrong >= 0 else set())


def _of(rows: Sequence[Row], negative: int) -> list[float]:
    """A negative's share in each row."""
    return [float(row.shares[1 + negative]) for row in rows]
