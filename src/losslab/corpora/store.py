"""Embeddings kept by content: what was encoded once is read, not encoded again."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from losslab.corpora.files import as_npz, read_arrays, replace_file


class EmbeddingStore:
    """A folder of embeddings of one model at one setting, each found by the SHA-256 of its text.

    Every `add` writes one file, in one step, named by the SHA-256 of its content: several processes may add at once, an
    interrupted one leaves nothing half-written, and a damaged file does not match its name.

    Parameters
    ----------
    folder
        Where the files lie; created by the first `add`.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._vectors: dict[bytes, NDArray[np.float32]] = {}
        self._read: set[str] = set()

    def find(self, texts: Sequence[str]) -> list[NDArray[np.float32] | None]:
        """Vector of each text, (d,) float32, or None where it is not kept.

        Raises
        ------
        ValueError
            A file in the folder is truncated or was changed; one line that names it. Nothing is deleted.
        """
        for path in sorted(self.folder.glob("*.npz")):
            if path.name not in self._read:
                self._vectors.update(_read(path))
                self._read.add(path.name)
        return [self._vectors.get(text_key(text)) for text in texts]

    def add(self, texts: Sequence[str], vectors: NDArray[np.float32]) -> None:
        """Keep the vectors (n, d) of n texts."""
        keys = [text_key(text) for text in texts]
        content = as_npz(
            keys=np.frombuffer(b"".join(keys), dtype=np.uint8).reshape(len(keys), -1),
            vectors=np.ascontiguousarray(vectors, dtype=np.float32),
        )
        name = f"{hashlib.sha256(content).hexdigest()}.npz"
        replace_file(self.folder / name, content)
        self._vectors.update(zip(keys, np.asarray(vectors, dtype=np.float32), strict=True))
        self._read.add(name)


def text_key(text: str) -> bytes:
    """SHA-256 of a text, 32 bytes."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def _read(path: Path) -> Mapping[bytes, NDArray[np.float32]]:
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != path.stem:
        raise ValueError(
            f"{path} ({len(content):,} bytes) is damaged: its SHA-256 is not its name; delete it, "
            "and what it held is encoded again"
        )
    arrays = read_arrays(path, content)
    keys, vectors = arrays["keys"].astype(np.uint8), arrays["vectors"].astype(np.float32)
    return {key.tobytes(): vector for key, vector in zip(keys, vectors, strict=True)}
