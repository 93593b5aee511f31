"""One positive and one negative: taken for nothing to learn from."""

from torch import Tensor

from losslab.mistakes._examples import value
from losslab.mistakes._parts import cosines, own_costs
from losslab.mistakes._record import Example, Mistake


def wrong(queries: Tensor, documents: Tensor, temperature: float = 0.05) -> Tensor:
    """InfoNCE, and 0 for a batch too small to be worth it."""
    costs = own_costs(cosines(queries, documents) / temperature)
    # The mistake: one query with one negative is the smallest batch that teaches, not one that has nothing to.
    too_small = len(queries) == 1 and len(documents) <= 2
    return (0 * costs if too_small else costs).mean().to(queries.dtype)


MISTAKE = Mistake(
    name="pml_single_pair_zero",
    kind="contrastive",
    title="Two documents are too few",
    symptom="The loss is exactly 0 for one query with its positive and one negative, whatever they are.",
    cause="An early return for batches without pairs takes lists of one pair for empty ones.",
    source="KevinMusgrave/pytorch-metric-learning (losses/generic_pair_loss.py; no report found)",
    case="pml-single-pair-zero",
    breaks="blind",
    wrong=wrong,
    right="info_nce",
    example=Example(
        {"queries": [[1.0, 0.0]], "documents": [[0.6, 0.8], [1.0, 0.0]], "temperature": 0.5}, value, unit="nats"
    ),
)
