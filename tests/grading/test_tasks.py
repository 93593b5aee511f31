"""Hidden tests: which inputs they draw, what they take for equal, and what they say."""

import numpy as np
import pytest
import torch

from in_process import running
from losslab.grading import GraderError, Item, Lab, LabError, Promises, Raises, Values, load_lab
from losslab.grading.inside import Encoder
from losslab.grading.remote import decode
from losslab.grading.tasks import _cases, _drawn, difference, show_value
from two_labs import (
    EMPTY,
    LAB,
    MODULE,
    NOT_NORMALISED,
    PLAIN,
    RIGHT,
    TEMPERATURE,
    draw_bad_batch,
    draw_batch,
    slow_info_nce,
)


def sent(value):
    encode = Encoder()
    tagged = encode(value)
    return decode(tagged, encode.blob.getvalue())


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("got", "want"),
    [
        (1.0, 1.0),
        (1, 1.0),
        (1.0, 1),
        (torch.tensor(1.00001), 1.0),
        (np.float64(2.0), 2.0),
        (NAN, NAN),
        (INF, INF),
        (True, True),
        (torch.tensor(True), True),
        ("a", "a"),
        (None, None),
        (torch.tensor([1.0, 2.0]), np.array([1.0, 2.0])),
        (torch.tensor([1.0, NAN]), np.array([1.0, NAN])),
        ([1, 2.0], np.array([1.0, 2.0])),
        ([[1], [2]], np.array([[1.0], [2.0]])),
        (torch.tensor([True, False]), np.array([True, False])),
        ((1.0, 2), (1.0, 2)),
        ([1.0, 2], (1.0, 2)),
        (torch.tensor([1.0, 2.0]), [1.0, 2.0]),
        ({"a": torch.tensor(1.0)}, {"a": 1.0}),
        (torch.zeros(0), np.zeros(0)),
        (torch.tensor([1e6, 5.0]), np.array([1e6, 0.0])),  # next to 1e6, 5 is what float32 cannot tell from 0
    ],
)
def test_what_is_equal(got, want):
    assert difference(sent(got), want, rtol=1e-5, atol=1e-5) is None


@pytest.mark.parametrize(
    ("got", "want", "says"),
    [
        (1.1, 1.0, "it is off by 0.1"),
        (NAN, 1.0, "it is not finite"),
        (INF, 1.0, "it is not finite"),
        (1.0, INF, "it is finite where it should not be"),
        (-INF, INF, "or the other way round"),
        (INF, NAN, "or the other way round"),
        (True, 1.0, "it is True or False, not a number"),
        (1.0, True, "it is a number, not True or False"),
        ("1.0", 1.0, "it is a text, not a number"),
        (None, 1.0, "it is None, not a number"),
        (1j, 1.0, "it is a complex, not a plain value"),
        (torch.tensor(1 + 0j), 1.0, "it is a tensor of complex64, not a plain value"),
        (torch.tensor([1.0]), 1.0, r"it is a tensor of shape \(1,\), not a number"),
        (torch.tensor(True), 1.0, "it is a truth value, not a number"),
        (10**299, 1.0, "off"),
        (torch.tensor([1.0, 2.1]), np.array([1.0, 2.0]), "1 of 2 entries are off, by up to 0.1"),
        (torch.zeros(2, 1), np.zeros(2), r"its shape is \(2, 1\), not \(2,\)"),
        (1.0, np.zeros(2), r"it is a number, not an array of shape \(2,\)"),
        ([1.0, [2.0]], np.zeros(2), "lists of different lengths"),
        ([1.0, "2.0"], np.zeros(2), "something else than numbers"),
        ([True, False], np.array([1.0, 0.0]), "its entries are truth values, and should not be"),
        (torch.tensor([True, True]), np.array([True, False]), "1 of its entries are not"),
        ((1.0,), (1.0, 2.0), "it has 1 entries, not 2"),
        ((1.0, 3.0), (1.0, 2.0), "entry 2: it is off by 1"),
        ({"a": 1.0}, {"b": 1.0}, "not a dictionary with the keys 'b'"),
        ({"a": 2.0}, {"a": 1.0}, "its 'a': it is off by 1"),
        ("b", "a", "it is another"),
        (torch.tensor([1e6, 50.0]), np.array([1e6, 0.0]), "1 of 2 entries"),
    ],
)
def test_what_is_not(got, want, says):
    with pytest.raises(AssertionError, match=says):
        raise AssertionError(difference(sent(got), want, rtol=1e-5, atol=1e-5))


# Inputs


def test_inputs_depend_on_the_seed_alone():
    one, again, other = (_drawn(draw_batch, seed, 0, 4, "notebook", "float32") for seed in (1, 1, 2))
    for a, b, c in zip(one, again, other, strict=True):
        assert np.array_equal(a["queries"], b["queries"])
        assert not np.array_equal(a["queries"], c["queries"])
    assert [len(case["queries"]) for case in one] == [1, 2, 3, 4]


def test_the_oracle_sees_the_numbers_that_are_sent():
    seen = []
    task = Values("f", lambda random, size: {"x": random.normal(size=size)}, lambda x: seen.append(x) or 0.0, cases=2)
    cases = _cases(task, 5, "notebook")
    assert cases[1][0]["x"].dtype == np.float32
    assert seen[1].dtype == np.float64
    assert np.array_equal(seen[1], cases[1][0]["x"].astype(np.float64))


def test_a_module_gets_lists():
    (case,) = _drawn(
        lambda random, _: {"x": random.normal(size=(2, 2)), "n": np.int64(3)}, 1, 0, 1, "module", "float32"
    )
    assert isinstance(case["x"][0][0], float)
    assert type(case["n"]) is int


def test_gradients_of_an_oracle_are_right_where_it_bends_most():
    task = Values("f", draw_batch, slow_info_nce, gradients=("queries",), cases=3, dtype="float64")
    for keywords, _, gradients in _cases(task, 1, "notebook"):
        q, d = (torch.tensor(keywords[name]) for name in ("queries", "documents"))
        q.requires_grad_()
        scores = torch.nn.functional.normalize(q, dim=1) @ torch.nn.functional.normalize(d, dim=1).T / TEMPERATURE
        torch.nn.functional.cross_entropy(scores, torch.arange(len(q))).backward()
        np.testing.assert_allclose(gradients["queries"], q.grad.numpy(), atol=1e-8)
    sharp = Values(
        "f",
        lambda random, size: {"x": random.uniform(-0.1, 0.1, size)},
        lambda x: float(np.log(1 + np.exp(x / 0.05)).sum()),
        gradients="x",
        cases=3,
        dtype="float64",
    )
    for keywords, _, gradients in _cases(sharp, 1, "notebook"):
        np.testing.assert_allclose(gradients["x"], 20 / (1 + np.exp(-keywords["x"] / 0.05)), rtol=1e-8)


# Verdicts


def judged(check, source, lab=LAB):
    return check.judge(running(lab, source), 7)


VALUE = LAB.items[0].check
GRADIENT = LAB.items[1].check
PROMISES = LAB.items[2].check
BAD = LAB.items[3].check


@pytest.mark.parametrize("check", [VALUE, GRADIENT, PROMISES, BAD])
def test_what_is_right_earns_all_and_what_is_not_written_nothing(check):
    right, empty, nothing = judged(check, RIGHT), judged(check, EMPTY), judged(check, "x = 1")
    assert right.share == 1
    assert all(feedback.kept and not feedback.lines for feedback in right.feedback)
    assert empty.share == 0
    assert [f.sentence for f in empty.feedback] == ["Step 1 is not written yet: info_nce"]
    assert nothing.share == 0
    assert "There is no function info_nce" in nothing.feedback[0].sentence


def test_a_wrong_value_is_shown_on_the_smallest_input():
    verdict = judged(VALUE, NOT_NORMALISED)
    (feedback,) = verdict.feedback
    assert verdict.share == 0
    assert feedback.sentence.startswith("InfoNCE is a mean over queries. The value is wrong: it is off by ")
    heads = [head for head, _ in feedback.lines]
    assert heads == ["went in", "", "", "yours gave", "should be"]
    keywords, value, _ = _cases(VALUE, 7, "notebook")[0]
    assert feedback.lines[0][1] == f"queries {show_value(keywords['queries'])}"
    assert feedback.lines[4][1] == show_value(value)


def test_a_wrong_gradient_is_told_from_a_wrong_value():
    detached = RIGHT.replace("scores = queries", "scores = queries.detach()")
    (feedback,) = judged(GRADIENT, detached).feedback
    assert feedback.sentence.startswith("The value is right, but its gradient by queries is not: ")
    assert judged(VALUE, detached).share == 1
    cut = RIGHT.replace("    return F.cross_entropy", "    return F.cross_entropy").replace(
        "torch.arange(len(queries)))", "torch.arange(len(queries))).detach()"
    )
    (feedback,) = judged(GRADIENT, cut).feedback
    assert "has no gradient by queries: the value does not depend on it" in feedback.sentence


def test_what_raises_is_quoted():
    (feedback,) = judged(VALUE, "def info_nce(queries, documents, temperature):\n    return 1 / 0\n").feedback
    assert "info_nce raises ZeroDivisionError: division by zero (cell 1, line 2)." in feedback.sentence


def test_promises_earn_by_share():
    verdict = judged(PROMISES, NOT_NORMALISED)
    assert verdict.share == 0.5
    assert [f.kept for f in verdict.feedback] == [True, False]
    assert "With all queries times 2" in verdict.feedback[1].sentence
    assert ("went in", "queries [2, 0]") in verdict.feedback[1].lines


def test_a_promise_that_a_signature_avoids_is_not_kept():
    check = Promises("info_nce", "contrastive", ("temperature_limits",), declared={"temperature": TEMPERATURE})
    fixed = RIGHT.replace(", temperature=0.5", "").replace(
        "def info_nce(queries, documents):", "temperature = 0.5\n\ndef info_nce(queries, documents):"
    )
    verdict = judged(check, fixed)
    assert verdict.share == 0
    assert "it takes no temperature" in verdict.feedback[0].sentence


def test_what_a_student_declares_is_not_read():
    boast = RIGHT.replace("queries = F.normalize(queries, dim=1)\n", "").replace(
        "documents = F.normalize(documents, dim=1)\n", "pass\n"
    )
    boast += "\nfrom types import SimpleNamespace\ninfo_nce.conventions = SimpleNamespace(normalize=False)\n"
    assert judged(PROMISES, boast).share == 0.5


def test_refusing_everything_earns_nothing():
    verdict = judged(BAD, "def info_nce(**_):\n    raise ValueError('no')\n")
    assert verdict.share == 0
    assert verdict.feedback[0].sentence == "Good input is refused too: info_nce raises ValueError: no (cell 1, line 2)."


def test_accepting_bad_input_is_shown():
    verdict = judged(BAD, RIGHT.replace("temperature <= 0", "False"))
    assert verdict.share == 0
    assert verdict.feedback[0].lines[-1] == ("should be", "raises ValueError")
    other = judged(BAD, RIGHT.replace("raise ValueError", "raise TypeError"))
    assert "raises TypeError: temperature must be above 0" in dict(other.feedback[0].lines)["yours gave"]
    theirs = judged(BAD, "class Mine(ValueError):\n    pass\n\n" + RIGHT.replace("raise ValueError", "raise Mine"))
    assert theirs.share == 1


def test_partial_credit_is_a_share_of_cases():
    mean = MODULE.items[0].check
    only_short = PLAIN.replace("sum(numbers) / len(numbers)", "numbers[0] if len(numbers) == 1 else 0.0")
    verdict = judged(mean, only_short, MODULE)
    assert verdict.share == 0.25
    assert verdict.feedback[0].sentence.startswith("Right on 1 of 4 random inputs. The value is wrong")
    whole = Values("mean", mean.draw, mean.oracle, cases=4)
    assert judged(whole, only_short, MODULE).share == 0


def test_two_values_that_look_alike_are_shown_apart():
    assert show_value(1.0000001, 1.0) == "1.0000001"
    assert show_value(np.array([1.0, 2.0])) == "[1, 2]"
    assert show_value(np.zeros((0, 2))) == "empty, of shape (0, 2)"
    assert len(show_value("<b>" * 500)) < 300
    assert show_value(np.zeros((30, 30))).startswith("an array of shape (30, 30), beginning [0")


# Mistakes in a lab


def test_an_oracle_that_raises_is_the_graders_failure():
    with pytest.raises(ZeroDivisionError):
        judged(Values("info_nce", draw_batch, lambda **_: 1 / 0), RIGHT)
    with pytest.raises(GraderError, match="an oracle gives a set"):
        judged(Values("info_nce", draw_batch, lambda **_: {1}), RIGHT)
    with pytest.raises(GraderError, match="draw gives a set"):
        judged(Values("info_nce", lambda *_: {"x": {1}}, slow_info_nce), RIGHT)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Promises("f", "contrastive", ("device",)), "contracts cannot have 'device'"),
        (lambda: Promises("f", "contrastive", ("objective",)), "use Values and an oracle"),
        (lambda: Promises("f", "contrastive", ()), "must name at least one"),
        (lambda: Promises("f", "contrastive", ("rows",), examples=0), "examples must be a whole number"),
        (lambda: Values("f", draw_batch, slow_info_nce, cases=0), "cases must be a whole number of at least 1, got 0"),
        (lambda: Values("f", draw_batch, slow_info_nce, dtype="float16"), "dtype must be float32 or float64"),
        (lambda: Values("f", draw_batch, slow_info_nce, rtol=-1.0), "rtol and atol must be at least 0"),
        (lambda: Raises("f", draw_bad_batch, "Nonsense"), "error must be the name of one of Python's own"),
        (lambda: Raises("f", draw_bad_batch, "Exception"), "not written yet raises it"),
        (lambda: Item("a b", "x", 1, 1), "id of an item must be letters"),
        (lambda: Item("a", "x", 0, 1), "points of item a must be above 0"),
        (lambda: Item("a", "x", 1, 0), "step of item a must be at least 1"),
        (lambda: Item("a", "x", 1, 1, "check"), "check of item a must be Values"),
        (lambda: Lab("l", "L", "c", 1, []), "at least one item"),
        (lambda: Lab("l", "L", "c", 1, [Item("a", "x", 1, 1)] * 2), "got a twice"),
        (lambda: Lab("l", "L", "c", 1, [Item("a", "x", 1, 1)], form="book"), "form must be notebook or module"),
    ],
)
def test_a_lab_that_cannot_be_meant_is_refused(make, says):
    with pytest.raises(ValueError, match=says):
        make()


@pytest.mark.parametrize(
    ("check", "says"),
    [
        (Promises("info_nce", "nonsense", ("rows",)), "kind of the promises of info_nce must be one of"),
        (Promises("info_nce", "contrastive", ("nonsense",)), "'nonsense' is no contrastive contract"),
        (Promises("info_nce", "contrastive", ("scale",), declared={"normalize": False}), "asks nothing of info_nce"),
    ],
)
def test_promises_that_cannot_be_put_are_the_graders_failure(check, says):
    with pytest.raises(GraderError, match=says):
        judged(check, RIGHT)


def test_points_are_automatic_or_by_hand():
    assert LAB.points == 9
    assert LAB.manual_points == 3
    assert LAB.functions == ("info_nce",)
    assert MODULE.prelude == ""


def test_labs_are_found_by_name_and_by_folder(tmp_path, monkeypatch):
    folder = tmp_path / "labs" / "mine"
    folder.mkdir(parents=True)
    text = "from losslab.grading import Item, Lab\nLAB = Lab('mine', 'Mine', 'mine', 5, [Item('a', 'A', 1, 1)])\n"
    (folder / "marking.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    for name in ("mine", folder, folder / "marking.py"):
        assert load_lab(name).title == "Mine"
    with pytest.raises(LabError, match=r"there is no lab 'yours'; there are .*mine"):
        load_lab("yours")
    (folder / "marking.py").write_text("LAB = 3")
    with pytest.raises(LabError, match="must define LAB"):
        load_lab("mine")
    (folder / "marking.py").write_text("1 / 0")
    with pytest.raises(LabError, match="cannot be run: ZeroDivisionError"):
        load_lab("mine")
