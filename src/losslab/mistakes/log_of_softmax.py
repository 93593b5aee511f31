"""The probability first, then its logarithm."""

from torch import Tensor

from losslab.mistakes._parts import mean_over_tokens, next_tokens
from losslab.mistakes._record import Mistake


def wrong(logits: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy of the next token by way of its probability."""
    rows, targets, counted = next_tokens(logits, labels)
    probability = rows.to(logits.dtype).softmax(2).gather(2, targets[:, :, None])[:, :, 0]
    # The mistake: a probability below the smallest number of the format is 0, and its logarithm minus infinity.
    return mean_over_tokens(-probability.log(), counted)


MISTAKE = Mistake(
    name="log_of_softmax",
    kind="token",
    title="The logarithm of 0",
    symptom="Perplexity is infinite on a text whose mean cost is 2 nats.",
    cause="Softmax rounds small probabilities to 0 before the logarithm is taken.",
    source="Lightning-AI/torchmetrics (functional/text/perplexity.py, 1.9.0; no report found)",
    case="log-of-softmax",
    breaks="underflow",
    wrong=wrong,
    right="token_nll",
)
