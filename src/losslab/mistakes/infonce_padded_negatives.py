"""Padding among the hard negatives, scored like a document."""

import torch
from torch import Tensor

from losslab.mistakes._examples import tensor
from losslab.mistakes._parts import cosines, own_costs
from losslab.mistakes._record import Example, Function, Mistake


def wrong(
    queries: Tensor, documents: Tensor, hard_negatives: Tensor | None = None, hard_mask: Tensor | None = None
) -> Tensor:
    """InfoNCE with hard negatives (B, H, d), fewer of them for some queries: hard_mask (B, H), True = real."""
    logits = cosines(queries, documents) / 0.05
    if hard_negatives is not None:
        # The mistake: a padded slot is made a zero vector, whose cosine is 0, and stays a candidate.
        hard = hard_negatives if hard_mask is None else hard_negatives.masked_fill(~hard_mask[:, :, None], 0)
        own = [cosines(query[None], rows) / 0.05 for query, rows in zip(queries, hard, strict=True)]
        logits = torch.cat([logits, torch.cat(own)], 1)
    return own_costs(logits).mean().to(queries.dtype)


def show(
    loss: Function,
    *,
    queries: list[list[float]],
    documents: list[list[float]],
    hard_negatives: list[list[list[float]]],
    hard_mask: list[list[bool]],
) -> float:
    """Loss with hard negatives, one slot of them empty."""
    hard = {"hard_negatives": tensor(hard_negatives), "hard_mask": tensor(hard_mask)}
    return float(loss(tensor(queries), tensor(documents), **hard).item())


MISTAKE = Mistake(
    name="infonce_padded_negatives",
    kind="contrastive",
    title="Empty slots are candidates",
    symptom="Queries with fewer hard negatives than others pay for the slots they do not fill.",
    cause="Padded slots are filled with zeros instead of being masked, and a zero vector has cosine 0 with everything.",
    source="built",
    case=None,
    breaks="hard_negatives",
    wrong=wrong,
    right="info_nce",
    met="built",
    topic="batch",
    example=Example(
        {
            "queries": [[1.0, 0.0]],
            "documents": [[0.0, 1.0]],
            "hard_negatives": [[[-1.0, 0.0], [0.0, 0.0]]],
            "hard_mask": [[True, False]],
        },
        show,
        unit="nats",
    ),
)
