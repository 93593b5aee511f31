"""What every loss promises, of whatever kind: it takes inputs and gives a value, and that is all it does.

Each is asked on small batches of the kind's own inputs, in its call form, padding included: two batches of one shape
and one of another.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import torch
from hypothesis import strategies as st
from torch import Tensor

from losslab.contracts.contrastive.subject import ContrastiveSubject
from losslab.contracts.matryoshka.subject import MatryoshkaSubject, Question
from losslab.contracts.model import (
    IGNORED,
    Array,
    BrokenPromise,
    Contract,
    Counterexample,
    Draw,
    LossFailed,
    Pairs,
    Quantity,
    Query,
    Texts,
)
from losslab.contracts.subject import Subject, failure, make_batch
from losslab.contracts.token.subject import TokenSubject
from losslab.contracts.watched import (
    SETTINGS,
    random_states,
    restore_random_states,
    same_state,
    seed_everything,
    undisturbed,
)

INPUTS = 6  # of each promise here: they hold for any input, or show on nearly any
STEPS = (0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0)
FIRST = (1.0, -1.0, 0.5, 2.0)  # no vector, and no prefix of one, is without direction


@dataclass(frozen=True, eq=False)
class Given:
    """One batch: its tensors by name, in the order of the call; the keywords; and how to show it."""

    loss: Callable[..., Any]
    tensors: Mapping[str, Tensor]
    options: Mapping[str, Any]
    seen: Counterexample

    def fresh(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Copies to hand over, as if they came out of a model."""
        tensors = {
            name: tensor.detach().clone().requires_grad_().clone() if tensor.is_floating_point() else tensor.clone()
            for name, tensor in self.tensors.items()
        }
        options = {name: x.detach().clone() if isinstance(x, Tensor) else x for name, x in self.options.items()}
        return tensors, options

    def call(self, tensors: Mapping[str, Tensor], options: Mapping[str, Any]) -> Array:
        """Its value, whatever its shape, as numbers.

        Raises
        ------
        LossFailed
            If it raises, or returns no number.
        """
        try:
            value = self.loss(*tensors.values(), **options)
        except (Exception, SystemExit) as error:  # a loss that calls sys.exit() fails; it does not end the check
            raise failure("it raises", error, self.seen) from error
        if isinstance(value, Tensor):
            return np.asarray(value.detach().to("cpu", torch.float64).numpy()).reshape(-1)
        if isinstance(value, int | float | np.generic):
            return np.array([float(value)])
        raise LossFailed(f"it returns {type(value).__name__}, not a number", self.seen)

    def ask(self) -> Array:
        """Its value."""
        with torch.enable_grad():
            return self.call(*self.fresh())


AnySubject = Subject | ContrastiveSubject | TokenSubject | MatryoshkaSubject


@cache
def _numbers(count: int, of: tuple[float, ...] = STEPS) -> st.SearchStrategy[list[float]]:
    """So many of these numbers, in one of many orders; of two draws, which is soon made smaller."""
    pattern = st.tuples(st.integers(0, 6), st.integers(0, 6))
    return pattern.map(lambda ab: [of[(ab[0] * (i + 1) + ab[1] * i * i) % len(of)] for i in range(count)])


@cache
def _rows(rows: int, size: int) -> st.SearchStrategy[Array]:
    """So many vectors, something in the first dimension of each."""
    both = st.tuples(_numbers(rows * size), _numbers(rows, FIRST))
    return both.map(lambda found: np.concatenate([np.array([found[1]]), np.array(found[0]).reshape(size, rows)[1:]]).T)


RANKS = st.permutations([2.0, 1.0, 0.0])
ENDS = st.integers(3, 4)
SIZES = st.permutations([3, 2, 1])
PADDING = (5.0, 5.0)  # what a listwise loss finds in its one empty slot: nothing that it could have put there itself


def of_lists(loss: Subject, queries: list[Query]) -> Given:
    """Lists of three documents in a matrix of width 4."""
    tensors = make_batch(queries, width=4, fill=PADDING, dtype=torch.float32, device="cpu")
    setting = {"width": "4 (1 empty), holding logit 5, label 5"}
    seen = Counterexample("", tuple(queries), setting)
    return Given(loss.loss, dict(zip(("logits", "labels", "mask"), tensors, strict=True)), {}, seen)


def of_pairs(loss: ContrastiveSubject, pairs: Pairs) -> Given:
    """Queries and documents, and what else it must be given."""
    leaves, options = loss.inputs(pairs)
    return Given(loss.loss, {"queries": leaves[0], "documents": leaves[1]}, options, Counterexample("", pairs=pairs))


def of_texts(loss: TokenSubject, texts: Texts) -> Given:
    """Logits and labels, shifted or not."""
    logits, labels, options = loss.inputs(texts)
    return Given(loss.loss, {"logits": logits, "labels": labels}, options, Counterexample("", texts=loss.seen(texts)))


def of_sizes(loss: MatryoshkaSubject, pairs: Pairs, dims: tuple[int, ...]) -> Given:
    """Embeddings at several sizes, asked with dot products where there is a choice: they show every length."""
    question = Question(pairs, dims, None, loss.bases[min(1, len(loss.bases) - 1)]())
    return about(loss.made(question), question)


def about(made: Callable[..., Any], question: Question) -> Given:
    """The same loss about these embeddings."""
    pairs = question.pairs
    tensors = {"queries": torch.tensor(pairs.queries).float(), "documents": torch.tensor(pairs.documents).float()}
    return Given(made, tensors, {}, question.seen())


def given(loss: AnySubject, draw: Draw, rows: int = 2) -> Given:
    """A random batch of the loss's kind: so many lists, pairs or texts, always of the same shape."""
    if isinstance(loss, Subject):
        return of_lists(loss, [Query(tuple(draw(_numbers(3))), tuple(draw(RANKS))) for _ in range(rows)])
    if isinstance(loss, TokenSubject):
        logits = np.array(draw(_numbers(rows * 5 * 3))).reshape(rows, 5, 3)
        labels = np.array(draw(_numbers(rows * 5, (0.0, 1.0, 2.0)))).astype(np.int64).reshape(rows, 5)
        for row in labels:
            row[draw(ENDS) :] = IGNORED
        return of_texts(loss, Texts(logits, labels))
    size = 2 if isinstance(loss, ContrastiveSubject) else 3
    pairs = Pairs(draw(_rows(rows, size)), draw(_rows(rows, size)))
    return of_pairs(loss, pairs) if isinstance(loss, ContrastiveSubject) else of_sizes(loss, pairs, tuple(draw(SIZES)))


def plain(loss: AnySubject) -> Given:
    """A batch of the loss's kind with nothing special about it."""
    if isinstance(loss, Subject):
        return of_lists(loss, [Query((0.5, 1.0, -1.0), (2.0, 0.0, 1.0)), Query((0.0, 1.0, 2.0), (2.0, 1.0, 0.0))])
    if isinstance(loss, TokenSubject):
        logits = np.array([[[0.0, 1.0, -1.0], [2.0, 0.0, 0.5], [1.0, -1.0, 0.0]], [[0.5, 0.0, 1.0]] * 3])
        return of_texts(loss, Texts(logits, np.array([[0, 2, 1], [1, 1, 2]])))
    pairs = Pairs(np.array([[1.0, 0.5, 2.0], [0.5, 1.0, -1.0]]), np.array([[0.5, 1.0, 1.0], [1.0, -1.0, 0.0]]))
    return of_pairs(loss, pairs) if isinstance(loss, ContrastiveSubject) else of_sizes(loss, pairs, (3, 1))


def batches(loss: AnySubject, draw: Draw) -> tuple[Given, Given, Given]:
    """Two batches of one shape and one of another, put to one and the same loss."""
    first, second, other = (given(loss, draw, rows) for rows in (2, 2, 3))
    if isinstance(loss, MatryoshkaSubject):  # made once, as whoever trains makes it
        second, other = (replace(batch, loss=first.loss) for batch in (second, other))
        second, other = (
            replace(batch, seen=replace(batch.seen, setting=first.seen.setting)) for batch in (second, other)
        )
    return first, second, other


def broken(batch: Given, sentence: str, quantities: tuple[Quantity, ...], **setting: str) -> BrokenPromise:
    """The exception that shows a difference."""
    shown = {**batch.seen.setting, **{name.replace("_", " "): text for name, text in setting.items()}}
    return BrokenPromise(
        replace(batch.seen, sentence=sentence, setting=shown, quantities=quantities, wanted="as before")
    )


def same(a: Array, b: Array) -> bool:
    """Whether two values are one, to the accuracy of float32."""
    return a.shape == b.shape and bool(np.allclose(a, b, rtol=1e-6, atol=1e-9, equal_nan=True))


def different(name: str, got: Array, should: Array) -> Quantity:
    """The first entry that differs."""
    if got.shape != should.shape:
        return Quantity(f"number of {name} values", float(got.size), float(should.size))
    at = next(i for i in range(got.size) if not same(got[i : i + 1], should[i : i + 1]))
    return Quantity(name, float(got[at]), float(should[at]))


def warmed_up(batch: Given) -> None:
    """Call it once, unjudged: what it imports on its first call is no fault of it."""
    with undisturbed():
        batch.ask()


def inputs_unchanged(loss: AnySubject, draw: Draw) -> None:
    """Call it, and look at what it was given."""
    batch = given(loss, draw)
    tensors, options = batch.fresh()
    handed = {**tensors, **{name: x for name, x in options.items() if isinstance(x, Tensor)}}
    before = {name: tensor.detach().clone() for name, tensor in handed.items()}
    with torch.enable_grad():
        batch.call(tensors, options)
    for name, tensor in handed.items():
        got, should = (x.detach().to(torch.float64).numpy().reshape(-1) for x in (tensor, before[name]))
        if not np.array_equal(got, should, equal_nan=True):
            at = int(np.flatnonzero(~((got == should) | (np.isnan(got) & np.isnan(should))))[0])
            place = ", ".join(str(int(i)) for i in np.unravel_index(at, tuple(tensor.shape)))
            raise broken(
                batch,
                f"It writes into its {name}: whoever uses them after the loss finds something else.",
                (Quantity(f"{name}[{place}]", float(got[at]), float(should[at])),),
            )


INPUTS_UNCHANGED = Contract(
    "inputs_unchanged",
    "inputs are left as they were",
    "After a call its inputs hold what they held before.",
    inputs_unchanged,
    most=INPUTS,
)


def no_state(loss: AnySubject, draw: Draw) -> None:
    """Ask about two batches of one shape, and about one of another in between; each from one random state.

    What is kept for as long as the shape stays the same is then another batch's the first time, and its own the second.
    """
    first, second, other = batches(loss, draw)
    answers: dict[int, Array] = {}
    names = {id(first): "first", id(second): "second", id(other): "third"}
    asked: list[str] = []
    for batch in (other, first, first, second, other, second, first):
        seed_everything(0)
        got = batch.ask()
        before = answers.setdefault(id(batch), got)
        if not same(got, before):
            raise broken(
                batch,
                f"Asked again about the {names[id(batch)]} batch, it answers something else: a call leaves something "
                "behind.",
                (different("loss", got, before),),
                asked=", ".join([*asked, f"{names[id(batch)]}"]),
            )
        asked.append(names[id(batch)])


NO_STATE = Contract(
    "no_state",
    "nothing is carried from call to call",
    "The same batch has the same value, asked again at once or after other batches.",
    no_state,
    most=INPUTS,
)


def random_state(loss: AnySubject, draw: Draw) -> None:
    """Ask from two random states; then see whether a call moves the state."""
    batch = given(loss, draw)
    warmed_up(batch)
    kept = random_states()
    try:
        seed_everything(0)
        states = random_states()
        first = batch.ask()
        after = random_states()
        seed_everything(0)
        again = batch.ask()
        seed_everything(1)
        second = batch.ask()
        if same(first, again) and not same(first, second):  # else it has a state of its own, which no_state is about
            raise broken(
                batch,
                "Its value is random: from another random state the same batch has another value.",
                (different("loss", second, first),),
                random_state="seed 1, and before it seed 0",
            )
        moved = [name for name in states if not same_state(states[name], after[name])]
        if moved:
            drawn = []
            for found in (after, states):
                restore_random_states(found)
                drawn.append(_next(moved[0]))
            raise broken(
                batch,
                f"A call moves the global random state of {moved[0]}, so whatever is drawn next, dropout or the order "
                "of the data, is another.",
                (Quantity(f"next {NEXT.get(moved[0], 'torch.rand(1)')}", *drawn),),
                random_state="seed 0",
            )
    finally:
        restore_random_states(kept)


NEXT = {"torch": "torch.rand(1)", "numpy": "numpy.random.rand()", "random": "random.random()"}


def _next(generator: str) -> float:
    if generator == "numpy":
        return float(np.random.rand())  # noqa: NPY002
    if generator == "random":
        import random

        return random.random()
    if generator == "torch.cuda":
        return float(torch.rand(1, device="cuda"))
    return float(torch.rand(1))


RANDOM_STATE = Contract(
    "random_state",
    "no dice are rolled",
    "Its value does not depend on the global random state, and a call leaves that state as it found it.",
    random_state,
    most=INPUTS,
)


def settings(loss: AnySubject, draw: Draw) -> None:
    """Call it under the usual settings, and under others; nothing is set, and nothing printed."""
    batch = given(loss, draw)
    warmed_up(batch)
    for unusual in (False, True):
        with undisturbed() as printed:
            if unusual:
                for setting in SETTINGS:
                    if setting.other is not None:
                        setting.write(setting.other)
            before = [setting.read() for setting in SETTINGS]
            try:
                batch.call(*batch.fresh())
            except LossFailed:
                if not unusual:
                    raise  # under other settings nobody says that it has to run
            after = [setting.read() for setting in SETTINGS]
        where = {"settings": "default dtype float64, no gradients, 2 threads"} if unusual else {}
        for setting, was, is_ in zip(SETTINGS, before, after, strict=True):
            if was != is_:
                changed = f"It changes the {setting.name} of the whole process from {_told(was)} to {_told(is_)}."
                raise broken(batch, changed, _counted(setting.name, was, is_), **where)
        said = re.sub(r"\s+", " ", printed.getvalue()).strip()
        if said:
            said = said if len(said) <= 60 else said[:57] + "..."
            quantity = Quantity("characters printed", float(len(printed.getvalue())), 0.0)
            raise broken(batch, f"It prints: {said}".encode("ascii", "replace").decode(), (quantity,))


def _told(value: object) -> str:
    if isinstance(value, tuple):
        return f"{len(value)} of them"
    return str(value).removeprefix("torch.")


def _counted(name: str, was: object, is_: object) -> tuple[Quantity, ...]:
    if isinstance(was, tuple) and isinstance(is_, tuple):
        return (Quantity(f"number of {name}", float(len(is_)), float(len(was))),)
    if isinstance(was, int) and isinstance(is_, int):
        return (Quantity(name, float(is_), float(was)),)
    if isinstance(was, torch.dtype) and isinstance(is_, torch.dtype):
        return (Quantity("bytes of a default number", float(is_.itemsize), float(was.itemsize)),)
    return ()


SETTINGS_LEFT = Contract(
    "settings",
    "settings are left alone",
    "A call prints nothing and leaves torch's, NumPy's and Python's settings (default dtype, gradient mode, threads, "
    "warning filters and such) as it found them.",
    settings,
    most=2,
)

#: Of every kind.
MANNERS = (INPUTS_UNCHANGED, NO_STATE, RANDOM_STATE, SETTINGS_LEFT)
