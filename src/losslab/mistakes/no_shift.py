"""Each row judged by the token it has just read."""

from torch import Tensor

from losslab.mistakes._parts import mean_over_tokens, token_costs
from losslab.mistakes._record import Mistake


def wrong(logits: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy of labels that are the input ids, row t against label t."""
    # The mistake: row t has read token t and predicts the one after it, but is asked for token t again.
    return mean_over_tokens(token_costs(logits, labels), labels != -100)


MISTAKE = Mistake(
    name="no_shift",
    kind="token",
    title="Not shifted",
    symptom="Rolling perplexity is about 8 times too high, and nothing raises.",
    cause="Row t of the logits predicts token t + 1 but is compared with token t.",
    source="huggingface/lighteval#1252",
    case="no-shift",
    breaks="shift",
    wrong=wrong,
    right="token_nll",
)
