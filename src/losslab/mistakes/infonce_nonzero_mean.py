"""A mean over the rows that still cost something."""

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from losslab.mistakes._examples import value
from losslab.mistakes._parts import cosines
from losslab.mistakes._record import Example, Mistake


def wrong(queries: Tensor, documents: Tensor, temperature: float = 0.05) -> Tensor:
    """InfoNCE in float32, averaged over rows that are not yet learned."""
    logits = (cosines(queries, documents) / temperature).float()
    costs = cross_entropy(logits, torch.arange(len(queries), device=queries.device), reduction="none")
    # The mistake, or the design: rows that round to 0 leave the mean, so the others weigh more as training goes on.
    return (costs.sum() / (costs > 0).sum().clamp(min=1)).to(queries.dtype)


MISTAKE = Mistake(
    name="infonce_nonzero_mean",
    kind="contrastive",
    title="Learned rows leave the mean",
    symptom="The loss goes up as rows are learned, and what is left teaches ever harder.",
    cause="The mean is taken over losses above 0, and in float32 a well-learned row is exactly 0.",
    source="KevinMusgrave/pytorch-metric-learning (reducers/avg_non_zero_reducer.py; by design, no report found)",
    case=None,
    breaks="rows",
    wrong=wrong,
    right="info_nce",
    example=Example(
        {"queries": [[1.0, 0.0], [1.0, 0.0]], "documents": [[1.0, 0.0], [-1.0, 0.0]]},
        value,
        unit="nats",
        note="One row costs nothing any more, and the mean is taken over the other alone.",
    ),
)
