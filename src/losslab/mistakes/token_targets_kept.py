"""What counted in another batch."""

from torch import Tensor

from losslab.mistakes._parts import mean_over_tokens, next_tokens, token_costs
from losslab.mistakes._record import Mistake

_last: dict[str, Tensor] = {}


def wrong(logits: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy of the next token that looks for the targets only when shape or format are new."""
    rows, tokens, counted = next_tokens(logits, labels)
    known = _last.get("counted")
    # The mistake: the shape is what says that the targets are known; another batch of that shape gets them, too.
    if known is None or known.shape != counted.shape or _last["logits"].dtype != logits.dtype:
        _last.update(counted=counted, logits=logits.detach())
    return mean_over_tokens(token_costs(rows, tokens), _last["counted"]).to(logits.dtype)


MISTAKE = Mistake(
    name="token_targets_kept",
    kind="token",
    title="The last batch's targets",
    symptom="Padding counts in some batches and not in others; the loss of a batch depends on the one before.",
    cause="A mask is cached under the shape of the labels rather than the labels.",
    source="built",
    case=None,
    breaks="no_state",
    wrong=wrong,
    right="token_nll",
    met="built",
)
