"""How sure a mean over queries is, or the difference of two: resample the queries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

Statistic = Literal["difference", "ratio"]
BLOCK = 1 << 21  # resampled queries held at a time


@dataclass(frozen=True)
class Interval:
    """An estimate with its bootstrap interval.

    Attributes
    ----------
    estimate
        On the queries as they are.
    lo, hi
        Percentiles of the estimate over resampled sets of queries.
    level
        Share of resampled estimates between the two.
    """

    estimate: float
    lo: float
    hi: float
    level: float = 0.95

    def __str__(self) -> str:
        """For a reader: ``0.042 [0.031, 0.053]``."""
        return f"{self.estimate:.3f} [{self.lo:.3f}, {self.hi:.3f}]"


def paired_bootstrap(
    ours: ArrayLike,  # (Q,)
    baseline: ArrayLike,  # (Q,)
    *,
    statistic: Statistic = "difference",
    resamples: int = 10_000,
    level: float = 0.95,
    seed: int = 0,
) -> Interval:
    """Interval for mean(ours) − mean(baseline), or for mean(ours) / mean(baseline) (retention).

    Queries are drawn with replacement, each with both its values: what makes a query hard is the same for both, and
    drops out.

    Parameters
    ----------
    ours, baseline
        A metric of the same queries in the same order.
    statistic
        "difference" or "ratio".
    resamples
        Sets of queries drawn.
    level
        Of the interval, between 0 and 1.
    seed
        Of the draws; the same seed draws the same queries.

    Raises
    ------
    ValueError
        Shapes disagree, fewer than two queries, a value is not finite, or a mean to divide by is 0.

    References
    ----------
    Efron and Tibshirani, "An Introduction to the Bootstrap", 1993, chapter 13 (percentile intervals); Sakai,
    "Evaluating evaluation metrics based on the bootstrap", SIGIR 2006 (paired, over topics).
    """
    if statistic not in ("difference", "ratio"):
        raise ValueError(f'statistic must be "difference" or "ratio", got {statistic!r}')
    values = np.stack([_values(ours, "ours"), _same_length(_values(baseline, "baseline"), ours)], axis=1)
    means = _resampled_means(values, resamples, level, seed)
    both = values.mean(0)
    if statistic == "difference":
        return _interval(both[0] - both[1], means[:, 0] - means[:, 1], level)
    if both[1] == 0 or (means[:, 1] == 0).any():
        raise ValueError(
            "statistic='ratio' divides by the baseline's mean, which is 0 here or in a resampled set; use 'difference'"
        )
    return _interval(both[0] / both[1], means[:, 0] / means[:, 1], level)


def bootstrap_mean(values: ArrayLike, *, resamples: int = 10_000, level: float = 0.95, seed: int = 0) -> Interval:
    """Interval for the mean of one metric over queries, (Q,); otherwise as `paired_bootstrap`."""
    column = _values(values, "values")
    means = _resampled_means(column[:, None], resamples, level, seed)
    return _interval(column.mean(), means[:, 0], level)


def _resampled_means(values: NDArray[np.float64], resamples: int, level: float, seed: int) -> NDArray[np.float64]:
    """Mean of each column over each resampled set of rows, (resamples, columns)."""
    means = np.empty((max(0, resamples), values.shape[1]))
    for start, drawn in _draws(len(values), resamples, level, seed):
        for column in range(values.shape[1]):
            means[start : start + len(drawn), column] = values[:, column][drawn].mean(1)
    return means


def resampled_means(values: NDArray[np.float64], resamples: int, level: float, seed: int) -> NDArray[np.float64]:
    """Means of many columns (Q, columns) over the same resampled sets, (resamples, columns): one matrix product.

    The sets are those that `paired_bootstrap` draws with this seed.
    """
    counts = np.empty((max(0, resamples), len(values)))
    for start, drawn in _draws(len(values), resamples, level, seed):
        for row, each in enumerate(drawn, start=start):
            counts[row] = np.bincount(each, minlength=len(values))
    return np.asarray(counts @ values / len(values))


def intervals(estimates: NDArray[np.float64], resampled: NDArray[np.float64], level: float) -> list[Interval]:
    """Percentile intervals of many estimates (C,) from their resampled values (resamples, C)."""
    lo, hi = np.quantile(resampled, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return [Interval(float(a), float(b), float(c), level) for a, b, c in zip(estimates, lo, hi, strict=True)]


def _draws(queries: int, resamples: int, level: float, seed: int) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """First resample and drawn queries (block, Q) of one block after the other."""
    if resamples < 1:
        raise ValueError(f"resamples must be at least 1, got {resamples}")
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, got {level}")
    random = np.random.default_rng(seed)
    block = max(1, BLOCK // queries)
    for start in range(0, resamples, block):
        # rows as 64-bit numbers: a generator gives these one by one, so that blocks of any size draw the same
        yield start, random.integers(queries, size=(min(block, resamples - start), queries), dtype=np.int64)


def _interval(estimate: float, resampled: NDArray[np.float64], level: float) -> Interval:
    lo, hi = np.quantile(resampled, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(estimate), float(lo), float(hi), level)


def _values(given: ArrayLike, name: str) -> NDArray[np.float64]:
    values = np.asarray(given, dtype=np.float64)
    if values.ndim != 1 or len(values) < 2:
        raise ValueError(f"{name} must hold one value for each of at least two queries, got shape {values.shape}")
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        raise ValueError(f"{name} must be finite, but query {bad[0]} has {values[bad[0]]}")
    return values


def _same_length(values: NDArray[np.float64], ours: ArrayLike) -> NDArray[np.float64]:
    if len(values) != len(np.asarray(ours)):
        raise ValueError(
            f"ours has {len(np.asarray(ours))} queries but baseline has {len(values)}; pass the same queries twice"
        )
    return values
