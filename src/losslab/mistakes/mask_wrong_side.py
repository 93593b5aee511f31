"""A mask read as a length."""

import torch
from torch import Tensor

from losslab.mistakes._examples import costing, tensor
from losslab.mistakes._parts import mean_over_tokens, next_tokens, token_costs
from losslab.mistakes._record import Example, Function, Mistake


def wrong(logits: Tensor, labels: Tensor, mask: Tensor | None = None) -> Tensor:
    """Cross-entropy of the next token over as many positions as are real, from the left."""
    rows, targets, counted = next_tokens(logits, labels, mask)
    if mask is not None:
        places = torch.arange(counted.shape[1], device=counted.device)
        # The mistake: the first n positions are the real ones only if padding is on the right.
        counted = places < counted.sum(1, keepdim=True)
    return mean_over_tokens(token_costs(rows, targets), counted)


def show(loss: Function, *, costs: list[float], mask: list[bool]) -> float:
    """Loss of one padded text whose tokens cost so much."""
    return float(loss(*costing(costs), mask=tensor([mask])).item())


MISTAKE = Mistake(
    name="mask_wrong_side",
    kind="token",
    title="Padding on the other side",
    symptom="The metric is that of the padding wherever the tokenizer pads on the left.",
    cause="The mask is reduced to a length, and the text is taken to start at the left.",
    source="huggingface/peft#2986",
    case="mask-wrong-side",
    breaks="padding_side",
    wrong=wrong,
    right="token_nll",
    example=Example(
        {"costs": [9.0, 9.0, 1.0, 2.0], "mask": [False, False, True, True, True]},
        show,
        unit="nats",
        note="The first token of a text has no cost, so there is one more place in the mask.",
    ),
)
