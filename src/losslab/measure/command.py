"""``losslab measure``: run a long measurement and keep its result."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import losslab.measure as measurements


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``losslab measure`` to the command line."""
    parser = subparsers.add_parser(
        "measure",
        help="run a long measurement and write its result to data/measured",
        description="Run a long measurement; write NAME.csv (one value a row) and NAME.json (versions, seeds, date). "
        "An interrupted or failed measurement leaves the old result as it was.",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="what to measure, see --list")
    parser.add_argument("--all", action="store_true", help="measure everything")
    parser.add_argument("--list", action="store_true", help="list what can be measured")
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder for the result (default: data/measured)")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run what the command line asks for; 0 when all is written, 1 when a measurement failed, 2 for a wrong call."""
    if arguments.list:
        for name in measurements.NAMES:
            print(f"{name:20} {measurements.get(name).title}")
        return 0
    if not (arguments.names or arguments.all):
        return _complain("name a measurement; --list shows them, --all runs them all", 2)
    try:
        out = arguments.out or default_folder(Path.cwd())
        names = list(measurements.NAMES) if arguments.all else arguments.names
        chosen = [measurements.get(name) for name in names]
    except (ValueError, FileNotFoundError) as problem:
        return _complain(str(problem), 2)
    except ImportError as problem:
        return _complain(f"{problem}; install what it needs with: pip install 'losslab[libraries]'", 2)
    for measurement in chosen:
        started = time.perf_counter()

        def progress(line: str, name: str = measurement.name, started: float = started) -> None:
            print(f"{name} {time.perf_counter() - started:6.1f} s  {line}", file=sys.stderr, flush=True)

        try:
            path = measurements.measure(measurement, out, progress)
        except KeyboardInterrupt:
            return _complain(f"{measurement.name} interrupted; {out} is as it was", 130)
        except Exception as problem:
            return _complain(f"{measurement.name} failed, {out} is as it was: {type(problem).__name__}: {problem}", 1)
        print(path)
    return 0


def default_folder(start: Path) -> Path:
    """``data/measured`` of the checkout that ``start`` lies in.

    Raises
    ------
    FileNotFoundError
        ``start`` lies in no checkout of losslab.
    """
    for folder in (start, *start.parents):
        if (folder / "data" / "measured").is_dir() and (folder / "pyproject.toml").is_file():
            return folder / "data" / "measured"
    raise FileNotFoundError(f"{start} is in no checkout with a data/measured folder; say where with --out DIR")


def _complain(text: str, code: int) -> int:
    print(f"losslab measure: {text}", file=sys.stderr)
    return code
