"""Every loss of four libraries and of PyTorch, put to every contract of its kind; what cannot be put, and why.

The losses are found by looking into the installed packages, so that one of a later version shows up by itself. A broken
promise is told from a design by a sentence in `losslab.measure.audit_sentences`; one without a sentence is said to be
unexplained, which the tests do not accept in what is committed.
"""

from __future__ import annotations

import ast
import importlib
import importlib.metadata
import inspect
import json
import os
import pkgutil
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from itertools import groupby
from multiprocessing import get_context
from types import ModuleType
from typing import Any

import torch

from losslab.contracts import Counterexample, check
from losslab.contracts.named import ADAPTERS, find_loss
from losslab.measure.audit_sentences import OPTIONS, SENTENCES, UNDRIVEN, Sentence
from losslab.measure.record import Measurement, Progress, Row

SEED = 0
COLUMNS = (
    "library",
    "version",
    "loss",
    "options",
    "kind",
    "promise",
    "verdict",
    "reason",
    "upstream",
    "counterexample",
    "found",
)
UNEXPLAINED = "unexplained"
#: What is broken, or where the loss gave nothing to judge, must be explained.
TO_EXPLAIN = ("broken", "error")


@dataclass(frozen=True)
class Found:
    """A loss that an installed package has.

    Attributes
    ----------
    library
        The distribution it came with.
    name
        ``package.module:name``, as `losslab.check` takes it.
    kind
        Which promises it can be put to; empty if an adapter to none of them knows it.
    """

    library: str
    name: str
    kind: str

    @property
    def version(self) -> str:
        """Of its library."""
        return importlib.metadata.version(self.library)


# --- what there is ---


def discover() -> list[Found]:
    """Every loss of the installed libraries, by library and name."""
    found: dict[int, Found] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        for library, modules, is_loss in LIBRARIES:
            for module in modules():
                for name, thing in sorted(vars(module).items()):
                    if not name.startswith("_") and id(thing) not in found and is_loss(module, thing):
                        found[id(thing)] = Found(library, f"{module.__name__}:{name}", kind_of(thing))
    order = [library for library, _, _ in LIBRARIES]
    return sorted(found.values(), key=lambda one: (order.index(one.library), one.name))


def kind_of(loss: object) -> str:
    """The kind whose adapter takes a loss; empty if none does."""
    return next((kind for kind, adapter in ADAPTERS.items() if adapter.takes(loss)), "")


def _sentence_transformers() -> Iterable[ModuleType]:
    """``losses`` of each kind of encoder that the package has."""
    package = importlib.import_module("sentence_transformers")
    for part in pkgutil.iter_modules(package.__path__):
        name = f"{package.__name__}.{part.name}.losses"
        if part.ispkg and part.name != "base" and importlib.util.find_spec(name):
            yield importlib.import_module(name)


def _modules(*names: str) -> Iterable[ModuleType]:
    return map(importlib.import_module, names)


def _transformers() -> Iterable[ModuleType]:
    package = importlib.import_module("transformers.loss")
    yield importlib.import_module("transformers.loss.loss_utils")
    for part in pkgutil.iter_modules(package.__path__):
        try:
            yield importlib.import_module(f"{package.__name__}.{part.name}")
        except ImportError:  # needs a package for images or sound that is not installed
            continue
    yield importlib.import_module("transformers.trainer_pt_utils")


def _takes(function: Any, *names: str) -> bool:  # noqa: ANN401
    try:
        return not set(names).isdisjoint(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return False


def _is_embedding_loss(_module: ModuleType, thing: Any) -> bool:  # noqa: ANN401
    """A module of PyTorch that is called on features, embeddings or labels; not a scheme of weights or a distance."""
    return (
        inspect.isclass(thing)
        and issubclass(thing, torch.nn.Module)
        and _takes(thing.forward, "labels", "sentence_features", "embeddings", "input")
    )


def _is_text_measure(module: ModuleType, thing: Any) -> bool:  # noqa: ANN401
    """A metric class, or a function that takes tensors: those of strings stand as classes alone."""
    if inspect.isclass(thing):
        return hasattr(thing, "update") and hasattr(thing, "compute")
    if not (inspect.isfunction(thing) and "functional" in module.__name__):
        return False
    return any("Tensor" in str(parameter.annotation) for parameter in inspect.signature(thing).parameters.values())


def _is_model_loss(module: ModuleType, thing: Any) -> bool:  # noqa: ANN401
    """What a model's loss may be, or a callable class of the trainer that takes labels."""
    if getattr(thing, "__module__", "") != module.__name__:
        return False
    if module.__name__.endswith("trainer_pt_utils"):
        return inspect.isclass(thing) and "__call__" in vars(thing) and _takes(vars(thing)["__call__"], "labels")
    if not (inspect.isfunction(thing) or (inspect.isclass(thing) and issubclass(thing, torch.nn.Module))):
        return False
    mapping = importlib.import_module("transformers.loss.loss_utils").LOSS_MAPPING
    said = thing.__name__.lower()
    return "loss" in said or "cross_entropy" in said or thing in mapping.values()


def _is_cross_entropy(_module: ModuleType, thing: Any) -> bool:  # noqa: ANN401
    name = getattr(thing, "__name__", "").lower().replace("_", "")
    called = inspect.isfunction(thing) or (inspect.isclass(thing) and issubclass(thing, torch.nn.Module))
    return called and ("crossentropy" in name or name.startswith("nllloss"))


Library = tuple[str, Callable[[], Iterable[ModuleType]], Callable[[ModuleType, Any], bool]]
LIBRARIES: tuple[Library, ...] = (
    ("sentence-transformers", _sentence_transformers, _is_embedding_loss),
    ("pytorch-metric-learning", partial(_modules, "pytorch_metric_learning.losses"), _is_embedding_loss),
    ("torchmetrics", partial(_modules, "torchmetrics.text", "torchmetrics.functional.text"), _is_text_measure),
    ("transformers", _transformers, _is_model_loss),
    ("torch", partial(_modules, "torch.nn.functional", "torch.nn"), _is_cross_entropy),
)


# --- what becomes of one ---


def options_of(name: str) -> tuple[str, ...]:
    """The ways to make a loss that are audited: by default as it is by itself."""
    return OPTIONS.get(name, ("",))


def read_options(name: str, written: str) -> dict[str, Any]:
    """Options as they are written, ``"margin=0.4, loss=NTXentLoss()"``, as objects.

    A call is of a class in the loss's own module; anything else is a literal.
    """
    module = importlib.import_module(name.partition(":")[0])
    call = ast.parse(f"f({written})", mode="eval").body
    assert isinstance(call, ast.Call)

    def value_of(node: ast.expr) -> Any:  # noqa: ANN401
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            return getattr(module, node.func.id)()
        return ast.literal_eval(node)

    return {str(keyword.arg): value_of(keyword.value) for keyword in call.keywords}


def rows_of(one: Found, options: str = "", only: Sequence[str] | None = None) -> list[Row]:
    """A row a promise; or one row that says why no promise can be put to it."""
    about = {"library": one.library, "version": one.version, "loss": one.name, "options": options, "kind": one.kind}
    if not one.kind:
        return [_row(about, verdict="not driven", reason=why_undriven(one.name))]
    _quiet()
    torch.manual_seed(SEED)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            loss = find_loss(one.name, read_options(one.name, options), one.kind)
            # without a budget: what is found must not depend on how busy the machine is
            report = check(loss, one.kind, seed=SEED, only=only, budget=None)
    except Exception as problem:  # the loss, not the audit, is at fault, and the others go on
        return [_row(about, verdict="not driven", reason=f"{type(problem).__name__}: {problem}")]
    return [
        explained(
            _row(
                about,
                promise=result.contract,
                verdict=result.verdict,
                reason=result.reason,
                counterexample=shown(result.counterexample),
                found=json.dumps(result.counterexample.to_dict(), allow_nan=False) if result.counterexample else "",
            )
        )
        for result in report.results
    ]


def _row(about: Mapping[str, str], **said: str) -> Row:
    return dict.fromkeys(COLUMNS, "") | dict(about) | said


def _quiet() -> None:
    """Libraries that talk, of speed and of what they will drop, have nothing to say here."""
    if importlib.util.find_spec("transformers"):
        importlib.import_module("transformers.utils.logging").set_verbosity_error()


def shown(counterexample: Counterexample | None) -> str:
    """A counterexample as text."""
    return "" if counterexample is None else str(counterexample).strip()


def explained(row: Row) -> Row:
    """A row with the sentence on it: broken on purpose is "by design", and a loss that fails by a bug is "broken"."""
    if row["verdict"] not in TO_EXPLAIN:
        return row
    sentence = sentence_on(str(row["loss"]), str(row["promise"]), str(row["options"]))
    if sentence is None:
        return dict(row) | {"reason": f"{UNEXPLAINED}: {row['reason']}" if row["reason"] else UNEXPLAINED}
    seen = f" What was seen: {row['reason']}." if row["reason"] else ""
    verdict = "broken" if not sentence.design else "by design" if row["verdict"] == "broken" else row["verdict"]
    return dict(row) | {"verdict": verdict, "reason": sentence.because + seen, "upstream": sentence.upstream}


def sentence_on(loss: str, promise: str, options: str = "") -> Sentence | None:
    """The sentence on a broken promise; None if there is none.

    Raises
    ------
    ValueError
        If several sentences are about it.
    """
    about = [one for one in SENTENCES if one.about(loss, promise, options)]
    if len(about) > 1:
        raise ValueError(f"{len(about)} sentences are about {promise} of {loss} ({options}): keep one")
    return about[0] if about else None


def why_undriven(name: str) -> str:
    """Why an adapter to a loss is not written; "unexplained" where nobody has said."""
    return next((why for pattern, why in UNDRIVEN.items() if fnmatchcase(name, pattern)), UNEXPLAINED)


# --- the measurement ---


def audit(progress: Progress, workers: int | None = None) -> Iterator[Row]:
    """A row a loss, way of making it and promise; a worker a processor."""
    jobs = [(one, options) for one in discover() for options in options_of(one.name)]
    with ProcessPoolExecutor(workers or os.cpu_count(), mp_context=get_context("spawn")) as pool:
        runs = [pool.submit(rows_of, one, options) for one, options in jobs]
        for (one, options), run in zip(jobs, runs, strict=True):
            rows = run.result()
            yield from rows
            progress(f"{one.name}({options}): {tally(rows)}")


def tally(rows: Sequence[Row]) -> str:
    """How many of each verdict, in words."""
    verdicts = sorted(str(row["verdict"]) for row in rows)
    return ", ".join(f"{len(list(same))} {verdict}" for verdict, same in groupby(verdicts))


MEASUREMENT = Measurement(
    name="audit",
    title="Every loss of the installed libraries, put to every contract of its kind",
    columns=COLUMNS,
    collect=audit,
    settings={"seed": SEED},
)
