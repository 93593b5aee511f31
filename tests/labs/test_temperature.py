"""The temperature lab: common wrong answers lose the points they should, and are told which promise they break."""

import numpy as np
import pytest
import torch

from losslab.grading import load_lab
from losslab.measure.lab_feedback import EMPTY, RIGHT, Answer, answers, rows_of
from losslab.measure.logit_resolution import resolve

pytestmark = pytest.mark.xdist_group("lab-temperature")

# Items lost by each answer, and what its author is told.
LOST = {
    "gradient-logits": (
        {"gradient", "gradient-cold"},
        "the derivative of its loss −log p(positive) by each of",
    ),
    "gradient-mean": ({"gradient", "gradient-cold"}, "for each row by itself"),
    "gradient-exp": ({"gradient-cold"}, "finite and right when a score over the temperature is a hundred and more"),
    "gradient-diagonal": ({"gradient", "gradient-cold"}, "the derivative of its loss −log p(positive)"),
    "shares-of-everything": ({"shares", "shares-won"}, "among its negatives alone: they sum to 1"),
    "shares-one-minus": ({"shares-won"}, "still sum to 1 when the positive is so far ahead"),
    "shares-zero-score": ({"shares", "shares-won"}, "the positive has 0"),
    "effective-nan": ({"effective-zeros"}, "takes a share of 0 to add nothing"),
    "effective-bits": ({"effective", "effective-zeros"}, "each row's entropy in nats"),
    "effective-squares": ({"effective", "effective-zeros"}, "the exponential of each row's entropy"),
    "takeover-list": ({"takeover", "takeover-never"}, "where the suspect's share of the push is one half"),
    "takeover-always": ({"takeover-never"}, "is 0.0 when another negative scores as high as the suspect"),
    "takeover-wrong-half": ({"takeover", "takeover-never"}, "where the suspect's share of the push is one half"),
    "spacing-relative": ({"spacing"}, "the same from one power of two up to the next"),
    "spacing-sign": ({"spacing"}, "on both sides of 0"),
    "price-signed": ({"price"}, "how far each row's loss moves, up or down"),
    "price-scores": ({"price"}, "when its logits alone are rounded to bfloat16"),
    "price-all-bf16": ({"price"}, "everything else is float64"),
}


def function_of(answer):
    """Name of the function that an answer writes anew."""
    return answer.source.split("def ", 1)[1].split("(", 1)[0]


@pytest.fixture(scope="module")
def marked(labs_folder):
    """Rows of items by answer. Answers to different functions are handed in together: their items do not meet."""
    folder = labs_folder / "temperature"
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
    assert [one.name for one in answers(labs_folder / "temperature")] == [RIGHT.name, EMPTY.name, *LOST]


@pytest.mark.parametrize("name", LOST)
def test_a_wrong_answer_loses_what_it_should_and_is_told_why(name, marked):
    lost, said = LOST[name]
    assert {row["item"] for row in marked[name] if row["points"] == 0} == lost
    assert all(row["points"] in (0, row["out_of"]) for row in marked[name])
    feedback = "\n".join(row["feedback"] for row in marked[name])
    assert said in feedback
    assert all(part in feedback for part in ("went in", "yours gave", "should be"))


@pytest.fixture(scope="module")
def checks(labs_folder):
    """The hidden tests by their item's id."""
    return {item.id: item.check for item in load_lab(labs_folder / "temperature").items if item.check is not None}


def cases(check, seed=0):
    random = np.random.default_rng(seed)
    return [check.draw(random, size) for size in range(1, check.cases + 1)]


@pytest.mark.parametrize("item", ["gradient", "gradient-cold"])
def test_the_gradient_is_autograds(item, checks):
    for case in cases(checks[item]):
        scores = torch.tensor(case["scores"], requires_grad=True)
        loss = torch.nn.functional.cross_entropy(
            scores / case["temperature"], torch.tensor(case["positive"]), reduction="sum"
        )
        (gradient,) = torch.autograd.grad(loss, scores)
        np.testing.assert_allclose(checks[item].oracle(**case), gradient, rtol=1e-9, atol=1e-11)


def test_shares_are_gradients_over_those_of_all_negatives(checks):
    for case in cases(checks["shares"]):
        gradient = checks["gradient"].oracle(**case)
        gradient[np.arange(len(gradient)), case["positive"]] = 0
        wanted = gradient / gradient.sum(1, keepdims=True)
        np.testing.assert_allclose(checks["shares"].oracle(**case), wanted, rtol=1e-9)


def test_of_won_queries_nothing_is_left_in_float32(checks):
    """What the item is for: probabilities whose difference from 1 is lost, and shares that are not."""
    for case in cases(checks["shares-won"]):
        logits = torch.tensor(case["scores"], dtype=torch.float32) / case["temperature"]
        assert (1 - logits.softmax(1)[range(len(logits)), case["positive"]] == 0).all()
        np.testing.assert_allclose(checks["shares-won"].oracle(**case).sum(1), 1, rtol=1e-12)


@pytest.mark.parametrize("item", ["effective", "effective-zeros"])
def test_effective_negatives_are_a_perplexity(item, checks):
    for case in cases(checks[item]):
        found = torch.special.entr(torch.tensor(case["shares"])).sum(1).exp()
        np.testing.assert_allclose(checks[item].oracle(**case), found, rtol=1e-12)
        assert (case["shares"] == 0).any() == (item == "effective-zeros")


def test_takeover_of_equal_rivals_has_a_closed_form(checks):
    """n rivals a gap behind: n exp(-gap / τ) = 1."""
    for gap, n in ((0.5, 2), (0.125, 7), (0.03125, 255)):
        found = checks["takeover"].oracle(np.array([0.25] * n + [0.25 + gap]), n)
        assert found == pytest.approx(gap / np.log(n), rel=1e-12)
    for case in cases(checks["takeover"]):
        logits = torch.tensor(case["negatives"]) / checks["takeover"].oracle(**case)
        assert logits.softmax(0)[case["suspect"]].item() == pytest.approx(0.5, abs=1e-9)
    never = [checks["takeover-never"].oracle(**case) == 0 for case in cases(checks["takeover-never"])]
    assert never == [True, True, False, True, True, False, True, True]


def test_spacing_is_the_way_to_the_next_number(checks):
    formats = {8: torch.bfloat16, 11: torch.float16, 24: torch.float32}
    for case in cases(checks["spacing"]):
        here = torch.tensor(np.abs(case["numbers"])).to(formats[case["bits"]])
        there = torch.nextafter(here, torch.full_like(here, torch.inf))
        assert checks["spacing"].oracle(**case).tolist() == (there.double() - here.double()).tolist()


def test_the_price_is_what_the_measurement_of_the_chapter_gives(checks):
    cosines = np.random.default_rng(0).integers(-32, 33, (7, 7)) / 32
    for temperature in (0.07, 0.013):
        found = checks["price"].oracle(cosines, np.arange(7), temperature)
        wanted = resolve(torch.tensor(cosines), temperature, torch.bfloat16)["loss error"]
        assert found.mean() == pytest.approx(wanted, rel=1e-9)
