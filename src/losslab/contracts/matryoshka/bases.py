"""The losses that a wrapper is tried on: one of cosines, one of dot products, one with a teacher's embeddings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, normalize

TEMPERATURE = 0.05


class PlannedError(RuntimeError):
    """What a base loss raises when it is told to."""


class Base(torch.nn.Module):
    """A loss of two matrices of embeddings.

    Parameters
    ----------
    name
        What to call it in a counterexample.
    function
        ``function(queries (B, d), documents (M, d)) -> scalar``.
    unit
        What its logits are multiplied by; rounding is judged against it.
    scale_free
        Whether it looks at directions only.
    embedding_labels
        Whether the second matrix are labels, a teacher's embeddings, of the first.
    """

    def __init__(
        self,
        name: str,
        function: Callable[[Tensor, Tensor], Any],
        unit: float = 1.0,
        *,
        scale_free: bool = False,
        embedding_labels: bool = False,
    ) -> None:
        super().__init__()
        self.name = name
        self.function = function
        self.unit = unit
        self.scale_free = scale_free
        self.embedding_labels = embedding_labels
        self.raises_in: int | None = None

    def forward(self, queries: Tensor, documents: Tensor) -> Any:  # noqa: ANN401
        """Its value."""
        self.count_down()
        return self.function(queries, documents)

    def count_down(self) -> None:
        """Raise in the call that ``raises_in`` counts down to."""
        if self.raises_in is not None:
            self.raises_in -= 1
            if self.raises_in == 0:
                raise PlannedError("planned, to see what it leaves behind")

    def __repr__(self) -> str:
        return self.name


def _wide(tensor: Tensor) -> Tensor:
    return tensor if tensor.dtype.itemsize >= 4 else tensor.float()


def _cosines(queries: Tensor, documents: Tensor) -> Tensor:
    queries, documents = (normalize(_wide(x), dim=1) for x in (queries, documents))
    return cross_entropy(queries @ documents.T / TEMPERATURE, torch.arange(len(queries), device=queries.device))


def _dot_products(queries: Tensor, documents: Tensor) -> Tensor:
    return cross_entropy(_wide(queries) @ _wide(documents).T, torch.arange(len(queries), device=queries.device))


def _distance(student: Tensor, teacher: Tensor) -> Tensor:
    return (_wide(student) - _wide(teacher)).square().mean()


def cosines() -> Base:
    """InfoNCE of cosines at temperature 0.05."""
    return Base("InfoNCE of cosines", _cosines, 1 / TEMPERATURE, scale_free=True)


def dot_products() -> Base:
    """InfoNCE of dot products at temperature 1."""
    return Base("InfoNCE of dot products", _dot_products)


def distance() -> Base:
    """Mean squared difference from a teacher's embeddings."""
    return Base("mean squared error", _distance, embedding_labels=True)


#: By the name that ``against=`` takes.
BASES: dict[str, Callable[[], Base]] = {"info_nce": cosines, "dot_product_info_nce": dot_products, "mse": distance}


def resolve(against: str | Callable[..., Any]) -> Base:
    """The base loss that ``against=`` names: one of `BASES`, or any callable of two matrices.

    Raises
    ------
    ValueError
        If there is no base loss of that name.
    TypeError
        If it is neither a name nor callable.
    """
    if isinstance(against, str):
        if against not in BASES:
            raise ValueError(f"against must be a callable or one of {', '.join(BASES)}, got {against!r}")
        return BASES[against]()
    if not callable(against):
        raise TypeError(f"against must be a callable or one of {', '.join(BASES)}, got {against!r}")
    return Base(str(getattr(against, "__name__", type(against).__name__)), against, 1 / TEMPERATURE)
