"""Gathered documents, and targets that count from 0."""

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from losslab.mistakes._examples import value
from losslab.mistakes._parts import cosines
from losslab.mistakes._record import Example, Mistake


def wrong(queries: Tensor, documents: Tensor, temperature: float = 0.05, positive_offset: int = 0) -> Tensor:  # noqa: ARG001
    """InfoNCE of one process's queries among the documents of all processes."""
    # The mistake: positive_offset is not added, so on every process but the first the targets are another's documents.
    targets = torch.arange(len(queries), device=queries.device)
    return cross_entropy(cosines(queries, documents) / temperature, targets).to(queries.dtype)


MISTAKE = Mistake(
    name="infonce_offset_ignored",
    kind="contrastive",
    title="Targets count from 0",
    symptom="On one process it trains; on several, queries are pulled to other queries' documents.",
    cause="The position of the positives among the gathered documents is not added to the targets.",
    source="built",
    case=None,
    breaks="positive_offset",
    wrong=wrong,
    right="info_nce",
    met="built",
    topic="batch",
    example=Example(
        {"queries": [[1.0, 0.0]], "documents": [[0.0, 1.0], [1.0, 0.0]], "positive_offset": 1}, value, unit="nats"
    ),
)
