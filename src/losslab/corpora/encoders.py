"""Texts to unit vectors, with sentence-transformers; nothing is encoded twice."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from losslab.corpora.files import cache_folder, sha256_of
from losslab.corpora.models import KNOWN, MINILM, TIMEOUT, WEIGHTS, Pinned, Unavailable, check_weights, locate
from losslab.corpora.store import EmbeddingStore
from losslab.device import pick_device

CHUNK = 512  # texts between two writes to the store: what an interruption can cost


class Encoder:
    """One model at one setting.

    Parameters
    ----------
    model
        Id of a pinned model (those in `KNOWN`), or a local folder that sentence-transformers can read.
    max_seq_length
        Tokens of a text that are read; by default the model's own.
    sha256
        What the weights in a local folder must have; a pinned model brings its own.
    precision
        "bfloat16" or "float32"; by default bfloat16 where the CPU computes in it (about 1.6 times as fast), float32
        elsewhere. Vectors come out as float32.
    store
        Folder for what is encoded; by default in the user's cache.
    timeout
        Seconds without a byte after which the hub is given up.

    Raises
    ------
    ValueError
        The model is neither pinned nor a folder, its weights have another hash, or the precision is none of the two.
    """

    def __init__(
        self,
        model: str | Path = MINILM.name,
        *,
        max_seq_length: int | None = None,
        sha256: str | None = None,
        precision: str | None = None,
        store: Path | None = None,
        timeout: float = TIMEOUT,
    ) -> None:
        self._pinned: Pinned | None = KNOWN.get(str(model))
        self._folder: Path | None = None
        self._model: Any = None
        self._timeout = timeout
        if self._pinned is not None:
            self.sha256 = self._pinned.sha256
        elif Path(model).is_dir():
            self._folder = Path(model)
            if sha256 is not None:
                check_weights(self._folder, sha256, "name another folder or another hash")
            elif not (self._folder / WEIGHTS).is_file():
                raise ValueError(f"{model} holds no {WEIGHTS}; name the folder of a saved model")
            self.sha256 = sha256 or sha256_of(self._folder / WEIGHTS)
        else:
            raise ValueError(f"model must be a folder or one of {', '.join(KNOWN)}, got {str(model)!r}")
        if precision not in (None, "bfloat16", "float32"):
            raise ValueError(f'precision must be "bfloat16" or "float32", got {precision!r}')
        if max_seq_length is not None and max_seq_length < 1:
            raise ValueError(f"max_seq_length must be at least 1, got {max_seq_length}")
        self.precision = precision or ("bfloat16" if cpu_has_bfloat16() else "float32")
        self.max_seq_length = max_seq_length or (self._pinned.max_seq_length if self._pinned else None)
        setting = f"{self.sha256[:16]}-{self.max_seq_length or 'own'}-{self.precision}"
        self.store = EmbeddingStore((store or cache_folder("embeddings")) / setting)

    def encode(self, texts: Sequence[str], *, progress: bool = True) -> Tensor:
        """Unit vectors of ``texts``, (n, d) float32.

        The model is loaded only if some text has not been encoded before.

        Parameters
        ----------
        texts
            At least one.
        progress
            Show a bar while encoding.

        Raises
        ------
        ValueError
            No texts, one that is no string, or a vector that is not finite.
        Unavailable
            The model is needed and cannot be had.
        """
        if isinstance(texts, str) or not texts or not all(isinstance(text, str) for text in texts):
            raise ValueError(f"texts must be a non-empty sequence of strings, got {_seen(texts)}")
        found = self.store.find(texts)
        wanted = sorted({text for text, vector in zip(texts, found, strict=True) if vector is None}, key=len)
        if wanted:
            self._encode(wanted, progress=progress)
            found = self.store.find(texts)
        return torch.from_numpy(np.stack([vector for vector in found if vector is not None]))

    def _encode(self, texts: Sequence[str], *, progress: bool) -> None:
        from tqdm import tqdm  # type: ignore[import-untyped]

        model = self._loaded()
        with tqdm(total=len(texts), desc="encoding", unit="text", disable=not progress) as bar:
            for start in range(0, len(texts), CHUNK):
                chunk = list(texts[start : start + CHUNK])
                with torch.inference_mode():
                    # normalised here, in float32: at half precision the lengths would be off by up to 1/256
                    vectors = model.encode(chunk, batch_size=32, convert_to_tensor=True, show_progress_bar=False)
                    vectors = torch.nn.functional.normalize(vectors.float(), dim=1).cpu()
                if not vectors.isfinite().all():
                    raise ValueError(f"the model gave a vector that is not finite at precision {self.precision}")
                self.store.add(chunk, vectors.numpy())
                bar.update(len(chunk))

    def _loaded(self) -> Any:  # noqa: ANN401
        if self._model is None:
            if self._folder is None:
                assert self._pinned is not None
                self._folder = locate(self._pinned, timeout=self._timeout)
            os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
            try:
                from sentence_transformers import SentenceTransformer
                from transformers.utils import logging
            except ImportError as problem:
                raise Unavailable(f"{problem}; encoding needs: pip install 'losslab[libraries]'") from None
            logging.disable_progress_bar()  # type: ignore[no-untyped-call]
            try:
                model = SentenceTransformer(str(self._folder), device=str(pick_device()), local_files_only=True)
            except Exception as problem:  # whatever the readers of a dozen files raise
                reason = str(problem).strip().split("\n")[0] or type(problem).__name__
                raise ValueError(f"{self._folder} is no model that sentence-transformers can read: {reason}") from None
            if self.max_seq_length is not None:
                model.max_seq_length = self.max_seq_length
            if self.precision == "bfloat16":
                model.bfloat16()
            self._model = model
        return self._model


def encode(texts: Sequence[str], model: str | Path = MINILM.name, *, progress: bool = True) -> Tensor:
    """Unit vectors of ``texts`` by ``model``, (n, d) float32, from the cache where they are in it; see `Encoder`."""
    return Encoder(model).encode(texts, progress=progress)


def cpu_has_bfloat16() -> bool:
    """Whether the CPU multiplies bfloat16 itself; where torch cannot say, no."""
    questions = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    return any(bool(ask()) for name in questions if (ask := getattr(torch.cpu, name, None)) is not None)


def _seen(texts: object) -> str:
    if isinstance(texts, str):
        return "one string; wrap it in a list"
    if isinstance(texts, Sequence):
        wrong = next((text for text in texts if not isinstance(text, str)), None)
        return "none" if not texts else f"a {type(wrong).__name__} among them"
    return f"a {type(texts).__name__}"
