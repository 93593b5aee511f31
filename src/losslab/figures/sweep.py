"""A sweep: curves of what was measured at each of several x, with their intervals, read out at one of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import traitlets
from matplotlib.figure import Figure as Canvas

from losslab.figures import _series as series_
from losslab.figures._numbers import num
from losslab.figures._numbers import percent as share
from losslab.figures._plots import balance
from losslab.figures._series import Panel, Panels, Series
from losslab.figures._sheet import TEXT, Point, Sheet, linear, logarithmic, measure
from losslab.figures.base import Figure, FigureError, Table, Whole, _number

_DATA = ("x", "x_text", "x_label", "log", "y_label", "note", "percent", "digits", "panels", "panel_label", "shared")
_STEP = 16  # between marks side by side, px
_TEXTS = {"x_label": 40, "y_label": 60, "note": 90, "panel_label": 30}  # characters at most


class _Stop(traitlets.TraitType[float, object]):
    """A finite number; whether it is one of the figure's x is for the figure to say."""

    def validate(self, obj: object, value: object) -> float:
        number = _number(value)
        if number is None:
            raise FigureError(f"{type(obj).__name__}: {self.name} must be a finite number, not {value!r}")
        return number


class Sweep(Figure):
    """What was measured while one quantity was swept: curves with intervals, one panel at a time, read out at one x.

    Attributes
    ----------
    x : list of float, shape (N,)
        The swept quantity, 2 to 40 values, ascending; above 0 where `log` is true.
    x_text : list of str, shape (N,)
        How each is printed; by default with up to six digits, and thousands apart: 0.05, 1,024.
    x_label : str
        What is swept, with its unit. Where it ends in a single letter, that is its symbol: "temperature τ" is read out
        as "τ = 0.05", "batch width" as "batch width 256".
    log : bool
        Whether the axis of x is logarithmic.
    y_label : str
        What was measured, with its unit.
    note : str
        What the intervals are and on how much they rest; stands below `y_label`. Empty by default.
    panels : dict of str to list of dict
        One to six panels by name, each with one to five series: ``name``, ``values`` (N numbers, None where nothing was
        measured), and if wanted ``low`` and ``high`` (ends of the interval, N numbers, None where there is none),
        ``dashed`` (a reference, or what should be: dashed line, hollow points) and ``tone`` ("best", "plum", "ink",
        "ghost", "muted", "wrong" or "right"; worked out if missing). Kept as a list of ``{"name", "series"}``.
    panel_label : str
        What the choice of panels is called.
    percent : bool
        Whether values are shares of 1, to be printed as percentages.
    digits : int
        Digits after the point of values read out, 0 to 6; by default 3, of percentages 1.
    shared : bool
        Whether all panels have the same upright axis (the default). It need not start at 0.
    axes : list, read-only
        Worked out: for each panel the ends of its upright axis and its ticks, [value, text], upwards.
    looks : list, read-only
        Worked out: for each series of each panel its tone and the number of its shape, the same for a name in all.
    at : float
        The x that is read out, one of `x`; at first the one in the middle.
    panel : str
        The panel shown; at first the first.

    Raises
    ------
    TypeError
        If x, x_label, y_label or panels are missing.
    FigureError
        If numbers are missing, too many or in disorder, or `at` or `panel` cannot be selected.
    """

    NAME = "sweep"
    TITLE = "What was measured"

    x = Table().tag(sync=True)
    x_text = traitlets.List(traitlets.Unicode()).tag(sync=True)
    x_label = traitlets.Unicode().tag(sync=True)
    log = traitlets.Bool(False).tag(sync=True)
    y_label = traitlets.Unicode().tag(sync=True)
    note = traitlets.Unicode().tag(sync=True)
    panels = Panels().tag(sync=True)
    panel_label = traitlets.Unicode("Shown").tag(sync=True)
    percent = traitlets.Bool(False).tag(sync=True)
    digits = Whole(3, 0, 6).tag(sync=True)
    shared = traitlets.Bool(True).tag(sync=True)
    axes: traitlets.List[Any] = traitlets.List(read_only=True).tag(sync=True)
    looks: traitlets.List[Any] = traitlets.List(read_only=True).tag(sync=True)
    at = _Stop(0.0).tag(sync=True)
    panel = traitlets.Unicode().tag(sync=True)

    def __init__(self, **traits: object) -> None:
        self._need(traits, "x", "x_label", "y_label", "panels")
        super().__init__(**traits)
        self._seal()

    @traitlets.default("x_text")
    def _printed(self) -> list[str]:
        whole = [abs(v) >= 1000 and v == round(v) for v in self.x]
        texts = [f"{v:,.0f}" if flat else f"{v:g}" for v, flat in zip(self.x, whole, strict=True)]
        return [text.replace("-", "−") for text in texts]

    @traitlets.default("digits")
    def _enough(self) -> int:
        return 1 if self.percent else 3

    @traitlets.default("at")
    def _middle(self) -> float:
        return float(self.x[len(self.x) // 2])

    @traitlets.default("panel")
    def _first(self) -> str:
        return str(self.panels[0]["name"])

    @traitlets.default("axes")
    def _scaled(self) -> list[dict[str, Any]]:
        every = [one for panel in self.panels for one in panel["series"]]
        shown = [every if self.shared else panel["series"] for panel in self.panels]
        return [series_.axis(series_.known(series), percent=self.percent) for series in shown]

    @traitlets.default("looks")
    def _told_apart(self) -> list[list[tuple[str, int]]]:
        return series_.looks(self.panels)

    @traitlets.validate(*_DATA, "at", "panel")
    def _agree(self, proposal: dict[str, Any]) -> object:
        name, value = proposal["trait"].name, proposal["value"]
        if name in _DATA:
            self._keep(name, value)

        def get(key: str) -> Any:  # noqa: ANN401  # not before what it may be worked out from has been checked
            return value if key == name else getattr(self, key)

        x, panels = get("x"), get("panels")
        if not 2 <= len(x) <= 40 or any(a >= b for a, b in pairwise(x)):
            self._refuse(f"x must be 2 to 40 numbers, ascending, not {x}")
        if get("log") and x[0] <= 0:
            self._refuse(f"x must be above 0 for a logarithmic axis, not {x[0]:g}")
        texts = get("x_text")
        if len(texts) != len(x) or len(set(texts)) < len(x) or not all(1 <= len(text) <= 12 for text in texts):
            self._refuse(f"x_text must be {len(x)} different texts of 1 to 12 characters, one for each x, not {texts}")
        for key, most in _TEXTS.items():
            text = get(key)
            if len(text) > most or (not text.strip() and key != "note"):
                least = 0 if key == "note" else 1
                self._refuse(f"{key} must be a text of {least} to {most} characters, not {text!r}")
        for panel in panels:
            for one in panel["series"]:
                if len(one["values"]) != len(x):
                    where = f"panels[{panel['name']!r}], {one['name']}"
                    self._refuse(f"{where}: values must be {len(x)}, one for each x, not {len(one['values'])}")
        if get("at") not in x:
            self._refuse(f"at must be one of {', '.join(texts)}, not {get('at'):g}")
        names = [panel["name"] for panel in panels]
        if get("panel") not in names:
            self._refuse(f"panel must be one of {', '.join(map(repr, names))}, not {get('panel')!r}")
        return value

    def _where(self) -> str:
        """The x now read out: "τ = 0.05" where x has a symbol, else "batch width 256"."""
        text, last = self.x_text[self.x.index(self.at)], self.x_label.split(" ")[-1]
        return f"{last} = {text}" if len(last) == 1 else f"{self.x_label} {text}"

    def _reading(self, one: Series, i: int) -> tuple[str, str]:
        """A series at the i-th x as printed: its value and its interval, if it has them."""
        value, low, high = (one[key][i] for key in ("values", "low", "high"))
        if value is None:
            return "not measured", ""
        text = share(value, self.digits) if self.percent else num(value, self.digits)
        if low is None:
            return text, ""
        ends = [num(100 * end if self.percent else end, self.digits) for end in (low, high)]
        return text, f"[{', '.join(ends)}]"

    def _shown(self) -> tuple[int, Panel]:
        index = next(i for i, panel in enumerate(self.panels) if panel["name"] == self.panel)
        return index, self.panels[index]

    def describe(self) -> str:
        """Return in words what the figure now shows."""
        now, (_, panel) = self.x.index(self.at), self._shown()
        if all(one["values"][now] is None for one in panel["series"]):
            return f"{panel['name']} at {self._where()}: nothing was measured."
        each = []
        for one in panel["series"]:
            value, interval = self._reading(one, now)
            missing = one["values"][now] is None
            each.append(
                f"{one['name']} ({value})" if missing else " ".join(filter(None, (one["name"], value, interval)))
            )
        return f"{panel['name']} at {self._where()}: {'; '.join(each)}."

    def twin(self) -> Canvas:
        """Return the still twin of the current state."""
        index, panel = self._shown()
        return _Drawing(self, panel["series"], self.axes[index], self.looks[index]).canvas()


def _shape(kind: int, x: float, y: float, r: float) -> list[Point]:
    """Corners of a mark: (disc,) diamond, square, triangle, triangle on its tip, as in ``js/sweep.js``."""
    if kind == 1:
        far = 1.25 * r
        return [(x - far, y), (x, y - far), (x + far, y), (x, y + far)]
    if kind == 2:
        far = 0.9 * r
        return [(x - far, y - far), (x + far, y - far), (x + far, y + far), (x - far, y + far)]
    up = r if kind == 3 else -r
    return [(x - 1.15 * r, y + 0.85 * up), (x, y - 1.15 * up), (x + 1.15 * r, y + 0.85 * up)]


def runs(n: int, there: Callable[[int], bool]) -> list[list[int]]:
    """Return the stretches of neighbouring indices below `n` for which `there` holds."""
    found: list[list[int]] = []
    for i in filter(there, range(n)):
        if found and found[-1][-1] == i - 1:
            found[-1].append(i)
        else:
            found.append([i])
    return found


def wrap(text: str, most: float, *, size: float, strong: bool = False) -> list[str]:
    """Return words in lines of at most `most` px."""
    lines = [""]
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}" if lines[-1] else word
        if lines[-1] and measure(longer, size, strong=strong) > most:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines


def named(places: Sequence[float], widths: Sequence[float]) -> list[int]:
    """Which stops are named below the axis: the first, the last, and from the left those that keep clear of both."""

    def clear(i: int, j: int) -> bool:
        return places[j] - places[i] >= (widths[i] + widths[j]) / 2 + 9

    last, kept = len(places) - 1, [0]
    for i in range(1, last):
        if clear(kept[-1], i) and clear(i, last):
            kept.append(i)
    return [*kept, last]


class _Drawing:
    """The twin of a sweep, part by part."""

    def __init__(self, figure: Sweep, series: list[Series], axis: dict[str, Any], looks: list[tuple[str, int]]) -> None:
        self.figure, self.series, self.axis, self.looks = figure, series, axis, looks
        every = [one for panel in figure.panels for one in panel["series"]]
        read = [figure._reading(one, i) for one in every for i in range(len(figure.x))]
        self.now = figure.x.index(figure.at)
        self.head = f"at {figure._where()}"
        self.name = max(measure(one["name"], strong=True) for one in every)
        self.reading = max(
            measure(value, strong=True) + (5 + measure(interval) if interval else 0) for value, interval in read
        )
        gutter = max(self.name, self.reading, measure(self.head, strong=True)) + 30
        self.aside = gutter <= 0.45 * 760
        self.sheet = Sheet(height=1)
        self.left = max(36, max(measure(text) for axis in figure.axes for _, text in axis["ticks"]) + 12)
        self.right = self.sheet.width - (gutter if self.aside else 4)

    def canvas(self) -> Canvas:
        figure = self.figure
        room = self.right if self.aside else 760
        titles = wrap(figure.y_label, room, size=TEXT, strong=True)
        notes = wrap(f"{figure.panel}, {figure.note}" if figure.note else figure.panel, room, size=13)
        top = 10 + 20 * (len(titles) + len(notes))
        bottom = top + (290 if self.aside else 240)
        pitch = 44 if 36 + self.name + 14 + self.reading > 760 else 26
        self.sheet = Sheet(height=bottom + 48 if self.aside else bottom + 80 + pitch * len(self.series))
        for i, text in enumerate(titles):
            self.sheet.text(0, 14 + 20 * i, text, size=TEXT, strong=True)
        for i, text in enumerate(notes):
            self.sheet.text(0, 14 + 20 * (len(titles) + i), text, colour="muted")
        reach = (self.left + 12, self.right - 12)
        sx = (logarithmic if figure.log else linear)((figure.x[0], figure.x[-1]), reach)
        self.places = [sx(x) for x in figure.x]
        low, high = self.axis["ends"]
        self.sy = linear((low, high), (bottom - (10 if low else 0), top + 10))
        self._axes(top, bottom)
        ends = [max(i for i, v in enumerate(one["values"]) if v is not None) for one in self.series]
        heights = [self.sy(one["values"][end]) for one, end in zip(self.series, ends, strict=True)]
        order = sorted(range(len(self.series)), key=lambda i: (heights[i], i))
        for draw in (self._band, self._line):
            for i in reversed(order):
                draw(self.series[i], *self.looks[i])
        self._marks_now(order)
        if self.aside:
            self._labels(order, [(self.places[end] + 8, y) for end, y in zip(ends, heights, strict=True)], top, bottom)
        else:
            self._list(order, bottom + 70, pitch)
        return self.sheet.canvas

    def _axes(self, top: float, bottom: float) -> None:
        figure, sheet, places = self.figure, self.sheet, self.places
        text_of = dict(self.axis["ticks"])
        sheet.levels(self.sy, list(text_of), self.left, self.right, lambda tick: text_of[tick])
        for x in places:
            sheet.line([(x, bottom), (x, bottom + 5)], "tick")
        sheet.line([(self.left, bottom), (self.right, bottom)], "zero")
        sheet.line([(places[self.now], top), (places[self.now], bottom)], "here-line")
        widths = [measure(text, strong=True) for text in figure.x_text]
        middles = [min(760 - w / 2, max(w / 2, x)) for x, w in zip(places, widths, strict=True)]
        for i in named(middles, widths):
            if abs(middles[i] - middles[self.now]) >= (widths[i] + widths[self.now]) / 2 + 7:
                sheet.text(middles[i], bottom + 21, figure.x_text[i], colour="muted", anchor="middle")
        sheet.text(middles[self.now], bottom + 21, figure.x_text[self.now], strong=True, anchor="middle")
        name = f"{figure.x_label}{' (log scale)' if figure.log else ''}"
        sheet.text(self.right, bottom + 42, name, colour="muted", anchor="end")

    def _band(self, one: Series, tone: str, _: int) -> None:
        for run in runs(len(self.places), lambda i: one["low"][i] is not None):
            there = [(self.places[i], self.sy(one["high"][i])) for i in run]
            back = [(self.places[i], self.sy(one["low"][i])) for i in reversed(run)]
            if len(run) > 1:
                self.sheet.veil([*there, *back], tone)

    def _line(self, one: Series, tone: str, shape: int) -> None:
        for run in runs(len(self.places), lambda i: one["low"][i] is not None):
            if len(run) == 1:
                self._whisker(one, run[0], tone, 3, self.places[run[0]])
        points = {i: (self.places[i], self.sy(v)) for i, v in enumerate(one["values"]) if v is not None}
        for run in runs(len(self.places), points.__contains__):
            if len(run) > 1:
                self.sheet.line([points[i] for i in run], f"curve-{tone}{'-dashed' if one['dashed'] else ''}")
        for x, y in points.values():
            self._mark(x, y, 3.5, f"mark-{tone}{'-open' if one['dashed'] else ''}", shape)

    def _marks_now(self, order: list[int]) -> None:
        """Draw the marks at the current x large, side by side where they would cover each other."""
        extents: list[tuple[float, float] | None] = []
        for one in self.series:
            value, low, high = (one[key][self.now] for key in ("values", "low", "high"))
            if value is None:
                extents.append(None)
                continue
            top, y, bottom = (self.sy(value if v is None else v) for v in (high, value, low))
            extents.append((min(y - 8, top), max(y + 8, bottom)))
        shifts, centre = series_.beside(extents), self.places[self.now]
        for i in reversed(order):
            if extents[i] is None:
                continue
            one, (tone, shape) = self.series[i], self.looks[i]
            shift, half = shifts[i]
            reach = _STEP * half + 8
            x = min(self.right - reach, max(self.left + reach, centre)) + _STEP * shift
            if one["low"][self.now] is not None:
                self._whisker(one, self.now, tone, 5, x)
            look = f"mark-{tone}-{'open' if one['dashed'] else 'ringed'}"
            self._mark(x, self.sy(one["values"][self.now]), 6, look, shape)

    def _whisker(self, one: Series, i: int, tone: str, cap: float, x: float) -> None:
        low, high = self.sy(one["low"][i]), self.sy(one["high"][i])
        for line in ([(x - cap, low), (x + cap, low)], [(x, low), (x, high)], [(x - cap, high), (x + cap, high)]):
            self.sheet.line(line, f"whisker-{tone}")

    def _mark(self, x: float, y: float, r: float, look: str, shape: int) -> None:
        if shape == 0:
            self.sheet.circle(x, y, r, look)
        else:
            self.sheet.polygon(_shape(shape, x, y, r), look)

    def _read(self, one: Series, x: float, y: float) -> None:
        value, interval = self.figure._reading(one, self.now)
        missing = one["values"][self.now] is None
        self.sheet.text(x, y, value, strong=not missing, colour="muted" if missing else "ink")
        if interval:
            self.sheet.text(x + measure(value, strong=True) + 5, y, interval, colour="muted")

    def _labels(self, order: list[int], ends: list[Point], top: float, bottom: float) -> None:
        """Write each name beside the end of its line, apart from the others, with what is read out."""
        start = self.right + 24
        self.sheet.text(start, top - 16, self.head, colour="muted")
        for i, y in zip(order, balance([(ends[i][1], 34) for i in order], top - 8, bottom + 8, 7), strict=True):
            x, end = ends[i]
            self.sheet.line([(x, end), (max(x, self.right + 4), end), (start - 5, y - 5)], "leader")
            self.sheet.text(start, y - 1, self.series[i]["name"], strong=True, colour=self.looks[i][0])
            self._read(self.series[i], start, y + 16)

    def _list(self, order: list[int], start: float, pitch: float) -> None:
        """Write the names below, where they find no room beside the lines."""
        column = 36 if pitch > 26 else 760 - self.reading
        over = column + measure(self.head) > 760
        self.sheet.text(760 if over else column, start, self.head, colour="muted", anchor="end" if over else "start")
        for n, i in enumerate(order):
            y, one, (tone, shape) = start + 24 + pitch * n, self.series[i], self.looks[i]
            self.sheet.line([(0, y - 4.5), (28, y - 4.5)], f"curve-{tone}{'-dashed' if one['dashed'] else ''}")
            self._mark(14, y - 4.5, 5, f"mark-{tone}{'-open' if one['dashed'] else ''}", shape)
            self.sheet.text(36, y, one["name"], strong=True, colour=tone)
            self._read(one, column, y + 18 if pitch > 26 else y)
