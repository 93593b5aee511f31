"""The same sources give the same bytes: two cold builds with SOURCE_DATE_EPOCH set do not differ.

Model ids of widgets never reach a page (``live`` numbers them), and pictures are named after their content. What is
left: ids inside matplotlib's SVG are made from a fixed salt, and an output that shows a memory address is a fault,
since it differs in every run and tells a reader nothing.
"""

from __future__ import annotations

import os
import re

from docutils import nodes
from sphinx.application import Sphinx

from losslab_book import assets
from losslab_book.problems import report, where

_ADDRESS = re.compile(r"\bat 0x[0-9a-f]{6,}")


def _still_kernels(_app: Sphinx) -> None:
    """Kernels inherit this: matplotlib then reads its salt from our file, whatever the machine's own settings say."""
    os.environ.setdefault("MATPLOTLIBRC", str(assets.HERE / "matplotlibrc"))


def _no_addresses(app: Sphinx, document: nodes.document) -> None:
    for output in document.findall(nodes.literal_block):
        if "output" in output.get("classes", []) and (found := _ADDRESS.search(output.astext())):
            parent = output.parent
            while parent is not None and parent.get("nb_element") != "mime_bundle":
                parent = parent.parent
            if parent is not None and len(parent.children) > 1:
                continue  # a richer form of the same output is shown instead
            report(
                app,
                where(app, app.env.docname, output),
                f"an output shows a memory address ({found[0]!r}), different in every build; end the cell's last line "
                "with `;` or print what the reader should see",
            )


def setup(app: Sphinx) -> None:
    """Connect the parts above."""
    app.connect("builder-inited", _still_kernels)
    app.connect("doctree-read", _no_addresses)
