"""Scores squashed by a sigmoid before they are compared."""

import torch
from torch import Tensor

from losslab.mistakes._examples import value
from losslab.mistakes._parts import own_costs
from losslab.mistakes._record import Example, Function, Mistake


def wrong(scores: Tensor) -> Tensor:
    """InfoNCE of a cross-encoder's scores, (B, M) -> scalar."""
    # The mistake: sigmoid() before the scale of 10, so no document can lead by more than 10.
    return own_costs(10 * scores.sigmoid()).mean()


def right(scores: Tensor) -> Tensor:
    """InfoNCE of a cross-encoder's scores as they are, (B, M) -> scalar."""
    return own_costs(10 * scores).mean()


def a_perfect_model_pays_nothing(loss: Function, seed: int = 0) -> str | None:
    """Look for a positive far ahead of its negatives, fewest first, that still costs something."""
    generator = torch.Generator().manual_seed(seed)
    for m in [m for m in range(2, 6) for _ in range(5)]:
        scores = torch.full((1, m), -50.0, dtype=torch.float64)
        scores[0, 0] = 50 + torch.rand((), generator=generator).item()
        value = loss(scores).item()
        if value > 1e-9:
            return f"a positive 100 ahead, among {m} documents, pays {value:.4g}"
    return None


MISTAKE = Mistake(
    name="ce_mnrl_sigmoid_floor",
    kind="function",
    title="A sigmoid under the softmax",
    symptom="The loss of a cross-encoder cannot fall below 1.8e-4 with four negatives, and large scores teach nothing.",
    cause="A sigmoid maps scores to 0 … 1 before they are scaled by 10, so the largest lead is 10.",
    source="huggingface/sentence-transformers#3518",
    case="ce-mnrl-sigmoid-floor",
    breaks="a positive far ahead costs nothing",
    wrong=wrong,
    right=right,
    property=a_perfect_model_pays_nothing,
    topic="temperature",
    example=Example(
        {"scores": [[100.0, -100.0, -100.0, -100.0, -100.0]]},
        value,
        unit="nats",
        note="The positive is 200 ahead of its four negatives.",
    ),
)
