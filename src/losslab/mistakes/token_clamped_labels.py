"""Ignored labels clamped to token 0."""

from torch import Tensor

from losslab.mistakes._examples import tokens
from losslab.mistakes._parts import token_costs
from losslab.mistakes._record import Example, Mistake


def wrong(logits: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy of the next token over those that are counted."""
    # The mistake: clamped so that they can be looked up, ignored labels become token 0 and stay in the sum.
    costs = token_costs(logits[:, :-1], labels[:, 1:].clamp(min=0))
    return costs.sum() / (labels[:, 1:] != -100).sum()


MISTAKE = Mistake(
    name="token_clamped_labels",
    kind="token",
    title="Ignored means token 0",
    symptom="The loss is too high, the more tokens are ignored, and padding learns token 0.",
    cause="Ignored positions are taken out of the count and left in the sum.",
    source="built",
    case=None,
    breaks="ignored",
    wrong=wrong,
    right="token_nll",
    met="built",
    example=Example({"logits": [[[0.0, 0.0]] * 3], "labels": [[0, 1, -100]]}, tokens, unit="nats"),
)
