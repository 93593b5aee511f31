"""ListMLE as a textbook has it, in float32, and the same with one fault planted.

The right one shares no code with the library, and computes as most people would: it is what the tolerances of the
contracts have to let through.
"""

import functools

import torch


def list_mle(logits, labels, mask, fault=None, reduction="mean", count_short_lists=False, order="labels"):
    """Mean over lists of two documents or more of the Plackett-Luce negative log-likelihood."""
    raw = logits
    logits, labels = logits.masked_fill(~mask, 0), labels.masked_fill(~mask, 0)
    given = logits.float() if logits.dtype in (torch.bfloat16, torch.float16) else logits
    if fault != "native half":
        logits = given
    documents = mask.sum(1)
    if order == "labels" and fault != "labels ignored":
        keys = labels.masked_fill(~mask, -torch.inf)
        stable = fault != "unstable sort"
        places = keys.argsort(dim=1, descending=True, stable=stable)
        logits, mask = logits.gather(1, places), mask.gather(1, places)
    if fault == "plain exponentials":  # in float64, so that only extreme logits overflow or vanish
        mass = (logits.double().exp() * mask).flip(1).cumsum(1).flip(1)
        normaliser = mass.log().to(logits.dtype)
    else:
        lowest = torch.finfo(logits.dtype).min
        normaliser = logits.masked_fill(~mask, lowest).flip(1).logcumsumexp(1).flip(1)
    values = (normaliser - logits).masked_fill(~mask, 0)
    if fault == "cpu weights":
        values = values * torch.ones(values.shape[1])
    values = values.sum(1)
    if fault == "weights off":
        values = values * 1.001
    if fault == "padded length":
        values = values * mask.shape[1] / documents.clamp(min=1)
    if fault == "absolute logits":
        values = values + 0.01 * given.sum(1)
    rankable = documents >= 2
    values = values.masked_fill(~rankable, 0)
    if fault == "gradient at padding":
        leak = torch.nan_to_num(raw.masked_fill(mask, 0), 0, 0, 0).sum()
        values = values + (leak - leak.detach())  # adds 0, and a gradient
    if reduction == "none":
        return values
    if reduction == "sum":
        return values.sum()
    if fault == "per document":
        return values.sum() / (documents * rankable).sum()
    if fault == "short lists counted" or count_short_lists:
        return values.mean()
    return values.sum() / rankable.sum()


def with_fault(fault):
    """The loss with this fault."""
    loss = functools.partial(list_mle, fault=fault)
    return lambda logits, labels, mask: loss(logits, labels, mask)


def pairwise(logits, labels, mask):
    """Logistic loss of each list's mean pair, then the mean over lists: nothing of it is a Plackett-Luce model."""
    logits, labels = logits.masked_fill(~mask, 0).float(), labels.masked_fill(~mask, 0).float()
    pairs = (labels[:, :, None] > labels[:, None, :]) & mask[:, :, None] & mask[:, None, :]
    gaps = logits[:, :, None] - logits[:, None, :]
    each = torch.nn.functional.softplus(-gaps).masked_fill(~pairs, 0).sum((1, 2)) / pairs.sum((1, 2)).clamp(min=1)
    rankable = mask.sum(1) >= 2
    return each.masked_fill(~rankable, 0).sum() / rankable.sum()
