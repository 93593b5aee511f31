"""What was handed in: the code cells of a notebook that students may edit, or a module. Neither run nor parsed here."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from losslab.grading.lab import Form

SUFFIXES: dict[Form, str] = {"notebook": ".ipynb", "module": ".py"}
MOST_CELLS = 1000


class SubmissionError(Exception):
    """What was handed in cannot be marked; the text says why, and what to hand in instead."""


@dataclass(frozen=True)
class Submission:
    """The code that will run, as (name, source), in order. Names are for people: "cell 3"."""

    cells: tuple[tuple[str, str], ...]


def read(path: str | Path, form: Form, most: int) -> Submission:
    """Read a submission of at most so many bytes.

    Raises
    ------
    SubmissionError
        If it is not what this lab asks for. That is the student's to mend.
    OSError
        If it cannot be read. That is not.
    """
    try:
        text = _text(Path(path), form, most)
        cells = _cells(text) if form == "notebook" else ()
    except SubmissionError:
        if (wrong := _another_kind(Path(path), form)) and Path(path).is_file() and not Path(path).is_symlink():
            raise SubmissionError(wrong) from None
        raise
    if form == "module":
        if Path(path).suffix.lower() == ".ipynb":
            raise SubmissionError(_another_kind(Path(path), form))
        if not text.strip():
            raise SubmissionError("the file is empty")
        return Submission((("your module", text),))
    return Submission(cells)


def _another_kind(path: Path, form: Form) -> str:
    """What to say of a file whose name is that of another kind; nothing if it is that of the right one."""
    if path.suffix.lower() == SUFFIXES[form]:
        return ""
    name = "".join(c if c.isprintable() else "?" for c in path.name)
    return f"handed in {name}; expected a {form} ({SUFFIXES[form]})"


def answers(path: Path, form: Form, items: Sequence[str], most: int) -> dict[str, str]:
    """What was written to be marked by hand, as text, by item; nothing is run.

    In a notebook it is the cell whose ``grade_id`` is the item's, and the text cells added right after it; in a module
    the lines from the name of the item (``OPEN_QUESTION`` for ``open-question``) to the next such name or rule.

    Raises
    ------
    SubmissionError, OSError
        As of `read`.
    """
    text = _text(path, form, most)
    found: dict[str, list[str]] = {item: [] for item in items}
    now = ""
    if form == "notebook":
        _cells(text)  # says what is wrong with one that is none
        for cell in json.loads(text)["cells"]:
            if not isinstance(cell, dict):
                continue
            metadata = cell.get("metadata")
            of = metadata.get("nbgrader") if isinstance(metadata, dict) else None
            if isinstance(of, dict) or cell.get("cell_type") == "code":
                grade_id = of.get("grade_id") if isinstance(of, dict) else None
                now = grade_id if isinstance(grade_id, str) else ""
            source = cell.get("source", "")
            if now in found:
                found[now].append("".join(map(str, source)) if isinstance(source, list) else str(source))
        return {item: "\n\n".join(parts).strip() for item, parts in found.items()}
    names = {item.replace("-", "_").upper(): item for item in items}
    for line in text.splitlines():
        name = re.match(r"[A-Z_]*", line)[0]  # type: ignore[index]  # it matches always
        if name in names:
            now = names[name]
        elif line.startswith(("# ----", "def ", "class ")) or re.match(r"# (Open question|Reflection)\b", line):
            now = ""
        if now:
            found[now].append(line)
    return {item: "\n".join(lines).strip() for item, lines in found.items()}


def _text(path: Path, form: Form, most: int) -> str:
    wanted = f"hand in the {'notebook' if form == 'notebook' else 'module'} itself"
    found = path.lstat()
    if stat.S_ISLNK(found.st_mode):
        raise SubmissionError(f"it is a symbolic link, not a file; {wanted}")
    if not stat.S_ISREG(found.st_mode):
        raise SubmissionError(f"it is not a file; {wanted}")
    # Between the two looks it may have been replaced: by a link, which is not followed, or a pipe, not waited for.
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise SubmissionError(f"it is not a file; {wanted}")
        data = file.read(most + 1)
    if len(data) > most:
        size = f"{max(found.st_size, len(data)) / 2**20:.0f} MiB"
        raise SubmissionError(
            f"it has {size}, and at most {most / 2**20:.0f} MiB are read; clear the outputs and save it again"
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise SubmissionError(f"it is not text in UTF-8, so no {SUFFIXES[form]} file; {wanted}") from None


def _cells(text: str) -> tuple[tuple[str, str], ...]:
    again = "open it in Jupyter, save it, and hand in the .ipynb file"
    if not text.strip():
        raise SubmissionError(f"the file is empty; {again}")
    try:
        notebook = json.loads(text)
    except (ValueError, RecursionError):
        raise SubmissionError(f"it is not a notebook: its text is not JSON; {again}") from None
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    if not isinstance(cells, list):
        raise SubmissionError(f"it is not a notebook of format 4: it has no list of cells; {again}")
    if len(cells) > MOST_CELLS:
        raise SubmissionError(f"it has {len(cells)} cells, and at most {MOST_CELLS} are read")
    found = []
    for number, cell in enumerate(cells, 1):
        if not isinstance(cell, dict) or cell.get("cell_type") != "code" or is_locked(cell):
            continue
        source = cell.get("source", "")
        if isinstance(source, list) and all(isinstance(line, str) for line in source):
            source = "".join(source)
        if not isinstance(source, str):
            raise SubmissionError(f"cell {number} of the notebook has no text; {again}")
        if source.strip():
            found.append((f"cell {number}", source))
    return tuple(found)


def is_locked(cell: dict[str, Any]) -> bool:
    """Whether a cell is one that students run but do not edit: it is left out, since the grader has its own checks."""
    metadata = cell.get("metadata")
    if not isinstance(metadata, dict):
        return False
    nbgrader, tags = metadata.get("nbgrader"), metadata.get("tags")
    by_nbgrader = isinstance(nbgrader, dict) and nbgrader.get("locked") is True and nbgrader.get("solution") is not True
    return by_nbgrader or (isinstance(tags, list) and "locked" in tags)
