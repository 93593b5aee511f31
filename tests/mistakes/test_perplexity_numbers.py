"""Each wrong token loss or unit gives the numbers that were reported for it, or that its formula gives by hand."""

import math

import pytest
import torch

from losslab.language import bits_per_byte, perplexity, token_nll
from losslab.mistakes import get


def with_costs(costs, labels=None):
    """Logits over two tokens, in float64, so that row t costs so many nats at the token it predicts."""
    labels = torch.zeros(1, len(costs) + 1, dtype=torch.long) if labels is None else torch.tensor([labels])
    logits = torch.zeros(1, len(costs) + 1, 2, dtype=torch.float64)
    for t, cost in enumerate(costs):
        behind = math.log(math.expm1(cost))  # softplus of this is the cost
        logits[0, t, labels[0, t + 1].clamp(min=0)] = -behind
    return logits, labels


def knows_the_next():
    """Tokens 0 and 1 in turn; each row gives the next one 0.9."""
    ids = torch.tensor([[0, 1, 0, 1, 0, 1]])
    logits = torch.zeros(1, 6, 2, dtype=torch.float64)
    logits[0, torch.arange(6), 1 - ids[0]] = math.log(9)
    return logits, ids


def test_unshifted_it_is_asked_for_what_it_has_read():
    wrong = get("no-shift").wrong(*knows_the_next()).item()
    assert math.exp(wrong) == pytest.approx(10.0, rel=1e-12)
    assert math.exp(token_nll(*knows_the_next()).item()) == pytest.approx(1.1111111111, abs=1e-10)


def test_shifted_twice_it_is_asked_for_the_token_after_the_next():
    assert get("double-shift").wrong(*knows_the_next()).item() == pytest.approx(2.302585093, abs=1e-9)
    assert token_nll(*knows_the_next()).item() == pytest.approx(0.1053605157, abs=1e-10)


def test_one_token_costs_nothing_and_has_a_perplexity():
    logits, ids = torch.zeros(1, 1, 2), torch.zeros(1, 1, dtype=torch.long)
    assert get("one-token-text").wrong(logits, ids).item() == 0
    with pytest.raises(ValueError, match="one token"):
        token_nll(logits, ids)


def test_micro_batches_of_one_and_three_tokens():
    micro = [with_costs([4.0]), with_costs([1.0, 1.0, 1.0])]
    mistake = get("grad-accum-tokens")
    means = [mistake.wrong(*batch, num_items_in_batch=4).item() for batch in micro]
    assert sum(means) / len(means) == pytest.approx(2.5, rel=1e-12)
    parts = [mistake.right(*batch, num_items_in_batch=4).item() for batch in micro]
    assert sum(parts) == pytest.approx(1.75, rel=1e-12)


def test_the_count_of_a_head_that_does_not_shift():
    costs, labels = torch.ones(2, 4), torch.ones(2, 4, dtype=torch.long)
    mistake = get("num-items-undercount")
    assert mistake.wrong(costs, labels).item() == pytest.approx(1.3333333333)
    assert mistake.right(costs, labels).item() == 1


def test_a_corpus_is_not_the_mean_of_its_texts():
    costs = [torch.tensor([0.1, 0.2, 0.1]).double(), torch.tensor([0.3, 0.5, 0.1, 0.4, 0.2]).double()]
    mistake = get("corpus-vs-mean-of-ppl")
    assert mistake.wrong(costs) == pytest.approx(1.2462448097, rel=1e-6)
    assert mistake.right(costs) == pytest.approx(1.2680749968, rel=1e-6)


def test_padding_in_both_in_the_count_and_in_the_sum():
    logits, labels = with_costs([1.0, 1.0, 6.0, 6.0])
    mask = torch.tensor([[True, True, True, False, False]])
    marked = labels.masked_fill(~mask, -100)
    assert math.exp(get("pad-in-both").wrong(logits, labels, mask).item()) == pytest.approx(33.1154519587, rel=1e-10)
    assert math.exp(token_nll(logits, labels, mask=mask).item()) == pytest.approx(2.7182818285, rel=1e-10)
    in_count = get("token-width-in-mean").wrong(logits, marked).item()
    assert math.exp(in_count) == pytest.approx(1.6487212707, rel=1e-10)
    in_sum = get("token-clamped-labels").wrong(logits, marked).item()
    assert math.exp(in_sum) == pytest.approx(1096.6331584285, rel=1e-10)


def test_a_mask_read_as_a_length_scores_the_padding():
    logits, labels = with_costs([9.0, 9.0, 1.0, 2.0])
    mask = torch.tensor([[False, False, True, True, True]])  # its first real token is predicted from padding
    assert get("mask-wrong-side").wrong(logits, labels, mask).item() == pytest.approx(9.0, rel=1e-12)
    assert token_nll(logits, labels, mask=mask).item() == pytest.approx(1.5, rel=1e-12)


def test_the_end_of_a_text_is_masked_where_it_pads_too():
    ids = torch.tensor([[1, 2, 0, 0, 0], [1, 2, 3, 2, 0]])
    mask = torch.tensor([[True, True, True, False, False], [True] * 5])
    mistake = get("pad-is-eos")
    assert mistake.wrong(ids, mask, 0).tolist() == [[1, 2, -100, -100, -100], [1, 2, 3, 2, -100]]
    assert mistake.right(ids, mask, 0).tolist() == [[1, 2, 0, -100, -100], [1, 2, 3, 2, 0]]


def test_nats_called_bits():
    mistake = get("bpb-log-base")
    assert mistake.wrong(-10, 20) == 0.5
    assert mistake.right(-10, 20) == pytest.approx(0.7213475204, abs=1e-10)
    assert mistake.right(-10, 20) == pytest.approx(bits_per_byte(10, 20), rel=1e-12)
    assert 2 ** mistake.right(-10, 20) == pytest.approx(1.6487212707, abs=1e-10)


def test_twelve_nats_in_six_tokens_or_four():
    mistake = get("tokenizer-incomparable")
    assert mistake.wrong(12.0, 6, 24) == pytest.approx(7.3890560989, abs=1e-10)
    assert mistake.wrong(12.0, 4, 24) == pytest.approx(20.0855369232, abs=1e-10)
    for tokens in (6, 4):
        assert mistake.right(12.0, tokens, 24) == pytest.approx(0.7213475204, abs=1e-10)


@pytest.mark.parametrize(
    ("dtype", "gap", "correct"), [(torch.float32, 200.0, 7.3890560989), (torch.float16, 18.0, 1.1972173631)]
)
def test_one_vanishing_probability_among_a_hundred(dtype, gap, correct):
    logits = torch.zeros(1, 101, 2, dtype=dtype)
    logits[..., 1] = -40.0
    logits[0, 0] = torch.tensor([-gap, 0.0])
    labels = torch.zeros(1, 101, dtype=torch.long)
    assert get("log-of-softmax").wrong(logits, labels).item() == math.inf
    assert math.exp(token_nll(logits, labels).item()) == pytest.approx(correct, rel=1e-6)


def test_probabilities_taken_for_logits():
    logits = torch.log(torch.tensor([[[0.9, 0.1], [0.5, 0.5]]], dtype=torch.float64))
    labels = torch.zeros(1, 2, dtype=torch.long)
    assert math.exp(get("double-softmax").wrong(logits, labels).item()) == pytest.approx(1.4493289641, abs=1e-10)
    assert math.exp(token_nll(logits, labels).item()) == pytest.approx(1.1111111111, abs=1e-10)


def test_a_perplexity_that_is_no_float():
    mistake = get("exp-overflow")
    with pytest.raises(OverflowError):
        mistake.wrong(1000.0)
    assert mistake.right(1000.0) == math.inf == perplexity(1000.0)
    assert math.isfinite(mistake.wrong(709.78))
    assert mistake.right(709.78) == mistake.wrong(709.78)


# Built ones, by hand.


def test_built_ones_by_hand():
    logits = torch.tensor([[[2.0, 1.0, 0.0], [0.0, 0.0, 0.0]]], dtype=torch.float64)
    labels = torch.zeros(1, 2, dtype=torch.long)
    e = math.e
    right = math.log(e**2 + e + 1) - 2
    assert token_nll(logits, labels).item() == pytest.approx(right, rel=1e-12)
    by_hand = {
        "token_target_left_out": math.log(e + 1) - 2,
        "token_quiet_softmax": math.log(e**2 + e + 2) - 2,
        "token_label_smoothing": 0.9 * right + 0.1 * (right + 2 - 1),
    }
    for name, value in by_hand.items():
        assert get(name).wrong(logits, labels).item() == pytest.approx(value, rel=1e-12), name


def test_the_mean_of_two_texts_means():
    (one, _), (three, _) = with_costs([4.0]), with_costs([1.0, 1.0, 1.0])
    logits = torch.zeros(2, 4, 2, dtype=torch.float64)
    logits[0, :2], logits[1] = one[0], three[0]
    labels = torch.tensor([[0, 0, -100, -100], [0, 0, 0, 0]])
    assert get("token_mean_of_texts").wrong(logits, labels).item() == pytest.approx(2.5, rel=1e-12)
    assert token_nll(logits, labels).item() == pytest.approx(1.75, rel=1e-12)


def test_a_frozen_normaliser_is_right_in_value_and_pushes_nothing_down():
    logits = torch.zeros(1, 2, 3, dtype=torch.float64, requires_grad=True)
    value = get("token_frozen_normaliser").wrong(logits, torch.zeros(1, 2, dtype=torch.long))
    value.backward()
    assert value.item() == pytest.approx(math.log(3), rel=1e-12)
    assert logits.grad[0, 0].tolist() == [-1, 0, 0]
