"""The positive in front of all documents, itself among them."""

import torch
from torch import Tensor

from losslab.mistakes._examples import value
from losslab.mistakes._parts import cosines
from losslab.mistakes._record import Example, Mistake


def wrong(queries: Tensor, documents: Tensor, temperature: float = 0.05) -> Tensor:
    """InfoNCE with the positive's score in front, as for hard negatives."""
    logits = cosines(queries, documents) / temperature
    # The mistake: the row still holds the positive, so it stands in the denominator twice.
    both = torch.cat([logits.diagonal()[:, None], logits], 1)
    return (both.logsumexp(1) - both[:, 0]).mean().to(queries.dtype)


MISTAKE = Mistake(
    name="infonce_positive_twice",
    kind="contrastive",
    title="The positive twice",
    symptom="A perfect model pays ln 2, also for a single pair.",
    cause="The positive is put in front of a row of scores that holds it already.",
    source="built",
    case=None,
    breaks="one_pair",
    wrong=wrong,
    right="info_nce",
    met="built",
    example=Example({"queries": [[1.0, 0.0]], "documents": [[1.0, 0.0]]}, value, unit="nats"),
)
