"""The promises a loss keeps, how they are checked, and adapters that let real libraries' losses be checked too.

`model` says what a contract is; `listwise`, `contrastive` and `token` have the contracts themselves; `subject` runs the
loss under test and `closeness` says when two results are equal; `search` finds and shrinks inputs; `checking` puts it
together and `report` shows it. `oracles` are objectives as slow loops, `adapters` the way to real losses.
"""

from losslab.contracts.checking import CONTRACTS, check, contracts_of
from losslab.contracts.model import (
    Contract,
    ContrastiveConventions,
    Conventions,
    Counterexample,
    MatryoshkaConventions,
    Pairs,
    Quantity,
    Query,
    Result,
    Texts,
    TokenConventions,
)
from losslab.contracts.named import NotALossError
from losslab.contracts.parametrize import parametrize_with_contracts
from losslab.contracts.report import Report

__all__ = [
    "CONTRACTS",
    "Contract",
    "ContrastiveConventions",
    "Conventions",
    "Counterexample",
    "MatryoshkaConventions",
    "NotALossError",
    "Pairs",
    "Quantity",
    "Query",
    "Report",
    "Result",
    "Texts",
    "TokenConventions",
    "check",
    "contracts_of",
    "parametrize_with_contracts",
]
