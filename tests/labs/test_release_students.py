"""A copy for each student: other texts and numbers in it, the same at every release, and marked the same."""

import json
import re
from pathlib import Path

import nbclient
import nbformat
import pytest
import torch

from losslab.cli import main
from losslab.corpora import apidocs
from losslab.grading import load_lab, mark
from losslab.labs.release import SourceError, make_copy, students_in, varied, varies

pytestmark = pytest.mark.xdist_group("lab-infonce")
SOURCE = """seed = 3  # vary
    inner = -12  # vary: which of them
other = 3  # varying
third = 3 # vary
fourth = 3
fifth = seed  # vary
"""


def test_an_integer_is_the_students_own():
    """By ``printf infonce/ada/seed | sha256sum``: it begins with e5f90be8, and without the highest bit 65f90be8."""
    made = varied(SOURCE, "infonce", "ada", where="x")
    assert made.splitlines()[0] == "seed = 1710820328  # vary"
    assert re.fullmatch(r"    inner = \d+  # vary: which of them", made.splitlines()[1])
    assert made.splitlines()[2:] == SOURCE.splitlines()[2:]
    for lab, student in (("infonce", "grace"), ("padding", "ada")):
        assert varied(SOURCE, lab, student, where="x").splitlines()[0] != made.splitlines()[0]


def test_a_source_in_which_nothing_varies_is_named():
    with pytest.raises(SourceError, match=r"^labs/x/lab\.md has no line 'name = <integer>  # vary'"):
        varied("seed = 3\n", "x", "ada", where="labs/x/lab.md")


def test_every_notebook_lab_varies_and_the_hand_made_one_does_not(lab, labs_folder):
    """In the module all numbers can be followed on paper, and its texts are there for what they show."""
    assert varies(labs_folder / lab) == (lab != "perplexity")


def test_only_the_lines_that_vary_differ(notebook_lab, labs_folder):
    def sources(student):
        cells = json.loads(make_copy(labs_folder / notebook_lab, student=student))["cells"]
        return [line for cell in cells for line in "".join(cell["source"]).splitlines()]

    for student in ("ada", "grace"):
        pairs = zip(sources(None), sources(student), strict=True)
        changed = [(ours, own) for ours, own in pairs if ours != own]
        assert len(changed) >= 1
        assert all(re.search(r"= \d+  # vary: \w", line) for pair in changed for line in pair)
    assert sources("ada") != sources("grace")


def test_names_are_read_one_a_line(tmp_path):
    path = tmp_path / "students.txt"
    path.write_bytes("\ufeffada\r\n\r\n  grace.h@example.org \r\nK-2_3\n".encode())
    assert students_in(path) == ["ada", "grace.h@example.org", "K-2_3"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ada\n../grace\n", r"line 2: '\.\./grace' cannot name a folder"),
        ("a/b\n", "cannot name a folder"),
        ("a\\b\n", "cannot name a folder"),
        ("..\n", "cannot name a folder"),
        (".hidden\n", "cannot name a folder"),
        ("-rf\n", "cannot name a folder"),
        ("ada.\n", "cannot name a folder"),
        ("Ada Lovelace\n", "use up to 100 of A-Z"),
        ("nul.txt\n", "cannot name a folder"),
        ("a" * 101 + "\n", "cannot name a folder"),
        ("ada\ngrace\nAda\n", r"line 3: 'Ada' stands in line 1 already"),
        ("\n \n", "names no student; write one a line"),
    ],
)
def test_a_name_that_is_no_folder_is_named(text, message, tmp_path):
    path = tmp_path / "students.txt"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        students_in(path)


def test_a_file_that_is_no_text_is_named(tmp_path):
    path = tmp_path / "students.txt"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match="not in UTF-8"):
        students_in(path)


def test_command_writes_a_folder_a_student(labs_folder, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(labs_folder)
    students, out = tmp_path / "students.txt", tmp_path / "out"
    students.write_text("ada\ngrace\n", encoding="utf-8")
    call = ["labs", "release", "infonce", "padding", "--students", str(students), "--out", str(out)]
    assert main(call) == 0
    found = sorted(str(path.relative_to(out)) for path in out.rglob("*") if path.is_file())
    assert [Path(name).parts for name in found] == [
        (student, f"{lab}.ipynb") for student in ("ada", "grace") for lab in ("infonce", "padding")
    ]
    assert (out / "ada" / "infonce.ipynb").read_bytes() == make_copy(labs_folder / "infonce", student="ada")
    assert main([*call, "--check"]) == 0
    (out / "grace" / "padding.ipynb").write_text("old", encoding="utf-8")
    assert main([*call, "--check"]) == 1
    assert main(["labs", "release", "--check"]) == 0  # the committed copies are as they were

    capsys.readouterr()
    assert main(["labs", "release", "infonce", "--students", str(students)]) == 2
    assert "--students needs --out DIR" in capsys.readouterr().err
    named = ["labs", "release", "perplexity", "--students", str(students), "--out", str(tmp_path / "none")]
    assert main(named) == 2
    assert "labs/perplexity/solution.py has no line 'name = <integer>  # vary'" in capsys.readouterr().err
    named[2:3] = []
    assert main(named) == 0
    assert "perplexity is the same for everybody: left out" in capsys.readouterr().err
    students.write_text("../ada\n", encoding="utf-8")
    assert main(call) == 2
    assert "cannot name a folder" in capsys.readouterr().err


def test_a_students_own_copy_runs_shows_other_texts_and_is_marked_the_same(labs_folder, tmp_path):
    path = tmp_path / "infonce.ipynb"
    path.write_bytes(make_copy(labs_folder / "infonce", solved=True, student="ada"))
    described = load_lab(labs_folder / "infonce")
    assert mark(described, path, seed=20).points == described.points
    notebook = nbformat.read(path, as_version=4)
    where = {"metadata": {"path": str(labs_folder / "infonce")}}
    nbclient.NotebookClient(notebook, timeout=120, resources=where).execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    printed = "".join(output.text for output in outputs if output.output_type == "stream")
    assert "✗" not in printed
    assert printed.count("✓") >= 3
    theirs = re.search(r"query 1 is about (\S+),", printed)[1]
    corpus = apidocs.load()
    usual = torch.randperm(len(corpus), generator=torch.Generator().manual_seed(3))[0]  # as the committed copy says
    assert theirs in corpus.names
    assert theirs != corpus.names[usual]
    assert [output.text for output in outputs if output.get("name") == "stderr"] == []
