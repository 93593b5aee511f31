"""What the wrong losses get right, so that each shows one mistake only.

Listwise: (B, N) = queries, slots a list. Contrastive: (B, M) = queries, documents; document i is query i's positive.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import normalize


def real(mask: Tensor | None, logits: Tensor) -> Tensor:
    """Return the mask, all True where none was given: (B, N) bool."""
    return torch.ones_like(logits, dtype=torch.bool) if mask is None else mask


def by_label(logits: Tensor, labels: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Best document first, ties as given, padding last: logits in float64 (0 at padding) and mask, (B, N) each."""
    ranking = labels.double().masked_fill(~mask, -torch.inf).argsort(dim=1, descending=True, stable=True)
    mask = mask.gather(1, ranking)
    return logits.double().gather(1, ranking).masked_fill(~mask, 0), mask


def choice_costs(logits: Tensor, mask: Tensor) -> Tensor:
    """Cost of every choice of lists in rank order, log(sum_{j >= i} exp(z_j)) - z_i, 0 at padding: (B, N)."""
    logits = logits.masked_fill(~mask, torch.finfo(logits.dtype).min)
    log_mass_left = logits.flip(1).logcumsumexp(1).flip(1)
    return (log_mass_left - logits).masked_fill(~mask, 0)


def mean_over_lists(costs: Tensor, mask: Tensor, dtype: torch.dtype) -> Tensor:
    """Mean of one cost a list, (B,), over the lists that have at least two documents; the others teach nothing."""
    counted = mask.sum(1) >= 2
    return (costs.masked_fill(~counted, 0).sum() / counted.sum().clamp(min=1)).to(dtype)


def cosines(queries: Tensor, documents: Tensor) -> Tensor:
    """Cosine of every query with every document, in float64: (B, d), (M, d) -> (B, M)."""
    return normalize(queries.double(), dim=1) @ normalize(documents.double(), dim=1).T


def own_costs(logits: Tensor) -> Tensor:
    """What each query pays for finding its own document among all, (B, M) -> (B,)."""
    return logits.logsumexp(1) - logits.diagonal()
