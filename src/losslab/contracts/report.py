"""What `check` found: as a table in a terminal, as HTML in a notebook, as a dictionary for anything else."""

from __future__ import annotations

import json
import textwrap
from dataclasses import dataclass
from html import escape
from typing import Any

from losslab.contracts.model import Conventions, Counterexample, Result, Verdict

WIDTH = 80

WORDS: dict[Verdict, str] = {
    "kept": "kept",
    "broken": "BROKEN",
    "exempt": "exempt",
    "unchecked": "unchecked",
    "error": "ERROR",
}
SYMBOLS: dict[Verdict, str] = {"kept": "✓", "broken": "✗", "exempt": "–", "unchecked": "?", "error": "!"}


@dataclass(frozen=True)
class Report:
    """The verdict on every contract.

    Attributes
    ----------
    loss, kind, conventions, against, seed
        What was checked, and under what.
    results
        One `Result` a contract.
    """

    loss: str
    kind: str
    conventions: Conventions
    against: str | None
    seed: int
    results: tuple[Result, ...]

    def __bool__(self) -> bool:
        """Whether no promise is broken and the loss could be judged. What this machine cannot check does not count."""
        return all(result.verdict in ("kept", "exempt", "unchecked") for result in self.results)

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
    def summary(self) -> str:
        """How many of each, in words."""
        counts = {verdict: sum(r.verdict == verdict for r in self.results) for verdict in WORDS}
        words = {"error": "in error"}
        return (
            ", ".join(f"{n} {words.get(verdict, verdict)}" for verdict, n in counts.items() if n) or "nothing checked"
        )

    @property
    def setting(self) -> str:
        """What was declared, and with which seed."""
        against = f"; against {self.against}" if self.against else ""
        return f"{self.kind}: {self.conventions}{against}; seed {self.seed}"

    def __str__(self) -> str:
        lines = _wrap(f"{self.loss}: {self.summary}") + _wrap(self.setting)
        names = max((len(result.contract) for result in self.results), default=0)
        for result in self.results:
            head = f"{WORDS[result.verdict]:<9}  {result.contract:<{names}}  "
            lines += ["", *_wrap(result.promise if result.verdict == "broken" else result.title, head)]
            lines += _wrap(result.reason, " " * 11) if result.reason else []
            lines += _counterexample_lines(result.counterexample) if result.counterexample else []
        return "\n".join(_without_needless_gaps(lines, self.results))

    def _repr_html_(self) -> str:
        rows = "".join(_html_row(result) for result in self.results)
        return (
            f'<table class="ll-report"><caption><strong>{escape(self.loss)}</strong>: {escape(self.summary)}<br>'
            f"<small>{escape(self.setting)}</small></caption>"
            '<thead><tr><th scope="col">Contract</th><th scope="col">Verdict</th>'
            f'<th scope="col">What was found</th></tr></thead><tbody>{rows}</tbody></table>'
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain dictionaries, lists, words and finite numbers."""
        return {
            "loss": self.loss,
            "kind": self.kind,
            "conventions": {
                "order": self.conventions.order,
                "count_short_lists": self.conventions.count_short_lists,
                "reduction": self.conventions.reduction,
            },
            "against": self.against,
            "seed": self.seed,
            "ok": bool(self),
            "results": [result.to_dict() for result in self.results],
        }

    def to_json(self, indent: int | None = 2) -> str:
        """`to_dict` as strict JSON."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)


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


def _counterexample_lines(counterexample: Counterexample) -> list[str]:
    lines = _wrap(counterexample.sentence, " " * 11) if counterexample.sentence else []
    for head, text in counterexample.lines():
        lines += _wrap(text, f"{'':11}{head:<9}  ")
    return lines


def _without_needless_gaps(lines: list[str], results: tuple[Result, ...]) -> list[str]:
    """One line a kept contract, with a gap only around those that have more to say."""
    starts = tuple(WORDS[r.verdict] for r in results)
    kept: list[str] = []
    for i, line in enumerate(lines):
        if line == "" and kept and i + 1 < len(lines):
            before_is_short = kept[-1].startswith(starts) and kept[-1] != lines[0]
            after_is_short = i + 2 >= len(lines) or lines[i + 2] == ""
            if before_is_short and after_is_short:
                continue
        kept.append(line)
    return kept


def _html_row(result: Result) -> str:
    parts = [f"<p>{escape(result.promise)}</p>"]
    if result.reason:
        parts.append(f"<p>{escape(result.reason)}</p>")
    if result.counterexample:
        parts.append(_html_counterexample(result.counterexample))
    return (
        f'<tr data-contract="{result.contract}" data-verdict="{result.verdict}">'
        f'<th scope="row"><code>{result.contract}</code></th>'
        f'<td><span aria-hidden="true">{SYMBOLS[result.verdict]}</span> {escape(result.verdict)}</td>'
        f"<td>{''.join(parts)}</td></tr>"
    )


def _html_counterexample(counterexample: Counterexample) -> str:
    sentence = f"<p><strong>{escape(counterexample.sentence)}</strong></p>" if counterexample.sentence else ""
    items: list[str] = []
    for head, text in counterexample.lines():
        items.append(f"<dt>{escape(head)}</dt><dd>{escape(text)}</dd>" if head else f"<dd>{escape(text)}</dd>")
    return f"{sentence}<dl>{''.join(items)}</dl>" if items else sentence
