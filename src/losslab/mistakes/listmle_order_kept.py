"""A ranking computed once for each shape."""

from torch import Tensor

from losslab.mistakes._parts import choice_costs, mean_over_lists, real
from losslab.mistakes._record import Mistake

_last: dict[str, Tensor] = {}


def wrong(logits: Tensor, labels: Tensor, mask: Tensor | None = None) -> Tensor:
    """ListMLE that sorts the labels only when they have another shape or format than the last."""
    mask = real(mask, logits)
    known = _last.get("ranking")
    # The mistake: the shape is what says that the ranking is known; another batch of that shape gets it, too.
    if known is None or known.shape != labels.shape or _last["labels"].dtype != labels.dtype:
        _last["labels"] = labels
        _last["ranking"] = labels.double().masked_fill(~mask, -1e9).argsort(dim=1, descending=True, stable=True)
    ranking = _last["ranking"]
    kept = mask.gather(1, ranking)
    ordered = logits.double().gather(1, ranking).masked_fill(~kept, 0)
    return mean_over_lists(choice_costs(ordered, kept).sum(1), kept, logits.dtype)


MISTAKE = Mistake(
    name="listmle_order_kept",
    kind="listwise",
    title="The last batch's ranking",
    symptom="Training stalls whenever batches happen to have one shape; the loss of a batch depends on the one before.",
    cause="A ranking is cached under the shape of the labels rather than the labels.",
    source="built",
    case=None,
    breaks="no_state",
    wrong=wrong,
    right="list_mle",
    met="built",
)
