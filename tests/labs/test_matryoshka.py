"""The matryoshka lab: common wrong answers lose the points they should, and are told which promise they break."""

import numpy as np
import pytest
import torch

from losslab import retrieval
from losslab.grading import load_lab
from losslab.measure.lab_feedback import EMPTY, RIGHT, answers, rows_of

pytestmark = pytest.mark.xdist_group("lab-matryoshka")

RENORMALISE = "The first dim numbers of each row, divided by their own length."
# Items lost by each answer, and what its author is told.
LOST = {
    "not-renormalised": ({"truncate", "empty-prefix", "svd"}, [RENORMALISE]),
    "normalised-before-the-cut": ({"truncate", "empty-prefix"}, [RENORMALISE]),
    "divided-by-zero": ({"empty-prefix"}, ["A row whose first dim numbers are 0 stays 0, without NaN.", "not finite"]),
    "rank-from-zero": ({"ndcg", "ndcg-ideal", "ndcg-ties"}, ["The gains of 1 / log2(rank + 1) up to rank k"]),
    "ideal-without-cutoff": ({"ndcg", "ndcg-ideal"}, ["The best order has no more than k right documents"]),
    "mean-over-queries": ({"ndcg", "ndcg-ideal", "ndcg-ties"}, ["The gains of 1 / log2(rank + 1)"]),
    "centred": ({"svd"}, ["in which the documents, as they are, are longest"]),
    "fitted-on-the-queries": ({"svd"}, ["in which the documents, as they are, are longest"]),
    "no-seed": ({"draws"}, ["One generator with this seed, one call of torch.randint."]),
    "without-replacement": ({"draws"}, ["One generator with this seed, one call of torch.randint."]),
    "unpaired": ({"interval", "paired"}, ["Where every query differs by the same amount, the interval has no width."]),
    "quantiles-of-one-tail": ({"interval"}, ["quantiles (1 - level) / 2 and (1 + level) / 2"]),
    "no-ties": ({"verdict"}, ["A tie if the interval holds 0, its ends included."]),
}


def test_every_listed_answer_is_tested(labs_folder):
    assert [one.name for one in answers(labs_folder / "matryoshka")] == [RIGHT.name, EMPTY.name, *LOST]


@pytest.mark.parametrize("name", LOST)
def test_a_wrong_answer_loses_what_it_should_and_is_told_why(name, labs_folder):
    folder = labs_folder / "matryoshka"
    answer = next(one for one in answers(folder) if one.name == name)
    rows = rows_of(folder, answer)
    lost, said = LOST[name]
    assert {row["item"] for row in rows if row["points"] < row["out_of"]} == lost
    feedback = "\n".join(row["feedback"] for row in rows)
    for sentence in said:
        assert sentence in feedback
    assert "should be" in feedback


@pytest.fixture(scope="module")
def marking(labs_folder):
    """The check of each item."""
    return {item.id: item.check for item in load_lab(labs_folder / "matryoshka").items if item.check is not None}


def cases(check, seed=4):
    """As many as are marked."""
    random = np.random.default_rng(seed)
    return [check.draw(random, size) for size in range(1, check.cases + 1)]


def test_ndcg_is_the_librarys(marking):
    """Where no scores are equal; the library breaks ties by id and the lab by place."""
    for item in ("ndcg", "ndcg-ideal"):
        for case in cases(marking[item]):
            right = [np.flatnonzero(row) for row in case["relevant"]]
            name = f"nDCG@{case['k']}"
            expected = retrieval.evaluate_scores(torch.tensor(case["scores"]), right, [name])[name]
            np.testing.assert_allclose(marking[item].oracle(**case), expected, rtol=0, atol=1e-12)


def test_ndcg_by_hand(marking):
    """The right document at rank 3 of 3: 1 / log2(4); two equal scores: the first of them goes first."""
    check = marking["ndcg"]
    assert check.oracle(np.array([[3.0, 2.0, 1.0]]), np.array([[False, False, True]]), 10).tolist() == [0.5]
    assert check.oracle(np.array([[1.0, 1.0]]), np.array([[True, False]]), 10).tolist() == [1.0]


def test_directions_are_the_librarys(marking):
    """Eigenvectors of the moments there, singular vectors here."""
    for case in cases(marking["svd"]):
        fitted = retrieval.fit("svd", case["documents"], [case["dim"]])
        queries, documents = (
            fitted.reduce(case[name], case["dim"]).double().numpy() for name in ("queries", "documents")
        )
        np.testing.assert_allclose(marking["svd"].oracle(**case), queries @ documents.T, rtol=0, atol=1e-6)


def test_intervals_are_numpys(marking):
    for case in cases(marking["interval"]):
        means = (case["ours"] - case["baseline"])[case["drawn"]].mean(1)
        ends = np.quantile(means, [(1 - case["level"]) / 2, (1 + case["level"]) / 2])
        gap, low, high = marking["interval"].oracle(**case)
        np.testing.assert_allclose(
            [gap, low, high], [(case["ours"] - case["baseline"]).mean(), *ends], rtol=0, atol=1e-12
        )


def test_the_inputs_tell_a_mean_of_zero_from_another(marking):
    """The documents' mean is large against their spread, or nobody would notice that it was subtracted."""
    for case in cases(marking["svd"])[1:]:
        documents = case["documents"]
        assert np.linalg.norm(documents.mean(0)) > 0.5 * np.linalg.norm(documents - documents.mean(0), axis=1).mean()


def test_a_constant_advantage_has_no_width(marking):
    for case in cases(marking["paired"]):
        gap, low, high = marking["paired"].oracle(**case)
        assert gap == pytest.approx(low) == pytest.approx(high)
