"""Links to the repository and to Colab, from one setting: ``repository: url:`` in ``_config.yml``.

While it is empty there are none; a chapter can be downloaded as a notebook all the same. Colab opens notebooks only, so
its links point to the branch ``notebooks``, where the deploy workflow pushes what `losslab_book.notebooks` makes of the
chapters.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config

from losslab_book import assets

BRANCH = "notebooks"


def colab_link(repository: str, docname: str) -> str:
    """Return Colab's address for a chapter of a GitHub repository, or "" for other hosts, which Colab cannot read.

    >>> colab_link("https://github.com/someone/losslab", "book/padding")
    'https://colab.research.google.com/github/someone/losslab/blob/notebooks/book/padding.ipynb'
    """
    match = re.fullmatch(r"https://github\.com/([\w.-]+)/([\w.-]+?)(?:\.git)?/?", repository)
    return (
        f"https://colab.research.google.com/github/{match[1]}/{match[2]}/blob/{BRANCH}/{docname}.ipynb" if match else ""
    )


def _configure(_app: Sphinx, config: Config) -> None:
    options = config.html_theme_options
    if options.get("repository_url"):
        options["use_repository_button"] = True


def _button(
    app: Sphinx, pagename: str, _template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    repository = app.config.html_theme_options.get("repository_url") or ""
    if doctree is None or not _has_code(app, pagename):
        return
    if url := colab_link(repository, pagename):
        context["header_buttons"].insert(
            0,
            {
                "type": "link",
                "url": url,
                "tooltip": "Run this chapter in Colab",
                "text": "Run in Colab",
                "icon": "fas fa-play",
                "label": "colab-button",
            },
        )


def _download(
    app: Sphinx, pagename: str, _template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Offer a chapter as the notebook that Colab opens, among the theme's downloads."""
    if doctree is None or not assets.is_site(app) or not _has_code(app, pagename):
        return
    from losslab_book.notebooks import write

    repository = app.config.html_theme_options.get("repository_url") or ""
    branch = app.config.html_theme_options.get("repository_branch") or "main"
    name = f"{pagename}.ipynb"
    if write(Path(app.env.doc2path(pagename)), Path(app.outdir) / "_sources" / name, repository, branch):
        context["ipynb_source"] = name


def _has_code(app: Sphinx, pagename: str) -> bool:
    return "kernelspec" in app.env.metadata.get(pagename, {})


def setup(app: Sphinx) -> None:
    """Connect the parts above."""
    app.connect("config-inited", _configure)
    app.connect("html-page-context", _download, priority=450)  # before the theme makes its list of buttons
    app.connect("html-page-context", _button, priority=600)  # after the theme has made its list of buttons
