"""A guide that masks only what is more similar than the positive."""

import torch
from torch import Tensor

from losslab.mistakes._examples import tensor
from losslab.mistakes._parts import cosines, own_costs
from losslab.mistakes._record import Example, Function, Mistake


def guided(logits: Tensor, guide: Tensor, margin: float) -> Tensor:
    """InfoNCE without the negatives that a guide, (B, M) similarities, takes for positives: (B, M) twice -> (B,)."""
    # The mistake, with margin 0: an exact copy scores just what the positive does, and that is not more.
    suspects = guide > guide.diagonal()[:, None] - margin
    return own_costs(logits.masked_fill(suspects.fill_diagonal_(False), -torch.inf))


def wrong(logits: Tensor, guide: Tensor) -> Tensor:
    """With no margin."""
    return guided(logits, guide, 0.0)


def right(logits: Tensor, guide: Tensor) -> Tensor:
    """With a margin that is small against any difference that means something."""
    return guided(logits, guide, 1e-6)


def copies_add_nothing(loss: Function, seed: int = 0) -> str | None:
    """Look for a query that pays more once a copy of its positive is in the batch."""
    generator = torch.Generator().manual_seed(seed)
    for m in [m for m in range(2, 5) for _ in range(10)]:
        query, documents = (torch.randn(n, 2, generator=generator) for n in (1, m))
        together = torch.cat([documents, documents[:1]])
        alone, beside = (loss(s / 0.05, s).item() for s in (cosines(query, documents), cosines(query, together)))
        if abs(alone - beside) > 1e-6:
            return f"a query among {m} documents pays {alone:.4g}, and {beside:.4g} beside a copy of its positive"
    return None


def show(loss: Function, *, guide: list[list[float]]) -> float:
    """Loss where model and guide agree, at a temperature of 0.05."""
    return float(loss(tensor(guide) / 0.05, tensor(guide)).mean().item())


MISTAKE = Mistake(
    name="gist_exact_duplicate",
    kind="function",
    title="Strictly more than the positive",
    symptom="A loss that filters false negatives by a guide still pushes exact copies of the positive away.",
    cause="The filter asks for a similarity above the positive's, and a copy's is equal to it.",
    source="huggingface/sentence-transformers#2756",
    case="gist-exact-duplicate",
    breaks="a copy of the positive changes no value",
    wrong=wrong,
    right=right,
    property=copies_add_nothing,
    topic="batch",
    example=Example(
        {"guide": [[1.0, 1.0, 0.0, 0.0], [1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]]},
        show,
        unit="nats",
        note="Rows 1 and 2 are copies of one another; the model's similarities are the guide's.",
    ),
)
