"""Make of every chapter the notebook that Colab opens: no outputs, and a first cell that lets it run there.

``python -m losslab_book.notebooks FOLDER`` writes ``FOLDER/book/padding.ipynb`` and so on, for all pages of the table
of contents that hold code. Cell ids follow from the content, so an unchanged chapter gives an unchanged file.
"""

from __future__ import annotations

import argparse
import hashlib
from pathlib import Path
from typing import Any

import jupytext
import yaml
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell

STANDALONE = """\
# The book glues numbers into its text; a notebook has no text to glue them into, so there `glue` does nothing.
import importlib.util, sys, types

if importlib.util.find_spec("myst_nb") is None:
    sys.modules["myst_nb"] = types.SimpleNamespace(glue=lambda name, value, display=True: None)"""

INSTALL = """

# Where losslab is missing (in Colab, say): fetch the book and install it beside the torch and numpy that are there.
from importlib.metadata import version

if importlib.util.find_spec("losslab") is None:
    kept = " ".join(f"{{name}}=={{version(name)}}" for name in ("torch", "numpy") if importlib.util.find_spec(name))
    !git clone --quiet --depth 1 --branch {branch} {repository} losslab-book
    %pip install --quiet {{kept}} "./losslab-book[libraries]"
    %cd losslab-book/book"""


def first_cell(repository: str, branch: str = "main") -> NotebookNode:
    """Return the cell that lets a chapter run by itself.

    Parameters
    ----------
    repository : str
        Where losslab is installed from if it is missing, leaving torch and numpy as they are; "" leaves that out.
    branch : str
        Which branch of it.
    """
    install = INSTALL.format(repository=repository.rstrip("/"), branch=branch) if repository else ""
    return new_code_cell(STANDALONE + install, metadata={"tags": ["losslab-setup"]})


def notebook(source: Path, repository: str, branch: str = "main") -> NotebookNode | None:
    """Return a chapter as a notebook, or None if it holds no code.

    Parameters
    ----------
    source : Path
        A MyST Markdown page.
    repository : str
        Address of the repository to install losslab from where it is missing; "" if there is none.
    """
    book = jupytext.read(source)
    if not any(cell.cell_type == "code" for cell in book.cells):
        return None
    book.cells.insert(0, first_cell(repository, branch))
    seen: dict[str, int] = {}
    for cell in book.cells:
        digest = hashlib.sha256(f"{cell.cell_type}\0{cell.source}".encode()).hexdigest()[:10]
        seen[digest] = seen.get(digest, 0) + 1
        cell["id"] = digest if seen[digest] == 1 else f"{digest}-{seen[digest]}"
    book.metadata.pop("jupytext", None)
    book.metadata["kernelspec"] = {"display_name": "Python 3", "language": "python", "name": "python3"}
    book.nbformat, book.nbformat_minor = 4, 5
    return book


def write(source: Path, target: Path, repository: str, branch: str = "main") -> bool:
    """Write a chapter's notebook to `target`; return False, and write nothing, if the chapter holds no code."""
    book = notebook(source, repository, branch)
    if book is None:
        return False
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(jupytext.writes(book, fmt="ipynb"), encoding="utf-8")
    return True


def pages(toc: dict[str, Any]) -> list[str]:
    """Return the pages of a table of contents in reading order, without suffix."""
    found = [toc["root"]] if "root" in toc else []
    for key in ("parts", "chapters", "sections", "entries", "subtrees"):
        for entry in toc.get(key, []):
            found += [entry["file"]] if "file" in entry else []
            found += pages({k: v for k, v in entry.items() if k != "root"})
    return found


def write_all(root: Path, target: Path) -> list[Path]:
    """Write the notebooks of all chapters below `target` and return their paths."""
    config = yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))
    repository = config.get("repository") or {}
    written = []
    for page in pages(yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8"))):
        path = target / f"{page}.ipynb"
        if write(root / f"{page}.md", path, repository.get("url") or "", repository.get("branch") or "main"):
            written.append(path)
    return written


def main() -> None:
    """Run from the command line, in the book's root folder."""
    parser = argparse.ArgumentParser(
        prog="python -m losslab_book.notebooks", description="Write the notebooks that Colab opens."
    )
    parser.add_argument("folder", type=Path, help="where they go")
    for path in write_all(Path.cwd(), parser.parse_args().folder):
        print(path)


if __name__ == "__main__":
    main()
