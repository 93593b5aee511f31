"""A clean environment made to look like Colab: the first cell installs losslab there and leaves torch and numpy alone.

It has its own Python environment with another numpy than ours and Colab's old ipywidgets, both real; a torch that works
and whose metadata claim another version; and a stand-in for google.colab. Colab itself cannot be started here.
"""

import importlib.metadata
import json
import os
import subprocess
import sys
import venv
from pathlib import Path
from types import SimpleNamespace

import pytest
from packaging.requirements import Requirement

from losslab.labs.first_cell import first_cell

pytestmark = pytest.mark.xdist_group("colab")

TORCH, NUMPY = "2.9.1+cu126", "2.3.5"
#: What Colab has besides, at its own versions: fetched from the package index.
FETCHED = [f"numpy=={NUMPY}", "ipywidgets==7.7.1", "widgetsnbextension==3.6.10", "ipython-genutils==0.2.0"]
COLAB = """\
from pathlib import Path
def enable_custom_widget_manager():
    Path("manager-turned-on").touch()
"""
# Runs a notebook's code in one process, as a kernel would, and says what was found.
RUNNER = """\
import importlib.metadata, json, pathlib, sys
cells = json.loads(pathlib.Path("cells.json").read_text(encoding="utf-8"))
space = {"__name__": "__main__"}
for cell in cells:
    exec(compile(cell, "cell", "exec"), space)
import ipywidgets, numpy, torch
from losslab.corpora import apidocs
print(json.dumps({
    "torch": importlib.metadata.version("torch"), "numpy": numpy.__version__, "ipywidgets": ipywidgets.__version__,
    "losslab": sys.modules["losslab"].__file__, "corpus": str(apidocs.find_folder()),
    "device": str(space["device"]), "torch from": torch.__file__,
}))
"""


def requirements(names):
    """These distributions and all that they need here, without their extras."""
    found, due = {}, list(names)
    while due:
        distribution = importlib.metadata.distribution(due.pop())
        if distribution.name not in found:
            found[distribution.name] = distribution
            needs = [Requirement(need) for need in distribution.requires or []]
            due += [need.name for need in needs if need.marker is None or need.marker.evaluate({"extra": ""})]
    return found


def link(site, distribution):
    """Make a distribution of ours appear in another environment."""
    for top in {Path(file).parts[0] for file in distribution.files or []} - {"..", "__pycache__"}:
        target, place = distribution.locate_file(top), site / top
        if Path(target).exists() and not place.exists():
            place.symlink_to(target)


def stand_in(site, name, version):
    """Metadata of a distribution, without any code."""
    folder = site / f"{name}-{version}.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", encoding="utf-8")
    (folder / "RECORD").touch()
    (folder / "INSTALLER").write_text("pip\n", encoding="utf-8")


@pytest.fixture(scope="module")
def colab(tmp_path_factory):
    """Such an environment; ``run(cells)`` runs a notebook's cells in it, in a folder outside any checkout."""
    root = tmp_path_factory.mktemp("colab")
    venv.create(root / "env", with_pip=False, symlinks=True)
    python = root / "env" / "bin" / "python"
    site = next((root / "env" / "lib").glob("python3*")) / "site-packages"
    ours = requirements(["torch", "matplotlib", "ipykernel", "jupyterlab-widgets", "pip"])
    for name, distribution in ours.items():
        if name.lower() not in ("torch", "numpy"):
            link(site, distribution)
    for package in ("torch", "torchgen", "functorch"):
        (site / package).symlink_to(importlib.metadata.distribution("torch").locate_file(package))
    stand_in(site, "torch", TORCH)
    stand_in(site, "notebook", "6.5.7")
    (site / "google" / "colab").mkdir(parents=True)
    (site / "google" / "colab" / "__init__.py").touch()
    (site / "google" / "colab" / "output.py").write_text(COLAB, encoding="utf-8")
    work = root / "content"
    work.mkdir()
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PIP_", "LOSSLAB"))}
    clean |= {"MPLBACKEND": "agg", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_COMPILE": "1", "HOME": str(root)}
    if "XDG_CACHE_HOME" not in clean:
        clean["XDG_CACHE_HOME"] = str(Path.home() / ".cache")  # wheels fetched before are not fetched again

    def pip(*arguments):
        return subprocess.run([python, "-m", "pip", *arguments], env=clean, capture_output=True, text=True, cwd=work)

    fetched = pip("install", "--quiet", "--no-deps", *FETCHED)
    if fetched.returncode:
        message = f"needs the package index for {', '.join(FETCHED)}: {fetched.stderr[-800:]}"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)

    def run(cells, **more):
        (work / "cells.json").write_text(json.dumps(cells), encoding="utf-8")
        return subprocess.run(
            [python, "-c", RUNNER], env=clean | more, capture_output=True, text=True, cwd=work, timeout=300
        )

    return SimpleNamespace(run=run, site=site, work=work, pip=pip, ours=ours)


def versions(site):
    return {path.name for path in site.glob("*.dist-info")}


def test_without_network_or_address_it_says_what_to_do(colab):
    done = colab.run([first_cell("infonce", "")])
    assert done.returncode == 1
    assert "losslab is not installed in this Python, and this notebook lies in no checkout of it" in done.stderr
    done = colab.run([first_cell("infonce", "losslab")], PIP_NO_INDEX="1")
    assert done.returncode == 1
    assert "losslab could not be installed, see above; without a network it has to be there already" in done.stderr
    assert "losslab" in done.stdout  # pip's own words


def test_first_cell_installs_losslab_and_touches_neither_torch_nor_numpy(colab, wheel, solved_cells):
    before = versions(colab.site)
    assert {f"torch-{TORCH}.dist-info", f"numpy-{NUMPY}.dist-info", "ipywidgets-7.7.1.dist-info"} <= before
    assert importlib.metadata.version("numpy") != NUMPY
    record = (colab.site / f"numpy-{NUMPY}.dist-info" / "RECORD").read_bytes()
    report = colab.work / "report.json"

    # The cell as released where the book has an address, the address here being a wheel of this checkout.
    cells = [first_cell("infonce", f"losslab @ {wheel.as_uri()}"), *solved_cells("infonce")[1:]]
    done = colab.run(cells, PIP_REPORT=str(report))
    assert done.returncode == 0, done.stdout + done.stderr

    installed = {entry["metadata"]["name"].lower() for entry in json.loads(report.read_text())["install"]}
    assert {"losslab", "anywidget", "hypothesis"} <= installed
    assert installed <= {"losslab", "anywidget", "hypothesis", "psygnal", "sortedcontainers"}
    assert versions(colab.site) >= before
    assert (colab.site / f"numpy-{NUMPY}.dist-info" / "RECORD").read_bytes() == record

    said = json.loads(done.stdout.splitlines()[-1])
    assert (said["torch"], said["numpy"], said["ipywidgets"]) == (TORCH, NUMPY, "7.7.1")
    assert said["losslab"].startswith(str(colab.site))
    assert said["corpus"] == str(colab.site.parents[2] / "share" / "losslab" / "data" / "apidocs")
    assert "Colab: live cells are switched on." in done.stdout
    assert (colab.work / "manager-turned-on").exists()
    assert "✗" not in done.stdout
    assert done.stdout.count("✓") >= 5

    # And again without a network, now that losslab is there: pip is not asked.
    (colab.work / "manager-turned-on").unlink()
    guard = "import subprocess\ndef refuse(*a, **k): raise AssertionError('pip was asked')\nsubprocess.run = refuse\n"
    again = colab.run([guard, first_cell("infonce", "")], PIP_NO_INDEX="1")
    assert again.returncode == 0, again.stderr
    assert (colab.work / "manager-turned-on").exists()


def test_in_a_checkout_it_installs_that(tmp_path, monkeypatch):
    """Wherever in it the notebook lies; and torch and numpy are held at the versions they have."""
    (tmp_path / "src" / "losslab" / "labs").mkdir(parents=True)
    (tmp_path / "labs" / "infonce").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "labs" / "infonce")
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "losslab" else find(name))
    asked = []

    def record(command, **_):
        asked.append((command, Path(command[command.index("--constraint") + 1]).read_text()))
        return SimpleNamespace(returncode=0)

    monkeypatch.setattr(subprocess, "run", record)
    exec(first_cell("infonce", "losslab @ git+https://example.org/lab@main"), {})
    ((command, pins),) = asked
    assert command[:4] == [sys.executable, "-m", "pip", "install"]
    assert command[-1] == str(tmp_path.resolve())
    assert pins == "".join(f"{name}=={importlib.metadata.version(name)}\n" for name in ("torch", "numpy"))
