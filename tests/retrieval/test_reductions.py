"""Reductions against numpy's decompositions, worked examples, and what they promise of sizes, signs and queries."""

import subprocess
import sys

import numpy as np
import pytest
import torch

from losslab.retrieval import KINDS, fit, search
from losslab.retrieval import reductions as module

DOCUMENTS, WIDTH = 60, 12
FIXED = {"pca": True, "svd": False}
OPTIONS = [(kind, centre) for kind in KINDS for centre in (False, True) if FIXED.get(kind, centre) == centre]


def rows(count=DOCUMENTS, width=WIDTH, seed=0, dtype=torch.float64):
    """Unit rows with a mean far from 0 and directions of unequal spread, as real embeddings have."""
    generator = torch.Generator().manual_seed(seed)
    spread = torch.linspace(1, 0.1, width, dtype=torch.float64)
    drawn = torch.randn(count, width, generator=generator, dtype=torch.float64) * spread + 0.5
    return torch.nn.functional.normalize(drawn, dim=1).to(dtype)


def by_hand(kind, documents, queries, dim, centre, seed):
    """The definition in plain numpy; columns up to their sign."""
    documents, queries = documents.numpy(), queries.numpy()
    mean = documents.mean(0) if centre else np.zeros(documents.shape[1])
    if kind == "prefix":
        return (queries - mean)[:, :dim]
    if kind == "random-dims":
        return (queries - mean)[:, np.random.default_rng(seed).choice(documents.shape[1], dim, replace=False)]
    return (queries - mean) @ np.linalg.svd(documents - mean)[2][:dim].T


@pytest.mark.parametrize(("kind", "centre"), [each for each in OPTIONS if each[0] != "random-rotation"])
def test_against_the_definition(kind, centre):
    documents, queries = rows(), rows(7, seed=1)
    fitted = fit(kind, documents, centre=centre, seed=3)
    for dim in (1, 5, WIDTH):
        want = by_hand(kind, documents, queries, dim, centre, 3)
        got = fitted.reduce(queries, dim, renormalise=False).numpy()
        if kind in ("pca", "svd"):
            want = want * np.sign((want * got).sum(0))
        assert got == pytest.approx(want, abs=1e-9)
        unit = fitted.reduce(queries, dim).numpy()
        assert unit == pytest.approx(want / np.linalg.norm(want, axis=1, keepdims=True), abs=1e-9)
    assert fitted.centred == centre
    assert fitted.seed == (3 if kind == "random-dims" else None)


@pytest.mark.parametrize("centre", [False, True])
def test_a_rotation_keeps_every_scalar_product_at_full_size(centre):
    documents, queries = rows(), rows(7, seed=1)
    fitted = fit("random-rotation", documents, centre=centre, seed=2)
    mean = documents.mean(0) if centre else 0
    turned = [fitted.reduce(each, WIDTH, renormalise=False) for each in (queries, documents)]
    assert torch.allclose(turned[0] @ turned[1].T, (queries - mean) @ (documents - mean).T, atol=1e-12)
    other = fit("random-rotation", documents, centre=centre, seed=4).reduce(queries, 3)
    assert not torch.allclose(fitted.reduce(queries, 3), other, atol=0.1)


def test_rotations_are_uniform():
    """Each entry of a uniform rotation has mean 0 and variance 1 / d; without mended signs the diagonal leans."""
    drawn = torch.stack([fit("random-rotation", rows(2, 4), seed=seed).basis for seed in range(2000)])
    assert drawn.mean(0).abs().max() < 5 * 0.5 / 2000**0.5
    assert drawn.var(0).numpy() == pytest.approx(0.25, abs=0.03)


@pytest.mark.parametrize(("kind", "centre"), OPTIONS)
def test_one_fit_serves_all_smaller_sizes(kind, centre):
    documents, queries = rows(), rows(7, seed=1)
    large = fit(kind, documents, [3, 9], centre=centre, seed=1)
    small = fit(kind, documents, 3, centre=centre, seed=1)
    assert large.largest == 9
    assert torch.allclose(large.reduce(queries, 3), small.reduce(queries, 3), atol=1e-12)
    if kind != "random-dims":  # its sizes are drawn apart
        assert torch.allclose(
            large.reduce(queries, 9, renormalise=False)[:, :3], small.reduce(queries, 3, renormalise=False), atol=1e-12
        )


@pytest.mark.parametrize("kind", ["pca", "svd"])
def test_signs_do_not_depend_on_the_order_of_documents(kind):
    documents, queries = rows(), rows(7, seed=1)
    first = fit(kind, documents).reduce(queries, 6)
    assert torch.allclose(first, fit(kind, documents.flip(0)).reduce(queries, 6), atol=1e-9)
    strongest = fit(kind, documents).basis.T
    assert (strongest.gather(1, strongest.abs().argmax(1, keepdim=True)) > 0).all()


def test_queries_have_no_part_in_the_fit():
    documents, queries = rows(), rows(7, seed=1)
    fitted = fit("pca", documents)
    far = torch.cat([queries, 100 * rows(3, seed=9)])
    assert torch.allclose(fitted.reduce(far, 4)[:7], fitted.reduce(queries, 4), atol=1e-12)


def test_fewer_documents_than_dimensions_are_enough_for_as_many_components():
    documents = rows(5)
    for kind in ("pca", "svd"):
        fitted = fit(kind, documents, 5)
        identity = torch.eye(5, dtype=torch.float64)
        assert torch.allclose(fitted.basis.T @ fitted.basis, identity, atol=1e-9)
    whole = fit("svd", documents, 5).reduce(documents, 5, renormalise=False)
    assert torch.allclose(whole @ whole.T, documents @ documents.T, atol=1e-9)  # five directions hold five documents


def test_a_prefix_that_is_not_renormalised_flips_a_ranking():
    """Worked by hand: inner products 0.36 and 0.48, cosines 1 and 0.8 (michaelfeil/infinity#538)."""
    query = torch.tensor([[0.6, 0.0, 0.8, 0.0]])
    documents = torch.tensor([[0.6, 0.0, 0.0, 0.8], [0.8, 0.6, 0.0, 0.0]])
    fitted = fit("prefix", documents)
    for renormalise, want, scores in ((False, [1, 0], [0.48, 0.36]), (True, [0, 1], [1.0, 0.8])):
        found, order = search(fitted.reduce(query, 2, renormalise), fitted.reduce(documents, 2, renormalise))
        assert order[0].tolist() == want
        assert found[0].tolist() == pytest.approx(scores)


def test_centring_flips_a_ranking_by_inner_product():
    """Worked by hand: 10.8 and 7.2 in full, -1.2 and 1.2 after PCA to one axis (facebookresearch/faiss#2636)."""
    query, documents = torch.tensor([[3.0, 1.2]]), torch.tensor([[4.0, -1.0], [2.0, 1.0]])
    assert (query @ documents.T)[0].tolist() == pytest.approx([10.8, 7.2])
    # on the documents' axis (1, -1) / sqrt 2 lie the query at -1.2 / sqrt 2 and the documents at sqrt 2 and -sqrt 2
    fitted = fit("pca", documents, 1)
    kept = [fitted.reduce(each, 1, renormalise=False) for each in (query, documents)]
    assert (kept[0] @ kept[1].T)[0].tolist() == pytest.approx([-1.2, 1.2], abs=1e-6)


def test_a_row_with_nothing_left_stays_zero():
    kept = fit("prefix", torch.eye(3)).reduce(torch.eye(3), 2)
    assert kept.tolist() == [[1, 0], [0, 1], [0, 0]]


def test_numbers_whose_sum_is_too_large_are_still_finite():
    large = torch.full((3, 2), 3e38)
    assert fit("prefix", large).reduce(large, 1, renormalise=False).tolist() == large[:, :1].tolist()


@pytest.mark.parametrize("scale", [1e-30, 1e-22, 1e19, 1e25, 1e38])
@pytest.mark.parametrize(("kind", "centre"), OPTIONS)
def test_no_direction_depends_on_the_scale(kind, centre, scale):
    """Squares of such numbers are not in float32's range, nor are sums of the largest."""
    documents, queries = rows(dtype=torch.float32), rows(7, seed=1, dtype=torch.float32)
    want = fit(kind, documents, centre=centre).reduce(queries, 5)
    fitted = fit(kind, documents * scale, centre=centre)
    assert torch.allclose(fitted.reduce(queries * scale, 5), want, atol=1e-5)
    lengths = fitted.reduce(documents * scale, 5).double().norm(dim=1)
    assert lengths.tolist() == pytest.approx([1] * DOCUMENTS, abs=1e-6)


def test_float64_has_a_wider_range_still():
    documents = rows()
    for scale in (1e-200, 1e200, 1e307):
        for kind in KINDS:
            want = fit(kind, documents).reduce(documents, 5)
            assert torch.allclose(fit(kind, documents * scale).reduce(documents * scale, 5), want, atol=1e-9)


def test_coordinates_beyond_the_format_are_named():
    large = torch.full((3, 2), 3e38) * torch.tensor([[1.0], [1.0], [-1.0]])
    with pytest.raises(ValueError, match=r"embeddings has norms up to 4.24e\+38: .* beyond torch.float32; rescale"):
        fit("prefix", large, centre=True).reduce(large, 2, renormalise=False)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("kind", KINDS)
def test_number_formats(kind, dtype):
    documents = rows(dtype=dtype)
    kept = fit(kind, documents).reduce(documents, 4)
    assert kept.dtype == torch.promote_types(dtype, torch.float32)
    exact = fit(kind, documents.double()).reduce(documents.double(), 4)
    assert torch.allclose(kept.double(), exact, atol=1e-12 if dtype == torch.float64 else 2e-6)
    as_array = fit(kind, documents.float().numpy()).reduce(documents.float().numpy(), 4)
    assert torch.allclose(as_array.double(), exact, atol=2e-6)


def broken(row):
    spoilt = rows(dtype=torch.float32)
    spoilt[row:] = float("nan")
    return spoilt


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fit("prefix", rows(), 13), "a dimension must be a whole number from 1 to 12, got 13"),
        (lambda: fit("pca", rows(), [4, 0]), "from 1 to 12, got 0"),
        (lambda: fit("prefix", rows(), [True]), "from 1 to 12, got True"),
        (lambda: fit("prefix", rows(), 2.5), "whole number"),
        (lambda: fit("prefix", rows(), []), "at least one size"),
        (lambda: fit("pca", rows(5)), "pca needs at least as many documents as dimensions, got 5 documents for 12"),
        (lambda: fit("svd", rows(5), [2, 6]), "svd needs .* got 5 documents for 6 dimensions; pass dims up to 5"),
        (lambda: fit("prefix", torch.empty(0, 12)), r"documents is empty, shape \(0, 12\)"),
        (lambda: fit("svd", broken(57)), "documents has 3 rows that are not finite, the first is row 57"),
        (
            lambda: fit("prefix", rows()[0]),
            r"documents must be floating-point rows .* shape \(12,\)",
        ),
        (lambda: fit("pca", rows(), centre=False), "centre=False contradicts pca: PCA is centred"),
        (lambda: fit("svd", rows(), centre=True), "centre=True contradicts svd"),
        (
            lambda: fit("pca", rows(1).expand(20, 12), 4),
            "documents must differ for pca, but all 20 are the same row",
        ),
        (lambda: fit("svd", torch.zeros(20, 12), 4), "documents must not all be zero for svd, but all 20 are"),
        (lambda: fit(3, rows()), "kind must be one of prefix, .* got 3"),
        (lambda: fit("prefix", rows(), centre="yes"), "centre must be True, False or None, got 'yes'"),
        (lambda: fit("random-dims", rows(), seed=-1), "seed must be a whole number of at least 0, got -1"),
        (lambda: fit("random-dims", rows(), seed="a"), "seed must be .* got 'a'"),
        (lambda: fit("random-rotation", rows(), seed=1.5), "seed must be .* got 1.5"),
        (lambda: fit("prefix", rows()).reduce(rows(), 2, "no"), "renormalise must be True or False, got 'no'"),
        (lambda: fit("PCA", rows()), "kind must be one of prefix, .* got 'PCA'"),
        (lambda: fit("pca", rows(), 4).reduce(rows(), 5), "from 1 to 4, got 5"),
        (lambda: fit("prefix", rows()).reduce(rows(), 0), "from 1 to 12, got 0"),
        (lambda: fit("prefix", rows()).reduce(rows(3, 8), 4), "have 8 dimensions, but the documents .* had 12"),
        (lambda: fit("prefix", rows()).reduce(broken(2), 4), "embeddings has 58 rows .* first is row 2"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_missing_scikit_learn_is_one_clear_error(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.decomposition", None)
    for kind in ("pca", "svd"):
        with pytest.raises(ImportError, match=f"{kind} is fitted with scikit-learn, .* pip install scikit-learn"):
            fit(kind, rows())
    assert fit("random-rotation", rows()).reduce(rows(), 4).shape == (60, 4)


def test_scikit_learn_is_imported_only_for_a_fit():
    code = "import sys, losslab.retrieval; print('sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout == "False\n"


def test_the_guard_against_a_fit_on_queries_sees_one(monkeypatch):
    """Planted: a mean taken from whatever is reduced."""

    def own_mean(self, embeddings):
        return (embeddings - embeddings.mean(0)) @ self.basis, torch.ones(())

    monkeypatch.setattr(module.Reduction, "coordinates", own_mean)
    with pytest.raises(AssertionError):
        test_queries_have_no_part_in_the_fit()
