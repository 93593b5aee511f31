"""The same figure with a kernel: JupyterLab, in a real browser, with its traits in step with Python both ways.

VS Code and Colab cannot be started here. They run the same module by the same protocol (anywidget's: a default export with
`render({model, el})`, a model with get, set, save_changes, on and off), and that protocol is what is tested: the module
uses nothing else of its host, as `test_module_asks_its_host_for_nothing_else` shows.
"""

import json
import os
import re
import secrets
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import closing

import pytest

CELL = """\
import ipywidgets, json, pathlib
from losslab.figures import GhostDocuments
figure = GhostDocuments(width=4)
heard = []
figure.observe(lambda change: heard.append(change.new), "width")
slider = ipywidgets.IntSlider(value=4, min=2, max=12)
ipywidgets.jslink((slider, "value"), (figure, "width"))
fixed = ipywidgets.Checkbox(value=False)
ipywidgets.interact(lambda on: figure.set_trait("fixed", on), on=fixed)
figure
"""


def free_port() -> int:
    with closing(socket.socket()) as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """A JupyterLab with one notebook, closed again at the end; yields its address."""
    home = tmp_path_factory.mktemp("lab")
    cell = {"cell_type": "code", "id": "figure", "source": CELL, "metadata": {}, "outputs": [], "execution_count": None}
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    book = {"cells": [cell], "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    (home / "figure.ipynb").write_text(json.dumps(book), encoding="utf-8")
    port, token = free_port(), secrets.token_hex(8)
    own = {f"JUPYTER_{name}": str(home / name.lower()) for name in ("CONFIG_DIR", "DATA_DIR", "RUNTIME_DIR")}
    command = f"-m jupyterlab --no-browser --allow-root --ip=127.0.0.1 --port={port} --IdentityProvider.token={token}"
    log = (home / "log").open("w")
    server = subprocess.Popen(
        [
            sys.executable,
            *command.split(),
            f"--ServerApp.root_dir={home}",
            "--LabApp.news_url=",
            "--LabApp.extension_manager=readonly",
        ],
        env={**os.environ, **own, "IPYTHONDIR": str(home / "ipython"), "JUPYTER_PLATFORM_DIRS": "0"},
        stdout=log,
        stderr=subprocess.STDOUT,
    )
    try:
        address = f"http://127.0.0.1:{port}/lab/tree/figure.ipynb?token={token}&reset"
        deadline = time.monotonic() + 30
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/api?token={token}", timeout=1).close()
                break
            except OSError:
                assert server.poll() is None and time.monotonic() < deadline, (home / "log").read_text()
                time.sleep(0.1)
        yield address
    finally:
        server.terminate()
        server.wait(20)
        log.close()


@pytest.fixture(scope="module")
def notebook(lab, browser):
    """The notebook, its cell run, its figure drawn."""
    page = browser.new_page(viewport={"width": 1280, "height": 1400})
    page.goto(lab)
    page.wait_for_selector(".jp-Notebook .jp-Cell")
    page.locator(".jp-Notebook .jp-CodeCell .cm-content").first.click()
    page.wait_for_function(
        "document.querySelector('.jp-Notebook-ExecutionIndicator')?.dataset.status === 'idle'", timeout=30_000
    )
    page.keyboard.press("Shift+Enter")
    page.wait_for_selector(".ll-fig svg text", timeout=30_000)
    yield page
    page.close()
