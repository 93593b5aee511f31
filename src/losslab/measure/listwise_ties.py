"""What equal labels, or equal scores, do to the installed list losses at every width."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from losslab.measure.fixed_logits import run_real
from losslab.measure.record import Measurement, Progress, Row, Value

LOGITS, LABELS, WIDTHS = (0.2, 1.0, -1.0), (0.0, 1.0, 0.0), range(3, 41)
LISTS, ZEROS, FLIP_WIDTHS, SEED = 200, 7, range(16, 41), 0
TIED_LOGITS, THEIR_LABELS = (0.0, 0.0, 0.0, 0.0), (0.0, 1.0, 0.0, 2.0)


@dataclass(frozen=True)
class Tie:
    """One query beside a list of ``width`` documents: its own loss, gradient by document, and rank order.

    ``order`` holds document numbers from 0, in the order in which the loss's own sort left them.
    """

    width: int
    loss: float
    gradient: tuple[float, ...]
    order: tuple[int, ...]


class SortWatcher(TorchFunctionMode):
    """Keep the indices of every sort that torch is asked for; change nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.indices: list[Tensor] = []

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401
        """Run the call; note what a sort returns."""
        result = func(*args, **(kwargs or {}))
        if getattr(func, "__name__", "") in ("sort", "argsort"):
            self.indices.append(result if isinstance(result, Tensor) else result.indices)
        return result


def tie_profile(
    logits: Sequence[float] = LOGITS,
    labels: Sequence[float] = LABELS,
    widths: Sequence[int] = WIDTHS,
    loss: str = "ListMLELoss",
) -> list[Tie]:
    """Loss, gradient and rank order of one query at each width, from the installed class told to sort by label.

    Beside the query stands one list of ``width`` documents with distinct labels whose logits lie 40 apart in the right
    order: its own loss is 0 in float32, so that twice the batch loss is our query's, to the last digit.

    Parameters
    ----------
    logits, labels
        Our query, in any order.
    widths
        At least the length of the query each.
    loss
        ``"ListMLELoss"`` or ``"PListMLELoss"``.

    Raises
    ------
    ValueError
        A width is shorter than the query.
    """
    from sentence_transformers.cross_encoder import losses

    make_loss = partial(getattr(losses, loss), respect_input_order=False)
    profile = []
    for width in widths:
        if width < len(logits):
            raise ValueError(f"widths must be at least the query's length {len(logits)}, got {width}")
        other, other_labels = [-40.0 * i for i in range(width)], list(range(width, 0, -1))
        with SortWatcher() as watcher:
            batch, gradients = run_real(make_loss, [logits, other], [labels, other_labels])
        order = watcher.indices[0][0, : len(logits)].tolist()
        profile.append(Tie(width, 2 * batch, tuple(2 * entry for entry in gradients[0]), tuple(order)))
    return profile


def tied_scores_profile(
    logits: Sequence[float] = TIED_LOGITS, labels: Sequence[float] = THEIR_LABELS, widths: Sequence[int] = range(4, 41)
) -> list[Tie]:
    """Loss and gradient of LambdaLoss on equal scores beside a list whose labels are all equal, so that it has no pair.

    The mean over pairs is then our query's own; ``order`` is that of its scores.
    """
    from sentence_transformers.cross_encoder.losses import LambdaLoss

    profile = []
    for width in widths:
        with SortWatcher() as watcher:
            value, gradients = run_real(LambdaLoss, [logits, [0.0] * width], [labels, [1.0] * width])
        order = watcher.indices[0][0, : len(logits)].tolist()
        profile.append(Tie(width, value, tuple(gradients[0]), tuple(order)))
    return profile


def flips(
    width: int = 17, against: int = 16, lists: int = LISTS, zeros: int = ZEROS, seed: int = SEED
) -> dict[str, float]:
    """Gradients of many lists with one positive and ``zeros`` zeros, at two widths of the batch.

    Logits are standard normal, the positive stands anywhere. ListMLELoss sorts by label; the list that sets the width
    has distinct labels.

    Returns
    -------
    ``mean cosine`` and ``min cosine`` between a list's two gradients; ``flipped``: share of documents whose gradient
    has the other sign, so that a step moves their score the other way; ``changed``: share of lists whose gradient is
    another.
    """
    from sentence_transformers.cross_encoder.losses import ListMLELoss

    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(lists, zeros + 1, generator=generator).tolist()
    positive = torch.randint(0, zeros + 1, (lists,), generator=generator)
    labels = torch.nn.functional.one_hot(positive, zeros + 1).tolist()
    make_loss = partial(ListMLELoss, respect_input_order=False)

    def gradients(of_width: int) -> Tensor:
        other, other_labels = [0.0] * of_width, list(range(of_width, 0, -1))
        return torch.tensor(run_real(make_loss, [*logits, other], [*labels, other_labels])[1][:lists]).double()

    before, after = gradients(against), gradients(width)  # (lists, zeros + 1)
    cosines = torch.nn.functional.cosine_similarity(before, after)
    # A gradient of 1e-9 has no sign to speak of in float32: rounding of a batch of 201.
    sure = (before.abs() > 1e-6) & (after.abs() > 1e-6)
    return {
        "mean cosine": cosines.mean().item(),
        "min cosine": cosines.min().item(),
        "flipped": ((before.sign() != after.sign()) & sure).double().mean().item(),
        "changed": (cosines < 1 - 1e-5).double().mean().item(),
    }


def collect(progress: Progress) -> Iterator[Row]:
    """Profiles of both list losses and of LambdaLoss, and the share of flipped gradients by width."""
    for loss, profile in (
        ("ListMLELoss", tie_profile),
        ("PListMLELoss", partial(tie_profile, loss="PListMLELoss")),
        ("LambdaLoss", tied_scores_profile),
    ):
        progress(f"{loss}, one query at each width")
        for tie in profile():
            conditions: dict[str, Value] = {"loss": loss, "width": tie.width}
            yield {**conditions, "quantity": "loss", "document": None, "value": tie.loss}
            for document, (slope, rank) in enumerate(zip(tie.gradient, _ranks(tie.order), strict=True), start=1):
                yield {**conditions, "quantity": "gradient", "document": document, "value": slope}
                yield {**conditions, "quantity": "rank", "document": document, "value": rank}
    progress(f"gradients of {LISTS} lists, widths {FLIP_WIDTHS[0]} to {FLIP_WIDTHS[-1]}")
    for width in FLIP_WIDTHS:
        for quantity, value in flips(width).items():
            yield {"loss": "ListMLELoss", "width": width, "quantity": quantity, "document": None, "value": value}


def _ranks(order: Sequence[int]) -> list[int]:
    """Rank from 1 of each document."""
    return [order.index(document) + 1 for document in range(len(order))]


MEASUREMENT = Measurement(
    name="listwise-ties",
    title="Loss, gradient and rank order of tied documents at every width, installed list losses",
    columns=("loss", "width", "quantity", "document", "value"),
    collect=collect,
    settings={
        "logits": list(LOGITS),
        "labels": list(LABELS),
        "LambdaLoss logits": list(TIED_LOGITS),
        "LambdaLoss labels": list(THEIR_LABELS),
        "flips": {"lists": LISTS, "positives": 1, "zeros": ZEROS, "against width": 16, "seed": SEED},
    },
)
