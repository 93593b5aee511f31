"""The byte-level model's training and baselines, by hand where small; committed numbers come out again."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from losslab.language import byte_model
from losslab.language.byte_model import START, VOCABULARY
from losslab.measure import byte_lm, perplexity_peers, read

MEASURED = Path(__file__).parents[2] / "data" / "measured"


@pytest.fixture(scope="module")
def committed():
    table, record = read(MEASURED / "byte_lm.csv")
    values = {(r["model"], r["seed"], r["texts"], r["metric"]): float(r["value"]) for r in table}
    return values, record


def test_a_stream_has_a_start_before_each_text():
    assert byte_lm.stream(["ab", "", "c"]).tolist() == [START, 97, 98, START, START, 99]


def test_counting_baselines_by_hand():
    """Stream: start a b start a a. Smoothed unigram: (count + 0.1) / (6 + 25.7)."""
    tokens = byte_lm.stream(["ab", "aa"])
    single = byte_lm.unigram(tokens)
    assert single[5, 97] == pytest.approx(math.log(3.1 / 31.7))
    assert single[5, 7] == pytest.approx(math.log(0.1 / 31.7))
    pair = byte_lm.bigram(tokens)
    prior = 25.7  # spread over all tokens as the unigram has them
    assert pair[START, 97] == pytest.approx(math.log((2 + prior * 3.1 / 31.7) / (2 + prior)))
    assert pair[98, START] == pytest.approx(math.log((1 + prior * 2.1 / 31.7) / (1 + prior)))
    for table in (single, pair):
        assert np.exp(table).sum(1) == pytest.approx(np.ones(VOCABULARY))
    result = byte_lm.evaluate_table(pair, ["a"])
    assert result.nats_per_token == pytest.approx(-pair[START, 97])


@pytest.fixture
def one_thread():
    """Products as small as these only wait for one another on several threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("one_thread")
def test_training_learns_and_repeats():
    """A few steps on a text that alternates: better than counting single bytes, the same twice, another by seed."""
    tokens = byte_lm.stream(["abababababab" * 40])
    models = [byte_lm.train(tokens, seed, steps=20, batch=2) for seed in (0, 0, 1)]
    first, again, other = (byte_model.evaluate(model, ["ab" * 20]).nats_per_token for model in models)
    assert first == again != other
    assert first < math.log(2)


def test_shipped_numbers_come_out_again(committed):
    values, _ = committed
    result = byte_model.evaluate(byte_model.load(), byte_model.prose())
    for metric, number in byte_lm.NUMBERS.items():
        assert values["GRU, shipped", "0", "own prose", metric] == pytest.approx(number(result), rel=1e-4), metric


def test_baselines_come_out_again_where_the_docstrings_are_the_same(committed):
    values, record = committed
    tokens = byte_lm.stream(byte_lm.texts_of("train"))
    if int((tokens != START).sum()) != values["GRU", "", "apidocs train", "bytes"]:
        pytest.skip("other versions of the documented libraries than were measured")
    for name, table in (("unigram", byte_lm.unigram(tokens)), ("bigram", byte_lm.bigram(tokens))):
        for texts, held_out in byte_lm.held_out().items():
            again = byte_lm.evaluate_table(table, held_out).nats_per_token
            assert values[name, "", texts, "nats per byte"] == pytest.approx(again, rel=1e-9)
    assert record["settings"] == byte_lm.MEASUREMENT.settings


def test_nothing_that_is_scored_was_trained_on():
    train, held_out = set(byte_lm.texts_of("train")), byte_lm.held_out()["apidocs test"]
    assert len(held_out) == byte_lm.HELD_OUT
    assert not [text for text in held_out if any(other.startswith(text) for other in train)]


def test_what_the_book_may_say_of_the_numbers(committed):
    values, _ = committed
    for texts in ("apidocs test", "own prose"):
        uniform, single, pair, gru = (
            values[name, seed, texts, "perplexity per byte"]
            for name, seed in (("uniform", ""), ("unigram", ""), ("bigram", ""), ("GRU, shipped", "0"))
        )
        assert uniform == pytest.approx(VOCABULARY)
        assert uniform > single > pair > gru
        shipped = values["GRU, shipped", "0", texts, "nats per byte"]
        assert shipped == pytest.approx(values["GRU", "0", texts, "nats per byte"], rel=1e-6)
        bits = values["GRU, shipped", "0", texts, "bits per byte"]
        assert bits == pytest.approx(shipped / math.log(2))
        total = bits * values["GRU, shipped", "0", texts, "bytes"]
        assert values["GRU, shipped", "0", texts, "bits per word"] == pytest.approx(
            total / values["GRU, shipped", "0", texts, "words"]
        )
    assert {seed for model, seed, _, _ in values if model == "GRU"} == {"", "0", "1", "2"}


# perplexity-peers


@pytest.fixture(scope="module")
def peers():
    return read(MEASURED / "perplexity_peers.csv")[0]


def test_peers_come_out_again(peers):
    again = list(perplexity_peers.measure_ways(byte_model.load(), byte_model.prose()[: perplexity_peers.TEXTS]))
    assert len(again) == len(peers)
    for now, before in zip(again, peers, strict=True):
        assert (now["library"], now["call"], now["why"]) == (before["library"], before["call"], before["why"])
        assert now["perplexity"] == pytest.approx(float(before["perplexity"]), rel=1e-4), before


def test_what_is_called_right_is_right_and_the_rest_is_not(peers):
    ratios = {(r["library"], r["call"]): float(r["over the right one"]) for r in peers}
    for row in peers:
        ratio = ratios[row["library"], row["call"]]
        if row["why"] == perplexity_peers.RIGHT:
            exact = row["call"].startswith("Evaluator")
            # batches of another shape multiply in another order, in float32
            assert ratio == pytest.approx(1, rel=1e-5 if exact else 1e-4), row
        else:
            assert not abs(ratio - 1) < 0.005, row
    assert ratios["torchmetrics Perplexity", "shifted, one byte less likely by 200 nats"] == math.inf
    assert math.isfinite(ratios["losslab", "one byte less likely by 200 nats"])
    # An index from the end, so a number without an error, of any vocabulary of 100 and more.
    assert 100 < ratios["torchmetrics Perplexity", "shifted, -100 at padding, no ignore_index"] < math.inf
    assert ratios["F.cross_entropy", "exp(sum / all positions)"] < 1  # it flatters


def test_ways_by_hand():
    """Two texts, a model that knows nothing: every right way gives 257, whatever the padding."""
    model = byte_model.ByteModel(2, 2)
    for parameter in model.parameters():
        parameter.data.zero_()
    table = list(perplexity_peers.measure_ways(model, ["ab", "c"]))
    for row in table:
        if row["why"] == perplexity_peers.RIGHT:
            assert row["perplexity"] == pytest.approx(257, rel=1e-5), row
    named = {row["call"]: row["perplexity"] for row in table}
    assert named["2 ** nats"] == pytest.approx(2 ** math.log(257), rel=1e-5)
    assert named["exp(sum / all positions)"] == pytest.approx(257**0.75, rel=1e-5)  # 3 bytes over 4 positions
