"""Attacks on the grader: none earns what it did not, changes another's mark, or leaves anything behind."""

import contextlib
import importlib.util
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import losslab
from losslab.grading import load_lab
from losslab.grading.batch import Options, collect, mark_batch
from losslab.grading.sandbox import find_bubblewrap
from small_lab import notebook, tree

FOLDER = Path(__file__).with_name("hostile")
SEED, TIMEOUT = 20, 4.0
#: Marked first, last, and on the other core while a fork bomb goes off.
HONEST = ("aaa-honest", "fork-bomb-neighbour", "zzz-honest")
SECRET, OTHERS_SECRET = "hostile-secret-7c1f", "# neighbours-secret-93ab\n"

spec = importlib.util.spec_from_file_location("attacks", FOLDER / "attacks.py")
attacks = importlib.util.module_from_spec(spec)
sys.modules["attacks"] = attacks  # dataclasses look their module up
spec.loader.exec_module(attacks)

pytestmark = pytest.mark.xdist_group("hostile")


class Listener:
    """Something on this machine that attacks try to reach."""

    def __init__(self):
        self.heard = []
        self.port_socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.port_socket.getsockname()[1]
        self.name = f"losslab-hostile-{os.getpid()}-{id(self)}"
        self.abstract = socket.socket(socket.AF_UNIX)
        self.abstract.bind(f"\0{self.name}")
        self.abstract.listen()
        for listening in (self.port_socket, self.abstract):
            threading.Thread(target=self._listen, args=(listening,), daemon=True).start()

    def _listen(self, listening):
        with contextlib.suppress(OSError):
            while True:
                self.heard.append(listening.accept())

    def close(self):
        self.port_socket.close()
        self.abstract.close()


def sandboxed():
    """Processes that are sandboxes, or in one."""
    found = set()
    for process in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if process.name.isdigit():
                command = (process / "cmdline").read_bytes()
                if b"inside.py" in command or command.split(b"\0")[0].endswith(b"bwrap"):
                    found.add(int(process.name))
    return found


class Run:
    """All attacks in two batches, with honest submissions among them."""

    def __init__(self, root):
        self.outside = root / "outside"
        self.outside.mkdir()
        self.outside.chmod(0o777)
        self.listener = Listener()
        self.canary = subprocess.Popen(["sleep", "600"])
        before = {FOLDER / lab: tree(FOLDER / lab) for lab in ("plain", "torch")}
        loose = self.loose()
        self.marks, self.problems = {}, []
        began = time.monotonic()
        for lab in ("plain", "torch"):
            handed_in = self.hand_in(root / lab, lab)
            handed_in_before = tree(handed_in)
            described = load_lab(FOLDER / lab)
            outcome = mark_batch(
                FOLDER / lab,
                collect(handed_in, described.form),
                root / f"out-{lab}",
                Options(SEED, TIMEOUT, require_isolation=True),
                jobs=2,
            )
            self.marks |= {(lab, record.submission.student): record.mark for record in outcome.records}
            self.problems += outcome.problems
            assert tree(handed_in) == handed_in_before
        self.seconds = time.monotonic() - began
        self.listener.close()
        self.unchanged = all(tree(folder) == files for folder, files in before.items())
        self.left_files = self.loose() - loose
        self.left_running = sandboxed()

    def loose(self):
        """What attacks could have written, were they let out."""
        places = ["/tmp", "/var/tmp", "/dev/shm", "/", "/etc", str(Path.home()), str(Path.cwd()), str(self.outside)]
        return {str(path) for place in places for path in Path(place).glob("hostile-*")}

    def hand_in(self, folder, lab):
        folder.mkdir()
        names = {
            "@ORACLE@": str(FOLDER / lab),
            "@OTHERS@": str(folder),
            "@OUTSIDE@": str(self.outside),
            "@SOURCE@": str(Path(losslab.__file__).parents[1]),
            "@PORT@": str(self.listener.port),
            "@SOCKET@": self.listener.name,
        }
        right = OTHERS_SECRET + (attacks.RIGHT_PLAIN if lab == "plain" else attacks.RIGHT_TORCH)
        for student in HONEST:
            write(folder, student, right, lab, "")
        for attack in attacks.ATTACKS:
            if attack.torch == (lab == "torch"):
                code = attack.code
                if attack.name == "huge-notebook":
                    code = notebook(right).replace('"outputs": []', f'"outputs": ["{"x" * 50_000_000}"]').encode()
                if isinstance(code, str):
                    for name, value in names.items():
                        code = code.replace(name, value)
                write(folder, attack.name, code, lab, attack.suffix)
        suffix = ".py" if lab == "plain" else ".ipynb"
        (folder / f"linked{suffix}").symlink_to(folder / f"aaa-honest{suffix}")
        return folder


def write(folder, student, code, lab, suffix):
    if isinstance(code, str):
        code = (code if lab == "plain" else notebook(code)).encode()
    (folder / f"{student}{suffix or ('.py' if lab == 'plain' else '.ipynb')}").write_bytes(code)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    if find_bubblewrap() is None:
        pytest.fail("students' code cannot be shut in here: install bubblewrap (see .ci/run)")
    from joblib.externals.loky import get_reusable_executor

    get_reusable_executor().shutdown(wait=True)  # its processes would not have the secret in their environment
    os.environ["LOSSLAB_HOSTILE"] = SECRET
    try:
        ran = Run(tmp_path_factory.mktemp("hostile"))
    finally:
        del os.environ["LOSSLAB_HOSTILE"]
    yield ran
    ran.canary.kill()
    ran.canary.wait()


def said(mark):
    return "\n".join([mark.log, mark.unreadable, *(str(feedback) for item in mark.items for feedback in item.feedback)])


def test_there_are_more_than_thirty_and_each_has_a_name():
    names = [attack.name for attack in attacks.ATTACKS]
    assert len(names) == len(set(names)) >= 30


@pytest.mark.parametrize("attack", attacks.ATTACKS, ids=lambda attack: attack.name)
def test_an_attack_earns_nothing(run, attack):
    mark = run.marks["torch" if attack.torch else "plain", attack.name]
    assert mark.status == "marked", mark.log
    points = {item.id: item.points for item in mark.items}
    assert points["stolen"] == 0
    assert points["beside"] in ((0, 1) if attack.beside is None else (attack.beside,)), said(mark)
    assert mark.seconds < TIMEOUT + 20
    told = said(mark)
    assert attack.says in told
    assert len(told) < 100_000
    assert SECRET not in told
    assert OTHERS_SECRET.strip() not in told
    assert "def draw(random" not in told


@pytest.mark.parametrize("lab", ["plain", "torch"])
@pytest.mark.parametrize("student", HONEST)
def test_an_honest_submission_beside_them_is_marked_in_full(run, lab, student):
    mark = run.marks[lab, student]
    assert {item.id: item.points for item in mark.items} == {"beside": 1, "stolen": 4}, said(mark)


def test_a_link_to_anothers_work_earns_nothing(run):
    assert ("plain", "linked") not in run.marks
    assert [line for line in run.problems if line.startswith("linked: ") and line.count("is a link")]


def test_all_finish_in_time(run, request):
    request.node.user_properties.append(("measured", f"{len(run.marks)} hostile submissions in {run.seconds:.0f} s"))
    assert run.seconds < len(run.marks) * (TIMEOUT + 5) / 2


def test_nothing_is_left_running(run):
    """Others may run sandboxes at the same time, which end by themselves; what is left behind does not."""
    deadline = time.monotonic() + 60
    left = run.left_running
    while left and time.monotonic() < deadline:
        left &= sandboxed()
        time.sleep(0.2)
    assert not left, subprocess.run(["ps", "-fp", ",".join(map(str, left))], capture_output=True, text=True).stdout


def test_nothing_outside_is_read_written_reached_or_killed(run):
    assert run.unchanged
    assert not run.left_files
    assert not list(run.outside.iterdir())
    assert not run.listener.heard
    assert run.canary.poll() is None


def test_the_listener_would_have_heard_it():
    """The guard of the test above: what attacks could not do is possible from here."""
    listener = Listener()
    try:
        socket.create_connection(("127.0.0.1", listener.port)).close()
        with socket.socket(socket.AF_UNIX) as line:
            line.connect(f"\0{listener.name}")
        deadline = time.monotonic() + 10
        while len(listener.heard) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert len(listener.heard) == 2
    finally:
        listener.close()


def test_an_attack_that_works_outside_the_sandbox(tmp_path):
    """Another guard: reading the oracle and the neighbour's work would earn full marks if the files were there."""
    by_name = {attack.name: attack for attack in attacks.ATTACKS}
    write(tmp_path, "aaa", OTHERS_SECRET + attacks.RIGHT_PLAIN, "plain", "")
    for name in ("reads-the-oracle", "copies-its-neighbour"):
        code = by_name[name].code.replace("@ORACLE@", str(FOLDER / "plain")).replace("@OTHERS@", str(tmp_path))
        check = "\nassert abs(perplexity([1.0, 3.0]) - 2.718281828459045 ** 2) < 1e-9\n"
        subprocess.run([sys.executable, "-c", code + check], check=True, stdout=subprocess.DEVNULL)
