"""The largest logit is subtracted, but 1e-10 still stands inside the logarithm."""

from torch import Tensor

from losslab.mistakes._examples import list_value
from losslab.mistakes._parts import by_label, mean_over_lists, real
from losslab.mistakes._record import Example, Mistake


def wrong(logits: Tensor, labels: Tensor, mask: Tensor | None = None) -> Tensor:
    """ListMLE that cannot overflow, and forgets every document 23 below the best."""
    dtype = logits.dtype
    logits, mask = by_label(logits, labels, real(mask, logits))
    logits = logits - logits.masked_fill(~mask, -1e30).amax(1, keepdim=True)
    weights = logits.exp().masked_fill(~mask, 0)
    mass_left = weights.flip(1).cumsum(1).flip(1)
    # The mistake: where the best document leads by 23, what is left weighs e^-23 = 1e-10, no more than this.
    costs = ((mass_left + 1e-10).log() - logits).masked_fill(~mask, 0)
    return mean_over_lists(costs.sum(1), mask, dtype)


MISTAKE = Mistake(
    name="listmle_epsilon",
    kind="listwise",
    title="1e-10 inside the logarithm",
    symptom="Once one document leads by 20 or more, the order of the others costs too much and teaches too little.",
    cause="The constant inside the logarithm joins the mass of what is left to choose, like one more document.",
    source="allegro/allRank (losses/listMLE.py; no report found)",
    case="listmle-overflow",
    breaks="objective",
    wrong=wrong,
    right="list_mle",
    against="list_mle",
    example=Example({"logits": [23, 0, -1], "labels": [2, 1, 0]}, list_value, unit="nats"),
)
