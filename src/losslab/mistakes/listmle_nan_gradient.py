"""A right value with a gradient of NaN: where() throws the padding away after exp() has seen it."""

import math

import torch
from torch import Tensor

from losslab.mistakes._examples import one_list
from losslab.mistakes._parts import mean_over_lists, real
from losslab.mistakes._record import Example, Function, Mistake


def wrong(logits: Tensor, labels: Tensor, mask: Tensor | None = None) -> Tensor:
    """ListMLE that masks before the sum, as it should, and still poisons its model."""
    dtype, mask = logits.dtype, real(mask, logits)
    ranking = labels.double().masked_fill(~mask, -torch.inf).argsort(dim=1, descending=True, stable=True)
    mask, logits = mask.gather(1, ranking), logits.double().gather(1, ranking)
    best = logits.detach().masked_fill(~mask, -1e30).amax(1, keepdim=True)
    # The mistake: exp() of what stands at padding; where() drops the value, but its slope times 0 may be NaN.
    weights = torch.where(mask, (logits - best).exp(), 0)
    mass_left = weights.flip(1).cumsum(1).flip(1).masked_fill(~mask, 1)
    costs = torch.where(mask, mass_left.log() - (logits - best), 0)
    return mean_over_lists(costs.sum(1), mask, dtype)


def show(
    loss: Function, *, logits: list[float], labels: list[float], width: int, padding: float
) -> dict[str, float | list[float]]:
    """Loss and gradient of one list, the empty slot included."""
    value, gradient = one_list(loss, logits, labels, width=width, padding=padding)
    return {"loss": value, "gradient": gradient}


MISTAKE = Mistake(
    name="listmle_nan_gradient",
    kind="listwise",
    title="where() after exp()",
    symptom="The loss is right; the backward pass makes every weight NaN once padding holds NaN or a large number.",
    cause="A value that where() discards is still differentiated, and 0 times an infinite slope is NaN.",
    source="pytorch/pytorch#23156",
    case=None,
    breaks="padding_gradient",
    wrong=wrong,
    right="list_mle",
    example=Example({"logits": [1.5, 0.3], "labels": [2, 1], "width": 3, "padding": math.nan}, show),
)
