"""The controlled pair: by hand where that is small, and committed results come out again."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

from losslab.losses import info_nce
from losslab.measure import matryoshka_pair as pair
from losslab.measure import read
from losslab.measure.matryoshka_pair import Contestant, compare, evaluate, make_head, objective, trained
from losslab.measure.trained_head import Task, apidocs_task

MEASURED = Path(__file__).parents[2] / "data" / "measured" / "matryoshka_pair.csv"


def rows(**conditions):
    wanted = {column: str(value) for column, value in conditions.items()}
    return [row for row in read(MEASURED)[0] if wanted.items() <= row.items()]


def row(**conditions):
    (found,) = rows(**conditions)
    return found


def number(**conditions):
    return float(row(**conditions)["value"])


@pytest.fixture(scope="module")
def small():
    """Forty pairs in eight dimensions; what tells them apart lies in the last four."""
    noise = torch.Generator().manual_seed(0)
    told = torch.randn(40, 4, generator=noise)
    queries = normalize(torch.cat([0.1 * torch.randn(40, 4, generator=noise), told], 1), dim=1)
    documents = normalize(torch.cat([0.1 * torch.randn(40, 4, generator=noise), told], 1), dim=1)
    return Task(
        name="small",
        queries=queries[:30],
        documents=documents[:30],
        held_out=queries[30:],
        candidates=documents,
        relevant=[np.array([i]) for i in range(30, 40)],
        pair_groups=np.stack([np.arange(30)] * 2, axis=1),
        slices={"all": np.arange(10)},
    )


@pytest.mark.parametrize("head", pair.HEADS)
def test_a_head_starts_as_the_identity(head):
    torch.manual_seed(0)
    given = torch.randn(5, 12)
    for seed in (0, 1):
        parameters, embed = make_head(head, 12, seed)
        assert torch.equal(embed(given), given)
        assert all(parameter.requires_grad for parameter in parameters)


def test_the_two_objectives_differ_in_the_sizes_alone():
    torch.manual_seed(0)
    queries, documents = torch.randn(2, 6, 8).double()
    plain, nested = (objective(loss, (8, 4))(queries, documents, temperature=0.1).item() for loss in pair.LOSSES)
    halves = info_nce(queries[:, :4], documents[:, :4], temperature=0.1).item()
    assert plain == info_nce(queries, documents, temperature=0.1).item()
    assert nested == pytest.approx(plain + halves, rel=1e-12)


def test_the_nested_loss_moves_forward_what_the_plain_one_leaves_behind(small, monkeypatch):
    monkeypatch.setattr(pair, "UPDATES", 60)
    only, dims = {"prefix": "prefix"}, (8, 4)
    scores = {
        loss: evaluate(small, trained(small, Contestant(loss, "linear", 3e-2), dims=dims, batch=10), only, dims)
        for loss in pair.LOSSES
    }
    frozen = evaluate(small, None, only, dims)
    assert frozen["prefix", 4].mean() < 0.6 < frozen["prefix", 8].mean()
    assert scores["nested"]["prefix", 4].mean() > scores["plain"]["prefix", 4].mean() + 0.1


def test_rows_are_means_ratios_and_paired_differences():
    keys = [(name, dim) for name in pair.REDUCTIONS for dim in (4, 2)]
    ours = {seed: {key: np.full(10, 0.4 + seed / 10 + (key[1] == 4) / 5) for key in keys} for seed in (0, 1)}
    frozen = {key: np.linspace(0, 0.4, 10) for key in keys}
    plain = {key: np.full(10, {"prefix": 0.1, "SVD": 0.2, "PCA": 0.3}[key[0]]) for key in keys}
    table = list(compare(ours, frozen, plain, {"corpus": "small"}))

    def value(seed, metric, reduction="prefix", dim=2):
        found = [
            r for r in table if (r["seed"], r["metric"], r["reduction"], r["dim"]) == (seed, metric, reduction, dim)
        ]
        assert len(found) == 1
        return found[0]

    assert value(1, "ndcg@10")["value"] == pytest.approx(0.5)
    assert value(None, "ndcg@10")["value"] == pytest.approx(0.45)
    assert value(None, "retention")["value"] == pytest.approx(0.45 / 0.65)
    for name, difference in (("plain prefix", 0.35), ("plain SVD", 0.25), ("plain PCA", 0.15), ("frozen PCA", 0.25)):
        assert value(None, f"ndcg@10 over {name}")["value"] == pytest.approx(difference)
    gain = value(None, "ndcg@10 over frozen SVD", "PCA")
    assert gain["lo"] < 0.25 < gain["hi"]
    assert {r["metric"] for r in compare(ours, None, None, {})} == {"ndcg@10", "retention"}


# --- What was committed


def test_the_frozen_embeddings_come_out_again():
    again = evaluate(apidocs_task("test"), None, {"prefix": "prefix", "SVD": "svd"}, (64, 16))
    for (reduction, dim), scores in again.items():
        committed = number(corpus="apidocs", loss="", reduction=reduction, dim=dim, seed="", metric="ndcg@10")
        assert scores.mean() == pytest.approx(committed, abs=1e-6)


def test_one_nested_head_comes_out_again():
    """Other processors round otherwise, and three hundred steps let that grow: hence a third decimal."""
    task = apidocs_task("test")
    committed = {"corpus": "apidocs", "loss": "nested", "head": "linear", "reduction": "prefix", "metric": "ndcg@10"}
    rate = float(row(**committed, dim=32, seed=0)["rate"])
    again = evaluate(task, trained(task, Contestant("nested", "linear", rate)), {"prefix": "prefix"}, (32,))
    assert again["prefix", 32].mean() == pytest.approx(number(**committed, dim=32, seed=0), abs=0.006)


@pytest.mark.parametrize("corpus", ["apidocs", "SciFact"])
@pytest.mark.parametrize("head", pair.HEADS)
def test_what_the_table_says_of_the_pair(corpus, head):
    """Nesting helps the prefix at small sizes; SVD of the plainly trained head does at least as well without it."""
    nested = {"corpus": corpus, "loss": "nested", "head": head, "reduction": "prefix", "seed": ""}
    for dim in (32, 16):
        assert float(row(**nested, dim=dim, metric="ndcg@10 over plain prefix")["lo"]) > 0
    for dim in (256, 128, 64, 32):
        assert float(row(**nested, dim=dim, metric="ndcg@10 over plain SVD")["hi"]) < 0


def test_only_one_corpus_has_the_nested_prefix_above_what_was_not_trained():
    nested = {"loss": "nested", "head": "linear", "reduction": "prefix", "seed": ""}
    for dim in (256, 128, 64, 32, 16):
        for other in ("frozen SVD", "frozen PCA"):
            assert float(row(**nested, corpus="apidocs", dim=dim, metric=f"ndcg@10 over {other}")["lo"]) > 0
            assert float(row(**nested, corpus="SciFact", dim=dim, metric=f"ndcg@10 over {other}")["hi"]) < 0
