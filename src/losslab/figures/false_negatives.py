"""False negatives: your batch-mate's positive may be yours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor
from typing import Any

import traitlets
from matplotlib.figure import Figure as Canvas

from losslab.figures import _parts as parts
from losslab.figures._contrastive import Row, info_nce_row
from losslab.figures._numbers import num, percent, plural
from losslab.figures._sheet import TEXT, Sheet, fit, linear, logarithmic, measure
from losslab.figures.base import Figure, Table, Whole

WIDTHS = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)
MASKS = ("none", "exact", "threshold", "guide")
KINDS = {"d": "same text", "s": "same summary", "n": "near-duplicate"}
_WORDS = {"duplicate": "d", "summary": "s", "near": "n", "": "-"}
_LISTED = 3
_TEXTS = ("query", "label", "names", "kinds")
_POOL = ("names", "cosines", "guides", "kinds")
_CURVES = ("widths", "measured", "low", "high")
_DATA = (*_TEXTS, "positive", "positive_guide", "cosines", "guides", "temperature", "rate", *_CURVES)


class _Number(traitlets.TraitType[float, object]):
    """A finite float from `low` to `high`, both included, rounded to `digits`."""

    def __init__(self, default: float, low: float, high: float, digits: int) -> None:
        super().__init__(default)
        self.low, self.high, self.digits = low, high, digits

    def validate(self, obj: object, value: object) -> float:
        """Return `value` as a float, rounded."""
        number = value if isinstance(value, int | float) and not isinstance(value, bool) else None
        if number is None or not self.low <= number <= self.high:  # a NaN lies nowhere
            obj._refuse(f"{self.name} must be a number from {self.low:g} to {self.high:g}, not {value!r}")  # type: ignore[attr-defined]
        return round(float(number), self.digits)  # type: ignore[arg-type]


@dataclass(frozen=True)
class _Outcome:
    """What the figure holds for its traits; `now` and `right` have the positive at 0 and document j at j + 1."""

    width: int
    wrong: list[bool]
    out: list[bool]
    now: Row
    right: Row
    falses: list[int]
    hardest: list[int]
    expected: float

    def tally(self, wrong: bool) -> int:
        """How many false (or true) negatives the mask takes out."""
        return sum(out for out, is_wrong in zip(self.out, self.wrong, strict=True) if is_wrong == wrong)

    @property
    def stolen(self) -> float:
        """The share of the push on negatives that lands on right answers."""
        return float(sum(self.now.shares[j + 1] for j in self.falses))

    @property
    def left(self) -> int:
        """Negatives that the mask leaves."""
        return self.out.count(False)


class FalseNegatives(Figure):
    """One query's in-batch negatives, some of which answer it: what they take of the gradient, and what masks do.

    Nothing is computed here but InfoNCE of one row: the caller measures cosines and counts batches. The pool stands in
    a random order, which stays: the negatives of a batch of width B are its first B − 1.

    Attributes
    ----------
    query, label : str
        The query's name, and a few words of its text.
    positive, positive_guide : float
        Cosine of the query with its own document: the model's, and the guide's.
    names : list of str, shape (M,)
        The other documents, up to 1,023.
    cosines, guides : list of float, shape (M,)
        Their cosines with the query: the model's, and the guide's. Rounded to four digits.
    kinds : str, or list of str, shape (M,)
        What each is to the query: ``"duplicate"`` (the positive’s text again), ``"summary"`` (its query has the same
        text), ``"near"`` (a near-duplicate), or ``""`` (a true negative). Kept as letters: d, s, n and -.
    rate : float
        ρ: the share of all ordered pairs in the corpus that are false negatives.
    widths : list of int, shape (W,)
        Batch widths at which false negatives were counted, ascending; at least two.
    measured, low, high : list of float, shape (W,)
        The share of queries that met at least one: mean over batches, and the ends of its range.
    temperature : float
        τ.
    width : int
        B, the width now shown, one that the slider offers.
    mask : str
        ``"none"``; ``"exact"``: the positive's text again, or the query's; ``"threshold"``: the query's cosine is above
        `threshold`; ``"guide"``: the guide's cosine is above the positive's minus `margin`, and a tie stays in.
    threshold : float
        0.2 to 1, in hundredths.
    margin : float
        −0.1 to 0.5, in hundredths.

    Raises
    ------
    TypeError
        If something that must be measured is missing.
    FigureError
        If lists disagree, or a trait is none that is offered.
    """

    NAME = "false_negatives"
    TITLE = "False negatives"

    query = traitlets.Unicode().tag(sync=True)
    label = traitlets.Unicode().tag(sync=True)
    positive = _Number(0.0, -1, 1, 4).tag(sync=True)
    positive_guide = _Number(0.0, -1, 1, 4).tag(sync=True)
    names = traitlets.List(traitlets.Unicode()).tag(sync=True)
    cosines = Table().tag(sync=True)
    guides = Table().tag(sync=True)
    kinds = traitlets.Unicode().tag(sync=True)
    rate = _Number(0.0, 0, 1, 8).tag(sync=True)
    widths = Table(whole=True).tag(sync=True)
    measured = Table().tag(sync=True)
    low = Table().tag(sync=True)
    high = Table().tag(sync=True)
    temperature = _Number(0.05, 0.001, 10, 6).tag(sync=True)
    width = Whole(128, 2, 1024).tag(sync=True)
    mask = traitlets.Unicode("none").tag(sync=True)
    threshold = _Number(0.7, 0.2, 1, 2).tag(sync=True)
    margin = _Number(0.0, -0.1, 0.5, 2).tag(sync=True)

    def __init__(self, **traits: Any) -> None:  # noqa: ANN401  # checked one by one
        needed = [name for name in _DATA if name not in ("label", "temperature")]
        self._need(traits, *needed)
        kinds = traits["kinds"]
        if not isinstance(kinds, str):
            if strange := [kind for kind in kinds if kind not in _WORDS]:
                self._refuse(f"kinds must be of {list(_WORDS)}, not {strange[0]!r}")
            traits["kinds"] = "".join(_WORDS[kind] for kind in kinds)
        for name in ("cosines", "guides", "measured", "low", "high"):
            rows = Table()
            rows.name = name
            traits[name] = [round(value, 4) for value in rows.validate(self, traits[name])]
        traits["names"] = list(traits["names"])
        pool = len(traits["cosines"])
        traits.setdefault("width", max((w for w in WIDTHS if w <= min(128, pool + 1)), default=2))
        super().__init__(**traits)
        self._seal()

    def _widths(self) -> list[int]:
        most = len(self.cosines) + 1
        return [*(w for w in WIDTHS if w < most), most]

    @traitlets.validate(*_DATA, "width", "mask")
    def _agree(self, proposal: dict[str, Any]) -> object:
        name, value = proposal["trait"].name, proposal["value"]
        if name in _DATA:
            self._keep(name, value)

        def get(key: str) -> Any:  # noqa: ANN401
            return value if key == name else getattr(self, key)

        if not get("query").strip():
            self._refuse("query must be the query's name, not empty")
        pool = [len(get(key)) for key in _POOL]
        if len(set(pool)) > 1 or not 1 <= pool[0] <= 1023:
            counted = ", ".join(f"{key} {n}" for key, n in zip(_POOL, pool, strict=True))
            self._refuse(
                f"names, cosines, guides and kinds must hold one entry for each of 1 to 1023 documents, not {counted}"
            )
        if strange := set(get("kinds")) - {"-", *KINDS}:
            self._refuse(f"kinds must be made of d, s, n and -, not {min(strange)!r}")
        for key in ("cosines", "guides"):
            if off := [v for v in get(key) if not -1 <= v <= 1]:
                self._refuse(f"{key} must be from -1 to 1, not {off[0]}")
        widths, curves = get("widths"), [get(key) for key in _CURVES[1:]]
        if len(widths) < 2 or widths != sorted(set(widths)) or widths[0] < 2:
            self._refuse(f"widths must be two or more, ascending, from 2 on, not {widths}")
        if any(len(curve) != len(widths) for curve in curves):
            self._refuse(f"measured, low and high must hold one entry for each of the {len(widths)} widths")
        if not all(0 <= a <= m <= b <= 1 for m, a, b in zip(*curves, strict=True)):
            self._refuse("low ≤ measured ≤ high must hold at every width, all from 0 to 1")
        if get("width") not in (offered := self._widths()):
            self._refuse(f"width must be one of {offered}, not {get('width')}")
        if get("mask") not in MASKS:
            self._refuse(f"mask must be one of {list(MASKS)}, not {get('mask')!r}")
        return value

    def _masked(self, j: int) -> bool:
        """Whether the mask takes document j out; a tie with its limit stays in, as in the libraries."""
        if self.mask == "exact":
            return self.kinds[j] in ("d", "s")
        if self.mask == "threshold":
            return bool(self.cosines[j] > self.threshold)
        return bool(self.mask == "guide" and self.guides[j] > round(self.positive_guide - self.margin, 4))

    def _outcome(self) -> _Outcome:
        batch = range(self.width - 1)
        wrong, out = [self.kinds[j] != "-" for j in batch], [self._masked(j) for j in batch]
        scores = [self.positive, *self.cosines[: self.width - 1]]
        closest = sorted(batch, key=lambda j: (-self.cosines[j], j))
        return _Outcome(
            width=self.width,
            wrong=wrong,
            out=out,
            now=info_nce_row(scores, 0, self.temperature, [True, *(not o for o in out)]),
            right=info_nce_row(scores, 0, self.temperature, [True, *(not w for w in wrong)]),
            falses=[j for j in closest if wrong[j]],
            hardest=[j for j in closest if not wrong[j]],
            expected=self.rate * (self.width - 1),
        )

    def describe(self) -> str:
        """Return in words what the figure now shows."""
        now = self._outcome()
        found, lost = len(now.falses), _counted(now.tally(wrong=False))
        some = plural(found, "false negative") if found else "no false negative"
        meets = f"In a batch of {now.width:,}, {self.query} meets {some} (an average query: {_expected(now.expected)})"
        rule = {
            "none": "",
            "exact": "exact duplicates",
            "threshold": f"whatever is above cosine {num(self.threshold, 2)}",
            "guide": "whatever the guide puts above the positive "
            f"{'+' if self.margin < 0 else '−'} {num(abs(self.margin), 2)}",
        }[self.mask]
        removed = f"{now.tally(wrong=True)} of them and {lost}" if found else lost
        start = f"{meets}. Masking {rule} removes {removed}" if rule else f"{meets}, and nothing is masked"
        if not now.left:
            return f"{start}: no negative is left, and nothing is taught."
        loss, right = num(now.now.loss, 3), num(now.right.loss, 3)
        off = "as it should be" if loss == right else f"instead of {right}"
        push = f"right answers take {_portion(now.stolen)} of the push on negatives"
        return f"{start}: {push}, and the loss reads {loss} {off}."

    def twin(self) -> Canvas:
        """Return the still twin of the current state."""
        now = self._outcome()
        sheet = Sheet(height=700)
        breadth = floor(sheet.width * 0.52)
        x = breadth + 34.0
        self._drawn_chance(sheet, now, self._drawn_pool(sheet, now, breadth) + 26, breadth)
        title, should = "Loss of this query (nats)", f"should be {num(now.right.loss)}"
        parts.number(sheet, x, 0, now.now.loss, now.right.loss, title, should)
        self._drawn_top(sheet, now, x, self._drawn_share(sheet, now, x, 84, sheet.width - x) + 26, sheet.width - x)
        return sheet.canvas

    def _drawn_pool(self, sheet: Sheet, now: _Outcome, breadth: float) -> float:
        """Draw every document of the batch by the query's cosine and the guide's; return the y below."""
        low_x, low_y = (
            _fifth_below(min(0.0, *values))
            for values in ([*self.cosines, self.positive], [*self.guides, self.positive_guide])
        )
        left, top = 40.0, 92.0
        bottom = top + min(300, max(220, breadth * 0.7))
        sx, sy = linear((low_x, 1), (left + 6, breadth - 14)), linear((low_y, 1), (bottom - 6, top + 8))
        sheet.text(0, 14, fit(self.query, breadth, size=TEXT, strong=True), size=TEXT, strong=True)
        sheet.text(0, 35, fit(self.label, breadth), colour="muted")
        x = 0.0
        for text in ("positive", "right answer", "other", "lost to the mask"):
            if text == "positive":
                sheet.dot(x + 7, 57, 6, "best")
            elif text == "right answer":
                sheet.polygon(_diamond(x + 7, 57, 7), "good")
            elif text == "other":
                sheet.dot(x + 7, 57, 2.5, "muted")
            else:
                _cross(sheet, x + 7, 57)
            sheet.text(x + (19 if text != "lost to the mask" else 17), 62, text)
            x += 19 + measure(text) + 12
        sheet.levels(sy, _fifths(low_y), left, breadth, lambda t: num(t, 1))
        for tick in _fifths(low_x):
            sheet.text(sx(tick), bottom + 20, num(tick, 1), colour="muted", anchor="middle")
        sheet.text(0, 84, "↑ guide’s cosine", colour="muted")
        sheet.text(breadth, bottom + 40, "cosine with the query →", colour="muted", anchor="end")
        if self.mask == "threshold":
            at = sx(max(low_x, self.threshold))
            sheet.line([(at, top), (at, bottom)], "line-right")
        elif self.mask == "guide":
            at = sy(min(1, max(low_y, self.positive_guide - self.margin)))
            sheet.line([(left, at), (breadth, at)], "line-right")
        for wanted in ((False, False), (False, True), (True, False), (True, True)):
            for j, state in enumerate(zip(now.wrong, now.out, strict=True)):
                if state != wanted:
                    continue
                px, py = sx(self.cosines[j]), sy(self.guides[j])
                if state == (False, False):
                    sheet.dot(px, py, 2.5, "muted")
                elif state == (False, True):
                    _cross(sheet, px, py)
                elif state == (True, False):
                    sheet.polygon(_diamond(px, py, 7), "good")
                else:
                    sheet.polygon(_diamond(px, py, 6), "right-outline")
        sheet.dot(sx(self.positive), sy(self.positive_guide), 7, "best", ringed=True)
        return bottom + 46

    def _drawn_chance(self, sheet: Sheet, now: _Outcome, y: float, breadth: float) -> None:
        """Draw the share of queries that meet a false negative, as counted and by the formula."""
        most = max(self.widths[-1], len(self.cosines) + 1)
        left, right, top, bottom = 40.0, breadth - 8, y + 52, y + 202

        def formula(w: int) -> float:
            return float(1 - (1 - self.rate) ** (w - 1))

        peak = max(*self.high, formula(most))
        step = next((s for s in (0.02, 0.05, 0.1, 0.2) if peak / s <= 5), 0.25)
        roof = min(1.0, step * max(1, ceil(peak / step - 1e-9)))
        sx, sy = logarithmic((2, most), (left + 6, right)), linear((roof, 0), (top, bottom))
        sheet.text(0, y + 14, "Queries that meet a false negative", size=TEXT, strong=True)
        counted = "counted, with its range"
        sheet.text(0, y + 35, counted, colour="wrong")
        sheet.text(measure(counted) + 14, y + 35, "- - 1 − (1 − ρ)^(B−1)", colour="right")
        ticks = [i * step for i in range(round(roof / step) + 1)]
        sheet.levels(sy, ticks, left, right, lambda t: percent(t, 0))
        for w in (2, 8, 32, 128, 512):
            if w <= most:
                sheet.text(sx(w), bottom + 20, f"{w}", colour="muted", anchor="middle")
        sheet.text(right, bottom + 40, "batch width B (log scale)", colour="muted", anchor="end")
        at = [sx(w) for w in self.widths]
        band = [*zip(at, map(sy, self.high), strict=True), *reversed([*zip(at, map(sy, self.low), strict=True)])]
        sheet.polygon(band, "band")
        offered = [*(w for w in WIDTHS if w < most), most]
        sheet.line([(sx(w), sy(formula(w))) for w in offered], "line-right")
        sheet.line([*zip(at, map(sy, self.measured), strict=True)], "line-wrong")
        for px, value in zip(at, self.measured, strict=True):
            sheet.dot(px, sy(value), 3, "wrong")
        sheet.line([(sx(now.width), top), (sx(now.width), bottom)], "frame")
        sheet.dot(sx(now.width), sy(formula(now.width)), 5, "right", ringed=True)

    def _drawn_share(self, sheet: Sheet, now: _Outcome, x: float, y: float, breadth: float) -> float:
        """Draw the push on negatives as one bar; return the y below."""
        sheet.text(x, y + 14, "Push on right answers", size=TEXT, strong=True)
        sheet.rect(x + 0.5, y + 26.5, breadth - 1, 19, "other" if now.left else "edge")
        sheet.rect(x, y + 26.5, now.stolen * breadth, 19, "good-hatched")
        colour = "wrong" if now.stolen > 0.0005 else "right"
        said = _portion(now.stolen) if now.left else "no negative left"
        sheet.text(x, y + 64, said, strong=True, colour=colour)
        sheet.text(x + breadth, y + 64, "should be 0%", colour="right", anchor="end")
        found = f"here: {len(now.falses):,} · an average query: {_expected(now.expected)}"
        sheet.text(x, y + 86, found)
        return y + 92

    def _drawn_top(self, sheet: Sheet, now: _Outcome, x: float, y: float, breadth: float) -> None:
        """Draw the top of the row in three groups."""
        found, rightly, wrongly = len(now.falses), now.tally(wrong=True), now.tally(wrong=False)
        sheet.text(x, y + 14, "Shares of the push", size=TEXT, strong=True)
        self._document(sheet, now, -1, x, y + 26, breadth)
        y += 72
        groups: list[tuple[str, str, str, Sequence[int]]] = [
            (f"Right answers here: {found:,}", f"{rightly:,} masked", "muted", now.falses),
            (
                "Hardest true negatives",
                f"{wrongly:,} lost" if wrongly else "none lost",
                "wrong" if wrongly else "muted",
                now.hardest,
            ),
        ]
        most = min(_LISTED, max(1, len(self.kinds) - self.kinds.count("-")))  # no room for what never comes
        for title, note, colour, order in groups:
            places = most if order is now.falses else _LISTED
            sheet.text(x, y + 12, title, strong=True, colour="muted")
            sheet.text(x + breadth, y + 12, note, colour=colour, anchor="end")
            for n, j in enumerate(order[:places]):
                self._document(sheet, now, j, x, y + 20 + 38 * n, breadth)
            if not order:
                sheet.text(x, y + 38, "none in this batch", colour="muted")
            y += 20 + 38 * places + 14

    def _document(self, sheet: Sheet, now: _Outcome, j: int, x: float, y: float, breadth: float) -> None:
        """Draw one document, −1 for the query's own: its name, what it is, and its share of the push."""
        column = breadth * 0.66
        start, long = x + column, breadth - column - 50
        name = self.query if j < 0 else self.names[j]
        sheet.text(x, y + 12, fit(name, column - 10, strong=True), strong=True)
        if j < 0:
            sheet.text(x, y + 29, f"{num(self.positive, 2)} · pulled", colour="muted")
            sheet.rect(start, y + 4, long, 15, "best")
            sheet.text(x + breadth, y + 16, "100%", anchor="end")
            return
        wrong, out, share = now.wrong[j], now.out[j], float(now.now.shares[j + 1])
        fate = ("masked" if wrong else "masked wrongly") if out else "pushed away"
        notes = [num(self.cosines[j], 2), *([KINDS[self.kinds[j]]] if wrong else []), fate]
        sheet.text(x, y + 29, " · ".join(notes), colour="wrong" if wrong != out else "muted")
        look = "right-outline" if out else "good-hatched" if wrong else "other"
        sheet.rect(start, y + 4, max(0.5, share * long), 15, look)
        sheet.text(x + breadth, y + 16, "0" if out else _portion(share), anchor="end")


def _counted(n: int) -> str:
    return f"{n:,} true negative{'' if n == 1 else 's'}"


def _expected(n: float) -> str:
    return num(n, 3 if n < 0.0995 else 2 if n < 9.95 else 0)


def _portion(share: float) -> str:
    """Return a share in percent with two digits that count."""
    return percent(share, 0 if share < 5e-5 else 2 if share < 0.00995 else 1 if share < 0.0995 else 0)


def _fifth_below(value: float) -> float:
    return floor(value * 5) / 5


def _fifths(low: float) -> list[float]:
    return [round(low * 5 + i) / 5 for i in range(round((1 - low) * 5) + 1)]


def _diamond(x: float, y: float, r: float) -> list[tuple[float, float]]:
    return [(x, y - r), (x + r, y), (x, y + r), (x - r, y)]


def _cross(sheet: Sheet, x: float, y: float) -> None:
    sheet.line([(x - 3, y - 3), (x + 3, y + 3)], "line-wrong")
    sheet.line([(x + 3, y - 3), (x - 3, y + 3)], "line-wrong")
