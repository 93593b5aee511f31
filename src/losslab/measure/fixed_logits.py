"""Drive sentence-transformers' real list losses with logits of our choosing, without a network."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

Lists = Sequence[Sequence[float]]


class FixedLogits:
    """Stand in for a cross-encoder: a "document" is its position in ``logits``, its score the logit there.

    The list losses ask a model for nothing but ``num_labels``, ``device``, ``preprocess`` and a call that gives
    ``{"scores": …}``, the same in every version from 5.5.1 to 6.2.0.

    Parameters
    ----------
    logits
        (documents of all queries,) float; a leaf that gradients flow back to.
    """

    num_labels = 1
    device = torch.device("cpu")

    def __init__(self, logits: Tensor) -> None:
        self.logits = logits

    def preprocess(self, pairs: Sequence[tuple[str, int]], **_: object) -> dict[str, Tensor]:
        """Turn (query, position) pairs into positions."""
        return {"positions": torch.tensor([position for _, position in pairs])}

    def __call__(self, features: dict[str, Tensor]) -> dict[str, Tensor]:
        """Look the positions up: (pairs, 1) scores."""
        return {"scores": self.logits[features["positions"]].unsqueeze(1)}


def positions(lengths: Sequence[int]) -> list[list[int]]:
    """Number the documents of all queries through: [2, 3] gives [[0, 1], [2, 3, 4]]."""
    ends = torch.tensor(lengths).cumsum(0).tolist()
    return [list(range(end - length, end)) for end, length in zip(ends, lengths, strict=True)]


def run_real(make_loss: Callable[[Any], Any], logits: Lists, labels: Lists) -> tuple[float, list[list[float]]]:
    """Value and gradient of a real loss class on a batch of lists.

    Parameters
    ----------
    make_loss
        ``make_loss(model)`` builds the loss, for instance the class itself.
    logits, labels
        One list of numbers a query, lengths may differ.

    Returns
    -------
    loss, gradients
        The batch loss as the class returns it, and its gradient by query and document.
    """
    flat = torch.tensor([logit for query in logits for logit in query], dtype=torch.float32, requires_grad=True)
    documents = positions([len(query) for query in logits])
    loss = make_loss(FixedLogits(flat))(
        [[f"query {i}" for i in range(len(documents))], documents],
        [torch.tensor(query, dtype=torch.float32) for query in labels],
    )
    loss.backward()
    gradient = torch.zeros_like(flat) if flat.grad is None else flat.grad
    return loss.item(), [gradient[query].tolist() for query in documents]
