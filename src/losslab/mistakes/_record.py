"""What is known about a mistake: how it shows, why it happens, where it was met, and who must catch it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

#: A loss in the call form of its kind, or a metric or weighting.
Function = Callable[..., Any]
#: ``property(function, seed=0)`` gives the text of a counterexample, or None when it found none.
Property = Callable[..., str | None]

#: ``show(function, **inputs)``: one number, or numbers by what they are.
Show = Callable[..., Any]
#: What a mistake of each kind is filed under unless it says otherwise.
TOPIC_OF_KIND = {
    "listwise": "ranking",
    "contrastive": "contrastive",
    "matryoshka": "matryoshka",
    "token": "perplexity",
}


@dataclass(frozen=True)
class Example:
    """An input, small enough to do by hand, on which a mistake shows.

    Attributes
    ----------
    inputs
        Names and values as one would type them: numbers, and lists of numbers.
    show
        ``show(function, **inputs)`` puts them to ``wrong`` or ``right`` in its own call form. It returns a number, or
        several in a dictionary under what each of them is; a number may also be a sequence of numbers.
    what, unit
        What is shown, and in which unit; no unit for a pure number.
    note
        What to look at, in one sentence, where the numbers do not say it themselves.
    """

    inputs: Mapping[str, Any]
    show: Show
    what: str = "loss"
    unit: str = ""
    note: str = ""

    def of(self, function: Function) -> dict[str, Any]:
        """Return what ``function`` makes of the inputs, by name; ``mistake.example.of(mistake.wrong)``."""
        shown = self.show(function, **self.inputs)
        return dict(shown) if isinstance(shown, Mapping) else {self.what: shown}


@dataclass(frozen=True)
class Mistake:
    """One thing done wrong, small enough to read, and the same thing done right.

    Attributes
    ----------
    name
        Name of its module.
    kind
        ``"listwise"``: ``wrong`` is a loss ``(logits, labels, mask) -> scalar`` and a contract must catch it.
        ``"contrastive"``: a loss ``(queries, documents) -> scalar``, likewise.
        ``"matryoshka"``: a wrapper ``(base_loss, dims, weights=None) -> loss``, likewise.
        ``"token"``: a loss ``(logits, labels) -> scalar`` that shifts, likewise.
        ``"function"``: it is a metric, a weighting or a design choice; ``property`` must catch it.
    title, symptom, cause
        A headline; what one sees; why, in one sentence each.
    source
        Public report as ``owner/repo#number``, or where the code stands; ``"built"`` if made for this book.
    case
        Its entry in the casebook, if it has one.
    breaks
        Id of the contract it breaks; ``"objective"`` if only comparison with the objective ``against`` shows it. For a
        function, the property in a few words.
    wrong, right
        The two callables; ``right`` may be the name of a loss in ``losslab.losses`` or, a token loss,
        ``losslab.language``.
    property
        Only for functions: looks on random inputs for one where the promise is broken.
    against
        The objective it should have been, for ``breaks="objective"``.
    met
        ``"public"`` if a reported bug or published code has it, ``"built"`` if we made it up.
    declares
        Conventions that both ``wrong`` and ``right`` are declared to follow.
    topic
        What it is filed under: ``"ranking"``, ``"contrastive"``, ``"temperature"``, ``"batch"``, ``"matryoshka"`` or
        ``"perplexity"``. A loss is filed by its kind if it says nothing; a function has to say.
    example
        A tiny input with which both callables show what is wrong.
    """

    name: str
    kind: Literal["listwise", "contrastive", "matryoshka", "token", "function"]
    title: str
    symptom: str
    cause: str
    source: str
    case: str | None
    breaks: str
    wrong: Function
    right: Function | str
    property: Property | None = None
    against: str | None = None
    met: Literal["public", "built"] = "public"
    declares: Mapping[str, Any] = field(default_factory=dict)
    topic: str = ""
    example: Example | None = None

    def __post_init__(self) -> None:
        if not self.topic:
            object.__setattr__(self, "topic", TOPIC_OF_KIND.get(self.kind, ""))

    def url(self) -> str | None:
        """Address of the public report, if it has a number; GitHub leads a pull request's number on from there."""
        repository, hash_sign, number = self.source.split(" ")[0].partition("#")
        return f"https://github.com/{repository}/issues/{number}" if hash_sign else None
