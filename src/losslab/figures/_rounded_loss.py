"""The loss of one token in a number format, in two orders, as in ``js/rounded_loss.js``.

log(softmax) forms the probability, log-softmax subtracts log-sum-exp. As PyTorch has it on a CPU, exponentials, their
sum and its reciprocal are float32 (in float64: float64); the probability is then rounded to the format, as is each log.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, floor, inf, log, log2

from losslab.figures._formats import BF16, FP16, FP32, Format


@dataclass(frozen=True)
class Kind:
    """A format in which probabilities are kept, and the one they are computed in; None is Python's own float64."""

    name: str
    bits: int
    low: int
    form: Format | None
    inside: Format | None

    @property
    def least(self) -> int:
        """The exponent of the smallest number, which is subnormal."""
        return self.low - self.bits + 1


def _kind(name: str, form: Format) -> Kind:
    return Kind(name, form.bits, form.low, form, FP32)


KINDS = {
    "float64": Kind("float64", 53, -1022, None, None),
    "float32": _kind("float32", FP32),
    "bfloat16": _kind("bfloat16", BF16),
    "float16": _kind("float16", FP16),
}


@dataclass(frozen=True)
class Loss:
    """The probability that is kept, minus its log, and the loss without it."""

    p: float
    wrong: float
    right: float


def exact_loss(gap: float, others: int) -> float:
    """Return −log p of a token whose logit lies `gap` below those of `others` tokens, all equal."""
    return gap + log(others + exp(-gap))


def loss_of(gap: float, others: int, kind: Kind) -> Loss:
    """Return the same as computed in a number format."""

    def inside(value: float) -> float:
        return kind.inside.round(value) if kind.inside else value

    def keep(value: float) -> float:
        return kind.form.round(value) if kind.form else value

    e = inside(exp(-gap))
    total = inside(others + e)
    p = keep(inside(e * inside(1 / total)))
    right = keep(inside(gap + inside(log(total))))  # the largest logit is 0
    return Loss(p, keep(inside(-log(p))) if p else inf, right)


def bits_left(p: float, kind: Kind) -> int:
    """Return how many bits a probability is kept with: all in the normal range, fewer below it, none at 0."""
    if not p:
        return 0
    return kind.bits if p >= 2.0**kind.low else floor(log2(p) + 1e-9) - kind.least + 1
