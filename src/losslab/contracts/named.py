"""A loss by name: ``package.module:name``, or ``folder/file.py:name``."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
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
from losslab.contracts.inference import FORMS, Inferred, NotALossError, infer
from losslab.contracts.subject import name_of, parameters_of

__all__ = ["ADAPTERS", "Adapter", "NotALossError", "find_loss", "identify", "import_loss"]


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


def find_loss(
    loss: Callable[..., Any] | str, options: Mapping[str, Any] | None = None, kind: str | None = None
) -> Callable[..., Any]:
    """The callable to check: a name is imported, a class is made into a loss of this kind, options are bound.

    Raises
    ------
    NotALossError
        If the module or the name does not exist, what is found cannot be called as a loss, or, without a kind, it
        cannot be told of which kind it is.
    """
    return identify(loss, options, kind)[0]


def identify(
    loss: Callable[..., Any] | str,
    options: Mapping[str, Any] | None = None,
    kind: str | None = None,
    called: str | None = None,
    among: Sequence[str] = tuple(FORMS),
) -> tuple[Callable[..., Any], Inferred]:
    """The callable to check, as `find_loss` finds it, and its kind, with what that was inferred from if not given.

    ``called`` is the name by which it was imported already, and ``among`` are the kinds to choose from.
    """
    found = import_loss(loss) if isinstance(loss, str) else loss
    options = dict(options or {})
    for family, adapt in ADAPTERS.items():
        if kind in (None, family) and adapt.takes(found):
            cls = found if isinstance(found, type) else type(found)
            said = getattr(found, "__name__", cls.__name__)
            return adapt.wrap(found, **options), Inferred(
                family, "" if kind else f"what it is, {said} of {_package(found)}"
            )
    if isinstance(found, type) and not (kind in (None, "matryoshka") and "dims" in parameters_of(found)):
        made = _instance(found, options)  # else: made with a base loss and sizes, it is a wrapper itself
    elif not callable(found):
        raise NotALossError(
            f"{called or loss!r} is not callable but of type {type(found).__name__}; name a function, module or class"
        )
    else:
        made = partial(found, **options) if options else found
    if kind is not None:
        return made, Inferred(kind, "")
    readable = found if options and callable(found) and not parameters_of(made) else made  # options it does not have
    return made, infer(readable, name_of(made), among)


def _package(found: Any) -> str:  # noqa: ANN401
    return str(getattr(found, "__module__", None) or type(found).__module__).partition(".")[0].lstrip("_")


def import_loss(name: str) -> Any:  # noqa: ANN401
    """Import ``package.module:name`` or ``folder/file.py:name``; the name may have dots."""
    module_name, colon, attribute = name.rpartition(":")
    if not colon or not module_name or not attribute:
        raise NotALossError(f"a loss is named package.module:name or folder/file.py:name, got {name!r}")
    is_file = "/" in module_name or "\\" in module_name or module_name.endswith(".py")
    found: Any = _import_file(module_name) if is_file else _import_module(module_name)
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise NotALossError(f"{'file' if is_file else 'module'} {module_name!r} has no {attribute!r}")
        found = getattr(found, part)
    return found


def _import_module(name: str) -> Any:  # noqa: ANN401
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and (name == error.name or name.startswith(error.name + ".")):
            raise NotALossError(
                f"there is no module {error.name!r} (looked in {sys.path[0] or '.'} and what is installed)"
            ) from error
        raise NotALossError(f"module {name!r} needs {error.name!r}, which is not installed") from error
    except (Exception, SystemExit) as error:
        raise NotALossError(f"module {name!r} cannot be imported: {type(error).__name__}: {error}") from error


def _import_file(name: str) -> Any:  # noqa: ANN401
    """A file as a module of its own; what stands beside it can be imported meanwhile, as if it were run."""
    path = Path(name).expanduser().resolve()
    if not path.is_file():
        raise NotALossError(f"there is no file {name!r}" + ("" if path.suffix else "; does it end in .py?"))
    if path.suffix != ".py":
        raise NotALossError(f"a loss is in a Python file, got {name!r}, which does not end in .py")
    module_name = f"{path.stem}_{hashlib.sha256(bytes(path)).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(module_name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module  # a dataclass looks itself up there
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[module_name]
        if isinstance(error, ModuleNotFoundError):
            raise NotALossError(f"file {name!r} needs {error.name!r}, which is not installed") from error
        raise NotALossError(f"file {name!r} cannot be imported: {type(error).__name__}: {error}") from error
    finally:
        if str(path.parent) in sys.path:
            sys.path.remove(str(path.parent))
    return module


def _instance(found: type, options: dict[str, Any]) -> Callable[..., Any]:
    try:
        made = found(**options)
    except Exception as error:
        how = "with these options" if options else "without arguments"
        raise NotALossError(
            f"{found.__name__} is a class and cannot be made {how} ({error}); give check() an instance, or its "
            "arguments as options= (--set NAME=VALUE in a shell)"
        ) from error
    if not callable(made) and not isinstance(made, torch.nn.Module):
        raise NotALossError(f"{found.__name__} makes objects that are not callable")
    loss: Callable[..., Any] = made
    return loss
