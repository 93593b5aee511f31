"""Normalised first, cut afterwards."""

from collections.abc import Callable, Sequence

from torch import Tensor
from torch.nn.functional import normalize

from losslab.mistakes._examples import nested
from losslab.mistakes._parts import weighted, wide
from losslab.mistakes._record import Example, Mistake


def wrong(
    base_loss: Callable[..., Tensor], dims: Sequence[int], weights: Sequence[float] | None = None
) -> Callable[[Tensor, Tensor], Tensor]:
    """The base loss summed over prefixes of unit vectors."""

    def loss(queries: Tensor, documents: Tensor) -> Tensor:
        size, total = queries.shape[-1], queries.new_zeros(())
        for dim, weight in weighted(dims, weights):
            # The mistake: the length is that of the whole vector, so what is cut off still weighs in.
            cut = [normalize(wide(x), dim=-1)[..., :dim] if dim < size else x for x in (queries, documents)]
            total = total + weight * base_loss(*cut)
        return total

    return loss


MISTAKE = Mistake(
    name="mrl_norm_of_whole",
    kind="matryoshka",
    title="Normalised before it is cut",
    symptom="The first dimensions are trained through a length that will not be there when they are served.",
    cause="Normalising and cutting are done in the wrong order.",
    source="built",
    case=None,
    breaks="prefix_only",
    wrong=wrong,
    right="matryoshka",
    met="built",
    example=Example(
        {"queries": [[1.0, 0.0], [-0.6, 0.8]], "documents": [[1.0, 0.0], [-0.6, 0.8]], "dims": [1]},
        nested,
        unit="nats",
        note="By their first number the two pairs lie opposite to each other.",
    ),
)
