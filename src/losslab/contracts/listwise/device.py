"""Whether every tensor a loss makes is made where its input is."""

from __future__ import annotations

import traceback
from pathlib import Path

import torch

from losslab.contracts import fake_device
from losslab.contracts.agreement import must_agree
from losslab.contracts.fake_device import FakeCuda, MixedDevicesError, residents_of
from losslab.contracts.listwise.lists import SORT_SWITCHES
from losslab.contracts.model import BrokenPromise, Contract, Counterexample, Draw, LossFailed, Query, Unchecked
from losslab.contracts.subject import Subject, first_line, make_batch
from losslab.device import pick_device

QUERIES = (
    Query((0.0, 0.5, -1.0), (2.0, 0.0, 1.0)),
    Query(tuple(i / 2 for i in range(SORT_SWITCHES)), tuple(float(i % 3) for i in range(SORT_SWITCHES))),
)


def device(loss: Subject, draw: Draw) -> None:  # noqa: ARG001  (nothing about it is random)
    """On the accelerator if there is one: same result as on the CPU. Else on a fake one."""
    loss.run(QUERIES)  # a loss that does not run on the CPU either has other troubles
    accelerator = pick_device()
    if accelerator.type == "cpu":
        on_a_fake_gpu(loss)
    else:
        on_the_accelerator(loss, accelerator)


def on_a_fake_gpu(loss: Subject) -> None:
    """Forward and backward with all inputs on a CUDA device that is not there."""
    if isinstance(loss.loss, torch.jit.ScriptFunction | torch.jit.ScriptModule):
        raise Unchecked("it is compiled by torch.jit, which a fake CUDA device cannot look into; run it on a GPU")
    logits, labels, mask = make_batch(QUERIES, width=0, fill=(0.0, 0.0), dtype=torch.float32, device="cpu")
    fake = FakeCuda(residents_of(loss.loss))
    leaf = logits.requires_grad_()
    try:
        with torch.enable_grad(), fake:
            value = loss.loss(fake.put(leaf.clone()), fake.put(labels), fake.put(mask))
            if not fake.holds(value):
                raise MixedDevicesError("its value comes back on cpu")
            value.sum().backward()
    except MixedDevicesError as mixed:
        raise BrokenPromise(
            Counterexample(
                f"With all its inputs on a GPU, {mixed}{where(mixed)}.",
                QUERIES,
                {"device": "cuda, a fake one (there is no GPU here)"},
            )
        ) from mixed
    except Exception as error:
        raise Unchecked(f"a fake CUDA device could not follow it{where(error)}: {first_line(error)}") from error
    loss.note("on a fake CUDA device (there is no GPU here)")


def on_the_accelerator(loss: Subject, accelerator: torch.device) -> None:
    """The same batch there and on the CPU."""
    try:
        there = loss.run(QUERIES, device=accelerator)
    except LossFailed as failure:
        if "device" not in failure.problem:
            raise
        sentence = f"With all its inputs on {accelerator.type}, {failure.problem}"
        raise BrokenPromise(Counterexample(sentence, QUERIES, {"device": accelerator.type})) from failure
    sentence = f"On {accelerator.type} the batch teaches something else than on the CPU."
    must_agree(loss, there, loss.run(QUERIES), QUERIES, sentence, {"device": accelerator.type})
    loss.note(f"on {accelerator.type}")


def where(error: BaseException) -> str:
    """The last line outside torch and this package that an error went through."""
    inside = (str(Path(torch.__file__).parent), fake_device.__file__, __file__)
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith(inside)]
    if not frames:
        return ""
    return f" in {Path(frames[-1].filename).name}, line {frames[-1].lineno}: {(frames[-1].line or '').strip()}"


DEVICE = Contract(
    "device",
    "it runs where its input is",
    "With its input on a GPU it makes every tensor there.",
    device,
    random=False,
)
