"""One size a step, by chance."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from losslab.mistakes._parts import as_served, weighted
from losslab.mistakes._record import Mistake


def wrong(
    base_loss: Callable[[Tensor, Tensor], Tensor], dims: Sequence[int], weights: Sequence[float] | None = None
) -> Callable[[Tensor, Tensor], Tensor]:
    """One of the sizes at each call, for all of them."""

    def loss(queries: Tensor, documents: Tensor) -> Tensor:
        sizes = weighted(dims, weights)
        # The mistake: right on average, and another loss at every call; no two values can be compared.
        dim, weight = sizes[int(torch.randint(len(sizes), ()))]
        size = queries.shape[-1]
        return len(sizes) * weight * base_loss(as_served(queries, dim, size), as_served(documents, dim, size))

    return loss


MISTAKE = Mistake(
    name="mrl_random_size",
    kind="matryoshka",
    title="A size by chance",
    symptom="The loss jumps from step to step, and evaluating the same batch twice gives two values.",
    cause="To save time, one size is drawn at each call instead of adding all up.",
    source="built",
    case=None,
    breaks="random_state",
    wrong=wrong,
    right="matryoshka",
    met="built",
)
