"""The contestants compute the same thing, the instruments measure, and the committed record keeps its word."""

from pathlib import Path

import pytest
import torch

from losslab.measure import info_nce_speed as speed
from losslab.measure import read

MEASURED = Path(__file__).parents[2] / "data" / "measured" / "info_nce_speed.csv"


def test_all_contestants_give_one_value_and_one_gradient():
    queries, documents = speed.pairs(12)
    results = []
    for loss in speed.contestants(12).values():
        value = loss(queries, documents)
        results.append((value.item(), torch.autograd.grad(value, (queries, documents))))
    assert len(results) == 6
    for value, gradients in results[1:]:
        assert value == pytest.approx(results[0][0], rel=1e-4)  # the loss is small, and the others' float32 shows
        for got, want in zip(gradients, results[0][1], strict=True):
            assert (got - want).abs().max() <= 1e-4 * want.abs().max()


def test_every_ratio_is_of_the_medians_beside_it():
    table = {(r["implementation"], r["metric"]): r["value"] for r in speed.times(8, runs=2)}
    for name in speed.contestants(8):
        expected = table["losslab", "median time"] / table[name, "median time"]
        assert table[name, "losslab's time as a share of this"] == pytest.approx(expected)
        assert 0 < table[name, "shortest time"] <= table[name, "median time"]


def test_memory_counts_the_score_matrix():
    """At 2048 pairs it is 16.8 MB in float32; chunks of 256 hold an eighth of it."""
    matrix = 2048 * 2048 * 4
    whole, chunked = speed.memory(2048, None), speed.memory(2048, 256)
    assert matrix < whole < 5 * matrix
    assert chunked < whole - matrix / 2


def test_chunks_give_the_same_gradient_from_every_start():
    for dtype, bound in ((torch.float32, 1e-5), (torch.float64, 1e-12)):
        for alike in (None, 1e-2):
            assert speed.differences(600, alike, dtype)[1] <= bound


@pytest.fixture(scope="module")
def committed():
    table, _ = read(MEASURED)
    return {(r["implementation"], int(r["batch"]), r["metric"]): float(r["value"]) for r in table}


def test_the_record_keeps_its_word_on_memory_and_gradients(committed):
    assert committed["losslab, in chunks", 8192, "peak memory as a share of the whole matrix's"] <= 1 / 4
    for (_, _, metric), value in committed.items():
        if metric.startswith("largest difference"):
            assert value <= (1e-12 if "float64" in metric else 1e-5)
        if metric.startswith("value less ln B") and "all alike" in metric:
            assert abs(value) < 0.01  # that it did start near ln B


@pytest.mark.parametrize("batch", speed.BATCHES)
def test_the_record_keeps_its_word_on_time(committed, batch):
    metric = "losslab's time as a share of this"
    assert committed["MultipleNegativesRankingLoss, tensor lines", batch, metric] <= 1.05
    if batch <= speed.LARGEST_FOR_NT_XENT:
        assert committed["NTXentLoss", batch, metric] <= 1
