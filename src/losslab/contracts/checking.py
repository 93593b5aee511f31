"""`losslab.check`: every contract of a kind, put to one loss."""

from __future__ import annotations

import copy
import functools
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

import torch

from losslab.contracts import oracles
from losslab.contracts.adapters.token_losses import PerplexityMetric
from losslab.contracts.code import Origin, write
from losslab.contracts.contrastive import CONTRASTIVE
from losslab.contracts.contrastive.subject import ContrastiveSubject
from losslab.contracts.declared import conventions_of
from losslab.contracts.listwise import LISTWISE
from losslab.contracts.listwise.values import HALF_FORMATS, name_of_format
from losslab.contracts.manners import MANNERS, plain, same
from losslab.contracts.matryoshka import MATRYOSHKA
from losslab.contracts.matryoshka import bases as matryoshka_bases
from losslab.contracts.matryoshka.subject import MatryoshkaSubject
from losslab.contracts.model import (
    AnyConventions,
    BrokenPromise,
    Contract,
    ContrastiveConventions,
    Conventions,
    Draw,
    Exempt,
    LossFailed,
    MatryoshkaConventions,
    Result,
    TokenConventions,
    Unchecked,
)
from losslab.contracts.named import ADAPTERS, NotALossError, identify, import_loss
from losslab.contracts.report import SPENT, Report
from losslab.contracts.search import search
from losslab.contracts.subject import Subject, first_line, name_of, options_of
from losslab.contracts.token import TOKEN
from losslab.contracts.token.subject import TokenSubject
from losslab.contracts.watched import (
    OutOfBudget,
    Watch,
    Watched,
    seed_everything,
    undisturbed,
    warnings_once,
)
from losslab.contracts.wording import show

BUDGET = 9.0  # seconds, so that a check is over in ten
BUDGET_VARIABLE = "LOSSLAB_CHECK_BUDGET"
CALLS_AN_INPUT = 5  # about as often a promise calls the loss to try one input
LEAST_CALLS = 6  # of a slow loss, for a promise that is tried at all


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
    "listwise": Kind((*LISTWISE, *MANNERS), Conventions, Subject, oracles.resolve),
    "contrastive": Kind(
        (*CONTRASTIVE, *MANNERS), ContrastiveConventions, ContrastiveSubject, oracles.resolve_contrastive, 40
    ),
    "token": Kind((*TOKEN, *MANNERS), TokenConventions, TokenSubject, oracles.resolve_token, 30),
    "matryoshka": Kind((*MATRYOSHKA, *MANNERS), MatryoshkaConventions, MatryoshkaSubject, matryoshka_bases.resolve, 30),
}
OURS = frozenset(id(contract) for kind in KINDS.values() for contract in kind.contracts)
CONTRACTS: dict[str, tuple[Contract, ...]] = {name: kind.contracts for name, kind in KINDS.items()}


def check(
    loss: Callable[..., Any] | str,
    kind: str | None = None,
    *,
    against: str | Callable[..., Any] | None = None,
    seed: int = 0,
    only: Collection[str] | None = None,
    examples: int | None = None,
    options: Mapping[str, Any] | None = None,
    allow: Mapping[str, str] | None = None,
    budget: float | Literal["default"] | None = "default",
    device: str | torch.device | None = None,
    extra: Collection[Contract] = (),
    **conventions: Any,  # noqa: ANN401
) -> Report:
    """Check which promises a loss keeps, and show the smallest input found on which it breaks one.

    Parameters
    ----------
    loss
        A callable or ``torch.nn.Module``; a class; or a name, ``"package.module:name"`` or ``"folder/file.py:name"``.
        Its call form is that of its kind. A loss of sentence-transformers, pytorch-metric-learning, transformers or
        torchmetrics, or its name, is driven by an adapter.
    kind
        Which family of promises; left out, it is inferred from what the loss is, what its parameters are called, or
        which form it answers, and the report says so. ``"listwise"``: ``loss(logits (B, N), labels (B, N), mask (B, N)
        bool)``.
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
        Of the random inputs: the same seed gives the same verdicts unless the budget was spent, which the report says.
    only
        Ids of the contracts to check; all by default.
    examples
        Random inputs for each contract; left out, 60 of a listwise loss, 40 of a contrastive one, 30 of a token or
        matryoshka one.
    options
        Keywords to call the loss, or to make its class, with.
    allow
        Contracts that it breaks by design, each with the reason: ``{"scale": "lengths count on purpose"}``. They are
        checked and shown like the others, and do not count as broken.
    budget
        Seconds for all of it: the processor's, and those that the loss waits. What is not reached by then is unchecked.
        One call of the loss is never cut short. None for as long as it takes. Left out, what the environment variable
        ``LOSSLAB_CHECK_BUDGET`` says, seconds or ``none``, and 9 s where it is not set: with ``none`` a slow machine
        gives the verdicts of a fast one.
    device
        Where to run the loss, ``"cpu"``, ``"cuda"`` or ``"mps"``. Left out, on the CPU, and the contract ``device``
        where ``LOSSLAB_DEVICE`` says, or on the best device there is.
    extra
        Contracts of your own for losses of this kind, checked after ours.
    **conventions
        Declared conventions by name: those of `Conventions` (``order``, ``count_short_lists``, ``reduction``), of
        `ContrastiveConventions` (``temperature``, ``normalize``, ``symmetric``, ``reduction``, ``more_documents``,
        ``duplicates``, ``within``, ``graded``), of `TokenConventions` (``shift``, ``ignore_index``, ``reduction``,
        ``base``, ``returns``) or of `MatryoshkaConventions` (``combine``, ``embedding_labels``). Left out, or None,
        they are what the loss declares: its ``conventions`` attribute, or keywords bound by `functools.partial`;
        failing that, the class's defaults, and the report says that they were assumed. Of a contrastive or token loss
        also the defaults in its signature, and the attributes of a module, are read; ``temperature`` as well where it
        is called ``tau`` or ``temp``, or is 1 / ``scale``.

    Returns
    -------
    Report
        Truthy if no promise is broken, but by design, and the budget left none untried. Prints as a table; a notebook
        shows it as one.

    Raises
    ------
    ValueError, TypeError
        If an argument is wrong; not if the loss is.

    Examples
    --------
    >>> import losslab
    >>> report = losslab.check("losslab.losses:list_mle", against="list_mle")
    >>> report.kind
    'listwise'
    >>> bool(report)
    True
    """
    budget = default_budget() if budget == "default" else budget
    extra = in_order(budget, examples, seed, options, only, extra)
    where = None if device is None else place(device)
    if kind is not None and kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(CONTRACTS)}, got {kind!r}")
    meant = import_loss(loss) if isinstance(loss, str) else loss
    built_in = None if only is None else {only} if isinstance(only, str) else set(only) - {c.id for c in extra}
    among = KINDS if kind is not None else asked_of(built_in, against, conventions)
    found, inferred = identify(meant, options, kind, loss if isinstance(loss, str) else None, tuple(among))
    kind = inferred.kind
    family = KINDS[kind]
    must_be_callable(found, kind)
    contracts = contracts_of(kind, only, objective=against is not None, extra=extra)
    allow = allowed(allow, kind, extra)
    spoken = conventions_of(found, family.conventions, conventions)
    declared = spoken.conventions
    if isinstance(found, PerplexityMetric) and isinstance(declared, TokenConventions):
        found = found.declared(declared)
    oracle = None if against is None else family.oracle(against)
    name = name_of(found)
    if where is not None and where.type != "cpu" and isinstance(found, torch.nn.Module):
        found = copy.deepcopy(found).to(where)
    watch = Watch(budget=budget, device=None if where is None or where.type == "cpu" else where)
    watched = Watched(found, watch, wraps=kind == "matryoshka")
    remarks = [*([str(inferred)] if inferred.why else []), *spoken.remarks]
    origin = origin_of(loss, meant, options or {}, kind)
    results: dict[str, Result] = {}
    with warnings_once(), one_thread(), on_device(where), undisturbed():
        with undisturbed():
            call_takes, is_random = looked_at(family.subject(watched, declared, oracle), watch)
        if is_random:
            remarks.append(RANDOM)
        calls = CALLS_AN_INPUT * sum(inputs_for(contract, examples or family.examples) for contract in contracts)
        hurried = budget is not None and call_takes * calls > budget
        order = sorted(contracts, key=lambda contract: contract.id != "objective") if hurried else contracts
        for i, contract in enumerate(order):
            watch.seeded = is_random and contract.id != "random_state"
            if budget is not None and hurried:
                share = max((budget - watch.spent) / (len(order) - i), LEAST_CALLS * call_takes)
                watch.limit = min(budget, watch.spent + share)
            result = check_one(contract, family.subject(watched, declared, oracle), seed, examples or family.examples)
            results[contract.id] = by_design(with_code(result, kind, origin, watched), allow)
    if (state := results.get("no_state")) and state.verdict == "broken":
        remarks.append(STATE)
    return Report(
        loss=name,
        kind=kind,
        conventions=declared,
        against=against if against is None or isinstance(against, str) else name_of(against),
        seed=seed,
        results=tuple(results[contract.id] for contract in contracts),
        remarks=tuple(remarks),
        budget=budget,
        budget_spent=watch.interrupted,
        device=None if where is None else str(where),
    )


RANDOM = (
    "its value is random: apart from random_state, promises are asked with the random state set to one seed before "
    "every call"
)


STATE = "a call leaves something behind (no_state): other promises may be broken for that reason alone; mend it first"


def asked_of(
    only: Collection[str] | None, against: str | Callable[..., Any] | None, conventions: Mapping[str, Any]
) -> list[str]:
    """The kinds that have the contracts, the objective and the conventions that a check names; all if none has."""
    only = {only} if isinstance(only, str) else set(only or ())
    given = {name for name, value in conventions.items() if value is not None}

    def fits(family: Kind) -> bool:
        if not only <= {c.id for c in family.contracts} or not given <= {f.name for f in fields(family.conventions)}:
            return False
        try:
            return not isinstance(against, str) or family.oracle(against) is not None
        except ValueError:
            return False

    return [name for name, family in KINDS.items() if fits(family)] or list(KINDS)


def default_budget() -> float | None:
    """Seconds that a check may take if nobody says: what ``LOSSLAB_CHECK_BUDGET`` names, else `BUDGET`.

    Raises
    ------
    ValueError
        If it names neither a number above 0 nor ``none``.
    """
    named = os.environ.get(BUDGET_VARIABLE, "").strip()
    if not named:
        return BUDGET
    if named.lower() == "none":
        return None
    try:
        seconds = float(named)
    except ValueError:
        seconds = 0.0
    if not seconds > 0:
        raise ValueError(f"{BUDGET_VARIABLE} must be a number of seconds above 0, or none for no limit, got {named!r}")
    return seconds


def in_order(
    budget: object, examples: object, seed: object, options: object, only: object, extra: object
) -> tuple[Contract, ...]:
    """The contracts of one's own, once every plain argument of `check` is of its type.

    Raises
    ------
    ValueError, TypeError
        If one is not; it is named.
    """
    number = isinstance(budget, int | float) and not isinstance(budget, bool)
    if budget is not None and not number:
        raise TypeError(f"budget must be a number of seconds above 0, or None for no limit, got {budget!r}")
    if isinstance(budget, int | float) and not budget > 0:
        raise ValueError(f"budget must be a number of seconds above 0, or None for no limit, got {budget!r}")
    for name, value in (("examples", examples), ("seed", seed)):
        whole = isinstance(value, int) and not isinstance(value, bool)
        if not whole and (name == "seed" or value is not None):
            raise TypeError(f"{name} must be a whole number, got {value!r}")
    if isinstance(examples, int) and examples < 1:
        raise ValueError(f"examples must be at least 1, got {examples!r}")
    if options is not None and not isinstance(options, Mapping):
        raise TypeError(f"options must name keywords with their values, {{'temperature': 0.1}}, got {options!r}")
    if only is not None and not isinstance(only, Collection):
        raise TypeError(f"only must hold ids of contracts, got {only!r}")
    if only is not None and not only:
        raise ValueError(f"only must name at least one contract, got {only!r}; leave it out to check all")
    if isinstance(extra, str | Contract) or not isinstance(extra, Collection):
        raise TypeError(f"extra must be a list of Contracts, got {extra!r}; put yours in brackets")
    for own in extra:
        if not isinstance(own, Contract):
            raise TypeError(f"extra must hold Contracts, got {own!r}; make one of your function with Contract(…)")
    return tuple(extra)


#: What a contract can give a loss of a kind by keyword.
GIVEN = {"contrastive": ("positives", "labels"), "token": ("mask", "attention_mask")}


def must_be_callable(loss: Any, kind: str) -> None:  # noqa: ANN401
    """Refuse a loss of two arguments and more that nobody can give.

    Raises
    ------
    NotALossError
        If it has a further parameter without a default, by position, that no contract of its kind has a value for.
    """
    for name, parameter in options_of(loss).items() if kind in GIVEN else ():
        if parameter.default is parameter.empty and name not in GIVEN[kind]:
            raise NotALossError(
                f"{name_of(loss)} needs a third argument, {name}, that no {kind} promise gives it; wrap it in a "
                f"function of {ARGUMENTS[kind]}, or give {name} a value with options="
            )


ARGUMENTS = {"contrastive": "(queries, documents)", "token": "(logits, labels)"}


def place(device: str | torch.device) -> torch.device:
    """The device that was asked for.

    Raises
    ------
    ValueError
        If there is no such device, here or at all.
    """
    try:
        found = torch.device(device)
    except RuntimeError:
        raise ValueError(f"device must be cpu, cuda or mps, got {device!r}") from None
    here = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if found.type not in here:
        raise ValueError(f"device must be cpu, cuda or mps, got {device!r}")
    if not here[found.type]:
        raise ValueError(f"device is {str(device)!r}, but torch sees no such device here; leave it out to use the CPU")
    if found.type == "cuda" and (found.index or 0) >= torch.cuda.device_count():
        raise ValueError(f"device is {str(device)!r}, but torch sees only {torch.cuda.device_count()} such devices")
    return found


@contextmanager
def on_device(device: torch.device | None) -> Iterator[None]:
    """Have the contract ``device`` look at this device too, as ``LOSSLAB_DEVICE`` would."""
    before = os.environ.get("LOSSLAB_DEVICE")
    if device is not None and device.type != "cpu":
        os.environ["LOSSLAB_DEVICE"] = device.type
    try:
        yield
    finally:
        if before is None:
            os.environ.pop("LOSSLAB_DEVICE", None)
        else:
            os.environ["LOSSLAB_DEVICE"] = before


def allowed(allow: Mapping[str, str] | None, kind: str, extra: Collection[Contract] = ()) -> dict[str, str]:
    """What may be broken, each with a reason.

    Raises
    ------
    ValueError
        If there is no such contract, or no reason.
    """
    known = [c.id for c in (*CONTRACTS[kind], *extra)]
    if allow is not None and not isinstance(allow, Mapping):
        raise ValueError(f"allow must name contracts with their reasons, {{'scale': 'why'}}, got {allow!r}")
    for contract, reason in (allow or {}).items():
        if contract not in known:
            raise ValueError(f"allow names no {kind} contract: {contract!r}; there are {', '.join(known)}")
        if not isinstance(reason, str) or not reason.strip():
            raise ValueError(f"allow must give a reason for {contract!r}, in words, got {reason!r}")
    return {contract: " ".join(reason.split()) for contract, reason in (allow or {}).items()}


def by_design(result: Result, allow: Mapping[str, str]) -> Result:
    """The result of a contract that is declared to be broken by design, as such."""
    reason = allow.get(result.contract)
    if reason is None:
        return result
    if result.verdict == "broken":
        said = "; ".join(filter(None, [f"by design: {reason}", result.reason]))
        return replace(result, verdict="by design", reason=said)
    if result.verdict == "kept":
        said = f"declared as broken by design ({reason}), and yet kept: the declaration is not needed"
    else:
        said = f"declared as broken by design ({reason})"
    return replace(result, reason="; ".join(filter(None, [result.reason, said])))


def looked_at(subject: Any, watch: Watch) -> tuple[float, bool]:  # noqa: ANN401
    """How many seconds a call takes, and whether its value is random; nothing is judged here."""
    seconds, limit = 0.0, watch.limit
    watch.limit = None
    answers = []
    try:
        batch = plain(subject)
        for seed in (0, 0, 1):
            before = watch.spent
            seed_everything(seed)
            answers.append(batch.ask())
            seconds = watch.spent - before
            if limit is not None and watch.spent > limit / 5:
                break
    except (LossFailed, Exempt, Unchecked):  # the contracts will say so
        pass
    finally:
        watch.limit = limit
    return seconds, len(answers) == 3 and same(answers[0], answers[1]) and not same(answers[0], answers[2])


def inputs_for(contract: Contract, examples: int) -> int:
    """How many inputs a contract is tried on, if none breaks it."""
    if not contract.random:
        return 1
    return examples if contract.most is None else min(examples, contract.most)


def with_code(result: Result, kind: str, origin: Origin, watched: Watched) -> Result:
    """The result with a program that shows its counterexample again."""
    found, calls = result.counterexample, watched.watch.breaking
    if result.verdict != "broken" or found is None or not calls:
        return result
    with undisturbed():
        seed_everything(0)
        try:
            program = write(result.contract, kind, origin, watched.watched_loss, calls, found)
        except Exception:  # (of a loss that answers once and not again there is nothing to show)
            return result
    return replace(result, counterexample=replace(found, program=program))


def origin_of(given: Any, meant: Any, options: Mapping[str, Any], kind: str) -> Origin:  # noqa: ANN401
    """How to import the loss that was given, ``meant`` by its name."""
    if isinstance(given, str):
        adapted, is_class = ADAPTERS[kind].takes(meant), isinstance(meant, type)
        return Origin.of_name(given, options, kind, adapted=adapted, is_class=is_class and kind != "matryoshka")
    return Origin.of_object(given, options)


@contextmanager
def one_thread() -> Iterator[None]:
    """Thousands of tiny tensors: on a busy machine threads that wait for each other cost ten times the work itself."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def contracts_of(
    kind: str, only: Collection[str] | None = None, *, objective: bool = False, extra: Collection[Contract] = ()
) -> Sequence[Contract]:
    """The contracts of a kind, ``objective`` among them only if there is one to compare with, and those of one's own.

    Raises
    ------
    ValueError
        If there is no such kind, or no such contract, or ``extra`` has one whose name is taken.
    TypeError
        If ``extra`` holds something else.
    """
    if kind not in CONTRACTS:
        raise ValueError(f"kind must be one of {', '.join(CONTRACTS)}, got {kind!r}")
    for own in extra:
        if not isinstance(own, Contract):
            raise TypeError(f"extra must hold Contracts, got {own!r}; make one of your function with Contract(…)")
    names = [c.id for c in (*CONTRACTS[kind], *extra)]
    if taken := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
        raise ValueError(f"extra has a contract named {taken[0]!r}, and so have others of {kind}; give it another id")
    contracts = [c for c in CONTRACTS[kind] if objective or c.id != "objective"] + list(extra)
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


HALF = "float32 is right: only half precision is computed in itself; compute in float32, scores.float(), or so"


class _StillBroken(BaseException):
    """Ends a search at its first find, as nothing that the search would go on to make smaller."""


def kept_in_float32(contract: Contract, subject: Any, seed: int, examples: int) -> bool:  # noqa: ANN401
    """Whether a promise that broke in half precision is kept where float32 is drawn instead."""

    def body(draw: Draw) -> None:
        def wide(strategy: Any) -> Any:  # noqa: ANN401
            drawn = draw(strategy)
            return torch.float32 if isinstance(drawn, torch.dtype) and drawn in HALF_FORMATS else drawn

        try:
            contract.body(subject, wide)
        except (BrokenPromise, LossFailed):
            raise _StillBroken from None

    try:
        with undisturbed():
            search(body, seed_value=seed, examples=examples)
    except (_StillBroken, Exempt, Unchecked, OutOfBudget):
        return False
    return True


def check_one(contract: Contract, subject: Any, seed: int, examples: int) -> Result:  # noqa: ANN401
    """Put one contract to a loss; whatever that does to the process is undone."""
    result = functools.partial(Result, contract.id, contract.title, contract.promise)
    exempt = contract.exemption(subject.conventions)
    if exempt is not None:
        return result("exempt", exempt)
    watch = subject.loss.watch if isinstance(subject.loss, Watched) else Watch()
    watch.breaking = ()
    inputs, tried = inputs_for(contract, examples), 0
    failures: list[BrokenPromise | LossFailed] = []  # the last one stands in for the smallest if time is up

    def body(draw: Draw) -> None:
        nonlocal tried
        watch.calls.clear()
        try:
            contract.body(subject, draw)
        except (BrokenPromise, LossFailed) as failed:
            failed.calls = tuple(watch.calls)
            failures[:] = [failed]
            raise
        tried += 1

    cut_short = ""
    try:
        with undisturbed():
            search(body, seed_value=seed, examples=inputs)
    except (BrokenPromise, LossFailed) as failed:
        failures[:] = [failed]
    except Exempt as exempt_:
        return result("exempt", str(exempt_))
    except Unchecked as unchecked:
        return result("unchecked", str(unchecked))
    except Exception as error:
        if id(contract) in OURS:
            raise  # ours is to be mended, not reported
        return result("error", f"the body of the contract {contract.id!r} raised {first_line(error)}")
    except OutOfBudget:
        watch.interrupted = True
        cut_short = f"{SPENT}{show(watch.budget or 0.0)} s was spent"
        if not failures and not tried:
            return result("unchecked", cut_short)
    if not failures:
        remarks = [*subject.notes, f"tried on {tried} of {inputs} inputs: {cut_short}" if cut_short else ""]
        return result("kept", "; ".join(filter(None, remarks)))
    (failure,) = failures
    watch.breaking = failure.calls
    cut_short = cut_short and f"not made smaller to the end: {cut_short}"
    if isinstance(failure, BrokenPromise):
        half = failure.counterexample.setting.get("number format", "") in map(name_of_format, HALF_FORMATS)
        cure = HALF if half and kept_in_float32(contract, subject, seed, inputs) else ""
        return result("broken", "; ".join(filter(None, [cure, cut_short])), failure.counterexample)
    return result("error", "; ".join(filter(None, [failure.problem, cut_short])), failure.counterexample)
