"""What is wrong with the book: collected over the whole build, then told at once, and the build fails."""

from __future__ import annotations

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.errors import SphinxError


class BookError(SphinxError):
    """A fault that no reader may meet. Its text names the page and what to do."""

    category = "The book is not fit to publish"


def where(app: Sphinx, docname: str, node: nodes.Node | None = None) -> str:
    """Return ``book/padding.md:12`` for a page and, where it is known, a line in it."""
    path = app.env.doc2path(docname, base=False)
    while node is not None and not getattr(node, "line", None):
        node = node.parent
    return f"{path}:{node.line}" if node is not None else path


def report(app: Sphinx, place: str, message: str) -> None:
    """Note a fault; the build goes on, so that one run shows all of them, and fails at its end."""
    line = f"{place}: {message}"
    if line not in (found := _found(app)):
        found.append(line)


def _found(app: Sphinx) -> list[str]:
    if not hasattr(app, "losslab_problems"):
        app.losslab_problems = []  # type: ignore[attr-defined]
    return app.losslab_problems  # type: ignore[attr-defined, no-any-return]


def raise_all(app: Sphinx) -> None:
    """Raise one `BookError` with every fault noted, or return.

    Raises
    ------
    BookError
        If any fault was noted.
    """
    if found := _found(app):
        count = f"{len(found)} fault{'s' if len(found) > 1 else ''}"
        raise BookError(f"{count}\n" + "\n".join(f"  {line}" for line in found))
