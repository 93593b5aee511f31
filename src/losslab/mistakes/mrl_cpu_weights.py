"""Weights made on the CPU."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from losslab.mistakes._parts import as_served
from losslab.mistakes._record import Mistake


def wrong(
    base_loss: Callable[..., Tensor], dims: Sequence[int], weights: Sequence[float] | None = None
) -> Callable[[Tensor, Tensor], Tensor]:
    """The base loss at each size, weighted all at once."""

    def loss(queries: Tensor, documents: Tensor) -> Tensor:
        size = queries.shape[-1]
        values = [base_loss(as_served(queries, dim, size), as_served(documents, dim, size)) for dim in dims]
        # The mistake: a tensor is made without saying where.
        return (torch.stack(values) * torch.tensor(weights or [1.0] * len(dims))).sum()

    return loss


MISTAKE = Mistake(
    name="mrl_cpu_weights",
    kind="matryoshka",
    title="Weights on the CPU",
    symptom="On a GPU it raises an error about two devices.",
    cause="The tensor of weights is made on the default device, not where the values are.",
    source="built",
    case=None,
    breaks="device",
    wrong=wrong,
    right="matryoshka",
    met="built",
)
