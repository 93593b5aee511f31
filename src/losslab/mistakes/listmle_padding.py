"""Ghost documents: the padding mask comes after the cumulative sum."""

from torch import Tensor

from losslab.mistakes._examples import one_list
from losslab.mistakes._parts import by_label, mean_over_lists, real
from losslab.mistakes._record import Example, Function, Mistake


def wrong(logits: Tensor, labels: Tensor, mask: Tensor | None = None) -> Tensor:
    """ListMLE in which every empty slot can be chosen."""
    dtype = logits.dtype
    logits, mask = by_label(logits, labels, real(mask, logits))
    # The mistake: 1e-16 is next to nothing as a probability, but as a logit it weighs exp(1e-16) = 1.
    filled = logits.masked_fill(~mask, 1e-16)
    log_mass_left = filled.flip(1).logcumsumexp(1).flip(1)
    costs = (log_mass_left - filled).masked_fill(~mask, 0)  # too late: the ghosts are in the sum already
    return mean_over_lists(costs.sum(1), mask, dtype)


def show(loss: Function, *, logits: list[float], labels: list[float], widths: list[int]) -> dict[str, object]:
    """Loss and gradient of one list beside others that make the batch so wide."""
    shown: dict[str, object] = {}
    for width in widths:
        value, gradient = one_list(loss, logits, labels, width=width)
        shown |= {f"width {width}": value, f"width {width}, gradient": gradient[: len(logits)]}
    return shown


MISTAKE = Mistake(
    name="listmle_padding",
    kind="listwise",
    title="The mask comes after the sum",
    symptom="A query's loss and gradient, its sign included, depend on the longest other list in the batch.",
    cause="Empty slots hold the logit 1e-16, weigh exp(1e-16) = 1 each, and are masked only after the cumulative sum.",
    source="huggingface/sentence-transformers#3827",
    case="listmle-padding",
    breaks="padding_invariance",
    wrong=wrong,
    right="list_mle",
    example=Example(
        {"logits": [1.5, 0.3], "labels": [2, 1], "widths": [2, 3, 4, 6]},
        show,
        unit="nats",
        note="From width 3 on the second document, which should sink, is pulled up.",
    ),
)
