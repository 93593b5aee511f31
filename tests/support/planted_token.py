"""Cross-entropy of the next token as a textbook has it, in float32, and the same with one fault planted.

The right one shares no code with the library, and computes as most people would: it is what the tolerances of the
contracts have to let through.
"""

import functools
import math

import torch


def token_nll(
    logits, labels, mask=None, num_items_in_batch=None, *, shift=True, reduction="mean", base=math.e, fault=None
):
    """Mean over targets of log-sum-exp minus the right token's logit."""
    given = logits.dtype
    if given in (torch.bfloat16, torch.float16) and fault != "half sum":
        logits = logits.float()
    real = torch.ones_like(labels, dtype=torch.bool) if mask is None or fault == "mask ignored" else mask
    if fault == "right padding assumed" and mask is not None:
        real = torch.arange(labels.shape[1], device=labels.device) < mask.sum(1, keepdim=True)
    if shift and fault != "no shift":
        ahead = 2 if fault == "shifts twice" else 1
        logits, labels, real = logits[:, :-ahead], labels[:, ahead:], real[:, ahead:] & real[:, :-ahead]
    counted = (labels != -100) & real
    if fault == "ignored not known":
        counted = real & (counted.flip(1).cumsum(1).flip(1) > 0)  # all up to the last real token
    chosen = labels.masked_fill(labels == -100, 0)
    if fault == "cpu index":
        chosen = torch.zeros(labels.shape, dtype=torch.long) + chosen
    right = logits.gather(2, chosen[:, :, None])[:, :, 0]
    if fault == "probability first":
        values = -logits.softmax(2).gather(2, chosen[:, :, None])[:, :, 0].log()
    elif fault == "one-hot sum":
        one_hot = torch.zeros_like(logits).scatter(2, chosen[:, :, None], 1)
        values = -(one_hot * logits.log_softmax(2)).sum(2)
    elif fault == "half sum":
        values = logits.exp().sum(2).log() - right
    elif fault == "quiet":
        values = torch.cat([logits, torch.zeros_like(logits[:, :, :1])], 2).logsumexp(2) - right
    elif fault == "frozen normaliser":
        values = logits.logsumexp(2).detach() - right
    else:
        values = logits.logsumexp(2) - right
    if fault == "guessing is free":
        values = values - math.log(logits.shape[2])
    if fault == "bits":
        values = values / math.log(2)
    if fault == "weights off":
        values = values * 1.0001
    values = values.masked_fill(~counted, 0)
    if reduction == "sum":
        return values.sum() / math.log(base)
    n = counted.sum()
    if fault == "width":
        n = torch.full_like(n, counted.numel())
    if fault == "no target is 0":
        n = n.clamp(min=1)
    if fault == "mean of texts":
        per_text, some = values.sum(1) / counted.sum(1), counted.any(1)
        return per_text.masked_fill(~some, 0).sum() / some.sum()
    if num_items_in_batch is not None and fault != "number ignored":
        n = num_items_in_batch
    return values.sum() / n / math.log(base)


def with_fault(fault):
    """The loss with this fault."""
    loss = functools.partial(token_nll, fault=fault)

    def faulty(logits, labels, mask=None, num_items_in_batch=None):
        return loss(logits, labels, mask, num_items_in_batch)

    return faulty


def plain(logits, labels):
    """The right loss without a keyword."""
    return token_nll(logits, labels)


def perplexity(logits, labels):
    """The right perplexity, a plain number, as a metric gives."""
    return math.exp(token_nll(logits, labels).item())
