"""``losslab grade``: one clear line for whatever goes wrong, and an exit status that tells."""

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

from losslab.cli import main
from losslab.grading import command, load_lab
from losslab.measure.grading_speed import family
from small_lab import RIGHT, TOTAL, WRONG, hand_in, notebook, write_lab

PLAIN = {"ada": RIGHT, "bob": WRONG}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_lab(tmp_path_factory.mktemp("labs") / "small")


@pytest.fixture
def handed_in(tmp_path):
    return hand_in(tmp_path / "in", **PLAIN)


def grade(*arguments):
    return main(["grade", *map(str, arguments)])


def complaint(capsys):
    """The one line on stderr."""
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1, lines
    assert lines[0].startswith("losslab grade: ")
    return lines[0].removeprefix("losslab grade: ")


def table(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def graded(folder, tmp_path_factory):
    root = tmp_path_factory.mktemp("graded")
    handed_in = hand_in(root / "in", **PLAIN)
    out = root / "out"
    assert grade(folder, handed_in, "--out", out, "--seed", 5) == 0
    return handed_in, out


def test_everything_is_written(graded):
    _, out = graded
    written = {str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()}
    assert written == {
        "batch.json",
        "index.html",
        "grades.csv",
        "grades-canvas.csv",
        "rubric.csv",
        *(f"{folder}/{student}.{ending}" for student in PLAIN for folder, ending in
          (("marks", "json"), ("feedback", "html"), ("feedback", "json"), ("answers", "html"))),
        *(f"gradescope/{student}/results.json" for student in PLAIN),
    }  # fmt: skip
    assert [row["A small lab"] for row in table(out / "grades.csv")] == ["5", "1"]
    assert json.loads((out / "batch.json").read_text())["seed"] == 5
    assert oct(out.stat().st_mode & 0o777) == "0o700"


def test_run_again_it_marks_nothing_and_needs_no_seed(graded, folder, capsys):
    handed_in, out = graded
    assert grade(folder, handed_in, "--out", out) == 0
    captured = capsys.readouterr()
    assert "2 marked, 0 of them now" in captured.out
    assert "seed 5" in captured.err


def test_points_by_hand_are_added_later(graded, folder):
    handed_in, out = graded
    assert table(out / "grades.csv")[0]["A small lab, by hand"] == ""
    filled = (out / "rubric.csv").read_text().replace("ada,marked,1,4,", "ada,marked,1,4,1.5")
    (out.parent / "filled.csv").write_text(filled)
    assert grade(folder, handed_in, "--out", out, "--manual", out.parent / "filled.csv") == 0
    assert [row["A small lab, by hand"] for row in table(out / "grades.csv")] == ["1.5", ""]
    assert grade(folder, handed_in, "--out", out) == 0  # and stay there
    assert table(out / "grades.csv")[0]["A small lab, by hand"] == "1.5"
    assert "1.5 of 2 points" in (out / "feedback" / "ada.html").read_text()


def test_a_seed_that_is_not_given_is_drawn_and_logged(folder, handed_in, tmp_path, capsys):
    assert grade(folder, handed_in, "--out", tmp_path / "out") == 0
    seed = json.loads((tmp_path / "out" / "batch.json").read_text())["seed"]
    assert f"seed {seed}" in capsys.readouterr().err
    assert grade(folder, handed_in, "--out", tmp_path / "again", "--seed", seed) == 0
    for student in PLAIN:
        marks = [json.loads((tmp_path / out / "marks" / f"{student}.json").read_text()) for out in ("out", "again")]
        for each in marks:
            each["mark"]["seconds"] = 0
        assert marks[0] == marks[1]


def test_one_unreadable_file_is_one_line_and_the_others_are_marked(folder, handed_in, tmp_path, capsys):
    (handed_in / "cy.py").symlink_to(handed_in / "ada.py")
    out = tmp_path / "out"
    assert grade(folder, handed_in, "--out", out) == 2
    lines = [line for line in capsys.readouterr().err.splitlines() if "cy" in line]
    assert len(lines) == 1
    assert "is a link" in lines[0]
    assert [row["A small lab"] for row in table(out / "grades.csv")] == ["5", "1", ""]
    assert "cy" in (out / "index.html").read_text()


def test_a_failure_of_the_grader_is_told_by_the_exit_status_and_leaves_the_cell_empty(
    folder, handed_in, tmp_path, capsys, monkeypatch
):
    from losslab.grading import batch

    real = batch._marks

    def broken(folder, todo, options, jobs, cluster):
        for submission, print_, mark in real(folder, todo, options, jobs, cluster):
            if submission.student == "bob":
                mark = batch.failed(folder.name, submission, options, "Traceback\nOSError: the disk broke")
            yield submission, print_, mark

    monkeypatch.setattr(batch, "_marks", broken)
    out = tmp_path / "out"
    assert grade(folder, handed_in, "--out", out) == 1
    assert "the grader failed for bob, no mark given: OSError: the disk broke" in capsys.readouterr().err
    assert [row["A small lab"] for row in table(out / "grades.csv")] == ["5", ""]


def test_a_sandbox_that_does_not_work_is_told_once_and_marks_nobody(folder, handed_in, tmp_path, capsys, monkeypatch):
    import losslab.grading

    def broken(*_, **__):
        raise losslab.grading.GraderError("bubblewrap does not start")

    monkeypatch.setattr(losslab.grading, "self_test", broken)
    assert grade(folder, handed_in, "--out", tmp_path / "out") == 2
    assert complaint(capsys) == "students' code cannot be run here, so nothing was marked: bubblewrap does not start"
    assert not list((tmp_path / "out").rglob("marks/*"))


def test_isolation_that_is_required_and_not_there_is_refused(folder, handed_in, tmp_path, capsys, monkeypatch):
    import losslab.grading

    def missing(_lab, *, isolation, **_):
        if isolation == "required":
            raise losslab.grading.IsolationMissingError("bubblewrap is missing; install the package bubblewrap")

    monkeypatch.setattr(losslab.grading, "self_test", missing)
    assert grade(folder, handed_in, "--out", tmp_path / "out", "--require-isolation") == 2
    assert complaint(capsys) == "bubblewrap is missing; install the package bubblewrap"


def test_an_unknown_lab_names_those_there_are(handed_in, tmp_path, capsys, monkeypatch):
    write_lab(tmp_path / "labs" / "small")
    monkeypatch.chdir(tmp_path)
    assert grade("smal", handed_in, "--out", tmp_path / "out") == 2
    line = complaint(capsys)
    assert "no lab 'smal'" in line
    assert "small" in line


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--out", "o", "--jobs", 0), "--jobs is 0; expected more than 0"),
        (("--out", "o", "--timeout", -1), "--timeout is -1.0; expected more than 0"),
        (("--out", "o", "--timeout", "nan"), "--timeout is nan; expected more than 0"),
        (("--out", "o", "--seed", -3), "--seed is -3; expected 0 or more"),
        (("--out", "o", "--only", "zoe"), "no submission by zoe; there are ada, bob"),
        (("--out", "o", "--manual", "none.csv"), "none.csv cannot be read"),
        ((), "name the folder of submissions and --out DIR"),
    ],
)
def test_a_wrong_call_is_one_line(folder, handed_in, tmp_path, capsys, monkeypatch, arguments, message):
    import losslab.grading

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(losslab.grading, "self_test", lambda *_, **__: None)
    assert grade(folder, handed_in, *arguments) == 2
    assert message in capsys.readouterr().err.splitlines()[-1]


def test_bad_folders_are_one_line(folder, handed_in, tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    assert grade(folder, tmp_path / "empty", "--out", tmp_path / "out") == 2
    assert "no submissions in" in complaint(capsys)
    hand_in(handed_in / "ada", lab=RIGHT)
    assert grade(folder, handed_in, "--out", tmp_path / "out") == 2
    assert "2 submissions by ada" in complaint(capsys)
    assert grade(tmp_path, handed_in, "--out", tmp_path / "out") == 2
    assert "there is no lab" in complaint(capsys)


def test_marks_of_another_lab_are_not_mixed_in(graded, tmp_path, capsys):
    handed_in, out = graded
    other = write_lab(tmp_path / "other")
    (other / "marking.py").write_text((other / "marking.py").read_text().replace('name="small"', 'name="other"'))
    assert grade(other, handed_in, "--out", out) == 2
    assert complaint(capsys).endswith("holds marks of the lab small; give another --out")


def test_an_out_that_cannot_be_written_is_one_line(folder, handed_in, capsys):
    assert grade(folder, handed_in, "--out", "/dev/null/out") == 2
    assert "cannot write to /dev/null/out" in complaint(capsys)


@pytest.mark.parametrize("package", ["joblib", "torch", "numpy"])
def test_a_missing_package_is_named_before_anything_is_marked(package, tmp_path):
    lab = write_lab(tmp_path / "lab")
    (lab / "marking.py").write_text((lab / "marking.py").read_text().replace('form="module"', 'form="notebook"'))
    handed_in = tmp_path / "in"
    handed_in.mkdir()
    (handed_in / "ada.ipynb").write_text(notebook(RIGHT))
    hide = f"import sys; sys.modules[{package!r}] = None\nfrom losslab.cli import main; sys.exit(main(sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-c", hide, "grade", lab, handed_in, "--out", tmp_path / "out"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert f"{package} is missing; install" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out" / "marks").exists()


def test_the_zip_for_gradescope(folder, tmp_path, capsys):
    path = tmp_path / "autograder.zip"
    assert grade(folder, "--gradescope", path) == 0
    assert capsys.readouterr().out.strip() == str(path)
    with zipfile.ZipFile(path) as archive:
        assert {"setup.sh", "run_autograder"} <= set(archive.namelist())
    assert grade(folder, "--gradescope", "/dev/null/a.zip") == 2
    assert "cannot write /dev/null/a.zip" in complaint(capsys)


def test_a_line_has_nothing_that_a_terminal_obeys(capsys):
    command._say("a\x1b[2Jb\nc")
    assert capsys.readouterr().err == "a?[2Jb?c\n"


def test_interrupted_it_says_that_marks_are_kept(folder, handed_in, tmp_path, capsys, monkeypatch):
    import losslab.grading

    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(losslab.grading, "self_test", stop)
    assert grade(folder, handed_in, "--out", tmp_path / "out") == 130
    assert "what was marked is kept" in complaint(capsys)


SLOW = "import time\ntime.sleep(1.5)\n" + RIGHT


@pytest.mark.parametrize(
    ("number", "everybody", "jobs", "count"),
    [
        (signal.SIGINT, True, 2, 8),
        (signal.SIGINT, True, 2, 3),
        (signal.SIGTERM, False, 2, 8),
        (signal.SIGTERM, False, 1, 8),
    ],
    ids=["as the terminal does", "with an idle worker", "as a queue does", "one worker"],
)
def test_interrupted_half_way_the_tables_have_what_is_marked(folder, tmp_path, number, everybody, jobs, count):
    """Ctrl-C goes to all processes of the terminal; the students' must not have it counted against them."""
    handed_in, out = hand_in(tmp_path / "in", **{f"s{each}": SLOW for each in range(count)}), tmp_path / "out"
    call = [sys.executable, "-m", "losslab", "grade", folder, handed_in, "--out", out, "--jobs", jobs]
    process = subprocess.Popen(
        list(map(str, call)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    deadline = time.monotonic() + 100
    while len(list((out / "marks").glob("[!.]*.json")) if (out / "marks").is_dir() else ()) < 2:
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.05)
    time.sleep(0.7)  # others are half-way
    started = family(process.pid)
    assert len(started) >= 3  # the grader, and a sandbox's two
    (os.killpg if everybody else os.kill)(process.pid, number)
    printed, said = process.communicate(timeout=30)
    assert process.returncode == 128 + number
    assert printed == ""
    first, *progress, last = said.splitlines()
    assert first.startswith(f"small: {count} submissions")
    marked = {line.split()[1].rstrip(":") for line in progress}
    assert progress == [f"{n}/{count} {line.split()[1]} 5 of 5 points" for n, line in enumerate(progress, 1)]
    assert 2 <= len(marked) < count
    assert last == (
        f"losslab grade: interrupted: {len(marked)} of {count} marked; {out / 'index.html'} and the tables have them, "
        "run again to mark the rest"
    )
    assert {r["Student"] for r in table(out / "grades.csv") if r[load_lab(folder).title] == "5"} == marked
    deadline = time.monotonic() + 10
    while left := [pid for pid in started if Path(f"/proc/{pid}").exists()]:
        assert time.monotonic() < deadline, [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in left]
        time.sleep(0.05)

    kept = {path: path.read_bytes() for path in (out / "marks").glob("*.json")}
    again = subprocess.run(list(map(str, call)), capture_output=True, text=True, check=True)
    assert again.stdout.startswith(f"{count} marked, {count - len(marked)} of them now;")
    assert kept.items() <= {path: path.read_bytes() for path in (out / "marks").glob("*.json")}.items()
    assert {r[load_lab(folder).title] for r in table(out / "grades.csv")} == {"5"}


def test_a_module_with_one_function_earns_its_part(folder, tmp_path):
    handed_in = hand_in(tmp_path / "in", cy=TOTAL)
    assert grade(folder, handed_in, "--out", tmp_path / "out", "--jobs", 1) == 0
    assert table(tmp_path / "out" / "grades.csv")[0]["A small lab"] == "1"


def test_a_file_name_that_is_not_utf8_is_marked_like_any_other(folder, handed_in, tmp_path, capsys):
    name = os.fsdecode(b"caf\xe9")
    try:
        (handed_in / f"{name}.py").write_text(RIGHT)
    except OSError:
        pytest.skip("this file system takes UTF-8 only")
    out = tmp_path / "out"
    assert grade(folder, handed_in, "--out", out) == 0
    assert [row["A small lab"] for row in table(out / "grades.csv")] == ["5", "1", "5"]
    assert "3 marked" in capsys.readouterr().out
    filled = (out / "rubric.csv").read_text().splitlines()
    (tmp_path / "filled.csv").write_text(f"{filled[0]}\n{filled[3].replace(',answers', '2,answers')}\n")
    assert grade(folder, handed_in, "--out", out, "--manual", tmp_path / "filled.csv") == 0
    assert [row["A small lab, by hand"] for row in table(out / "grades.csv")] == ["", "", "2"]
    assert "0 of them now" in capsys.readouterr().out


@pytest.mark.parametrize("where", ["batch.write_record", "batch.fingerprint", "exports.public"])
def test_what_goes_wrong_with_one_does_not_end_the_others(where, folder, handed_in, tmp_path, capsys, monkeypatch):
    from losslab.grading import batch, exports

    module, name = {"batch": batch, "exports": exports}[where.split(".")[0]], where.split(".")[1]
    real = getattr(module, name)

    def broken(*arguments):
        names = [getattr(getattr(each, "submission", each), "student", "") for each in arguments[:2]]
        status = [each.mark.status for each in arguments[:2] if hasattr(each, "mark")]
        if "bob" in names and status != ["grader-failure"]:
            raise ValueError("this one is odd")
        return real(*arguments)

    monkeypatch.setattr(module, name, broken)
    out = tmp_path / "out"
    status = grade(folder, handed_in, "--out", out)
    assert status in (1, 2)
    assert "bob" in capsys.readouterr().err
    assert [row["A small lab"] for row in table(out / "grades.csv")] == ["5", ""]
    assert "this one is odd" in (out / "index.html").read_text()


def test_a_late_folder_is_added_to_the_class_and_leaves_no_stale_table(folder, tmp_path, capsys):
    first = hand_in(tmp_path / "first", ada=WRONG, bob=RIGHT)
    (first / "Cy Y_77_assignsubmission_file_lab.py").write_text(RIGHT)
    out = tmp_path / "out"
    assert grade(folder, first, "--out", out, "--seed", 5) == 0
    (out / "grades-moodle.csv").rename(out / "kept.csv")
    (out / "kept.csv").rename(out / "grades-moodle.csv")
    capsys.readouterr()
    late = hand_in(tmp_path / "late", ada=RIGHT, zoe=TOTAL)
    assert grade(folder, late, "--out", out) == 0
    said = capsys.readouterr().err
    assert [(row["Student"], row["A small lab"]) for row in table(out / "grades.csv")] == [
        ("Cy Y", "5"), ("ada", "5"), ("bob", "5"), ("zoe", "1"),
    ]  # fmt: skip
    assert [line for line in said.splitlines() if "replaces" in line] == [
        f"ada: {late / 'ada.py'} replaces {first / 'ada.py'}, which was marked before"
    ]
    assert "2 marked before from another folder stay" in said
    assert table(out / "grades-moodle.csv")[0]["Identifier"] == "Participant 77"  # it remembers the number
    index = (out / "index.html").read_text()
    assert all(name in index for name in ("Cy Y", "ada", "bob", "zoe"))
    (out / "marks").joinpath(next(path.name for path in (out / "marks").glob("Cy*"))).unlink()
    assert grade(folder, late, "--out", out) == 0
    assert not (out / "grades-moodle.csv").exists()


def test_marks_of_another_version_of_the_lab_are_named_as_such(folder, tmp_path, capsys):
    lab = Path(shutil.copytree(folder, tmp_path / "small"))
    first, late, out = hand_in(tmp_path / "first", ada=RIGHT), hand_in(tmp_path / "late", zoe=TOTAL), tmp_path / "out"
    assert grade(lab, first, "--out", out) == 0
    assert grade(lab, late, "--out", out) == 0
    assert "another version" not in capsys.readouterr().err
    with (lab / "marking.py").open("a") as file:
        file.write("# mended\n")
    for _ in range(2):  # and not only once
        assert grade(lab, late, "--out", out) == 0
        assert "1 of them were marked by another version of the lab" in capsys.readouterr().err
    assert grade(lab, first, "--out", out) == 0
    assert "another version" not in capsys.readouterr().err


def test_an_option_left_out_marks_nobody_again(folder, handed_in, tmp_path, capsys):
    out = tmp_path / "out"
    assert grade(folder, handed_in, "--out", out, "--seed", 5, "--timeout", 50) == 0
    assert grade(folder, handed_in, "--out", out) == 0
    assert "2 marked, 0 of them now" in capsys.readouterr().out
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    assert grade(folder, handed_in, "--out", out, "--seed", 6) == 2
    assert complaint(capsys) == f"{out} was marked with seed 5; for --seed 6 use another --out"
    assert before == {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    assert grade(folder, handed_in, "--out", out, "--timeout", 40) == 0
    captured = capsys.readouterr()
    assert "options changed (--timeout 40 instead of 50): marking 2 again" in captured.err
    assert "2 marked, 2 of them now" in captured.out


def test_the_newest_of_two_is_taken_where_it_is_asked_for(folder, tmp_path, capsys):
    handed_in = hand_in(tmp_path / "in", ada_1_20_lab=WRONG, **{"ada_1_21_lab-1": RIGHT, "bob": RIGHT})
    hand_in(handed_in / "bob", lab=WRONG)
    os.utime(handed_in / "bob.py", (2e9, 2e9))
    out = tmp_path / "out"
    assert grade(folder, handed_in, "--out", out) == 2
    assert "2 submissions by" in complaint(capsys)
    assert grade(folder, handed_in, "--out", out, "--latest") == 0
    said = capsys.readouterr().err.splitlines()
    assert "ada_1: ada_1_21_lab-1.py counts, the newest by the number behind its name; not ada_1_20_lab.py" in said
    assert "bob: bob.py counts, the newest by the time of its file; not bob/lab.py" in said
    assert [row["A small lab"] for row in table(out / "grades.csv")] == ["5", "5"]


def test_a_folder_that_is_not_there_is_said_before_anything_is_asked_for(folder, tmp_path, capsys):
    assert grade(folder, tmp_path / "nonexist") == 2
    assert complaint(capsys) == f"there is no folder {tmp_path / 'nonexist'}; name the folder of submissions"


def test_help_says_what_is_usual(capsys):
    with pytest.raises(SystemExit):
        grade("--help")
    said = " ".join(capsys.readouterr().out.split())
    assert "else 60, of which 20 for its cells and 10 for one call" in said
    assert said.count("(default: ") >= 8
