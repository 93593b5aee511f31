"""Gradescope: the ``results.json`` of a submission, and the zip that makes an autograder of a lab.

The format is that of Gradescope's autograder specification: ``setup.sh`` runs once, when the image is built;
``run_autograder`` runs for each submission beside ``source/`` (the zip unpacked), ``submission/`` and ``results/``.
"""

from __future__ import annotations

import importlib.metadata
import io
import json
import math
import secrets
import sys
import zipfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from losslab.corpora.files import replace_file
from losslab.grading.batch import Options, Submission, _files

if TYPE_CHECKING:
    from losslab.grading.lab import Lab
    from losslab.grading.marking import Mark

#: What marking needs to be installed, in the versions installed here: marks then agree with those given here.
PACKAGES = ("numpy", "torch", "hypothesis")
ENDINGS = {".py", ".md", ".ipynb", ".js", ".css", ".mplstyle", ".typed", ".json", ".csv"}

SETUP = """#!/usr/bin/env bash
# Runs once, when the image is built: Python, what marking imports, and bubblewrap, which shuts students' code in.
set -euo pipefail
apt-get update
apt-get install -y python3 python3-venv bubblewrap
python3 -m venv /autograder/venv
/autograder/venv/bin/pip install --no-cache-dir {packages}
chmod -R go-rwx /autograder/source
"""

RUN = """#!/usr/bin/env bash
# Runs for each submission; says why on standard output, which only instructors see, where it fails.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
python="$here/venv/bin/python"
[ -x "$python" ] || python=python3
PYTHONPATH="$here/source" exec "$python" -m losslab.grading.gradescope "$here"
"""


def results(lab: Lab, mark: Mark) -> dict[str, object]:
    """A mark as Gradescope wants it: one test an item, with its points and feedback.

    Raises
    ------
    ValueError
        The grader failed: there is no mark, and Gradescope must not be given a zero for one.
    """
    if mark.status == "grader-failure":
        raise ValueError(f"there is no mark for {mark.student}: the grader failed; mark the submission again")
    given = {item.id: item for item in mark.items}
    tests: list[dict[str, object]] = []
    by_hand = []
    for number, item in enumerate(lab.items, start=1):
        if item.check is None:
            by_hand.append(f"{item.title} ({item.points:g} points)")
            continue
        points = given[item.id]
        tests.append(
            {
                "number": str(number),
                "name": item.title,
                "score": round(points.points or 0.0, 2),
                "max_score": item.points,
                "status": "passed" if points.points == item.points else "failed",
                "output": "\n".join(f"{'✓' if said.kept else '✗'} {said}" for said in points.feedback),
                "output_format": "text",
                "visibility": "visible",
            }
        )
    said = [f"Cannot be marked: {mark.unreadable}."] if mark.unreadable else []
    said += [f"To be marked by hand: {', '.join(by_hand)}."] if by_hand else []
    return {
        "score": round(mark.points or 0.0, 2),
        "execution_time": math.ceil(mark.seconds),
        "output": " ".join(said),
        "output_format": "text",
        "visibility": "visible",
        "stdout_visibility": "hidden",
        "tests": tests,
    }


def autograder(lab: Lab, folder: Path) -> bytes:
    """The zip: ``setup.sh``, ``run_autograder``, losslab itself and the lab's ``marking.py``."""
    package = Path(__file__).parents[1]
    wanted = []
    for name in PACKAGES:
        with suppress(importlib.metadata.PackageNotFoundError):  # what follows + names a build and not a version
            wanted.append(f"{name}=={importlib.metadata.version(name).partition('+')[0]}")
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        _add(archive, "setup.sh", SETUP.format(packages=" ".join(wanted)).encode(), executable=True)
        _add(archive, "run_autograder", RUN.encode(), executable=True)
        _add(archive, "lab.json", json.dumps({"lab": lab.name, "folder": f"labs/{folder.name}"}).encode())
        # Of the lab only what marks are given by: its source holds the solutions, and wrong.py is near them.
        _add(archive, f"labs/{folder.name}/marking.py", (folder / "marking.py").read_bytes())
        for path in sorted(package.rglob("*")):
            inside = path.relative_to(package)
            if (
                path.is_file()
                and path.suffix in ENDINGS
                and not any(p.startswith((".", "__pyc")) for p in inside.parts)
            ):
                _add(archive, f"losslab/{inside.as_posix()}", path.read_bytes())
    return content.getvalue()


def _add(archive: zipfile.ZipFile, name: str, content: bytes, *, executable: bool = False) -> None:
    entry = zipfile.ZipInfo(name)  # of 1980: the same lab gives the same bytes
    entry.external_attr = (0o100755 if executable else 0o100644) << 16
    entry.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(entry, content)


def run(root: Path) -> int:
    """Mark the one submission in ``root/submission`` into ``root/results/results.json``; the exit status.

    Without a mark no results are written: Gradescope then tells that the autograder failed, rather than a zero.
    """
    from losslab.grading import load_lab, mark

    try:
        source = root / "source"
        lab = load_lab(source / json.loads((source / "lab.json").read_text(encoding="utf-8"))["folder"])
        found = _files(root / "submission", lab.form)
        options = Options(secrets.randbits(48))
        if len(found) != 1:
            names = ", ".join(sorted(path.name for path, _ in found))
            content = refusal(f"Hand in one file: these are {len(found)} ({names}), and only one can be marked.")
        elif found[0][1]:
            content = refusal(f"{found[0][0].name} {found[0][1]}.")
        else:
            submission = Submission("submission", found[0][0])
            print(f"seed {options.seed}")
            given = mark(lab, submission.path, student=submission.student, seed=options.seed)
            if given.status == "grader-failure":
                print(f"the grader failed: {given.log}")
                return 1
            content = results(lab, given)
        text = json.dumps(content, indent=2, allow_nan=False).encode()
        replace_file(root / "results" / "results.json", text)
    except Exception as problem:
        print(f"the grader failed: {type(problem).__name__}: {problem}")
        return 1
    return 0


def refusal(why: str) -> dict[str, object]:
    """Results for what cannot be marked because of how it was handed in; nothing was run."""
    return {"score": 0.0, "output": why, "visibility": "visible", "stdout_visibility": "hidden", "tests": []}


def main(arguments: Sequence[str]) -> int:
    """``python -m losslab.grading.gradescope /autograder``."""
    if len(arguments) != 1:
        print("name the folder that holds source, submission and results", file=sys.stderr)
        return 2
    return run(Path(arguments[0]))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
