"""Figures on paper: LaTeX takes no SVG, so the twin is drawn again as PDF, by the figure's class from its traits."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

from losslab_book import assets
from losslab_book.live import LiveFigure


class TwinsForLatex(SphinxPostTransform):
    """Put a PDF picture where MyST-NB would choose a figure's words, for want of a format that LaTeX knows."""

    default_priority = 3  # before MyST-NB chooses, at 4
    formats = ("latex",)

    def run(self, **_: Any) -> None:  # noqa: ANN401
        """Run the transform."""
        folder = Path(self.app.outdir).parent / "jupyter_execute"
        for figure in list(self.document.findall(LiveFigure)):
            data = _pdf(figure["name"], json.loads(figure["state"]))
            path = folder / f"twin-{assets.short_hash(data)}.pdf"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            uri = Path(os.path.relpath(path, self.app.srcdir)).as_posix()
            self.env.images.add_file(self.env.docname, uri)
            bundle: nodes.Node = figure
            while bundle.get("nb_element") != "mime_bundle":
                bundle = bundle.parent
            picture = nodes.image(uri=uri, alt=figure["words"], candidates={"*": uri}, width="100%")
            bundle.replace_self([picture, nodes.paragraph("", figure["words"])])


def _pdf(name: str, state: dict[str, Any]) -> bytes:
    """Draw the twin of one figure in one state."""
    from losslab import figures

    kind = next((one for one in _kinds(figures.Figure) if one.__dict__.get("NAME") == name), None)
    if kind is None:
        raise LookupError(f"no class of losslab.figures has the name {name!r}, so it cannot be drawn for paper")
    own = {key: value for key, value in state.items() if key != "figure"}
    out = BytesIO()
    with figures.style():
        kind(**own).twin().savefig(out, format="pdf", metadata={"CreationDate": None})
    return out.getvalue()


def _kinds(kind: type) -> Iterator[type]:
    for one in kind.__subclasses__():
        yield one
        yield from _kinds(one)


def setup(app: Sphinx) -> None:
    """Connect the parts above."""
    app.add_post_transform(TwinsForLatex)
