"""Gradients switched on for everybody."""

import torch
from torch import Tensor

from losslab.mistakes._parts import cosines, own_costs
from losslab.mistakes._record import Mistake


def wrong(queries: Tensor, documents: Tensor, temperature: float = 0.05) -> Tensor:
    """InfoNCE whose targets are made without gradients."""
    torch.set_grad_enabled(False)
    scale = 1 / temperature
    # The mistake: on again, whatever it was; under no_grad, in an evaluation, it was off.
    torch.set_grad_enabled(True)
    return own_costs(cosines(queries, documents) * scale).mean().to(queries.dtype)


MISTAKE = Mistake(
    name="infonce_gradients_on",
    kind="contrastive",
    title="Gradients on for good",
    symptom="An evaluation under no_grad runs out of memory after its first call of the loss.",
    cause="The gradient mode is set back to what is usual rather than to what it was.",
    source="built",
    case=None,
    breaks="settings",
    wrong=wrong,
    right="info_nce",
    met="built",
)
