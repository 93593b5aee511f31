"""Bootstrap intervals against every resample there is, against the normal formula, and against another library."""

from itertools import product

import numpy as np
import pytest
import scipy.stats

from losslab.retrieval import Interval, bootstrap_mean, paired_bootstrap
from losslab.retrieval import bootstrap as module


def values(seed, queries=200):
    rng = np.random.default_rng(seed)
    hard = rng.random(queries)
    return hard * rng.random(queries) + 0.1, hard * rng.random(queries) + 0.1


@pytest.mark.parametrize(("statistic", "compute"), [("difference", lambda a, b: a - b), ("ratio", lambda a, b: a / b)])
def test_against_every_resample_of_five_queries(statistic, compute):
    ours, baseline = np.array([0.9, 0.1, 0.4, 0.7, 0.3]), np.array([0.5, 0.2, 0.4, 0.1, 0.6])
    every = np.array(
        [compute(ours[list(rows)].mean(), baseline[list(rows)].mean()) for rows in product(range(5), repeat=5)]
    )
    for level in (0.8, 0.95):
        found = paired_bootstrap(ours, baseline, statistic=statistic, resamples=100_000, level=level)
        assert found.estimate == pytest.approx(compute(ours.mean(), baseline.mean()))
        for end, share in ((found.lo, (1 - level) / 2), (found.hi, (1 + level) / 2)):
            # few values are possible: the wanted share lies between what is below and what is not above
            assert (every < end - 1e-9).mean() - 0.005 <= share <= (every <= end + 1e-9).mean() + 0.005


@pytest.mark.parametrize("statistic", ["difference", "ratio"])
def test_against_scipy(statistic):
    ours, baseline = values(1)

    def compute(a, b, axis=-1):
        return a.mean(axis) - b.mean(axis) if statistic == "difference" else a.mean(axis) / b.mean(axis)

    theirs = scipy.stats.bootstrap(
        (ours, baseline), compute, paired=True, vectorized=True, n_resamples=20_000, method="percentile", rng=1
    ).confidence_interval
    found = paired_bootstrap(ours, baseline, statistic=statistic, resamples=20_000)
    spread = theirs.high - theirs.low
    assert found.lo == pytest.approx(theirs.low, abs=0.03 * spread)
    assert found.hi == pytest.approx(theirs.high, abs=0.03 * spread)


def test_pairing_takes_out_what_both_share():
    ours, baseline = values(2, 500)
    paired = paired_bootstrap(ours, baseline)
    mixed = paired_bootstrap(ours, np.random.default_rng(0).permutation(baseline))
    assert paired.hi - paired.lo < mixed.hi - mixed.lo


def test_the_mean_has_the_width_of_the_normal_formula():
    (one, _) = values(3, 2000)
    found = bootstrap_mean(one, resamples=20_000)
    assert found.hi - found.lo == pytest.approx(2 * 1.96 * one.std() / np.sqrt(len(one)), rel=0.03)
    assert found.lo < one.mean() == found.estimate < found.hi


def test_a_seed_is_repeated_whatever_the_block(monkeypatch):
    ours, baseline = values(4)
    first = paired_bootstrap(ours, baseline, seed=5)
    assert paired_bootstrap(ours, baseline, seed=5) == first
    assert paired_bootstrap(ours, baseline, seed=6) != first
    monkeypatch.setattr(module, "BLOCK", 1000)
    assert paired_bootstrap(ours, baseline, seed=5) == first


def test_retention_of_itself_is_one():
    ours, _ = values(5)
    assert paired_bootstrap(ours, ours, statistic="ratio") == Interval(1.0, 1.0, 1.0)
    assert paired_bootstrap(0.5 * ours, ours, statistic="ratio").hi == pytest.approx(0.5)


def test_an_interval_reads_well():
    assert str(Interval(0.0421, 0.0309, 0.0533)) == "0.042 [0.031, 0.053]"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: paired_bootstrap([0.1, 0.2], [0.1, 0.2, 0.3]), "ours has 2 queries but baseline has 3"),
        (lambda: paired_bootstrap([0.1, np.nan], [0.1, 0.2]), "ours must be finite, but query 1 has nan"),
        (lambda: paired_bootstrap([0.1], [0.1]), r"at least two queries, got shape \(1,\)"),
        (lambda: paired_bootstrap([[0.1, 0.2]], [0.1, 0.2]), r"got shape \(1, 2\)"),
        (lambda: paired_bootstrap([0.1, 0.2], [0.0, 0.0], statistic="ratio"), "baseline's mean, which is 0"),
        (lambda: paired_bootstrap([0.1, 0.2], [0.1, 0.2], statistic="quotient"), "got 'quotient'"),
        (lambda: paired_bootstrap([0.1, 0.2], [0.1, 0.2], resamples=0), "resamples must be at least 1"),
        (lambda: bootstrap_mean([0.1, 0.2], level=95), "level must lie between 0 and 1, got 95"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
