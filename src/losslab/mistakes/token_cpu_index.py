"""An index made on the CPU."""

import torch
from torch import Tensor

from losslab.mistakes._parts import mean_over_tokens, next_tokens
from losslab.mistakes._record import Mistake


def wrong(logits: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy of the next token, on a CPU only."""
    rows, targets, counted = next_tokens(logits, labels)
    # The mistake: no device is named, so the index is made on the CPU wherever the logits are.
    chosen = torch.zeros(rows.shape, dtype=torch.bool).scatter(2, targets[:, :, None], value=True)
    return mean_over_tokens(rows.logsumexp(2) - rows[chosen].view(targets.shape), counted)


MISTAKE = Mistake(
    name="token_cpu_index",
    kind="token",
    title="An index on the CPU",
    symptom="It works in every test and raises on the first GPU.",
    cause="A tensor is made without naming the device of the input.",
    source="built",
    case=None,
    breaks="device",
    wrong=wrong,
    right="token_nll",
    met="built",
)
