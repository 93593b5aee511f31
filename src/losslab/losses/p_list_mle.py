"""Position-aware ListMLE: as ListMLE, but the first choices count for more."""

import torch
from torch import Tensor

from losslab.losses._lists import Order, Reduction, rank_documents, read_lists, reduce_queries, seen, working_dtype
from losslab.losses._plackett_luce import choice_costs


def p_list_mle(
    logits: Tensor,  # (B, N)
    labels: Tensor,  # (B, N)
    mask: Tensor | None = None,  # (B, N) bool
    *,
    weights: Tensor | None = None,  # (N,)
    order: Order = "labels",
    reduction: Reduction = "mean",
    count_short_lists: bool = False,
    validate: bool = True,
) -> Tensor:
    r"""Position-aware ListMLE, in nats.

    For one list of :math:`n` documents with logits :math:`z` in rank order,

    .. math:: L = \sum_{i=1}^{n} w_i \Big[ \log \sum_{j \ge i} e^{z_j} - z_i \Big], \qquad
              w_i = \frac{2^{n-i} - 1}{\sum_{k=1}^{n} (2^{n-k} - 1)}.

    Ranks count from 1, so the last choice, which has one candidate and costs nothing, weighs nothing; a list of two has
    weights 1 and 0 and the loss of ListMLE. The weights are finite for a list of any length.

    Parameters
    ----------
    logits, labels, mask, order, reduction, count_short_lists, validate
        As for :func:`losslab.losses.list_mle`.
    weights : (N,) floating, optional
        Weights of ranks 1, 2, … in place of the default; normalised to sum to 1 over the ranks that a list has.

    Returns
    -------
    Tensor
        Scalar, or (B,), in the dtype of ``logits``.

    Raises
    ------
    ValueError
        As for ``list_mle``; or if ``weights`` has another shape, is negative or not finite,
        or is 0 at every rank of a list.

    References
    ----------
    Lan, Zhu, Guo, Niu and Cheng, "Position-aware ListMLE: a sequential learning process for ranking", UAI 2014,
    equation 6 (the weighted loss) and section 4.1 (the weights, there before normalising).
    """
    ranked, real = rank_documents(read_lists(logits, labels, mask, validate=validate), order)
    dtype = working_dtype(logits)
    if weights is None:
        position = _default_weights(real, dtype)
    else:
        if not isinstance(weights, Tensor) or not weights.is_floating_point() or weights.shape != logits.shape[1:]:
            raise ValueError(
                f"weights must be a floating-point tensor of shape ({logits.shape[1]},), one a rank, "
                f"got {seen(weights)}"
            )
        position = _given_weights(weights.detach().to(dtype), real, validate=validate)
    costs = choice_costs(ranked, position, real)
    return reduce_queries(costs, real, reduction, count_short_lists=count_short_lists).to(logits.dtype)


def _default_weights(real: Tensor, dtype: torch.dtype) -> Tensor:
    """2^(n-rank) - 1, normalised per list, (B, N); divided by 2^n throughout, so that no length overflows."""
    rank = real.cumsum(1).to(dtype)
    n = real.sum(1, keepdim=True).to(dtype)
    total = 1 - (n + 1) * 2.0**-n
    raw = (2.0**-rank - 2.0**-n) / total.where(total > 0, 1)  # total is 0 for lists of 0 and 1: nothing to weigh
    return raw.masked_fill(~real, 0)


def _given_weights(weights: Tensor, real: Tensor, *, validate: bool) -> Tensor:
    """The caller's own weights by rank, normalised per list, (B, N)."""
    if validate:
        wrong = ~weights.isfinite() | (weights < 0)
        if wrong.any():
            rank = int(wrong.nonzero()[0])
            raise ValueError(f"weights must be finite and not negative, got {weights[rank].item()} at rank {rank + 1}")
    by_rank = weights[real.cumsum(1).sub(1).clamp(min=0)].masked_fill(~real, 0)
    total = by_rank.sum(1, keepdim=True)
    if validate:
        sizes = real.sum(1)
        silent = (total[:, 0] == 0) & (sizes >= 2)
        if silent.any():
            raise ValueError(f"weights must not be 0 at every rank of a list, got 0 up to rank {int(sizes[silent][0])}")
    return by_rank / total.where(total > 0, 1)
