"""One set of weights that reads 32, 64, 75, 128 or 256 tokens of a text: what looks like two losses is two lengths.

Two models that are to differ in their loss alone may come with different ``max_seq_length`` in their configurations.
Nothing fails; how much of a text was read is then counted as an effect of the loss. Here the weights are the same
throughout, so that every difference is an effect of reading.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from losslab.corpora import apidocs
from losslab.corpora.encoders import Encoder
from losslab.corpora.models import MINILM, locate
from losslab.measure.record import Measurement, Progress, Row
from losslab.measure.truncation import BOOTSTRAP_SEED, DIGITS, LEVEL, NAMES, RESAMPLES, Task, retention_differences
from losslab.retrieval import bootstrap_mean, paired_bootstrap
from losslab.retrieval.bootstrap import Interval
from losslab.retrieval.truncation import Sweep

LENGTHS = (32, 64, 75, 128, 256)  # 75 is what one of the two published models came with
PAIRS = 1000
DIMS = (16, 32, 64, 128, 256)
KINDS = ("prefix", "pca")


@dataclass(frozen=True)
class Texts:
    """A retrieval task before it is encoded.

    Attributes
    ----------
    corpus
        Its name.
    queries, documents : list of str
    relevant
        For each query the rows of its right documents.
    """

    corpus: str
    queries: list[str]
    documents: list[str]
    relevant: list[NDArray[np.int64]]


def apidocs_texts(pairs: int = PAIRS) -> Texts:
    """Evenly spaced test pairs whose text can be read here; their queries are searched among their documents alone."""
    corpus = apidocs.load()
    readable = [(int(row), pair) for row in corpus.rows("test") if (pair := corpus.text(int(row))) is not None]
    chosen = [
        readable[at] for at in np.unique(np.linspace(0, len(readable) - 1, min(pairs, len(readable))).astype(int))
    ]
    rows = [row for row, _ in chosen]
    queries, documents = [pair[0] for _, pair in chosen], [pair[1] for _, pair in chosen]
    return Texts("apidocs", queries, documents, corpus.relevant(rows, rows))


def read(texts: Texts, max_seq_length: int, model: str | Path = MINILM.name) -> tuple[Task, float]:
    """Encode everything anew, in float32; also the processor's seconds for the documents."""
    with tempfile.TemporaryDirectory(prefix="losslab-sequence-length-") as store:
        encoder = Encoder(model, max_seq_length=max_seq_length, precision="float32", store=Path(store))
        queries = encoder.encode(texts.queries, progress=False)  # and the model is loaded before time is taken
        started = time.process_time()
        documents = encoder.encode(texts.documents, progress=False)
        elapsed = time.process_time() - started
    return Task(texts.corpus, str(max_seq_length), queries, documents, texts.relevant), elapsed


def token_counts(documents: Sequence[str], folder: Path) -> NDArray[np.int64]:
    """Tokens of each document, special ones included, if nothing is cut off; (N,)."""
    from transformers import AutoTokenizer
    from transformers.utils import logging

    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    tokenizer = AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
    return np.array([len(each) for each in tokenizer(list(documents), truncation=False)["input_ids"]])


def compare(texts: Texts, tasks: Mapping[int, Task], dims: Sequence[int] = DIMS) -> Iterator[Row]:
    """Each length by itself, and beside the largest, as if the two were models; queries paired."""
    sweeps = {
        length: task.sweep(dims, kinds=KINDS, centre=(False,), renormalise=(True,)) for length, task in tasks.items()
    }
    largest = max(sweeps)
    for length, found in sweeps.items():
        yield from _alone(texts.corpus, length, found)
        if length < largest:
            yield from _beside(texts.corpus, length, found, sweeps[largest], largest)


def _alone(corpus: str, length: int, found: Sweep) -> Iterator[Row]:
    for each in found.compare(resamples=RESAMPLES, level=LEVEL, seed=BOOTSTRAP_SEED):
        if each.measure in ("mean", "retention"):
            metric = "ndcg@10" if each.measure == "mean" else "retention"
            yield _row(corpus, length, NAMES[each.setting.kind], each.setting.dim, metric, each.interval)
    mean = bootstrap_mean(found.full, resamples=RESAMPLES, level=LEVEL, seed=BOOTSTRAP_SEED)
    yield _row(corpus, length, None, None, "ndcg@10", mean)


def _beside(corpus: str, length: int, found: Sweep, other: Sweep, largest: int) -> Iterator[Row]:
    def difference(ours: NDArray[np.float64], theirs: NDArray[np.float64]) -> Interval:
        return paired_bootstrap(ours, theirs, resamples=RESAMPLES, level=LEVEL, seed=BOOTSTRAP_SEED)

    yield _row(corpus, length, None, None, f"ndcg@10 over {largest}", difference(found.full, other.full))
    retained = retention_differences(found, other, found.settings)
    for setting, retention in zip(found.settings, retained, strict=True):
        of = (corpus, length, NAMES[setting.kind], setting.dim)
        yield _row(*of, f"ndcg@10 over {largest}", difference(found.of(setting), other.of(setting)))
        yield _row(*of, f"retention over {largest}", retention)


def collect(progress: Progress) -> Iterator[Row]:
    """All of it, on apidocs."""
    yield from measure(apidocs_texts(), LENGTHS, locate(MINILM), progress)


def measure(
    texts: Texts, lengths: Sequence[int], folder: Path, progress: Progress, dims: Sequence[int] = DIMS
) -> Iterator[Row]:
    """Everything about one corpus: how much is cut off, how long encoding takes, and what is found."""
    counts = token_counts(texts.documents, folder)
    progress(f"{texts.corpus}: {len(texts.queries):,} queries, {len(counts):,} documents of {counts.mean():.0f} tokens")
    tasks, seconds = {}, {}
    for length in lengths:
        tasks[length], seconds[length] = read(texts, length, folder)
        progress(f"{texts.corpus} at max_seq_length {length}: {seconds[length]:.1f} s of the processor")
    for length in lengths:
        numbers = {
            "documents": float(len(counts)),
            "cut off": float((counts > length).mean()),
            "tokens read": float(np.minimum(counts, length).mean()),
            "encoding time": seconds[length],
            f"encoding time as a share of that at {max(lengths)}": seconds[length] / seconds[max(lengths)],
        }
        for metric, value in numbers.items():
            yield _row(texts.corpus, length, None, None, metric, Interval(value, np.nan, np.nan))
    yield from compare(texts, tasks, dims)


def _row(corpus: str, length: int, reduction: str | None, dim: int | None, metric: str, interval: Interval) -> Row:
    lo, hi = (None if np.isnan(end) else round(end, DIGITS) for end in (interval.lo, interval.hi))
    return {
        "corpus": corpus,
        "max_seq_length": length,
        "reduction": reduction,
        "dim": dim,
        "metric": metric,
        "value": round(interval.estimate, DIGITS),
        "lo": lo,
        "hi": hi,
    }


MEASUREMENT = Measurement(
    name="sequence-length",
    title="One model reading 32 to 256 tokens of a text: what a difference of max_seq_length passes off as one of loss",
    columns=("corpus", "max_seq_length", "reduction", "dim", "metric", "value", "lo", "hi"),
    collect=collect,
    settings={
        "model": f"{MINILM.name} at {MINILM.revision}",
        "lengths": list(LENGTHS),
        "pairs": PAIRS,
        "dims": list(DIMS),
        "precision": "float32",
        "resamples": RESAMPLES,
        "bootstrap seed": BOOTSTRAP_SEED,
    },
)
