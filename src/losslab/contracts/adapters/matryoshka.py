"""sentence-transformers' MatryoshkaLoss, as a wrapper in the call form of contracts.

The library's loss wraps a loss of a model. Here a stand-in for the model returns embeddings that the features already
hold, as for its other losses, and says how long they are when it is asked; MatryoshkaLoss, which patches that model,
does all the rest. What it wraps is a loss of the library itself, plain or cached, or a module around any base loss.
Works for 6.x.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from losslab.contracts.adapters.embedding_losses import PACKAGE, EmbeddingLoss, StoredEmbeddings, through_hook
from losslab.contracts.model import MatryoshkaConventions

MATRYOSHKA_LOSS = "MatryoshkaLoss"
#: Losses of the library whose labels are embeddings.
DISTILLATION = ("MSELoss", "EmbedDistillLoss")


class SizedEmbeddings(StoredEmbeddings):
    """Embeddings that are in the features, and their size."""

    def __init__(self, before: Callable[[], None] | None = None) -> None:
        super().__init__()
        self.size: int | None = None
        self.before = before

    def get_embedding_dimension(self) -> int | None:
        """Not known before the first embeddings are seen; the library then warns of nothing."""
        return self.size

    def forward(self, features: dict[str, Tensor]) -> dict[str, Tensor]:
        """The embeddings of a column, (B, d)."""
        if self.before is not None and "first" in features:
            self.before()
        return super().forward(features)


class AnyLoss(torch.nn.Module):
    """A base loss as the library wants one: of features, embedded by the model, and labels."""

    def __init__(self, model: torch.nn.Module, base_loss: Callable[..., Any]) -> None:
        super().__init__()
        self.model = model
        self.base_loss = base_loss

    def forward(self, features: Sequence[dict[str, Tensor]], labels: Tensor | None = None) -> Any:  # noqa: ANN401
        """Its value."""
        embeddings = [self.model(column)["sentence_embedding"] for column in features]
        return self.base_loss(*embeddings, *([] if labels is None else [labels]))


@dataclass(frozen=True)
class LibraryNested:
    """A MatryoshkaLoss of the library, driven with embeddings."""

    library_loss: Any
    inner: Any
    model: SizedEmbeddings
    embedding_labels: bool

    def __call__(self, queries: Tensor, documents: Tensor) -> Tensor:
        """Value of a batch. queries, documents (B, d); the second are labels if the base loss takes such."""
        return self._value(self.library_loss, queries, documents)

    def base_loss(self, queries: Tensor, documents: Tensor) -> Tensor:
        """The wrapped loss of the library, asked by itself."""
        return self._value(self.inner, queries, documents)

    def _value(self, loss: Any, queries: Tensor, documents: Tensor) -> Tensor:  # noqa: ANN401
        self.model.size = queries.shape[-1]
        if getattr(self.inner, "uses_gradient_cache", False):
            return self._cached(loss, queries, documents)
        return self._plain(loss, queries, documents)

    def _plain(self, loss: Any, queries: Tensor, documents: Tensor) -> Tensor:  # noqa: ANN401
        first = {"embedding": queries, "first": queries}
        if self.embedding_labels:
            value = loss([first], documents)
        else:
            columns = [documents[: len(queries)], documents[len(queries) :]]
            value = loss([first, *({"embedding": column} for column in columns if len(column))], None)
        assert isinstance(value, Tensor)
        return value

    def _cached(self, loss: Any, queries: Tensor, documents: Tensor) -> Tensor:  # noqa: ANN401
        """Its hook fills ``.grad``, which no graph leads to: fetch the gradients from there."""
        return through_hook(lambda inside: self._plain(loss, *inside), [queries, documents])


@dataclass(frozen=True)
class MatryoshkaWrapper:
    """The class MatryoshkaLoss: makes a nested loss of a base loss and sizes."""

    library_class: Any
    name: str
    options: dict[str, Any] = field(default_factory=dict)
    conventions: MatryoshkaConventions = field(default_factory=MatryoshkaConventions)

    def __call__(
        self, base_loss: Callable[..., Any], dims: Sequence[int], weights: Sequence[float] | None = None
    ) -> LibraryNested:
        """Wrap a loss of the library, class instance or driven by its adapter, or any loss of two matrices."""
        model = SizedEmbeddings(getattr(base_loss, "count_down", None))
        given = getattr(base_loss, "function", base_loss)
        embedding_labels = bool(getattr(base_loss, "embedding_labels", False))
        if isinstance(given, EmbeddingLoss):
            inner: Any = _remade(given.library_loss, model)
        elif isinstance(given, torch.nn.Module) and type(given).__module__.startswith(PACKAGE):
            inner = _remade(given, model)
            embedding_labels = any(cls.__name__ in DISTILLATION for cls in type(given).__mro__)
        else:
            model.before = None  # it counts its calls itself
            inner = AnyLoss(model, base_loss)
        nested = self.library_class(model, inner, list(dims), weights, **self.options)
        return LibraryNested(nested, inner, model, embedding_labels)


def _remade(loss: Any, model: torch.nn.Module) -> Any:  # noqa: ANN401
    """A copy of a loss of the library with another model, to be patched instead of the one that was given."""
    made = copy.copy(loss)
    made._modules = dict(made._modules)
    made.model = model
    return made


def is_matryoshka_library_loss(loss: object) -> bool:
    """Whether this is the library's MatryoshkaLoss, or a class derived from it."""
    return isinstance(loss, type) and any(
        base.__name__ == MATRYOSHKA_LOSS and base.__module__.startswith(PACKAGE) for base in loss.__mro__
    )


def matryoshka_library_loss(loss: Any, **options: Any) -> MatryoshkaWrapper:  # noqa: ANN401
    """Make sentence-transformers' class ``MatryoshkaLoss`` a wrapper, ``wrap(base_loss, dims, weights=None)``.

    Parameters
    ----------
    loss
        The class. An instance has its base loss and sizes already, and no contract could choose them.
    **options
        The class's own further arguments, such as ``n_dims_per_step=1``.

    Raises
    ------
    TypeError
        If it is not that class.
    """
    if not is_matryoshka_library_loss(loss):
        raise TypeError(f"loss must be sentence-transformers' class {MATRYOSHKA_LOSS}, got {loss!r}")
    shown = ", ".join(f"{name}={value!r}" for name, value in options.items())
    return MatryoshkaWrapper(loss, f"{loss.__name__}({shown})" if shown else loss.__name__, options)
