"""A text with nothing to predict gets a loss of 0."""

from torch import Tensor

from losslab.mistakes._examples import tokens
from losslab.mistakes._parts import next_tokens, token_costs
from losslab.mistakes._record import Example, Function, Mistake


def wrong(logits: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy of the next token, 0 where there is none."""
    rows, targets, counted = next_tokens(logits, labels)
    # The mistake: the guard against 0 / 0 makes a perfect text of one that has nothing to predict.
    return token_costs(rows, targets).masked_fill(~counted, 0).sum() / counted.sum().clamp(min=1)


def show(loss: Function, *, logits: list[list[list[float]]], labels: list[list[int]]) -> float | str:
    """The number, or the name of the error."""
    try:
        return tokens(loss, logits=logits, labels=labels)
    except ValueError as error:
        return type(error).__name__


MISTAKE = Mistake(
    name="one_token_text",
    kind="token",
    title="Nothing to predict, perplexity 1",
    symptom="A text of one token has a finite loss, and a corpus with many such texts looks better.",
    cause="The count of targets is clamped to 1, so that no targets give 0 / 1 rather than no number.",
    source="huggingface/transformers#3711",
    case="one-token-text",
    breaks="no_target",
    wrong=wrong,
    right="token_nll",
    example=Example(
        {"logits": [[[0.0, 0.0]]], "labels": [[0]]},
        show,
        unit="nats",
        note="What has nothing to predict has no loss, and the right one says so.",
    ),
)
