"""Every mistake under the contract that must catch it, and every right loss under all of them, with many seeds."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from typing import Any

import torch

import losslab.language
import losslab.losses
from losslab.contracts import CONTRACTS, check, contracts_of
from losslab.contracts.adapters import contrastive_library_loss, sentence_transformers_loss, token_library_loss
from losslab.measure.record import Measurement, Progress, Row
from losslab.mistakes import MISTAKES, Mistake

SEEDS = 20  # of every mistake
RIGHT_SEEDS = 20  # of every right loss under every contract
ALLOWED = 5.0  # seconds on one core in which a mistake must be caught
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
        asked: dict[str, Any] = {"against": self.against, "only": [contract], "seed": seed, **self.declares}
        return check(self.loss, self.kind, budget=None, **asked).results[0].verdict


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
    asked: dict[str, Any] = {"against": mistake.against, "only": [mistake.breaks], "seed": seed, **mistake.declares}
    result = check(mistake.wrong, mistake.kind, budget=None, **asked)[mistake.breaks]
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


def library_losses() -> dict[str, RightLoss]:
    """Losses of installed wheels that are right in their present versions, as they stand."""
    from transformers.loss.loss_utils import ForCausalLMLoss

    ranking, embedding = (
        importlib.import_module(f"sentence_transformers.{part}.losses")
        for part in ("cross_encoder", "sentence_transformer")
    )
    return {
        "ListMLELoss": RightLoss(sentence_transformers_loss(ranking.ListMLELoss), "listwise", "list_mle"),
        "PListMLELoss": RightLoss(sentence_transformers_loss(ranking.PListMLELoss), "listwise", "p_list_mle"),
        "MultipleNegativesRankingLoss": RightLoss(
            contrastive_library_loss(embedding.MultipleNegativesRankingLoss), "contrastive", "info_nce"
        ),
        "ForCausalLMLoss": RightLoss(token_library_loss(ForCausalLMLoss), "token", "token_nll"),
    }


def caught_by() -> dict[tuple[str, str], dict[str, str]]:
    """Which mistakes each contract must catch, by kind and contract: name, and ``"public"`` or ``"built"``."""
    found: dict[tuple[str, str], dict[str, str]] = {
        (kind, contract.id): {} for kind in CONTRACTS for contract in contracts_of(kind, objective=True)
    }
    for name, mistake in MISTAKES.items():
        if mistake.kind != "function":
            found[mistake.kind, mistake.breaks][name] = mistake.met
    return found


def must_cover_every_contract() -> None:
    """Refuse to sweep as long as there is a contract that no mistake breaks.

    Raises
    ------
    ValueError
        Naming the contracts.
    """
    idle = [f"{kind} {contract}" for (kind, contract), names in caught_by().items() if not names]
    if idle:
        raise ValueError(f"no mistake breaks {', '.join(idle)}: a contract that has caught nothing shows nothing")


def processor_seconds() -> float:
    """Time on a processor, of this process and those it waited for: what else the machine does is not counted."""
    return sum(os.times()[:4])


def timed(subject: str, kind: str, contract: str, met: str, seed: int, expected: str, run: Callable[[], str]) -> Row:
    """One row: a verdict, and how long it took to reach."""
    started = processor_seconds()
    verdict = run()
    return {
        "subject": subject,
        "kind": kind,
        "contract": contract,
        "met": met,
        "seed": seed,
        "expected": expected,
        "verdict": verdict,
        "seconds": round(processor_seconds() - started, 3),
    }


def mistake_rows(name: str, seeds: int) -> list[Row]:
    """What becomes of a mistake, and of what is right instead where a property judges both."""
    mistake, found = MISTAKES[name], []
    catch(mistake)  # what is imported and compiled the first time is no part of a search
    for seed in range(seeds):
        about = (mistake.kind, mistake.breaks, mistake.met, seed)
        found.append(timed(name, *about, "broken", lambda s=seed: catch(mistake, s)[0]))  # type: ignore[misc]
        if mistake.property is not None:
            put = partial(mistake.property, mistake.right, seed=seed)
            found.append(timed(f"{name}.right", *about, "kept", lambda p=put: "broken" if p() else "kept"))  # type: ignore[misc]
    return found


def right_rows(name: str, seeds: int) -> list[Row]:
    """What every contract says of a right loss."""
    right = (right_losses() | library_losses())[name]
    return [
        timed(name, right.kind, contract.id, "", seed, "kept", partial(right.check, contract.id, seed))
        for contract in contracts_of(right.kind, objective=right.against is not None)
        for seed in range(seeds if contract.random else 1)
    ]


def slowest(rows: Iterable[Row]) -> str:
    """Which mistake took longest to catch, how long, and how many seeds went wrong, in one line."""
    rows = list(rows)
    caught = [row for row in rows if row["expected"] == "broken"]
    missed = sum(row["verdict"] != "broken" for row in caught)
    flagged = sum(row["verdict"] not in ("kept", "exempt") for row in rows if row["expected"] == "kept")
    last = max(caught, key=lambda row: float(row["seconds"] or 0))
    return (
        f"{len(caught)} times a mistake, {missed} missed; {len(rows) - len(caught)} times something right, {flagged} "
        f"flagged; slowest {last['subject']}, {last['seconds']} s of {ALLOWED:g}"
    )


def sweep(progress: Progress, seeds: int = SEEDS, workers: int | None = None) -> Iterator[Row]:
    """One row for each mistake and seed, and for each right loss, contract and seed; a worker a processor."""
    must_cover_every_contract()
    of_right, seen = min(seeds, RIGHT_SEEDS), []
    jobs = [(mistake_rows, name, seeds) for name in MISTAKES]
    jobs += [(right_rows, name, of_right) for name in right_losses() | library_losses()]
    with ProcessPoolExecutor(workers or os.cpu_count(), mp_context=get_context("spawn")) as pool:
        runs = [pool.submit(job, name, number) for job, name, number in jobs]
        for (_, name, _), run in zip(jobs, runs, strict=True):
            seen += run.result()
            yield from run.result()
            progress(name)
    progress(slowest(seen))


MEASUREMENT = Measurement(
    name="mistake-sweep",
    title="Every mistake under the contract that must catch it, every right loss under every contract",
    columns=("subject", "kind", "contract", "met", "seed", "expected", "verdict", "seconds"),
    collect=sweep,
    settings={"seeds": SEEDS, "seeds of right losses": RIGHT_SEEDS, "seconds allowed for a catch": ALLOWED},
)
