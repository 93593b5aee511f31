"""Contracts as pytest cases, in the manner of scikit-learn's ``parametrize_with_checks``."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from losslab.contracts.checking import asked_of, check, contracts_of
from losslab.contracts.model import Contract
from losslab.contracts.named import identify
from losslab.contracts.report import describe
from losslab.contracts.subject import name_of

if TYPE_CHECKING:
    import pytest


@dataclass(frozen=True)
class ContractCase:
    """One contract, to be called with one loss inside a test."""

    contract: str
    kind: str | None
    seeds: tuple[int, ...]
    against: Any
    examples: int | None
    conventions: Mapping[str, Any] = field(default_factory=dict)
    allow: Mapping[str, str] = field(default_factory=dict)
    extra: tuple[Contract, ...] = ()

    def __call__(self, loss: Callable[..., Any] | str) -> None:
        """Fail with the counterexample if any seed breaks the contract; skip, saying why, if the loss is exempt.

        What is broken by design is an expected failure.
        """
        import pytest

        __tracebackhide__ = True
        for seed in self.seeds:
            report = check(
                loss,
                self.kind,
                against=self.against,
                seed=seed,
                only=[self.contract],
                examples=self.examples,
                allow={name: why for name, why in self.allow.items() if name == self.contract},
                extra=self.extra,
                **self.conventions,
            )
            (result,) = report.results
            if result.verdict in ("exempt", "unchecked"):
                pytest.skip(f"{report.loss}, {result.contract}: {result.reason}")
            if result.verdict == "by design":
                pytest.xfail(f"{report.loss}, {result.contract}: {result.reason}")
            if result.verdict != "kept":
                pytest.fail(f"{report.loss} (seed {seed}) {result.verdict} {describe(result)}", pytrace=False)


def parametrize_with_contracts(
    losses: Iterable[Callable[..., Any] | str],
    kind: str | None = None,
    *,
    seeds: Iterable[int] = (0,),
    against: str | Callable[..., Any] | None = None,
    only: Collection[str] | None = None,
    examples: int | None = None,
    allow: Mapping[str, str] | None = None,
    extra: Collection[Contract] = (),
    **conventions: Any,  # noqa: ANN401
) -> pytest.MarkDecorator:
    """Parametrise a test with every pair of loss and contract; the test gets ``loss`` and ``contract`` and calls one.

    Parameters
    ----------
    losses
        Callables, modules, or names ``"package.module:name"``, as `losslab.check` takes them.
    kind, against, only, examples, extra, **conventions
        As for `losslab.check`; without a kind, each loss is of the kind inferred for it.
    allow
        As for `losslab.check`: what is broken by design is an expected failure, and its reason is shown.
    seeds
        Every case is tried with each.

    Examples
    --------
    >>> from losslab.contracts import parametrize_with_contracts
    >>> from losslab.losses import list_mle, list_net
    >>> @parametrize_with_contracts([list_mle, list_net], seeds=range(3))
    ... def test_promises(loss, contract):
    ...     contract(loss)
    """
    import pytest

    seeds = tuple(seeds)
    if not seeds:
        raise ValueError("seeds must name at least one seed, got none")
    cases = []
    for loss in losses:
        found, inferred = identify(loss, kind=kind, among=asked_of(only, against, conventions))
        cases += [
            pytest.param(
                loss,
                ContractCase(
                    contract.id, inferred.kind, seeds, against, examples, conventions, allow or {}, tuple(extra)
                ),
                id=f"{loss if isinstance(loss, str) else name_of(found)}-{contract.id}",
            )
            for contract in contracts_of(inferred.kind, only, objective=against is not None, extra=extra)
        ]
    return pytest.mark.parametrize(("loss", "contract"), cases)
