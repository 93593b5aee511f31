"""Patched, and not put back when something fails."""

from collections.abc import Callable, Sequence
from contextlib import suppress

from torch import Tensor
from torch.nn import Module

from losslab.mistakes._examples import tensor
from losslab.mistakes._parts import as_served, own_costs, weighted
from losslab.mistakes._record import Example, Function, Mistake


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


class DotProducts(Module):
    """InfoNCE of dot products at temperature 1; out of memory whenever it is told to be."""

    full = False

    def forward(self, queries: Tensor, documents: Tensor) -> Tensor:
        """Loss of (B, d) twice -> scalar."""
        if self.full:
            raise MemoryError
        return own_costs(queries @ documents.T).mean()


def show(
    wrap: Function, *, queries: list[list[float]], documents: list[list[float]], dims: list[int]
) -> dict[str, float]:
    """Base loss by itself before and after a step that runs out of memory."""
    base, pairs = DotProducts(), (tensor(queries), tensor(documents))
    loss, before = wrap(base, dims), base(*pairs).item()
    base.full = True
    with suppress(MemoryError):
        loss(*pairs)
    base.full = False
    return {"base loss before": before, "base loss after": base(*pairs).item()}


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
    example=Example(
        {"queries": [[1.0, 2.0], [-1.0, 1.0]], "documents": [[1.0, 1.0], [1.0, 0.0]], "dims": [1]},
        show,
        unit="nats",
        note="One step at size 1 runs out of memory, and somebody catches the exception.",
    ),
)
