"""The token loss under test: called on logits and labels, answering in nats, or with what is wrong.

Whatever a loss returns, contracts compare in nats: a loss in bits is multiplied by ln 2, of a perplexity the logarithm
is taken. What a report shows is what the loss itself returned.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from losslab.contracts.model import IGNORED, Counterexample, LossFailed, Texts, TokenConventions
from losslab.contracts.subject import failure, options_of
from losslab.contracts.wording import show

Array = NDArray[np.float64]
Whole = NDArray[np.int64]
Mask = NDArray[np.bool_]

#: Keywords by which losses are told how many targets the whole batch has of which they see a part.
NUMBER_OF_TARGETS = ("num_items_in_batch", "num_items", "num_tokens", "total_tokens")
MASKS = {"mask": torch.bool, "attention_mask": torch.int64}
KNOWN_BASES = (math.e, 2.0, 10.0)


@dataclass(frozen=True, eq=False)
class Taught:
    """What a batch taught.

    Attributes
    ----------
    value
        In nats; the mean's, if the loss returns a perplexity.
    gradient
        By the logits, (B, T, V), in nats; None if the value has none, as a metric's may not.
    raw
        The number the loss returned.
    """

    value: float
    gradient: Array | None
    raw: float
    dtype: torch.dtype = torch.float64

    @property
    def finite(self) -> bool:
        """Whether value and gradient are."""
        return math.isfinite(self.value) and (self.gradient is None or bool(np.isfinite(self.gradient).all()))


def targets(texts: Texts) -> tuple[Whole, Mask]:
    """The labels that rows 0 to T - 2 predict, and which of them count: (B, T - 1) each.

    A token is a target unless its label says otherwise, or the mask says that it, or the token before, is padding.
    """
    labels = texts.labels[:, 1:]
    counted = labels != IGNORED
    if texts.mask is not None:
        counted &= texts.mask[:, 1:] & texts.mask[:, :-1]
    return labels, counted


def count(texts: Texts) -> int:
    """The number of targets."""
    return int(targets(texts)[1].sum())


def costs(texts: Texts) -> tuple[Array, Array]:
    """-log softmax(row)[target] in nats, (B, T - 1), and softmax minus one-hot, (B, T - 1, V); 0 at what is no target.

    In float64, by the logarithm of a sum of exponentials with the largest logit taken out.
    """
    labels, counted = targets(texts)
    rows = texts.logits[:, :-1]
    top = rows.max(2, keepdims=True)
    weights = np.exp(rows - top)
    mass = weights.sum(2, keepdims=True)
    chosen = np.where(counted, labels, 0)[:, :, None]
    cost = (top + np.log(mass) - np.take_along_axis(rows, chosen, 2))[:, :, 0]
    slope = weights / mass - (np.arange(rows.shape[2]) == chosen)
    return np.where(counted, cost, 0.0), np.where(counted[:, :, None], slope, 0.0)


@dataclass
class TokenSubject:
    """A loss, its declared conventions, and remarks made while checking it."""

    loss: Any
    conventions: TokenConventions
    against: Any = None
    notes: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        """Say something about the contract being checked; the same remark is kept once."""
        if text not in self.notes:
            self.notes.append(text)

    @cached_property
    def _parameters(self) -> Mapping[str, inspect.Parameter]:
        return options_of(self.loss)

    def takes(self, keyword: str) -> bool:
        """Whether the loss's signature names this keyword, beside the two arguments that it is given by position."""
        return keyword in self._parameters

    @property
    def mask_keyword(self) -> str | None:
        """What it calls the mask, if it takes one."""
        return next((name for name in MASKS if self.takes(name)), None)

    @property
    def perplexity(self) -> bool:
        """Whether it returns one."""
        return self.conventions.returns == "perplexity"

    @property
    def noun(self) -> str:
        """What to call its value."""
        return self.conventions.returns

    @cached_property
    def base(self) -> float:
        """The base of its logarithm: the declared one, unless its slope says plainly that it is another common one.

        Contracts other than those about the unit judge a loss in the unit it has, so that one wrong unit does not break
        them all.
        """
        declared = self.conventions.base
        if self.perplexity:
            return math.e
        try:
            low, high = (self.run(behind(gap), gradients=False).raw for gap in (2.0, 4.0))
        except LossFailed:
            return declared
        n = count(behind(0.0)) if self.conventions.reduction == "sum" else 1
        nats = n * (math.log1p(math.exp(-4.0)) + 4.0 - math.log1p(math.exp(-2.0)) - 2.0)
        bases = [base for base in (declared, *KNOWN_BASES) if abs((high - low) * math.log(base) / nats - 1) < 0.01]
        return bases[0] if bases else declared

    def said(self, nats: float, base: float | None = None) -> float:
        """A value in nats as the loss would return it."""
        if not self.perplexity:
            return nats / math.log(base or self.base)
        return math.exp(nats) if nats < 709 else nats * math.inf  # nan stays nan

    def nats(self, raw: float, base: float) -> float:
        """What it returned, in nats."""
        if not self.perplexity:
            return raw * math.log(base)
        return math.log(raw) if raw > 0 else -math.inf if raw == 0 else math.nan

    def given(self, texts: Texts) -> Texts:
        """What the loss is called with: all of it if it shifts; else row t beside label t + 1, the ends cut off."""
        if self.conventions.shift:
            return texts
        mask = None if texts.mask is None else texts.mask[:, 1:] & texts.mask[:, :-1]
        return Texts(texts.logits[:, :-1], texts.labels[:, 1:], mask)

    def seen(self, texts: Texts) -> Texts:
        """The same for a reader: with the label that the loss ignores."""
        given = self.given(texts)
        return replace(given, labels=np.where(given.labels == IGNORED, self.conventions.ignore_index, given.labels))

    def inputs(
        self, texts: Texts, dtype: torch.dtype = torch.float32, device: torch.device | str = "cpu"
    ) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
        """Logits to differentiate by, labels, and the mask, under the loss's name for it."""
        given = self.seen(texts)
        logits = torch.tensor(given.logits, dtype=dtype, device=device).requires_grad_()
        labels = torch.tensor(given.labels, device=device)
        options = {}
        for keyword, of_dtype in MASKS.items():
            if keyword == self.mask_keyword and given.mask is not None:
                options[keyword] = torch.tensor(given.mask, device=device).to(of_dtype)
            elif self.takes(keyword) and self._parameters[keyword].default is inspect.Parameter.empty:
                options[keyword] = torch.ones(given.labels.shape, dtype=of_dtype, device=device)  # nothing is padding
        return logits, labels, options

    def plain(self, texts: Texts, **options: Any) -> Taught:  # noqa: ANN401
        """What a batch teaches that another is compared with, so it must be finite."""
        taught = self.run(texts, **options)
        if not taught.finite:
            what = "value" if not math.isfinite(taught.value) else "gradient"
            raise LossFailed(
                f"its {what} is not finite on plain logits: the {self.noun} is {show(taught.raw)}",
                Counterexample("", texts=self.seen(texts)),
            )
        return taught

    def run(
        self,
        texts: Texts,
        *,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
        gradients: bool = True,
        **options: Any,  # noqa: ANN401
    ) -> Taught:
        """Value and gradient of a batch. ``options`` are keywords of the loss."""
        seen = Counterexample("", texts=self.seen(texts))
        logits, labels, mask = self.inputs(texts, dtype, device)
        with torch.enable_grad():
            # In training the logits come out of a model, so a loss may write into them; a leaf would forbid that.
            value = self._value(functools.partial(self.loss, logits.clone(), labels, **mask, **options), seen)
            raw = float(value.detach())
            gradient = self._gradient(value, logits, seen) if gradients else None
        base = self.base if gradients else self.conventions.base
        if gradient is not None:
            given, gradient = gradient, np.zeros(texts.logits.shape)
            with np.errstate(all="ignore"):  # what is not finite is found by whoever compares
                gradient[:, : given.shape[1]] = given / raw if self.perplexity else given * math.log(base)
        return Taught(self.nats(raw, base), gradient, raw, value.dtype)

    def _value(self, call: Any, seen: Counterexample) -> Tensor:  # noqa: ANN401
        try:
            value = call()
        except (Exception, SystemExit) as error:  # a loss that calls sys.exit() fails; it does not end the check
            failed = failure("it raises", error, seen)
            failed.problem += advice(error)
            raise failed from error
        if self.perplexity and isinstance(value, (int, float, np.floating)):
            value = torch.tensor(float(value))
        if not isinstance(value, Tensor):
            raise LossFailed(f"it returns {type(value).__name__}, not a tensor", seen)
        if value.shape != ():
            shape = tuple(value.shape)
            raise LossFailed(f"it returns a tensor of shape {shape}, not a scalar: reduce it to a mean or a sum", seen)
        return value

    def _gradient(self, value: Tensor, logits: Tensor, seen: Counterexample) -> Array | None:
        if not value.requires_grad:
            if self.perplexity:
                self.note("it gives no gradient, so only values are compared")
                return None
            raise LossFailed("its value is detached from the logits: there is no gradient", seen)
        try:
            (gradient,) = torch.autograd.grad(value, logits, allow_unused=True)
        except Exception as error:
            raise failure("its gradient raises", error, seen) from error
        return (torch.zeros_like(logits) if gradient is None else gradient.detach()).to("cpu", torch.float64).numpy()

    def exact(self, texts: Texts) -> Taught:
        """What cross-entropy teaches, in float64."""
        cost, slope = costs(texts)
        weight = self.weight(count(texts))
        gradient = np.zeros(texts.logits.shape)
        gradient[:, :-1] = slope * weight
        value = float(cost.sum()) * weight
        return Taught(value, gradient, self.said(value))

    def weight(self, n: int) -> float:
        """What one of n targets counts."""
        return 1 / n if self.conventions.reduction == "mean" else 1.0

    def whole(self, texts: Texts, parts: list[tuple[Taught, int, int, int]]) -> Taught:
        """What a batch should teach, given what its parts do: each with its number of targets, text and first row."""
        n = sum(targets for _, targets, _, _ in parts)
        gradient: Array | None = np.zeros(texts.logits.shape)
        value = 0.0
        for part, targets, text, row in parts:
            weight = targets / n if self.conventions.reduction == "mean" else 1.0
            value += weight * part.value
            if part.gradient is None or gradient is None:
                gradient = None
            else:
                gradient[text, row : row + part.gradient.shape[1]] += weight * part.gradient[0]
        return Taught(value, gradient, self.said(value))


def advice(error: Exception | SystemExit) -> str:
    """What to do about an error that a wrong declaration or call form brings about."""
    text = str(error)
    if isinstance(error, IndexError) and ("-100" in text or "out of bounds" in text or "out of range" in text):
        return "; labels of what is no target are ignore_index: tell the loss, or declare the one it has"
    if "Expected target size" in text:
        return "; it is given logits (B, T, V) and labels (B, T): flatten both, or move V to the second place"
    return ""


def behind(gap: float) -> Texts:
    """A text of three equal tokens out of two, each the given gap behind the other: any shift reads the same of it."""
    return Texts(np.tile([-gap, 0.0], (1, 3, 1)), np.zeros((1, 3), dtype=np.int64))
