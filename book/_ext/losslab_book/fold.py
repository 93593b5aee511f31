"""Folded answers: an admonition of class ``dropdown`` becomes ``<details>``, which needs no script.

In EPUB it stays a native disclosure element; LaTeX keeps the plain admonition.
"""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.writers.html5 import HTML5Translator

from losslab_book import assets


class Folded(nodes.General, nodes.Element):
    """A closed box; its first child is what the reader sees."""


class Summary(nodes.General, nodes.Element):
    """The visible line of a closed box."""


class FoldAdmonitions(SphinxPostTransform):
    """Replace ``:class: dropdown`` admonitions for HTML."""

    default_priority = 200
    formats = ("html",)

    def run(self, **_: Any) -> None:  # noqa: ANN401
        """Run the transform."""
        for box in list(
            self.document.findall(lambda n: isinstance(n, nodes.Admonition) and "dropdown" in n.get("classes", []))
        ):
            classes = [c for c in box["classes"] if c not in {"dropdown", "admonition", "toggle", "toggle-shown"}]
            kind = [] if isinstance(box, nodes.admonition) else [box.tagname]
            is_open = "toggle-shown" in box["classes"]
            folded = Folded(ids=box["ids"], classes=["admonition", "ll-fold", *kind, *classes], open=is_open)
            rest = list(box.children)
            titled = bool(rest) and isinstance(rest[0], nodes.title)
            words = rest.pop(0).children if titled else [nodes.Text(box.tagname.capitalize())]
            summary = Summary()
            summary += [child.deepcopy() for child in words]
            folded += [summary, *rest]
            box.replace_self(folded)


def _visit_folded(self: HTML5Translator, node: Folded) -> None:
    attributes = {"open": "open"} if node["open"] else {}
    self.body.append(self.starttag(node, "details", **attributes))


def _depart_folded(self: HTML5Translator, _node: Folded) -> None:
    self.body.append("</details>\n")


def _visit_summary(self: HTML5Translator, _node: Summary) -> None:
    self.body.append('<summary class="admonition-title">')


def _depart_summary(self: HTML5Translator, _node: Summary) -> None:
    self.body.append("</summary>\n")


def _drop_toggle_files(_app: Sphinx, _page: str, _t: str, context: dict[str, Any], _d: nodes.document | None) -> None:
    """Keep ``sphinx-togglebutton``'s script and style sheet off the pages: nothing is left for them to do."""
    assets.drop(context, lambda f: "toggle" in assets.address(f))


def setup(app: Sphinx) -> None:
    """Connect the parts above."""
    app.add_node(Folded, html=(_visit_folded, _depart_folded))
    app.add_node(Summary, html=(_visit_summary, _depart_summary))
    app.add_post_transform(FoldAdmonitions)
    app.connect("html-page-context", _drop_toggle_files, priority=800)
