"""Marking a folder of submissions on all cores; each mark is on disk as soon as it is there."""

from __future__ import annotations

import errno
import hashlib
import importlib.metadata
import json
import os
import re
import secrets
import stat
import warnings
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from losslab.corpora.files import replace_file
from losslab.grading.sandbox import Isolation, Limits

if TYPE_CHECKING:
    from losslab.grading.marking import Mark

Progress = Callable[[str], None]

#: ``lastname_12345_67890_file.ipynb``, as Canvas names what it exports: the student's number, then the submission's.
CANVAS = re.compile(r"(?P<name>[^_]+)_(?:LATE_)?(?P<id>\d+)_\d+_(?P<file>.+)")
#: ``Name_12345_assignsubmission_file_`` (a folder, or the beginning of a file name), as Moodle names them.
MOODLE = re.compile(r"(?P<name>.+)_(?P<id>\d+)_assignsubmission_(?P<plugin>file|onlinetext)_?(?P<file>.*)")
#: ``lab-1``, ``lab-2``: how Canvas numbers what is handed in again.
RESUBMITTED = re.compile(r"-(\d+)$")
SUFFIXES = {"notebook": (".ipynb", ".py"), "module": (".py", ".ipynb")}
#: Packages whose version can change a mark.
PACKAGES = ("losslab", "torch", "numpy")
CLUSTER_PATIENCE = 20  # seconds for a scheduler to answer


class BatchError(Exception):
    """What stops a whole batch: one line that says what is wrong and what to do."""


@dataclass(frozen=True)
class Submission:
    """One student's file.

    Attributes
    ----------
    student
        What names them in every output.
    path
        The file; for a folder without one, the folder.
    canvas_id, participant
        The number by which Canvas, or an assignment in Moodle, knows them; empty where the name does not tell.
    problem
        Why it cannot be marked, or empty.
    """

    student: str
    path: Path
    canvas_id: str = ""
    participant: str = ""
    problem: str = ""

    @property
    def key(self) -> str:
        """A file name of its own for each student, safe on every system and in every address."""
        safe = re.sub(r"[^A-Za-z0-9._-]+", "-", self.student).strip(".-")[:60]
        if safe == self.student:
            return safe
        # A file name need not be UTF-8; Python then holds its bytes as lone surrogates.
        digest = hashlib.sha256(self.student.encode("utf-8", "surrogatepass")).hexdigest()
        return f"{safe or 'student'}-{digest[:8]}"


@dataclass(frozen=True)
class Options:
    """What changes a mark besides the submission and the lab.

    Attributes
    ----------
    seed
        Of the random inputs; the same for everybody, so that nobody gets harder cases.
    timeout
        Seconds for one submission, or None for the lab's own limit.
    require_isolation
        Refuse to run students' code where it cannot be shut in.
    """

    seed: int
    timeout: float | None = None
    require_isolation: bool = False

    @property
    def limits(self) -> Limits | None:
        """What one submission may use, or None for the usual."""
        if self.timeout is None:
            return None
        usual = Limits()
        return Limits(wall=self.timeout, cells=min(self.timeout, usual.cells), call=min(self.timeout, usual.call))

    @property
    def isolation(self) -> Isolation:
        """How students' code is to be shut in."""
        return "required" if self.require_isolation else "auto"


@dataclass(frozen=True)
class Record:
    """A mark as it lies on disk, and what it was given for: a submission, and a version of the lab."""

    submission: Submission
    fingerprint: str
    mark: Mark
    lab_version: str = ""


@dataclass
class Batch:
    """What came of a run.

    Attributes
    ----------
    records
        A mark for every submission that has one now, in the order of the students' names.
    fresh
        How many were marked in this run.
    problems
        A line for each submission that could not be read.
    missing
        Students who have no current mark: not asked for, or the run was broken off.
    stopped
        What broke the run off, or None.
    """

    records: list[Record] = field(default_factory=list)
    fresh: int = 0
    problems: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    stopped: KeyboardInterrupt | None = None

    @property
    def failures(self) -> list[Record]:
        """Where the grader failed, and not the student."""
        return [record for record in self.records if record.mark.status == "grader-failure"]


def collect(
    folder: Path, form: str = "notebook", *, latest: bool = False, progress: Progress = lambda _: None
) -> list[Submission]:
    """Find the submissions in a folder, in the order of the students' names.

    A submission is ``<student>.ipynb``, a folder ``<student>/`` with one such file, or what Canvas or Moodle exports.
    Links are never followed: one could point at another student's work.

    Parameters
    ----------
    folder
        Where they lie.
    form
        ``"notebook"`` or ``"module"``: which of a student's files counts where there are several.
    latest
        Of two submissions by one student take the newest: by the number that Canvas puts behind a name (``lab-1.ipynb``
        comes after ``lab.ipynb``), else by the time of the file.
    progress
        Receives a line for each student of whom one was taken.

    Raises
    ------
    BatchError
        There is no such folder, it cannot be read, nothing is in it, or one student handed in two.
    """
    try:
        entries = sorted(entry for entry in folder.iterdir() if not _hidden(entry.name))
    except OSError as problem:
        raise BatchError(f"{folder} cannot be read as a folder of submissions: {problem.strerror}") from None
    found: dict[str, list[Submission]] = {}
    for entry in entries:
        student, canvas_id, participant, text_only = _who(entry)
        for path, trouble in _files(entry, form):
            if not text_only:
                found.setdefault(student, []).append(Submission(student, path, canvas_id, participant, trouble))
    if not found:
        raise BatchError(f"no submissions in {folder}; expected <student>.ipynb or <student>/<file>")
    for student, several in found.items():
        if len(several) > 1:
            # the right kind of file counts, so that a picture or a data file beside it does no harm
            best = [each for each in several if each.path.suffix == SUFFIXES[form][0]] or several
            if len(best) > 1:
                best = [_newest(folder, student, best, latest, progress)]
            found[student] = best
    return [found[student][0] for student in sorted(found)]


def _newest(folder: Path, student: str, several: list[Submission], latest: bool, progress: Progress) -> Submission:
    """The newest of one student's submissions, if it is asked for and can be told."""
    names = {each: str(each.path.relative_to(folder)) for each in several}
    if not latest:
        raise BatchError(
            f"{len(several)} submissions by {student}: {', '.join(names.values())}; leave the one that counts, or take "
            "the newest of each with --latest"
        )
    if all(each.canvas_id for each in several):
        by, ages = (
            "the number behind its name",
            [int((RESUBMITTED.search(each.path.stem) or "00")[1]) for each in several],
        )
    if not all(each.canvas_id for each in several) or len(set(ages)) < len(ages):
        by, ages = "the time of its file", [each.path.lstat().st_mtime_ns for each in several]
    if ages.count(max(ages)) > 1:
        raise BatchError(
            f"{len(several)} submissions by {student}, none newer than the others: {', '.join(names.values())}; leave "
            "the one that counts"
        )
    newest = several[ages.index(max(ages))]
    others = ", ".join(name for each, name in names.items() if each is not newest)
    progress(f"{student}: {names[newest]} counts, the newest by {by}; not {others}")
    return newest


def _hidden(name: str) -> bool:
    return name.startswith((".", "__MACOSX")) or name in {"Thumbs.db", "desktop.ini"}


def _who(entry: Path) -> tuple[str, str, str, bool]:
    """Student, number in Canvas, number in Moodle, and whether this is only a text typed into Moodle."""
    if match := MOODLE.fullmatch(entry.name):
        return match["name"], "", match["id"], match["plugin"] == "onlinetext"
    if match := CANVAS.fullmatch(entry.name):
        return f"{match['name']}_{match['id']}", match["id"], "", False
    return (entry.name if entry.is_dir() and not entry.is_symlink() else entry.stem), "", "", False


def _files(entry: Path, form: str) -> list[tuple[Path, str]]:
    """The files of one entry that may be the submission, each with why it cannot be read, or nothing."""
    if entry.is_symlink() or not entry.is_dir():
        return [(entry, _trouble(entry))]
    try:
        inside = [path for path in _walk(entry) if not any(_hidden(part) for part in path.relative_to(entry).parts)]
    except OSError as problem:
        return [(entry, f"cannot be read: {problem.strerror}")]
    for suffix in SUFFIXES[form]:
        if chosen := [path for path in inside if path.suffix == suffix]:
            return [(path, _trouble(path)) for path in chosen]
    return [(path, _trouble(path)) for path in inside] or [(entry, "is an empty folder")]


def _walk(folder: Path) -> list[Path]:
    def complain(problem: OSError) -> None:
        raise problem

    walked = os.walk(folder, onerror=complain, followlinks=False)
    return sorted(Path(where, name) for where, _, names in walked for name in names)


def _trouble(path: Path) -> str:
    """Why this cannot be read, or nothing."""
    try:
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            return "is a link; put the file itself in its place"
        if not stat.S_ISREG(mode):
            return "is not a file"
        with path.open("rb"):
            return ""
    except OSError as problem:
        return f"cannot be read: {problem.strerror}"


def lab_version(folder: Path) -> str:
    """A hash of everything in a lab's folder that marks can depend on."""
    digest = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        if path.suffix in {".py", ".md", ".ipynb"} and path.is_file():
            digest.update(os.fsencode(path.name) + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def fingerprint(submission: Submission, lab: str, options: Options) -> str:
    """A hash that changes with the submission's bytes, the seed, the lab, the options and the versions.

    Raises
    ------
    OSError
        The submission cannot be read.
    """
    digest = hashlib.sha256()
    with open(submission.path, "rb", opener=_no_link) as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
    versions = {}
    for package in PACKAGES:
        with suppress(importlib.metadata.PackageNotFoundError):
            versions[package] = importlib.metadata.version(package)
    parts = [submission.student, digest.hexdigest(), lab, options.seed, options.timeout, options.require_isolation]
    return hashlib.sha256(json.dumps([*parts, versions]).encode()).hexdigest()


def _no_link(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))


def settle_seed(out: Path, seed: int | None) -> int:
    """The seed of the run before in ``out``, else the one given, else a new one that nobody can guess.

    Raises
    ------
    BatchError
        Another is given than that of the run before: everybody would get other inputs, and perhaps another mark.
    """
    earlier = read_settings(out).get("seed")
    if not isinstance(earlier, int):
        return secrets.randbits(48) if seed is None else seed
    if seed not in (None, earlier):
        raise BatchError(f"{out} was marked with seed {earlier}; for --seed {seed} use another --out")
    return earlier


def settle_options(
    out: Path, seed: int | None, timeout: float | None, require_isolation: bool = False
) -> tuple[Options, str]:
    """The options of a run, and what is changed in them since the run before in ``out``.

    Whatever is not given is as it was then: else a run that only adds points by hand would mark everybody again.
    """
    seed, earlier = settle_seed(out, seed), read_settings(out)
    before = earlier.get("timeout")
    options = Options(
        seed, before if timeout is None else timeout, require_isolation or earlier.get("require_isolation") is True
    )
    if not earlier:
        return options, ""
    changed = []
    if options.timeout != before:
        usual = "the usual" if before is None else f"{before:g}"
        changed.append(f"--timeout {options.timeout:g} instead of {usual}")
    if options.require_isolation and "require_isolation" in earlier and not earlier["require_isolation"]:
        changed.append("--require-isolation")
    return options, f"options changed ({', '.join(changed)})" if changed else ""


def read_settings(out: Path) -> dict[str, Any]:
    """What the last run in ``out`` was told; empty if there was none.

    Raises
    ------
    BatchError
        The file is there and cannot be read.
    """
    path = out / "batch.json"
    try:
        settings = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError) as problem:
        raise BatchError(f"{path} cannot be read ({problem}); give another --out, or delete it") from None
    if not isinstance(settings, dict):
        raise BatchError(f"{path} is no record of a batch; give another --out, or delete it")
    return settings


def mark_batch(
    folder: Path,
    submissions: Sequence[Submission],
    out: Path,
    options: Options,
    *,
    jobs: int | None = None,
    cluster: str | None = None,
    only: Sequence[str] = (),
    changed: str = "",
    progress: Progress = lambda _: None,
) -> Batch:
    """Mark what has no current mark yet, and return every mark there is.

    A KeyboardInterrupt ends the run early: the workers are gone, and what was marked until then is returned.

    Parameters
    ----------
    folder
        The folder of the lab; workers read it anew, since checks are code and do not travel.
    submissions
        From `collect`.
    out
        Folder for the marks: ``marks/<student>.json``.
    options
        Seed and limits.
    jobs
        Processes at once; by default one a core. Marks do not depend on it.
    cluster
        Address of a Dask scheduler whose workers see the same folders, or ``local:2`` for two workers here.
    only
        Students to mark; by default all.
    changed
        Which options are others than in the run before, for the line that says why marks are given again.
    progress
        Receives a line for each mark.

    Raises
    ------
    BatchError
        A student in ``only`` has no submission, a package is missing, or the disk is full. What was marked is kept.
    """
    batch = Batch()
    unknown = sorted(set(only) - {submission.student for submission in submissions})
    if unknown:
        students = ", ".join(submission.student for submission in submissions[:10])
        raise BatchError(
            f"no submission by {', '.join(unknown)}; there are {students}{', …'[: 3 * (len(submissions) > 10)]}"
        )
    version = lab_version(folder)
    todo: list[tuple[Submission, str]] = []
    kept: dict[str, Record] = {}
    again: list[tuple[Record, Submission]] = []
    for submission in submissions:
        asked = not only or submission.student in only
        if not submission.problem:
            try:
                print_ = fingerprint(submission, version, options)
            except Exception as problem:  # whatever it is, the others are marked all the same
                submission = replace(submission, problem=str(problem))
        if submission.problem:
            if asked:
                batch.problems.append(f"{submission.student}: {submission.path} {submission.problem}")
            continue
        record = read_record(out, submission)
        if record and asked and record.fingerprint != print_:
            again.append((record, submission))
        if record and record.fingerprint == print_ and record.mark.status != "grader-failure":
            kept[submission.student] = replace(record, submission=submission)
        elif asked:
            todo.append((submission, print_))
    moved = [(was, now) for was, now in again if was.submission.path not in (now.path.absolute(), Path())]
    for was, now in moved:
        progress(f"{now.student}: {now.path} replaces {was.submission.path}, which was marked before")
    if len(again) > len(moved):
        progress(
            f"{changed or 'the lab, a submission or a version has changed'}: marking {len(again) - len(moved)} again"
        )
    try:
        with closing(_marks(folder, todo, options, jobs, cluster)) as marks:
            for submission, print_, mark in marks:
                record = Record(submission, print_, mark, version)
                try:
                    record = keep_record(out, record)
                except OSError as problem:
                    raise BatchError(
                        f"cannot write to {out}: {problem.strerror}; what was marked is kept ({len(kept)} of "
                        f"{len(submissions)}), run again to mark the rest"
                    ) from None
                kept[submission.student] = record
                batch.fresh += 1
                progress(f"{batch.fresh}/{len(todo)} {submission.student}: {say(mark)}")
    except KeyboardInterrupt as stopped:
        batch.stopped = stopped
    batch.records = [kept[submission.student] for submission in submissions if submission.student in kept]
    batch.missing = [submission.student for submission in submissions if submission.student not in kept]
    return batch


def say(mark: Mark) -> str:
    """A mark in a few words."""
    if mark.status == "grader-failure":
        return "the grader failed, no mark"
    if mark.unreadable:
        return f"cannot be read, 0 points: {mark.unreadable}"
    total = sum(item.out_of for item in mark.items if item.points is not None)
    return f"{mark.points:.6g} of {total:.6g} points"


def _marks(
    folder: Path,
    todo: Sequence[tuple[Submission, str]],
    options: Options,
    jobs: int | None,
    cluster: str | None,
) -> Generator[tuple[Submission, str, Mark], None, None]:
    """Marks as they come, whoever is ready first."""
    if not todo:
        return
    try:
        import joblib  # type: ignore[import-untyped]
    except ImportError:
        raise BatchError("joblib is missing; install it with: pip install 'losslab[grading]'") from None
    calls = (joblib.delayed(_mark_one)(number, folder, each, options) for number, (each, _) in enumerate(todo))
    count = min(jobs or _cores(), len(todo))
    with _workers(cluster):
        parallel = joblib.Parallel(
            n_jobs=-1 if cluster else count, return_as="generator_unordered", batch_size=1, pre_dispatch="2*n_jobs"
        )
        pending = set(range(len(todo)))
        try:
            # Ended early, by an interrupt or a full disk, joblib warns of work that was for nothing: it is known.
            with warnings.catch_warnings(), closing(parallel(calls)) as marks:
                warnings.filterwarnings("ignore", ".*still being processed by the workers", UserWarning)
                for number, mark in marks:
                    pending.discard(number)
                    yield *todo[number], mark
        except (joblib.externals.loky.process_executor.TerminatedWorkerError, ConnectionError) as problem:
            for number in sorted(pending):  # the machine took a worker away: nobody's marks suffer for it
                yield *todo[number], failed(folder.name, todo[number][0], options, f"a marking process died: {problem}")


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def _workers(cluster: str | None) -> Iterator[None]:
    """Joblib's own processes, or those of a Dask cluster."""
    import joblib

    if cluster is None:
        with joblib.parallel_config(backend="loky", inner_max_num_threads=1):
            yield
        return
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        raise BatchError("distributed is missing, --cluster needs it: pip install distributed") from None
    local = re.fullmatch(r"local:(\d+)", cluster)
    if local:
        target: Any = LocalCluster(  # type: ignore[no-untyped-call]
            n_workers=int(local[1]), threads_per_worker=1, dashboard_address=None
        )
    else:
        target = cluster
    try:
        try:
            client = Client(target, timeout=CLUSTER_PATIENCE)  # type: ignore[no-untyped-call]
        except (OSError, ValueError) as problem:
            reason = " ".join(str(problem).split())
            raise BatchError(f"no Dask scheduler answers at {cluster} ({reason}); or use local:2") from None
        with client, joblib.parallel_config(backend="dask", wait_for_workers_timeout=60):
            yield
    finally:
        if local:
            target.close()


def _mark_one(number: int, folder: Path, submission: Submission, options: Options) -> tuple[int, Mark]:
    """Mark one submission in a worker; whatever goes wrong there is the grader's failure and not the student's."""
    import losslab.contracts.checking  # noqa: F401  (a worker's first imports are nobody's time)
    from losslab.grading import load_lab, mark

    try:
        return number, mark(
            load_lab(folder),
            submission.path,
            student=submission.student,
            seed=options.seed,
            limits=options.limits,
            isolation=options.isolation,
        )
    except Exception as problem:
        return number, failed(folder.name, submission, options, f"{type(problem).__name__}: {problem}")


def failed(lab: str, submission: Submission, options: Options, why: str) -> Mark:
    """A mark that is none: the grader failed."""
    from losslab.grading import Mark

    return Mark(submission.student, lab, options.seed, "grader-failure", (), why, 0.0)


def record_path(out: Path, submission: Submission) -> Path:
    """Where this student's mark lies."""
    return out / "marks" / f"{submission.key}.json"


def write_record(out: Path, record: Record) -> None:
    """Put a mark on disk, whole or not at all."""
    submission = record.submission
    content: Mapping[str, object] = {
        "fingerprint": record.fingerprint,
        "lab_version": record.lab_version,
        "submission": {
            "path": str(submission.path.absolute()),
            "canvas_id": submission.canvas_id,
            "participant": submission.participant,
        },
        "mark": record.mark.to_dict(),
    }
    text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    replace_file(record_path(out, record.submission), text.encode("utf-8", "backslashreplace"))


#: What goes wrong with a disk, and not with one file: then no other can be written either.
DISK = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.ENOTDIR, errno.EACCES, errno.EPERM}


def keep_record(out: Path, record: Record) -> Record:
    """Put a mark on disk, or, if this one cannot be written, a failure of the grader in its place; what is there then.

    Raises
    ------
    OSError
        Nothing can be written.
    """
    try:
        write_record(out, record)
    except Exception as problem:
        if isinstance(problem, OSError) and problem.errno in DISK:
            raise
        record = replace(record, mark=unwritten(record, problem))
        with suppress(Exception):
            write_record(out, record)
    return record


def unwritten(record: Record, problem: Exception) -> Mark:
    """A mark that could not be written, as a failure of the grader."""
    from losslab.grading import Mark

    why = f"the mark cannot be written: {type(problem).__name__}: {problem}"
    return Mark(record.mark.student, record.mark.lab, record.mark.seed, "grader-failure", (), why, 0.0)


def read_record(out: Path, submission: Submission) -> Record | None:
    """The mark on disk, of whichever file; None where there is none or it is damaged: then it is marked again."""
    return _read(record_path(out, submission))


def earlier_records(out: Path, submissions: Sequence[Submission]) -> list[Record]:
    """Marks of students who are in ``out`` from another folder of submissions and not among these."""
    now = {submission.student for submission in submissions}
    found = [_read(path) for path in sorted((out / "marks").glob("[!.]*.json"))]
    return [record for record in found if record is not None and record.submission.student not in now]


def _read(path: Path) -> Record | None:
    from losslab.grading import Mark

    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        mark, of = Mark.from_dict(content["mark"]), content.get("submission", {})
        submission = Submission(
            mark.student, Path(of.get("path", "")), of.get("canvas_id", ""), of.get("participant", "")
        )
        return Record(submission, content["fingerprint"], mark, content.get("lab_version", ""))
    except Exception:  # a damaged file can be wrong in any way
        return None
