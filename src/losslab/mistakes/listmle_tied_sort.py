"""Documents with equal labels, in whatever order an unstable sort leaves them."""

import torch
from torch import Tensor

from losslab.mistakes._examples import by_width
from losslab.mistakes._parts import choice_costs, mean_over_lists, real
from losslab.mistakes._record import Example, Mistake


def wrong(logits: Tensor, labels: Tensor, mask: Tensor | None = None) -> Tensor:
    """ListMLE whose ranking of ties depends on the width of the batch."""
    dtype, mask = logits.dtype, real(mask, logits)
    labels = labels.float().masked_fill(~mask, -torch.inf)
    # The mistake: without stable=True, torch on a CPU reorders ties in rows of 17 slots or more.
    ranking = labels.sort(dim=1, descending=True).indices
    mask = mask.gather(1, ranking)
    logits = logits.double().gather(1, ranking).masked_fill(~mask, 0)
    return mean_over_lists(choice_costs(logits, mask).sum(1), mask, dtype)


MISTAKE = Mistake(
    name="listmle_tied_sort",
    kind="listwise",
    title="Ties sorted by width",
    symptom="A query's loss and gradient change, sign included, when another list in the batch has 17 documents.",
    cause="sort() is not stable by default, and the order in which it leaves ties depends on the length of the row.",
    source="huggingface/sentence-transformers (cross_encoder/losses/plist_mle.py; no report found)",
    case="listmle-tied-sort",
    breaks="tie_order",
    wrong=wrong,
    right="list_mle",
    example=Example(
        {"logits": [0.2, 1.0, -1.0], "labels": [0, 1, 0], "widths": [3, 16, 17, 40]}, by_width, unit="nats"
    ),
)
