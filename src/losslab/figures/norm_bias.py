"""Norm bias: a prefix that is not renormalised ranks documents by their length too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, floor
from typing import Any

import numpy as np
import traitlets
from matplotlib.figure import Figure as Canvas
from numpy.typing import ArrayLike, NDArray

from losslab.figures._numbers import num, signed
from losslab.figures._plots import balance
from losslab.figures._sheet import TEXT, Point, Sheet, fit, linear, logarithmic, measure
from losslab.figures.base import Figure, FigureError, Table, Whole, _number
from losslab.figures.sweep import named

TEN = 10  # places of a ranking that count as its top, over all queries
_LISTED = 5
_ANSWERS = 2
_POINTS = 24  # of a line of equal score
_MOST = 120  # candidates a query
_BLOCK = 64  # queries ranked at a time
_EACH = ("norms", "cosines", "by_cosine", "by_inner")
_SUMMARY = ("mean_norm", "top_inner", "top_cosine", "correlation")
_DATA = ("queries", "texts", "dims", "names", "relevant", *_EACH, *_SUMMARY, "documents", "asked")


class _Correlations(traitlets.TraitType[list[Any], object]):
    """Numbers from −1 to 1, None where nothing varies."""

    def __init__(self) -> None:
        super().__init__([])

    def validate(self, obj: object, value: object) -> list[float | None]:
        """Return `value` as a list."""
        place = f"{type(obj).__name__}: {self.name}"
        if not isinstance(value, Sequence) or isinstance(value, str):
            raise FigureError(f"{place} must be a list, not {value!r}")
        for i, one in enumerate(value):
            if one is not None and (_number(one) is None or not -1 <= one <= 1):
                raise FigureError(f"{place}[{i}] must be a number from -1 to 1, or None, not {one!r}")
        return [None if one is None else float(one) for one in value]


@dataclass(frozen=True)
class _Doc:
    """A candidate at one size: its length in mean lengths, its cosine, and its ranks by cosine and by inner product."""

    place: int
    name: str
    length: float
    cosine: float
    fair: int
    raw: int
    right: bool

    @property
    def score(self) -> float:
        """Inner product with a query of length 1, in mean lengths."""
        return self.length * self.cosine


@dataclass(frozen=True)
class _Outcome:
    """What there is to draw; `raw` and `fair` are the candidates in the order of either ranking."""

    at: int
    docs: list[_Doc]
    raw: list[_Doc]
    fair: list[_Doc]

    @property
    def risen(self) -> _Doc | None:
        """Of the five best by inner product, the one that gained most places over its rank by cosine."""
        gained = [doc for doc in self.raw if doc.raw <= _LISTED and doc.fair > doc.raw]
        return min(gained, key=lambda doc: (doc.raw - doc.fair, doc.place), default=None)

    @property
    def same(self) -> bool:
        """Whether both rankings have the same first."""
        return self.raw[0].place == self.fair[0].place


class NormBias(Figure):
    """Candidates of one query on a plane of prefix length and cosine, and who is first with and without renormalising.

    An inner product is the cosine times both lengths; the query's is the same for all documents, the document's is not.
    Nothing is encoded here: `from_embeddings` works out all traits from two arrays.

    Attributes
    ----------
    queries, texts : list of str, shape (Q,)
        Queries that can be chosen: what each is called, and a few words of it.
    dims : list of int, shape (D,)
        Sizes of the prefix, ascending; the last is the full size, d.
    names : list of list of str, shape (Q, M of each)
        The candidates of each query, 2 to 120: documents that reach the first five places at some size, and others.
    relevant : list of list of int
        Places of the right answers among the candidates.
    norms, cosines : list, shape (Q, D, M)
        Length of each candidate's prefix, above 0, and its cosine with the query's. Rounded to four digits.
    by_cosine, by_inner : list of int, shape (Q, D, M)
        Rank of each candidate among all documents, from 1, equal ones sharing the better.
    mean_norm : list of float, shape (D,)
        Mean prefix length of all documents.
    documents, asked : int
        How many documents were ranked, and for how many queries in the summary.
    top_inner, top_cosine : list of float, shape (D,)
        Mean length of the ten best by inner product and by cosine, in mean lengths, over the asked queries.
    correlation : list of float or None, shape (D,)
        Pearson correlation, over all documents, of the ranks gained by not renormalising with the length of the prefix;
        mean over the asked queries, None where no rank is gained.
    query : int
        Which query is shown.
    dim : int
        Dimensions kept, one of `dims`.
    renormalised : bool
        Whether prefixes are brought to length 1. False at first: it shows what goes wrong.

    Raises
    ------
    TypeError
        If something that must be measured is missing.
    FigureError
        If lists disagree, ranks are not those of the scores, or a state is not offered.
    """

    NAME = "norm_bias"
    TITLE = "Ranked by length"

    queries = traitlets.List(traitlets.Unicode()).tag(sync=True)
    texts = traitlets.List(traitlets.Unicode()).tag(sync=True)
    dims = Table(whole=True).tag(sync=True)
    names = traitlets.List(traitlets.List(traitlets.Unicode())).tag(sync=True)
    relevant = Table(2, whole=True).tag(sync=True)
    norms = Table(3).tag(sync=True)
    cosines = Table(3).tag(sync=True)
    by_cosine = Table(3, whole=True).tag(sync=True)
    by_inner = Table(3, whole=True).tag(sync=True)
    mean_norm = Table().tag(sync=True)
    documents = Whole(2, 2, 10**9).tag(sync=True)
    asked = Whole(1, 1, 10**9).tag(sync=True)
    top_inner = Table().tag(sync=True)
    top_cosine = Table().tag(sync=True)
    correlation = _Correlations().tag(sync=True)
    query = Whole(0, 0, 10**6).tag(sync=True)
    dim = traitlets.Int().tag(sync=True)
    renormalised = traitlets.Bool(False).tag(sync=True)

    def __init__(self, **traits: object) -> None:
        self._need(traits, *_DATA)
        super().__init__(**traits)
        self._seal()

    @classmethod
    def from_embeddings(
        cls,
        queries: ArrayLike,
        documents: ArrayLike,
        *,
        dims: Sequence[int],
        shown: Sequence[int],
        query_names: Sequence[str],
        texts: Sequence[str],
        document_names: Sequence[str],
        relevant: Sequence[Sequence[int]],
        candidates: int = 36,
        **traits: object,
    ) -> NormBias:
        """Rank all documents for all queries at every size, and keep of some queries the candidates.

        Parameters
        ----------
        queries : array_like, shape (Q, d)
            All of them enter the summary.
        documents : array_like, shape (N, d)
            At least ten.
        dims : sequence of int
            Sizes to show, ascending; d is added where it is missing.
        shown : sequence of int
            Rows of the queries that can be chosen.
        query_names, texts : sequence of str
            What each of the shown queries is called, and a few words of it.
        document_names : sequence of str, length N
            Of all documents.
        relevant : sequence of sequences of int
            Rows of the documents that answer each shown query.
        candidates : int
            Documents kept a query, at least: all that reach the first five places of either ranking at some size, the
            right answers, and as many others, the best first, as are missing to this number.
        traits
            Of the figure: ``query``, ``dim``, ``renormalised``.

        Raises
        ------
        FigureError
            If shapes, lengths or rows do not fit, numbers are not finite, or a prefix has length 0.
        """
        asked, found = (np.asarray(one, dtype=np.float32) for one in (queries, documents))
        data = _measure(asked, found, dims, shown, document_names, relevant, candidates)
        return cls(queries=list(query_names), texts=list(texts), **data, **traits)

    @traitlets.default("dim")
    def _twelfth(self) -> int:
        """Where lengths differ and something still stands: a twelfth of the dimensions, or what is nearest."""
        return int(min(self.dims, key=lambda d: abs(d - self.dims[-1] / 12)))

    @traitlets.validate(*_DATA, "query", "dim")
    def _agree(self, proposal: dict[str, Any]) -> object:
        name, value = proposal["trait"].name, proposal["value"]
        if name in ("norms", "cosines"):
            value = [[[round(v, 4) for v in row] for row in rows] for rows in value]
        if name in ("mean_norm", "top_inner", "top_cosine"):
            value = [round(v, 4) for v in value]
        if name == "correlation":
            value = [None if v is None else round(v, 4) for v in value]
        if name in _DATA:
            self._keep(name, value)

        def get(key: str) -> Any:  # noqa: ANN401
            return value if key == name else getattr(self, key)

        self._check(get)
        dims, queries = get("dims"), get("queries")
        if get("query") >= len(queries):
            self._refuse(f"query must be an int from 0 to {len(queries) - 1}, not {get('query')}")
        if get("dim") not in dims:
            self._refuse(f"dim must be one of {', '.join(map(str, dims))}, not {get('dim')}")
        return value

    def _check(self, get: Any) -> None:  # noqa: ANN401
        """Refuse lists that do not fit each other."""
        queries, dims, names = get("queries"), get("dims"), get("names")
        if not 1 <= len(queries) <= 12 or not all(text.strip() for text in queries):
            self._refuse(f"queries must be 1 to 12 names, none of them empty, not {queries}")
        if len(dims) < 2 or dims != sorted(set(dims)) or dims[0] < 1:
            self._refuse(f"dims must be two or more, ascending, from 1 on, not {dims}")
        for key in ("texts", "names", "relevant", *_EACH):
            if len(get(key)) != len(queries):
                self._refuse(f"{key} must hold one entry for each of the {len(queries)} queries, not {len(get(key))}")
        for key in _SUMMARY:
            if len(get(key)) != len(dims):
                self._refuse(f"{key} must hold one number for each of the {len(dims)} dims, not {len(get(key))}")
        for key in ("mean_norm", "top_inner", "top_cosine"):
            if min(get(key)) <= 0:
                self._refuse(f"{key} must be lengths above 0, not {min(get(key))}")
        for q, docs in enumerate(names):
            place = f"[{q}] ({queries[q]})"
            if not 2 <= len(docs) <= _MOST:
                self._refuse(f"names{place} must be 2 to {_MOST} candidates, not {len(docs)}")
            if off := [j for j in get("relevant")[q] if j >= len(docs)]:
                self._refuse(f"relevant{place} must be places below {len(docs)}, not {off[0]}")
            for key in _EACH:
                rows = get(key)[q]
                if [len(row) for row in rows] != [len(docs)] * len(dims):
                    shape = f"{len(dims)} rows of {len(docs)} numbers, a dim and a candidate"
                    self._refuse(f"{key}{place} must be {shape}, not rows of {[len(row) for row in rows]}")
            self._ranked(get, q, place)

    def _ranked(self, get: Any, q: int, place: str) -> None:  # noqa: ANN401
        for d, dim in enumerate(get("dims")):
            norms, cosines = get("norms")[q][d], get("cosines")[q][d]
            if min(norms) <= 0:
                self._refuse(f"norms{place} at {dim} must be above 0, not {min(norms)}")
            if off := [v for v in cosines if not -1 <= v <= 1]:
                self._refuse(f"cosines{place} at {dim} must be from -1 to 1, not {off[0]}")
            inner = [a * b for a, b in zip(norms, cosines, strict=True)]
            for key, scores in (("by_cosine", cosines), ("by_inner", inner)):
                ranks = get(key)[q][d]
                if min(ranks) < 1 or max(ranks) > get("documents"):
                    self._refuse(f"{key}{place} at {dim} must be ranks from 1 to {get('documents')}")
                order = sorted(range(len(ranks)), key=lambda j, r=ranks: r[j])  # type: ignore[misc]
                for a, b in pairwise(order):
                    if scores[b] > scores[a] + 3e-4:
                        low, high = (f"{get('names')[q][j]} (rank {ranks[j]}, {scores[j]:.4f})" for j in (a, b))
                        self._refuse(f"{key}{place} at {dim} is not the order of the scores: {low} before {high}")

    def _outcome(self) -> _Outcome:
        at, q = self.dims.index(self.dim), self.query
        docs = [
            _Doc(
                place=j,
                name=name,
                length=self.norms[q][at][j] / self.mean_norm[at],
                cosine=self.cosines[q][at][j],
                fair=self.by_cosine[q][at][j],
                raw=self.by_inner[q][at][j],
                right=j in self.relevant[q],
            )
            for j, name in enumerate(self.names[q])
        ]
        raw = sorted(docs, key=lambda doc: (doc.raw, doc.place))
        return _Outcome(at, docs, raw, sorted(docs, key=lambda doc: (doc.fair, doc.place)))

    def describe(self) -> str:
        """Return in words what the figure now shows."""
        now, of = self._outcome(), f"for {self.queries[self.query]}"
        raw, fair, risen = now.raw[0], now.fair[0], now.risen
        kept = f"{self.dims[now.at]:,} of {self.dims[-1]:,} dimensions"
        where = f"At {kept}, {'' if self.renormalised else 'not '}renormalised"

        def long(doc: _Doc) -> str:
            return f"its prefix is {num(doc.length, 2)} times as long as the mean"

        if risen is None:
            what = f"{raw.name} is first {of}, and no document of the five best is there for its length."
        elif not now.same and self.renormalised:
            would = f"without it, {raw.name} would be, {_ordinal(raw.fair)} by cosine: {long(raw)}"
            what = f"{fair.name} is first {of}; {would}."
        elif not now.same:
            only = f"{raw.name} is first {of} and only {_ordinal(raw.fair)} by cosine: {long(raw)}"
            what = f"{only}. By cosine the first is {fair.name}."
        else:
            way = f"from {_ordinal(risen.fair)} to {_ordinal(risen.raw)}: {long(risen)}"
            if self.renormalised:
                what = f"{fair.name} is first {of}; without it, {risen.name} would rise {way}."
            else:
                what = f"{fair.name} is first {of} either way, but {risen.name} rises {way}."
        r = self.correlation[now.at]
        gained = "no rank is gained" if r is None else f"ranks gained go with length (correlation {num(r, 2)})"
        inner, cosine = num(self.top_inner[now.at], 2), num(self.top_cosine[now.at], 2)
        best = f"the ten best by inner product are {inner} times as long as the mean, by cosine {cosine}"
        return f"{where}: {what} Over {self.asked:,} queries, {best}, and {gained}."

    def twin(self) -> Canvas:
        """Return the still twin of the current state."""
        now = self._outcome()
        sheet = Sheet(height=743)
        breadth = floor(sheet.width * 0.56)
        plane = self._plane(sheet, now, breadth)
        x = breadth + 34
        listed = self._list(sheet, now, x, sheet.width - x)
        self._sum(sheet, now, max(plane, listed) + 24)
        return sheet.canvas

    def _ranges(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Ends of the plane's axes, the same at all sizes: of length over all queries, of the cosine for this one."""
        lengths = [v / mean for one in self.norms for row, mean in zip(one, self.mean_norm, strict=True) for v in row]
        own = [v for row in self.cosines[self.query] for v in row]

        def ends(values: Sequence[float]) -> tuple[float, float]:
            return floor(min(values) / 0.2 + 1e-9) * 0.2, ceil(max(values) / 0.2 - 1e-9) * 0.2

        (x0, x1), (y0, y1) = ends(lengths), ends(own)
        y0 = max(0.0, y0)  # what is below 0 competes for nothing
        return (min(0.8, x0), max(1.2, x1)), (y0, max(y0 + 0.2, y1))

    def _plane(self, sheet: Sheet, now: _Outcome, breadth: float) -> float:
        """Draw the plane of length and cosine; return the y below."""
        raw, fair, flat = now.raw[0], now.fair[0], self.renormalised
        left, top = 40.0, 122.0
        bottom = top + min(320, max(230, breadth * 0.75))
        sheet.text(0, 14, fit(self.queries[self.query], breadth, size=TEXT, strong=True), size=TEXT, strong=True)
        sheet.text(0, 35, fit(self.texts[self.query], breadth), colour="muted")
        first = (("first by inner product:", raw, "best" if now.same else "wrong"), ("first by cosine:", fair, "right"))
        for i, (text, doc, colour) in enumerate(first):
            y, name = 58.0 + 20 * i, 26 + measure(text)
            if i:
                sheet.circle(7, y - 4.5, 5.5, "right-outline")
            else:
                sheet.dot(7, y - 4.5, 6.5, colour, ringed=True)
            sheet.text(20, y, text, colour="muted")
            sheet.text(name, y, fit(doc.name, breadth - name, strong=True), strong=True, colour=colour)
        xs, ys = self._ranges()
        sx, sy = linear(xs, (left + 6, breadth - 14)), linear(ys, (bottom, top + 8))
        sheet.levels(sy, _steps(ys, 0.2), left, breadth, lambda t: num(t, 1))
        sparse = (xs[1] - xs[0]) / 0.2 > 12
        for i, tick in enumerate(_steps(xs, 0.2)):
            if not sparse or i % 2 == 0:
                sheet.text(sx(tick), bottom + 22, num(tick, 1), colour="muted", anchor="middle")
        sheet.text(0, 106, "↑ cosine", colour="muted")
        lines = "dotted: equal cosine" if flat else "dotted: equal inner product"
        sheet.text(breadth, 106, lines, colour="muted", anchor="end")
        x_name = "length of the prefix, 1 = mean of all documents →"
        sheet.text(breadth, bottom + 42, x_name, colour="muted", anchor="end")

        def level(score: float, look: str, *, level_: bool) -> None:
            if points := equal(score, xs, ys, flat=level_):
                sheet.line([(sx(x), sy(y)) for x, y in points], look)

        for score in _steps((0.1, 1.5), 0.1):
            level(score, "contour", level_=flat)
        sheet.line([(sx(1), top), (sx(1), bottom)], "at")
        level(fair.cosine, "line-right", level_=True)
        if not flat:
            level(raw.score, "line-best" if now.same else "line-wrong", level_=False)
        seen = [doc for doc in now.docs if doc.cosine >= ys[0]]
        if len(seen) < len(now.docs):
            sheet.text(left + 6, bottom - 8, f"{len(now.docs) - len(seen)} below 0", colour="muted")
        for doc in seen:
            if not doc.right:
                sheet.dot(sx(doc.length), sy(doc.cosine), 2.5, "muted")
        for doc in seen:
            if doc.right:
                sheet.polygon(_diamond(sx(doc.length), sy(doc.cosine), 7), "good")
        small = flat and not now.same
        sheet.dot(sx(raw.length), sy(raw.cosine), 4.5 if small else 6.5, first[0][2], ringed=True)
        look = "whisker-right" if now.same else "right-outline"
        sheet.circle(sx(fair.length), sy(fair.cosine), 9 if now.same else 6.5, look)
        return bottom + 46

    def _list(self, sheet: Sheet, now: _Outcome, x: float, breadth: float) -> float:
        """Draw the first places of the ranking that holds; return the y below."""
        flat = self.renormalised
        title = "Ranked by cosine" if flat else "Ranked by inner product"
        sheet.text(x, 14, title, size=TEXT, strong=True)
        note = "as the prefix is brought to length 1" if flat else "of the prefix as it was cut"
        sheet.text(x, 34, note, colour="muted")
        order = now.fair if flat else now.raw
        for i, doc in enumerate(order[:_LISTED]):
            self._entry(sheet, doc, x, 62 + 42 * i, breadth)
        answers, under = [doc for doc in order if doc.right], 76.0 + 42 * _LISTED
        many = len(answers) > _ANSWERS
        title = f"Right answers: the first {_ANSWERS} of {len(answers)}" if many else "Right answers"
        sheet.text(x, under, title, strong=True, colour="muted")
        for i, doc in enumerate(answers[:_ANSWERS]):
            self._entry(sheet, doc, x, under + 26 + 42 * i, breadth)
        if not answers:
            sheet.text(x, under + 26, "none among these", colour="muted")
        return under + 52 + 42 * (min(_ANSWERS, max(1, *map(len, self.relevant), 1)) - 1)

    def _entry(self, sheet: Sheet, doc: _Doc, x: float, y: float, breadth: float) -> None:
        """Draw one document of the list: its rank, its name, and what it owes to its length."""
        flat = self.renormalised
        rank, other = (doc.fair, doc.raw) if flat else (doc.raw, doc.fair)
        after = max(18, measure(f"{rank:,}", strong=True) + 10)
        start = x + after + (18 if doc.right else 0)
        sheet.text(x, y, f"{rank:,}", strong=True)
        if doc.right:
            sheet.polygon(_diamond(x + after + 6, y - 4.5, 6), "good")
        sheet.text(start, y, fit(doc.name, breadth - start + x, strong=True), strong=True)
        if other == rank:
            elsewhere = "" if flat else "in its place"
        else:
            elsewhere = f"by {'inner product' if flat else 'cosine'} {_ordinal(other)}"
        parts = (f"length {num(doc.length, 2)}", f"cosine {num(doc.cosine, 2)}", elsewhere)
        lifted = not flat and doc.fair > doc.raw
        text = fit(" · ".join(filter(None, parts)), breadth - 18)
        sheet.text(x + 18, y + 18, text, colour="wrong" if lifted else "muted")

    def _sum(self, sheet: Sheet, now: _Outcome, y: float) -> None:
        """Draw how long the ten best prefixes are at every size."""
        dims, inner, cosine = self.dims, self.top_inner, self.top_cosine
        left, right = 40.0, sheet.width - measure("by inner product", strong=True) - 34
        top, bottom = y + 48, y + 178
        sheet.text(0, y + 14, "Length of the ten best prefixes", size=TEXT, strong=True)
        note = f"mean of {self.asked:,} queries, 1 = mean of all documents"
        sheet.text(0, y + 34, note, colour="muted")
        every = [*inner, *cosine, 1.0]
        step = 0.2 if max(every) - min(every) > 0.5 else 0.1
        ends = floor(min(every) / step + 1e-9) * step, ceil(max(every) / step - 1e-9) * step
        ends = ends if ends[1] > ends[0] else (1 - step, 1 + step)
        sx, sy = logarithmic((dims[0], dims[-1]), (left + 10, right - 10)), linear(ends, (bottom, top + 6))
        for tick in _steps(ends, step):
            sheet.line([(left, sy(tick)), (right, sy(tick))], "zero" if tick == 1 else "grid")
            sheet.text(left - 8, sy(tick) + 4.5, num(tick, 1), colour="muted", anchor="end")
        places, i = [sx(d) for d in dims], now.at
        for x in places:
            sheet.line([(x, bottom + 4), (x, bottom + 9)], "tick")
        sheet.line([(places[i], top), (places[i], bottom + 4)], "here-line")
        widths = [measure(f"{d:,}", strong=True) for d in dims]
        for j in named(places, widths):
            if j != i and abs(places[j] - places[i]) >= (widths[j] + widths[i]) / 2 + 7:
                sheet.text(places[j], bottom + 25, f"{dims[j]:,}", colour="muted", anchor="middle")
        sheet.text(places[i], bottom + 25, f"{dims[i]:,}", strong=True, anchor="middle")
        sheet.text(right, bottom + 46, "dimensions kept (log scale)", colour="muted", anchor="end")
        sheet.line([*zip(places, map(sy, cosine), strict=True)], "line-right")
        sheet.line([*zip(places, map(sy, inner), strict=True)], "line-wrong")
        for x, value in zip(places, inner, strict=True):
            sheet.dot(x, sy(value), 3, "wrong")
        sheet.dot(places[i], sy(inner[i]), 6, "wrong", ringed=True)
        sheet.circle(places[i], sy(cosine[i]), 5, "right-outline")
        said = sorted(
            [("by inner product", inner[i], "wrong"), ("by cosine", cosine[i], "right")], key=lambda one: -one[1]
        )
        x = right + 20
        rows = [(sy(value), 34.0) for _, value, _ in said]
        for (text, value, colour), (start, _), at in zip(
            said, rows, balance(rows, top - 30, bottom - 20, 4), strict=True
        ):
            sheet.line([(right + 2, start), (x - 4, at)], "leader")
            sheet.text(x, at - 1, text, colour=colour)
            sheet.text(x, at + 16, f"{num(value, 2)} × mean", strong=True, colour=colour)
        r = self.correlation[i]
        sheet.text(x, bottom + 25, "rank gain vs length:", colour="muted")
        sheet.text(x, bottom + 43, "none gained" if r is None else f"correlation {signed(r, 2)}", strong=True)


def _ordinal(n: int) -> str:
    end = "th" if 10 < n % 100 < 14 else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n:,}{end}"


def _steps(ends: tuple[float, float], step: float) -> list[float]:
    """Round values from one end to the other (`ladder` in ``js/norm_bias.js``)."""
    return [round(ends[0] + i * step, 6) for i in range(round((ends[1] - ends[0]) / step) + 1)]


def _diamond(x: float, y: float, r: float) -> list[Point]:
    return [(x, y - r), (x + r, y), (x, y + r), (x - r, y)]


def equal(score: float, xs: tuple[float, float], ys: tuple[float, float], *, flat: bool) -> list[Point]:
    """Return points of one score inside a plot: one cosine where `flat`, else one product of length and cosine."""
    low = xs[0] if flat else max(xs[0], score / ys[1])
    high = xs[1] if flat or ys[0] <= 0 else min(xs[1], score / ys[0])
    if low >= high or score <= 0 or (flat and not ys[0] <= score <= ys[1]):
        return []
    if flat:
        return [(low + (high - low) * i / _POINTS, score) for i in range(_POINTS + 1)]
    lengths = [low * (high / low) ** (i / _POINTS) for i in range(_POINTS + 1)]
    return [(x, score / x) for x in lengths]


Floats = NDArray[np.floating[Any]]


def _prefixes(rows: Floats, dim: int, what: str) -> tuple[Floats, Floats]:
    """Lengths of all prefixes, (rows,), and the prefixes brought to length 1, (rows, dim)."""
    cut = rows[:, :dim]
    lengths = np.linalg.norm(cut, axis=1)
    if not lengths.all():
        raise FigureError(f"NormBias: {what} {int(np.argmin(lengths))} has length 0 at {dim} dimensions")
    return lengths, cut / lengths[:, None]


def _ranks(scores: Floats) -> NDArray[np.int64]:
    """Ranks within each row, from 1; equal scores share the better one."""
    order = np.argsort(-scores, axis=1)
    ordered = np.take_along_axis(scores, order, axis=1)
    places = np.arange(1, scores.shape[1] + 1)
    fresh = np.diff(ordered, axis=1, prepend=np.inf) != 0
    ranks = np.empty(scores.shape, dtype=np.int64)
    np.put_along_axis(ranks, order, np.maximum.accumulate(np.where(fresh, places, 0), axis=1), axis=1)
    return ranks


def _correlations(gained: NDArray[np.int64], lengths: Floats) -> list[float]:
    """Of each row, the correlation of gained ranks with lengths; rows that gain none are left out."""
    far = gained - gained.mean(1, keepdims=True)
    long = lengths - lengths.mean()
    spread = np.sqrt((far**2).sum(1) * (long**2).sum())
    some = spread > 0
    return [float(r) for r in (far @ long)[some] / spread[some]]


def _measure(
    queries: Floats,
    documents: Floats,
    dims: Sequence[int],
    shown: Sequence[int],
    document_names: Sequence[str],
    relevant: Sequence[Sequence[int]],
    candidates: int,
) -> dict[str, Any]:
    """Return all measured traits but the names and texts of the queries."""
    rows, dims = _fitting(queries, documents, dims, shown, document_names, relevant, candidates)
    n, size, each = len(documents), documents.shape[1], [int(q) for q in shown]
    ranked: dict[tuple[int, int], dict[str, Any]] = {}
    for dim in dims:
        norms, units = _prefixes(documents, dim, "document")
        _, asked = _prefixes(queries, dim, "query")
        relative = norms / norms.mean()
        tops: list[tuple[float, float]] = []
        found: list[float] = []
        for start in range(0, len(asked), _BLOCK):
            cosines = asked[start : start + _BLOCK] @ units.T
            even = dim == size and np.ptp(relative) < 1e-5  # all of length 1, but for rounding
            inner = cosines if even else cosines * relative  # the query's own length changes no rank
            fair, raw = _ranks(cosines), _ranks(inner)
            tops += [tuple(relative[ranks <= TEN].mean() for ranks in both) for both in zip(raw, fair, strict=True)]
            found += _correlations(fair - raw, relative)
            for q in set(each) & set(range(start, start + len(cosines))):
                k = q - start
                ranked[q, dim] = {"cosines": cosines[k], "fair": fair[k], "raw": raw[k]}
        rows["mean_norm"].append(float(norms.mean()))
        for name, values in zip(("top_inner", "top_cosine"), zip(*tops, strict=True), strict=True):
            rows[name].append(float(np.mean(values)))
        rows["correlation"].append(float(np.mean(found)) if found else None)
        rows["_norms"].append(norms)
    lengths = rows.pop("_norms")
    for k, q in enumerate(each):
        mine = [ranked[q, dim] for dim in dims]
        kept = _candidates(mine, [int(j) for j in relevant[k]], candidates)
        rows["names"].append([str(document_names[j]) for j in kept])
        rows["relevant"].append([place for place, j in enumerate(kept) if j in set(map(int, relevant[k]))])
        rows["norms"].append([[float(norms[j]) for j in kept] for norms in lengths])
        rows["cosines"].append([[float(np.clip(one["cosines"][j], -1, 1)) for j in kept] for one in mine])
        rows["by_cosine"].append([[int(one["fair"][j]) for j in kept] for one in mine])
        rows["by_inner"].append([[int(one["raw"][j]) for j in kept] for one in mine])
    return {**rows, "dims": list(dims), "documents": n, "asked": len(queries)}


def _candidates(mine: Sequence[dict[str, Any]], right: Sequence[int], most: int) -> list[int]:
    """Rows of the documents to keep: right answers, what reaches the first places at any size, then the next best."""
    best = np.min([np.minimum(one["fair"], one["raw"]) for one in mine], axis=0)
    order = [int(j) for j in np.argsort(best, kind="stable")]
    first = [j for j in order if best[j] <= _LISTED]
    chosen = list(dict.fromkeys([*right, *first, *order]))
    return sorted(chosen[: max(most, len({*right, *first}))])


def _fitting(
    queries: Floats,
    documents: Floats,
    dims: Sequence[int],
    shown: Sequence[int],
    document_names: Sequence[str],
    relevant: Sequence[Sequence[int]],
    candidates: int,
) -> tuple[dict[str, list[Any]], list[int]]:
    """Return empty lists for all that will be measured, and the sizes with the full one, or say what does not fit."""
    for what, rows in (("queries", queries), ("documents", documents)):
        if rows.ndim != 2 or not np.isfinite(rows).all():
            raise FigureError(f"NormBias: {what} must be rows of finite numbers, not of shape {rows.shape}")
    n, size = documents.shape
    if queries.shape[1] != size or n < TEN or not len(queries):
        shapes = f"{queries.shape} and {documents.shape}"
        raise FigureError(
            f"NormBias: queries and documents must have one width, and be 1 and {TEN} at least, not {shapes}"
        )
    if len(document_names) != n:
        raise FigureError(f"NormBias: document_names must be {n}, one for each document, not {len(document_names)}")
    if len(relevant) != len(shown):
        raise FigureError(
            f"NormBias: relevant must hold one entry for each of the {len(shown)} shown, not {len(relevant)}"
        )
    if off := [q for q in shown if not 0 <= q < len(queries)]:
        raise FigureError(f"NormBias: shown must be rows of the {len(queries)} queries, not {off[0]}")
    if off := [j for one in relevant for j in one if not 0 <= j < n]:
        raise FigureError(f"NormBias: relevant must be rows of the {n} documents, not {off[0]}")
    if off := [d for d in dims if not 1 <= d <= size]:
        raise FigureError(f"NormBias: dims must be from 1 to {size}, not {off[0]}")
    if not 2 <= candidates <= _MOST:
        raise FigureError(f"NormBias: candidates must be from 2 to {_MOST}, not {candidates}")
    names = ("names", "relevant", *_EACH, *_SUMMARY, "_norms")
    return {name: [] for name in names}, sorted({*map(int, dims), size})
