"""Padding judged like text."""

from torch import Tensor

from losslab.mistakes._examples import costing, tensor
from losslab.mistakes._parts import next_token_mean
from losslab.mistakes._record import Example, Function, Mistake


def wrong(logits: Tensor, labels: Tensor, mask: Tensor | None = None) -> Tensor:  # noqa: ARG001
    """Cross-entropy of the next token, padding included."""
    # The mistake: the mask is not used, and labels at padding are ids, so padding is in sum and count.
    return next_token_mean(logits, labels)


def show(loss: Function, *, costs: list[float], costs_of_padding: list[float]) -> float:
    """Perplexity of a text with padding behind it, labelled like text."""
    mask = [True] * (len(costs) + 1) + [False] * len(costs_of_padding)
    return float(loss(*costing([*costs, *costs_of_padding]), mask=tensor([mask])).exp().item())


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
    example=Example({"costs": [1.0, 1.0], "costs_of_padding": [6.0, 6.0]}, show, what="perplexity"),
)
