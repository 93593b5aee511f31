"""The contrastive losses against their formulas, at every precision, with every option, and beside real libraries."""

import math
import warnings

import pytest
import torch

import exact_contrastive as exact
from losslab.contracts.adapters.embedding_losses import embedding_loss
from losslab.contracts.fake_device import CUDA, FakeCuda
from losslab.device import pick_device
from losslab.losses import graded_info_nce, info_nce, multi_positive_info_nce

DEVICE = pick_device()
# Value relative to itself, gradient relative to its largest entry; half results may also be off by their own rounding.
TOLERANCE = {
    torch.float64: (1e-12, 1e-12),
    torch.float32: (1e-6, 1e-5),
    torch.bfloat16: (1e-6 + 2**-8, 1e-5 + 2**-8),
    torch.float16: (1e-6 + 2**-11, 1e-5 + 2**-11),
}
OPTIONS = {
    "plain": {},
    "symmetric": {"symmetric": True},
    "masked": {"negatives"},
    "more documents": {"offset": 3},
    "hard": {"hard"},
    "hard, padded": {"hard", "hard_mask"},
    "dot products": {"normalize": False, "temperature": 2.0},
    "all": {"negatives", "hard", "hard_mask", "symmetric"},
    "all, unequal": {"negatives", "hard", "hard_mask", "offset"},
}
each_dtype = pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
each_option = pytest.mark.parametrize("option", OPTIONS)


def normal(*shape, seed):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def batch(option, dtype, b=7, d=6, seed=0):
    """Queries, documents and the options; positives are somewhat nearer than the rest, padding holds NaN."""
    wanted = OPTIONS[option]
    settings = dict(wanted) if isinstance(wanted, dict) else dict.fromkeys(wanted)
    if "symmetric" in settings:
        settings["symmetric"] = True
    offset = settings["offset"] = 3 if "offset" in settings else 0
    m = b + (5 if offset else 0)
    queries, documents = normal(b, d, seed=seed), normal(m, d, seed=seed + 1)
    documents[offset : offset + b] += queries
    generator = torch.Generator().manual_seed(seed)
    if "negatives" in settings:
        settings["negatives"] = torch.rand(b, m, generator=generator) < 0.6
        settings["negatives"].diagonal(offset).fill_(True)
    if "hard" in settings:
        settings["hard"] = (normal(b, 3, d, seed=seed + 2) + queries[:, None]).to(dtype)
    if "hard_mask" in settings:
        settings["hard_mask"] = torch.rand(b, 3, generator=generator) < 0.5
        settings["hard"] = settings["hard"].masked_fill(~settings["hard_mask"][..., None], math.nan)
    return queries.to(dtype), documents.to(dtype), settings


def run(queries, documents, settings, **more):
    """Value, and gradients by queries, documents and hard negatives."""
    names = {"hard": "hard_negatives", "offset": "positive_offset"}
    given = {names.get(k, k): v.to(DEVICE) if isinstance(v, torch.Tensor) else v for k, v in settings.items()}
    leaves = [t.to(DEVICE).requires_grad_() for t in (queries, documents)]
    if "hard_negatives" in given:
        leaves.append(given["hard_negatives"].requires_grad_())
    value = info_nce(leaves[0], leaves[1], **given, **more)
    return value, torch.autograd.grad(value, leaves)


def close(value, gradients, truth, dtype):
    """Hold a mean and its gradients to the formula's."""
    rows, expected = truth
    value_tolerance, gradient_tolerance = TOLERANCE[dtype]
    # The one allowed absolute error is what the type itself can hold: a half below 6e-8 is 0.
    assert value.item() == pytest.approx(float(sum(rows) / len(rows)), rel=value_tolerance, abs=torch.finfo(dtype).tiny)
    for got, want in zip(gradients, expected, strict=True):
        assert got.dtype == dtype
        smallest = torch.finfo(dtype).smallest_normal if dtype == torch.float16 else 0
        assert (got.cpu().double() - want).abs().max() <= gradient_tolerance * want.abs().max() + smallest


@each_dtype
@each_option
@pytest.mark.parametrize("seed", [0, 1])
def test_value_and_gradients_equal_the_formula(option, dtype, seed):
    queries, documents, settings = batch(option, dtype, seed=10 * seed)
    value, gradients = run(queries, documents, settings)
    assert value.dtype == dtype
    close(value, gradients, exact.info_nce(queries, documents, **settings), dtype)


@each_option
@pytest.mark.parametrize("chunk_size", [1, 3, 7, 50])
def test_chunks_change_nothing(option, chunk_size):
    queries, documents, settings = batch(option, torch.float64)
    value, gradients = run(queries, documents, settings)
    chunked, chunked_gradients = run(queries, documents, settings, chunk_size=chunk_size)
    assert chunked.item() == pytest.approx(value.item(), rel=1e-14)
    for got, want in zip(chunked_gradients, gradients, strict=True):
        assert (got - want).abs().max() <= 1e-13 * want.abs().max()


def test_a_gradient_check_of_every_option():
    for option in OPTIONS:
        queries, documents, settings = batch(option, torch.float64, b=3, d=4)
        names = {"hard": "hard_negatives", "offset": "positive_offset"}
        given = {names.get(k, k): v for k, v in settings.items()}
        hard = given.pop("hard_negatives", None)
        hard = None if hard is None else hard.nan_to_num(1).requires_grad_()
        for chunk_size in (None, 2):
            for reduction in ("mean", "none"):  # "none" gives every row a weight of its own

                def loss(q, d, h, given=given, chunk_size=chunk_size, reduction=reduction):
                    return info_nce(q, d, hard_negatives=h, chunk_size=chunk_size, reduction=reduction, **given)

                leaves = (queries.requires_grad_(), documents.requires_grad_(), hard)
                assert torch.autograd.gradcheck(loss, leaves, fast_mode=True)


# --- Large enough to be computed in float32 throughout


def reference(queries, documents, temperature=0.05, *, symmetric=False):
    """Float64, whole matrices, written as the formula is; small losses by log1p."""
    leaves = [t.detach().double().requires_grad_() for t in (queries, documents)]
    q, d = (t / t.norm(dim=1, keepdim=True) for t in leaves)
    gaps = q @ d.T / temperature - (q * d).sum(1, keepdim=True) / temperature
    own = torch.eye(len(q), dtype=torch.bool)
    values = torch.log1p(gaps.masked_fill(own, -torch.inf).exp().sum(1))
    if symmetric:
        back = d @ q.T / temperature - (q * d).sum(1, keepdim=True) / temperature
        values = (values + torch.log1p(back.masked_fill(own, -torch.inf).exp().sum(1))) / 2
    value = values.mean()
    return value.item(), torch.autograd.grad(value, leaves)


LARGE = {
    "nothing learnt": lambda b: (normal(b, 96, seed=0), normal(b, 96, seed=1)),
    "nearly learnt": lambda b: (normal(b, 96, seed=0), normal(b, 96, seed=0) + 0.3 * normal(b, 96, seed=1)),
    "all alike": lambda b: (1e-2 * normal(b, 96, seed=0) + 1, 1e-2 * normal(b, 96, seed=1) + 1),
    "all nearly one": lambda b: (1e-3 * normal(b, 96, seed=0) + 1, 1e-3 * normal(b, 96, seed=1) + 1),
    "alike, of many lengths": lambda b: (
        (1e-3 * normal(b, 96, seed=0) + 1) * (1 + normal(b, 1, seed=2).abs()),
        (1e-3 * normal(b, 96, seed=1) + 1) * (1 + normal(b, 1, seed=3).abs()),
    ),
    "mean cosine 0.85": lambda b: (0.42 * normal(b, 96, seed=0) + 1, 0.42 * normal(b, 96, seed=1) + 1),
    "alike from row 64 on": lambda b: (
        torch.cat([normal(64, 96, seed=2), 1e-1 * normal(b - 64, 96, seed=0) + 1]),
        torch.cat([normal(64, 96, seed=3), 1e-1 * normal(b - 64, 96, seed=1) + 1]),
    ),
    "too short to square in float32": lambda b: (1e-22 * normal(b, 96, seed=0), 1e-22 * normal(b, 96, seed=1)),
    "too long to square in float32": lambda b: (1e20 * normal(b, 96, seed=0), 1e20 * normal(b, 96, seed=1)),
}


@pytest.mark.parametrize("kind", LARGE)
@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("chunk_size", [None, 100])
def test_large_batches_keep_their_digits_in_float32(kind, symmetric, chunk_size):
    """Uncentred, or normalised in float32, "all nearly one" is off by 1.8e-4 of its largest entry instead of 1.4e-6."""
    queries, documents = (t.float() for t in LARGE[kind](256))
    value, gradients = reference(queries, documents, symmetric=symmetric)
    got, got_gradients = run(queries, documents, {"symmetric": symmetric}, chunk_size=chunk_size)
    assert got.item() == pytest.approx(value, rel=1e-6)
    for ours, truth in zip(got_gradients, gradients, strict=True):
        assert (ours.cpu().double() - truth).abs().max() <= 1e-5 * truth.abs().max()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("value", "what"), [(0.0, "no zero vector"), (math.nan, "must be finite")])
def test_a_bad_row_of_a_large_batch_is_named(dtype, value, what):
    good, bad = normal(600, 8, seed=0).to(dtype), normal(600, 8, seed=1).to(dtype)
    bad[577] = value
    for batch in ((good, bad), (bad, good)):
        with pytest.raises(ValueError, match=f"{what}.* at row 577"):
            info_nce(*batch)
    with pytest.raises(ValueError, match=rf"hard_negatives .*{what}.* at row \[577, 0\]"):
        info_nce(good, good, hard_negatives=bad[:, None], chunk_size=100)


@pytest.mark.parametrize("temperature", [0.039, 0.01, 1e-3])
def test_low_temperatures_keep_their_digits_in_float32(temperature):
    queries, documents = (
        normal(256, 96, seed=0).float(),
        (normal(256, 96, seed=0) + 9 * normal(256, 96, seed=1)).float(),
    )
    value, gradients = reference(queries, documents, temperature)
    got, got_gradients = run(queries, documents, {"temperature": temperature})
    assert got.item() == pytest.approx(value, rel=1e-6)
    for ours, truth in zip(got_gradients, gradients, strict=True):
        assert (ours.cpu().double() - truth).abs().max() <= 1e-5 * truth.abs().max()


# --- Extremes and documented values


@each_dtype
def test_the_lowest_temperature_with_cosines_of_plus_and_minus_one(dtype):
    """Three queries: one right by 2000 logits, one wrong by 2000, one with an exact copy of its positive: ln 2."""
    e = torch.eye(3, dtype=dtype)
    queries = torch.stack([e[0], e[0], e[1]])
    documents = torch.stack([e[0], -e[0], e[1], e[1]])
    value, gradients = run(queries, documents, {"temperature": 1e-3}, reduction="sum")
    assert value.item() == pytest.approx(2000 + math.log(2), rel=TOLERANCE[dtype][0])
    assert all(g.isfinite().all() for g in gradients)


@each_dtype
def test_dot_products_of_ten_thousand(dtype):
    queries = (normal(5, 4, seed=0) * 100).to(dtype)
    documents = (normal(5, 4, seed=1) * 100).to(dtype)
    settings = {"normalize": False, "temperature": 1.0}
    value, gradients = run(queries, documents, settings)
    close(value, gradients, exact.info_nce(queries, documents, **settings), dtype)


@pytest.mark.parametrize("chunk_size", [None, 2])
def test_one_pair_costs_nothing(chunk_size):
    value, gradients = run(torch.ones(1, 3), torch.tensor([[1.0, 2, 3]]), {}, chunk_size=chunk_size)
    assert value == 0
    assert all((g == 0).all() for g in gradients)


def test_a_row_whose_negatives_are_all_forbidden_is_zero_and_counted():
    queries, documents = normal(3, 4, seed=0), normal(3, 4, seed=1)
    allowed = torch.ones(3, 3, dtype=torch.bool)
    allowed[1] = torch.tensor([False, True, False])
    each = info_nce(queries, documents, negatives=allowed, reduction="none")
    assert each[1] == 0
    assert info_nce(queries, documents, negatives=allowed).item() == pytest.approx(each.sum().item() / 3)


def test_equal_embeddings_cost_ln_m():
    for m in (4, 9):
        assert info_nce(torch.ones(4, 3).double(), torch.ones(m, 3).double()).item() == pytest.approx(math.log(m))


def test_zero_vectors_are_harmless_when_values_are_not_looked_at():
    queries = torch.tensor([[0.0, 0], [1, 0]])
    value, gradients = run(queries, torch.eye(2), {}, validate=False)
    assert value.item() == pytest.approx((math.log(2) + math.log1p(math.exp(20))) / 2)
    assert (gradients[0][0] == 0).all()


def test_reductions_and_hard_negatives_of_none():
    queries, documents, _ = batch("plain", torch.float64)
    each = info_nce(queries, documents, reduction="none")
    assert each.shape == (7,)
    assert info_nce(queries, documents, reduction="sum").item() == pytest.approx(each.sum().item())
    none = info_nce(queries, documents, hard_negatives=torch.empty(7, 0, 6, dtype=torch.float64), reduction="none")
    assert torch.equal(none, each)


def test_padded_hard_negatives_get_gradient_exactly_zero():
    queries, documents, settings = batch("hard, padded", torch.float32)
    _, (_, _, by_hard) = run(queries, documents, settings)
    assert (by_hard[~settings["hard_mask"]] == 0).all()
    assert (by_hard[settings["hard_mask"]] != 0).any(1).all()


def test_a_mask_is_read_by_column_in_the_other_direction():
    """Forbidding (0, 1) takes document 1 from query 0's candidates and query 0 from document 1's: nothing else."""
    queries, documents = normal(3, 4, seed=0), normal(3, 4, seed=1)
    allowed = torch.ones(3, 3, dtype=torch.bool)
    allowed[0, 1] = False
    forth = info_nce(queries, documents, negatives=allowed, reduction="none")
    back = info_nce(documents, queries, negatives=allowed.T, reduction="none")
    both = info_nce(queries, documents, negatives=allowed, symmetric=True, reduction="none")
    torch.testing.assert_close(both, (forth + back) / 2, rtol=1e-14, atol=0)
    assert not torch.equal(forth, info_nce(queries, documents, reduction="none"))


def test_inputs_are_left_alone_and_backward_can_be_repeated():
    for option in ("all", "plain"):
        queries, documents, settings = batch(option, torch.float64)
        before = queries.clone(), documents.clone()
        q, d = queries.requires_grad_(), documents.requires_grad_()
        loss = info_nce(q, d, symmetric=settings.get("symmetric", False))
        first = torch.autograd.grad(loss, (q, d), retain_graph=True)
        second = torch.autograd.grad(loss, (q, d))
        assert all(map(torch.equal, first, second))
        assert all(map(torch.equal, before, (q.detach(), d.detach())))


def test_autocast_does_not_reach_the_scores():
    queries, documents = normal(200, 32, seed=0).float(), normal(200, 32, seed=1).float()
    value, gradients = run(queries, documents, {})
    with torch.autocast(DEVICE.type, dtype=torch.bfloat16):
        inside, inside_gradients = run(queries, documents, {})
    assert torch.equal(inside, value)
    assert all(map(torch.equal, inside_gradients, gradients))


def test_a_tensor_made_on_the_wrong_device_would_show():
    for option in OPTIONS:
        queries, documents, settings = batch(option, torch.float32)
        names = {"hard": "hard_negatives", "offset": "positive_offset"}
        with FakeCuda() as fake, torch.no_grad():
            given = {names.get(k, k): fake.put(v) if isinstance(v, torch.Tensor) else v for k, v in settings.items()}
            for chunk_size in (None, 3):
                value = info_nce(fake.put(queries), fake.put(documents), chunk_size=chunk_size, **given)
                assert value.device == CUDA
            some = fake.put(torch.eye(len(queries), len(documents), dtype=torch.bool))
            assert multi_positive_info_nce(fake.put(queries), fake.put(documents), some).device == CUDA
            assert graded_info_nce(fake.put(queries), fake.put(documents), some.float()).device == CUDA


# --- Published cases


def test_two_identical_pairs_among_four_cannot_go_below_half_of_ln_two():
    same = torch.eye(4, dtype=torch.float64)
    same[1] = same[0]
    by_hand = (2 * math.log(2 + 2 * math.exp(-20)) + 2 * math.log(1 + 3 * math.exp(-20))) / 4
    assert info_nce(same, same).item() == pytest.approx(by_hand, rel=1e-12)
    assert info_nce(same, same, temperature=1e-3).item() == pytest.approx(2 / 4 * math.log(2), rel=1e-12)
    allowed = (same @ same.T < 1) | torch.eye(4, dtype=torch.bool)
    masked = (2 * math.log1p(2 * math.exp(-20)) + 2 * math.log1p(3 * math.exp(-20))) / 4
    assert info_nce(same, same, negatives=allowed).item() == pytest.approx(masked, rel=1e-12)
    assert masked == pytest.approx(5.153e-09, rel=1e-3)


def test_accumulating_halves_is_not_the_whole_batch():
    zero = torch.ones(4, 2, dtype=torch.float64)
    assert info_nce(zero, zero).item() == pytest.approx(1.3862943611, rel=1e-10)
    assert info_nce(zero[:2], zero[:2]).item() == pytest.approx(0.6931471806, rel=1e-9)


def test_without_normalising_the_length_is_a_temperature():
    q = torch.tensor([[3.0, 0], [0, 3]], dtype=torch.float64)
    d = torch.tensor([[2.0, 1], [1, 2]], dtype=torch.float64)
    dot = {"temperature": 1.0, "normalize": False}
    assert info_nce(q, d, **dot).item() == pytest.approx(math.log1p(math.exp(-3)), rel=1e-14)
    assert info_nce(2 * q, 2 * d, **dot).item() == pytest.approx(math.log1p(math.exp(-12)), rel=1e-14)
    cosine = math.log1p(math.exp(-1 / math.sqrt(5)))
    assert info_nce(q, d, temperature=1.0).item() == pytest.approx(cosine, rel=1e-14)
    assert info_nce(2 * q, 7 * d, temperature=1.0).item() == pytest.approx(cosine, rel=1e-14)


def test_rows_and_columns_have_different_normalisers():
    scores = torch.tensor([[2.0, 1.0], [0.0, 0.5]], dtype=torch.float64)  # as dot products with the unit vectors
    eye, plain = torch.eye(2, dtype=torch.float64), {"temperature": 1.0, "normalize": False}
    rows = (math.log1p(math.exp(-1)) + math.log1p(math.exp(-0.5))) / 2
    columns = (math.log1p(math.exp(-2)) + math.log1p(math.exp(0.5))) / 2
    assert rows == pytest.approx(0.3936693358, rel=1e-9)
    assert columns == pytest.approx(0.5505024976, rel=1e-9)
    assert info_nce(scores, eye, **plain).item() == pytest.approx(rows, rel=1e-14)
    assert info_nce(eye, scores, **plain).item() == pytest.approx(columns, rel=1e-14)
    assert info_nce(scores, eye, symmetric=True, **plain).item() == pytest.approx((rows + columns) / 2, rel=1e-14)


def test_groups_of_hard_negatives_stay_with_their_query():
    """Two queries with a group of two each, no in-batch negatives: the other group must not matter."""
    q = torch.eye(2, dtype=torch.float64)
    positives, hard = q.clone(), q.flip(0)[:, None]
    only_own = torch.eye(2, dtype=torch.bool)
    settings = {"temperature": 0.5, "negatives": only_own, "reduction": "none"}
    each = info_nce(q, positives, hard_negatives=hard, **settings)
    assert each.mean().item() == pytest.approx(math.log1p(math.exp(-2)), rel=1e-14)
    hard[1] = normal(1, 2, seed=0)
    assert info_nce(q, positives, hard_negatives=hard, **settings)[0] == each[0]


# --- Real libraries


@pytest.fixture(scope="module")
def ranking_losses():
    from sentence_transformers.sentence_transformer.losses import (
        CachedMultipleNegativesRankingLoss,
        MultipleNegativesRankingLoss,
    )

    return MultipleNegativesRankingLoss, CachedMultipleNegativesRankingLoss


def same_as(theirs, ours, queries, documents):
    results = []
    for loss in (theirs, ours):
        leaves = queries.clone().requires_grad_(), documents.clone().requires_grad_()
        value = loss(*leaves)
        results.append((value.item(), torch.autograd.grad(value, leaves)))
    (value, gradients), (our_value, our_gradients) = results
    assert our_value == pytest.approx(value, rel=1e-12)
    for got, want in zip(our_gradients, gradients, strict=True):
        torch.testing.assert_close(got, want, rtol=1e-10, atol=1e-13)


def test_multiple_negatives_ranking_loss_agrees(ranking_losses):
    plain, cached = ranking_losses
    q, d = normal(8, 5, seed=0), normal(8, 5, seed=1)
    same_as(embedding_loss(plain), info_nce, q, d)
    same_as(embedding_loss(plain, scale=10.0), lambda a, b: info_nce(a, b, temperature=0.1), q, d)
    same_as(embedding_loss(plain), info_nce, q, torch.cat([d, normal(8, 5, seed=2)]))  # hard negatives, seen by all
    both = embedding_loss(plain, directions=("query_to_doc", "doc_to_query"), partition_mode="per_direction")
    same_as(both, lambda a, b: info_nce(a, b, symmetric=True), q, d)
    for size in (1, 3, 8):
        theirs = embedding_loss(cached, mini_batch_size=size)
        same_as(theirs, lambda a, b, size=size: info_nce(a, b, chunk_size=size), q, d)


def test_metric_learning_losses_agree_where_they_should():
    from pytorch_metric_learning.losses import NTXentLoss, SupConLoss

    q, d, ids = normal(8, 5, seed=0), normal(8, 5, seed=1), torch.arange(8)
    for loss in (NTXentLoss(temperature=0.1), SupConLoss(temperature=0.1)):
        # A copy of the labels: given the same object, the library takes the diagonal for self-comparisons.
        def theirs(a, b, loss=loss):
            return loss(a, ids, ref_emb=b, ref_labels=ids.clone())

        same_as(theirs, lambda a, b: info_nce(a, b, temperature=0.1), q, d)


# --- Several positives, and graded ones


@each_dtype
@pytest.mark.parametrize("masked", [False, True])
def test_several_positives_equal_the_formula(dtype, masked):
    q, d = normal(5, 6, seed=0).to(dtype), normal(8, 6, seed=1).to(dtype)
    generator = torch.Generator().manual_seed(2)
    positives = torch.rand(5, 8, generator=generator) < 0.3
    positives[torch.arange(5), torch.arange(5)] = True
    allowed = (torch.rand(5, 8, generator=generator) < 0.6) | positives if masked else None
    leaves = q.to(DEVICE).requires_grad_(), d.to(DEVICE).requires_grad_()
    mask = None if allowed is None else allowed.to(DEVICE)
    value = multi_positive_info_nce(*leaves, positives.to(DEVICE), negatives=mask)
    truth = exact.multi_positive(q, d, positives, negatives=allowed)
    close(value, torch.autograd.grad(value, leaves), truth, dtype)


def test_several_positives_do_not_repel_one_another():
    """Two copies of the right document: no loss once both are found, where one label a row leaves ln 2."""
    q, d = torch.eye(2, 3).double(), torch.eye(3).double()[[0, 0, 1]]
    positives = torch.tensor([[True, True, False], [False, False, True]])
    value = multi_positive_info_nce(q, d, positives, reduction="none")
    expected = [math.log1p(math.exp(-20) / 2), math.log1p(2 * math.exp(-20))]
    assert value.tolist() == pytest.approx(expected, rel=1e-12)


def test_one_positive_each_is_info_nce_and_twice_differentiable():
    q, d = normal(4, 3, seed=0).requires_grad_(), normal(6, 3, seed=1).requires_grad_()
    positives = torch.eye(4, 6).bool()
    got = multi_positive_info_nce(q, d, positives, temperature=0.3)
    assert got.item() == pytest.approx(info_nce(q, d, temperature=0.3).item(), rel=1e-13)
    labels = normal(4, 6, seed=2)
    for loss in (
        lambda a, b: multi_positive_info_nce(a, b, positives, temperature=0.3),
        lambda a, b: graded_info_nce(a, b, labels, temperature=0.3),
    ):
        assert torch.autograd.gradcheck(loss, (q, d))
        assert torch.autograd.gradgradcheck(loss, (q, d))


def test_all_positives_or_none_allowed_cost_nothing():
    q, d = normal(2, 3, seed=0).requires_grad_(), normal(4, 3, seed=1).requires_grad_()
    for positives, negatives in ((torch.ones(2, 4).bool(), None), (torch.eye(2, 4).bool(), torch.eye(2, 4).bool())):
        value = multi_positive_info_nce(q, d, positives, negatives=negatives)
        assert value == 0
        assert all((g == 0).all() for g in torch.autograd.grad(value, (q, d)))


@each_dtype
@pytest.mark.parametrize("label_temperature", [0.1, 1.0])
def test_graded_labels_equal_the_formula(dtype, label_temperature):
    q, d = normal(5, 6, seed=0).to(dtype), normal(8, 6, seed=1).to(dtype)
    generator = torch.Generator().manual_seed(2)
    labels = torch.randint(4, (5, 8), generator=generator).float()
    mask = torch.rand(5, 8, generator=generator) < 0.6
    mask[:, 0] = True
    labels = labels.masked_fill(~mask, math.nan)
    leaves = q.to(DEVICE).requires_grad_(), d.to(DEVICE).requires_grad_()
    value = graded_info_nce(*leaves, labels.to(DEVICE), mask=mask.to(DEVICE), label_temperature=label_temperature)
    truth = exact.graded(q, d, labels, mask=mask, label_temperature=label_temperature)
    close(value, torch.autograd.grad(value, leaves), truth, dtype)


def test_targets_from_the_scores_themselves_would_let_everything_collapse():
    """Three equal embeddings: soft targets equal the prediction and nothing pulls; one-hot labels do pull."""
    scores = torch.ones(3, 3, dtype=torch.float64, requires_grad=True)
    eye, plain = torch.eye(3, dtype=torch.float64), {"temperature": 1.0, "normalize": False}
    soft = graded_info_nce(scores, eye, scores, **plain)
    assert soft.item() == pytest.approx(math.log(3), rel=1e-14)
    (gradient,) = torch.autograd.grad(soft, scores)
    assert gradient.abs().max() < 1e-16
    hard = graded_info_nce(scores, eye, eye, label_temperature=1e-3, reduction="sum", **plain)
    (gradient,) = torch.autograd.grad(hard, scores)
    assert gradient[0].tolist() == pytest.approx([-2 / 3, 1 / 3, 1 / 3], rel=1e-14)


# --- Bad input


def _good():
    return {"queries": torch.eye(2, 3), "documents": torch.eye(3)}


NAN = torch.tensor([[math.nan, 0, 0], [0, 1, 0]])
BAD = {
    "temperature 0": ({"temperature": 0.0}, r"temperature must be a finite number above 0, got 0\.0"),
    "temperature below 0": ({"temperature": -0.1}, r"temperature must be a finite number above 0, got -0\.1"),
    "temperature infinite": ({"temperature": math.inf}, r"temperature must be a finite number above 0, got inf"),
    "temperature nan": ({"temperature": math.nan}, r"temperature must be a finite number above 0, got nan"),
    "temperature a tensor": ({"temperature": torch.tensor(0.1)}, r"temperature must be .* got float32 of shape \(\)"),
    "other width": ({"documents": torch.ones(3, 4)}, r"documents must have the queries' 3 dimensions.* \(3, 4\)"),
    "queries a vector": (
        {"queries": torch.ones(3)},
        r"queries must be a floating-point .* got float32 .*\(3,\)",
    ),
    "whole numbers": ({"documents": torch.ones(3, 3).long()}, r"documents must be a floating-point .* got int64"),
    "a list": ({"queries": [[1.0]]}, r"queries must be a floating-point tensor .* got list"),
    "no query": ({"queries": torch.ones(0, 3)}, r"queries must not be empty, got float32 of shape \(0, 3\)"),
    "two types": ({"documents": torch.eye(3).double()}, r"documents must have the queries' type, got torch\.float64"),
    "two devices": ({"documents": torch.eye(3, device="meta")}, r"documents is on meta but queries is on cpu"),
    "no such reduction": ({"reduction": "avg"}, r"reduction must be 'mean', 'sum' or 'none', got 'avg'"),
    "not a number": ({"queries": NAN}, r"queries must be finite, got a vector of norm nan at row 0"),
    "infinite": ({"documents": torch.eye(3) / 0}, r"documents must be finite, got a vector of norm (nan|inf) at row 0"),
    "zero vector": ({"queries": torch.eye(3)[:2] * 0}, r"queries must have no zero vector .* at row 0"),
}
BAD_INFO_NCE = {
    "too few documents": ({"documents": torch.eye(3)[:1]}, r"at least 2 \+ positive_offset 0 rows, got 1"),
    "offset beyond": ({"positive_offset": 2}, r"at least 2 \+ positive_offset 2 rows, got 3"),
    "offset negative": ({"positive_offset": -1}, r"positive_offset must be a whole number of at least 0, got -1"),
    "chunk of 0": ({"chunk_size": 0}, r"chunk_size must be a whole number of at least 1, got 0"),
    "symmetric, unequal": ({"symmetric": True}, r"symmetric=True needs as many documents as queries, got 3 and 2"),
    "mask of numbers": ({"negatives": torch.ones(2, 3)}, r"negatives must be a bool tensor of shape \(2, 3\).*float32"),
    "mask of another shape": ({"negatives": torch.ones(2, 2).bool()}, r"negatives must .* got bool of shape \(2, 2\)"),
    "positive forbidden": ({"negatives": ~torch.eye(2, 3).bool()}, r"own positive, got False at \[0, 0\] and 2 such"),
    "hard of another width": ({"hard_negatives": torch.ones(2, 1, 4)}, r"hard_negatives must .*\(2, hard .* 3\), got"),
    "hard of another type": (
        {"hard_negatives": torch.ones(2, 1, 3).half()},
        r"hard_negatives must have the quer",
    ),
    "hard zero": ({"hard_negatives": torch.zeros(2, 1, 3)}, r"hard_negatives must have no zero .* at row \[0, 0\]"),
    "hard nan": ({"hard_negatives": torch.full((2, 1, 3), math.nan)}, r"hard_negatives must be finite.*\[0, 0\]"),
    "hard mask alone": ({"hard_mask": torch.ones(2, 1).bool()}, r"hard_mask must come with hard_negatives"),
    "hard mask wide": (
        {"hard_negatives": torch.ones(2, 1, 3), "hard_mask": torch.ones(2, 2).bool()},
        r"hard_mask must be a bool tensor of shape \(2, 1\), True = real, got bool of shape \(2, 2\)",
    ),
}
SOME = torch.eye(2, 3).bool()
OTHERS = {
    "info_nce": (info_nce, {}),
    "multi_positive": (multi_positive_info_nce, {"positives": SOME}),
    "graded": (graded_info_nce, {"labels": SOME.float()}),
}
BAD_OTHERS = {
    "positives of numbers": ("multi_positive", {"positives": SOME.float()}, r"positives must be a bool .* got float32"),
    "no positive": ("multi_positive", {"positives": SOME & ~SOME[:1]}, r"positives must name .* none in row 0 and 1"),
    "positive forbidden": (
        "multi_positive",
        {"negatives": ~SOME},
        r"negatives must be True at every pos.*\[0, 0\]",
    ),
    "labels of another shape": (
        "graded",
        {"labels": torch.ones(2, 2)},
        r"labels must be a real .*\(2, 3\).*\(2, 2\)",
    ),
    "label nan": ("graded", {"labels": torch.full((2, 3), math.nan)}, r"labels must be finite .* got nan at \[0, 0\]"),
    "nothing judged": ("graded", {"mask": SOME & ~SOME[:1]}, r"mask must leave something judged .* nothing in row 0"),
    "label temperature": ("graded", {"label_temperature": 0}, r"label_temperature must be a finite number above 0"),
}


@pytest.mark.parametrize("loss", OTHERS)
@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_named(loss, case):
    change, message = BAD[case]
    function, more = OTHERS[loss]
    with pytest.raises(ValueError, match=message):
        function(**_good() | more | change)


@pytest.mark.parametrize("case", BAD_INFO_NCE)
def test_bad_options_of_info_nce_are_named(case):
    change, message = BAD_INFO_NCE[case]
    with pytest.raises(ValueError, match=message):
        info_nce(**_good() | change)


@pytest.mark.parametrize("case", BAD_OTHERS)
def test_bad_positives_and_labels_are_named(case):
    loss, change, message = BAD_OTHERS[case]
    function, more = OTHERS[loss]
    with pytest.raises(ValueError, match=message):
        function(**_good() | more | change)


def test_a_second_derivative_is_refused_by_name():
    q = torch.eye(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="info_nce can be differentiated once, not twice"):
        torch.autograd.grad(info_nce(q, torch.eye(2).flip(0)), q, create_graph=True)


def test_values_not_looked_at_make_no_fuss():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for function, more in OTHERS.values():
            assert function(**_good() | more | {"queries": NAN}, validate=False).isnan()
