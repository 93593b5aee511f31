"""Contracts as pytest cases, in the manner of scikit-learn's ``parametrize_with_checks``."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from losslab.contracts.checking import check, contracts_of
from losslab.contracts.named import find_loss
from losslab.contracts.report import describe
from losslab.contracts.subject import name_of

if TYPE_CHECKING:
    import pytest


@dataclass(frozen=True)
class ContractCase:
    """One contract, to be called with one loss inside a test."""

    contract: str
    kind: str
    seeds: tuple[int, ...]
    against: Any
    examples: int | None
    conventions: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, loss: Callable[..., Any] | str) -> None:
        """Fail with the counterexample if any seed breaks the contract; skip, saying why, if the loss is exempt."""
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
                **self.conventions,
            )
            (result,) = report.results
            if result.verdict in ("exempt", "unchecked"):
                pytest.skip(f"{report.loss}, {result.contract}: {result.reason}")
            if result.verdict != "kept":
                pytest.fail(f"{report.loss} (seed {seed}) {result.verdict} {describe(result)}", pytrace=False)


def parametrize_with_contracts(
    losses: Iterable[Callable[..., Any] | str],
    kind: str = "listwise",
    *,
    seeds: Iterable[int] = (0,),
    against: str | Callable[..., Any] | None = None,
    only: Collection[str] | None = None,
    examples: int | None = None,
    **conventions: Any,  # noqa: ANN401
) -> pytest.MarkDecorator:
    """Parametrise a test with every pair of loss and contract; the test gets ``loss`` and ``contract`` and calls one.

    Parameters
    ----------
    losses
        Callables, modules, or names ``"package.module:name"``, as `losslab.check` takes them.
    kind, against, only, examples, **conventions
        As for `losslab.check`.
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
    contracts = contracts_of(kind, only, objective=against is not None)
    cases = [
        pytest.param(
            loss,
            ContractCase(contract.id, kind, seeds, against, examples, conventions),
            id=f"{loss if isinstance(loss, str) else name_of(find_loss(loss, kind=kind))}-{contract.id}",
        )
        for loss in losses
        for contract in contracts
    ]
    return pytest.mark.parametrize(("loss", "contract"), cases)
