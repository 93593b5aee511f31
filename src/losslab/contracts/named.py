"""A loss by name: ``package.module:name``."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from losslab.contracts.adapters import (
    contrastive_library_loss,
    is_contrastive_library_loss,
    is_matryoshka_library_loss,
    is_sentence_transformers_loss,
    is_token_library_loss,
    matryoshka_library_loss,
    sentence_transformers_loss,
    token_library_loss,
)
from losslab.contracts.subject import parameters_of


@dataclass(frozen=True)
class Adapter:
    """Says which losses it takes, and wraps them."""

    takes: Callable[[object], bool]
    wrap: Callable[..., Callable[..., Any]]


ADAPTERS = {
    "listwise": Adapter(is_sentence_transformers_loss, sentence_transformers_loss),
    "contrastive": Adapter(is_contrastive_library_loss, contrastive_library_loss),
    "matryoshka": Adapter(is_matryoshka_library_loss, matryoshka_library_loss),
    "token": Adapter(is_token_library_loss, token_library_loss),
}


class NotALossError(ValueError):
    """What was named, or given, cannot be called as a loss; the message says what to do."""


def find_loss(
    loss: Callable[..., Any] | str, options: Mapping[str, Any] | None = None, kind: str = "listwise"
) -> Callable[..., Any]:
    """The callable to check: a name is imported, a class is made into a loss of this kind, options are bound.

    Raises
    ------
    NotALossError
        If the module or the name does not exist, or what is found cannot be called as a loss.
    """
    found = import_loss(loss) if isinstance(loss, str) else loss
    options = dict(options or {})
    adapt = ADAPTERS.get(kind)
    if adapt is not None and adapt.takes(found):
        return adapt.wrap(found, **options)
    if isinstance(found, type) and not (kind == "matryoshka" and "dims" in parameters_of(found)):
        return _instance(found, options)  # else: made with a base loss and sizes, it is a wrapper itself
    if not callable(found):
        raise NotALossError(
            f"{loss!r} is not callable but of type {type(found).__name__}; name a function, module or class"
        )
    return partial(found, **options) if options else found


def import_loss(name: str) -> Any:  # noqa: ANN401
    """Import ``package.module:name``; the name may have dots."""
    module_name, colon, attribute = name.partition(":")
    if not colon or not module_name or not attribute:
        raise NotALossError(f"a loss is named package.module:name, got {name!r}")
    if "/" in module_name or module_name.endswith(".py"):
        as_module = module_name.removeprefix("./").removesuffix(".py").replace("/", ".")
        raise NotALossError(f"a loss is named package.module:name, got the path {name!r}; try {as_module}:{attribute}")
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name and (module_name == error.name or module_name.startswith(error.name + ".")):
            raise NotALossError(
                f"there is no module {error.name!r} (looked in {sys.path[0] or '.'} and what is installed)"
            ) from error
        raise NotALossError(f"module {module_name!r} needs {error.name!r}, which is not installed") from error
    except Exception as error:
        raise NotALossError(f"module {module_name!r} cannot be imported: {type(error).__name__}: {error}") from error
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise NotALossError(f"module {module_name!r} has no {attribute!r}")
        found = getattr(found, part)
    return found


def _instance(found: type, options: dict[str, Any]) -> Callable[..., Any]:
    try:
        made = found(**options)
    except Exception as error:
        raise NotALossError(
            f"{found.__name__} is a class and cannot be made without arguments ({error}); give check() an instance"
        ) from error
    if not callable(made) and not isinstance(made, torch.nn.Module):
        raise NotALossError(f"{found.__name__} makes objects that are not callable")
    loss: Callable[..., Any] = made
    return loss
