"""The padding lab: common wrong answers lose the points they should, and are told which promise they break."""

import math

import numpy as np
import pytest
import torch

from losslab import losses
from losslab.grading import load_lab
from losslab.measure.lab_feedback import EMPTY, RIGHT, answers, rows_of

pytestmark = pytest.mark.xdist_group("lab-padding")

# Items lost by each answer, and what its author is told.
LOST = {
    "mask-after-the-sum": (
        {"empty-slots", "nan-slots", "loss", "neighbours", "far"},
        ["An empty slot is no candidate of any pick", "Padding does not change what a query teaches"],
    ),
    "fill-with-minus-ten": (
        {"empty-slots", "nan-slots", "loss", "neighbours", "far"},
        ["An empty slot is no candidate of any pick", "Padding does not change what a query teaches"],
    ),
    "times-the-mask": (
        {"empty-slots", "nan-slots", "loss", "neighbours", "far"},
        ["NaN or a huge number in an empty slot changes nothing", "it is not finite"],
    ),
    "exponentials": (
        {"mass-left-far", "far"},
        ["Logits near -900 and 900 neither overflow nor vanish", "For logits from -1000 to 1000"],
    ),
    "sum-from-the-start": (
        {"mass-left", "mass-left-far", "empty-slots", "nan-slots", "loss"},
        ["Column i holds the log of the sum of exp from column i to the end"],
    ),
    "unstable-sort": (
        {"by-label", "neighbours", "short-and-tied"},
        [
            "equal labels in the order they stand at any width",
            "Equal labels (and equal logits) are put in the same order",
        ],
    ),
    "worst-first": ({"by-label", "loss"}, ["Highest label first"]),
    "short-lists-counted": (
        {"loss", "short-and-tied"},
        ["A list of no or one document contributes 0", "its weight is off by a factor of 0.5"],
    ),
    "mean-over-documents": ({"loss", "neighbours"}, ["A batch's value is the mean over its counted queries"]),
    "no-error": ({"nothing-to-rank"}, ["A batch without a list of two documents is refused"]),
}
# Of items that are worth a share a promise, what is left.
KEPT = {
    ("unstable-sort", "neighbours"): 1,
    ("mean-over-documents", "neighbours"): 1,
}


def test_every_listed_answer_is_tested(labs_folder):
    assert [one.name for one in answers(labs_folder / "padding")] == [RIGHT.name, EMPTY.name, *LOST]


@pytest.mark.parametrize("name", LOST)
def test_a_wrong_answer_loses_what_it_should_and_is_told_why(name, labs_folder):
    folder = labs_folder / "padding"
    answer = next(one for one in answers(folder) if one.name == name)
    rows = rows_of(folder, answer)
    lost, said = LOST[name]
    assert {row["item"] for row in rows if row["points"] < row["out_of"]} == lost
    assert {(name, row["item"]): row["points"] for row in rows if 0 < row["points"] < row["out_of"]} == {
        key: points for key, points in KEPT.items() if key[0] == name
    }
    feedback = "\n".join(row["feedback"] for row in rows)
    for sentence in said:
        assert sentence in feedback
    assert "should be" in feedback


@pytest.fixture(scope="module")
def marking(labs_folder):
    """The names that the lab's ``marking.py`` defines, by way of its draws."""
    lab = load_lab(labs_folder / "padding")
    return {item.id: item.check for item in lab.items if item.check is not None}


def test_the_oracle_is_the_librarys_loss_and_gradient(marking):
    """Two roads to one number: a loop over picks, and an autograd function."""
    check, random = marking["loss"], np.random.default_rng(3)
    for size in range(1, 9):
        case = check.draw(random, size)
        given = {key: torch.tensor(value) for key, value in case.items()}
        given["logits"].requires_grad_()
        loss = losses.list_mle(**given)
        (gradient,) = torch.autograd.grad(loss, given["logits"])
        assert check.oracle(**case) == pytest.approx(loss.item(), rel=1e-12)
        np.testing.assert_allclose(check.oracle_gradients(**case)["logits"], gradient, rtol=0, atol=1e-12)


def test_the_oracle_by_hand(marking):
    """Logits 1.5 and 0.3 cost log(1 + exp(-1.2)), whatever stands in the third slot."""
    cost = math.log1p(math.exp(-1.2))
    logits, mask = np.array([[1.5, 0.3, np.nan]]), np.array([[True, True, False]])
    assert marking["one-list"].oracle(logits[0, :2]) == pytest.approx(cost, rel=1e-12)
    np.testing.assert_allclose(marking["nan-slots"].oracle(logits, mask), [[cost, 0, 0]], rtol=0, atol=1e-12)
    labels = np.array([[1.0, 2.0, 3.0]])
    assert marking["loss"].oracle(logits, labels, mask) == pytest.approx(cost + 1.2, rel=1e-12)
    assert marking["by-label"].oracle(labels, mask).tolist() == [[1, 0, 2]]


def test_inputs_grow_and_hold_what_they_are_for(marking):
    random = np.random.default_rng(5)
    drawn = {
        name: [check.draw(random, size) for size in range(1, 9)]
        for name, check in marking.items()
        if hasattr(check, "draw")
    }
    assert all(not case["mask"].all() for name in ("empty-slots", "nan-slots", "by-label") for case in drawn[name])
    assert all(not np.isfinite(case["logits"]).all() or case["logits"].max() > 1e5 for case in drawn["nan-slots"])
    assert max(case["labels"].shape[1] for case in drawn["by-label"]) > 16
    assert any((case["mask"].sum(1) < 2).any() for case in drawn["loss"])
    assert all((case["mask"].sum(1) >= 2).any() for case in drawn["loss"])
    assert all((case["mask"].sum(1) < 2).all() for case in drawn["nothing-to-rank"])
