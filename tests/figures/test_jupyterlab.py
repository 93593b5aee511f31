"""The same figure with a kernel: JupyterLab, in a real browser, with its traits in step with Python both ways.

VS Code and Colab cannot be started here. They run the same module by the same protocol, anywidget's: a default export
with `render({model, el})`, and a model with `get`, `set`, `save_changes`, `on` and `off`. That the module asks its host
for nothing more is shown in `test_live.py`; what those hosts do beyond the protocol is not covered.
"""

import json
import os
import secrets
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import closing
from types import SimpleNamespace

import pytest
from playwright.sync_api import TimeoutError as LateError

FIRST_CELL = """\
import ipywidgets
from losslab.figures import GhostDocuments
figure = GhostDocuments(width=4)
heard = []
figure.observe(lambda change: heard.append(change.new), "width")
ipywidgets.interact(lambda mask: figure.set_trait("fixed", mask), mask=False)
figure
"""


def free_port():
    with closing(socket.socket()) as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """A JupyterLab with one notebook; yields its address, and closes it and its kernels at the end."""
    home, work = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("work")
    cell = {
        "cell_type": "code",
        "id": "a",
        "source": FIRST_CELL,
        "metadata": {},
        "outputs": [],
        "execution_count": None,
    }
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = {"cells": [cell], "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    (work / "figure.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    (home / "config" / "labconfig").mkdir(parents=True)
    quiet = {"disabledExtensions": {"@jupyterlab/apputils-extension:announcements": True}}  # it would ask another host
    (home / "config" / "labconfig" / "page_config.json").write_text(json.dumps(quiet), encoding="utf-8")

    port, token, log = free_port(), secrets.token_hex(8), home / "log"
    folders = {f"JUPYTER_{name.upper()}_DIR": str(home / name) for name in ("config", "data", "runtime")}
    options = {
        "ServerApp.ip": "127.0.0.1",
        "ServerApp.port": port,
        "ServerApp.root_dir": work,
        "ServerApp.allow_root": True,
        "IdentityProvider.token": token,
        "LabApp.extension_manager": "readonly",
    }
    with log.open("w") as out:
        server = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "jupyterlab",
                "--no-browser",
                *(f"--{key}={value}" for key, value in options.items()),
            ],
            env={**os.environ, **folders, "IPYTHONDIR": str(home / "ipython")},
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/api?token={token}", timeout=2).close()
                break
            except OSError:
                if server.poll() is not None or time.monotonic() > deadline:
                    pytest.fail("JupyterLab did not start:\n" + log.read_text(encoding="utf-8")[-3000:])
                time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/lab/tree/figure.ipynb?token={token}&reset"
    finally:
        server.terminate()
        server.wait(30)


def run_cell(page, code):
    """Type code into the empty cell at the end, run it, and return what it printed."""
    done = secrets.token_hex(4)
    page.locator(".jp-Notebook .jp-CodeCell .cm-content").last.click()
    page.keyboard.insert_text(f"{code}\nprint('{done[:4]}' '{done[4:]}')")
    page.keyboard.press("Shift+Enter")
    output = page.locator(".jp-OutputArea-output").filter(has_text=done).last
    output.wait_for(timeout=30_000)
    return output.inner_text().replace(done, "").strip()


@pytest.fixture(scope="module")
def notebook(lab, browser):
    """The notebook's page, with the figure that its first cell shows."""
    page = browser.new_page(viewport={"width": 1280, "height": 1500})
    asked, errors = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(lab)
    page.locator(".jp-Notebook .jp-CodeCell .cm-content").first.click(timeout=30_000)
    page.wait_for_selector('.jp-Notebook-ExecutionIndicator[data-status="idle"]', timeout=30_000)
    page.keyboard.press("Shift+Enter")
    page.wait_for_selector(".ll-fig svg text", timeout=30_000)
    yield SimpleNamespace(page=page, asked=asked, errors=errors, run=lambda code: run_cell(page, code))
    page.close()


def says(page, words):
    """Wait until the live sentence holds these words."""
    try:
        page.wait_for_function("words => document.querySelector('.ll-live').textContent.includes(words)", arg=words)
    except LateError:
        pytest.fail(f"{words!r} was awaited, the page says: {page.text_content('.ll-live')}")


def python_says(notebook, code, words):
    """Run code until it prints these words: what the page changed may still be on its way."""
    for _ in range(10):
        printed = notebook.run(code)
        if printed == words:
            return
    pytest.fail(f"{words!r} was awaited, Python says: {printed}")


def test_figure_stands_in_the_notebook(notebook):
    page = notebook.page
    says(page, "Padded to 4")
    box = page.locator(".ll-fig").bounding_box()
    assert 500 < box["width"] <= 760
    assert page.locator(".ll-fig svg[role=img]").bounding_box()["height"] > 400
    # Text was measured in its real font, though JupyterLab puts the figure into the page only after it has rendered it.
    number, beside = (page.locator(f'[data-key="{key}"]').bounding_box() for key in ("loss", "loss-note"))
    assert number["x"] + number["width"] < beside["x"]


def test_keys_and_mouse_in_the_page_reach_python(notebook):
    page = notebook.page
    slider = page.get_by_label("The other query’s list")
    slider.focus()
    for key in ("ArrowRight", "ArrowRight", "End", "ArrowLeft"):
        page.keyboard.press(key)
    says(page, "Padded to 11")
    # ipywidgets sends the first change at once and then only the latest: Python hears the ends, not every step.
    python_says(notebook, "print(figure.width, heard[0], heard[-1], set(heard) <= {5, 6, 12, 11})", "11 5 11 True")

    box = slider.bounding_box()
    y, left, right = box["y"] + box["height"] / 2, box["x"] + 8, box["x"] + box["width"] - 8
    page.mouse.move(left + 0.9 * (right - left), y)
    page.mouse.down()
    page.mouse.move(left + 0.1 * (right - left), y, steps=8)
    page.mouse.up()
    says(page, "Padded to 3")
    python_says(notebook, "print(figure.width, figure.describe()[:11])", "3 Padded to 3")


def test_python_reaches_the_page(notebook):
    page = notebook.page
    notebook.run("figure.width = 6; figure.fixed = False; figure.logit_b = 0.3")
    says(page, "the loss reads 2.163 instead of 0.263")
    assert page.get_by_label("The other query’s list").input_value() == "6"
    said = page.text_content(".ll-live")
    assert notebook.run("print(figure.describe())").split() == said.split()


def test_jslink_and_interact_drive_it(notebook):
    page = notebook.page
    # The link is made here and not before: whenever the page gets round to it, it carries the slider's value over.
    notebook.run(
        "slider = ipywidgets.IntSlider(value=7, min=2, max=12)\n"
        'link = ipywidgets.jslink((slider, "value"), (figure, "width"))'
    )
    says(page, "Padded to 7")
    notebook.run("slider.value = 9")
    says(page, "Padded to 9")
    python_says(notebook, "print(slider.value, figure.width)", "9 9")
    page.get_by_role("checkbox", name="mask").check()
    says(page, "Padded to 9, masked before the sum")
    assert page.get_by_label("masked before the sum (fixed)").is_checked()


def test_a_value_out_of_range_is_refused_in_python(notebook):
    notebook.run("figure.width = 9")
    error = notebook.run("try:\n    figure.width = 13\nexcept ValueError as error:\n    print(error)")
    assert error == "GhostDocuments: width must be an int from 2 to 12, not 13"
    says(notebook.page, "Padded to 9")


def test_theme_of_the_notebook_is_followed(notebook):
    page = notebook.page
    colour = "getComputedStyle(document.querySelector('.ll-fig')).color"
    light = page.evaluate(colour)
    page.evaluate("document.body.dataset.jpThemeLight = 'false'")
    dark = page.evaluate(colour)
    page.evaluate("document.body.dataset.jpThemeLight = 'true'")
    assert (light, dark) == ("rgb(34, 40, 50)", "rgb(206, 214, 221)")


def test_two_views_of_one_figure_move_together(notebook):
    page = notebook.page
    notebook.run("figure.fixed = False; display(figure)")
    page.wait_for_function("document.querySelectorAll('.ll-fig svg[role=img] text').length > 60")
    page.get_by_label("The other query’s list").last.focus()
    page.keyboard.press("Home")
    page.wait_for_function(
        "[...document.querySelectorAll('.ll-live[aria-live]')].every((p) => p.textContent.includes('equal length'))"
    )
    ids = page.evaluate("[...document.querySelectorAll('.ll-fig [id]')].map(node => node.id)")
    assert len(ids) == len(set(ids)) > 4


def test_no_other_host_was_asked_and_nothing_failed(notebook):
    here = ("http://127.0.0.1:", "blob:http://127.0.0.1:", "data:")
    assert [url for url in notebook.asked if not url.startswith(here)] == []
    assert notebook.errors == []


def test_the_score_matrix_has_its_worker_there(notebook):
    """A worker made from a text, under JupyterLab's own rules; and what a source allows is settled on both sides."""
    page = notebook.page
    others = {worker.url for worker in page.workers}
    notebook.run(
        "import numpy; from losslab.figures import ScoreMatrix; r = numpy.random.default_rng(0); "
        "matrix = ScoreMatrix(r.normal(size=(16, 8)), r.normal(size=(16, 8))); display(matrix)"
    )
    shown = "(start) => document.querySelector('.ll-canvas')?.dataset.shows?.startsWith(start)"
    page.wait_for_function(shown, arg="real 16 8 0.05")
    assert [url[:5] for url in {worker.url for worker in page.workers} - others] == ["blob:"]
    notebook.run("matrix.source = 'random'; matrix.width = 1024; matrix.row = 700")
    page.wait_for_function(shown, arg="random 1024 8 0.05")
    page.get_by_label("a real batch").check()
    python_says(notebook, "print(matrix.source, matrix.width, matrix.row)", "real 16 16")
    page.wait_for_function(shown, arg="real 16 8 0.05")
    assert notebook.errors == []
