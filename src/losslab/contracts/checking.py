"""`losslab.check`: every contract of a kind, put to one loss."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from typing import Any

import torch

from losslab.contracts import oracles
from losslab.contracts.listwise import LISTWISE
from losslab.contracts.model import (
    BrokenPromise,
    Contract,
    Conventions,
    LossFailed,
    Order,
    Reduction,
    Result,
    Unchecked,
)
from losslab.contracts.named import find_loss
from losslab.contracts.report import Report
from losslab.contracts.search import search
from losslab.contracts.subject import Subject, name_of

CONTRACTS: dict[str, tuple[Contract, ...]] = {"listwise": LISTWISE}

EXAMPLES = 60


def check(
    loss: Callable[..., Any] | str,
    kind: str = "listwise",
    *,
    against: str | Callable[..., Any] | None = None,
    order: Order | None = None,
    count_short_lists: bool | None = None,
    reduction: Reduction | None = None,
    seed: int = 0,
    only: Collection[str] | None = None,
    examples: int = EXAMPLES,
) -> Report:
    """Check which promises a loss keeps, and show the smallest input found on which it breaks one.

    Parameters
    ----------
    loss
        A callable or ``torch.nn.Module``, ``loss(logits (B, N), labels (B, N), mask (B, N) bool)``; or its name,
        ``"package.module:name"``. A list loss class of sentence-transformers, or its name, is driven by the adapter.
    kind
        Which family of promises: ``"listwise"``.
    against
        The objective it claims to be: ``"list_mle"``, ``"p_list_mle"``, ``"list_net"``, or a callable of the same form.
    order, count_short_lists, reduction
        Declared conventions, see `Conventions`. Left out, they are what the loss declares: its ``conventions``
        attribute, or keywords bound by `functools.partial`; failing that, by labels, not counted, mean.
    seed
        Of the random inputs.
    only
        Ids of the contracts to check; all by default.
    examples
        Random inputs for each contract.

    Returns
    -------
    Report
        Truthy if no promise is broken. Prints as a table; a notebook shows it as one.

    Raises
    ------
    ValueError, TypeError
        If an argument is wrong; not if the loss is.

    Examples
    --------
    >>> import losslab
    >>> report = losslab.check("losslab.losses:list_mle", against="list_mle")
    >>> bool(report)
    True
    """
    contracts = contracts_of(kind, only, objective=against is not None)
    loss = find_loss(loss)
    own = conventions_of(loss)
    conventions = Conventions(
        order=own.order if order is None else order,
        count_short_lists=own.count_short_lists if count_short_lists is None else count_short_lists,
        reduction=own.reduction if reduction is None else reduction,
    )
    oracle = None if against is None else oracles.resolve(against)
    with one_thread():
        results = [check_one(contract, Subject(loss, conventions, oracle), seed, examples) for contract in contracts]
    return Report(
        loss=name_of(loss),
        kind=kind,
        conventions=conventions,
        against=against if against is None or isinstance(against, str) else name_of(against),
        seed=seed,
        results=tuple(results),
    )


@contextmanager
def one_thread() -> Iterator[None]:
    """Thousands of tiny tensors: on a busy machine threads that wait for each other cost ten times the work itself."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def contracts_of(kind: str, only: Collection[str] | None = None, *, objective: bool = False) -> Sequence[Contract]:
    """The contracts of a kind, ``objective`` among them only if there is one to compare with.

    Raises
    ------
    ValueError
        If there is no such kind, or no such contract.
    """
    if kind not in CONTRACTS:
        raise ValueError(f"kind must be one of {', '.join(CONTRACTS)}, got {kind!r}")
    contracts = [c for c in CONTRACTS[kind] if objective or c.id != "objective"]
    if only is None:
        return contracts
    only = [only] if isinstance(only, str) else only
    if unknown := set(only) - {c.id for c in contracts}:
        hint = "; objective needs against=" if "objective" in unknown else ""
        raise ValueError(
            f"only names no {kind} contract: {', '.join(sorted(unknown))}; there are "
            f"{', '.join(c.id for c in contracts)}{hint}"
        )
    return [c for c in contracts if c.id in only]


def conventions_of(loss: Callable[..., Any]) -> Conventions:
    """What a loss declares of itself, by a ``conventions`` attribute or by keywords that a partial binds."""
    declared = getattr(loss, "conventions", None)
    if isinstance(declared, Conventions):
        return declared
    if isinstance(loss, functools.partial):
        names = {f.name for f in fields(Conventions)}
        bound = {name: value for name, value in loss.keywords.items() if name in names}
        return replace(conventions_of(loss.func), **bound)
    return Conventions()


def check_one(contract: Contract, subject: Subject, seed: int, examples: int) -> Result:
    """Put one contract to a loss."""
    result = functools.partial(Result, contract.id, contract.title, contract.promise)
    exempt = contract.exemption(subject.conventions)
    if exempt is not None:
        return result("exempt", exempt)
    try:
        search(
            lambda draw: contract.body(subject, draw),
            seed_value=seed,
            examples=examples if contract.random else 1,
        )
    except BrokenPromise as broken:
        return result("broken", "", broken.counterexample)
    except Unchecked as unchecked:
        return result("unchecked", str(unchecked))
    except LossFailed as failure:
        return result("error", failure.problem, failure.counterexample)
    return result("kept", "; ".join(subject.notes))
