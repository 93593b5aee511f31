"""What a lab is: its items, what they are worth, and the hidden test of each."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from losslab.grading.remote import Student

Form = Literal["notebook", "module"]

#: What stands in the namespace before a student's cells run: what a lab's locked first cell gives them.
NOTEBOOK_PRELUDE = """\
import math
import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
device = torch.device("cpu")
"""


class GraderError(RuntimeError):
    """The grader or its environment failed. Says nothing about the student's work, and so is never a zero."""


class LabError(ValueError):
    """There is no such lab, or its ``marking.py`` does not describe one."""


@dataclass(frozen=True)
class Feedback:
    """What a student is told about one promise.

    Attributes
    ----------
    kept
        Whether it is kept.
    sentence
        What was found, in a sentence or two. May quote the student's own error message: escape it in HTML.
    lines
        The counterexample, as (head, text): "went in", "yours gave", "should be".
    """

    kept: bool
    sentence: str
    lines: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        return "\n".join([self.sentence, *(f"  {head:<10} {text}" for head, text in self.lines)])

    def to_dict(self) -> dict[str, Any]:
        """Fit for JSON."""
        return {"kept": self.kept, "sentence": self.sentence, "lines": [list(line) for line in self.lines]}


@dataclass(frozen=True)
class Verdict:
    """What became of a hidden test: the share of the points earned, from 0 to 1, and why."""

    share: float
    feedback: tuple[Feedback, ...]


class Check(Protocol):
    """A hidden test: see `losslab.grading.tasks`."""

    @property
    def function(self) -> str:
        """Name of the student's function it is about."""
        ...

    def judge(self, student: Student, seed: int) -> Verdict:
        """Put it to the student's function, with inputs drawn from this seed."""
        ...


@dataclass(frozen=True, eq=False)
class Item:
    """One line of the rubric.

    Parameters
    ----------
    id
        Unique in the lab: letters, digits, ``-`` and ``_``.
    title
        A few words for a table.
    points
        What it is worth, > 0.
    step
        The lab's step that it belongs to, from 1.
    check
        `Values`, `Promises` or `Raises`; None if it is marked by hand.
    """

    id: str
    title: str
    points: float
    step: int
    check: Check | None = None

    def __post_init__(self) -> None:
        if not self.id or not all(c.isascii() and (c.isalnum() or c in "-_") for c in self.id):
            raise ValueError(f"id of an item must be letters, digits, - and _, got {self.id!r}")
        if not self.points > 0:
            raise ValueError(f"points of item {self.id} must be above 0, got {self.points!r}")
        if self.step < 1:
            raise ValueError(f"step of item {self.id} must be at least 1, got {self.step!r}")
        if self.check is not None and not (hasattr(self.check, "function") and hasattr(self.check, "judge")):
            raise ValueError(
                f"check of item {self.id} must be Values, Promises or Raises, or None if it is marked by hand, "
                f"got {self.check!r}"
            )


@dataclass(frozen=True, eq=False)
class Lab:
    """A lab as the grader sees it; ``LAB = Lab(...)`` in the lab's ``marking.py``.

    Parameters
    ----------
    name
        Of its folder.
    title, chapter
        Of the lab, and of the chapter it belongs to (the stem of its file in the book).
    minutes
        How long it takes, roughly.
    items
        The rubric, in the order of the lab.
    form
        ``"notebook"``, with torch and numpy; or ``"module"``, plain Python with the standard library only.
    functions
        What the student writes; left out, the functions that the items check.
    prelude
        Code that runs before the student's, in the same namespace: what locked cells of the notebook define and the
        student's cells use. Left out, a notebook has ``math``, ``np``, ``torch``, ``F``, ``Tensor`` and ``device``, and
        a module nothing.
    """

    name: str
    title: str
    chapter: str
    minutes: int
    items: Sequence[Item]
    form: Form = "notebook"
    functions: Sequence[str] = ()
    prelude: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "items", tuple(self.items))
        if not self.items:
            raise ValueError(f"items of lab {self.name} must have at least one item")
        ids = [item.id for item in self.items]
        if twice := sorted({i for i in ids if ids.count(i) > 1}):
            raise ValueError(f"items of lab {self.name} must have ids of their own, got {', '.join(twice)} twice")
        if self.form not in ("notebook", "module"):
            raise ValueError(f"form must be notebook or module, got {self.form!r}")
        checked = dict.fromkeys(item.check.function for item in self.items if item.check is not None)
        object.__setattr__(self, "functions", tuple(self.functions) or tuple(checked))
        if self.prelude is None:
            object.__setattr__(self, "prelude", NOTEBOOK_PRELUDE if self.form == "notebook" else "")

    @property
    def points(self) -> float:
        """What can be earned automatically."""
        return sum(item.points for item in self.items if item.check is not None)

    @property
    def manual_points(self) -> float:
        """What is marked by hand."""
        return sum(item.points for item in self.items if item.check is None)


def find_lab(name: str | Path) -> Path:
    """The folder of a lab: the one named, or ``labs/<name>`` below the current folder, this checkout or the prefix.

    Raises
    ------
    LabError
        If there is none; the message lists the labs there are.
    """
    given = Path(name)
    if given.name == "marking.py" and given.is_file():
        return given.resolve().parent
    if (given / "marking.py").is_file():
        return given.resolve()
    shelves = _shelves()
    for shelf in shelves:
        if len(given.parts) == 1 and (shelf / given / "marking.py").is_file():
            return (shelf / given).resolve()
    known = sorted({found.parent.name for shelf in shelves for found in shelf.glob("*/marking.py")})
    raise LabError(f"there is no lab {str(name)!r}; there are {', '.join(known) or 'none here'}")


def load_lab(name: str | Path) -> Lab:
    """The lab of this name, or in this folder, as its ``marking.py`` describes it.

    Raises
    ------
    LabError
        If there is none, or ``marking.py`` raises or defines no ``LAB``.
    """
    path = find_lab(name) / "marking.py"
    spec = importlib.util.spec_from_file_location(f"_losslab_lab_{path.parent.name.replace('-', '_')}", path)
    if spec is None or spec.loader is None:
        raise LabError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise LabError(f"{path} cannot be run: {type(error).__name__}: {error}") from error
    lab = getattr(module, "LAB", None)
    if not isinstance(lab, Lab):
        raise LabError(f"{path} must define LAB, a losslab.grading.Lab")
    return lab


def _shelves() -> list[Path]:
    checkout = Path(__file__).resolve().parents[3]
    return [Path.cwd() / "labs", checkout / "labs", Path(sys.prefix) / "share" / "losslab" / "labs"]
