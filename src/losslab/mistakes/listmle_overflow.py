"""exp() of a raw logit, and 1e-10 to save its logarithm."""

import torch
from torch import Tensor

from losslab.mistakes._examples import list_value
from losslab.mistakes._parts import by_label, mean_over_lists, real
from losslab.mistakes._record import Example, Function, Mistake


def wrong(logits: Tensor, labels: Tensor, mask: Tensor | None = None) -> Tensor:
    """ListMLE as sentence-transformers 5.7.0 to 6.1.0 compute it, in float32."""
    dtype = logits.dtype
    logits, mask = by_label(logits, labels, real(mask, logits))
    logits = logits.float()
    # The mistake: exp() overflows above 88, underflows below -103, and from -23 down the 1e-10 outweighs it.
    weights = logits.exp().masked_fill(~mask, 0)
    mass_left = weights.flip(1).cumsum(1).flip(1)
    costs = ((mass_left + 1e-10).log() - logits).masked_fill(~mask, 0)
    return mean_over_lists(costs.sum(1), mask, dtype)


def show(loss: Function, *, logits: list[list[float]], labels: list[float]) -> dict[str, float]:
    """Loss of the same list at several heights."""
    return {
        f"logits {row[0]:g}, {row[1]:g}": list_value(loss, logits=row, labels=labels, dtype=torch.float32)
        for row in logits
    }


MISTAKE = Mistake(
    name="listmle_overflow",
    kind="listwise",
    title="exp() before log()",
    symptom="The loss is inf, 15.9 or 1956 for logits that differ by 2, depending on where they lie.",
    cause="Logits are exponentiated as they are, without subtracting the largest, and 1e-10 hides the underflow.",
    source="huggingface/sentence-transformers#4012",
    case="listmle-overflow",
    breaks="extreme_logits",
    wrong=wrong,
    right="list_mle",
    example=Example(
        {"logits": [[1000, 998], [90, 88], [-23, -25], [-30, -32], [-1000, -1002]], "labels": [2, 1]},
        show,
        unit="nats, in float32",
    ),
)
