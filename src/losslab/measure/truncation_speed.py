"""How fast the prefix is held against random dims: the vectorised sweep beside a plain loop over queries and resamples.

The protocol is that of the replication's second block, over stored embeddings: at each size the prefix and five random
choices of as many dims, nDCG@10 of every query, then intervals for the difference and for the retention.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from losslab.corpora import scifact
from losslab.measure.record import Measurement, Progress, Row
from losslab.measure.truncation import BOOTSTRAP_SEED, LEVEL, RESAMPLES, SEEDS, Task, scifact_task
from losslab.retrieval.bootstrap import Interval
from losslab.retrieval.truncation import Setting, outcome

DIMS = (256, 128, 64, 32, 16)
RUNS = 5
Answer = dict[tuple[int, str], Interval]  # size, and what is said of the prefix
Floats = NDArray[np.floating]


def by_sweep(task: Task, dims: Sequence[int] = DIMS, resamples: int = RESAMPLES) -> Answer:
    """As the library does it: ranks are counted, not sorted, and one matrix product resamples everything."""
    found = task.sweep(dims, kinds=("prefix", "random-dims"), centre=(False,), renormalise=(True,), seeds=SEEDS)
    said = found.compare(resamples=resamples, level=LEVEL, seed=BOOTSTRAP_SEED)
    wanted = ("mean", "over random dims", "retention")
    return {
        (each.setting.dim, each.measure): each.interval
        for each in said
        if each.setting == Setting("prefix", False, True, each.setting.dim) and each.measure in wanted
    }


def by_loop(task: Task, dims: Sequence[int] = DIMS, resamples: int = RESAMPLES) -> Answer:
    """The same, written down: query after query, resample after resample, in numpy."""
    queries, documents = task.queries.numpy(), task.documents.numpy()
    width = documents.shape[1]
    whole = ndcg_by_loop(queries, documents, task.relevant)
    answer: Answer = {}
    for dim in dims:
        prefix = ndcg_by_loop(queries[:, :dim], documents[:, :dim], task.relevant)
        draws = []
        for seed in SEEDS:
            chosen = np.random.default_rng(seed).choice(width, dim, replace=False)
            draws.append(ndcg_by_loop(queries[:, chosen], documents[:, chosen], task.relevant))
        drawn = np.mean(draws, axis=0)
        answer[dim, "mean"] = bootstrap_by_loop(np.mean, [prefix], resamples)
        answer[dim, "over random dims"] = bootstrap_by_loop(_difference, [prefix, drawn], resamples)
        answer[dim, "retention"] = bootstrap_by_loop(_ratio, [prefix, whole], resamples)
    return answer


def ndcg_by_loop(queries: Floats, documents: Floats, relevant: Sequence[NDArray[np.int64]]) -> NDArray[np.float64]:
    """nDCG@10 by cosine, one query after the other, (Q,)."""
    queries = queries / np.linalg.norm(queries, axis=1, keepdims=True)
    documents = documents / np.linalg.norm(documents, axis=1, keepdims=True)
    discounts = 1 / np.log2(np.arange(10) + 2)
    values = np.empty(len(queries))
    for number, query in enumerate(queries):
        best = np.argsort(-(documents @ query))[:10]
        gained = discounts[: len(best)][np.isin(best, relevant[number])].sum()
        values[number] = gained / discounts[: len(relevant[number])].sum()
    return values


def bootstrap_by_loop(statistic: Callable[..., float], columns: Sequence[Floats], resamples: int) -> Interval:
    """Percentile interval of a statistic of columns (Q,) that are resampled together, one set after the other."""
    random, queries = np.random.default_rng(BOOTSTRAP_SEED), len(columns[0])
    values = []
    for _ in range(resamples):
        rows = random.integers(queries, size=queries)
        values.append(statistic(*(column[rows] for column in columns)))
    lo, hi = np.quantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(float(statistic(*columns)), float(lo), float(hi), LEVEL)


def _difference(ours: Floats, theirs: Floats) -> float:
    return float(ours.mean() - theirs.mean())


def _ratio(ours: Floats, theirs: Floats) -> float:
    return float(ours.mean() / theirs.mean())


def compare(task: Task, runs: int, progress: Progress) -> Iterator[Row]:
    """Times of both in one run, taken in turn, and how their answers differ."""
    ways = {"losslab": by_sweep, "loop": by_loop}
    answers = {name: way(task, DIMS[-1:], 2) for name, way in ways.items()}  # load all code first
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for run in range(runs):
        for name, way in ways.items():
            wall, processor = time.perf_counter(), time.process_time()
            answers[name] = way(task)
            taken[name].append((time.perf_counter() - wall, time.process_time() - processor))
            progress(f"{task.corpus}, run {run + 1} of {runs}, {name}: {taken[name][-1][1]:.2f} s of the processor")
    for at, clock in enumerate(("wall time", "processor time")):
        for what, of in (("median", statistics.median), ("shortest", min)):
            each = {name: of([run[at] for run in runs]) for name, runs in taken.items()}
            for name, value in each.items():
                yield _row(task, name, f"{what} {clock}", "s", value)
            yield _row(
                task, "losslab", f"loop's {what} {clock} over this one's", "ratio", each["loop"] / each["losslab"]
            )
    (ours, loop), keys = answers.values(), list(answers["loop"])
    gaps = [abs(getattr(ours[key], end) - getattr(loop[key], end)) for key in keys for end in ("estimate", "lo", "hi")]
    yield _row(task, "losslab", "largest difference from the loop", "nDCG@10 or share", max(gaps))
    verdicts = [outcome(ours[key]) == outcome(loop[key]) for key in keys if key[1] == "over random dims"]
    yield _row(task, "losslab", "verdicts", "count", len(verdicts))
    yield _row(task, "losslab", "verdicts as the loop's", "count", sum(verdicts))


def collect(progress: Progress) -> Iterator[Row]:
    """On SciFact's test queries, MiniLM."""
    yield from compare(scifact_task(scifact.load()), RUNS, progress)


def _row(task: Task, name: str, metric: str, unit: str, value: float) -> Row:
    return {"corpus": task.corpus, "implementation": name, "metric": metric, "unit": unit, "value": value}


MEASUREMENT = Measurement(
    name="truncation-speed",
    title="Prefix against random dims with bootstrap intervals: the vectorised sweep beside a loop over queries",
    columns=("corpus", "implementation", "metric", "unit", "value"),
    collect=collect,
    settings={
        "dims": list(DIMS),
        "seeds": list(SEEDS),
        "resamples": RESAMPLES,
        "bootstrap seed": BOOTSTRAP_SEED,
        "runs": RUNS,
        "dtype": "float32",
    },
)
