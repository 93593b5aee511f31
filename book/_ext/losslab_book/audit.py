"""The audit: which promises the losses of installed libraries keep, as tables made from the committed measurement.

``{losslab-audit} summary`` counts by library, ``bugs`` shows what is broken and no design, ``losses`` has every loss
that was put to a contract, a table a library, and ``undriven`` says why the others were not. Rows come from
``data/measured/audit.csv`` and from nowhere else; the page is read again when that file changes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from losslab_book import assets

Row = Mapping[str, str]
#: The verdicts on a promise, in the order of the columns, and what stands above each.
VERDICTS = {
    "kept": "kept",
    "by design": "broken by design",
    "broken": "broken: a bug",
    "error": "not to be judged",
    "exempt": "does not apply",
    "unchecked": "not checked here",
}
NOT_DRIVEN = "not driven"
#: What is shown with its counterexample.
TOLD = ("broken", "by design", "error")
SYMBOLS = {"broken": "✗", "by design": "≠", "error": "!"}


# --- what the rows say ---


def by_library(rows: Iterable[Row]) -> list[tuple[tuple[str, str], list[Row]]]:
    """The rows of each library and version, in the order of the file."""
    return [(key, list(same)) for key, same in groupby(rows, lambda row: (row["library"], row["version"]))]


def by_loss(rows: Iterable[Row]) -> list[list[Row]]:
    """The rows of each loss and way of making it."""
    return [list(same) for _, same in groupby(rows, lambda row: (row["loss"], row["options"]))]


def by_sentence(rows: Iterable[Row]) -> list[list[Row]]:
    """Rows with the same verdict and sentence together; bugs first."""
    found: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if row["verdict"] in TOLD:
            found.setdefault((row["verdict"], row["reason"]), []).append(row)
    return sorted(found.values(), key=lambda same: TOLD.index(same[0]["verdict"]))


def name_of(row: Row) -> str:
    """What a loss is called, with its options: ``ListMLELoss(respect_input_order=False)``.

    >>> name_of({"loss": "a.b:ListMLELoss", "options": ""})
    'ListMLELoss'
    """
    name = row["loss"].partition(":")[2]
    return f"{name}({row['options']})" if row["options"] else name


def package_of(row: Row) -> str:
    """The part of its library that it stands in: ``cross_encoder``; empty where the library has one part alone.

    >>> package_of({"loss": "sentence_transformers.cross_encoder.losses:MSELoss"})
    'cross_encoder'
    """
    parts = row["loss"].partition(":")[0].split(".")
    return parts[1] if parts[0] == "sentence_transformers" else ""


def anchor(row: Row) -> str:
    """The address of a loss on the page."""
    return "audit-" + re.sub(r"[^a-z0-9]+", "-", f"{row['loss']} {row['options']}".lower()).strip("-")


# --- as HTML ---


def _table(kind: str, caption: str, heads: Sequence[str], body: Iterable[str]) -> str:
    cells = "".join(f'<th scope="col">{escape(head)}</th>' for head in heads)
    return (
        f'<table class="ll-audit ll-audit-{kind}"><caption>{caption}</caption>'
        f"<thead><tr>{cells}</tr></thead><tbody>{''.join(body)}</tbody></table>"
    )


def summary(rows: Sequence[Row]) -> str:
    """How many losses and promises, by library."""
    heads = ("Library", "losses found", "put to contracts", *(VERDICTS[one] for one in VERDICTS))
    return _table("summary", "Losses, and promises by verdict", heads, map(_counts, by_library(rows)))


def _counts(library: tuple[tuple[str, str], list[Row]]) -> str:
    (name, version), rows = library
    losses = {row["loss"] for row in rows}
    driven = {row["loss"] for row in rows if row["verdict"] != NOT_DRIVEN}
    verdicts = Counter(row["verdict"] for row in rows)
    numbers = {"losses found": len(losses), "put to contracts": len(driven)}
    numbers |= {head: verdicts[one] for one, head in VERDICTS.items()}
    cells = "".join(f'<td data-head="{escape(head)}">{number}</td>' for head, number in numbers.items())
    return f'<tr><th scope="row">{escape(name)} <small>{escape(version)}</small></th>{cells}</tr>'


def bugs(rows: Sequence[Row]) -> str:
    """What is broken and no design: a row a sentence, with all losses that it is about."""
    body = []
    for same in by_sentence(row for row in rows if row["verdict"] == "broken"):
        ways = by_loss(same)
        names = "<br>".join(f'<a href="#{anchor(way[0])}"><code>{_name(way[0])}</code></a>' for way in ways)
        promises = _codes(dict.fromkeys(row["promise"] for row in same))
        head = f"{names}{_where(same[0], with_library=True)}"
        body.append(f'<tr><th scope="row">{head}</th><td>{promises}</td><td>{_told(ways[0])}</td></tr>')
    return _table("bugs", "Promises broken that nobody meant to break", ("Loss", "Promise", "What happens"), body)


def losses(library: tuple[str, str], rows: Sequence[Row]) -> str:
    """Every loss of a library that was put to contracts: what it keeps, and what it does not."""
    driven = [row for row in rows if row["verdict"] != NOT_DRIVEN]
    body = [_loss(same) for same in by_loss(driven)]
    caption = f"{escape(library[0])} {escape(library[1])}: {len(body)} ways to make {len({r['loss'] for r in driven})}"
    return _table("losses", f"{caption} losses", ("Loss", "Keeps", "Does not keep"), body)


def _loss(rows: Sequence[Row]) -> str:
    first = rows[0]
    kept = [row["promise"] for row in rows if row["verdict"] == "kept"]
    quiet = [row["promise"] for row in rows if row["verdict"] in ("exempt", "unchecked")]
    keeps = f"<p>{_codes(kept)}</p>" if kept else "<p>none</p>"
    if quiet:
        keeps += f"<p><small>does not apply, or not checked here: {_codes(quiet)}</small></p>"
    broken = "".join(
        f'<div class="ll-audit-one" data-verdict="{same[0]["verdict"]}">'
        f'<p class="ll-audit-verdict"><span aria-hidden="true">{SYMBOLS[same[0]["verdict"]]}</span> '
        f"{escape(VERDICTS[same[0]['verdict']])}: {_codes(row['promise'] for row in same)}</p>{_told(same)}</div>"
        for same in by_sentence(rows)
    )
    return (
        f'<tr id="{anchor(first)}"><th scope="row"><code>{_name(first)}</code>{_where(first)}</th>'
        f"<td>{keeps}</td><td>{broken or '<p>nothing</p>'}</td></tr>"
    )


def _name(row: Row) -> str:
    """With places to break a long name at."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=_)|(?<=[(=])", "<wbr>", escape(name_of(row)))


def _where(row: Row, *, with_library: bool = False) -> str:
    said = [row["library"] if with_library else "", package_of(row), row["kind"]]
    return f"<br><small>{escape(', '.join(filter(None, said)))}</small>"


def _codes(promises: Iterable[str]) -> str:
    return ", ".join(f"<code>{escape(one).replace('_', '_<wbr>')}</code>" for one in promises)


def _told(rows: Sequence[Row]) -> str:
    first = rows[0]
    upstream = f" <small>{escape(first['upstream'])}</small>" if first["upstream"] else ""
    shown = [row for row in rows if row["counterexample"]]
    said = "".join(f"<p><code>{escape(r['promise'])}</code></p><pre>{escape(r['counterexample'])}</pre>" for r in shown)
    word = "Counterexample" if len(shown) == 1 else f"{len(shown)} counterexamples"
    about = ", ".join(row["promise"] for row in shown)
    details = (
        f'<details><summary>{word}<span class="ll-audit-about"> to {escape(about)} of {escape(name_of(first))}</span>'
        f"</summary>{said}</details>"
        if shown
        else ""
    )
    return f"<p>{escape(first['reason'])}{upstream}</p>{details}"


def undriven(rows: Sequence[Row]) -> str:
    """Losses that no contract was put to, by library and reason."""
    found: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        if row["verdict"] == NOT_DRIVEN:
            found.setdefault((row["library"], row["reason"]), []).append(name_of(row))
    body = (
        f'<tr><th scope="row">{escape(library)}</th><td>{escape(reason)}</td>'
        f"<td>{_codes(dict.fromkeys(names))}</td></tr>"
        for (library, reason), names in found.items()
    )
    return _table("undriven", "Losses that were put to no contract, and why", ("Library", "Why", "Losses"), body)


# --- the page ---

PARTS: dict[str, Callable[[Sequence[Row]], str]] = {"summary": summary, "bugs": bugs, "undriven": undriven}


class AuditDirective(SphinxDirective):
    """``{losslab-audit} summary``, ``bugs``, ``losses`` or ``undriven``."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Write the part."""
        part = self.arguments[0]
        if part not in (*PARTS, "losses"):
            raise self.error(f"losslab-audit has the parts {', '.join([*PARTS, 'losses'])}; got {part!r}")
        rows = self._rows()
        _pages(self.env).add(self.env.docname)
        if part != "losses":
            return [_html(PARTS[part](rows)), _plain(rows, part)]
        found: list[nodes.Node] = []
        for library, same in by_library(rows):
            if any(row["verdict"] != NOT_DRIVEN for row in same):
                key = f"audit-of-{library[0]}"
                section = nodes.section(ids=[key], names=[key])
                section += [nodes.title("", library[0]), _html(losses(library, same)), _plain(same, part)]
                self.state.document.note_explicit_target(section)
                found.append(section)
        return found

    def _rows(self) -> list[dict[str, str]]:
        import losslab
        from losslab.measure import read

        path = Path(losslab.__file__).parents[2] / "data" / "measured" / "audit.csv"
        self.env.note_dependency(str(path))
        try:
            return read(path)[0]
        except (OSError, ValueError) as problem:
            raise self.error(f"losslab-audit cannot read its rows: {problem}") from problem


def _html(text: str) -> nodes.raw:
    return nodes.raw("", f'<div class="ll-audit-part">{text}</div>', format="html")


def _plain(rows: Sequence[Row], part: str) -> nodes.Node:
    """The same in a few words, for what is no web page."""
    only = addnodes.only(expr="not html")
    items = nodes.bullet_list()
    if part == "summary":
        said = [f"{name} {version}: {tally(same)}" for (name, version), same in by_library(rows)]
    elif part == "undriven":
        said = [f"{name_of(row)}: {row['reason']}" for row in rows if row["verdict"] == NOT_DRIVEN]
    else:
        wanted = ("broken",) if part == "bugs" else TOLD
        said = [
            f"{name_of(same[0])}, {', '.join(row['promise'] for row in same)} "
            f"({same[0]['verdict']}): {same[0]['reason']}"
            for loss in by_loss(rows)
            for same in by_sentence(row for row in loss if row["verdict"] in wanted)
        ]
    items += [nodes.list_item("", nodes.paragraph("", one)) for one in said]
    only += items
    return only


def tally(rows: Sequence[Row]) -> str:
    """How many of each verdict, in words."""
    found = Counter(row["verdict"] for row in rows)
    return ", ".join(f"{found[one]} {one}" for one in (*VERDICTS, NOT_DRIVEN) if found[one])


# --- files ---


def _pages(env: Any) -> set[str]:  # noqa: ANN401
    if not hasattr(env, "losslab_audit"):
        env.losslab_audit = set()
    found: set[str] = env.losslab_audit
    return found


def _publish(app: Sphinx) -> None:
    if assets.is_site(app):
        name = "audit.css"
        app.losslab_audit_sheet = assets.put(app, name, (assets.HERE / name).read_bytes())  # type: ignore[attr-defined]


def _load(app: Sphinx, page: str, _template: str, _context: dict[str, Any], _doctree: nodes.document | None) -> None:
    if assets.is_site(app) and page in _pages(app.env):
        app.add_css_file(app.losslab_audit_sheet, priority=910)  # type: ignore[attr-defined]


def setup(app: Sphinx) -> None:
    """Connect the parts above."""
    app.add_directive("losslab-audit", AuditDirective)
    app.connect("builder-inited", _publish)
    app.connect("env-purge-doc", lambda _app, env, docname: _pages(env).discard(docname))
    app.connect("html-page-context", _load, priority=800)
