"""The listwise losses against their formulas, at every precision, with anything in the padding."""

import itertools
import math
import pickle

import pytest
import torch

import exact
from losslab.device import pick_device
from losslab.losses import list_mle, list_net, p_list_mle

LOSSES = {f.__name__: f for f in (list_mle, p_list_mle, list_net)}
ORACLES = {name: getattr(exact, name) for name in LOSSES}
DEVICE = pick_device()
GARBAGE = (float("nan"), float("inf"), -float("inf"), 1e30, 0.0)
# Value relative to itself, gradient relative to its largest entry; half results may also be off by their own rounding.
TOLERANCE = {
    torch.float64: (1e-12, 1e-12),
    torch.float32: (1e-6, 1e-5),
    torch.bfloat16: (1e-6 + 2**-8, 1e-5 + 2**-8),
    torch.float16: (1e-6 + 2**-11, 1e-5 + 2**-11),
}

each_loss = pytest.mark.parametrize("name", LOSSES)
each_ranking_loss = pytest.mark.parametrize("name", ["list_mle", "p_list_mle"])


def batch(generator, sizes, dtype, spread, levels=4):
    """Logits in [-spread, spread], labels with ties, garbage and holes where the padding is."""
    b, n = len(sizes), max(sizes) + 2
    logits = ((torch.rand(b, n, generator=generator, dtype=torch.float64) * 2 - 1) * spread).to(dtype)
    labels = torch.randint(levels, (b, n), generator=generator).to(torch.float32)
    mask = torch.zeros(b, n, dtype=torch.bool)
    for row, size in enumerate(sizes):
        mask[row, torch.randperm(n, generator=generator)[:size]] = True
    for k, (row, slot) in enumerate((~mask).nonzero().tolist()):
        logits[row, slot] = labels[row, slot] = GARBAGE[k % len(GARBAGE)]
    return logits.to(DEVICE).requires_grad_(), labels.to(DEVICE), mask.to(DEVICE)


def by_oracle(name, logits, labels, mask, order="labels"):
    """Mean over lists of two or more, and its gradient, one list at a time."""
    values, gradient = [], torch.zeros(logits.shape, dtype=torch.float64)
    for row in range(len(logits)):
        real = mask[row].nonzero()[:, 0].tolist()
        if len(real) < 2:
            continue
        value, g = ORACLES[name](logits[row, real].tolist(), labels[row, real].tolist(), order)
        values.append(float(value))
        gradient[row, real] = torch.tensor([float(v) for v in g], dtype=torch.float64)
    return sum(values) / len(values), gradient / len(values)


@each_loss
@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("spread", [1.0, 30.0, 1000.0])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_value_and_gradient_equal_the_formula(name, dtype, spread, seed):
    generator = torch.Generator().manual_seed(seed)
    logits, labels, mask = batch(generator, [2, 7, 1, 0, 5, 21], dtype, spread)
    loss = LOSSES[name](logits, labels, mask)
    loss.backward()
    value, gradient = by_oracle(name, logits.detach().cpu(), labels.cpu(), mask.cpu())
    value_tolerance, gradient_tolerance = TOLERANCE[dtype]
    assert loss.dtype == logits.grad.dtype == dtype
    assert loss.item() == pytest.approx(value, rel=value_tolerance)
    off = (logits.grad.cpu().double() - gradient).abs().max()
    assert off <= gradient_tolerance * gradient.abs().max()


@each_loss
def test_a_constant_of_a_thousand_costs_no_digits(name):
    """The hard case in float32: all logits near 1000, so differences are small against what they are differences of."""
    generator = torch.Generator().manual_seed(3)
    logits = (1000 + torch.rand(4, 9, generator=generator)).to(DEVICE).requires_grad_()
    labels = torch.randint(3, (4, 9), generator=generator).to(DEVICE)
    loss = LOSSES[name](logits, labels)
    loss.backward()
    value, gradient = by_oracle(name, logits.detach().cpu(), labels.cpu(), torch.ones(4, 9, dtype=torch.bool))
    assert loss.item() == pytest.approx(value, rel=1e-6)
    assert (logits.grad.cpu().double() - gradient).abs().max() <= 1e-5 * gradient.abs().max()


@each_loss
def test_padding_gets_gradient_exactly_zero_whatever_it_holds(name):
    logits, labels, mask = batch(torch.Generator().manual_seed(0), [2, 3, 1, 0], torch.float32, 1.0)
    LOSSES[name](logits, labels, mask).backward()
    assert (logits.grad[~mask] == 0).all()
    assert (logits.grad[mask.sum(1) < 2] == 0).all()


@each_loss
def test_the_width_of_the_batch_changes_not_one_bit(name):
    generator = torch.Generator().manual_seed(0)
    logits, labels = torch.randn(3, 6, generator=generator), torch.randint(2, (3, 6), generator=generator)
    mask = torch.tensor([[1] * 6, [1] * 4 + [0] * 2, [1] * 2 + [0] * 4]).bool()
    narrow = LOSSES[name](logits, labels, mask, reduction="none")
    for width in (7, 16, 17, 64, 700):
        wide = [torch.nn.functional.pad(t, (0, width - 6)) for t in (logits, labels, mask)]
        assert LOSSES[name](*wide, reduction="none").tolist() == pytest.approx(narrow.tolist(), rel=1e-15)


def test_published_values_of_the_padding_bug_experiment():
    """One query, logits [1.5, 0.3], labels [2, 1]: log(1 + exp(-1.2)), beside a list of any length."""
    truth, push = math.log1p(math.exp(-1.2)), 1 / (1 + math.exp(1.2))
    for width in (2, 3, 4, 6):
        logits = torch.zeros(2, width, dtype=torch.float64)
        logits[0, :2] = torch.tensor([1.5, 0.3], dtype=torch.float64)
        labels, mask = torch.ones(2, width), torch.ones(2, width, dtype=torch.bool)
        labels[0, 0], mask[0, 2:] = 2, False
        logits.requires_grad_()
        for loss in (list_mle, p_list_mle):
            logits.grad = None
            loss(logits, labels, mask, reduction="none")[0].backward()
            assert loss(logits, labels, mask, reduction="none")[0].item() == pytest.approx(truth, rel=1e-14)
            assert logits.grad[0, :2].tolist() == pytest.approx([-push, push], rel=1e-14)


@each_ranking_loss
def test_given_order_ranks_documents_as_they_stand(name):
    logits, labels, mask = batch(torch.Generator().manual_seed(0), [4, 6, 2], torch.float64, 2.0)
    value, _ = by_oracle(name, logits.detach().cpu(), labels.cpu(), mask.cpu(), "given")
    assert LOSSES[name](logits, labels, mask, order="given").item() == pytest.approx(value, rel=1e-12)


@each_ranking_loss
def test_ties_keep_the_order_given_at_every_width(name):
    logits, labels = torch.tensor([[0.2, 1.0, -1.0]]), torch.tensor([[0, 1, 0]])
    value, _ = ORACLES[name](logits[0].tolist(), labels[0].tolist())
    for width in range(3, 70):
        wide = torch.nn.functional.pad(logits, (0, width - 3)), torch.nn.functional.pad(labels, (0, width - 3))
        mask = (torch.arange(width) < 3)[None]
        assert LOSSES[name](*wide, mask).item() == pytest.approx(float(value), rel=1e-6)


@each_ranking_loss
@pytest.mark.parametrize("n", [1, 2, 3, 127, 128, 1100, 5000])
def test_long_lists_stay_finite(name, n):
    generator = torch.Generator().manual_seed(n)
    logits = torch.randn(2, max(n, 2), generator=generator, requires_grad=True)
    mask = torch.ones(2, max(n, 2), dtype=torch.bool)
    mask[0, n:] = False
    loss = LOSSES[name](logits, torch.rand(2, max(n, 2), generator=generator), mask)
    loss.backward()
    assert loss.isfinite()
    assert logits.grad.isfinite().all()


def test_weights_of_a_list_of_three_are_three_quarters_and_one_quarter():
    """Only the last document's logit is in doubt in choice 2, so each choice can be read off alone."""
    z = torch.tensor([[2.0, -1.0, 0.5]], dtype=torch.float64)
    first = math.log(math.exp(2) + math.exp(-1) + math.exp(0.5)) - 2
    second = math.log(math.exp(-1) + math.exp(0.5)) + 1
    assert p_list_mle(z, torch.tensor([[3, 2, 1]])).item() == pytest.approx(0.75 * first + 0.25 * second, rel=1e-14)
    own = p_list_mle(z, torch.tensor([[3, 2, 1]]), weights=torch.tensor([1.0, 3.0, 0.0])).item()
    assert own == pytest.approx(0.25 * first + 0.75 * second, rel=1e-14)


def test_equal_weights_make_p_list_mle_the_mean_cost_of_a_choice():
    logits, labels, mask = batch(torch.Generator().manual_seed(1), [4, 4], torch.float64, 2.0)
    even = p_list_mle(logits, labels, mask, weights=torch.ones(logits.shape[1]))
    assert even.item() == pytest.approx(list_mle(logits, labels, mask).item() / 4, rel=1e-12)


@each_loss
def test_reductions(name):
    logits, labels, mask = batch(torch.Generator().manual_seed(0), [3, 1, 5, 0], torch.float64, 1.0)
    each = LOSSES[name](logits, labels, mask, reduction="none")
    assert each.shape == (4,)
    assert each[1] == each[3] == 0
    total = each.sum().item()
    assert LOSSES[name](logits, labels, mask, reduction="sum").item() == pytest.approx(total)
    assert LOSSES[name](logits, labels, mask).item() == pytest.approx(total / 2)
    assert LOSSES[name](logits, labels, mask, count_short_lists=True).item() == pytest.approx(total / 4)


@each_loss
@pytest.mark.parametrize("labels_dtype", [torch.int64, torch.bool, torch.float16, torch.float64], ids=str)
def test_labels_of_any_real_type(name, labels_dtype):
    logits = torch.tensor([[0.5, 1.5, -0.25]])
    labels = torch.tensor([[0, 1, 1]]).to(labels_dtype)
    value, _ = ORACLES[name](logits[0].tolist(), [0.0, 1.0, 1.0])
    assert LOSSES[name](logits, labels).item() == pytest.approx(float(value), rel=1e-6)


@each_loss
def test_derivatives_pass_gradcheck_twice(name):
    logits = torch.randn(3, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0), requires_grad=True)
    labels = torch.tensor([[2, 0, 1, 1, 0], [1, 0, 0, 0, 0], [3, 0, 2, 1, 0]])
    mask = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0], [1, 0, 1, 1, 0]]).bool()
    assert torch.autograd.gradcheck(lambda z: LOSSES[name](z, labels, mask), logits)
    assert torch.autograd.gradgradcheck(lambda z: LOSSES[name](z, labels, mask), logits)


@each_loss
def test_nothing_to_rank_gives_zero_when_values_are_not_looked_at(name):
    logits = torch.randn(2, 3, requires_grad=True)
    loss = LOSSES[name](logits, torch.zeros(2, 3), torch.zeros(2, 3, dtype=torch.bool), validate=False)
    loss.backward()
    assert loss == 0
    assert (logits.grad == 0).all()


def _good():
    return {"logits": torch.zeros(2, 3), "labels": torch.zeros(2, 3), "mask": torch.ones(2, 3, dtype=torch.bool)}


BAD_INPUT = {
    "labels of another shape": (
        {"labels": torch.zeros(2, 4)},
        r"labels must .* \(2, 3\), got float32 of shape \(2, 4\)",
    ),
    "labels missing": ({"labels": None}, r"labels must be a real tensor .* got NoneType"),
    "logits not a matrix": ({"logits": torch.zeros(3)}, r"logits must .* got float32 of shape \(3,\)"),
    "logits of whole numbers": ({"logits": torch.zeros(2, 3).long()}, r"logits must be a floating-point .* got int64"),
    "mask of numbers": ({"mask": torch.ones(2, 3)}, r"mask must be a bool tensor .* got float32 of shape \(2, 3\)"),
    "mask of another shape": ({"mask": torch.ones(2, 2).bool()}, r"mask must .* got bool of shape \(2, 2\)"),
    "logit not a number": ({"logits": torch.tensor([[0, 0, 0], [0, math.nan, 0]])}, r"logits .* got nan at \[1, 1\]"),
    "logit infinite": ({"logits": torch.tensor([[0, 0, math.inf], [0, 0, 0]])}, r"logits .* got inf at \[0, 2\]"),
    "label not a number": ({"labels": torch.tensor([[math.nan, 0, 0], [0, 0, 0]])}, r"labels .* got nan at \[0, 0\]"),
    "one document each": (
        {"mask": torch.tensor([[1, 0, 0], [0, 0, 1]]).bool()},
        r"no list has two .*longest list has 1",
    ),
    "no document at all": ({"mask": torch.zeros(2, 3).bool()}, r"no list has two documents.*longest list has 0"),
    "no query": ({k: v[:0] for k, v in _good().items()}, r"no list has two documents.*\(0, 3\)"),
    "no such reduction": ({"reduction": "avg"}, r"reduction must be 'mean', 'sum' or 'none', got 'avg'"),
}


@each_loss
@pytest.mark.parametrize("case", BAD_INPUT)
def test_bad_input_is_named(name, case):
    change, message = BAD_INPUT[case]
    with pytest.raises(ValueError, match=message):
        LOSSES[name](**_good() | change)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (torch.tensor([1.0, -0.5, 0.0]), r"weights must be finite and not negative, got -0\.5 at rank 2"),
        (torch.tensor([1.0, math.nan, 0.0]), r"weights must be finite and not negative, got nan at rank 2"),
        (torch.zeros(3), r"weights must not be 0 at every rank of a list, got 0 up to rank 3"),
        (
            torch.ones(2),
            r"weights must be a floating-point tensor of shape \(3,\), one a rank, got float32 of shape \(2,\)",
        ),
        ([1.0, 0.0, 0.0], r"weights must be a floating-point tensor .* got list"),
    ],
)
def test_bad_weights_are_named(weights, message):
    with pytest.raises(ValueError, match=message):
        p_list_mle(**_good(), weights=weights)


@each_ranking_loss
def test_no_such_order_is_named(name):
    with pytest.raises(ValueError, match=r"order must be 'labels' or 'given', got 'label'"):
        LOSSES[name](**_good(), order="label")


@each_loss
def test_the_inputs_are_left_as_they_were(name):
    logits, labels, mask = batch(torch.Generator().manual_seed(0), [2, 4], torch.float32, 1.0)
    before = [pickle.dumps(t.detach().cpu().tolist()) for t in (logits, labels, mask)]
    LOSSES[name](logits, labels, mask).backward()
    assert before == [pickle.dumps(t.detach().cpu().tolist()) for t in (logits, labels, mask)]


def test_the_oracle_is_right_by_hand():
    """Three documents, written out: the oracle itself is held to a sum that can be checked with a pencil."""
    a, b, c = math.e**0.5, math.e**-1, math.e**2
    by_hand = math.log((a + b + c) / a) + math.log((b + c) / b)
    value, gradient = exact.list_mle([0.5, -1, 2], [2, 1, 0])
    assert float(value) == pytest.approx(by_hand, rel=1e-15)
    assert float(gradient[0]) == pytest.approx(a / (a + b + c) - 1, rel=1e-15)
    for shift, name in itertools.product((0, 5), ORACLES):
        value, gradient = ORACLES[name]([0.5 + shift, -1 + shift, 2 + shift], [2, 1, 0])
        assert float(sum(gradient)) == pytest.approx(0, abs=1e-15)
