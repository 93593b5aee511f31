"""Several positives, each with a denominator that leaves the others out."""

import torch
from torch import Tensor

from losslab.mistakes._examples import tensor
from losslab.mistakes._parts import cosines
from losslab.mistakes._record import Example, Function, Mistake


def pair_costs(logits: Tensor, positives: Tensor) -> Tensor:
    """Cost of each positive among itself and the negatives, 0 elsewhere: (B, M)."""
    log_negatives = logits.masked_fill(positives, -torch.inf).logsumexp(1, keepdim=True)
    # The mistake, or the design: the query's other positives are in no denominator, as if they were not there.
    return (torch.logaddexp(logits, log_negatives) - logits).masked_fill(~positives, 0)


def wrong(queries: Tensor, documents: Tensor, positives: Tensor | None = None, temperature: float = 0.05) -> Tensor:
    """The mean over a query's positives of InfoNCE with that one positive."""
    if positives is None:
        positives = torch.eye(len(queries), len(documents), dtype=torch.bool, device=queries.device)
    costs = pair_costs(cosines(queries, documents) / temperature, positives)
    return (costs.sum(1) / positives.sum(1)).mean().to(queries.dtype)


def show(loss: Function, *, embeddings: list[list[float]], classes: list[int], temperature: float) -> float:
    """Mean over the embeddings with a fellow in their class, each a query among all the others."""
    rows = tensor(embeddings)
    costs: list[float] = []
    for i, own in enumerate(classes):
        others = [j for j in range(len(classes)) if j != i]
        positives = torch.tensor([[classes[j] == own for j in others]])
        if positives.any():
            costs.append(loss(rows[i : i + 1], rows[others], positives, temperature=temperature).item())
    return sum(costs) / len(costs)


MISTAKE = Mistake(
    name="infonce_multipos_denominator",
    kind="contrastive",
    title="Three denominators, one name",
    symptom="Two losses called contrastive give 0.58 and 1.16 on one batch with three positives a class.",
    cause="Losses differ in whether a query's other positives stand in the denominator, and few say which they do.",
    source="KevinMusgrave/pytorch-metric-learning#699",
    case="infonce-multipos-denominator",
    breaks="objective",
    wrong=wrong,
    right="multi_positive_info_nce",
    against="multi_positive_info_nce",
    example=Example(
        {
            "embeddings": [[1.0, 0.0], [0.8, 0.6], [0.0, 1.0], [-0.6, 0.8]],
            "classes": [0, 0, 0, 1],
            "temperature": 0.5,
        },
        show,
        unit="nats",
    ),
)
