"""Micro-batches averaged, whatever they hold."""

from torch import Tensor

from losslab.mistakes._examples import costing
from losslab.mistakes._parts import next_token_mean, next_tokens, token_costs
from losslab.mistakes._record import Example, Function, Mistake


def wrong(logits: Tensor, labels: Tensor, num_items_in_batch: int | None = None) -> Tensor:  # noqa: ARG001
    """Cross-entropy of the next token, a mean over the micro-batch."""
    # The mistake: the number of targets in the whole batch is taken and not used, so each micro-batch is a mean.
    return next_token_mean(logits, labels)


def right(logits: Tensor, labels: Tensor, num_items_in_batch: int | None = None) -> Tensor:
    """Cross-entropy of the next token: a part of the mean over the whole batch, if its number of targets is given."""
    rows, targets, counted = next_tokens(logits, labels)
    total = token_costs(rows, targets).masked_fill(~counted, 0).sum()
    return total / (counted.sum() if num_items_in_batch is None else num_items_in_batch)


def show(loss: Function, *, micro_batches: list[list[float]]) -> float:
    """Mean over micro-batches, each told how many targets the average one has."""
    k, targets = len(micro_batches), sum(map(len, micro_batches))
    values = [float(loss(*costing(text), num_items_in_batch=targets // k).item()) for text in micro_batches]
    return sum(values) / k


MISTAKE = Mistake(
    name="grad_accum_tokens",
    kind="token",
    title="A mean of means",
    symptom="The loss with gradient accumulation differs from that of one large batch.",
    cause="Every micro-batch is averaged over its own targets, so the tokens of a short one count more.",
    source="huggingface/transformers#34191",
    case="grad-accum-tokens",
    breaks="accumulation",
    wrong=wrong,
    right=right,
    example=Example(
        {"micro_batches": [[4.0], [1.0, 1.0, 1.0]]},
        show,
        unit="nats",
        note="The inputs are what the tokens cost. A training loop takes the mean over micro-batches.",
    ),
)
