"""What marking a submission takes, beside nbgrader's autograde of the same task.

Two hundred honest submissions of the InfoNCE lab, right ones and wrong ones, each in a sandboxed process of its own,
two at a time; and a dozen of the same by nbgrader, one after the other as it does, in two ways. As it would be used:
the lab's notebook with hidden tests at its end, of which nbgrader runs every cell, pictures and local checks among
them. And stripped to what is marked: the functions and the tests. nbgrader's hidden tests call the same functions with
inputs of the same kind, but know no promises: it has less to do. All are run as commands, start included.
"""

from __future__ import annotations

import contextlib
import csv
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from losslab.grading import Lab, Raises, Values, find_lab, load_lab
from losslab.measure.record import Measurement, Progress, Row

LAB = "infonce"
OURS, THEIRS = 200, 12  # submissions
JOBS, SEED = 2, 0
WATCH = 0.1  # seconds between two looks at the memory
WHOLE, BARE = "nbgrader, whole notebook", "nbgrader, functions only"

#: One step's code by its grade id: what a student has written.
Steps = Mapping[str, str]


def steps_of(notebook: Mapping[str, Any]) -> dict[str, str]:
    """The cells that students write, by grade id."""
    return {
        cell["metadata"]["nbgrader"]["grade_id"]: _text(cell)
        for cell in notebook["cells"]
        if cell["cell_type"] == "code" and cell["metadata"].get("nbgrader", {}).get("solution")
    }


def _text(cell: Mapping[str, Any]) -> str:
    source = cell["source"]
    return source if isinstance(source, str) else "".join(source)


def variants(right: Steps, empty: Steps, functions: Sequence[str]) -> list[tuple[str, Steps]]:
    """Right work, and work with one thing wrong or missing: a name, and the steps.

    Parameters
    ----------
    right, empty
        The steps as the solution has them, and as the student copy does.
    functions
        What is checked.
    """
    found: list[tuple[str, Steps]] = [("right", right)]
    found += [(f"{step} is not written", {**right, step: empty[step]}) for step in right]
    last = list(right)[-1]
    for function in functions:
        for name, wrong in (("a hundredth too large", "value * 1.01"), ("turned round", "-value")):
            wrapped = (
                f"\n\n_right_{function} = {function}\n\n\ndef {function}(*given, **named):\n"
                f"    value = _right_{function}(*given, **named)\n"
                f"    return [{wrong} for value in value] if isinstance(value, (list, tuple)) else {wrong}\n"
            )
            found.append((f"{function} is {name}", {**right, last: right[last] + wrapped}))
    return found


def filled(notebook: Mapping[str, Any], steps: Steps, remark: str) -> str:
    """A notebook with these steps written into it, as text; the remark makes each student's file another."""
    copy = json.loads(json.dumps(notebook))
    for cell in copy["cells"]:
        marks = cell["metadata"].get("nbgrader", {})
        if cell["cell_type"] == "code" and marks.get("solution"):
            cell["source"] = f"# {remark}\n{steps[marks['grade_id']]}"
    return json.dumps(copy)


# nbgrader -------------------------------------------------------------------------------------------------------------


def hidden_tests(lab: Lab) -> list[tuple[str, float, str]]:
    """The lab's values and refusals as asserts with numbers in them: grade id, points, code."""
    from losslab.grading.tasks import _cases, _drawn

    found = []
    for item in lab.items:
        lines = ["### BEGIN HIDDEN TESTS"]
        if isinstance(item.check, Values):
            for keywords, value, gradients in _cases(item.check, SEED, lab.form):
                lines += [f"_given = {_call(keywords)}"]
                lines += [f"_given[{name!r}].requires_grad_()" for name in gradients]
                lines += [
                    f"_value = {item.check.function}(**_given)",
                    f"_near(_value, {_literal(value)}, {item.check.rtol})",
                ]
                if gradients:
                    lines += ["_value.backward()"]
                    lines += [
                        f"_near(_given[{n!r}].grad, {_literal(g)}, {item.check.rtol})" for n, g in gradients.items()
                    ]
        elif isinstance(item.check, Raises):
            for keywords in _drawn(item.check.draw, SEED, 0, item.check.cases, lab.form, item.check.dtype):
                lines += ["try:", f"    {item.check.function}(**{_call(keywords)})", f"except {item.check.error}:"]
                lines += ["    pass", "else:", "    raise AssertionError('not refused')"]
        else:
            continue
        found.append((f"test-{item.id}", item.points, "\n".join([*lines, "### END HIDDEN TESTS"])))
    return found


NEAR = """
def _near(value, right, rtol):
    if isinstance(right, (list, tuple)) and isinstance(value, (list, tuple)):
        for one, other in zip(value, right, strict=True):
            _near(one, other, rtol)
        return
    value, right = (torch.as_tensor(x, dtype=torch.float64) for x in (value, right))
    assert value.shape == right.shape
    assert torch.allclose(value, right, rtol=rtol, atol=rtol * float(right.abs().max()) + 1e-3)
"""


def _call(keywords: Mapping[str, Any]) -> str:
    return "{" + ", ".join(f"{name!r}: {_tensor(value)}" for name, value in keywords.items()) + "}"


def _tensor(value: Any) -> str:  # noqa: ANN401
    if hasattr(value, "tolist"):
        kind = "float32" if value.dtype.kind == "f" else str(value.dtype)
        return f"torch.tensor({value.tolist()!r}, dtype=torch.{kind})"
    return repr(value)


def _literal(value: Any) -> str:  # noqa: ANN401
    return repr(value.tolist() if hasattr(value, "tolist") else value)


def cell(source: str, number: int, **marks: object) -> dict[str, Any]:
    """A code cell with nbgrader's marks."""
    given = {"schema_version": 3, "grade": False, "solution": False, "locked": True, "task": False, **marks}
    metadata = {"nbgrader": given} if "grade_id" in marks else {}
    return {
        "cell_type": "code",
        "id": f"c{number}",
        "metadata": metadata,
        "source": source,
        "outputs": [],
        "execution_count": None,
    }


def nbgrader_notebook(lab: Lab, right: Steps) -> dict[str, Any]:
    """The instructor's notebook for nbgrader: the lab's first lines, its steps, and hidden tests; no pictures."""
    cells = [cell((lab.prelude or "") + NEAR, 0)]
    for step, source in right.items():
        cells.append(cell(source, len(cells), grade_id=step, solution=True, locked=False))
    for grade_id, points, source in hidden_tests(lab):
        cells.append(cell(source, len(cells), grade_id=grade_id, grade=True, points=points))
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def with_tests(solved: Mapping[str, Any], lab: Lab) -> dict[str, Any]:
    """The lab's own notebook, solutions and all, with hidden tests at its end."""
    cells = list(solved["cells"])
    cells.append(cell("import torch\n" + NEAR, len(cells)))
    for grade_id, points, source in hidden_tests(lab):
        cells.append(cell(source, len(cells), grade_id=grade_id, grade=True, points=points))
    return {**solved, "cells": cells}


class Course:
    """A course folder of nbgrader with one assignment, its notebook given, released."""

    def __init__(self, folder: Path, lab: Lab, notebook: Mapping[str, Any]) -> None:
        self.folder, self.lab = folder, lab
        source = folder / "source" / lab.name / f"{lab.name}.ipynb"
        source.parent.mkdir(parents=True)
        source.write_text(json.dumps(notebook), encoding="utf-8")
        self.command("generate_assignment", lab.name)
        self.released = json.loads((folder / "release" / lab.name / source.name).read_text(encoding="utf-8"))

    def hand_in(self, student: str, steps: Steps) -> None:
        """A student's notebook, as nbgrader collects it."""
        path = self.folder / "submitted" / student / self.lab.name / f"{self.lab.name}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(filled(self.released, steps, student), encoding="utf-8")

    def command(self, *arguments: str) -> tuple[float, int]:
        """Run nbgrader in the course folder; seconds, and the most memory at once."""
        return watched([sys.executable, "-m", "nbgrader", *arguments], self.folder)

    def scores(self) -> dict[str, float]:
        """What nbgrader has given to each student."""
        self.command("export", "--to=grades.csv")
        with (self.folder / "grades.csv").open(encoding="utf-8", newline="") as file:
            return {row["student_id"]: float(row["score"]) for row in csv.DictReader(file)}


# Watching -------------------------------------------------------------------------------------------------------------


def watched(command: Sequence[str], folder: Path) -> tuple[float, int]:
    """Run a command; seconds, and the largest sum of resident sizes of it and all its descendants, in bytes.

    Pages that processes share are counted in each of them, so the sum is rather too large than too small.

    Raises
    ------
    RuntimeError
        It fails; the end of what it said.
    """
    beside = str(Path(sys.executable).parent)  # nbgrader calls other commands that are installed with it
    environment = {**os.environ, "PATH": f"{beside}{os.pathsep}{os.environ.get('PATH', '')}"}
    began = time.perf_counter()
    most, done = [0], threading.Event()
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(list(command), cwd=folder, stdout=said, stderr=said, env=environment)

        def look() -> None:
            while not done.wait(WATCH):
                most[0] = max(most[0], sum(resident(pid) for pid in family(process.pid)))

        watcher = threading.Thread(target=look)
        watcher.start()
        status = process.wait()
        seconds = time.perf_counter() - began
        done.set()
        watcher.join()
        if status:
            said.seek(0)
            raise RuntimeError(f"{' '.join(map(str, command[:4]))} ended with {status}: {said.read()[-2000:].decode()}")
    return seconds, most[0]


def family(pid: int) -> list[int]:
    """A process and all its descendants (Linux)."""
    found = [pid]
    for each in found:
        with contextlib.suppress(OSError):
            for task in os.listdir(f"/proc/{each}/task"):  # noqa: PTH208  (names are all it takes)
                children = Path(f"/proc/{each}/task/{task}/children").read_text(encoding="ascii")
                found += map(int, children.split())
    return found


def resident(pid: int) -> int:
    """Resident size of a process in bytes; 0 once it has ended."""
    with contextlib.suppress(OSError, IndexError):
        return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * resource.getpagesize()
    return 0


# Measuring ------------------------------------------------------------------------------------------------------------


def collect(progress: Progress = lambda _: None, ours: int = OURS, theirs: int = THEIRS) -> Iterator[Row]:
    """Mark them all both ways.

    Raises
    ------
    RuntimeError
        A grader fails, or does not give right work full marks or wrong work fewer: then its time says nothing.
    """
    from losslab.labs.release import make_copy

    folder = find_lab(LAB)
    lab = load_lab(folder)
    solved, copy = json.loads(make_copy(folder, solved=True)), json.loads(make_copy(folder))
    right = steps_of(solved)
    kinds = variants(right, steps_of(copy), lab.functions)
    with tempfile.TemporaryDirectory(prefix="grading-speed-") as temporary:
        root = Path(temporary)
        full = sum(points for _, points, _ in hidden_tests(lab))
        nbgrader = dict[str, float]()
        for way, source in ((WHOLE, with_tests(solved, lab)), (BARE, nbgrader_notebook(lab, right))):
            course = Course(_new(root / f"course-{len(nbgrader)}"), lab, source)
            for number in range(theirs):
                course.hand_in(f"s{number}", kinds[number % len(kinds)][1])
            progress(f"{way}, {theirs} submissions")
            took, most = course.command("autograde", lab.name)
            scores = course.scores()
            _check({kinds[n % len(kinds)][0]: scores[f"s{n}"] for n in range(theirs)}, full, way)
            nbgrader[way] = took / theirs
            progress(f"{way}: {nbgrader[way]:.2f} s each")
            yield _row(way, theirs, "wall time of a submission", "s", nbgrader[way])
            yield _row(way, theirs, "peak memory", "bytes", most)
        handed_in = _new(root / "submissions")
        for number in range(ours):
            text = filled(copy, kinds[number % len(kinds)][1], f"student {number}")
            (handed_in / f"s{number}.ipynb").write_text(text, encoding="utf-8")
        command = [sys.executable, "-m", "losslab", "grade", str(folder), str(handed_in), "--out", str(root / "out")]
        seconds, memory = watched([*command, "--seed", str(SEED), "--jobs", str(JOBS)], root)
        given = {kinds[n % len(kinds)][0]: _points(root / "out", f"s{n}", lab) for n in range(ours)}
        _check(given, lab.points, "losslab")
        progress(f"losslab: {seconds / ours:.2f} s each, {memory / 2**20:.0f} MiB")
    yield _row("losslab", ours, "wall time of a submission", "s", seconds / ours)
    yield _row("losslab", ours, "peak memory", "bytes", memory)
    for way, each in nbgrader.items():
        yield _row("losslab", ours, f"wall time as a share of that of {way}", "ratio", (seconds / ours) / each)
    yield _row("losslab", ours, "kinds of submission", "count", len(kinds))


def _new(folder: Path) -> Path:
    folder.mkdir()
    return folder


def _points(out: Path, student: str, lab: Lab) -> float:
    with (out / "grades.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["Student"] == student and re.fullmatch(r"[\d.]+", row[lab.title]):
                return float(row[lab.title])
    raise RuntimeError(f"losslab has given {student} no mark")


def _check(given: Mapping[str, float], full: float, grader: str) -> None:
    """Right work has full marks and other work has fewer, else the grader did not do its work."""
    for kind, points in given.items():
        if (points == full) != (kind == "right"):
            raise RuntimeError(f"{grader} gives {points:g} of {full:g} points for work that is: {kind}")


def _row(grader: str, submissions: int, metric: str, unit: str, value: float) -> Row:
    return {"grader": grader, "submissions": submissions, "metric": metric, "unit": unit, "value": value}


MEASUREMENT = Measurement(
    name="grading-speed",
    title="Marking a lab's submissions, each in a fresh sandbox, beside nbgrader's autograde: time and memory",
    columns=("grader", "submissions", "metric", "unit", "value"),
    collect=collect,
    settings={"lab": LAB, "submissions": {"losslab": OURS, "nbgrader": THEIRS}, "jobs": JOBS, "seed": SEED},
)
