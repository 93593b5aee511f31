"""A small language model over bytes, trained on docstrings, and a few of our own sentences to try it on.

Small enough to ship and to run in a chapter, real enough to have a perplexity. ``data/byte_lm/README.md`` says how it
was trained and how well it does.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from losslab.language.evaluator import Evaluator
from losslab.language.result import Result

START = 256  # stands before every text, so that its first byte is predicted too
VOCABULARY = 257  # all bytes, and the start token
TOKENIZER = "UTF-8 bytes"
EMBEDDING, HIDDEN = 48, 256
CHECKPOINT, PROSE, RECORD = "byte_gru.npz", "prose.txt", "record.json"
REMEDY = "check data/byte_lm out again, or train it anew with: python -m losslab.measure.byte_lm"


class ByteModel(nn.Module):
    """Byte, embedding, one GRU layer, scores of the next byte: 313,000 numbers."""

    def __init__(self, embedding: int = EMBEDDING, hidden: int = HIDDEN) -> None:
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, embedding)
        self.gru = nn.GRU(embedding, hidden, batch_first=True)
        self.output = nn.Linear(hidden, VOCABULARY)

    def hidden(self, ids: Tensor, mask: Tensor | None = None) -> Tensor:
        """States after each token, (B, T, hidden): what the output layer reads.

        Parameters
        ----------
        ids : (B, T) int64
            Tokens, 0 to 256.
        mask : (B, T) bool, optional
            True = real. Padding is skipped wherever it stands: a text's states are those that it has alone. States at
            padding mean nothing.
        """
        if mask is None:
            states: Tensor = self.gru(self.embed(ids))[0]
            return states
        # Real tokens first, in their order; run; and back to where they stood.
        order = (~mask).to(torch.uint8).argsort(dim=1, stable=True)
        ordered = self.gru(self.embed(ids.gather(1, order)))[0]
        places = order.argsort(dim=1)[..., None].expand_as(ordered)
        back: Tensor = ordered.gather(1, places)
        return back

    def forward(self, ids: Tensor, mask: Tensor | None = None) -> Tensor:
        """Logits (B, T, 257) of the token after each; otherwise as `hidden`."""
        logits: Tensor = self.output(self.hidden(ids, mask))
        return logits


def encode(texts: Sequence[str], *, side: str = "right", padding: int = 0) -> tuple[Tensor, Tensor]:
    """Start token and UTF-8 bytes of texts as one batch.

    Parameters
    ----------
    texts
        Any texts, the empty one too.
    side
        "right" or "left": where shorter texts are padded, with the start token.
    padding
        Slots by which the batch is wider than its longest text.

    Returns
    -------
    ids : (B, T) int64
    mask : (B, T) bool
        True = the start token of a text or a byte of it.

    Raises
    ------
    ValueError
        No texts, or no such side.
    """
    if isinstance(texts, str) or not len(texts):
        raise ValueError(f"texts must be a sequence of at least one str, got {texts!r}")
    if side not in ("right", "left") or padding < 0:
        raise ValueError(f"side must be 'right' or 'left' and padding at least 0, got {side!r} and {padding}")
    rows = [[START, *text.encode("utf-8", "surrogatepass")] for text in texts]
    width = max(map(len, rows)) + padding
    ids = torch.full((len(rows), width), START)
    mask = torch.zeros(len(rows), width, dtype=torch.bool)
    for i, row in enumerate(rows):
        places = slice(0, len(row)) if side == "right" else slice(width - len(row), width)
        ids[i, places], mask[i, places] = torch.tensor(row), True
    return ids, mask


def evaluate(model: ByteModel, texts: Sequence[str], *, batch_size: int = 16, names: Sequence[str] = ()) -> Result:
    """Perplexity of texts under the model, every byte of them counted; texts are sorted by length to save padding."""
    found = Evaluator(tokenizer=TOKENIZER, vocabulary=VOCABULARY)
    order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
    for first in range(0, len(order), batch_size):
        rows = order[first : first + batch_size]
        some = [texts[i] for i in rows]
        ids, mask = encode(some)
        with torch.inference_mode():
            logits = model(ids, mask)
        found.add(logits, ids, mask, texts=some, ids=[names[i] for i in rows] if names else None)
    return found.result()


def load(folder: Path | None = None) -> ByteModel:
    """Load the shipped model, in float32, ready to be scored.

    Parameters
    ----------
    folder
        Where its files lie; by default ``data/byte_lm`` of the checkout.

    Raises
    ------
    FileNotFoundError
        The folder or a file is not there.
    ValueError
        A file is damaged, or not the one that the record describes.
    """
    content = _checked(CHECKPOINT, folder)
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        weights = {name: torch.from_numpy(file[name]).float() for name in file.files}
    model = ByteModel(weights["embed.weight"].shape[1], weights["output.weight"].shape[1])
    model.load_state_dict(weights)
    return model.eval()


def prose(folder: Path | None = None) -> list[str]:
    """Sentences of this project's own, one text each: the same for every reader. Otherwise as `load`."""
    return _checked(PROSE, folder).decode().splitlines()


def as_checkpoint(model: ByteModel) -> bytes:
    """The weights in float16 as the bytes of an ``.npz``; the same weights give the same bytes."""
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **{n: w.detach().half().numpy() for n, w in model.state_dict().items()})
    return buffer.getvalue()


def find_folder() -> Path:
    """Folder of the shipped model.

    Raises
    ------
    FileNotFoundError
        There is none.
    """
    for start in (Path(__file__).resolve(), Path.cwd() / "here"):
        for parent in start.parents:
            if (parent / "data" / "byte_lm" / PROSE).is_file():
                return parent / "data" / "byte_lm"
    raise FileNotFoundError("data/byte_lm was not found: work in a checkout of losslab")


def _checked(name: str, folder: Path | None) -> bytes:
    """Content of a file that has the SHA-256 of the record."""
    folder = find_folder() if folder is None else Path(folder)
    try:
        sha256 = str(json.loads((folder / RECORD).read_text(encoding="utf-8"))["sha256"][name])
        content = (folder / name).read_bytes()
    except FileNotFoundError as problem:
        raise FileNotFoundError(f"{problem.filename} is missing; {REMEDY}") from None
    except (ValueError, KeyError, TypeError):
        raise ValueError(f"{folder / RECORD} is damaged; {REMEDY}") from None
    if hashlib.sha256(content).hexdigest() != sha256:
        raise ValueError(
            f"{folder / name} ({len(content):,} bytes) is damaged or was changed: its SHA-256 does not begin with "
            f"{sha256[:12]}, as recorded; {REMEDY}"
        )
    return content
