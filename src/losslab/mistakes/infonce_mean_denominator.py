"""A mean where the formula has a sum."""

import math

from torch import Tensor

from losslab.mistakes._examples import value
from losslab.mistakes._parts import cosines
from losslab.mistakes._record import Example, Mistake


def wrong(queries: Tensor, documents: Tensor, temperature: float = 0.05) -> Tensor:
    """InfoNCE made independent of the number of documents, as a bound on mutual information has it."""
    logits = cosines(queries, documents) / temperature
    # The mistake, as a loss to compare: minus ln M, so that each easy document makes it smaller.
    normaliser = logits.logsumexp(1) - math.log(len(documents))
    return (normaliser - logits.diagonal()).mean().to(queries.dtype)


MISTAKE = Mistake(
    name="infonce_mean_denominator",
    kind="contrastive",
    title="A mean in the denominator",
    symptom="The loss is below 0 and falls when easy negatives are added; a blind model pays 0.",
    cause="The denominator is a mean over documents instead of their sum, which subtracts ln M.",
    source="built",
    case=None,
    breaks="more_negatives",
    wrong=wrong,
    right="info_nce",
    met="built",
    example=Example(
        {"queries": [[1.0, 0.0], [1.0, 0.0]], "documents": [[1.0, 0.0], [1.0, 0.0]]},
        value,
        unit="nats",
        note="The model is blind: all it gives out is one and the same vector.",
    ),
)
