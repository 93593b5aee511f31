"""Several positives, each with a denominator that leaves the others out."""

import torch
from torch import Tensor

from losslab.mistakes._parts import cosines
from losslab.mistakes._record import Mistake


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
)
