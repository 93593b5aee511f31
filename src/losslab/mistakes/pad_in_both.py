"""Padding judged like text."""

from torch import Tensor

from losslab.mistakes._parts import next_token_mean
from losslab.mistakes._record import Mistake


def wrong(logits: Tensor, labels: Tensor, mask: Tensor | None = None) -> Tensor:  # noqa: ARG001
    """Cross-entropy of the next token, padding included."""
    # The mistake: the mask is not used, and labels at padding are ids, so padding is in sum and count.
    return next_token_mean(logits, labels)


MISTAKE = Mistake(
    name="pad_in_both",
    kind="token",
    title="Padding is text",
    symptom="Perplexity of a short text changes with the longest text in its batch.",
    cause="The attention mask is dropped and labels at padding are ordinary ids.",
    source="axolotl-ai-cloud/axolotl#3988",
    case="pad-in-both",
    breaks="mask",
    wrong=wrong,
    right="token_nll",
)
