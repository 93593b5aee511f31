"""The status page: versions of the libraries, and how long every chapter took to run and to build, as of this build.

Its three parts are ``{losslab-status} machine``, ``chapters`` and ``libraries``. They are filled in when all pages
have been read, so they are never older than the build they describe.
"""

from __future__ import annotations

import os
import platform
import time
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from docutils import nodes
from myst_nb.sphinx_ import NbMetadataCollector
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxDirective

LIBRARIES = {
    "what is shown and measured": [
        "losslab",
        "torch",
        "numpy",
        "scipy",
        "scikit-learn",
        "sentence-transformers",
        "transformers",
        "pytorch-metric-learning",
        "datasets",
    ],
    "drawing and testing": ["anywidget", "matplotlib", "hypothesis", "ir_measures", "pytest", "nbmake", "playwright"],
    "building the book": ["jupyter-book", "Sphinx", "myst-nb", "sphinx-book-theme", "sphinxcontrib-katex", "jupytext"],
}


class Status(nodes.General, nodes.Element):
    """Stands for the tables until all pages have been read."""


class StatusDirective(SphinxDirective):
    """``{losslab-status} machine``, ``{losslab-status} chapters`` or ``{losslab-status} libraries``."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Leave a place for the part."""
        part = self.arguments[0]
        if part not in _PARTS:
            raise self.error(f"losslab-status has the parts {', '.join(_PARTS)}; got {part!r}")
        _data(self.env).setdefault("pages", set()).add(self.env.docname)
        return [Status(part=part)]


class FillStatus(SphinxPostTransform):
    """Put the tables in."""

    default_priority = 8  # before references are resolved

    def run(self, **_: Any) -> None:  # noqa: ANN401
        """Run the transform."""
        for place in list(self.document.findall(Status)):
            place.replace_self(_PARTS[place["part"]](self.env))


def _data(env: BuildEnvironment) -> dict[str, Any]:
    if not hasattr(env, "losslab_status"):
        env.losslab_status = {}  # type: ignore[attr-defined]
    return env.losslab_status  # type: ignore[attr-defined, no-any-return]


def _machine(_env: BuildEnvironment) -> nodes.paragraph:
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    moment = datetime.fromtimestamp(int(epoch) if epoch else time.time(), tz=UTC)
    machine = (
        f"Python {platform.python_version()} on {platform.system()} ({platform.machine()}, {os.cpu_count()} cores)"
    )
    return nodes.paragraph("", f"Built on {moment:%d %B %Y, %H:%M} UTC with {machine}.")


def _chapters(env: BuildEnvironment) -> nodes.table:
    rows: list[list[nodes.Node]] = []
    build = _data(env).get("seconds", {})
    ran_before: set[str] = getattr(env, "losslab_ran", set())
    for docname in _in_reading_order(env):
        ran = NbMetadataCollector.get_exec_data(env, docname)
        seconds = ran["runtime"] if ran else None
        run = f"{seconds:.1f} s" if seconds is not None else "no code"
        took = f"{build[docname]:.1f} s" if docname in build else "unknown"
        # Its cells ran beforehand, or while it was read: that takes at least as long as they did.
        fresh = seconds is not None and (docname in ran_before or build.get(docname, 0) >= seconds)
        how = "no code" if seconds is None else "run for this build" if fresh else "kept from an earlier build"
        rows.append([_link(env, docname), nodes.Text(run), nodes.Text(took), nodes.Text(how)])
    return _table(["Page", "Cells ran for", "Page read in", "Outputs"], rows)


def _in_reading_order(env: BuildEnvironment) -> list[str]:
    order: list[str] = []

    def walk(docname: str) -> None:
        if docname in order:
            return
        order.append(docname)
        for child in env.toctree_includes.get(docname, []):
            walk(child)

    walk(env.config.root_doc)
    return [d for d in order if d not in _data(env).get("pages", set())]


def _link(env: BuildEnvironment, docname: str) -> nodes.Node:
    return addnodes.pending_xref(
        "",
        nodes.inline("", env.titles[docname].astext()),
        refdomain="std",
        reftype="doc",
        reftarget="/" + docname,
        refdoc=docname,
        refexplicit=True,
        refwarn=True,
    )


def _libraries(_env: BuildEnvironment) -> nodes.table:
    rows: list[list[nodes.Node]] = []
    for purpose, names in LIBRARIES.items():
        for name in names:
            try:
                rows.append([nodes.Text(name), nodes.Text(version(name)), nodes.Text(purpose)])
            except PackageNotFoundError:
                rows.append([nodes.Text(name), nodes.Text("not installed"), nodes.Text(purpose)])
    return _table(["Package", "Version", "For"], rows)


def _table(head: list[str], rows: list[list[nodes.Node]]) -> nodes.table:
    table = nodes.table(classes=["ll-status"])
    group = nodes.tgroup(cols=len(head))
    table += group
    group += [nodes.colspec(colwidth=120 // len(head)) for _ in head]
    header = nodes.thead()
    header += _row([nodes.Text(text) for text in head])
    body = nodes.tbody()
    body += [_row(row) for row in rows]
    group += [header, body]
    return table


def _row(cells: list[nodes.Node]) -> nodes.row:
    row = nodes.row()
    for cell in cells:
        paragraph = nodes.paragraph()
        paragraph += cell
        row += nodes.entry("", paragraph)
    return row


_PARTS = {"machine": _machine, "chapters": _chapters, "libraries": _libraries}


# --- clocks ---


def _start(_app: Sphinx, docname: str, _source: list[str]) -> None:
    _clock[docname] = time.perf_counter()


def _stop(app: Sphinx, _document: nodes.document) -> None:
    docname = app.env.docname
    _data(app.env).setdefault("seconds", {})[docname] = time.perf_counter() - _clock.pop(docname, time.perf_counter())


_clock: dict[str, float] = {}


def _refresh(_app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Write the status page again whenever any page was."""
    return sorted(_data(env).get("pages", set()) & set(env.found_docs))


def _purge(_app: Sphinx, env: BuildEnvironment, docname: str) -> None:
    _data(env).get("pages", set()).discard(docname)


def setup(app: Sphinx) -> None:
    """Connect the parts above."""
    app.add_node(Status)
    app.add_directive("losslab-status", StatusDirective)
    app.add_post_transform(FillStatus)
    app.connect("source-read", _start)
    app.connect("doctree-read", _stop, priority=999)
    app.connect("env-updated", _refresh)
    app.connect("env-purge-doc", _purge)
