"""One submission, marked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from losslab.grading.lab import Lab
from losslab.grading.sandbox import Isolation, Limits

Status = Literal["marked", "grader-failure"]


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
class ItemMark:
    """What one item earned.

    Attributes
    ----------
    id, title, step
        Of the item.
    points
        Earned; None if it is marked by hand, or could not be marked.
    out_of
        What it is worth.
    feedback
        One a promise.
    """

    id: str
    title: str
    step: int
    points: float | None
    out_of: float
    feedback: tuple[Feedback, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Fit for JSON."""
        return {
            "id": self.id,
            "title": self.title,
            "step": self.step,
            "points": self.points,
            "out_of": self.out_of,
            "feedback": [feedback.to_dict() for feedback in self.feedback],
        }


@dataclass(frozen=True)
class Mark:
    """What one submission earned.

    Attributes
    ----------
    student, lab, seed
        Whose, of which lab, and the seed that makes the same mark again.
    status
        ``"marked"``, or ``"grader-failure"``: the grader or its environment failed, and no item has points.
    items
        One an item of the lab, in its order.
    log
        Errors in the student's cells, and what was printed; of a grader failure, what happened.
    seconds
        How long it took. Two marks are equal without it.
    """

    student: str
    lab: str
    seed: int
    status: Status
    items: tuple[ItemMark, ...]
    log: str = field(default="", compare=False)
    seconds: float = field(default=0.0, compare=False)

    @property
    def points(self) -> float | None:
        """Earned automatically; None if the grader failed."""
        if self.status != "marked":
            return None
        return sum(item.points for item in self.items if item.points is not None)

    def to_dict(self) -> dict[str, Any]:
        """Fit for JSON; `from_dict` reads it."""
        return {
            "student": self.student,
            "lab": self.lab,
            "seed": self.seed,
            "status": self.status,
            "points": self.points,
            "items": [item.to_dict() for item in self.items],
            "log": self.log,
            "seconds": self.seconds,
        }

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Mark:
        """What `to_dict` gave."""
        items = tuple(
            ItemMark(
                item["id"],
                item["title"],
                item["step"],
                item["points"],
                item["out_of"],
                tuple(
                    Feedback(f["kept"], f["sentence"], tuple((head, text) for head, text in f["lines"]))
                    for f in item["feedback"]
                ),
            )
            for item in given["items"]
        )
        return cls(
            given["student"], given["lab"], given["seed"], given["status"], items, given["log"], given["seconds"]
        )


def mark(
    lab: Lab,
    path: str | Path,
    *,
    seed: int,
    student: str | None = None,
    limits: Limits | None = None,
    isolation: Isolation = "auto",
) -> Mark:
    """Mark one submission.

    Parameters
    ----------
    lab
        What it is marked by.
    path
        The notebook or module handed in.
    seed
        Of the random inputs; with the same one the mark is the same.
    student
        Whose; left out, the file's stem.
    limits
        What it may use.
    isolation
        ``"auto"``: bubblewrap if it works here, else a warning and limits only. ``"required"``: bubblewrap.

    Returns
    -------
    Mark
        Also if the grader itself failed; its status says so.

    Raises
    ------
    IsolationMissingError
        If isolation is required and there is none.
    """
    raise NotImplementedError


def self_test(lab: Lab, *, limits: Limits | None = None, isolation: Isolation = "auto") -> None:
    """Run a program known to be right in the sandbox that this lab needs, before anybody's work is marked.

    Raises
    ------
    GraderError
        If it does not come out right: bubblewrap does not start, torch is missing in there, and so on.
    IsolationMissingError
        If isolation is required and there is none.
    """
    raise NotImplementedError
