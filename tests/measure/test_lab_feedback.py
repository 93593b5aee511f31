"""Common wrong answers, marked: the committed rows hold together, and one is marked again."""

from pathlib import Path

import pytest

from losslab.grading import load_lab
from losslab.labs.release import find_labs, names_in
from losslab.measure import read
from losslab.measure.lab_feedback import EMPTY, RIGHT, answers, rows_of, submission

ROOT = Path(__file__).parents[2]
LABS = find_labs(ROOT)


@pytest.fixture(scope="module")
def committed():
    rows = read(ROOT / "data" / "measured" / "lab_feedback.csv")[0]
    return [row | {key: float(row[key]) for key in ("points", "out_of")} for row in rows]


def points(rows, lab, answer):
    found = [row for row in rows if (row["lab"], row["answer"]) == (lab, answer)]
    return sum(row["points"] for row in found), sum(row["out_of"] for row in found)


@pytest.mark.parametrize("name", names_in(LABS))
def test_all_is_there_and_every_wrong_answer_loses_something(committed, name):
    lab, given = load_lab(LABS / name), answers(LABS / name)
    assert len(given) >= 6  # the solution, the empty copy, four wrong answers
    assert {row["answer"] for row in committed if row["lab"] == name} == {answer.name for answer in given}
    assert points(committed, name, "solution") == (lab.points, lab.points)
    assert points(committed, name, "empty") == (0, lab.points)
    for answer in given[2:]:
        earned, out_of = points(committed, name, answer.name)
        assert 0 < earned < out_of, answer.name  # one function is wrong, not all
        lost = [row for row in committed if row["lab"] == name and row["answer"] == answer.name]
        assert all(row["feedback"] for row in lost if row["points"] < row["out_of"])
        assert answer.what == lost[0]["what"]


def test_one_marked_again_is_the_same(committed):
    answer = answers(LABS / "perplexity")[2]
    said = [row for row in committed if (row["lab"], row["answer"]) == ("perplexity", answer.name)]
    assert rows_of(LABS / "perplexity", answer) == said


def test_what_is_handed_in():
    folder = LABS / "perplexity"
    wrong = answers(folder)[2]
    solved, empty = submission(folder, RIGHT), submission(folder, EMPTY)
    assert submission(folder, wrong) == solved + b"\n\n" + wrong.source.encode()
    assert b"is not written yet" in empty
    assert b"is not written yet" not in solved
