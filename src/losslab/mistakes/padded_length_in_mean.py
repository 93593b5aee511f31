"""A mean over documents that divides by the padded length."""

from torch import Tensor

from losslab.mistakes._examples import by_width
from losslab.mistakes._parts import by_label, choice_costs, mean_over_lists, real
from losslab.mistakes._record import Example, Mistake


def wrong(logits: Tensor, labels: Tensor, mask: Tensor | None = None) -> Tensor:
    """ListMLE a document, where empty slots count as documents."""
    dtype = logits.dtype
    logits, mask = by_label(logits, labels, real(mask, logits))
    # The mistake: the costs of empty slots are 0, but mean() divides by their number all the same.
    return mean_over_lists(choice_costs(logits, mask).mean(1), mask, dtype)


def right(logits: Tensor, labels: Tensor, mask: Tensor | None = None) -> Tensor:
    """ListMLE a document: each list's cost over its own length."""
    dtype = logits.dtype
    logits, mask = by_label(logits, labels, real(mask, logits))
    return mean_over_lists(choice_costs(logits, mask).sum(1) / mask.sum(1).clamp(min=1), mask, dtype)


MISTAKE = Mistake(
    name="padded_length_in_mean",
    kind="listwise",
    title="Padded length in the mean",
    symptom="A short list beside a long one all but stops counting.",
    cause="mean() divides by the number of slots, empty ones included, though only real documents have costs.",
    source="d2l-ai/d2l-en#2707",
    case=None,
    breaks="padding_invariance",
    wrong=wrong,
    right=right,
    example=Example({"logits": [1.5, 0.3], "labels": [2, 1], "widths": [2, 10]}, by_width, unit="nats a document"),
)
