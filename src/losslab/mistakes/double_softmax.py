"""Probabilities taken for logits."""

from torch import Tensor

from losslab.mistakes._parts import next_token_mean
from losslab.mistakes._record import Mistake


def wrong(logits: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy of the next token, given probabilities."""
    # The mistake: the loss applies softmax to what softmax has made, so that no two inputs differ by more than 1.
    return next_token_mean(logits.double().softmax(2), labels)


MISTAKE = Mistake(
    name="double_softmax",
    kind="token",
    title="Softmax twice",
    symptom="A confident model's perplexity stays close to that of guessing.",
    cause="Probabilities are handed to a function that takes logits, and it cannot tell.",
    source="Lightning-AI/torchmetrics#1366",
    case="double-softmax",
    breaks="base",
    wrong=wrong,
    right="token_nll",
)
