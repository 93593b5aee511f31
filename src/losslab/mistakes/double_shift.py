"""Labels shifted by the caller, and again by the loss."""

from torch import Tensor
from torch.nn.functional import pad

from losslab.mistakes._examples import alternating
from losslab.mistakes._parts import next_token_mean
from losslab.mistakes._record import Example, Function, Mistake


def wrong(logits: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy of the token after the next."""
    # The mistake: the caller shifts, although the loss does.
    shifted = pad(labels[:, 1:], (0, 1), value=-100)
    return next_token_mean(logits, shifted)


def show(loss: Function, *, ids: list[int], p_next: float) -> float:
    """Loss of a model that gives so much to the next token."""
    return float(loss(*alternating(ids, p_next)).item())


MISTAKE = Mistake(
    name="double_shift",
    kind="token",
    title="Shifted twice",
    symptom="A model that knows the next token well has a high loss, or learns to skip one.",
    cause="The labels are shifted before they reach a loss that shifts them itself, so row t meets token t + 2.",
    source="huggingface/transformers#46784",
    case="double-shift",
    breaks="shift",
    wrong=wrong,
    right="token_nll",
    example=Example({"ids": [0, 1, 0, 1, 0, 1], "p_next": 0.9}, show, unit="nats"),
)
