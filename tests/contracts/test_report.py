"""What a report says, where a loss cannot be judged, and how it is shown."""

# ruff: noqa: ARG001  (losses that ignore what they are given)

import json
import math
import re
import sys

import pytest
import torch
from torch import nn

import losslab
import planted
from losslab.contracts import Conventions, Report, Result, check
from losslab.contracts.model import Counterexample, Quantity, Query
from losslab.contracts.wording import show, show_all, show_apart


def detached(logits, labels, mask):
    return planted.list_mle(logits, labels, mask).detach()


def leaving(logits, labels, mask):
    sys.exit(3)


def raising(logits, labels, mask):
    raise KeyError("ranks")


def vector(logits, labels, mask):
    return logits.masked_fill(~mask, 0).sum(1)


def number(logits, labels, mask):
    return 3.0


def nan(logits, labels, mask):
    return planted.list_mle(logits, labels, mask) * math.nan


def unconnected(logits, labels, mask):
    return torch.zeros((), requires_grad=True) + labels.sum()


def no_mask(logits, labels):
    return logits.sum()


@pytest.mark.parametrize(
    ("loss", "problem"),
    [
        (detached, "its value is detached from the logits: there is no gradient"),
        (raising, "it raises KeyError: 'ranks'"),
        (leaving, "it raises SystemExit: 3"),
        (vector, "it returns a tensor of shape (1,), not a scalar (or declare reduction='none')"),
        (number, "it returns a float, not a tensor"),
        (nan, "it gives nan for one plain list, with gradient [nan, nan]"),
        (unconnected, "its gradient is 0 on a badly ranked list"),
        (no_mask, "it raises TypeError: no_mask() takes 2 positional arguments but 3 were given"),
    ],
)
def test_a_loss_that_cannot_be_judged_is_in_error_with_its_problem_and_input(loss, problem):
    report = check(loss, "listwise", only=["batch_invariance", "permutation"])
    assert not report
    for result in report.results:
        assert result.verdict == "error"
        assert result.reason == problem
        assert 1 <= len(result.counterexample.queries) <= 2
    text = str(report)
    assert " ".join(text.split()).count(problem) == 1, text  # the second contract only points at the first
    assert "ERROR      permutation       as for batch_invariance" in text


def test_other_contracts_go_on_where_one_cannot_be_judged():
    def picky(logits, labels, mask):
        if not mask.all():
            raise RuntimeError("no padding, please\nat all")
        return planted.list_mle(logits, labels, mask)

    report = check(picky, only=["padding_invariance", "permutation", "extreme_logits"], examples=20)
    assert [result.verdict for result in report.results] == ["error", "kept", "kept"]
    assert report["padding_invariance"].reason == "it raises RuntimeError: no padding, please"


def test_a_module_and_a_loss_that_writes_into_its_logits_are_fine():
    class Module(nn.Module):
        def forward(self, logits, labels, mask):
            logits[~mask] = -1e30
            return planted.list_mle(logits, labels, mask)

    report = check(Module(), only=["padding_invariance", "padding_gradient", "device"], examples=15)
    assert report, str(report)
    assert report.loss == "Module"


def test_check_under_no_grad_and_without_touching_the_random_state():
    torch.manual_seed(5)
    before = torch.get_rng_state()
    with torch.no_grad():
        assert check(planted.list_mle, only=["batch_invariance"], examples=5)
    assert torch.equal(torch.get_rng_state(), before)


def test_nothing_is_printed_and_no_file_is_left(capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    check(planted.with_fault("absolute logits"), only=["shift_invariance"])
    assert capfd.readouterr() == ("", "")
    assert list(tmp_path.iterdir()) == []


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match=r"kind must be one of listwise, contrastive, .*got 'pairwise'"):
        check(planted.list_mle, kind="pairwise")
    with pytest.raises(ValueError, match="only names no listwise contract: padding"):
        check(planted.list_mle, only=["padding"])
    with pytest.raises(ValueError, match="objective needs against="):
        check(planted.list_mle, only=["objective"])
    with pytest.raises(ValueError, match="order must be one of labels, given, got 'random'"):
        check(planted.list_mle, order="random")
    with pytest.raises(ValueError, match="reduction must be one of mean, sum, none, got 'max'"):
        check(planted.list_mle, reduction="max")
    with pytest.raises(TypeError, match="count_short_lists must be True or False, got 1"):
        Conventions(count_short_lists=1)
    with pytest.raises(ValueError, match="3 is not callable but of type int"):
        check(3)


REPORT = Report(
    "a <loss>",
    "listwise",
    Conventions(),
    None,
    7,
    (
        Result("shift_invariance", "only differences count", "Adding a number changes nothing.", "kept"),
        Result("permutation", "any order", "Order does not matter.", "exempt", "declared order='given': as they stand"),
        Result(
            "padding_invariance",
            "padding changes nothing",
            "Padding does not change what a query teaches.",
            "broken",
            "",
            Counterexample(
                "In a matrix of width 3 it teaches something else.",
                (Query((0.0, 0.5), (1.0, 0.0)), Query((), ())),
                {"width": "3"},
                (Quantity("loss", math.nan, 0.4740769), Quantity("gradient", (-math.inf, 0.1), (-0.6, 0.6))),
            ),
        ),
    ),
)


def test_text_is_a_table_of_eighty_plain_columns():
    assert str(REPORT).splitlines() == [
        "a <loss>: 1 kept, 1 broken, 1 exempt",
        "listwise: ranked by labels, short lists not counted, mean over queries; no",
        "objective compared; seed 7",
        "",
        "kept       shift_invariance    only differences count",
        "",
        "exempt     permutation         any order",
        "           declared order='given': as they stand",
        "",
        "BROKEN     padding_invariance  Padding does not change what a query teaches.",
        "           In a matrix of width 3 it teaches something else.",
        "           went in    query 1: logits [0, 0.5], labels [1, 0]",
        "                      query 2: no documents",
        "                      width: 3",
        "           came out   loss nan",
        "                      gradient [-inf, 0.1]",
        "           should be  loss 0.4741",
        "                      gradient [-0.6, 0.6]",
    ]


def test_real_reports_fit_eighty_ascii_columns():
    for loss in (planted.with_fault("padded length"), detached, planted.list_mle):
        text = str(check(loss, examples=10))
        assert text.isascii()
        assert max(map(len, text.splitlines())) <= 80, text


def test_html_is_a_described_table_that_leaves_colour_to_the_page():
    html = REPORT._repr_html_()
    assert html.count("<table") == html.count("</table>") == 1
    assert '<table class="ll-report">' in html
    assert "<caption>" in html
    assert html.count('<th scope="col">') == 3
    assert html.count('<th scope="row">') == 3
    assert "a &lt;loss&gt;" in html
    assert "a <loss>" not in html
    for verdict in ("✓</span> kept", "–</span> exempt", "✗</span> broken"):
        assert verdict in html
    assert not re.search(r"#[0-9a-fA-F]{3}|rgb|hsl|(?<![-\w])color\s*:|background", html)
    assert "<script" not in html
    assert "http" not in html


def test_json_is_strict_and_complete():
    def refuse(constant):
        raise AssertionError(constant)

    read = json.loads(REPORT.to_json(), parse_constant=refuse)
    assert read == REPORT.to_dict()
    assert read["ok"] is False
    assert read["seed"] == 7
    assert read["conventions"] == {"order": "labels", "count_short_lists": False, "reduction": "mean"}
    broken = read["results"][2]["counterexample"]
    assert broken["queries"][0] == {"logits": [0.0, 0.5], "labels": [1.0, 0.0]}
    assert broken["quantities"][0] == {"name": "loss", "got": "nan", "should": 0.4740769}
    assert broken["quantities"][1]["got"] == ["-inf", 0.1]


def test_truth_is_that_no_promise_is_broken_and_all_could_be_judged():
    def report(*verdicts):
        results = tuple(Result(f"c{i}", "", "", verdict) for i, verdict in enumerate(verdicts))
        return Report("loss", "listwise", Conventions(), None, 0, results)

    assert report("kept", "exempt", "unchecked")
    assert not report("kept", "broken")
    assert not report("kept", "error")
    assert report("kept", "unchecked").summary == "1 kept, 1 unchecked"
    assert REPORT["permutation"].verdict == "exempt"
    with pytest.raises(KeyError, match="device"):
        REPORT["device"]


def test_numbers_get_as_many_digits_as_it_takes_to_see_them_differ():
    assert show(3.0) == "3"
    assert show(0.26328246) == "0.2633"
    assert show(-1e30) == "-1e+30"
    assert show_apart(0.5, 0.25) == ("0.5", "0.25")
    assert show_apart(0.1234567, 0.1234569) == ("0.1234567", "0.1234569")
    assert show_apart((1.0, 2.0), (1.0, 2.00001)) == ("[1, 2]", "[1, 2.00001]")
    assert show_apart(1.0, 1.0) == ("1", "1")
    assert show_all([float(i) for i in range(1000)]) == "[0, 1, 2, 3, 4, ... 993 more ..., 998, 999]"


def test_check_is_what_the_package_exports():
    assert losslab.check is check
    with pytest.raises(AttributeError, match="no attribute 'chek'"):
        losslab.chek  # noqa: B018
