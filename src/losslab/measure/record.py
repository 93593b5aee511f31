"""Results on disk: one value a row in ``NAME.csv``, how it came about in ``NAME.json``; whole or not at all."""

from __future__ import annotations

import csv
import hashlib
import importlib.metadata
import io
import json
import os
import platform
import shlex
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import torch

from losslab.corpora.files import replace_file

Value = str | int | float | bool | None
Row = Mapping[str, Value]
Progress = Callable[[str], None]

#: Packages whose version can move a number; those that are not installed are left out of the record.
PACKAGES = ("losslab", "torch", "numpy", "sentence-transformers", "transformers")


@dataclass(frozen=True)
class Measurement:
    """One thing that ``losslab measure`` knows how to measure.

    Attributes
    ----------
    name
        What is typed on the command line, with hyphens (``listmle-versions``).
    title
        One line saying what is measured.
    columns
        The columns of the CSV, conditions first. Every row must have exactly these.
    collect
        ``collect(progress)`` gives the rows; ``progress`` takes one line of text for the person who waits.
    settings
        What was chosen (seeds, widths, runs); goes into the record as it is.
    """

    name: str
    title: str
    columns: tuple[str, ...]
    collect: Callable[[Progress], Iterable[Row]]
    settings: Mapping[str, object] = field(default_factory=dict)

    @property
    def stem(self) -> str:
        """File name without its ending: ``listmle-versions`` is written to ``listmle_versions.csv``."""
        return self.name.replace("-", "_")


def measure(measurement: Measurement, out: Path, progress: Progress, command: Sequence[str] = ()) -> Path:
    """Run a measurement and write its two files into ``out``; return the path of the CSV.

    Nothing is touched until every row is there, so that an interrupted or failed measurement leaves the last good
    result as it was. Each file then replaces its predecessor in one step; the record names the CSV's SHA-256, so that
    a pair torn between the two steps is recognised by `read`.

    Parameters
    ----------
    measurement
        What to measure.
    out
        Folder for the two files; created if missing.
    progress
        Receives one line of text per step.
    command
        The command line, for the record; by default the one that repeats this measurement.

    Raises
    ------
    ValueError
        A row lacks a column or has one too many, or there are no rows.
    """
    started = time.perf_counter()
    table = as_csv(measurement.columns, measurement.collect(progress))
    record = {
        "name": measurement.name,
        "title": measurement.title,
        "columns": list(measurement.columns),
        "rows": sum(1 for _ in csv.reader(io.StringIO(table.decode()))) - 1,  # a cell may have lines
        "sha256": hashlib.sha256(table).hexdigest(),
        "settings": dict(measurement.settings),
        "command": shlex.join(command or ("losslab", "measure", measurement.name)),
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "seconds": round(time.perf_counter() - started, 1),
        **surroundings(),
    }
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"{measurement.stem}.csv"
    replace_file(path, table)
    replace_file(path.with_suffix(".json"), (json.dumps(record, indent=2, ensure_ascii=False) + "\n").encode())
    return path


def as_csv(columns: Sequence[str], rows: Iterable[Row]) -> bytes:
    """Rows as the bytes of a CSV with a header; floats with all their digits, ``None`` as an empty cell."""
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=columns, lineterminator="\n")
    writer.writeheader()
    count = 0
    for count, row in enumerate(rows, start=1):
        if set(row) != set(columns):
            raise ValueError(f"row {count} has the columns {sorted(row)}; expected {sorted(columns)}")
        writer.writerow(row)
    if not count:
        raise ValueError("the measurement gave no rows; nothing was written")
    return text.getvalue().encode()


def read(path: Path) -> tuple[list[dict[str, str]], dict[str, object]]:
    """Read a measured CSV and its record.

    Raises
    ------
    ValueError
        The CSV is not the one that the record describes (edited by hand, or the pair was torn).
    """
    table = path.read_bytes()
    record: dict[str, object] = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    if hashlib.sha256(table).hexdigest() != record["sha256"]:
        raise ValueError(f"{path.name} is not the file that {path.stem}.json describes; run: {record['command']}")
    return list(csv.DictReader(io.StringIO(table.decode()))), record


def surroundings() -> dict[str, object]:
    """What a result depends on besides its code: versions, platform, processor, device, threads and how busy it all is.

    ``load`` is the number of processes that ran or waited to, over the last minute: about 1 on an idle machine.
    """
    versions = {}
    for package in PACKAGES:
        with suppress(importlib.metadata.PackageNotFoundError):
            versions[package] = importlib.metadata.version(package)
    return {
        "versions": versions,
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "device": "cpu",
        "threads": torch.get_num_threads(),
        "load": round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None,
    }


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown"
