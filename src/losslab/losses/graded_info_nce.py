"""InfoNCE with soft targets: a query's documents are right to different degrees."""

import torch
from torch import Tensor

from losslab.losses._lists import seen
from losslab.losses._pairs import (
    Reduction,
    check_cells,
    check_device,
    check_embeddings,
    check_positive,
    check_reduction,
    reduce_rows,
    scores,
)


def graded_info_nce(
    queries: Tensor,  # (B, d)
    documents: Tensor,  # (M, d)
    labels: Tensor,  # (B, M)
    *,
    temperature: float = 0.05,
    label_temperature: float = 1.0,
    mask: Tensor | None = None,  # (B, M) bool
    normalize: bool = True,
    reduction: Reduction = "mean",
    validate: bool = True,
) -> Tensor:
    r"""Cross-entropy, in nats, between a softmax of the gains and a softmax of the scores.

    With gains :math:`y_{ij}`, label temperature :math:`\tau_y` and both softmaxes over what ``mask`` allows,

    .. math:: L_i = -\sum_j t_{ij} \log p_{ij}, \quad t_i = \mathrm{softmax}(y_i / \tau_y), \;
              p_i = \mathrm{softmax}(s_i / \tau), \qquad
              \frac{\partial L_i}{\partial s_{ij}} = \frac{p_{ij} - t_{ij}}{\tau}.

    Its least value is not 0 but the entropy of the targets. No gradient flows into the labels: targets made from the
    model's own scores would let it satisfy the loss by making all embeddings equal.

    Parameters
    ----------
    queries, documents, temperature, normalize, reduction
        As for :func:`losslab.losses.info_nce`.
    labels : (B, M) real
        Gains; higher is better. Only their differences within a row matter.
    label_temperature : float
        Divides the gains: towards 0 only the best documents of a query are targets.
    mask : (B, M) bool, optional
        True = judged. What ``labels`` holds elsewhere, NaN included, does not matter, and those cells get no gradient.
    validate : bool
        False skips the checks that look at values. A query with nothing judged then has loss 0, and is counted.

    Returns
    -------
    Tensor
        Scalar, or (B,), in the dtype of ``queries``; computed in float64 (float32 on MPS).

    Raises
    ------
    ValueError
        As for ``info_nce``; or if a judged label is not finite, or a query has nothing judged.

    References
    ----------
    Cao, Qin, Liu, Tsai and Li, "Learning to rank: from pairwise approach to listwise approach", ICML 2007, section 5:
    ListNet, with cosines for scores.
    """
    check_embeddings(queries, documents)
    check_positive("temperature", temperature)
    check_positive("label_temperature", label_temperature)
    check_reduction(reduction)
    shape = (len(queries), len(documents))
    if not isinstance(labels, Tensor) or labels.is_complex() or labels.shape != shape:
        raise ValueError(f"labels must be a real tensor of shape {shape}, one gain a cell, got {seen(labels)}")
    check_device("labels", labels, queries)
    if mask is None:
        mask = torch.ones_like(labels, dtype=torch.bool)
    check_cells("mask", mask, queries, documents, true="judged")
    if validate:
        _look_at_labels(labels, mask)
    logits = scores(queries, documents, normalize=normalize, validate=validate) / temperature
    lowest = torch.finfo(logits.dtype).min / 2  # not -inf: a row with nothing judged must not make NaN
    gains = labels.detach().to(logits.dtype).masked_fill(~mask, 0) / label_temperature
    targets = gains.masked_fill(~mask, lowest).softmax(1)
    values = -(targets * log_shares(logits.masked_fill(~mask, lowest))).masked_fill(~mask, 0).sum(1)
    return reduce_rows(values, reduction).to(queries.dtype)


def log_shares(logits: Tensor) -> Tensor:
    """Log softmax of each row, to full relative precision for a share near 1 too."""
    peak, place = logits.max(1, keepdim=True)
    behind = logits - peak.detach()
    rest = behind.exp().scatter(1, place, 0).sum(1, keepdim=True)
    first = behind.gather(1, place)  # 0, but not its gradient
    return behind - torch.log1p(rest + first.expm1())


def _look_at_labels(labels: Tensor, mask: Tensor) -> None:
    wrong = mask & ~labels.isfinite()
    if wrong.any():
        row, column = wrong.nonzero()[0].tolist()
        raise ValueError(
            f"labels must be finite where judged, got {labels[row, column].item()} at [{row}, {column}]; "
            "if that cell is not judged, set mask to False there"
        )
    if not (some := mask.any(1)).all():
        raise ValueError(
            f"mask must leave something judged in every row, got nothing in row {int((~some).nonzero()[0])}; "
            "drop those queries"
        )
