"""Ties broken by chance."""

import torch
from torch import Tensor

from losslab.mistakes._parts import by_label, choice_costs, mean_over_lists, real
from losslab.mistakes._record import Mistake


def wrong(logits: Tensor, labels: Tensor, mask: Tensor | None = None) -> Tensor:
    """ListMLE that puts equal labels in a random order."""
    mask = real(mask, logits)
    # The mistake: the noise comes out of the global generator, on which everything else in the run depends.
    noise = 1e-3 * torch.rand(labels.shape, device=labels.device)
    ordered, kept = by_label(logits, labels + noise, mask)
    return mean_over_lists(choice_costs(ordered, kept).sum(1), kept, logits.dtype)


MISTAKE = Mistake(
    name="listmle_random_ties",
    kind="listwise",
    title="Ties by chance",
    symptom="Two runs with one seed differ as soon as one of them logs the loss once more.",
    cause="Noise to break ties is drawn from the global random state.",
    source="built",
    case=None,
    breaks="random_state",
    wrong=wrong,
    right="list_mle",
    met="built",
)
