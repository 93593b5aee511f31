"""Books to build in tests: a copy of the real one, and small ones with a page or two."""

import os
import re
import resource
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from losslab_book.notebooks import pages

ROOT = Path(__file__).resolve().parents[2]
EXTENSIONS = ROOT / "book" / "_ext"
EPOCH = "1700000000"
CODE_PAGE = """\
---
jupytext:
  text_representation: {extension: .md, format_name: myst}
kernelspec: {display_name: Python 3, language: python, name: python3}
---
"""


def _processor() -> float:
    """Processor time of all commands that this process has run, and of what they ran."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def import_time() -> float:
    """Processor time of importing the library whose losses the book examines, in a process of its own."""
    before = _processor()
    subprocess.run([sys.executable, "-c", "import sentence_transformers.cross_encoder.losses"], check=True)
    return _processor() - before


@dataclass
class Built:
    """How a build ended, and how long it took: by the clock, and in seconds of one processor."""

    code: int
    log: str
    seconds: float
    processor: float

    @property
    def quiet(self) -> float:
        """Seconds that it takes where nothing else runs, at most: a busy machine's clock is not the build's fault."""
        return min(self.seconds, self.processor)


@dataclass
class Book:
    """A book's sources in a folder of their own, and what was built of them."""

    root: Path
    env: dict[str, str] = field(default_factory=dict)

    @property
    def html(self) -> Path:
        return self.root / "_build" / "html"

    def build(self, *command: str) -> Built:
        """Build as `make html` does, or with another command."""
        start, before = time.perf_counter(), _processor()
        run = subprocess.run(
            command or [sys.executable, "-m", "losslab_book.build", str(self.root)],
            capture_output=True,
            text=True,
            cwd=self.root,
            env={**os.environ, "PYTHONPATH": str(EXTENSIONS), **self.env},
            timeout=900,  # a build that hangs; how long one may take is tested elsewhere
            check=False,
        )
        log = re.sub(r"\x1b\[[\d;]*m", "", run.stdout + run.stderr)
        return Built(run.returncode, log, time.perf_counter() - start, _processor() - before)

    def write(self, name: str, text: str) -> None:
        path = self.root / f"{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def read(self, name: str) -> str:
        return (self.html / name).read_text(encoding="utf-8")


def small_book(root: Path, texts: dict[str, str], **settings: object) -> Book:
    """Lay out a book with these pages, the real settings and the real extensions."""
    config = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    config["sphinx"]["local_extensions"] = {"losslab_book": str(EXTENSIONS)}
    config.update(settings)
    root.mkdir(parents=True, exist_ok=True)
    for name in config["bibtex_bibfiles"]:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, root / name)
    (root / "_config.yml").write_text(yaml.safe_dump(config), encoding="utf-8")
    first, *rest = texts
    toc = {"format": "jb-book", "root": first} | ({"chapters": [{"file": name} for name in rest]} if rest else {})
    (root / "_toc.yml").write_text(yaml.safe_dump(toc), encoding="utf-8")
    book = Book(root)
    for name, text in texts.items():
        book.write(name, text)
    return book


def copy_of_the_book(root: Path) -> Book:
    """Copy the real book with all that its pages depend on; its kernels import the copy of the package."""
    root.mkdir(parents=True)
    for name in ("_config.yml", "_toc.yml", "requirements.txt"):
        shutil.copy(ROOT / name, root / name)
    for name in ("book", "src", "data"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info", "_build"))
    env = {"PYTHONPATH": f"{root / 'book' / '_ext'}{os.pathsep}{root / 'src'}", "SOURCE_DATE_EPOCH": EPOCH}
    return Book(root, env)


def page_names() -> list[str]:
    """Return the pages of the book, as their addresses."""
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    return [f"{name}.html" for name in pages(toc)]
