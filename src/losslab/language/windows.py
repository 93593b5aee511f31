"""Texts longer than a model's context, in windows that score each token exactly once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral


@dataclass(frozen=True)
class Window:
    """Tokens ``start`` to ``stop`` go into the model; of these, ``scored`` to ``stop`` are its targets."""

    start: int
    stop: int
    scored: int


def windows(tokens: int, *, context: int, stride: int | None = None) -> Iterator[Window]:
    """Cut a text into windows of at most ``context`` tokens, each moved on by ``stride``.

    Every token but the first is a target of exactly one window, in which at least context - stride tokens stand before
    it (as far as the text has them). Set the labels before ``scored`` to the ignore index, and give all windows of a
    text to `Evaluator.add` under one id. A smaller stride gives tokens more to go by, so a lower perplexity, and costs
    more passes: report it.

    Parameters
    ----------
    tokens
        Length of the text, start token included.
    context
        Most tokens that go into the model at once, at least 2.
    stride
        Targets a window, from 1 to context - 1; by default that, the cheapest.

    Raises
    ------
    ValueError
        A number is out of its range, or not whole.
    """
    for name, number in (("tokens", tokens), ("context", context), ("stride", stride)):
        whole = isinstance(number, Integral) and not isinstance(number, bool)
        if not whole and not (name == "stride" and number is None):
            raise ValueError(f"{name} must be a whole number, got {number!r}")
    if context < 2:
        raise ValueError(f"context must be at least 2 tokens, one to read and one to predict, got {context}")
    stride = context - 1 if stride is None else stride
    if not 1 <= stride < context:
        raise ValueError(f"stride must lie from 1 to context - 1 = {context - 1}, got {stride}")
    if tokens < 0:
        raise ValueError(f"tokens must not be negative, got {tokens}")
    return _cut(int(tokens), int(context), int(stride))


def _cut(tokens: int, context: int, stride: int) -> Iterator[Window]:
    """The windows, of numbers that have been found right."""
    stop = min(context, tokens)
    scored = 1
    while scored < tokens:
        yield Window(max(0, stop - context), stop, scored)
        scored, stop = stop, min(stop + stride, tokens)
