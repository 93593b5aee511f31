"""What all live figures have in common: validated traits, a description, a still twin, and how they are displayed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isfinite
from numbers import Integral, Real
from typing import Any, ClassVar, NoReturn

import anywidget
import traitlets
from matplotlib.figure import Figure as Canvas

from losslab.figures._sheet import to_svg
from losslab.figures.compose import compose, stylesheet


class FigureError(traitlets.TraitError, ValueError):
    """A trait was given what its figure cannot show; the message names the trait, the value and what is allowed."""


def _number(value: object) -> float | None:
    """Return a finite number as a float, and None for whatever else."""
    if isinstance(value, bool) or not isinstance(value, Real) or not isfinite(value):
        return None
    return float(value)


def _whole(value: object) -> int | None:
    """Return a whole number as an int, and None for whatever else."""
    return int(value) if isinstance(value, Integral) and not isinstance(value, bool) else None


class Whole(traitlets.TraitType[int, object]):
    """An int from `low` to `high`, both included."""

    def __init__(self, default: int, low: int, high: int) -> None:
        super().__init__(default)
        self.low, self.high = low, high

    def validate(self, obj: object, value: object) -> int:
        """Return `value` as an int."""
        whole = _whole(value)
        if whole is None or not self.low <= whole <= self.high:
            where = f"{type(obj).__name__}: {self.name}"
            raise FigureError(f"{where} must be an int from {self.low} to {self.high}, not {value!r}")
        return whole


class Tenth(traitlets.TraitType[float, object]):
    """A float from `low` to `high`, rounded to the tenth that the figure's slider can stand at."""

    def __init__(self, default: float, low: float, high: float) -> None:
        super().__init__(default)
        self.low, self.high = low, high

    def validate(self, obj: object, value: object) -> float:
        """Return `value` as a float, rounded."""
        number = _number(value)
        if number is None or not self.low <= number <= self.high:
            where = f"{type(obj).__name__}: {self.name}"
            raise FigureError(f"{where} must be a finite number from {self.low} to {self.high}, not {value!r}")
        return round(number, 1)


class Table(traitlets.TraitType[list[Any], object]):
    """Measured numbers: a list (`depth` 1) or nested lists, of finite floats or, with `whole`, of ints of 0 or more.

    Arrays and tensors are taken too, and kept as lists.
    """

    def __init__(self, depth: int = 1, *, whole: bool = False) -> None:
        super().__init__([])
        self.depth, self.whole = depth, whole

    def validate(self, obj: object, value: object) -> list[Any]:
        """Return `value` as nested lists of plain numbers."""
        return self._rows(f"{type(obj).__name__}: {self.name}", value, self.depth)

    def _rows(self, place: str, value: object, depth: int) -> list[Any]:
        value = value.tolist() if hasattr(value, "tolist") else value
        if not isinstance(value, Sequence) or isinstance(value, str):
            raise FigureError(f"{place} must be a list, not {value!r}")
        places = [(f"{place}[{i}]", item) for i, item in enumerate(value)]
        if depth > 1:
            return [self._rows(where, item, depth - 1) for where, item in places]
        return [self._entry(where, item) for where, item in places]

    def _entry(self, place: str, value: object) -> float | int:
        number = _whole(value) if self.whole else _number(value)
        if number is None or (self.whole and number < 0):
            kind = "an int of 0 or more" if self.whole else "a finite number"
            raise FigureError(f"{place} must be {kind}, not {value!r}")
        return number


class Figure(anywidget.AnyWidget):
    """A live figure: an anywidget whose module draws its own labelled controls, so that it also lives without a kernel.

    A subclass names its module under ``js/`` and its title, adds synced traits, and writes `describe` and `twin`. With
    a kernel the traits sync both ways: set them, `observe` them, or hand them to ``ipywidgets.jslink``.

    Attributes
    ----------
    figure : str
        Name of the figure's module, which is also its key in ``globalThis.losslab.figures`` on a static page.
    title : str
        What the figure is called, for readers and screen readers.
    """

    figure = traitlets.Unicode(read_only=True).tag(sync=True)
    title = traitlets.Unicode().tag(sync=True)

    NAME: ClassVar[str] = ""
    TITLE: ClassVar[str] = ""

    def __init_subclass__(cls, **kwargs: Any) -> None:  # noqa: ANN401  # as anywidget has it
        if "NAME" in cls.__dict__:  # it is not in the class that add_traits derives for each instance
            cls._esm = compose(cls.NAME)
            cls._css = stylesheet()
        super().__init_subclass__(**kwargs)

    @traitlets.default("figure")
    def _named(self) -> str:
        return self.NAME

    @traitlets.default("title")
    def _titled(self) -> str:
        return self.TITLE

    def _refuse(self, what: str) -> NoReturn:
        raise FigureError(f"{type(self).__name__}: {what}")

    def _seal(self) -> None:
        """End construction: from now on `_keep` lets measured data be what it is."""
        self._sealed = True

    def _keep(self, name: str, value: object) -> None:
        """Refuse to change measured data, which the page lays out once: other data are another figure."""
        if getattr(self, "_sealed", False) and value != getattr(self, name):
            self._refuse(f"{name} is given once; build another figure for other data")

    def _need(self, given: Iterable[str], *names: str) -> None:
        """Refuse to be built without measured data: a figure of nothing has no state that can be selected."""
        if missing := [name for name in names if name not in set(given)]:
            raise TypeError(f"{type(self).__name__} shows what was measured and needs {', '.join(missing)}")

    def describe(self) -> str:
        """Return in words what the figure now shows: the live sentence on the page."""
        raise NotImplementedError(f"{type(self).__name__} must describe itself")

    def twin(self) -> Canvas:
        """Return a matplotlib figure of the current state, 760 units wide, for where no script runs."""
        raise NotImplementedError(f"{type(self).__name__} must draw its twin")

    def svg(self) -> str:
        """Return `twin` as SVG text with `title` and `describe` in it; the same state gives the same bytes."""
        return to_svg(self.twin(), self.title, self.describe())

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:  # noqa: ANN401  # likewise
        data, metadata = super()._repr_mimebundle_(**kwargs) or ({}, {})
        data = {**data, "image/svg+xml": self.svg(), "text/plain": self.describe()}
        return data, {**metadata, "image/svg+xml": {"alt": self.describe()}}
