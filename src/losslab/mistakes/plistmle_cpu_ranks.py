"""A helper tensor made on the CPU, whatever device the logits are on."""

import torch
from torch import Tensor

from losslab.mistakes._parts import by_label, choice_costs, mean_over_lists, real
from losslab.mistakes._record import Mistake


def wrong(logits: Tensor, labels: Tensor, mask: Tensor | None = None) -> Tensor:
    """PListMLE that runs on the machine it was written on."""
    dtype = logits.dtype
    logits, mask = by_label(logits, labels, real(mask, logits))
    n = mask.sum(1, keepdim=True).double()
    # The mistake: arange() without device=logits.device.
    rank = torch.arange(1, logits.shape[1] + 1)
    raw = (0.5**rank - 0.5**n).masked_fill(~mask, 0)
    weights = raw / raw.sum(1, keepdim=True).clamp(min=1e-300)
    return mean_over_lists((weights * choice_costs(logits, mask)).sum(1), mask, dtype)


MISTAKE = Mistake(
    name="plistmle_cpu_ranks",
    kind="listwise",
    title="Made on the CPU",
    symptom="All tests pass on a laptop; the first step on a GPU raises an error about two devices.",
    cause="The tensor of ranks is created on the default device instead of the logits' own.",
    source="built",
    case=None,
    breaks="device",
    wrong=wrong,
    right="p_list_mle",
    met="built",
)
