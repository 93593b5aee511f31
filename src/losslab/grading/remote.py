"""The grader's side of the line to a student's functions: asks, and believes nothing it is told without a look.

`Student` is one submission, running; its sandbox is started again when the code has ended it, so that one function
that never comes back does not take the others with it. `RemoteFunction` is one of its functions as a callable on
tensors, for the contracts.
"""

from __future__ import annotations

import inspect
import math
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from losslab.grading.inside import FLOATS, WHOLE, Encoder
from losslab.grading.lab import GraderError, Lab
from losslab.grading.sandbox import Bubblewrap, Ended, Limits, Sandbox
from losslab.grading.submissions import Submission

if TYPE_CHECKING:
    import torch

DEEPEST = 32  # lists in lists
MOST_PARAMETERS = 64
MOST_ENDINGS = 2  # times that one function may end the process, or once not come back; then it is not called again
LONGEST = 400  # characters shown of what a student's code says


class NotPlain(Exception):  # noqa: N818  (a finding about an answer, not a fault of the program)
    """An answer is not made of plain numbers; the text says what it is."""


@dataclass(frozen=True, eq=False)
class Tensor:
    """An array that came back: ``data`` are its numbers in row order, ``dtype`` one of those of `inside`."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes

    def numpy(self) -> NDArray[Any]:
        """Its numbers; those of bfloat16, which numpy lacks, as float32."""
        if self.dtype == "bfloat16":
            wide = np.frombuffer(self.data, dtype="<u2").astype("<u4") << 16
            return wide.view("<f4").reshape(self.shape)
        return np.frombuffer(self.data, dtype=np.dtype(self.dtype).newbyteorder("<")).reshape(self.shape)

    def torch(self) -> torch.Tensor:
        """The same as a tensor of its dtype."""
        import torch

        if not self.data:
            return torch.empty(self.shape, dtype=getattr(torch, self.dtype))
        return torch.frombuffer(bytearray(self.data), dtype=getattr(torch, self.dtype)).reshape(self.shape)


@dataclass(frozen=True)
class StudentError:
    """An exception of a student's code.

    Attributes
    ----------
    types
        Names of its class and of those it inherits from.
    message, where
        What it says, and the cell and line, both at most 400 characters and without control characters.
    """

    types: tuple[str, ...]
    message: str
    where: str = ""

    @property
    def not_written(self) -> bool:
        """Whether it is what an unwritten step raises."""
        return self.types[0] == "NotImplementedError" and bool(re.match(r"Step \d+ is not written yet", self.message))

    def __str__(self) -> str:
        said = f"{self.types[0]}: {self.message}" if self.message else self.types[0]
        said += f" ({self.where})" if self.where else ""
        if self.types[0] == "NameError" and self.where.startswith("cell "):
            said += "; if a locked cell defines it: locked cells are not run when marked"
        if "[Errno 11]" in self.message or "can't start new thread" in self.message:
            said += "; the limit on processes and threads was hit"
        return said


@dataclass(frozen=True)
class Answer:
    """What a call gave: a plain value, in which arrays are `Tensor`; or an error.

    Attributes
    ----------
    gradients
        By the arguments asked for; None if the value does not depend on them, or is not a tensor.
    gradient_error
        What the backward pass raised.
    """

    value: Any = None
    gradients: tuple[Tensor, ...] | None = None
    error: StudentError | None = None
    gradient_error: StudentError | None = None


class Student:
    """One submission, running in a sandbox; a context manager.

    Parameters
    ----------
    lab
        Its form and prelude.
    submission
        Its cells.
    seed
        Of the generators in the sandbox.
    limits
        What it may use.
    bubblewrap
        How it is isolated.
    """

    def __init__(
        self, lab: Lab, submission: Submission, *, seed: int, limits: Limits, bubblewrap: Bubblewrap | None
    ) -> None:
        self.lab, self.submission = lab, submission
        self.limits, self.bubblewrap, self.seed = limits, bubblewrap, seed
        self.errors: tuple[StudentError, ...] = ()
        self.failed: str | None = None  # why its cells could not be run to their end
        self.not_written: StudentError | None = None  # what an unwritten step said, last time one was called
        self.versions: dict[str, str] = {}
        self._sandbox: Sandbox | None = None
        self._left = limits.wall
        self._printed: list[str] = []
        self._parameters: dict[str, inspect.Signature | None] = {}
        self._endings: dict[str, list[str]] = {}

    def __enter__(self) -> Student:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    @property
    def printed(self) -> str:
        """What it has printed, the start of it; of each sandbox, if there was more than one."""
        now = [self._sandbox.printed] if self._sandbox is not None else []
        return "\n".join(text for text in [*self._printed, *now] if text)

    def signature(self, function: str) -> inspect.Signature | None:
        """What the function takes, without its defaults' values; None if there is no such function.

        Raises
        ------
        Ended
            If the code ends the process.
        """
        if function not in self._parameters:
            answer, _ = self._ask(function, {"op": "describe", "function": function})
            self._parameters[function] = _signature(answer)
        return self._parameters[function]

    def call(
        self,
        function: str,
        arguments: Sequence[Any] = (),
        keywords: Mapping[str, Any] | None = None,
        gradients: Sequence[int | str] = (),
    ) -> Answer:
        """Call one of its functions.

        Parameters
        ----------
        function
            Its name.
        arguments, keywords
            Plain values, numpy arrays and tensors.
        gradients
            Those, by position or name, by which the value's sum is differentiated.

        Raises
        ------
        Ended
            If the code ends the process, or answers with what is no answer.
        """
        encode = Encoder()
        request = {
            "op": "call",
            "function": function,
            "arguments": [encode(value) for value in arguments],
            "keywords": {name: encode(value) for name, value in (keywords or {}).items()},
            "gradients": list(gradients),
        }
        answer, blob = self._ask(function, request, encode.blob.getvalue())
        error = _error(answer.get("error"))
        self.not_written = error if error is not None and error.not_written else None
        if error is not None:
            return Answer(error=error)
        value = decode(answer.get("value"), blob)
        given = answer.get("gradients")
        found: tuple[Tensor, ...] | None = None
        if isinstance(given, list) and len(given) == len(gradients):
            decoded = [decode(x, blob) for x in given]
            if all(isinstance(x, Tensor) for x in decoded):
                found = tuple(cast("list[Tensor]", decoded))
        return Answer(value, found, gradient_error=_error(answer.get("gradient_error")))

    def _ask(self, function: str, request: Mapping[str, Any], blob: bytes = b"") -> tuple[dict[str, Any], bytes]:
        endings = self._endings.setdefault(function, [])
        if len(endings) >= MOST_ENDINGS:
            raise Ended(endings[-1])
        sandbox = self._running()
        left, began = sandbox.left, time.monotonic()
        sandbox.allow(
            max(left, self.limits.call + 1)
        )  # this call has its own limit, which is to be the one that is hit
        try:
            answer = sandbox.exchange(request, blob, seconds=self.limits.call)
        except Ended as ended:
            endings.append(str(ended))
            if ended.hung:  # it is not called again, and what it took is not taken from the other functions
                endings += [str(ended)] * MOST_ENDINGS
                sandbox.allow(left)
            else:
                sandbox.allow(left - (time.monotonic() - began))
            self._close()
            raise
        left -= time.monotonic() - began
        sandbox.allow(left)
        if left <= 0:  # it came back, but slow calls add up
            self.failed = self._used_up()
            self._close()
            raise Ended(self.failed)
        return answer

    def _running(self) -> Sandbox:
        """The sandbox, its cells run."""
        if self.failed is not None:
            raise Ended(self.failed)
        if self._sandbox is not None:
            return self._sandbox
        if self._left <= 0:
            self.failed = self._used_up()
            raise Ended(self.failed)
        notebook = self.lab.form == "notebook"
        sandbox = Sandbox(
            torch=notebook,
            limits=self.limits,
            bubblewrap=self.bubblewrap,
            module="__main__" if notebook else "solution",
            seed=self.seed,
        )
        self._sandbox = sandbox.__enter__()
        self.versions = sandbox.versions
        try:
            begun, _ = sandbox.exchange({"op": "begin", "prelude": self.lab.prelude}, seconds=self.limits.start)
        except Ended as ended:
            raise GraderError(f"the prelude of lab {self.lab.name} ends the process: {ended}") from None
        if begun.get("error") is not None:
            raise GraderError(f"the prelude of lab {self.lab.name} fails: {_error(begun['error'])}")
        sandbox.allow(self._left)
        try:
            answer, _ = sandbox.exchange({"op": "run", "cells": self.submission.cells}, seconds=self.limits.cells)
        except Ended as ended:
            self.failed = f"while your code was run from its first line to its last, {ended}"
            self._close()
            raise Ended(self.failed) from None
        errors = answer.get("errors")
        listed = [_error(x) for x in errors[: len(self.submission.cells)]] if isinstance(errors, list) else []
        self.errors = tuple(error for error in listed if error is not None)
        return sandbox

    def _used_up(self) -> str:
        return f"the {self.limits.wall:g} seconds for the whole submission were used up"

    def _close(self) -> None:
        if self._sandbox is not None:
            self._left = min(self._left, self._sandbox.left)
            self._sandbox.close()
            self._printed.append(self._sandbox.printed)
            self._sandbox = None


# What came back, looked at --------------------------------------------------------------------------------------------


def text_of(said: object, most: int = LONGEST) -> str:
    """Words of a student's code, fit for a page: one line, without control characters, not too long."""
    if not isinstance(said, str):
        return ""
    kept = "".join(c if c.isprintable() else " " for c in said[: 4 * most])
    return " ".join(kept.encode("utf-8", "replace").decode().split())[:most]


def decode(tagged: object, blob: bytes) -> Any:  # noqa: ANN401
    """A value from the sandbox, as plain Python values and `Tensor`.

    Raises
    ------
    Ended
        If it is none: only code that writes to the line itself sends such.
    """
    try:
        return _plain(tagged, blob)
    except NotPlain as found:
        raise Ended(str(found)) from None


def _plain(tagged: object, blob: bytes, depth: int = 0) -> Any:  # noqa: ANN401
    match tagged:
        case ["n"]:
            return None
        case ["b", bool(value)]:
            return value
        case ["i", str(value)] if re.fullmatch(r"-?[0-9]{1,300}", value):
            return int(value)
        case ["f", float(value)]:
            return value
        case ["s", str(value)]:
            return value
        case ["o", str(name)]:
            return Other(text_of(name, 80))
        case ["l" | "t" as tag, list(values)] if depth < DEEPEST:
            decoded = [_plain(x, blob, depth + 1) for x in values]
            return decoded if tag == "l" else tuple(decoded)
        case ["d", list(pairs)] if depth < DEEPEST and all(_is_pair(x) for x in pairs):
            return {text_of(key): _plain(x, blob, depth + 1) for key, x in pairs}
        case ["a", str(dtype), list(shape), int(start), int(length)]:
            return _tensor(dtype, shape, start, length, blob)
    raise NotPlain("it answered with what is no answer: only numbers, texts, arrays and lists of them are")


def _is_pair(x: object) -> bool:
    return isinstance(x, list) and len(x) == 2 and isinstance(x[0], str)


def _tensor(dtype: str, shape: list[Any], start: int, length: int, blob: bytes) -> Tensor:
    if dtype not in FLOATS + WHOLE or len(shape) > 16 or not all(type(n) is int and 0 <= n < 2**40 for n in shape):
        raise NotPlain("it answered with an array that is none")
    size = {"bfloat16": 2}.get(dtype) or np.dtype(dtype).itemsize
    if not (start >= 0 and length == math.prod(shape) * size and start + length <= len(blob)):
        raise NotPlain("it answered with an array of another size than it says")
    data = blob[start : start + length]
    if dtype == "bool" and data.strip(b"\0\1"):
        raise NotPlain("it answered with truth values that are neither true nor false")
    return Tensor(dtype, tuple(shape), data)


@dataclass(frozen=True)
class Other:
    """A value that has no place here, of which only the name of its type came back."""

    name: str


def _error(said: object) -> StudentError | None:
    if said is None:
        return None
    given = said if isinstance(said, dict) else {}
    types = given.get("types")
    names = [x for x in types[:8] if isinstance(x, str) and x.isidentifier()] if isinstance(types, list) else []
    return StudentError(
        tuple(text_of(name, 60) for name in names) or ("Exception",),
        text_of(given.get("message")),
        text_of(given.get("where"), 80),
    )


def _signature(answer: Mapping[str, Any]) -> inspect.Signature | None:
    if answer.get("found") != "function":
        return None
    listed = answer.get("parameters")
    parameters = []
    for entry in listed[:MOST_PARAMETERS] if isinstance(listed, list) else ():
        match entry:
            case [str(name), int(kind), bool(has_default)] if name.isidentifier() and 0 <= kind <= 4:
                default = ... if has_default else inspect.Parameter.empty
                parameters.append(inspect.Parameter(name, inspect._ParameterKind(kind), default=default))
    try:
        return inspect.Signature(parameters)
    except ValueError:  # in an order that no function can have
        return inspect.Signature()


# As a callable --------------------------------------------------------------------------------------------------------


class RemoteFunction:
    """A student's function as a callable on tensors, with gradients: what the contracts are put to.

    The sandbox computes value and gradient; the tensor returned here carries both. Nothing of the student's is run or
    looked at on this side: its signature has names only, and what it declares of itself is not read.
    """

    def __init__(self, student: Student, name: str, signature: inspect.Signature) -> None:
        self.student, self.name, self.__name__ = student, name, name
        self.__signature__ = signature

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:  # noqa: ANN401
        """Call it."""
        import torch

        keyed: dict[int | str, Any] = dict(enumerate(arguments)) | keywords
        wanted = [
            place
            for place, value in keyed.items()
            if isinstance(value, torch.Tensor) and value.requires_grad and torch.is_grad_enabled()
        ]
        answer = self.student.call(self.name, arguments, keywords, wanted)
        if answer.error is not None:
            raise exception(answer.error)
        value = answer.value.torch() if isinstance(answer.value, Tensor) else answer.value
        if isinstance(value, Other):
            return value
        leaves = [keyed[place] for place in wanted]
        if not isinstance(value, torch.Tensor) or not wanted or not value.dtype.is_floating_point:
            return value
        if answer.gradient_error is not None:
            return _carrier().apply(value, answer.gradient_error, *leaves)
        if answer.gradients is None:
            return value
        gradients = [g.torch() for g in answer.gradients]
        if any(g.shape != leaf.shape or g.dtype != leaf.dtype for g, leaf in zip(gradients, leaves, strict=True)):
            raise Ended("it answered with a gradient of another shape than what it is by")
        return _carrier().apply(value, gradients, *leaves)


def exception(error: StudentError) -> Exception:
    """A student's exception as one of ours that is called as theirs was.

    It inherits from none of Python's own: contracts excuse a loss where PyTorch lacks an operation, and a student's
    code could say that it does.
    """
    kind: type[Exception] = type(error.types[0], (Exception,), {})
    return kind(str(error).removeprefix(f"{error.types[0]}: ").replace("not implemented for", "not implemented: for"))


def _carrier() -> Any:  # noqa: ANN401
    global _CARRIER
    if _CARRIER is None:
        import torch

        class Carried(torch.autograd.Function):
            """A value and its gradients, both computed elsewhere."""

            @staticmethod
            def forward(ctx: Any, value: Any, gradients: Any, *leaves: Any) -> Any:  # noqa: ANN401, ARG004
                ctx.gradients = gradients
                return value.clone()

            @staticmethod
            @torch.autograd.function.once_differentiable
            def backward(ctx: Any, by_value: Any) -> Any:  # noqa: ANN401
                if isinstance(ctx.gradients, StudentError):
                    raise exception(ctx.gradients)
                weight = by_value.flatten()[0] if by_value.numel() else by_value.new_zeros(())
                if not bool((by_value == weight).all()):
                    raise RuntimeError("only the gradient of the sum of its values is known")
                return None, None, *(weight.to(g.dtype) * g for g in ctx.gradients)

        _CARRIER = Carried
    return _CARRIER


_CARRIER: Any = None
