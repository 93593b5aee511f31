"""The Plackett–Luce model: a list is ranked by choosing the best document, then the best of what is left, and so on."""

from typing import Any

import torch
from torch import Tensor

from losslab.losses._lists import working_dtype


def choice_costs(logits: Tensor, weights: Tensor, mask: Tensor) -> Tensor:
    """Weighted cost of ranking each list as it stands, in nats, (B,), in working precision.

    ``sum_i w_i [ log(sum_{j >= i} exp(z_j)) - z_i ]`` over the documents i of a list, best first. Padding cannot win.

    Parameters
    ----------
    logits : (B, N) floating, in rank order; finite at documents
    weights : (B, N) of the choices, not negative; no gradient is taken
    mask : (B, N) bool, True = a document
    """
    return _ChoiceCosts.apply(logits, weights, mask)  # type: ignore[no-any-return,no-untyped-call]


class _ChoiceCosts(torch.autograd.Function):
    """Autograd of its own: left to itself, torch keeps and scans twice as much. Can be differentiated twice."""

    @staticmethod
    def forward(logits: Tensor, weights: Tensor, mask: Tensor) -> Tensor:
        scores = _centred(logits, mask)
        return _log_mass_left(scores).sub_(scores).mul_(weights).masked_fill_(~mask, 0).sum(1)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, Tensor], output: Tensor) -> None:  # noqa: ANN401, ARG004
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:  # noqa: ANN401
        logits, weights, mask = ctx.saved_tensors
        return (grad[:, None] * (_shares_won(logits, weights, mask) - weights)).to(logits.dtype), None, None


def _shares_won(logits: Tensor, weights: Tensor, mask: Tensor) -> Tensor:
    """Each document's shares of all choices it stands for, weighted and summed, (B, N); 0 at padding.

    Document j stands for choices 1 … j, and in choice i its share is exp(z_j) / exp(log_mass_i).
    """
    prices = -_log_mass_left(_centred(logits, mask)) + weights.log()
    # Centred anew: to keep the scores while the prices are computed would be the peak of memory.
    return (_centred(logits, mask) + prices.where(mask, -torch.inf).logcumsumexp(1)).exp()


def _centred(logits: Tensor, mask: Tensor) -> Tensor:
    """Scores relative to the list's best, so that those near it keep all their digits; padding cannot win."""
    scores = logits.to(working_dtype(logits)).masked_fill(~mask, -torch.inf)
    return scores - scores.detach().amax(1, keepdim=True).nan_to_num(neginf=0)


def _log_mass_left(scores: Tensor) -> Tensor:
    """log(sum_{j >= i} exp(z_j)) for every i, (B, N)."""
    return scores.flip(1).logcumsumexp(1).flip(1)
