"""The contrastive chapters' experiments: by hand where that is small, and committed results come out again."""

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from losslab.corpora import apidocs
from losslab.measure import batch_width, false_negatives, logit_resolution, read, temperature
from losslab.measure.trained_head import Recipe, Task, apidocs_task, compare, evaluate, run, train

MEASURED = Path(__file__).parents[2] / "data" / "measured"


def number(stem, **conditions):
    wanted = {column.replace("_", " "): str(value) for column, value in conditions.items()}
    (row,) = [row for row in read(MEASURED / f"{stem}.csv")[0] if wanted.items() <= row.items()]
    return float(row["value"])


# false-negatives


def test_counts_against_every_batch_there_is():
    related = np.zeros((6, 6), dtype=bool)
    related[0, 1] = related[1, 0] = related[0, 2] = True
    np.fill_diagonal(related, True)  # must not count
    some, all_, batches = 0, 0, list(itertools.combinations(range(6), 3))
    for batch in batches:
        false = [sum(related[i, j] for j in batch if j != i) for i in batch]
        some, all_ = some + sum(f > 0 for f in false) / 3, all_ + sum(false)
    counted = false_negatives.count(related, 3, batches=4000)
    assert counted["at least one"] == pytest.approx(some / len(batches), abs=0.01)
    assert counted["a batch"] == pytest.approx(all_ / len(batches), abs=0.03)
    assert counted["a query"] == pytest.approx(counted["a batch"] / 3)
    assert counted["at least one lo"] < some / len(batches) < counted["at least one hi"]
    width = counted["at least one hi"] - counted["at least one lo"]
    shares = [sum(any(related[i, j] for j in batch if j != i) for i in batch) / 3 for batch in batches]
    assert width == pytest.approx(2 * 1.96 * np.std(shares) / math.sqrt(4000), rel=0.05)
    assert counted["formula"] == pytest.approx(1 - (1 - 3 / 30) ** 2)
    assert counted["by query"] == pytest.approx(some / len(batches))  # exact, and here everything can be enumerated
    assert counted["by query"] < counted["formula"]  # clumps: 1 − (1 − ρ)^(B − 1) is concave in ρ


@pytest.mark.parametrize("width", [1, 7])
def test_a_width_that_cannot_be_drawn_is_refused(width):
    with pytest.raises(ValueError, match=f"width must be from 2 to the 6 pairs there are, got {width}"):
        false_negatives.count(np.zeros((6, 6), dtype=bool), width)


def test_counts_come_out_again():
    corpus = apidocs.load()
    related = (corpus.summary_group[:, None] == corpus.summary_group) | (
        corpus.document_group[:, None] == corpus.document_group
    )
    again = false_negatives.count(related, 256)
    for metric, value in again.items():
        conditions = {"corpus": "apidocs", "right_if": "same summary or document", "batch": 256, "metric": metric}
        assert number("false_negatives", **conditions) == pytest.approx(value, rel=1e-9)


# logit-resolution


def bfloat16(value):
    """Round to eight significant bits, ties to even, by arithmetic."""
    if value == 0:
        return 0.0
    unit = 2.0 ** (math.floor(math.log2(abs(value))) - 7)
    return round(value / unit) * unit  # Python rounds halves to even


@pytest.mark.parametrize("route", logit_resolution.ROUTES)
def test_resolution_by_hand(route):
    cosines = [[0.7, 0.6999, 0.2], [0.1, 0.4, 0.4001], [0.31, 0.3, 0.9]]
    got = logit_resolution.resolve(torch.tensor(cosines, dtype=torch.float64), 0.25, torch.bfloat16, route)
    if route == "logits":
        rounded = [[bfloat16(c / 0.25) for c in row] for row in cosines]
    else:
        rounded = [[bfloat16(bfloat16(c) / 0.25) for c in row] for row in cosines]
    tied = [any(rounded[i][j] == rounded[i][i] for j in range(3) if j != i) for i in range(3)]
    assert tied == [True, True, False]
    assert got["tied with the positive"] == pytest.approx(2 / 3)
    assert got["spacing"] == 2.0 ** (1 - 7)  # the largest logit is 3.6

    def loss(row, i, scale=1.0):
        return math.log(sum(math.exp(x * scale) for x in row)) - row[i] * scale

    errors = [abs(loss(rounded[i], i) - loss(cosines[i], i, 4)) for i in range(3)]
    assert got["loss error"] == pytest.approx(sum(errors) / 3, rel=1e-9)
    assert got["loss error max"] == pytest.approx(max(errors), rel=1e-9)


def test_resolution_comes_out_again():
    cosines = logit_resolution.batch()
    for form in ("bfloat16", "float16"):
        again = logit_resolution.resolve(cosines, 0.02, logit_resolution.FORMATS[form])
        for metric, value in again.items():
            conditions = {"temperature": 0.02, "format": form, "rounded": "logits", "metric": metric}
            assert number("logit_resolution", **conditions) == pytest.approx(value, rel=1e-6, abs=1e-9)


# temperature and batch-width


@pytest.fixture(scope="module")
def small():
    """Forty pairs whose documents are the queries, turned a little."""
    noise = torch.Generator().manual_seed(0)
    queries = torch.nn.functional.normalize(torch.randn(40, 8, generator=noise), dim=1)
    documents = torch.nn.functional.normalize(queries.roll(1, 1) + 0.02 * torch.randn(40, 8, generator=noise), dim=1)
    return Task(
        name="small",
        queries=queries[:30],
        documents=documents[:30],
        held_out=queries[30:],
        candidates=documents,
        relevant=[np.array([i]) for i in range(30, 40)],
        pair_groups=np.stack([np.arange(30) // 2, np.arange(30) // 3], axis=1),
        slices={"all": np.arange(10), "first": np.arange(3)},
    )


def test_a_head_learns_what_there_is_to_learn(small):
    before = evaluate(small)["ndcg@10"].mean()
    after = run(small, Recipe(batch=10, temperature=0.1, rate=3e-2))["ndcg@10"].mean()
    assert before < 0.2 < 0.35 < after  # the turn by one place is a matrix, and can be learnt from thirty pairs in part


def test_the_same_seed_gives_the_same_head(small):
    recipe = Recipe(batch=10, temperature=0.1, rate=1e-2, budget="updates")
    assert torch.equal(train(small, recipe), train(small, recipe))
    assert not torch.equal(train(small, recipe), train(small, recipe.with_seed(1)))


def test_a_batch_wider_than_the_data_is_refused(small):
    with pytest.raises(ValueError, match="batch must be from 2 to 30, the pairs of small, got 31"):
        train(small, Recipe(batch=31, temperature=0.1, rate=1e-3))


def test_masks_spare_what_they_say(small):
    rows = np.arange(30)
    assert batch_width.mask(small, "none") is None
    same = batch_width.mask(small, "same text")(rows)
    near = batch_width.mask(small, "near")(rows)
    for i, j in itertools.product(range(30), range(30)):
        related = i // 2 == j // 2 or i // 3 == j // 3
        assert same[i, j].item() == (i == j or not related)
        close = max(small.queries[i] @ small.queries[j], small.documents[i] @ small.documents[j]) >= 0.9
        assert near[i, j].item() == (i == j or not (related or close))


def test_rows_of_a_comparison_are_means_and_paired_differences(small):
    ours = {seed: {"ndcg@10": np.linspace(0, 1, 10) + seed / 10, "mrr": np.full(10, seed)} for seed in (0, 1)}
    other = {"ndcg@10": np.full(10, 0.25), "mrr": np.zeros(10)}
    rows = list(compare(ours, {"frozen": other}, small, {"corpus": "small"}))

    def value(seed, slice_, metric):
        (row,) = [r for r in rows if (r["seed"], r["slice"], r["metric"]) == (seed, slice_, metric)]
        assert row["corpus"] == "small"
        return row

    assert value(1, "all", "ndcg@10")["value"] == pytest.approx(0.6)
    assert value(None, "all", "ndcg@10")["value"] == pytest.approx(0.55)
    assert value(None, "first", "ndcg@10")["value"] == pytest.approx(1 / 9 + 0.05)
    gain = value(None, "all", "ndcg@10 over frozen")
    assert gain["value"] == pytest.approx(0.3)
    assert gain["lo"] < 0.3 < gain["hi"]


def test_the_usual_temperature_comes_out_again():
    """One run of the grid. Other processors round otherwise, and ten passes let that grow: hence a third decimal."""
    task = apidocs_task("test")
    grid = [row for row in read(MEASURED / "temperature.csv")[0] if row["temperature"] == "0.05"]
    (row,) = [
        r for r in grid if (r["corpus"], r["slice"], r["metric"], r["seed"]) == ("apidocs", "all", "ndcg@10", "0")
    ]
    again = run(task, Recipe(temperature.BATCH, 0.05, float(row["rate"]), seed=0))
    assert again["ndcg@10"].mean() == pytest.approx(float(row["value"]), abs=0.004)
    frozen = number("temperature", corpus="apidocs", temperature="", slice="all", metric="ndcg@10", seed="")
    assert evaluate(task)["ndcg@10"].mean() == pytest.approx(frozen, abs=1e-6)


def test_a_planted_fault_in_the_head_would_show(small, monkeypatch):
    """The guard above can fail: a loss with documents out of step teaches the head nothing."""
    from losslab.measure import trained_head

    right = trained_head.info_nce
    monkeypatch.setattr(trained_head, "info_nce", lambda q, d, **more: right(q, d.roll(1, 0), **more))
    after = run(small, Recipe(batch=10, temperature=0.1, rate=3e-2))["ndcg@10"].mean()
    assert after < 0.25
