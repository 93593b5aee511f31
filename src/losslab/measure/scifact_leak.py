"""What SciFact's train split gives away of its test split: a head trained on all of it, and on what is apart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from losslab.corpora import scifact
from losslab.measure.record import Measurement, Progress, Row
from losslab.measure.trained_head import EPOCHS, Recipe, Task, compare, evaluate, run, scifact_task

SEEDS = (0, 1, 2)
RECIPE = Recipe(batch=256, temperature=0.05, rate=1e-3)


def leaking_task(data: scifact.SciFact) -> Task:
    """The usual SciFact task, but trained on every pair of the train split."""
    query_rows, document_rows = data.training_pairs(disjoint=False)
    return replace(
        scifact_task(),
        queries=data.queries[query_rows],
        documents=data.documents[document_rows],
        pair_groups=np.stack([query_rows, document_rows], axis=1),
    )


def collect(progress: Progress) -> Iterator[Row]:
    """Both training sets; the test queries all, those that share a document with the train split, and the others."""
    data = scifact.load()
    leak = data.leak()
    slices = {
        "all": np.arange(len(leak.sharing_document)),
        "sharing a document": np.flatnonzero(leak.sharing_document),
        "clean": np.flatnonzero(~leak.sharing_document),
    }
    yield {"trained on": None, "pairs": None, "seed": None, "slice": "near a training query"} | {
        "metric": "queries",
        "value": float(leak.near_query.sum()),
        "lo": None,
        "hi": None,
    }
    whole, apart = replace(leaking_task(data), slices=slices), replace(scifact_task(), slices=slices)
    for name, rows in slices.items():
        of = {"trained on": None, "pairs": None, "seed": None, "slice": name}
        yield of | {"metric": "queries", "value": float(len(rows)), "lo": None, "hi": None}
    frozen = evaluate(whole)
    yield from compare({0: frozen}, {}, whole, {"trained on": "nothing", "pairs": 0})
    for name, task in {"all pairs": whole, "document-disjoint pairs": apart}.items():
        progress(f"trained on {name}")
        runs = {seed: run(task, RECIPE.with_seed(seed)) for seed in SEEDS}
        yield from compare(runs, {"frozen": frozen}, task, {"trained on": name, "pairs": len(task.queries)})


MEASUREMENT = Measurement(
    name="scifact-leak",
    title="A head trained on all of SciFact's train split, and on what shares no document with the test split",
    columns=("trained on", "pairs", "seed", "slice", "metric", "value", "lo", "hi"),
    collect=collect,
    settings={
        "seeds": list(SEEDS),
        "epochs": EPOCHS,
        "batch": RECIPE.batch,
        "temperature": RECIPE.temperature,
        "rate": RECIPE.rate,
    },
)
