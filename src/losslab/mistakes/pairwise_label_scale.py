"""Pairs weighted by the difference of their labels: a choice, and one to make knowingly."""

import torch
from torch import Tensor

from losslab.mistakes._examples import tensor
from losslab.mistakes._record import Example, Function, Mistake
from losslab.mistakes.lambda_micro_average import pair_costs


def wrong(logits: Tensor, labels: Tensor, mask: Tensor | None = None) -> Tensor:
    """Pairwise logistic loss, each pair times its label difference; sum over pairs."""
    costs, _ = pair_costs(logits, labels, mask)
    # The choice: labels of 0 to 100 instead of 0 to 1 make the loss, and every gradient, 100 times as large.
    return ((labels[:, :, None] - labels[:, None, :]) * costs).sum()


def right(logits: Tensor, labels: Tensor, mask: Tensor | None = None) -> Tensor:
    """Pairwise logistic loss in which only the order of the labels counts; sum over pairs."""
    return pair_costs(logits, labels, mask)[0].sum()


def label_scale_changes_nothing(loss: Function, seed: int = 0) -> str | None:
    """Look for a list, shortest first, whose loss changes when all labels are multiplied by 100."""
    generator = torch.Generator().manual_seed(seed)
    for n in [n for n in range(2, 6) for _ in range(20)]:
        logits = torch.randn(1, n, generator=generator)
        labels = torch.randint(0, 3, (1, n), generator=generator)
        once, scaled = loss(logits, labels).item(), loss(logits, 100 * labels).item()
        if once != scaled:
            return (
                f"logits {logits[0].tolist()}, labels {labels[0].tolist()}: {once}, and {scaled} with labels times 100"
            )
    return None


def show(loss: Function, *, logits: list[float], labels: list[float], factors: list[int]) -> dict[str, float]:
    """Loss of one list with its labels times each factor."""
    return {f"labels times {factor}": loss(tensor([logits]), factor * tensor([labels])).item() for factor in factors}


MISTAKE = Mistake(
    name="pairwise_label_scale",
    kind="function",
    title="Labels as weights",
    symptom="Multiplying all labels by 100 multiplies the loss, and so the step, by 100.",
    cause="Pairs are weighted by label difference; the maintainers kept it by design, so document it and test for it.",
    source="tensorflow/ranking#73",
    case="pairwise-label-scale",
    breaks="scaling all labels changes no loss that is about order",
    wrong=wrong,
    right=right,
    property=label_scale_changes_nothing,
    topic="ranking",
    example=Example({"logits": [0.2, 0.5], "labels": [1, 0], "factors": [1, 100]}, show, unit="nats"),
)
