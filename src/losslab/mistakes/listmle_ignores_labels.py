"""A ranking loss that never looks at the labels."""

from torch import Tensor

from losslab.mistakes._examples import list_value
from losslab.mistakes._parts import choice_costs, mean_over_lists, real
from losslab.mistakes._record import Example, Mistake


def wrong(logits: Tensor, labels: Tensor, mask: Tensor | None = None) -> Tensor:  # noqa: ARG001
    """ListMLE of the documents as they happen to stand."""
    dtype, mask = logits.dtype, real(mask, logits)
    # The mistake: no sort by label; right only for data that someone has sorted before.
    logits = logits.double().masked_fill(~mask, 0)
    return mean_over_lists(choice_costs(logits, mask).sum(1), mask, dtype)


MISTAKE = Mistake(
    name="listmle_ignores_labels",
    kind="listwise",
    title="Labels ignored",
    symptom="The loss is the same whatever the labels say, and changes when documents are shuffled with their labels.",
    cause="The documents are taken to be sorted by relevance already, and nothing checks that they are.",
    source="wildltr/ptranking#4",
    case="listmle-ignores-labels",
    breaks="permutation",
    wrong=wrong,
    right="list_mle",
    example=Example({"logits": [1.5, 0.3], "labels": [1, 2]}, list_value, unit="nats"),
)
