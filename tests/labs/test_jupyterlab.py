"""A lab in JupyterLab, in a real browser: all cells run, and the live cell is driven by keyboard.

VS Code and Colab cannot be started here: `test_notebooks.py` shows that the outputs are of the kinds they display, and
`test_colab.py` runs a lab beside Colab's own ipywidgets.
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

from losslab.labs.release import make_copy

pytestmark = pytest.mark.xdist_group("lab-infonce")


@pytest.fixture(scope="module")
def server(tmp_path_factory, labs_folder):
    """A JupyterLab with the solved notebook; and closes it and its kernels at the end."""
    home, work = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("work")
    (work / "solved.ipynb").write_bytes(make_copy(labs_folder / "infonce", solved=True))
    (home / "config" / "labconfig").mkdir(parents=True)
    quiet = {"disabledExtensions": {"@jupyterlab/apputils-extension:announcements": True}}  # it would ask another host
    (home / "config" / "labconfig" / "page_config.json").write_text(json.dumps(quiet), encoding="utf-8")
    settings = home / "config" / "lab" / "user-settings" / "@jupyterlab" / "notebook-extension"
    settings.mkdir(parents=True)  # all cells are in the page, those out of sight too
    (settings / "tracker.jupyterlab-settings").write_text('{"windowingMode": "none"}', encoding="utf-8")
    with closing(socket.socket()) as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
    token, log = secrets.token_hex(8), home / "log"
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
        process = subprocess.Popen(
            [sys.executable, "-m", "jupyterlab", "--no-browser", *(f"--{k}={v}" for k, v in options.items())],
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
                if process.poll() is not None or time.monotonic() > deadline:
                    pytest.fail("JupyterLab did not start:\n" + log.read_text(encoding="utf-8")[-3000:])
                time.sleep(0.1)

        def wait_for_kernel():
            for _ in range(600):
                asked = f"http://127.0.0.1:{port}/api/kernels?token={token}"
                kernels = json.load(urllib.request.urlopen(asked, timeout=10))
                used = [kernel for kernel in kernels if kernel["connections"]]
                if used and all(kernel["execution_state"] == "idle" for kernel in used):
                    return
                time.sleep(0.1)

        here = f"http://127.0.0.1:{port}/lab/tree"
        yield SimpleNamespace(
            address=lambda name: f"{here}/{name}.ipynb?token={token}&reset", wait_for_kernel=wait_for_kernel
        )
    finally:
        process.terminate()
        process.wait(30)


@pytest.fixture
def opened(server, browser):
    """Open a notebook and run all of its cells."""
    pages = []

    def run_all(name):
        page = browser.new_page(viewport={"width": 1280, "height": 1200})
        pages.append(page)
        asked, errors = [], []
        page.on("request", lambda request: asked.append(request.url))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(server.address(name))
        page.locator(".jp-Notebook .jp-CodeCell .cm-content").first.wait_for(timeout=60_000)
        page.locator(".jp-Toolbar-kernelName", has_text="Python 3").wait_for(timeout=60_000)
        page.wait_for_selector('.jp-Notebook-ExecutionIndicator[data-status="idle"]', timeout=60_000)
        server.wait_for_kernel()
        said = page.locator(".jp-OutputArea-output", has_text="Lab infonce: losslab")
        for patience in (20_000, 60_000):  # a click that comes before the kernel is there only brings up a dialog
            page.get_by_role("menuitem", name="Run", exact=True).click()
            page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
            try:
                said.wait_for(timeout=patience)
                break
            except LateError:
                page.keyboard.press("Escape")
        return SimpleNamespace(page=page, asked=asked, errors=errors)

    yield run_all
    for page in pages:
        page.close()


def test_live_cell_is_driven_by_keyboard_in_jupyterlab(opened):
    lab = opened("solved")
    page = lab.page
    image = page.locator('.widget-html img[alt^="docstrings"]')
    image.wait_for(timeout=120_000)
    assert "at a width of 64" in image.get_attribute("alt")
    for label in ("batch width", "temperature", "embeddings"):
        assert page.locator(".widget-label", has_text=label).is_visible()
    row = page.locator(".widget-hslider", has=page.locator(".widget-label", has_text="batch width"))
    assert row.locator(".widget-readout").inner_text() == "64"
    handle = row.locator("[role=slider]")
    handle.focus()
    page.keyboard.press("ArrowRight")
    page.locator('.widget-html img[alt*="at a width of 128"]').wait_for(timeout=30_000)
    assert row.locator(".widget-readout").inner_text() == "128"
    assert "ln 128 is 4.852" in page.locator(".widget-html pre").inner_text()
    page.get_by_label("embeddings").select_option("random directions")
    page.locator('.widget-html img[alt^="random directions"][alt*="at a width of 128"]').wait_for(timeout=30_000)
    first = page.locator(".jp-Notebook .jp-CodeCell .cm-content").first  # locked: it cannot be typed into
    assert first.get_attribute("contenteditable") == "false" or first.get_attribute("aria-readonly") == "true"
    here = ("http://127.0.0.1:", "blob:http://127.0.0.1:", "data:")
    assert [url for url in lab.asked if not url.startswith(here)] == []
    assert lab.errors == []
