"""Each wrong loss gives the numbers that were reported for it, or that its formula gives by hand."""

import math

import pytest
import torch

from losslab.losses import list_mle, p_list_mle
from losslab.mistakes import get
from losslab.mistakes.plistmle_rank0 import weights


def one_list(loss, logits, labels, width=None, dtype=torch.float64, padding=0.0):
    """Value and gradient at the documents, of one list in a matrix of so many slots."""
    n, width = len(logits), width or len(logits)
    mask = (torch.arange(width) < n)[None]
    z, y = torch.full((1, width), padding, dtype=dtype), torch.full((1, width), padding, dtype=dtype)
    z[0, :n], y[0, :n] = torch.tensor(logits, dtype=dtype), torch.tensor(labels, dtype=dtype)
    value = loss(z.requires_grad_(), y, mask)
    value.backward()
    return value.item(), z.grad[0].tolist()


def softmax_first(*logits):
    return math.exp(logits[0]) / sum(map(math.exp, logits))


@pytest.mark.parametrize(
    ("width", "published", "published_gradient"),
    [
        (2, 0.2632824673, (-0.231475, 0.231475)),
        (3, 0.9759065216, (-0.343972, -0.227966)),
        (4, 1.467078374, (-0.427739, -0.424678)),
        (6, 2.1626665559, (-0.544152, -0.610385)),
    ],
)
def test_each_empty_slot_adds_one_to_the_mass(width, published, published_gradient):
    value, gradient = one_list(get("listmle-padding").wrong, [1.5, 0.3], [2, 1], width)
    ghosts, a, b = width - 2, math.exp(1.5), math.exp(0.3)
    assert value == pytest.approx(math.log(a + b + ghosts) - 1.5 + math.log(b + ghosts) - 0.3, rel=1e-12)
    by_hand = (a / (a + b + ghosts) - 1, b / (a + b + ghosts) + b / (b + ghosts) - 1)
    assert gradient[:2] == pytest.approx(by_hand, rel=1e-12)
    assert value == pytest.approx(published, abs=1e-9)
    assert gradient[:2] == pytest.approx(published_gradient, abs=1e-6)
    assert one_list(list_mle, [1.5, 0.3], [2, 1], width)[0] == pytest.approx(math.log1p(math.exp(-1.2)), rel=1e-12)


@pytest.mark.parametrize(
    ("logits", "observed"),
    [
        ((1000, 998), math.inf),
        ((90, 88), math.inf),
        ((-23, -25), 2.8507957),
        ((-30, -32), 15.9494858),
        ((-1000, -1002), 1955.948),
    ],
)
def test_the_same_two_documents_cost_anything(logits, observed):
    wrong = one_list(get("listmle_overflow").wrong, logits, [2, 1], dtype=torch.float32)[0]
    assert wrong == pytest.approx(observed, rel=1e-6)
    right = one_list(list_mle, logits, [2, 1], dtype=torch.float32)[0]
    assert right == pytest.approx(math.log1p(math.exp(-2)), rel=1e-6)


def test_a_constant_in_the_logarithm_costs_the_losers():
    wrong = one_list(get("listmle_epsilon").wrong, [23, 0, -1], [2, 1, 0])[0]
    a, b = math.exp(-23), math.exp(-24)
    by_hand = math.log(1 + a + b + 1e-10) + math.log(a + b + 1e-10) + 23 + math.log(b + 1e-10) + 24
    assert wrong == pytest.approx(by_hand, rel=1e-12)
    assert wrong == pytest.approx(2.1456, abs=5e-5)
    assert one_list(list_mle, [23, 0, -1], [2, 1, 0])[0] == pytest.approx(0.3133, abs=5e-5)


def test_a_low_fill_is_low_only_near_zero():
    wrong, truth = get("listmle_sentinel").wrong, math.log1p(math.exp(-1.2))
    assert one_list(wrong, [1.5, 0.3], [2, 1], width=4)[0] == pytest.approx(truth, rel=1e-8)
    a, b, ghosts = math.exp(-25), math.exp(-26.2), 2 * 1e-10
    by_hand = math.log(a + b + ghosts) + 25 + math.log(b + ghosts) + 26.2
    assert one_list(wrong, [-25, -26.2], [2, 1], width=4)[0] == pytest.approx(by_hand, rel=1e-9)
    assert by_hand > 6


@pytest.mark.parametrize("padding", [math.nan, 1e4])
def test_the_value_is_right_and_the_gradient_nan(padding):
    value, gradient = one_list(get("listmle_nan_gradient").wrong, [1.5, 0.3], [2, 1], width=3, padding=padding)
    assert value == pytest.approx(math.log1p(math.exp(-1.2)), rel=1e-12)
    assert math.isnan(gradient[2])
    assert one_list(list_mle, [1.5, 0.3], [2, 1], width=3, padding=padding)[1][2] == 0


def ranked(*logits):
    """ListMLE of documents as they stand, by hand."""
    return sum(-math.log(softmax_first(*logits[i:])) for i in range(len(logits)))


@pytest.mark.parametrize(
    ("width", "by_hand", "published"),
    [
        (3, ranked(1, 0.2, -1), 0.7236550209),
        (16, ranked(1, 0.2, -1), 0.7236550209),
        (17, ranked(1, -1, 0.2), 1.9236550209),
        (40, ranked(1, -1, 0.2), 1.9236550209),
    ],
)
def test_ties_change_places_at_17(width, by_hand, published):
    assert by_hand == pytest.approx(published, abs=1e-9)
    assert one_list(get("listmle_tied_sort").wrong, [0.2, 1, -1], [0, 1, 0], width)[0] == pytest.approx(by_hand)
    assert one_list(list_mle, [0.2, 1, -1], [0, 1, 0], width)[0] == pytest.approx(0.7236550209, abs=1e-9)


@pytest.mark.parametrize(
    ("width", "published"), [(4, 1.43039155), (16, 1.43039155), (17, 1.74533236), (40, 1.74533236)]
)
def test_tied_scores_change_places_at_17(width, published):
    mistake = get("lambda_tied_logits")
    wrong, right = (one_list(f, [0.0] * 4, [0, 1, 0, 2], width)[0] for f in (mistake.wrong, mistake.right))
    assert wrong == pytest.approx(published, rel=1e-6)
    assert right == pytest.approx(1.43039155, rel=1e-6)


def test_distinct_scores_do_not():
    wrong = get("lambda_tied_logits").wrong
    narrow, wide = (one_list(wrong, [0.3, 0.1, 0.2, 0.4], [0, 1, 0, 2], w)[0] for w in (4, 40))
    assert narrow == pytest.approx(wide, rel=1e-12)


def test_781_pairs_share_one_mean():
    mask = torch.ones(2, 40, dtype=torch.bool)
    mask[0, 2:] = False
    logits, labels = torch.zeros(2, 40), torch.zeros(2, 40)
    logits[0, 0] = labels[0, 0] = 1
    labels[1] = torch.arange(39, -1, -1)
    ratios = []
    for loss in (get("lambda_micro_average").wrong, get("lambda_micro_average").right):
        alone = one_list(loss, [1.0, 0.0], [1, 0], dtype=torch.float32)[1]
        together = logits.clone().requires_grad_()
        loss(together, labels, mask).backward()
        ratios.append(alone[0] / together.grad[0, 0].item())
    assert ratios == pytest.approx([1 + 40 * 39 / 2, 2], rel=1e-6)


def test_labels_ignored():
    wrong = get("listmle_ignores_labels").wrong
    assert one_list(wrong, [1.5, 0.3], [1, 2])[0] == pytest.approx(0.2632824673, abs=1e-9)
    assert one_list(list_mle, [1.5, 0.3], [1, 2])[0] == pytest.approx(1.4632824673, abs=1e-9)


def test_padding_divides_the_mean():
    mistake = get("padded_length_in_mean")
    truth = math.log1p(math.exp(-1.2)) / 2
    assert one_list(mistake.right, [1.5, 0.3], [2, 1], width=10)[0] == pytest.approx(truth, rel=1e-12)
    assert one_list(mistake.wrong, [1.5, 0.3], [2, 1], width=10)[0] == pytest.approx(truth * 2 / 10, rel=1e-12)


def test_ranks_from_zero():
    assert weights(torch.ones(1, 3, dtype=torch.bool))[0].tolist() == pytest.approx([7 / 11, 3 / 11, 1 / 11])
    wrong, right = (one_list(f, [1.5, 0.3], [2, 1])[0] for f in (get("plistmle_rank0").wrong, p_list_mle))
    assert wrong == pytest.approx(0.75 * math.log1p(math.exp(-1.2)), rel=1e-12)
    assert right == pytest.approx(math.log1p(math.exp(-1.2)), rel=1e-12)


def test_one_document_spoils_the_batch():
    logits, labels = torch.tensor([[1.5, 0.3], [4.0, 0.0]]), torch.tensor([[2.0, 1.0], [1.0, 0.0]])
    mask = torch.tensor([[True, True], [True, False]])
    assert get("plistmle_one_document").wrong(logits, labels, mask).isnan()
    assert p_list_mle(logits, labels, mask).item() == pytest.approx(math.log1p(math.exp(-1.2)), rel=1e-6)


def test_a_sum_in_bfloat16_grows_in_steps():
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(1, 300, generator=generator).bfloat16()
    labels = torch.arange(300.0, 0, -1)[None].bfloat16().float()
    truth = list_mle(logits.double(), labels).item()
    wrong = get("listmle_half_sum").wrong(logits, labels).item()
    assert truth > 1024
    assert wrong % 8 == 0  # numbers above 1024 in bfloat16, which has 8 significant bits
    assert get("listmle_half_sum").wrong(logits.double(), labels).item() == pytest.approx(truth, rel=1e-12)


def test_padding_outranks_documents():
    scores, labels = torch.tensor([[-1.0, -2.0, 0.0, 0.0]]), torch.tensor([[0, 1, 0, 0]])
    mask = torch.tensor([[True, True, False, False]])
    assert get("metric_pad_outranks").wrong(scores, labels, mask).item() == 0.25
    assert get("metric_pad_outranks").right(scores, labels, mask).item() == 0.5


def test_labels_as_weights():
    mistake, logits = get("pairwise_label_scale"), torch.tensor([[0.2, 0.5]])
    once, hundredfold = torch.tensor([[1.0, 0.0]]), torch.tensor([[100.0, 0.0]])
    cost = math.log1p(math.exp(0.3))
    assert mistake.wrong(logits, once).item() == pytest.approx(cost, rel=1e-6)
    assert mistake.wrong(logits, hundredfold).item() == pytest.approx(100 * cost, rel=1e-6)
    assert mistake.right(logits, hundredfold).item() == pytest.approx(cost, rel=1e-6)
    assert cost == pytest.approx(0.8543552445, abs=1e-9)
