"""Every mistake under the contract that must catch it, and every right loss under all of them, with many seeds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch

import losslab.language
import losslab.losses
from losslab.contracts import check, contracts_of
from losslab.contracts.adapters import token_library_loss
from losslab.measure.record import Measurement, Progress, Row
from losslab.mistakes import MISTAKES, Mistake

SEEDS = 20
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
    for name, right in right_losses().items():
        progress(f"right loss {name}")
        for contract in contracts_of(right.kind, objective=right.against is not None):
            for seed in range(seeds if contract.random else 1):
                yield row(name, contract.id, seed, "kept", partial(right.check, contract.id, seed))


MEASUREMENT = Measurement(
    name="mistake-sweep",
    title="Every mistake under the contract that must catch it, every right loss under every contract, 20 seeds",
    columns=("subject", "contract", "seed", "expected", "verdict", "seconds"),
    collect=sweep,
    settings={"seeds": SEEDS},
)
