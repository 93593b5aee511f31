"""``losslab check package.module:name``."""

from __future__ import annotations

import argparse
import ast
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from losslab.contracts.model import Order, Reduction

if TYPE_CHECKING:
    from argparse import _SubParsersAction

KEPT, BROKEN, USAGE = 0, 1, 2


def add_parser(subparsers: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``check`` to the subcommands."""
    parser = subparsers.add_parser(
        "check",
        help="check which promises a loss keeps",
        description="Check which promises a loss keeps, and show the smallest input on which it breaks one.",
        epilog="exit status: 0 no promise broken, 1 a promise broken, 2 nothing to check or the loss cannot be run",
    )
    parser.add_argument("loss", metavar="package.module:name", help="a function, module or loss class")
    parser.add_argument(
        "--kind", default="listwise", help="family of promises: listwise (the default), contrastive, token, matryoshka"
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
    parser.add_argument("--only", metavar="CONTRACT", action="append", help="only this contract; may be repeated")
    parser.add_argument("--seed", type=int, default=0, help="of the random inputs (default 0)")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Check, print the report, and say how it went as an exit status."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)  # as python -m does: users name the file they are standing beside
    from losslab.contracts.checking import check
    from losslab.contracts.named import NotALossError, find_loss, import_loss

    against = arguments.against
    try:
        loss = find_loss(arguments.loss, dict(arguments.options), arguments.kind)
        declared = {name: getattr(arguments, name) for name in ("order", "count_short_lists", "reduction")}
        declared["shift"] = None if arguments.shift is None else arguments.shift == "true"
        report = check(
            loss,
            arguments.kind,
            against=import_loss(against) if against and ":" in against else against,
            seed=arguments.seed,
            only=arguments.only,
            **{**declared, **dict(arguments.declared)},
        )
    except (NotALossError, TypeError, ValueError) as error:
        return _complain(str(error))
    judged = [result for result in report.results if result.verdict not in ("exempt", "unchecked")]
    if judged and all(result.verdict == "error" for result in judged):
        return _complain(f"{arguments.loss} cannot be judged: {judged[0].reason}")
    print(report.to_json() if arguments.json else report)
    return KEPT if report else BROKEN


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
