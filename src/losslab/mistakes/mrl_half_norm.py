"""Renormalised in half precision."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from losslab.mistakes._examples import nested
from losslab.mistakes._parts import weighted
from losslab.mistakes._record import Example, Function, Mistake


def wrong(
    base_loss: Callable[..., Tensor], dims: Sequence[int], weights: Sequence[float] | None = None
) -> Callable[[Tensor, Tensor], Tensor]:
    """The base loss summed over prefixes, renormalised in the type that they come in."""

    def loss(queries: Tensor, documents: Tensor) -> Tensor:
        size, total = queries.shape[-1], queries.new_zeros(())
        for dim, weight in weighted(dims, weights):
            # The mistake: in bfloat16 a unit vector is off by up to 0.4 % in each dimension, and so are all scores.
            cut = [
                x[..., :dim] / x[..., :dim].norm(dim=-1, keepdim=True) if dim < size else x
                for x in (queries, documents)
            ]
            total = total + weight * base_loss(*cut)
        return total

    return loss


def show(wrap: Function, *, queries: list[list[float]], documents: list[list[float]], dims: list[int]) -> float:
    """Loss of embeddings in bfloat16."""
    return nested(wrap, queries=queries, documents=documents, dims=dims, dtype=torch.bfloat16)


MISTAKE = Mistake(
    name="mrl_half_norm",
    kind="matryoshka",
    title="Renormalised in half precision",
    symptom="Small sizes are noisier than large ones under mixed precision.",
    cause="A prefix is divided by its length in bfloat16 or float16, and rounded before any score is computed.",
    source="built",
    case=None,
    breaks="precision",
    wrong=wrong,
    right="matryoshka",
    met="built",
    example=Example(
        {"queries": [[0.6, 0.3, 0.0], [0.3, 0.7, 0.1]], "documents": [[0.7, 0.2, 0.0], [0.1, 0.9, 0.4]], "dims": [2]},
        show,
        unit="nats, in bfloat16",
    ),
)
