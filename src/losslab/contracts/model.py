"""What a contract is, what it is checked under, and what comes of it. Numbers and words only; no loss runs here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, get_args

from losslab.contracts.wording import json_number, show_all, show_apart

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

    from losslab.contracts.subject import Subject

T = TypeVar("T")
Verdict = Literal["kept", "broken", "exempt", "unchecked", "error"]
Direction = Literal["kept", "changed"]
Order = Literal["labels", "given"]
Reduction = Literal["mean", "sum", "none"]


@dataclass(frozen=True)
class Conventions:
    """What right losses legitimately do differently, and a loss therefore declares.

    Parameters
    ----------
    order
        ``"labels"``: the labels rank the documents. ``"given"``: the documents are ranked as they stand.
    count_short_lists
        Whether a list of fewer than two documents, which contributes 0, is counted in the mean.
    reduction
        How the queries of a batch become one value: ``"mean"``, ``"sum"``, or ``"none"``, one value a query, (B,).
    """

    order: Order = "labels"
    count_short_lists: bool = False
    reduction: Reduction = "mean"

    def __post_init__(self) -> None:
        for name, allowed in (("order", get_args(Order)), ("reduction", get_args(Reduction))):
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name} must be one of {', '.join(allowed)}, got {getattr(self, name)!r}")
        if not isinstance(self.count_short_lists, bool):
            raise TypeError(f"count_short_lists must be True or False, got {self.count_short_lists!r}")

    def __str__(self) -> str:
        ranked = "ranked by labels" if self.order == "labels" else "ranked as given"
        short = "short lists counted" if self.count_short_lists else "short lists not counted"
        reduced = {"mean": "mean over queries", "sum": "sum over queries", "none": "one value a query"}[self.reduction]
        return f"{ranked}, {short}, {reduced}"


@dataclass(frozen=True)
class Query:
    """One list: its documents' logits and relevance labels, in the order they stand in."""

    logits: tuple[float, ...]
    labels: tuple[float, ...]

    def __len__(self) -> int:
        return len(self.logits)

    def __str__(self) -> str:
        if not self.logits:
            return "no documents"
        return f"logits {show_all(self.logits)}, labels {show_all(self.labels)}"


Number = float | tuple[float, ...]


@dataclass(frozen=True)
class Quantity:
    """A number, or one number a document, that came out one way and should have come out another."""

    name: str
    got: Number
    should: Number


@dataclass(frozen=True)
class Counterexample:
    """The smallest input found on which a promise breaks.

    Attributes
    ----------
    sentence
        What happened, in words.
    queries
        What went in.
    setting
        The rest of what went in, by name: width, what the empty slots hold, number format.
    quantities
        What came out and what should have.
    direction, factor, cosine
        Of the gradient shown, where it has a direction: whether it still points where it should; if it does, by which
        factor its length is off; and the cosine between the two.
    """

    sentence: str
    queries: tuple[Query, ...] = ()
    setting: Mapping[str, str] = field(default_factory=dict)
    quantities: tuple[Quantity, ...] = ()
    direction: Direction | None = None
    factor: float | None = None
    cosine: float | None = None

    def lines(self) -> list[tuple[str, str]]:
        """Head and text of each line that shows the numbers."""
        names = [f"query {i}: " if len(self.queries) > 1 else "" for i in range(1, len(self.queries) + 1)]
        went_in = [f"{name}{query}" for name, query in zip(names, self.queries, strict=True)]
        went_in += [f"{name}: {text}" for name, text in self.setting.items()]
        shown = [(q.name, *show_apart(q.got, q.should)) for q in self.quantities]
        came_out = [f"{name} {got}" for name, got, _ in shown]
        should_be = [f"{name} {should}" for name, _, should in shown]
        blocks = (("went in", went_in), ("came out", came_out), ("should be", should_be))
        return [(head if i == 0 else "", text) for head, texts in blocks for i, text in enumerate(texts)]

    def __str__(self) -> str:
        return "\n".join([self.sentence, *(f"  {head:<9} {text}" for head, text in self.lines())])

    def to_dict(self) -> dict[str, Any]:
        """The same as plain dictionaries, lists and numbers, fit for JSON (nan and inf as words)."""
        return {
            "sentence": self.sentence,
            "queries": [
                {"logits": json_number(query.logits), "labels": json_number(query.labels)} for query in self.queries
            ],
            "setting": dict(self.setting),
            "quantities": [
                {"name": q.name, "got": json_number(q.got), "should": json_number(q.should)} for q in self.quantities
            ],
            "direction": self.direction,
            "factor": json_number(self.factor),
            "cosine": json_number(self.cosine),
        }


class BrokenPromise(Exception):  # noqa: N818  (a finding, not a fault of the program)
    """Raised by a contract's check on an input that breaks it."""

    def __init__(self, counterexample: Counterexample) -> None:
        super().__init__(counterexample.sentence)
        self.counterexample = counterexample


class LossFailed(Exception):  # noqa: N818
    """The loss gave nothing that could be judged: it raised, or returned no differentiable number."""

    def __init__(self, problem: str, counterexample: Counterexample | None = None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.counterexample = counterexample


class NoKernel(LossFailed):
    """PyTorch itself lacks the operation for this number format on this device."""


class Unchecked(Exception):  # noqa: N818
    """The contract could not be put to the loss on this machine; the message says why."""


class Draw(Protocol):
    """Draws one value from a hypothesis strategy."""

    def __call__(self, strategy: SearchStrategy[T], /) -> T:
        """Draw."""


@dataclass(frozen=True)
class Exemption:
    """A declared convention that contradicts a contract, and why."""

    convention: str
    value: object
    because: str


@dataclass(frozen=True)
class Contract:
    """A promise, written down once.

    Attributes
    ----------
    id
        The name that reports, tests and mistakes use.
    title
        A few words for a table.
    promise
        The promise in one sentence.
    body
        Checks the promise on one random input; raises `BrokenPromise` where it does not hold.
    exemptions
        The conventions under which the promise is not asked for.
    under
        What declared conventions change in it, in words; empty if nothing.
    random
        False for a check that draws nothing and so needs to run only once.
    """

    id: str
    title: str
    promise: str
    body: Callable[[Subject, Draw], None] = field(repr=False)
    exemptions: tuple[Exemption, ...] = ()
    under: str = ""
    random: bool = True

    def exemption(self, conventions: Conventions) -> str | None:
        """Why a loss under these conventions need not keep the promise; None if it must."""
        for exemption in self.exemptions:
            if getattr(conventions, exemption.convention) == exemption.value:
                return f"declared {exemption.convention}={exemption.value!r}: {exemption.because}"
        return None


@dataclass(frozen=True)
class Result:
    """What became of one contract.

    Attributes
    ----------
    contract, title, promise
        Of the contract.
    verdict
        ``"kept"``; ``"broken"``, with a counterexample; ``"exempt"``, by a declared convention; ``"unchecked"``, when
        this machine cannot put it to the loss; ``"error"``, when the loss gave nothing that could be judged.
    reason
        Why it is exempt, unchecked or an error; remarks on one that is kept.
    counterexample
        The smallest one found, or the smallest input that led to the error.
    """

    contract: str
    title: str
    promise: str
    verdict: Verdict
    reason: str = ""
    counterexample: Counterexample | None = None

    def to_dict(self) -> dict[str, Any]:
        """The same, fit for JSON."""
        return {
            "contract": self.contract,
            "title": self.title,
            "promise": self.promise,
            "verdict": self.verdict,
            "reason": self.reason,
            "counterexample": self.counterexample.to_dict() if self.counterexample else None,
        }
