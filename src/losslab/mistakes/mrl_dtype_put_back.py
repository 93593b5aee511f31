"""The default number format put back to the usual one."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from losslab.mistakes._parts import as_served, weighted
from losslab.mistakes._record import Mistake


def wrong(
    base_loss: Callable[[Tensor, Tensor], Tensor], dims: Sequence[int], weights: Sequence[float] | None = None
) -> Callable[[Tensor, Tensor], Tensor]:
    """Sizes added up in float64, by way of the default format."""

    def loss(queries: Tensor, documents: Tensor) -> Tensor:
        torch.set_default_dtype(torch.float64)
        total = torch.zeros((), device=queries.device)
        # The mistake: put back to what is usual, not to what it was; a run in float64 goes on in float32.
        torch.set_default_dtype(torch.float32)
        size = queries.shape[-1]
        for dim, weight in weighted(dims, weights):
            total = total + weight * base_loss(as_served(queries, dim, size), as_served(documents, dim, size))
        return total.to(queries.dtype)

    return loss


MISTAKE = Mistake(
    name="mrl_dtype_put_back",
    kind="matryoshka",
    title="Put back to the usual",
    symptom="A run in float64 continues in float32 after its first loss.",
    cause="A global setting is put back to what is usual rather than to what it was.",
    source="built",
    case=None,
    breaks="settings",
    wrong=wrong,
    right="matryoshka",
    met="built",
)
