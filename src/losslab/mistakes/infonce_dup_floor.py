"""The same text twice in a batch: its own positive is among its negatives."""

import torch
from torch import Tensor

from losslab.mistakes._parts import cosines, own_costs
from losslab.mistakes._record import Example, Function, Mistake


def wrong(queries: Tensor, documents: Tensor, temperature: float = 0.05) -> Tensor:
    """InfoNCE over whatever documents the batch happens to hold."""
    logits = cosines(queries, documents) / temperature
    # The mistake: nothing is masked, so two equal pairs among B cost (2 / B) ln 2, however good the model.
    return own_costs(logits).mean().to(queries.dtype)


def right(queries: Tensor, documents: Tensor, temperature: float = 0.05) -> Tensor:
    """InfoNCE in which a copy of the query's own document is no negative of it."""
    copies = (documents[: len(queries), None] == documents[None]).all(-1).fill_diagonal_(False)
    logits = (cosines(queries, documents) / temperature).masked_fill(copies, -torch.inf)
    return own_costs(logits).mean().to(queries.dtype)


def show(loss: Function, *, texts: list[int], temperature: float) -> float:
    """Loss of a perfect model on pairs of these texts, equal numbers for equal texts."""
    rows = torch.eye(len(texts), dtype=torch.float64)[texts]
    return float(loss(rows, rows, temperature=temperature).item())


MISTAKE = Mistake(
    name="infonce_dup_floor",
    kind="contrastive",
    title="The positive among the negatives",
    symptom="The loss stops falling at (2 / B) ln 2 as soon as two rows of a batch share a positive.",
    cause="Every other row's positive is a negative, also when it is the same text.",
    source="huggingface/sentence-transformers#3189",
    case="infonce-dup-floor",
    breaks="duplicates",
    wrong=wrong,
    right=right,
    declares={"duplicates": "masked"},
    topic="batch",
    example=Example(
        {"texts": [0, 0, 2, 3], "temperature": 0.05},
        show,
        unit="nats",
        note="The model is perfect, one vector a text. It pays (2/4) ln 2 all the same.",
    ),
)
