"""A metric without a mask: padding with score 0 outranks every document below 0."""

import torch
from torch import Tensor

from losslab.mistakes._examples import value
from losslab.mistakes._record import Example, Function, Mistake


def wrong(scores: Tensor, labels: Tensor, mask: Tensor | None = None) -> Tensor:  # noqa: ARG001
    """Mean reciprocal rank of the first relevant document, (B, N) -> scalar, padding included in the ranking."""
    # The mistake: the mask is not used, so a padded slot takes part with whatever score stands in it.
    ranking = scores.argsort(dim=1, descending=True, stable=True)
    relevant = (labels > 0).gather(1, ranking)
    found = relevant.any(1)
    return (found / (1.0 + relevant.int().argmax(1))).mean()


def right(scores: Tensor, labels: Tensor, mask: Tensor | None = None) -> Tensor:
    """Mean reciprocal rank of the first relevant document, (B, N) -> scalar; padding is ranked last."""
    if mask is not None:
        scores, labels = scores.masked_fill(~mask, -torch.inf), labels.masked_fill(~mask, 0)
    return wrong(scores, labels)


def padding_changes_nothing(metric: Function, seed: int = 0) -> str | None:
    """Look for a list, shortest first, whose metric changes when slots of score 0 and label 0 are appended."""
    generator = torch.Generator().manual_seed(seed)
    for n in [n for n in range(1, 6) for _ in range(20)]:
        scores = torch.randn(1, n, generator=generator)
        labels = torch.randint(0, 2, (1, n), generator=generator)
        extra = int(torch.randint(1, 4, (), generator=generator))
        padded = [
            torch.cat([row, row.new_zeros(1, extra)], 1) for row in (scores, labels, torch.ones_like(scores).bool())
        ]
        alone, beside = metric(scores, labels, None).item(), metric(*padded).item()
        if alone != beside:
            found = f"{alone} alone, {beside} with {extra} padded slots"
            return f"scores {scores[0].tolist()}, labels {labels[0].tolist()}: {found}"
    return None


MISTAKE = Mistake(
    name="metric_pad_outranks",
    kind="function",
    title="Padding outranks documents",
    symptom="MRR and nDCG drop for lists whose scores are negative.",
    cause="Empty slots have score 0 and the metric has no mask, so they rank above every negative score.",
    source="tensorflow/ranking#305",
    case="metric-pad-outranks",
    breaks="appending padding changes no metric",
    wrong=wrong,
    right=right,
    property=padding_changes_nothing,
    topic="ranking",
    example=Example(
        {
            "scores": [[-1.0, -2.0, 0.0, 0.0]],
            "labels": [[0, 1, 0, 0]],
            "mask": [[True, True, False, False]],
        },
        value,
        what="mean reciprocal rank",
    ),
)
