"""Sphinx extensions of the book: one small module for each thing a page must be able to do, or must never do.

======================  ============================================================================================
``live``                figures that answer without a kernel, their still twins where there is no JavaScript
``paper``               the same twins for LaTeX
``guards``              the build fails on dead controls, other hosts, missing text alternatives, unset formulas
``math``                formulas set by KaTeX while building; no math script on any page
``fold``                folded answers as native disclosure elements
``slim``                a page loads what it uses and nothing else
``style``               the book's own style sheet and its few lines of script
``reproducible``        the same sources give the same bytes
``cache``               executed cells are kept until something that they depend on changes
``kernels``             chapters run two at a time, before their pages are read
``links``               repository and Colab links, from the one address in ``_config.yml``
``status``              versions and times for the status page
``casebook``            an entry for every mistake, from its record; search; links to entries
``audit``               which promises the losses of installed libraries keep, from the committed measurement
``prose``               published numbers with their source; everything else comes from code
======================  ============================================================================================

``python -m losslab_book.build`` builds beside the last good book and swaps on success; ``losslab_book.notebooks``
writes the notebooks that Colab opens.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from sphinx.application import Sphinx

__version__ = "1"

PARTS = (
    "reproducible",
    "cache",
    "kernels",
    "style",
    "math",
    "live",
    "paper",
    "fold",
    "prose",
    "links",
    "status",
    "casebook",
    "audit",
    "slim",
    "guards",
)


def setup(app: Sphinx) -> dict[str, Any]:
    """Set up every part, in the order in which their handlers should meet a page."""
    for part in PARTS:
        import_module(f"{__name__}.{part}").setup(app)
    return {"version": __version__, "parallel_read_safe": False, "parallel_write_safe": False}
