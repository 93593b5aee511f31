"""Short vectors at another temperature."""

from collections.abc import Callable, Sequence

from torch import Tensor

from losslab.mistakes._examples import nested
from losslab.mistakes._parts import as_served, weighted
from losslab.mistakes._record import Example, Mistake


def wrong(
    base_loss: Callable[..., Tensor], dims: Sequence[int], weights: Sequence[float] | None = None
) -> Callable[[Tensor, Tensor], Tensor]:
    """The base loss summed over prefixes whose scores shrink with their size."""

    def loss(queries: Tensor, documents: Tensor) -> Tensor:
        size, total = queries.shape[-1], queries.new_zeros(())
        for dim, weight in weighted(dims, weights):
            # The mistake: a unit vector is one at any size, and what is served is not scaled either.
            share = (dim / size) ** 0.5
            cut = [share * as_served(x, dim, size) for x in (queries, documents)]
            total = total + weight * base_loss(*cut)
        return total

    return loss


MISTAKE = Mistake(
    name="mrl_scaled_scores",
    kind="matryoshka",
    title="Scores scaled by size",
    symptom="Small sizes train at a higher temperature than they will be used at.",
    cause="Dot products are thought to grow with the number of dimensions, which those of unit vectors do not.",
    source="built",
    case=None,
    breaks="prefixes",
    wrong=wrong,
    right="matryoshka",
    met="built",
    example=Example(
        {"queries": [[1.0, 0.0], [-0.6, 0.8]], "documents": [[1.0, 0.0], [-0.6, 0.8]], "dims": [1]},
        nested,
        unit="nats",
        note="Half the size is given half the score.",
    ),
)
