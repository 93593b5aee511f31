"""Gradient accumulation taken for a bigger batch."""

import torch
from torch import Tensor

from losslab.mistakes._parts import cosines, own_costs
from losslab.mistakes._record import Mistake


def wrong(queries: Tensor, documents: Tensor, temperature: float = 0.05, chunk_size: int | None = None) -> Tensor:
    """InfoNCE, a few pairs at a time, averaged over the batch."""
    b, size = len(queries), chunk_size or len(queries)
    total = queries.new_zeros(()).double()
    for start in range(0, b, size):
        # The mistake: only the chunk's own documents are its negatives, so their number is that of the chunk.
        candidates = torch.cat([documents[start : min(start + size, b)], documents[b:]])
        total = total + own_costs(cosines(queries[start : start + size], candidates) / temperature).sum()
    return (total / b).to(queries.dtype)


MISTAKE = Mistake(
    name="infonce_grad_accum",
    kind="contrastive",
    title="Accumulated, not widened",
    symptom="An untrained model starts at ln(B / k) instead of ln B, and four times the accumulation changes nothing.",
    cause="Negatives come from the micro-batch alone, and a mean of k small losses is not the loss of the whole batch.",
    source="huggingface/sentence-transformers#2916",
    case="infonce-grad-accum",
    breaks="chunked",
    wrong=wrong,
    right="info_nce",
)
