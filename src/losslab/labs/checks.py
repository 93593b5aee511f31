"""Whether a student's function is right, by the library's promises or by a target, and the smallest input if not."""

from __future__ import annotations

import functools
import re
import textwrap
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from losslab.contracts import check
from losslab.contracts.report import SYMBOLS, WIDTH
from losslab.contracts.wording import show, show_all, show_apart, show_rows
from losslab.labs.pictures import noted
from losslab.labs.unwritten import is_unwritten

Array = NDArray[np.float64]
Inputs = Mapping[str, Any]


def promises(
    function: Callable[..., Any],
    kind: str,
    contracts: Collection[str] | None = None,
    *,
    against: str | Callable[..., Any] | None = None,
    examples: int = 20,
    seed: int = 0,
    **declared: Any,  # noqa: ANN401
) -> bool:
    """Put the library's contracts to a student's loss and print a line a promise.

    Parameters
    ----------
    function
        A loss of the call form that `losslab.check` wants of this kind.
    kind
        ``"listwise"``, ``"contrastive"``, ``"token"`` or ``"matryoshka"``.
    contracts
        Ids of the contracts to check; all of the kind by default.
    against
        The objective it should equal, as in `losslab.check`; needed for the contract ``objective``.
    examples
        Random inputs for each contract.
    seed
        Of these inputs.
    **declared
        Conventions, as in `losslab.check`.

    Returns
    -------
    bool
        Whether all promises are kept; False, and a line that says so, if the function is not written yet.

    Raises
    ------
    ValueError, TypeError
        An argument is wrong.
    """
    unwritten: list[NotImplementedError] = []

    @functools.wraps(function)
    def watched(*arguments: Any, **keywords: Any) -> Any:  # noqa: ANN401
        try:
            return function(*arguments, **keywords)
        except NotImplementedError as problem:
            unwritten.append(problem)
            raise

    report = check(watched, kind, against=against, seed=seed, only=contracts, examples=examples, **declared)
    if unwritten:
        return _not_written(unwritten[0])
    noted(getattr(function, "__name__", "yours"), "promises", kept=bool(report))
    for result in report.results:
        broken = result.verdict in ("broken", "error")
        _say(SYMBOLS[result.verdict], f"{result.contract}: {result.promise if broken else result.title}")
        if result.verdict != "kept" and result.reason:
            _say(" ", _for_students(result.reason))
        if result.counterexample is not None:
            if result.counterexample.sentence:
                _say(" ", _for_students(result.counterexample.sentence))
            _table(result.counterexample.lines())
    return bool(report)


def agrees(
    function: Callable[..., Any],
    target: Callable[..., Any],
    inputs: Iterable[Inputs],
    *,
    gradients: Sequence[str] = (),
    rtol: float = 1e-5,
    atol: float = 1e-8,
) -> bool:
    """Compare a student's function with a target; print ✓, or the first input on which they differ.

    Parameters
    ----------
    function
        The student's.
    target
        The same by another road, for example a slow loop. Returns a number, an array, a tensor, or a tuple or
        dictionary of these; must be differentiable by torch where ``gradients`` are compared.
    inputs
        Keyword arguments of both, smallest case first: the first that differs is shown. Tensors are copied for each
        call, so that neither function can change them for the other.
    gradients
        Names of tensors among the inputs by which the results' sums are differentiated, and compared too.
    rtol
        How far a result may be off, as a part of the target's largest entry.
    atol
        And how far besides.

    Returns
    -------
    bool
        Whether they agree on every input; False, and a line that says so, if the function is not written yet.

    Raises
    ------
    ValueError
        There are no inputs, or ``gradients`` names none of them.
    """
    cases = list(inputs)
    if not cases:
        raise ValueError("inputs must hold at least one case")
    name, against = getattr(function, "__name__", "yours"), getattr(target, "__name__", "target")
    for case in cases:
        if missing := [key for key in gradients if not isinstance(case.get(key), Tensor)]:
            raise ValueError(f"gradients names {missing[0]!r}, which is no tensor among the inputs {sorted(case)}")
        try:  # a target may call what an earlier step wrote
            expected = _run(target, case, gradients)
        except NotImplementedError as problem:
            if not is_unwritten(problem):
                raise
            return _not_written(problem)
        try:
            found = _run(function, case, gradients)
        except NotImplementedError as problem:
            return _not_written(problem)
        except Exception as problem:
            _say("✗", f"{name} raised {type(problem).__name__}: {problem}")
            _table(_went_in(case))
            noted(name, against, kept=False)
            return False
        if (difference := _difference(found, expected, rtol, atol)) is not None:
            sentence, lines = difference
            _say("✗", f"{name}: {sentence}")
            _table([*_went_in(case), *lines])
            noted(name, against, kept=False)
            return False
    noted(name, against, kept=True)
    what = "value and gradient agree" if gradients else "agrees"
    _say("✓", f"{name}: {what} with the target on {len(cases)} {'input' if len(cases) == 1 else 'inputs'}")
    return True


def _run(function: Callable[..., Any], case: Inputs, gradients: Sequence[str]) -> dict[str, Any]:
    """Results by name, gradients among them; each an array, or what was returned if it is no numbers."""
    given = {key: _copied(value, wanted=key in gradients) for key, value in case.items()}
    result = function(**given)
    parts = _parts(result)
    named = {key: _as_array(value) for key, value in parts.items()}
    if not gradients:
        return named
    total = sum(
        (value.cpu().double().sum() for value in parts.values() if isinstance(value, Tensor) and value.requires_grad),
        start=torch.zeros((), dtype=torch.float64),
    )
    if not total.requires_grad:
        return named | {f"gradient by {key}": None for key in gradients}
    found = torch.autograd.grad(total, [given[key] for key in gradients], allow_unused=True, materialize_grads=True)
    return named | {f"gradient by {key}": _as_array(value) for key, value in zip(gradients, found, strict=True)}


def _copied(value: Any, *, wanted: bool) -> Any:  # noqa: ANN401
    if isinstance(value, Tensor):
        return value.detach().clone().requires_grad_(wanted)
    return value.copy() if isinstance(value, (np.ndarray, list, dict)) else value


def _parts(result: Any) -> dict[str, Any]:  # noqa: ANN401
    if isinstance(result, Mapping):
        return {str(key): value for key, value in result.items()}
    if isinstance(result, tuple):
        return {f"result {i}": value for i, value in enumerate(result, 1)}
    return {"result": result}


def _as_array(value: Any) -> Array | str | None:  # noqa: ANN401
    """Numbers as float64, words as they are, anything else None."""
    if isinstance(value, Tensor):
        value = value.detach().cpu().double().numpy() if not value.is_complex() else None
    if isinstance(value, str):
        return value
    try:
        return None if value is None else np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        return None


def _difference(
    found: Mapping[str, Any], expected: Mapping[str, Any], rtol: float, atol: float
) -> tuple[str, list[tuple[str, str]]] | None:
    """What is wrong, and the lines that show it; None if nothing is."""
    if missing := [key for key in expected if key not in found]:
        return f"returns {_list(found)}, and {missing[0]} is missing", []
    for key, wanted in expected.items():
        got = found[key]
        if got is None:
            if key.startswith("gradient"):
                return "its result has no gradient: it was detached, or made of plain numbers on the way", []
            return f"the {key} is nothing that can be compared; is there a return?", []
        if isinstance(wanted, str) or isinstance(got, str):
            if str(wanted) != str(got):
                return f"the {key} differs", [("came out", str(got)), ("should be", str(wanted))]
            continue
        if got.shape != wanted.shape:
            shapes = [("came out", f"shape {got.shape}"), ("should be", f"shape {wanted.shape}")]
            return f"the {key} has another shape", shapes
        finite = np.abs(wanted[np.isfinite(wanted)])
        allowed = atol + rtol * float(finite.max(initial=0.0))
        if not np.allclose(got, wanted, rtol=0, atol=allowed, equal_nan=True):
            came, should = _apart(got, wanted)
            return f"the {key} differs", [("came out", came), ("should be", should)]
    return None


def _apart(got: Array, wanted: Array) -> tuple[str, str]:
    if got.ndim == 0:
        return show_apart(float(got), float(wanted))
    if got.ndim == 1:
        return show_apart(got.tolist(), wanted.tolist())
    return _shown(got), _shown(wanted)


def _went_in(case: Inputs) -> list[tuple[str, str]]:
    return [("went in" if i == 0 else "", f"{key} {_shown(value)}") for i, (key, value) in enumerate(case.items())]


def _shown(value: Any) -> str:  # noqa: ANN401
    """Numbers, with few digits; the middle of many left out."""
    if isinstance(value, Tensor):
        if value.dtype == torch.bool:
            return str(value.tolist())
        value = value.detach().cpu().double().numpy()
    if isinstance(value, (bool, str)) or value is None:
        return repr(value)
    if isinstance(value, (int, float)):
        return show(float(value), 6)
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiu":
        if value.ndim == 0:
            return show(float(value), 6)
        if value.ndim == 1:
            return show_all(value.tolist())
        if value.ndim == 2:
            return show_rows(value)
        return "; ".join(_shown(part) for part in value)
    return textwrap.shorten(repr(value), 200, placeholder=" ...")


def _not_written(problem: NotImplementedError) -> bool:
    print(f"○ {problem or 'not written yet'}")
    return False


def _for_students(text: str) -> str:
    """A sentence without its advice to declare something: a student's function is what the step asks for."""
    clauses = re.split(r"(?<=[;:.]) |(?= \(or )", text)
    kept = [clause for clause in clauses if not re.search(r"\bdeclare\b", clause)]
    return re.sub(r"[;:]$", ".", " ".join(clause.strip() for clause in kept).strip())


def _list(names: Iterable[str]) -> str:
    return ", ".join(names) or "nothing"


def _say(sign: str, text: str) -> None:
    print(textwrap.fill(text, WIDTH, initial_indent=f"{sign} ", subsequent_indent="  ", break_long_words=False))


def _table(lines: Iterable[tuple[str, str]]) -> None:
    for head, text in lines:
        first, rest = f"    {head:<9}  ", " " * 15
        print(textwrap.fill(text, WIDTH, initial_indent=first, subsequent_indent=rest, break_long_words=False))
