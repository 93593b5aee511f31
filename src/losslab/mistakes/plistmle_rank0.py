"""Position weights whose ranks start at 0."""

from torch import Tensor

from losslab.mistakes._examples import list_value
from losslab.mistakes._parts import by_label, choice_costs, mean_over_lists, real
from losslab.mistakes._record import Example, Function, Mistake


def weights(mask: Tensor) -> Tensor:
    """2^(n - rank) - 1 over its sum, (B, N); divided by 2^n throughout, so that long lists do not overflow."""
    n = mask.sum(1, keepdim=True).double()
    # The mistake: ranks 0, 1, 2, … where the formula counts 1, 2, 3, …: no weight becomes 0.
    rank = mask.cumsum(1) - 1
    raw = (0.5**rank - 0.5**n).masked_fill(~mask, 0)
    return raw / raw.sum(1, keepdim=True).clamp(min=1e-300)


def wrong(logits: Tensor, labels: Tensor, mask: Tensor | None = None) -> Tensor:
    """PListMLE that also pays for the last choice, which has one candidate."""
    dtype = logits.dtype
    logits, mask = by_label(logits, labels, real(mask, logits))
    return mean_over_lists((weights(mask) * choice_costs(logits, mask)).sum(1), mask, dtype)


def show(loss: Function, *, logits: list[list[float]]) -> dict[str, float]:
    """Loss of lists that stand in the order of their labels."""
    return {
        f"a list of {len(row)}": list_value(loss, logits=row, labels=list(range(len(row), 0, -1))) for row in logits
    }


MISTAKE = Mistake(
    name="plistmle_rank0",
    kind="listwise",
    title="Ranks from 0",
    symptom="Three documents weigh 7 : 3 : 1 instead of 3 : 1 : 0; a list of two gives three quarters of its loss.",
    cause="The formula 2^(n - rank) - 1 counts ranks from 1, the code from 0.",
    source="huggingface/sentence-transformers#4051",
    case="plistmle-rank0",
    breaks="objective",
    wrong=wrong,
    right="p_list_mle",
    against="p_list_mle",
    example=Example(
        {"logits": [[0.0, 0.0, 0.0], [1.5, 0.3]]},
        show,
        unit="nats",
        note="The weights are 7 : 3 : 1 instead of 3 : 1 : 0, and 3 : 1 instead of 1 : 0.",
    ),
)
