"""What `check` found: as a table in a terminal, as HTML in a notebook, as a dictionary for anything else."""

from __future__ import annotations

import json
import platform
import textwrap
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from losslab.contracts.model import AnyConventions, Counterexample, Result, Verdict
from losslab.contracts.wording import show

WIDTH = 80
# No colour of its own: it takes the page's, light or dark, and says everything in words.
STYLE = (
    ".ll-report{border-collapse:collapse;text-align:start}.ll-report caption{text-align:start}"
    ".ll-report :is(th,td){text-align:start;vertical-align:top;padding:.4em .6em;border-top:1px solid currentColor}"
    ".ll-report p{margin:0 0 .3em}.ll-report td:nth-child(2){white-space:nowrap}"
    ".ll-report dl{display:grid;grid-template-columns:max-content 1fr;gap:0 1em;margin:0}"
    ".ll-report dt{grid-column:1}.ll-report dd{grid-column:2;margin:0;overflow-wrap:anywhere}"
    ".ll-report pre{overflow-x:auto;margin:.3em 0 0;max-width:70ch}"
    # A narrow page has no room for three columns: each row's cells stand below one another.
    "@media(max-width:600px){.ll-report,.ll-report :is(caption,tbody,tr,th,td){display:block}"
    ".ll-report thead{display:none}.ll-report tr{border-top:1px solid currentColor;padding:.4em 0}"
    ".ll-report :is(th,td){border-top:0;padding:.1em 0;overflow-wrap:anywhere}.ll-report dl{display:block}"
    ".ll-report dd{margin-inline-start:1em}.ll-report dt{font-weight:bold}}"
)
PAGE_STYLE = (
    ":root{color-scheme:light dark}body{font:1rem/1.5 system-ui,sans-serif;margin:0 auto;max-width:70rem;padding:1rem}"
    "main{overflow-x:auto}h1{font-size:1.4rem}"
)
PACKAGES = (
    "losslab",
    "torch",
    "numpy",
    "hypothesis",
    "sentence-transformers",
    "pytorch-metric-learning",
    "transformers",
    "torchmetrics",
)
SPENT = "the budget of "  # begins the reason of what time did not allow
INDENT = " " * 11  # the width of a verdict and its gap

WORDS: dict[Verdict, str] = {
    "kept": "kept",
    "broken": "BROKEN",
    "by design": "by design",
    "exempt": "exempt",
    "unchecked": "unchecked",
    "error": "ERROR",
}
SYMBOLS: dict[Verdict, str] = {
    "kept": "✓",
    "broken": "✗",
    "by design": "≠",
    "exempt": "–",
    "unchecked": "?",
    "error": "!",
}


@dataclass(frozen=True)
class Report:
    """The verdict on every contract.

    Attributes
    ----------
    loss, kind, conventions, against, seed
        What was checked, and under what.
    results
        One `Result` a contract.
    remarks
        What was assumed, and what else there is to know about all of it, in words.
    budget, budget_spent
        Seconds that the check was given, and whether it took them all. If it did, another run may reach more or less.
    device
        Where the loss was asked to run; None for the CPU, and the contract ``device`` wherever there is one.
    """

    loss: str
    kind: str
    conventions: AnyConventions
    against: str | None
    seed: int
    results: tuple[Result, ...]
    remarks: tuple[str, ...] = ()
    budget: float | None = None
    budget_spent: bool = False
    device: str | None = None

    def __bool__(self) -> bool:
        """Whether no promise is broken, but by design, and the loss could be judged.

        What this machine could not check does not count. What nobody tried does: if the budget was spent before every
        promise was tried at least once, nothing is known of the others.
        """
        judged = all(result.verdict in ("kept", "by design", "exempt", "unchecked") for result in self.results)
        return judged and not self.untried

    def __getitem__(self, contract: str) -> Result:
        """The result of one contract, by its id."""
        for result in self.results:
            if result.contract == contract:
                return result
        raise KeyError(f"{contract!r} was not checked; there are {', '.join(r.contract for r in self.results)}")

    @property
    def broken(self) -> tuple[str, ...]:
        """Ids of the broken contracts."""
        return tuple(result.contract for result in self.results if result.verdict == "broken")

    @property
    def untried(self) -> tuple[str, ...]:
        """Ids of the contracts that the budget left without a single try."""
        return tuple(r.contract for r in self.results if r.verdict == "unchecked" and r.reason.startswith(SPENT))

    @property
    def summary(self) -> str:
        """How many of each, in words."""
        counts = {verdict: sum(r.verdict == verdict for r in self.results) for verdict in WORDS}
        words = {"error": "in error"}
        said = ", ".join(f"{n} {words.get(verdict, verdict)}" for verdict, n in counts.items() if n)
        left = f" ({len(self.untried)} never tried: the budget was too small)" if self.untried else ""
        return f"{said}{left}" if said else "nothing checked"

    @property
    def setting(self) -> str:
        """What was declared, and with which seed."""
        against = f"against {self.against}" if self.against else "no objective compared"
        where = f"; on {self.device}" if self.device else ""
        return f"{self.kind}: {self.conventions}; {against}; seed {self.seed}{where}"

    @property
    def notes(self) -> tuple[str, ...]:
        """The remarks, and whether time was up before all was tried."""
        if not self.budget_spent or self.budget is None:
            return self.remarks
        spent = f"the budget of {show(self.budget)} s was spent before all was tried: another run may find more or less"
        return (*self.remarks, spent)

    def code(self) -> dict[str, str]:
        """A program for each counterexample that has one, by contract."""
        found = {r.contract: r.counterexample.code() for r in self.results if r.counterexample}
        return {contract: program for contract, program in found.items() if program}

    def __str__(self) -> str:
        names = max((len(result.contract) for result in self.results), default=0)
        blocks = [_wrap(f"{self.loss}: {self.summary}") + _wrap(self.setting)]
        for note in self.notes:
            blocks[0] += _wrap(note)
        said: dict[str, str] = {}  # a loss that fails fails everywhere alike: say how once
        for result in self.results:
            first = said.setdefault(result.reason, result.contract) if result.verdict == "error" else result.contract
            blocks.append(_block(result, names, None if first == result.contract else f"as for {first}"))
        text = "\n".join(blocks[0])
        for i, block in enumerate(blocks[1:], 1):  # lines stand together; what is longer stands by itself
            text += "\n" if i > 1 and len(block) == len(blocks[i - 1]) == 1 else "\n\n"
            text += "\n".join(block)
        return text

    def _repr_html_(self) -> str:
        rows = "".join(_html_row(result) for result in self.results)
        caption = (
            f"<strong>{escape(self.loss)}</strong>: {escape(self.summary)}<br><small>{escape(self.setting)}</small>"
        )
        caption += "".join(f"<br><small>{escape(note)}</small>" for note in self.notes)
        heads = "".join(f'<th scope="col">{head}</th>' for head in ("Contract", "Verdict", "What was found"))
        return (
            f'<style>{STYLE}</style><table class="ll-report"><caption>{caption}</caption>'
            f"<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
        )

    def to_html(self) -> str:
        """The same table as a page that stands alone: no script, nothing loaded, light or dark as the reader has it."""
        about = ", ".join(f"{name} {version}" for name, version in versions().items())
        return (
            '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>{escape(self.loss)}: {escape(self.summary)}</title><style>{PAGE_STYLE}</style></head>"
            f"<body><main><h1>Promises of <code>{escape(self.loss)}</code></h1>{self._repr_html_()}</main>"
            f"<footer><p>Checked with {escape(about)}.</p></footer></body></html>\n"
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain dictionaries, lists, words and finite numbers."""
        return {
            "loss": self.loss,
            "kind": self.kind,
            "conventions": self.conventions.to_dict(),
            "against": self.against,
            "seed": self.seed,
            "remarks": list(self.remarks),
            "budget": self.budget,
            "budget_spent": self.budget_spent,
            "device": self.device,
            "versions": versions(),
            "ok": bool(self),
            "results": [result.to_dict() for result in self.results],
        }

    def to_json(self, indent: int | None = 2) -> str:
        """`to_dict` as strict JSON."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)


@cache
def versions() -> dict[str, str]:
    """Versions of what a verdict may depend on: Python, this package, torch, and the libraries that are installed."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        with suppress(PackageNotFoundError):
            found[package] = version(package)
    return found


def describe(result: Result) -> str:
    """One result in full, for a failing test."""
    lines = [f"{result.contract}: {result.promise}"]
    lines += [result.reason] if result.reason else []
    if result.counterexample:
        lines += [str(result.counterexample)]
    return "\n".join(lines)


def _wrap(text: str, head: str = "") -> list[str]:
    return textwrap.wrap(
        text, WIDTH, initial_indent=head, subsequent_indent=" " * len(head), break_long_words=False
    ) or [head.rstrip()]


def _block(result: Result, names: int, instead: str | None = None) -> list[str]:
    head = f"{WORDS[result.verdict]:<9}  {result.contract:<{names}}  "
    if instead is not None:
        return _wrap(instead, head)
    lines = _wrap(result.promise if result.verdict in ("broken", "by design") else result.title, head)
    lines += _wrap(result.reason, INDENT) if result.reason else []
    if result.counterexample:
        lines += _wrap(result.counterexample.sentence, INDENT) if result.counterexample.sentence else []
        for name, text in result.counterexample.lines():
            lines += _wrap(text, f"{INDENT}{name:<9}  ")
        if result.counterexample.code():
            lines += [f"{INDENT}as code    report[{result.contract!r}].counterexample.code()"]
    return lines


def _html_row(result: Result) -> str:
    parts = [f"<p>{escape(result.title if result.verdict == 'kept' else result.promise)}</p>"]
    if result.reason:
        parts.append(f"<p>{escape(result.reason)}</p>")
    if result.counterexample:
        parts.append(_html_counterexample(result.counterexample))
    return (
        f'<tr data-contract="{result.contract}" data-verdict="{result.verdict}">'
        f'<th scope="row"><code>{result.contract.replace("_", "_<wbr>")}</code></th>'
        f'<td><span aria-hidden="true">{SYMBOLS[result.verdict]}</span> {escape(result.verdict)}</td>'
        f"<td>{''.join(parts)}</td></tr>"
    )


def _html_counterexample(counterexample: Counterexample) -> str:
    sentence = f"<p><strong>{escape(counterexample.sentence)}</strong></p>" if counterexample.sentence else ""
    items: list[str] = []
    for head, text in counterexample.lines():
        items.append(f"<dt>{escape(head)}</dt><dd>{escape(text)}</dd>" if head else f"<dd>{escape(text)}</dd>")
    program = counterexample.code()
    code = f"<details><summary>as code</summary><pre><code>{escape(program)}</code></pre></details>" if program else ""
    return f"{sentence}<dl>{''.join(items)}</dl>{code}" if items else sentence + code
