"""The contrastive losses of pytorch-metric-learning, driven in the call form of contracts.

They take embeddings and class labels; here every pair is a class of its own, and the documents are the references that
queries are compared with, so that document i is query i's one positive.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from losslab.contracts.model import ContrastiveConventions

PACKAGE = "pytorch_metric_learning.losses"
METRIC_LOSSES = ("NTXentLoss", "SupConLoss")


@dataclass(frozen=True)
class MetricLearningLoss:
    """A loss of pytorch-metric-learning in the call form of contracts."""

    library_loss: torch.nn.Module
    conventions: ContrastiveConventions
    name: str

    def __call__(self, queries: Tensor, documents: Tensor, *, temperature: float | None = None) -> Tensor:
        """Value of a batch. queries (B, d), documents (M, d)."""
        loss, own = self.library_loss, self.library_loss.temperature
        labels = torch.arange(len(documents), device=documents.device)
        try:  # not on a copy: the library keeps a method that is bound to the original
            loss.temperature = own if temperature is None else temperature  # type: ignore[assignment]
            value = loss(queries, labels[: len(queries)], ref_emb=documents, ref_labels=labels)
        finally:
            loss.temperature = own
        assert isinstance(value, Tensor)
        return value


def is_metric_learning_loss(loss: object) -> bool:
    """Whether this is one of the library's losses named here, class or instance, or derived from one."""
    cls = loss if isinstance(loss, type) else type(loss)
    return any(base.__name__ in METRIC_LOSSES and base.__module__.startswith(PACKAGE) for base in cls.__mro__)


def metric_learning_loss(loss: Any, **options: Any) -> MetricLearningLoss:  # noqa: ANN401
    """Wrap ``NTXentLoss`` or ``SupConLoss`` of pytorch-metric-learning, class or instance.

    Parameters
    ----------
    loss
        The class, or an instance.
    **options
        The class's own arguments, such as ``temperature=0.05``.

    Raises
    ------
    TypeError
        If it is no such loss, or options are given for an instance.
    """
    if not is_metric_learning_loss(loss):
        raise TypeError(f"loss must be one of pytorch-metric-learning's {', '.join(METRIC_LOSSES)}, got {loss!r}")
    if isinstance(loss, type):
        instance: Any = loss(**options)
    elif options:
        raise TypeError(f"options are for a class; this is an instance already, got {', '.join(options)}")
    else:
        instance = loss
    shown = ", ".join(f"{name}={value!r}" for name, value in options.items())
    name = type(instance).__name__
    conventions = ContrastiveConventions(
        float(instance.temperature), normalize=bool(instance.distance.normalize_embeddings)
    )
    return MetricLearningLoss(instance, conventions, f"{name}({shown})" if shown else name)
