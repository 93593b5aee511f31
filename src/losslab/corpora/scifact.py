"""SciFact: scientific claims, the abstracts that support or refute them, and how its train split leaks into its test.

Read through `datasets`, from the hub at pinned revisions, or from a folder: ``scifact`` in ``LOSSLAB_DATA_DIR``, with
``corpus.jsonl.gz`` (``_id``, ``title``, ``text``), ``queries.jsonl.gz`` (``_id``, ``text``), ``qrels_train.tsv`` and
``qrels_test.tsv`` (``query-id``, ``corpus-id``, ``score``) and, if there, embeddings in ``minilm_f16.npz``. None of it
is shipped. What came from the hub is kept in the user's cache in the same layout.

References
----------
Wadden et al., "Fact or Fiction: verifying scientific claims", EMNLP 2020; in the form given to it by Thakur et al.,
"BEIR: a heterogeneous benchmark for zero-shot evaluation of information retrieval models", NeurIPS 2021.
"""

from __future__ import annotations

import gzip
import json
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from losslab.corpora.apidocs import NEAR, unit_rows
from losslab.corpora.encoders import Encoder
from losslab.corpora.files import cache_folder, data_folder, read_arrays
from losslab.corpora.models import TIMEOUT, Unavailable, hub_answers

Split = Literal["train", "test"]
Qrels = Mapping[str, Mapping[str, float]]

CORPUS, CORPUS_REVISION = "BeIR/scifact", "b3b5335604bf5ee3c4447671af975ea25143d4f5"
QRELS, QRELS_REVISION = "BeIR/scifact-qrels", "2938d17dc3b09882fdb8c12bbbe2e2dc0e75a029"
#: Rows that each file must have: fewer were cut off, more are another data set.
ROWS = {"corpus.jsonl.gz": 5183, "queries.jsonl.gz": 1109, "qrels_train.tsv": 919, "qrels_test.tsv": 339}
EMBEDDINGS = "minilm_f16.npz"


@dataclass(frozen=True)
class Leak:
    """What the train split gives away of the test split.

    Attributes
    ----------
    sharing_document : (Q,) bool
        For each test query: some of its right documents is right for a training query, too.
    near_query : (Q,) bool
        Some training query has a cosine with it above the threshold.
    """

    sharing_document: NDArray[np.bool_]
    near_query: NDArray[np.bool_]

    def __str__(self) -> str:
        """One sentence for a reader."""
        return (
            f"Of {len(self.sharing_document)} test queries, {self.sharing_document.sum()} share a right document with "
            f"a training query, and {self.near_query.sum()} have a near-duplicate among the training queries."
        )


@dataclass(frozen=True)
class SciFact:
    """The whole data set; splits are made by `rows`.

    Attributes
    ----------
    query_ids, query_texts : list of str
        Claims of both splits, Q = 1,109.
    document_ids, document_texts : list of str
        Abstracts, N = 5,183; text = title, space, abstract.
    qrels
        ``split: {query id: {document id: 1.0}}``.
    """

    query_ids: list[str]
    query_texts: list[str]
    document_ids: list[str]
    document_texts: list[str]
    qrels: Mapping[Split, Qrels]
    _stored: tuple[Tensor, Tensor] | None

    @cached_property
    def queries(self) -> Tensor:
        """MiniLM embeddings of the claims, (Q, 384) float32 unit rows; encoded on first use if none are stored."""
        return self._stored[0] if self._stored else Encoder().encode(self.query_texts)

    @cached_property
    def documents(self) -> Tensor:
        """MiniLM embeddings of the abstracts, (N, 384) float32 unit rows; encoded on first use if none are stored."""
        return self._stored[1] if self._stored else Encoder().encode(self.document_texts)

    def rows(self, split: Split) -> NDArray[np.int64]:
        """Rows of the queries judged in a split, ascending: 809 for training, 300 for testing.

        Raises
        ------
        ValueError
            There is no such split.
        """
        if split not in self.qrels:
            raise ValueError(f"split must be train or test, got {split!r}")
        return np.array([row for row, one in enumerate(self.query_ids) if one in self.qrels[split]], dtype=np.int64)

    def relevant(self, split: Split) -> list[NDArray[np.int64]]:
        """For each query of `rows`, the rows of its right documents, ascending."""
        return [self._right[int(row)] for row in self.rows(split)]

    def training_pairs(self, *, disjoint: bool = True) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Query rows and document rows of the training pairs, (P,) each; a query with several right documents recurs.

        Parameters
        ----------
        disjoint
            Leave out every training query one of whose right documents is right for a test query: 537 queries and 609
            pairs remain of 809 and 919. What is learnt from the others is partly the test's answers.
        """
        tested = {int(document) for right in self.relevant("test") for document in right}
        rows, documents = [], []
        for row in self.rows("train"):
            right = self._right[int(row)]
            if disjoint and tested.intersection(right.tolist()):
                continue
            rows += [int(row)] * len(right)
            documents += right.tolist()
        return np.array(rows, dtype=np.int64), np.array(documents, dtype=np.int64)

    def leak(self, threshold: float = NEAR) -> Leak:
        """Measure what the train split gives away; ``threshold`` is the cosine above which two claims are near."""
        trained = {int(document) for right in self.relevant("train") for document in right}
        sharing = [bool(trained.intersection(right.tolist())) for right in self.relevant("test")]
        cosines = (
            self.queries[torch.from_numpy(self.rows("test"))] @ self.queries[torch.from_numpy(self.rows("train"))].T
        )
        return Leak(np.array(sharing), (cosines.max(1).values > threshold).numpy())

    @cached_property
    def _right(self) -> dict[int, NDArray[np.int64]]:
        place = {one: row for row, one in enumerate(self.document_ids)}
        judged = {**self.qrels["train"], **self.qrels["test"]}
        return {
            row: np.array(sorted(place[document] for document in judged[one]), dtype=np.int64)
            for row, one in enumerate(self.query_ids)
            if one in judged
        }


def load(
    folder: Path | None = None,
    *,
    corpus_revision: str = CORPUS_REVISION,
    qrels_revision: str = QRELS_REVISION,
    timeout: float = TIMEOUT,
) -> SciFact:
    """Read SciFact: from ``folder``, from ``LOSSLAB_DATA_DIR``, from the user's cache, or from the hub.

    Parameters
    ----------
    folder
        In the layout above.
    corpus_revision, qrels_revision
        Commits on the hub.
    timeout
        Seconds without an answer after which the hub is given up.

    Raises
    ------
    Unavailable
        It is nowhere here, and the hub cannot be reached, hangs or answers with an error; or `datasets` is missing.
        One line.
    ValueError
        A file is damaged, lacks rows or disagrees with another; one line that names it.
    """
    folder = Path(folder) if folder is not None else data_folder("scifact")
    if folder is None:
        folder = cache_folder("scifact") / f"{corpus_revision[:8]}-{qrels_revision[:8]}"
        if not folder.is_dir():
            _fetch(folder, corpus_revision, qrels_revision, timeout)
    return _read(folder)


def _read(folder: Path, rows: Mapping[str, int] = ROWS) -> SciFact:
    tables = {name: _table(folder / name, wanted) for name, wanted in rows.items()}
    corpus, queries = tables["corpus.jsonl.gz"], tables["queries.jsonl.gz"]
    query_ids, document_ids = ([str(one) for one in table["_id"]] for table in (queries, corpus))
    for name, ids in (("queries.jsonl.gz", query_ids), ("corpus.jsonl.gz", document_ids)):
        if len(set(ids)) < len(ids):
            raise ValueError(f"{folder / name} has an _id more than once")
    qrels: dict[Split, Qrels] = {
        "train": _qrels(folder / "qrels_train.tsv", tables["qrels_train.tsv"], query_ids, document_ids),
        "test": _qrels(folder / "qrels_test.tsv", tables["qrels_test.tsv"], query_ids, document_ids),
    }
    both = qrels["train"].keys() & qrels["test"].keys()
    if both:
        raise ValueError(f"{folder}: query {min(both)!r} is judged in both splits")
    return SciFact(
        query_ids=query_ids,
        query_texts=[str(text) for text in queries["text"]],
        document_ids=document_ids,
        document_texts=[f"{title} {text}".strip() for title, text in zip(corpus["title"], corpus["text"], strict=True)],
        qrels=qrels,
        _stored=_embeddings(folder / EMBEDDINGS, query_ids, document_ids),
    )


def _table(path: Path, rows: int) -> dict[str, list[Any]]:
    """Columns of one file, read with `datasets`; its own cache of it lives only as long as that takes."""
    if not path.is_file():
        raise ValueError(f"{path} is missing; a SciFact folder holds {', '.join(ROWS)}")
    columns = ("query-id", "corpus-id", "score") if path.suffix == ".tsv" else ("_id", "text")
    kind, options = ("csv", {"delimiter": "\t"}) if path.suffix == ".tsv" else ("json", {})
    datasets = _datasets()
    with tempfile.TemporaryDirectory(prefix="losslab-scifact-") as temporary, _without_bars(datasets):
        try:
            read = datasets.load_dataset(
                kind, data_files=str(path), split="train", cache_dir=temporary, keep_in_memory=True, **options
            )
            table: dict[str, list[Any]] = read.to_dict()
        except Exception as problem:  # gzip, pyarrow and pandas each have their own way to say that a file is broken
            cause = problem.__cause__ or problem
            reason = str(cause).strip().split("\n")[0] or type(cause).__name__
            raise ValueError(f"{path} ({path.stat().st_size:,} bytes) cannot be read: {reason}") from None
    lacking = [name for name in columns if name not in table]
    if lacking:
        raise ValueError(f"{path} has no column {lacking[0]!r}; it has {', '.join(table)}")
    if len(table[columns[0]]) != rows:
        raise ValueError(
            f"{path} has {len(table[columns[0]]):,} rows, SciFact has {rows:,}: it is cut off or another set"
        )
    return table


def _qrels(path: Path, table: Mapping[str, list[Any]], query_ids: list[str], document_ids: list[str]) -> Qrels:
    queries, documents = set(query_ids), set(document_ids)
    found: dict[str, dict[str, float]] = {}
    for query, document, score in zip(table["query-id"], table["corpus-id"], table["score"], strict=True):
        if str(query) not in queries or str(document) not in documents:
            raise ValueError(f"{path} judges query {query} and document {document}, which are not both there")
        if score > 0:
            found.setdefault(str(query), {})[str(document)] = float(score)
    return found


def _embeddings(path: Path, query_ids: list[str], document_ids: list[str]) -> tuple[Tensor, Tensor] | None:
    if not path.is_file():
        return None
    arrays = read_arrays(path)
    for name, ids in (("query_ids", query_ids), ("corpus_ids", document_ids)):
        if name not in arrays or [str(one) for one in arrays[name].tolist()] != ids:
            raise ValueError(f"{path}: {name} are not those of the texts beside it; delete the file to encode anew")
    for name, ids in (("queries", query_ids), ("corpus", document_ids)):
        if name not in arrays or arrays[name].ndim != 2 or len(arrays[name]) != len(ids):
            raise ValueError(f"{path}: {name} must have one row for each of {len(ids)} texts")
        if not np.isfinite(arrays[name]).all():
            raise ValueError(f"{path}: {name} has values that are not finite")
    return unit_rows(arrays["queries"]), unit_rows(arrays["corpus"])


def _fetch(target: Path, corpus_revision: str, qrels_revision: str, timeout: float) -> None:
    """Bring SciFact from the hub into ``target``, which appears only when it is complete."""
    hint = "set LOSSLAB_DATA_DIR to a folder that has scifact, or try again online"
    datasets = _datasets()
    for name, revision in ((CORPUS, corpus_revision), (QRELS, qrels_revision)):
        hub_answers(f"api/datasets/{name}/revision/{revision}", f"the data set {name}", timeout, hint)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".fetching-") as temporary:

        def read(name: str, revision: str, part: str | None, split: str) -> Iterable[Mapping[str, Any]]:
            download = datasets.DownloadConfig(cache_dir=f"{temporary}/downloads", max_retries=1)
            rows: Iterable[Mapping[str, Any]] = datasets.load_dataset(
                name, part, split=split, revision=revision, cache_dir=temporary, download_config=download
            )
            return rows

        folder = Path(temporary) / "scifact"
        folder.mkdir()
        try:
            _write_json_lines(folder / "corpus.jsonl.gz", read(CORPUS, corpus_revision, "corpus", "corpus"))
            _write_json_lines(folder / "queries.jsonl.gz", read(CORPUS, corpus_revision, "queries", "queries"))
            for split in ("train", "test"):
                lines = ["query-id\tcorpus-id\tscore"]
                judged = read(QRELS, qrels_revision, None, split)
                lines += [f"{row['query-id']}\t{row['corpus-id']}\t{row['score']}" for row in judged]
                (folder / f"qrels_{split}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
        except Exception as problem:  # of the hub's client, of fsspec, of pyarrow
            reason = str(problem).strip().split("\n")[0] or type(problem).__name__
            raise Unavailable(f"SciFact could not be fetched from the hub: {reason}; {hint}") from None
        _read(folder)
        try:
            folder.replace(target)
        except OSError:  # another process was faster
            if not target.is_dir():
                raise
            shutil.rmtree(folder)


def _write_json_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(dict(row), ensure_ascii=False) + "\n" for row in rows)


def _datasets() -> Any:  # noqa: ANN401
    try:
        import datasets  # type: ignore[import-untyped]
    except ImportError as problem:
        raise Unavailable(f"{problem}; SciFact needs: pip install 'losslab[libraries]'") from None
    return datasets


class _without_bars:  # noqa: N801 (used like a function)
    """No progress bars of `datasets` inside the block; as before after it."""

    def __init__(self, datasets: Any) -> None:  # noqa: ANN401
        self._bars = datasets.utils

    def __enter__(self) -> None:
        self._shown = self._bars.are_progress_bars_disabled() is False
        self._bars.disable_progress_bars()

    def __exit__(self, *_: object) -> None:
        if self._shown:
            self._bars.enable_progress_bars()
