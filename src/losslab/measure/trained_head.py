"""A linear head trained with InfoNCE on frozen embeddings: the smallest thing in which temperature and batch matter.

One square matrix, started at the identity, maps queries and documents alike; the embeddings beneath it never change.
So a run takes seconds on a processor, and what differs between two runs is the objective alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import normalize

from losslab import retrieval
from losslab.contracts.checking import one_thread
from losslab.corpora import apidocs, scifact
from losslab.losses import info_nce
from losslab.measure.record import Row, Value

Floats = NDArray[np.float64]
#: Which pairs of a batch may be each other's negatives: indices of the pairs (B,) -> (B, B) bool, or None for all.
Mask = Callable[[NDArray[np.int64]], Tensor | None]
Budget = Literal["examples", "updates"]

EPOCHS = 10
UPDATES = 100


@dataclass(frozen=True)
class Task:
    """Pairs to train on, and a retrieval task that shares none of them.

    Attributes
    ----------
    name
        Of the corpus.
    queries, documents
        Embeddings of the training pairs, (P, d), row i of one belonging to row i of the other.
    held_out
        Embeddings of the held-out queries, (Q, d).
    candidates
        Embeddings of all documents that they are searched in, (N, d).
    relevant
        For each held-out query the rows of ``candidates`` that are right.
    pair_groups
        Two groups of each training pair, (P, 2): the text of its query, the text of its document.
    slices
        Rows of the held-out queries that are also reported by themselves.
    """

    name: str
    queries: Tensor
    documents: Tensor
    held_out: Tensor
    candidates: Tensor
    relevant: Sequence[NDArray[np.int64]]
    pair_groups: NDArray[np.int64]
    slices: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)


@dataclass(frozen=True)
class Recipe:
    """How a head is trained.

    Attributes
    ----------
    batch
        Pairs in a batch; the last incomplete batch of an epoch is left out.
    temperature
        Of InfoNCE.
    rate
        Learning rate of AdamW (betas 0.9 and 0.999, no weight decay), constant.
    budget
        ``"examples"``: `EPOCHS` passes over the pairs, so that all widths see as many pairs. ``"updates"``:
        ``updates`` batches, so that all widths make as many steps.
    seed
        Of the order of the pairs.
    updates
        How many batches ``"updates"`` stands for.
    """

    batch: int
    temperature: float
    rate: float
    budget: Budget = "examples"
    seed: int = 0
    updates: int = UPDATES

    def with_seed(self, seed: int) -> Recipe:
        """The same with another order of the pairs."""
        return replace(self, seed=seed)


def train(task: Task, recipe: Recipe, mask: Mask | None = None) -> Tensor:
    """Train a head, (d, d).

    Raises
    ------
    ValueError
        If a batch is wider than the number of pairs.
    """
    head = torch.eye(task.queries.shape[1], requires_grad=True)
    optimise([head], lambda rows: rows @ head, task, recipe, mask)
    return head.detach()


def optimise(
    parameters: Sequence[Tensor],
    embed: Callable[[Tensor], Tensor],
    task: Task,
    recipe: Recipe,
    mask: Mask | None = None,
    objective: Callable[..., Tensor] | None = None,
) -> None:
    """Train the parameters of ``embed``, which maps frozen embeddings (n, d) to new ones, in place.

    ``objective`` is called as `info_nce` is, which it is if left out.

    Raises
    ------
    ValueError
        If a batch is wider than the number of pairs.
    """
    objective = objective or info_nce
    pairs = len(task.queries)
    if not 2 <= recipe.batch <= pairs:
        raise ValueError(f"batch must be from 2 to {pairs}, the pairs of {task.name}, got {recipe.batch}")
    in_epoch = pairs // recipe.batch
    updates = EPOCHS * in_epoch if recipe.budget == "examples" else recipe.updates
    order = np.random.default_rng(recipe.seed)
    optimiser = torch.optim.AdamW(parameters, lr=recipe.rate, weight_decay=0)
    with one_thread():  # matrices this small gain nothing from a second, and the result is the same on every machine
        for update in range(updates):
            if update % in_epoch == 0:
                shuffled = order.permutation(pairs)
            at = (update % in_epoch) * recipe.batch
            rows = shuffled[at : at + recipe.batch]
            loss = objective(
                embed(task.queries[rows]),
                embed(task.documents[rows]),
                temperature=recipe.temperature,
                negatives=None if mask is None else mask(rows),
                validate=False,
            )
            optimiser.zero_grad()
            torch.autograd.backward(loss)
            optimiser.step()


#: Learning rates tried on the validation pairs, one run each; the best by nDCG@10 is used for all seeds.
RATES = (3e-5, 1e-4, 3e-4, 1e-3)
METRICS = ("ndcg@10", "mrr")
RESAMPLES = 2_000

#: Per query values of each metric, (Q,).
Scores = dict[str, Floats]


def evaluate(task: Task, head: Tensor | None = None) -> Scores:
    """Search every held-out query among all candidates, exactly; nDCG@10 and the reciprocal rank of each query.

    Parameters
    ----------
    head
        (d, d); None leaves the embeddings as they are.
    """
    queries, candidates = task.held_out, task.candidates
    if head is not None:
        queries, candidates = normalize(queries @ head, dim=1), normalize(candidates @ head, dim=1)
    return retrieval.evaluate(queries, candidates, task.relevant, METRICS)


def run(task: Task, recipe: Recipe, mask: Mask | None = None) -> Scores:
    """Train a head and evaluate it."""
    return evaluate(task, train(task, recipe, mask))


def chosen_rate(validation: Task, recipe: Recipe, mask: Mask | None = None) -> float:
    """Of `RATES` the one whose head is best on the validation queries by nDCG@10, trained with the recipe's seed."""
    return max(RATES, key=lambda rate: float(run(validation, replace(recipe, rate=rate), mask)["ndcg@10"].mean()))


def over_seeds(runs: Mapping[int, Scores]) -> Scores:
    """Each query's mean over seeds."""
    return {metric: np.mean([scores[metric] for scores in runs.values()], axis=0) for metric in METRICS}


def compare(
    runs: Mapping[int, Scores],
    others: Mapping[str, Scores],
    task: Task,
    conditions: Mapping[str, Value],
) -> Iterator[Row]:
    """What came of the runs of several seeds: a row a seed, slice and metric, and rows over all seeds.

    The rows over all seeds have no ``seed``. They are of each query's mean over seeds: its mean over queries, with the
    95 % interval of a bootstrap over queries; and, for every ``name: scores`` of ``others``, under ``<metric> over
    <name>`` its paired difference from those. Intervals are about queries; how far seeds lie apart, the rows of single
    seeds say.
    """
    mean = over_seeds(runs)
    for slice_, rows in task.slices.items():
        for metric in METRICS:
            for seed, scores in runs.items():
                of: dict[str, Value] = {"seed": seed, "slice": slice_, "metric": metric}
                yield {**conditions, **of, "value": float(scores[metric][rows].mean()), "lo": None, "hi": None}
            ours = mean[metric][rows]
            found = {metric: retrieval.bootstrap_mean(ours, resamples=RESAMPLES)}
            for name, scores in others.items():
                pair = retrieval.paired_bootstrap(ours, scores[metric][rows], resamples=RESAMPLES)
                found[f"{metric} over {name}"] = pair
            for name, interval in found.items():
                of = {"seed": None, "slice": slice_, "metric": name}
                yield {**conditions, **of, "value": interval.estimate, "lo": interval.lo, "hi": interval.hi}


def apidocs_task(held_out: apidocs.Split) -> Task:
    """Train on apidocs' training pairs; search for the held-out queries among all documents of the corpus.

    A query's right documents are its own and those that answer the same summary. Slices: queries that have a
    near-duplicate in the corpus, as query or as document, and queries that have none.
    """
    corpus = apidocs.load()
    train_rows, rows = corpus.rows("train"), corpus.rows(held_out)
    _, component, size = np.unique(corpus.component, return_inverse=True, return_counts=True)
    related = size[component[rows]] > 1
    return Task(
        name="apidocs" if held_out == "test" else f"apidocs ({held_out})",
        queries=corpus.queries[train_rows],
        documents=corpus.documents[train_rows],
        held_out=corpus.queries[rows],
        candidates=corpus.documents,
        relevant=corpus.relevant(rows),
        pair_groups=np.stack([corpus.summary_group[train_rows], corpus.document_group[train_rows]], axis=1),
        slices={
            "all": np.arange(len(rows)),
            "with near-duplicates": np.flatnonzero(related),
            "without": np.flatnonzero(~related),
        },
    )


def scifact_task() -> Task:
    """Train on SciFact's pairs that share no document with its test split; search for the test queries.

    Raises
    ------
    losslab.corpora.models.Unavailable
        SciFact is not here and cannot be fetched.
    """
    data = scifact.load()
    query_rows, document_rows = data.training_pairs()
    rows = data.rows("test")
    return Task(
        name="SciFact",
        queries=data.queries[query_rows],
        documents=data.documents[document_rows],
        held_out=data.queries[rows],
        candidates=data.documents,
        relevant=data.relevant("test"),
        pair_groups=np.stack([query_rows, document_rows], axis=1),
        slices={"all": np.arange(len(rows))},
    )


def tasks() -> tuple[Task, Task, Task]:
    """The task that learning rates are chosen on, and the two that are reported: apidocs and SciFact."""
    return apidocs_task("validation"), apidocs_task("test"), scifact_task()
