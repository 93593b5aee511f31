"""A guide that protects the wrong process's positives."""

import torch
from torch import Tensor

from losslab.mistakes._examples import tensor
from losslab.mistakes._record import Example, Function, Mistake


def guided(logits: Tensor, guide: Tensor, rank: int, protected: int, margin: float) -> Tensor:
    """InfoNCE without the negatives that a guide takes for positives: (b, W b) twice -> (b,).

    The positive of query i is document ``rank`` * b + i; what stands at ``protected`` + i is never left out.
    """
    rows = torch.arange(len(logits), device=logits.device)
    own = rows + rank * len(logits)
    suspects = guide > guide[rows, own][:, None] - margin
    suspects[rows, rows + protected] = False
    kept = logits.masked_fill(suspects, -torch.inf)
    return kept.logsumexp(1) - kept[rows, own]


def wrong(logits: Tensor, guide: Tensor, rank: int, margin: float = 0.1) -> Tensor:
    """Protects the diagonal, as one process may."""
    # The mistake: the diagonal of (b, W b) is where rank 0's positives stand, on whatever process this is.
    return guided(logits, guide, rank, 0, margin)


def right(logits: Tensor, guide: Tensor, rank: int, margin: float = 0.1) -> Tensor:
    """Protects the positives of this process."""
    return guided(logits, guide, rank, rank * len(logits), margin)


def every_rank_is_alike(loss: Function, seed: int = 0) -> str | None:
    """Look for documents that cost a process something else than the same ones with its own in front cost the first."""
    generator = torch.Generator().manual_seed(seed)
    for b in [b for b in range(1, 4) for _ in range(5)]:
        guide = torch.rand(b, 2 * b, generator=generator, dtype=torch.float64)
        mine_first = guide.roll(b, 1)
        second, first = (loss(s / 0.05, s, rank).mean().item() for rank, s in ((1, guide), (0, mine_first)))
        if not abs(second - first) <= 1e-9:  # inf is not close to anything
            return f"with b = {b} the queries cost {second:.4g} on the second of two, and {first:.4g} on the first"
    return None


def show(loss: Function, *, rank: int, margin: float, guide: list[list[float]]) -> float:
    """Loss where model and guide agree, at a temperature of 0.05."""
    return float(loss(tensor(guide) / 0.05, tensor(guide), rank, margin).mean().item())


MISTAKE = Mistake(
    name="gist_rank_offset",
    kind="function",
    title="The diagonal of another process",
    symptom="The loss is inf on every process but the first.",
    cause="The guide filters the positives themselves: the diagonal that it spares is the first process's.",
    source="huggingface/sentence-transformers#3817",
    case="gist-rank-offset",
    breaks="every process filters as the first does",
    wrong=wrong,
    right=right,
    property=every_rank_is_alike,
    topic="batch",
    example=Example(
        {
            "rank": 1,
            "margin": 0.1,
            "guide": [[0.2, 0.3, 0.1, 0.8, 0.2, 0.1], [0.1, 0.2, 0.3, 0.1, 0.7, 0.2], [0.3, 0.1, 0.2, 0.2, 0.1, 0.9]],
        },
        show,
        unit="nats",
        note="Three queries of the second of two processes; the model's similarities are the guide's.",
    ),
)
