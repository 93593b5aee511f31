"""What is left of a ranking at fewer dimensions: every reduction at every size, query by query, with intervals.

All intervals come from one set of resampled queries: how often each query was drawn is a matrix of counts
(resamples, Q), and one product with the metrics (Q, settings) resamples everything at once, all of it paired.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from losslab.retrieval.bootstrap import Interval, intervals, resampled_means
from losslab.retrieval.evaluation import join, ranks_of, tie_places
from losslab.retrieval.exact_search import check_rows, near_one
from losslab.retrieval.judgements import Judgements, Relevant, check_ids, read_judgements
from losslab.retrieval.metrics import Floats, Ranks, check_metrics, per_query
from losslab.retrieval.reductions import (
    DRAWN,
    FITTED,
    KINDS,
    Kind,
    Reduction,
    check_dims,
    check_flag,
    check_kind,
    check_seed,
    fit,
)

CHUNK_BYTES = 3 << 20  # of scores held at a time: what stays in a processor's cache is gone through again at no cost
_T = TypeVar("_T")
Outcome = Literal["win", "tie", "loss"]
Measure = Literal["mean", "over prefix", "over random dims", "over PCA", "over not renormalised", "retention"]


@dataclass(frozen=True)
class Setting:
    """One way to get fewer dimensions.

    Attributes
    ----------
    kind
        One of `losslab.retrieval.KINDS`.
    centred, renormalised
        Whether the documents' mean is subtracted, and whether rows are brought to length 1 afterwards.
    dim
        Dimensions kept.
    seed
        Of what is drawn; None where nothing is, and for the mean over all draws.
    """

    kind: Kind
    centred: bool
    renormalised: bool
    dim: int
    seed: int | None = None


@dataclass(frozen=True)
class Comparison:
    """One number that is said of a setting.

    Attributes
    ----------
    setting
        What it is said of.
    measure
        "mean" of the metric over queries; the paired difference "over prefix", "over random dims" (mean over draws),
        neither of them centred and both of the same size and as (un)normalised, "over PCA" likewise (of SVD alone), or
        "over not renormalised"; or "retention", the ratio of the mean to that of the whole embeddings (see
        `Sweep.compare` for when it is left out).
    interval
        Of that number.
    """

    setting: Setting
    measure: Measure
    interval: Interval

    @property
    def outcome(self) -> Outcome:
        """Win, tie or loss against what it is compared with (retention: against 1); see `outcome`."""
        return outcome(self.interval, 1.0 if self.measure == "retention" else 0.0)


@dataclass(frozen=True)
class Sweep:
    """A metric of every query at every setting; made by `sweep`.

    Attributes
    ----------
    metric
        Its name.
    full : (Q,) float64
        Cosine search with the whole embeddings, as they are.
    settings
        Columns of ``values``; each draw has its own.
    values : (Q, settings) float64
    """

    metric: str
    full: Floats
    settings: tuple[Setting, ...]
    values: Floats

    def of(self, setting: Setting) -> Floats:
        """The metric of each query, (Q,); without a seed, the mean over all draws of what is drawn.

        Raises
        ------
        TypeError
            It is no `Setting`.
        ValueError
            It was not measured.
        """
        if not isinstance(setting, Setting):
            raise TypeError(
                f"setting must be a Setting, got {setting!r}; pass one of settings, or Setting(kind, centred, ...)"
            )
        drawn = setting.kind in DRAWN and setting.seed is None
        columns = [
            at
            for at, each in enumerate(self.settings)
            if each == setting or (drawn and replace(each, seed=None) == setting)
        ]
        if not columns:
            raise ValueError(f"{setting} was not measured")
        return np.asarray(self.values[:, columns].mean(1))

    def compare(self, *, resamples: int = 2000, level: float = 0.95, seed: int = 0) -> list[Comparison]:
        """Every setting (draws averaged) with all that can be said of it; keywords as for `paired_bootstrap`.

        Retention is left out where the whole embeddings have a mean of 0, on all queries or in a resampled set: there
        is nothing to retain, and so nothing to divide by. All else is said as ever.
        """
        settings = list(dict.fromkeys(replace(each, seed=None) for each in self.settings))
        place = {setting: column for column, setting in enumerate(settings, start=1)}
        values = np.stack([self.full, *(self.of(setting) for setting in settings)], axis=1)
        means, estimates = resampled_means(values, resamples, level, seed), values.mean(0)
        retains = bool(means[:, 0].all())
        said: list[tuple[Setting, Measure, int, int | None]] = []
        for setting, column in place.items():
            plain = replace(setting, centred=False)
            others: dict[Measure, Setting | None] = {
                "over prefix": replace(plain, kind="prefix"),
                "over random dims": replace(plain, kind="random-dims"),
                "over PCA": replace(setting, kind="pca", centred=True) if setting.kind == "svd" else None,
                "over not renormalised": replace(setting, renormalised=False) if setting.renormalised else None,
            }
            said.append((setting, "mean", column, None))
            if retains:
                said.append((setting, "retention", column, 0))
            said += [
                (setting, measure, column, place[other])
                for measure, other in others.items()
                if other is not None and other in place and other != setting
            ]
        resampled = np.stack([_compute(means, *each[1:]) for each in said], axis=1)
        exact = [_compute(estimates, *each[1:]) for each in said]
        found = intervals(np.array(exact), resampled, level)
        return [Comparison(*each[:2], interval) for each, interval in zip(said, found, strict=True)]


def outcome(interval: Interval, neutral: float = 0.0) -> Outcome:
    """A tie if the interval holds the neutral value, its ends included; else a win above it and a loss below."""
    if interval.lo <= neutral <= interval.hi:
        return "tie"
    return "win" if interval.lo > neutral else "loss"


def sweep(
    queries: Tensor | NDArray[np.floating],  # (Q, d)
    documents: Tensor | NDArray[np.floating],  # (N, d)
    relevant: Relevant,
    dims: Sequence[int],
    *,
    kinds: Kind | Sequence[Kind] = KINDS,
    centre: bool | Sequence[bool] = (False, True),
    renormalise: bool | Sequence[bool] = (True, False),
    seeds: int | Sequence[int] = (0, 1, 2, 3, 4),
    metric: str = "nDCG@10",
    query_ids: Sequence[str] | None = None,
    document_ids: Sequence[str] | None = None,
) -> Sweep:
    """Search with every reduction at every size, exactly; scores by scalar product, equal ones decided by id.

    Parameters
    ----------
    queries, documents, relevant, query_ids, document_ids
        As for `losslab.retrieval.evaluate`.
    dims
        Sizes, each from 1 to d.
    kinds
        Reductions, fitted on the documents. Here and in the next three, one alone needs no sequence.
    centre
        False, True or both, for the kinds that leave the choice; PCA is always centred, SVD never.
    renormalise
        False, True or both.
    seeds
        One draw each of random dims and of random rotations.
    metric
        One that `evaluate` knows.

    Raises
    ------
    ValueError
        As for `evaluate` (a query without a right document, judgements with other ids, rows that are not finite) and
        for `fit` (a size out of range, fewer documents than components); or ``kinds``, ``centre``, ``renormalise`` or
        ``seeds`` is empty or holds what is no kind, bool or whole number from 0.
    """
    (metric,) = check_metrics([metric])
    chosen = _each(kinds, "kinds", check_kind)
    centrings, scalings = _each(centre, "centre", check_flag), sorted(_each(renormalise, "renormalise", check_flag))
    draws = _each(seeds, "seeds", check_seed)
    queries, documents = check_rows(queries, documents)
    check_ids(query_ids, "query_ids", len(queries))
    judged = read_judgements(relevant, len(queries), len(documents), query_ids, document_ids)
    run = _Run(queries, documents, judged, tie_places(document_ids, len(documents)).to(documents.device), metric)
    columns: dict[Setting, Floats] = {}
    sizes = check_dims(dims, documents.shape[1])
    for kind in chosen:
        for centred in dict.fromkeys(kind == "pca" if kind in FITTED else each for each in centrings):
            for seed, found in run.draws(kind, sizes, centred, draws, scalings):
                for dim, renormalised, values in found:
                    columns[Setting(kind, centred, renormalised, dim, seed)] = values
    ((_, _, full),) = run.nested(
        near_one(queries, each=True), near_one(documents, each=True), (documents.shape[1],), (True,)
    )
    return Sweep(metric, full, tuple(columns), np.stack(list(columns.values()), axis=1))


_Found = Iterator[tuple[int, bool, Floats]]  # size, whether renormalised, and the metric of each query, (Q,)


@dataclass(frozen=True)
class _Run:
    """What does not change from one reduction to the next."""

    queries: Tensor
    documents: Tensor
    judged: Judgements
    place: Tensor  # (N,) each document's place in the order of equal scores
    metric: str

    def draws(
        self, kind: Kind, dims: tuple[int, ...], centred: bool, seeds: Sequence[int], renormalise: Sequence[bool]
    ) -> Iterator[tuple[int | None, _Found]]:
        """Each draw of one reduction and what it finds; one without a seed where nothing is drawn."""
        if kind == "random-dims":  # coordinates are the same for all draws
            fitted = fit(kind, self.documents, dims, centre=centred)
            queries, documents = self.projected(fitted)
            documents = documents.T.contiguous()
            for draw in seeds:
                yield draw, self.apart(queries, documents, replace(fitted, seed=draw), dims, renormalise)
            return
        for seed in seeds if kind in DRAWN else (None,):
            fitted = fit(kind, self.documents, dims, centre=centred, seed=seed or 0)
            queries, documents = self.projected(fitted)
            yield seed, self.nested(queries, documents, dims, renormalise)

    def projected(self, fitted: Reduction) -> tuple[Tensor, Tensor]:
        """Coordinates of queries and documents, near 1 in size: neither's scale changes a ranking afterwards."""
        return near_one(fitted.coordinates(self.queries)[0], each=True), near_one(fitted.coordinates(self.documents)[0])

    def nested(self, queries: Tensor, documents: Tensor, dims: tuple[int, ...], renormalise: Sequence[bool]) -> _Found:
        """Each size adds its own coordinates to the scores of the one before it."""
        squares = documents.square()
        lengths = torch.stack([squares[:, start:dim].sum(1) for start, dim in pairwise((0, *dims))]).cumsum(0).sqrt()
        if (rows := _short(lengths)) is not None:
            fine = documents[rows].double()
            lengths[:, rows] = torch.stack([fine[:, :dim].norm(dim=1) for dim in dims]).to(lengths)
        ranks: dict[tuple[int, bool], list[Ranks]] = {(dim, each): [] for dim in dims for each in renormalise}
        for first in self.chunks():
            part = queries[first]
            scores = torch.zeros(len(part), len(documents), dtype=part.dtype, device=part.device)
            for (start, dim), length in zip(pairwise((0, *dims)), lengths, strict=True):
                scores.addmm_(part[:, start:dim], documents[:, start:dim].T)
                for each in renormalise:
                    # the length of the query changes no ranking, that of a document does
                    used = scores / _not_zero(length) if each else scores
                    ranks[dim, each].append(ranks_of(used, first.start, self.judged, self.place))
        for (dim, each), found in ranks.items():
            yield dim, each, per_query(self.metric, join(found), self.judged, "docid")

    def apart(
        self,
        queries: Tensor,
        documents: Tensor,  # (d, N): what is chosen is then in one piece
        fitted: Reduction,
        dims: tuple[int, ...],
        renormalise: Sequence[bool],
    ) -> _Found:
        """Every size has coordinates of its own."""
        choices = [fitted.columns(dim) for dim in dims]
        among = documents.new_zeros(len(dims), len(documents))
        for row, chosen in zip(among, choices, strict=True):
            row[chosen] = 1
        lengths = (among @ documents.square()).sqrt()
        if (rows := _short(lengths)) is not None:
            fine = documents[:, rows].double()
            lengths[:, rows] = torch.stack([fine[chosen].norm(dim=0) for chosen in choices]).to(lengths)
        for dim, chosen, length in zip(dims, choices, lengths, strict=True):
            asked, kept = queries[:, chosen], documents[chosen]
            for each in renormalise:  # True comes last
                if each:
                    kept /= _not_zero(length)
                products = ((part.start, _product(asked[part], kept)) for part in self.chunks())
                ranks = [ranks_of(scores, start, self.judged, self.place) for start, scores in products]
                yield dim, each, per_query(self.metric, join(ranks), self.judged, "docid")

    def chunks(self) -> list[slice]:
        """Queries whose scores are held at one time."""
        size = max(1, CHUNK_BYTES // (len(self.documents) * self.documents.element_size()))
        return [slice(start, start + size) for start in range(0, len(self.queries), size)]


def _each(given: object, name: str, check: Callable[[object, str], _T]) -> list[_T]:
    """What was given, checked and each once: one of it or a sequence."""
    alone = isinstance(given, (str, bytes)) or not isinstance(given, Iterable)
    found = [given] if alone else list(given)  # type: ignore[call-overload]
    if not found:
        raise ValueError(f"{name} must hold something, got {given!r}; leave it out for the default")
    return list(dict.fromkeys(check(one, name if alone else f"each of {name}") for one in found))


def _product(first: Tensor, second: Tensor) -> Tensor:
    """On a CPU by numpy, whose library took three fifths of torch's time for matrices of these shapes."""
    if first.device.type == "cpu":
        return torch.from_numpy(first.numpy() @ second.numpy())
    return first @ second


def _short(lengths: Tensor) -> Tensor | None:
    """Documents with a length, of (dims, N), whose square float32 does not hold exactly; None if there are none."""
    rows = (lengths < 1e-12).any(0)
    return rows if rows.any() else None


def _not_zero(length: Tensor) -> Tensor:
    """A row with nothing left scores 0 everywhere, whatever it is divided by."""
    return length.clamp_min(torch.finfo(length.dtype).tiny)


def _compute(means: Floats, measure: Measure, column: int, other: int | None) -> Floats:
    """One measure of means (…, columns), be they resampled or the estimate."""
    ours = means[..., column]
    if other is None:
        return ours
    return ours / means[..., other] if measure == "retention" else ours - means[..., other]
