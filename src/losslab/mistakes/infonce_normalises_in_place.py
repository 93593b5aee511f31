"""Embeddings normalised where they stand."""

from torch import Tensor

from losslab.mistakes._parts import cosines, own_costs, wide
from losslab.mistakes._record import Mistake


def wrong(queries: Tensor, documents: Tensor, temperature: float = 0.05) -> Tensor:
    """InfoNCE that makes unit vectors of half-precision copies, and of what is no copy."""
    dtype = queries.dtype
    queries, documents = wide(queries), wide(documents)
    for embeddings in (queries, documents):
        # The mistake: only half precision has been copied; float32 is still the caller's own tensor.
        embeddings /= embeddings.detach().norm(dim=1, keepdim=True)
    return own_costs(cosines(queries, documents) / temperature).mean().to(dtype)


MISTAKE = Mistake(
    name="infonce_normalises_in_place",
    kind="contrastive",
    title="Normalised in place",
    symptom="What is computed from the embeddings after the loss, a norm penalty say, is that of unit vectors.",
    cause="A conversion that copies only if the format changes is followed by an in-place division.",
    source="built",
    case=None,
    breaks="inputs_unchanged",
    wrong=wrong,
    right="info_nce",
    met="built",
)
