"""A loss that is watched while it is checked: its calls, its time, and what it leaves behind in the process."""

from __future__ import annotations

import inspect
import io
import random
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

WAIT = 0.05  # seconds; a call that waits longer than that is slow by itself, not because the machine is busy


class OutOfBudget(BaseException):
    """The time for a check is spent. No `Exception`, so that nobody takes it for an error of the loss."""


@dataclass(frozen=True, eq=False)
class Call:
    """One call of the loss.

    Attributes
    ----------
    arguments, keywords
        What it was given, as it was before the call; True beside a tensor that was differentiated by.
    value
        What it returned; None if it raised.
    made_with
        Of a loss that a wrapper made: the base loss, sizes and weights.
    """

    arguments: tuple[Any, ...]
    keywords: Mapping[str, Any]
    differentiated: tuple[bool, ...]
    value: Any = None
    made_with: tuple[tuple[Any, ...], Mapping[str, Any]] | None = None


@dataclass
class Watch:
    """What is known of all calls of a loss, and what is done around each.

    Attributes
    ----------
    budget
        Seconds for the whole check; None for as long as it takes. The processor's time counts, and that in which the
        loss waits for something: a check on a busy machine looks at as much as on an idle one.
    limit
        When to stop, in seconds spent; the budget's end or, for a slow loss, a contract's share.
    device
        Where to run the loss; None to leave its inputs where they are.
    seeded
        Whether to set the global random state before each call, so that a random loss can be compared with itself.
    calls
        Those of the input that is being tried.
    breaking
        Those of the input that broke the last contract that was put to the loss.
    interrupted
        Whether a contract was stopped because the time was spent.
    """

    budget: float | None = None
    device: torch.device | None = None
    seeded: bool = False
    limit: float | None = None
    calls: list[Call] = field(default_factory=list)
    breaking: tuple[Call, ...] = ()
    interrupted: bool = False
    waited: float = 0.0
    started: float = field(default_factory=time.thread_time)

    def __post_init__(self) -> None:
        self.limit = self.budget

    @property
    def spent(self) -> float:
        """Seconds."""
        return time.thread_time() - self.started + self.waited

    def go_on(self) -> None:
        """Raise `OutOfBudget` if there is no time left."""
        if self.limit is not None and self.spent >= self.limit:
            raise OutOfBudget

    def put(self, given: Any) -> Any:  # noqa: ANN401
        """A tensor on the device that was asked for; anything else as it is."""
        there = self.device is not None and isinstance(given, Tensor) and given.device.type == "cpu"
        return given.to(self.device) if there else given


class Watched:
    """A loss, called and read as itself."""

    def __init__(self, loss: Callable[..., Any], watch: Watch, *, wraps: bool = False, made_with: Any = None) -> None:  # noqa: ANN401
        self.watched_loss = loss
        self.watch = watch
        self.wraps = wraps
        self.made_with = made_with
        target = loss.forward if isinstance(loss, torch.nn.Module) else loss
        try:
            self.__signature__ = inspect.signature(target)
        except (TypeError, ValueError):
            self.__signature__ = inspect.Signature()

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        """Whatever the loss has."""
        if name == "watched_loss":  # not there yet while being copied
            raise AttributeError(name)
        return getattr(self.watched_loss, name)

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:  # noqa: ANN401
        """Call it, if there is time."""
        watch = self.watch
        watch.go_on()
        if self.wraps and not any(isinstance(x, Tensor) for x in arguments):
            return self._wrapped(arguments, keywords)
        seen = (tuple(map(_copied, arguments)), {name: _copied(x) for name, x in keywords.items()})
        differentiated = tuple(isinstance(x, Tensor) and x.requires_grad for x in arguments)
        moved = watch.device is not None and any(
            isinstance(x, Tensor) and x.device.type == "cpu" for x in (*arguments, *keywords.values())
        )
        if moved:
            arguments, keywords = tuple(map(watch.put, arguments)), {k: watch.put(x) for k, x in keywords.items()}
        if watch.seeded:
            seed_everything(0)
        wall, processor = time.perf_counter(), time.thread_time()
        value = None
        try:
            value = self.watched_loss(*arguments, **keywords)
        finally:
            wait = time.perf_counter() - wall - (time.thread_time() - processor)
            watch.waited += wait if wait > WAIT else 0.0
            watch.calls.append(Call(*seen, differentiated, value, self.made_with))
        if moved and isinstance(value, Tensor):
            value = value.to("cpu")
        return value

    def _wrapped(self, arguments: tuple[Any, ...], keywords: Mapping[str, Any]) -> Any:  # noqa: ANN401
        made = self.watched_loss(*arguments, **keywords)
        if not callable(made):
            return made
        return Watched(made, self.watch, made_with=(arguments, dict(keywords)))


def unwatched(loss: Any) -> Any:  # noqa: ANN401
    """The loss itself."""
    return loss.watched_loss if isinstance(loss, Watched) else loss


def _copied(given: Any) -> Any:  # noqa: ANN401
    return given.detach().clone() if isinstance(given, Tensor) else given


def seed_everything(seed: int) -> None:
    """Set the global random state of torch, NumPy and Python."""
    torch.manual_seed(seed)
    np.random.seed(seed)  # noqa: NPY002  (the global state is what a loss may draw from)
    random.seed(seed)


@dataclass(frozen=True)
class Setting:
    """A global setting of the process: how to read it, set it, and what else to try a loss under."""

    name: str
    read: Callable[[], Any]
    write: Callable[[Any], None]
    other: Any
    code: str


def _set_anomaly(on: bool) -> None:
    torch.autograd.set_detect_anomaly(on)


def _set_errors(kinds: Any) -> None:  # noqa: ANN401
    np.seterr(**kinds)


#: What a loss has to leave alone. A loss that restores what is usual, not what was, shows under another value.
SETTINGS = (
    Setting(
        "default dtype",
        torch.get_default_dtype,
        torch.set_default_dtype,
        torch.float64,
        "torch.get_default_dtype()",
    ),
    Setting(
        "gradient mode",
        torch.is_grad_enabled,
        torch._C._set_grad_enabled,
        False,
        "torch.is_grad_enabled()",
    ),
    Setting("number of threads", torch.get_num_threads, torch.set_num_threads, 2, "torch.get_num_threads()"),
    Setting(
        "anomaly detection",
        torch.is_anomaly_enabled,
        _set_anomaly,
        None,
        "torch.is_anomaly_enabled()",
    ),
    Setting(
        "deterministic algorithms",
        torch.are_deterministic_algorithms_enabled,
        torch.use_deterministic_algorithms,
        None,
        "torch.are_deterministic_algorithms_enabled()",
    ),
    Setting(
        "precision of matrix products",
        torch.get_float32_matmul_precision,
        torch.set_float32_matmul_precision,
        None,
        "torch.get_float32_matmul_precision()",
    ),
    Setting("NumPy's error handling", np.geterr, _set_errors, None, "numpy.geterr()"),
    Setting(
        "warning filters",
        lambda: tuple(warnings.filters),
        lambda _: None,  # `undisturbed` does it
        None,
        "len(warnings.filters)",
    ),
)


def random_states() -> dict[str, Any]:
    """The global random states, comparable with `same_state`."""
    states = {"torch": torch.get_rng_state(), "numpy": np.random.get_state(), "random": random.getstate()}  # noqa: NPY002
    if torch.cuda.is_available() and torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        states["torch.cuda"] = torch.cuda.get_rng_state_all()
    return states


def restore_random_states(states: Mapping[str, Any]) -> None:
    """Put them back."""
    torch.set_rng_state(states["torch"])
    np.random.set_state(states["numpy"])  # noqa: NPY002
    random.setstate(states["random"])
    if "torch.cuda" in states:
        torch.cuda.set_rng_state_all(states["torch.cuda"])


def same_state(a: Any, b: Any) -> bool:  # noqa: ANN401
    """Whether two random states are one."""
    if isinstance(a, Tensor):
        return torch.equal(a, b)
    if isinstance(a, np.ndarray):
        return bool(np.array_equal(a, b))
    if isinstance(a, tuple | list):
        return len(a) == len(b) and all(map(same_state, a, b))
    return bool(a == b)


@contextmanager
def undisturbed() -> Iterator[io.StringIO]:
    """Whatever happens inside, the process is afterwards as it was, and nothing is printed.

    Random states, torch's and NumPy's settings and the warning filters are put back. Gives what was printed.
    """
    printed = io.StringIO()
    states, settings = random_states(), [(setting, setting.read()) for setting in SETTINGS]
    filters = warnings.filters[:]
    try:
        with redirect_stdout(printed), redirect_stderr(printed):
            yield printed
    finally:
        for setting, value in settings:
            if setting.read() != value:
                setting.write(value)
        if warnings.filters != filters:
            warnings.filters[:] = filters  # type: ignore[index]
            warnings._filters_mutated()  # type: ignore[attr-defined]
        restore_random_states(states)


@contextmanager
def warnings_once() -> Iterator[None]:
    """A warning that a loss gives a thousand times is shown once, when all is done."""
    try:
        with warnings.catch_warnings(record=True) as caught:
            yield
    finally:
        for message, category, file, line in dict.fromkeys(
            (str(w.message), w.category, w.filename, w.lineno) for w in caught
        ):
            warnings.warn_explicit(message, category, file, line)
