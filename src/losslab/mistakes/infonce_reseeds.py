"""A seed set in the middle of training."""

import torch
from torch import Tensor

from losslab.mistakes._parts import cosines
from losslab.mistakes._record import Mistake


def wrong(queries: Tensor, documents: Tensor, temperature: float = 0.05) -> Tensor:
    """InfoNCE over documents in an order that is random and always the same."""
    # The mistake: the seed is that of the whole process; dropout and shuffling start again from here at every step.
    torch.manual_seed(0)
    order = torch.randperm(len(documents)).to(documents.device)
    scores = cosines(queries, documents[order]) / temperature
    own = order.argsort()[: len(queries), None]
    return (scores.logsumexp(1) - scores.gather(1, own)[:, 0]).mean().to(queries.dtype)


MISTAKE = Mistake(
    name="infonce_reseeds",
    kind="contrastive",
    title="The seed set anew",
    symptom="Every step has the same dropout masks, and the data come in the same order in every epoch.",
    cause="torch.manual_seed is called inside the loss to make one draw reproducible.",
    source="built",
    case=None,
    breaks="random_state",
    wrong=wrong,
    right="info_nce",
    met="built",
)
