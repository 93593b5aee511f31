"""Cross-entropy of the next token, in nats: what perplexity is made of."""

import torch
from torch import Tensor
from torch.nn.functional import softplus

from losslab.language._inputs import (
    Reduction,
    Targets,
    check_logits,
    check_reduction,
    check_some_counted,
    read_targets,
    reduce_tokens,
    refuse_row,
)


def token_nll(
    logits: Tensor,  # (B, T, V)
    labels: Tensor,  # (B, T)
    *,
    shift: bool = True,
    mask: Tensor | None = None,  # (B, T) bool
    ignore_index: int = -100,
    reduction: Reduction = "mean",
    validate: bool = True,
) -> Tensor:
    r"""Negative log-likelihood of tokens under a language model's logits, in nats.

    With logits :math:`x_{tv}` and y the token that position t has to predict, ``labels[t + 1]``,

    .. math:: L_t = -\log \frac{e^{x_{ty}}}{\sum_v e^{x_{tv}}} = \log\left(1 + e^{d_t}\right), \qquad
              d_t = \log \sum_{v \ne y} e^{x_{tv} - x_{ty}}

    where :math:`d_t` sets the token against all others together. The right-hand form is the one computed: no
    probability is formed that could underflow, and a token that is almost certain keeps its digits. A model that gives
    every token the same score has L = ln V.

    Parameters
    ----------
    logits : (B, T, V) floating
        One score a token of the vocabulary; -inf forbids a token, and a forbidden token that occurs has L = inf.
    labels : (B, T) whole numbers
        With ``shift``, the token ids that went into the model.
    shift : bool
        True: position t is scored on label t + 1; the last logits and the first label have no counterpart. False:
        position t is scored on label t, for labels that were shifted beforehand.
    mask : (B, T) bool, optional
        True = a real token; what a tokenizer calls the attention mask. Counted is a target that is real and is
        predicted from a real position, so that padding left or right, much or little, makes no difference. What stands
        in other slots, NaN included, does not matter and gets gradient exactly 0.
    ignore_index : int
        A label that is not to be counted: padding, or a prompt. It speaks of the target alone: the first token after
        ignored ones is counted, so **left padding needs a mask**. Of a text that uses it, every target that ``mask``
        calls padding must be marked: else mask and ignore index disagree. The reverse, a real token that is ignored,
        is how prompts are left out.
    reduction : {"mean", "sum", "none"}
        Mean or sum over the counted tokens of the batch, texts weighted by their length. "none": one value a target,
        (B, T - 1) with ``shift`` and (B, T) without, 0 where not counted; do not average these, sum and divide by the
        number counted.
    validate : bool
        False skips the checks that look at values, and so wait for a GPU. A batch with no counted token is then nan.

    Returns
    -------
    Tensor
        In the type of ``logits``; float32 for half precision, which is computed in float32.

    Raises
    ------
    ValueError
        If shapes, types or devices disagree; T is 1 with ``shift``; a counted label is no token; no token is counted;
        mask and ignore index disagree; or the logits of a counted position hold NaN or +inf, or are all -inf.

    References
    ----------
    Bengio, Ducharme, Vincent and Jauvin, "A neural probabilistic language model", JMLR 3, 2003, section 3.1; Jelinek,
    Mercer, Bahl and Baker, "Perplexity: a measure of the difficulty of speech recognition tasks", JASA 62, 1977.
    """
    check_logits(logits)
    check_reduction(reduction)
    positions, vocabulary = (logits.shape[0], logits.shape[1]), logits.shape[2]
    targets = read_targets(
        positions, vocabulary, logits.device, labels, mask, shift=shift, ignore_index=ignore_index, validate=validate
    )
    if validate:
        check_some_counted(targets)
    nll = each_nll(logits[:, :-1] if shift else logits, targets, validate=validate)
    return reduce_tokens(nll, targets.counted, reduction)


def each_nll(logits: Tensor, targets: Targets, *, validate: bool) -> Tensor:
    """One value a target, (B, S), from the logits that predict them, (B, S, V); 0 where not counted."""
    if logits.dtype not in (torch.float32, torch.float64):
        logits = logits.float()
    skipped, label = ~targets.counted, targets.labels[..., None]
    own = logits.gather(2, label)[..., 0].masked_fill(skipped, 0)
    # Counting from the own logit first: after that, adding a number to all logits can no longer cost digits.
    origin = own.detach().masked_fill(own == -torch.inf, 0)
    # The own slot gets the lowest finite number: exp makes it 0, and unlike -inf it has a gradient where it is alone.
    lowest = torch.finfo(logits.dtype).min
    others = (logits - origin[..., None]).masked_fill_(skipped[..., None], 0).scatter_(2, label, lowest)
    against = others.logsumexp(2)
    if validate:
        _check_values(logits, own, against, targets)
    # Above 50 the 1 of 1 + exp(d) is below float64's resolution; the default threshold, 20, is not.
    return softplus(against - (own - origin), threshold=50.0).masked_fill(skipped, 0)


def _check_values(logits: Tensor, own: Tensor, against: Tensor, targets: Targets) -> None:
    """Refuse logits that are no scores; they show in their sums, so that it costs no pass over all of them."""
    lowest = torch.finfo(logits.dtype).min
    odd = ~(against < torch.inf) | ~(own < torch.inf) | ((against == lowest) & (own == -torch.inf))
    for text, place in (odd & targets.counted).nonzero().tolist():
        refuse_row(logits[text, place], f"logits[{targets.first[0] + text}, {targets.first[1] + place}]")
