"""Half-precision logits, summed in half precision."""

import torch
from torch import Tensor

from losslab.mistakes._examples import list_value
from losslab.mistakes._parts import choice_costs, mean_over_lists, real
from losslab.mistakes._record import Example, Function, Mistake


def wrong(logits: Tensor, labels: Tensor, mask: Tensor | None = None) -> Tensor:
    """ListMLE in whatever precision the model happens to use."""
    mask = real(mask, logits)
    ranking = labels.double().masked_fill(~mask, -torch.inf).argsort(dim=1, descending=True, stable=True)
    mask = mask.gather(1, ranking)
    # The mistake: no conversion; bfloat16 has 8 significant bits, so a sum of 300 costs grows in steps of 2.
    logits = logits.gather(1, ranking).masked_fill(~mask, 0)
    return mean_over_lists(choice_costs(logits, mask).sum(1), mask, logits.dtype)


def show(loss: Function, *, logits: list[float], labels: list[float]) -> float:
    """Loss of one list of bfloat16 logits."""
    return list_value(loss, logits=logits, labels=labels, dtype=torch.bfloat16)


MISTAKE = Mistake(
    name="listmle_half_sum",
    kind="listwise",
    title="Summed in half precision",
    symptom="In mixed precision the loss is off in its second or third digit, and small gradients vanish.",
    cause="Normalisers, differences and sums are computed in the logits' own dtype instead of float32 or better.",
    source="built",
    case=None,
    breaks="precision",
    wrong=wrong,
    right="list_mle",
    met="built",
    example=Example(
        {"logits": list(range(12, 0, -1)), "labels": list(range(12, 0, -1))},
        show,
        unit="nats, in bfloat16",
    ),
)
