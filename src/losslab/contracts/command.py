"""``losslab check package.module:name``."""

from __future__ import annotations

import argparse
import ast
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from losslab.contracts.model import Order, Reduction
from losslab.corpora.files import replace_file

if TYPE_CHECKING:
    from argparse import _SubParsersAction

KEPT, BROKEN, USAGE = 0, 1, 2
PRINTED = "-"


def add_parser(subparsers: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``check`` to the subcommands."""
    parser = subparsers.add_parser(
        "check",
        help="check which promises a loss keeps",
        description="Check which promises a loss keeps, and show the smallest input on which it breaks one.",
        epilog="exit status: 0 no promise broken, but by design, 1 a promise broken, or left untried by "
        "the budget, 2 nothing to check or the loss cannot be run",
    )
    parser.add_argument(
        "loss",
        metavar="package.module:name",
        nargs="?",
        help="a function, module or loss class; or folder/file.py:name",
    )
    parser.add_argument(
        "--kind", help="family of promises: listwise, contrastive, token, matryoshka; left out, it is inferred"
    )
    parser.add_argument(
        "--against",
        metavar="OBJECTIVE",
        help="also compare with this objective: list_mle, p_list_mle, list_net; info_nce, multi_positive_info_nce, "
        "graded_info_nce; token_nll; dot_product_info_nce, mse; or package.module:name",
    )
    parser.add_argument("--order", choices=get_args(Order), help="declare what ranks the documents of a list")
    parser.add_argument(
        "--count-short-lists",
        action="store_true",
        default=None,
        help="declare that lists of fewer than two documents are counted in the mean",
    )
    parser.add_argument("--reduction", choices=get_args(Reduction), help="declare how queries become one value")
    parser.add_argument(
        "--shift",
        choices=("true", "false"),
        help="declare whether a token loss shifts its labels, the input ids, or is given shifted ones",
    )
    parser.add_argument(
        "--declare",
        metavar="NAME=VALUE",
        dest="declared",
        action="append",
        default=[],
        type=_option,
        help="declare any other convention, such as normalize=false of a contrastive loss or returns=perplexity of a "
        "token loss; may be repeated",
    )
    parser.add_argument(
        "--set",
        metavar="NAME=VALUE",
        dest="options",
        action="append",
        default=[],
        type=_option,
        help="call the loss, or make its class, with this keyword; may be repeated",
    )
    parser.add_argument(
        "--allow",
        metavar="CONTRACT=REASON",
        action="append",
        default=[],
        type=_reason,
        help="this contract is broken by design, and why; it is checked and shown, and does not count; may be repeated",
    )
    parser.add_argument("--only", metavar="CONTRACT", action="append", help="only this contract; may be repeated")
    parser.add_argument("--seed", type=int, default=0, help="of the random inputs (default 0)")
    parser.add_argument(
        "--examples", metavar="N", type=_positive(int), help="random inputs for each contract (default: 30 to 60)"
    )
    parser.add_argument(
        "--budget",
        metavar="SECONDS",
        type=_seconds,
        default="default",
        help="time for all of it; what is not reached by then is unchecked; none for as long as it takes (default: "
        "LOSSLAB_CHECK_BUDGET, else 9)",
    )
    parser.add_argument("--device", help="where to run the loss: cpu, cuda or mps")
    parser.add_argument("--code", action="store_true", help="print each counterexample as a program, too")
    parser.add_argument(
        "--json",
        metavar="FILE",
        nargs="?",
        const=PRINTED,
        help="print the report as JSON instead; with a file, write it there as well as printing the report",
    )
    parser.add_argument("--html", metavar="FILE", help="write the report there as a page")
    parser.set_defaults(run=run, usage=parser.error)


def run(arguments: argparse.Namespace) -> int:
    """Check, print the report, and say how it went as an exit status."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)  # as python -m does: users name the file they are standing beside
    from losslab.contracts.checking import check
    from losslab.contracts.named import NotALossError, import_loss

    if arguments.loss is None and arguments.json and ":" in arguments.json:  # --json stood before the loss
        arguments.loss, arguments.json = arguments.json, PRINTED
    if arguments.loss is None:
        arguments.usage("name a loss, package.module:name or folder/file.py:name")
    against = arguments.against
    try:
        files = [Path(file) for file in (arguments.html, arguments.json) if file not in (None, PRINTED)]
        for file in files:
            if not file.parent.is_dir() or file.is_dir():
                raise ValueError(
                    f"{file} cannot be written: {'it' if file.is_dir() else file.parent} is "
                    f"{'a folder' if file.is_dir() else 'no folder'}"
                )
        declared = {name: getattr(arguments, name) for name in ("order", "count_short_lists", "reduction")}
        declared["shift"] = None if arguments.shift is None else arguments.shift == "true"
        report = check(
            arguments.loss,
            arguments.kind,
            against=import_loss(against) if against and ":" in against else against,
            seed=arguments.seed,
            only=arguments.only,
            examples=arguments.examples,
            options=dict(arguments.options),
            allow=dict(arguments.allow),
            budget=arguments.budget,
            device=arguments.device,
            **{**declared, **dict(arguments.declared)},
        )
    except (NotALossError, TypeError, ValueError) as error:
        return _complain(str(error))
    try:
        if arguments.html:
            replace_file(Path(arguments.html), report.to_html().encode())
        if arguments.json not in (None, PRINTED):
            replace_file(Path(arguments.json), (report.to_json() + "\n").encode())
    except OSError as error:
        return _complain(f"the report cannot be written: {error}")
    judged = [result for result in report.results if result.verdict not in ("exempt", "unchecked")]
    if judged and all(result.verdict == "error" for result in judged):
        return _complain(f"{arguments.loss} cannot be judged: {judged[0].reason}")
    print(report.to_json() if arguments.json == PRINTED else report)
    if arguments.code and arguments.json != PRINTED:
        for contract, program in report.code().items():
            print(f"\n# --- {contract}\n{program}", end="")
    return KEPT if report else BROKEN


def _reason(text: str) -> tuple[str, str]:
    contract, equals, reason = text.partition("=")
    if not equals or not contract.strip() or not reason.strip():
        raise argparse.ArgumentTypeError(f"expected CONTRACT=REASON, got {text!r}")
    return contract.strip(), reason.strip()


def _positive(number: type[Any]) -> Callable[[str], Any]:
    def read(text: str) -> Any:  # noqa: ANN401
        try:
            found = number(text)
        except ValueError:
            found = 0
        if not 0 < found < float("inf"):
            raise argparse.ArgumentTypeError(
                f"expected a {'whole ' if number is int else ''}number above 0, got {text!r}"
            )
        return found

    return read


def _seconds(text: str) -> float | str | None:
    if text == "default":
        return text
    return None if text.lower() == "none" else float(_positive(float)(text))


def _option(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE, got {text!r}")
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name, {"true": True, "false": False}.get(value.lower(), value)


def _complain(text: str) -> int:
    print(f"losslab check: {' '.join(text.split())}", file=sys.stderr)
    return USAGE
