"""A tenth of the target spread over all tokens."""

from torch import Tensor

from losslab.mistakes._examples import tokens
from losslab.mistakes._parts import mean_over_tokens, next_tokens, token_costs
from losslab.mistakes._record import Example, Mistake


def wrong(logits: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy of smoothed targets: a good training loss, and no perplexity."""
    rows, targets, counted = next_tokens(logits, labels)
    # The mistake, if its exponential is called perplexity: no model can bring it down to 0.
    spread = -rows.log_softmax(2).mean(2)
    return mean_over_tokens(0.9 * token_costs(rows, targets) + 0.1 * spread, counted)


MISTAKE = Mistake(
    name="token_label_smoothing",
    kind="token",
    title="Smoothed, and exponentiated",
    symptom="A perfect model's perplexity is far above 1, and overconfident ones are worse.",
    cause="The smoothed training loss is reported as if it were the cross-entropy of the text.",
    source="built",
    case=None,
    breaks="objective",
    wrong=wrong,
    right="token_nll",
    against="token_nll",
    met="built",
    example=Example(
        {"logits": [[[20.0, 0.0], [0.0, 0.0]]], "labels": [[0, 0]]},
        tokens,
        unit="nats",
        note="The model is sure, and right.",
    ),
)
