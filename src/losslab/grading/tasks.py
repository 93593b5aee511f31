"""The hidden tests that an item of a lab can have."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

#: ``draw(random, size)``: keyword arguments of one random case.
Draw = Callable[[np.random.Generator, int], Mapping[str, Any]]


@dataclass(frozen=True, eq=False)
class Values:
    """The student's function gives what the oracle gives, on random inputs.

    Parameters
    ----------
    function
        Its name.
    draw
        ``draw(random, size)``: a case's keyword arguments: numpy arrays, int, float, bool, str, None, and lists of
        those. ``size`` goes from 1 to ``cases``, so that the first case that fails is the smallest. In a notebook
        arrays become torch tensors, those of float64 in ``dtype``; in a plain module they become lists.
    oracle
        Called with the same (arrays rounded to ``dtype``, in float64): a float, int, bool, str, array, or a tuple, list
        or dict of those.
    gradients
        Arguments by which the gradient (of the value's sum) is compared too.
    oracle_gradients
        Gives them by name; left out, they are differences of the oracle, of fourth order.
    rtol, atol
        An array may be off by ``rtol`` of its largest entry and ``atol``.
    cases
        How many.
    what
        The promise in a sentence, for the feedback.
    partial
        Whether a share of the cases right earns that share of the points; else all must be.
    dtype
        Of the tensors, ``"float32"`` or ``"float64"``.
    """

    function: str
    draw: Draw
    oracle: Callable[..., Any]
    gradients: Sequence[str] = field(default=(), kw_only=True)
    oracle_gradients: Callable[..., Mapping[str, Any]] | None = field(default=None, kw_only=True)
    rtol: float = field(default=1e-5, kw_only=True)
    atol: float = field(default=1e-5, kw_only=True)
    cases: int = field(default=8, kw_only=True)
    what: str = field(default="", kw_only=True)
    partial: bool = field(default=False, kw_only=True)
    dtype: str = field(default="float32", kw_only=True)

    def judge(self, asked: Any, seed: int) -> Any:  # noqa: ANN401
        """Put it to the student's function."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class Promises:
    """The student's function keeps promises of `losslab.contracts`; each is worth the same share of the points.

    Parameters
    ----------
    function
        Its name.
    kind
        Family of promises: ``"listwise"``, ``"contrastive"``, ``"token"``, ``"matryoshka"`` (called with ``dims=``).
    contracts
        Their ids. Not ``"device"`` or ``"objective"``: those need the function itself, or another.
    declared
        The conventions under which they are judged; nothing is read from what the student declares.
    examples
        Random inputs for each.
    """

    function: str
    kind: str
    contracts: Sequence[str] = ()
    declared: Mapping[str, Any] = field(default_factory=dict, kw_only=True)
    examples: int = field(default=10, kw_only=True)

    def judge(self, asked: Any, seed: int) -> Any:  # noqa: ANN401
        """Put them to the student's function."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class Raises:
    """Bad input is refused.

    Parameters
    ----------
    function, draw
        As of `Values`; every case drawn must be refused.
    error
        Name of the exception, of Python's own.
    cases, partial, what, dtype
        As of `Values`.
    """

    function: str
    draw: Draw
    error: str = "ValueError"
    cases: int = field(default=3, kw_only=True)
    what: str = field(default="", kw_only=True)
    partial: bool = field(default=False, kw_only=True)
    dtype: str = field(default="float32", kw_only=True)

    def judge(self, asked: Any, seed: int) -> Any:  # noqa: ANN401
        """Put it to the student's function."""
        raise NotImplementedError
