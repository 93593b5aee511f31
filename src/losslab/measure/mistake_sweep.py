"""Every mistake under the contract that must catch it, and every right loss under all of them, with many seeds."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from typing import Any

import torch

import losslab.language
import losslab.losses
from losslab.contracts import check, contracts_of
from losslab.contracts.adapters import token_library_loss
from losslab.measure.record import Measurement, Progress, Row
from losslab.mistakes import MISTAKES, Mistake

SEEDS = 20  # of every mistake
RIGHT_SEEDS = 5  # of every right loss under every contract: there are ten times as many
#: Our losses by kind, each the objective of its own name where objectives are compared.
OBJECTIVES = {
    "listwise": ("list_mle", "p_list_mle", "list_net"),
    "contrastive": ("info_nce", "multi_positive_info_nce", "graded_info_nce"),
    "matryoshka": ("matryoshka",),
    "token": ("token_nll",),
}
#: Kinds whose contracts compare with an objective that ``against=`` names. A wrapper has none: its base loss is one.
COMPARED = ("listwise", "contrastive", "token")


@dataclass(frozen=True)
class RightLoss:
    """A loss that must keep every contract of its kind, the objective it must equal, and what it declares."""

    loss: Callable[..., Any]
    kind: str
    against: str | None = None
    declares: Mapping[str, Any] = field(default_factory=dict)

    def check(self, contract: str, seed: int) -> str:
        """The verdict of one contract."""
        put = check(self.loss, self.kind, against=self.against, only=[contract], seed=seed, **self.declares)
        return put.results[0].verdict


def catch(mistake: Mistake, seed: int = 0) -> tuple[str, str]:
    """Put a mistake to the contract, or to the property, that must catch it.

    Returns
    -------
    verdict, text
        ``"broken"`` and the counterexample if it was caught; else what the contract said instead, and why.
    """
    if mistake.property is not None:
        found = mistake.property(mistake.wrong, seed=seed)
        return ("kept", "") if found is None else ("broken", found)
    report = check(
        mistake.wrong, mistake.kind, against=mistake.against, only=[mistake.breaks], seed=seed, **mistake.declares
    )
    result = report[mistake.breaks]
    return result.verdict, str(result.counterexample or result.reason)


def our_loss(name: str) -> Callable[..., Any]:
    """Return a loss of ours by its name."""
    loss: Callable[..., Any] = getattr(losslab.losses if hasattr(losslab.losses, name) else losslab.language, name)
    return loss


def right_losses() -> dict[str, RightLoss]:
    """Every loss that must keep every contract, by name."""
    ours = {
        name: RightLoss(our_loss(name), kind, name if kind in COMPARED else None)
        for kind, names in OBJECTIVES.items()
        for name in names
    }
    variants: dict[str, dict[str, Any]] = {
        "both directions": {"symmetric": True},
        "dot products": {"normalize": False, "temperature": 1.0},
        "hot, a value a query": {"temperature": 0.5, "reduction": "none"},
    }
    for name, options in variants.items():
        loss = partial(losslab.losses.info_nce, **options)
        ours[f"info_nce, {name}"] = RightLoss(loss, "contrastive", "info_nce")
    given: dict[str, dict[str, Any]] = {"labels given shifted": {"shift": False}, "summed": {"reduction": "sum"}}
    for name, options in given.items():
        ours[f"token_nll, {name}"] = RightLoss(partial(our_loss("token_nll"), **options), "token", "token_nll")
    ours["cross_entropy"] = RightLoss(token_library_loss(torch.nn.functional.cross_entropy), "token", "token_nll")
    beside = {
        f"{name}.right": RightLoss(mistake.right, mistake.kind, None, mistake.declares)
        for name, mistake in MISTAKES.items()
        if mistake.kind != "function" and not isinstance(mistake.right, str)
    }
    return ours | beside


def timed(subject: str, contract: str, seed: int, expected: str, run: Callable[[], str]) -> Row:
    """One row: a verdict, and how long it took to reach."""
    started = time.perf_counter()
    verdict = run()
    return {
        "subject": subject,
        "contract": contract,
        "seed": seed,
        "expected": expected,
        "verdict": verdict,
        "seconds": round(time.perf_counter() - started, 3),
    }


def mistake_rows(name: str, seeds: int) -> list[Row]:
    """What becomes of a mistake, and of what is right instead where a property judges both."""
    mistake, found = MISTAKES[name], []
    for seed in range(seeds):
        found.append(timed(name, mistake.breaks, seed, "broken", lambda s=seed: catch(mistake, s)[0]))  # type: ignore[misc]
        if mistake.property is not None:
            put = partial(mistake.property, mistake.right, seed=seed)
            right = timed(f"{name}.right", mistake.breaks, seed, "kept", lambda p=put: "broken" if p() else "kept")  # type: ignore[misc]
            found.append(right)
    return found


def right_rows(name: str, seeds: int) -> list[Row]:
    """What every contract says of a right loss."""
    right = right_losses()[name]
    return [
        timed(name, contract.id, seed, "kept", partial(right.check, contract.id, seed))
        for contract in contracts_of(right.kind, objective=right.against is not None)
        for seed in range(seeds if contract.random else 1)
    ]


def sweep(progress: Progress, seeds: int = SEEDS, workers: int | None = None) -> Iterator[Row]:
    """One row for each mistake and seed, and for each right loss, contract and seed; a worker a processor."""
    of_right = min(seeds, RIGHT_SEEDS)
    jobs = [(mistake_rows, name, seeds) for name in MISTAKES]
    jobs += [(right_rows, name, of_right) for name in right_losses()]
    with ProcessPoolExecutor(workers or os.cpu_count(), mp_context=get_context("spawn")) as pool:
        runs = [pool.submit(job, name, number) for job, name, number in jobs]
        for (_, name, _), run in zip(jobs, runs, strict=True):
            yield from run.result()
            progress(name)


MEASUREMENT = Measurement(
    name="mistake-sweep",
    title="Every mistake under the contract that must catch it, every right loss under every contract",
    columns=("subject", "contract", "seed", "expected", "verdict", "seconds"),
    collect=sweep,
    settings={"seeds": SEEDS, "seeds of right losses": RIGHT_SEEDS},
)
