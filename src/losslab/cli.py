"""The ``losslab`` command. Each subcommand lives in the package it belongs to and is only joined on here."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence

COMMANDS = ("losslab.contracts.command", "losslab.grading.command", "losslab.labs.command", "losslab.measure.command")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; the exit status is what the subcommand's ``run`` returns, 2 where a package is missing."""
    parser = argparse.ArgumentParser(prog="losslab", description="Checks what a training loss really teaches.")
    subparsers = parser.add_subparsers(metavar="command", required=True)
    try:
        for name in COMMANDS:
            importlib.import_module(name).add_parser(subparsers)
    except ModuleNotFoundError as problem:
        print(
            f"losslab: {problem.name} is missing; install what losslab needs with: pip install losslab", file=sys.stderr
        )
        return 2
    arguments = parser.parse_args(argv)
    status: int = arguments.run(arguments)
    return status
