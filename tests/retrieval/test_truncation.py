"""The sweep against one slow loop over settings, queries and documents; intervals against the plain bootstrap."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from losslab.retrieval import Interval, bootstrap_mean, evaluate, fit, paired_bootstrap, truncation
from losslab.retrieval.truncation import Setting, outcome, sweep

DIMS = (2, 5, 12)


def corpus(queries=40, documents=90, width=12, seed=0):
    """Unit rows with a common mean; each query has one to three right documents, most of them near it."""
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randn(documents, width, generator=generator, dtype=torch.float64) + 0.6
    asked = rows[:queries] + 1.2 * torch.randn(queries, width, generator=generator, dtype=torch.float64)
    relevant = [np.array(sorted({i, (7 * i) % documents, (i * i) % documents})) for i in range(queries)]
    return (*(torch.nn.functional.normalize(each, dim=1) for each in (asked, rows)), relevant)


def slow_ndcg(query, documents, right):
    """nDCG@10 of one query in plain Python."""
    scores = [float(np.dot(query, document)) for document in documents]
    order = sorted(range(len(documents)), key=lambda i: scores[i], reverse=True)
    gained = sum(1 / np.log2(rank + 2) for rank, i in enumerate(order[:10]) if i in set(right.tolist()))
    return gained / sum(1 / np.log2(rank + 2) for rank in range(min(10, len(right))))


@pytest.fixture(scope="module")
def swept():
    return sweep(*corpus(), DIMS, seeds=(0, 3))


def test_every_cell_against_one_slow_loop(swept):
    queries, documents, relevant = corpus()
    # prefix, random dims twice and rotation twice, each centred or not; PCA and SVD; renormalised or not; three sizes
    assert len(swept.settings) == len(set(swept.settings)) == (5 * 2 + 2) * 2 * 3
    for setting in swept.settings:
        fitted = fit(setting.kind, documents, centre=setting.centred, seed=setting.seed or 0)
        small, large = (fitted.reduce(each, setting.dim, setting.renormalised).numpy() for each in (queries, documents))
        want = [slow_ndcg(query, large, right) for query, right in zip(small, relevant, strict=True)]
        assert swept.of(setting) == pytest.approx(want, abs=1e-9), setting
    whole = [slow_ndcg(q, documents.numpy(), right) for q, right in zip(queries.numpy(), relevant, strict=True)]
    assert swept.full == pytest.approx(whole, abs=1e-9)


def test_the_full_size_is_what_it_must_be(swept):
    """A prefix, a choice, a rotation and an SVD of all dimensions change no cosine; centring does."""
    for kind in ("prefix", "random-dims", "random-rotation", "svd"):
        assert swept.of(Setting(kind, False, True, 12)) == pytest.approx(swept.full)
    assert swept.of(Setting("pca", True, True, 12)) == pytest.approx(swept.of(Setting("prefix", True, True, 12)))
    assert abs(swept.of(Setting("pca", True, True, 12)) - swept.full).max() > 0.1


def test_a_draw_without_a_seed_is_the_mean_over_draws(swept):
    mean = Setting("random-dims", False, True, 5)
    each = [swept.of(replace(mean, seed=seed)) for seed in (0, 3)]
    assert swept.of(mean) == pytest.approx((each[0] + each[1]) / 2)
    assert abs(each[0] - each[1]).max() > 0.1
    with pytest.raises(ValueError, match=r"seed=7\) was not measured"):
        swept.of(replace(mean, seed=7))


def test_intervals_are_those_of_the_plain_bootstrap(swept):
    found = swept.compare(resamples=400, seed=5)
    keywords = {"resamples": 400, "seed": 5}
    assert len(found) == len({(each.setting, each.measure) for each in found})
    for each in found:
        ours, plain = swept.of(each.setting), replace(each.setting, centred=False)
        if each.measure == "mean":
            want = bootstrap_mean(ours, **keywords)
        elif each.measure == "retention":
            want = paired_bootstrap(ours, swept.full, statistic="ratio", **keywords)
        else:
            other = {
                "over prefix": replace(plain, kind="prefix"),
                "over random dims": replace(plain, kind="random-dims"),
                "over PCA": Setting("pca", True, each.setting.renormalised, each.setting.dim),
                "over not renormalised": replace(each.setting, renormalised=False),
            }[each.measure]
            assert other != each.setting
            want = paired_bootstrap(ours, swept.of(other), **keywords)
        got = each.interval
        assert (got.estimate, got.lo, got.hi) == pytest.approx((want.estimate, want.lo, want.hi), abs=1e-12), each


def test_every_setting_is_compared_with_all_there_is(swept):
    found = swept.compare(resamples=50)
    means = [each.setting for each in found if each.measure == "mean"]
    assert len(means) == 8 * 2 * 3
    for setting in means:
        measures = {each.measure for each in found if each.setting == setting}
        want = {"mean", "retention", "over prefix", "over random dims", "over not renormalised"}
        if setting.kind == "svd":
            want |= {"over PCA"}
        if not setting.centred and setting.kind == "prefix":
            want -= {"over prefix"}
        if not setting.centred and setting.kind == "random-dims":
            want -= {"over random dims"}
        if not setting.renormalised:
            want -= {"over not renormalised"}
        assert measures == want, setting


@pytest.mark.parametrize(
    ("lo", "hi", "want"),
    [(0.01, 0.2, "win"), (-0.01, 0.2, "tie"), (0.0, 0.2, "tie"), (-0.1, 0.0, "tie"), (-0.2, -0.1, "loss")],
)
def test_a_tie_is_an_interval_that_holds_zero(lo, hi, want):
    assert outcome(Interval((lo + hi) / 2, lo, hi)) == want
    assert outcome(Interval(1 + (lo + hi) / 2, 1 + lo, 1 + hi), 1.0) == want
    retained = truncation.Comparison(Setting("prefix", False, True, 2), "retention", Interval(0.5, 0.4, 0.6))
    assert retained.outcome == "loss"


def test_chunks_of_queries_change_nothing(swept, monkeypatch):
    monkeypatch.setattr(truncation, "CHUNK_BYTES", 7 * 90 * 8)
    again = sweep(*corpus(), DIMS, seeds=(0, 3))
    assert again.settings == swept.settings
    assert again.values == pytest.approx(swept.values, abs=1e-12)


def test_only_what_is_asked_is_measured():
    found = sweep(*corpus(), [5, 2, 5], kinds=["prefix", "svd"], centre=[True], renormalise=[True, True])
    assert found.settings == tuple(
        Setting(kind, kind == "prefix", True, dim) for kind in ("prefix", "svd") for dim in (2, 5)
    )


def test_one_alone_needs_no_sequence():
    found = sweep(*corpus(), [5], kinds="random-dims", centre=True, renormalise=False, seeds=3)
    assert found.settings == (Setting("random-dims", True, False, 5, 3),)


def test_what_is_no_setting_is_named(swept):
    with pytest.raises(TypeError, match="setting must be a Setting, got 'prefix'; pass one of settings"):
        swept.of("prefix")


def test_judgements_by_id():
    queries, documents, relevant = corpus()
    query_ids, document_ids = [f"q{i}" for i in range(40)], [f"d{i}" for i in range(90)]
    by_id = {f"q{i}": {f"d{j}": 1 for j in right} for i, right in enumerate(relevant)}
    ids = {"query_ids": query_ids, "document_ids": document_ids}
    found = sweep(queries, documents, by_id, [5], kinds=["prefix"], **ids)
    assert found.values == pytest.approx(sweep(queries, documents, relevant, [5], kinds=["prefix"]).values)
    by_id["q3"]["nobody"] = 1
    with pytest.raises(ValueError, match="judges document 'nobody' for query 'q3', which is not among the 90"):
        sweep(queries, documents, by_id, [5], **ids)
    with pytest.raises(ValueError, match="document_ids must hold one id for each of the 90 rows, got 89"):
        sweep(queries, documents, by_id, [5], query_ids=query_ids, document_ids=document_ids[1:])
    with pytest.raises(ValueError, match="judges 40 queries that are not among the 40 query_ids"):
        sweep(queries, documents, by_id, [5], query_ids=[f"x{i}" for i in range(40)], document_ids=document_ids)


def without_a_right_document():
    queries, documents, relevant = corpus()
    return queries, documents, [*relevant[:5], np.array([], dtype=int), *relevant[6:]]


def spoilt():
    queries, documents, relevant = corpus()
    documents[4:6] = torch.nan
    return queries, documents, relevant


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sweep(*corpus(), [13]), "from 1 to 12, got 13"),
        (lambda: sweep(*corpus(), [0]), "from 1 to 12, got 0"),
        (lambda: sweep(*corpus(2, 10), DIMS), "pca needs at least as many documents as dimensions, got 10"),
        (
            lambda: sweep(*without_a_right_document(), [2]),
            "no right document for 1 of 40 .* is query 5",
        ),
        (lambda: sweep(*spoilt(), [2]), "documents has 2 rows that are not finite, the first is row 4"),
        (lambda: sweep(corpus()[0], torch.empty(0, 12), [], [2]), "documents is empty"),
        (lambda: sweep(corpus()[0][:, :8], *corpus()[1:], [2]), "queries have width 8 but documents have width 12"),
        (lambda: sweep(corpus()[0].tolist(), *corpus()[1:], [2]), "queries must be floating-point rows .* got list"),
        (lambda: sweep(corpus()[0], "rows", [], [2]), "documents must be floating-point rows .* got str"),
        (lambda: sweep(corpus()[0], torch.ones(12), [], [2]), r"documents must be .* shape \(12,\)"),
        (lambda: sweep(*corpus(), None), "a dimension must be a whole number from 1 to 12, got None"),
        (lambda: sweep(*corpus(), [2], kinds=[]), r"kinds must hold something, got \[\]"),
        (lambda: sweep(*corpus(), [2], kinds=3), "kinds must be one of prefix, .* got 3"),
        (lambda: sweep(*corpus(), [2], kinds=["prefix", "p"]), "each of kinds must be one of prefix, .* got 'p'"),
        (lambda: sweep(*corpus(), [2], centre="yes"), "centre must be True or False, got 'yes'"),
        (lambda: sweep(*corpus(), [2], centre=[None]), "each of centre must be True or False, got None"),
        (lambda: sweep(*corpus(), [2], renormalise=1), "renormalise must be True or False, got 1"),
        (lambda: sweep(*corpus(), [2], seeds=(None,)), "each of seeds must be a whole number .* got None"),
        (lambda: sweep(*corpus(), [2], seeds=-1), "seeds must be a whole number of at least 0, got -1"),
        (lambda: sweep(*corpus(), [2], seeds="a"), "seeds must be a whole number of at least 0, got 'a'"),
        (lambda: sweep(*corpus(), [2], seeds=[0, 1.5]), "each of seeds must be a whole number .* got 1.5"),
        (lambda: sweep(*corpus(), [2], metric="accuracy"), "a metric must be"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_where_there_is_nothing_to_retain_all_else_is_said():
    queries = torch.eye(4, dtype=torch.float64)[:2]
    documents = torch.eye(4, dtype=torch.float64).repeat_interleave(6, 0)
    for right in ([[23], [22]], [[23], [11]]):  # far down for both queries, then for one: 0 in some resampled sets
        found = sweep(queries, documents, right, [2], kinds=["prefix", "random-dims"], centre=False)
        said = found.compare(resamples=50)
        assert {each.measure for each in said} == {
            "mean",
            "over prefix",
            "over random dims",
            "over not renormalised",
        }
        for each in said:
            if each.measure == "mean":
                want = bootstrap_mean(found.of(each.setting), resamples=50)
                assert (each.interval.lo, each.interval.hi) == pytest.approx((want.lo, want.hi), abs=1e-12)


@pytest.mark.parametrize("scale", [1e-30, 1e-22, 1e19, 1e25])
def test_no_ranking_depends_on_the_scale(scale):
    """Squares of such numbers are not in float32's range."""
    queries, documents, relevant = corpus()
    queries, documents = (torch.as_tensor(x).float() for x in (queries, documents))
    kinds = ["prefix", "svd", "pca"]
    one = sweep(queries, documents, relevant, [5, 2], kinds=kinds)
    other = sweep(queries * scale, documents * scale, relevant, [5, 2], kinds=kinds)
    assert other.values == pytest.approx(one.values)
    assert other.full == pytest.approx(one.full)
    assert evaluate(queries * scale, documents * scale, relevant)["nDCG@10"] == pytest.approx(
        evaluate(queries, documents, relevant)["nDCG@10"]
    )


@pytest.mark.parametrize("scale", [1e-30, 1e-22, 1e20, 1e25])
def test_no_cosine_depends_on_the_length_of_one_row(scale):
    queries, documents, relevant = (torch.as_tensor(x).float() if torch.is_tensor(x) else x for x in corpus())
    options = {"kinds": ["prefix", "random-dims", "random-rotation"], "centre": [False], "renormalise": [True]}
    one = sweep(queries, documents, relevant, DIMS, **options)
    queries[::3] *= scale
    documents[::2] *= scale
    other = sweep(queries, documents, relevant, DIMS, **options)
    assert other.values == pytest.approx(one.values)
    assert other.full == pytest.approx(one.full)


def test_the_mean_is_taken_from_queries_as_long_as_they_are():
    """Queries and documents are on one scale, whichever of them is the longer."""
    queries, documents, relevant = corpus()
    for scale in (0.2, 3.0):
        found = sweep(scale * queries, documents, relevant, [5], kinds=["prefix"], centre=[True])
        for setting in found.settings:
            fitted = fit("prefix", documents, centre=True)
            asked, held = (fitted.reduce(each, 5, setting.renormalised) for each in (scale * queries, documents))
            assert found.of(setting) == pytest.approx(evaluate(asked, held, relevant, "nDCG@10")["nDCG@10"])
