"""The book's own style sheet, its few lines of script, and its icon: on every page."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

from losslab_book import assets


def _publish(app: Sphinx) -> None:
    if not assets.is_site(app):
        return
    names = ("book.css", "book.js", "icon.svg")
    app.losslab_style = [assets.put(app, n, (assets.HERE / n).read_bytes()) for n in names]  # type: ignore[attr-defined]


def _load(app: Sphinx, _page: str, _template: str, context: dict[str, Any], _doctree: nodes.document | None) -> None:
    if not assets.is_site(app):
        return
    sheet, script, icon = app.losslab_style  # type: ignore[attr-defined]
    app.add_css_file(sheet, priority=900)
    app.add_js_file(script, loading_method="defer", priority=900)
    context["losslab_icon"] = icon


def setup(app: Sphinx) -> None:
    """Connect the parts above."""
    app.connect("builder-inited", _publish)
    app.connect("html-page-context", _load, priority=800)
