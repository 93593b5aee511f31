"""The perplexity lab: the module alone, wrong answers and what they are told, and the notebook that drives it."""

import ast
import json
import math
import re
import runpy
import shutil
import subprocess
import sys

import nbclient
import nbformat
import numpy as np
import pytest
import torch

from losslab.grading import load_lab
from losslab.labs.release import make_copy
from losslab.language import token_nll
from losslab.measure.lab_feedback import EMPTY, RIGHT, answers, rows_of, submission

pytestmark = pytest.mark.xdist_group("lab-perplexity")

AFTER_COST = {"uniform", "shift", "shift-others", "mask", "mask-left"}
# Items lost by each answer, and what its author is told.
LOST = {
    "no-maximum": ({"log-softmax-far", "cost"}, "Logits near -1000 and 1000 are no trouble."),
    "log-of-a-probability": ({"log-softmax-far", "cost"}, "Logits near -1000 and 1000 are no trouble."),
    "wrong-order-done-right": ({"wrong-order"}, "-inf where that has become 0."),
    "probability-for-cost": ({"cost", *AFTER_COST}, "The negative log-probability of the token that came, in nats."),
    "bits-too-early": ({"cost", *AFTER_COST}, "The negative log-probability of the token that came, in nats."),
    "sum": ({"mean"}, "The sum of the costs over the number of tokens."),
    "zero-for-nothing": ({"mean-of-nothing"}, "The mean of no tokens is refused."),
    "base-two": ({"perplexity", "uniform"}, "The exponential of the mean cost"),
    "overflow": ({"perplexity"}, "inf where a float cannot hold it."),
    "share-of-nats": ({"uniform"}, "Perplexity as a share of V"),
    "not-shifted": ({"shift", "shift-others", "mask", "mask-left"}, "row t is asked for token t + 1."),
    "shift-is-always-one": ({"shift-others"}, "The argument shift is used"),
    "padding-costs-nothing": ({"mask", "mask-left"}, "is left out of the list otherwise."),
    "mask-of-the-row": ({"mask"}, "A prediction counts if it is of a token"),
    "mask-of-the-label-alone": ({"mask-left"}, "the first token is predicted from padding and does not count."),
    "times-ln-2": ({"bits"}, "Nats over ln 2."),
}


def test_every_listed_answer_is_tested(labs_folder):
    assert [one.name for one in answers(labs_folder / "perplexity")] == [RIGHT.name, EMPTY.name, *LOST]


@pytest.mark.parametrize("name", LOST)
def test_a_wrong_answer_loses_what_it_should_and_is_told_why(name, labs_folder):
    folder = labs_folder / "perplexity"
    answer = next(one for one in answers(folder) if one.name == name)
    rows = rows_of(folder, answer)
    lost, sentence = LOST[name]
    assert {row["item"] for row in rows if row["points"] < row["out_of"]} == lost
    feedback = "\n".join(row["feedback"] for row in rows)
    assert sentence in feedback
    assert "should be" in feedback


# The module's own checks, as a student runs them.


def run_module(path, *arguments):
    """Exit code and what was printed, by a Python that has nothing but its standard library."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(path), *arguments], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    return done.returncode, done.stdout


def test_the_solution_passes_its_own_checks(labs_folder):
    code, said = run_module(labs_folder / "perplexity" / "solution.py")
    assert code == 0
    assert re.findall(r"^✓ Step (\d)", said, re.MULTILINE) == list("123456789")
    assert "✗" not in said
    numbers = [float(line.split()[-1]) for line in said.split("sent back?")[1].split("\n") if line.strip()]
    assert len(numbers) == 6
    assert min(abs(number / numbers[0] - 1) for number in numbers[1:]) > 0.05  # none of the five is nearly right


def test_the_student_copy_says_what_is_due(labs_folder):
    code, said = run_module(labs_folder / "perplexity" / "perplexity.py")
    assert code == 1
    assert said.strip() == "○ Step 1 is not written yet: log_softmax"


def test_half_way_the_last_step_is_drawn_and_the_next_named(labs_folder, tmp_path):
    """Steps 1 to 3 written: three ticks, the picture of step 3, and step 4 is due."""
    solved, unwritten = (make_copy(labs_folder / "perplexity", solved=one).decode() for one in (True, False))
    head, tail = solved.split("# Step 4")[0], "# Step 4" + unwritten.split("# Step 4")[1]
    (tmp_path / "half.py").write_text(head + tail, encoding="utf-8")
    code, said = run_module(tmp_path / "half.py")
    assert code == 1
    assert said.count("✓") == 3
    assert "Step 3: cost in nats" in said
    assert said.rstrip().endswith("○ Step 4 is not written yet: mean")


@pytest.mark.parametrize("name", LOST)
def test_the_local_check_finds_every_wrong_answer(name, labs_folder, tmp_path):
    """With the step, the case, and yours beside the target; and the step's picture."""
    folder = labs_folder / "perplexity"
    answer = next(one for one in answers(folder) if one.name == name)
    wrong = ast.parse(answer.source).body[0].name
    whole = make_copy(folder, solved=True).decode()
    checks = whole.index("# Below this line there is nothing to write")
    (tmp_path / "wrong.py").write_text(whole[:checks] + answer.source + "\n\n# " + whole[checks:], encoding="utf-8")
    code, said = run_module(tmp_path / "wrong.py")
    assert code == 1
    found = re.search(r"^✗ Step (\d), (\w+): (.*)", said, re.MULTILINE | re.DOTALL)
    assert found is not None, said
    assert found[2] == wrong
    assert "target" in found[3] or "raise" in found[3]
    assert "# yours, | target, : zero" in said
    assert "These are other inputs than the case below." in said


def test_one_picture_can_be_asked_for(labs_folder):
    code, said = run_module(labs_folder / "perplexity" / "solution.py", "2")
    assert code == 0
    assert said.count("-inf") == 2
    assert said.count("below") == 6


def test_a_wrong_sign_goes_to_the_other_side(labs_folder, tmp_path):
    whole = make_copy(labs_folder / "perplexity", solved=True).decode()
    wrong = whole.replace("return -log_softmax(logits)[token]", "return log_softmax(logits)[token]")
    (tmp_path / "wrong.py").write_text(wrong, encoding="utf-8")
    _, said = run_module(tmp_path / "wrong.py", "3")
    line = next(line for line in said.splitlines() if line.strip().startswith("-4"))
    assert re.search(r"#+:.*\|\s+-4\.018  \(target 4\.018\)", line), said
    _, said = run_module(labs_folder / "perplexity" / "solution.py", "3")
    assert re.search(r":#+\|", next(line for line in said.splitlines() if line.strip().startswith("-4"))), said


def test_what_raises_is_shown_with_its_input_and_line(labs_folder, tmp_path):
    whole = make_copy(labs_folder / "perplexity", solved=True).decode()
    wrong = whole.replace("    highest = max(logits)\n    log_sum", "    highest = 0.0\n    log_sum")
    (tmp_path / "wrong.py").write_text(wrong, encoding="utf-8")
    _, said = run_module(tmp_path / "wrong.py")
    assert "log_softmax(logits=[1000.0, 999.0])\n      raised OverflowError: math range error\n      line " in said
    assert ": log_sum = highest + " in said


def test_a_step_that_is_not_there_or_not_written_is_said_in_one_line(labs_folder):
    path = labs_folder / "perplexity" / "perplexity.py"
    for wrong in ("12", "0", "abc"):
        assert run_module(path, wrong) == (2, f"There are steps 1 to 9, and no step {wrong}.\n")
    assert run_module(path, "3") == (1, "○ Step 3 is not written yet: loss_at\n")


def test_only_the_standard_library_is_imported(labs_folder):
    tree = ast.parse((labs_folder / "perplexity" / "perplexity.py").read_text(encoding="utf-8"))
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert names <= sys.stdlib_module_names
    assert {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)} == {"__future__"}


# The oracles.


@pytest.fixture(scope="module")
def marking(labs_folder):
    """The check of each item."""
    return {item.id: item.check for item in load_lab(labs_folder / "perplexity").items if item.check is not None}


def cases(check, seed=4):
    """As many as are marked."""
    random = np.random.default_rng(seed)
    return [check.draw(random, size) for size in range(1, check.cases + 1)]


def test_oracles_against_the_library(marking):
    """Sixty digits there, torch's float64 here."""
    for item in ("log-softmax", "log-softmax-far"):
        for case in cases(marking[item]):
            expected = torch.tensor(case["logits"], dtype=torch.float64).log_softmax(0)
            np.testing.assert_allclose(marking[item].oracle(**case), expected, rtol=1e-12, atol=1e-12)
    for item in ("mask", "mask-left"):
        for case in cases(marking[item]):
            logits = torch.tensor(case["logits"], dtype=torch.float64)
            ids, mask = torch.tensor(case["ids"]), torch.tensor(case["mask"])
            found = marking[item].oracle(**case)
            if found:
                total = token_nll(logits, ids, mask=mask, reduction="sum")
                assert math.fsum(found) == pytest.approx(total.item(), rel=1e-12)
            assert len(found) == int((mask[:, 1:] & mask[:, :-1]).sum())


def test_inputs_hold_what_they_are_for(marking):
    assert any(math.isinf(v) for case in cases(marking["wrong-order"]) for v in marking["wrong-order"].oracle(**case))
    assert any(not case["mask"][0][0] for case in cases(marking["mask-left"]))
    assert all(case["mask"][0][0] and not case["mask"][0][-1] for case in cases(marking["mask"]))
    assert {case["shift"] for case in cases(marking["shift-others"])} == {0, 2}
    assert any(math.isinf(marking["perplexity"].oracle(**case)) for case in cases(marking["perplexity"]))


# The notebook that drives it.


def test_the_live_notebook_is_current(labs_folder):
    """Make it anew with: python labs/perplexity/make_live.py."""
    make = runpy.run_path(str(labs_folder / "perplexity" / "make_live.py"))["live_notebook"]
    assert (labs_folder / "perplexity" / "live.ipynb").read_text(encoding="utf-8") == make()


# Every control goes through its choices; then the module on disk is the unwritten one, and each is moved once more.
DRIVE = """
import gc, json, shutil
from losslab.labs import Live
lives = [thing for thing in gc.get_objects() if issubclass(type(thing), Live)]
drawn, unwritten = [], []
for one in lives:
    for control in one.controls.values():
        if hasattr(control, "options"):
            choices = [control.options[-1], control.options[0]]
        else:
            choices = [True, False] if control.value is False else [control.min, control.max]
        for choice in choices:
            before, moved = one.shown.value, control.value != choice
            control.value = choice
            shown = one.shown.value
            drawn.append([str(choice), shown.startswith("<img") and 'alt="' in shown, shown != before or not moved])
shutil.copy("unwritten.py", "perplexity.py")
for one in lives:
    control = [control for control in one.controls.values() if hasattr(control, "options")][0]
    control.value = [choice for choice in control.options if choice != control.value][0]
    unwritten.append(one.shown.value)
print(json.dumps([drawn, unwritten]))
"""


def test_the_live_notebook_drives_the_module_beside_it(labs_folder, tmp_path):
    """Solved, every control draws; unwritten, one line says which step is due, and the controls stay."""
    shutil.copy(labs_folder / "perplexity" / "solution.py", tmp_path / "perplexity.py")
    shutil.copy(labs_folder / "perplexity" / "perplexity.py", tmp_path / "unwritten.py")
    notebook = nbformat.read(labs_folder / "perplexity" / "live.ipynb", as_version=4)
    notebook.cells.append(nbformat.v4.new_code_cell(DRIVE))
    nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    drawn, unwritten = json.loads(notebook.cells[-1].outputs[-1].text)
    assert len(drawn) == 14
    assert all(picture for _, picture, _ in drawn), drawn
    assert sum(changed for *_, changed in drawn) > 10
    assert len(unwritten) == 2
    assert all(" is not written yet: " in text for text in unwritten)


def test_an_appended_answer_is_what_is_marked(labs_folder):
    """The submission of a wrong answer still imports: it is the whole module with one function written anew."""
    answer = answers(labs_folder / "perplexity")[2]
    assert ast.parse(submission(labs_folder / "perplexity", answer).decode())
