"""Both ways compute the same, the instrument measures, and the committed record keeps its word."""

from pathlib import Path

import pytest

from losslab.measure import read
from losslab.measure.token_nll_memory import CHUNKED, FULL, TOKENS, VOCABULARY, compare

MEASURED = Path(__file__).parents[2] / "data" / "measured" / "token_nll_memory.csv"
SHARE = "peak memory as a share of full logits'"


@pytest.fixture(scope="module")
def small():
    return {(r["implementation"], r["metric"]): r["value"] for r in compare(512, 8000, 64, runs=1)}


def test_value_and_gradients_are_those_of_full_logits(small):
    assert small[CHUNKED, "loss"] == pytest.approx(small[FULL, "loss"], rel=1e-6)
    assert small[CHUNKED, "difference of losses"] <= 1e-6
    for name in ("hidden", "weight"):
        assert small[CHUNKED, f"largest difference of {name} gradients"] <= 1e-5


def test_memory_counts_the_logits(small):
    """16.4 MB in float32: with their softmax and gradient full logits hold three or four of them at once."""
    logits = 512 * 8000 * 4
    assert 2 * logits < small[FULL, "peak memory"] < 8 * logits
    assert small[CHUNKED, SHARE] == pytest.approx(small[CHUNKED, "peak memory"] / small[FULL, "peak memory"])
    share = small[CHUNKED, "shortest time"] / small[FULL, "shortest time"]
    assert small[CHUNKED, "time as a share of full logits'"] == pytest.approx(share)


def test_the_record_keeps_its_word():
    table, record = read(MEASURED)
    sizes = {(int(r["tokens"]), int(r["vocabulary"]), int(r["width"])) for r in table}
    assert sizes == {(TOKENS, VOCABULARY, 256)} == {(8192, 128_000, 256)}
    assert record["settings"]["threads"] == 2
    value = {r["metric"]: float(r["value"]) for r in table if r["implementation"] == CHUNKED}
    assert value[SHARE] <= 1 / 10
    assert value["time as a share of full logits'"] <= 1.5
    assert value["difference of losses"] <= 1e-6
    for name in ("hidden", "weight"):
        assert value[f"largest difference of {name} gradients"] <= 1e-5
