"""Each wrong loss gives the numbers that were reported for it, or that its formula gives by hand."""

import math

import pytest
import torch

from losslab.losses import info_nce, list_mle, multi_positive_info_nce, p_list_mle
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


def doubles(rows):
    return torch.tensor(rows, dtype=torch.float64)


def cross_entropy(*rows):
    """Mean over rows of scores, already divided by the temperature, of finding the i-th in row i, by hand."""
    return sum(math.log(sum(map(math.exp, row))) - row[i] for i, row in enumerate(rows)) / len(rows)


def test_two_equal_pairs_cost_half_of_ln_2():
    mistake, rows = get("infonce-dup-floor"), torch.eye(4, dtype=torch.float64)[[0, 0, 2, 3]]
    by_hand = cross_entropy(*[[20.0 * (a == b) for b in (0, 0, 2, 3)] for a in (0, 0, 2, 3)])
    assert mistake.wrong(rows, rows).item() == pytest.approx(by_hand, rel=1e-12)
    assert by_hand == pytest.approx(0.3465735944, abs=1e-10)
    assert by_hand == pytest.approx(2 / 4 * math.log(2), abs=1e-8)
    masked = (2 * math.log(1 + 2 * math.exp(-20)) + 2 * math.log(1 + 3 * math.exp(-20))) / 4
    assert mistake.right(rows, rows).item() == pytest.approx(masked, rel=1e-6)
    assert masked == pytest.approx(5.153e-9, rel=1e-3)
    same = (rows[:, None] == rows[None]).all(-1).fill_diagonal_(False)
    assert info_nce(rows, rows, negatives=~same).item() == pytest.approx(masked, rel=1e-6)


def test_two_halves_are_not_a_batch_of_four():
    blind = torch.ones(4, 2, dtype=torch.float64)
    wrong = get("infonce-grad-accum").wrong
    assert wrong(blind, blind).item() == pytest.approx(math.log(4), rel=1e-12)
    assert wrong(blind, blind, chunk_size=2).item() == pytest.approx(math.log(2), rel=1e-12)
    assert info_nce(blind, blind, chunk_size=2).item() == pytest.approx(math.log(4), rel=1e-12)
    assert (math.log(4), math.log(2)) == pytest.approx((1.3862943611, 0.6931471806), abs=1e-10)


def test_longer_embeddings_are_a_lower_temperature():
    queries, documents = doubles([[3, 0], [0, 3]]), doubles([[2, 1], [1, 2]])
    wrong = get("infonce-no-normalise").wrong
    for factor, published in ((1, 0.0485873516), (2, 6.1442e-06)):
        value = wrong(factor * queries, factor * documents, temperature=1.0).item()
        assert value == pytest.approx(math.log1p(math.exp(-3 * factor**2)), rel=1e-9)
        assert value == pytest.approx(published, rel=1e-4)
        right = info_nce(factor * queries, factor * documents, temperature=1.0).item()
        assert right == pytest.approx(math.log1p(math.exp(-1 / math.sqrt(5))), rel=1e-9)
        assert right == pytest.approx(0.4943347858, abs=1e-10)


def test_rows_and_columns_have_other_denominators():
    rows, columns = cross_entropy([2, 1], [0, 0.5]), cross_entropy([2, 0], [1, 0.5])
    assert (rows, columns) == pytest.approx((0.3936693358, 0.5505024976), abs=1e-10)
    queries = torch.eye(2, 4, dtype=torch.float64)  # scores of 2, 1, 0, 0.5 at temperature 0.25
    documents = doubles([[0.5, 0, 0, 0], [0.25, 0.125, 0, 0]])
    documents[:, 2] = (1 - documents.square().sum(1)).sqrt()
    mistake = get("infonce-symmetric")
    assert mistake.wrong(queries, documents, temperature=0.25).item() == pytest.approx(rows, rel=1e-12)
    for symmetric in (
        mistake.right,
        lambda *pairs, temperature: info_nce(*pairs, temperature=temperature, symmetric=True),
    ):
        assert symmetric(queries, documents, temperature=0.25).item() == pytest.approx(0.4720859167, abs=1e-10)
    assert (rows + columns) / 2 == pytest.approx(0.4720859167, abs=1e-10)


def test_three_positives_and_three_denominators():
    rows, labels = doubles([[1, 0], [0.8, 0.6], [0, 1], [-0.6, 0.8]]), [0, 0, 0, 1]
    apart, together = [], []
    for i in range(3):  # the fourth has no positive
        others = [j for j in range(4) if j != i]
        positives = torch.tensor([[labels[j] == labels[i] for j in others]])
        wrong = get("infonce-multipos-denominator").wrong
        apart.append(wrong(rows[i : i + 1], rows[others], positives, temperature=0.5).item())
        scores = [sum((rows[i] * rows[j]).tolist()) / 0.5 for j in others]
        whole = math.log(sum(map(math.exp, scores)))
        own = [s for s, j in zip(scores, others, strict=True) if labels[j] == labels[i]]
        negative = scores[others.index(3)]
        by_hand = sum(math.log(math.exp(s) + math.exp(negative)) - s for s in own) / 2
        assert apart[-1] == pytest.approx(by_hand, rel=1e-12)
        together.append(sum(whole - s for s in own) / 2)
        right = multi_positive_info_nce(rows[i : i + 1], rows[others], positives, temperature=0.5).item()
        assert right == pytest.approx(whole - math.log(sum(map(math.exp, own))), rel=1e-9)
    assert sum(apart) / 3 == pytest.approx(0.5777357492, abs=1e-10)
    assert sum(together) / 3 == pytest.approx(1.1625012039, abs=1e-10)


def test_a_product_that_broadcasts():
    mistake = get("infonce-inbatch-off-broadcast")
    queries, passages = doubles([[1, 0], [0, 1]]), doubles([[[1, 0], [0, 1]], [[0, 1], [1, 0]]])
    assert mistake.right(queries, passages, 0.5).mean().item() == pytest.approx(math.log1p(math.exp(-2)), rel=1e-12)
    assert math.log1p(math.exp(-2)) == pytest.approx(0.126928011, abs=1e-9)
    # Every row holds the scores 1, 0, 0, 1 of both queries, and takes the first for its positive: 1 once, 0 once.
    whole = math.log(2 * math.exp(2) + 2)
    assert mistake.wrong(queries, passages, 0.5).mean().item() == pytest.approx(whole - 1, rel=1e-12)
    assert whole - 1 == pytest.approx(1.8200751916, abs=1e-9)


def test_a_copy_scores_what_the_positive_does_and_no_more():
    mistake, scores = get("gist-exact-duplicate"), torch.eye(4, dtype=torch.float64)
    scores[0, 1] = scores[1, 0] = 1
    assert mistake.wrong(scores / 0.05, scores).mean().item() == pytest.approx(0.34657359, abs=1e-8)
    right = mistake.right(scores / 0.05, scores).mean().item()
    masked = (2 * math.log(1 + 2 * math.exp(-20)) + 2 * math.log(1 + 3 * math.exp(-20))) / 4
    assert right == pytest.approx(masked, rel=1e-6)


def test_at_collapse_soft_targets_ask_for_what_is_there():
    mistake = get("soft-target-collapse")
    for loss, row in ((mistake.wrong, [0, 0, 0]), (mistake.right, [-2 / 3, 1 / 3, 1 / 3])):
        scores = torch.ones(3, 3, dtype=torch.float64, requires_grad=True)
        value = loss(scores)
        value.backward()
        assert value.item() == pytest.approx(math.log(3), rel=1e-12)
        assert (3 * scores.grad[0]).tolist() == pytest.approx(row, abs=1e-12)
    assert math.log(3) == pytest.approx(1.0986122887, abs=1e-10)


def test_one_positive_and_one_negative_are_worth_something():
    queries, documents = doubles([[1, 0]]), doubles([[0.6, 0.8], [1, 0]])
    by_hand = math.log1p(math.exp((1 - 0.6) / 0.5))
    assert by_hand == pytest.approx(1.1711006659, abs=1e-10)
    assert get("pml-single-pair-zero").wrong(queries, documents, temperature=0.5).item() == 0
    assert info_nce(queries, documents, temperature=0.5).item() == pytest.approx(by_hand, rel=1e-12)


def test_a_sigmoid_has_a_floor():
    scores = doubles([[1e6, -1e6, -1e6, -1e6, -1e6]])
    mistake, floor = get("ce-mnrl-sigmoid-floor"), math.log1p(4 * math.exp(-10))
    assert floor == pytest.approx(0.000181583232, abs=1e-12)
    assert mistake.wrong(scores).item() == pytest.approx(floor, rel=1e-9)
    assert mistake.right(scores).item() == 0


def test_an_epsilon_in_the_logarithm_is_a_ceiling():
    queries, documents = doubles([[1, 0], [1, 0]]), doubles([[1, 0], [-1, 0]])
    wrong = get("infonce_saturated_log").wrong(queries, documents, temperature=0.02).item()
    ceiling = -math.log(torch.finfo(torch.float32).tiny)
    assert ceiling == pytest.approx(87.3, abs=0.05)
    assert wrong == pytest.approx(ceiling / 2, rel=1e-6)
    assert wrong == pytest.approx(43.668, abs=1e-3)
    assert info_nce(queries, documents, temperature=0.02).item() == pytest.approx(50, abs=3e-3)


def test_learned_rows_leave_the_mean():
    queries, documents = doubles([[1, 0], [1, 0]]).float(), doubles([[1, 0], [-1, 0]]).float()
    wrong = get("infonce_nonzero_mean").wrong(queries, documents, temperature=0.05).item()
    assert wrong == pytest.approx(40, rel=1e-6)
    assert info_nce(queries, documents, temperature=0.05).item() == pytest.approx(20, rel=1e-6)
