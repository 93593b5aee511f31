"""Exponentials by hand."""

import torch
from torch import Tensor
from torch.nn.functional import normalize

from losslab.mistakes._examples import tensor
from losslab.mistakes._record import Example, Function, Mistake


def wrong(queries: Tensor, documents: Tensor, temperature: float = 0.05) -> Tensor:
    """InfoNCE as its formula is written."""
    single = queries.dtype if queries.dtype == torch.float64 else torch.float32
    scores = normalize(queries.to(single), dim=1) @ normalize(documents.to(single), dim=1).T
    # The mistake: exp(1 / 0.01) is more than float32 holds, and exp(-1 / 0.01) less.
    mass = (scores / temperature).exp()
    return -(mass.diagonal() / mass.sum(1)).log().mean().to(queries.dtype)


def show(
    loss: Function, *, queries: list[list[float]], documents: list[list[float]], temperatures: list[float]
) -> dict[str, float]:
    """Loss in float32 at several temperatures."""
    q, d = tensor(queries, torch.float32), tensor(documents, torch.float32)
    return {f"temperature {t:g}": loss(q, d, temperature=t).item() for t in temperatures}


MISTAKE = Mistake(
    name="infonce_overflow",
    kind="contrastive",
    title="Overflow at low temperature",
    symptom="At temperature 0.01 the loss is nan or inf, at 0.05 it is fine.",
    cause="Exponentials are taken one by one, without the largest logit subtracted first.",
    source="built",
    case=None,
    breaks="extremes",
    wrong=wrong,
    right="info_nce",
    met="built",
    topic="temperature",
    example=Example(
        {"queries": [[1.0, 0.0], [0.0, 1.0]], "documents": [[0.0, 1.0], [1.0, 0.0]], "temperatures": [0.05, 0.01]},
        show,
        unit="nats, in float32",
    ),
)
