"""Chapters run two at a time, before the pages are read.

Sphinx reads pages one after the other, and a page's cells would run while it is read. So the cells of all pages that
are about to be read and are not kept run first, each page in a kernel of its own, two at a time where there are two
processors. What they put on a page must not depend on the machine's speed. What fails is left to the reading of its
page, which runs it again and reports it in full.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn
from jupyter_cache.executors.utils import single_nb_execution
from myst_nb.core.read import create_nb_reader
from nbformat import NotebookNode
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging

AT_ONCE = 2

logger = logging.getLogger(__name__)


@dataclass
class Page:
    """A page whose cells have to run."""

    docname: str
    path: Path
    notebook: NotebookNode
    read_format: dict[str, Any] | None

    @property
    def length(self) -> int:
        """Letters of code: what is long starts first, so that nobody waits for it at the end."""
        return sum(len(cell.source) for cell in self.notebook.cells if cell.cell_type == "code")


def _run(_app: Sphinx, env: BuildEnvironment, docnames: list[str]) -> None:
    """Run the cells of the pages that are about to be read."""
    env.losslab_ran = set()  # type: ignore[attr-defined]
    settings = env.mystnb_config  # type: ignore[attr-defined]
    if settings.execution_mode != "cache":
        return
    kept = get_cache(settings.execution_cache_path or ".jupyter_cache")
    pages = [page for docname in docnames if (page := _page(env, docname)) and not _is_kept(kept, page)]
    if not pages:
        return
    pages.sort(key=lambda page: page.length, reverse=True)
    together = min(AT_ONCE, os.cpu_count() or 1, len(pages))
    logger.info(f"running the cells of {len(pages)} pages, {together} at a time")
    with _threads_per_kernel(together), ThreadPoolExecutor(together) as pool:
        runs = [
            pool.submit(
                single_nb_execution,
                page.notebook,
                cwd=str(page.path.parent),
                timeout=settings.execution_timeout,
                allow_errors=settings.execution_allow_errors,
            )
            for page in pages
        ]
        for page, run in zip(pages, runs, strict=True):
            try:
                result = run.result()
            except Exception as problem:  # a kernel that died, say: reading the page will meet it again and name it
                logger.info(f"{page.docname}: {type(problem).__name__}")
                continue
            if result.err is not None:
                continue
            for cell in page.notebook.cells:
                if cell.cell_type == "code":
                    cell.outputs = _joined(cell.outputs)
            arguments = {} if page.read_format is None else {"read_data": page.read_format}
            record = kept.add_nb_to_project(str(page.path), **arguments)
            bundle = CacheBundleIn(page.notebook, record.uri, data={"execution_seconds": result.time})
            kept.cache_notebook_bundle(bundle, check_validity=False, overwrite=True)
            env.losslab_ran.add(page.docname)  # type: ignore[attr-defined]
            logger.info(f"{page.docname}: cells ran for {result.time:.1f} s")


def _page(env: BuildEnvironment, docname: str) -> Page | None:
    """Read a page as a notebook; None if it is none."""
    path = Path(env.doc2path(docname))
    text = path.read_text(encoding="utf-8")
    reader = create_nb_reader(str(path), env.myst_config, env.mystnb_config, text)  # type: ignore[attr-defined]
    return None if reader is None else Page(docname, path, reader.read(text), reader.read_fmt)


def _is_kept(kept: Any, page: Page) -> bool:  # noqa: ANN401  # jupyter-cache exports no type for it
    with suppress(KeyError):
        kept.match_cache_notebook(page.notebook)
        return True
    return False


def _joined(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """What a cell printed, as one piece for each stream.

    A kernel sends what is printed every fifth of a second, wherever it is: on a slow machine a line comes in two.
    The reader of notebooks joins pieces too, but begins a line with each.
    """
    first: dict[str, NotebookNode] = {}
    joined = []
    for output in outputs:
        stream = output.name if output.output_type == "stream" else None
        if stream in first:
            first[stream].text += output.text
            continue
        if stream is not None:
            first[stream] = output
        joined.append(output)
    return joined


@contextmanager
def _threads_per_kernel(kernels: int) -> Iterator[None]:
    """Share the processors out: kernels whose threads wait for each other's take several times as long."""
    name, own = "OMP_NUM_THREADS", os.environ.get("OMP_NUM_THREADS")
    os.environ.setdefault(name, str(max(1, (os.cpu_count() or 1) // kernels)))
    try:
        yield
    finally:
        if own is None:
            del os.environ[name]


def setup(app: Sphinx) -> None:
    """Connect the parts above."""
    # A report in the book must not depend on how fast the machine was that built it.
    os.environ.setdefault("LOSSLAB_CHECK_BUDGET", "none")
    app.connect("env-before-read-docs", _run)
