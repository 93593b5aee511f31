"""A controlled pair: heads trained alike but for the loss, plain or nested, and what is left when they are cut short.

Same frozen embeddings, pairs, batches, order and number of steps. Only the objective differs: InfoNCE of the whole
embedding, or its sum over six prefixes; and the learning rate, chosen for each of them. Both are then reduced by
prefix, SVD and PCA, and so are the frozen embeddings, on which nothing was trained.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import gelu, normalize

from losslab import retrieval
from losslab.losses import info_nce, matryoshka
from losslab.measure.record import Measurement, Progress, Row, Value
from losslab.measure.trained_head import RESAMPLES, Recipe, Task, optimise, tasks
from losslab.retrieval.reductions import Kind

Floats = NDArray[np.float64]
Embed = Callable[[Tensor], Tensor]
#: nDCG@10 of each query, (Q,), by reduction and size.
Scores = Mapping[tuple[str, int], Floats]

DIMS = (384, 256, 128, 64, 32, 16)
SEEDS = (0, 1, 2)
BATCH = 128
UPDATES = 300
TEMPERATURE = 0.05
HIDDEN = 384
#: Learning rates tried on the validation queries, for each loss and head.
RATES = (1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3)
METRIC = "ndcg@10"
LOSSES = ("plain", "nested")
HEADS = ("linear", "MLP")
REDUCTIONS: Mapping[str, Kind] = {"prefix": "prefix", "SVD": "svd", "PCA": "pca"}


@dataclass(frozen=True)
class Contestant:
    """A loss and a head, with the learning rate it trains at."""

    loss: str
    head: str
    rate: float


def objective(loss: str, dims: tuple[int, ...] = DIMS) -> Callable[..., Tensor]:
    """``"plain"``: InfoNCE. ``"nested"``: its sum over prefixes of these sizes, weight 1 each."""
    return info_nce if loss == "plain" else matryoshka(info_nce, dims)


def make_head(name: str, size: int, seed: int) -> tuple[list[Tensor], Embed]:
    """Parameters and function of a head that starts as the identity, (n, d) -> (n, d).

    ``"linear"``: one square matrix. ``"MLP"``: what it is given, plus what a hidden layer of `HIDDEN` GELUs adds, at
    first nothing. The hidden layer starts from ``seed``.
    """
    if name == "linear":
        matrix = torch.eye(size, requires_grad=True)
        return [matrix], lambda rows: rows @ matrix
    generator = torch.Generator().manual_seed(seed)
    into = (torch.randn(size, HIDDEN, generator=generator)).requires_grad_()  # unit rows give inputs of variance 1
    bias = torch.zeros(HIDDEN, requires_grad=True)
    back = torch.zeros(HIDDEN, size, requires_grad=True)
    return [into, bias, back], lambda rows: rows + gelu(rows @ into + bias) @ back


def trained(
    task: Task, contestant: Contestant, seed: int = 0, dims: tuple[int, ...] = DIMS, batch: int = BATCH
) -> Embed:
    """Train a head on a task's pairs; the function that it has become."""
    parameters, embed = make_head(contestant.head, task.queries.shape[1], seed)
    recipe = Recipe(batch, TEMPERATURE, contestant.rate, "updates", seed, UPDATES)
    optimise(parameters, embed, task, recipe, objective=objective(contestant.loss, dims))

    def embedded(rows: Tensor) -> Tensor:
        with torch.no_grad():
            return normalize(embed(rows), dim=1)

    return embedded


def evaluate(
    task: Task,
    embed: Embed | None = None,
    reductions: Mapping[str, Kind] = REDUCTIONS,
    dims: tuple[int, ...] = DIMS,
) -> Scores:
    """Embed the held-out queries and all documents, reduce both, renormalise, search; nDCG@10 of every query.

    SVD and PCA are fitted on the documents, at the largest size. ``embed`` None leaves the frozen embeddings.
    """
    queries, documents = task.held_out, task.candidates
    if embed is not None:
        queries, documents = embed(queries), embed(documents)
    found = {}
    for name, kind in reductions.items():
        reduction = retrieval.fit(kind, documents, dims)
        for dim in dims:
            short = (reduction.reduce(queries, dim), reduction.reduce(documents, dim))
            found[name, dim] = retrieval.evaluate(*short, task.relevant, (METRIC,))[METRIC]
    return found


def chosen_rate(validation: Task, loss: str, head: str) -> float:
    """Of `RATES` the one whose head is best on the validation queries by mean nDCG@10 of the six prefixes.

    Tried once each, with seed 0. Both losses are asked the same question, that of short vectors, so that neither is
    tuned for another.
    """

    def quality(rate: float) -> float:
        scores = evaluate(validation, trained(validation, Contestant(loss, head, rate)), {"prefix": "prefix"})
        return float(np.mean([values.mean() for values in scores.values()]))

    return max(RATES, key=quality)


def over_seeds(runs: Mapping[int, Scores]) -> Scores:
    """Each query's mean over seeds, by reduction and size."""
    keys = list(next(iter(runs.values())))
    return {key: np.mean([scores[key] for scores in runs.values()], axis=0) for key in keys}


def compare(
    runs: Mapping[int, Scores], frozen: Scores | None, plain: Scores | None, conditions: Mapping[str, Value]
) -> Iterator[Row]:
    """Rows of one contestant on one corpus: a row a seed, reduction and size, and rows over all seeds.

    The rows over all seeds have no ``seed``. They are of each query's mean over seeds: its mean over queries, with the
    95 % interval of a bootstrap over queries; under ``retention`` the ratio of that mean to the one at the largest
    size, nothing cut; and, under ``ndcg@10 over …``, the paired difference at the same size from each reduction of the
    ``frozen`` embeddings ("frozen PCA") and of the head trained with the ``plain`` loss ("plain SVD"). None: nothing
    to compare with.
    """
    keys = list(next(iter(runs.values())))
    mean = over_seeds(runs)
    whole = mean["prefix", max(dim for _, dim in keys)]
    for reduction, dim in keys:
        ours = mean[reduction, dim]
        of: dict[str, Value] = {**conditions, "reduction": reduction, "dim": dim}
        for seed, scores in runs.items():
            value = float(scores[reduction, dim].mean())
            yield {**of, "seed": seed, "metric": METRIC, "value": value, "lo": None, "hi": None}
        found = {METRIC: retrieval.bootstrap_mean(ours, resamples=RESAMPLES)}
        found["retention"] = retrieval.paired_bootstrap(ours, whole, statistic="ratio", resamples=RESAMPLES)
        given = {name: scores for name, scores in (("frozen", frozen), ("plain", plain)) if scores is not None}
        baselines = {f"{name} {other}": scores[other, dim] for name, scores in given.items() for other in REDUCTIONS}
        for name, baseline in baselines.items():
            found[f"{METRIC} over {name}"] = retrieval.paired_bootstrap(ours, baseline, resamples=RESAMPLES)
        for metric, interval in found.items():
            row = {"seed": None, "metric": metric, "value": interval.estimate, "lo": interval.lo, "hi": interval.hi}
            yield {**of, **row}


def collect(progress: Progress) -> Iterator[Row]:
    """Both losses with both heads on both corpora, and the frozen embeddings."""
    validation, *held_out = tasks()
    contestants = []
    for head in HEADS:
        for loss in LOSSES:
            contestants.append(Contestant(loss, head, chosen_rate(validation, loss, head)))
            progress(f"{contestants[-1]}, rate chosen on {validation.name}")
    for task in held_out:
        progress(f"{task.name}: frozen")
        frozen = evaluate(task)
        conditions: dict[str, Value] = {"corpus": task.name, "loss": None, "head": None, "rate": None}
        yield from compare({0: frozen}, None, None, conditions)
        plain: dict[str, Scores] = {}
        for contestant in contestants:
            progress(f"{task.name}: {contestant}")
            runs = {seed: evaluate(task, trained(task, contestant, seed)) for seed in SEEDS}
            conditions |= {"loss": contestant.loss, "head": contestant.head, "rate": contestant.rate}
            yield from compare(runs, frozen, plain.get(contestant.head), conditions)
            if contestant.loss == "plain":
                plain[contestant.head] = over_seeds(runs)


MEASUREMENT = Measurement(
    name="matryoshka-pair",
    title="Heads trained with the plain and the nested loss, cut to six sizes by prefix, SVD and PCA; apidocs, SciFact",
    columns=("corpus", "loss", "head", "rate", "reduction", "dim", "seed", "metric", "value", "lo", "hi"),
    collect=collect,
    settings={
        "dims": list(DIMS),
        "batch": BATCH,
        "temperature": TEMPERATURE,
        "updates": UPDATES,
        "hidden": HIDDEN,
        "seeds": list(SEEDS),
        "rates tried": list(RATES),
        "resamples": RESAMPLES,
    },
)
