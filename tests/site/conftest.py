"""The built book, a browser to read it in, and small books to break.

Builds cost the most here. The book is built once, cold, in a copy of its own; small books hold a page or two. All of it runs in one
process (`xdist_group`), so that nothing is built twice.
"""

import os
import re
import shutil
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml

from losslab_book.notebooks import pages
from losslab_book.serve import server

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
MEASURED: list[str] = []


def pytest_collection_modifyitems(items):
    here = Path(__file__).parent
    for item in items:
        if here in Path(item.path).parents:
            item.add_marker(pytest.mark.xdist_group("site"))


def pytest_terminal_summary(terminalreporter):
    for report in terminalreporter.getreports("passed") + terminalreporter.getreports("failed"):
        for name, value in report.user_properties:
            if name == "measured":
                terminalreporter.write_line(f"measured: {value}")


@dataclass
class Built:
    """How a build ended."""

    code: int
    log: str
    seconds: float


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
        start = time.perf_counter()
        run = subprocess.run(
            command or [sys.executable, "-m", "losslab_book.build", str(self.root)],
            capture_output=True,
            text=True,
            cwd=self.root,
            env={**os.environ, "PYTHONPATH": str(EXTENSIONS), **self.env},
            timeout=300,
            check=False,
        )
        log = re.sub(r"\x1b\[[\d;]*m", "", run.stdout + run.stderr)
        return Built(run.returncode, log, time.perf_counter() - start)

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
    (root / "_config.yml").write_text(yaml.safe_dump(config), encoding="utf-8")
    first, *rest = texts
    toc = {"format": "jb-book", "root": first, "chapters": [{"file": name} for name in rest]}
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


@pytest.fixture(scope="session")
def measure(request):
    """Print a measured number at the end of the run."""

    def say(node, text: str) -> None:
        node.user_properties.append(("measured", text))

    return say


@pytest.fixture(scope="session")
def real(tmp_path_factory):
    """The real book, built cold; the build's record is `real.first`."""
    book = copy_of_the_book(tmp_path_factory.mktemp("real") / "book")
    book.first = book.build()
    assert book.first.code == 0, book.first.log[-4000:]
    # The pages that the browser tests read, apart from later builds in the same folder.
    book.site = book.root.parent / "published" / "losslab"
    shutil.copytree(book.html, book.site)
    return book


@pytest.fixture(scope="session")
def serving():
    """Serve a folder and return its address."""
    running = []

    def start(folder: Path) -> str:
        http = server(folder)
        threading.Thread(target=http.serve_forever, daemon=True).start()
        running.append(http)
        return f"http://127.0.0.1:{http.server_port}/"

    yield start
    for http in running:
        http.shutdown()


@pytest.fixture(scope="session")
def address(real, serving):
    """Address of the real book, under a path of its own as on a project's pages."""
    return serving(real.site.parent) + real.site.name + "/"


class Reader:
    """A browser page that remembers what went wrong and what was asked for."""

    def __init__(self, browser, **options):
        self.context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        self.page = self.context.new_page()
        self.errors: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda m: self.errors.append(m.text) if m.type == "error" else None)
        self.page.on("pageerror", lambda e: self.errors.append(str(e)))
        self.page.on("request", lambda r: self.requests.append(r.url))
        self.page.on("requestfailed", lambda r: self.errors.append(f"{r.url} failed"))

    def open(self, url: str):
        self.page.goto(url, wait_until="networkidle")
        return self.page


@pytest.fixture
def reader(browser):
    """Open readers of pages; they are closed after the test."""
    readers = []

    def start(**options) -> Reader:
        readers.append(Reader(browser, **options))
        return readers[-1]

    yield start
    for one in readers:
        one.context.close()


@pytest.fixture(scope="session")
def little(tmp_path_factory, serving):
    """A small book with two views of one figure, a plot, formulas and a folded answer; built once."""
    book = small_book(tmp_path_factory.mktemp("little"), LITTLE)
    result = book.build()
    assert result.code == 0, result.log[-4000:]
    book.address = serving(book.html)
    return book


LITTLE = {
    "index": "# A small book\n\nNothing to set here. See {doc}`figures`.\n",
    "figures": CODE_PAGE
    + """\
# Figures

One $x_1$, and a line too long for a phone:

$$
\\mathcal{L} = -\\sum_{i=1}^{n} \\log \\frac{\\exp(s_i)}{\\sum_{j \\ge i} \\exp(s_j)} \\qquad \\text{with words that go on and on and on}
$$ (long)

```{code-cell} ipython3
from losslab.figures import GhostDocuments

figure = GhostDocuments()
figure
```

Again the same one:

```{code-cell} ipython3
figure
```

And another:

```{code-cell} ipython3
GhostDocuments(width=3)
```

```{code-cell} ipython3
:tags: [remove-input]
:mystnb: {image: {alt: A line that rises from nought to one}}

import matplotlib.pyplot as plt

_ = plt.plot([0, 1])
```

:::{admonition} What is $x_1$?
:class: dropdown
It is folded, and {eq}`long` is long.
:::

| a wide table | with many | columns that | do not fit | on a phone at all |
|---|---|---|---|---|
| unbreakable_words_here | unbreakable_words_here | unbreakable_words_here | unbreakable_words_here | unbreakable_words_here |
""",
}
