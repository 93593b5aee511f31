"""What the tests of labs share: the labs there are, and each source run once, its live cell driven there."""

import ast
import json
import shutil
import subprocess
import sys
from pathlib import Path

import nbclient
import nbformat
import pytest

from losslab.labs.release import make_copy, names_in, source_of

LABS = Path(__file__).resolve().parents[2] / "labs"
NAMES = names_in(LABS)
NOTEBOOKS = [name for name in NAMES if source_of(LABS / name).name == "lab.md"]


def pytest_generate_tests(metafunc):
    """``lab``: every lab there is; ``notebook_lab``: each that is a notebook. A lab's tests stay in one process."""
    for fixture, names in (("lab", NAMES), ("notebook_lab", NOTEBOOKS)):
        if fixture in metafunc.fixturenames:
            params = [pytest.param(name, marks=pytest.mark.xdist_group(f"lab-{name}")) for name in names]
            metafunc.parametrize(fixture, params)


# Run after the notebook's own cells. Each control is moved to every end and choice it has; the student's functions are
# replaced by ones that count, under the names by which the notebook's cells find them.
DRIVER = """
import gc as _gc, json as _json
import ipywidgets as _widgets
from losslab.labs import Live as _Live

_calls = {name: 0 for name in FUNCTIONS}

def _counted(name, function):
    def call(*arguments, **keywords):
        _calls[name] += 1
        return function(*arguments, **keywords)
    return call

for _name in FUNCTIONS:
    globals()[_name] = _counted(_name, globals()[_name])
_found = []
for _live in [thing for thing in _gc.get_objects() if issubclass(type(thing), _Live)]:
    for _key, _control in _live.controls.items():
        if isinstance(_control, _widgets.Checkbox):
            _values = [not _control.value, _control.value]
        elif hasattr(_control, "options"):
            _values = [_control.options[0], _control.options[-1]]
        else:
            _values = [_control.min, _control.max]
        for _value in _values:
            if _control.value == _value:
                continue
            _before, _seen = dict(_calls), _live.shown.value
            _control.value = _value
            _found.append({
                "control": _key, "value": str(_value), "label": _control.description,
                "called": [n for n in _calls if _calls[n] > _before[n]],
                "changed": _live.shown.value != _seen,
                "failed": _live.shown.value.startswith("<p><strong>"),
                "alt": "<img" not in _live.shown.value or 'alt="' in _live.shown.value,
            })
print(_json.dumps(_found))
"""


@pytest.fixture(scope="session")
def run_source():
    """The source of a lab with its solutions, run from top to bottom, and what its live cell did when it was driven."""
    done = {}

    def run(name):
        if name not in done:
            notebook = nbformat.reads(make_copy(LABS / name, solved=True).decode(), as_version=4)
            functions = [cell.metadata.nbgrader.grade_id for cell in solution_cells(notebook)]
            driver = DRIVER.replace("FUNCTIONS", repr(functions))
            notebook.cells.append(nbformat.v4.new_code_cell(driver))
            where = {"metadata": {"path": str(LABS / name)}}
            nbclient.NotebookClient(notebook, timeout=120, resources=where).execute()
            last = notebook.cells.pop()
            done[name] = notebook, json.loads(last.outputs[-1].text)
        return done[name]

    return run


def solution_cells(notebook):
    """Code cells that a student fills in."""
    marked = [cell for cell in notebook.cells if cell.cell_type == "code" and "nbgrader" in cell.metadata]
    return [cell for cell in marked if cell.metadata.nbgrader.solution]


def functions_in(code):
    """Top-level functions and classes by name, as syntax trees."""
    kinds = (ast.FunctionDef, ast.ClassDef)
    return {node.name: node for node in ast.parse(code).body if isinstance(node, kinds)}


@pytest.fixture(name="labs_folder", scope="session")
def _labs_folder():
    return LABS


@pytest.fixture(name="student_copy", scope="session")
def _student_copy():
    """The committed copy of a notebook lab."""
    return lambda name: nbformat.read(LABS / name / f"{name}.ipynb", as_version=4)


@pytest.fixture(name="solution_cells", scope="session")
def _solution_cells():
    return solution_cells


@pytest.fixture(name="functions_in", scope="session")
def _functions_in():
    return functions_in


@pytest.fixture(scope="session")
def wheel(tmp_path_factory):
    """A wheel of this checkout's package, built from a copy, without a network."""
    root, folder = LABS.parent, tmp_path_factory.mktemp("wheel")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(root / name, folder / name)
    shutil.copytree(root / "src" / "losslab", folder / "src" / "losslab", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(root / "data" / "apidocs", folder / "data" / "apidocs")
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-index"]
    subprocess.run([*pip, "--no-build-isolation", "--wheel-dir", folder / "dist", folder], check=True)
    return next((folder / "dist").glob("losslab-*.whl"))


@pytest.fixture(scope="session")
def solved_cells():
    """Code of each cell of a lab with its solutions."""

    def cells(name):
        notebook = nbformat.reads(make_copy(LABS / name, solved=True).decode(), as_version=4)
        return [cell.source for cell in notebook.cells if cell.cell_type == "code"]

    return cells
