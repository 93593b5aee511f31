"""The token loss as its formula stands: one token at a time, in fifty-digit decimal arithmetic.

Nothing here is shared with losslab. Logits enter as the numbers they are; sums, logarithms and gradients are all worked
out in decimals, so that no rounding is left to argue about.
"""

from decimal import Decimal, localcontext

DIGITS = 50


def counted(labels, mask=None, *, shift=True, ignore_index=-100):
    """Which positions predict a token that counts, as ``(text, position, token)``."""
    found = []
    for text, row in enumerate(labels):
        for position in range(len(row) - shift):
            target = position + shift
            real = mask is None or (mask[text][target] and mask[text][position])
            if row[target] != ignore_index and real:
                found.append((text, position, row[target]))
    return found


def token(logits, label):
    """NLL of one token, and its gradient by each logit, of logits as Python floats (-inf: forbidden)."""
    with localcontext() as context:
        context.prec = DIGITS
        numbers = [None if x == float("-inf") else Decimal(x) for x in logits]
        top = max(x for x in numbers if x is not None)
        weights = [Decimal(0) if x is None else (x - top).exp() for x in numbers]
        total = sum(weights)
        shares = [weight / total for weight in weights]
        gradient = [share - (v == label) for v, share in enumerate(shares)]
        nll = Decimal("Infinity") if numbers[label] is None else top + total.ln() - numbers[label]
    return nll, gradient


def loss(logits, labels, mask=None, *, shift=True, ignore_index=-100, reduction="mean"):
    """Value, and gradient as nested lists like ``logits``, both as decimals."""
    places = counted(labels, mask, shift=shift, ignore_index=ignore_index)
    total = Decimal(0)
    gradient = [[[Decimal(0)] * len(row) for row in text] for text in logits]
    with localcontext() as context:
        context.prec = DIGITS
        share = 1 / Decimal(len(places)) if reduction == "mean" else Decimal(1)
        for text, position, label in places:
            nll, by_logits = token(logits[text][position], label)
            total += nll * share
            gradient[text][position] = [g * share for g in by_logits]
    return total, gradient
