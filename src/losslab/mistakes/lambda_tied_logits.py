"""Pair weights from rank positions, which an unstable sort gives to ties as it likes."""

import torch
from torch import Tensor
from torch.nn.functional import softplus

from losslab.mistakes._examples import by_width
from losslab.mistakes._parts import mean_over_lists, real
from losslab.mistakes._record import Example, Mistake

LN2 = 0.6931471805599453  # from nats to bits


def lambda_loss(logits: Tensor, labels: Tensor, mask: Tensor | None, *, stable: bool) -> Tensor:
    """LambdaLoss with NDCG2++ weights (Wang et al., CIKM 2018; mu = 10): mean over queries of bits a pair, scalar."""
    dtype, mask = logits.dtype, real(mask, logits)
    # The mistake, with stable=False: tied documents get their ranks in an order that depends on the row's width.
    ranking = logits.masked_fill(~mask, -torch.inf).sort(dim=1, descending=True, stable=stable).indices
    mask = mask.gather(1, ranking)
    z, y = (x.double().gather(1, ranking).masked_fill(~mask, 0) for x in (logits, labels))
    rank = torch.arange(1, z.shape[1] + 1, device=z.device).double()
    discount = 1 / (1 + rank).log2()  # (N,)
    ideal = (2 ** y.sort(dim=1, descending=True).values - 1) @ discount  # (B,)
    gain = (2**y - 1) / ideal.clamp(min=1e-10)[:, None]
    apart = (rank[:, None] - rank).abs().clamp(min=1)  # (N, N) ranks between i and j
    by_distance = 1 / (1 + apart).log2() - 1 / (2 + apart).log2()
    by_rank = (discount[:, None] - discount).abs()
    weights = (10 * by_distance + by_rank) * (gain[:, :, None] - gain[:, None, :]).abs()  # (B, N, N), 0 where i = j
    pairs = (y[:, :, None] > y[:, None, :]) & mask[:, :, None] & mask[:, None, :]
    costs = (weights * softplus(z[:, None, :] - z[:, :, None])).masked_fill(~pairs, 0).sum((1, 2))
    return mean_over_lists(costs / LN2 / pairs.sum((1, 2)).clamp(min=1), mask, dtype)


def wrong(logits: Tensor, labels: Tensor, mask: Tensor | None = None) -> Tensor:
    """LambdaLoss with torch's default sort."""
    return lambda_loss(logits, labels, mask, stable=False)


def right(logits: Tensor, labels: Tensor, mask: Tensor | None = None) -> Tensor:
    """LambdaLoss with a stable sort: ties keep the order in which they were given, at any width."""
    return lambda_loss(logits, labels, mask, stable=True)


MISTAKE = Mistake(
    name="lambda_tied_logits",
    kind="listwise",
    title="Tied scores, weighted by width",
    symptom="With equal scores, as from a fresh head, the loss changes once some list in the batch has 17 documents.",
    cause="Pair weights come from the ranks of the scores, and an unstable sort ranks ties by the width of the row.",
    source="huggingface/sentence-transformers (cross_encoder/losses/lambda_loss.py; no report found)",
    case="lambda-tied-logits",
    breaks="tie_order",
    wrong=wrong,
    right=right,
    example=Example(
        {"logits": [0.0, 0.0, 0.0, 0.0], "labels": [0, 1, 0, 2], "widths": [4, 16, 17, 40]},
        by_width,
        unit="bits a pair",
    ),
)
