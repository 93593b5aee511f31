"""Direction and weight of a query's gradient when somebody else's list stands in the batch."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from losslab.measure.fixed_logits import run_real
from losslab.measure.record import Measurement, Progress, Row, Value

#: Our query: three documents, the second ranked too high, distinct labels so that no tie is involved.
LOGITS, LABELS = (0.2, 1.0, -1.0), (2.0, 1.0, 0.0)
WIDTHS, SEEDS = (3, 6, 12, 40), 20


@dataclass(frozen=True)
class Weight:
    """What became of one query's gradient beside lists of one width.

    Attributes
    ----------
    loss, width
        Name of the loss, documents in the other list.
    cosines
        One for each seed: cosine between the query's gradient alone and in the batch of two; 1 = same direction.
    ratios
        One for each seed: length of the gradient alone over its length in the batch; 2 = mean over queries.
    alone, in_batch
        The gradient by document, alone and beside the list of the first seed.
    """

    loss: str
    width: int
    cosines: tuple[float, ...]
    ratios: tuple[float, ...]
    alone: tuple[float, ...]
    in_batch: tuple[float, ...]

    @property
    def cosine(self) -> float:
        """Median over seeds."""
        return statistics.median(self.cosines)

    @property
    def ratio(self) -> float:
        """Median over seeds."""
        return statistics.median(self.ratios)


def real_losses() -> dict[str, Callable[[Any], Any]]:
    """The installed list losses by the name used in the book: a function from model to loss each."""
    from sentence_transformers.cross_encoder import losses as real

    lambda_rank = real.LambdaRankScheme()
    return {
        "ListMLE": real.ListMLELoss,
        "PListMLE": real.PListMLELoss,
        "ListNet": real.ListNetLoss,
        "RankNet": real.RankNetLoss,
        "LambdaLoss": real.LambdaLoss,
        "LambdaRank": partial(real.LambdaLoss, weighting_scheme=lambda_rank),
        "ADR-MSE": real.ADRMSELoss,
    }


def measure_weight(
    widths: Sequence[int] = WIDTHS,
    seeds: int = SEEDS,
    losses: Sequence[str] | None = None,
    logits: Sequence[float] = LOGITS,
    labels: Sequence[float] = LABELS,
) -> list[Weight]:
    """Gradient of one query alone and beside another list, for the installed losses.

    The other list has standard normal logits and labels drawn from 0, 1, 2, 3, sorted descending since the list losses
    take documents as given, by default, to be in that order; redrawn while all labels are equal.

    Parameters
    ----------
    widths
        Documents in the other list.
    seeds
        How many other lists a width.
    losses
        Names as in `real_losses`; all of them by default.
    logits, labels
        Our query, best document first.
    """
    makers = real_losses()
    return [
        _weigh(name, makers[name], width, range(seeds), logits, labels)
        for name in (makers if losses is None else losses)
        for width in widths
    ]


def _weigh(
    name: str,
    make_loss: Callable[[Any], Any],
    width: int,
    seeds: Sequence[int],
    logits: Sequence[float],
    labels: Sequence[float],
) -> Weight:
    alone = run_real(make_loss, [logits], [labels])[1][0]
    in_batch = []
    for seed in seeds:
        other, other_labels = other_list(width, seed)
        in_batch.append(run_real(make_loss, [logits, other], [labels, other_labels])[1][0])
    return Weight(
        loss=name,
        width=width,
        cosines=tuple(_dot(alone, beside) / _length(alone) / _length(beside) for beside in in_batch),
        ratios=tuple(_length(alone) / _length(beside) for beside in in_batch),
        alone=tuple(alone),
        in_batch=tuple(in_batch[0]),
    )


def other_list(width: int, seed: int) -> tuple[list[float], list[float]]:
    """Logits and labels of somebody else's list."""
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(width, generator=generator)
    labels = torch.zeros(width)
    while labels[0] == labels[-1]:  # a list without a pair would leave the mean over pairs as it is
        labels = torch.randint(0, 4, (width,), generator=generator).float().sort(descending=True, stable=True).values
    return logits.tolist(), labels.tolist()


def _dot(left: Sequence[float], right: Sequence[float]) -> float:
    return math.fsum(a * b for a, b in zip(left, right, strict=True))


def _length(vector: Sequence[float]) -> float:
    return math.sqrt(_dot(vector, vector))


def collect(progress: Progress, widths: Sequence[int] = WIDTHS, seeds: int = SEEDS) -> Iterator[Row]:
    """Median and range of cosine and ratio by loss and width, and the gradients beside the first other list."""
    for name in real_losses():
        progress(name)
        for weight in measure_weight(widths, seeds, [name]):
            conditions: dict[str, Value] = {"loss": name, "width": weight.width}
            for quantity, values in (("cosine", weight.cosines), ("ratio", weight.ratios)):
                for statistic, of in (("median", statistics.median), ("min", min), ("max", max)):
                    value = of(values)
                    yield {**conditions, "quantity": quantity, "statistic": statistic, "document": None, "value": value}
            for quantity, gradient in (("gradient alone", weight.alone), ("gradient in batch", weight.in_batch)):
                for document, value in enumerate(gradient, start=1):
                    yield {
                        **conditions,
                        "quantity": quantity,
                        "statistic": "seed 0",
                        "document": document,
                        "value": value,
                    }


MEASUREMENT = Measurement(
    name="listwise-weight",
    title="Direction and weight of one query's gradient beside a list of 3 to 40 documents, installed list losses",
    columns=("loss", "width", "quantity", "statistic", "document", "value"),
    collect=collect,
    settings={"widths": list(WIDTHS), "seeds": SEEDS, "logits": list(LOGITS), "labels": list(LABELS)},
)
