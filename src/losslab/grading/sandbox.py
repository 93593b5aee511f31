"""Where a student's code runs: alone, as an unprivileged user, without network, files or time to waste."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Isolation = Literal["auto", "required"]
MIB = 2**20


class IsolationMissingError(RuntimeError):
    """Isolation was required, and this machine has no bubblewrap that works."""


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
        Characters kept of what it prints.
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
