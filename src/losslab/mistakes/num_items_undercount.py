"""Targets counted as if the labels were shifted."""

import torch
from torch import Tensor

from losslab.mistakes._record import Example, Function, Mistake


def wrong(costs: Tensor, labels: Tensor) -> Tensor:
    """Mean cost of a decoder whose row t predicts label t: costs (B, T), labels (B, T)."""
    # The mistake: this head does not shift, so the first label of every text is a target too.
    n = (labels[:, 1:] != -100).sum()
    return costs.sum() / n


def right(costs: Tensor, labels: Tensor) -> Tensor:
    """Mean cost of a decoder whose row t predicts label t: costs (B, T), labels (B, T)."""
    return costs.sum() / (labels != -100).sum()


def equal_costs_have_that_mean(mean: Function, seed: int = 0) -> str | None:
    """Look for a batch whose targets all cost 1 and whose mean is another number."""
    generator = torch.Generator().manual_seed(seed)
    for texts, tokens in ((1, 2), (2, 4), (3, 7)):
        labels = torch.randint(0, 5, (texts, tokens), generator=generator)
        value = mean(torch.ones(texts, tokens), labels).item()
        if abs(value - 1) > 1e-6:
            return f"{texts} x {tokens} targets of cost 1 have the mean {value:.6g}"
    return None


def show(mean: Function, *, texts: int, targets: int, cost: float) -> float:
    """Mean of equal costs."""
    labels = torch.zeros(texts, targets, dtype=torch.int64)
    return float(mean(torch.full((texts, targets), cost, dtype=torch.float64), labels).item())


MISTAKE = Mistake(
    name="num_items_undercount",
    kind="function",
    title="One target a text too few",
    symptom="An encoder-decoder's loss under accumulation is 1.33 times too large.",
    cause="Targets are counted in labels[..., 1:], as for heads that shift, for one that does not.",
    source="huggingface/transformers#46903",
    case="num-items-undercount",
    breaks="targets that all cost 1 have the mean 1",
    wrong=wrong,
    right=right,
    property=equal_costs_have_that_mean,
    topic="perplexity",
    example=Example({"texts": 2, "targets": 4, "cost": 1.0}, show, unit="nats"),
)
