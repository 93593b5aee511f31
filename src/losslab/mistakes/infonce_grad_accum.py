"""Gradient accumulation taken for a bigger batch."""

import torch
from torch import Tensor

from losslab.mistakes._examples import tensor
from losslab.mistakes._parts import cosines, own_costs
from losslab.mistakes._record import Example, Function, Mistake


def wrong(queries: Tensor, documents: Tensor, temperature: float = 0.05, chunk_size: int | None = None) -> Tensor:
    """InfoNCE, a few pairs at a time, averaged over the batch."""
    b, size = len(queries), chunk_size or len(queries)
    total = queries.new_zeros(()).double()
    for start in range(0, b, size):
        # The mistake: only the chunk's own documents are its negatives, so their number is that of the chunk.
        candidates = torch.cat([documents[start : min(start + size, b)], documents[b:]])
        total = total + own_costs(cosines(queries[start : start + size], candidates) / temperature).sum()
    return (total / b).to(queries.dtype)


def show(
    loss: Function, *, queries: list[list[float]], documents: list[list[float]], chunk_sizes: list[int]
) -> dict[str, float]:
    """Loss of one batch in chunks of several sizes."""
    return {
        f"in chunks of {size}": loss(tensor(queries), tensor(documents), chunk_size=size).item() for size in chunk_sizes
    }


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
    topic="batch",
    example=Example(
        {"queries": [[1.0, 1.0]] * 4, "documents": [[1.0, 1.0]] * 4, "chunk_sizes": [4, 2]},
        show,
        unit="nats",
        note="An untrained model knows nothing, and should pay ln 4 for a batch of four however it is cut.",
    ),
)
