"""Prefix lengths of another batch."""

from collections.abc import Callable, Sequence

from torch import Tensor

from losslab.mistakes._parts import weighted, wide
from losslab.mistakes._record import Mistake


def wrong(
    base_loss: Callable[[Tensor, Tensor], Tensor], dims: Sequence[int], weights: Sequence[float] | None = None
) -> Callable[[Tensor, Tensor], Tensor]:
    """Unit prefixes, by lengths that are measured once as long as the shape is the same."""
    lengths: dict[tuple[str, int], Tensor] = {}

    def cut(side: str, embeddings: Tensor, dim: int) -> Tensor:
        prefix = wide(embeddings)[..., :dim]
        if dim == embeddings.shape[-1]:
            return prefix
        known = lengths.get((side, dim))
        # The mistake: the shape is what says that the lengths are known; another batch of that shape gets them, too.
        if known is None or known.shape[:-1] != prefix.shape[:-1] or known.dtype != prefix.dtype:
            lengths[side, dim] = prefix.detach().norm(dim=-1, keepdim=True)
        return prefix / lengths[side, dim]

    def loss(queries: Tensor, documents: Tensor) -> Tensor:
        total = queries.new_zeros(())
        for dim, weight in weighted(dims, weights):
            total = total + weight * base_loss(cut("q", queries, dim), cut("d", documents, dim))
        return total

    return loss


MISTAKE = Mistake(
    name="mrl_lengths_kept",
    kind="matryoshka",
    title="Another batch's prefixes",
    symptom="The loss of a batch depends on the batch before, at every size but the full one.",
    cause="Lengths are cached under the shape of the embeddings rather than the embeddings.",
    source="built",
    case=None,
    breaks="no_state",
    wrong=wrong,
    right="matryoshka",
    met="built",
)
