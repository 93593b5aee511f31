"""``losslab labs``: the labs there are, and their student copies."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``losslab labs`` to the command line."""
    parser = subparsers.add_parser(
        "labs", help="list the labs, or make their student copies", description="Labs and their student copies."
    )
    actions = parser.add_subparsers(metavar="action", required=True)
    listing = actions.add_parser("list", help="list the labs, how long each takes, and its points")
    listing.set_defaults(run=run, action="list", names=[])
    release = actions.add_parser(
        "release",
        help="make student copies from the sources",
        description="Make each lab's student copy from its source: solutions out, first cell and rubric in.",
    )
    release.add_argument("names", nargs="*", metavar="NAME", help="labs (default: all)")
    release.add_argument("--check", action="store_true", help="write nothing; exit 1 if a copy is out of date")
    release.add_argument("--out", type=Path, metavar="DIR", help="folder for the copies (default: beside each source)")
    release.add_argument(
        "--students",
        type=Path,
        metavar="FILE",
        help="one student a line: a copy for each, with texts of its own, as DIR/<student>/<lab>.ipynb",
    )
    release.set_defaults(run=run, action="release")


def run(arguments: argparse.Namespace) -> int:
    """Do what the command line asks for; 1 if a copy is out of date, 2 for a wrong call or source."""
    try:
        return _list() if arguments.action == "list" else _release(arguments)
    except ImportError as problem:
        return _complain(f"{problem}; install what it needs with: pip install 'losslab[labs]'")
    except (ValueError, OSError) as problem:
        return _complain(str(problem))


def _list() -> int:
    from losslab.grading import load_lab
    from losslab.labs.release import find_labs, names_in
    from losslab.labs.start import LABS

    folder = find_labs(Path.cwd())
    ours = {name: place for place, name in enumerate(LABS)}
    for name in sorted(names_in(folder), key=lambda name: (ours.get(name, len(ours)), name)):  # as the chapters stand
        lab = load_lab(folder / name)
        print(f"{name:16} {lab.minutes:3} min  {lab.points:g} + {lab.manual_points:g} points  {lab.title}")
    return 0


def _release(arguments: argparse.Namespace) -> int:
    from losslab.corpora.files import replace_file
    from losslab.labs.release import copy_of, find_labs, make_copy, names_in, students_in, varies

    folder = find_labs(Path.cwd())
    if arguments.students and not arguments.out:
        return _complain("--students needs --out DIR: their copies do not belong beside the sources")
    students = students_in(arguments.students) if arguments.students else [None]
    names = list(dict.fromkeys(arguments.names or names_in(folder)))
    if arguments.students and not arguments.names:
        for name in [name for name in names if not varies(folder / name)]:
            names.remove(name)
            print(f"losslab labs: {name} is the same for everybody: left out", file=sys.stderr)
    made = {}
    for name in names:  # all are made before the first is written
        path = copy_of(folder / name)
        for student in students:
            out = arguments.out / (student or "") if arguments.out else path.parent
            made[out / path.name] = make_copy(folder / name, student=student)
    stale = [path for path, content in made.items() if not path.is_file() or path.read_bytes() != content]
    if arguments.check:
        for path in stale:
            print(f"losslab labs: {path} is out of date; make it anew with: losslab labs release", file=sys.stderr)
        if not stale:
            print(f"{len(made)} copies, all current")
        return 1 if stale else 0
    for path in made:
        if path in stale:
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(path, made[path])
        print(f"{path}{'' if path in stale else ' (unchanged)'}")
    return 0


def _complain(text: str) -> int:
    print(f"losslab labs: {text}", file=sys.stderr)
    return 2
