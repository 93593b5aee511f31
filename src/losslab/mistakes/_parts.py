"""What the wrong losses get right, so that each shows one mistake only.

Listwise: (B, N) = queries, slots a list. Contrastive: (B, M) = queries, documents; document i is query i's positive.
Token: (B, T, V) = texts, positions, vocabulary; label -100 is no target.
Matryoshka: (B, d) = queries or documents, dimensions; a size is a number of dimensions.
"""

from __future__ import annotations

from collections.abc import Sequence

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


def as_served(embeddings: Tensor, dim: int, size: int) -> Tensor:
    """What is searched at a size: the embeddings as they are if it is all of them, else unit prefixes, (..., dim)."""
    return embeddings if dim == size else unit_prefix(embeddings, dim)


def unit_prefix(embeddings: Tensor, dim: int) -> Tensor:
    """First dimensions of every vector, divided by their length, in float32 at least: (..., d) -> (..., dim)."""
    prefix = wide(embeddings)[..., :dim]
    lengths: Tensor = torch.linalg.vector_norm(prefix, dim=-1, keepdim=True)
    return prefix / lengths


def wide(embeddings: Tensor) -> Tensor:
    """Half precision in float32, everything else as it is."""
    return embeddings if embeddings.dtype.itemsize >= 4 else embeddings.float()


def weighted(dims: Sequence[int], weights: Sequence[float] | None) -> list[tuple[int, float]]:
    """Sizes with what each counts, 1 if nothing was said."""
    return list(zip(dims, weights or [1.0] * len(dims), strict=True))


def next_tokens(logits: Tensor, labels: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """Rows in float64, the tokens they predict (0 where not counted), and which count: (B, T - 1, V), (B, T - 1) twice.

    A token counts if its label is not -100 and, given a mask, it and the token before are real.
    """
    counted = labels[:, 1:] != -100
    if mask is not None:
        counted = counted & mask[:, 1:] & mask[:, :-1]
    return logits[:, :-1].double(), labels[:, 1:].masked_fill(~counted, 0), counted


def token_costs(rows: Tensor, tokens: Tensor) -> Tensor:
    """-log softmax(row)[token], in float64, whatever at -100: (B, T, V), (B, T) -> (B, T)."""
    rows = rows.double()
    return rows.logsumexp(2) - rows.gather(2, tokens.clamp(min=0)[:, :, None])[:, :, 0]


def mean_over_tokens(costs: Tensor, counted: Tensor) -> Tensor:
    """Mean over the counted tokens of all texts; nan if there is none: (B, T) twice -> scalar."""
    return costs.masked_fill(~counted, 0).sum() / counted.sum()


def next_token_mean(logits: Tensor, labels: Tensor, mask: Tensor | None = None) -> Tensor:
    """Cross-entropy of the next token as it should be: (B, T, V), (B, T) -> scalar."""
    rows, tokens, counted = next_tokens(logits, labels, mask)
    return mean_over_tokens(token_costs(rows, tokens), counted)
