"""Number formats, extremes and devices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from hypothesis import strategies as st

from losslab.contracts.contrastive.agreement import must_agree
from losslab.contracts.listwise.values import HALF_FORMATS, name_of_format
from losslab.contracts.matryoshka.sizes import asked
from losslab.contracts.matryoshka.subject import MatryoshkaSubject, Question, Room, sides
from losslab.contracts.model import BrokenPromise, Contract, Draw, LossFailed, NoKernel, Pairs, Quantity
from losslab.contracts.on_fake_device import NOTE, follow
from losslab.device import pick_device

#: bfloat16 more often: it has the fewest digits.
ANY_FORMAT = st.sampled_from([torch.bfloat16, torch.float16, torch.float32, torch.bfloat16])
#: float16 more often: it has the least room between its smallest number and its largest.
EXTREME_FORMAT = st.sampled_from([torch.float16, torch.float16, torch.float32, torch.bfloat16])


def in_format(loss: MatryoshkaSubject, question: Question, dtype: torch.dtype, sentence: str) -> None:
    """The loss in a format against itself in float64, on the same, already rounded embeddings."""
    queries, documents = (torch.tensor(x).to(dtype).double().numpy() for x in sides(question))
    question = replace(question, pairs=Pairs(queries, documents))
    exact = loss.run(question, dtype=torch.float64)
    try:
        got = loss.run(question, dtype=dtype)
    except NoKernel as missing:
        loss.note(f"{name_of_format(dtype)} not compared: {missing.problem}")
        return
    setting = {**question.setting, "number format": name_of_format(dtype)}
    if not (got.finite and exact.finite):
        said = "Value or gradient is not finite" + ("." if exact.finite else ", in float64 either.")
        quantities = (
            Quantity("loss", float(got.values[0]), float(exact.values[0])),
            Quantity("gradient of query 1", tuple(got.queries[0].tolist()), tuple(exact.queries[0].tolist())),
        )
        counterexample = replace(question.seen(said), setting=setting, quantities=quantities if exact.finite else ())
        raise BrokenPromise(counterexample)
    room, half = loss.room(question), dtype if dtype in HALF_FORMATS else None
    try:
        must_agree(room, got, exact, question.pairs, sentence, setting, half=half)
    except BrokenPromise:  # only now is it worth asking about every size by itself
        if half is None:
            raise
        room = with_every_size_rounded(loss, question, room, half)
        must_agree(room, got, exact, question.pairs, sentence, setting, half=half)


def with_every_size_rounded(loss: MatryoshkaSubject, question: Question, room: Room, half: torch.dtype) -> Room:
    """More room: a size's value, and its part of a gradient, may each be rounded to half before they are added up."""
    rounding = torch.finfo(half).eps / 2
    value = gradient = 0.0
    for dim, weight in zip(question.dims, question.weight, strict=True):
        part = loss.run(replace(question, dims=(dim,), weights=None), dtype=torch.float64)
        value += weight * abs(float(part.values[0]))
        gradient += weight * max(float(np.abs(x).max()) for x in part.gradients)
    return Room(room.value + rounding * value, room.gradient + rounding * gradient)


def extremes(loss: MatryoshkaSubject, draw: Draw) -> None:
    """Prefixes of embeddings that are long or short, or that point away from their positives."""
    question = asked(loss, draw, below=True, telling=True)
    queries, documents = question.pairs.queries, question.pairs.documents.copy()
    for i in range(len(queries)):
        documents[i] = queries[i] * draw(st.sampled_from([1.0, -1.0]))
    length = draw(st.sampled_from([1024.0, 1 / 1024]))
    dtype = draw(EXTREME_FORMAT)
    sentence = f"In {name_of_format(dtype)}, prefixes of long or short embeddings are further off than by rounding."
    in_format(loss, replace(question, pairs=Pairs(queries * length, documents * length)), dtype, sentence)


EXTREMES = Contract(
    "extremes",
    "long and short prefixes are no trouble",
    "Below the full size, with embeddings 1024 times as long or as short, and positives the same as their queries or "
    "opposite, value and gradients are finite and, to rounding, in float32, bfloat16 and float16 what float64 gives.",
    extremes,
)


def precision(loss: MatryoshkaSubject, draw: Draw) -> None:
    """Float32, bfloat16 and float16 against the same loss in float64."""
    question = asked(loss, draw, below=draw(st.booleans()), telling=True)
    jitter = draw(st.integers(0, 255))
    steps = np.arange(1, 1 + question.pairs.queries.size)
    small = (((jitter * steps) % 256) / 1024).reshape(question.pairs.queries.shape)
    queries, documents = (x + small for x in sides(question))
    if draw(st.integers(0, 3)):  # mostly all alike, as at the start of a training: no score decides, small errors show
        start = question.pairs.queries[0]
        queries, documents = start + queries / 8, start + documents / 8
    pairs = Pairs(queries, documents)
    if min(np.abs(x[:, 0]).min() for x in (pairs.queries, pairs.documents)) < 0.1:
        return
    for dtype in dict.fromkeys([draw(ANY_FORMAT), torch.float16, torch.bfloat16]):  # the halves are where it shows
        sentence = f"In {name_of_format(dtype)} it is further from float64 than the format's rounding explains."
        in_format(loss, replace(question, pairs=pairs), dtype, sentence)


PRECISION = Contract(
    "precision",
    "float32 is enough",
    "On the same embeddings float32 agrees with float64 to a few units in the last place; bfloat16 and float16 add "
    "only their own rounding of each size's value and gradient.",
    precision,
)

ON_DEVICE = Pairs(np.array([[1.0, 0.5, 2.0], [0.5, 1.0, -1.0]]), np.array([[0.5, 1.0, 1.0], [1.0, -1.0, 0.0]]))


def device(loss: MatryoshkaSubject, draw: Draw) -> None:  # noqa: ARG001  (nothing about it is random)
    """On the accelerator if there is one: same result as on the CPU. Else on a fake one."""
    weights = (1.0, 0.5, 2.0) if loss.takes_weights else None
    question = Question(ON_DEVICE, (3, 1, 2), weights, loss.bases[0]())
    on_cpu = loss.run(question)  # a loss that does not run on the CPU either has other troubles
    accelerator = pick_device()
    if accelerator.type == "cpu":
        queries, documents = (torch.tensor(x, dtype=torch.float32).requires_grad_() for x in sides(question))

        def call(put: Callable[[torch.Tensor], torch.Tensor]) -> Any:  # noqa: ANN401
            return loss.made(question)(put(queries), put(documents))

        follow(loss.loss, call, question.seen())
        loss.note(NOTE)
        return
    setting = {**question.setting, "device": accelerator.type}
    try:
        there = loss.run(question, device=accelerator)
    except LossFailed as failed:
        if "device" not in failed.problem:
            raise
        sentence = f"With all its inputs on {accelerator.type}, {failed.problem}"
        raise BrokenPromise(replace(question.seen(sentence), setting=setting)) from failed
    loss.compare(there, on_cpu, question, f"On {accelerator.type} it teaches something else than on the CPU.", setting)
    loss.note(f"on {accelerator.type}")


DEVICE = Contract(
    "device",
    "it runs where its input is",
    "With its input on a GPU it makes every tensor there.",
    device,
    random=False,
)
