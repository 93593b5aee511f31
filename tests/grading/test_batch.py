"""Submissions found, marked on many processes, kept, and marked again only where something changed."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from losslab.grading import batch, load_lab
from losslab.grading.batch import BatchError, Options, collect, mark_batch
from small_lab import PERPLEXITY, RIGHT, TOTAL, WRONG, hand_in, write_lab


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_lab(tmp_path_factory.mktemp("labs") / "small")


@pytest.fixture(scope="module")
def lab(folder):
    return load_lab(folder)


@pytest.fixture
def handed_in(tmp_path):
    return hand_in(tmp_path / "handed in", ada=RIGHT, bob=WRONG, cy=TOTAL, dee="x =")


def marked(lab, folder, handed_in, out, *, reverse=False, options=None, **settings):
    submissions = collect(handed_in, lab.form)
    if reverse:
        submissions = submissions[::-1]
    return mark_batch(folder, submissions, out, options or Options(seed=5), **{"jobs": 2, **settings})


def points(outcome):
    return {record.submission.student: record.mark.points for record in outcome.records}


def comparable(outcome):
    """Marks without what may differ between two runs: how long they took."""
    return {r.submission.student: {**r.mark.to_dict(), "seconds": 0} for r in outcome.records}


# -- finding them ------------------------------------------------------------------------------------------------------


def names(folder, form="module"):
    return [(each.student, each.path.name) for each in collect(folder, form)]


def test_a_file_a_folder_and_what_canvas_and_moodle_export(tmp_path):
    hand_in(tmp_path, ada="", lovelaceada_12345_67890_lab="", hopper_LATE_17_18_lab="")
    hand_in(tmp_path / "bob", solution="")
    hand_in(tmp_path / "Cy Young_77_assignsubmission_file_", solution="")
    hand_in(tmp_path / "Cy Young_77_assignsubmission_onlinetext_", onlinetext="")
    hand_in(tmp_path, **{"Dee D_78_assignsubmission_file_lab": ""})
    (tmp_path / ".DS_Store").write_text("")
    (tmp_path / "__MACOSX").mkdir()
    found = {each.student: each for each in collect(tmp_path, "module")}
    assert sorted(found) == ["Cy Young", "Dee D", "ada", "bob", "hopper_17", "lovelaceada_12345"]
    assert found["lovelaceada_12345"].canvas_id == "12345"
    assert found["hopper_17"].canvas_id == "17"
    assert found["Cy Young"].participant == "77"
    assert found["Dee D"].participant == "78"
    assert found["bob"].path == tmp_path / "bob" / "solution.py"


def test_of_several_files_the_one_of_the_labs_form_counts(tmp_path):
    ada = hand_in(tmp_path / "ada", lab="")
    (ada / "lab.ipynb").write_text("{}")
    (ada / "data.csv").write_text("1")
    (ada / ".ipynb_checkpoints").mkdir()
    (ada / ".ipynb_checkpoints" / "lab-checkpoint.ipynb").write_text("{}")
    assert names(tmp_path) == [("ada", "lab.py")]
    assert names(tmp_path, "notebook") == [("ada", "lab.ipynb")]


def test_what_is_no_notebook_is_still_a_submission(tmp_path):
    (tmp_path / "ada.pdf").write_bytes(b"%PDF")
    assert names(tmp_path) == [("ada", "ada.pdf")]


def test_two_submissions_by_one_student_are_named(tmp_path):
    hand_in(tmp_path, ada="")
    hand_in(tmp_path / "ada", lab="")
    with pytest.raises(BatchError, match=r"2 submissions by ada: ada/lab\.py, ada\.py; leave the one that counts"):
        collect(tmp_path, "module")


def test_no_submissions_and_no_folder(tmp_path):
    (tmp_path / ".hidden.py").write_text("")
    with pytest.raises(BatchError, match="no submissions in"):
        collect(tmp_path, "module")
    with pytest.raises(BatchError, match="cannot be read as a folder of submissions: No such file"):
        collect(tmp_path / "nowhere", "module")
    with pytest.raises(BatchError, match="Not a directory"):
        collect(tmp_path / ".hidden.py", "module")


def test_what_cannot_be_read_is_named_and_the_others_are_marked(lab, folder, handed_in, tmp_path):
    (handed_in / "link.py").symlink_to(handed_in / "ada.py")
    hand_in(handed_in / "inside")
    (handed_in / "inside" / "lab.py").symlink_to(handed_in / "ada.py")
    (handed_in / "linked").symlink_to(handed_in)
    os.mkfifo(handed_in / "pipe.py")
    (handed_in / "empty").mkdir()
    outcome = marked(lab, folder, handed_in, tmp_path / "out")
    assert points(outcome) == {"ada": 5, "bob": 1, "cy": 1, "dee": 0}
    assert [line.split(":")[0] for line in outcome.problems] == ["empty", "inside", "link", "linked", "pipe"]
    assert sum("is a link" in line for line in outcome.problems) == 3
    assert outcome.missing == ["empty", "inside", "link", "linked", "pipe"]


def test_a_link_put_in_a_files_place_afterwards_is_not_followed(tmp_path):
    """Between finding a submission and reading it somebody could put a link to another student's work there."""
    handed_in = hand_in(tmp_path / "in", ada=RIGHT, bob=WRONG)
    ada = collect(handed_in, "module")[0]
    ada.path.unlink()
    ada.path.symlink_to(handed_in / "bob.py")
    with pytest.raises(OSError, match="symbolic"):
        batch.fingerprint(ada, "version", Options(seed=5))


def test_a_file_that_its_owner_cannot_read_is_a_problem(tmp_path, monkeypatch):
    hand_in(tmp_path, ada="")

    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)  # root reads everything: no mode would stop this test's own process
    assert collect(tmp_path, "module")[0].problem == "cannot be read: Permission denied"


# -- marking them ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def first(lab, folder, tmp_path_factory):
    """One run on two processes, to compare others with."""
    root = tmp_path_factory.mktemp("first")
    handed_in = hand_in(root / "handed in", ada=RIGHT, bob=WRONG, cy=TOTAL, dee="x =")
    return marked(lab, folder, handed_in, root / "out", jobs=2)


def test_each_mark_is_what_was_earned(first):
    assert points(first) == {"ada": 5, "bob": 1, "cy": 1, "dee": 0}
    assert first.fresh == 4
    assert not first.failures
    assert not first.missing


def test_marks_are_the_same_in_another_order_and_with_one_worker(lab, folder, handed_in, tmp_path, first):
    outcome = marked(lab, folder, handed_in, tmp_path / "out", reverse=True, jobs=1)
    assert comparable(outcome) == comparable(first)


def test_marks_are_the_same_on_a_cluster_of_two_workers(lab, folder, handed_in, tmp_path, first):
    outcome = marked(lab, folder, handed_in, tmp_path / "out", cluster="local:2")
    assert comparable(outcome) == comparable(first)


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9", "nowhere"])
def test_a_cluster_that_does_not_answer_is_one_line(lab, folder, handed_in, tmp_path, monkeypatch, address):
    monkeypatch.setattr(batch, "CLUSTER_PATIENCE", 1)
    with pytest.raises(BatchError, match=f"no Dask scheduler answers at {address}"):
        marked(lab, folder, handed_in, tmp_path / "out", cluster=address)


def test_another_seed_draws_other_inputs(lab, folder, handed_in, tmp_path, first):
    outcome = marked(lab, folder, handed_in, tmp_path / "out", options=Options(seed=6))
    assert points(outcome) == points(first)
    assert comparable(outcome)["bob"]["items"] != comparable(first)["bob"]["items"]  # another counterexample


# -- marking them again ------------------------------------------------------------------------------------------------


def count_again(lab, folder, handed_in, out, **settings):
    return marked(lab, folder, handed_in, out, **settings).fresh


def test_only_what_is_missing_or_changed_is_marked_again(lab, folder, handed_in, tmp_path):
    out = tmp_path / "out"
    assert count_again(lab, folder, handed_in, out) == 4
    before = {path: path.stat().st_mtime_ns for path in (out / "marks").iterdir()}
    assert count_again(lab, folder, handed_in, out) == 0
    assert before == {path: path.stat().st_mtime_ns for path in (out / "marks").iterdir()}
    (out / "marks" / "bob.json").unlink()
    (out / "marks" / "cy.json").write_text('{"fingerprint": "ha')  # half written by something else than this
    assert count_again(lab, folder, handed_in, out) == 2
    (handed_in / "bob.py").write_text(RIGHT)
    outcome = marked(lab, folder, handed_in, out)
    assert outcome.fresh == 1
    assert points(outcome)["bob"] == 5
    assert count_again(lab, folder, handed_in, out, options=Options(seed=6)) == 4
    assert count_again(lab, folder, handed_in, out, options=Options(seed=6, timeout=30)) == 4


def test_a_changed_lab_marks_everybody_again(lab, tmp_path, handed_in):
    folder = write_lab(tmp_path / "labs" / "small")
    out = tmp_path / "out"
    assert count_again(lab, folder, handed_in, out) == 4
    path = folder / "marking.py"
    path.write_text(path.read_text() + "\n# another version\n")
    assert count_again(lab, folder, handed_in, out) == 4


def test_a_failure_of_the_grader_is_tried_again(lab, folder, handed_in, tmp_path):
    out = tmp_path / "out"
    outcome = marked(lab, folder, handed_in, out)
    ada = outcome.records[0]
    batch.write_record(out, replace(ada, mark=replace(ada.mark, status="grader-failure", items=())))
    again = marked(lab, folder, handed_in, out)
    assert again.fresh == 1
    assert points(again)["ada"] == 5


def test_only_some_are_marked_and_the_marks_of_others_stay(lab, folder, handed_in, tmp_path):
    out = tmp_path / "out"
    assert points(marked(lab, folder, handed_in, out, only=["bob"])) == {"bob": 1}
    outcome = marked(lab, folder, handed_in, out, only=["ada"])
    assert points(outcome) == {"ada": 5, "bob": 1}
    assert outcome.missing == ["cy", "dee"]
    with pytest.raises(BatchError, match="no submission by zoe; there are ada, bob, cy, dee"):
        marked(lab, folder, handed_in, out, only=["zoe"])


def test_an_error_in_the_grader_is_no_zero(lab, tmp_path, handed_in):
    # the parent has read the lab; a worker cannot any more
    folder = write_lab(tmp_path / "labs" / "small", "raise OSError('the disk broke')")
    outcome = marked(lab, folder, handed_in, tmp_path / "out")
    assert points(outcome) == dict.fromkeys(("ada", "bob", "cy", "dee"))
    assert len(outcome.failures) == 4
    assert "the disk broke" in outcome.failures[0].mark.log


SLOW = "import time\ntime.sleep(1.5)\n" + RIGHT


def test_killed_half_way_and_run_again_it_marks_only_the_rest(lab, folder, tmp_path):
    handed_in = hand_in(tmp_path / "in", **{f"s{number}": SLOW for number in range(6)})
    out = tmp_path / "out"
    command = [sys.executable, "-m", "losslab", "grade", folder, handed_in, "--out", out, "--seed", "5", "--jobs", "1"]
    process = subprocess.Popen(list(map(str, command)), stderr=subprocess.DEVNULL, start_new_session=True)
    deadline = time.monotonic() + 100
    while len(list((out / "marks").glob("[!.]*.json")) if (out / "marks").is_dir() else ()) < 2:
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    time.sleep(0.5)  # its worker may have been about to write
    done = sorted(path for path in (out / "marks").glob("[!.]*.json"))
    assert 2 <= len(done) < 6
    for path in done:
        json.loads(path.read_text())
    before = {path: path.read_bytes() for path in done}
    outcome = marked(lab, folder, handed_in, out)
    assert outcome.fresh == 6 - len(done)
    assert before == {path: path.read_bytes() for path in done}
    assert points(outcome) == {f"s{number}": 5 for number in range(6)}


@pytest.mark.filterwarnings("error:.*workers")
def test_a_full_disk_keeps_what_was_marked(lab, folder, handed_in, tmp_path, monkeypatch):
    out = tmp_path / "out"
    marked(lab, folder, handed_in, out, only=["ada"])
    before = (out / "marks" / "ada.json").read_bytes()
    real = batch.replace_file

    def full(path, content):
        if path.parent.name == "marks":
            raise OSError(28, "No space left on device")
        real(path, content)

    monkeypatch.setattr(batch, "replace_file", full)
    with pytest.raises(
        BatchError, match=r"cannot write to .*No space left on device; what was marked is kept \(1 of 4\)"
    ):
        marked(lab, folder, handed_in, out)
    assert (out / "marks" / "ada.json").read_bytes() == before


@pytest.mark.skipif(shutil.which("mount") is None or os.geteuid() != 0, reason="needs to mount a small tmpfs as root")
def test_a_disk_that_is_really_full(lab, folder, handed_in, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8k", "tmpfs", out], capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip("no tmpfs may be mounted here; the test before this one stands in for it")
    try:
        with pytest.raises(BatchError, match="No space left on device"):
            marked(lab, folder, handed_in, out)
        for path in (out / "marks").glob("*.json"):
            json.loads(path.read_text())
        assert not list((out / "marks").glob(".*"))
    finally:
        subprocess.run(["umount", out], check=True)


def test_the_seed_is_that_of_the_run_before_else_a_fresh_one(tmp_path):
    assert batch.settle_seed(tmp_path, 3) == 3
    first, second = batch.settle_seed(tmp_path, None), batch.settle_seed(tmp_path, None)
    assert first != second
    (tmp_path / "batch.json").write_text(json.dumps({"seed": 11}))
    assert batch.settle_seed(tmp_path, None) == batch.settle_seed(tmp_path, 11) == 11
    with pytest.raises(BatchError, match="marked with seed 11; for --seed 3 use another --out"):
        batch.settle_seed(tmp_path, 3)
    (tmp_path / "batch.json").write_text("not json")
    with pytest.raises(BatchError, match="give another --out"):
        batch.settle_seed(tmp_path, None)


def test_nobody_hears_of_another(lab, folder, tmp_path):
    """Two submissions beside each other earn what each earns alone."""
    spoilt = PERPLEXITY + "import sys\nsys.modules.clear()\n"
    handed_in = hand_in(tmp_path / "in", ada=RIGHT, mal=spoilt)
    assert points(marked(lab, folder, handed_in, tmp_path / "out", jobs=1))["ada"] == 5
