"""The committed student copies: current, unwritten where work is due and nowhere else, and only what the source has."""

import ast
import contextlib
import inspect
import json
import math
import re

import nbformat
import numpy as np
import pytest
import torch
from nbgrader.nbgraderformat.v3 import MetadataValidatorV3
from nbgrader.utils import compute_checksum, is_locked
from nbgrader.validator import Validator

from losslab.cli import main
from losslab.grading import load_lab, mark
from losslab.labs import LABS
from losslab.labs.first_cell import first_cell
from losslab.labs.release import copy_of, make_copy, source_of

UNWRITTEN = re.compile(r"Step (\d+) is not written yet: (\w+)")
BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"


def test_every_lab_has_its_folder(labs_folder):
    assert sorted(path.parent.name for path in labs_folder.glob("*/marking.py")) == sorted(LABS)


def test_the_copy_is_current_and_always_the_same(lab, labs_folder):
    made = make_copy(labs_folder / lab)
    assert made == make_copy(labs_folder / lab)
    assert copy_of(labs_folder / lab).read_bytes() == made


def code_of(path):
    """All code of a copy or source, cell after cell."""
    if path.suffix == ".py":
        return path.read_text(encoding="utf-8")
    return "\n".join(cell.source for cell in nbformat.read(path, 4).cells if cell.cell_type == "code")


def outside_solutions(lines):
    """The lines of a source that a student is meant to see."""
    kept, inside = [], False
    for line in lines:
        if BEGIN in line:
            inside = True
        if not inside:
            kept.append(line)
        if END in line:
            inside = False
    return kept


def test_every_line_of_the_copy_stands_in_the_source(lab, labs_folder):
    """But for the first cell, the table of points, and the one line that stands where a solution was."""
    source = source_of(labs_folder / lab).read_text(encoding="utf-8")
    visible = set(outside_solutions(source.splitlines()))
    path = copy_of(labs_folder / lab)
    if path.suffix == ".py":
        lines = path.read_text(encoding="utf-8").splitlines()
    else:
        cells = nbformat.read(path, 4).cells
        lines = [
            line for cell in cells if "setup" not in cell.metadata.get("tags", []) for line in cell.source.split("\n")
        ]
    added = [line for line in lines if line.strip() and line not in visible]
    added = [line for line in added if not re.match(r"(# )?\|", line)]
    assert all(UNWRITTEN.search(line) or line == "*Write your answer here.*" for line in added), added
    assert len(added) == source.count(BEGIN)


def test_no_line_of_a_solution_is_left(lab, labs_folder):
    """What stands in a solution and nowhere else in the source is not in the copy."""
    source = source_of(labs_folder / lab).read_text(encoding="utf-8").splitlines()
    visible = outside_solutions(source)
    secret = {line.strip() for line in source if line not in visible and len(line.strip()) > 12}
    secret -= {line.strip() for line in visible}
    assert secret
    copy = {line.strip() for line in code_of(copy_of(labs_folder / lab)).splitlines()}
    assert secret & copy == set()
    assert BEGIN not in copy_of(labs_folder / lab).read_text(encoding="utf-8")


def test_it_says_not_written_yet_where_work_is_due_and_nowhere_else(lab, labs_folder, functions_in):
    path, described = copy_of(labs_folder / lab), load_lab(labs_folder / lab)
    found = functions_in(code_of(path))
    unwritten = {}
    for name, node in found.items():
        for inner in ast.walk(node):
            if isinstance(inner, ast.Raise) and (said := UNWRITTEN.search(ast.unparse(inner))):
                assert said[2] == name
                unwritten[name] = int(said[1])
    assert set(described.functions) <= set(unwritten)
    steps = {item.check.function: item.step for item in described.items if item.check is not None}
    assert {name: unwritten[name] for name in steps} == steps
    assert list(unwritten.values()) == sorted(unwritten.values())
    assert code_of(path).count("raise NotImplementedError") == len(unwritten)
    assert 3 <= max(unwritten.values()) <= 9


def test_each_unwritten_function_says_so_when_called(lab, labs_folder, functions_in):
    path = copy_of(labs_folder / lab)
    names = {name: node for name, node in functions_in(code_of(path)).items() if UNWRITTEN.search(ast.unparse(node))}
    for name, node in names.items():
        if not isinstance(node, ast.FunctionDef):
            continue
        node.decorator_list, node.returns = [], None
        for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
            argument.annotation = None
        space = {}
        exec(compile(ast.Module([node], []), str(path), "exec"), {"math": math, "np": np, "torch": torch}, space)
        needed = [p.name for p in inspect.signature(space[name]).parameters.values() if p.default is p.empty]
        with pytest.raises(NotImplementedError, match=rf"^Step \d is not written yet: {name}$"):
            space[name](**dict.fromkeys(needed, 1))


def test_the_copy_runs_up_to_the_first_step(
    notebook_lab, labs_folder, student_copy, solution_cells, monkeypatch, capsys
):
    """No other error comes before it; and what is said is which step is due."""
    monkeypatch.chdir(labs_folder / notebook_lab)
    notebook = student_copy(notebook_lab)
    first = solution_cells(notebook)[0].metadata.nbgrader.grade_id
    space = {"display": print, "__name__": "__main__"}
    cells = [compile(cell.source, cell.id, "exec") for cell in notebook.cells if cell.cell_type == "code"]
    said = ""
    with contextlib.suppress(NotImplementedError):  # a picture calls the step itself
        for cell in cells:
            exec(cell, space)
            said += capsys.readouterr().out
            if f"○ Step 1 is not written yet: {first}\n" in said:
                break
    assert f"○ Step 1 is not written yet: {first}\n" in said
    assert said.startswith(f"Lab {notebook_lab}: losslab ")


def test_the_solution_earns_full_marks_and_the_empty_copy_none(lab, labs_folder, tmp_path):
    described = load_lab(labs_folder / lab)
    path = tmp_path / copy_of(labs_folder / lab).name
    path.write_bytes(make_copy(labs_folder / lab, solved=True))
    solved = mark(described, path, seed=20)
    assert (solved.status, solved.points) == ("marked", described.points), solved.to_dict()
    path.write_bytes(make_copy(labs_folder / lab))
    empty = mark(described, path, seed=20)
    assert (empty.status, empty.points) == ("marked", 0)
    assert described.points > 0
    assert all(item.points is None for item in solved.items if load_item(described, item.id).check is None)


def load_item(described, name):
    return next(item for item in described.items if item.id == name)


def test_nbgrader_reads_every_copy(notebook_lab, labs_folder, student_copy):
    """Its own schema check, and its own checksums; points by hand are those of the rubric."""
    notebook = student_copy(notebook_lab)
    nbformat.validate(notebook)
    MetadataValidatorV3().validate_nb(notebook)
    locked = [cell for cell in notebook.cells if is_locked(cell)]
    assert len(locked) >= 4
    assert all(cell.metadata.nbgrader.checksum == compute_checksum(cell) for cell in locked)
    assert not any(cell.metadata.editable for cell in locked)
    graded = [cell.metadata.nbgrader for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get("grade")]
    by_hand = {item.id: item.points for item in load_lab(labs_folder / notebook_lab).items if item.check is None}
    assert {one.grade_id: one.points for one in graded} == by_hand


def test_a_lab_has_its_parts(notebook_lab, labs_folder, student_copy):
    """A time from 20 to 60 minutes, a picture and a check for its steps, a live cell, a question and a reflection."""
    described = load_lab(labs_folder / notebook_lab)
    assert described.name == notebook_lab
    assert 20 <= described.minutes <= 60
    notebook = student_copy(notebook_lab)
    code = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code")
    words = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    assert "labs.live(" in code
    assert code.count("labs.picture(") >= 3
    assert len(re.findall(r"labs\.(?:agrees|promises)\(", code)) >= 3
    assert f"| | together | {described.points + described.manual_points:g} |" in words
    assert re.search(r"^#+ .*question", words, re.IGNORECASE | re.MULTILINE)
    assert re.search(r"^#+ .*reflection", words, re.IGNORECASE | re.MULTILINE)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert cells[0].source == first_cell(notebook_lab, "")  # while the book has no address
    assert not any(cell.outputs for cell in cells)


@pytest.mark.xdist_group("lab-infonce")
def test_nbgraders_own_validation_of_a_student_notebook(labs_folder, tmp_path):
    """It has nothing to complain about, as the copy has no test cell of nbgrader's. Asked for all cells it names those
    that call a step that is not written, as errors and not in a line: a test cell without an error has its points.
    A locked cell that was changed is found by its checksum.
    """
    content = make_copy(labs_folder / "infonce")
    path = tmp_path / "infonce.ipynb"
    path.write_bytes(content)
    assert Validator().validate(str(path)) == {}
    failed = Validator(validate_all=True).validate(str(path))["failed"]
    assert all(re.search(r"Step \d is not written yet|NameError", one["error"]) for one in failed)
    assert {f"Step {step} is not written yet" in str(failed) for step in (1, 2, 3, 5)} == {True}  # 4 needs what 1 makes
    path.write_bytes(make_copy(labs_folder / "infonce", solved=True))
    assert Validator(validate_all=True).validate(str(path)) == {}

    notebook = json.loads(content)
    notebook["cells"] = [cell for cell in notebook["cells"] if cell["metadata"].get("nbgrader", {}).get("locked")][:1]
    notebook["cells"][0]["source"] = ["print(1)"]
    path.write_text(json.dumps(notebook), encoding="utf-8")
    assert Validator().validate(str(path)) == {"changed": [{"source": "print(1)"}]}


def test_command_lists_and_checks(labs_folder, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(labs_folder)
    assert main(["labs", "list"]) == 0
    listed = capsys.readouterr().out
    assert re.search(r"^infonce +45 min +20 \+ 5 points  InfoNCE from scratch$", listed, re.MULTILINE)
    assert [line.split()[0] for line in listed.splitlines()] == list(LABS)  # as the chapters stand
    assert main(["labs", "release", "--check"]) == 0
    assert main(["labs", "release", "infonce", "--out", str(tmp_path)]) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["infonce.ipynb"]
    assert main(["labs", "release", "infonce", "--out", str(tmp_path), "--check"]) == 0
    capsys.readouterr()
    (tmp_path / "infonce.ipynb").write_text("old", encoding="utf-8")
    assert main(["labs", "release", "infonce", "--out", str(tmp_path), "--check"]) == 1
    assert "infonce.ipynb is out of date; make it anew with: losslab labs release" in capsys.readouterr().err
    assert (tmp_path / "infonce.ipynb").read_text(encoding="utf-8") == "old"
    assert main(["labs", "release", "infonce", "--out", str(tmp_path)]) == 0
    assert "(unchanged)" not in capsys.readouterr().out
    (tmp_path / "infonce.ipynb").unlink()
    assert main(["labs", "release", "infonce", "--out", str(tmp_path), "--check"]) == 1


def test_command_outside_a_checkout_and_unknown_labs(tmp_path, capsys, monkeypatch, labs_folder):
    monkeypatch.chdir(tmp_path)
    assert main(["labs", "list"]) == 2
    assert "is in no checkout with a labs folder" in capsys.readouterr().err
    monkeypatch.chdir(labs_folder)
    assert main(["labs", "release", "infonces"]) == 2
    assert "there is no lab 'infonces'" in (said := capsys.readouterr().err)
    assert "infonce" in said.split("there are")[1]
