"""The lab on false negatives: common wrong answers lose what they should, and are told which promise they break."""

import itertools

import numpy as np
import pytest
import torch

from losslab import losses
from losslab.grading import load_lab
from losslab.losses.false_negatives import exact_duplicates
from losslab.measure.lab_feedback import EMPTY, RIGHT, Answer, answers, rows_of

pytestmark = pytest.mark.xdist_group("lab-false-negatives")

EVERY_MASK = {"loss", "loss-alone", "loss-positive"}
NOTHING_ELSE = "a softmax over the positive and the documents that are allowed, and nothing else"
# Items that lose all their points by each answer, and what its author is told.
LOST = {
    "chance-replaced": ({"chance", "chance-certain"}, "drawn without replacement from the pairs − 1 others"),
    "chance-query-drawn": ({"chance", "chance-certain"}, "from the pairs − 1 others"),
    "chance-expected": ({"chance", "chance-certain"}, "1 where the batch leaves no room to miss"),
    "ids-documents-only": ({"ids"}, "the document of a query that asks the same"),
    "ids-positive-masked": ({"ids"}, "a query's own document is always True"),
    "ids-inverted": ({"ids"}, "allowed_by_ids forbids a document of the positive's id"),
    "guide-above-only": ({"guide-copies"}, "forbids an exact copy of the positive"),
    "guide-positive-masked": ({"guide", "guide-copies"}, "a query's own document is always True"),
    "guide-margin-up": ({"guide"}, "less than margin behind that query's positive, or ahead of it"),
    "guide-by-column": ({"guide", "guide-copies"}, "behind that query's positive"),
    "loss-zero-logit": (EVERY_MASK, NOTHING_ELSE),
    "loss-late-mask": (EVERY_MASK, NOTHING_ELSE),
    "loss-inf-times-zero": (EVERY_MASK, "makes nothing NaN"),
    "loss-positive-dropped": ({"loss-positive"}, "keeps a query's own document in the sum, whatever the mask says"),
    "loss-lonely-left-out": ({"loss-alone"}, "counts a query that has no negative left: it pays 0"),
    "loss-not-normalised": (EVERY_MASK, NOTHING_ELSE),
    "count-alone": ({"count"}, "the queries that have no negative left"),
    "count-missed": ({"count"}, "those of them that are wrong and those that are not"),
}
# Of the item with a share a promise, what these answers keep: the promise on duplicates is broken, of four.
PARTLY = {"loss-zero-logit": 1.5, "loss-late-mask": 1.5, "loss-inf-times-zero": 1.5}


def function_of(answer):
    """Name of the function that an answer writes anew."""
    return answer.source.split("def ", 1)[1].split("(", 1)[0]


@pytest.fixture(scope="module")
def marked(labs_folder):
    """Rows of items by answer. Answers to different functions are handed in together: their items do not meet."""
    folder = labs_folder / "false-negatives"
    owner = {item.id: item.check.function for item in load_lab(folder).items if item.check is not None}
    wrong = [one for one in answers(folder) if one not in (RIGHT, EMPTY)]
    found = {}
    while wrong:
        together = list({function_of(one): one for one in reversed(wrong)}.values())
        wrong = [one for one in wrong if one not in together]
        rows = rows_of(folder, Answer("together", "", "\n".join(one.source for one in together)))
        for one in together:
            found[one.name] = [row for row in rows if owner[row["item"]] == function_of(one)]
    return found


def test_every_listed_answer_is_tested(labs_folder):
    assert [one.name for one in answers(labs_folder / "false-negatives")] == [RIGHT.name, EMPTY.name, *LOST]


@pytest.mark.parametrize("name", LOST)
def test_a_wrong_answer_loses_what_it_should_and_is_told_why(name, marked):
    lost, said = LOST[name]
    assert {row["item"] for row in marked[name] if row["points"] == 0} == lost
    partly = [row["points"] for row in marked[name] if 0 < row["points"] < row["out_of"]]
    assert partly == ([PARTLY[name]] if name in PARTLY else [])
    feedback = "\n".join(row["feedback"] for row in marked[name])
    assert said in feedback
    assert ("is a copy of query" in feedback) == (name in PARTLY)
    assert all(part in feedback for part in ("went in", "yours gave", "should be"))


@pytest.fixture(scope="module")
def checks(labs_folder):
    """The hidden tests by their item's id."""
    return {item.id: item.check for item in load_lab(labs_folder / "false-negatives").items if item.check is not None}


def cases(check, seed=0):
    random = np.random.default_rng(seed)
    return [check.draw(random, size) for size in range(1, check.cases + 1)]


@pytest.mark.parametrize(("right", "pairs", "width"), [(1, 3, 2), (0, 6, 4), (2, 9, 5), (4, 8, 5), (3, 12, 6)])
def test_the_chance_is_that_of_all_batches_counted(right, pairs, width, checks):
    batches = list(itertools.combinations(range(pairs - 1), width - 1))
    share = sum(min(batch) < right for batch in batches) / len(batches)
    assert checks["chance"].oracle(right, pairs, width) == pytest.approx(share, rel=1e-12)


def test_chances_are_open_in_one_item_and_settled_in_the_other(checks):
    for seed in range(20):
        assert all(0 < checks["chance"].oracle(**case) <= 1 for case in cases(checks["chance"], seed))
        settled = [checks["chance-certain"].oracle(**case) for case in cases(checks["chance-certain"], seed)]
        assert settled == [0, 1] * 4


def test_the_mask_by_ids_is_the_librarys(checks):
    for case in cases(checks["ids"]):
        masks = [exact_duplicates(torch.tensor(case[side])) for side in ("query_ids", "document_ids")]
        assert checks["ids"].oracle(**case).tolist() == (masks[0] & masks[1]).tolist()
        assert not (masks[0] & masks[1]).all()


def test_the_mask_of_a_guide_by_hand(checks):
    scores = np.array([[0.5, 0.375, 0.125], [0.25, 0.75, 0.5], [0.875, 0.0, 0.5]])
    assert checks["guide"].oracle(scores, 0.25).tolist() == [[1, 0, 1], [1, 1, 0], [0, 1, 1]]
    for case in cases(checks["guide"]):
        bound = np.diagonal(case["guide_scores"])[:, None] - case["margin"]
        assert (case["guide_scores"] != bound).all()  # on which side the bound itself lies is the next item's question
        assert not checks["guide"].oracle(**case).all()
    for case in cases(checks["guide-copies"]):
        own = np.diagonal(case["guide_scores"])[:, None]
        assert ((case["guide_scores"] == own).sum(1) >= 2).all()


@pytest.mark.parametrize("item", ["loss", "loss-alone", "loss-positive"])
def test_the_loss_and_its_gradient_are_the_librarys(item, checks):
    for case in cases(checks[item]):
        given = {side: torch.tensor(case[side], requires_grad=True) for side in ("queries", "documents")}
        own = torch.eye(*case["negatives"].shape, dtype=torch.bool)
        allowed = torch.tensor(case["negatives"]) | own
        loss = losses.info_nce(**given, negatives=allowed, temperature=case["temperature"])
        assert checks[item].oracle(**case) == pytest.approx(loss.item(), rel=1e-9, abs=1e-12)
        wanted = torch.autograd.grad(loss, list(given.values()))
        for side, gradient in zip(given, wanted, strict=True):
            found = checks[item].oracle_gradients(**case)[side]
            np.testing.assert_allclose(found, gradient, rtol=0, atol=1e-10)
        alone = ~(allowed & ~own).any(1)
        assert alone.any() == (item == "loss-alone")
        assert (np.diagonal(case["negatives"]).all()) == (item != "loss-positive")


def test_counts_by_hand(checks):
    allowed = np.array([[1, 0, 0], [1, 1, 0], [0, 0, 1]], dtype=bool)
    wrong = np.array([[1, 1, 0], [0, 0, 1], [1, 0, 0]], dtype=bool)
    assert checks["count"].oracle(allowed, wrong) == {"masked": 5, "caught": 3, "lost": 2, "alone": 2}
