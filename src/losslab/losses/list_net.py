"""ListNet: the cross-entropy between the top-one probabilities of the labels and of the logits."""

import torch
from torch import Tensor

from losslab.losses._lists import Reduction, read_lists, reduce_queries, working_dtype


def list_net(
    logits: Tensor,  # (B, N)
    labels: Tensor,  # (B, N)
    mask: Tensor | None = None,  # (B, N) bool
    *,
    reduction: Reduction = "mean",
    count_short_lists: bool = False,
    validate: bool = True,
) -> Tensor:
    r"""Cross-entropy, in nats, between the chance of coming first under the labels and under the logits.

    For one list, :math:`L = -\sum_i \mathrm{softmax}(y)_i \log \mathrm{softmax}(z)_i`. The scale of the labels matters;
    their ties do not.

    Parameters
    ----------
    logits, mask, reduction, count_short_lists, validate
        As for :func:`losslab.losses.list_mle`.
    labels : (B, N) real
        Relevance, as logits of the target distribution.

    Returns
    -------
    Tensor
        Scalar, or (B,), in the dtype of ``logits``.

    Raises
    ------
    ValueError
        As for ``list_mle``.

    References
    ----------
    Cao, Qin, Liu, Tsai and Li, "Learning to rank: from pairwise approach to listwise approach", ICML 2007, section 5.
    """
    lists = read_lists(logits, labels, mask, validate=validate)
    padding = ~lists.mask
    dtype = working_dtype(logits)
    lowest = torch.finfo(dtype).min  # not -inf: a list with no document at all must not make NaN
    log_shares = lists.logits.to(dtype).masked_fill(padding, lowest).log_softmax(1)
    targets = lists.labels.to(dtype).masked_fill(padding, lowest).softmax(1)
    costs = -(targets * log_shares).masked_fill(padding, 0).sum(1)
    return reduce_queries(costs, lists.mask, reduction, count_short_lists=count_short_lists).to(logits.dtype)
