"""Prefixes left as short as they are."""

from collections.abc import Callable, Sequence

from torch import Tensor

from losslab.mistakes._examples import tensor
from losslab.mistakes._parts import weighted
from losslab.mistakes._record import Example, Function, Mistake


def wrong(
    base_loss: Callable[..., Tensor], dims: Sequence[int], weights: Sequence[float] | None = None
) -> Callable[[Tensor, Tensor], Tensor]:
    """The base loss summed over prefixes, as they were cut."""

    def loss(queries: Tensor, documents: Tensor) -> Tensor:
        total = queries.new_zeros(())
        for dim, weight in weighted(dims, weights):
            # The mistake: a prefix of a unit vector is no unit vector, and each is shorter by another factor.
            total = total + weight * base_loss(queries[..., :dim], documents[..., :dim])
        return total

    return loss


def show(
    wrap: Function, *, query: list[float], document_a: list[float], document_b: list[float], dims: int
) -> dict[str, float]:
    """Score of each document, the loss being the scores themselves."""
    scores = wrap(lambda q, d: q @ d.T, [dims])(tensor([query]), tensor([document_a, document_b]))[0]
    return {"score of document a": scores[0].item(), "score of document b": scores[1].item()}


MISTAKE = Mistake(
    name="mrl_not_renormalised",
    kind="matryoshka",
    title="Cut and not renormalised",
    symptom="Dot products of truncated vectors favour documents whose length lies in front, and the ranking flips.",
    cause="A prefix of a unit vector is shorter than 1, each document's by a factor of its own, which stays in.",
    source="michaelfeil/infinity#538",
    case="mrl-not-renormalised",
    breaks="scale",
    wrong=wrong,
    right="matryoshka",
    example=Example(
        {
            "query": [0.6, 0.0, 0.8, 0.0],
            "document_a": [0.6, 0.0, 0.0, 0.8],
            "document_b": [0.8, 0.6, 0.0, 0.0],
            "dims": 2,
        },
        show,
        note="In two dimensions document a points where the query does; by its dot product it comes second.",
    ),
)
