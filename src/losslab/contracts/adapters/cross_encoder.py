"""The in-batch losses of sentence-transformers' cross-encoders, driven with the embeddings you give them.

A cross-encoder scores a pair of texts. Here a stand-in for it takes the cosine of two stored embeddings for the score,
so that the contrastive contracts can be put to the loss; the library's own forward pass chooses the negatives and does
all the rest. Works for 6.x.
"""

from __future__ import annotations

import copy
import inspect
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from losslab.contracts.adapters.embedding_losses import through_hook
from losslab.contracts.model import ContrastiveConventions

PACKAGE = "sentence_transformers.cross_encoder.losses"
CACHED = "CachedMultipleNegativesRankingLoss"
IN_BATCH_LOSSES = ("MultipleNegativesRankingLoss", CACHED)


class CosineScores(torch.nn.Module):
    """Stands in for a CrossEncoder: texts are rows, and a pair's score is the cosine of its two rows."""

    num_labels = 1

    def __init__(self, queries: Tensor, documents: Tensor) -> None:
        super().__init__()
        self.queries, self.documents = queries, documents

    @property
    def device(self) -> torch.device:
        """Where the embeddings are."""
        return self.queries.device

    def preprocess(self, pairs: list[tuple[int, int]], **_: Any) -> dict[str, Tensor]:  # noqa: ANN401
        """Rows of (query, document) pairs, (P, 2)."""
        return {"rows": torch.tensor(pairs, dtype=torch.long, device=self.device)}

    def forward(self, features: dict[str, Tensor]) -> dict[str, Tensor]:
        """Their cosines, (P, 1)."""
        q, d = (torch.nn.functional.normalize(x, dim=-1) for x in (self.queries, self.documents))
        rows = features["rows"]
        return {"scores": (q @ d.T)[rows[:, 0], rows[:, 1]].unsqueeze(1)}


@dataclass(frozen=True)
class InBatchScores:
    """An in-batch loss of cross-encoders in the call form of contracts."""

    library_loss: torch.nn.Module
    conventions: ContrastiveConventions
    name: str

    def __call__(self, queries: Tensor, documents: Tensor) -> Tensor:
        """Value of a batch. queries, documents (B, d)."""
        if _is((CACHED,), type(self.library_loss)):
            return through_hook(self._value, [queries, documents])
        return self._value([queries, documents])

    def _value(self, embeddings: list[Tensor]) -> Tensor:
        loss: Any = copy.copy(self.library_loss)  # its model is replaced for this call only
        loss._modules = dict(loss._modules)
        loss.model = CosineScores(*embeddings)
        value = loss([list(range(len(embeddings[0]))), list(range(len(embeddings[1])))], None)
        assert isinstance(value, Tensor)
        return value


def is_in_batch_cross_encoder_loss(loss: object) -> bool:
    """Whether this is one of the library's in-batch losses of cross-encoders, class or instance, or derived."""
    return _is(IN_BATCH_LOSSES, loss if isinstance(loss, type) else type(loss))


def _is(names: tuple[str, ...], cls: type) -> bool:
    return any(base.__name__ in names and base.__module__.startswith(PACKAGE) for base in cls.__mro__)


def in_batch_cross_encoder_loss(loss: Any, **options: Any) -> InBatchScores:  # noqa: ANN401
    """Wrap ``MultipleNegativesRankingLoss`` of cross-encoders, plain or cached, class or instance.

    Parameters
    ----------
    loss
        The class, or an instance (its model is left alone and not used).
    **options
        The class's own arguments, such as ``activation_fn=None``.

    Raises
    ------
    TypeError
        If it is no such loss, options are given for an instance, or the class has no such option.

    Notes
    -----
    Declared: as many documents as queries, temperature 1 / scale. By default the score goes through a sigmoid first,
    and of more than four other documents, four drawn at random are the negatives.
    """
    if not is_in_batch_cross_encoder_loss(loss):
        raise TypeError(f"loss must be one of sentence-transformers' {', '.join(IN_BATCH_LOSSES)}, got {loss!r}")
    instance: Any = loss
    if isinstance(loss, type):
        instance = _without_a_model(loss, options)
    elif options:
        raise TypeError(f"options are for a class; this is an instance already, got {', '.join(options)}")
    shown = ", ".join(f"{name}={value!r}" for name, value in options.items())
    name = type(instance).__name__
    conventions = ContrastiveConventions(1 / float(instance.scale or 1), more_documents=False)
    return InBatchScores(instance, conventions, f"{name}({shown})" if shown else name)


def _without_a_model(cls: Any, options: dict[str, Any]) -> torch.nn.Module:  # noqa: ANN401
    """Made past ``__init__``, which insists on a real CrossEncoder."""
    settings = {n: p.default for n, p in inspect.signature(cls).parameters.items() if p.default is not p.empty}
    if unknown := set(options) - set(settings):
        raise TypeError(f"{cls.__name__} has no option {', '.join(sorted(unknown))}; there are {', '.join(settings)}")
    loss: torch.nn.Module = cls.__new__(cls)
    torch.nn.Module.__init__(loss)
    for name, value in (settings | options).items():
        setattr(loss, name, value)
    loss.cross_entropy_loss = torch.nn.CrossEntropyLoss()
    return loss
