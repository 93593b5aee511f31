"""Tokens summed in a random order."""

import torch
from torch import Tensor

from losslab.mistakes._parts import mean_over_tokens, next_tokens, token_costs
from losslab.mistakes._record import Mistake


def wrong(logits: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy of the next token over tokens in any order, as if some were to be left out."""
    rows, tokens, counted = next_tokens(logits, labels)
    # The mistake: the order comes out of the global generator, also when nothing is left out.
    order = torch.randperm(tokens.shape[1]).to(tokens.device)
    costs = token_costs(rows[:, order], tokens[:, order])
    return mean_over_tokens(costs, counted[:, order]).to(logits.dtype)


MISTAKE = Mistake(
    name="token_random_order",
    kind="token",
    title="A draw at every step",
    symptom="With the loss logged twice a step, the same seed gives another run.",
    cause="A permutation is drawn from the global random state where none is needed.",
    source="built",
    case=None,
    breaks="random_state",
    wrong=wrong,
    right="token_nll",
    met="built",
)
