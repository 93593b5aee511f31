"""Every mistake met with numbers shows them; right values by hand, from the formula."""

import dataclasses
from math import e, exp, inf, log, log1p, log2, sqrt

import pytest

import losslab.language
import losslab.losses
from losslab.mistakes import MISTAKES, get
from losslab.mistakes._record import Example

#: By case, the first of two that share one.
CASES = {mistake.case: mistake for mistake in reversed(MISTAKES.values()) if mistake.case}

# Case, what is shown (None: the only number), the wrong value, the right one; each worked out from the example's input.
EXPECTED = [
    # a list of two: log(1 + e^(0.3 - 1.5)); four ghosts of mass 1 stand in both normalisers
    (
        "listmle-padding",
        "width 6",
        log((exp(1.5) + exp(0.3) + 4) * (exp(0.3) + 4)) - 1.8,
        log1p(exp(-1.2)),
    ),
    ("listmle-ignores-labels", None, log1p(exp(-1.2)), log1p(exp(1.2))),
    ("listmle-overflow", "logits 90, 88", inf, log1p(exp(-2))),
    ("metric-pad-outranks", None, 1 / 4, 1 / 2),
    # one direction: the mean of both rows; right: rows and columns
    (
        "infonce-symmetric",
        None,
        (log1p(exp(-1)) + log1p(exp(-0.5))) / 2,
        (log1p(exp(-1)) + log1p(exp(-0.5)) + log1p(exp(-2)) + log1p(exp(0.5))) / 4,
    ),
    ("infonce-grad-accum", "in chunks of 2", log(2), log(4)),
    ("infonce-dup-floor", None, (2 * log(2 + 2 * exp(-20)) + 2 * log1p(3 * exp(-20))) / 4, None),
    ("pml-single-pair-zero", None, 0.0, log1p(exp((1 - 0.6) / 0.5))),
    ("ce-mnrl-sigmoid-floor", None, log1p(4 * exp(-10)), 0.0),
    ("mrl-not-renormalised", "score of document a", 0.6 * 0.6, 1.0),
    ("mrl-not-renormalised", "score of document b", 0.6 * 0.8, 0.8),
    # scores 6 and 3 in each row; cosines 2 and 1 over the root of 5
    ("mrl-forces-cosine", None, log1p(exp(-1 / sqrt(5))), log1p(exp(-3))),
    # full size: cosines 1 and 0; first number alone: ln 2; what is already cut to one number stays so
    ("mrl-dim-order", "smallest first", 2 * log(2), log(2) + log1p(exp(-1))),
    ("pca-inner-product", "score of document 1", 0 * 1 + 1.2 * -1, 3 * 4 + 1.2 * -1),
    ("pca-inner-product", "score of document 2", 1.2, 3 * 2 + 1.2),
    ("no-shift", None, 1 / 0.1, 1 / 0.9),
    ("double-shift", None, -log(0.1), -log(0.9)),
    ("grad-accum-tokens", None, (4 + 1) / 2, (4 + 1 + 1 + 1) / 4),
    ("num-items-undercount", None, 2 * 4 / (2 * 3), 1.0),
    ("corpus-vs-mean-of-ppl", None, (exp(0.4 / 3) + exp(1.5 / 5)) / 2, exp(1.9 / 8)),
    ("pad-in-both", None, exp((1 + 1 + 6 + 6) / 4), e),
    ("mask-wrong-side", None, 9.0, (1 + 2) / 2),
    ("bpb-log-base", "bits per byte", 10 / 20, 10 / 20 / log(2)),
    ("tokenizer-incomparable", "in 6 tokens", exp(12 / 6), 12 / 24 * log2(e)),
    ("tokenizer-incomparable", "in 4 tokens", exp(12 / 4), 12 / 24 * log2(e)),
    ("log-of-softmax", "one token of 200, float32", inf, exp(2)),
    # softmax of 0.9 and 0.1
    ("double-softmax", None, 1 + exp(0.1 - 0.9), 1 / 0.9),
]


def right_of(mistake):
    if not isinstance(mistake.right, str):
        return mistake.right
    return getattr(losslab.language if mistake.kind == "token" else losslab.losses, mistake.right)


def shown(mistake, function, what):
    numbers = mistake.example.of(function)
    if what is None:
        assert len(numbers) == 1
        return next(iter(numbers.values()))
    return numbers[what]


@pytest.mark.parametrize("case", CASES)
def test_every_case_has_an_example_that_shows_a_difference(case):
    mistake = CASES[case]
    assert isinstance(mistake.example, Example)
    wrong, right = mistake.example.of(mistake.wrong), mistake.example.of(right_of(mistake))
    assert wrong.keys() == right.keys()
    assert wrong != right


@pytest.mark.parametrize(("case", "what", "wrong", "right"), EXPECTED, ids=[f"{row[0]}-{row[1]}" for row in EXPECTED])
def test_the_numbers_are_those_of_the_formula(case, what, wrong, right):
    mistake = CASES[case]
    assert shown(mistake, mistake.wrong, what) == pytest.approx(wrong, rel=1e-6, abs=1e-12)
    if right is not None:
        assert shown(mistake, right_of(mistake), what) == pytest.approx(right, rel=1e-6, abs=1e-12)


def test_a_function_without_the_mistake_shows_other_numbers():
    """Planted fault: the right loss in the wrong one's place is told from it."""
    mistake = get("listmle_padding")
    mended = dataclasses.replace(mistake, wrong=losslab.losses.list_mle)
    assert shown(mended, mended.wrong, "width 6") != pytest.approx(EXPECTED[0][2], rel=1e-3)
