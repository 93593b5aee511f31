"""ListMLE: the likelihood of the right ranking under the Plackett–Luce model."""

from torch import Tensor

from losslab.losses._lists import Order, Reduction, rank_documents, read_lists, reduce_queries
from losslab.losses._plackett_luce import choice_costs


def list_mle(
    logits: Tensor,  # (B, N)
    labels: Tensor,  # (B, N)
    mask: Tensor | None = None,  # (B, N) bool
    *,
    order: Order = "labels",
    reduction: Reduction = "mean",
    count_short_lists: bool = False,
    validate: bool = True,
) -> Tensor:
    r"""Negative log-likelihood, in nats, of ranking each list best document first.

    For one list with logits :math:`z` in rank order,

    .. math:: L = \sum_{i=1}^{n} \Big[ \log \sum_{j \ge i} e^{z_j} - z_i \Big].

    Parameters
    ----------
    logits : (B, N) floating
        One score a document. What stands in padded slots, NaN included, does not matter and gets gradient exactly 0.
    labels : (B, N) real
        Relevance; higher is better. Only their order within a list counts.
    mask : (B, N) bool, optional
        True at documents, False at padding. None: every slot is a document.
    order : {"labels", "given"}
        Rank by descending label, ties in the order given; or take the documents as they stand, best first.
    reduction : {"mean", "sum", "none"}
        Mean or sum over queries; "none" gives one value a query, (B,).
    count_short_lists : bool
        Lists of fewer than two documents contribute 0. True: they are counted in the mean all the same.
    validate : bool
        False skips the checks that look at values. With no list to rank the result is then 0.

    Returns
    -------
    Tensor
        Scalar, or (B,), in the dtype of ``logits``; computed in float64 (float32 on MPS, which has no float64).

    Raises
    ------
    ValueError
        If shapes or types are wrong, a document's logit or label is not finite, or no list has two documents.

    References
    ----------
    Xia, Liu, Wang, Zhang and Li, "Listwise approach to learning to rank: theory and algorithm", ICML 2008, section 4.4.
    """
    ranked, real = rank_documents(read_lists(logits, labels, mask, validate=validate), order)
    costs = choice_costs(ranked, real.to(ranked.dtype), real)
    return reduce_queries(costs, real, reduction, count_short_lists=count_short_lists).to(logits.dtype)
