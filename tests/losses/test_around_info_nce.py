"""What goes with a contrastive loss: masks for false negatives, statistics of a step, and GradCache."""

import math

import pytest
import torch
from torch import nn

from losslab.losses import gradient_cached, info_nce, multi_positive_info_nce, step_statistics
from losslab.losses.false_negatives import above_threshold, exact_duplicates, guided


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


# --- Masks


def test_documents_of_one_id_are_forbidden_to_one_another():
    expected = [[1, 0, 1, 1], [0, 1, 1, 1], [1, 1, 1, 1], [1, 1, 1, 1]]
    for ids in (["a", "a", "b", "c"], torch.tensor([7, 7, 1, 2]), [(1,), (1,), (2,), None]):
        assert exact_duplicates(ids).tolist() == [[bool(x) for x in row] for row in expected]


def test_an_offset_moves_the_positive_and_its_protection():
    ids = ["a", "b", "a", "c", "b"]
    mask = exact_duplicates(ids, positive_offset=2, queries=2)
    assert mask.tolist() == [[False, True, True, True, True], [True, True, True, True, True]]
    assert torch.equal(exact_duplicates(ids, positive_offset=2)[:2], mask)
    similarities = torch.tensor([[0.9, 0.1, 0.95], [0.2, 0.3, 0.8]])
    assert above_threshold(similarities, 0.5, positive_offset=1).tolist() == [[False, True, False], [True, True, True]]


def test_the_threshold_itself_is_forbidden():
    similarities = torch.tensor([[0.0, 0.5], [0.4999, 0.0]])
    assert above_threshold(similarities, 0.5).tolist() == [[True, False], [True, True]]


def test_a_guide_forbids_exact_copies_without_a_margin():
    """The case in which a strict comparison keeps the copies: two identical pairs among four."""
    same = torch.eye(4)[[0, 0, 2, 3]]
    mask = guided(same, same)
    assert torch.equal(mask, exact_duplicates([0, 0, 2, 3]))
    by_hand = (2 * math.log1p(2 * math.exp(-20)) + 2 * math.log1p(3 * math.exp(-20))) / 4
    assert info_nce(same.double(), same.double(), negatives=mask).item() == pytest.approx(by_hand, rel=1e-12)


@pytest.mark.parametrize("kind", ["absolute", "relative"])
@pytest.mark.parametrize("margin", [0.0, 0.1, -0.1])
@pytest.mark.parametrize("offset", [0, 2])
def test_a_guide_by_a_slow_loop(kind, margin, offset):
    q, d = normal(5, 4), normal(8, 4, seed=1)
    mask = guided(q, d, margin=margin, kind=kind, positive_offset=offset)
    for i in range(5):
        cosines = [float(q[i] @ x / (q[i].norm() * x.norm())) for x in d]
        own = cosines[i + offset]
        bound = own - margin if kind == "absolute" else own - margin * abs(own)
        assert mask[i].tolist() == [j == i + offset or c < bound - 1e-6 for j, c in enumerate(cosines)]


def test_the_positive_of_a_later_process_is_protected():
    """Rank 1 of 2: without the offset the mask would protect the wrong column, and forbid the positive."""
    guide = torch.tensor(
        [[0.2, 0.3, 0.1, 0.8, 0.2, 0.1], [0.1, 0.2, 0.3, 0.1, 0.7, 0.2], [0.3, 0.1, 0.2, 0.2, 0.1, 0.9]]
    )
    mask = above_threshold(guide, 0.7, positive_offset=3)
    assert mask.all()
    assert not above_threshold(guide, 0.7).diagonal(3).any()
    loss = info_nce(guide.double(), torch.eye(6).double(), temperature=1.0, normalize=False, positive_offset=3)
    rows = [[math.exp(x) for x in row] for row in guide.double().tolist()]
    assert loss.item() == pytest.approx(sum(math.log(sum(r) / r[i + 3]) for i, r in enumerate(rows)) / 3, rel=1e-12)


BAD_MASKS = {
    "too few ids": (
        lambda: exact_duplicates([1, 2], queries=3),
        r"ids must hold one id a document, at least 3 .* got 2",
    ),
    "offset beyond": (lambda: exact_duplicates([1, 2], positive_offset=2), r"at least 1 queries \+ positive_offset 2"),
    "one string": (lambda: exact_duplicates("ab"), r"ids must hold one id a document, got one str: 'ab'"),
    "ids a matrix": (lambda: exact_duplicates(torch.eye(2).long()), r"ids must be whole numbers .* int64 of shape"),
    "ids real": (lambda: exact_duplicates(torch.ones(2)), r"ids must be whole numbers .* got float32"),
    "similarity nan": (lambda: above_threshold(torch.tensor([[math.nan]]), 0.5), r"similarities .* nan at \[0, 0\]"),
    "threshold nan": (lambda: above_threshold(torch.eye(2), math.nan), r"threshold must be a finite number, got nan"),
    "not a matrix": (lambda: above_threshold(torch.ones(2), 0.5), r"similarities must be floating, of shape"),
    "no such kind": (lambda: guided(torch.eye(2), torch.eye(2), kind="rel"), r"kind must be .* got 'rel'"),
    "margin": (lambda: guided(torch.eye(2), torch.eye(2), margin=math.inf), r"margin must be a finite number, got inf"),
    "zero guide": (lambda: guided(torch.zeros(2, 2), torch.eye(2)), r"guide_queries must have no zero vector"),
    "few documents": (lambda: guided(torch.eye(2), torch.eye(2)[:1]), r"at least 2 \+ positive_offset 0 rows, got 1"),
}


@pytest.mark.parametrize("case", BAD_MASKS)
def test_bad_input_of_masks_is_named(case):
    make, message = BAD_MASKS[case]
    with pytest.raises(ValueError, match=message):
        make()


# --- Statistics


def test_a_step_by_hand():
    """Cosines 0.6, 1, 0 of query 0, with document 2 forbidden; 0.8, 0, 1 of query 1. Norms 2, 3, 1, 5, 4."""
    q = torch.tensor([[2.0, 0], [0, 3]], dtype=torch.float64)
    d = torch.tensor([[0.6, 0.8], [5, 0], [0, 4]], dtype=torch.float64)
    allowed = torch.tensor([[True, True, False], [True, True, True]])
    said = step_statistics(q, d, temperature=0.5, negatives=allowed)
    first, second = math.log1p(math.exp(2 - 1.2)), math.log(math.exp(1.6) + 1 + math.exp(2))
    assert said.loss == pytest.approx((first + second) / 2, rel=1e-12)
    assert said.positive_similarity == pytest.approx((0.6 + 0) / 2)
    assert said.hardest_negative_similarity == pytest.approx((1 + 1) / 2)
    assert said.positive_rank == pytest.approx((2 + 3) / 2)
    assert (said.top1_accuracy, said.temperature, said.negatives_per_query) == (0, 0.5, 1.5)
    assert said.filtered_false_negatives == 1
    assert said.median_norm == 3


def test_the_median_norm_and_ties():
    same = 3 * torch.eye(2)[[0, 0, 1]]
    said = step_statistics(same, same, temperature=0.05)
    assert said.median_norm == pytest.approx(3)
    assert said.positive_rank == pytest.approx((1.5 + 1.5 + 1) / 3)
    assert said.top1_accuracy == pytest.approx(1 / 3)
    alone = step_statistics(same[:1], same[:1], temperature=0.05)
    assert alone.loss == 0
    assert math.isnan(alone.hardest_negative_similarity)


# --- GradCache


class Encoder(nn.Module):
    def __init__(self, dropout=0.3):
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Dropout(dropout), nn.Linear(8, 5)).double()
        self.sizes = []

    def forward(self, x):
        self.sizes.append(len(x))
        return self.layers(x)


def gradients(module):
    return [p.grad.clone() for p in module.parameters()]


@pytest.mark.parametrize("chunk_size", [1, 3, 7, 20])
def test_gradients_are_those_of_the_plain_loss(chunk_size):
    x, y = normal(7, 6), normal(7, 6, seed=1)
    plain, cached = Encoder(dropout=0), Encoder(dropout=0)
    loss = info_nce(plain(x), plain(y))
    (2 * loss).backward()
    value = gradient_cached(cached, [x, y], info_nce, chunk_size=chunk_size)
    (2 * value).backward()
    assert value.item() == pytest.approx(loss.item(), rel=1e-13)
    for got, want in zip(gradients(cached), gradients(plain), strict=True):
        torch.testing.assert_close(got, want, rtol=1e-11, atol=1e-14)
    assert max(cached.sizes) == min(chunk_size, 7)


def planted_without_states(encode, inputs, loss, chunk_size, monkeypatch):
    """The fault: the second pass draws new random numbers."""
    monkeypatch.setattr(torch, "set_rng_state", lambda _state: None)
    return gradient_cached(encode, inputs, loss, chunk_size=chunk_size)


@pytest.mark.parametrize("planted", [False, True])
def test_dropout_drops_the_same_in_both_passes(planted, monkeypatch):
    """Encoding chunk by chunk with a graph uses the random numbers in the same order: that is the plain gradient."""
    x, y = normal(6, 6), normal(6, 6, seed=1)
    plain, cached = Encoder(), Encoder()
    torch.manual_seed(5)
    info_nce(*(torch.cat([plain(part) for part in column.split(4)]) for column in (x, y))).backward()
    torch.manual_seed(5)
    if planted:
        value = planted_without_states(cached, [x, y], info_nce, 4, monkeypatch)
    else:
        value = gradient_cached(cached, [x, y], info_nce, chunk_size=4)
    after = torch.get_rng_state()
    value.backward()
    same = [
        torch.allclose(a, b, rtol=1e-11, atol=1e-14) for a, b in zip(gradients(cached), gradients(plain), strict=True)
    ]
    assert all(same) != planted
    assert planted or torch.equal(torch.get_rng_state(), after)


def test_inputs_in_other_forms_and_losses_with_parameters():
    x, y, label = normal(5, 6), normal(5, 6, seed=1), torch.eye(5).bool()
    plain, cached = Encoder(0), Encoder(0)
    scale = [torch.ones((), dtype=torch.float64, requires_grad=True) for _ in range(2)]
    multi_positive_info_nce(plain(x * 2), plain(y) * scale[0], label, normalize=False).backward()

    def encode(chunk):
        return cached(chunk["x"] * chunk["by"][0]) if isinstance(chunk, dict) else cached(chunk[0])

    columns = [{"x": x, "by": (torch.full((5, 1), 2.0).double(),)}, (y,)]

    def loss(a, b):
        return multi_positive_info_nce(a, b * scale[1], label, normalize=False)

    gradient_cached(encode, columns, loss, chunk_size=2).backward()
    for got, want in zip([*gradients(cached), scale[1].grad], [*gradients(plain), scale[0].grad], strict=True):
        torch.testing.assert_close(got, want, rtol=1e-11, atol=1e-14)


def test_autocast_of_the_first_pass_is_that_of_the_second():
    x, y = normal(4, 6).float(), normal(4, 6, seed=1).float()
    seen = []
    encoder = Encoder(0).float()

    def encode(chunk):
        out = encoder(chunk)
        seen.append(out.dtype)
        return out

    with torch.autocast("cpu", dtype=torch.bfloat16):
        value = gradient_cached(encode, [x, y], info_nce, chunk_size=2)
    value.backward()
    assert seen == [torch.bfloat16] * 8


def test_without_gradient_it_is_the_plain_value():
    x = normal(5, 6)
    encoder = Encoder(0)
    with torch.no_grad():
        value = gradient_cached(encoder, x, lambda e: info_nce(e, e), chunk_size=2)
        assert value.item() == pytest.approx(info_nce(encoder(x), encoder(x)).item(), rel=1e-13)
    assert not value.requires_grad


BAD_CACHED = {
    "chunk of 0": ({"chunk_size": 0}, r"chunk_size must be a whole number of at least 1, got 0"),
    "empty list": ({"inputs": []}, r"inputs must have at least one entry, got an empty list"),
    "texts": ({"inputs": ["a", "b"]}, r"inputs must be tensors, or tuples or dicts of tensors, got str among them"),
    "two lengths": ({"inputs": (torch.ones(2, 6), torch.ones(3))}, r"one row an item .* got \[\(2, 6\), \(3,\)\]"),
    "no items": (
        {"inputs": torch.ones(0, 6)},
        r"one row an item in all tensors of an entry, and an item, got \[\(0, 6\)",
    ),
    "encoder sums": ({"encode": lambda x: x.sum(0)}, r"encode must give one vector an item, \(2, dimensions\), got"),
    "loss of many": ({"loss": lambda e: e}, r"loss must give one number for the whole batch, got float64 of shape"),
}


@pytest.mark.parametrize("case", BAD_CACHED)
def test_bad_input_of_the_cache_is_named(case):
    change, message = BAD_CACHED[case]
    good = {"encode": Encoder(0), "inputs": normal(3, 6), "loss": lambda e: info_nce(e, e), "chunk_size": 2}
    with pytest.raises(ValueError, match=message):
        gradient_cached(**good | change)
