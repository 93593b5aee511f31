"""What a chunked token loss saves: memory and time of a large vocabulary's loss and gradients, beside full logits.

Each way of computing runs in a process of its own. Memory is how far that process's resident size at most rises above
what it was before the loss, when hidden states, output weights and labels were there already; time is of the same pass,
forward and backward, so of a cold one.
"""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional

from losslab.language import chunked_token_nll
from losslab.measure.info_nce_speed import _peak, _resident
from losslab.measure.record import Measurement, Progress, Row, Value

TOKENS, VOCABULARY, WIDTH = 8192, 128_000, 256
THREADS, SEED, RUNS = 2, 0, 2
Loss = Callable[[Tensor, Tensor, Tensor], Tensor]


def full_logits(hidden: Tensor, weight: Tensor, labels: Tensor) -> Tensor:
    """What is done without chunks: all logits, then the library's cross-entropy."""
    return functional.cross_entropy((hidden @ weight.T).flatten(0, 1), labels.flatten())


def chunked(hidden: Tensor, weight: Tensor, labels: Tensor) -> Tensor:
    """Ours, with the chunk size that it has unless told otherwise."""
    return chunked_token_nll(hidden, weight, labels, shift=False)


FULL, CHUNKED = "full logits and cross_entropy", "losslab, in chunks"
WAYS: dict[str, Loss] = {FULL: full_logits, CHUNKED: chunked}


def layer(tokens: int, vocabulary: int, width: int) -> tuple[Tensor, Tensor, Tensor]:
    """Hidden states (1, tokens, width), output weights (vocabulary, width) of logits about 1 in size, labels."""
    generator = torch.Generator().manual_seed(SEED)
    hidden = torch.randn(1, tokens, width, generator=generator)
    weight = torch.randn(vocabulary, width, generator=generator).mul_(width**-0.5)
    labels = torch.randint(vocabulary, (1, tokens), generator=generator)
    return hidden.requires_grad_(), weight.requires_grad_(), labels


def one_pass(way: str, tokens: int, vocabulary: int, width: int, keep: str | None = None) -> dict[str, float]:
    """Cost of loss and gradients in this process, meant for a fresh one. ``keep`` names a file for the gradients."""
    torch.set_num_threads(THREADS)
    WAYS[way](*layer(8, 16, 4)).backward()  # type: ignore[no-untyped-call]  # load all code first
    hidden, weight, labels = layer(tokens, vocabulary, width)
    gc.collect()
    before, start = _resident(), time.perf_counter()
    loss = WAYS[way](hidden, weight, labels)
    loss.backward()  # type: ignore[no-untyped-call]
    taken = time.perf_counter() - start
    peak = _peak() - before
    if keep is not None:
        torch.save({"hidden": hidden.grad, "weight": weight.grad}, keep)
    return {"seconds": taken, "bytes": float(peak), "loss": float(loss.detach())}


def apart(way: str, tokens: int, vocabulary: int, width: int, keep: str | None = None) -> dict[str, float]:
    """`one_pass` in a process of its own."""
    code = (
        "import json; from losslab.measure.token_nll_memory import one_pass; "
        f"print(json.dumps(one_pass({way!r}, {tokens}, {vocabulary}, {width}, {keep!r})))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def compare(tokens: int, vocabulary: int, width: int, runs: int, progress: Progress = lambda _: None) -> Iterator[Row]:
    """Cost and result of all ways, ``runs`` times in turn; shortest times and their ratio, peaks and theirs."""
    found: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
    with tempfile.TemporaryDirectory() as folder:
        files = {way: str(Path(folder) / f"{i}.pt") for i, way in enumerate(WAYS)}
        for run in range(runs):
            for way in WAYS:
                progress(f"{tokens} tokens, vocabulary {vocabulary}, run {run + 1} of {runs}: {way}")
                found[way].append(apart(way, tokens, vocabulary, width, None if run else files[way]))
        gradients = {way: torch.load(path) for way, path in files.items()}
    best = {way: {key: min(run[key] for run in each) for key in ("seconds", "bytes")} for way, each in found.items()}
    loss = {way: each[0]["loss"] for way, each in found.items()}

    def row(way: str, metric: str, unit: str, value: float) -> Row:
        conditions: dict[str, Value] = {
            "implementation": way,
            "tokens": tokens,
            "vocabulary": vocabulary,
            "width": width,
        }
        return {**conditions, "metric": metric, "unit": unit, "value": value}

    for way in WAYS:
        yield row(way, "shortest time", "s", best[way]["seconds"])
        yield row(way, "peak memory", "bytes", best[way]["bytes"])
        yield row(way, "loss", "nats", loss[way])
    ratio = {key: best[CHUNKED][key] / best[FULL][key] for key in ("seconds", "bytes")}
    yield row(CHUNKED, "time as a share of full logits'", "ratio", ratio["seconds"])
    yield row(CHUNKED, "peak memory as a share of full logits'", "ratio", ratio["bytes"])
    yield row(CHUNKED, "difference of losses", "share of the loss", abs(loss[CHUNKED] - loss[FULL]) / loss[FULL])
    for name, full in gradients[FULL].items():
        difference = float((gradients[CHUNKED][name] - full).abs().max() / full.abs().max())
        yield row(CHUNKED, f"largest difference of {name} gradients", "share of the largest entry", difference)


def collect(progress: Progress) -> Iterator[Row]:
    """All of it; full logits take about 13 GB."""
    yield from compare(TOKENS, VOCABULARY, WIDTH, RUNS, progress)


MEASUREMENT = Measurement(
    name="token-nll-memory",
    title="Token loss of a large vocabulary, chunked beside full logits: peak memory, time, value and gradients",
    columns=("implementation", "tokens", "vocabulary", "width", "metric", "unit", "value"),
    collect=collect,
    settings={"threads": THREADS, "dtype": "float32", "seed": SEED, "runs": RUNS},
)
