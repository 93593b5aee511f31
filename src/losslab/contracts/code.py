"""Counterexamples as code: a few lines of torch that, pasted by themselves, show the wrong and the right number.

What the loss was called with on the smallest input found is on record; here the call that came out wrong is found
among those, by trying them again, and written down.
"""

from __future__ import annotations

import functools
import math
import re
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from losslab.contracts.matryoshka.bases import Base
from losslab.contracts.model import Counterexample, Number, Quantity
from losslab.contracts.watched import SETTINGS, Call, unwatched
from losslab.contracts.wording import show_apart

NAMES = {
    "listwise": ("logits", "labels", "mask"),
    "contrastive": ("queries", "documents"),
    "token": ("logits", "labels"),
    "matryoshka": ("queries", "documents"),
}
MOST_TRIED = 8  # calls, to find the one that came out wrong
WIDTH = 110

#: Base losses by the names they have in a counterexample.
BODIES = {
    "InfoNCE of cosines": (
        "queries, documents = (torch.nn.functional.normalize(x{wide}, dim=1) for x in (queries, documents))",
        "scores = queries @ documents.T / 0.05",
        "return torch.nn.functional.cross_entropy(scores, torch.arange(len(queries), device=scores.device))",
    ),
    "InfoNCE of dot products": (
        "scores = queries{wide} @ documents{wide}.T",
        "return torch.nn.functional.cross_entropy(scores, torch.arange(len(queries), device=scores.device))",
    ),
    "mean squared error": ("return (queries{wide} - documents{wide}).square().mean()",),
}


@dataclass(frozen=True)
class Origin:
    """Where a loss comes from: the lines that import it and name it ``loss``."""

    lines: tuple[str, ...]

    @staticmethod
    def of_name(name: str, options: Mapping[str, Any], kind: str, *, adapted: bool, is_class: bool) -> Origin:
        """A loss that was named ``package.module:name`` or ``file.py:name``."""
        module, _, attribute = name.rpartition(":")
        if adapted or "/" in module or "\\" in module or module.endswith(".py"):
            with_options = f", {dict(options)!r}" if options else ""
            found = f"loss = find_loss({name!r}{with_options}, kind={kind!r})"
            return Origin(("from losslab.contracts.named import find_loss", "", found))
        made = attribute + _called(options) if is_class else _bound(attribute, options)
        partial = ("from functools import partial",) if options and not is_class else ()
        return Origin((*partial, f"from {module} import {attribute.partition('.')[0]}", "", f"loss = {made}"))

    @staticmethod
    def of_object(loss: Any, options: Mapping[str, Any]) -> Origin:  # noqa: ANN401
        """A loss that was given as it is."""
        if isinstance(loss, type):
            return Origin((*_imported(loss), "", f"loss = {loss.__qualname__}{_called(options)}"))
        bound = dict(options)
        while isinstance(loss, functools.partial) and not loss.args:
            bound = {**loss.keywords, **bound}
            loss = loss.func
        name = getattr(loss, "__qualname__", "")
        if not name or isinstance(loss, functools.partial) or "<lambda>" in name:
            what = type(loss).__name__ if not name else "a function without a name"
            return Origin((f"loss = my_loss  # put yours here: {what}, as you gave it",))
        if not all(isinstance(x, bool | int | float | str | list | tuple | None) for x in bound.values()):
            return Origin((f"loss = my_loss  # put yours here: {name} with what you bound to it",))
        partial = ("from functools import partial",) if bound else ()
        simple = name.rpartition(".")[2]
        return Origin((*partial, *_imported(loss), "", f"loss = {_bound(simple, bound)}"))


def _imported(loss: Any) -> tuple[str, ...]:  # noqa: ANN401
    """The line that imports a function or class; a remark if nothing can."""
    module, name = getattr(loss, "__module__", ""), loss.__qualname__
    if module not in ("__main__", "", None) and getattr(sys.modules.get(module), name, None) is loss:
        return (f"from {module} import {name}",)
    return (f"# {name.rpartition('.')[2]}: import it here, or paste this below it",)


def _bound(name: str, options: Mapping[str, Any]) -> str:
    return f"partial({name}, {_called(options)[1:-1]})" if options else name


def _called(options: Mapping[str, Any]) -> str:
    return "(" + ", ".join(f"{key}={value!r}" for key, value in options.items()) + ")"


@dataclass(frozen=True)
class Trial:
    """A call made again: its value, and the gradients by what it was given."""

    call: Call
    value: np.ndarray[Any, Any]
    gradients: Mapping[str, np.ndarray[Any, Any]]
    copied: bool


@dataclass(frozen=True)
class Shown:
    """An expression that gives a number of the counterexample, how far off it is, and what it needs."""

    expression: str
    error: float
    gradient_of: str = ""


class Program:
    """Lines of code about calls of one loss."""

    def __init__(self, origin: Origin, kind: str, found: Counterexample, loss: Any) -> None:  # noqa: ANN401
        self.origin = origin
        self.kind = kind
        self.found = found
        self.loss = loss
        self.lines: list[str] = []
        self.wraps = False

    def text(self) -> str:
        """All of it."""
        head = ["import torch"]
        if any("numpy." in line for line in self.lines):
            head.insert(0, "import numpy")
        for module in ("random", "warnings"):
            if any(re.search(rf"(?<![.\w]){module}\.", line) for line in self.lines):
                head.insert(0, f"import {module}")
        said = [f"# {line}" for line in textwrap.wrap(self.found.sentence, WIDTH - 2)]
        origin = list(self.origin.lines)
        if not origin[0].startswith(("import ", "from ", "#")):
            head.append("")
        if self.wraps:  # what was checked makes losses
            origin[-1] = origin[-1].replace("loss =", "wrap =", 1)
        return "\n".join([*said, *head, *origin, "", *self.lines]) + "\n"

    def inputs(self, call: Call, wanted: Sequence[str] = (), suffix: str = "", device: str = "") -> str:
        """Write down what a call was given; returns the arguments of the call."""
        arguments = []
        names = self.names(call)
        for name, given in zip(names, call.arguments, strict=True):
            arguments.append(self._input(name + suffix, given, gradient=name in wanted, device=device))
        for name, given in call.keywords.items():
            arguments.append(f"{name}={self._input(name + suffix, given, gradient=name in wanted, device=device)}")
        return ", ".join(arguments)

    def _input(self, name: str, given: Any, *, gradient: bool, device: str) -> str:  # noqa: ANN401
        if not isinstance(given, Tensor):
            return repr(given)
        self.lines.append(f"{name} = {written(given, gradient=gradient, device=device)}")
        return name

    def names(self, call: Call) -> list[str]:
        """What to call its arguments."""
        known = NAMES[self.kind]
        return [known[i] if i < len(known) else f"argument_{i + 1}" for i in range(len(call.arguments))]

    def make(self, call: Call, *, fails: bool = False) -> None:
        """Write down what makes the loss of a wrapper."""
        if call.made_with is None:
            return
        (base, *positional), keywords = call.made_with
        if not self.wraps:
            self.lines += ["", *base_code(base, call.arguments[0].dtype, fails=fails), "base = BaseLoss()"]
        self.wraps = True
        arguments = ["base", *map(repr, positional), *(f"{k}={v!r}" for k, v in keywords.items())]
        self.lines.append(f"loss = wrap({', '.join(arguments)})")

    def trial(self, call: Call) -> Trial | None:
        """Make a call again; None if it raises."""
        for copied in (False, True):
            try:
                return self._trial(call, copied=copied)
            except Exception:
                continue
        return None

    def _trial(self, call: Call, *, copied: bool) -> Trial:
        loss = unwatched(self.loss)
        if call.made_with is not None:
            (base, *positional), keywords = call.made_with
            loss = loss(base, *positional, **keywords)
        leaves: dict[str, Tensor] = {}

        def put(name: str, given: Any) -> Any:  # noqa: ANN401
            if not isinstance(given, Tensor):
                return given
            given = given.detach().clone()
            if not given.is_floating_point():
                return given
            leaves[name] = given.requires_grad_()
            return given.clone() if copied else given

        with torch.enable_grad():
            arguments = [put(name, x) for name, x in zip(self.names(call), call.arguments, strict=True)]
            value = loss(*arguments, **{name: put(name, x) for name, x in call.keywords.items()})
            gradients: dict[str, np.ndarray[Any, Any]] = {}
            if isinstance(value, Tensor) and value.requires_grad:
                found = torch.autograd.grad(value.sum(), list(leaves.values()), allow_unused=True)
                gradients = {
                    name: g.to("cpu", torch.float64).numpy()
                    for (name, _), g in zip(leaves.items(), found, strict=True)
                    if g is not None
                }
        return Trial(call, numbers(value), gradients, copied)


def numbers(value: Any) -> np.ndarray[Any, Any]:  # noqa: ANN401
    """A value as numbers; none if it is no number."""
    if isinstance(value, Tensor):
        return np.asarray(value.detach().to("cpu", torch.float64).numpy())
    return np.array(float(value)) if isinstance(value, int | float) else np.zeros(0)


def written(given: Tensor, *, gradient: bool = False, device: str = "") -> str:
    """A tensor as one would type it."""
    usual = given.dtype in (torch.float32, torch.int64, torch.bool)
    options = "" if usual else f", dtype={given.dtype}"
    options += f", device={device}" if device else ""
    options += ", requires_grad=True" if gradient else ""
    if given.numel() > 24 and bool((given == given.reshape(-1)[0]).all()):
        number = _number(given.reshape(-1)[0].item(), given.dtype)
        dtype = f", dtype={given.dtype}" if given.dtype not in (torch.float32, torch.bool) else ""
        return f"torch.full({tuple(given.shape)}, {number}{dtype}{options if usual else options[len(dtype) :]})"
    numbers_ = given.detach().cpu().tolist()
    line = _nested(numbers_, given.dtype)
    if len(line) > WIDTH and given.ndim > 1:
        line = "[\n" + "".join(f"    {_nested(row, given.dtype)},\n" for row in numbers_) + "]"
    return f"torch.tensor({line}{options})"


def _nested(rows: Any, dtype: torch.dtype) -> str:  # noqa: ANN401
    if isinstance(rows, list):
        return "[" + ", ".join(_nested(row, dtype) for row in rows) + "]"
    return _number(rows, dtype)


def _number(x: float | bool, dtype: torch.dtype = torch.float64) -> str:
    if isinstance(x, bool) or not isinstance(x, float):
        return repr(x)
    if math.isnan(x) or math.isinf(x):
        return "torch.nan" if math.isnan(x) else "torch.inf" if x > 0 else "-torch.inf"
    short = float(np.format_float_positional(np.float32(x), unique=True)) if dtype != torch.float64 else x
    return repr(short if dtype != torch.float64 and np.float32(short) == np.float32(x) else x)


def base_code(base: Any, dtype: torch.dtype, *, fails: bool = False) -> list[str]:  # noqa: ANN401
    """A base loss that a wrapper was given, as a module."""
    wide = ".float()" if dtype.itemsize < 4 else ""
    body = BODIES.get(getattr(base, "name", ""), ("return my_base_loss(queries, documents)  # put yours here",))
    lines = ["class BaseLoss(torch.nn.Module):"]
    if isinstance(base, Base) and base.embedding_labels:
        lines += ["    embedding_labels = True", ""]
    if fails:
        lines += ["    raises_in = 0", ""]
    lines += ["    def forward(self, queries, documents):"]
    if fails:
        lines += [
            "        self.raises_in -= 1",
            "        if self.raises_in == 0:",
            '            raise RuntimeError("planned")',
        ]
    return [*lines, *(f"        {line.format(wide=wide)}" for line in body), "", ""]


def write(contract: str, kind: str, origin: Origin, loss: Any, calls: Sequence[Call], found: Counterexample) -> str:  # noqa: ANN401
    """The program of a counterexample; empty if nothing was called.

    Parameters
    ----------
    contract
        Which promise was broken.
    kind, loss, origin
        Of the loss, and how to import it.
    calls
        Those of the loss on the input that broke it, in their order.
    found
        The counterexample.
    """
    if not calls:
        return ""
    program = Program(origin, kind, found, loss)
    special = SPECIAL.get(contract, _comparison)
    special(program, list(calls))
    return program.text()


def _print(program: Program, expression: str, quantity: Quantity) -> None:
    """One line that prints what comes out and what should."""
    should = _literal(quantity.got, quantity.should)
    program.lines.append(f'print("{quantity.name}:", {expression}, "{program.found.wanted}:", {should})')


def _literal(got: Number, should: Number) -> str:
    """The right number with as many digits as show that it is another, seven at least."""

    def one(number: float, beside: float) -> str:
        number = number or 0.0  # no -0
        text = show_apart(number, beside)[0]
        short = f"{number:.7g}"
        if isinstance(number, int):
            return str(number)
        return _number(float(max(text, short, key=len))) if math.isfinite(number) else _number(number)

    if isinstance(should, tuple):
        beside = got if isinstance(got, tuple) and len(got) == len(should) else should
        return "[" + ", ".join(one(s, g) for s, g in zip(should, beside, strict=True)) + "]"
    return one(should, got if not isinstance(got, tuple) else should)


def _close(a: np.ndarray[Any, Any], got: Number) -> float:
    """How far numbers are from those of the counterexample, in units of what may be tidied away."""
    want = np.atleast_1d(np.array(got, dtype=float))
    a = np.atleast_1d(a)
    if a.shape != want.shape:
        return math.inf
    if not np.array_equal(np.isnan(a), np.isnan(want)) or not np.array_equal(a[np.isinf(a)], want[np.isinf(a)]):
        return math.inf
    finite = np.isfinite(a) & np.isfinite(want)
    if not np.array_equal(np.isfinite(a), np.isfinite(want)):
        return math.inf
    largest = max(1e-30, float(np.abs(want[finite]).max(initial=0.0)))
    tolerance = 1e-4 * largest + (1e-4 if isinstance(got, tuple) else 1e-9)
    error = float(np.abs(a[finite] - want[finite]).max(initial=0.0)) / tolerance
    return error if error <= 1 else math.inf


def find_number(trial: Trial, quantity: Quantity, value: str = "value") -> Shown | None:
    """An expression for a number of the counterexample in terms of one call."""
    got, whole = quantity.got, trial.value
    options: list[Shown] = []
    if not isinstance(got, tuple) and whole.size:
        if whole.ndim == 0:
            options.append(Shown(f"{value}.item()", _close(whole, got)))
        else:
            options += [Shown(f"{value}.sum().item()", _close(whole.sum(), got))]
            options += [Shown(f"{value}.mean().item()", _close(whole.mean(), got))]
            options += [Shown(f"{value}[{i}].item()", _close(x, got)) for i, x in enumerate(whole.reshape(-1))]
    for name, gradient in trial.gradients.items():
        grad = f"{name}.grad"
        for index in np.ndindex(gradient.shape[:-1]):
            row, place = gradient[index], ", ".join(map(str, index))
            if isinstance(got, tuple):
                n = len(got)
                cut = "" if n == row.size else f", :{n}"
                options.append(Shown(f"{grad}[{place}{cut}].tolist()", _close(row[:n], got), name))
            elif "gradient" in quantity.name:
                options += [Shown(f"{grad}[{place}, {j}].item()", _close(x, got), name) for j, x in enumerate(row)]
    named = [shown for shown in options if shown.error <= 1 and _is_named(shown, quantity.name)]
    best = min(named or options, key=lambda shown: shown.error, default=None)
    return best if best is not None and best.error <= 1 else None


def _is_named(shown: Shown, name: str) -> bool:
    """Whether an expression stands where the number's name says: small inputs have equal numbers elsewhere, too."""
    if row := re.search(r"gradient of (query|document) (\d+)", name):
        tensor = {"query": "queries", "document": "documents"}[row[1]]
        return shown.expression.startswith(f"{tensor}.grad[{int(row[2]) - 1}]")
    if slot := re.search(r"gradient at slot (\d+)", name):
        return shown.expression.endswith(f", {int(slot[1]) - 1}].item()")
    return False


def distinct(calls: Sequence[Call], most: int = MOST_TRIED) -> list[Call]:
    """The last calls first, each once."""
    found: list[Call] = []
    for call in reversed(calls):
        if len(found) < most and not any(same_call(call, other) for other in found):
            found.append(call)
    return found


def same_call(a: Call, b: Call) -> bool:
    """Whether two calls were given the same."""
    return (
        len(a.arguments) == len(b.arguments)
        and a.keywords.keys() == b.keywords.keys()
        and all(map(_same, a.arguments, b.arguments))
        and all(_same(x, b.keywords[name]) for name, x in a.keywords.items())
        and _setting(a) == _setting(b)
    )


def _setting(call: Call) -> str:
    if call.made_with is None:
        return ""
    (base, *rest), keywords = call.made_with
    return f"{base!r}{rest}{dict(keywords)}"


def _same(a: Any, b: Any) -> bool:  # noqa: ANN401
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        if a.shape != b.shape or a.dtype != b.dtype:
            return False
        return bool(np.array_equal(numbers(a), numbers(b), equal_nan=True))
    return type(a) is type(b) and bool(a == b)


def _comparison(program: Program, calls: list[Call]) -> None:
    """The call that came out wrong, its value and gradients beside the right ones."""
    quantities = program.found.quantities
    trials: list[Trial] = []
    best: tuple[Trial, list[Shown | None]] | None = None
    for call in distinct(calls):
        trial = program.trial(call)
        if trial is None:
            continue
        trials.append(trial)
        shown = [find_number(trial, quantity) for quantity in quantities]
        if best is None or _fit(shown) < _fit(best[1]):
            best = trial, shown
    if best is None:
        _as_called(program, calls[-1])
        return
    trial, shown = best
    if quantities and not shown[0] and not isinstance(quantities[0].got, tuple):
        alone = [t for t in trials if find_number(t, quantities[0])]
        if not alone and _two_calls(program, trials, quantities[0]):
            return
    if any(shown):
        _one_call(program, trial, [(q, s) for q, s in zip(quantities, shown, strict=True) if s is not None])
        for quantity, found in zip(quantities, shown, strict=True):
            if found is None and not isinstance(quantity.got, tuple):
                other = next((t for t in trials if t is not trial and find_number(t, quantity)), None)
                if other is not None:
                    expression = find_number(other, quantity)
                    assert expression is not None
                    _one_call(program, other, [(quantity, expression)])
        return
    _one_call(program, trial, [(q, Shown("value.item()", 0.0)) for q in quantities[:1]])


def _fit(shown: Sequence[Shown | None]) -> tuple[int, float]:
    """How well one call explains a counterexample: the numbers it does not give, and how far off the others are."""
    return sum(s is None for s in shown), sum(s.error for s in shown if s is not None)


def _one_call(program: Program, trial: Trial, shown: Sequence[tuple[Quantity, Shown]]) -> None:
    wanted = list(dict.fromkeys(s.gradient_of for _, s in shown if s.gradient_of))
    program.make(trial.call)
    arguments = program.inputs(trial.call, wanted)
    if trial.copied:  # it writes into what it is given, which a leaf forbids
        for name in wanted:
            arguments = re.sub(rf"(?<![\w.=]){name}(?![\w=])", f"{name}.clone()", arguments)
    program.lines.append(f"value = loss({arguments})")
    if wanted:
        program.lines.append("value.backward()" if trial.value.ndim == 0 else "value.sum().backward()")
    for quantity, expression in shown:
        _print(program, expression.expression, quantity)


#: What two calls' values may be put together to, last call first.
PAIRS: tuple[tuple[str, Callable[[float, float], float]], ...] = (
    ("{0} + {1}", lambda a, b: a + b),
    ("{0} - {1}", lambda a, b: a - b),
    ("2 * {0} - {1}", lambda a, b: 2 * a - b),
    ("{1} - {0}", lambda a, b: b - a),
    ("2 * {1} - {0}", lambda a, b: 2 * b - a),
)


def _two_calls(program: Program, trials: Sequence[Trial], quantity: Quantity) -> bool:
    for i, a in enumerate(trials):
        for b in trials[i + 1 :]:
            if a.value.size != 1 or b.value.size != 1:
                continue
            for pattern, combine in PAIRS:
                if _close(np.array(combine(a.value.item(), b.value.item())), quantity.got) <= 1:
                    for trial, name in ((b, "first"), (a, "second")):
                        program.make(trial.call)
                        program.lines.append(f"{name} = loss({program.inputs(trial.call)})")
                    _print(program, pattern.format("second.item()", "first.item()"), quantity)
                    return True
    return False


def _as_called(program: Program, call: Call) -> None:
    """A call that raises: written down, to be seen raising."""
    program.make(call)
    program.lines.append(f"value = loss({program.inputs(call)})")
    program.lines.append("print(value)")


def _device(program: Program, calls: list[Call]) -> None:
    call = calls[-1]
    wanted = [name for name, on in zip(program.names(call), call.differentiated, strict=False) if on]
    program.lines += ['device = torch.device("cuda")  # only a machine with a GPU shows it', ""]
    program.make(call)
    arguments = program.inputs(call, wanted, device="device")
    program.lines += [
        "try:",
        f"    value = loss({arguments})",
        "    value.sum().backward()",
        '    print("value on:", value.device.type, "should be:", device.type)',
        "except Exception as error:",
        "    print(type(error).__name__, error)",
    ]


def _inputs_unchanged(program: Program, calls: list[Call]) -> None:
    call = calls[-1]
    (quantity,) = program.found.quantities
    name = quantity.name.partition("[")[0]
    program.make(call)
    program.lines.append(f"loss({program.inputs(call)})")
    written_to = dict(zip(program.names(call), call.arguments, strict=True)) | dict(call.keywords)
    if not written_to[name].is_floating_point():
        quantity = Quantity(quantity.name, quantity.got, int(quantity.should))  # type: ignore[arg-type]
    _print(program, f"{quantity.name}.item()", quantity)


def _no_state(program: Program, calls: list[Call]) -> None:
    (quantity,) = program.found.quantities
    program.make(calls[-1])
    known: list[tuple[Call, str]] = []
    for call in distinct(calls)[::-1]:
        known.append((call, program.inputs(call, suffix=f"_{len(known) + 1}")))
    program.lines.append("values = []")
    for call in calls:
        arguments = next(text for other, text in known if same_call(call, other))
        program.lines.append(f"values.append(loss({arguments}))")
    first = next(i for i, call in enumerate(calls) if same_call(call, calls[-1]))
    before, after = f"values[{first}]", "values[-1]"
    entry = ".item()" if numbers(calls[-1].value).ndim == 0 else ".sum().item()"
    if not isinstance(calls[-1].value, Tensor):
        entry = ""
    program.lines.append(f'print("{quantity.name}:", {after}{entry}, "{program.found.wanted}:", {before}{entry})')


def _random_state(program: Program, calls: list[Call]) -> None:
    (quantity,) = program.found.quantities
    call = calls[-1]
    program.make(call)
    arguments = program.inputs(call)
    if "next" not in quantity.name:
        shown = "value.sum().item()" if isinstance(call.value, Tensor) else "value"
        shown = "value.item()" if numbers(call.value).ndim == 0 and isinstance(call.value, Tensor) else shown
        program.lines += [
            "found = []",
            "for seed in (0, 1):",
            "    torch.manual_seed(seed)",
            "    numpy.random.seed(seed)",
            "    random.seed(seed)",
            f"    value = loss({arguments})",
            f"    found.append({shown})",
            f'print("{quantity.name}:", found[1], "{program.found.wanted}:", found[0])',
        ]
        return
    drawn = quantity.name.removeprefix("next ")
    seed = {"t": "torch.manual_seed(0)", "n": "numpy.random.seed(0)", "r": "random.seed(0)"}[drawn[0]]
    item = ".item()" if drawn.startswith("torch") else ""
    program.lines += [
        seed,
        f"before = {drawn}{item}",
        seed,
        f"loss({arguments})",
        f'print("{quantity.name}:", {drawn}{item}, "{program.found.wanted}:", before)',
    ]


UNUSUAL = ("torch.set_default_dtype(torch.float64)", "torch.set_grad_enabled(False)", "torch.set_num_threads(2)")


def _settings(program: Program, calls: list[Call]) -> None:
    call = calls[-1]
    program.make(call)
    arguments = program.inputs(call)
    if "settings" in program.found.setting:
        program.lines += UNUSUAL
    changed = next((s for s in SETTINGS if f"the {s.name} of" in program.found.sentence), None)
    if changed is None:
        program.lines.append(f"loss({arguments})  # prints, and should print nothing")
        return
    program.lines += [
        f"before = {changed.code}",
        f"loss({arguments})",
        f'print("{changed.name}:", {changed.code}, "{program.found.wanted}:", before)',
    ]


def _restored(program: Program, calls: list[Call]) -> None:
    call = calls[-1]
    if call.made_with is None:
        _comparison(program, calls)
        return
    program.make(call, fails=True)
    arguments = program.inputs(call)
    number = re.search(r"call (\d+)", program.found.setting.get("exception", ""))
    program.lines += [
        f"before = base({arguments}).item(), loss({arguments}).item()",
        f"base.raises_in = {number.group(1) if number else 1}",
        "try:",
        f"    loss({arguments})",
        '    print("the exception is swallowed")',
        "except RuntimeError:",
        "    pass",
        "base.raises_in = 0",
        f'print("base loss:", base({arguments}).item(), "as before:", before[0])',
        f'print("loss:", loss({arguments}).item(), "as before:", before[1])',
    ]


def _score_gradients(program: Program, calls: list[Call]) -> None:
    for call in distinct(calls):
        trial = program.trial(call)
        if trial is None or "documents" not in trial.gradients:
            continue
        by_document, documents = trial.gradients["documents"], numbers(call.arguments[1])
        lacking = -by_document[:, -1] / documents[:, -1]
        by_score = by_document[:, :-1].T + lacking * documents[:, :-1].T
        (quantity,) = program.found.quantities
        options = {"by_score.sum().item()": by_score.sum()}
        options |= {f"by_score[{i}].sum().item()": row.sum() for i, row in enumerate(by_score)}
        options |= {f"by_score[{i}, {j}].item()": by_score[i, j] for i, j in np.ndindex(by_score.shape)}
        matches = [text for text, number in options.items() if _close(np.array(number), quantity.got) <= 1]
        if not matches:
            continue
        arguments = program.inputs(call, ["documents"])
        program.lines += [
            f"value = loss({arguments})",
            "value.sum().backward()",
            "# the documents' last coordinate makes up their length; no score depends on it",
            "along = -documents.grad[:, -1] / documents[:, -1]",
            "by_score = (documents.grad[:, :-1] + along[:, None] * documents[:, :-1]).T",
        ]
        _print(program, matches[0], quantity)
        return
    _comparison(program, calls)


SPECIAL: dict[str, Callable[[Program, list[Call]], None]] = {
    "device": _device,
    "inputs_unchanged": _inputs_unchanged,
    "no_state": _no_state,
    "random_state": _random_state,
    "settings": _settings,
    "restored": _restored,
    "score_gradients": _score_gradients,
}
