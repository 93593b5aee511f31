"""Normalised even where nothing is cut."""

from collections.abc import Callable, Sequence

from torch import Tensor

from losslab.mistakes._examples import tensor
from losslab.mistakes._parts import own_costs, unit_prefix, weighted
from losslab.mistakes._record import Example, Function, Mistake


def wrong(
    base_loss: Callable[..., Tensor], dims: Sequence[int], weights: Sequence[float] | None = None
) -> Callable[[Tensor, Tensor], Tensor]:
    """The base loss summed over unit prefixes, the whole embedding among them."""

    def loss(queries: Tensor, documents: Tensor) -> Tensor:
        total = queries.new_zeros(())
        for dim, weight in weighted(dims, weights):
            # The mistake: the full size is normalised as well, so a loss of dot products becomes one of cosines.
            total = total + weight * base_loss(unit_prefix(queries, dim), unit_prefix(documents, dim))
        return total

    return loss


def show(wrap: Function, *, queries: list[list[float]], documents: list[list[float]]) -> float:
    """InfoNCE of dot products at temperature 1, wrapped with the full size alone."""
    q, d = tensor(queries), tensor(documents)
    return float(wrap(lambda a, b: own_costs(a @ b.T).mean(), [q.shape[1]])(q, d).item())


MISTAKE = Mistake(
    name="mrl_forces_cosine",
    kind="matryoshka",
    title="The full size becomes a cosine",
    symptom="Wrapped with the full size alone, a dot-product loss is another loss: 1.391 where it was 2.001.",
    cause="Whatever is cut is normalised, and so is what is not cut.",
    source="huggingface/sentence-transformers (6.2.0)",
    case="mrl-forces-cosine",
    breaks="full_size",
    wrong=wrong,
    right="matryoshka",
    example=Example({"queries": [[3.0, 0.0], [0.0, 3.0]], "documents": [[2.0, 1.0], [1.0, 2.0]]}, show, unit="nats"),
)
