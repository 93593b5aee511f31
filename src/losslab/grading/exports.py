"""Marks as tables for Canvas and Moodle, the rubric as a table for marking by hand, and a file a student.

What the importers want was read from their code: Canvas's ``GradebookImporter`` takes the columns Student, ID, SIS User
ID, SIS Login ID, Section first and every column after them for an assignment; a row of points possible is optional.
Moodle's import into the gradebook lets its user choose columns, but breaks off at a row that names nobody, so the one
file for both has no such row. Moodle's grading worksheet (for one assignment) knows its rows by "Participant N".
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from losslab.corpora.files import replace_file
from losslab.grading import feedback, gradescope
from losslab.grading import submissions as submissions_
from losslab.grading.batch import DISK, Batch, BatchError, Record, Submission, unwritten
from losslab.grading.sandbox import Limits

if TYPE_CHECKING:
    from losslab.grading.lab import Lab

#: What a spreadsheet takes for the beginning of a formula, the full-width forms of Japanese keyboards included.
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
CANVAS_COLUMNS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
WORKSHEET_COLUMNS = ("Identifier", "Full name", "Grade", "Maximum Grade", "Last modified (grade)", "Feedback comments")

#: Points given by hand: student, then item.
ByHand = Mapping[str, Mapping[str, float]]


def cell(value: object) -> str:
    """A value as a cell that no spreadsheet runs: ``=cmd`` becomes ``'=cmd``; numbers stay numbers, None is empty.

    >>> cell("=1+1"), cell(-0.5), cell(None), cell(1 / 3)
    ("'=1+1", '-0.5', '', '0.33')
    """
    if value is None:
        return ""
    if isinstance(value, int | float):
        return number(value)
    text = str(value)
    return f"'{text}" if text.lstrip(" ").startswith(FORMULA) else text


def number(value: float) -> str:
    """Points with at most two decimals, the most that Canvas keeps: ``2.5``, ``3``."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> bytes:
    """A table as the bytes of a CSV (UTF-8, comma, as both importers expect)."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow([cell(each) for each in header])
    writer.writerows([cell(each) for each in row] for row in rows)
    return text.getvalue().encode("utf-8", "backslashreplace")


def automatic(record: Record) -> float | None:
    """Points of all checks together, or None where the grader failed: an empty cell, never a zero."""
    return record.mark.points


def manual(lab: Lab, student: str, by_hand: ByHand) -> float | None:
    """Points given by hand, or None while one is missing."""
    given = by_hand.get(student, {})
    items = [item.id for item in lab.items if item.check is None]
    return math.fsum(given[item] for item in items) if items and all(item in given for item in items) else None


def columns(lab: Lab) -> tuple[str, ...]:
    """Names of the columns of points: one of the checks, and one of what is marked by hand if there is any."""
    return (lab.title, f"{lab.title}, by hand") if lab.manual_points else (lab.title,)


def grades(lab: Lab, batch: Batch, submissions: Sequence[Submission], by_hand: ByHand, *, possible: bool) -> bytes:
    """``grades.csv``, which both import; with a row of points possible it is for Canvas alone."""
    marks = {record.submission.student: automatic(record) for record in batch.records}
    rows: list[list[object]] = []
    if possible:
        row: list[object] = ["    Points Possible", "", "", "", "", lab.points]
        rows.append([*row, lab.manual_points] if lab.manual_points else row)
    for each in submissions:
        # Canvas looks for the ID first. Moodle, given a row that names nobody, would write the mark to whoever
        # stands in the row before: whoever has no ID has a login.
        login = "" if each.canvas_id else f"Participant {each.participant}" if each.participant else each.student
        row = [each.student, each.canvas_id, "", login, "", marks.get(each.student)]
        rows.append([*row, manual(lab, each.student, by_hand)] if lab.manual_points else row)
    return table((*CANVAS_COLUMNS, *columns(lab)), rows)


def worksheet(lab: Lab, batch: Batch, by_hand: ByHand) -> bytes | None:
    """The grading worksheet of one assignment in Moodle, or None where no submission came from Moodle.

    Its grade is that of checks and hand together, empty until both are there.
    """
    rows = []
    for record in batch.records:
        if not record.submission.participant:
            continue
        points, hand = automatic(record), manual(lab, record.submission.student, by_hand)
        whole = None if points is None or (hand is None and lab.manual_points) else points + (hand or 0.0)
        comment = feedback.as_text(lab, record, by_hand.get(record.submission.student, {}))
        name, number_ = record.submission.student, f"Participant {record.submission.participant}"
        rows.append((number_, name, whole, lab.points + lab.manual_points, "", comment))
    return table(WORKSHEET_COLUMNS, rows) if rows else None


def rubric(lab: Lab, batch: Batch, submissions: Sequence[Submission], by_hand: ByHand) -> bytes:
    """Points of each item a column; those to be marked by hand are empty, to be filled in for ``--manual``."""
    marks = {record.submission.student: record for record in batch.records}
    rows = []
    for each in submissions:
        record = marks.get(each.student)
        row: list[object] = [each.student, record.mark.status if record else each.problem or "not marked"]
        given = {} if record is None else {item.id: item.points for item in record.mark.items}
        hand = by_hand.get(each.student, {})
        if record and record.mark.unreadable:
            row[1] = "unreadable"
        row += [given.get(item.id) if item.check else hand.get(item.id) for item in lab.items]
        if lab.manual_points:
            row.append(f"answers/{each.key}.html" if record else None)
        rows.append(row)
    last = ("Answers",) if lab.manual_points else ()
    return table(("Student", "Status", *(item.id for item in lab.items), *last), rows)


def read_by_hand(path: Path, lab: Lab, submissions: Sequence[Submission]) -> dict[str, dict[str, float]]:
    """Points given by hand, from a CSV with a column Student and one for each item marked by hand.

    Other columns (those of ``rubric.csv``) are left alone, empty cells are not points.

    Raises
    ------
    BatchError
        The file cannot be read, names an unknown student, or a cell is no number between 0 and the item's points.
    """
    items = {item.id: item.points for item in lab.items if item.check is None}
    if not items:
        raise BatchError(f"{lab.name} has nothing that is marked by hand; leave --manual out")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as problem:
        raise BatchError(f"{path} cannot be read: {problem}") from None
    reader = csv.DictReader(io.StringIO(text))
    found = reader.fieldnames or []
    if "Student" not in found or not items.keys() & set(found):
        raise BatchError(
            f"{path} needs the columns Student and {', '.join(items)}; it has {', '.join(found) or 'none'}"
        )
    # as it is, as it stands in our tables, and there if it is no UTF-8
    names = {name: each.student for each in submissions for name in _spellings(each.student)}
    given: dict[str, dict[str, float]] = {}
    for line, row in enumerate(reader, start=2):
        student = names.get(row["Student"] or "")
        if student is None:
            raise BatchError(f"{path}, line {line}: no submission by {row['Student']!r}")
        for item, out_of in items.items():
            entry = (row.get(item) or "").strip()
            if not entry:
                continue
            try:
                points = float(entry.replace(",", "."))
            except ValueError:
                points = math.nan
            if not 0 <= points <= out_of:
                raise BatchError(
                    f"{path}, line {line}: {item} is {entry!r}; expected points from 0 to {number(out_of)}"
                )
            given.setdefault(student, {})[item] = points
    return given


def _spellings(student: str) -> set[str]:
    return {form.encode("utf-8", "backslashreplace").decode() for form in (student, cell(student))}


def keep_by_hand(out: Path, new: ByHand) -> dict[str, dict[str, float]]:
    """Add points given by hand to those of earlier runs, and return them all.

    Raises
    ------
    BatchError
        The earlier ones cannot be read.
    """
    path = out / "by-hand.json"
    try:
        kept: dict[str, dict[str, float]] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        for student, points in new.items():
            kept[student] = {**kept.get(student, {}), **points}
    except (OSError, ValueError, AttributeError, TypeError) as problem:
        raise BatchError(f"{path} cannot be read ({problem}); correct or delete it") from None
    if new:
        replace_file(path, (json.dumps(kept, indent=2) + "\n").encode())
    return kept


def public(lab: Lab, record: Record, by_hand: Mapping[str, float]) -> dict[str, object]:
    """What a student may have: points and feedback, but neither the seed nor anything of the grader."""
    return {
        "student": record.submission.student,
        "lab": lab.name,
        "status": record.mark.status,
        "unreadable": record.mark.unreadable,
        "points": automatic(record),
        "out_of": lab.points,
        "items": [
            {
                "id": item.id,
                "title": item.title,
                "points": by_hand.get(item.id) if item.check is None else (points.points if points else None),
                "out_of": item.points,
                "by_hand": item.check is None,
                "feedback": [each.to_dict() for each in points.feedback] if points else [],
            }
            for item, points in feedback.by_item(lab, record)
        ],
    }


def write(out: Path, lab: Lab, batch: Batch, submissions: Sequence[Submission], by_hand: ByHand, seed: int) -> None:
    """Write all tables and pages anew from the marks; each is whole or not there.

    Raises
    ------
    BatchError
        They cannot be written. Marks are kept.
    """
    try:
        for place, record in enumerate(batch.records):
            given = by_hand.get(record.submission.student, {})
            try:
                _write_one(out, lab, record, given)
            except Exception as problem:  # one that cannot be written must not keep the others from it
                if isinstance(problem, OSError) and problem.errno in DISK:
                    raise
                batch.records[place] = replace(record, mark=unwritten(record, problem))
                with suppress(Exception):
                    _write_one(out, lab, batch.records[place], given)
        replace_file(out / "grades.csv", grades(lab, batch, submissions, by_hand, possible=False))
        replace_file(out / "grades-canvas.csv", grades(lab, batch, submissions, by_hand, possible=True))
        replace_file(out / "rubric.csv", rubric(lab, batch, submissions, by_hand))
        if sheet := worksheet(lab, batch, by_hand):
            replace_file(out / "grades-moodle.csv", sheet)
        else:
            (out / "grades-moodle.csv").unlink(missing_ok=True)  # of an earlier run: its points may be others now
        index = feedback.index(lab, batch, by_hand, seed)
        replace_file(out / "index.html", index.encode("utf-8", "replace"))
    except OSError as problem:
        why = problem.strerror or os.strerror(problem.errno or 0)
        raise BatchError(f"cannot write to {out}: {why}; marks are kept, run again to write the tables") from None


def _write_one(out: Path, lab: Lab, record: Record, given: Mapping[str, float]) -> None:
    """The files of one student."""
    key = record.submission.key
    page = feedback.page(lab, record, given)
    replace_file(out / "feedback" / f"{key}.html", page.encode("utf-8", "replace"))
    replace_file(out / "feedback" / f"{key}.json", _json(public(lab, record, given)))
    if lab.manual_points:
        _write_answers(out, lab, record)
    results = out / "gradescope" / key / "results.json"
    if record.mark.status == "grader-failure":
        results.unlink(missing_ok=True)  # Gradescope then says that the grader failed; a zero it would believe
    else:
        replace_file(results, _json(gradescope.results(lab, record.mark)))


def _write_answers(out: Path, lab: Lab, record: Record) -> None:
    """What is to be marked by hand; the page stays where the submission of an earlier run is gone."""
    path, place = record.submission.path, out / "answers" / f"{record.submission.key}.html"
    if place.exists() and not path.exists():
        return
    items = [item.id for item in lab.items if item.check is None]
    try:
        written = submissions_.answers(path, lab.form, items, Limits().submission)
    except (submissions_.SubmissionError, OSError, ValueError, RecursionError):
        written = None
    replace_file(place, feedback.answers(lab, record, written).encode("utf-8", "replace"))


def _json(content: object) -> bytes:
    return (json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode("utf-8", "replace")
