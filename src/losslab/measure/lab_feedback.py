"""Common wrong answers to every lab, marked: the points they earn, and what their authors are told."""

from __future__ import annotations

import importlib.util
import json
import os
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from losslab.grading import load_lab, mark
from losslab.labs.release import find_labs, make_copy, names_in
from losslab.measure.record import Measurement, Progress, Row

SEED = 0


@dataclass(frozen=True)
class Answer:
    """One answer to a lab: what is wrong with it, and the function that stands in the solution's place."""

    name: str
    what: str
    source: str = ""


RIGHT = Answer("solution", "Nothing.")
EMPTY = Answer("empty", "Nothing is written.")


def answers(folder: Path) -> list[Answer]:
    """The solution, the empty copy, and the wrong answers that a lab's ``wrong.py`` lists."""
    spec = importlib.util.spec_from_file_location(f"losslab_wrong_{folder.name.replace('-', '_')}", folder / "wrong.py")
    if spec is None or spec.loader is None or not (folder / "wrong.py").exists():
        return [RIGHT, EMPTY]
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return [RIGHT, EMPTY, *(Answer(*given) for given in module.WRONG)]


def submission(folder: Path, answer: Answer) -> bytes:
    """What a student with this answer hands in: the solution, with the function written anew at its end."""
    given = make_copy(folder, solved=answer != EMPTY)
    if not answer.source:
        return given
    if load_lab(folder).form == "module":
        return given + b"\n\n" + answer.source.encode()
    notebook = json.loads(given)
    cell: dict[str, object] = {
        "cell_type": "code",
        "id": "answer",
        "metadata": {},
        "outputs": [],
        "execution_count": None,
    }
    notebook["cells"].append({**cell, "source": answer.source})
    return json.dumps(notebook).encode()


def rows_of(folder: Path, answer: Answer, seed: int = SEED) -> list[Row]:
    """One row an item that is marked by itself.

    Raises
    ------
    RuntimeError
        The grader failed.
    """
    lab = load_lab(folder)
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / (f"{answer.name}.py" if lab.form == "module" else f"{answer.name}.ipynb")
        path.write_bytes(submission(folder, answer))
        marked = mark(lab, path, seed=seed)
    if marked.status != "marked":
        raise RuntimeError(f"the grader failed on {answer.name} of {lab.name}: {marked.log}")
    return [
        {
            "lab": lab.name,
            "answer": answer.name,
            "what": answer.what,
            "item": item.id,
            "title": item.title,
            "points": item.points,
            "out_of": item.out_of,
            "feedback": "\n".join(str(feedback) for feedback in item.feedback if not feedback.kept),
        }
        for item in marked.items
        if item.points is not None
    ]


def collect(progress: Progress, workers: int | None = None) -> Iterator[Row]:
    """Every answer to every lab; a worker a processor."""
    labs = find_labs(Path.cwd())
    jobs = [(labs / name, answer) for name in names_in(labs) for answer in answers(labs / name)]
    with ProcessPoolExecutor(workers or os.cpu_count(), mp_context=get_context("spawn")) as pool:
        runs = [pool.submit(rows_of, folder, answer) for folder, answer in jobs]
        for (folder, answer), run in zip(jobs, runs, strict=True):
            yield from run.result()
            progress(f"{folder.name}: {answer.name}")


MEASUREMENT = Measurement(
    name="lab-feedback",
    title="Common wrong answers to the labs: what they earn, and what their authors are told",
    columns=("lab", "answer", "what", "item", "title", "points", "out_of", "feedback"),
    collect=collect,
    settings={"seed": SEED},
)
