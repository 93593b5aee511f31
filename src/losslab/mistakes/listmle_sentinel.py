"""A low logit instead of no logit in an empty slot."""

import math

from torch import Tensor

from losslab.mistakes._examples import list_value
from losslab.mistakes._parts import by_label, mean_over_lists, real
from losslab.mistakes._record import Example, Mistake


def wrong(logits: Tensor, labels: Tensor, mask: Tensor | None = None) -> Tensor:
    """ListMLE whose padding is unlikely rather than impossible.

    TensorFlow Ranking also keeps the costs of the empty slots, which adds log(k!) for k of them; left out here.
    """
    dtype = logits.dtype
    logits, mask = by_label(logits, labels, real(mask, logits))
    # The mistake: log(1e-10) = -23 is low only as long as the documents' logits lie well above it.
    filled = logits.masked_fill(~mask, math.log(1e-10))
    log_mass_left = filled.flip(1).logcumsumexp(1).flip(1)
    costs = (log_mass_left - filled).masked_fill(~mask, 0)
    return mean_over_lists(costs.sum(1), mask, dtype)


MISTAKE = Mistake(
    name="listmle_sentinel",
    kind="listwise",
    title="A better fill constant",
    symptom="All is well until the model's logits drift below -15; then padding counts again.",
    cause="Empty slots hold log(1e-10), a finite logit, so whether they can be chosen depends on where the others lie.",
    source="tensorflow/ranking (losses_impl.py; no report found)",
    case=None,
    breaks="shift_invariance",
    wrong=wrong,
    right="list_mle",
    example=Example({"logits": [-25, -26.2], "labels": [2, 1], "width": 4}, list_value, unit="nats"),
)
