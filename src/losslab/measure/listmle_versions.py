"""ListMLELoss and PListMLELoss of eight sentence-transformers releases on the same few lists."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from math import isclose
from pathlib import Path

from losslab.measure.listmle_probe import QUERIES, WIDTHS
from losslab.measure.record import Measurement, Progress, Row

VERSIONS = ("5.5.1", "5.6.0", "5.6.1", "5.7.0", "6.0.0", "6.0.1", "6.1.0", "6.2.0")


def collect(progress: Progress, versions: Sequence[str] = VERSIONS) -> Iterator[Row]:
    """Rows of all versions, then one row for each question: the first version that has it right, and since when."""
    rows: list[Row] = []
    for number, version in enumerate(versions, start=1):
        progress(f"{number}/{len(versions)} sentence-transformers {version}")
        rows += probe_version(version)
    yield from rows
    yield from first_fixed(rows, versions)


def probe_version(version: str) -> list[Row]:
    """Install one wheel into a temporary folder, and ask it in a process of its own.

    Nothing else is changed: the wheel comes without its dependencies, which are those installed here.

    Raises
    ------
    RuntimeError
        pip or the probe failed, or another version than the wanted one answered.
    """
    with tempfile.TemporaryDirectory(prefix="losslab-wheel-") as folder:
        pip = "-m pip install --quiet --disable-pip-version-check --no-input --no-compile --no-deps --only-binary :all:"
        _run([*pip.split(), "--target", folder, f"sentence-transformers=={version}"], dict(os.environ))
        path = os.pathsep.join(filter(None, [folder, os.environ.get("PYTHONPATH")]))
        environment = {**os.environ, "PYTHONPATH": path, "HF_HUB_OFFLINE": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        output = _run(["-m", "losslab.measure.listmle_probe"], environment)
    rows: list[Row] = json.loads(output)
    answered = {row["version"] for row in rows}
    if answered != {version}:
        raise RuntimeError(f"asked sentence-transformers {version}, but {answered} answered")
    return rows


def _run(arguments: Sequence[str], environment: dict[str, str]) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], env=environment, capture_output=True, text=True, check=False, cwd=Path.home()
    )
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or ["no message"]
        raise RuntimeError(f"python {' '.join(arguments)} failed: {last[0]}")
    return done.stdout


def first_fixed(rows: Sequence[Row], versions: Sequence[str]) -> Iterator[Row]:
    """For each question, the first version from which on every answer is right; empty value: none of them.

    Right means a property, not a number: the same loss and gradient at every width (padding; tie order, where labels
    are sorted), the same wherever the logits lie (overflow), and a list of two worth the same to PListMLE as to
    ListMLE (ranks from 1). Compared to 1e-3.
    """
    for question, name in (
        ("padding", "ListMLELoss"),
        ("padding", "PListMLELoss"),
        ("overflow", "ListMLELoss"),
        ("overflow", "PListMLELoss"),
        ("ranks from 1", "PListMLELoss"),
        ("tie order", "ListMLELoss"),
        ("tie order", "PListMLELoss"),
    ):
        since: str | None = None
        for version in versions:
            if not _right(question, name, [row for row in rows if row["version"] == version]):
                since = None
            elif since is None:
                since = version
        yield {
            "version": None,
            "loss": name,
            "respect_input_order": None,
            "question": question,
            "logits": None,
            "labels": None,
            "width": None,
            "quantity": "first fixed version",
            "document": None,
            "value": since,
        }


def _right(question: str, name: str, rows: Sequence[Row]) -> bool:
    if question == "ranks from 1":  # of lists of two, without padding: only the weights tell the classes apart
        chosen = [row for row in rows if row["question"] == "padding" and row["width"] == 2]
    else:
        chosen = [row for row in rows if row["question"] == question and row["loss"] == name]
    if question == "tie order":
        chosen = [row for row in chosen if not row["respect_input_order"]]
    values: dict[tuple[object, ...], list[float]] = {}
    for row in chosen:
        group = (row["respect_input_order"], row["quantity"], row["document"])
        values.setdefault(group, []).append(float(str(row["value"])))
    return all(isclose(value, group[0], abs_tol=1e-3) for group in values.values() for value in group)


MEASUREMENT = Measurement(
    name="listmle-versions",
    title="ListMLELoss and PListMLELoss of eight sentence-transformers releases: padding, overflow, ranks, ties",
    columns=(
        "version",
        "loss",
        "respect_input_order",
        "question",
        "logits",
        "labels",
        "width",
        "quantity",
        "document",
        "value",
    ),
    collect=collect,
    settings={"versions": list(VERSIONS), "widths": list(WIDTHS), "queries": [list(query[:3]) for query in QUERIES]},
)
