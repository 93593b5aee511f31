"""Student copies, made from the one source of each lab: solutions out, first cell and rubric in; the same bytes always.

``labs/<name>/lab.md`` (a MyST notebook) becomes ``<name>.ipynb``; ``labs/<name>/solution.py`` becomes ``<name>.py``.
What lies between ``### BEGIN SOLUTION`` and ``### END SOLUTION`` is replaced by one line that says what is due; every
other line stays as it is.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

from losslab.grading import Lab, LabError, load_lab
from losslab.labs.first_cell import first_cell

BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"
RUBRIC = "rubric"  # <!-- rubric --> in a notebook, # rubric in a module: where the table is put
ANSWER = "*Write your answer here.*"
STEP = re.compile(r"^#+ Step (\d+)\b", re.MULTILINE)
VARY = re.compile(
    r"^([ \t]*)([A-Za-z_]\w*)( = )-?\d+(?=  # vary(?::|$))", re.MULTILINE
)  # seed = 3  # vary: which texts
FOLDER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._@+-]{0,99}")
RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)  # as file names, by Windows
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}

Cell = dict[str, Any]


class SourceError(ValueError):
    """A lab's source cannot be made into a student copy; one line that names the file, the cell and the remedy."""


def find_labs(start: Path) -> Path:
    """The folder ``labs`` of the checkout that ``start`` lies in.

    Raises
    ------
    FileNotFoundError
        ``start`` lies in no checkout of losslab.
    """
    for folder in (start, *start.parents):
        if (folder / "labs").is_dir() and (folder / "pyproject.toml").is_file():
            return folder / "labs"
    raise FileNotFoundError(f"{start} is in no checkout with a labs folder; go to one and try again")


def names_in(labs: Path) -> list[str]:
    """Names of the labs that have a source, in alphabetical order."""
    return sorted(path.parent.name for pattern in ("*/lab.md", "*/solution.py") for path in labs.glob(pattern))


def source_of(folder: Path) -> Path:
    """The source of the lab in ``folder``.

    Raises
    ------
    LabError
        There is none; the message names those there are.
    """
    for name in ("lab.md", "solution.py"):
        if (folder / name).is_file():
            return folder / name
    known = ", ".join(names_in(folder.parent)) or "none"
    raise LabError(f"there is no lab {folder.name!r} with a source in {folder.parent}; there are {known}")


def copy_of(folder: Path) -> Path:
    """Where the student copy of the lab in ``folder`` belongs."""
    return folder / f"{folder.name}{'.ipynb' if source_of(folder).name == 'lab.md' else '.py'}"


def make_copy(folder: Path, *, solved: bool = False, student: str | None = None) -> bytes:
    """The student copy of the lab in ``folder``, or, ``solved``, the same with its solutions left in.

    With a ``student``, the copy is that student's own: see `varied`.

    Raises
    ------
    LabError
        There is no such lab, or its ``marking.py`` does not describe one.
    SourceError
        The source cannot be made into a student copy; or one of a student's own is asked for, and nothing in it varies.
    """
    source, lab = source_of(folder), load_lab(folder)
    text = source.read_text(encoding="utf-8")
    where = f"labs/{folder.name}/{source.name}"
    if student is not None:
        text = varied(text, lab.name, student, where=where)
    if source.name == "solution.py":
        return module_copy(text, lab, where=where, solved=solved).encode()
    address = address_from(folder.parent.parent / "_config.yml")
    notebook = notebook_copy(text, lab, where=where, address=address, solved=solved)
    return (json.dumps(notebook, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode()


def varied(text: str, lab: str, student: str, *, where: str) -> str:
    """A lab's source with integers of the student's own, so that the texts and numbers in the notebook differ.

    Each line ``name = <integer>  # vary``, or with ``# vary: what differs``, gets the first four bytes, big-endian, of
    the SHA-256 of ``lab/student/name`` in UTF-8, without the highest bit: from 0 to 2**31 - 1, and the same at every
    release. Hidden tests draw their own inputs and do not depend on it.

    Raises
    ------
    SourceError
        The source has no such line.
    """

    def own(found: re.Match[str]) -> str:
        digest = hashlib.sha256(f"{lab}/{student}/{found[2]}".encode()).digest()
        number = int.from_bytes(digest[:4], "big") & 0x7FFFFFFF
        return f"{found[1]}{found[2]}{found[3]}{number}"

    made, count = VARY.subn(own, text)
    if not count:
        raise SourceError(f"{where} has no line 'name = <integer>  # vary': every student's copy would be the same")
    return made


def varies(folder: Path) -> bool:
    """Whether a student's own copy of the lab in ``folder`` would differ from the others."""
    return VARY.search(source_of(folder).read_text(encoding="utf-8")) is not None


def students_in(path: Path) -> list[str]:
    """Names of students, one a line; empty lines and spaces at either end are dropped. Each names a folder.

    Raises
    ------
    ValueError
        There is none; one cannot be the name of a folder on every system; two are the same there.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not in UTF-8; save it anew as text, one student a line") from None
    seen: dict[str, int] = {}
    names = []
    for number, line in enumerate(lines, 1):
        if not (name := line.strip()):
            continue
        if not FOLDER.fullmatch(name) or name.endswith(".") or RESERVED.fullmatch(name):
            raise ValueError(
                f"{path}, line {number}: {name!r} cannot name a folder on every system; use up to 100 of "
                "A-Z a-z 0-9 . _ @ + -, not . at either end, and no name that Windows keeps to itself"
            )
        if (before := seen.setdefault(name.lower(), number)) != number:
            raise ValueError(f"{path}, line {number}: {name!r} stands in line {before} already (capitals do not count)")
        names.append(name)
    if not names:
        raise ValueError(f"{path} names no student; write one a line")
    return names


def address_from(config: Path) -> str:
    """What pip installs losslab from, by the book's settings: the repository's address; empty while it has none."""
    import yaml  # type: ignore[import-untyped] # comes with jupytext, which only whoever releases labs needs

    repository = (yaml.safe_load(config.read_text(encoding="utf-8")) if config.is_file() else {}).get("repository", {})
    url = str(repository.get("url") or "").rstrip("/")
    return f"losslab @ git+{url}@{repository.get('branch') or 'main'}" if url else ""


def notebook_copy(text: str, lab: Lab, *, where: str, address: str = "", solved: bool = False) -> dict[str, Any]:
    """A notebook (nbformat 4.5) made from the MyST text of a lab.

    Cells tagged ``setup`` and ``locked`` are locked; a code cell with solution marks carries nbgrader metadata that
    says so, a markdown cell also its points. What nbgrader's schema 3 wants besides is filled in.

    Parameters
    ----------
    text
        Of ``lab.md``.
    lab
        Its rubric, and the functions that it marks.
    where
        Name of the source in messages.
    address
        See `first_cell.first_cell`.
    solved
        Leave the solutions in.

    Raises
    ------
    SourceError
        No cell or more than one is tagged ``setup``; marks are unbalanced; a cell with a solution has no metadata that
        says so, or the other way round; a grade_id is missing or used twice; a solution stands under no step; no cell
        defines what ``marking.py`` marks; there is no place for the rubric.
    """
    import jupytext  # type: ignore[import-untyped]

    source = jupytext.reads(text, fmt="md:myst")
    defined = {name for cell in source.cells if cell.cell_type == "code" for name in _defined(cell.source, where)}
    _check_functions(lab, defined, where)
    cells: list[Cell] = []
    step, starts = 0, 0
    for number, cell in enumerate(source.cells, 1):
        at = f"{where}, cell {number} ({cell.source.strip().splitlines()[0][:40] if cell.source.strip() else 'empty'})"
        steps = STEP.findall(cell.source) if cell.cell_type == "markdown" else []
        step = int(steps[-1]) if steps else step
        metadata = json.loads(json.dumps(cell.metadata))
        tags = metadata.get("tags", [])
        content = cell.source
        if "setup" in tags:
            starts += 1
            content = first_cell(lab.name, address)
        metadata = _marked(metadata, content, cell.cell_type, number, at)
        if not solved:
            grade_id = metadata.get("nbgrader", {}).get("grade_id", "")
            content = (_without_solution if cell.cell_type == "code" else _without_answer)(content, step, grade_id, at)
        if cell.cell_type == "markdown":
            content = content.replace(f"<!-- {RUBRIC} -->", rubric(lab))
        if "nbgrader" in metadata and metadata["nbgrader"]["locked"]:
            metadata["nbgrader"]["checksum"] = checksum(content, cell.cell_type, metadata["nbgrader"])
        made: Cell = {"cell_type": cell.cell_type, "id": f"cell-{number:02d}", "metadata": metadata}
        made["source"] = content.splitlines(keepends=True)
        if cell.cell_type == "code":
            made |= {"execution_count": None, "outputs": []}
        cells.append(made)
    if starts != 1:
        raise SourceError(f"{where}: exactly one cell must be tagged setup, {starts} are; it becomes the first cell")
    if f"<!-- {RUBRIC} -->" not in text:
        raise SourceError(f"{where}: put <!-- {RUBRIC} --> where the table of points belongs")
    ids = Counter(cell["metadata"]["nbgrader"]["grade_id"] for cell in cells if "nbgrader" in cell["metadata"])
    if twice := [name for name, count in ids.items() if count > 1]:
        raise SourceError(f"{where}: grade_id {twice[0]!r} is used {ids[twice[0]]} times; give each cell its own")
    language = {"file_extension": ".py", "mimetype": "text/x-python", "name": "python", "pygments_lexer": "ipython3"}
    return {
        "cells": cells,
        "metadata": {"kernelspec": KERNEL, "language_info": language},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def module_copy(text: str, lab: Lab, *, where: str, solved: bool = False) -> str:
    """The student's module, made from the text of ``solution.py``; a comment ``# Step 2`` stands before each step.

    Raises
    ------
    SourceError
        As for `notebook_copy`, where it applies.
    """
    _check_functions(lab, _defined(text, where), where)
    place = re.compile(rf"^# {RUBRIC}$", re.MULTILINE)
    if not place.search(text):
        raise SourceError(f"{where}: put a line '# {RUBRIC}' where the table of points belongs")
    if not solved:
        made, due = "", 0
        for part in re.split(r"(?m)^(?=# Step \d+\b)", text):  # a step's comment and all that follows it
            found = STEP.match(part)
            due = int(found[1]) if found else due
            made += _without_solution(part, due, "", where)
        text = made
    return place.sub(lambda _: "\n".join(f"# {line}" for line in rubric(lab).splitlines()), text)


def rubric(lab: Lab) -> str:
    """The lab's rubric as a Markdown table, from its ``marking.py``."""
    lines = ["| step | what counts | points | marked |", "|---|---|---:|---|"]
    for item in lab.items:
        by = "by hand" if item.check is None else "by tests you do not see"
        lines.append(f"| {item.step} | {item.title} | {item.points:g} | {by} |")
    lines.append(f"| | together | {lab.points + lab.manual_points:g} | {lab.points:g} of them by tests |")
    return "\n".join(lines)


def checksum(content: str, cell_type: str, marks: dict[str, Any]) -> str:
    """What nbgrader 0.9 computes of a cell, so that it can tell whether a locked one was changed."""
    parts = [content, cell_type, *(str(marks[key]) for key in ("grade", "solution", "locked")), marks["grade_id"]]
    if marks["grade"]:
        parts.append(str(float(marks["points"])))
    return hashlib.md5("".join(parts).encode(), usedforsecurity=False).hexdigest()


def _marked(metadata: dict[str, Any], content: str, cell_type: str, number: int, at: str) -> dict[str, Any]:
    """A cell's metadata with all that nbgrader's schema 3 wants; only cells that it concerns get any."""
    regions = list(_regions(content.splitlines(), at))
    marks = metadata.get("nbgrader")
    locked = bool({"setup", "locked"} & set(metadata.get("tags", [])))
    if regions and not (marks or {}).get("solution"):
        raise SourceError(
            f"{at} holds a solution and no metadata that says so: nbgrader: {{grade_id: …, solution: true}}"
        )
    if not regions and (marks or {}).get("solution"):
        raise SourceError(f"{at} is said to hold a solution, but has no {BEGIN} and {END}")
    if marks is None:
        if not locked:
            return metadata
        marks = {"grade_id": f"locked-{number:02d}"}
    if not isinstance(marks, dict) or not marks.get("grade_id"):
        raise SourceError(f"{at} has nbgrader metadata without a grade_id")
    full = {"grade": False, "solution": False, "locked": False, "task": False, "schema_version": 3} | marks
    full["cell_type"] = cell_type
    full["locked"] = (locked or full["locked"]) and not full["solution"]
    if cell_type == "markdown" and full["solution"]:
        full["grade"] = True
        if not isinstance(full.get("points"), (int, float)):
            raise SourceError(f"{at} is an answer marked by hand and has no points")
    frozen = {"deletable": False} | ({"editable": False} if full["locked"] else {})
    return metadata | frozen | {"nbgrader": full}


def _regions(lines: Sequence[str], at: str) -> Iterator[tuple[int, int]]:
    """First and last line, marks included, of each solution."""
    start = None
    for i, line in enumerate(lines):
        if BEGIN in line:
            if start is not None:
                raise SourceError(f"{at}: a second {BEGIN} before the first has ended")
            start = i
        if END in line:
            if start is None:
                raise SourceError(f"{at}: {END} without {BEGIN}")
            yield start, i
            start = None
    if start is not None:
        raise SourceError(f"{at}: {BEGIN} without {END}")


def _without_solution(code: str, step: int, grade_id: str, at: str) -> str:
    """Code with each solution replaced by a line that raises, at its indentation."""
    lines = code.splitlines()
    for start, end in reversed(list(_regions(lines, at))):
        if step == 0:
            raise SourceError(f"{at} stands under no heading 'Step 1', 'Step 2', …")
        indent = lines[start][: len(lines[start]) - len(lines[start].lstrip())]
        name = _enclosing(lines[:start], indent) or grade_id
        lines[start : end + 1] = [f'{indent}raise NotImplementedError("Step {step} is not written yet: {name}")']
    return "\n".join(lines) + ("\n" if code.endswith("\n") else "")


def _without_answer(text: str, _step: int, _grade_id: str, at: str) -> str:
    lines = text.splitlines()
    for start, end in reversed(list(_regions(lines, at))):
        lines[start : end + 1] = [ANSWER]
    return "\n".join(lines)


def _enclosing(lines: Sequence[str], indent: str) -> str | None:
    """Name of the function whose body begins before an indentation of this depth."""
    for line in reversed(lines):
        found = re.match(r"(\s*)(?:async )?(?:def|class) (\w+)", line)
        if found and len(found[1]) < len(indent):
            return found[2]
    return None


def _defined(code: str, where: str) -> list[str]:
    try:
        tree = ast.parse(code)
    except SyntaxError as problem:
        raise SourceError(f"{where}: {problem.msg}, in the code {str(problem.text).strip()!r}") from None
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return [cast(ast.FunctionDef, node).name for node in tree.body if isinstance(node, kinds)]


def _check_functions(lab: Lab, defined: Sequence[str] | set[str], where: str) -> None:
    if missing := [name for name in lab.functions if name not in defined]:
        known = ", ".join(sorted(defined)) or "nothing"
        raise SourceError(f"{where} defines no {missing[0]}, which marking.py marks; it defines {known}")
