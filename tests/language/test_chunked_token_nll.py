"""Chunked from hidden states: the same value and gradients as full logits, without ever holding those."""

import math

import pytest
import torch
from torch.nn import functional

import exact_language as exact
from losslab.contracts.fake_device import CUDA, FakeCuda
from losslab.device import pick_device
from losslab.language import chunked_token_nll, token_nll

DEVICE = pick_device()
IGNORED = -100
TOLERANCE = {
    torch.float64: (1e-12, 1e-12),
    torch.float32: (1e-6, 1e-5),
    torch.bfloat16: (1e-6, 1e-5 + 2**-8),
    torch.float16: (1e-6, 1e-5 + 2**-11),
}


def layer(texts=3, positions=7, vocabulary=19, width=5, dtype=torch.float64):
    noise = torch.Generator().manual_seed(0)
    hidden = torch.randn(texts, positions, width, generator=noise, dtype=torch.float64)
    weight = torch.randn(vocabulary, width, generator=noise, dtype=torch.float64)
    bias = torch.randn(vocabulary, generator=noise, dtype=torch.float64)
    labels = torch.randint(vocabulary, (texts, positions), generator=noise)
    return hidden.to(dtype), weight.to(dtype), bias.to(dtype), labels


def run(loss, *tensors):
    """Value, and gradients by each tensor, in float64 on the CPU."""
    leaves = [t.detach().clone().to(DEVICE).requires_grad_() for t in tensors]
    value = loss(*leaves)
    gradients = torch.autograd.grad(value, leaves)
    return value.detach().cpu().double(), [g.cpu().double() for g in gradients]


def full(labels, **options):
    """The loss of the full logits in float64, which `test_token_nll` holds to the formula."""
    labels = labels.to(DEVICE)
    return lambda h, w, b: token_nll(h.double() @ w.double().T + b.double(), labels, **options)


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("chunk_size", [1, 4, 100, None])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("shift", [True, False])
def test_the_value_and_gradients_of_full_logits(dtype, chunk_size, reduction, shift):
    *tensors, labels = layer(dtype=dtype)
    labels[0, 4:] = IGNORED
    options = {"reduction": reduction, "shift": shift}
    want, gradients = run(full(labels, **options), *(t.double() for t in tensors))
    value, got = run(
        lambda h, w, b: 3 * chunked_token_nll(h, w, labels.to(DEVICE), bias=b, chunk_size=chunk_size, **options),
        *tensors,
    )
    by_value, by_gradient = TOLERANCE[dtype]
    assert value.item() == pytest.approx(3 * want.item(), rel=by_value)
    for ours, theirs in zip(got, gradients, strict=True):
        assert (ours - 3 * theirs).abs().max() <= by_gradient * 3 * theirs.abs().max()


@pytest.mark.parametrize("chunk_size", [1, 4, 100])
def test_one_value_a_token_with_a_factor_each(chunk_size):
    *tensors, labels = layer()
    labels[1, 2:5] = IGNORED
    factors = torch.rand(3, 6, generator=torch.Generator().manual_seed(3), dtype=torch.float64).to(DEVICE)
    plain = full(labels, reduction="none")
    want, gradients = run(lambda *given: (factors * plain(*given)).sum(), *tensors)

    def chunked(h, w, b):
        each = chunked_token_nll(h, w, labels.to(DEVICE), bias=b, chunk_size=chunk_size, reduction="none")
        assert each.shape == (3, 6)
        assert (each[1, 1:4] == 0).all()
        return (factors * each).sum()

    value, got = run(chunked, *tensors)
    assert value.item() == pytest.approx(want.item(), rel=1e-12)
    for ours, theirs in zip(got, gradients, strict=True):
        assert torch.allclose(ours, theirs, rtol=1e-11, atol=1e-14)


def test_a_tiny_one_by_the_formula():
    """Gradients by hand, through decimals: hidden's is G @ weight, weight's is G.T @ hidden."""
    hidden, weight, _, labels = layer(1, 3, 4, 2)
    value, gradient = exact.loss((hidden @ weight.T).tolist(), labels.tolist())
    g = torch.tensor([[float(x) for x in row] for row in gradient[0]], dtype=torch.float64)
    got, (by_hidden, by_weight) = run(
        lambda h, w: chunked_token_nll(h, w, labels.to(DEVICE), chunk_size=1), hidden, weight
    )
    assert got.item() == pytest.approx(float(value), rel=1e-12)
    assert torch.allclose(by_hidden[0], g @ weight, rtol=1e-11, atol=1e-15)
    assert torch.allclose(by_weight, g.T @ hidden[0], rtol=1e-11, atol=1e-15)


def test_at_512_tokens_and_8000_words():
    """The bounds of the large measurement, `token-nll-memory`, in small: beside cross-entropy in float32."""
    hidden, weight, _, labels = layer(1, 513, 8000, 64, dtype=torch.float32)

    def plain(h, w):
        return functional.cross_entropy((h @ w.T)[0, :-1], labels.to(DEVICE)[0, 1:])

    want, gradients = run(plain, hidden, weight)
    value, got = run(lambda h, w: chunked_token_nll(h, w, labels.to(DEVICE), chunk_size=60), hidden, weight)
    assert value.item() == pytest.approx(want.item(), rel=1e-6)
    for ours, theirs in zip(got, gradients, strict=True):
        assert (ours - theirs).abs().max() <= 1e-5 * theirs.abs().max()


def largest_tensor(step):
    """Numbers in the largest tensor that any operation of ``step`` gives, forward or backward."""
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves

    class Watch(TorchDispatchMode):
        largest = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            given = func(*args, **(kwargs or {}))
            sizes = [t.numel() for t in tree_leaves(given) if isinstance(t, torch.Tensor)]
            self.largest = max([self.largest, *sizes])
            return given

    with Watch() as watch:
        step()
    return watch.largest


@pytest.mark.parametrize("reduction", ["mean", "none"])
@pytest.mark.parametrize("planted", [False, True])
def test_the_logits_of_all_tokens_never_exist(reduction, planted):
    """Fault planted: the full logits, of which the same watch has to tell."""
    hidden, weight, _, labels = layer(2, 33, 500, 4)
    hidden, weight = hidden.requires_grad_(), weight.requires_grad_()

    def step():
        if planted:
            value = token_nll(hidden @ weight.T, labels, reduction=reduction)
        else:
            value = chunked_token_nll(hidden, weight, labels, chunk_size=5, reduction=reduction)
        value.sum().backward()

    assert (largest_tensor(step) >= 2 * 32 * 500) == planted
    if not planted:
        assert largest_tensor(step) == 5 * 500


def test_only_what_is_asked_for():
    hidden, weight, bias, labels = layer()
    want = token_nll(hidden @ weight.T + bias, labels)
    for wanted in range(3):
        leaves = [t.clone().requires_grad_(i == wanted) for i, t in enumerate((hidden, weight, bias))]
        value = chunked_token_nll(leaves[0], leaves[1], labels, bias=leaves[2], chunk_size=4)
        value.backward()
        assert value.item() == pytest.approx(want.item(), rel=1e-13)
        assert [leaf.grad is not None for leaf in leaves] == [i == wanted for i in range(3)]
    with torch.no_grad():
        assert not chunked_token_nll(leaves[0], weight, labels, bias=leaves[2]).requires_grad
    assert not chunked_token_nll(hidden, weight, labels, bias=bias).requires_grad


def test_twice_backward_gives_the_same_and_a_second_derivative_is_refused():
    hidden, weight, _, labels = layer()
    weight.requires_grad_()
    value = chunked_token_nll(hidden, weight, labels, chunk_size=4)
    value.backward(retain_graph=True)
    first = weight.grad.clone()
    value.backward()
    assert torch.allclose(weight.grad, 2 * first, rtol=1e-14)
    with pytest.raises(RuntimeError, match="chunked_token_nll can be differentiated once, not twice"):
        torch.autograd.grad(chunked_token_nll(hidden, weight, labels), weight, create_graph=True)


def test_padding_and_what_stands_in_it():
    hidden, weight, bias, labels = layer()
    mask = torch.tensor([[1, 1, 1, 1, 0, 0, 0], [0, 0, 1, 1, 1, 1, 1], [1] * 7]).bool()
    want, gradients = run(full(labels, mask=mask.to(DEVICE)), hidden, weight, bias)
    spoilt = hidden.masked_fill(~mask[..., None], math.nan)
    options = {"mask": mask.to(DEVICE), "chunk_size": 3}
    value, got = run(
        lambda h, w, b: chunked_token_nll(h, w, labels.to(DEVICE), bias=b, **options), spoilt, weight, bias
    )
    assert value.item() == pytest.approx(want.item(), rel=1e-13)
    for ours, theirs in zip(got, gradients, strict=True):
        assert torch.allclose(ours, theirs, rtol=1e-11, atol=1e-14)


def test_forbidden_tokens_through_the_bias():
    hidden, weight, bias, labels = layer()
    bias[7] = -math.inf
    seven = labels.where(labels != 7, torch.tensor(8))
    loss = chunked_token_nll(hidden, weight, seven, bias=bias, chunk_size=4)
    assert loss.item() == pytest.approx(token_nll(hidden @ weight.T + bias, seven).item(), rel=1e-13)
    seven[0, 3] = 7
    assert chunked_token_nll(hidden, weight, seven, bias=bias) == math.inf


def test_sure_tokens_keep_their_digits():
    hidden, weight = torch.full((1, 3, 1), 40.0), torch.tensor([[0.0], [0.0], [1.0]])
    value = chunked_token_nll(hidden, weight, torch.full((1, 3), 2))
    assert value.item() == pytest.approx(math.log1p(2 * math.exp(-40)), rel=1e-6)


def test_autocast_does_not_reach_the_logits():
    hidden, weight, bias, labels = layer(dtype=torch.float32)
    options = {"bias": bias, "chunk_size": 4}
    want, gradients = run(lambda h, w: chunked_token_nll(h, w, labels, **options), hidden.cpu(), weight.cpu())
    with torch.autocast(DEVICE.type, dtype=torch.bfloat16):
        value, got = run(lambda h, w: chunked_token_nll(h, w, labels, **options), hidden.cpu(), weight.cpu())
    assert torch.equal(value, want)
    assert all(map(torch.equal, got, gradients))


def test_a_tensor_made_on_the_wrong_device_would_show():
    hidden, weight, bias, labels = layer(dtype=torch.float32)
    with FakeCuda() as fake, torch.no_grad():
        given = [fake.put(t) for t in (hidden, weight, labels)]
        for reduction in ("mean", "sum", "none"):
            value = chunked_token_nll(*given, bias=fake.put(bias), chunk_size=4, reduction=reduction)
            assert value.device == CUDA
        with pytest.raises(ValueError, match="weight is on cpu but hidden is on cuda:0"):
            chunked_token_nll(given[0], weight, given[2])


HIDDEN, WEIGHT, BIAS, LABELS = layer()
SPOILT = HIDDEN.clone()
SPOILT[1, 2] = math.nan
BAD = {
    "hidden a matrix": (
        {"hidden": HIDDEN[0]},
        r"hidden must be .* \(texts, positions, d\), got float64 of shape \(7, 5\)",
    ),
    "hidden empty": ({"hidden": HIDDEN[:0]}, r"hidden must not be empty, got float64 of shape \(0, 7, 5\)"),
    "weight the other way": (
        {"weight": WEIGHT.T},
        r"weight must be .* \(vocabulary, 5\), as wide as hidden, got .* \(5, 19",
    ),
    "weight float32": ({"weight": WEIGHT.float()}, r"weight must have the type of hidden, got torch.float32 beside"),
    "bias long": ({"bias": torch.zeros(20)}, r"bias must be a tensor of shape \(19,\), one a token, got float32"),
    "chunk of 0": ({"chunk_size": 0}, r"chunk_size must be a whole number of at least 1, got 0"),
    "label above": ({"labels": torch.full((3, 7), 19)}, r"from 0 to 18, .* got labels\[0, 1\] = 19"),
    "all ignored": ({"labels": torch.full((3, 7), IGNORED)}, r"no token is counted: all 18 targets"),
    "one token": ({"hidden": HIDDEN[:, :1], "labels": LABELS[:, :1]}, r"a text of one token has nothing to predict"),
    "nan": ({"hidden": SPOILT}, r"logits of hidden\[1, 2\] must be numbers below \+inf, got nan for token 0"),
    "all forbidden": ({"bias": torch.full((19,), -math.inf).double()}, r"logits of hidden\[0, 0\] are -inf for all 19"),
    "reduction": ({"reduction": "avg"}, r"reduction must be"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_named(case):
    change, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        chunked_token_nll(**{"hidden": HIDDEN, "weight": WEIGHT, "labels": LABELS} | change)


@pytest.mark.parametrize("flag", ["shift", "validate"])
def test_a_word_is_neither_true_nor_false(flag):
    hidden, weight, _, labels = layer()
    with pytest.raises(ValueError, match=f"{flag} must be True or False, got 'no'"):
        chunked_token_nll(hidden, weight, labels, **{flag: "no"})
