"""Embeddings cut to fewer dimensions, on SciFact and apidocs, beside what a replication of 2026 published.

The replication's two blocks are one run here: prefix and PCA of three models, then the prefix against random dims and
the retention of two of them against each other. MiniLM's embeddings are stored; the other two models, one trained
plainly and one with MatryoshkaLoss, come from the hub, and are left out, in so many words, where that is out of reach.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from losslab.corpora import apidocs, scifact
from losslab.corpora.encoders import Encoder
from losslab.corpora.models import MINILM, TIMEOUT, Unavailable, hub_answers
from losslab.measure.record import Measurement, Progress, Row
from losslab.retrieval.bootstrap import Interval, intervals, resampled_means
from losslab.retrieval.reductions import DRAWN, Kind
from losslab.retrieval.truncation import Comparison, Setting, Sweep, sweep

DIMS = (4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 320, 384, 512, 768)  # of each model as many as it has
SEEDS, RESAMPLES, LEVEL, BOOTSTRAP_SEED, DIGITS = (0, 1, 2, 3, 4), 2000, 0.95, 0, 6
NAMES: Mapping[Kind, str] = {
    "prefix": "prefix",
    "random-dims": "random dims",
    "random-rotation": "random rotation",
    "pca": "PCA",
    "svd": "SVD",
}
PUBLISHED = Path(__file__).parents[3] / "data" / "published"
PLACES = {3: "three", 4: "four"}
Key = tuple[str, Kind, int, str]  # model, reduction (not centred but for PCA, renormalised), size, metric


@dataclass(frozen=True)
class Hosted:
    """A model of the hub, as the replication used it.

    Attributes
    ----------
    name
        Its short name.
    repository
        Its id on the hub.
    revision
        First digits of the commit, as published.
    max_seq_length
        What it is set to, whatever its own configuration says.
    """

    name: str
    repository: str
    revision: str
    max_seq_length: int


PLAIN = Hosted("mpnet-base-nli", "tomaarsen/mpnet-base-nli", "8d633e39", 128)
NESTED = Hosted("mpnet-base-nli-matryoshka", "tomaarsen/mpnet-base-nli-matryoshka", "ea34095b", 128)


@dataclass(frozen=True)
class Task:
    """What is searched, and for what.

    Attributes
    ----------
    corpus, model
        Names for the table.
    queries : (Q, d)
    documents : (N, d)
        Unit rows.
    relevant
        For each query the rows of its right documents.
    """

    corpus: str
    model: str
    queries: Tensor
    documents: Tensor
    relevant: list[NDArray[np.int64]]

    def sweep(self, dims: Sequence[int] = DIMS, **chosen: Sequence[object]) -> Sweep:
        """Every reduction at all of ``dims`` that the model has."""
        fitting = [dim for dim in dims if dim <= self.documents.shape[1]]
        options = {"seeds": SEEDS, **chosen}
        return sweep(self.queries, self.documents, self.relevant, fitting, **options)  # type: ignore[arg-type]


def apidocs_task() -> Task:
    """The test queries of apidocs against all of its documents, those of the other splits included."""
    corpus = apidocs.load()
    rows = corpus.rows("test")
    queries = corpus.queries[torch.from_numpy(rows)]
    return Task("apidocs", MINILM.name.split("/")[-1], queries, corpus.documents, corpus.relevant(rows))


def scifact_task(
    data: scifact.SciFact, model: str = MINILM.name.split("/")[-1], embeddings: tuple[Tensor, Tensor] | None = None
) -> Task:
    """The test queries of SciFact against all of its documents; ``embeddings`` of all texts, by default MiniLM's."""
    queries, documents = embeddings or (data.queries, data.documents)
    return Task("SciFact", model, queries[torch.from_numpy(data.rows("test"))], documents, data.relevant("test"))


@cache
def published() -> Mapping[Key, tuple[float, int]]:
    """Value and number of decimal places of everything the replication published; empty outside a checkout."""
    found: dict[Key, tuple[float, int]] = {}
    if not PUBLISHED.is_dir():
        return found

    def add(model: str, kind: Kind, dim: str, metric: str, value: float, places: int = 4) -> None:
        found[model, kind, int(dim), metric] = (value, places)

    for row in _table("scifact_truncation"):
        for kind in ("prefix", "pca"):
            if row[kind]:
                add(row["model"], kind, row["dim"], "ndcg@10", float(row[kind]))
    for row in _table("scifact_prefix_vs_random"):
        add(row["model"], "random-dims", row["dim"], "ndcg@10", float(row["random"]))
        add(row["model"], "prefix", row["dim"], "ndcg@10 over random dims", float(row["diff"]))
    for row in _table("scifact_retention_pair"):  # in percent and percentage points, with one place
        add(PLAIN.name, "prefix", row["dim"], "retention", float(row["plain_pct"]) / 100, 3)
        add(NESTED.name, "prefix", row["dim"], "retention", float(row["mrl_pct"]) / 100, 3)
        add(NESTED.name, "prefix", row["dim"], f"retention over {PLAIN.name}", float(row["diff_pp"]) / 100, 3)
    return found


def verdict(interval: Interval, value: float, places: int) -> str:
    """Our number beside a published one: equal to its last place, or within our interval, or different."""
    if f"{interval.estimate:.{places}f}" == f"{value:.{places}f}":
        return f"equal to {PLACES[places]} places"
    return "within the interval" if interval.lo <= value <= interval.hi else "different"


def rows_of(task: Task, found: Sweep) -> Iterator[Row]:
    """Everything that is said of one corpus and model."""
    for each in found.compare(resamples=RESAMPLES, level=LEVEL, seed=BOOTSTRAP_SEED):
        yield _row(task, each.setting, _metric(each), each.interval)
    for setting, values in zip(found.settings, found.values.T, strict=True):
        if setting.kind in DRAWN:
            mean = float(values.mean())
            yield _row(task, setting, "ndcg@10", Interval(mean, np.nan, np.nan))


def retention_differences(first: Sweep, second: Sweep, settings: Sequence[Setting]) -> list[Interval]:
    """Retention of one sweep less that of another over the same queries, paired, at each of the settings."""
    columns = [each for found in (first, second) for each in (found.full, *map(found.of, settings))]
    values = np.stack(columns, axis=1)

    def differences(means: NDArray[np.float64]) -> NDArray[np.float64]:
        ours, theirs = np.split(means, 2, axis=-1)
        return np.asarray(ours[..., 1:] / ours[..., :1] - theirs[..., 1:] / theirs[..., :1])

    resampled = resampled_means(values, RESAMPLES, LEVEL, BOOTSTRAP_SEED)
    return intervals(differences(values.mean(0)), differences(resampled), LEVEL)


def retention_rows(task: Task, nested: Sweep, plain: Sweep) -> Iterator[Row]:
    """Retention of the prefix of one model less that of another; ``task`` is the first one's."""
    settings = [each for each in nested.settings if each in plain.settings and each.kind == "prefix"]
    settings = [each for each in settings if each.renormalised and not each.centred]
    for setting, interval in zip(settings, retention_differences(nested, plain, settings), strict=True):
        yield _row(task, setting, f"retention over {PLAIN.name}", interval)


def collect(progress: Progress) -> Iterator[Row]:
    """Apidocs, then SciFact with every model that can be had."""
    task = apidocs_task()
    progress(f"apidocs: {len(task.queries):,} test queries against all {len(task.documents):,} documents")
    yield from rows_of(task, task.sweep())
    try:
        data = scifact.load()
    except Unavailable as problem:
        progress(f"SciFact is left out: {problem}")
        return
    task = scifact_task(data)
    progress(f"SciFact, {task.model}: {len(task.queries):,} test queries against {len(task.documents):,} documents")
    yield from rows_of(task, task.sweep())
    try:
        folders = {model: fetch(model) for model in (PLAIN, NESTED)}
    except Unavailable as problem:
        progress(f"{PLAIN.name} and {NESTED.name} are left out: {problem}")
        return
    yield from pair_rows(data, folders, progress)


def pair_rows(data: scifact.SciFact, folders: Mapping[Hosted, Path], progress: Progress) -> Iterator[Row]:
    """The two models that are to differ in their loss alone: first what else they differ in, then their numbers."""
    differing = mismatches({model.name: folder for model, folder in folders.items()})
    for line in differing or ["the configurations agree"]:
        progress(line)
    for model in folders:
        progress(f"{model.name} is set to max_seq_length {model.max_seq_length}, whatever its configuration says")
    sweeps: dict[Hosted, tuple[Task, Sweep]] = {}
    for model, folder in folders.items():
        # at full precision: bfloat16 moves nDCG@10 in the third place, and the fourth is compared
        encoder = Encoder(folder, max_seq_length=model.max_seq_length, precision="float32")
        embeddings = encoder.encode(data.query_texts), encoder.encode(data.document_texts)
        task = scifact_task(data, model.name, embeddings)
        progress(f"SciFact, {model.name}: {task.documents.shape[1]} dimensions")
        sweeps[model] = task, task.sweep()
        yield from rows_of(*sweeps[model])
    (_, plain), (task, nested) = sweeps.values()
    yield from retention_rows(task, nested, plain)


def mismatches(folders: Mapping[str, Path]) -> list[str]:
    """Everything in which the JSON files of saved models differ, one line each; what weighs most comes first.

    Parameters
    ----------
    folders
        Saved models by name. Their vocabularies are not compared, nor weights.
    """
    settings = {name: _settings(folder) for name, folder in folders.items()}
    keys = sorted(
        {key for each in settings.values() for key in each}, key=lambda key: (not key.endswith("length"), key)
    )
    lines = []
    for key in keys:
        values = {name: each.get(key, "absent") for name, each in settings.items()}
        if len(set(values.values())) > 1:
            lines.append(f"{key} differs: " + ", ".join(f"{value} in {name}" for name, value in values.items()))
    return lines


def _settings(folder: Path) -> dict[str, str]:
    """Settings of a saved model, ``file: name.name`` to value."""
    found: dict[str, str] = {}

    def walk(file: str, names: tuple[str, ...], value: object) -> None:
        if isinstance(value, dict):
            for key, inner in value.items():
                walk(file, (*names, key), inner)
        else:
            found[f"{file}: {'.'.join(names)}"] = json.dumps(value)

    for path in sorted(folder.rglob("*.json")):
        if path.name not in ("tokenizer.json", "vocab.json"):
            walk(path.relative_to(folder).as_posix(), (), json.loads(path.read_text(encoding="utf-8")))
    return found


def fetch(model: Hosted, *, timeout: float = TIMEOUT) -> Path:
    """Folder with a hosted model's files at its revision, from the hub's own cache or downloaded into it.

    Raises
    ------
    Unavailable
        The hub cannot be reached, hangs, answers with an error, or has no such revision. One line.
    """
    what = f"the model {model.repository}"
    hub_answers(f"api/models/{model.repository}", what, timeout, "try again online")
    from huggingface_hub import HfApi, constants, snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    endpoint = os.environ.get("HF_ENDPOINT") or constants.ENDPOINT
    try:
        commits = [each.commit_id for each in HfApi(endpoint=endpoint).list_repo_commits(model.repository)]
        full = [each for each in commits if each.startswith(model.revision)]
        if len(full) != 1:
            raise Unavailable(f"{what} has {len(full)} commits that begin with {model.revision}")
        patterns = ["*.json", "*.txt", "model.safetensors"]
        return Path(snapshot_download(model.repository, revision=full[0], allow_patterns=patterns, endpoint=endpoint))
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as problem:
        reason = str(problem).strip().split("\n")[0] or type(problem).__name__
        raise Unavailable(f"{what} could not be fetched: {reason}; try again online") from None


def _metric(said: Comparison) -> str:
    return {"mean": "ndcg@10", "retention": "retention"}.get(said.measure, f"ndcg@10 {said.measure}")


def _row(task: Task, setting: Setting, metric: str, interval: Interval) -> Row:
    known: tuple[float, int] | None = None
    plain = setting.renormalised and setting.seed is None and (not setting.centred or setting.kind == "pca")
    if task.corpus == "SciFact" and plain:
        known = published().get((task.model, setting.kind, setting.dim, metric))
    return {
        "corpus": task.corpus,
        "model": task.model,
        "reduction": NAMES[setting.kind],
        "centred": "yes" if setting.centred else "no",
        "renormalised": "yes" if setting.renormalised else "no",
        "dim": setting.dim,
        "seed": setting.seed,
        "metric": metric,
        "value": round(interval.estimate, DIGITS),
        "lo": None if np.isnan(interval.lo) else round(interval.lo, DIGITS),
        "hi": None if np.isnan(interval.hi) else round(interval.hi, DIGITS),
        "published": known and known[0],
        "verdict": known and verdict(interval, *known),
    }


def _table(name: str) -> list[dict[str, str]]:
    with (PUBLISHED / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


MEASUREMENT = Measurement(
    name="truncation",
    title="Embeddings cut to fewer dimensions by prefix, random choice, rotation, PCA and SVD, beside published values",
    columns=(
        "corpus",
        "model",
        "reduction",
        "centred",
        "renormalised",
        "dim",
        "seed",
        "metric",
        "value",
        "lo",
        "hi",
        "published",
        "verdict",
    ),
    collect=collect,
    settings={
        "dims": list(DIMS),
        "seeds": list(SEEDS),
        "resamples": RESAMPLES,
        "bootstrap seed": BOOTSTRAP_SEED,
        "published": "data/published",
        "models": {each.name: f"{each.repository} at {each.revision}" for each in (PLAIN, NESTED)},
        "max_seq_length": {MINILM.name.split("/")[-1]: MINILM.max_seq_length, PLAIN.name: 128, NESTED.name: 128},
    },
)
