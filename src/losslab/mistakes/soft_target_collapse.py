"""Targets made of the model's own similarities."""

import torch
from torch import Tensor

from losslab.mistakes._examples import tensor
from losslab.mistakes._record import Example, Function, Mistake


def wrong(logits: Tensor) -> Tensor:
    """Cross-entropy of softmax(logits) against soft targets, (B, B) -> scalar."""
    # The mistake: the targets follow the model; where all scores are equal, they ask for just that.
    targets = logits.detach().softmax(1)
    return -(targets * logits.log_softmax(1)).sum(1).mean()


def right(logits: Tensor) -> Tensor:
    """Cross-entropy of softmax(logits) against the pairs as they were given, (B, B) -> scalar."""
    return -logits.log_softmax(1).diagonal().mean()


def a_blind_model_learns(loss: Function, seed: int = 0) -> str | None:
    """Look for equal scores, fewest first, from which the gradient leads nowhere."""
    generator = torch.Generator().manual_seed(seed)
    for b in [b for b in range(2, 5) for _ in range(5)]:
        scores = torch.randn((), generator=generator).expand(b, b).clone().requires_grad_()
        value = loss(scores)
        (gradient,) = torch.autograd.grad(value, scores)
        if gradient.abs().max() < 1e-6:
            return f"{b} x {b} scores of {scores[0, 0].item():.3g}: the loss is {value.item():.4g} and no gradient left"
    return None


def show(loss: Function, *, scores: list[list[float]]) -> dict[str, object]:
    """Loss of the scores, and what the first row is taught: its gradient, times the number of rows."""
    given = tensor(scores).requires_grad_()
    value = loss(given)
    (gradient,) = torch.autograd.grad(value, given)
    return {"loss": value.item(), "gradient of row 1": (len(scores) * gradient[0]).tolist()}


MISTAKE = Mistake(
    name="soft_target_collapse",
    kind="function",
    title="It teaches what it sees",
    symptom="All embeddings become equal and the optimiser stops, at a loss of ln B.",
    cause="Targets built from the model's own similarities equal its predictions once it has collapsed.",
    source="moein-shariatnia/OpenAI-CLIP#27",
    case="soft-target-collapse",
    breaks="a blind model has a gradient",
    wrong=wrong,
    right=right,
    property=a_blind_model_learns,
    topic="temperature",
    example=Example(
        {"scores": [[1.0, 1.0, 1.0]] * 3},
        show,
        note="The loss is the same, and only the right one knows a way out.",
    ),
)
