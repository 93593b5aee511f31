"""Units by hand, and the lengths of texts."""

import math

import pytest
import torch

from losslab.language import (
    bits_per_byte,
    bits_per_character,
    bits_per_token,
    bits_per_word,
    count_text,
    nats_per_token,
    per_unit,
    perplexity,
    word_perplexity,
)


def test_perplexity_by_hand():
    assert perplexity(1.06) == pytest.approx(2.886370989)  # e ** 1.06
    assert perplexity(math.log(50257)) == pytest.approx(50257)
    assert perplexity(torch.tensor(0.0)) == 1
    assert perplexity(10, base=2) == pytest.approx(1024)
    assert perplexity(0.1053605157) == pytest.approx(1 / 0.9)


def test_perplexity_above_the_range_of_a_float():
    assert perplexity(709.78) < math.inf
    assert perplexity(709.79) == perplexity(1000.0) == perplexity(math.inf) == math.inf
    assert word_perplexity(1e6, 1) == math.inf


def test_bits_and_nats():
    assert bits_per_token(math.log(2)) == 1
    assert bits_per_token(3, base=2) == pytest.approx(3)
    assert nats_per_token(1, base=2) == pytest.approx(0.6931471806)
    assert nats_per_token(2.5) == 2.5
    for nats in (0.1, 3.0, 12.0):
        assert 2 ** bits_per_token(nats) == pytest.approx(perplexity(nats))


def test_a_log_likelihood_of_minus_ten_over_twenty_bytes():
    """0.7213 bits, not 0.5: nats are divided by ln 2."""
    assert bits_per_byte(10, 20) == pytest.approx(0.7213475204)
    assert 2 ** bits_per_byte(10, 20) == pytest.approx(1.6487212707)


def test_two_tokenizers_of_one_text():
    """12 nats over 24 bytes, in 6 tokens or in 4: the perplexities differ, the bits per byte do not."""
    assert perplexity(12 / 6) == pytest.approx(7.3890560989)
    assert perplexity(12 / 4) == pytest.approx(20.0855369232)
    assert bits_per_byte(12, 24) == pytest.approx(0.7213475204)
    for tokens in (6, 4):
        assert per_unit(12 / tokens, tokens=tokens, units=24) / math.log(2) == pytest.approx(0.7213475204)
        assert perplexity(12 / tokens) ** (tokens / 3) == pytest.approx(word_perplexity(12, 3))
    assert word_perplexity(12, 3) == pytest.approx(math.exp(4))
    assert bits_per_word(12, 3) == pytest.approx(4 / math.log(2))
    assert bits_per_character(12, 12) == pytest.approx(1 / math.log(2))


def test_lengths_of_texts():
    counts = count_text("Ein Café,\n  zwei 😀 ")
    assert (counts.n_bytes, counts.n_characters, counts.n_words) == (23, 19, 4)
    assert count_text("").n_bytes == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: perplexity(-0.5), r"nll must not be negative, got -0.5; of a log-likelihood, pass minus that"),
        (lambda: perplexity(math.nan), r"nll must be a number, got nan: no token was counted"),
        (lambda: perplexity(torch.ones(2)), r"nll must be one number, got a tensor of shape \(2,\); reduce it"),
        (lambda: perplexity("1"), r"nll must be a number, got '1'"),
        (lambda: perplexity(1, base=1), r"base must be a finite number above 1, got 1: e gives nats"),
        (lambda: bits_per_token(1, base=0.5), r"base must be a finite number above 1, got 0.5"),
        (lambda: bits_per_token(1, base=math.nan), r"base must be a finite number above 1, got nan"),
        (lambda: perplexity(1, base=True), r"base must be a finite number above 1, got True"),
        (lambda: perplexity(1, base=math.inf), r"base must be a finite number above 1, got inf"),
        (lambda: bits_per_byte(1, 0), r"n_bytes must be a whole number of at least 1, got 0"),
        (lambda: bits_per_byte(1, 2.5), r"n_bytes must be a whole number of at least 1, got 2.5"),
        (lambda: bits_per_byte(1), r"n_bytes is what the total is divided by; give it"),
        (lambda: bits_per_byte(-1, 3), r"nll must not be negative, got -1.0"),
        (lambda: word_perplexity(1, -3), r"n_words must be a whole number of at least 1, got -3"),
        (lambda: per_unit(1, tokens=0, units=3), r"tokens must be a whole number of at least 1, got 0"),
        (lambda: count_text(b"abc"), r"text must be a str, got bytes; decode bytes first"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
