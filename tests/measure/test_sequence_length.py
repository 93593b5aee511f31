"""One model read at several lengths: by a model of letters what must come out, and the committed rows hold together."""

from pathlib import Path

import numpy as np
import pytest

from losslab.measure import read
from losslab.measure import sequence_length as module
from losslab.measure.sequence_length import Texts, apidocs_texts, measure, token_counts

MEASURED = Path(__file__).parents[2] / "data" / "measured" / "sequence_length.csv"


@pytest.fixture(scope="module")
def committed():
    return read(MEASURED)[0]


@pytest.fixture
def texts():
    """Thirty documents whose first ten letters say nothing; what a query asks for comes after them."""
    random = np.random.default_rng(0)
    tails = [" ".join(random.choice(list("klmnopqrstuvwxyz"), 6)) for _ in range(30)]
    # the first letter differs, as documents all alike have no axis to be reduced to
    documents = [f"{random.choice(list('abcde'))} b c d e f g h i j {tail}" for tail in tails]
    return Texts("letters", tails, documents, [np.array([i]) for i in range(30)])


@pytest.fixture
def rows(texts, tiny_model, monkeypatch):
    monkeypatch.setattr(module, "RESAMPLES", 50)
    said = []
    found = list(measure(texts, (8, 32), tiny_model, said.append, dims=(4, 16)))
    assert len(said) == 3
    return found


def value(table, length, metric, **conditions):
    wanted = {"max_seq_length": length, "metric": metric, "reduction": None, "dim": None, **conditions}
    (row,) = [row for row in table if wanted.items() <= row.items()]
    return row["value"]


def test_what_is_not_read_is_not_found(rows):
    # one token a letter and two special ones: 18 in a document, of which 8 tokens are six letters that say nothing
    assert value(rows, 8, "cut off") == 1
    assert value(rows, 32, "cut off") == 0
    assert (value(rows, 8, "tokens read"), value(rows, 32, "tokens read")) == (8, 18)
    # an order that knows nothing of the query: 0.15 on average over orders
    assert value(rows, 8, "ndcg@10") < 0.3
    assert value(rows, 32, "ndcg@10") > 0.5
    drop = value(rows, 8, "ndcg@10") - value(rows, 32, "ndcg@10")
    assert value(rows, 8, "ndcg@10 over 32") == pytest.approx(drop, abs=2e-6)


def test_what_the_mixture_says_follows_from_its_parts(rows):
    for reduction in ("prefix", "PCA"):
        for dim in (4, 16):
            of = {"reduction": reduction, "dim": dim}
            short, long = (value(rows, length, "ndcg@10", **of) for length in (8, 32))
            assert value(rows, 8, "ndcg@10 over 32", **of) == pytest.approx(short - long, abs=2e-6)
            kept = [value(rows, length, "retention", **of) for length in (8, 32)]
            assert value(rows, 8, "retention over 32", **of) == pytest.approx(kept[0] - kept[1], abs=2e-6)
    assert not [row for row in rows if row["max_seq_length"] == 32 and "over" in row["metric"]]


def test_time_is_of_encoding_anew(rows):
    """Nothing comes from a store of an earlier run, and the share is that of the times beside it."""
    times = {length: value(rows, length, "encoding time") for length in (8, 32)}
    assert min(times.values()) > 0
    share = value(rows, 8, "encoding time as a share of that at 32")
    assert share == pytest.approx(times[8] / times[32], rel=1e-2)


def test_tokens_are_counted_uncut(tiny_model):
    assert token_counts(["a b c", "a " * 100], tiny_model).tolist() == [5, 102]


def test_the_texts_are_apidocs_and_fewer_on_request():
    texts = apidocs_texts(40)
    assert len(texts.queries) == len(texts.documents) == len(texts.relevant) == 40
    assert all(own in right for own, right in enumerate(texts.relevant))


def test_committed_numbers_hold_together(committed):
    def of(length, metric):
        (row,) = [r for r in committed if (r["max_seq_length"], r["metric"], r["dim"]) == (str(length), metric, "")]
        return float(row["value"])

    lengths = module.LENGTHS
    counts = token_counts(apidocs_texts().documents, module.locate(module.MINILM)) if has_model() else None
    for length in lengths:
        share = of(length, "encoding time as a share of that at 256")
        assert share == pytest.approx(of(length, "encoding time") / of(256, "encoding time"), abs=1e-5)
        if counts is not None:
            assert of(length, "cut off") == pytest.approx((counts > length).mean(), abs=1e-6)
            assert of(length, "tokens read") == pytest.approx(np.minimum(counts, length).mean(), abs=1e-4)
    shares = [of(length, "encoding time as a share of that at 256") for length in lengths]
    assert shares == sorted(shares)
    found = [of(length, "ndcg@10") for length in lengths]
    assert found == sorted(found)


def test_the_trap_is_there(committed):
    """The chapter's claim: the same weights at 75 tokens retain more of themselves than at 256, significantly."""
    rows = [r for r in committed if r["max_seq_length"] == "75" and r["metric"] == "retention over 256"]
    lows = {(r["reduction"], int(r["dim"])): float(r["lo"]) for r in rows}
    assert all(lows["prefix", dim] > 0 for dim in (16, 32, 64))


def has_model():
    import importlib.util

    return importlib.util.find_spec(module.MINILM.package[0]) is not None
