"""The promises of nested losses: kept by ours, broken by faults and by a real library, told in few numbers."""

import pytest
import torch
from torch.nn.functional import cross_entropy, normalize

from losslab import cli
from losslab.contracts import CONTRACTS, MatryoshkaConventions, check
from losslab.contracts.adapters import embedding_loss, is_matryoshka_library_loss, matryoshka_library_loss
from losslab.losses import info_nce, matryoshka
from losslab.mistakes import get

library = pytest.importorskip("sentence_transformers.sentence_transformer.losses")
NAME = "sentence_transformers.sentence_transformer.losses:MatryoshkaLoss"


def dot_products(a, b):
    a, b = (x if x.dtype.itemsize >= 4 else x.float() for x in (a, b))
    return cross_entropy(a @ b.T, torch.arange(len(a), device=a.device))


# --- Call forms and conventions


def test_ours_keeps_everything():
    report = check(matryoshka, "matryoshka")
    assert {result.verdict for result in report.results} == {"kept"}, str(report)
    assert len(report.results) == len(CONTRACTS["matryoshka"]) == 15


@pytest.mark.parametrize("against", ["info_nce", "dot_product_info_nce", "mse", dot_products])
def test_a_base_loss_can_be_chosen(against):
    report = check(matryoshka, "matryoshka", against=against, examples=8)
    assert report, str(report)
    assert (report["perfect_student"].verdict == "exempt") == (against != "mse")


def nested_already(queries, documents, dims, weights=None):
    return matryoshka(dot_products, dims, weights)(queries, documents)


def test_a_loss_that_is_nested_already():
    report = check(nested_already, "matryoshka", examples=8)
    exempt = {result.contract for result in report.results if result.verdict == "exempt"}
    assert report, str(report)
    assert exempt == {"full_size", "prefixes", "perfect_student"}
    assert "name it with against=" in report["full_size"].reason
    assert check(nested_already, "matryoshka", against=dot_products, only=["full_size", "prefixes"], examples=8)
    wrong = check(nested_already, "matryoshka", against="info_nce", only=["full_size"], examples=8)
    assert wrong.broken == ("full_size",)


def test_a_mean_over_sizes_is_declared():
    def averaged(base_loss, dims, weights=None):
        nested = matryoshka(base_loss, dims, weights)
        return lambda q, d: nested(q, d) / sum(nested.weights)

    only = ["sum_over_dims", "full_size", "dims_order"]
    assert check(averaged, "matryoshka", only=only).broken == ("sum_over_dims",)
    report = check(averaged, "matryoshka", only=only, combine="mean")
    assert report, str(report)
    assert "weighted mean over sizes" in str(report)
    without = check(averaged, "matryoshka", only=["perfect_student"], embedding_labels=False)
    assert without["perfect_student"].verdict == "exempt"


class Wrapper(torch.nn.Module):
    """A class that is made with a base loss and sizes."""

    def __init__(self, base_loss, dims):
        super().__init__()
        self.nested = matryoshka(base_loss, dims)

    def forward(self, queries, documents):
        return self.nested(queries, documents)


def test_a_class_is_a_wrapper_and_need_not_take_weights():
    report = check(Wrapper, "matryoshka", examples=8)
    assert report, str(report)
    assert report.loss == "Wrapper"


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="combine must be one of sum, mean, got 'max'"):
        MatryoshkaConventions(combine="max")
    with pytest.raises(ValueError, match="against must be a callable or one of info_nce, dot_product_info_nce, mse"):
        check(matryoshka, "matryoshka", against="list_mle")
    report = check(info_nce, "matryoshka", only=["scale"])
    assert report["scale"].verdict == "error"
    assert "its signature names no dims" in report["scale"].reason


# --- Counterexamples


def test_counterexamples_are_small_and_say_what_was_asked():
    report = check(get("mrl_forces_cosine").wrong, "matryoshka", only=["full_size"])
    counterexample = report["full_size"].counterexample
    assert counterexample.pairs.queries.shape[1] == 2
    assert counterexample.setting["dims"] == "[2] of 2"
    assert counterexample.setting["base loss"] in ("InfoNCE of dot products", "mean squared error")
    labels = check(get("mrl_labels_sliced").wrong, "matryoshka", only=["perfect_student"])["perfect_student"]
    assert labels.counterexample.pairs.queries.tolist() == [[0.6, 0.8]]
    assert labels.counterexample.quantities[0].got == pytest.approx(0.16)


def test_an_exception_that_is_swallowed_is_a_broken_promise():
    def swallows(base_loss, dims, weights=None):
        nested = matryoshka(base_loss, dims, weights)

        def loss(queries, documents):
            try:
                return nested(queries, documents)
            except RuntimeError:
                return (queries * documents).sum()

        return loss

    result = check(swallows, "matryoshka", only=["restored"])["restored"]
    assert result.verdict == "broken"
    assert "swallowed" in result.counterexample.sentence


def test_the_command_knows_the_kind(capsys):
    arguments = ["check", "losslab.mistakes.mrl_forces_cosine:wrong", "--kind", "matryoshka", "--only", "full_size"]
    assert cli.main(arguments) == 1
    assert "BROKEN     full_size" in capsys.readouterr().out


@pytest.mark.timing
def test_a_whole_check_takes_seconds():
    import time

    start = time.process_time()
    assert check(matryoshka, "matryoshka")
    assert time.process_time() - start < 5


# --- The real MatryoshkaLoss


@pytest.fixture(scope="module")
def toy():
    """Four pairs in eight dimensions, the input of the numbers below."""
    generator = torch.Generator().manual_seed(0)
    return tuple(torch.randn(4, 8, generator=generator, dtype=torch.float64) for _ in range(2))


def wrapped(base, dims, weights=None):
    return matryoshka_library_loss(library.MatryoshkaLoss)(base, dims, weights)


def mnrl(**options):
    return embedding_loss(library.MultipleNegativesRankingLoss, **options)


def cosine_loss(a, b, dim, scale=20.0):
    a, b = (normalize(x[:, :dim], dim=1) for x in (a, b))
    return cross_entropy(scale * a @ b.T, torch.arange(len(a)))


def test_around_cosines_it_is_the_weighted_sum(toy):
    by_hand = sum(cosine_loss(*toy, dim) for dim in (8, 4, 2)).item()
    assert by_hand == pytest.approx(37.5786, abs=1e-4)
    for order in ([8, 4, 2], [2, 8, 4]):
        assert wrapped(mnrl(), order)(*toy).item() == pytest.approx(by_hand, rel=1e-12)
    assert matryoshka(mnrl(), [4, 2, 8])(*toy).item() == pytest.approx(by_hand, rel=1e-12)
    weighted = sum(w * cosine_loss(*toy, dim) for w, dim in ((0.5, 2), (3.0, 8))).item()
    assert wrapped(mnrl(), [2, 8], [0.5, 3.0])(*toy).item() == pytest.approx(weighted, rel=1e-12)


def test_it_makes_a_loss_of_dot_products_one_of_cosines(toy):
    from sentence_transformers.util import dot_score

    base = mnrl(scale=1.0, similarity_fct=dot_score)
    alone, by_cosines = dot_products(*toy).item(), cosine_loss(*toy, 8, scale=1.0).item()
    assert base(*toy).item() == pytest.approx(alone, rel=1e-12)
    assert wrapped(base, [8])(*toy).item() == pytest.approx(by_cosines, rel=1e-12)
    assert (alone, by_cosines) == pytest.approx((2.00142363, 1.39116832), abs=1e-8)
    assert matryoshka(base, [8])(*toy).item() == pytest.approx(alone, rel=1e-12)


def test_it_charges_a_perfect_student_below_the_full_size(toy):
    perfect = normalize(toy[0], dim=1)
    loss = library.MSELoss(torch.nn.Identity())
    paid = {dim: wrapped(loss, [dim])(perfect, perfect.clone()).item() for dim in (8, 4)}
    student, teacher = normalize(perfect[:, :4], dim=1), perfect[:, :4]  # the one renormalised, the other only sliced
    by_hand = (student - teacher).square().mean().item()
    assert paid == pytest.approx({8: 0, 4: by_hand}, abs=1e-12)
    assert by_hand == pytest.approx(0.0086224441, abs=1e-10)
    ours = matryoshka(lambda a, b: (a - b).square().mean(), [8, 4])
    assert ours(perfect, perfect.clone()).item() == pytest.approx(0, abs=1e-30)


def test_around_a_cached_loss_it_is_the_same_with_the_same_gradients(toy):
    cached = embedding_loss(library.CachedMultipleNegativesRankingLoss, mini_batch_size=2)
    for weights in (None, [0.5, 2.0, 1.0]):
        leaves = [x.clone().requires_grad_() for x in toy]
        values = [wrapped(base, [8, 4, 2], weights)(*leaves) for base in (mnrl(), cached)]
        plain, other = (torch.autograd.grad(value, leaves) for value in values)
        assert values[0].item() == pytest.approx(values[1].item(), rel=1e-12)
        for a, b in zip(plain, other, strict=True):
            assert torch.allclose(a, b, rtol=0, atol=1e-12)


def test_a_cached_loss_stays_patched_once_it_was_wrapped(toy):
    """The plain one is asked through a patched model, which is put back; of the cached one a method is replaced."""
    cached = embedding_loss(library.CachedMultipleNegativesRankingLoss)
    alone = cosine_loss(*toy, 8).item()
    assert cached(*toy).item() == pytest.approx(alone, rel=1e-12)
    assert wrapped(mnrl(), [4, 2]).base_loss(*toy).item() == pytest.approx(alone, rel=1e-12)
    left = wrapped(cached, [4, 2]).base_loss(*toy).item()
    assert left == pytest.approx(sum(cosine_loss(*toy, dim) for dim in (4, 2)).item(), rel=1e-12)
    assert cached(*toy).item() == pytest.approx(alone, rel=1e-12)  # the adapter wraps a copy


def test_the_contracts_find_both_promises_broken():
    only = ["full_size", "sum_over_dims", "dims_order", "prefix_only", "perfect_student", "restored", "device"]
    report = check(NAME, "matryoshka", only=only, examples=20)
    assert report.loss == "MatryoshkaLoss"
    assert report.broken == ("full_size", "perfect_student"), str(report)
    assert report["full_size"].counterexample.setting["base loss"] == "InfoNCE of dot products"
    student = report["perfect_student"].counterexample
    assert student.setting["dims"] == "[1] of 2"
    assert student.quantities[0].got == pytest.approx((1 - 0.6) ** 2, rel=1e-6)


def test_around_the_librarys_own_loss_of_cosines_the_sizes_are_right():
    only = ["full_size", "prefixes", "scale", "prefix_only", "sum_over_dims", "dims_order", "restored"]
    report = check(NAME, "matryoshka", only=only, against=mnrl(), examples=12)
    assert report, str(report)
    cached = embedding_loss(library.CachedMultipleNegativesRankingLoss)
    report = check(NAME, "matryoshka", only=only, against=cached, examples=12)
    assert report.broken == ("restored",), str(report)
    assert "the base loss by itself" in report["restored"].counterexample.sentence


def test_only_the_class_is_taken():
    assert is_matryoshka_library_loss(library.MatryoshkaLoss)
    assert not is_matryoshka_library_loss(library.MultipleNegativesRankingLoss)
    assert not is_matryoshka_library_loss(matryoshka)
    with pytest.raises(TypeError, match="loss must be sentence-transformers' class MatryoshkaLoss, got"):
        matryoshka_library_loss(library.MSELoss)


def test_a_wrapper_that_must_be_given_weights_is_given_ones():
    def wrap(base_loss, dims, weights):
        return matryoshka(base_loss, dims, weights)

    assert check(wrap, "matryoshka", only=["full_size", "prefixes", "sum_over_dims"], examples=8)


def test_normalising_before_the_cut_keeps_lengths_out_and_is_not_called_renormalised():
    def wrap(base_loss, dims, weights=None):
        counts = weights or [1.0] * len(dims)

        def loss(queries, documents):
            unit = [normalize(x, dim=-1) for x in (queries, documents)]
            return sum(c * base_loss(*(x[:, :m] for x in unit)) for m, c in zip(dims, counts, strict=True))

        return loss

    report = check(wrap, "matryoshka", only=["prefixes", "scale"])
    assert [result.verdict for result in report.results] == ["broken", "kept"]
    assert report["scale"].title == "below the full size, lengths do not matter"
    assert "for the contract prefixes to say" in report["scale"].promise
