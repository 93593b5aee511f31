"""Number formats, extreme logits and devices."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from hypothesis import strategies as st

from losslab.contracts.listwise.values import HALF_FORMATS, name_of_format
from losslab.contracts.model import BrokenPromise, Contract, Counterexample, Draw, LossFailed, NoKernel, Texts
from losslab.contracts.on_fake_device import NOTE, follow
from losslab.contracts.token.agreement import broken, must_agree
from losslab.contracts.token.subject import TokenSubject
from losslab.contracts.token.texts import padded, texts
from losslab.device import pick_device

ANY_FORMAT = st.sampled_from([torch.float32, *HALF_FORMATS])
STRETCHES = st.sampled_from([1.0, 4.0, 20.0, 100.0, 500.0])  # of logits up to 2
JITTERS = st.integers(0, 255)
LARGEST = math.log(torch.finfo(torch.float32).max) - 1  # nats whose perplexity is a number


def extremes(loss: TokenSubject, draw: Draw) -> None:
    """Logits from -1000 to 1000 in each format against float64, on the same, already rounded logits."""
    (text,) = draw(texts(most=5))
    dtype, stretch, jitter = draw(ANY_FORMAT), draw(STRETCHES), draw(JITTERS)
    steps = np.arange(1, 1 + text.logits.size).reshape(text.logits.shape)
    logits = (text.logits + (jitter * steps % 256) / 4096) * stretch
    text = Texts(torch.tensor(logits).to(dtype).double().numpy(), text.labels)
    name, want = name_of_format(dtype), loss.exact(text)
    if loss.perplexity and want.value > LARGEST:
        return  # infinity is right, and so is an error that says so
    try:
        got = loss.run(text, dtype=dtype)
    except NoKernel as missing:
        loss.note(f"{name} not compared: {missing.problem}")
        return
    if loss.perplexity and want.value > math.log(torch.finfo(got.dtype).max) - 1:
        return
    setting = {"number format": name}
    if not got.finite:
        raise broken(loss, got, want, text, "Value or gradient is not finite.", setting)
    half = dtype if dtype in HALF_FORMATS else None
    sentence = f"In {name} it is further from float64 than the format's rounding explains."
    must_agree(loss, got, want, text, sentence, setting, half=half)


EXTREMES = Contract(
    "extremes",
    "extreme logits are no trouble",
    "For logits from -1000 to 1000, in float32, bfloat16 and float16, value and gradient are finite and, to the "
    "format's rounding, what float64 gives on the same logits.",
    extremes,
    under="A perplexity beyond the format's largest number is not asked for.",
)

ON_DEVICE = padded(
    [
        Texts(np.array([[[0.0, 1.0, -1.0], [2.0, 0.0, 1.0], [0.5, 0.0, 0.0]]]), np.array([[0, 2, 1]])),
        Texts(np.array([[[1.0, 0.0, 0.5], [0.0, 0.0, 2.0]]]), np.array([[1, 0]])),
    ]
)


def device(loss: TokenSubject, draw: Draw) -> None:  # noqa: ARG001  (nothing about it is random)
    """On the accelerator if there is one: same result as on the CPU. Else on a fake one."""
    batch = ON_DEVICE
    if loss.mask_keyword is not None:
        batch = Texts(batch.logits, batch.labels, np.array([[True, True, True], [True, True, False]]))
    on_cpu = loss.run(batch)  # a loss that does not run on the CPU either has other troubles
    seen = Counterexample("", texts=loss.seen(batch))
    accelerator = pick_device()
    if accelerator.type == "cpu":
        if on_cpu.gradient is None:
            loss.note("forward only")
        logits, labels, mask = loss.inputs(batch)

        def call(put: Callable[[torch.Tensor], torch.Tensor]) -> Any:  # noqa: ANN401
            there = put(logits)
            value = loss.loss(there, put(labels), **{name: put(x) for name, x in mask.items()})
            # What is no tensor, or has no gradient, as a metric may, has at least been computed there.
            return there.sum() * 0 + value if on_cpu.gradient is None else value

        follow(loss.loss, call, seen)
        loss.note(NOTE)
        return
    setting = {"device": accelerator.type}
    try:
        there = loss.run(batch, device=accelerator)
    except LossFailed as failed:
        if "device" not in failed.problem:
            raise
        sentence = f"With all its inputs on {accelerator.type}, {failed.problem}"
        raise BrokenPromise(Counterexample(sentence, (), setting, texts=seen.texts)) from failed
    sentence = f"On {accelerator.type} it teaches something else than on the CPU."
    must_agree(loss, there, on_cpu, batch, sentence, setting)
    loss.note(f"on {accelerator.type}")


DEVICE = Contract(
    "device",
    "it runs where its input is",
    "With its input on a GPU it makes every tensor there.",
    device,
    random=False,
)
