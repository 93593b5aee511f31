"""A padded batch of texts, prediction by prediction: which logits meet which label (`batches.js`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

SHIFTS = ("none", "once", "twice")
MASKS = ("both", "labels", "wrong")


@dataclass(frozen=True)
class Cell:
    """One place of one row.

    Attributes
    ----------
    token : str or None
        None where it is padding.
    t : int
        The token's place in its text; negative or past the end in padding.
    start : int
        Place of the logits that meet the label here; −1 if none do.
    nll : float or None
        What that costs, nats.
    aim : float or None
        What should be summed here, nats; None: nothing.
    pads : bool
        Whether the logits or the label stand in padding.
    """

    token: str | None
    t: int
    start: int
    nll: float | None
    aim: float | None
    pads: bool
    summed: bool
    counted: bool


@dataclass
class Batch:
    """All rows, and the sums over them."""

    width: int
    rows: list[list[Cell]] = field(default_factory=list)
    sum: float = 0.0
    count: int = 0
    right_sum: float = 0.0
    right_count: int = 0

    @property
    def mean(self) -> float:
        """Nats a counted prediction, as scored."""
        return self.sum / self.count

    @property
    def right_mean(self) -> float:
        """The same as it should be."""
        return self.right_sum / self.right_count


def score(
    texts: Sequence[str],
    table: Sequence[Sequence[float]],
    right: Sequence[Sequence[float]],
    width: int,
    *,
    side: str,
    shift: str,
    mask: str,
    numerator: bool,
    denominator: bool,
) -> Batch:
    """Score a batch of `width` in one of all ways.

    Parameters
    ----------
    table : (R, W) numbers
        What the label at each place costs under the logits that meet it, nats.
    right : (R, W) numbers
        The same for one shift and padding on the right: the true costs.
    """
    s, batch = SHIFTS.index(shift), Batch(width)
    for r, text in enumerate(texts):
        long = len(text)
        start = 0 if side == "right" else width - long
        real = range(start, start + long)
        mirrored = range(width - long, width) if side == "right" else range(long)
        row = []
        for q in range(width):
            p, t, scored = q - s, q - start, q >= s
            kept = {
                "both": p in real and q in real,
                "labels": q in real,
                "wrong": p in mirrored and q in mirrored,
            }[mask]
            nll = table[r][q] if scored else None
            aim = right[r][t] if q in real and t >= 1 else None
            summed, counted = scored and (numerator or kept), scored and (denominator or kept)
            pads = scored and not (p in real and q in real)
            row.append(Cell(text[t] if q in real else None, t, p if scored else -1, nll, aim, pads, summed, counted))
            if summed:
                batch.sum += table[r][q]
            batch.count += counted
            if aim is not None:
                batch.right_sum += aim
                batch.right_count += 1
        batch.rows.append(row)
    return batch
