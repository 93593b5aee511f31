"""Padding filled where the model's logits are."""

import torch
from torch import Tensor

from losslab.mistakes._parts import by_label, choice_costs, mean_over_lists, real
from losslab.mistakes._record import Mistake


def wrong(logits: Tensor, labels: Tensor, mask: Tensor | None = None) -> Tensor:
    """ListMLE that prepares the logits it was given."""
    mask = real(mask, logits)
    # The mistake: the underscore; the caller's logits are filled, not a copy of them.
    logits.masked_fill_(~mask, torch.finfo(logits.dtype).min)
    ordered, kept = by_label(logits, labels, mask)
    return mean_over_lists(choice_costs(ordered, kept).sum(1), kept, logits.dtype)


MISTAKE = Mistake(
    name="listmle_writes_logits",
    kind="listwise",
    title="Logits written over",
    symptom="A second loss on the same logits, or a metric logged after it, sees huge negative numbers.",
    cause="An operation with an underscore writes into the tensor it is called on.",
    source="built",
    case=None,
    breaks="inputs_unchanged",
    wrong=wrong,
    right="list_mle",
    met="built",
)
