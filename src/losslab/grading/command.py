"""``losslab grade LAB SUBMISSIONS --out DIR``."""

from __future__ import annotations

import argparse
import importlib.util
import json
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from losslab.corpora.files import replace_file
from losslab.grading.batch import BatchError
from losslab.grading.sandbox import Limits

if TYPE_CHECKING:
    from argparse import _SubParsersAction

    from losslab.grading.batch import Options
    from losslab.grading.lab import Lab

MARKED, FAILED, USAGE = 0, 1, 2


class Stopped(KeyboardInterrupt):
    """A signal asks the grader to end."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.status = 128 + number  # as shells have it


def add_parser(subparsers: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``grade`` to the subcommands."""
    parser = subparsers.add_parser(
        "grade",
        help="mark a folder of submissions to a lab",
        description="Mark a folder of submissions to a lab. Broken off and run again, it marks only what is missing.",
        epilog="exit status: 0 all marked; 1 the grader failed for some, who have no mark and no zero; "
        "2 wrong call or unreadable input, what was marked is kept; 130 or 143 interrupted, what was marked is kept",
    )
    parser.add_argument("lab", metavar="LAB", help="name of a lab, or a folder with its marking.py")
    parser.add_argument(
        "submissions",
        metavar="SUBMISSIONS",
        type=Path,
        nargs="?",
        help="folder with <student>.ipynb, <student>/<file>, or what Canvas or Moodle exports",
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder for marks, feedback and tables")
    parser.add_argument(
        "--seed",
        type=int,
        metavar="N",
        help="of the random inputs (default: that of the run before in DIR, else drawn and logged)",
    )
    parser.add_argument("--jobs", type=int, metavar="N", help="submissions at once (default: one a core)")
    parser.add_argument(
        "--cluster",
        metavar="ADDRESS",
        help="workers of this Dask scheduler, which see the same folders; or local:2 (default: processes here)",
    )
    parser.add_argument(
        "--require-isolation",
        action="store_true",
        help="refuse where students' code cannot be shut in by bubblewrap (default: warn and go on; once "
        "given, it stays with DIR)",
    )
    parser.add_argument(
        "--timeout",
        type=float,
        metavar="S",
        help="seconds by the clock for one submission (default: that of the run before in DIR, else "
        f"{Limits.wall:g}, of which {Limits.cells:g} for its cells and {Limits.call:g} for one call)",
    )
    parser.add_argument(
        "--latest",
        action="store_true",
        help="of two submissions by one student take the newest, by Canvas's number or the time of the file (default: "
        "refuse)",
    )
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="STUDENT",
        help="only this one; may be repeated (default: everybody)",
    )
    parser.add_argument(
        "--manual",
        type=Path,
        metavar="FILE.csv",
        help="points given by hand: rubric.csv, filled in (default: those given before)",
    )
    parser.add_argument(
        "--gradescope", type=Path, metavar="FILE.zip", help="write the lab's autograder and mark nothing"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Mark, write the tables, and say how it went as an exit status."""
    try:
        with stopping():
            return _grade(arguments)
    except BatchError as problem:
        return _complain(str(problem), USAGE)
    except KeyboardInterrupt as stopped:
        return _complain("interrupted; what was marked is kept, run again to mark the rest", _status(stopped))


@contextmanager
def stopping() -> Iterator[None]:
    """Make of Ctrl-C, and of what a terminal or a queue ends a program with, a `Stopped` in the main thread.

    Only the first: the tables of what is marked are then written undisturbed.
    """

    def stop(number: int, _: object) -> None:
        for each in before:
            signal.signal(each, signal.SIG_IGN)
        raise Stopped(number)

    before: dict[signal.Signals, Any] = {}
    if threading.current_thread() is not threading.main_thread():  # where no signal arrives
        yield
        return
    for each in (signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])):
        if signal.getsignal(each) is not signal.SIG_IGN:  # as nohup has it
            before[each] = signal.signal(each, stop)
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _grade(arguments: argparse.Namespace) -> int:
    from losslab.grading import LabError, batch, exports, find_lab, gradescope, load_lab

    try:
        folder = find_lab(arguments.lab)
        lab = load_lab(folder)
    except LabError as problem:
        raise BatchError(str(problem)) from None
    if arguments.gradescope:
        try:
            replace_file(arguments.gradescope, gradescope.autograder(lab, folder))
        except OSError as problem:
            raise BatchError(f"cannot write {arguments.gradescope}: {problem.strerror}") from None
        print(arguments.gradescope)
        return MARKED
    if arguments.submissions is not None and not arguments.submissions.exists():
        raise BatchError(f"there is no folder {arguments.submissions}; name the folder of submissions")
    if arguments.submissions is None or arguments.out is None:
        raise BatchError("name the folder of submissions and --out DIR (or --gradescope FILE.zip)")
    for name, value in (("--jobs", arguments.jobs), ("--timeout", arguments.timeout)):
        if value is not None and not value > 0:
            raise BatchError(f"{name} is {value}; expected more than 0")
    if arguments.seed is not None and arguments.seed < 0:
        raise BatchError(f"--seed is {arguments.seed}; expected 0 or more")
    if importlib.util.find_spec("joblib") is None:
        raise BatchError("joblib is missing; install it with: pip install 'losslab[grading]'")
    out: Path = arguments.out
    submissions = batch.collect(arguments.submissions, lab.form, latest=arguments.latest, progress=_say)
    others = batch.earlier_records(out, submissions)
    everybody = sorted([*submissions, *(record.submission for record in others)], key=lambda each: each.student)
    by_hand = exports.read_by_hand(arguments.manual, lab, everybody) if arguments.manual else {}
    earlier = batch.read_settings(out)
    if earlier and earlier.get("lab") != lab.name:
        raise BatchError(f"{out} holds marks of the lab {earlier.get('lab')}; give another --out")
    options, changed = batch.settle_options(out, arguments.seed, arguments.timeout, arguments.require_isolation)
    settings = {
        "lab": lab.name,
        "seed": options.seed,
        "timeout": options.timeout,
        "require_isolation": options.require_isolation,
        "lab_version": batch.lab_version(folder),
    }
    settings["started"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    try:
        if not out.exists():
            out.mkdir(parents=True, mode=0o700)  # marks are nobody else's business
        replace_file(out / "batch.json", (json.dumps(settings, indent=2) + "\n").encode())
        by_hand = exports.keep_by_hand(out, by_hand)
    except OSError as problem:
        raise BatchError(f"cannot write to {out}: {problem.strerror}; nothing was marked") from None
    try_sandbox(lab, options)
    _say(f"{lab.name}: {len(submissions)} submissions, seed {options.seed}")
    outcome = batch.mark_batch(
        folder,
        submissions,
        out,
        options,
        jobs=arguments.jobs,
        cluster=arguments.cluster,
        only=arguments.only,
        changed=changed,
        progress=_say,
    )
    if others:
        _say(f"{len(others)} marked before from another folder stay in the tables")
        old = sum(record.lab_version != settings["lab_version"] for record in others)
        if old:
            _say(f"{old} of them were marked by another version of the lab; to mark them again, give their folder")
        outcome.records = sorted([*outcome.records, *others], key=lambda record: record.submission.student)
    exports.write(out, lab, outcome, everybody, by_hand, options.seed)
    if outcome.stopped is not None:
        marked, all_of_them = len(outcome.records) - len(outcome.failures), len(everybody)
        return _complain(
            f"interrupted: {marked} of {all_of_them} marked; {out / 'index.html'} and the tables have them, run again "
            "to mark the rest",
            _status(outcome.stopped),
        )
    for record in outcome.failures:
        _say(f"the grader failed for {record.submission.student}, no mark given: {_line(record.mark.log)}")
    unreadable = [record for record in outcome.records if record.mark.unreadable]
    for record in unreadable:
        _say(f"{record.submission.student} cannot be read, 0 points: {record.mark.unreadable}")
    for problem_line in outcome.problems:
        _say(problem_line)
    print(
        f"{len(outcome.records) - len(outcome.failures)} marked, {outcome.fresh} of them now"
        f"{f', {len(unreadable)} of them unreadable' if unreadable else ''}; {out / 'index.html'}"
    )
    if outcome.problems:
        return USAGE
    return FAILED if outcome.failures else MARKED


def _status(stopped: KeyboardInterrupt) -> int:
    return stopped.status if isinstance(stopped, Stopped) else 128 + signal.SIGINT


def try_sandbox(lab: Lab, options: Options) -> None:
    """Run what is known to be right in the sandbox, so that a broken machine fails once and not for everybody.

    Raises
    ------
    BatchError
        It does not come out right, or students' code cannot be shut in and that is required.
    """
    from losslab.grading import GraderError, IsolationMissingError, self_test

    try:
        self_test(lab, limits=options.limits, isolation=options.isolation)
    except IsolationMissingError as problem:
        raise BatchError(str(problem)) from None
    except GraderError as problem:
        raise BatchError(f"students' code cannot be run here, so nothing was marked: {problem}") from None


def _line(text: str) -> str:
    """The last line of something, where errors say what they are."""
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else "no reason given"


def _say(text: str) -> None:
    print("".join(c if c.isprintable() else "?" for c in text), file=sys.stderr, flush=True)


def _complain(text: str, code: int) -> int:
    _say(f"losslab grade: {' '.join(text.split())}")
    return code
