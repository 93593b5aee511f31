"""The probability first, then its logarithm."""

import torch
from torch import Tensor

from losslab.mistakes._examples import tensor
from losslab.mistakes._parts import mean_over_tokens, next_tokens
from losslab.mistakes._record import Example, Function, Mistake


def wrong(logits: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy of the next token by way of its probability."""
    rows, targets, counted = next_tokens(logits, labels)
    probability = rows.to(logits.dtype).softmax(2).gather(2, targets[:, :, None])[:, :, 0]
    # The mistake: a probability below the smallest number of the format is 0, and its logarithm minus infinity.
    return mean_over_tokens(-probability.log(), counted)


def show(loss: Function, *, tokens: int, lead: float, costs: list[float]) -> dict[str, float]:
    """Perplexity of a text with one token of each cost, in a format that holds the logits."""
    shown = {}
    for cost, dtype in zip(costs, (torch.float32, torch.float16), strict=True):
        rows = tensor([[[-cost, 0.0], *[[lead, 0.0]] * tokens]], dtype)
        mean = loss(rows, torch.zeros(1, tokens + 1, dtype=torch.int64))
        shown[f"one token of {cost:g}, {dtype}".replace("torch.", "")] = mean.double().exp().item()
    return shown


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
    example=Example(
        {"tokens": 100, "lead": 40.0, "costs": [200.0, 18.0]},
        show,
        what="perplexity",
        note="Ninety-nine tokens lead by 40 and cost nothing, one costs so many nats.",
    ),
)
