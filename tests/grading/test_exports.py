"""Tables, pages and files of marks: what importers read in them, and what no student's text can do to them."""

import csv
import io
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from losslab.grading import Feedback, ItemMark, Mark, exports, feedback, gradescope, load_lab
from losslab.grading.batch import Batch, BatchError, Record, Submission
from small_lab import RIGHT, write_lab

EVIL = "<script>alert(1)</script><img src=x onerror=alert(1)>&\"'\0\x1b[2J"


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    return load_lab(write_lab(tmp_path_factory.mktemp("labs") / "small"))


def record(student="ada", total=1.0, perplexity=4.0, status="marked", sentence="perplexity is exp of the mean", **more):
    submission = Submission(student, Path(f"{student}.py"), **more)
    if status == "grader-failure":
        return Record(submission, "print", Mark(student, "small", 7, status, (), "OSError: the disk broke", 0.0))
    items = (
        ItemMark("total", "Add up", 1, total, 1, (Feedback(total == 1, "total adds all values up"),)),
        ItemMark(
            "perplexity",
            "Perplexity",
            2,
            perplexity,
            4,
            (Feedback(perplexity == 4, sentence, () if perplexity == 4 else (("went in", "values [1.0]"),)),),
        ),
        ItemMark("why", "Why the mean?", 3, None, 2),
    )
    return Record(submission, "print", Mark(student, "small", 7, "marked", items, "hello", 1.5))


def rows(content):
    return list(csv.reader(io.StringIO(content.decode("utf-8"))))


def grades(lab, records, by_hand=None, possible=False):
    batch = Batch(records=records)
    return rows(exports.grades(lab, batch, [each.submission for each in records], by_hand or {}, possible=possible))


def test_grades_have_the_columns_that_canvas_looks_for(lab):
    header, ada = grades(lab, [record()])
    # Canvas: Student, ID, then SIS User ID and SIS Login ID, then Section, then one assignment a column
    assert header == [*exports.CANVAS_COLUMNS, "A small lab", "A small lab, by hand"]
    assert header[:5] == ["Student", "ID", "SIS User ID", "SIS Login ID", "Section"]
    assert ada == ["ada", "", "", "ada", "", "5", ""]


def test_canvas_is_told_the_points_possible_and_moodle_gets_no_row_without_a_student(lab):
    assert grades(lab, [record()], possible=True)[1] == ["    Points Possible", "", "", "", "", "5", "2"]
    for row in grades(lab, [record(), record("bob", canvas_id="12")])[1:]:
        assert row[1] or row[3]  # Moodle would write the mark to the student in the row before


def test_canvas_finds_its_students_by_their_number(lab):
    assert grades(lab, [record("lovelaceada_42", canvas_id="42")])[1][:4] == ["lovelaceada_42", "42", "", ""]


def test_a_failure_of_the_grader_is_an_empty_cell_and_a_zero_is_a_zero(lab):
    header, failed, zero = grades(lab, [record("bob", status="grader-failure"), record("cy", total=0, perplexity=0)])
    column = header.index("A small lab")
    assert failed[column] == ""
    assert zero[column] == "0"


def test_points_by_hand_stay_empty_until_all_are_given(lab):
    assert grades(lab, [record()])[1][-1] == ""
    assert grades(lab, [record()], {"ada": {"why": 1.5}})[1][-1] == "1.5"


@pytest.mark.parametrize("student", ["=cmd|' /C calc'!A0", "+1", "-1+1", "@SUM(A1)", "\t=1", "  =1", "＝1", "\r=1"])
def test_no_cell_begins_a_formula(lab, student):
    records = [record(student)]
    tables = [
        grades(lab, records),
        grades(lab, records, possible=True),
        rows(exports.rubric(lab, Batch(records), [records[0].submission], {})),
        rows(exports.worksheet(lab, Batch([record(student, participant="5", perplexity=0, sentence=student)]), {})),
    ]
    found = [entry for each in tables for row in each for entry in row]
    assert any(student in entry for entry in found)
    harmless = ("    Points Possible",)
    assert not [e for e in found if e not in harmless and e.lstrip(" ").startswith(exports.FORMULA)]


def test_points_have_two_decimals_at_most_and_no_comma(lab):
    assert grades(lab, [record(perplexity=4 / 3)])[1][5] == "2.33"
    assert exports.cell(1e6) == "1000000"
    assert exports.cell(-0.5) == "-0.5"


def test_the_worksheet_for_moodle_knows_participants(lab):
    header, row = rows(
        exports.worksheet(lab, Batch([record("Ada L", participant="77", perplexity=0)]), {"Ada L": {"why": 2}})
    )
    # Moodle's importer needs these three by name
    assert {"Identifier", "Grade", "Last modified (grade)"} <= set(header)
    cells = dict(zip(header, row, strict=True))
    assert cells["Identifier"] == "Participant 77"
    assert (cells["Grade"], cells["Maximum Grade"]) == ("3", "7")
    assert "perplexity is exp of the mean" in cells["Feedback comments"]


def test_the_worksheet_has_no_grade_while_the_hand_marked_part_is_missing_or_the_grader_failed(lab):
    records = [record("a", participant="1"), record("b", participant="2", status="grader-failure")]
    sheet = rows(exports.worksheet(lab, Batch(records), {"b": {"why": 2}}))
    assert [row[2] for row in sheet] == ["Grade", "", ""]
    assert exports.worksheet(lab, Batch([record()]), {}) is None


def manual_file(tmp_path, text):
    path = tmp_path / "by hand.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_rubric_filled_in_is_read_back(lab, tmp_path):
    records = [record("ada"), record("=bob")]
    submissions = [each.submission for each in records]
    header, *students = rows(exports.rubric(lab, Batch(records), submissions, {}))
    assert header == ["Student", "Status", "total", "perplexity", "why", "Answers"]
    assert students[0] == ["ada", "marked", "1", "4", "", "answers/ada.html"]
    for row in students:
        row[4] = "1,5"
    text = "\n".join(",".join(f'"{entry}"' for entry in row) for row in (header, *students))
    given = exports.read_by_hand(manual_file(tmp_path, "\ufeff" + text), lab, submissions)
    assert given == {"ada": {"why": 1.5}, "=bob": {"why": 1.5}}
    assert exports.keep_by_hand(tmp_path, given) == given
    assert exports.keep_by_hand(tmp_path, {"ada": {"why": 2.0}})["ada"] == {"why": 2.0}
    assert exports.keep_by_hand(tmp_path, {})["=bob"] == {"why": 1.5}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Student,why\nada,3\n", "line 2: why is '3'; expected points from 0 to 2"),
        ("Student,why\nada,-1\n", "why is '-1'"),
        ("Student,why\nada,nan\n", "why is 'nan'"),
        ("Student,why\nada,two\n", "why is 'two'"),
        ("Student,why\nzoe,1\n", "line 2: no submission by 'zoe'"),
        ("Name,why\nada,1\n", "needs the columns Student and why; it has Name, why"),
        ("", "needs the columns Student and why; it has none"),
    ],
)
def test_points_by_hand_that_make_no_sense_are_refused(lab, tmp_path, text, message):
    with pytest.raises(BatchError, match=r"by hand\.csv") as caught:
        exports.read_by_hand(manual_file(tmp_path, text), lab, [record().submission])
    assert message in str(caught.value)


def written(lab, records, out, by_hand=None):
    exports.write(out, lab, Batch(records), [each.submission for each in records], by_hand or {}, 987654321)
    return out


def test_whatever_a_student_writes_is_text_on_the_pages(lab, tmp_path):
    out = written(lab, [record(EVIL, perplexity=0, sentence=EVIL)], tmp_path)
    pages = [path.read_text() for path in (out / "index.html", *(out / "feedback").glob("*.html"))]
    pages += [path.read_text() for path in (out / "answers").glob("*.html")]
    assert len(pages) == 3
    for text in pages:
        assert "<script" not in text
        assert "<img" not in text
        assert "&lt;script&gt;" in text
        assert all(character.isprintable() or character == "\n" for character in text)
        assert "default-src 'none'" in text
    assert all(path.parent in (out, out / "feedback", out / "answers") for path in out.rglob("*.html"))


@pytest.mark.parametrize("student", ["../../etc/passwd", "a/b", "..", "", "ä", "x" * 300, "con.", "a b"])
def test_every_student_has_a_file_name_of_their_own_inside_the_folder(student):
    key = Submission(student, Path("x")).key
    assert "/" not in key
    assert not key.startswith(".")
    assert len(key) < 80
    assert key.isascii()
    assert key != Submission(student + "!", Path("x")).key


def test_a_student_is_told_neither_the_seed_nor_the_graders_log_on_failure(lab, tmp_path):
    out = written(lab, [record(perplexity=0), record("bob", status="grader-failure")], tmp_path)
    for path in (out / "feedback").iterdir():
        assert "987654321" not in path.read_text()
        assert '"seed"' not in path.read_text()
    assert "the disk broke" not in (out / "feedback" / "bob.html").read_text()
    assert "says nothing about your work" in (out / "feedback" / "bob.html").read_text()
    index = (out / "index.html").read_text()
    assert "the disk broke" in index
    assert index.index("Failures of the grader") < index.index("Points from the checks") < index.index("Everybody")


def test_the_index_counts_what_is_broken_and_how_marks_lie(lab, tmp_path):
    records = [record("a"), record("b", perplexity=0), record("c", perplexity=0), record("d", total=0)]
    index = (written(lab, records, tmp_path) / "index.html").read_text()
    broken = index[index.index("Broken most often") : index.index("Everybody")]
    assert broken.index("<td class='count'>2</td><td>Step 2 · Perplexity") < broken.index(
        "<td class='count'>1</td><td>Step 1 · Add up"
    )
    assert "Median 2.5 of 5; 1 of 4 have all points." in index  # 5, 1, 1, 4


def test_what_differs_only_in_its_numbers_is_told_as_one_thing(lab, tmp_path):
    off = [
        "Exp of the mean. It is off by 2.672.",
        "Exp of the mean. It is off by 1.3e-05.",
        "Step 2 is not written yet",
    ]
    records = [record(name, perplexity=0, sentence=said) for name, said in zip("abc", off, strict=True)]
    index = (written(lab, records, tmp_path) / "index.html").read_text()
    assert "Exp of the mean. It is off by …. <span class='soft'>(2×)</span>" in index
    index = (written(lab, records[:1], tmp_path / "one") / "index.html").read_text()
    assert "It is off by 2.672. <span class='soft'>(1×)</span>" in index


def test_json_for_the_student_says_what_is_still_to_be_marked(lab, tmp_path):
    out = written(lab, [record(perplexity=0)], tmp_path, {"ada": {"why": 2.0}})
    content = json.loads((out / "feedback" / "ada.json").read_text())
    assert (content["points"], content["out_of"]) == (1.0, 5)
    assert [(item["id"], item["points"], item["by_hand"]) for item in content["items"]] == [
        ("total", 1.0, False),
        ("perplexity", 0.0, False),
        ("why", 2.0, True),
    ]


def test_pages_fit_a_phone_and_read_well_in_both_themes(lab, tmp_path, browser):
    from axe_playwright_python.sync_playwright import Axe

    long = "x" * 500 + " " + "word " * 100
    records = [record("ada", perplexity=2, sentence=long), record("bob", status="grader-failure")]
    out = written(lab, records, tmp_path)
    for scheme in ("light", "dark"):
        context = browser.new_context(
            viewport={"width": 390, "height": 800}, color_scheme=scheme, java_script_enabled=True, bypass_csp=True
        )
        page = context.new_page()
        for name in ("index.html", "feedback/ada.html", "feedback/bob.html"):
            page.goto((out / name).as_uri())
            assert page.evaluate("document.documentElement.scrollWidth") <= 390
            assert page.evaluate("parseFloat(getComputedStyle(document.body).fontSize)") >= 16
            found = Axe().run(page)
            assert found.violations_count == 0, found.generate_report()
        context.close()
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto((out / "feedback" / "ada.html").as_uri())
    assert "to be marked by hand, of 2 points" in page.inner_text("main")
    context.close()


def test_gradescope_is_given_a_test_an_item(lab):
    content = gradescope.results(lab, record(perplexity=1).mark)
    assert content["score"] == 2.0
    assert [(t["name"], t["score"], t["max_score"], t["status"], t["visibility"]) for t in content["tests"]] == [
        ("Add up", 1.0, 1, "passed", "visible"),
        ("Perplexity", 1.0, 4, "failed", "visible"),
    ]
    assert "went in" in content["tests"][1]["output"]
    assert content["output"] == "To be marked by hand: Why the mean? (2 points)."
    json.dumps(content, allow_nan=False)


def test_gradescope_gets_no_results_for_a_failure_of_the_grader(lab, tmp_path):
    failed = record("bob", status="grader-failure")
    with pytest.raises(ValueError, match="the grader failed"):
        gradescope.results(lab, failed.mark)
    out = written(lab, [record("bob")], tmp_path)
    assert (out / "gradescope" / "bob" / "results.json").exists()
    written(lab, [failed], tmp_path)
    assert not (out / "gradescope" / "bob" / "results.json").exists()


@pytest.fixture(scope="module")
def autograder(lab, tmp_path_factory):
    """A folder like Gradescope's, with the zip unpacked."""
    root = tmp_path_factory.mktemp("gradescope") / "autograder"
    folder = write_lab(tmp_path_factory.mktemp("labs") / "small")
    for name in ("lab.md", "wrong.py", "solution.py", "small.py"):
        (folder / name).write_text(RIGHT)
    content = gradescope.autograder(lab, folder)
    assert content == gradescope.autograder(lab, folder)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        archive.extractall(root / "source")
        assert archive.getinfo("setup.sh").external_attr >> 16 & 0o111
        names = archive.namelist()
    assert {"setup.sh", "run_autograder", "labs/small/marking.py", "losslab/grading/marking.py"} <= set(names)
    assert not [name for name in names if "__pycache__" in name]
    assert [name for name in names if name.startswith("labs/")] == ["labs/small/marking.py"]  # no solutions
    (root / "run_autograder").write_bytes((root / "source" / "run_autograder").read_bytes())
    (root / "run_autograder").chmod(0o755)
    (root / "results").mkdir()
    return root


def run_autograder(root, **files):
    (root / "results" / "results.json").unlink(missing_ok=True)
    submission = root / "submission"
    submission.mkdir(exist_ok=True)
    for old in submission.iterdir():
        old.unlink()
    for name, source in files.items():
        (submission / f"{name}.py").write_text(source)
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        [root / "run_autograder"],
        cwd=root,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        timeout=120,
        check=False,
    )
    path = root / "results" / "results.json"
    return done, json.loads(path.read_text()) if path.exists() else None


def test_the_autograder_marks_from_its_zip_alone(autograder):
    done, content = run_autograder(autograder, solution=RIGHT)
    assert done.returncode == 0, done.stdout
    assert content["score"] == 5.0
    assert "seed" in done.stdout


def test_the_autograder_needs_no_package_that_its_setup_leaves_out(autograder):
    hidden = ("joblib", "nbformat", "matplotlib", "anywidget", "ipywidgets", "scipy", "sklearn", "distributed")
    hide = f"import sys; sys.modules.update(dict.fromkeys({hidden!r})); from losslab.grading import gradescope, mark"
    environment = {**os.environ, "PYTHONPATH": str(autograder / "source")}
    subprocess.run([sys.executable, "-c", hide], check=True, env=environment)


def test_the_autograder_says_which_file_it_cannot_choose(autograder):
    done, content = run_autograder(autograder, one=RIGHT, two=RIGHT)
    assert done.returncode == 0
    assert content["score"] == 0.0
    assert "one.py, two.py" in content["output"]


def test_an_autograder_that_fails_writes_no_results(autograder):
    broken = autograder / "source" / "labs" / "small" / "marking.py"
    whole = broken.read_text()
    try:
        broken.write_text("raise RuntimeError('broken lab')")
        done, content = run_autograder(autograder, solution=RIGHT)
    finally:
        broken.write_text(whole)
    assert done.returncode == 1
    assert "broken lab" in done.stdout
    assert content is None


def test_the_setup_script_is_one_that_bash_reads(autograder):
    subprocess.run(["bash", "-n", autograder / "source" / "setup.sh"], check=True)
    text = (autograder / "source" / "setup.sh").read_text()
    assert "torch==" in text
    assert "bubblewrap" in text


def test_text_of_a_page_is_text(lab):
    said = feedback.as_text(lab, record(perplexity=0), {})
    assert said.splitlines()[0] == "Step 1 · Add up: 1 of 1 point"
    assert "Why the mean?: to be marked by hand, of 2 points" in said


def test_a_student_cannot_read_the_marking_on_gradescope(autograder):
    peek = f"""
import pathlib
for path in ({str(autograder / "source" / "labs" / "small" / "marking.py")!r}, "/autograder/source", "/autograder"):
    assert not pathlib.Path(path).exists()
"""
    _, content = run_autograder(
        autograder,
        solution=RIGHT
        + "def total(values):\n    "
        + "\n    ".join([*peek.strip().splitlines(), "return sum(values)"])
        + "\n",
    )
    assert content["score"] == 5.0


def test_what_is_marked_by_hand_is_shown_to_the_instructor_as_text(lab, tmp_path):
    path = tmp_path / "in" / "ada.py"
    path.parent.mkdir()
    path.write_text(
        f"{RIGHT}\n# Open question. Why?\nWHY = '''\nBecause <b>logs</b> add up.\n'''\n# And more.\n# ------\nx = 1\n"
    )
    one = record("ada")
    written(lab, [Record(Submission("ada", path), one.fingerprint, one.mark)], tmp_path / "out")
    page = (tmp_path / "out" / "answers" / "ada.html").read_text()
    assert "Because &lt;b&gt;logs&lt;/b&gt; add up." in page
    assert "And more." in page
    assert "x = 1" not in page
    assert "href='answers/ada.html'" in (tmp_path / "out" / "index.html").read_text()
    assert "Because" not in (tmp_path / "out" / "feedback" / "ada.html").read_text()


def test_answers_in_a_notebook_are_found_by_their_name(tmp_path):
    from losslab.grading.submissions import answers

    def cell(text, **of):
        return {"cell_type": "markdown", "metadata": {"nbgrader": of} if of else {}, "source": [text]}

    cells = [cell("Before"), cell("First\n", grade_id="open"), cell("added"), cell("B", grade_id="reflection")]
    (tmp_path / "a.ipynb").write_text(json.dumps({"cells": cells}))
    found = answers(tmp_path / "a.ipynb", "notebook", ["open", "reflection", "none"], 10**6)
    assert found == {"open": "First\n\n\nadded", "reflection": "B", "none": ""}


def test_what_cannot_be_read_is_apart_and_said_once(lab, tmp_path):
    from dataclasses import replace

    zero = record("eve", total=0, perplexity=0)
    items = tuple(replace(item, feedback=()) for item in zero.mark.items)
    mark = replace(zero.mark, items=items, unreadable="handed in essay.docx; expected a module (.py)")
    records = [record("ada"), record("bob"), replace(zero, mark=mark)]
    out = written(lab, records, tmp_path)
    index = (out / "index.html").read_text()
    assert "Median 5 of 5; 2 of 2 have all points." in index
    assert "Broken most often" not in index
    assert index.index("handed in essay.docx") < index.index("Points from the checks")
    assert (out / "feedback" / "eve.html").read_text().count("handed in essay.docx") == 1
    assert rows((out / "rubric.csv").read_bytes())[3][1] == "unreadable"
    assert "handed in essay.docx" in gradescope.results(lab, mark)["output"]
