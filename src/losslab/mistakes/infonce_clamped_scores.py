"""Scores cut off where they become interesting."""

from torch import Tensor

from losslab.mistakes._parts import cosines, own_costs
from losslab.mistakes._record import Mistake


def wrong(queries: Tensor, documents: Tensor, temperature: float = 0.05) -> Tensor:
    """InfoNCE whose logits cannot overflow."""
    # The mistake: a logit above the limit has no gradient, so what is pulled or pushed there finds no answer.
    logits = (cosines(queries, documents) / temperature).clamp(max=7)
    return own_costs(logits).mean().to(queries.dtype)


MISTAKE = Mistake(
    name="infonce_clamped_scores",
    kind="contrastive",
    title="Clamped logits",
    symptom="The hardest negatives are not pushed away, and good positives no longer pulled.",
    cause="clamp() has gradient 0 beyond its limits, where the softmax puts its largest shares.",
    source="built",
    case=None,
    breaks="score_gradients",
    wrong=wrong,
    right="info_nce",
    met="built",
)
