"""InfoNCE of one query, as the figures need it: the same formulas as ``js/contrastive.js``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Row:
    """One row of the score matrix.

    Attributes
    ----------
    loss
        In nats.
    probabilities
        Softmax over all that is allowed, (M,).
    gradient
        By each score, (p_j − [j = positive]) / τ, (M,).
    shares
        Each negative's share of all the push on negatives, p_j / (1 − p_positive), (M,); 0 at the positive.
    effective
        exp(entropy) of the shares: how many equal negatives would be as spread out.
    rank
        The positive's rank among what is allowed, from 1.
    """

    loss: float
    probabilities: Floats
    gradient: Floats
    shares: Floats
    effective: float
    rank: int


def log_sum_exp(values: Floats) -> float:
    """Return ln Σ exp(x), shifted by the largest, so that nothing overflows."""
    most = float(values.max())
    return most if most == -np.inf else most + float(np.log(np.exp(values - most).sum()))


def effective(shares: Floats) -> float:
    """exp(entropy) of shares that sum to 1."""
    some = shares[shares > 0]
    return float(np.exp(-(some * np.log(some)).sum()))


def info_nce_row(scores: Sequence[float] | Floats, positive: int, temperature: float, allowed: object = None) -> Row:
    """Return loss, probabilities and gradient of one query; ``allowed`` (M,) bool says which negatives count."""
    logits = np.asarray(scores, dtype=np.float64) / temperature
    if allowed is not None:
        keep = np.array(allowed, dtype=bool)
        keep[positive] = True
        logits = np.where(keep, logits, -np.inf)
    negatives = logits.copy()
    negatives[positive] = -np.inf
    total, rest = log_sum_exp(logits), log_sum_exp(negatives)
    probabilities = np.exp(logits - total)
    gradient = probabilities / temperature
    gradient[positive] = -np.exp(rest - total) / temperature  # not p − 1, which cancels where the positive has won
    shares = np.zeros_like(logits) if rest == -np.inf else np.exp(negatives - rest)
    return Row(
        loss=float(total - logits[positive]),
        probabilities=probabilities,
        gradient=gradient,
        shares=shares,
        effective=effective(shares),
        rank=1 + int((negatives > logits[positive]).sum()),
    )
