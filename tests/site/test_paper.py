"""The book where no browser reads it: EPUB, LaTeX and plain text get the twin or its sentence, never an empty place."""

import re
import sys
import zipfile

import pytest

BUILD = """
import sys
from pathlib import Path
from jupyter_book.sphinx import build_sphinx
root, builder = Path(sys.argv[1]), sys.argv[2]
settings = {"external_toc_path": str(root / "_toc.yml"), "latex_individualpages": False,
            "nb_execution_cache_path": str(root / "_build" / ".jupyter_cache"), "version": "1"}
result = build_sphinx(root, root / "_build" / builder, noconfig=True, path_config=root / "_config.yml",
                      confoverrides=settings, builder=builder, quiet=True, warningiserror=True, keep_going=True)
sys.exit(result if isinstance(result, int) else 1)
"""


@pytest.fixture(scope="module")
def papers(little):
    made = {}
    for builder in ("epub", "latex", "text"):
        result = little.build(sys.executable, "-c", BUILD, str(little.root), builder)
        assert result.code == 0, result.log[-3000:]
        made[builder] = little.root / "_build" / builder
    return made


def test_epub_has_the_twin_with_its_words_and_math_without_fonts(papers):
    book = zipfile.ZipFile(next(papers["epub"].glob("*.epub")))
    page = book.read("figures.xhtml").decode()
    twins = re.findall(r'<img class="ll-twin"[^>]*src="([^"]+)" alt="(Padded[^"]+)"', page)
    assert len(twins) == 3
    for source, _ in twins:
        assert b"<svg" in book.read(source)
    assert "<math" in page
    assert "katex-html" not in page
    assert not [name for name in book.namelist() if "KaTeX" in name]
    assert "ll-place" not in page


def test_latex_has_the_twin_as_pdf(papers):
    text = next(papers["latex"].glob("*.tex")).read_text(encoding="utf-8")
    twins = re.findall(r"\\sphinxincludegraphics\[[^\]]*\]\{\{(twin-\w+)\}\.pdf\}", text)
    assert len(twins) == 3
    assert len(set(twins)) == 2, "two views of one state are one picture"
    for twin in twins:
        assert (papers["latex"] / f"{twin}.pdf").read_bytes().startswith(b"%PDF")


def test_plain_text_says_what_the_figure_shows(papers):
    assert (papers["text"] / "figures.txt").read_text(encoding="utf-8").count("Padded to") == 3
