"""What each document of one query does to the query's vector: the same formulas as ``js/pulls.js``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from losslab.figures._contrastive import Floats, Row, info_nce_row


@dataclass(frozen=True)
class Pulls:
    """Minus the gradient of InfoNCE by one query, a component for each of its M documents; the positive is the first.

    Attributes
    ----------
    row
        Loss, probabilities, shares.
    scores
        Cosines or dot products, (M,).
    forces
        −∂L/∂q document by document, times the temperature, (M, 2).
    portions
        Each negative's part of all the negatives' force, by length, (M,); 0 at the positive.
    units
        The forces over the length of all the negatives' forces together, (M, 2).
    step, unit_step
        (turn, stretch) of the sum of `forces` and of `units`: across the query, counter-clockwise, and along it,
        outwards. With unit vectors there is no length to change, and the second is 0.
    """

    row: Row
    scores: Floats
    forces: Floats
    portions: Floats
    units: Floats
    step: tuple[float, float]
    unit_step: tuple[float, float]


def polar(degrees: float, length: float = 1.0) -> Floats:
    """Return the point at `degrees`, `length` from the middle, (2,)."""
    return length * np.array([np.cos(np.radians(degrees)), np.sin(np.radians(degrees))])


def scores_of(angles: Sequence[float], lengths: Sequence[float], *, normalize: bool) -> Floats:
    """Return the score of each document, (M,): cosines, or dot products of vectors that have lengths."""
    cosines = np.cos(np.radians(np.asarray(angles[1:], dtype=np.float64) - angles[0]))
    return cosines if normalize else cosines * (lengths[0] * np.asarray(lengths[1:], dtype=np.float64))


def pulls(angles: Sequence[float], lengths: Sequence[float], temperature: float, *, normalize: bool) -> Pulls:
    """Return what each document does to the query.

    Parameters
    ----------
    angles : sequence of float, length 1 + M
        Degrees: the query, its positive, the negatives.
    lengths : sequence of float, length 1 + M
        Of the same vectors; all 1 with `normalize`.
    temperature : float
    normalize : bool
        Cosines rather than dot products.
    """
    scores = scores_of(angles, lengths, normalize=normalize)
    row = info_nce_row(scores, 0, temperature)
    long = np.ones_like(scores) if normalize else np.asarray(lengths[1:], dtype=np.float64)
    directions = np.array([polar(a, r) for a, r in zip(angles[1:], long, strict=True)])
    forces = -row.gradient[:, None] * temperature * directions
    pushes = row.shares * long
    parts = -row.shares
    parts[0] = 1.0
    units = parts[:, None] * directions / pushes.sum()
    out, across = polar(angles[0]), polar(angles[0] + 90)

    def together(vectors: Floats) -> tuple[float, float]:
        return float((vectors @ across).sum()), 0.0 if normalize else float((vectors @ out).sum())

    portions = pushes / pushes.sum()
    return Pulls(row, scores, forces, portions, units, together(forces), together(units))
