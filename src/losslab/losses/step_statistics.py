"""What to log at every step of a contrastive training: the loss alone hides much."""

from dataclasses import dataclass

import torch
from torch import Tensor

from losslab.losses._pairs import (
    check_cells,
    check_embeddings,
    check_offset,
    check_own_cells,
    check_positive,
    row_norms,
    scores,
)
from losslab.losses.info_nce import info_nce


@dataclass(frozen=True)
class StepStatistics:
    """One step's record. Similarities are cosines; means are over the queries.

    Attributes
    ----------
    loss
        `info_nce`, mean, in nats.
    positive_similarity
        Mean cosine of query and positive.
    hardest_negative_similarity
        Mean, over queries that have any, of the highest cosine among allowed negatives. If it rises together with
        ``positive_similarity``, everything is drawing together, which the loss need not show.
    positive_rank
        Mean rank of the positive among allowed candidates, from 1; ties count half.
    top1_accuracy
        Share of queries whose positive is above all allowed negatives; a tie is a miss.
    temperature
        As given.
    negatives_per_query
        Mean number of allowed negatives.
    filtered_false_negatives
        Cells of the batch that the mask forbids, in all.
    median_norm
        Median length of the embeddings, queries and documents together, before normalising.
    """

    loss: float
    positive_similarity: float
    hardest_negative_similarity: float
    positive_rank: float
    top1_accuracy: float
    temperature: float
    negatives_per_query: float
    filtered_false_negatives: int
    median_norm: float


@torch.no_grad()
def step_statistics(
    queries: Tensor,  # (B, d)
    documents: Tensor,  # (M, d)
    *,
    temperature: float,
    negatives: Tensor | None = None,  # (B, M) bool
    positive_offset: int = 0,
) -> StepStatistics:
    """Look at one batch as `info_nce` sees it, without gradient.

    Parameters
    ----------
    queries, documents, temperature, negatives, positive_offset
        As for :func:`losslab.losses.info_nce`.

    Returns
    -------
    StepStatistics
        Plain numbers. Without any negative the hardest one's similarity is NaN.

    Raises
    ------
    ValueError
        As for ``info_nce``.
    """
    check_embeddings(queries, documents)
    check_positive("temperature", temperature)
    check_offset(positive_offset, len(queries), len(documents))
    if negatives is None:
        negatives = torch.ones(len(queries), len(documents), dtype=torch.bool, device=queries.device)
    check_cells("negatives", negatives, queries, documents, true="allowed as a negative")
    check_own_cells(negatives, positive_offset)
    cosines = scores(queries, documents, normalize=True, validate=True)
    own = cosines.diagonal(positive_offset).clone()
    others = cosines.masked_fill(~negatives, -torch.inf)
    others.diagonal(positive_offset).fill_(-torch.inf)
    hardest = others.amax(1)
    above, level = (others > own[:, None]).sum(1), (others == own[:, None]).sum(1)
    loss = info_nce(
        queries,
        documents,
        temperature=temperature,
        negatives=negatives,
        positive_offset=positive_offset,
        validate=False,
    )
    return StepStatistics(
        loss=loss.item(),
        positive_similarity=own.mean().item(),
        hardest_negative_similarity=hardest[hardest > -torch.inf].mean().item(),
        positive_rank=(1 + above + level / 2).mean(dtype=own.dtype).item(),
        top1_accuracy=(own > hardest).to(own.dtype).mean().item(),
        temperature=float(temperature),
        negatives_per_query=(negatives.sum().item() - len(queries)) / len(queries),
        filtered_false_negatives=int((~negatives).sum()),
        median_norm=torch.cat([row_norms(queries), row_norms(documents)]).median().item(),
    )
