"""Pair weights from rank positions, which an unstable sort gives to ties as it likes."""

import torch
from torch import Tensor

from losslab.mistakes._parts import real
from losslab.mistakes._record import Function, Mistake


def lambda_loss(logits: Tensor, labels: Tensor, mask: Tensor | None, *, stable: bool) -> Tensor:
    """LambdaLoss with NDCG2++ weights (Wang et al., CIKM 2018, equation 18; mu = 10), in bits a pair: scalar."""
    mask = real(mask, logits)
    # The mistake, with stable=False: tied documents get their ranks in an order that depends on the row's width.
    ranking = logits.float().masked_fill(~mask, -torch.inf).sort(dim=1, descending=True, stable=stable).indices
    mask = mask.gather(1, ranking)
    z, y = (x.double().gather(1, ranking).masked_fill(~mask, 0) for x in (logits, labels))
    rank = torch.arange(1, z.shape[1] + 1, device=z.device).double()
    discount = 1 / (1 + rank).log2()  # (N,)
    ideal = (2 ** y.sort(dim=1, descending=True).values - 1) @ discount  # (B,)
    gain = (2**y - 1) / ideal.clamp(min=1e-10)[:, None]
    apart = (rank[:, None] - rank).abs()  # (N, N)
    by_distance = (1 / (1 + apart.clamp(min=1)).log2() - 1 / (2 + apart.clamp(min=1)).log2()) * (apart > 0)
    by_rank = (discount[:, None] - discount).abs()
    weights = (10 * by_distance + by_rank) * (gain[:, :, None] - gain[:, None, :]).abs()
    pairs = (y[:, :, None] > y[:, None, :]) & mask[:, :, None] & mask[:, None, :]
    costs = weights * torch.nn.functional.softplus(z[:, None, :] - z[:, :, None]) / torch.log(z.new_tensor(2.0))
    return costs[pairs].sum() / pairs.sum().clamp(min=1)


def wrong(logits: Tensor, labels: Tensor, mask: Tensor | None = None) -> Tensor:
    """LambdaLoss with torch's default sort."""
    return lambda_loss(logits, labels, mask, stable=False)


def right(logits: Tensor, labels: Tensor, mask: Tensor | None = None) -> Tensor:
    """LambdaLoss with a stable sort: ties keep the order in which they were given, at any width."""
    return lambda_loss(logits, labels, mask, stable=True)


def width_changes_nothing(loss: Function, seed: int = 0) -> str | None:
    """Look for a list with tied logits, shortest first, whose loss changes when padded to up to 40 slots."""
    generator = torch.Generator().manual_seed(seed)
    for n in [n for n in range(2, 7) for _ in range(10)]:
        logits = torch.randint(0, 2, (1, n), generator=generator).double()
        labels = torch.randint(0, 3, (1, n), generator=generator).double()
        width = int(torch.randint(n, 41, (), generator=generator))
        padded = [
            torch.nn.functional.pad(row, (0, width - n)) for row in (logits, labels, torch.ones_like(logits).bool())
        ]
        alone, beside = loss(logits, labels, None).item(), loss(*padded).item()
        if abs(alone - beside) > 1e-9:
            found = f"{alone:.6f} alone, {beside:.6f} at width {width}"
            return f"logits {logits[0].tolist()}, labels {labels[0].tolist()}: {found}"
    return None


MISTAKE = Mistake(
    name="lambda_tied_logits",
    kind="function",
    title="Tied scores, weighted by width",
    symptom="With equal scores, as from a fresh head, the loss changes once some list in the batch has 17 documents.",
    cause="Pair weights come from the ranks of the scores, and an unstable sort ranks ties by the width of the row.",
    source="huggingface/sentence-transformers (cross_encoder/losses/lambda_loss.py; no report found)",
    case="lambda-tied-logits",
    breaks="width changes no loss",
    wrong=wrong,
    right=right,
    property=width_changes_nothing,
)
