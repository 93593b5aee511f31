"""Under which conventions a loss is checked: those it is said to follow, those read from it, and those assumed."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import torch

from losslab.contracts.inference import DECLARED
from losslab.contracts.model import AnyConventions
from losslab.contracts.subject import options_of, parameters_of


@dataclass(frozen=True)
class Declared:
    """Conventions, and where they come from.

    Attributes
    ----------
    conventions
        What the loss is checked under.
    read
        By convention: what was read from a parameter or an attribute of another name, in words.
    assumed
        Conventions that nobody spoke of.
    """

    conventions: AnyConventions
    read: Mapping[str, str]
    assumed: Sequence[str]

    @property
    def remarks(self) -> list[str]:
        """What was read where it need not mean that, and what was assumed; as keywords, to be corrected."""
        values = self.conventions.to_dict()
        said = [f"{name}={shown(values[name])} was read from {where}" for name, where in self.read.items()]
        if self.assumed:
            guesses = ", ".join(f"{name}={shown(values[name])}" for name in self.assumed)
            said.append(f"assumed, as neither the call nor the loss says: {guesses}; name what is not so")
        return said


@dataclass(frozen=True)
class Spoken:
    """A convention's value, and the words for where it stands; none where it has its own name there."""

    value: Any
    where: str = ""


def _same(value: Any) -> Any:  # noqa: ANN401
    return value


#: What else a convention is called, and what its value is there. A ``logit_scale`` may be a logarithm, and is left out.
ALSO_CALLED: Mapping[str, tuple[str, Callable[[Any], Any]]] = {
    "tau": ("temperature", _same),
    "temp": ("temperature", _same),
    "scale": ("temperature", lambda scale: 1 / scale if scale else 0.0),
    "normalise": ("normalize", _same),
    "normalized": ("normalize", _same),
    "normalised": ("normalize", _same),
}


def conventions_of(
    loss: Callable[..., Any], cls: type[AnyConventions], given: Mapping[str, Any] | None = None
) -> Declared:
    """What a loss declares of itself, and what is ``given`` for it, which has the last word.

    Raises
    ------
    TypeError
        If there is no convention of a given name.
    """
    names = [f.name for f in fields(cls)]
    given = {name: value for name, value in (given or {}).items() if value is not None}
    if unknown := [name for name in given if name not in names]:
        kind = DECLARED[cls]
        raise TypeError(f"check() got an unknown convention, {unknown[0]!r}; a {kind} loss has {', '.join(names)}")
    spoken = _of_itself(loss, cls) | {name: Spoken(value) for name, value in given.items()}
    conventions = cls(**{name: said.value for name, said in spoken.items()})
    read = {name: said.where for name, said in spoken.items() if said.where}
    return Declared(conventions, read, [name for name in names if name not in spoken])


def _of_itself(loss: Any, cls: type[AnyConventions]) -> dict[str, Spoken]:  # noqa: ANN401
    attached = getattr(loss, "conventions", None)
    if isinstance(attached, cls):
        return {name: Spoken(value) for name, value in attached.to_dict().items()}
    if isinstance(loss, functools.partial):
        names = [f.name for f in fields(cls)]
        bound = _named(loss.keywords, cls, "the keyword")
        bound |= {name: Spoken(value) for name, value in loss.keywords.items() if name in names}  # a wrong one is named
        known = _of_itself(loss.func, cls)
        if "symmetric" in bound and bound["symmetric"].value and "more_documents" not in bound:
            one_way = "symmetric" not in known or not known["symmetric"].value
            if one_way:
                known.pop("more_documents", None)  # what was said of one direction
        return known | bound
    graded = "graded" in (f.name for f in fields(cls)) and "labels" in options_of(loss)
    defaults = {name: parameter.default for name, parameter in parameters_of(loss).items()}
    found = {"graded": Spoken(True, "its parameter labels")} if graded else {}
    found |= _named(defaults, cls, "its parameter")
    if isinstance(loss, torch.nn.Module):
        called = [*(f.name for f in fields(cls)), *ALSO_CALLED]
        found |= _named({name: getattr(loss, name, None) for name in called}, cls, "its attribute")
    return found


def _named(values: Mapping[str, Any], cls: type[AnyConventions], place: str) -> dict[str, Spoken]:
    """Those of the values that can be a convention's, by convention; its own name goes before others."""
    wanted = cls().to_dict()
    found: dict[str, Spoken] = {}
    for called, (name, meaning) in ALSO_CALLED.items():
        if name in wanted and _can_be(values.get(called), wanted[name]):
            meant = meaning(values[called])
            if _allowed(cls, name, meant):
                found[name] = Spoken(meant, f"{place} {called}")
    for name in wanted:  # a default of None, or a parameter to learn, declares nothing
        if _can_be(values.get(name), wanted[name]) and _allowed(cls, name, values[name]):
            found[name] = Spoken(values[name])
    return found


def _can_be(value: object, example: object) -> bool:
    if isinstance(example, float):
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, type(example))


def _allowed(cls: type[AnyConventions], name: str, value: object) -> bool:
    try:
        cls(**{name: value})  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    return True


def shown(value: Any) -> str:  # noqa: ANN401
    """A convention's value as one would write it."""
    return "math.e" if value == math.e else repr(value)
