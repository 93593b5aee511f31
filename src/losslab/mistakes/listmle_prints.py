"""A print that was left in."""

from torch import Tensor

from losslab.mistakes._parts import by_label, choice_costs, mean_over_lists, real
from losslab.mistakes._record import Mistake


def wrong(logits: Tensor, labels: Tensor, mask: Tensor | None = None) -> Tensor:
    """ListMLE that shows its work."""
    ordered, kept = by_label(logits, labels, real(mask, logits))
    value = mean_over_lists(choice_costs(ordered, kept).sum(1), kept, logits.dtype)
    # The mistake: a line of output a step; on a GPU it also waits for the value each time.
    print(f"loss {value.item():.4f}")
    return value


MISTAKE = Mistake(
    name="listmle_prints",
    kind="listwise",
    title="A print left in",
    symptom="The log fills up, and training on a GPU slows down.",
    cause="Printing a value needs the value, so the GPU has to finish first.",
    source="built",
    case=None,
    breaks="settings",
    wrong=wrong,
    right="list_mle",
    met="built",
)
