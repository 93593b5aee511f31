"""Each row judged by the token it has just read."""

from torch import Tensor

from losslab.mistakes._examples import alternating
from losslab.mistakes._parts import mean_over_tokens, token_costs
from losslab.mistakes._record import Example, Function, Mistake


def wrong(logits: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy of labels that are the input ids, row t against label t."""
    # The mistake: row t has read token t and predicts the one after it, but is asked for token t again.
    return mean_over_tokens(token_costs(logits, labels), labels != -100)


def show(loss: Function, *, ids: list[int], p_next: float) -> float:
    """Perplexity of a model that gives so much to the next token."""
    return float(loss(*alternating(ids, p_next)).exp().item())


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
    example=Example({"ids": [0, 1, 0, 1, 0, 1], "p_next": 0.9}, show, what="perplexity"),
)
