"""InfoNCE with in-batch negatives: each query must find its own document among all documents of the batch."""

from torch import Tensor

from losslab.losses._in_batch import InBatch, Options
from losslab.losses._pairs import (
    Reduction,
    check_cells,
    check_chunk,
    check_embeddings,
    check_hard_negatives,
    check_offset,
    check_own_cells,
    check_positive,
    check_reduction,
    reduce_rows,
)


def info_nce(
    queries: Tensor,  # (B, d)
    documents: Tensor,  # (M, d)
    *,
    temperature: float = 0.05,
    negatives: Tensor | None = None,  # (B, M) bool
    hard_negatives: Tensor | None = None,  # (B, H, d)
    hard_mask: Tensor | None = None,  # (B, H) bool
    positive_offset: int = 0,
    symmetric: bool = False,
    normalize: bool = True,
    reduction: Reduction = "mean",
    chunk_size: int | None = None,
    validate: bool = True,
) -> Tensor:
    r"""Cross-entropy, in nats, of finding each query's own document among the batch's.

    With cosines :math:`s_{ij}` of query i and document j, :math:`i^+` = i + ``positive_offset`` and temperature
    :math:`\tau`,

    .. math:: L_i = -\log p_{i i^+}, \quad p_{ij} = \frac{e^{s_{ij}/\tau}}{\sum_{k \in A_i} e^{s_{ik}/\tau}}, \qquad
              \frac{\partial L_i}{\partial s_{ij}} = \frac{p_{ij} - [j = i^+]}{\tau}

    where :math:`A_i` is the positive, the negatives allowed and query i's hard negatives. An untrained model, all
    cosines equal, has :math:`L = \ln M`; a query that has no negative at all has 0, and is counted.

    Parameters
    ----------
    queries : (B, d) floating
    documents : (M, d) floating
        Document i + ``positive_offset`` is the positive of query i and a negative of all others. M may exceed B.
    temperature : float
        Divides the scores. sentence-transformers' ``scale`` is its inverse, 20 there.
    negatives : (B, M) bool, optional
        True = allowed as a negative, and at every query's own positive. See `losslab.losses.false_negatives`.
    hard_negatives : (B, H, d) floating, optional
        Further negatives of each query, seen by that query alone. Any number of them, 0 too.
    hard_mask : (B, H) bool, optional
        True = real. What stands in other slots, NaN included, does not matter and gets gradient exactly 0.
    positive_offset : int
        Where the queries' documents begin in ``documents``: a process's rank times B after an all-gather.
    symmetric : bool
        Mean with the other direction, in which each document must find its query among the queries: the same scores,
        normalised by column. Needs M = B. There ``negatives[i, j]`` says whether query i may be a negative of document
        j: the same cells, read by column. Hard negatives have no column, so only queries meet them.
    normalize : bool
        Cosines. False: dot products as they are, whose size then acts as a temperature of its own.
    reduction : {"mean", "sum", "none"}
        Mean or sum over the B queries; "none" gives one value a query, (B,).
    chunk_size : int, optional
        Work on so many queries at a time and never hold more than chunk_size × M scores: computed once more in the
        backward pass, about a third more time for the same value and gradient.
    validate : bool
        False skips the checks that look at values. A zero vector then has cosine 0 with everything, and gradient 0.

    Returns
    -------
    Tensor
        Scalar, or (B,), in the dtype of ``queries``. Half precision is computed in float32 at least, autocast or not;
        small batches, low temperatures and dot products in float64. It can be differentiated once, not twice.

    Raises
    ------
    ValueError
        If shapes, types or devices disagree; ``temperature`` is not a finite number above 0; some query has no
        positive or a masked one; an embedding is not finite, or zero and to be normalised.

    References
    ----------
    van den Oord, Li and Vinyals, "Representation learning with contrastive predictive coding", 2018, equation 4;
    Henderson et al., "Efficient natural language response suggestion for Smart Reply", 2017, section 4.4 (in-batch
    negatives); Radford et al., "Learning transferable visual models from natural language supervision", 2021, figure 3
    (symmetric).
    """
    check_embeddings(queries, documents)
    check_positive("temperature", temperature)
    check_reduction(reduction)
    check_offset(positive_offset, len(queries), len(documents))
    if chunk_size is not None:
        check_chunk(chunk_size)
    if symmetric and len(documents) != len(queries):
        raise ValueError(
            f"symmetric=True needs as many documents as queries, got {len(documents)} and {len(queries)}: "
            "every document must have a query to find"
        )
    if negatives is not None:
        check_cells("negatives", negatives, queries, documents, true="allowed as a negative")
        if validate:
            check_own_cells(negatives, positive_offset)
    check_hard_negatives(hard_negatives, hard_mask, queries)
    options = Options(float(temperature), positive_offset, symmetric, normalize, chunk_size, validate)
    values = InBatch.apply(queries, documents, hard_negatives, negatives, hard_mask, options)  # type: ignore[no-untyped-call]
    return reduce_rows(values, reduction).to(queries.dtype)
