"""Time and memory of `losslab.losses.list_mle` beside sentence-transformers' ListMLELoss."""

from __future__ import annotations

import ast
import gc
import inspect
import json
import random
import statistics
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Literal, cast

import torch
from torch import Tensor

from losslab.contracts.adapters.sentence_transformers import FixedLogits
from losslab.measure.fixed_logits import positions
from losslab.measure.record import Measurement, Progress, Row

LISTS, SHORTEST, LONGEST = 256, 5, 200
RUNS, WARM_UP, SEED = 30, 3, 0

Step = Callable[[], Tensor]


class Batch:
    """The same lists in both forms: as padded matrices, and as the class wants them.

    Lengths are uniform from ``shortest`` to ``longest``, logits standard normal, labels integers from 0 to 3.
    """

    def __init__(self, lists: int = LISTS, shortest: int = SHORTEST, longest: int = LONGEST, seed: int = SEED) -> None:
        generator = torch.Generator().manual_seed(seed)
        lengths = torch.randint(shortest, longest + 1, (lists,), generator=generator)
        self.mask = torch.arange(int(lengths.max())) < lengths[:, None]  # (B, N)
        self.labels = torch.randint(0, 4, self.mask.shape, generator=generator).float() * self.mask
        self.logits = (torch.randn(self.mask.shape, generator=generator) * self.mask).requires_grad_()
        self.padded_labels = self.labels.masked_fill(~self.mask, -torch.inf)  # the class pads labels with -inf
        self.flat = self.logits.detach()[self.mask].requires_grad_()  # (documents of all lists,)
        self.documents = positions(lengths.tolist())
        self.queries = [f"query {i}" for i in range(lists)]
        self.label_list = [row[row_mask] for row, row_mask in zip(self.labels, self.mask, strict=True)]


def tensor_lines(loss_class: type) -> Callable[[Any, Tensor, Tensor, Tensor], Tensor]:
    """Cut a list loss's ``forward`` down to its tensor lines.

    Compiles, from the installed source, every statement from ``if not torch.any(mask)`` to the final ``return``:
    sort, gather, fill, log-cumulative-sum, weights, masking, mean, and the two early returns. Left out are the checks
    of its arguments, the (query, document) pairs, the calls of the model, and the filling of the padded matrices.

    Returns
    -------
    ``function(instance, logits_matrix, labels_matrix, mask)``

    Raises
    ------
    ValueError
        The installed version has no such statement.
    """
    tree = ast.parse(textwrap.dedent(inspect.getsource(loss_class.forward)))  # type: ignore[attr-defined]
    function = tree.body[0]
    assert isinstance(function, ast.FunctionDef)
    starts = [i for i, line in enumerate(function.body) if ast.unparse(line).startswith("if not torch.any(mask)")]
    if not starts:
        raise ValueError(f"{loss_class.__name__}.forward has no line 'if not torch.any(mask)'; written for 5.7 to 6.2")
    function.body = function.body[starts[0] :]
    function.args = ast.parse("def f(self, logits_matrix, labels_matrix, mask): ...").body[0].args  # type: ignore[attr-defined]
    function.returns = None
    module = inspect.getmodule(loss_class)
    scope = dict(vars(module))
    exec(compile(ast.fix_missing_locations(tree), f"<{loss_class.__name__} tensor lines>", "exec"), scope)
    lines: Callable[[Any, Tensor, Tensor, Tensor], Tensor] = scope["forward"]
    return lines


def contestants(batch: Batch) -> dict[tuple[str, str], tuple[Step, Tensor]]:
    """What is compared, by (implementation, order): a step that gives the loss, and the leaf to differentiate by."""
    from sentence_transformers.cross_encoder.losses import ListMLELoss, PListMLELoss

    from losslab.losses import list_mle

    lines = tensor_lines(PListMLELoss)  # ListMLELoss inherits its forward, and sets lambda_weight to None
    columns = (batch.logits, batch.labels, batch.mask)
    pairs = ([batch.queries, batch.documents], batch.label_list)
    entries: dict[tuple[str, str], tuple[Step, Tensor]] = {}
    orders: tuple[tuple[Literal["labels", "given"], bool], ...] = (("labels", False), ("given", True))
    for order, respect in orders:
        driven = ListMLELoss(cast("Any", FixedLogits(batch.flat)), respect_input_order=respect)
        at_once = ListMLELoss(cast("Any", FixedLogits(batch.flat)), respect_input_order=respect, mini_batch_size=-1)
        entries["losslab", order] = (partial(list_mle, *columns, order=order), batch.logits)
        entries["losslab, unchecked", order] = (partial(list_mle, *columns, order=order, validate=False), batch.logits)
        entries["ListMLELoss", order] = (partial(driven, *pairs), batch.flat)
        entries["ListMLELoss, one model call", order] = (partial(at_once, *pairs), batch.flat)
        entries["ListMLELoss, tensor lines", order] = (
            partial(lines, driven, batch.logits, batch.padded_labels, batch.mask),
            batch.logits,
        )
    return entries


def seconds(step: Step, leaf: Tensor) -> float:
    """Wall time of one forward and backward pass."""
    leaf.grad = None
    start = time.perf_counter()
    step().backward()  # type: ignore[no-untyped-call]
    return time.perf_counter() - start


def peak_bytes(step: Step, leaf: Tensor) -> int:
    """Largest sum of live CPU allocations during forward and backward, inputs not counted, in bytes."""
    leaf.grad = None
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        step().backward()  # type: ignore[no-untyped-call]
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace.json"
        profile.export_chrome_trace(str(trace))
        events = json.loads(trace.read_text(encoding="utf-8"))["traceEvents"]
    changes = sorted((event for event in events if event["name"] == "[memory]"), key=lambda event: event["ts"])
    live = peak = 0
    for change in changes:
        live += change["args"]["Bytes"]
        peak = max(peak, live)
    return peak


def compare(batch: Batch, runs: int = RUNS, progress: Progress = lambda _: None) -> Iterator[Row]:
    """Time all contestants ``runs`` times, interleaved, and give medians, ratios of medians and peak allocations.

    "losslab" checks its input, "losslab, unchecked" does not (``validate=False``). "ListMLELoss" is the installed class
    driven with fixed logits: in its default way, one model call for as many documents as there are queries, and with
    all documents in "one model call". "Tensor lines" is what `tensor_lines` leaves of it, given padded matrices.
    """
    entries = contestants(batch)
    times: dict[tuple[str, str], list[float]] = {entry: [] for entry in entries}
    shuffle = random.Random(SEED)
    gc.collect()
    gc.disable()
    try:
        for run in range(-WARM_UP, runs):
            if run % 10 == 0:
                progress(f"run {run} of {runs}")
            for entry in shuffle.sample(list(entries), len(entries)):  # so that none always runs in another's wake
                elapsed = seconds(*entries[entry])
                if run >= 0:
                    times[entry].append(elapsed)
    finally:
        gc.enable()
    progress("peak allocation")
    peaks = {entry: peak_bytes(step, leaf) for entry, (step, leaf) in entries.items()}
    for (name, order), elapsed_all in times.items():
        milliseconds = [1000 * elapsed for elapsed in elapsed_all]
        ours_time, ours_peak = statistics.median(times["losslab", order]), peaks["losslab", order]
        values: dict[tuple[str, str], float] = {
            ("median time", "ms"): statistics.median(milliseconds),
            ("shortest time", "ms"): min(milliseconds),
            ("longest time", "ms"): max(milliseconds),
            ("peak allocation", "bytes"): peaks[name, order],
            ("losslab's time as a share of this", "ratio"): ours_time / statistics.median(elapsed_all),
            ("losslab's peak as a share of this", "ratio"): ours_peak / peaks[name, order],
        }
        for (metric, unit), value in values.items():
            yield {"implementation": name, "order": order, "metric": metric, "unit": unit, "value": value}


MEASUREMENT = Measurement(
    name="list-mle-speed",
    title="ListMLE forward and backward, ours beside sentence-transformers': time and peak allocation",
    columns=("implementation", "order", "metric", "unit", "value"),
    collect=lambda progress: compare(Batch(), progress=progress),
    settings={"lists": LISTS, "documents": [SHORTEST, LONGEST], "dtype": "float32", "runs": RUNS, "seed": SEED},
)
