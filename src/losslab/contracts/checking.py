"""`losslab.check`: every contract of a kind, put to one loss."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any

import torch

from losslab.contracts import oracles
from losslab.contracts.adapters.token_losses import PerplexityMetric
from losslab.contracts.contrastive import CONTRASTIVE
from losslab.contracts.contrastive.subject import ContrastiveSubject
from losslab.contracts.listwise import LISTWISE
from losslab.contracts.matryoshka import MATRYOSHKA
from losslab.contracts.matryoshka import bases as matryoshka_bases
from losslab.contracts.matryoshka.subject import MatryoshkaSubject
from losslab.contracts.model import (
    AnyConventions,
    BrokenPromise,
    Contract,
    ContrastiveConventions,
    Conventions,
    Exempt,
    LossFailed,
    MatryoshkaConventions,
    Result,
    TokenConventions,
    Unchecked,
)
from losslab.contracts.named import find_loss
from losslab.contracts.report import Report
from losslab.contracts.search import search
from losslab.contracts.subject import Subject, name_of, parameters_of
from losslab.contracts.token import TOKEN
from losslab.contracts.token.subject import TokenSubject


@dataclass(frozen=True)
class Kind:
    """A family of losses with one call form.

    Attributes
    ----------
    contracts
        Its promises.
    conventions
        The class of what its losses declare.
    subject
        Makes the subject of a check from a loss, its conventions and the oracle.
    oracle
        Finds the oracle that ``against=`` names.
    examples
        Random inputs for each contract, if the user says nothing.
    """

    contracts: tuple[Contract, ...]
    conventions: type[AnyConventions]
    subject: Callable[[Any, Any, Any], Any]
    oracle: Callable[[str | Callable[..., Any]], Any]
    examples: int = 60


KINDS: Mapping[str, Kind] = {
    "listwise": Kind(LISTWISE, Conventions, Subject, oracles.resolve),
    "contrastive": Kind(CONTRASTIVE, ContrastiveConventions, ContrastiveSubject, oracles.resolve_contrastive, 40),
    "token": Kind(TOKEN, TokenConventions, TokenSubject, oracles.resolve_token, 30),
    "matryoshka": Kind(MATRYOSHKA, MatryoshkaConventions, MatryoshkaSubject, matryoshka_bases.resolve, 30),
}
CONTRACTS: dict[str, tuple[Contract, ...]] = {name: kind.contracts for name, kind in KINDS.items()}


def check(
    loss: Callable[..., Any] | str,
    kind: str = "listwise",
    *,
    against: str | Callable[..., Any] | None = None,
    seed: int = 0,
    only: Collection[str] | None = None,
    examples: int | None = None,
    **conventions: Any,  # noqa: ANN401
) -> Report:
    """Check which promises a loss keeps, and show the smallest input found on which it breaks one.

    Parameters
    ----------
    loss
        A callable or ``torch.nn.Module``, or its name, ``"package.module:name"``. Its call form is that of its kind. A
        loss class of sentence-transformers or pytorch-metric-learning, or its name, is driven by an adapter.
    kind
        Which family of promises. ``"listwise"``: ``loss(logits (B, N), labels (B, N), mask (B, N) bool)``.
        ``"contrastive"``: ``loss(queries (B, d), documents (M, d))``, document i the positive of query i, M >= B; its
        keywords ``temperature``, ``negatives``, ``hard_negatives``, ``hard_mask``, ``symmetric``, ``chunk_size``,
        ``positive_offset``, ``positives`` and ``labels`` are used where its signature names them. ``"token"``:
        ``loss(logits (B, T, V), labels (B, T))``, label -100 ignored; labels are the input ids and the loss shifts
        them, or, with ``shift=False``, they are given shifted; ``mask`` or ``attention_mask`` and
        ``num_items_in_batch`` are used where its signature names them. ``"matryoshka"``:
        ``wrap(base_loss, dims, weights=None)``, which makes a ``loss(queries (B, d), documents (B, d))``; or such a
        loss itself, ``loss(queries, documents, dims=…)``.
    against
        The objective it claims to be: ``"list_mle"``, ``"p_list_mle"``, ``"list_net"``, or, contrastive,
        ``"info_nce"``, ``"multi_positive_info_nce"``, ``"graded_info_nce"``, or, token, ``"token_nll"``; or a callable
        of the same form. Matryoshka: the base loss to wrap, or which was nested: ``"info_nce"``,
        ``"dot_product_info_nce"``, ``"mse"``, or a callable ``base(queries, documents)``.
    seed
        Of the random inputs.
    only
        Ids of the contracts to check; all by default.
    examples
        Random inputs for each contract; left out, 60 of a listwise loss, 40 of a contrastive one, 30 of a token or
        matryoshka one.
    **conventions
        Declared conventions by name: those of `Conventions` (``order``, ``count_short_lists``, ``reduction``), of
        `ContrastiveConventions` (``temperature``, ``normalize``, ``symmetric``, ``reduction``, ``more_documents``,
        ``duplicates``, ``within``, ``graded``), of `TokenConventions` (``shift``, ``ignore_index``, ``reduction``,
        ``base``, ``returns``) or of `MatryoshkaConventions` (``combine``, ``embedding_labels``). Left out, or None,
        they are what the loss declares: its ``conventions`` attribute, or keywords bound by `functools.partial`;
        failing that, the class's defaults. Of a contrastive or token loss also the defaults in its signature, and the
        attributes of a module, are read.

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
    family = KINDS[kind]
    loss = find_loss(loss, kind=kind)
    declared = conventions_of(loss, kind, conventions)
    if isinstance(loss, PerplexityMetric) and isinstance(declared, TokenConventions):
        loss = loss.declared(declared)
    oracle = None if against is None else family.oracle(against)
    with one_thread():
        results = [
            check_one(contract, family.subject(loss, declared, oracle), seed, examples or family.examples)
            for contract in contracts
        ]
    return Report(
        loss=name_of(loss),
        kind=kind,
        conventions=declared,
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


def conventions_of(
    loss: Callable[..., Any], kind: str = "listwise", given: Mapping[str, Any] | None = None
) -> AnyConventions:
    """What a loss of this kind declares of itself, and what is ``given`` for it, which has the last word.

    Raises
    ------
    TypeError
        If the kind has no convention of a given name.
    """
    cls = KINDS[kind].conventions
    names = [f.name for f in fields(cls)]
    given = {name: value for name, value in (given or {}).items() if value is not None}
    if unknown := [name for name in given if name not in names]:
        raise TypeError(f"check() got an unknown convention, {unknown[0]!r}; a {kind} loss has {', '.join(names)}")
    return cls(**(_declared(loss, cls, names) | given))


def _declared(loss: Any, cls: type[AnyConventions], names: Sequence[str]) -> dict[str, Any]:  # noqa: ANN401
    attached = getattr(loss, "conventions", None)
    if isinstance(attached, cls):
        return attached.to_dict()
    if isinstance(loss, functools.partial):
        bound = {name: value for name, value in loss.keywords.items() if name in names}
        known = _declared(loss.func, cls, names)
        if bound.get("symmetric") and "more_documents" not in bound and not known.get("symmetric"):
            known.pop("more_documents", None)  # what was said of one direction
        return known | bound
    if cls is Conventions:
        return {}
    found: dict[str, Any] = {"graded": True} if "graded" in names and "labels" in parameters_of(loss) else {}
    defaults = {name: parameter.default for name, parameter in parameters_of(loss).items()}
    if isinstance(loss, torch.nn.Module):
        defaults |= {name: getattr(loss, name, None) for name in names}
    wanted = cls().to_dict()
    for name in names:
        value = defaults.get(name)
        if isinstance(value, type(wanted[name])):
            found[name] = value  # a default of None, or a parameter to be learned, declares nothing
    return found


def check_one(contract: Contract, subject: Any, seed: int, examples: int) -> Result:  # noqa: ANN401
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
    except Exempt as exempt_:
        return result("exempt", str(exempt_))
    except Unchecked as unchecked:
        return result("unchecked", str(unchecked))
    except LossFailed as failure:
        return result("error", failure.problem, failure.counterexample)
    return result("kept", "; ".join(subject.notes))
