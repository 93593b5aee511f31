"""What all live figures have in common: validated traits, a description, a still twin, and how they are displayed."""

from __future__ import annotations

from math import isfinite
from numbers import Integral, Real
from typing import Any, ClassVar

import anywidget
import traitlets
from matplotlib.figure import Figure as Canvas

from losslab.figures._sheet import to_svg
from losslab.figures.compose import compose, stylesheet


class FigureError(traitlets.TraitError, ValueError):
    """A trait was given a value that its figure cannot show; the message names the trait, the value and what is allowed."""


class Whole(traitlets.TraitType[int, int]):
    """An int from `low` to `high`, both included."""

    def __init__(self, default: int, low: int, high: int) -> None:
        super().__init__(default)
        self.low, self.high = low, high

    def validate(self, obj: Any, value: Any) -> int:
        """Return `value` as an int."""
        if isinstance(value, bool) or not isinstance(value, Integral) or not self.low <= value <= self.high:
            raise FigureError(
                f"{type(obj).__name__}: {self.name} must be an int from {self.low} to {self.high}, not {value!r}"
            )
        return int(value)


class Tenth(traitlets.TraitType[float, float]):
    """A float from `low` to `high`, rounded to the tenth that the figure's slider can stand at."""

    def __init__(self, default: float, low: float, high: float) -> None:
        super().__init__(default)
        self.low, self.high = low, high

    def validate(self, obj: Any, value: Any) -> float:
        """Return `value` as a float, rounded."""
        real = isinstance(value, Real) and not isinstance(value, bool)
        if not real or not isfinite(value) or not self.low <= value <= self.high:
            raise FigureError(
                f"{type(obj).__name__}: {self.name} must be a finite number from {self.low} to {self.high}, not {value!r}"
            )
        return round(float(value), 1)


class Figure(anywidget.AnyWidget):  # type: ignore[misc]  # anywidget's own base is untyped
    """A live figure: an anywidget whose module draws its own labelled controls, so that it also lives without a kernel.

    A subclass sets `figure` (the name of its module under ``js/``) and `title`, adds synced traits, and writes `describe`
    and `twin`. With a kernel the traits sync both ways: set them, `observe` them, or hand them to ``ipywidgets.jslink``.

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

    def __init_subclass__(cls, **kwargs: Any) -> None:
        if "NAME" in cls.__dict__:  # not the class that add_traits derives for each instance: there both are traits already
            cls._esm = compose(cls.NAME)
            cls._css = stylesheet()
        super().__init_subclass__(**kwargs)

    @traitlets.default("figure")
    def _named(self) -> str:
        return self.NAME

    @traitlets.default("title")
    def _titled(self) -> str:
        return self.TITLE

    def describe(self) -> str:
        """Return in words what the figure now shows: the live sentence on the page."""
        raise NotImplementedError(f"{type(self).__name__} must describe itself")

    def twin(self) -> Canvas:
        """Return a matplotlib figure of the current state, 760 units wide, for where no script runs."""
        raise NotImplementedError(f"{type(self).__name__} must draw its twin")

    def svg(self) -> str:
        """Return `twin` as SVG text with `title` and `describe` in it; the same state gives the same bytes."""
        return to_svg(self.twin(), self.title, self.describe())

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        data, metadata = super()._repr_mimebundle_(**kwargs)
        data = {**data, "image/svg+xml": self.svg(), "text/plain": self.describe()}
        return data, {**metadata, "image/svg+xml": {"alt": self.describe()}}
