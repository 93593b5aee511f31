"""The program in the sandbox: runs a student's cells, then calls their functions when asked to.

It is given to a bare interpreter, without losslab, and needs the standard library only; torch and numpy where the lab
does. It gets requests on one pipe and answers on another. Nothing it says is trusted: a student's code runs in this
very process and can write to the same pipe. `losslab.grading.remote` is the other end, and judges.

A message is ``>IQ``, the lengths of two parts: JSON, and the raw bytes of the arrays it names. A value in JSON is a
list that begins with a tag::

    ["n"]  None          ["b", true]       ["i", "12"]            ["f", 0.5]     ["s", "text"]
    ["l", [value...]]    ["t", [value...]]  ["d", [[key, value]...]]  ["a", dtype, shape, offset, length]
    ["o", type name]     anything else; nothing is ever pickled
"""

from __future__ import annotations

import gc
import io
import itertools
import json
import linecache
import math
import os
import re
import struct
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any

HEADER = struct.Struct(">IQ")
LONGEST_MESSAGE = 400  # characters of an exception's text
FLOATS = ("float16", "bfloat16", "float32", "float64")
WHOLE = ("bool", "uint8", "int8", "int16", "int32", "int64")
#: Cell magics whose cell is Python all the same.
PYTHON_MAGICS = ("time", "timeit", "capture", "prun", "python", "python3", "pypy")
#: What the values of an array are packed as in Python's struct, in a lab without numpy.
PACKED = {
    "bool": "?",
    "uint8": "B",
    "int8": "b",
    "int16": "h",
    "int32": "i",
    "int64": "q",
    "float32": "f",
    "float64": "d",
}


def pack(message: Any, blob: bytes = b"") -> bytes:  # noqa: ANN401
    """A message as it goes through the pipe."""
    text = json.dumps(message).encode()
    return HEADER.pack(len(text), len(blob)) + text + blob


class Channel:
    """The two pipes, seen from inside."""

    def __init__(self, requests: int, replies: int) -> None:
        self.requests, self.replies = requests, replies

    def receive(self) -> tuple[Any, bytes] | None:
        """The next request; None when the other end is closed."""
        head = self._read(HEADER.size)
        if head is None:
            return None
        text_length, blob_length = HEADER.unpack(head)
        text, blob = self._read(text_length), self._read(blob_length)
        return None if text is None or blob is None else (json.loads(text), blob)

    def send(self, message: Any, blob: bytes = b"") -> None:  # noqa: ANN401
        """Answer."""
        rest = memoryview(pack(message, blob))
        while rest:
            rest = rest[os.write(self.replies, rest) :]

    def _read(self, length: int) -> bytes | None:
        parts = []
        while length:
            part = os.read(self.requests, min(length, 1 << 20))
            if not part:
                return None
            parts.append(part)
            length -= len(part)
        return b"".join(parts)


class Encoder:
    """Values as tagged JSON, the bytes of arrays beside it."""

    def __init__(self) -> None:
        self.blob = io.BytesIO()

    def __call__(self, value: Any, depth: int = 0) -> list[Any]:  # noqa: ANN401
        """One value. Only exact types count: a subclass may lie about what it is."""
        kind = type(value)
        if value is None:
            return ["n"]
        if kind is bool:
            return ["b", value]
        if kind is int:
            return ["i", str(value)] if abs(value) < 10**300 else ["o", "int of more than 300 digits"]
        if kind is float:
            return ["f", value]
        if kind is str:
            return ["s", value]
        if depth < 24 and kind in (list, tuple):
            return ["l" if kind is list else "t", [self(x, depth + 1) for x in value]]
        if depth < 24 and kind is dict and all(type(key) is str for key in value):
            return ["d", [[key, self(x, depth + 1)] for key, x in value.items()]]
        return self.array(value) or ["o", kind.__name__]

    def array(self, value: Any) -> list[Any] | None:  # noqa: ANN401
        """A tensor or array; None if it is none, or of numbers that have no place here."""
        torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
        if torch is not None and isinstance(value, torch.Tensor):
            dtype = str(value.dtype).removeprefix("torch.")
            if dtype not in FLOATS + WHOLE or value.layout != torch.strided:
                return ["o", f"tensor of {dtype}"]
            plain = value.detach().cpu().contiguous()
            plain = plain.view(torch.int16) if dtype == "bfloat16" else plain
            return self.raw(dtype, list(value.shape), plain.numpy().tobytes())
        if numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic)):
            dtype = value.dtype.name
            if dtype not in FLOATS + WHOLE:
                return ["o", f"array of {dtype}"]
            return self.raw(dtype, list(value.shape), numpy.ascontiguousarray(value).tobytes())
        return None

    def raw(self, dtype: str, shape: list[int], data: bytes) -> list[Any]:
        """An array, given its bytes."""
        start = self.blob.tell()
        self.blob.write(data)
        return ["a", dtype, shape, start, len(data)]


def decode(tagged: Sequence[Any], blob: bytes) -> Any:  # noqa: ANN401
    """A value from the grader: arrays become tensors where there is torch, else lists."""
    tag = tagged[0]
    if tag == "n":
        return None
    if tag == "i":
        return int(tagged[1])
    if tag in "bfs":
        return tagged[1]
    if tag == "l":
        return [decode(x, blob) for x in tagged[1]]
    if tag == "t":
        return tuple(decode(x, blob) for x in tagged[1])
    if tag == "d":
        return {key: decode(x, blob) for key, x in tagged[1]}
    _, dtype, shape, start, length = tagged
    data = blob[start : start + length]
    torch = sys.modules.get("torch")
    if torch is None:
        numbers = struct.unpack(f"<{math.prod(shape)}{PACKED[dtype]}", data)
        return nested(list(numbers), shape)
    if not data:
        return torch.empty(shape, dtype=getattr(torch, dtype))
    return torch.frombuffer(bytearray(data), dtype=getattr(torch, dtype)).reshape(shape)


def nested(numbers: list[Any], shape: list[int]) -> Any:  # noqa: ANN401
    """Numbers in row order as lists of lists."""
    if not shape:
        return numbers[0]
    if len(shape) == 1:
        return numbers
    step = math.prod(shape[1:])
    return [nested(numbers[i * step : (i + 1) * step], shape[1:]) for i in range(shape[0])]


def described(error: BaseException, names: Sequence[str]) -> dict[str, Any]:
    """An exception in plain words: its types, its message, and where in the student's code it came from."""
    try:
        message = str(error)
    except BaseException:
        message = ""
    where = ""
    if isinstance(error, SyntaxError) and error.filename in names:
        where = f"{error.filename}, line {error.lineno}"
        message = str(error.msg)
    else:
        # Endless recursion with its limit taken away leaves millions of frames.
        for frame, line in itertools.islice(traceback.walk_tb(error.__traceback__), 2000):
            if frame.f_code.co_filename in names:
                where = f"{frame.f_code.co_filename}, line {line}"
    return {
        "types": [str(kind.__name__)[:60] for kind in type(error).__mro__][:8],
        "message": message[:LONGEST_MESSAGE],
        "where": where,
    }


def plain_python(source: str) -> str:
    """A cell without the notebook's own commands: what Python stumbles over becomes ``pass``, if it looks like one.

    That is ``%magic``, ``!command``, ``name?`` and ``name = !command``; a cell of another language (``%%bash``) becomes
    empty. Line numbers stay.
    """
    lines = source.split("\n")
    first = next((i for i, line in enumerate(lines) if line.strip()), 0)
    magic = re.match(r"%%(\w+)", lines[first])
    if magic and magic[1] not in PYTHON_MAGICS:
        return ""
    for _ in range(200):
        try:
            compile("\n".join(lines), "cell", "exec", dont_inherit=True)
            break
        except SyntaxError as error:
            place = (error.lineno or 0) - 1
            if not (0 <= place < len(lines) and re.match(r"\s*(%|!|\?|\w+ *= *[!%])|.*\?\s*$", lines[place])):
                break
            lines[place] = re.sub(r"\S.*", "pass", lines[place])
        except Exception:  # too deep, or bytes that no source has: it is told when it runs
            break
    return "\n".join(lines)


class Program:
    """A student's code, run, and its functions."""

    def __init__(self, module: str) -> None:
        self.module = type(sys)(module)
        sys.modules[module] = self.module
        self.names: list[str] = []

    def begin(self, prelude: str) -> dict[str, Any]:
        """Run the lab's own code, before any of the student's."""
        try:
            exec(compile(prelude, "prelude", "exec", dont_inherit=True), self.module.__dict__)
        except BaseException as error:
            return {"error": described(error, ["prelude"])}
        return {}

    def run(self, cells: Sequence[Sequence[str]]) -> dict[str, Any]:
        """Run the student's cells; one that raises does not keep the next from running."""
        errors = []
        for name, source in cells:
            self.names.append(name)
            linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
            try:
                exec(compile(plain_python(source), name, "exec", dont_inherit=True), self.module.__dict__)
            except BaseException as error:
                errors.append(described(error, self.names))
        return {"errors": errors}

    def describe(self, function: str) -> dict[str, Any]:
        """Whether there is such a function, and what its parameters are called."""
        found = self.module.__dict__.get(function)
        if not callable(found):
            return {"found": "nothing" if found is None else type(found).__name__, "parameters": []}
        import inspect

        try:
            parameters = inspect.signature(found).parameters.values()
            listed = [[p.name, int(p.kind), p.default is not p.empty] for p in parameters]
        except BaseException:
            listed = []
        return {"found": "function", "parameters": listed}

    def call(self, request: dict[str, Any], blob: bytes) -> tuple[dict[str, Any], bytes]:
        """The value of a function and, if asked for, the gradient of its sum by some of its arguments."""
        arguments = [decode(x, blob) for x in request["arguments"]]
        keywords = {name: decode(x, blob) for name, x in request["keywords"].items()}
        # By position or by keyword; whichever, in training they come out of a model, so a loss may write into them.
        leaves, wanted = [], request["gradients"]
        for place in wanted:
            held: Any = arguments if isinstance(place, int) else keywords
            leaf = held[place].requires_grad_()
            leaves.append(leaf)
            held[place] = leaf.clone()
        try:
            value = self.module.__dict__[request["function"]](*arguments, **keywords)
        except BaseException as error:
            return {"error": described(error, self.names)}, b""
        encode = Encoder()
        try:
            answer: dict[str, Any] = {"value": encode(value)}
            if wanted:
                answer |= self.gradients(value, leaves, encode)
        except BaseException as error:  # a value that cannot even be looked at
            return {"error": described(error, self.names)}, b""
        return answer, encode.blob.getvalue()

    def gradients(self, value: Any, leaves: list[Any], encode: Callable[[Any], list[Any]]) -> dict[str, Any]:  # noqa: ANN401
        """By each of the leaves; None if the value does not depend on any."""
        torch = sys.modules["torch"]
        if not (isinstance(value, torch.Tensor) and value.requires_grad):
            return {"gradients": None}
        try:
            found = torch.autograd.grad(value.sum(), leaves, allow_unused=True)
        except BaseException as error:
            return {"gradients": None, "gradient_error": described(error, self.names)}
        return {
            "gradients": [encode(torch.zeros_like(x) if g is None else g) for x, g in zip(leaves, found, strict=True)]
        }


def confine(given: dict[str, Any]) -> None:
    """Become nobody, and set limits that only root could lift again."""
    import resource

    if given["uid"] is not None and os.getuid() == 0:
        os.setgroups([])
        os.setgid(given["uid"])
        os.setuid(given["uid"])
    for name, limit in given["limits"].items():
        which = getattr(resource, name)
        most = resource.getrlimit(which)[1]
        limit = limit if most == resource.RLIM_INFINITY else min(limit, most)
        resource.setrlimit(which, (limit, limit))


def prepare(given: dict[str, Any]) -> dict[str, Any]:
    """Import what the lab needs, and start every source of chance from the same seed."""
    import random

    random.seed(given["seed"])
    if not given["torch"]:
        return {}
    sys.path.append(given["packages"])
    gc.disable()  # what an import makes stays: looking for garbage in it took a tenth of the time
    import numpy
    import torch

    gc.freeze()
    gc.enable()
    numpy.random.seed(given["seed"] % 2**32)  # noqa: NPY002  (the generator that students' code may use)
    torch.manual_seed(given["seed"])
    torch.set_num_threads(1)
    return {"torch": torch.__version__, "numpy": numpy.__version__}


def main(requests: int, replies: int) -> None:
    """Serve until the other end closes."""
    channel = Channel(requests, replies)
    first = channel.receive()
    if first is None:
        return
    given = first[0]
    confine(given)
    versions = prepare(given)
    channel.send({"id": given["id"], "ready": True, "versions": versions, "uid": os.getuid()})
    program = Program(given["module"])
    while (received := channel.receive()) is not None:
        request, blob = received
        out = b""
        if request["op"] == "begin":
            answer = program.begin(request["prelude"])
        elif request["op"] == "run":
            answer = program.run(request["cells"])
        elif request["op"] == "describe":
            answer = program.describe(request["function"])
        else:
            answer, out = program.call(request, blob)
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except BaseException:  # whatever the student has put there
            pass
        channel.send({"id": request["id"], **answer}, out)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
    os._exit(0)
