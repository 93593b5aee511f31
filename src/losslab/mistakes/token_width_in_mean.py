"""Divided by the width of the batch."""

from torch import Tensor

from losslab.mistakes._examples import tokens
from losslab.mistakes._parts import next_tokens, token_costs
from losslab.mistakes._record import Example, Mistake


def wrong(logits: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy of the next token, over all positions."""
    rows, targets, counted = next_tokens(logits, labels)
    # The mistake: ignored positions cost 0 but are counted, so padding lowers the loss.
    return token_costs(rows, targets).masked_fill(~counted, 0).mean()


MISTAKE = Mistake(
    name="token_width_in_mean",
    kind="token",
    title="Padding in the denominator",
    symptom="The more padding a batch has, the better its perplexity.",
    cause="Padding is taken out of the sum and left in the count.",
    source="built",
    case=None,
    breaks="padding",
    wrong=wrong,
    right="token_nll",
    met="built",
    example=Example({"logits": [[[0.0, 0.0]] * 3], "labels": [[0, 1, -100]]}, tokens, unit="nats"),
)
