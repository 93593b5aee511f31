"""What was cut once is cut again."""

from collections.abc import Callable, Sequence

from torch import Tensor

from losslab.mistakes._examples import tensor
from losslab.mistakes._parts import as_served, own_costs, weighted
from losslab.mistakes._record import Example, Function, Mistake


def wrong(
    base_loss: Callable[..., Tensor], dims: Sequence[int], weights: Sequence[float] | None = None
) -> Callable[[Tensor, Tensor], Tensor]:
    """The base loss summed over unit prefixes, each cut from the one before."""

    def loss(queries: Tensor, documents: Tensor) -> Tensor:
        size, total = queries.shape[-1], queries.new_zeros(())
        for dim, weight in weighted(dims, weights):
            # The mistake: the cut embeddings replace the whole ones, so a larger size that comes later finds too few.
            queries, documents = as_served(queries, dim, size), as_served(documents, dim, size)
            total = total + weight * base_loss(queries, documents)
        return total

    return loss


def show(wrap: Function, *, queries: list[list[float]], documents: list[list[float]]) -> dict[str, float]:
    """InfoNCE of dot products at temperature 1, at two sizes, in both orders."""
    q, d = tensor(queries), tensor(documents)
    orders = {"largest first": [2, 1], "smallest first": [1, 2]}
    return {how: wrap(lambda a, b: own_costs(a @ b.T).mean(), dims)(q, d).item() for how, dims in orders.items()}


MISTAKE = Mistake(
    name="mrl_dim_order",
    kind="matryoshka",
    title="The cache is cut already",
    symptom="With sizes in ascending or random order, larger ones train on the smallest prefix seen so far.",
    cause="Embeddings are kept to be reused, and what is kept is what the last size has cut.",
    source="huggingface/sentence-transformers#3203",
    case="mrl-dim-order",
    breaks="dims_order",
    wrong=wrong,
    right="matryoshka",
    example=Example({"queries": [[0.6, 0.8], [0.8, -0.6]], "documents": [[0.6, 0.8], [0.8, -0.6]]}, show, unit="nats"),
)
