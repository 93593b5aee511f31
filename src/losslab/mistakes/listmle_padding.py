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
    """Loss of one list beside others that make the batch so wide, and its gradient in the widest."""
    results = {width: one_list(loss, logits, labels, width=width) for width in widths}
    shown: dict[str, object] = {f"width {width}": value for width, (value, _) in results.items()}
    return shown | {f"width {widths[-1]}, gradient": results[widths[-1]][1][: len(logits)]}


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
        note="The second document, which should sink, is pulled up.",
    ),
)
