"""A tiny constant inside the logarithm of the softmax."""

import torch
from torch import Tensor

from losslab.mistakes._examples import value
from losslab.mistakes._parts import cosines
from losslab.mistakes._record import Example, Mistake


def wrong(queries: Tensor, documents: Tensor, temperature: float = 0.05) -> Tensor:
    """InfoNCE by softmax and logarithm, one after the other, in float32."""
    shares = (cosines(queries, documents) / temperature).float().softmax(1).diagonal()
    # The mistake: below 1e-38 a share is 0 and the constant all there is: 87.3 at most, and no gradient.
    return -(shares + torch.finfo(torch.float32).tiny).log().mean().to(queries.dtype)


MISTAKE = Mistake(
    name="infonce_saturated_log",
    kind="contrastive",
    title="Saturated at 87",
    symptom="At a low temperature the worst rows all pay 87.3 and teach nothing.",
    cause="The logarithm of a softmax is taken in two steps, with the smallest float added against log(0).",
    source="KevinMusgrave/pytorch-metric-learning (losses/ntxent_loss.py; no report found)",
    case=None,
    breaks="temperature_limits",
    wrong=wrong,
    right="info_nce",
    topic="temperature",
    example=Example(
        {"queries": [[1.0, 0.0], [1.0, 0.0]], "documents": [[1.0, 0.0], [-1.0, 0.0]], "temperature": 0.02},
        value,
        unit="nats",
        note="The second query's document lies opposite to it and costs its full distance, or 87 at most.",
    ),
)
