"""Probabilities taken for logits."""

import torch
from torch import Tensor

from losslab.mistakes._examples import tensor
from losslab.mistakes._parts import next_token_mean
from losslab.mistakes._record import Example, Function, Mistake


def wrong(logits: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy of the next token, given probabilities."""
    # The mistake: the loss applies softmax to what softmax has made, so that no two inputs differ by more than 1.
    return next_token_mean(logits.double().softmax(2), labels)


def show(loss: Function, *, probabilities: list[float], token: int) -> float:
    """Perplexity of one token, after one before it."""
    return float(loss(tensor([[probabilities] * 2]).log(), torch.tensor([[0, token]])).exp().item())


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
    example=Example({"probabilities": [0.9, 0.1], "token": 0}, show, what="perplexity"),
)
