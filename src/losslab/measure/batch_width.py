"""Batch width, with false negatives in and with them masked: heads trained alike, and what they retrieve."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from losslab.losses.false_negatives import above_threshold, exact_duplicates
from losslab.measure.record import Measurement, Progress, Row
from losslab.measure.trained_head import (
    EPOCHS,
    RATES,
    UPDATES,
    Budget,
    Mask,
    Recipe,
    Task,
    chosen_rate,
    compare,
    evaluate,
    over_seeds,
    run,
    tasks,
)

CONDITIONS = ("corpus", "budget", "batch", "mask", "rate")
WIDTHS = (16, 32, 64, 128, 256, 512, 1024)
SEEDS = (0, 1, 2)
TEMPERATURE = 0.05
NEAR = 0.9
MASKS = ("none", "same text", "near")
BUDGETS: tuple[Budget, ...] = ("examples", "updates")


def mask(task: Task, name: str) -> Mask | None:
    """Which pairs of a batch are spared as negatives.

    ``"none"``: none. ``"same text"``: those with the query's own summary, or with its positive's text. ``"near"``: also
    those whose query or document has a cosine above 0.9 with the query's own, by the frozen embeddings.
    """
    if name == "none":
        return None

    def same_text(rows: NDArray[np.int64]) -> Tensor:
        queries, documents = torch.from_numpy(task.pair_groups[rows]).T
        return exact_duplicates(queries) & exact_duplicates(documents)

    def near(rows: NDArray[np.int64]) -> Tensor:
        queries, documents = task.queries[rows], task.documents[rows]
        unlike = above_threshold(queries @ queries.T, NEAR) & above_threshold(documents @ documents.T, NEAR)
        return same_text(rows) & unlike

    return {"same text": same_text, "near": near}[name]


def collect(progress: Progress) -> Iterator[Row]:
    """Every width, mask and budget on both corpora."""
    validation, *held_out = tasks()
    rates = {}
    for budget in BUDGETS:
        for width in WIDTHS:
            rates[budget, width] = chosen_rate(validation, Recipe(width, TEMPERATURE, RATES[0], budget))
            progress(f"{budget}, width {width}: learning rate {rates[budget, width]}, chosen on {validation.name}")
    for task in held_out:
        frozen = evaluate(task)
        yield from compare({0: frozen}, {}, task, dict.fromkeys(CONDITIONS) | {"corpus": task.name})
        for budget in BUDGETS:
            for width in (w for w in WIDTHS if w <= len(task.queries)):
                recipe = Recipe(width, TEMPERATURE, rates[budget, width], budget)
                others = {"frozen": frozen}
                for name in MASKS:
                    progress(f"{task.name}, {budget}, width {width}, mask {name}")
                    runs = {seed: run(task, recipe.with_seed(seed), mask(task, name)) for seed in SEEDS}
                    of = (task.name, budget, width, name, recipe.rate)
                    yield from compare(runs, others, task, dict(zip(CONDITIONS, of, strict=True)))
                    others.setdefault("no mask", over_seeds(runs))  # the first of `MASKS`


MEASUREMENT = Measurement(
    name="batch-width",
    title="Held-out retrieval of heads trained at batch widths 16 to 1024, with and without masking false negatives",
    columns=(*CONDITIONS, "seed", "slice", "metric", "value", "lo", "hi"),
    collect=collect,
    settings={
        "temperature": TEMPERATURE,
        "epochs": EPOCHS,
        "updates": UPDATES,
        "seeds": list(SEEDS),
        "rates tried": list(RATES),
        "near": NEAR,
    },
)
