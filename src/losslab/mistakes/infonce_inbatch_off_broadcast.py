"""A product that broadcasts: every query meets every row's passages."""

import torch
from torch import Tensor

from losslab.mistakes._examples import value
from losslab.mistakes._record import Example, Function, Mistake


def wrong(queries: Tensor, passages: Tensor, temperature: float = 0.05) -> Tensor:
    """Each query among its own passages, or so it says: (B, d), (B, G, d), the first the positive -> (B,)."""
    # The mistake: (B, d) @ (B, d, G) is (B, B, G), all queries with each row's passages; view() hides it.
    logits = (queries @ passages.transpose(1, 2)).view(len(queries), -1) / temperature
    return logits.logsumexp(1) - logits[:, 0]


def right(queries: Tensor, passages: Tensor, temperature: float = 0.05) -> Tensor:
    """Each query among its own passages: (B, d), (B, G, d), the first the positive -> (B,)."""
    logits = torch.einsum("bd,bgd->bg", queries, passages) / temperature
    return logits.logsumexp(1) - logits[:, 0]


def rows_stand_alone(loss: Function, seed: int = 0) -> str | None:
    """Look for a batch in which a row's loss changes when another row's query and passages change."""
    generator = torch.Generator().manual_seed(seed)
    for b in [b for b in range(2, 5) for _ in range(10)]:
        queries, passages = (torch.randn(*shape, generator=generator).round() for shape in ((b, 2), (b, 2, 2)))
        before = loss(queries, passages)[0].item()
        other = queries.clone(), passages.clone()
        other[0][-1], other[1][-1] = torch.randn(2, generator=generator).round(), other[1][-1].flip(0)
        after = loss(*other)[0].item()
        if abs(before - after) > 1e-6 * max(1.0, abs(before)):
            return f"row 1 of {b} pays {before:.4g}, and {after:.4g} once the last query is {other[0][-1].tolist()}"
    return None


MISTAKE = Mistake(
    name="infonce_inbatch_off_broadcast",
    kind="function",
    title="Broadcast over the batch",
    symptom="With in-batch negatives switched off, training still depends on the other rows.",
    cause="A matrix product broadcasts over the batch, and a reshape hides that rows were mixed.",
    source="FlagOpen/FlagEmbedding#450",
    case="infonce-inbatch-off-broadcast",
    breaks="a row's loss does not change when another row changes",
    wrong=wrong,
    right=right,
    property=rows_stand_alone,
    topic="batch",
    example=Example(
        {
            "queries": [[1.0, 0.0], [0.0, 1.0]],
            "passages": [[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]],
            "temperature": 0.5,
        },
        value,
        unit="nats",
    ),
)
