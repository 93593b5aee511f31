"""Scores cut off where they become interesting."""

import torch
from torch import Tensor

from losslab.mistakes._examples import tensor
from losslab.mistakes._parts import cosines, own_costs
from losslab.mistakes._record import Example, Function, Mistake


def wrong(queries: Tensor, documents: Tensor, temperature: float = 0.05) -> Tensor:
    """InfoNCE whose logits cannot overflow."""
    # The mistake: a logit above the limit has no gradient, so what is pulled or pushed there finds no answer.
    logits = (cosines(queries, documents) / temperature).clamp(max=7)
    return own_costs(logits).mean().to(queries.dtype)


def show(loss: Function, *, queries: list[list[float]], documents: list[list[float]]) -> dict[str, float]:
    """Loss, and how strongly it pushes the embeddings of the documents."""
    d = tensor(documents).requires_grad_()
    value = loss(tensor(queries), d)
    (gradient,) = torch.autograd.grad(value, d)
    return {"loss": value.item(), "length of the gradient by the first document": gradient[0].norm().item()}


MISTAKE = Mistake(
    name="infonce_clamped_scores",
    kind="contrastive",
    title="Clamped logits",
    symptom="The hardest negatives are not pushed away, and good positives no longer pulled.",
    cause="clamp() has gradient 0 beyond its limits, where the softmax puts its largest shares.",
    source="built",
    case=None,
    breaks="score_gradients",
    wrong=wrong,
    right="info_nce",
    met="built",
    topic="temperature",
    example=Example(
        {"queries": [[1.0, 0.0], [1.0, 0.0]], "documents": [[0.6, 0.8], [1.0, 0.0]]},
        show,
        note="A wrong document scores 20 and the right one 12: both are cut to 7, where nothing pulls or pushes.",
    ),
)
