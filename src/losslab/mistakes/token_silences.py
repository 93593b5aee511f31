"""Warnings silenced for good."""

import warnings

from torch import Tensor

from losslab.mistakes._parts import next_token_mean
from losslab.mistakes._record import Mistake


def wrong(logits: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy of the next token without warnings."""
    # The mistake: with no catch_warnings around it, this silences the whole process from here on.
    warnings.simplefilter("ignore")
    return next_token_mean(logits, labels).to(logits.dtype)


MISTAKE = Mistake(
    name="token_silences",
    kind="token",
    title="No warning ever again",
    symptom="Warnings of other libraries stop appearing once training has begun.",
    cause="The warning filters belong to the process, not to the function that sets them.",
    source="built",
    case=None,
    breaks="settings",
    wrong=wrong,
    right="token_nll",
    met="built",
)
