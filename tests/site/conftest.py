"""The built book, a browser to read it in, and small books to break.

Builds cost the most here. The book is built once, cold, in a copy of its own; small books hold a page or two. All of it
runs in one process (`xdist_group`), so that nothing is built twice.
"""

import shutil
import threading
from pathlib import Path

import pytest

from books import CODE_PAGE, copy_of_the_book, small_book
from losslab_book.serve import server


def pytest_collection_modifyitems(items):
    here = Path(__file__).parent
    for item in items:
        if here in Path(item.path).parents:
            item.add_marker(pytest.mark.xdist_group("site"))


@pytest.fixture(scope="session")
def measure():
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
\\mathcal{L} = -\\sum_{i=1}^{n} \\log \\frac{\\exp(s_i)}{\\sum_{j \\ge i} \\exp(s_j)}
\\qquad \\text{with words that go on and on and on}
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
| unbreakable_words | unbreakable_words | unbreakable_words | unbreakable_words | unbreakable_words |
""",
}
