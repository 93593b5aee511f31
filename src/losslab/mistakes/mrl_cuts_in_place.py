"""Prefixes renormalised where they stand."""

from collections.abc import Callable, Sequence

from torch import Tensor

from losslab.mistakes._parts import weighted, wide
from losslab.mistakes._record import Mistake


def wrong(
    base_loss: Callable[[Tensor, Tensor], Tensor], dims: Sequence[int], weights: Sequence[float] | None = None
) -> Callable[[Tensor, Tensor], Tensor]:
    """Unit prefixes, made in the embeddings themselves."""

    def cut(embeddings: Tensor, dim: int) -> Tensor:
        prefix = wide(embeddings)[..., :dim]
        if dim < embeddings.shape[-1]:
            # The mistake: a slice is a view, so the embedding's own first dimensions are divided.
            prefix /= prefix.detach().norm(dim=-1, keepdim=True)
        return prefix

    def loss(queries: Tensor, documents: Tensor) -> Tensor:
        total = queries.new_zeros(())
        for dim, weight in weighted(dims, weights):
            total = total + weight * base_loss(cut(queries, dim), cut(documents, dim))
        return total

    return loss


MISTAKE = Mistake(
    name="mrl_cuts_in_place",
    kind="matryoshka",
    title="Cut in place",
    symptom="After the loss the embeddings point elsewhere: their first dimensions weigh more than they did.",
    cause="A prefix is a view of the embedding, and it is divided by its length in place.",
    source="built",
    case=None,
    breaks="inputs_unchanged",
    wrong=wrong,
    right="matryoshka",
    met="built",
)
