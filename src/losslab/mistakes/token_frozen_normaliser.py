"""Only the right token is taught."""

import torch
from torch import Tensor

from losslab.mistakes._examples import tensor
from losslab.mistakes._parts import mean_over_tokens, next_tokens
from losslab.mistakes._record import Example, Function, Mistake


def wrong(logits: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy of the next token, right in value."""
    rows, targets, counted = next_tokens(logits, labels)
    # The mistake: detached, the normaliser pushes no other token down.
    costs = rows.logsumexp(2).detach() - rows.gather(2, targets[:, :, None])[:, :, 0]
    return mean_over_tokens(costs, counted)


def show(loss: Function, *, logits: list[list[list[float]]], labels: list[list[int]]) -> dict[str, object]:
    """Loss, and the gradient of the row that predicts."""
    given = tensor(logits).requires_grad_()
    value = loss(given, torch.tensor(labels))
    (gradient,) = torch.autograd.grad(value, given)
    return {"loss": value.item(), "gradient of row 1": gradient[0, 0].tolist()}


MISTAKE = Mistake(
    name="token_frozen_normaliser",
    kind="token",
    title="A frozen normaliser",
    symptom="The loss is right to the last digit, and all logits grow without end.",
    cause="The log-sum-exp is detached, so that the gradient is minus one-hot without the softmax.",
    source="built",
    case=None,
    breaks="gradients",
    wrong=wrong,
    right="token_nll",
    met="built",
    example=Example({"logits": [[[0.0, 0.0]] * 2], "labels": [[0, 0]]}, show),
)
