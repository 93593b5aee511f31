"""A live cell: controls that call a student's function at every change. Plain ipywidgets, usable by keyboard."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from html import escape
from typing import Any, cast

import ipywidgets  # type: ignore[import-untyped]
from matplotlib.figure import Figure

from losslab.labs.pictures import Picture

WIDE = {"description_width": "12em"}
ROOM = {"width": "min(100%, 36em)"}


class Live(ipywidgets.VBox):  # type: ignore[misc]
    """Controls above what they show.

    Attributes
    ----------
    controls
        The widget of each name.
    shown
        The HTML widget that holds what was drawn last.
    """

    def __init__(self, draw: Callable[..., Any], controls: dict[str, Any]) -> None:
        self.controls = controls
        self.shown = ipywidgets.HTML()
        self._draw = draw
        super().__init__([*controls.values(), self.shown])
        for control in controls.values():
            control.observe(self._redraw, "value")
        self._redraw()

    def _redraw(self, _: object = None) -> None:
        values = {name: control.value for name, control in self.controls.items()}
        self.shown.value = drawn(self._draw, values)


def live(draw: Callable[..., Any], **controls: Any) -> Live:  # noqa: ANN401
    """Call ``draw`` now and at every change of a control, and show what it returns.

    Parameters
    ----------
    draw
        Called with the controls' values by keyword. It calls the student's function and returns a `Picture`, a
        matplotlib figure, text, or several of these in a tuple.
    **controls
        A tuple ``(min, max)`` or ``(min, max, step)``: a slider, of whole numbers if all are. A list of numbers: a
        slider that stops at these; of words: a menu. A bool: a box to tick. Each starts at the default of ``draw``'s
        parameter, if it has one. Its label is its name, with spaces for underscores.

    Returns
    -------
    Live
        As the last expression of a cell it is shown.

    Raises
    ------
    ValueError
        A control is none of these, or ``draw`` has no such parameter, or its default is not among the choices.
    """
    parameters = inspect.signature(draw).parameters
    anything = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
    widgets = {}
    for name, given in controls.items():
        if name not in parameters and not anything:
            raise ValueError(f"draw has no parameter {name!r}; it has {', '.join(parameters) or 'none'}")
        default = parameters[name].default if name in parameters else inspect.Parameter.empty
        widgets[name] = _control(name, given, default)
    return Live(draw, widgets)


def drawn(draw: Callable[..., Any], values: dict[str, Any]) -> str:
    """What ``draw`` returns, as HTML; where it fails, one line that says so, so that the controls stay alive."""
    try:
        return _as_html(draw(**values))
    except NotImplementedError as problem:
        return _line(f"○ {problem}" if str(problem) else "○ not written yet")
    except Exception as problem:
        return _line(f"{type(problem).__name__}: {problem}".splitlines()[0][:300])


def _control(name: str, given: Any, default: Any) -> Any:  # noqa: ANN401
    common = {"description": name.replace("_", " "), "style": WIDE, "layout": ROOM}
    named = default is not inspect.Parameter.empty
    if isinstance(given, bool):
        return ipywidgets.Checkbox(value=bool(default) if named else given, indent=True, **common)
    if isinstance(given, tuple) and len(given) in (2, 3) and all(_is_number(v) for v in given):
        low, high = given[:2]
        whole = all(isinstance(v, int) for v in given)
        step = given[2] if len(given) == 3 else (1 if whole else (high - low) / 100)
        start = default if named else low
        if not (low < high and step > 0 and _is_number(start) and low <= start <= high):
            raise ValueError(f"{name} needs min < max, a step above 0 and a start between, got {given} from {start!r}")
        kind = ipywidgets.IntSlider if whole and isinstance(start, int) else ipywidgets.FloatSlider
        return kind(value=start, min=low, max=high, step=step, **common)
    if isinstance(given, Sequence) and not isinstance(given, (str, tuple)) and len(given):
        start = default if named else given[0]
        if start not in given:
            raise ValueError(f"{name} starts at {start!r}, which is not among its choices {list(given)}")
        kind = ipywidgets.SelectionSlider if all(_is_number(v) for v in given) else ipywidgets.Dropdown
        return kind(options=list(given), value=start, **common)
    raise ValueError(
        f"{name} must be a tuple (min, max) or (min, max, step), a list of choices, or a bool, got {given!r}"
    )


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _as_html(result: Any) -> str:  # noqa: ANN401
    if isinstance(result, (tuple, list)):
        return "".join(_as_html(part) for part in result)
    if isinstance(result, Picture):
        return result.to_html()
    if isinstance(result, Figure):
        return Picture(result, _titles(result)).to_html()
    if result is None:
        return _line("nothing was returned to show")
    return f'<pre style="white-space:pre-wrap">{escape(str(result))}</pre>'


def _titles(figure: Figure) -> str:
    """What a figure's own titles and labels say, for whoever cannot see it."""
    said = [figure.get_suptitle()]
    for axes in figure.axes:
        said += [axes.get_title(loc=cast(Any, loc)) for loc in ("left", "center")]
        said += [" by ".join(filter(None, (axes.get_ylabel(), axes.get_xlabel())))]
    return ". ".join(filter(None, said)) or "picture"


def _line(text: str) -> str:
    return f"<p><strong>{escape(text)}</strong></p>"
