"""Each guard is shown its fault and goes red: the build fails, and the message names the page and what to do."""

import pytest

from books import CODE_PAGE, small_book
from losslab_book import guards

CELL = CODE_PAGE + "# A page\n\n```{code-cell} ipython3\n%s\n```\n"
FIGURE = "from losslab.figures import GhostDocuments\n\nclass Other(GhostDocuments):\n    %s\n\nOther()"

# name of the page: (its text, what the message must say)
FAULTS = {
    "slider": (CELL % "import ipywidgets\n\nipywidgets.IntSlider()", ["IntSlider", "dead on a static page"]),
    # What interact() builds, less its output capture, in which nbclient can hang (jupyter/nbclient#312).
    "interact": (
        CELL % "import ipywidgets\n\nipywidgets.VBox([ipywidgets.IntSlider()])",
        ["IntSlider", "VBox", "dead"],
    ),
    "output": (CELL % "import ipywidgets\n\nipywidgets.Output()", ["Output", "dead on a static page"]),
    "stranger": (
        CELL % "import anywidget\n\nclass W(anywidget.AnyWidget):\n    _esm = 'export default {}'\n\nW()",
        ["Any", "dead on a static page"],
    ),
    "form": (
        CELL % "from IPython.display import HTML\n\nHTML('<button>Press</button>')",
        ["HTML output holds a form control"],
    ),
    "script": (
        '# A page\n\n<script src="https://cdn.invalid/x.js"></script>\n',
        ["https://cdn.invalid/x.js", "another host"],
    ),
    "inline": ('# A page\n\n<script>import("https://cdn.invalid/y.mjs")</script>\n', ["https://cdn.invalid/y.mjs"]),
    "sheet": (
        '# A page\n\n<link rel="stylesheet" href="//cdn.invalid/x.css">\n',
        ["//cdn.invalid/x.css", "another host"],
    ),
    "font": (
        "# A page\n\n<style>@font-face { font-family: x; src: url('https://cdn.invalid/x.woff2'); }</style>\n",
        ["https://cdn.invalid/x.woff2", "another host"],
    ),
    "import": ('# A page\n\n<style>@import "https://cdn.invalid/z.css";</style>\n', ["https://cdn.invalid/z.css"]),
    "preconnect": (
        '# A page\n\n<link rel="preconnect" href="https://cdn.invalid">\n',
        ["preconnect", "https://cdn.invalid"],
    ),
    "frame": (
        '# A page\n\n<iframe src="https://cdn.invalid/f" title="A frame"></iframe>\n',
        ["iframe", "another host"],
    ),
    "picture": ('# A page\n\n<img src="https://cdn.invalid/p.png" alt="A picture">\n', ["img loads", "another host"]),
    "style": (
        '# A page\n\n<p style="background: url(https://cdn.invalid/b.png)">A text</p>\n',
        ["style attribute loads"],
    ),
    "missing": ('# A page\n\n<img src="nowhere.png" alt="A picture">\n', ["nowhere.png", "not in the site"]),
    "plot": (CELL % "import matplotlib.pyplot as plt\n\n_ = plt.plot([1, 2])", ["has no text alternative", "alt"]),
    "unsaid": ('# A page\n\n<img src="_static/copy-button.svg">\n', ["copy-button.svg", "has no text alternative"]),
    "silent": (CELL % (FIGURE % "def describe(self): return ''"), ["ghosts", "no text description"]),
    "unnamed": (CELL % (FIGURE % "TITLE = ''"), ["ghosts", "no title"]),
    "address": (CELL % "object()", ["memory address"]),
    "formula": ("# A page\n\nA formula: $\\nosuchmacro{x}$.\n", ["\\nosuchmacro"]),
    "syntax": ("# A page\n\nA formula: $\\frac{1}$.\n", ["KaTeX cannot set a formula", "ParseError"]),
}


@pytest.fixture(scope="module")
def faulty(tmp_path_factory):
    """One book with one fault a page."""
    texts = {"index": "# A book\n\nA [link elsewhere](https://elsewhere.invalid/) is fine.\n"}
    book = small_book(tmp_path_factory.mktemp("faulty"), texts | {name: text for name, (text, _) in FAULTS.items()})
    book.result = book.build()
    return book


@pytest.mark.parametrize("name", FAULTS)
def test_guard_goes_red(faulty, name):
    assert faulty.result.code != 0
    lines = [line for line in faulty.result.log.splitlines() if line.strip().startswith(f"{name}.md:")]
    assert lines, f"no fault named for {name}.md in:\n{faulty.result.log[-3000:]}"
    for words in FAULTS[name][1]:
        assert any(words in line for line in lines), f"{words!r} is not in {lines}"


def test_nothing_else_is_red(faulty):
    log = faulty.result.log
    named = {
        line.strip().split(".md")[0] for line in log[log.index("not fit to publish") :].splitlines() if ".md:" in line
    }
    assert named == set(FAULTS)


def test_a_failed_build_leaves_nothing_in_place(faulty):
    assert not faulty.html.exists()
    assert "no earlier book" in faulty.result.log


def test_a_cell_that_raises_stops_the_build_and_the_last_good_book_stays(tmp_path):
    book = small_book(tmp_path, {"index": "# A book\n\nThe good one.\n", "code": CELL % "1 + 1"})
    assert book.build().code == 0
    good = book.read("index.html")
    book.write("index", "# A book\n\nThe bad one.\n")
    book.write("code", CELL % "1 / 0")
    broken = book.build()
    assert broken.code != 0
    assert "ZeroDivisionError" in broken.log
    assert "code.md" in broken.log
    assert "still holds the last good book" in broken.log
    assert book.read("index.html") == good
    book.write("code", CELL % "1 + 2")
    assert book.build().code == 0
    assert "The bad one." in book.read("index.html")


def test_a_warning_fails_the_build(tmp_path):
    book = small_book(tmp_path, {"index": "# A book\n\nSee {doc}`nowhere`.\n"})
    result = book.build()
    assert result.code != 0
    assert "nowhere" in result.log


@pytest.mark.parametrize(
    ("css", "addresses"),
    [
        ("a { background: url(x.png) }", ["x.png"]),
        ("a { background: URL( 'https://a.invalid/x.png' ) }", ["https://a.invalid/x.png"]),
        ('@import "b.css"; /* url(c.png) */', ["b.css"]),
        ("a { color: red }", []),
    ],
)
def test_addresses_in_style_sheets(css, addresses):
    assert list(guards.css_addresses(css)) == addresses


def test_what_is_kept_of_pages_hides_nothing_from_the_next_build(tmp_path, monkeypatch):
    """The same text is read once; a text that has changed is read again, and a page that is gone is forgotten."""
    fed = []
    feed = guards._Page.feed
    monkeypatch.setattr(guards._Page, "feed", lambda page, text: (fed.append(text), feed(page, text)))
    path, bad, good = tmp_path / "kept.json", b'<img src="//a.example/x.png">', b'<img src="x.png" alt="x">'
    for text, times in ((bad, 1), (bad, 1), (good, 2), (bad, 3)):
        with guards._kept(path) as find:
            found = find(text)
        assert [a for _, a in found["loads"]] == ["//a.example/x.png" if text == bad else "x.png"]
        assert len(fed) == times
    path.write_text("damaged", encoding="utf-8")
    with guards._kept(path) as find:
        assert find(bad)["pictures"] == [{"src": "//a.example/x.png"}]
