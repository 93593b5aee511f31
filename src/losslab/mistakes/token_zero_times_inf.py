"""Nought times minus infinity."""

import math

from torch import Tensor
from torch.nn.functional import one_hot

from losslab.mistakes._examples import tokens
from losslab.mistakes._parts import mean_over_tokens, next_tokens
from losslab.mistakes._record import Example, Mistake


def wrong(logits: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy of the next token, by a sum over one-hot targets."""
    rows, targets, counted = next_tokens(logits, labels)
    # The mistake: a forbidden token has the log-probability minus infinity, and 0 times that is nan.
    costs = -(one_hot(targets, rows.shape[2]) * rows.log_softmax(2)).sum(2)
    return mean_over_tokens(costs, counted)


MISTAKE = Mistake(
    name="token_zero_times_inf",
    kind="token",
    title="Nought times infinity",
    symptom="The loss is nan as soon as one token is forbidden by a logit of minus infinity.",
    cause="Every log-probability is multiplied by its target, the 0 of a forbidden token included.",
    source="built",
    case=None,
    breaks="forbidden",
    wrong=wrong,
    right="token_nll",
    met="built",
    example=Example({"logits": [[[0.0, 0.0, -math.inf], [0.0, 0.0, 0.0]]], "labels": [[0, 1]]}, tokens, unit="nats"),
)
