"""Every mistake under the contract that must catch it, and every right loss under all of them, with many seeds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import losslab.losses
from losslab.contracts import check, contracts_of
from losslab.measure.record import Measurement, Progress, Row
from losslab.mistakes import MISTAKES, Mistake

SEEDS = 20
OBJECTIVES = ("list_mle", "p_list_mle", "list_net")


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
    report = check(mistake.wrong, mistake.kind, against=mistake.against, only=[mistake.breaks], seed=seed)
    result = report[mistake.breaks]
    return result.verdict, str(result.counterexample or result.reason)


def right_losses() -> dict[str, tuple[Callable[..., Any], str | None]]:
    """Every loss that must keep every contract, by name, and the objective that it must equal."""
    ours: dict[str, tuple[Callable[..., Any], str | None]] = {
        name: (getattr(losslab.losses, name), name) for name in OBJECTIVES
    }
    beside = {
        f"{name}.right": (mistake.right, None)
        for name, mistake in MISTAKES.items()
        if mistake.kind == "listwise" and not isinstance(mistake.right, str)
    }
    return ours | beside


def sweep(progress: Progress, seeds: int = SEEDS) -> Iterator[Row]:
    """One row for each mistake and seed, and for each right loss, contract and seed."""

    def row(subject: str, contract: str, seed: int, expected: str, run: Callable[[], str]) -> Row:
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

    for name, mistake in MISTAKES.items():
        progress(f"mistake {name}")
        for seed in range(seeds):
            yield row(name, mistake.breaks, seed, "broken", lambda m=mistake, s=seed: catch(m, s)[0])  # type: ignore[misc]
            if mistake.property is not None:
                found = partial(mistake.property, mistake.right, seed=seed)
                yield row(f"{name}.right", mistake.breaks, seed, "kept", lambda f=found: "broken" if f() else "kept")  # type: ignore[misc]
    for name, (loss, against) in right_losses().items():
        progress(f"right loss {name}")
        for contract in contracts_of("listwise", objective=against is not None):
            for seed in range(seeds if contract.random else 1):
                put = partial(check, loss, against=against, only=[contract.id], seed=seed)
                yield row(name, contract.id, seed, "kept", lambda p=put: p().results[0].verdict)  # type: ignore[misc]


MEASUREMENT = Measurement(
    name="mistake-sweep",
    title="Every mistake under the contract that must catch it, every right loss under every contract, 20 seeds",
    columns=("subject", "contract", "seed", "expected", "verdict", "seconds"),
    collect=sweep,
    settings={"seeds": SEEDS},
)
