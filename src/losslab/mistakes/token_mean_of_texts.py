"""Every text counts the same."""

from torch import Tensor

from losslab.mistakes._examples import costing
from losslab.mistakes._parts import next_tokens, token_costs
from losslab.mistakes._record import Example, Function, Mistake


def wrong(logits: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy of the next token: the mean over texts of each text's mean."""
    rows, targets, counted = next_tokens(logits, labels)
    costs = token_costs(rows, targets).masked_fill(~counted, 0).sum(1)
    some = counted.any(1)
    # The mistake: a token of a text of two weighs as much as all the tokens of a long one.
    return (costs / counted.sum(1).clamp(min=1))[some].mean()


def show(loss: Function, *, texts: list[list[float]]) -> float:
    """Loss of one batch of texts whose tokens cost so much."""
    return float(loss(*costing(*texts)).item())


MISTAKE = Mistake(
    name="token_mean_of_texts",
    kind="token",
    title="Texts, not tokens",
    symptom="The loss of a corpus depends on which texts share a batch.",
    cause="Each text is averaged before the batch is, so its tokens' weight is that of its length.",
    source="built",
    case=None,
    breaks="batching",
    wrong=wrong,
    right="token_nll",
    met="built",
    example=Example(
        {"texts": [[4.0], [1.0, 1.0, 1.0]]}, show, unit="nats", note="The inputs are what the tokens cost."
    ),
)
