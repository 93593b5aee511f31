"""A mean where a sum was meant."""

from collections.abc import Callable, Sequence

from torch import Tensor

from losslab.mistakes._examples import nested
from losslab.mistakes._parts import as_served, weighted
from losslab.mistakes._record import Example, Mistake


def wrong(
    base_loss: Callable[..., Tensor], dims: Sequence[int], weights: Sequence[float] | None = None
) -> Callable[[Tensor, Tensor], Tensor]:
    """The base loss averaged over sizes, whatever they weigh."""

    def loss(queries: Tensor, documents: Tensor) -> Tensor:
        size, total = queries.shape[-1], queries.new_zeros(())
        for dim, weight in weighted(dims, weights):
            total = total + weight * base_loss(as_served(queries, dim, size), as_served(documents, dim, size))
        # The mistake: one more size takes from the others, so weights and learning rate no longer mean what they say.
        return total / len(dims)

    return loss


MISTAKE = Mistake(
    name="mrl_mean_over_dims",
    kind="matryoshka",
    title="Divided by the number of sizes",
    symptom="The loss and its gradient shrink as sizes are added.",
    cause="Sizes are averaged, their weights not being divided by along with them.",
    source="built",
    case=None,
    breaks="sum_over_dims",
    wrong=wrong,
    right="matryoshka",
    met="built",
    example=Example(
        {"queries": [[0.6, 0.8], [0.8, -0.6]], "documents": [[0.6, 0.8], [0.8, -0.6]], "dims": [2, 1]},
        nested,
        unit="nats",
    ),
)
