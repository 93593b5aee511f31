"""The in-batch losses of sentence-transformers, driven with the embeddings you give them.

A loss of the library wants a model and features to embed. Here a stand-in for the model returns embeddings that the
features already hold; the library's own forward pass does all the rest. Further documents than queries go in as a
column of hard negatives, which the library makes candidates of every query. Works for 6.x.
"""

from __future__ import annotations

import copy
import inspect
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from losslab.contracts.model import ContrastiveConventions

PACKAGE = "sentence_transformers.sentence_transformer.losses"
GIST = "GISTEmbedLoss"
CACHED = "CachedMultipleNegativesRankingLoss"
EMBEDDING_LOSSES = ("MultipleNegativesRankingLoss", CACHED, GIST)


class StoredEmbeddings(torch.nn.Module):
    """Stands in for a SentenceTransformer: the embeddings are in the features, under ``key``."""

    def __init__(self, key: str = "embedding") -> None:
        super().__init__()
        self.key = key

    def __getitem__(self, index: int) -> torch.nn.Module:
        """Its first module, which the cached losses look at."""
        return self

    def forward(self, features: dict[str, Tensor]) -> dict[str, Tensor]:
        """The embeddings of a column, (B, d)."""
        return {"sentence_embedding": features[self.key]}


@dataclass(frozen=True)
class EmbeddingLoss:
    """An in-batch loss of sentence-transformers in the call form of contracts."""

    library_loss: torch.nn.Module
    conventions: ContrastiveConventions
    name: str

    def __call__(self, queries: Tensor, documents: Tensor, *, temperature: float | None = None) -> Tensor:
        """Value of a batch. queries (B, d), documents (M, d)."""
        return self.value(self._prepared(temperature), [queries, documents])

    def value(self, loss: torch.nn.Module, embeddings: list[Tensor]) -> Tensor:
        """What the library makes of them."""
        queries, documents = embeddings
        columns = [queries, documents[: len(queries)], documents[len(queries) :]]
        features = [{"embedding": column} for column in columns if len(column)]
        value = loss(features, None)
        assert isinstance(value, Tensor)
        return value

    def _prepared(self, temperature: float | None) -> Any:  # noqa: ANN401
        """A copy of the loss, its model replaced, for this call only."""
        loss: Any = _shallow(self.library_loss)
        loss.model = StoredEmbeddings()
        if hasattr(loss, "loss"):  # the cached loss wraps the plain one, which owns the scale
            loss.loss = _shallow(loss.loss)
        if temperature is not None:
            setattr(loss, *(("temperature", temperature) if hasattr(loss, "margin") else ("scale", 1 / temperature)))
        return loss


class CachedEmbeddingLoss(EmbeddingLoss):
    """One that goes over the batch twice, in mini-batches, and hands its gradients over in a backward hook."""

    def __call__(
        self, queries: Tensor, documents: Tensor, *, temperature: float | None = None, chunk_size: int | None = None
    ) -> Tensor:
        """Value of a batch in mini-batches of ``chunk_size``."""
        loss = self._prepared(temperature)
        if chunk_size is not None:
            loss.mini_batch_size = chunk_size
        inside = [x.detach().requires_grad_() for x in (queries, documents)]
        value = self.value(loss, inside)
        if not value.requires_grad:
            return value
        value.backward()  # type: ignore[no-untyped-call]  # its hook fills .grad, which no graph leads to
        by_query, by_document = (torch.zeros_like(x) if x.grad is None else x.grad for x in inside)
        linear = (queries * by_query).sum() + (documents * by_document).sum()
        return value.detach() + (linear - linear.detach())


class GuidedLoss(EmbeddingLoss):
    """GISTEmbedLoss, with a guide that knows which documents are the same and nothing else.

    To it a query is 0.8 like its own positive and like any copy of it, and not at all like other documents; so a right
    filter masks the copies, and nothing else.
    """

    def value(self, loss: torch.nn.Module, embeddings: list[Tensor]) -> Tensor:
        """What the library makes of them: all documents in one column, the guide's view beside each."""
        queries, documents = embeddings
        same = (documents[:, None] == documents[None]).all(-1)
        m, b = len(documents), len(queries)
        identity = torch.eye(m, device=documents.device, dtype=torch.float32)[same.int().argmax(1)]
        own = torch.eye(b, device=documents.device, dtype=torch.float32)
        of_query = torch.cat([0.8 * identity[:b], 0.6 * own], 1)
        of_document = torch.cat([identity, identity.new_zeros(m, b)], 1)
        loss.guide = StoredEmbeddings("guide")
        columns = [{"embedding": queries, "guide": of_query}, {"embedding": documents, "guide": of_document}]
        value = loss(columns, None)
        assert isinstance(value, Tensor)
        return value


def _shallow(module: torch.nn.Module) -> torch.nn.Module:
    copied = copy.copy(module)
    copied._modules = dict(copied._modules)
    return copied


def is_embedding_loss(loss: object) -> bool:
    """Whether this is one of the library's in-batch losses, class or instance, or derived from one."""
    cls = loss if isinstance(loss, type) else type(loss)
    return any(base.__name__ in EMBEDDING_LOSSES and base.__module__.startswith(PACKAGE) for base in cls.__mro__)


def embedding_loss(loss: Any, **options: Any) -> EmbeddingLoss:  # noqa: ANN401
    """Wrap an in-batch loss of sentence-transformers, with the conventions it follows attached.

    Parameters
    ----------
    loss
        ``MultipleNegativesRankingLoss``, ``CachedMultipleNegativesRankingLoss`` or ``GISTEmbedLoss``: the class, or an
        instance (its models are left alone and not used).
    **options
        The class's own arguments, such as ``scale=100.0``.

    Raises
    ------
    TypeError
        If it is no such loss, options are given for an instance, or the class has no such option.

    Notes
    -----
    Declared: temperature 1 / scale; both directions under ``partition_mode="per_direction"`` with ``"doc_to_query"``;
    ``within`` where queries meet queries or documents documents, GISTEmbedLoss's default; copies masked by a guide.
    """
    if not is_embedding_loss(loss):
        raise TypeError(f"loss must be one of sentence-transformers' {', '.join(EMBEDDING_LOSSES)}, got {loss!r}")
    if isinstance(loss, type):
        instance: Any = _guided(loss, options) if _is(GIST, loss) else loss(StoredEmbeddings(), **options)
    elif options:
        raise TypeError(f"options are for a class; this is an instance already, got {', '.join(options)}")
    else:
        instance = loss
    cls = type(instance)
    shown = ", ".join(f"{name}={value!r}" for name, value in options.items())
    name = f"{cls.__name__}({shown})" if shown else cls.__name__
    if _is(GIST, cls):
        within = bool(instance.contrast_anchors or instance.contrast_positives)
        conventions = ContrastiveConventions(float(instance.temperature), duplicates="masked", within=within)
        return GuidedLoss(instance, conventions, name)
    directions = set(instance.directions)
    symmetric = instance.partition_mode == "per_direction" and "doc_to_query" in directions
    conventions = ContrastiveConventions(
        1 / float(instance.scale),
        normalize=getattr(instance.similarity_fct, "__name__", "") != "dot_score",
        symmetric=symmetric,
        within=instance.partition_mode == "joint" and len(directions) > 1,
    )
    return (CachedEmbeddingLoss if _is(CACHED, cls) else EmbeddingLoss)(instance, conventions, name)


def _is(name: str, cls: type) -> bool:
    return any(base.__name__ == name for base in cls.__mro__)


def _guided(cls: Any, options: dict[str, Any]) -> torch.nn.Module:  # noqa: ANN401
    """A GISTEmbedLoss without the tokenizers that its ``__init__`` asks two real models for."""
    accepted = inspect.signature(cls).parameters
    settings = {n: p.default for n, p in accepted.items() if p.default is not p.empty}
    if unknown := set(options) - set(settings):
        raise TypeError(f"{cls.__name__} has no option {', '.join(sorted(unknown))}; there are {', '.join(settings)}")
    loss: Any = cls.__new__(cls)
    torch.nn.Module.__init__(loss)
    for name, value in (settings | options).items():
        setattr(loss, name, value)
    loss.must_retokenize = False
    loss.similarity_fct = torch.nn.CosineSimilarity(dim=-1)
    loss.cross_entropy_loss = torch.nn.CrossEntropyLoss()
    made: torch.nn.Module = loss
    return made
