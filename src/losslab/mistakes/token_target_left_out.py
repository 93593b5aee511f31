"""The right token not among those to choose from."""

import torch
from torch import Tensor

from losslab.mistakes._examples import tokens
from losslab.mistakes._parts import mean_over_tokens, next_tokens
from losslab.mistakes._record import Example, Mistake


def wrong(logits: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy of the next token against all the others."""
    rows, targets, counted = next_tokens(logits, labels)
    right = rows.gather(2, targets[:, :, None])
    # The mistake: the sum runs over the wrong tokens alone, so it is that of guessing among V - 1.
    others = rows.scatter(2, targets[:, :, None], -torch.inf)
    return mean_over_tokens((others.logsumexp(2, keepdim=True) - right)[:, :, 0], counted)


MISTAKE = Mistake(
    name="token_target_left_out",
    kind="token",
    title="V less one",
    symptom="A model that has learned nothing starts at ln(V - 1), and a good one falls below 0.",
    cause="The right token's own mass is missing from the normaliser.",
    source="built",
    case=None,
    breaks="uniform",
    wrong=wrong,
    right="token_nll",
    met="built",
    example=Example(
        {"logits": [[[0.0, 0.0, 0.0, 0.0]] * 2], "labels": [[0, 1]]},
        tokens,
        unit="nats",
        note="Four tokens, all of them equally likely.",
    ),
)
