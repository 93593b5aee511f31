"""Files of our own below ``_static/losslab``, named after their content so that browsers may keep them for ever."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

HERE = Path(__file__).parent / "static"
FOLDER = "losslab"


def is_site(app: Sphinx) -> bool:
    """Tell whether the builder makes pages for a browser (html, dirhtml, singlehtml), not a book file or a report."""
    return app.builder.format == "html" and app.builder.name in {"html", "dirhtml", "singlehtml"}


def short_hash(*parts: bytes) -> str:
    """Return ten hex digits that change with any byte of `parts`."""
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:10]


def put(app: Sphinx, name: str, content: str | bytes) -> str:
    """Write one file into the site and return its address below ``_static``, for ``add_js_file`` and ``add_css_file``.

    Parameters
    ----------
    name : str
        ``figures.js`` becomes ``losslab/figures.<hash>.js``; a folder in the name is kept.
    content : str or bytes
        What the file holds.
    """
    data = content.encode("utf-8") if isinstance(content, str) else content
    path = Path(name)
    return keep(app, path.with_name(f"{path.stem}.{short_hash(data)}{path.suffix}").as_posix(), data)


def keep(app: Sphinx, name: str, data: bytes) -> str:
    """Write one file under exactly `name`, since other files refer to it, and return its address below ``_static``."""
    target = Path(app.outdir) / "_static" / FOLDER / name
    if not target.is_file() or target.read_bytes() != data:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    _kept(app).add(target)
    return f"{FOLDER}/{name}"


def _kept(app: Sphinx) -> set[Path]:
    if not hasattr(app, "losslab_assets"):
        app.losslab_assets = set()  # type: ignore[attr-defined]
    return app.losslab_assets  # type: ignore[attr-defined, no-any-return]


def address(file: Any) -> str:  # noqa: ANN401  # Sphinx keeps strings and objects side by side
    """Return what a page's script or style sheet entry refers to, or its own text if it has one."""
    return str(getattr(file, "filename", file) or "") + str(getattr(file, "attributes", {}).get("body", ""))


def drop(context: dict[str, Any], unwanted: Callable[[Any], bool]) -> None:
    """Take scripts and style sheets off a page. The lists are changed in place, since Sphinx adds to the same ones."""
    for kind in ("script_files", "css_files"):
        if files := context.get(kind):
            files[:] = [file for file in files if not unwanted(file)]


def sweep(app: Sphinx) -> None:
    """Remove what an earlier build left below ``_static/losslab`` and this one did not put there."""
    for path in sorted((Path(app.outdir) / "_static" / FOLDER).rglob("*")):
        if path.is_file() and path not in _kept(app):
            path.unlink()
