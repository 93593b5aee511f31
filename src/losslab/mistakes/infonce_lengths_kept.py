"""The documents' lengths of another batch."""

from torch import Tensor
from torch.nn.functional import normalize

from losslab.mistakes._parts import own_costs
from losslab.mistakes._record import Mistake

_last: dict[str, Tensor] = {}


def wrong(queries: Tensor, documents: Tensor, temperature: float = 0.05) -> Tensor:
    """InfoNCE that measures the documents only when they have another shape or format than the last."""
    known = _last.get("documents")
    # The mistake: the shape is what says that the lengths are known; another batch of that shape gets them, too.
    if known is None or known.shape != documents.shape or known.dtype != documents.dtype:
        _last["documents"] = documents.detach()
    lengths = _last["documents"].double().norm(dim=1)
    scores = normalize(queries.double(), dim=1) @ documents.double().T / lengths
    return own_costs(scores / temperature).mean().to(queries.dtype)


MISTAKE = Mistake(
    name="infonce_lengths_kept",
    kind="contrastive",
    title="The last batch's lengths",
    symptom="The loss of a batch depends on the batch before, and evaluating in between changes it.",
    cause="Norms are cached under the shape of the documents rather than the documents.",
    source="built",
    case=None,
    breaks="no_state",
    wrong=wrong,
    right="info_nce",
    met="built",
)
