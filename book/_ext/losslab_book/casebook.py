"""The casebook: an entry for every mistake in ``losslab.mistakes``, written while building from what its record says.

``{losslab-casebook} public`` has those that somebody met, ``built`` those made for a contract, and ``search`` the
fields that filter both, which are there only with JavaScript. An entry's wrong and right numbers are what the mistake's
own two functions make of its example. Its address is its case: ``[](casebook.md#no-shift)``.

The build fails, and names the mistake, where one that was met in public with numbers (it has a ``case``) has no
example, where an example shows no difference or raises, where a topic or a contract is unknown; and where a page
links to an entry that does not exist.
"""

from __future__ import annotations

import ast
import inspect
import math
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxDirective

from losslab_book import assets
from losslab_book.problems import report, where

if TYPE_CHECKING:
    from losslab.mistakes import Mistake

#: What entries are filed under, in the order of the chapters: name, and the page that explains it.
TOPICS = {
    "contrastive": ("Contrastive losses", "book/infonce"),
    "temperature": ("Temperature and number formats", "book/temperature"),
    "batch": ("Batch width and false negatives", "book/false-negatives"),
    "ranking": ("Ranking losses and padding", "book/padding"),
    "matryoshka": ("Truncated embeddings", "book/matryoshka"),
    "perplexity": ("Perplexity", "book/perplexity"),
}
PARTS = ("search", "public", "built")
DIGITS = 4  # significant ones
NOISE = 1e-14  # what is smaller is what rounding leaves of 0
_MARK = re.compile(r"# The (?:mistake|choice)")
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


class CaseError(ValueError):
    """A mistake's record does not make an entry; the text says why."""


@dataclass(frozen=True)
class Entry:
    """What one entry shows, in words.

    Attributes
    ----------
    id
        Its anchor.
    mistake
        Its record.
    inputs
        ``name = value`` for every input, as code.
    rows
        What is shown, the wrong number, the right one.
    promise
        Of the contract that catches it; empty for a function, whose property says it all.
    code
        The function in which the mistake is marked.
    """

    id: str
    mistake: Mistake
    inputs: tuple[str, ...]
    rows: tuple[tuple[str, str, str], ...]
    promise: str
    code: str


def identify(mistakes: Iterable[Mistake]) -> dict[str, Mistake]:
    """Give every mistake its anchor: its case; its name where it has none, or where an earlier mistake shows that one.

    Raises
    ------
    CaseError
        If two would have the same.
    """
    found: dict[str, Mistake] = {}
    for mistake in mistakes:
        name = mistake.name.replace("_", "-")
        anchor = mistake.case if mistake.case and mistake.case not in found else name
        if anchor in found:
            raise CaseError(f"the casebook has an entry {anchor!r} already, from {found[anchor].name}")
        found[anchor] = mistake
    return found


def entry(anchor: str, mistake: Mistake) -> Entry:
    """Run a mistake's example and collect what its entry shows.

    Raises
    ------
    CaseError
        If the record does not make an entry; see the module.
    """
    if mistake.topic not in TOPICS:
        raise CaseError(f"its topic must be one of {', '.join(TOPICS)}, got {mistake.topic!r}; put topic=… on it")
    if mistake.case and mistake.example is None:
        raise CaseError(f"it has the case {mistake.case!r} and no example; put example=Example(inputs, show) on it")
    inputs = tuple(
        f"{name} = {literal(value)}" for name, value in (mistake.example.inputs if mistake.example else {}).items()
    )
    return Entry(anchor, mistake, inputs, tuple(_rows(mistake)), _promise(mistake), _code(mistake))


def _rows(mistake: Mistake) -> list[tuple[str, str, str]]:
    if mistake.example is None:
        return []
    try:
        wrong, right = (mistake.example.of(function) for function in (mistake.wrong, _right(mistake)))
    except Exception as problem:
        raise CaseError(f"its example raises {type(problem).__name__}: {problem}") from problem
    if wrong.keys() != right.keys():
        raise CaseError(f"its example shows {list(wrong)} of the wrong function, {list(right)} of the right one")
    rows = [(what, number(wrong[what]), number(right[what])) for what in wrong]
    if all(bad == good for _, bad, good in rows):
        raise CaseError(f"its example shows no difference: {rows}")
    return rows


def _right(mistake: Mistake) -> Any:  # noqa: ANN401
    import losslab.language
    import losslab.losses

    ours = losslab.language if mistake.kind == "token" else losslab.losses
    return getattr(ours, mistake.right) if isinstance(mistake.right, str) else mistake.right


def _promise(mistake: Mistake) -> str:
    from losslab.contracts import CONTRACTS

    if mistake.kind == "function":
        return ""
    for contract in CONTRACTS.get(mistake.kind, ()):
        if contract.id == mistake.breaks:
            return contract.promise
    raise CaseError(f"it breaks {mistake.breaks!r}, and no {mistake.kind} contract is called so")


def _code(mistake: Mistake) -> str:
    """Return the function in which the line stands that shows the mistake."""
    source = inspect.getsource(sys.modules[mistake.wrong.__module__])
    for node in ast.walk(ast.parse(source)):
        text = ast.get_source_segment(source, node) if isinstance(node, ast.FunctionDef) else None
        if text and _MARK.search(text):
            return re.sub(r"  # noqa: .*", "", text)
    raise CaseError("no function of its module has the line '# The mistake: …'")


def number(value: Any) -> str:  # noqa: ANN401
    """Write a number as a reader should see it; several in parentheses.

    >>> number(0.26328246733), number(5.1528e-9), number([-0.5, 2]), number(781.0), number(math.inf)
    ('0.2633', '5.153 × 10⁻⁹', '(−0.5, 2)', '781', 'inf')
    """
    if isinstance(value, str):
        return value
    if isinstance(value, Sequence):
        return f"({', '.join(map(number, value))})"
    if isinstance(value, bool) or not math.isfinite(value):
        return str(value).replace("-", "−")
    if abs(value) < NOISE:
        return "0"
    digits, _, power = f"{value:.{DIGITS}g}".partition("e")
    if power:
        return digits.replace("-", "−") + f" × 10{str(int(power)).translate(_SUPERSCRIPT)}"
    return digits.replace("-", "−")


def literal(value: Any) -> str:  # noqa: ANN401
    """Write an input as one would type it: lists of whatever depth, and no needless decimals.

    >>> literal([[1.0, 0.5], [True, 3]]), literal("no")
    ('[[1, 0.5], [True, 3]]', "'no'")
    """
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{literal(key)}: {literal(one)}" for key, one in value.items()) + "}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"[{', '.join(map(literal, value))}]"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return repr(value)


# --- the page ---


class CasebookDirective(SphinxDirective):
    """``{losslab-casebook} search``, ``public`` or ``built``."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Write the part."""
        part = self.arguments[0]
        if part not in PARTS:
            raise self.error(f"losslab-casebook has the parts {', '.join(PARTS)}; got {part!r}")
        book = _book(self.env).setdefault(self.env.docname, {})
        from losslab.mistakes import MISTAKES

        if part == "search":
            return [nodes.raw("", _form(), format="html")]
        order = list(TOPICS)
        wanted = [(key, one) for key, one in self._identified(MISTAKES.values()).items() if one.met == part]
        wanted.sort(key=lambda item: order.index(item[1].topic) if item[1].topic in order else len(order))
        sections: list[nodes.Node] = []
        for key, mistake in wanted:
            try:
                sections.append(self._section(entry(key, mistake)))
            except CaseError as problem:
                report(
                    self.env.app, where(self.env.app, self.env.docname), f"losslab.mistakes.{mistake.name}: {problem}"
                )
            book[key] = mistake.title
        return sections

    def _identified(self, mistakes: Iterable[Mistake]) -> dict[str, Mistake]:
        try:
            return identify(mistakes)
        except CaseError as problem:
            report(self.env.app, where(self.env.app, self.env.docname), str(problem))
            return {}

    def _section(self, case: Entry) -> nodes.section:
        mistake = case.mistake
        section = nodes.section(classes=["ll-case", f"ll-topic-{mistake.topic}"], names=[case.id], ids=[case.id])
        section += nodes.title("", mistake.title)
        facts = nodes.definition_list(classes=["ll-case-facts"])
        facts += _fact("Symptom", nodes.paragraph("", mistake.symptom))
        facts += _fact("Cause", nodes.paragraph("", mistake.cause))
        if case.rows:
            facts += _fact("Input", _codes(case.inputs))
            facts += _fact("Numbers", _numbers(case), *_note(mistake))
        facts += _fact("Caught by", self._caught(case))
        facts += _fact("Topic", self._topic(mistake))
        facts += _fact("Report", _reference(mistake))
        section += facts
        box = nodes.admonition(classes=["dropdown", "ll-case-code"])
        box += nodes.title("", "The code that does it")
        box += nodes.literal_block(case.code, case.code, language="python")
        section += box
        self.state.document.note_explicit_target(section)
        return section

    def _caught(self, case: Entry) -> nodes.paragraph:
        mistake, paragraph = case.mistake, nodes.paragraph()
        if mistake.kind == "function":
            paragraph += nodes.Text(f"a property of its own: {mistake.breaks}")
        else:
            paragraph += [nodes.Text("the contract "), nodes.literal("", mistake.breaks)]
            if mistake.against:
                paragraph += [nodes.Text(" against "), nodes.literal("", mistake.against)]
            paragraph += nodes.Text(f": {case.promise}".rstrip("."))
        paragraph += nodes.Text(".")
        return paragraph

    def _topic(self, mistake: Mistake) -> nodes.paragraph:
        name, chapter = TOPICS[mistake.topic]
        paragraph = nodes.paragraph("", name)
        if chapter in self.env.found_docs:
            paragraph += [nodes.Text(", explained in "), _to(self.env, chapter)]
        paragraph += nodes.Text(".")
        return paragraph


def _fact(term: str, *what: nodes.Node) -> nodes.definition_list_item:
    return nodes.definition_list_item("", nodes.term("", term), nodes.definition("", *what))


def _codes(lines: Sequence[str]) -> nodes.paragraph:
    paragraph = nodes.paragraph(classes=["ll-case-inputs"])
    for i, line in enumerate(lines):
        paragraph += [nodes.Text("\n" if i else ""), nodes.literal("", line)]
    return paragraph


def _note(mistake: Mistake) -> list[nodes.Node]:
    note = mistake.example.note if mistake.example else ""
    return [nodes.paragraph("", note)] if note else []


def _numbers(case: Entry) -> nodes.table:
    example = case.mistake.example
    several = len(case.rows) > 1 or (example is not None and case.rows[0][0] != example.what)
    unit = f", {example.unit}" if example and example.unit else ""
    told = several and example is not None and (unit or example.what != "loss")
    what = f"{example.what}{unit}" if told and example else "quantity"
    rows = [(name if several else f"{name}{unit}", wrong, right) for name, wrong, right in case.rows]
    table = nodes.table(classes=["ll-case-numbers"])
    group = nodes.tgroup(cols=3)
    table += group
    group += [nodes.colspec(colwidth=width) for width in (50, 25, 25)]
    head, body = nodes.thead(), nodes.tbody()
    head += _row((what, "wrong", "right"))
    body += [_row(row) for row in rows]
    group += [head, body]
    return table


def _row(cells: Sequence[str]) -> nodes.row:
    return nodes.row("", *(nodes.entry("", nodes.paragraph("", cell)) for cell in cells))


def _reference(mistake: Mistake) -> nodes.paragraph:
    if mistake.met == "built":
        return nodes.paragraph("", "none: built for the contract, so that it has something to catch.")
    url = mistake.url()
    if url is None:
        return nodes.paragraph("", f"{mistake.source}.")
    return nodes.paragraph("", "", nodes.reference("", mistake.source, refuri=url))


def _to(env: BuildEnvironment, docname: str) -> nodes.Node:
    """Link to a page, under the title that it will have."""
    return addnodes.pending_xref(
        "",
        nodes.inline("", docname),
        refdomain="std",
        reftype="doc",
        reftarget="/" + docname,
        refdoc=env.docname,
        refexplicit=False,
        refwarn=True,
    )


def _form() -> str:
    """Return the fields; ``casebook.js`` brings them out."""
    options = "".join(f'<option value="{key}">{escape(name)}</option>' for key, (name, _) in TOPICS.items())
    return (
        '<form class="ll-cases" role="search" aria-label="Entries of the casebook" hidden>\n'
        '<p><label for="ll-cases-words">What you see</label>'
        '<input id="ll-cases-words" type="search" autocomplete="off" spellcheck="false"'
        ' aria-describedby="ll-cases-left" placeholder="my loss is suddenly nan"></p>\n'
        '<p><label for="ll-cases-topic">Topic</label>'
        f'<select id="ll-cases-topic"><option value="">all topics</option>{options}</select></p>\n'
        '<p><button type="reset">Show all</button></p>\n'
        '<p id="ll-cases-left" role="status"></p>\n'
        "</form>"
    )


# --- links to entries ---


def _book(env: BuildEnvironment) -> dict[str, dict[str, str]]:
    """Return the anchors and titles of the entries, by the page that has them."""
    if not hasattr(env, "losslab_casebook"):
        env.losslab_casebook = {}  # type: ignore[attr-defined]
    return env.losslab_casebook  # type: ignore[attr-defined, no-any-return]


def _name_anchors(app: Sphinx, _document: nodes.document) -> None:
    """Let ``[](casebook.md#no-shift)`` find its entry, as it would find a heading."""
    docname = app.env.docname
    if docname in _book(app.env):
        slugs = app.env.metadata[docname].setdefault("myst_slugs", {})
        slugs.update({key: (None, key, title) for key, title in _book(app.env)[docname].items()})


def _purge(_app: Sphinx, env: BuildEnvironment, docname: str) -> None:
    _book(env).pop(docname, None)


def _check_links(app: Sphinx, error: Exception | None) -> None:
    """Name every link to an entry that is not there, also on pages kept from an earlier build."""
    if error is not None or not assets.is_site(app):
        return
    root = Path(app.outdir)
    for casebook in _book(app.env):
        home = root / app.builder.get_target_uri(casebook)
        there = set(re.findall(r'\bid="([^"]+)"', home.read_text(encoding="utf-8"))) if home.is_file() else set()
        link = re.compile(rf'href="[^":]*?{re.escape(home.name)}#([^"]+)"')
        for docname in sorted(app.env.found_docs):
            page = root / app.builder.get_target_uri(docname)
            text = page.read_text(encoding="utf-8") if page.is_file() else ""
            for anchor in sorted(set(link.findall(text)) - there):
                report(
                    app, where(app, docname), f"the casebook has no entry {anchor!r}; it has those of losslab.mistakes"
                )


# --- files ---


def _publish(app: Sphinx) -> None:
    names = ("casebook.css", "casebook.js")
    if assets.is_site(app):
        app.losslab_casebook_files = [assets.put(app, n, (assets.HERE / n).read_bytes()) for n in names]  # type: ignore[attr-defined]


def _load(app: Sphinx, page: str, _template: str, _context: dict[str, Any], _doctree: nodes.document | None) -> None:
    if assets.is_site(app) and page in _book(app.env):
        sheet, script = app.losslab_casebook_files  # type: ignore[attr-defined]
        app.add_css_file(sheet, priority=910)
        app.add_js_file(script, loading_method="defer", priority=910)


def setup(app: Sphinx) -> None:
    """Connect the parts above."""
    app.add_directive("losslab-casebook", CasebookDirective)
    app.connect("builder-inited", _publish)
    app.connect("doctree-read", _name_anchors, priority=900)
    app.connect("env-purge-doc", _purge)
    app.connect("html-page-context", _load, priority=800)
    app.connect("build-finished", _check_links, priority=940)
