"""InfoNCE for queries that have several right documents: any of them will do."""

import torch
from torch import Tensor

from losslab.losses._pairs import (
    Reduction,
    check_cells,
    check_embeddings,
    check_positive,
    check_reduction,
    reduce_rows,
    scores,
)


def multi_positive_info_nce(
    queries: Tensor,  # (B, d)
    documents: Tensor,  # (M, d)
    positives: Tensor,  # (B, M) bool
    *,
    temperature: float = 0.05,
    negatives: Tensor | None = None,  # (B, M) bool
    normalize: bool = True,
    reduction: Reduction = "mean",
    validate: bool = True,
) -> Tensor:
    r"""Negative log-probability, in nats, of finding any one of a query's right documents.

    With :math:`P_i` the positives of query i and :math:`A_i` all its candidates, positives and negatives allowed,

    .. math:: L_i = -\log \frac{\sum_{j \in P_i} e^{s_{ij}/\tau}}{\sum_{k \in A_i} e^{s_{ik}/\tau}}, \qquad
              \frac{\partial L_i}{\partial s_{ij}} =
              \frac{p(j \mid A_i) - [j \in P_i]\, p(j \mid P_i)}{\tau}

    where :math:`p(j \mid S)` is the softmax over S. The best positive is pulled most, and no positive repels another:
    with one positive a query this is :func:`losslab.losses.info_nce`. (SupCon averages over positives outside the
    logarithm instead, and so asks for all of them.)

    Parameters
    ----------
    queries, documents, temperature, normalize, reduction
        As for :func:`losslab.losses.info_nce`.
    positives : (B, M) bool
        True at every right document of a query: at least one each.
    negatives : (B, M) bool, optional
        True = allowed as a candidate, and at every positive. None: all documents are candidates.
    validate : bool
        False skips the checks that look at values. A query without positives then has loss 0, and is counted.

    Returns
    -------
    Tensor
        Scalar, or (B,), in the dtype of ``queries``; computed in float64 (float32 on MPS).

    Raises
    ------
    ValueError
        As for ``info_nce``; or if a query has no positive, or one that ``negatives`` forbids.

    References
    ----------
    Miech et al., "End-to-end learning of visual representations from uncurated instructional videos", CVPR 2020,
    equation 1 (MIL-NCE).
    """
    check_embeddings(queries, documents)
    check_positive("temperature", temperature)
    check_reduction(reduction)
    check_cells("positives", positives, queries, documents, true="a right document")
    if negatives is not None:
        check_cells("negatives", negatives, queries, documents, true="allowed as a candidate")
    if validate:
        if not (some := positives.any(1)).all():
            raise ValueError(
                f"positives must name at least one document a query, got none in row {int((~some).nonzero()[0])} and "
                f"{int((~some).sum())} such rows in all; drop those queries"
            )
        if negatives is not None and (positives & ~negatives).any():
            row, column = (positives & ~negatives).nonzero()[0].tolist()
            raise ValueError(
                f"negatives must be True at every positive, got False at [{row}, {column}]; True = allowed"
            )
    logits = scores(queries, documents, normalize=normalize, validate=validate) / temperature
    others = ~positives if negatives is None else ~positives & negatives
    lowest = torch.finfo(logits.dtype).min / 2  # not -inf, whose differences are NaN
    right = logits.masked_fill(~positives, lowest).logsumexp(1)
    wrong = logits.masked_fill(~others, lowest).logsumexp(1)
    values = torch.logaddexp(torch.zeros_like(right), wrong - right).masked_fill(~positives.any(1), 0)
    return reduce_rows(values, reduction).to(queries.dtype)
