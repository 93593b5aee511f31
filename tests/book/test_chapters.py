"""Every chapter runs top to bottom as a notebook, on the device LOSSLAB_DEVICE names, and keeps the book's form."""

import os
import subprocess
import sys
from pathlib import Path

import jupytext
import pytest
import yaml

from losslab_book.prose import typed_numbers

ROOT = Path(__file__).parents[2]
LONGEST_CELL = 15  # lines of code that a reader sees at once


def pages():
    """Files of the table of contents, in reading order."""
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    parts = toc.get("parts", [toc])
    return [toc["root"], *(chapter["file"] for part in parts for chapter in part.get("chapters", []))]


def notebook(page):
    return jupytext.read(ROOT / f"{page}.md")


PAGES = pages()
EXECUTABLE = [page for page in PAGES if any(cell.cell_type == "code" for cell in notebook(page).cells)]


def run_as_notebook(book, folder):
    """Write the notebook into a folder and run it with nbmake, as a reader's Jupyter would."""
    path = folder / "chapter.ipynb"
    jupytext.write(book, path)
    command = [sys.executable, "-m", "pytest", "--nbmake", "--nbmake-timeout=300", "-q", "-p", "no:cacheprovider"]
    command += [f"--rootdir={folder}", f"--confcutdir={folder}", "-c", os.devnull, str(path)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("page", EXECUTABLE)
def test_a_chapter_runs_from_top_to_bottom(page, tmp_path):
    done = run_as_notebook(notebook(page), tmp_path)
    assert done.returncode == 0, done.stdout[-4000:]
    assert "1 passed" in done.stdout


def test_a_failing_cell_fails_its_chapter(tmp_path):
    book = jupytext.reads("```{code-cell}\nassert False, 'planted'\n```\n", fmt="md:myst")
    book.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
    done = run_as_notebook(book, tmp_path)
    assert done.returncode == 1
    assert "planted" in done.stdout


def test_all_that_is_written_is_in_the_table_of_contents():
    written = {f"book/{path.stem}" for path in (ROOT / "book").glob("*.md")}
    assert written == set(PAGES)


@pytest.mark.parametrize("page", EXECUTABLE)
def test_code_that_a_reader_sees_fits_at_a_glance(page):
    hidden = {"remove-cell", "remove-input"}
    for cell in notebook(page).cells:
        if cell.cell_type == "code" and not hidden & set(cell.metadata.get("tags", [])):
            assert len(cell.source.strip().splitlines()) <= LONGEST_CELL, cell.source


@pytest.mark.parametrize("page", PAGES)
def test_numbers_in_the_prose_come_from_code_or_from_a_source(page):
    assert not [str(typed) for typed in typed_numbers(ROOT / f"{page}.md")]
