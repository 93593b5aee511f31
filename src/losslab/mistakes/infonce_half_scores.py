"""Cosines in bfloat16, divided by 0.05."""

import torch
from torch import Tensor
from torch.nn.functional import normalize

from losslab.mistakes._examples import tensor
from losslab.mistakes._parts import own_costs
from losslab.mistakes._record import Example, Function, Mistake


def wrong(queries: Tensor, documents: Tensor, temperature: float = 0.05) -> Tensor:
    """InfoNCE in whatever precision the model happens to use."""
    # The mistake: near 1 a bfloat16 cosine comes in steps of 1/256, a logit at 0.05 in steps of 1/12.
    logits = normalize(queries, dim=1) @ normalize(documents, dim=1).T / temperature
    return own_costs(logits).mean()


def show(loss: Function, *, queries: list[list[float]], documents: list[list[float]]) -> float:
    """Loss of embeddings in bfloat16."""
    return float(loss(tensor(queries, torch.bfloat16), tensor(documents, torch.bfloat16)).item())


MISTAKE = Mistake(
    name="infonce_half_scores",
    kind="contrastive",
    title="Scores in half precision",
    symptom="In mixed precision near neighbours tie, and the loss is off in its second digit.",
    cause="Lengths, cosines and logits are computed in the embeddings' own dtype instead of float32 or better.",
    source="built",
    case=None,
    breaks="precision",
    wrong=wrong,
    right="info_nce",
    met="built",
    topic="temperature",
    example=Example(
        {"queries": [[1.0, 0.0]], "documents": [[1.0, 0.03125], [1.0, 0.0625]]},
        show,
        unit="nats, in bfloat16",
    ),
)
