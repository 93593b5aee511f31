"""The hidden tests that an item of a lab can have.

Each puts a student's function, which runs elsewhere, to inputs drawn from a seed, compares here what came back, and
says what it found: the promise that is broken, and the smallest input that breaks it. What the right answer is computed
with is never shown, only the right answer to that one input.
"""

from __future__ import annotations

import builtins
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from losslab.grading.lab import Feedback, GraderError, Verdict
from losslab.grading.remote import Answer, Other, RemoteFunction, Student, StudentError, Tensor, text_of
from losslab.grading.sandbox import Ended

Array = NDArray[Any]
#: ``draw(random, size)``: keyword arguments of one random case.
Draw = Callable[[np.random.Generator, int], Mapping[str, Any]]
Case = tuple[dict[str, Any], Any, "dict[str, Array]"]  # keyword arguments, what is right, right gradients

STEP = 2e-4  # of a difference; with fourth order its error is below 1e-9 of a slope where a temperature is 0.05
LONGEST = 600  # characters of one line of a counterexample
DTYPES = ("float32", "float64")
NOT_OVER_THE_LINE = {
    "device": "it follows the function's own tensors",
    "objective": "it needs an objective to compare with: use Values and an oracle",
}


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
        Arguments by which the gradient (of the value's sum) is compared too. Not in a plain module.
    oracle_gradients
        Gives them by name, called as the oracle is; left out, they are differences of the oracle, of fourth order.
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

    def __post_init__(self) -> None:
        object.__setattr__(self, "gradients", (self.gradients,) if isinstance(self.gradients, str) else self.gradients)
        _must_be_a_number_of_cases(self.cases)
        _must_be_a_dtype(self.dtype)
        if not (self.rtol >= 0 and self.atol >= 0):
            raise ValueError(f"rtol and atol must be at least 0, got {self.rtol!r} and {self.atol!r}")

    def judge(self, student: Student, seed: int) -> Verdict:
        """Put it to the student's function, on inputs drawn from this seed."""
        try:
            if (missing := _missing(student, self.function)) is not None:
                return missing
            right, first = 0, None
            for keywords, value, gradients in _cases(self, seed, student.lab.form):
                found = self._compare(student, keywords, value, gradients)
                if found is None:
                    right += 1
                elif not found.lines:
                    return Verdict(0.0, (found,))  # not written yet: the other cases would say the same
                else:
                    first = first or found
                    if not self.partial:
                        break
        except Ended as ended:
            return Verdict(0.0, (_ended(self.function, ended),))
        what = _sentence(self.what)
        if first is None:
            return Verdict(1.0, (Feedback(True, f"{what}Right on {self.cases} random inputs."),))
        share = right / self.cases if self.partial else 0.0
        if self.partial:
            what = f"{_sentence(self.what)}Right on {right} of {self.cases} random inputs. "
        return Verdict(share, (Feedback(False, f"{what}{first.sentence}", first.lines),))

    def _compare(
        self,
        student: Student,
        keywords: Mapping[str, Any],
        value: Any,  # noqa: ANN401
        gradients: Mapping[str, Array],
    ) -> Feedback | None:
        """What is wrong in one case; None if nothing is."""
        answer = student.call(self.function, (), keywords, list(gradients))
        if answer.error is not None:
            if answer.error.not_written:
                return _not_written(answer.error)
            said = f"{self.function} raises {answer.error}"
            return Feedback(False, f"{text_of(said)}.", (*_went_in(keywords), ("should be", show_value(value))))
        compare = functools.partial(difference, rtol=self.rtol, atol=self.atol)
        if (problem := compare(answer.value, value)) is not None:
            shown = (("yours gave", show_value(answer.value, value)), ("should be", show_value(value, answer.value)))
            return Feedback(False, f"The value is wrong: {problem}.", (*_went_in(keywords), *shown))
        for place, name in enumerate(gradients):
            right = gradients[name]
            if answer.gradients is None:
                why = "the value does not depend on it by torch's operations (was it detached, or made anew?)"
                if answer.gradient_error is not None:
                    why = f"the backward pass raises {answer.gradient_error}"
                line = ("should be", f"gradient by {name} {show_value(right)}")
                return Feedback(
                    False, f"The value is right, but has no gradient by {name}: {why}.", (*_went_in(keywords), line)
                )
            if (problem := compare(answer.gradients[place], right)) is not None:
                got = answer.gradients[place].numpy()
                shown = (
                    ("yours gave", f"gradient by {name} {show_value(got, right)}"),
                    ("should be", f"gradient by {name} {show_value(right, got)}"),
                )
                sentence = f"The value is right, but its gradient by {name} is not: {problem}."
                return Feedback(False, sentence, (*_went_in(keywords), *shown))
        return None


@dataclass(frozen=True, eq=False)
class Promises:
    """The student's function keeps promises of `losslab.contracts`.

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
    partial
        Whether each is worth the same share of the points; else all must be kept. Some promises are kept by what knows
        nothing of the task: a mean of all logits has no order of ties to change. Ask such together with another.
    """

    function: str
    kind: str
    contracts: Sequence[str] = ()
    declared: Mapping[str, Any] = field(default_factory=dict, kw_only=True)
    examples: int = field(default=10, kw_only=True)
    partial: bool = field(default=True, kw_only=True)

    def __post_init__(self) -> None:
        ids = (self.contracts,) if isinstance(self.contracts, str) else tuple(self.contracts)
        object.__setattr__(self, "contracts", ids)
        if not ids:
            raise ValueError(f"contracts of {self.function} must name at least one, got none")
        for name, because in NOT_OVER_THE_LINE.items():
            if name in ids:
                raise ValueError(f"contracts cannot have {name!r} for a function that runs in a sandbox: {because}")
        _must_be_a_number_of_cases(self.examples, "examples")

    def judge(self, student: Student, seed: int) -> Verdict:
        """Put each to the student's function."""
        from losslab.contracts.checking import one_thread

        try:
            if (missing := _missing(student, self.function)) is not None:
                return missing
            signature = student.signature(self.function)
        except Ended as ended:
            return Verdict(0.0, (_ended(self.function, ended),))
        assert signature is not None
        remote = RemoteFunction(student, self.function, signature)
        feedback: list[Feedback] = []
        with one_thread():
            for contract in self._contracts():
                feedback.append(self._put(contract, remote, seed))
                if student.not_written is not None:
                    return Verdict(0.0, (_not_written(student.not_written),))
        share = sum(f.kept for f in feedback) / len(feedback)
        return Verdict(share if self.partial or share == 1 else 0.0, tuple(feedback))

    def _contracts(self) -> Sequence[Any]:
        from losslab.contracts.checking import CONTRACTS, KINDS

        if self.kind not in CONTRACTS:
            raise GraderError(f"kind of the promises of {self.function} must be one of {', '.join(CONTRACTS)}")
        known = {contract.id: contract for contract in CONTRACTS[self.kind]}
        if unknown := [name for name in self.contracts if name not in known]:
            raise GraderError(f"{unknown[0]!r} is no {self.kind} contract; there are {', '.join(known)}")
        conventions = KINDS[self.kind].conventions(**self.declared)
        for name in self.contracts:
            if (why := known[name].exemption(conventions)) is not None:
                raise GraderError(f"contract {name!r} asks nothing of {self.function}: {why}")
        return [known[name] for name in self.contracts]

    def _put(self, contract: Any, remote: RemoteFunction, seed: int) -> Feedback:  # noqa: ANN401
        from hypothesis.errors import HypothesisException

        from losslab.contracts.checking import KINDS, check_one

        kind = KINDS[self.kind]
        try:
            result = check_one(
                contract, kind.subject(remote, kind.conventions(**self.declared), None), seed, self.examples
            )
        except Ended as ended:
            return Feedback(False, f"{_sentence(contract.promise)}{_ended(self.function, ended).sentence}")
        except HypothesisException:
            return Feedback(
                False, f"{_sentence(contract.promise)}{self.function} gives now this, now that for the same input."
            )
        if result.verdict == "kept":
            return Feedback(True, contract.promise)
        if result.verdict == "unchecked":
            raise GraderError(f"contract {contract.id!r} could not be put to {self.function}: {result.reason}")
        sentence = _sentence(contract.promise).strip()
        if result.reason:
            sentence += f" But {self.function}: {text_of(result.reason)}."
        lines: list[tuple[str, str]] = []
        if result.counterexample is not None:
            if result.counterexample.sentence:
                sentence += f" {text_of(result.counterexample.sentence)}"
            heads = {"came out": "yours gave"}
            lines = [(heads.get(head, head), text_of(text, LONGEST)) for head, text in result.counterexample.lines()]
        return Feedback(False, sentence, tuple(lines))


@dataclass(frozen=True, eq=False)
class Raises:
    """Bad input is refused, and good input is not.

    Parameters
    ----------
    function, draw
        As of `Values`; every case drawn must be refused.
    error
        Name of the exception, of Python's own; one that inherits from it counts too.
    accepts
        Draws good input, which must not be refused: else a function that refuses everything would pass.
    cases, partial, what, dtype
        As of `Values`.
    """

    function: str
    draw: Draw
    error: str = "ValueError"
    accepts: Draw | None = field(default=None, kw_only=True)
    cases: int = field(default=3, kw_only=True)
    what: str = field(default="", kw_only=True)
    partial: bool = field(default=False, kw_only=True)
    dtype: str = field(default="float32", kw_only=True)

    def __post_init__(self) -> None:
        _must_be_a_number_of_cases(self.cases)
        _must_be_a_dtype(self.dtype)
        kind = getattr(builtins, self.error, None)
        if not (isinstance(kind, type) and issubclass(kind, Exception)):
            raise ValueError(f"error must be the name of one of Python's own exceptions, got {self.error!r}")
        if issubclass(NotImplementedError, kind):
            raise ValueError(f"error must not be {self.error}: a step that is not written yet raises it")

    def judge(self, student: Student, seed: int) -> Verdict:
        """Put them to the student's function."""
        what = _sentence(self.what)
        try:
            if (missing := _missing(student, self.function)) is not None:
                return missing
            if self.accepts is not None:
                for keywords in _drawn(self.accepts, seed, 1, self.cases, student.lab.form, self.dtype):
                    answer = student.call(self.function, (), keywords)
                    if answer.error is not None:
                        if answer.error.not_written:
                            return Verdict(0.0, (_not_written(answer.error),))
                        said = text_of(f"Good input is refused too: {self.function} raises {answer.error}")
                        return Verdict(0.0, (Feedback(False, f"{what}{said}.", _went_in(keywords)),))
            right, first = 0, None
            for keywords in _drawn(self.draw, seed, 0, self.cases, student.lab.form, self.dtype):
                answer = student.call(self.function, (), keywords)
                if answer.error is not None and answer.error.not_written:
                    return Verdict(0.0, (_not_written(answer.error),))
                if answer.error is not None and self.error in answer.error.types:
                    right += 1
                elif first is None:
                    first = self._wrong(keywords, answer)
        except Ended as ended:
            return Verdict(0.0, (_ended(self.function, ended),))
        if first is None:
            return Verdict(1.0, (Feedback(True, f"{what}{self.error} on all of {self.cases} bad inputs."),))
        share = right / self.cases if self.partial else 0.0
        return Verdict(share, (Feedback(False, f"{what}{first.sentence}", first.lines),))

    def _wrong(self, keywords: Mapping[str, Any], answer: Answer) -> Feedback:
        gave = f"raises {answer.error}" if answer.error is not None else show_value(answer.value)
        lines = (*_went_in(keywords), ("yours gave", text_of(gave, LONGEST)), ("should be", f"raises {self.error}"))
        return Feedback(False, "Bad input is not refused.", lines)


# Cases ----------------------------------------------------------------------------------------------------------------


def _must_be_a_number_of_cases(cases: object, name: str = "cases") -> None:
    if not isinstance(cases, int) or isinstance(cases, bool) or cases < 1:
        raise ValueError(f"{name} must be a whole number of at least 1, got {cases!r}")


def _must_be_a_dtype(dtype: str) -> None:
    if dtype not in DTYPES:
        raise ValueError(f"dtype must be float32 or float64, got {dtype!r}")


def _drawn(draw: Draw, seed: int, stream: int, cases: int, form: str, dtype: str) -> list[dict[str, Any]]:
    """Keyword arguments of each case, as they are sent."""
    drawn = []
    for size in range(1, cases + 1):
        random = np.random.default_rng([seed, stream, size])  # each case its own: none depends on how much another drew
        keywords = dict(draw(random, size))
        drawn.append({name: _as_sent(value, form, dtype) for name, value in keywords.items()})
    return drawn


def _as_sent(value: Any, form: str, dtype: str) -> Any:  # noqa: ANN401
    if isinstance(value, np.ndarray):
        if form == "module":
            return value.tolist()
        return value.astype(dtype) if value.dtype == np.float64 else value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (list, tuple)):
        return type(value)(_as_sent(x, form, dtype) for x in value)
    if isinstance(value, dict):
        return {name: _as_sent(x, form, dtype) for name, x in value.items()}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise GraderError(f"draw gives a {type(value).__name__}; only arrays, numbers, texts and lists of them can be sent")


def _exact(value: Any) -> Any:  # noqa: ANN401
    """The same for the oracle: the numbers that were sent, in float64."""
    if isinstance(value, np.ndarray):
        return value.astype(np.float64) if value.dtype.kind == "f" else value.copy()
    if isinstance(value, (list, tuple)):
        return type(value)(_exact(x) for x in value)
    if isinstance(value, dict):
        return {name: _exact(x) for name, x in value.items()}
    return value


@functools.lru_cache(maxsize=256)
def _cases(task: Values, seed: int, form: str) -> tuple[Case, ...]:
    """Every case and what is right for it; the same for all students of a run, so worked out once."""
    cases = []
    for keywords in _drawn(task.draw, seed, 0, task.cases, form, task.dtype):
        value = _plain(task.oracle(**_exact(keywords)))
        gradients: dict[str, Array] = {}
        if task.gradients:
            given = (task.oracle_gradients or functools.partial(_differences, task))(**_exact(keywords))
            gradients = {name: np.asarray(given[name], dtype=np.float64) for name in task.gradients}
        cases.append((keywords, value, gradients))
    return tuple(cases)


def _plain(value: Any) -> Any:  # noqa: ANN401
    """What an oracle gave, without numpy's own scalars."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (list, tuple)):
        return type(value)(_plain(x) for x in value)
    if isinstance(value, dict):
        return {name: _plain(x) for name, x in value.items()}
    if value is None or isinstance(value, (bool, int, float, str, np.ndarray)):
        return value
    raise GraderError(f"an oracle gives a {type(value).__name__}; it must give numbers, arrays, or lists of them")


def _differences(task: Values, **keywords: Any) -> dict[str, Array]:  # noqa: ANN401
    """Gradients of the oracle's sum: (8 (f(+h) - f(-h)) - (f(+2h) - f(-2h))) / 12h for each entry."""
    found = {}
    for name in task.gradients:
        at = np.asarray(keywords[name], dtype=np.float64)
        slope = np.zeros(at.shape)
        for entry in np.ndindex(at.shape):
            values = {}
            for steps in (-2, -1, 1, 2):
                moved = at.copy()
                moved[entry] += steps * STEP
                values[steps] = float(np.sum(task.oracle(**{**keywords, name: moved})))
            slope[entry] = (8 * (values[1] - values[-1]) - (values[2] - values[-2])) / (12 * STEP)
        found[name] = slope
    return found


# Comparing ------------------------------------------------------------------------------------------------------------


def difference(got: Any, want: Any, *, rtol: float, atol: float) -> str | None:  # noqa: ANN401
    """What is wrong with a value that came back, in words; None if nothing is.

    A number may come as a Python number or as a tensor without dimensions; an array as a tensor or as lists of numbers.
    """
    if isinstance(got, Other):
        return f"it is a {got.name}, not a plain value"
    if want is None or isinstance(want, (bool, str)):
        if isinstance(got, Tensor) and isinstance(want, bool) and got.dtype == "bool" and not got.shape:
            got = bool(got.numpy())
        if type(got) is not type(want):
            return f"it is {a_kind(got)}, not {a_kind(want)}"
        return None if got == want else "it is another"
    if isinstance(want, (int, float)):
        return _number(got, want, rtol, atol)
    if isinstance(want, np.ndarray):
        return _array(got, want, rtol, atol)
    if isinstance(want, dict):
        if not isinstance(got, dict) or set(got) != set(want):
            return f"it is {a_kind(got)}, not a dictionary with the keys {', '.join(map(repr, want))}"
        pairs = [(f"its {name!r}: ", got[name], want[name]) for name in want]
    else:
        got = [Tensor(got.dtype, (), x.tobytes()) for x in got.numpy()] if _is_row(got) else got
        if not isinstance(got, (list, tuple)):
            return f"it is {a_kind(got)}, not {a_kind(want)}"
        if len(got) != len(want):
            return f"it has {len(got)} entries, not {len(want)}"
        pairs = [(f"entry {i}: ", *pair) for i, pair in enumerate(zip(got, want, strict=True), 1)]
    for where, one, other in pairs:
        if (problem := difference(one, other, rtol=rtol, atol=atol)) is not None:
            return where + problem
    return None


def _is_row(got: Any) -> bool:  # noqa: ANN401
    return isinstance(got, Tensor) and len(got.shape) == 1 and got.dtype != "bfloat16"


def _number(got: Any, want: float, rtol: float, atol: float) -> str | None:  # noqa: ANN401
    if isinstance(got, Tensor):
        if got.shape:
            return f"it is a tensor of shape {got.shape}, not a number"
        if got.dtype == "bool":
            return "it is a truth value, not a number"
        got = got.numpy().item()
    if isinstance(got, bool) or not isinstance(got, (int, float)):
        return f"it is {a_kind(got)}, not a number"
    if isinstance(got, int) and abs(got) > 2**1000:
        return "it is off"
    return _near(np.array(float(got)), np.array(float(want)), rtol, atol)


def _array(got: Any, want: Array, rtol: float, atol: float) -> str | None:  # noqa: ANN401
    if isinstance(got, Tensor):
        found = got.numpy()
    elif isinstance(got, (list, tuple)):
        flat = _flat(got)
        if flat is None:
            return "it is a list of something else than numbers, or of lists of different lengths"
        found = flat
    else:
        return f"it is {a_kind(got)}, not an array of shape {want.shape}"
    if found.shape != want.shape:
        return f"its shape is {found.shape}, not {want.shape}"
    if (found.dtype.kind == "b") != (want.dtype.kind == "b"):
        return f"its entries are {'truth values' if found.dtype.kind == 'b' else 'numbers'}, and should not be"
    if want.dtype.kind == "b":
        return None if bool((found == want).all()) else f"{int((found != want).sum())} of its entries are not"
    return _near(found.astype(np.float64), want.astype(np.float64), rtol, atol)


def _flat(got: Sequence[Any]) -> Array | None:
    """Lists of numbers as an array; None if they are not, or are ragged."""
    kinds = set()

    def walk(x: Any) -> Any:  # noqa: ANN401
        if isinstance(x, (list, tuple)):
            return [walk(y) for y in x]
        if isinstance(x, Tensor) and not x.shape:
            x = x.numpy().item()
        kinds.add(type(x))
        return x

    try:
        plain = walk(got)
        if not kinds <= {int, float} and kinds != {bool}:
            return None
        return np.array(plain, dtype=bool if kinds == {bool} else np.float64)
    except (ValueError, OverflowError):
        return None


def _near(got: Array, want: Array, rtol: float, atol: float) -> str | None:
    """Whether numbers are near those wanted; where these are not finite, they must be the same."""
    finite = np.isfinite(want)
    same = (got == want) | (np.isnan(got) & np.isnan(want))
    if not same[~finite].all():
        return "it is finite where it should not be, or the other way round"
    if not np.isfinite(got[finite]).all():
        return "it is not finite"
    allowed = rtol * float(np.abs(want[finite]).max(initial=0.0)) + atol
    with np.errstate(over="ignore"):
        off = np.abs(got[finite] - want[finite])
    if not (off > allowed).any():
        return None
    if want.ndim == 0:
        return f"it is off by {show(float(off.max()))}"
    return f"{int((off > allowed).sum())} of {want.size} entries are off, by up to {show(float(off.max()))}"


# Words ----------------------------------------------------------------------------------------------------------------


def show(number: float, digits: int = 4) -> str:
    """A number as contracts write it. They are imported, and torch with them, only when there is something to say."""
    from losslab.contracts import wording

    return wording.show(number, digits)


def a_kind(value: Any) -> str:  # noqa: ANN401
    """What a value is, in words."""
    if value is None:
        return "None"
    if isinstance(value, Other):
        return f"a {value.name}"
    if isinstance(value, Tensor):
        return f"a tensor of shape {value.shape}"
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape}"
    names = {bool: "True or False", int: "a whole number", float: "a number", str: "a text", dict: "a dictionary"}
    return names.get(type(value), f"a {type(value).__name__}")


def show_value(value: Any, beside: Any = None) -> str:  # noqa: ANN401
    """A value for people; with as many digits as it takes to tell it from the one beside it, but not too long."""
    digits = 4
    if beside is not None:
        while digits < 12 and _written(value, digits) == _written(beside, digits):
            digits += 2
    said = _written(value, digits)
    return said if len(said) <= LONGEST else said[: LONGEST - 2] + " …"


def _written(value: Any, digits: int) -> str:  # noqa: ANN401
    if isinstance(value, Tensor):
        value = value.numpy()
    if isinstance(value, (np.ndarray, np.generic)):
        if value.size > 400:
            return f"an array of shape {value.shape}, beginning {_written(value.flatten()[:6], digits)}"
        return f"{'empty, of shape ' + str(value.shape) if not value.size else _written(value.tolist(), digits)}"
    if isinstance(value, Other):
        return f"a {value.name}"
    if isinstance(value, bool) or value is None:
        return str(value)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return show(value, digits) if math.isfinite(value) else str(value)
    if isinstance(value, str):
        return repr(text_of(value, 200))
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}: {_written(x, digits)}" for name, x in value.items()) + "}"
    opening, closing = "()" if isinstance(value, tuple) else "[]"
    shown = [_written(x, digits) for x in value[:40]]
    return opening + ", ".join(shown + (["…"] if len(value) > 40 else [])) + closing


def _went_in(keywords: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple(
        ("went in" if i == 0 else "", f"{name} {show_value(x)}") for i, (name, x) in enumerate(keywords.items())
    )


def _sentence(what: str) -> str:
    """What is promised as a sentence of its own before the next; nothing if it is not said."""
    what = what.strip()
    return what and (f"{what} " if what.endswith((".", "!", "?", ":")) else f"{what}. ")


def _not_written(error: StudentError) -> Feedback:
    return Feedback(False, error.message)


def _ended(function: str, ended: Ended) -> Feedback:
    return Feedback(False, f"{function} could not be judged to the end: {text_of(str(ended))}.")


def _missing(student: Student, function: str) -> Verdict | None:
    """What to say where there is no such function; None if there is one."""
    if student.signature(function) is not None:
        return None
    said = f"There is no function {function} after your code has run."
    if student.errors:
        shown = [str(error) for error in student.errors[:3]]
        said += f" On the way: {'; '.join(shown)}{' …' if len(student.errors) > 3 else ''}."
    return Verdict(0.0, (Feedback(False, said),))
