"""Files that are whole or not there: found, checked against their hash, replaced in one step."""

from __future__ import annotations

import hashlib
import io
import os
import tempfile
from contextlib import suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

CHUNK = 1 << 20  # bytes read at a time


def data_folder(name: str) -> Path | None:
    """Folder of the data set ``name`` in ``LOSSLAB_DATA_DIR``, or None if there is none.

    Raises
    ------
    ValueError
        ``LOSSLAB_DATA_DIR`` is set but is no folder.
    """
    root = os.environ.get("LOSSLAB_DATA_DIR")
    if not root:
        return None
    if not Path(root).is_dir():
        raise ValueError(f"LOSSLAB_DATA_DIR is {root!r}, which is no folder; correct or unset it")
    folder = Path(root) / name
    return folder if folder.is_dir() else None


def cache_folder(name: str) -> Path:
    """Where things that can be had again are kept: ``~/.cache/losslab/NAME``, or below ``XDG_CACHE_HOME``."""
    root = os.environ.get("XDG_CACHE_HOME")
    return (Path(root) if root else Path.home() / ".cache") / "losslab" / name


def sha256_of(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal, read piece by piece."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(CHUNK):
            digest.update(piece)
    return digest.hexdigest()


def read_checked(path: Path, sha256: str, remedy: str) -> bytes:
    """Content of a file that must have the given SHA-256.

    Raises
    ------
    FileNotFoundError, ValueError
        The file is not there, or is another one (truncated, edited); one line that ends in ``remedy``.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise FileNotFoundError(f"{path} is missing; {remedy}") from None
    if hashlib.sha256(content).hexdigest() != sha256:
        raise ValueError(
            f"{path} ({len(content):,} bytes) is damaged or was changed: its SHA-256 does not begin with "
            f"{sha256[:12]}, as recorded; {remedy}"
        )
    return content


def read_arrays(path: Path, content: bytes | None = None) -> dict[str, NDArray[np.generic]]:
    """Arrays of an ``.npz`` file.

    Raises
    ------
    ValueError
        The file is no whole ``.npz``; one line naming it.
    """
    try:
        with np.load(io.BytesIO(path.read_bytes() if content is None else content), allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except FileNotFoundError:
        raise
    except Exception as problem:  # zipfile, numpy and zlib each have their own way to say that bytes are missing
        raise ValueError(f"{path} is no whole .npz file ({type(problem).__name__}); fetch or make it again") from None


def as_npz(**arrays: NDArray[np.generic]) -> bytes:
    """Arrays as the bytes of an ``.npz``; the same arrays give the same bytes."""
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)
    return buffer.getvalue()


def replace_file(path: Path, content: bytes) -> None:
    """Put ``content`` at ``path`` in one step: readers see the old file or the new one, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(temporary).chmod(0o644)  # mkstemp makes files that only their owner can read
        Path(temporary).replace(path)
    except BaseException:
        with suppress(FileNotFoundError):
            Path(temporary).unlink()
        raise
