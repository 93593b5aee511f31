"""The docstrings of numpy, scipy, torch, scikit-learn and matplotlib as a retrieval task: find what a summary is about.

Query = the summary, document = the rest of the docstring. Their MiniLM embeddings are shipped in ``data/apidocs`` with
names and text hashes; the texts are not, they are read from the libraries of whoever asks.
"""

from __future__ import annotations

import csv
import hashlib
import importlib.metadata
import io
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from losslab.corpora.files import data_folder, read_arrays, read_checked
from losslab.corpora.harvest import look_up

Split = Literal["train", "validation", "test"]
Text = tuple[str, str]

SPLITS: tuple[Split, ...] = ("train", "validation", "test")
COLUMNS = ("name", "query", "document", "split", "component", "nearest_query", "nearest_document")
HASH_LENGTH = 16  # hexadecimal digits of the SHA-256 that are kept: 64 bits
NEAR = 0.9  # cosine above which two texts count as near-duplicates
#: Package as it is imported, and as it is installed.
DISTRIBUTIONS = {name: name for name in ("numpy", "scipy", "torch", "sklearn", "matplotlib")} | {
    "sklearn": "scikit-learn"
}
#: Where pip puts the corpus, below the prefix of the environment.
INSTALLED = Path("share", "losslab", "data", "apidocs")
REMEDY = "check data/apidocs out again, or make it anew with: python -m losslab.corpora.build_apidocs"


@dataclass(frozen=True)
class Missing:
    """How much of the text can be read here.

    Attributes
    ----------
    total
        Pairs in the corpus.
    gone
        Names that the installed libraries do not have (or whose docstring is now too short).
    changed
        Names whose text is another one than was embedded.
    gone_by_package, changed_by_package
        The same by package.
    versions
        ``package: (version embedded, version here)``; None = not installed.
    """

    total: int
    gone: int
    changed: int
    gone_by_package: Mapping[str, int]
    changed_by_package: Mapping[str, int]
    versions: Mapping[str, tuple[str, str | None]]

    def __str__(self) -> str:
        """One sentence for a reader."""
        there = self.total - self.gone - self.changed
        if there == self.total:
            return f"All {self.total:,} texts are here, word for word."
        moved = [
            f"{DISTRIBUTIONS[package]} {'is not installed' if now is None else f'is {now}, not {then}'}"
            for package, (then, now) in self.versions.items()
            if then != now
        ]
        why = f" ({'; '.join(moved)})" if moved else ""
        return (
            f"{there:,} of {self.total:,} texts are here, word for word; {self.changed:,} read differently and "
            f"{self.gone:,} are missing{why}. Embeddings, labels and splits do not depend on it."
        )


@dataclass(frozen=True)
class ApiDocs:
    """The corpus: N pairs in the order of their names. Row i of everything belongs to pair i.

    Attributes
    ----------
    names : list of str
        Qualified names (``scipy.signal.welch``).
    queries, documents : (N, 384) float32
        Unit rows, stored as float16.
    split : (N,) str
        "train", "validation" or "test". No summary is shared across splits, and no query or document has a
        neighbour with a cosine above 0.9 on the other side.
    component : (N,) int64
        Pairs joined, directly or in steps, by a shared summary or such a cosine; a component is in one split.
    summary_group, document_group : (N,) int64
        Equal = the same text. Pairs of one summary group are each other's positives.
    nearest_query, nearest_document : (N,) float32
        Largest cosine with the query (document) of another pair: above 0.9 it has a near-duplicate.
    record
        How it was made: versions, model, revision, hashes, counts.
    """

    names: list[str]
    queries: Tensor
    documents: Tensor
    split: NDArray[np.str_]
    component: NDArray[np.int64]
    summary_group: NDArray[np.int64]
    document_group: NDArray[np.int64]
    nearest_query: NDArray[np.float32]
    nearest_document: NDArray[np.float32]
    record: Mapping[str, Any]
    _hashes: list[Text] = field(repr=False)

    def __len__(self) -> int:
        """Number of pairs."""
        return len(self.names)

    def rows(self, split: Split) -> NDArray[np.int64]:
        """Rows of one split, ascending.

        Raises
        ------
        ValueError
            There is no such split.
        """
        if split not in SPLITS:
            raise ValueError(f"split must be one of {', '.join(SPLITS)}, got {split!r}")
        return np.flatnonzero(self.split == split)

    def positives(self, i: int) -> NDArray[np.int64]:
        """Rows of all documents that are right for query i, ascending: its own, those of pairs with the same summary,
        and those with the same text as one of these.
        """  # noqa: D205
        asked = self._rows_of_summary[int(self.summary_group[self._checked(i)])]
        right = {row for other in asked for row in self._rows_of_document[int(self.document_group[other])]}
        return np.array(sorted(right), dtype=np.int64)

    def relevant(self, queries: ArrayLike, documents: ArrayLike | None = None) -> list[NDArray[np.int64]]:
        """The positives of several queries, as `losslab.retrieval.evaluate` wants them.

        Parameters
        ----------
        queries
            Rows of the queries asked.
        documents
            Rows of the documents searched, in their order; the answer then counts in places of this list. By default
            all documents, and the answer counts in rows.
        """
        found = [self.positives(int(i)) for i in np.asarray(queries)]
        if documents is None:
            return found
        place = np.full(len(self), -1, dtype=np.int64)
        searched = np.asarray(documents)
        place[searched] = np.arange(len(searched))
        return [np.sort(place[rows][place[rows] >= 0]) for rows in found]

    def text(self, i: int) -> Text | None:
        """Summary and body of pair i from the library installed here; None if it is not there word for word."""
        name = self.names[self._checked(i)]
        pair = look_up(name)
        if pair is None or (text_hash(pair.summary), text_hash(pair.body)) != self._hashes[i]:
            return None
        return pair.summary, pair.body

    def missing(self) -> Missing:
        """Count the texts that cannot be read here; ``str()`` of it is a sentence. Imports all five libraries, once."""
        return self._missing

    @cached_property
    def _missing(self) -> Missing:
        gone: Counter[str] = Counter()
        changed: Counter[str] = Counter()
        for name, hashes in zip(self.names, self._hashes, strict=True):
            pair = look_up(name)
            if pair is None:
                gone[name.split(".")[0]] += 1
            elif (text_hash(pair.summary), text_hash(pair.body)) != hashes:
                changed[name.split(".")[0]] += 1
        versions = {package: (str(then), installed(package)) for package, then in self.record["versions"].items()}
        return Missing(len(self), gone.total(), changed.total(), dict(gone), dict(changed), versions)

    @cached_property
    def _rows_of_summary(self) -> list[list[int]]:
        return _members(self.summary_group)

    @cached_property
    def _rows_of_document(self) -> list[list[int]]:
        return _members(self.document_group)

    def _checked(self, i: int) -> int:
        if not 0 <= i < len(self):
            raise ValueError(f"i must be a row from 0 to {len(self) - 1}, got {i}")
        return i


def load(folder: Path | None = None) -> ApiDocs:
    """Read the shipped corpus: no network, no model, none of the five libraries but numpy and torch.

    Parameters
    ----------
    folder
        Where ``record.json``, ``pairs.csv`` and ``embeddings.npz`` lie; by default ``apidocs`` in
        ``LOSSLAB_DATA_DIR``, ``data/apidocs`` of the checkout, or what was installed with the package.

    Raises
    ------
    FileNotFoundError
        The folder or one of its files is not there.
    ValueError
        A file is damaged: truncated, changed, or not the one that the record describes. One line that names it.
    """
    folder = find_folder() if folder is None else Path(folder)
    try:
        record = json.loads((folder / "record.json").read_text(encoding="utf-8"))
        hashes = {name: str(record["sha256"][name]) for name in ("pairs.csv", "embeddings.npz")}
    except FileNotFoundError:
        raise FileNotFoundError(f"{folder / 'record.json'} is missing; {REMEDY}") from None
    except (ValueError, KeyError, TypeError):
        raise ValueError(f"{folder / 'record.json'} is damaged; {REMEDY}") from None
    table = read_checked(folder / "pairs.csv", hashes["pairs.csv"], REMEDY)
    packed = read_checked(folder / "embeddings.npz", hashes["embeddings.npz"], REMEDY)
    rows = list(csv.DictReader(io.StringIO(table.decode())))
    arrays = read_arrays(folder / "embeddings.npz", packed)
    return ApiDocs(
        names=[row["name"] for row in rows],
        queries=unit_rows(arrays["queries"]),
        documents=unit_rows(arrays["documents"]),
        split=np.array([row["split"] for row in rows]),
        component=np.array([int(row["component"]) for row in rows], dtype=np.int64),
        summary_group=group([row["query"] for row in rows]),
        document_group=group([row["document"] for row in rows]),
        nearest_query=np.array([row["nearest_query"] for row in rows], dtype=np.float32),
        nearest_document=np.array([row["nearest_document"] for row in rows], dtype=np.float32),
        record=record,
        _hashes=[(row["query"], row["document"]) for row in rows],
    )


def find_folder() -> Path:
    """Folder of the shipped corpus.

    Raises
    ------
    FileNotFoundError
        There is none.
    """
    named = data_folder("apidocs")
    if named is not None:
        return named
    for start in (Path(__file__).resolve(), Path.cwd() / "here"):
        for parent in start.parents:
            for folder in (parent / "data" / "apidocs", parent / INSTALLED):
                if (folder / "record.json").is_file():
                    return folder
    raise FileNotFoundError(
        "data/apidocs was not found: work in a checkout of losslab, install it whole, or set LOSSLAB_DATA_DIR to a "
        "folder with apidocs"
    )


def text_hash(text: str) -> str:
    """First 16 hexadecimal digits of a text's SHA-256."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:HASH_LENGTH]


def group(keys: Sequence[str]) -> NDArray[np.int64]:
    """Number equal keys alike, in order of first appearance, (N,)."""
    numbers: dict[str, int] = {}
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)


def unit_rows(stored: ArrayLike) -> Tensor:
    """Half-precision rows as float32 rows of length 1: rounding to half has moved the length by about 1e-4."""
    rows = torch.from_numpy(np.asarray(stored)).float()
    return torch.nn.functional.normalize(rows, dim=1)


def installed(package: str) -> str | None:
    """Version of a package here, without the local part (``+cpu``); None if it is not installed."""
    try:
        return importlib.metadata.version(DISTRIBUTIONS[package]).split("+")[0]
    except importlib.metadata.PackageNotFoundError:
        return None


def _members(groups: NDArray[np.int64]) -> list[list[int]]:
    members: list[list[int]] = [[] for _ in range(int(groups.max(initial=-1)) + 1)]
    for row, number in enumerate(groups):
        members[int(number)].append(row)
    return members
