"""Build the book beside the last good one and swap on success: ``python -m losslab_book.build [--serve]``.

A build that fails leaves ``_build/html`` as it was. What Sphinx needs to be quick next time (doctrees, pages,
executed cells) stays in ``_build/next``; ``jupyter-book build .`` works too, straight into ``_build/html``, with the
same kept cells.
"""

from __future__ import annotations

import argparse
import functools
import gc
import importlib.metadata
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

PRIVATE = {".buildinfo", ".buildinfo.bak", ".doctrees", "reports", "objects.inv.bak"}


def build(root: Path, *, strict: bool = True) -> bool:
    """Build the book of `root` into ``_build/next/html`` and, if nothing is wrong with it, make it ``_build/html``.

    Parameters
    ----------
    root : Path
        The folder of ``_config.yml`` and ``_toc.yml``.
    strict : bool
        Treat every warning as an error, and a reference that leads nowhere as a warning.

    Returns
    -------
    bool
        True if the new book is in place.
    """
    # jsonschema compiles a grammar of international addresses on import if it can: a second of every build for nothing.
    sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
    # Documents are trees of many small objects that stay until the end: looking for garbage among them finds none.
    gc.set_threshold(100_000, 50, 100)
    # Every library that has plugins looks through the metadata of all that is installed, which no build changes.
    installed = functools.cache(importlib.metadata.entry_points)
    importlib.metadata.entry_points = lambda **wanted: installed().select(**wanted)
    # jupytext brings an editor's server along if it can; a build only wants to read and write notebooks.
    sys.modules.setdefault("jupyter_server", None)  # type: ignore[arg-type]
    from jupyter_book.sphinx import build_sphinx

    place = root / "_build"
    with _alone(place):
        return _build(build_sphinx, root, place, strict)


def _build(build_sphinx: Callable[..., int | BaseException], root: Path, place: Path, strict: bool) -> bool:
    result = build_sphinx(
        root,
        place / "next" / "html",
        noconfig=True,
        path_config=root / "_config.yml",
        confoverrides={
            "external_toc_path": (root / "_toc.yml").as_posix(),
            "latex_individualpages": False,
            "nb_execution_cache_path": str(place / ".jupyter_cache"),
            "nitpicky": strict,
        },
        warningiserror=strict,
        keep_going=strict,
    )
    if isinstance(result, BaseException) or result:
        _say_failed(place / "html")
        return False
    _swap(place / "next" / "html", place / "html")
    return True


@contextmanager
def _alone(place: Path) -> Iterator[None]:
    """Wait until no other build is at work in this folder: two would forget each other's kept cells."""
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    place.mkdir(exist_ok=True)
    with (place / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            print("Another build is at work in this folder; waiting for it to end …", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _say_failed(last: Path) -> None:
    if last.is_dir():
        built = datetime.fromtimestamp(last.stat().st_mtime).astimezone()
        print(
            f"\nThe build failed; {_short(last)} still holds the last good book, of {built:%d %B %Y, %H:%M}.",
            file=sys.stderr,
        )
    else:
        print(f"\nThe build failed, and there is no earlier book in {_short(last)}.", file=sys.stderr)


def _swap(new: Path, place: Path) -> None:
    """Copy `new` beside `place`, then rename: whoever reads the old book meanwhile never meets a half-written one."""
    fresh, old = place.with_name("html.fresh"), place.with_name("html.old")
    for leftover in (fresh, old):
        shutil.rmtree(leftover, ignore_errors=True)
    shutil.copytree(new, fresh, ignore=lambda _folder, names: PRIVATE.intersection(names))
    if place.exists():
        place.rename(old)
    fresh.rename(place)
    shutil.rmtree(old, ignore_errors=True)


def _short(path: Path) -> str:
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


def main(arguments: list[str] | None = None) -> int:
    """Run from the command line; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m losslab_book.build", description=__doc__.split("\n", maxsplit=1)[0]
    )
    parser.add_argument("root", nargs="?", type=Path, default=Path(), help="the book's root folder (default: here)")
    parser.add_argument("--serve", action="store_true", help="then serve the book and print its address")
    parser.add_argument(
        "--port", type=int, default=8000, help="port to serve at; another one if it is taken (default: 8000)"
    )
    parser.add_argument("--lenient", action="store_true", help="let warnings pass")
    options = parser.parse_args(arguments)
    root = options.root.resolve()
    if not (root / "_config.yml").is_file():
        parser.error(f"no _config.yml in {root}; give the book's root folder")

    start = time.perf_counter()
    if not build(root, strict=not options.lenient):
        return 1
    print(f"\nBuilt in {time.perf_counter() - start:.1f} s: {_short(root / '_build' / 'html' / 'index.html')}")
    if options.serve:
        from losslab_book.serve import serve

        serve(root / "_build" / "html", options.port)
    return 0


if __name__ == "__main__":
    sys.exit(main())
