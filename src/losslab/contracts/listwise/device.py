"""Whether every tensor a loss makes is made where its input is."""

from __future__ import annotations

import torch

from losslab.contracts.agreement import must_agree
from losslab.contracts.listwise.lists import SORT_SWITCHES
from losslab.contracts.model import BrokenPromise, Contract, Counterexample, Draw, LossFailed, Query
from losslab.contracts.on_fake_device import NOTE, follow
from losslab.contracts.subject import Subject, make_batch
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
    logits, labels, mask = make_batch(QUERIES, width=0, fill=(0.0, 0.0), dtype=torch.float32, device="cpu")
    inputs = {"logits": logits.requires_grad_(), "labels": labels, "mask": mask}
    follow(loss.loss, lambda put: loss.loss(*map(put, inputs.values())), Counterexample("", QUERIES))
    loss.note(NOTE)


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


DEVICE = Contract(
    "device",
    "it runs where its input is",
    "With its input on a GPU it makes every tensor there.",
    device,
    random=False,
)
