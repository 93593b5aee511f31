"""Every mistake met with numbers shows them; wrong and right values worked out by hand, from the formula."""

import dataclasses
from math import e, exp, hypot, inf, log, log1p, log2, nan, sqrt

import pytest

import losslab.language
import losslab.losses
from losslab.mistakes import MISTAKES, get
from losslab.mistakes._record import Example

#: By case, the first of two that share one.
CASES = {mistake.case: mistake for mistake in reversed(MISTAKES.values()) if mistake.case}

# Scores of each query's positives, and of its negative: cosines of (1, 0), (0.8, 0.6), (0, 1), (-0.6, 0.8) over 0.5.
POSITIVES = [((1.6, 0.0), -1.2), ((1.6, 1.2), 0.0), ((0.0, 1.2), 1.6)]


def bits_a_pair(labels):
    """LambdaLoss with equal scores, where every pair costs one bit: the mean of the NDCG2++ weights (mu = 10).

    The labels stand in the order in which the sort left their documents.
    """
    ideal = 3 + 1 / log2(3)  # labels 2 and 1 in front
    weights = [
        (10 * (1 / log2(1 + abs(i - j)) - 1 / log2(2 + abs(i - j))) + abs(1 / log2(2 + i) - 1 / log2(2 + j)))
        * (2**high - 2**low)
        / ideal
        for i, high in enumerate(labels)
        for j, low in enumerate(labels)
        if high > low
    ]
    return sum(weights) / len(weights)


TIES_LEFT = bits_a_pair([0, 1, 0, 2])  # as they were given
TIES_TURNED = bits_a_pair([1, 0, 2, 0])  # as torch sorts a row of 17 equal numbers: the first document comes last
IN_ORDER = log(e**0.2 + e**-1 + e) - 1 + log1p(exp(-1.2))  # 1 first, then 0.2 before -1
ALL_EIGHT = log(e + 2 + 1 / e + 2 * exp(sqrt(0.5)) + 2 * exp(-sqrt(0.5)))
# Three queries of rank 1: by how much each of the other five documents is less similar than its positive.
BEHIND = [(0.6, 0.5, 0.7, 0.6, 0.7), (0.6, 0.5, 0.4, 0.6, 0.5), (0.6, 0.8, 0.7, 0.7, 0.8)]
GUIDED = sum(log1p(sum(exp(-by / 0.05) for by in row)) for row in BEHIND) / 3
SHARE = 1 / (1 + exp(1.2))  # of logit 0.3 beside 1.5

# Case, what is shown (None: the only number), the wrong value, the right one; each worked out from the example's input.
EXPECTED = [
    (
        "listmle-overflow",
        "logits -30, -32",
        log(exp(-30) + exp(-32) + 1e-10) + log(exp(-32) + 1e-10) + 62,
        log1p(exp(-2)),
    ),
    ("listmle-tied-sort", "width 16", IN_ORDER, IN_ORDER),
    # the two documents behind the positive change places: 0.2 before -1, then -1 before 0.2
    (
        "listmle-tied-sort",
        "width 17",
        log(e**0.2 + e**-1 + e) - 1 + log1p(exp(1.2)),
        IN_ORDER,
    ),
    ("lambda-tied-logits", "width 16", TIES_LEFT, TIES_LEFT),
    ("lambda-tied-logits", "width 17", TIES_TURNED, TIES_LEFT),
    ("lambda-micro-average", None, 1 + 40 * 39 / 2, 2.0),
    # costs ln 3, ln 2, 0 under the weights 7 : 3 : 1 and 3 : 1 : 0
    ("plistmle-rank0", "a list of 3", (7 * log(3) + 3 * log(2)) / 11, (3 * log(3) + log(2)) / 4),
    ("plistmle-rank0", "a list of 2", 3 / 4 * log1p(exp(-1.2)), log1p(exp(-1.2))),
    ("pairwise-label-scale", "labels times 100", 100 * log1p(exp(0.3)), log1p(exp(0.3))),
    # scores 6 and 3, twice as long 24 and 12; cosines 2 and 1 over the root of 5
    ("infonce-no-normalise", "embeddings times 1", log1p(exp(-3)), log1p(exp(-1 / sqrt(5)))),
    ("infonce-no-normalise", "embeddings times 2", log1p(exp(-12)), log1p(exp(-1 / sqrt(5)))),
    # wrong: each positive beside the negative alone; right: both positives over all three
    (
        "infonce-multipos-denominator",
        None,
        sum(log1p(exp(n - p)) for own, n in POSITIVES for p in own) / 6,
        sum(log1p(exp(n) / sum(map(exp, own))) for own, n in POSITIVES) / 3,
    ),
    # two texts of four are the same: ln 2 each; right: without the copy, two negatives at distance 20
    (
        "gist-exact-duplicate",
        None,
        (2 * log(2 + 2 * exp(-20)) + 2 * log1p(3 * exp(-20))) / 4,
        (2 * log1p(2 * exp(-20)) + 2 * log1p(3 * exp(-20))) / 4,
    ),
    ("infonce-inbatch-off-broadcast", None, log(2 * exp(2) + 2) - 1, log1p(exp(-2))),
    # Cosines of a query of rank 1 with all eight: 1, 0, 0, -1 and, the negatives, twice each root of 1/2 either way.
    # Wrong: the target is the negative at -root of 1/2.
    ("gather-layout", "loss on rank 0", ALL_EIGHT - 1, ALL_EIGHT - 1),
    ("gather-layout", "loss on rank 1", ALL_EIGHT + sqrt(0.5), ALL_EIGHT - 1),
    ("gist-rank-offset", None, inf, GUIDED),
    # scores w^2 on the diagonal, -w^2 elsewhere: log(1 + exp(-2 w^2)), whose slope at w = 1 is two processes' sum
    ("ddp-mean-world-size", None, -4 / (1 + exp(2)) / 2, -4 / (1 + exp(2))),
    ("soft-target-collapse", "loss", log(3), log(3)),
    ("soft-target-collapse", "gradient of row 1", [0, 0, 0], [-2 / 3, 1 / 3, 1 / 3]),
    ("one-token-text", None, 0.0, "ValueError"),
    ("exp-overflow", None, "OverflowError", inf),
    ("pad-is-eos", "labels of text 1", [1, 2, -100, -100, -100], [1, 2, 0, -100, -100]),
    ("pad-is-eos", "labels of text 2", [1, 2, 3, 2, -100], [1, 2, 3, 2, 0]),
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
    (
        "infonce-dup-floor",
        None,
        (2 * log(2 + 2 * exp(-20)) + 2 * log1p(3 * exp(-20))) / 4,
        (2 * log1p(2 * exp(-20)) + 2 * log1p(3 * exp(-20))) / 4,
    ),
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


# Those without a case, and the second of two that share one, likewise; by name.
OTHERS = [
    # two empty slots of mass 1e-10 each, in both normalisers
    (
        "listmle_sentinel",
        None,
        log((exp(-25) + exp(-26.2) + 2e-10) * (exp(-26.2) + 2e-10)) + 25 + 26.2,
        log1p(exp(-1.2)),
    ),
    (
        "listmle_epsilon",
        None,
        log(1 + exp(-23) + exp(-24) + 1e-10) + log(exp(-23) + exp(-24) + 1e-10) + log(exp(-24) + 1e-10) + 23 + 24,
        log(1 + exp(-23) + exp(-24)) + log1p(exp(-1)),
    ),
    ("listmle_nan_gradient", "gradient", [-SHARE, SHARE, nan], [-SHARE, SHARE, 0]),
    ("padded_length_in_mean", "width 10", log1p(exp(-1.2)) / 10, log1p(exp(-1.2)) / 2),
    ("plistmle_one_document", None, nan, log1p(exp(-1.2))),
    # costs 0 and 2 / 0.02; in float32 the second share is nothing beside the smallest float, 2^-126
    ("infonce_saturated_log", None, 126 * log(2) / 2, 100 / 2),
    ("infonce_nonzero_mean", None, 2 / 0.05, 2 / 0.05 / 2),
    ("mrl_labels_sliced", "size 1", (1 - 0.6) ** 2, 0.0),
    ("token_zero_times_inf", None, nan, log(2)),
    ("token_frozen_normaliser", "gradient of row 1", [-1, 0], [-1 / 2, 1 / 2]),
    ("infonce_overflow", "temperature 0.01", inf, log1p(exp(100))),
    ("infonce_clamped_scores", "loss", log(2), (log1p(exp(8)) + log1p(exp(-8))) / 2),
    ("infonce_last_row_dropped", None, log1p(exp(-4)), (log1p(exp(-4)) + log1p(exp(-12))) / 2),
    ("infonce_positive_twice", None, log(2), 0.0),
    ("infonce_mean_denominator", None, 0.0, log(2)),
    ("infonce_offset_ignored", None, log1p(exp(20)), log1p(exp(-20))),
    ("infonce_padded_negatives", None, log(2 + exp(-20)), log1p(exp(-20))),
    ("mrl_mean_over_dims", None, (log(2) + log1p(exp(-1))) / 2, log(2) + log1p(exp(-1))),
    ("mrl_norm_of_whole", None, (log1p(exp(-1.6)) + log1p(exp(-0.96))) / 2, log1p(exp(-2))),
    # scores 3 against 1, and -1 against 0; after it, of the first number as a unit vector: 1 against 1, -1 against -1
    (
        "mrl_left_patched",
        "base loss before",
        (log1p(exp(-2)) + log1p(exp(1))) / 2,
        (log1p(exp(-2)) + log1p(exp(1))) / 2,
    ),
    ("mrl_left_patched", "base loss after", log(2), (log1p(exp(-2)) + log1p(exp(1))) / 2),
    ("mrl_scaled_scores", None, log1p(exp(-1)), log1p(exp(-2))),
    ("token_clamped_labels", None, 2 * log(2), log(2)),
    ("token_half_sum", None, inf, 90.0),
    ("token_label_smoothing", None, log1p(exp(-20)) + 0.05 * 20, log1p(exp(-20))),
    ("token_mean_of_texts", None, (4 + 1) / 2, (4 + 3) / 4),
    ("token_quiet_softmax", "logits raised by 0", log(3), log(2)),
    ("token_target_left_out", None, log(3), log(4)),
    ("token_width_in_mean", None, log(2) / 2, log(2)),
]


def cosine(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True)) / hypot(*a) / hypot(*b)


# Wrong because it rounds on the way, by name: the number itself, and from one number of its format to the next.
ROUNDED = [
    ("listmle_half_sum", sum(log(sum(exp(-i) for i in range(left))) for left in range(1, 13)), 2**-5),
    (
        "infonce_half_scores",
        log1p(exp((cosine((1, 0), (1, 0.0625)) - cosine((1, 0), (1, 0.03125))) / 0.05)),
        2**-8,
    ),
    (
        "mrl_half_norm",
        (
            log1p(exp(cosine((0.6, 0.3), (0.1, 0.9)) - cosine((0.6, 0.3), (0.7, 0.2))))
            + log1p(exp(cosine((0.3, 0.7), (0.7, 0.2)) - cosine((0.3, 0.7), (0.1, 0.9))))
        )
        / 2,
        2**-8,
    ),
    ("mrl_squares_overflow", log1p(exp(-1)), 2**-12),
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


def check(mistake, what, wrong, right):
    for function, value in ((mistake.wrong, wrong), (right_of(mistake), right)):
        if isinstance(value, str):  # the name of an error
            assert shown(mistake, function, what) == value
        else:
            assert shown(mistake, function, what) == pytest.approx(value, rel=1e-6, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize(("case", "what", "wrong", "right"), EXPECTED, ids=[f"{row[0]}-{row[1]}" for row in EXPECTED])
def test_the_numbers_are_those_of_the_formula(case, what, wrong, right):
    check(CASES[case], what, wrong, right)


@pytest.mark.parametrize(("name", "what", "wrong", "right"), OTHERS, ids=[row[0] for row in OTHERS])
def test_the_numbers_of_what_has_no_case_are_those_of_the_formula(name, what, wrong, right):
    check(get(name), what, wrong, right)


@pytest.mark.parametrize(("name", "exact", "step"), ROUNDED, ids=[row[0] for row in ROUNDED])
def test_one_rounds_at_the_end_and_the_other_on_the_way(name, exact, step):
    mistake = get(name)
    assert abs(shown(mistake, right_of(mistake), None) - exact) <= 0.51 * step
    assert abs(shown(mistake, mistake.wrong, None) - exact) > 0.75 * step


def test_a_gradient_that_belongs_to_other_dropout():
    mistake = get("gradcache_equals_full")
    wrong, right = (mistake.example.of(function) for function in (mistake.wrong, mistake.right))
    measured, told = right.values()
    assert told == pytest.approx(measured, rel=1e-6)
    assert wrong["slope of the value, measured"] == pytest.approx(measured, rel=1e-6)
    assert wrong["slope by the gradient"] != pytest.approx(measured, rel=0.1)


def test_every_example_is_worked_out():
    named = {CASES[row[0]].name for row in EXPECTED} | {row[0] for row in OTHERS + ROUNDED} | {"gradcache_equals_full"}
    assert named == {name for name, mistake in MISTAKES.items() if mistake.example}


DIFFERENT = [row for row in EXPECTED if row[2] != row[3]]  # elsewhere the mistake shows only in the row beside


@pytest.mark.parametrize(("case", "what", "wrong", "right"), DIFFERENT, ids=[f"{row[0]}-{row[1]}" for row in DIFFERENT])
def test_a_planted_fault_is_seen(case, what, wrong, right):
    """The mistake mended, or made on both sides: either shows numbers that are not the formula's."""
    mistake = CASES[case]
    for fault in ({"wrong": right_of(mistake)}, {"right": mistake.wrong}):
        with pytest.raises(AssertionError):
            check(dataclasses.replace(mistake, **fault), what, wrong, right)


def test_every_case_is_among_the_planted():
    assert {row[0] for row in DIFFERENT} == CASES.keys() - {"gradcache-equals-full"}
