"""Exponentials in the model's own format."""

import torch
from torch import Tensor

from losslab.mistakes._examples import tokens
from losslab.mistakes._parts import mean_over_tokens, next_tokens
from losslab.mistakes._record import Example, Function, Mistake


def wrong(logits: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy of the next token in whatever format the logits have."""
    rows, targets, counted = next_tokens(logits, labels)
    rows = rows.to(logits.dtype)
    # The mistake: exp overflows above 88 in float32 and above 11 in float16.
    costs = rows.exp().sum(2).log() - rows.gather(2, targets[:, :, None])[:, :, 0]
    return mean_over_tokens(costs, counted)


def show(loss: Function, *, logits: list[list[list[float]]], labels: list[list[int]]) -> float:
    """Loss of float32 logits."""
    return tokens(loss, logits=logits, labels=labels, dtype=torch.float32)


MISTAKE = Mistake(
    name="token_half_sum",
    kind="token",
    title="Exponentials too large",
    symptom="The loss is infinite on logits that another format, or their largest one less, would bear.",
    cause="The exponentials are summed as they are, without the largest logit taken out.",
    source="built",
    case=None,
    breaks="extremes",
    wrong=wrong,
    right="token_nll",
    met="built",
    example=Example({"logits": [[[90.0, 0.0], [0.0, 0.0]]], "labels": [[0, 1]]}, show, unit="nats, in float32"),
)
