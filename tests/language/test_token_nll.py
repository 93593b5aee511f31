"""The token loss against its formula, other libraries and hand numbers; what must not matter, and what is refused."""

import math

import pytest
import torch
from torch.nn import functional
from transformers.loss.loss_utils import ForCausalLMLoss

import exact_language as exact
from losslab.contracts.fake_device import CUDA, FakeCuda
from losslab.device import pick_device
from losslab.language import token_nll

DEVICE = pick_device()
IGNORED = -100
# Value relative to itself, gradient relative to its largest entry. A half-precision loss is computed and returned in
# float32; its gradient is rounded to the logits' own type.
TOLERANCE = {
    torch.float64: (1e-12, 1e-12),
    torch.float32: (1e-6, 1e-5),
    torch.bfloat16: (1e-6, 1e-5 + 2**-8),
    torch.float16: (1e-6, 1e-5 + 2**-11),
}
each_dtype = pytest.mark.parametrize("dtype", TOLERANCE, ids=str)


def normal(*shape, seed=0, scale=3.0):
    return scale * torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def some_labels(texts, positions, vocabulary, seed=1):
    return torch.randint(vocabulary, (texts, positions), generator=torch.Generator().manual_seed(seed))


def run(logits, labels, **options):
    """Value and gradient, as float64 on the CPU."""
    options = {k: v.to(DEVICE) if isinstance(v, torch.Tensor) else v for k, v in options.items()}
    leaf = logits.detach().clone().to(DEVICE).requires_grad_()
    value = token_nll(leaf, labels.to(DEVICE), **options)
    value.backward()
    return value.detach().cpu().double(), leaf.grad.cpu().double()


def check(logits, labels, dtype=torch.float64, **options):
    """Hold value and gradient to the slow decimals, of the logits as they are once rounded to this type."""
    rounded = logits.to(dtype)
    given = {k: v.tolist() if isinstance(v, torch.Tensor) else v for k, v in options.items()}
    want, gradient = exact.loss(rounded.double().tolist(), labels.tolist(), **given)
    gradient = torch.tensor([[[float(g) for g in row] for row in text] for text in gradient], dtype=torch.float64)
    value, got = run(rounded, labels, **options)
    by_value, by_gradient = TOLERANCE[dtype]
    assert value.item() == pytest.approx(float(want), rel=by_value)
    assert (got - gradient).abs().max() <= by_gradient * gradient.abs().max()


# --- Values


@each_dtype
@pytest.mark.parametrize("shift", [True, False])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_the_formula(dtype, shift, reduction):
    labels = some_labels(3, 6, 11)
    labels[0, 4:] = IGNORED
    labels[2, :3] = IGNORED
    check(normal(3, 6, 11), labels, dtype, shift=shift, reduction=reduction)


@each_dtype
def test_the_formula_under_a_mask(dtype):
    mask = torch.tensor([[1, 1, 1, 1, 0], [0, 0, 1, 1, 1], [1, 1, 1, 1, 1]]).bool()
    check(normal(3, 5, 7), some_labels(3, 5, 7), dtype, mask=mask)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("offset", [0.0, 1e4, -1e4])
@pytest.mark.parametrize("lead", [40.0, 20.0, -20.0, -200.0])
def test_digits_stay_where_tokens_are_sure_or_logits_far_from_zero(dtype, offset, lead):
    """Every token certain to 1e-9 and less: log-softmax in float32 gives 0 there. And all logits moved by 10,000."""
    logits = normal(2, 4, 5, scale=0.1)
    labels = some_labels(2, 4, 5)
    logits[:, :-1].scatter_add_(2, labels[:, 1:, None], torch.full((2, 3, 1), lead, dtype=torch.float64))
    check(logits + offset, labels, dtype)


def test_log_softmax_would_have_lost_those_digits():
    """The fault planted: the guard above would see it."""
    logits = torch.zeros(1, 1, 5)
    logits[0, 0, 2] = 40.0
    assert functional.cross_entropy(logits[0], torch.tensor([2])).item() == 0
    ours = token_nll(logits, torch.tensor([[2]]), shift=False).item()
    assert ours == pytest.approx(math.log1p(4 * math.exp(-40)), rel=1e-6)


def test_one_improbable_token_in_a_hundred():
    """e ** 2 = 7.389; a softmax whose logarithm is taken afterwards gives inf."""
    logits = torch.zeros(1, 100, 2)
    logits[..., 0] = 40.0
    logits[0, 37, 0] = 200.0
    labels = torch.zeros(1, 100, dtype=torch.long)
    labels[0, 37] = 1
    value = token_nll(logits, labels, shift=False).item()
    assert math.exp(value) == pytest.approx(math.exp(2), rel=1e-6)
    assert functional.softmax(logits[0], -1)[37, 1].log() == -math.inf


@each_dtype
@pytest.mark.parametrize("vocabulary", [2, 50257])
def test_a_model_that_knows_nothing_has_the_logarithm_of_its_vocabulary(dtype, vocabulary):
    logits = torch.full((2, 3, vocabulary), 5.0, dtype=dtype)
    value = token_nll(logits, some_labels(2, 3, vocabulary))
    assert value.item() == pytest.approx(math.log(vocabulary), rel=1e-6)


def test_the_shift_by_hand():
    """A text 0 1 0 1 0 1, the next token certain to 0.9: 1.111, and 10 where labels are not shifted."""
    ids = torch.tensor([[0, 1, 0, 1, 0, 1]])
    logits = torch.log(torch.tensor([[[0.1, 0.9], [0.9, 0.1]] * 3], dtype=torch.float64))
    assert math.exp(token_nll(logits, ids)) == pytest.approx(1.1111111111)
    assert math.exp(token_nll(logits, ids, shift=False)) == pytest.approx(10)
    twice = torch.cat([ids[:, 1:], torch.tensor([[IGNORED]])], 1)
    assert token_nll(logits, twice).item() == pytest.approx(2.302585093)
    assert token_nll(logits, twice, shift=False).item() == pytest.approx(0.1053605157)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_other_libraries_where_they_are_right(dtype):
    logits, labels = normal(4, 9, 13).to(dtype), some_labels(4, 9, 13)
    labels[1, 5:] = IGNORED
    flat = functional.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
    assert token_nll(logits, labels).item() == pytest.approx(flat.item(), rel=1e-6)
    assert token_nll(logits, labels).item() == pytest.approx(ForCausalLMLoss(logits, labels, 13).item(), rel=1e-6)


def test_none_is_zero_where_nothing_counts_and_sums_to_the_sum():
    logits, labels = normal(2, 4, 5), some_labels(2, 4, 5)
    labels[0, 2] = IGNORED
    each = token_nll(logits, labels, reduction="none")
    assert each.shape == (2, 3)
    assert each[0, 1] == 0
    assert (each != 0).sum() == 5
    assert each.sum().item() == pytest.approx(token_nll(logits, labels, reduction="sum").item(), rel=1e-14)
    assert token_nll(logits, labels, shift=False, reduction="none").shape == (2, 4)
    assert token_nll(logits, labels).item() == pytest.approx(each.sum().item() / 5, rel=1e-14)


def test_a_forbidden_token():
    """-inf forbids: it takes no probability, and one that occurs all the same costs inf."""
    logits = normal(1, 3, 4)
    logits[0, :, 2] = -math.inf
    check(logits, torch.tensor([[0, 1, 3]]))
    value, gradient = run(logits, torch.tensor([[0, 1, 2]]))
    assert value == math.inf
    assert not gradient.isnan().any()
    only = torch.full((1, 2, 3), -math.inf, dtype=torch.float64)
    only[..., 1] = 0.0
    value, gradient = run(only, torch.tensor([[0, 1]]))
    assert value == 0
    assert (gradient == 0).all()
    value, gradient = run(torch.zeros(1, 2, 1), torch.tensor([[0, 0]]))  # a vocabulary of one
    assert (value.item(), gradient.abs().max().item()) == (0, 0)


# --- What must not matter


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("filler", [0.0, math.nan, math.inf, 1e30])
def test_padding_of_any_side_amount_and_content(side, filler):
    logits, labels = normal(1, 5, 7), some_labels(1, 5, 7)
    want, gradient = run(logits, labels)
    for amount in (1, 4):
        pads = torch.full((1, amount, 7), filler, dtype=torch.float64)
        ids = torch.full((1, amount), 3)
        real, none = torch.ones(1, 5).bool(), torch.zeros(1, amount).bool()
        join = (lambda a, b: torch.cat([b, a], 1)) if side == "left" else (lambda a, b: torch.cat([a, b], 1))
        for label in (3, IGNORED, 999):  # 999: no token at all
            value, got = run(join(logits, pads), join(labels, ids * 0 + label), mask=join(real, none))
            assert value.item() == pytest.approx(want.item(), rel=1e-14)
            assert torch.allclose(got[:, amount:] if side == "left" else got[:, :-amount], gradient, rtol=1e-14)
            assert got.abs().sum().item() == pytest.approx(gradient.abs().sum().item())


def test_without_a_mask_left_padding_is_predicted_from_padding():
    """Why the mask is asked for: the ignore index tells of targets only."""
    logits, labels = normal(1, 5, 7), some_labels(1, 5, 7)
    labels[0, :2] = IGNORED
    mask = torch.tensor([[0, 0, 1, 1, 1]]).bool()
    each = token_nll(logits, labels, reduction="none")
    assert token_nll(logits, labels).item() == pytest.approx(each[0, 1:].mean().item())
    assert token_nll(logits, labels, mask=mask).item() == pytest.approx(each[0, 2:].mean().item())


def test_prompts_are_left_out_by_the_ignore_index_beside_a_mask():
    logits, labels = normal(1, 6, 7), some_labels(1, 6, 7)
    mask = torch.tensor([[1, 1, 1, 1, 1, 0]]).bool()
    each = token_nll(logits, labels, reduction="none")
    labels[0, :3] = IGNORED
    labels[0, 5] = IGNORED
    assert token_nll(logits, labels, mask=mask).item() == pytest.approx(each[0, 2:4].mean().item(), rel=1e-14)


def test_an_ignore_index_inside_the_vocabulary():
    labels = torch.tensor([[1, 2, 3, 0, 0]])
    logits = normal(1, 5, 4)
    marked = labels.masked_fill(labels == 0, IGNORED)
    assert token_nll(logits, labels, ignore_index=0).item() == token_nll(logits, marked).item()


@each_dtype
def test_shift_of_scores_and_order_of_tokens(dtype):
    logits, labels = normal(2, 4, 6).to(dtype), some_labels(2, 4, 6)
    order = torch.randperm(6, generator=torch.Generator().manual_seed(2))
    turned = token_nll(logits[..., order], order.argsort()[labels])
    assert turned.item() == pytest.approx(token_nll(logits, labels).item(), rel=1e-6)


def test_inputs_are_left_as_they_were_and_integers_of_any_kind_will_do():
    logits, labels = normal(2, 4, 6), some_labels(2, 4, 6)
    before = logits.clone(), labels.clone()
    mask = torch.ones(2, 4).bool()
    value = token_nll(logits, labels, mask=mask)
    assert torch.equal(logits, before[0])
    assert torch.equal(labels, before[1])
    assert torch.equal(token_nll(logits, labels.int()), value)
    assert torch.equal(token_nll(logits, labels.to(torch.uint8)), value)
    assert token_nll(logits.bfloat16(), labels).dtype == torch.float32


def test_the_second_derivative():
    logits = normal(1, 3, 4).requires_grad_()
    labels = some_labels(1, 3, 4)
    assert torch.autograd.gradgradcheck(lambda x: token_nll(x, labels), logits)


def test_a_tensor_made_on_the_wrong_device_would_show():
    logits, labels = normal(2, 4, 6).float(), some_labels(2, 4, 6)
    with FakeCuda() as fake, torch.no_grad():
        mask = fake.put(torch.ones(2, 4, dtype=torch.bool))
        for reduction in ("mean", "sum", "none"):
            value = token_nll(fake.put(logits), fake.put(labels), mask=mask, reduction=reduction)
            assert value.device == CUDA
        with pytest.raises(ValueError, match=r"labels is on cpu but the logits are on cuda:0; move it there"):
            token_nll(fake.put(logits), labels)


# --- What is refused


def bad(x, position, token, value):
    x = x.clone()
    x[(0, position) if token is None else (0, position, token)] = value
    return x


GOOD = {"logits": normal(2, 4, 6), "labels": some_labels(2, 4, 6)}
FULL = torch.ones(2, 4, dtype=torch.bool)
BAD = {
    "a matrix": (
        {"logits": normal(4, 6)},
        r"logits must be .* got float64 of shape \(4, 6\); for a single .* logits\[",
    ),
    "ragged": (
        {"logits": [normal(3, 6), normal(2, 6)]},
        r"logits must be .* got a list of tensors of shapes \(3, 6\), \(2, 6\)",
    ),
    "whole logits": ({"logits": torch.zeros(2, 4, 6).long()}, r"floating-point tensor .* got int64 of shape"),
    "empty": ({"logits": torch.zeros(0, 4, 6)}, r"logits must not be empty, got float32 of shape \(0, 4, 6\)"),
    "labels short": (
        {"labels": torch.zeros(2, 3).long()},
        r"labels must have the shape \(2, 4\) .* got int64 of shape \(2, 3\); labels shifted beforehand go with",
    ),
    "labels other": ({"labels": torch.zeros(3, 4).long()}, r"shape \(2, 4\) .* got int64 of shape \(3, 4\); pad texts"),
    "labels real": ({"labels": torch.zeros(2, 4)}, r"labels must be a tensor of whole numbers, .* got float32"),
    "labels bool": ({"labels": FULL}, r"labels must be a tensor of whole numbers, .* got bool of shape"),
    "label above": (
        {"labels": bad(GOOD["labels"], 2, None, 6)},
        r"from 0 to 5, or be -100, got labels\[0, 2\] = 6$",
    ),
    "label below": (
        {"labels": bad(GOOD["labels"], 3, None, -1)},
        r"got labels\[0, 3\] = -1; if it marks padding, pass ignore_index=-1",
    ),
    "nan": ({"logits": bad(GOOD["logits"], 1, 3, math.nan)}, r"logits\[0, 1\] must be .* got nan for token 3"),
    "nan at the label": (
        {"logits": bad(GOOD["logits"], 1, int(GOOD["labels"][0, 2]), math.nan)},
        r"logits\[0, 1\] must be numbers below \+inf, got nan for token",
    ),
    "inf": ({"logits": bad(GOOD["logits"], 2, 0, math.inf)}, r"logits\[0, 2\] must be .* got inf for token 0"),
    "inf at the label": (
        {"logits": bad(GOOD["logits"], 1, int(GOOD["labels"][0, 2]), math.inf)},
        r"logits\[0, 1\] must be .* got inf for token",
    ),
    "all forbidden": (
        {"logits": bad(GOOD["logits"], 1, slice(None), -math.inf)},
        r"logits\[0, 1\] are -inf for all 6 tokens",
    ),
    "one token": (
        {"logits": normal(2, 1, 6), "labels": torch.zeros(2, 1).long()},
        r"a text of one token has nothing to predict once labels are shifted, got 2 of them",
    ),
    "all ignored": (
        {"labels": torch.full((2, 4), IGNORED)},
        r"no token is counted: all 6 targets are ignored or masked, in labels of 2 texts",
    ),
    "all masked": ({"mask": ~FULL}, r"no token is counted: all 6 targets"),
    "mask of numbers": ({"mask": FULL.long()}, r"mask must be a bool .* got int64 .* attention_mask.bool\(\) will do"),
    "mask short": (
        {"mask": FULL[:, 1:]},
        r"mask must be a bool tensor of shape \(2, 4\), .* got bool of shape \(2, 3\)",
    ),
    "mask on the wrong side": (
        {
            "labels": torch.tensor([[1, 2, 3, IGNORED], [1, 2, 3, 4]]),
            "mask": torch.tensor([[0, 0, 1, 1], [1, 1, 1, 1]]).bool(),
        },
        r"mask disagrees with ignore_index: mask\[0, 1\] is False, padding, but the label there is 2, while other",
    ),
    "mask that drops the end": (
        {
            "labels": torch.tensor([[1, 2, 0, IGNORED], [1, 2, 3, 4]]),
            "mask": torch.tensor([[1, 1, 0, 0], [1, 1, 1, 1]]).bool(),
        },
        r"mask disagrees with ignore_index: mask\[0, 2\] is False, padding, but the label there is 0",
    ),
    "reduction": ({"reduction": "average"}, r"reduction must be 'mean', 'sum' or 'none', got 'average'"),
    "ignore index": ({"ignore_index": None}, r"ignore_index must be a whole number, got None"),
    "a word for shift": ({"shift": "no"}, r"shift must be True or False, got 'no'"),
    "a word for validate": ({"validate": "no"}, r"validate must be True or False, got 'no'"),
    "a number for shift": ({"shift": 0}, r"shift must be True or False, got 0"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_named(case):
    change, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        token_nll(**GOOD | change)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_nothing_counted_is_refused_under_any_reduction(reduction):
    with pytest.raises(ValueError, match="no token is counted"):
        token_nll(GOOD["logits"], torch.full((2, 4), IGNORED), reduction=reduction)


def test_unchecked_is_the_same_value_and_nan_for_nothing():
    assert torch.equal(token_nll(**GOOD, validate=False), token_nll(**GOOD))
    assert token_nll(GOOD["logits"], torch.full((2, 4), IGNORED), validate=False).isnan()


def test_what_is_not_counted_is_not_judged():
    """NaN in the last logits, which predict nothing, and a first label that is no token."""
    logits, labels = GOOD["logits"].clone(), GOOD["labels"].clone()
    want = token_nll(logits, labels)
    logits[:, -1], labels[:, 0] = math.nan, 999
    assert torch.equal(token_nll(logits, labels), want)


def test_a_mask_agrees_beside_labels_that_never_use_the_ignore_index():
    mask = torch.tensor([[1, 1, 1, 0], [1, 1, 1, 1]]).bool()
    each = token_nll(**GOOD, reduction="none")
    assert token_nll(**GOOD, mask=mask).item() == pytest.approx((each[0, :2].sum() + each[1].sum()).item() / 5)
