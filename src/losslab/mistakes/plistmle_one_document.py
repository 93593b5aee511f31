"""0 / 0: a list of one document has nothing to weigh."""

from torch import Tensor

from losslab.mistakes._examples import value
from losslab.mistakes._parts import by_label, choice_costs, real
from losslab.mistakes._record import Example, Mistake


def wrong(logits: Tensor, labels: Tensor, mask: Tensor | None = None) -> Tensor:
    """PListMLE with weights normalised by their sum, whatever it is."""
    dtype = logits.dtype
    logits, mask = by_label(logits, labels, real(mask, logits))
    n, rank = mask.sum(1, keepdim=True).double(), mask.cumsum(1)
    raw = (0.5**rank - 0.5**n).masked_fill(~mask, 0)
    # The mistake: with one document its only weight is 2^(1 - 1) - 1 = 0, and so is the sum.
    weights = raw / raw.sum(1, keepdim=True)
    costs = (weights * choice_costs(logits, mask)).sum(1)
    return (costs.sum() / (mask.sum(1) >= 2).sum().clamp(min=1)).to(dtype)


MISTAKE = Mistake(
    name="plistmle_one_document",
    kind="listwise",
    title="Nothing over nothing",
    symptom="One query with a single document turns the loss of the whole batch into NaN.",
    cause="Weights are divided by their sum, which is 0 for a list in which nothing can be ranked.",
    source="built",
    case=None,
    breaks="short_lists",
    wrong=wrong,
    right="p_list_mle",
    met="built",
    example=Example(
        {
            "logits": [[1.5, 0.3], [4.0, 0.0]],
            "labels": [[2, 1], [1, 0]],
            "mask": [[True, True], [True, False]],
        },
        value,
        unit="nats",
    ),
)
