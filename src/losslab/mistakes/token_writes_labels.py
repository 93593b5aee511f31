"""Ignored labels replaced for good."""

from torch import Tensor

from losslab.mistakes._parts import mean_over_tokens, token_costs
from losslab.mistakes._record import Mistake


def wrong(logits: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy of the next token that makes the labels fit to index with."""
    tokens = labels[:, 1:]
    counted = tokens != -100
    # The mistake: a slice is a view, so this writes 0 into the caller's labels; the next loss takes them for tokens.
    tokens[~counted] = 0
    return mean_over_tokens(token_costs(logits[:, :-1], tokens), counted).to(logits.dtype)


MISTAKE = Mistake(
    name="token_writes_labels",
    kind="token",
    title="Labels written over",
    symptom="A batch's first loss is right, its second counts the padding; so does an accuracy logged after it.",
    cause="A slice of a tensor is a view of it, and -100 is replaced in place.",
    source="built",
    case=None,
    breaks="inputs_unchanged",
    wrong=wrong,
    right="token_nll",
    met="built",
)
