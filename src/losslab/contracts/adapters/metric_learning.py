"""The embedding losses of pytorch-metric-learning, driven in the call form of contracts.

They take embeddings and class labels; here every pair is a class of its own, and the documents are the references that
queries are compared with, so that document i is query i's one positive. Losses that take no references are given
queries and documents as one set, in which queries are one another's negatives too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from losslab.contracts.model import ContrastiveConventions

PACKAGE = "pytorch_metric_learning.losses"
#: A softmax over the documents, with a temperature.
SOFTMAX_LOSSES = ("NTXentLoss", "SupConLoss")
#: Of queries against references, whatever they make of a similarity or a distance.
PAIR_LOSSES = (
    "AngularLoss",
    "CircleLoss",
    "ContrastiveLoss",
    "GeneralizedLiftedStructureLoss",
    "IntraPairVarianceLoss",
    "LiftedStructureLoss",
    "MarginLoss",
    "MultiSimilarityLoss",
    "NCALoss",
    "ThresholdConsistentMarginLoss",
    "TripletMarginLoss",
    "TupletMarginLoss",
)
#: Of one set of embeddings.
SET_LOSSES = ("FastAPLoss", "HistogramLoss", "NPairsLoss", "PNPLoss", "RankedListLoss", "SmoothAPLoss")
#: Around another loss, of two views of the same things.
WRAPPER = "SelfSupervisedLoss"
METRIC_LOSSES = (*SOFTMAX_LOSSES, *PAIR_LOSSES, *SET_LOSSES, WRAPPER)
#: Losses that need more than queries and documents, though their bases do not.
OTHERS = ("ProxyNCALoss",)


@dataclass(frozen=True)
class PairLoss:
    """A loss of queries against references."""

    library_loss: Any
    conventions: ContrastiveConventions
    name: str

    def __call__(self, queries: Tensor, documents: Tensor) -> Tensor:
        """Value of a batch. queries (B, d), documents (M, d)."""
        labels = torch.arange(len(documents), device=documents.device)
        value = self.library_loss(queries, labels[: len(queries)], ref_emb=documents, ref_labels=labels)
        assert isinstance(value, Tensor)
        return value


class MetricLearningLoss(PairLoss):
    """One with a temperature."""

    def __call__(self, queries: Tensor, documents: Tensor, *, temperature: float | None = None) -> Tensor:
        """Value of a batch. queries (B, d), documents (M, d)."""
        loss, own = self.library_loss, self.library_loss.temperature
        try:  # not on a copy: the library keeps a method that is bound to the original
            loss.temperature = own if temperature is None else temperature
            return super().__call__(queries, documents)
        finally:
            loss.temperature = own


class SetLoss(PairLoss):
    """A loss of one set: queries, documents behind them, a class a pair."""

    def __call__(self, queries: Tensor, documents: Tensor) -> Tensor:
        """Value of a batch. queries, documents (B, d)."""
        labels = torch.arange(len(queries), device=queries.device)
        value = self.library_loss(torch.cat([queries, documents]), labels.repeat(2))
        assert isinstance(value, Tensor)
        return value


class ViewsLoss(PairLoss):
    """A wrapper that makes the labels itself, of two views."""

    def __call__(self, queries: Tensor, documents: Tensor) -> Tensor:
        """Value of a batch. queries, documents (B, d)."""
        value = self.library_loss(queries, documents)
        assert isinstance(value, Tensor)
        return value


def is_metric_learning_loss(loss: object) -> bool:
    """Whether this is one of the library's losses named here, class or instance, or derived from one."""
    cls = loss if isinstance(loss, type) else type(loss)
    return _is(METRIC_LOSSES, cls) and not _is(OTHERS, cls)


def _is(names: tuple[str, ...], cls: type) -> bool:
    return any(base.__name__ in names and base.__module__.startswith(PACKAGE) for base in cls.__mro__)


def metric_learning_loss(loss: Any, /, **options: Any) -> PairLoss:  # noqa: ANN401
    """Wrap a loss of pytorch-metric-learning, class or instance.

    Parameters
    ----------
    loss
        One of `METRIC_LOSSES`: the class, or an instance.
    **options
        The class's own arguments, such as ``temperature=0.05``.

    Raises
    ------
    TypeError
        If it is no such loss, or options are given for an instance.

    Notes
    -----
    Declared: the temperature of losses that have one, 1 of others; whether the library normalises embeddings; of those
    that are given one set, as many documents as queries and queries among themselves too.
    """
    if not is_metric_learning_loss(loss):
        raise TypeError(f"loss must be one of pytorch-metric-learning's {', '.join(METRIC_LOSSES)}, got {loss!r}")
    if isinstance(loss, type):
        instance: Any = loss(**options)
    elif options:
        raise TypeError(f"options are for a class; this is an instance already, got {', '.join(options)}")
    else:
        instance = loss
    cls = type(instance)
    shown = ", ".join(f"{name}={_short(value)}" for name, value in options.items())
    name = f"{cls.__name__}({shown})" if shown else cls.__name__
    inside = instance.loss if _is((WRAPPER,), cls) else instance
    temperature, normalize = float(getattr(inside, "temperature", 1)), bool(inside.distance.normalize_embeddings)
    if _is((WRAPPER, *SET_LOSSES), cls):
        conventions = ContrastiveConventions(temperature, normalize, more_documents=False, within=True)
        return (ViewsLoss if _is((WRAPPER,), cls) else SetLoss)(instance, conventions, name)
    softmax = _is(SOFTMAX_LOSSES, cls)
    conventions = ContrastiveConventions(temperature, normalize)
    return (MetricLearningLoss if softmax else PairLoss)(instance, conventions, name)


def _short(value: object) -> str:
    return type(value).__name__ + "()" if isinstance(value, torch.nn.Module) else repr(value)
