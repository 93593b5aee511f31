"""Builds: fast enough, the same bytes twice, fresh after every edit, and links from one setting."""

import importlib.metadata
import importlib.util
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import types
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat
import pytest
import yaml
from IPython.core.inputtransformer2 import TransformerManager

from books import CODE_PAGE, EPOCH, ROOT, copy_of_the_book, import_time, page_names, small_book
from losslab_book import cache, links, notebooks, prose

COLD, EDIT = 90, 3  # seconds on two quiet cores
# Seconds of processor that importing sentence-transformers takes there, which is work of the same kind. Shared machines
# were seen to take 1.6 times as long for the same build a few minutes later, so it is measured anew in the same run.
IMPORT = 6.4


def files(folder) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_second_cold_build_gives_the_same_bytes(real, tmp_path):
    again = copy_of_the_book(tmp_path / "elsewhere")
    result = again.build()
    assert result.code == 0, result.log[-3000:]
    one, two = files(real.site), files(again.html)
    assert one.keys() == two.keys()
    apart = {"book/status.html"}  # it tells how long this build took
    assert [name for name in one if name not in apart and one[name] != two[name]] == []


@pytest.mark.timing
def test_build_times(tmp_path, measure, request):
    """A cold build and a prose edit, in seconds of the machine that the bounds are for: see `IMPORT`."""
    book = copy_of_the_book(tmp_path / "book")
    before = import_time()
    cold = book.build()
    assert cold.code == 0, cold.log[-3000:]
    slow = max(1, (before + import_time()) / 2 / IMPORT)

    page = book.root / "book" / "padding.md"
    text = page.read_text(encoding="utf-8")
    edits = []
    for word in ("first", "second"):
        page.write_text(f"{text}\nThe {word} edit.\n", encoding="utf-8")
        edits.append(book.build())
        assert f"The {word} edit." in book.read("book/padding.html")
    edit = min(edits, key=lambda result: result.quiet)

    for name, result in (("cold build", cold), ("prose edit", edit)):
        measure(request.node, f"{name}: {result.seconds:.1f} s ({result.processor:.1f} s of processor)")
    measure(request.node, f"this machine, just then: {slow:.2f} times as slow as a quiet one")
    assert cold.quiet <= COLD * slow
    assert edit.quiet <= EDIT * slow


def test_status_page_tells_versions_and_times(real):
    html = real.read("book/status.html")
    for name in ("torch", "sentence-transformers", "jupyter-book", "losslab"):
        assert re.search(
            rf"<td><p>{name}</p></td>\s*<td><p>{re.escape(importlib.metadata.version(name))}</p></td>", html
        )
    for name in page_names():
        if name != "book/status.html":
            assert f'href="{name.removeprefix("book/")}"' in html
    assert re.search(r"<td><p>\d+\.\d s</p></td>", html)
    assert "14 November 2023" in html, f"SOURCE_DATE_EPOCH={EPOCH}"


def test_site_holds_no_dead_weight(real):
    names = list(files(real.site))
    assert not [
        n for n in names if n.endswith((".map", ".ttf", ".woff")) or "fontawesome.js" in n or "thebe" in n.lower()
    ]
    assert not [n for n in names if n.startswith((".doctrees", "reports")) or n == ".buildinfo"]


# --- small books ---


@pytest.fixture(scope="module")
def watched(tmp_path_factory):
    """A book with a package of its own: a copy of losslab's figures that the test may edit."""
    root = tmp_path_factory.mktemp("watched")
    code = "import losslab\nfrom losslab.figures import GhostDocuments\n\nprint(losslab.WORD)\nGhostDocuments()"
    book = small_book(
        root,
        {"index": "# A book\n\nA text.\n", "code": CODE_PAGE + f"# Code\n\n```{{code-cell}} ipython3\n{code}\n```\n"},
    )
    shutil.copytree(ROOT / "src" / "losslab", root / "src" / "losslab", ignore=shutil.ignore_patterns("__pycache__"))
    (root / "src" / "losslab" / "__init__.py").write_text('WORD = "before"\n', encoding="utf-8")
    shutil.copytree(ROOT / "book" / "_ext", root / "ext", ignore=shutil.ignore_patterns("__pycache__"))
    config = yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))
    config["sphinx"]["local_extensions"] = {"losslab_book": "ext"}
    (root / "_config.yml").write_text(yaml.safe_dump(config), encoding="utf-8")
    book.env = {"PYTHONPATH": f"{root / 'ext'}:{root / 'src'}"}
    result = book.build()
    assert result.code == 0, result.log[-3000:]
    assert ">before" in book.read("code.html")
    return book


def test_an_edit_to_the_package_refreshes_the_pages(watched):
    (watched.root / "src" / "losslab" / "__init__.py").write_text('WORD = "after"\n', encoding="utf-8")
    assert watched.build().code == 0
    assert ">after" in watched.read("code.html")


def test_an_edit_to_its_javascript_refreshes_the_pages(watched):
    before = re.search(r"figures\.[0-9a-f]{10}\.js", watched.read("code.html"))[0]
    script = watched.root / "src" / "losslab" / "figures" / "js" / "ghosts.js"
    script.write_text(script.read_text(encoding="utf-8") + "\nglobalThis.edited = true;\n", encoding="utf-8")
    assert watched.build().code == 0
    after = re.search(r"figures\.[0-9a-f]{10}\.js", watched.read("code.html"))[0]
    folder = watched.html / "_static" / "losslab"
    assert after != before
    assert "globalThis.edited" in (folder / after).read_text(encoding="utf-8")
    assert not (folder / before).exists()


def test_a_changed_static_file_is_copied_although_no_page_changed(watched):
    sheet = watched.root / "ext" / "losslab_book" / "static" / "book.css"
    sheet.write_text(sheet.read_text(encoding="utf-8") + "\n.edited { color: red }\n", encoding="utf-8")
    result = watched.build()
    assert result.code == 0
    name = re.search(r"losslab/book\.[0-9a-f]{10}\.css", watched.read("index.html"))[0]
    assert ".edited" in (watched.html / "_static" / name).read_text(encoding="utf-8")
    assert "Executed notebook" not in result.log


def test_nothing_runs_again_when_nothing_changed(watched):
    result = watched.build()
    assert result.code == 0
    assert "Executed notebook" not in result.log


def test_a_removed_page_leaves_the_site(watched):
    (watched.root / "_toc.yml").write_text("format: jb-book\nroot: index\n", encoding="utf-8")
    assert watched.build().code == 0
    assert not (watched.html / "code.html").exists()


def test_jupyter_book_itself_builds_the_same_pages(tmp_path):
    book = small_book(tmp_path, {"index": "# A small book\n\nA text.\n"})
    command = str(Path(sys.executable).with_name("jupyter-book"))
    result = book.build(command, "build", str(tmp_path), "-W", "-n", "--keep-going")
    assert result.code == 0, result.log[-3000:]
    direct = book.read("index.html")
    assert book.build().code == 0
    assert book.read("index.html") == direct


def test_fingerprint_sees_names_and_contents(tmp_path):
    (tmp_path / "a.txt").write_text("1", encoding="utf-8")
    one = cache.fingerprint([tmp_path])
    (tmp_path / "a.txt").rename(tmp_path / "b.txt")
    two = cache.fingerprint([tmp_path])
    (tmp_path / "b.txt").write_text("2", encoding="utf-8")
    assert len({one, two, cache.fingerprint([tmp_path]), cache.fingerprint([tmp_path / "none"])}) == 4


# --- links ---


def test_no_links_while_no_repository_is_set(real):
    if yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))["repository"]["url"]:
        pytest.skip("a repository is set")
    for name in page_names():
        html = real.read(name)
        assert not re.search(r"<[^>]*colab", html, re.IGNORECASE), name  # the word may stand in the text
        assert "source-repository-button" not in html


def test_one_setting_gives_repository_and_colab_links(tmp_path, reader):
    url = "https://github.com/someone/losslab"
    code = CODE_PAGE + "# Code\n\n```{code-cell} ipython3\n1 + 1\n```\n"
    book = small_book(
        tmp_path, {"index": "# A book\n\nA text.\n", "code": code}, repository={"url": url, "branch": "main"}
    )
    result = book.build()
    assert result.code == 0, result.log[-3000:]
    page = reader().open((book.html / "code.html").as_uri())
    colab = page.locator("a.btn-colab-button")
    assert (
        colab.get_attribute("href")
        == f"https://colab.research.google.com/github/someone/losslab/blob/{links.BRANCH}/code.ipynb"
    )
    assert page.locator("a.btn-source-repository-button").get_attribute("href") == url
    assert "colab" not in book.read("index.html").lower(), "a page without code has nothing to run"


def test_notebooks_for_colab(tmp_path):
    url = "https://github.com/someone/losslab"
    texts = {"index": "# A\n\nb\n", "code": CODE_PAGE + "# C\n\n```{code-cell} ipython3\n1\n```\n"}
    book = small_book(tmp_path / "book", texts, repository={"url": url, "branch": "main"})
    first = notebooks.write_all(book.root, tmp_path / "one")
    notebooks.write_all(book.root, tmp_path / "two")
    assert [p.relative_to(tmp_path / "one").as_posix() for p in first] == ["code.ipynb"]
    assert files(tmp_path / "one") == files(tmp_path / "two")
    made = nbformat.read(first[0], as_version=4)
    nbformat.validate(made)
    assert f"--branch main {url} " in made.cells[0].source
    assert all(not cell.get("outputs") for cell in made.cells)


def test_every_chapter_can_be_downloaded_as_a_notebook(real):
    sources = real.site / "_sources" / "book"
    made = nbformat.read(sources / "padding.ipynb", as_version=4)
    nbformat.validate(made)
    assert "_sources/book/padding.ipynb" in real.read("book/padding.html")
    assert not (sources / "status.ipynb").exists()
    if not yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))["repository"]["url"]:
        assert not any("%pip install" in cell.source for cell in made.cells), "nowhere to install from yet"


@pytest.mark.parametrize("missing", [True, False])
def test_first_cell_installs_where_losslab_is_missing_and_pins_torch_and_numpy(monkeypatch, missing):
    """What pip is asked for holds the versions that are there, so it cannot move them."""
    commands = []
    shell = types.SimpleNamespace(
        system=commands.append, run_line_magic=lambda name, line: commands.append(f"%{name} {line}")
    )
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if missing and name == "losslab" else find(name))
    cell = notebooks.first_cell("https://github.com/someone/losslab").source
    space = {"get_ipython": lambda: shell}
    exec(TransformerManager().transform_cell(cell), space)
    if not missing:
        assert commands == []
        return
    clone, pip, cd = commands
    assert clone.startswith("git clone")
    assert "https://github.com/someone/losslab losslab-book" in clone
    asked = pip.format(kept=space["kept"]).split()
    for name in ("torch", "numpy"):
        assert f"{name}=={importlib.metadata.version(name)}" in asked
    assert cd == "%cd losslab-book/book"


def test_first_cell_stands_in_for_glue(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    monkeypatch.delitem(sys.modules, "myst_nb", raising=False)
    try:
        exec(notebooks.first_cell("").source, {})
        from myst_nb import glue

        assert glue("name", 1.5, display=False) is None
    finally:
        sys.modules.pop("myst_nb", None)


# --- prose, serving, deploying ---


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("It is 0.2633 here.", ["0.2633"]),
        ("It is {glue:text}`x:.4f` here.", []),
        ("Published as {published}`0.713 (Kusupati et al. 2022)`.", []),
        ("Fixed in 5.7.0, and 17 documents.", []),
        ("About 12% or 1e-16.", ["12%", "1e-16"]),
        ("Code `0.5` and\n\n```python\nx = 0.25\n```\n\nthen 0.75.", ["0.75"]),
        (":::{note} A 1.5\n:width: 2.5\ninside 3.5\n:::\nafter 4.5", ["1.5", "3.5", "4.5"]),
        ("A formula $x = 0.5$ too.", ["0.5"]),
        ("% a comment with 0.5\n\n<!-- 0.5 -->", []),
        ("[link](https://a.invalid/1.5) and https://a.invalid/2.5", []),
        ("See arXiv:1807.03748, where it is 0.5.", ["0.5"]),
    ],
)
def test_typed_numbers_are_found(tmp_path, text, numbers):
    page = tmp_path / "page.md"
    page.write_text(f"# A page\n\n{text}\n", encoding="utf-8")
    found = prose.typed_numbers(page)
    assert [typed.number for typed in found] == numbers
    assert all(text.split("\n")[0][:5] in str(t) or "page.md" in str(t) for t in found)


def test_front_matter_allows_numbers_that_are_no_results(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        '---\nlosslab: {numbers: {"3.11": "the oldest Python"}}\n---\n# P\n\n3.11 and 3.12\n', encoding="utf-8"
    )
    assert [t.number for t in prose.typed_numbers(page)] == ["3.12"]
    page.write_text('---\nlosslab: {numbers: {"3.11": ""}}\n---\n# P\n', encoding="utf-8")
    with pytest.raises(ValueError, match="reason"):
        prose.typed_numbers(page)


def test_book_is_served_on_a_free_port_and_stops_cleanly(little):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        run = subprocess.Popen(
            [sys.executable, "-m", "losslab_book.build", str(little.root), "--serve", "--port", str(port)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT / "book" / "_ext"), "PYTHONUNBUFFERED": "1"},
        )
        address = ""
        deadline = time.monotonic() + 60
        while not address and time.monotonic() < deadline:
            found = re.search(r"http://127\.0\.0\.1:\d+/", run.stdout.readline())
            address = found[0] if found else ""
    assert address
    assert f":{port}/" not in address
    with urllib.request.urlopen(address, timeout=10) as response:
        assert b"A small book" in response.read() or response.status == 200
    run.send_signal(2)
    assert run.wait(timeout=10) == 0


def test_deploy_needs_everything_and_names_no_registry():
    text = (ROOT / ".github" / "workflows" / "deploy.yml").read_text(encoding="utf-8")
    flow = yaml.safe_load(text)
    jobs = flow["jobs"]
    assert jobs["deploy"]["needs"] == "build"
    steps = [step.get("run", "") + step.get("uses", "") for step in jobs["build"]["steps"]]
    order = [
        next(i for i, s in enumerate(steps) if word in s) for word in (".ci/run", "make html", "upload-pages-artifact")
    ]
    assert order == sorted(order)
    uses = [step["uses"] for job in jobs.values() for step in job["steps"] if "uses" in step]
    assert all(re.search(r"@v\d+$", name) for name in uses)
    assert not re.search(r"https?://", text)  # packages come from wherever the machine's own settings say


def test_state_in_pages_is_json(real):
    for name in page_names():
        for state in re.findall(r'<script type="application/json">(.*?)</script>', real.read(name), re.DOTALL):
            assert json.loads(state)["figure"]


def test_a_second_build_waits_for_the_first(tmp_path):
    """Two builds at once in one folder: both end well, one after the other."""
    code = CODE_PAGE + "# Code\n\n```{code-cell} ipython3\nimport time\n\ntime.sleep(2)\nprint(2)\n```\n"
    book = small_book(tmp_path, {"index": "# A book\n\nA text.\n", "code": code})
    with ThreadPoolExecutor() as pool:
        first, second = pool.submit(book.build), pool.submit(book.build)
    assert [first.result().code, second.result().code] == [0, 0], (
        first.result().log[-1500:] + second.result().log[-1500:]
    )
    assert "Another build is at work" in first.result().log + second.result().log
