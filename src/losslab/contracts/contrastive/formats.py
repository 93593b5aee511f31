"""Number formats, extremes, devices, and whether it is the objective it says it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from hypothesis import strategies as st

from losslab.contracts.contrastive.agreement import must_agree
from losslab.contracts.contrastive.batches import batches, embeddings, up_to
from losslab.contracts.contrastive.subject import ContrastiveSubject, Taught
from losslab.contracts.listwise.values import HALF_FORMATS, name_of_format
from losslab.contracts.model import BrokenPromise, Contract, Counterexample, Draw, LossFailed, NoKernel, Pairs, Quantity
from losslab.contracts.on_fake_device import NOTE, follow
from losslab.contracts.wording import show
from losslab.device import pick_device

ANY_FORMAT = st.sampled_from([torch.float32, *HALF_FORMATS])


def rounded(pairs: Pairs, dtype: torch.dtype) -> Pairs:
    """The same embeddings as the format holds them."""
    return Pairs(*(torch.tensor(x).to(dtype).double().numpy() for x in (pairs.queries, pairs.documents)))


def in_format(
    loss: ContrastiveSubject, pairs: Pairs, dtype: torch.dtype, sentence: str, temperature: float | None = None
) -> None:
    """The loss in a format against itself in float64, on the same, already rounded embeddings."""
    pairs = rounded(pairs, dtype)
    options: dict[str, Any] = {} if temperature is None else {"temperature": temperature}
    exact = loss.run(pairs, dtype=torch.float64, **options)
    try:
        got = loss.run(pairs, dtype=dtype, **options)
    except NoKernel as missing:
        loss.note(f"{name_of_format(dtype)} not compared: {missing.problem}")
        return
    setting = {"number format": name_of_format(dtype)}
    if temperature is not None:
        setting["temperature"] = show(temperature)
    if not (got.finite and exact.finite):
        said = "Value or gradient is not finite" + ("." if exact.finite else ", in float64 either.")
        quantities = (
            Quantity("loss", float(got.values[0]), float(exact.values[0])),
            Quantity("gradient of query 1", tuple(got.queries[0].tolist()), tuple(exact.queries[0].tolist())),
        )
        raise BrokenPromise(Counterexample(said, (), setting, quantities if exact.finite else (), pairs=pairs))
    half = dtype if dtype in HALF_FORMATS else None
    must_agree(loss, got, exact, pairs, sentence, setting, half=half, temperature=temperature)


def extremes(loss: ContrastiveSubject, draw: Draw) -> None:
    """Positives opposite, negatives the same, long and short embeddings, a low temperature."""
    pairs = draw(batches(further=bool(loss.conventions.more_documents), most=2))
    queries, documents = pairs.queries.copy(), pairs.documents.copy()
    for i in range(len(queries)):
        documents[i] = queries[i] * draw(st.sampled_from([1.0, -1.0]))
    length = draw(st.sampled_from([1.0, 256.0, 1 / 256])) if loss.conventions.normalize else 1.0
    temperature = 0.01 if loss.takes("temperature") and loss.conventions.normalize else None
    dtype = draw(ANY_FORMAT)
    sentence = f"In {name_of_format(dtype)}, cosines of 1 and -1 are further off than the format's rounding explains."
    in_format(loss, Pairs(queries * length, documents * length), dtype, sentence, temperature)


EXTREMES = Contract(
    "extremes",
    "extreme scores are no trouble",
    "With cosines of 1 and -1 at temperature 0.01, and embeddings short or long, value and gradient are finite and, "
    "to rounding, in float32, bfloat16 and float16 what the loss gives in float64.",
    extremes,
    under="A loss that takes no temperature is asked at its own.",
)


def precision(loss: ContrastiveSubject, draw: Draw) -> None:
    """Float32, bfloat16 and float16 against the same loss in float64."""
    pairs = draw(batches(further=bool(loss.conventions.more_documents), most=4))
    jitter = draw(up_to(255, 0))
    steps = np.arange(1, 1 + max(pairs.queries.size, pairs.documents.size))
    small = ((jitter * steps) % 256) / 1024
    queries, documents = (x + small[: x.size].reshape(x.shape) for x in (pairs.queries, pairs.documents))
    if min(np.linalg.norm(x, axis=1).min() for x in (queries, documents)) < 0.1:
        return
    dtype = draw(ANY_FORMAT)
    sentence = f"In {name_of_format(dtype)} it is further from float64 than the format's rounding explains."
    in_format(loss, Pairs(queries, documents), dtype, sentence)


PRECISION = Contract(
    "precision",
    "float32 is enough",
    "On the same embeddings float32 agrees with float64 to a few units in the last place of the scores; bfloat16 and "
    "float16 add only their own rounding of value and gradient.",
    precision,
)

ON_DEVICE = Pairs(
    np.array([[1.0, 0.5], [0.0, 1.0]]),
    np.array([[0.5, 1.0], [1.0, 1.0], [1.0, -1.0]]),
    np.array([[[1.0, 0.0]], [[0.0, -1.0]]]),
    np.array([[True], [False]]),
)


def device(loss: ContrastiveSubject, draw: Draw) -> None:  # noqa: ARG001  (nothing about it is random)
    """On the accelerator if there is one: same result as on the CPU. Else on a fake one."""
    pairs = Pairs(ON_DEVICE.queries, ON_DEVICE.documents[: 3 if loss.conventions.more_documents else 2])
    if loss.takes("hard_negatives") and not loss.conventions.symmetric:
        pairs = Pairs(pairs.queries, pairs.documents, ON_DEVICE.hard, ON_DEVICE.real)
    negatives = np.ones((2, len(pairs.documents)), dtype=bool) if loss.takes("negatives") else None
    on_cpu = loss.run(pairs, negatives=negatives)  # a loss that does not run on the CPU either has other troubles
    accelerator = pick_device()
    if accelerator.type == "cpu":
        leaves, options = loss.inputs(pairs, negatives=negatives)
        with_hard = {"hard_negatives": leaves[2]} if len(leaves) > 2 else {}
        inputs = {"queries": leaves[0], "documents": leaves[1]}

        def call(put: Callable[[torch.Tensor], torch.Tensor]) -> Any:  # noqa: ANN401
            moved = {name: put(x) if isinstance(x, torch.Tensor) else x for name, x in (options | with_hard).items()}
            return loss.loss(*(put(x) for x in inputs.values()), **moved)

        follow(loss.loss, call, Counterexample("", pairs=pairs))
        loss.note(NOTE)
        return
    setting = {"device": accelerator.type}
    try:
        there = loss.run(pairs, negatives=negatives, device=accelerator)
    except LossFailed as failed:
        if "device" not in failed.problem:
            raise
        sentence = f"With all its inputs on {accelerator.type}, {failed.problem}"
        raise BrokenPromise(Counterexample(sentence, (), setting, pairs=pairs)) from failed
    must_agree(loss, there, on_cpu, pairs, f"On {accelerator.type} it teaches something else than on the CPU.", setting)
    loss.note(f"on {accelerator.type}")


DEVICE = Contract(
    "device",
    "it runs where its input is",
    "With its input on a GPU it makes every tensor there.",
    device,
    random=False,
)


def chunked(loss: ContrastiveSubject, draw: Draw) -> None:
    """A few rows at a time: the same value and gradient as all at once."""
    loss.must_take("chunk_size")
    pairs = draw(batches(further=bool(loss.conventions.more_documents), most=4))
    if draw(up_to(3, 0)) == 3:  # near the start, where all documents look alike
        start = draw(embeddings(1, pairs.queries.shape[1]))
        pairs = Pairs(start + pairs.queries / 64, start + pairs.documents / 64)
    size = draw(st.integers(1, len(pairs.documents)))
    must_agree(
        loss,
        loss.run(pairs, chunk_size=size),
        loss.plain(pairs),
        pairs,
        f"In chunks of {size} the batch teaches something else than all at once.",
        {"chunk_size": str(size)},
        wanted="as before",
    )


CHUNKED = Contract(
    "chunked",
    "chunks change nothing",
    "With any chunk_size value and gradient are those of the whole batch at once.",
    chunked,
)


def objective(loss: ContrastiveSubject, draw: Draw) -> None:
    """Value and gradients against the slow float64 loops of the objective it claims to be."""
    pairs = draw(batches(further=bool(loss.conventions.more_documents)))
    b, m = len(pairs.queries), len(pairs.documents)
    targets, setting = None, {}
    if loss.takes("positives"):
        more = np.array(draw(st.lists(st.booleans(), min_size=b * m, max_size=b * m))).reshape(b, m)
        targets = (more | np.eye(b, m, dtype=bool)).astype(float)
        columns = [", ".join(str(j + 1) for j in np.flatnonzero(row)) for row in targets]
        setting["positives"] = "; ".join(f"of query {i + 1} document {text}" for i, text in enumerate(columns))
    elif loss.takes("labels"):
        targets = np.array(draw(st.lists(st.integers(0, 2), min_size=b * m, max_size=b * m)), float).reshape(b, m)
        setting["labels"] = "; ".join(f"of query {i + 1} {row.tolist()}" for i, row in enumerate(targets))
    values, by_query, by_document = loss.against(pairs, loss.conventions, None if targets is None else targets.tolist())
    must_agree(
        loss,
        loss.run(pairs, targets=targets),
        Taught(np.array(values), np.array(by_query), np.array(by_document)),
        pairs,
        "It is not the objective it is compared with.",
        setting,
    )


OBJECTIVE = Contract(
    "objective",
    "it is the objective it claims to be",
    "Value and gradients equal those of the objective named in against=, computed in float64.",
    objective,
    under="At the declared temperature, normalised, symmetric and reduced as declared.",
)
