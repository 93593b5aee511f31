"""Drive sentence-transformers' real list losses with logits of our choosing, without a network."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from losslab.contracts.adapters.sentence_transformers import FixedLogits

Lists = Sequence[Sequence[float]]


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
