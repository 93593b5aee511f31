"""How fast InfoNCE runs beside the real losses, and what chunks save.

Time is of one forward and backward pass by both embeddings, all contestants interleaved in one run. Memory is that of a
process of its own for each way of computing: how far its resident size at most rises above that before the loss.
"""

from __future__ import annotations

import gc
import math
import random
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional

from losslab.losses import info_nce
from losslab.measure.record import Measurement, Progress, Row

BATCHES = {256: 60, 1024: 20, 4096: 6}  # queries, and runs of each contestant
DIMENSIONS, TEMPERATURE, SEED = 384, 0.05, 0
#: NTXentLoss holds a row of all negatives for every positive pair, B x B x (B - 1) numbers: 67 MB here, 4 GB at 1024.
LARGEST_FOR_NT_XENT = 256
LARGE, CHUNK = 8192, 128
Loss = Callable[[Tensor, Tensor], Tensor]


def pairs(batch: int, *, alike: float | None = None, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
    """Queries and documents as a half-trained model might give them; or all alike, to within this part of them."""
    generator = torch.Generator().manual_seed(SEED)
    queries = torch.randn(batch, DIMENSIONS, generator=generator, dtype=dtype)
    documents = torch.randn(batch, DIMENSIONS, generator=generator, dtype=dtype)
    if alike is None:  # in place all of it: a copy here would be the peak of memory that is measured
        documents.mul_(2).add_(queries)
    else:
        queries.mul_(alike).add_(1)
        documents.mul_(alike).add_(1)
    return queries.requires_grad_(), documents.requires_grad_()


def tensor_lines(queries: Tensor, documents: Tensor) -> Tensor:
    """What MultipleNegativesRankingLoss computes, without model and options: cosines, times 20, cross-entropy."""
    queries, documents = functional.normalize(queries, dim=1), functional.normalize(documents, dim=1)
    scores = queries @ documents.T * (1 / TEMPERATURE)
    return functional.cross_entropy(scores, torch.arange(len(scores)))


def contestants(batch: int) -> dict[str, Loss]:
    """What is compared at this many pairs."""
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

    driven = MultipleNegativesRankingLoss(torch.nn.Identity(), scale=1 / TEMPERATURE)  # type: ignore[arg-type]
    labels = torch.empty(0)
    entries: dict[str, Loss] = {
        "losslab": partial(info_nce, temperature=TEMPERATURE),
        "losslab, unchecked": partial(info_nce, temperature=TEMPERATURE, validate=False),
        "losslab, in chunks": partial(info_nce, temperature=TEMPERATURE, chunk_size=CHUNK),
        "MultipleNegativesRankingLoss, tensor lines": tensor_lines,
        "MultipleNegativesRankingLoss": lambda q, d: driven.compute_loss_from_embeddings([q, d], labels),
    }
    if batch <= LARGEST_FOR_NT_XENT:
        from pytorch_metric_learning.losses import NTXentLoss  # type: ignore[import-untyped]

        metric, ids = NTXentLoss(temperature=TEMPERATURE), torch.arange(batch)
        # A copy of the labels: given one object twice, the library takes the diagonal for self-comparisons.
        entries["NTXentLoss"] = lambda q, d: metric(q, ids, ref_emb=d, ref_labels=ids.clone())
    return entries


def seconds(loss: Loss, queries: Tensor, documents: Tensor) -> float:
    """Wall time of one forward and backward pass."""
    queries.grad = documents.grad = None
    start = time.perf_counter()
    loss(queries, documents).backward()  # type: ignore[no-untyped-call]
    return time.perf_counter() - start


def times(batch: int, runs: int, progress: Progress = lambda _: None) -> Iterator[Row]:
    """Median times at one batch size, and losslab's as a share of each."""
    queries, documents = pairs(batch)
    entries = contestants(batch)
    taken: dict[str, list[float]] = {name: [] for name in entries}
    shuffle = random.Random(SEED)
    gc.collect()
    gc.disable()
    try:
        for run in range(-2, runs):
            if run % 10 == 0:
                progress(f"{batch} pairs, run {run} of {runs}")
            for name in shuffle.sample(list(entries), len(entries)):  # so that none always runs in another's wake
                if name == "NTXentLoss" and run > 4:
                    continue  # hundreds of times slower: five runs tell enough
                elapsed = seconds(entries[name], queries, documents)
                if run >= 0:
                    taken[name].append(elapsed)
    finally:
        gc.enable()
    ours = statistics.median(taken["losslab"])
    for name, each in taken.items():
        median = statistics.median(each)
        yield _row(name, batch, "median time", "ms", 1000 * median)
        yield _row(name, batch, "shortest time", "ms", 1000 * min(each))
        yield _row(name, batch, "losslab's time as a share of this", "ratio", ours / median)


def memory(batch: int, chunk_size: int | None) -> int:
    """Bytes by which a fresh process's peak resident size rises while it computes loss and gradients."""
    code = f"from losslab.measure.info_nce_speed import rise; print(rise({batch}, {chunk_size}))"
    return int(subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, text=True).stdout)


def rise(batch: int, chunk_size: int | None) -> int:
    """Bytes by which this process's resident size at most rises during one pass; meant for a fresh one."""
    queries, documents = pairs(batch)
    seconds(partial(info_nce, chunk_size=chunk_size), *pairs(256))  # load all code first, float32 products included
    gc.collect()
    before = _resident()
    seconds(partial(info_nce, temperature=TEMPERATURE, chunk_size=chunk_size), queries, documents)
    return _peak() - before


def _peak() -> int:
    """Largest resident size of this process so far, in bytes."""
    status = Path("/proc/self/status")
    if status.exists():  # what getrusage says on Linux is inherited from the process that started this one
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _resident() -> int:
    """Resident size now, in bytes; its peak so far where the system does not tell."""
    pages = Path("/proc/self/statm")
    return int(pages.read_text().split()[1]) * resource.getpagesize() if pages.exists() else _peak()


def differences(batch: int, alike: float | None, dtype: torch.dtype) -> tuple[float, float]:
    """Value of the whole matrix, and the largest difference of chunked gradients as a share of the largest entry."""
    results = []
    for chunk_size in (None, CHUNK):
        queries, documents = pairs(batch, alike=alike, dtype=dtype)
        loss = info_nce(queries, documents, temperature=TEMPERATURE, chunk_size=chunk_size)
        results.append((float(loss.detach()), torch.autograd.grad(loss, (queries, documents))))
    (value, whole), (_, chunked) = results
    shares = [float((a - b).abs().max() / a.abs().max()) for a, b in zip(whole, chunked, strict=True)]
    return value, max(shares)


def collect(progress: Progress = lambda _: None) -> Iterator[Row]:
    """All of it."""
    for batch, runs in BATCHES.items():
        yield from times(batch, runs, progress)
    peaks = {}
    for name, chunk_size in (("losslab", None), ("losslab, in chunks", CHUNK)):
        progress(f"memory at {LARGE} pairs: {name}")
        peaks[name] = memory(LARGE, chunk_size)
        yield _row(name, LARGE, "peak memory", "bytes", peaks[name])
    share = peaks["losslab, in chunks"] / peaks["losslab"]
    yield _row("losslab, in chunks", LARGE, "peak memory as a share of the whole matrix's", "ratio", share)
    for dtype, batch in ((torch.float32, LARGE), (torch.float64, LARGE // 4)):
        name = str(dtype).removeprefix("torch.")
        for start, alike in (("half trained", None), ("all alike", 1e-2)):
            progress(f"gradients at {batch} pairs, {name}, {start}")
            value, difference = differences(batch, alike, dtype)
            metric = f"largest difference of chunked gradients, {name}, {start}"
            yield _row("losslab, in chunks", batch, metric, "share of the largest entry", difference)
            yield _row("losslab", batch, f"value less ln B, {name}, {start}", "nats", value - math.log(batch))


def _row(name: str, batch: int, metric: str, unit: str, value: float) -> Row:
    return {"implementation": name, "batch": batch, "metric": metric, "unit": unit, "value": value}


MEASUREMENT = Measurement(
    name="info-nce-speed",
    title="InfoNCE forward and backward, ours beside real libraries': time; and memory and gradients in chunks",
    columns=("implementation", "batch", "metric", "unit", "value"),
    collect=collect,
    settings={
        "runs": {str(batch): runs for batch, runs in BATCHES.items()},
        "dimensions": DIMENSIONS,
        "temperature": TEMPERATURE,
        "chunk_size": CHUNK,
        "dtype": "float32",
        "seed": SEED,
    },
)
