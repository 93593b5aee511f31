"""The in-batch losses of sentence-transformers, driven with the embeddings you give them.

A loss of the library wants a model and features to embed. Here a stand-in for the model returns embeddings that the
features already hold; the library's own forward pass does all the rest. Further documents than queries go in as a
column of hard negatives, which the library makes candidates of every query. Late-interaction losses are given texts of
one token, whose score is that token's. Works for 6.x.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from losslab.contracts.model import ContrastiveConventions

PACKAGE = "sentence_transformers.sentence_transformer.losses"
MULTI_VECTOR_PACKAGE = "sentence_transformers.multi_vector_encoder.losses"
GIST = ("GISTEmbedLoss", "CachedGISTEmbedLoss")
MEGA = "MegaBatchMarginLoss"
CACHED = "CachedMultipleNegativesRankingLoss"
#: By name, and every class derived from one of them: the symmetric and the sparse ones are.
IN_BATCH_LOSSES = ("MultipleNegativesRankingLoss", CACHED, *GIST, MEGA)
#: Triplets of one set of embeddings with class labels.
SET_LOSSES = (
    "BatchAllTripletLoss",
    "BatchHardTripletLoss",
    "BatchHardSoftMarginTripletLoss",
    "BatchSemiHardTripletLoss",
)
CACHED_MULTI_VECTOR = "CachedMultiVectorMultipleNegativesRankingLoss"
EMBEDDING_LOSSES = (*IN_BATCH_LOSSES, *SET_LOSSES)
MULTI_VECTOR_LOSSES = ("MultiVectorMultipleNegativesRankingLoss", CACHED_MULTI_VECTOR)


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


class OneToken(StoredEmbeddings):
    """Stands in for a MultiVectorEncoder: every text is one token, and its vector is in the features."""

    def forward(self, features: dict[str, Tensor], task: str | None = None) -> dict[str, Tensor]:  # noqa: ARG002
        """The tokens of a column, (B, 1, d), and which of them count."""
        tokens: Tensor = features[self.key][:, None]
        return {"token_embeddings": tokens, "attention_mask": torch.ones_like(tokens[..., 0], dtype=torch.long)}


@dataclass(frozen=True)
class EmbeddingLoss:
    """An in-batch loss of sentence-transformers in the call form of contracts."""

    library_loss: torch.nn.Module
    conventions: ContrastiveConventions
    name: str

    def __call__(self, queries: Tensor, documents: Tensor, *, temperature: float | None = None) -> Tensor:
        """Value of a batch. queries (B, d), documents (M, d)."""
        return self.value(self._prepared(temperature), [queries, documents])

    def value(self, loss: Any, embeddings: list[Tensor]) -> Tensor:  # noqa: ANN401
        """What the library makes of them."""
        queries, documents = embeddings
        columns = [queries, documents[: len(queries)], documents[len(queries) :]]
        columns = [column for column in columns if len(column)]
        if _is(("SparseMultipleNegativesRankingLoss",), type(loss)):  # to be wrapped: it refuses to be called alone
            value = loss.compute_loss_from_embeddings(columns, None)
        else:
            value = loss([{"embedding": column} for column in columns], None)
        assert isinstance(value, Tensor)
        return value

    def _prepared(self, temperature: float | None) -> Any:  # noqa: ANN401
        """A copy of the loss, its model replaced, for this call only."""
        loss: Any = _shallow(self.library_loss)
        loss.model = StoredEmbeddings()
        if "forward" in vars(loss):  # chosen when it was made, and bound to the original
            loss.forward = getattr(loss, loss.forward.__name__)
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
        return through_hook(lambda inside: self.value(loss, inside), [queries, documents])


class MegaBatchLoss(EmbeddingLoss):
    """MegaBatchMarginLoss, which has margins and no temperature, and takes two columns of the same length."""

    def __call__(self, queries: Tensor, documents: Tensor) -> Tensor:  # type: ignore[override]
        """Value of a batch. queries, documents (B, d)."""
        loss = self._prepared(None)
        if loss.uses_gradient_cache:
            return through_hook(lambda inside: self.value(loss, inside), [queries, documents])
        return self.value(loss, [queries, documents])


class TripletSetLoss(EmbeddingLoss):
    """A loss of one set with class labels: queries, documents behind them, a class a pair."""

    def __call__(self, queries: Tensor, documents: Tensor) -> Tensor:  # type: ignore[override]
        """Value of a batch. queries, documents (B, d)."""
        labels = torch.arange(len(queries), device=queries.device).repeat(2)
        value = self._prepared(None)([{"embedding": torch.cat([queries, documents])}], labels)
        assert isinstance(value, Tensor)
        return value


class MultiVectorLoss(EmbeddingLoss):
    """An in-batch loss over late-interaction scores, each text one token: a scalar product, times scale."""

    def __call__(self, queries: Tensor, documents: Tensor, *, temperature: float | None = None) -> Tensor:
        """Value of a batch. queries, documents (B, d)."""
        loss = self._prepared(None)
        loss.model = OneToken()
        if temperature is not None:
            loss.scale = 1 / temperature
        if _is((CACHED_MULTI_VECTOR,), type(loss)):
            return through_hook(lambda inside: self.value(loss, inside), [queries, documents])
        return self.value(loss, [queries, documents])


def through_hook(value_of: Callable[[list[Tensor]], Tensor], given: list[Tensor]) -> Tensor:
    """A value whose gradients a hook leaves in ``.grad``, where no graph leads to, as one that has them in a graph."""
    inside = [x.detach().requires_grad_() for x in given]
    value = value_of(inside)
    if not value.requires_grad:
        return value
    value.backward()  # type: ignore[no-untyped-call]
    gradients = [torch.zeros_like(x) if x.grad is None else x.grad for x in inside]
    linear = torch.stack([(x * gradient).sum() for x, gradient in zip(given, gradients, strict=True)]).sum()
    return value.detach() + (linear - linear.detach())


class GuidedLoss(EmbeddingLoss):
    """GISTEmbedLoss, plain or cached, with a guide that knows which documents are the same and nothing else.

    To it a query is 0.8 like its own positive and like any copy of it, and not at all like other documents; so a right
    filter masks the copies, and nothing else.
    """

    def value(self, loss: Any, embeddings: list[Tensor]) -> Tensor:  # noqa: ANN401
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


class CachedGuidedLoss(CachedEmbeddingLoss, GuidedLoss):
    """The cached one: its value is the guided loss's, its way to the gradients the cached loss's."""


def _shallow(module: torch.nn.Module) -> torch.nn.Module:
    """A copy that shares everything but the dictionary of its parts; no class is told that it is being made."""
    copied: torch.nn.Module = object.__new__(type(module))
    copied.__dict__.update(module.__dict__)
    copied._modules = dict(module._modules)
    return copied


def is_embedding_loss(loss: object) -> bool:
    """Whether this is one of the library's in-batch losses, class or instance, or derived from one."""
    cls = loss if isinstance(loss, type) else type(loss)
    return any(
        (base.__name__ in EMBEDDING_LOSSES and base.__module__.startswith(PACKAGE))
        or (base.__name__ in MULTI_VECTOR_LOSSES and base.__module__.startswith(MULTI_VECTOR_PACKAGE))
        for base in cls.__mro__
    )


def embedding_loss(loss: Any, **options: Any) -> EmbeddingLoss:  # noqa: ANN401
    """Wrap an in-batch loss of sentence-transformers, with the conventions it follows attached.

    Parameters
    ----------
    loss
        ``MultipleNegativesRankingLoss``, ``GISTEmbedLoss``, their cached, symmetric and sparse relatives,
        ``MegaBatchMarginLoss``, one of the batch's triplets (`SET_LOSSES`), or
        ``MultiVectorMultipleNegativesRankingLoss``, plain or cached: the class, or an instance (its models are left
        alone and not used).
    **options
        The class's own arguments, such as ``scale=100.0``.

    Raises
    ------
    TypeError
        If it is no such loss, options are given for an instance, or the class has no such option.

    Notes
    -----
    Declared: temperature 1 / scale; both directions under ``partition_mode="per_direction"`` with ``"doc_to_query"``;
    ``within`` where queries meet queries or documents documents, GISTEmbedLoss's default; copies masked by a guide;
    scalar products of sparse and late-interaction losses; as many documents as queries where the library's columns
    must be of one length.
    """
    if not is_embedding_loss(loss):
        raise TypeError(
            f"loss must be one of sentence-transformers' {', '.join(EMBEDDING_LOSSES + MULTI_VECTOR_LOSSES)}, "
            f"got {loss!r}"
        )
    if isinstance(loss, type):
        instance: Any = _guided(loss, options) if _is(GIST, loss) else _made(loss, options)
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
        return (CachedGuidedLoss if _is(GIST[1:], cls) else GuidedLoss)(instance, conventions, name)
    if _is((MEGA,), cls):
        return MegaBatchLoss(instance, ContrastiveConventions(1.0, more_documents=False), name)
    if _is(SET_LOSSES, cls):
        conventions = ContrastiveConventions(1.0, normalize=False, more_documents=False, within=True)
        return TripletSetLoss(instance, conventions, name)
    if _is(MULTI_VECTOR_LOSSES, cls):
        conventions = ContrastiveConventions(1 / float(instance.scale), normalize=False, more_documents=False)
        return MultiVectorLoss(instance, conventions, name)
    directions = set(instance.directions)
    symmetric = instance.partition_mode == "per_direction" and "doc_to_query" in directions
    conventions = ContrastiveConventions(
        1 / float(instance.scale),
        normalize=getattr(instance.similarity_fct, "__name__", "") != "dot_score",
        symmetric=symmetric,
        within=instance.partition_mode == "joint" and len(directions) > 1,
    )
    return (CachedEmbeddingLoss if _is((CACHED,), cls) else EmbeddingLoss)(instance, conventions, name)


def _is(names: tuple[str, ...], cls: type) -> bool:
    return any(base.__name__ in names for base in cls.__mro__)


def _made(cls: Any, options: dict[str, Any]) -> torch.nn.Module:  # noqa: ANN401
    """An instance; that the library will drop it some day is none of a check's business."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        made: torch.nn.Module = cls(StoredEmbeddings(), **options)
    return made


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
