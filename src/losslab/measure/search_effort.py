"""How many random inputs it takes until a contract catches the mistake that it must catch."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from typing import Any

from losslab.contracts.checking import KINDS, check_one, contracts_of, one_thread
from losslab.contracts.declared import conventions_of
from losslab.contracts.model import BrokenPromise, Counterexample, Draw, LossFailed
from losslab.measure.record import Measurement, Progress, Row
from losslab.mistakes import MISTAKES

SEEDS = 100


class _Found(BaseException):
    """Ends a search at once, as nothing that a search would go on to shrink."""


def inputs_until_caught(name: str, seed: int) -> int | None:
    """Count the random inputs that a contract draws until the mistake it must catch breaks it.

    Parameters
    ----------
    name
        A mistake that a contract catches; one that is caught by a property of its own has none.
    seed
        Of the inputs.

    Returns
    -------
    int or None
        1 if the first input did it; None if none did of those that `losslab.check` tries when nothing is said.
    """
    drawn = 0

    def noticed(_: BrokenPromise | LossFailed) -> None:
        raise _Found

    def counted() -> None:
        nonlocal drawn
        drawn += 1

    try:
        _search(name, seed, counted, noticed)
    except _Found:
        return drawn
    return None


def steps(name: str, seed: int) -> tuple[int, list[tuple[int, Counterexample]]]:
    """Search for a listwise mistake's smallest counterexample, and keep every one that was simpler than all before it.

    Shrinking also tries inputs that are simpler only in its own terms, such as numbers drawn earlier; they are
    counted and not kept.

    Returns
    -------
    tried, steps
        How many inputs the search tried in all; and each counterexample kept, with how many had been tried by then.
    """
    tried, kept = 0, list[tuple[int, Counterexample]]()

    def noticed(found: BrokenPromise | LossFailed) -> None:
        if found.counterexample and (not kept or _size(found.counterexample) < _size(kept[-1][1])):
            kept.append((tried, found.counterexample))

    def counted() -> None:
        nonlocal tried
        tried += 1

    _search(name, seed, counted, noticed)
    return tried, kept


def width(counterexample: Counterexample) -> int:
    """Columns of the matrix that the lists stood in."""
    columns = counterexample.setting.get("width", "").split()
    return int(columns[0]) if columns else max(map(len, counterexample.queries))


def _size(counterexample: Counterexample) -> tuple[float, ...]:
    """What makes an input simpler: fewer documents; a narrower matrix; rounder and smaller numbers."""
    numbers = [value for query in counterexample.queries for value in (*query.logits, *query.labels)]
    documents = sum(map(len, counterexample.queries))
    return documents, width(counterexample), sum(value != round(value) for value in numbers), sum(map(abs, numbers))


def _search(
    name: str, seed: int, counted: Callable[[], None], noticed: Callable[[BrokenPromise | LossFailed], None]
) -> None:
    """Put the mistake to its contract; say every input, and every one that broke it."""
    mistake = MISTAKES[name]
    family = KINDS[mistake.kind]
    (contract,) = contracts_of(mistake.kind, [mistake.breaks], objective=mistake.against is not None)
    oracle = None if mistake.against is None else family.oracle(mistake.against)
    said = conventions_of(mistake.wrong, family.conventions, mistake.declares).conventions
    subject = family.subject(mistake.wrong, said, oracle)

    def watched(put: Any, draw: Draw) -> None:  # noqa: ANN401
        counted()
        try:
            contract.body(put, draw)
        except (BrokenPromise, LossFailed) as found:
            noticed(found)
            raise

    with one_thread():
        check_one(replace(contract, body=watched), subject, seed, family.examples)


def rows_of(name: str, seeds: int) -> list[Row]:
    """One row a seed."""
    mistake = MISTAKES[name]
    return [
        {
            "mistake": name,
            "kind": mistake.kind,
            "contract": mistake.breaks,
            "met": mistake.met,
            "seed": seed,
            "inputs": inputs_until_caught(name, seed),
        }
        for seed in range(seeds)
    ]


def collect(progress: Progress, seeds: int = SEEDS, workers: int | None = None) -> Iterator[Row]:
    """Every mistake that a contract must catch, with every seed; a worker a processor."""
    names = [name for name, mistake in MISTAKES.items() if mistake.kind in KINDS]
    with ProcessPoolExecutor(workers or os.cpu_count(), mp_context=get_context("spawn")) as pool:
        runs = [pool.submit(rows_of, name, seeds) for name in names]
        for name, run in zip(names, runs, strict=True):
            yield from run.result()
            progress(name)


def needed(row: Row) -> float:
    """Inputs until the mistake was caught, of a row as it was measured or as a file has it; inf if it was not."""
    inputs = row["inputs"]
    return float("inf") if inputs in (None, "") else float(inputs)


def missed(rows: Sequence[Row], inputs: int) -> float:
    """Share of searches that would not have caught their mistake within so many inputs."""
    return sum(needed(row) > inputs for row in rows) / len(rows)


MEASUREMENT = Measurement(
    name="search-effort",
    title="Random inputs until a contract catches the mistake that it must catch",
    columns=("mistake", "kind", "contract", "met", "seed", "inputs"),
    collect=collect,
    settings={"seeds": SEEDS},
)
