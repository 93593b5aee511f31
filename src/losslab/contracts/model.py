"""What a contract is, what it is checked under, and what comes of it. Numbers and words only; no loss runs here."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from losslab.contracts.wording import json_number, show, show_all, show_apart, show_rows

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

T = TypeVar("T")
Array = NDArray[np.float64]
Verdict = Literal["kept", "broken", "by design", "exempt", "unchecked", "error"]
Direction = Literal["kept", "changed"]
Order = Literal["labels", "given"]
Reduction = Literal["mean", "sum", "none"]
Duplicates = Literal["negatives", "masked"]
Combine = Literal["sum", "mean"]
TokenReduction = Literal["mean", "sum"]
Returns = Literal["loss", "perplexity"]
REDUCED = {"mean": "mean over queries", "sum": "sum over queries", "none": "one value a query"}


def _must_be_one_of(name: str, value: object, allowed: tuple[Any, ...]) -> None:
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(allowed)}, got {value!r}")


def _must_be_a_bool(name: str, value: object) -> None:
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, got {value!r}")


@dataclass(frozen=True)
class Conventions:
    """What right listwise losses legitimately do differently, and a loss therefore declares.

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
        _must_be_one_of("order", self.order, get_args(Order))
        _must_be_one_of("reduction", self.reduction, get_args(Reduction))
        _must_be_a_bool("count_short_lists", self.count_short_lists)

    def __str__(self) -> str:
        ranked = "ranked by labels" if self.order == "labels" else "ranked as given"
        short = "short lists counted" if self.count_short_lists else "short lists not counted"
        return f"{ranked}, {short}, {REDUCED[self.reduction]}"

    def to_dict(self) -> dict[str, Any]:
        """Name and value of each, fit for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class ContrastiveConventions:
    """What right contrastive losses legitimately do differently, and a loss therefore declares.

    Parameters
    ----------
    temperature
        What the scores are divided by, > 0.
    normalize
        Whether scores are cosines. If False they are plain dot products, and the embeddings' lengths count.
    symmetric
        Whether documents choose among queries as well as queries among documents.
    reduction
        How the queries of a batch become one value: ``"mean"``, ``"sum"``, or ``"none"``, one value a query, (B,).
    more_documents
        Whether there may be more documents than queries, the further ones negatives of every query. Left out: unless
        the loss is symmetric.
    duplicates
        What a second copy of a query's positive is: ``"negatives"``, one like any other document; ``"masked"``, no
        negative of that query, because the loss sees by itself that it is a copy.
    within
        Whether other queries, or a document's fellow documents, are among the negatives too.
    graded
        Whether every document has a label of its own, rather than one being the positive.
    """

    temperature: float = 0.05
    normalize: bool = True
    symmetric: bool = False
    reduction: Reduction = "mean"
    more_documents: bool | None = None
    duplicates: Duplicates = "negatives"
    within: bool = False
    graded: bool = False

    def __post_init__(self) -> None:
        if self.more_documents is None:
            object.__setattr__(self, "more_documents", not self.symmetric)
        _must_be_one_of("reduction", self.reduction, get_args(Reduction))
        _must_be_one_of("duplicates", self.duplicates, get_args(Duplicates))
        for name in ("normalize", "symmetric", "more_documents", "within", "graded"):
            _must_be_a_bool(name, getattr(self, name))
        number = isinstance(self.temperature, (int, float)) and not isinstance(self.temperature, bool)
        if not number or not (math.isfinite(self.temperature) and self.temperature > 0):
            raise ValueError(f"temperature must be a finite number above 0, got {self.temperature!r}")

    def __str__(self) -> str:
        said = [
            f"temperature {show(self.temperature)}",
            "normalised" if self.normalize else "not normalised",
            "both directions" if self.symmetric else "queries to documents",
            "further documents allowed" if self.more_documents else "as many documents as queries",
            "copies of a positive masked" if self.duplicates == "masked" else "copies of a positive are negatives",
            "queries and documents among themselves too" if self.within else "",
            "graded labels" if self.graded else "",
            REDUCED[self.reduction],
        ]
        return ", ".join(filter(None, said))

    def to_dict(self) -> dict[str, Any]:
        """Name and value of each, fit for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class TokenConventions:
    """What right token losses legitimately do differently, and a loss therefore declares.

    Parameters
    ----------
    shift
        True: labels are the input ids, and the loss shifts them once, so that row t of the logits meets label t + 1.
        False: row t meets label t, because whoever calls the loss has shifted.
    ignore_index
        The label of a position that is no target.
    reduction
        How targets become one value: ``"mean"`` over all targets of the batch, or ``"sum"``.
    base
        Of the logarithm, > 1: e for nats, 2 for bits.
    returns
        ``"loss"``, or ``"perplexity"``: the base to the power of the mean loss, which is the same in every base.
    """

    shift: bool = True
    ignore_index: int = -100
    reduction: TokenReduction = "mean"
    base: float = math.e
    returns: Returns = "loss"

    def __post_init__(self) -> None:
        _must_be_a_bool("shift", self.shift)
        if not isinstance(self.ignore_index, int) or isinstance(self.ignore_index, bool):
            raise TypeError(f"ignore_index must be a whole number, got {self.ignore_index!r}")
        if self.ignore_index >= 0:
            raise ValueError(
                f"ignore_index must be below 0, got {self.ignore_index}: an id of the vocabulary would be no target"
            )
        _must_be_one_of("reduction", self.reduction, get_args(TokenReduction))
        _must_be_one_of("returns", self.returns, get_args(Returns))
        number = isinstance(self.base, (int, float)) and not isinstance(self.base, bool)
        if not number or not (math.isfinite(self.base) and self.base > 1):
            raise ValueError(f"base must be a finite number above 1, got {self.base!r}")
        if self.returns == "perplexity" and self.reduction != "mean":
            raise ValueError("returns='perplexity' needs reduction='mean': a perplexity is that of a mean")

    def __str__(self) -> str:
        unit = {math.e: "in nats", 2: "in bits"}.get(self.base, f"in base {show(self.base)}")
        said = [
            "labels are the input ids, it shifts" if self.shift else "labels are given shifted",
            f"label {self.ignore_index} ignored",
            "mean over targets" if self.reduction == "mean" else "sum over targets",
            unit if self.returns == "loss" else "returned as perplexity",
        ]
        return ", ".join(said)

    def to_dict(self) -> dict[str, Any]:
        """Name and value of each, fit for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class MatryoshkaConventions:
    """What right nested losses legitimately do differently, and a loss therefore declares.

    Parameters
    ----------
    combine
        How the sizes become one value: their weighted ``"sum"``, or the weighted ``"mean"``, the sum over the sum of
        the weights.
    embedding_labels
        Whether it nests losses whose labels are a teacher's embeddings.
    """

    combine: Combine = "sum"
    embedding_labels: bool = True

    def __post_init__(self) -> None:
        _must_be_one_of("combine", self.combine, get_args(Combine))
        _must_be_a_bool("embedding_labels", self.embedding_labels)

    def __str__(self) -> str:
        labels = "with" if self.embedding_labels else "without"
        return f"weighted {self.combine} over sizes, {labels} labels that are embeddings"

    def to_dict(self) -> dict[str, Any]:
        """Name and value of each, fit for JSON."""
        return asdict(self)


AnyConventions = Conventions | ContrastiveConventions | TokenConventions | MatryoshkaConventions


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


@dataclass(frozen=True, eq=False)
class Pairs:
    """The embeddings of one batch. Document i is the positive of query i; the others are its negatives.

    Attributes
    ----------
    queries, documents
        (B, d) and (M, d), M >= B.
    hard
        (B, H, d): negatives of one query each; None if there are none.
    real
        (B, H): False where a slot of ``hard`` is padding; None if none is.
    """

    queries: Array
    documents: Array
    hard: Array | None = None
    real: NDArray[np.bool_] | None = None

    def lines(self) -> list[str]:
        """The numbers, a line a side."""
        said = [f"queries {show_rows(self.queries)}", f"documents {show_rows(self.documents)}"]
        for i, rows in enumerate(self.hard if self.hard is not None else ()):
            kept = np.ones(len(rows), dtype=bool) if self.real is None else self.real[i]
            said.append(f"hard negatives of query {i + 1} {show_rows(rows[kept])}")
            if not kept.all():
                said[-1] += f", padding {show_rows(rows[~kept])}"
        return said

    def to_dict(self) -> dict[str, Any]:
        """Lists of numbers, fit for JSON (nan and inf as words)."""
        given = {"queries": self.queries, "documents": self.documents, "hard_negatives": self.hard}
        numbers = {name: json_number(value.tolist()) for name, value in given.items() if value is not None}
        return numbers | ({} if self.real is None else {"hard_mask": self.real.tolist()})


IGNORED = -100  # the label of no target in `Texts`


@dataclass(frozen=True, eq=False)
class Texts:
    """The logits and labels of one batch of texts.

    Attributes
    ----------
    logits
        (B, T, V).
    labels
        (B, T), ``IGNORED`` where there is no target.
    mask
        (B, T): False where a token is padding; None if the loss is given none.
    """

    logits: Array
    labels: NDArray[np.int64]
    mask: NDArray[np.bool_] | None = None

    def lines(self) -> list[str]:
        """The numbers, a text at a time."""
        said = []
        for i, (rows, labels) in enumerate(zip(self.logits, self.labels, strict=True)):
            of_text = f"text {i + 1}: " if len(self.labels) > 1 else ""
            said.append(f"{of_text}labels {labels.tolist()}, logits {show_rows(rows)}")
            if self.mask is not None:
                said[-1] += f", mask {self.mask[i].astype(int).tolist()}"
        return said

    def to_dict(self) -> dict[str, Any]:
        """Lists of numbers, fit for JSON (nan and inf as words)."""
        numbers = {"logits": json_number(self.logits.tolist()), "labels": self.labels.tolist()}
        return numbers | ({} if self.mask is None else {"mask": self.mask.tolist()})


Number = float | tuple[float, ...]


@dataclass(frozen=True)
class Quantity:
    """A number, or one a document or dimension, that came out one way and should have come out another."""

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
        What went in, for a listwise loss.
    setting
        The rest of what went in, by name: width, what the empty slots hold, number format.
    quantities
        What came out and what should have.
    direction, factor, cosine
        Of the gradient shown, where it has a direction: whether it still points where it should; if it does, by which
        factor its length is off; and the cosine between the two.
    pairs
        What went in, for a contrastive or a nested loss.
    texts
        What went in, for a token loss.
    wanted
        What the right quantities are: ``"should be"``; ``"as before"`` where a change of the input should have changed
        nothing; ``"at least"``.
    program
        A short program that shows it again; see `code`.
    """

    sentence: str
    queries: tuple[Query, ...] = ()
    setting: Mapping[str, str] = field(default_factory=dict)
    quantities: tuple[Quantity, ...] = ()
    direction: Direction | None = None
    factor: float | None = None
    cosine: float | None = None
    pairs: Pairs | None = None
    wanted: Literal["should be", "as before", "at least"] = "should be"
    texts: Texts | None = None
    program: str = ""

    def code(self) -> str:
        """A program of a few lines of torch that shows the wrong and the right number; empty if there is none.

        It imports the loss where that can be named, and else begins with a line that says which name to put.
        """
        return self.program

    def lines(self) -> list[tuple[str, str]]:
        """Head and text of each line that shows the numbers."""
        names = [f"query {i}: " if len(self.queries) > 1 else "" for i in range(1, len(self.queries) + 1)]
        went_in = [f"{name}{query}" for name, query in zip(names, self.queries, strict=True)]
        went_in += self.pairs.lines() if self.pairs else []
        went_in += self.texts.lines() if self.texts else []
        went_in += [f"{name}: {text}" for name, text in self.setting.items()]
        shown = [(q.name, *show_apart(q.got, q.should)) for q in self.quantities]
        came_out = [f"{name} {got}" for name, got, _ in shown]
        should_be = [f"{name} {should}" for name, _, should in shown]
        blocks = (("went in", went_in), ("came out", came_out), (self.wanted, should_be))
        return [(head if i == 0 else "", text) for head, texts in blocks for i, text in enumerate(texts)]

    def __str__(self) -> str:
        return "\n".join([self.sentence, *(f"  {head:<9} {text}" for head, text in self.lines())])

    def to_dict(self) -> dict[str, Any]:
        """The same as plain dictionaries, lists and numbers, fit for JSON (nan and inf as words)."""
        given: dict[str, Any] = {}
        if self.pairs is not None:
            given = {"pairs": self.pairs.to_dict(), "wanted": self.wanted}
        if self.texts is not None:
            given = {"texts": self.texts.to_dict(), "wanted": self.wanted}
        if self.program:
            given["code"] = self.program
        return given | {
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
        self.calls: tuple[Any, ...] = ()  # of the loss, on the input that broke it; noted by whoever watches


class LossFailed(Exception):  # noqa: N818
    """The loss gave nothing that could be judged: it raised, or returned no differentiable number."""

    def __init__(self, problem: str, counterexample: Counterexample | None = None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.counterexample = counterexample
        self.calls: tuple[Any, ...] = ()


class NoKernel(LossFailed):
    """PyTorch itself lacks the operation for this number format on this device."""


class Unchecked(Exception):  # noqa: N818
    """The contract could not be put to the loss on this machine; the message says why."""


class Exempt(Exception):  # noqa: N818
    """The contract does not apply to this loss; the message says why."""


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
        Checks the promise on one random input, given the kind's subject; raises `BrokenPromise` where it does not hold
        and `Exempt` where the loss has nothing it applies to.
    exemptions
        The conventions under which the promise is not asked for.
    under
        What declared conventions change in it, in words; empty if nothing.
    random
        False for a check that draws nothing and so needs to run only once.
    most
        Inputs to try at most, of a promise that shows on nearly any; None for as many as are asked for.
    """

    id: str
    title: str
    promise: str
    body: Callable[[Any, Draw], None] = field(repr=False)
    exemptions: tuple[Exemption, ...] = ()
    under: str = ""
    random: bool = True
    most: int | None = None

    def exemption(self, conventions: AnyConventions) -> str | None:
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
        ``"kept"``; ``"broken"``, with a counterexample; ``"by design"``, broken as it was declared to be; ``"exempt"``,
        by a declared convention; ``"unchecked"``, when this machine, or the time there was, could not put it to the
        loss; ``"error"``, when the loss gave nothing that could be judged.
    reason
        Why it is by design, exempt, unchecked or an error; remarks on one that is kept or broken.
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
