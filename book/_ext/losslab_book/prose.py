r"""Numbers in prose: what code can compute is glued, what somebody published is marked, and nothing else is typed.

`typed_numbers` finds decimals, percentages and powers of ten that stand in a chapter's prose without either. Two ways
to allow one:

* ``{published}`0.713 (Kusupati et al. 2022, table 2)` `` in the text: a number with its source;
* ``losslab: {numbers: {"3.11": "the oldest Python we run on"}}`` in the page's front matter: a number, no result.

Whole numbers and versions such as 5.7.0 are left to the writer. ``python -m losslab_book.prose PAGE…`` lists findings.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

import yaml
from docutils import nodes
from docutils.parsers.rst.states import Inliner
from sphinx.application import Sphinx

_NUMBER = re.compile(
    r"(?<![\w.,/#-])[-−+]?(?:\d+\.\d+(?:e[-−+]?\d+)?\s?%?|\d+e[-−+]?\d+|\d+\s?%)(?![\w]|\.\d|-\w)", re.IGNORECASE
)
_PUBLISHED = re.compile(r"\s*(?P<number>[^()]+?)\s*\((?P<source>.+)\)\s*", re.DOTALL)
_FENCE = re.compile(r"\s*(?P<fence>`{3,}|~{3,}|:{3,})\s*(?:\{(?P<directive>[\w:+-]+)\})?(?P<rest>.*)")
_CODE = {"code-cell", "code-block", "code", "literalinclude", "raw", "figure", "image", "toctree", "glue", "glue:math"}
_NOT_PROSE = re.compile(
    r"<!--.*?-->"  # comments
    r"|(?:\{[\w:+-]+\})?(?P<ticks>`+).+?(?P=ticks)"  # code spans, and roles: glue, published, references
    r"|(?<=\])\([^)\s]*\)|https?://\S+"  # where links lead
    r"|<[^>\s][^>]*>"  # HTML tags
    r"|\barXiv:\d{4}\.\d{4,5}"  # papers
    r"|\{\{.*?\}\}",  # substitutions
    re.DOTALL,
)


@dataclass(frozen=True)
class Typed:
    """A number in prose that code or a source should have supplied."""

    path: Path
    line: int
    number: str
    text: str

    def __str__(self) -> str:
        """Say where it stands and what to do."""
        return (
            f"{self.path}:{self.line}: {self.number} is typed in the prose; glue it from the code that computes it, or "
            f"name its source: {{published}}`{self.number} (source)`. The line: {self.text.strip()[:80]}"
        )


def typed_numbers(path: Path) -> list[Typed]:
    """Return the numbers in a MyST page's prose that neither glue nor a source supplies.

    Parameters
    ----------
    path : Path
        A MyST Markdown file. Code, roles, addresses, comments and directive options are not prose; text in headings,
        lists, tables, admonitions and formulas is.

    Raises
    ------
    ValueError
        If the front matter allows a number without saying why.
    """
    text = path.read_text(encoding="utf-8")
    front = re.match(r"---\n(.*?)\n---\n", text, re.DOTALL)
    allowed = _allowed(path, front[1] if front else "")
    lines = text.split("\n")
    return [
        Typed(path, number, match[0].strip(), lines[number - 1])
        for number, line in _prose(lines, front[0].count("\n") if front else 0)
        for match in _NUMBER.finditer(line)
        if match[0].strip() not in allowed
    ]


def _allowed(path: Path, front: str) -> set[str]:
    numbers = ((yaml.safe_load(front) or {}).get("losslab") or {}).get("numbers") or {}
    for number, reason in numbers.items():
        if not isinstance(number, str) or not isinstance(reason, str) or len(reason.strip()) < 8:
            raise ValueError(
                f"{path}: numbers in the front matter are a quoted number and a reason, got {number!r}: {reason!r}"
            )
    return set(numbers)


def _prose(lines: list[str], start: int) -> list[tuple[int, str]]:
    """Return each line after the front matter with its number, blank where it is not prose."""
    kept: list[str] = []
    boxes: list[str] = []  # fences of the directives that we are in, whose text is prose
    code = ""  # fence of the code that we are in
    options = False  # right after a directive's first line
    for line in lines[start:]:
        match = _FENCE.fullmatch(line)
        fence, directive, rest = (match["fence"], match["directive"], match["rest"].strip()) if match else ("", "", "")
        bare = bool(fence) and not directive and not rest
        if code:
            code = "" if bare and fence.startswith(code) else code
            kept.append("")
        elif bare and boxes and fence.startswith(boxes[-1]):
            boxes.pop()
            kept.append("")
        elif fence and (directive in _CODE or (not directive and fence[0] in "`~")):
            code = fence
            kept.append("")
        elif fence and directive:
            boxes.append(fence)
            options = True
            kept.append(rest)
        elif options and re.match(r"\s*:[\w-]+:", line):
            kept.append("")
        else:
            options = False
            kept.append("" if line.lstrip().startswith("%") else line)
    text = _NOT_PROSE.sub(lambda match: re.sub(r"[^\n]", "\0", match[0]), "\n".join(kept))
    return [(start + i, line) for i, line in enumerate(text.split("\n"), 1)]


def _published(
    _name: str, rawtext: str, text: str, lineno: int, inliner: Inliner, _options: object = None, _content: object = ()
) -> tuple[list[nodes.Node], list[nodes.system_message]]:
    """``{published}`0.713 (Kusupati et al. 2022, table 2)` ``: a number that somebody published, and its source."""
    match = _PUBLISHED.fullmatch(text)
    if match is None:
        message = inliner.reporter.error(
            f"{{published}} takes a number and its source, as in 0.713 (Kusupati et al. 2022, table 2); got {text!r}",
            line=lineno,
        )
        return [inliner.problematic(rawtext, rawtext, message)], [message]
    return [nodes.inline(rawtext, match["number"], classes=["ll-published"]), nodes.Text(f" ({match['source']})")], []


def setup(app: Sphinx) -> None:
    """Connect the parts above."""
    app.add_role("published", _published)


if __name__ == "__main__":
    found = [typed for name in sys.argv[1:] for typed in typed_numbers(Path(name))]
    print(*found, sep="\n")
    sys.exit(bool(found))
