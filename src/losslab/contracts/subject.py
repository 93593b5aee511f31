"""The loss under test: called on lists of numbers, answering with values and gradients, or with what is wrong."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from losslab.contracts.model import (
    Conventions,
    Counterexample,
    LossFailed,
    NoKernel,
    Query,
)
from losslab.contracts.wording import show

Array = NDArray[np.float64]
Loss = Callable[..., Any]

# Badly ranked: whatever a loss's unit, this list draws a gradient of its usual size.
PROBE = Query((0.0, 1.0, 2.0), (2.0, 1.0, 0.0))


@dataclass(frozen=True)
class Outcome:
    """What a batch taught.

    Attributes
    ----------
    values
        (1,), or (B,) under reduction="none".
    gradients
        By the logits, one array a query, of its documents only.
    padding
        Gradient at the empty slots by (query, slot), both from 0.
    """

    values: Array
    gradients: tuple[Array, ...]
    padding: Mapping[tuple[int, int], float] = field(default_factory=dict)
    dtype: torch.dtype = torch.float64


@dataclass
class Subject:
    """A loss, its declared conventions, and remarks made while checking it."""

    loss: Loss
    conventions: Conventions
    against: Any = None
    notes: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        """Say something about the contract being checked; the same remark is kept once."""
        if text not in self.notes:
            self.notes.append(text)

    @cached_property
    def scale(self) -> float:
        """The loss's unit: its largest gradient entry on a plain, badly ranked list. Rounding is judged against it."""
        probe = self.alone(PROBE)
        scale = float(np.abs(probe.gradients[0]).max())
        if scale == 0:
            raise LossFailed("its gradient is 0 on a badly ranked list", Counterexample("", (PROBE,)))
        return scale

    def alone(self, query: Query, dtype: torch.dtype = torch.float32) -> Outcome:
        """A query in a batch of its own, without an empty slot. All else is compared with it, so it must be finite."""
        outcome = self.run([query], dtype=dtype)
        if not np.isfinite(outcome.values).all() or not np.isfinite(outcome.gradients[0]).all():
            value, gradient = show(float(outcome.values[0])), outcome.gradients[0].tolist()
            raise LossFailed(
                f"it gives {value} for one plain list, with gradient [{', '.join(map(show, gradient))}]",
                Counterexample("", (query,)),
            )
        return outcome

    def run(
        self,
        queries: Sequence[Query],
        *,
        width: int = 0,
        fill: tuple[float, float] = (0.0, 0.0),
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
    ) -> Outcome:
        """Value and gradient of a batch, padded at the end of each row to the longest list or, if larger, to ``width``.

        ``fill`` is what the empty slots of logits and labels hold.
        """
        logits, labels, mask = make_batch(queries, width=width, fill=fill, dtype=dtype, device=device)
        with torch.enable_grad():
            leaf = logits.requires_grad_()
            # In training the logits come out of a model, so a loss may write into them; a leaf would forbid that.
            value = self._call(queries, leaf.clone(), labels, mask)
            self._must_be_differentiable(value, queries)
            try:
                (gradient,) = torch.autograd.grad(value.sum(), leaf, allow_unused=True)
            except Exception as error:
                raise failure("its gradient raises", error, _input(queries)) from error
        gradient = torch.zeros_like(leaf) if gradient is None else gradient
        values = value.detach().reshape(-1).to("cpu", torch.float64).numpy()
        rows = gradient.detach().to("cpu", torch.float64).numpy()
        return Outcome(
            values,
            tuple(rows[i, : len(query)] for i, query in enumerate(queries)),
            {(i, j): float(rows[i, j]) for i, q in enumerate(queries) for j in range(len(q), rows.shape[1])},
            value.dtype,
        )

    def combine(self, queries: Sequence[Query], alone: Sequence[Outcome]) -> Outcome:
        """What a batch should teach, given what each query teaches alone."""
        weight = 1 / self.count(queries) if self.conventions.reduction == "mean" else 1.0
        values = np.concatenate([outcome.values for outcome in alone])
        if self.conventions.reduction != "none":
            values = values.sum(keepdims=True) * weight
        return Outcome(values, tuple(outcome.gradients[0] * weight for outcome in alone))

    def count(self, queries: Sequence[Query]) -> int:
        """How many of the queries are counted in a mean."""
        return sum(len(query) >= 2 or self.conventions.count_short_lists for query in queries)

    def _call(self, queries: Sequence[Query], logits: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
        shape = (len(queries),) if self.conventions.reduction == "none" else ()
        return called(lambda: self.loss(logits, labels, mask), shape, _input(queries))

    @staticmethod
    def _must_be_differentiable(value: Tensor, queries: Sequence[Query]) -> None:
        if not value.requires_grad:
            raise LossFailed("its value is detached from the logits: there is no gradient", _input(queries))


def called(call: Callable[[], Any], shape: tuple[int, ...], seen: Counterexample) -> Tensor:
    """The value of a loss, a tensor of this shape.

    Raises
    ------
    LossFailed
        If it raises, or returns anything else. ``seen`` says what it was given.
    """
    try:
        value = call()
    except (Exception, SystemExit) as error:  # a loss that calls sys.exit() fails; it does not end the check
        raise failure("it raises", error, seen) from error
    if not isinstance(value, Tensor):
        raise LossFailed(f"it returns {_a(type(value).__name__)}, not a tensor", seen)
    if tuple(value.shape) != shape:
        expected = f"one value a query, {shape}" if shape else "a scalar (or declare reduction='none')"
        raise LossFailed(f"it returns a tensor of shape {tuple(value.shape)}, not {expected}", seen)
    return value


def make_batch(
    queries: Sequence[Query],
    *,
    width: int,
    fill: tuple[float, float],
    dtype: torch.dtype,
    device: torch.device | str,
) -> tuple[Tensor, Tensor, Tensor]:
    """Logits, labels (B, N) in ``dtype`` and mask (B, N) bool, the documents of each row first."""
    width = max([width, 1, *map(len, queries)])
    logits = np.full((len(queries), width), fill[0])
    labels = np.full((len(queries), width), fill[1])
    mask = np.zeros((len(queries), width), dtype=bool)
    for i, query in enumerate(queries):
        logits[i, : len(query)], labels[i, : len(query)], mask[i, : len(query)] = query.logits, query.labels, True
    as_dtype = functools.partial(torch.tensor, dtype=dtype, device=device)
    return as_dtype(logits), as_dtype(labels), torch.tensor(mask, device=device)


def takes(loss: Loss, keyword: str) -> bool:
    """Whether the loss's signature names this keyword."""
    return keyword in parameters_of(loss)


def parameters_of(loss: Loss) -> Mapping[str, inspect.Parameter]:
    """The loss's parameters by name; none if it does not tell. What a partial binds is its default."""
    target = loss.forward if isinstance(loss, torch.nn.Module) else loss
    try:
        return inspect.signature(target).parameters
    except (TypeError, ValueError):
        return {}


def options_of(loss: Loss, positional: int = 2) -> Mapping[str, inspect.Parameter]:
    """The parameters that can be given by keyword: not those that the first ``positional`` arguments fill.

    What these are called is the loss's own affair: of ``f(anchors, positives)`` nothing is an option.
    """
    by_position = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = parameters_of(loss)
    filled = [name for name, p in parameters.items() if p.kind in by_position][:positional]
    by_keyword = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return {name: p for name, p in parameters.items() if name not in filled and p.kind in by_keyword}


def name_of(loss: Loss) -> str:
    """What to call a loss in a report."""
    if isinstance(loss, functools.partial):
        bound = [repr(x) for x in loss.args] + [f"{k}={v!r}" for k, v in loss.keywords.items()]
        return f"{name_of(loss.func)}({', '.join(bound)})"
    return str(getattr(loss, "name", None) or getattr(loss, "__name__", None) or type(loss).__name__)


def first_line(error: BaseException) -> str:
    """An exception in one line: its type and the first line of its message."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def failure(what: str, error: BaseException, seen: Counterexample) -> LossFailed:
    """What to raise for an exception of the loss, given ``seen``."""
    missing = isinstance(error, NotImplementedError) or "not implemented for" in str(error)
    return (NoKernel if missing else LossFailed)(f"{what} {first_line(error)}", seen)


def _input(queries: Sequence[Query]) -> Counterexample:
    return Counterexample("", tuple(queries))


def _a(noun: str) -> str:
    return f"an {noun}" if noun[0].lower() in "aeiou" else f"a {noun}"
