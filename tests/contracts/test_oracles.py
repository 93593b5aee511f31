"""The slow loops against other sources: hand computation, finite differences, an enumeration of rankings, torch."""

import itertools
import math

import pytest
import torch

from losslab.contracts import oracles

LISTS = [
    ([1.5, 0.3], [2.0, 1.0]),
    ([0.2, 1.0, -1.0], [0.0, 1.0, 0.0]),
    ([3.0, -2.0, 0.5, 0.5, 7.0], [1.0, 4.0, 0.0, 2.0, 3.0]),
    ([-700.0, 710.0, 0.0], [2.0, 1.0, 0.0]),
]


def test_list_mle_of_two_documents_by_hand():
    value, gradient = oracles.list_mle([1.5, 0.3], [2, 1])
    assert value == pytest.approx(math.log1p(math.exp(-1.2)), rel=1e-15)
    p = 1 / (1 + math.exp(1.2))
    assert gradient == pytest.approx([-p, p], rel=1e-14)


def test_list_mle_is_minus_log_of_a_probability_of_rankings():
    logits = [0.4, -1.3, 2.0, 0.1]
    total = 0.0
    for ranking in itertools.permutations(range(4)):
        labels = [0.0] * 4
        for place, document in enumerate(ranking):
            labels[document] = 4.0 - place
        total += math.exp(-oracles.list_mle(logits, labels)[0])
    assert total == pytest.approx(1.0, rel=1e-14)


def test_p_list_mle_weights_three_documents_by_three_one_and_nothing():
    logits, labels = [0.2, -0.7, 1.1], [3.0, 2.0, 1.0]
    first = math.log(sum(math.exp(z) for z in logits)) - logits[0]
    second = math.log(sum(math.exp(z) for z in logits[1:])) - logits[1]
    assert oracles.p_list_mle(logits, labels)[0] == pytest.approx((3 * first + 1 * second) / 4, rel=1e-14)


def test_p_list_mle_of_thousands_is_finite_and_weighs_the_first_choice_by_half():
    logits = [0.0] * 5000
    value, gradient = oracles.p_list_mle(logits, [float(-i) for i in range(5000)])
    # Choice r is among 5001 - r and weighs 2^-r, all but exactly.
    assert value == pytest.approx(sum(2.0**-r * math.log(5001 - r) for r in range(1, 60)), rel=1e-12)
    assert gradient[0] == pytest.approx(-0.5 + 0.5 / 5000, rel=1e-12)
    assert sum(gradient) == pytest.approx(0, abs=1e-12)


def test_list_net_is_torch_cross_entropy_of_soft_labels():
    for logits, labels in LISTS:
        z = torch.tensor([logits], dtype=torch.float64, requires_grad=True)
        wanted = torch.tensor([labels], dtype=torch.float64).softmax(1)
        loss = torch.nn.functional.cross_entropy(z, wanted)
        loss.backward()
        value, gradient = oracles.list_net(logits, labels)
        assert value == pytest.approx(loss.item(), rel=1e-12)
        assert gradient == pytest.approx(z.grad[0].tolist(), rel=1e-9, abs=1e-14)


@pytest.mark.parametrize("name", oracles.LISTWISE)
@pytest.mark.parametrize("order", ["labels", "given"])
def test_gradients_are_the_slopes_of_the_values(name, order):
    oracle = oracles.LISTWISE[name]
    for logits, labels in LISTS[:3]:
        _, gradient = oracle(logits, labels, order)
        for i in range(len(logits)):
            up, down = ([z + sign * 1e-5 * (j == i) for j, z in enumerate(logits)] for sign in (1, -1))
            slope = (oracle(up, labels, order)[0] - oracle(down, labels, order)[0]) / 2e-5
            assert gradient[i] == pytest.approx(slope, abs=1e-8)


def test_ties_keep_the_order_given():
    assert oracles.ranking([1.0, 2.0, 1.0, 2.0], "labels") == [1, 3, 0, 2]
    assert oracles.ranking([1.0, 2.0, 1.0, 2.0], "given") == [0, 1, 2, 3]


@pytest.mark.parametrize("name", oracles.LISTWISE)
def test_short_lists_are_worth_nothing(name):
    assert oracles.LISTWISE[name]([], [], "labels") == (0.0, [])
    assert oracles.LISTWISE[name]([3.0], [1.0], "labels") == (0.0, [0.0])


def test_extreme_logits_are_exact():
    value, gradient = oracles.list_mle([1000.0, -1000.0], [0.0, 1.0])
    assert value == 2000.0
    assert gradient == [1.0, -1.0]


def test_against_takes_only_a_known_name_or_a_callable():
    with pytest.raises(ValueError, match="one of list_mle, p_list_mle, list_net, got 'lambda_loss'"):
        oracles.resolve("lambda_loss")
    with pytest.raises(TypeError, match="got 3"):
        oracles.resolve(3)
