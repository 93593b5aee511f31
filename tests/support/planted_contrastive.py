"""InfoNCE as a textbook has it, in float32, and the same with one fault planted.

The right one shares no code with the library, and computes as most people would: it is what the tolerances of the
contracts have to let through.
"""

import torch
from torch.nn import functional


def info_nce(
    queries,
    documents,
    *,
    temperature=0.05,
    negatives=None,
    hard_negatives=None,
    hard_mask=None,
    positive_offset=0,
    symmetric=False,
    normalize=True,
    reduction="mean",
    chunk_size=None,
    fault=None,
):
    """Cross-entropy over rows of scores; of columns too if symmetric."""
    given, b = queries.dtype, len(queries)
    if given in (torch.bfloat16, torch.float16) and fault != "native half":
        queries, documents = queries.float(), documents.float()
        hard_negatives = None if hard_negatives is None else hard_negatives.float()
    if hard_negatives is not None:
        hard_mask = torch.ones_like(hard_negatives[..., 0], dtype=torch.bool) if hard_mask is None else hard_mask
        hard_negatives = hard_negatives.masked_fill(~hard_mask[..., None], 1.0)
    if normalize and fault != "not normalised":
        queries, documents = functional.normalize(queries, dim=1), functional.normalize(documents, dim=1)
        hard_negatives = None if hard_negatives is None else functional.normalize(hard_negatives, dim=2)
    scores = queries @ documents.T
    if fault == "temperature ignored":
        temperature = 0.05
    if fault == "chunks alone" and chunk_size is not None:
        others = torch.arange(b)[:, None] // chunk_size != torch.arange(len(documents)) // chunk_size
        scores = scores.masked_fill(others, -torch.inf)
    if negatives is not None and fault != "mask ignored":
        scores = scores.masked_fill(~negatives, -torch.inf)
    if hard_negatives is not None:
        hard = torch.einsum("bd,bhd->bh", queries, hard_negatives)
        if fault != "padding counts":
            hard = hard.masked_fill(~hard_mask, -torch.inf)
        scores = torch.cat([scores, hard], 1)
    logits = scores / temperature
    if fault == "limited":
        logits = logits.clamp(max=7)
    targets = torch.arange(b, device=None if fault == "cpu targets" else queries.device)
    if fault != "offset ignored":
        targets = targets + positive_offset
    if fault == "plain exponentials":
        mass = logits.exp()
        values = -(mass.gather(1, targets[:, None])[:, 0] / mass.sum(1)).log()
    else:
        values = functional.cross_entropy(logits, targets, reduction="none")
    if symmetric:
        columns = logits if fault == "rows twice" else logits.T
        values = (values + functional.cross_entropy(columns, targets, reduction="none")) / 2
    if fault == "guessing costs nothing":
        values = values - torch.tensor(float(len(documents))).log()
    if fault == "one more":
        values = torch.logaddexp(values, torch.zeros_like(values))
    if fault == "weights off":
        values = values * 1.001
    if fault == "last row dropped" and b > 1:
        values = values[:-1]
    if reduction == "none":
        return values.to(given)
    if reduction == "sum":
        return values.sum().to(given)
    if fault == "learned rows dropped":
        return (values.sum() / (values > 0).sum().clamp(min=1)).to(given)
    return values.mean().to(given)


def with_fault(fault):
    """The loss with this fault."""

    def faulty(
        queries,
        documents,
        *,
        temperature=0.05,
        negatives=None,
        hard_negatives=None,
        hard_mask=None,
        positive_offset=0,
        symmetric=False,
        chunk_size=None,
    ):
        return info_nce(
            queries,
            documents,
            temperature=temperature,
            negatives=negatives,
            hard_negatives=hard_negatives,
            hard_mask=hard_mask,
            positive_offset=positive_offset,
            symmetric=symmetric,
            chunk_size=chunk_size,
            fault=fault,
        )

    return faulty


def plain(queries, documents):
    """No keyword at all."""
    return info_nce(queries, documents)
