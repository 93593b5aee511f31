"""Squares that half precision cannot hold."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from losslab.mistakes._examples import nested
from losslab.mistakes._parts import weighted, wide
from losslab.mistakes._record import Example, Function, Mistake


def wrong(
    base_loss: Callable[..., Tensor], dims: Sequence[int], weights: Sequence[float] | None = None
) -> Callable[[Tensor, Tensor], Tensor]:
    """The base loss summed over prefixes, their squares added up in the type that they come in."""

    def length(prefix: Tensor) -> Tensor:
        # The mistake: 256 squared is no float16, and the length of a longer prefix is infinite.
        return wide(prefix.square().sum(-1, keepdim=True)).sqrt()

    def loss(queries: Tensor, documents: Tensor) -> Tensor:
        size, total = queries.shape[-1], queries.new_zeros(())
        for dim, weight in weighted(dims, weights):
            cut = [wide(x)[..., :dim] / length(x[..., :dim]) if dim < size else x for x in (queries, documents)]
            total = total + weight * base_loss(*cut)
        return total

    return loss


def show(wrap: Function, *, queries: list[list[float]], documents: list[list[float]], dims: list[int]) -> float:
    """Loss of embeddings in float16."""
    return nested(wrap, queries=queries, documents=documents, dims=dims, dtype=torch.float16)


MISTAKE = Mistake(
    name="mrl_squares_overflow",
    kind="matryoshka",
    title="Squares that overflow",
    symptom="In float16 long prefixes come out as zeros, or the loss as nan.",
    cause="Squares are added up in float16, whose largest number is 65504.",
    source="built",
    case=None,
    breaks="extremes",
    wrong=wrong,
    right="matryoshka",
    met="built",
    example=Example(
        {"queries": [[300.0, 0.0, 1.0]], "documents": [[300.0, 0.0, 1.0], [0.0, 300.0, 1.0]], "dims": [2]},
        show,
        unit="nats, in float16",
    ),
)
