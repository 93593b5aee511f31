"""Patched, and not put back when something fails."""

from collections.abc import Callable, Sequence

from torch import Tensor
from torch.nn import Module

from losslab.mistakes._parts import as_served, weighted
from losslab.mistakes._record import Mistake


def wrong(
    base_loss: Module, dims: Sequence[int], weights: Sequence[float] | None = None
) -> Callable[[Tensor, Tensor], Tensor]:
    """A base module whose forward is made to cut, one size after the other."""

    def loss(queries: Tensor, documents: Tensor) -> Tensor:
        size, total, whole = queries.shape[-1], queries.new_zeros(()), base_loss.forward
        for dim, weight in weighted(dims, weights):
            base_loss.forward = lambda q, d, m=dim: whole(as_served(q, m, size), as_served(d, m, size))
            total = total + weight * base_loss(queries, documents)
        # The mistake: an exception never comes here, and no try/finally sees to it.
        base_loss.forward = whole
        return total

    return loss


MISTAKE = Mistake(
    name="mrl_left_patched",
    kind="matryoshka",
    title="Left patched",
    symptom="After an exception that someone caught, out of memory say, every loss is that of a prefix.",
    cause="The module's forward is replaced for each size and put back at the end only if all goes well.",
    source="built",
    case=None,
    breaks="restored",
    wrong=wrong,
    right="matryoshka",
    met="built",
)
