"""Targets made on the CPU, whatever device the embeddings are on."""

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from losslab.mistakes._parts import cosines
from losslab.mistakes._record import Mistake


def wrong(queries: Tensor, documents: Tensor, temperature: float = 0.05) -> Tensor:
    """InfoNCE that runs on the machine it was written on."""
    # The mistake: arange() without device=queries.device.
    targets = torch.arange(len(queries))
    return cross_entropy(cosines(queries, documents) / temperature, targets).to(queries.dtype)


MISTAKE = Mistake(
    name="infonce_cpu_targets",
    kind="contrastive",
    title="Targets on the CPU",
    symptom="All tests pass on a laptop; the first step on a GPU raises an error about two devices.",
    cause="The positions of the positives are created on the default device instead of the embeddings' own.",
    source="built",
    case=None,
    breaks="device",
    wrong=wrong,
    right="info_nce",
    met="built",
)
