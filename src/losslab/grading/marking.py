"""One submission, marked."""

from __future__ import annotations

import hashlib
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from losslab.grading.lab import Feedback, GraderError, Lab
from losslab.grading.remote import Student, Tensor
from losslab.grading.sandbox import Bubblewrap, Ended, Isolation, Limits, choose
from losslab.grading.submissions import Submission, SubmissionError, read

Status = Literal["marked", "grader-failure"]


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
    unreadable
        Why what was handed in cannot be read, a zero for all of it; else empty.
    """

    student: str
    lab: str
    seed: int
    status: Status
    items: tuple[ItemMark, ...]
    log: str = field(default="", compare=False)
    seconds: float = field(default=0.0, compare=False)
    unreadable: str = ""

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
            "unreadable": self.unreadable,
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
            given["student"],
            given["lab"],
            given["seed"],
            given["status"],
            items,
            given["log"],
            given["seconds"],
            given.get("unreadable", ""),
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
    began = time.monotonic()
    limits = limits or Limits()
    name = Path(path).stem if student is None else student
    bubblewrap = choose(isolation)
    unreadable = ""
    try:
        items, log = _judge(lab, path, seed, limits, bubblewrap)
        status: Status = "marked"
    except SubmissionError as error:
        items, log, status, unreadable = _nothing(lab), "", "marked", str(error)
    except GraderError as error:
        items, log, status = _unmarked(lab), str(error), "grader-failure"
    except Exception:  # whatever it is, it is not the student's fault
        items, log, status = _unmarked(lab), traceback.format_exc(), "grader-failure"
    return Mark(name, lab.name, seed, status, items, log, time.monotonic() - began, unreadable)


def seed_of(*parts: object) -> int:
    """A seed for one part of a run: the same whatever was done before it."""
    return int.from_bytes(hashlib.sha256("\0".join(map(str, parts)).encode()).digest()[:4], "big")


def self_test(lab: Lab, *, limits: Limits | None = None, isolation: Isolation = "auto") -> None:
    """Run a program known to be right in the sandbox that this lab needs, before anybody's work is marked.

    Raises
    ------
    GraderError
        If it does not come out right: bubblewrap does not start, torch is missing in there, and so on.
    IsolationMissingError
        If isolation is required and there is none.
    """
    program = Submission((("self-test", KNOWN[lab.form]),))
    with Student(lab, program, seed=0, limits=limits or Limits(), bubblewrap=choose(isolation)) as running:
        try:
            answer = running.call("known", [np.array([1.0, 2.0, 4.0])], {}, [0] if lab.form == "notebook" else [])
        except Ended as ended:
            raise GraderError(f"the self-test of the sandbox failed: {ended}") from None
        value = answer.value.numpy() if isinstance(answer.value, Tensor) else answer.value
        gradients = [g.numpy().tolist() for g in answer.gradients or ()]
        wanted: list[list[float]] = [[2.0, 4.0, 8.0]] if lab.form == "notebook" else []
        if answer.error is not None or running.errors or value != 21 or gradients != wanted:
            said = answer.error or running.errors or (value, gradients)
            raise GraderError(f"the self-test of the sandbox failed: it should give 21 and {wanted}, and gave {said}")


#: The sum of squares, which of 1, 2 and 4 is 21, and its gradient twice the numbers.
KNOWN = {
    "notebook": "import numpy\nimport torch\n\ndef known(x):\n    return torch.sum(x * x)\n",
    "module": "def known(x):\n    return sum(y * y for y in x)\n",
}


def _judge(
    lab: Lab, path: str | Path, seed: int, limits: Limits, bubblewrap: Bubblewrap | None
) -> tuple[tuple[ItemMark, ...], str]:
    try:
        submission = read(path, lab.form, limits.submission)
    except OSError as error:
        raise GraderError(f"{path} cannot be read: {error.strerror or error}") from error
    items = []
    own = seed_of(seed, lab.name, "the student's generators")
    with Student(lab, submission, seed=own, limits=limits, bubblewrap=bubblewrap) as student:
        for item in lab.items:
            if item.check is None:
                items.append(ItemMark(item.id, item.title, item.step, None, item.points))
                continue
            verdict = item.check.judge(student, seed_of(seed, lab.name, item.id))
            points = round(item.points * verdict.share, 6)
            items.append(ItemMark(item.id, item.title, item.step, points, item.points, verdict.feedback))
        said = [f"{error}" for error in student.errors]
        log = "\n".join([*said, student.printed] if student.printed else said)
    return tuple(items), log


def _nothing(lab: Lab) -> tuple[ItemMark, ...]:
    """No points for anything."""
    return tuple(
        ItemMark(item.id, item.title, item.step, None if item.check is None else 0.0, item.points) for item in lab.items
    )


def _unmarked(lab: Lab) -> tuple[ItemMark, ...]:
    return tuple(ItemMark(item.id, item.title, item.step, None, item.points) for item in lab.items)
