"""Executed cells are kept until something they depend on changes, compiled templates until they do themselves.

jupyter-cache looks at a page's code cells alone. A page also depends on the package (its Python, and the JavaScript
and CSS of its figures), on ``data/`` and on the pinned requirements: an edit there forgets every kept execution. An
edit to these extensions only writes the pages again, and so brings changed static files to the site, which Sphinx
does not do when no page has changed.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterable
from pathlib import Path

from jinja2 import FileSystemBytecodeCache
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging

EXECUTION_INPUTS = ["src/losslab", "data", "requirements.txt"]
PAGE_INPUTS = ["_config.yml", "_toc.yml"]
_SKIP = {"__pycache__", ".ipynb_checkpoints", ".mypy_cache", ".ruff_cache"}

logger = logging.getLogger(__name__)


def fingerprint(paths: Iterable[Path]) -> str:
    """Return a digest of names and contents of files, and of all files below folders; a missing one adds nothing."""
    digest = hashlib.sha256()
    for path in paths:
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        for file in files:
            if file.is_file() and not _SKIP.intersection(file.parts):
                digest.update(f"{file.relative_to(path.parent)}\0".encode())
                digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def _outdated(
    app: Sphinx, env: BuildEnvironment, _added: set[str], _changed: set[str], _removed: set[str]
) -> list[str]:
    root = Path(app.srcdir)
    execution = fingerprint(root / name for name in app.config.losslab_execution_inputs)
    page = fingerprint([Path(__file__).parent, *(root / name for name in PAGE_INPUTS)])

    kept = Path(app.config.nb_execution_cache_path or Path(app.outdir).parent / ".jupyter_cache")
    mark = kept / "losslab-inputs"
    if kept.is_dir() and (not mark.is_file() or mark.read_text(encoding="utf-8") != execution):
        logger.info("the package, its data or its requirements have changed: all cells run again")
        shutil.rmtree(kept)
    kept.mkdir(parents=True, exist_ok=True)
    mark.write_text(execution, encoding="utf-8")

    pages = Path(app.doctreedir) / "losslab-inputs"
    state = f"{execution} {page}"
    if pages.is_file() and pages.read_text(encoding="utf-8") == state:
        return []
    pages.parent.mkdir(parents=True, exist_ok=True)
    pages.write_text(state, encoding="utf-8")
    return sorted(env.found_docs)


def _keep_templates(app: Sphinx) -> None:
    """Compile the theme's thirty templates once, not for every edit."""
    environment = getattr(getattr(app.builder, "templates", None), "environment", None)
    if environment is not None:  # LaTeX has none
        kept = Path(app.doctreedir) / "templates"
        kept.mkdir(parents=True, exist_ok=True)
        environment.bytecode_cache = FileSystemBytecodeCache(str(kept))


def setup(app: Sphinx) -> None:
    """Connect the parts above."""
    app.connect("builder-inited", _keep_templates)
    app.add_config_value("losslab_execution_inputs", EXECUTION_INPUTS, "env", [list])
    app.connect("env-get-outdated", _outdated)
