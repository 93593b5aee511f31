"""Rows taken twice for rows and columns."""

import torch
from torch import Tensor

from losslab.mistakes._examples import tensor
from losslab.mistakes._parts import cosines, own_costs
from losslab.mistakes._record import Example, Function, Mistake


def wrong(queries: Tensor, documents: Tensor, temperature: float = 0.05) -> Tensor:
    """Both directions, if rows and columns had the same denominators."""
    logits = cosines(queries, documents) / temperature
    # The mistake: the second direction is logits.T; the same rows again only look like an average.
    return ((own_costs(logits) + own_costs(logits)) / 2).mean().to(queries.dtype)


def right(queries: Tensor, documents: Tensor, temperature: float = 0.05) -> Tensor:
    """Queries choose among documents, and documents among queries."""
    logits = cosines(queries, documents) / temperature
    return ((own_costs(logits) + own_costs(logits.T)) / 2).mean().to(queries.dtype)


def show(loss: Function, *, scores: list[list[float]]) -> float:
    """Loss of embeddings, built so that their cosines over a temperature of 1/4 are these scores."""
    cosines = tensor(scores) / 4
    b, m = cosines.shape
    lengths = (1 - cosines.square().sum(0)).sqrt()
    documents = torch.cat([cosines, lengths.diag()]).T
    return float(loss(torch.eye(b, b + m).double(), documents, temperature=0.25).item())


MISTAKE = Mistake(
    name="infonce_symmetric",
    kind="contrastive",
    title="One direction twice",
    symptom="A loss called symmetric changes when queries and documents are swapped.",
    cause="Rows and columns of one matrix of scores have different denominators unless it happens to be symmetric.",
    source="KeremTurgutlu/self_supervised#30",
    case="infonce-symmetric",
    breaks="symmetry",
    wrong=wrong,
    right=right,
    declares={"symmetric": True},
    example=Example(
        {"scores": [[2.0, 1.0], [0.0, 0.5]]},
        show,
        unit="nats",
        note="Rows and columns cost differently, and the right value lies between the two.",
    ),
)
