"""A softmax that may choose nothing."""

import torch
from torch import Tensor

from losslab.mistakes._examples import tokens
from losslab.mistakes._parts import mean_over_tokens, next_tokens, token_costs
from losslab.mistakes._record import Example, Function, Mistake


def wrong(logits: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy of the next token, with a logit of 0 for none of them."""
    rows, targets, counted = next_tokens(logits, labels)
    # The mistake: the extra logit stays at 0 while the others may move together, so their level counts.
    rows = torch.cat([rows, torch.zeros_like(rows[:, :, :1])], 2)
    return mean_over_tokens(token_costs(rows, targets), counted)


def show(loss: Function, *, logits: list[float], raised: list[int]) -> dict[str, float]:
    """Loss with all logits so much higher."""
    rows = {by: [[[logit + by for logit in logits]] * 2] for by in raised}
    return {f"logits raised by {by}": tokens(loss, logits=row, labels=[[0, 0]]) for by, row in rows.items()}


MISTAKE = Mistake(
    name="token_quiet_softmax",
    kind="token",
    title="One choice too many",
    symptom="The loss falls when a model raises all its logits together.",
    cause="A constant joins the normaliser, so that more than the differences of logits count.",
    source="built",
    case=None,
    breaks="row_shift",
    wrong=wrong,
    right="token_nll",
    met="built",
    example=Example({"logits": [0.0, 0.0], "raised": [0, 10]}, show, unit="nats"),
)
