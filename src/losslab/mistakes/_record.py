"""What is known about a mistake: how it shows, why it happens, where it was met, and who must catch it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

#: A loss in the call form of its kind, or a metric or weighting.
Function = Callable[..., Any]
#: ``property(function, seed=0)`` gives the text of a counterexample, or None when it found none.
Property = Callable[..., str | None]


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
        The two callables; ``right`` may be the name of a loss in ``losslab.losses``.
    property
        Only for functions: looks on random inputs for one where the promise is broken.
    against
        The objective it should have been, for ``breaks="objective"``.
    met
        ``"public"`` if a reported bug or published code has it, ``"built"`` if we made it up.
    declares
        Conventions that both ``wrong`` and ``right`` are declared to follow.
    """

    name: str
    kind: Literal["listwise", "contrastive", "function"]
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

    def url(self) -> str | None:
        """Address of the public report, if it has a number; GitHub leads a pull request's number on from there."""
        repository, hash_sign, number = self.source.split(" ")[0].partition("#")
        return f"https://github.com/{repository}/issues/{number}" if hash_sign else None
