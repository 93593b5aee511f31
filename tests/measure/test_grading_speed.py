"""The comparison of graders: the same work for both, and watched as a whole."""

import json
import subprocess
import sys

import pytest

from losslab.grading import find_lab, load_lab
from losslab.labs.release import make_copy
from losslab.measure import grading_speed
from small_lab import notebook


@pytest.fixture(scope="module")
def lab():
    return load_lab(find_lab(grading_speed.LAB))


@pytest.fixture(scope="module")
def notebooks():
    folder = find_lab(grading_speed.LAB)
    return [json.loads(make_copy(folder, solved=solved)) for solved in (True, False)]


@pytest.fixture(scope="module")
def kinds(lab, notebooks):
    right, empty = map(grading_speed.steps_of, notebooks)
    return grading_speed.variants(right, empty, lab.functions)


def test_there_are_many_kinds_of_work_and_one_is_right(kinds, lab):
    assert [name for name, _ in kinds].count("right") == 1
    assert len({json.dumps(steps) for _, steps in kinds}) == len(kinds) > 2 * len(lab.functions)
    assert any("NotImplementedError" in "".join(steps.values()) for _, steps in kinds)


def test_each_student_has_a_file_of_their_own(notebooks, kinds):
    texts = {grading_speed.filled(notebooks[1], kinds[0][1], f"student {number}") for number in range(3)}
    assert len(texts) == 3


CHECK = """
import json, sys
given = json.load(open(sys.argv[1]))
for name, steps in given["kinds"]:
    space = {}
    exec(given["prelude"], space)
    for step in steps.values():
        exec(step, space)
    broken = 0
    for test in given["tests"]:
        try:
            exec(test, space)
        except Exception:
            broken += 1
    print(name, "|", broken)
"""


def test_nbgraders_tests_pass_right_work_and_fail_every_other(lab, kinds, tmp_path):
    """Its cells, run without it: all pass for the solution, and for each other kind at least one fails."""
    tests = grading_speed.hidden_tests(lab)
    assert sum(points for _, points, _ in tests) > 0.7 * lab.points
    prelude = (lab.prelude or "") + grading_speed.NEAR
    path = tmp_path / "work.json"
    path.write_text(json.dumps({"prelude": prelude, "kinds": kinds, "tests": [code for *_, code in tests]}))
    done = subprocess.run([sys.executable, "-c", CHECK, path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    broken = dict(line.rsplit(" | ", 1) for line in done.stdout.splitlines())
    assert broken.pop("right") == "0"
    assert len(broken) == len(kinds) - 1
    assert "0" not in broken.values(), broken


def test_the_notebook_for_nbgrader_is_one_it_reads(lab, notebooks):
    import nbformat
    from nbgrader.nbgraderformat import MetadataValidator

    made = grading_speed.nbgrader_notebook(lab, grading_speed.steps_of(notebooks[0]))
    read = nbformat.from_dict(made)
    nbformat.validate(read)
    MetadataValidator().validate_nb(read)
    nbformat.validate(nbformat.from_dict(json.loads(notebook("x = 1"))))


def test_memory_is_that_of_all_processes_together(tmp_path):
    hold = "held = bytearray(b'x') * 100_000_000"
    child = f"import time; {hold}; time.sleep(1.5)"
    parent = f"import subprocess, sys; {hold}; subprocess.run([sys.executable, '-c', {child!r}])"
    seconds, most = grading_speed.watched([sys.executable, "-c", parent], tmp_path)
    assert 200e6 < most < 300e6
    assert seconds > 1.5
    with pytest.raises(RuntimeError, match="ended with 3: no good"):
        grading_speed.watched([sys.executable, "-c", "import sys; print('no good'); sys.exit(3)"], tmp_path)


def test_a_grader_that_gives_wrong_work_full_marks_is_no_measure():
    grading_speed._check({"right": 5, "turned round": 3}, 5, "some")
    with pytest.raises(RuntimeError, match="some gives 5 of 5 points for work that is: turned round"):
        grading_speed._check({"right": 5, "turned round": 5}, 5, "some")
    with pytest.raises(RuntimeError, match="some gives 4 of 5 points for work that is: right"):
        grading_speed._check({"right": 4}, 5, "some")
