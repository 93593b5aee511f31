"""The nested loss under test, in either call form: asked about embeddings and sizes, answering as any loss does."""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from losslab.contracts.contrastive.agreement import must_agree
from losslab.contracts.contrastive.subject import ULPS, Array, Taught
from losslab.contracts.matryoshka import bases
from losslab.contracts.matryoshka.bases import Base
from losslab.contracts.model import Counterexample, Exempt, LossFailed, MatryoshkaConventions, Pairs
from losslab.contracts.subject import called, failure, parameters_of
from losslab.contracts.wording import show

Weights = tuple[float, ...] | None


@dataclass(frozen=True)
class Question:
    """What is asked: embeddings, sizes and what they count, and the base loss; None if it is in the loss already."""

    pairs: Pairs
    dims: tuple[int, ...]
    weights: Weights = None
    base: Base | None = None

    @property
    def size(self) -> int:
        """The embeddings' own."""
        return int(self.pairs.queries.shape[1])

    @property
    def weight(self) -> tuple[float, ...]:
        """Of each size."""
        return self.weights or (1.0,) * len(self.dims)

    @property
    def setting(self) -> dict[str, str]:
        """All but the embeddings, in words."""
        said = {"dims": f"{list(self.dims)} of {self.size}"}
        if self.weights is not None:
            said["weights"] = "[" + ", ".join(map(show, self.weights)) + "]"
        return said | ({} if self.base is None else {"base loss": self.base.name})

    def seen(self, sentence: str = "") -> Counterexample:
        """Counterexample that shows it."""
        return Counterexample(sentence, (), self.setting, pairs=self.pairs)


@dataclass(frozen=True)
class Room:
    """Absolute room for rounding: of a value, of a gradient's entry."""

    value: float
    gradient: float

    def rooms(self, pairs: Pairs, temperature: float | None = None) -> tuple[float, float]:  # noqa: ARG002
        """Both."""
        return self.value, self.gradient


@dataclass
class MatryoshkaSubject:
    """A nested loss or a wrapper, its declared conventions, and remarks made while checking it."""

    loss: Any
    conventions: MatryoshkaConventions
    against: Base | None = None
    notes: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        """Say something about the contract being checked; the same remark is kept once."""
        if text not in self.notes:
            self.notes.append(text)

    @cached_property
    def _parameters(self) -> Mapping[str, Any]:
        return parameters_of(self.loss)

    @cached_property
    def form(self) -> Literal["wrap", "plain"]:
        """Whether it is made from a base loss and sizes, or called with embeddings and sizes."""
        names = list(self._parameters)
        if "dims" not in names:
            raise LossFailed(
                "its signature names no dims: give a wrapper, wrap(base_loss, dims, weights=None) -> loss(queries, "
                "documents), or a loss(queries, documents, dims=…)"
            )
        return "wrap" if names.index("dims") == 1 else "plain"

    @property
    def takes_weights(self) -> bool:
        """Whether its signature names weights."""
        return "weights" in self._parameters

    @property
    def _needs_weights(self) -> bool:
        """Whether it cannot be called without."""
        return self.takes_weights and self._parameters["weights"].default is inspect.Parameter.empty

    @cached_property
    def bases(self) -> list[Callable[[], Base | None]]:
        """What it can be asked with, simplest first. Each is made anew: a wrapper may leave its mark on one."""
        if self.form == "plain" or self.against is not None:
            return [lambda: copy.copy(self.against)]
        with_labels = [bases.distance] if self.conventions.embedding_labels else []
        return [bases.cosines, bases.dot_products, *with_labels]

    def must_know_its_base(self) -> None:
        """Exempt a loss that is nested already, unless ``against`` says what was nested."""
        if self.form == "plain" and self.against is None:
            raise Exempt("it is nested already, and what it was made of is not known: name it with against=")

    def made(self, question: Question) -> Callable[[Tensor, Tensor], Any]:
        """``loss(queries, documents)`` about these sizes."""
        weights = question.weights
        if weights is None and self._needs_weights:
            weights = (1.0,) * len(question.dims)
        given: dict[str, Any] = {} if weights is None else {"weights": list(weights)}
        if self.form == "plain":
            return functools.partial(self.loss, dims=list(question.dims), **given)
        try:
            made = self.loss(question.base, list(question.dims), **given)
        except Exception as error:
            raise failure("making the loss raises", error, question.seen()) from error
        if not callable(made):
            raise LossFailed(f"it makes no loss but a {type(made).__name__}", question.seen())
        loss: Callable[[Tensor, Tensor], Any] = made
        return loss

    def run(
        self,
        question: Question,
        *,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
        made: Callable[[Tensor, Tensor], Any] | None = None,
    ) -> Taught:
        """Value and gradients, of ``made`` if the loss has been made already."""
        return taught(made or self.made(question), question, dtype, device)

    def plain(self, question: Question) -> Taught:
        """What another is compared with, so it must be finite."""
        answer = self.run(question)
        if not answer.finite:
            value = show(float(answer.values.sum()))
            raise LossFailed(
                f"value or gradient is not finite on plain embeddings: the loss is {value}", question.seen()
            )
        return answer

    def combined(self, parts: Sequence[Taught], weights: Sequence[float]) -> Taught:
        """What sizes should teach together, given what each teaches alone."""
        whole = sum(weights) if self.conventions.combine == "mean" else 1.0
        shares = [w / whole for w in weights]

        def total(arrays: Sequence[Array]) -> Array:
            return np.asarray(sum(w * x for w, x in zip(shares, arrays, strict=True)))

        values, queries = total([p.values for p in parts]), total([p.queries for p in parts])
        return Taught(values, queries, total([p.documents for p in parts]))

    def room(self, question: Question, dtype: torch.dtype = torch.float32) -> Room:
        """Room for rounding in ``dtype``, wherever a unit prefix is known to an ulp and so are the base's logits."""
        rows = np.concatenate([question.pairs.queries, question.pairs.documents])
        cut = [np.linalg.norm(rows[:, :m], axis=1).min() for m in question.dims if m < question.size]
        whole = float(np.linalg.norm(rows, axis=1).max()) if question.size in question.dims else 1.0
        unit, scale_free = (1 / bases.TEMPERATURE, False) if question.base is None else _of(question.base)
        logit = max(1.0, unit) * (1.0 if scale_free else max(1.0, whole**2))
        entry = max(1.0, unit) * max(1 / min([1.0, *cut]), 1.0 if scale_free else whole)
        room = ULPS * torch.finfo(dtype).eps * logit * sum(question.weight)
        return Room(room, room * entry)

    def compare(
        self,
        got: Taught,
        want: Taught,
        question: Question,
        sentence: str,
        setting: Mapping[str, str] | None = None,
        *,
        wanted: Literal["should be", "as before"] = "should be",
    ) -> None:
        """Raise `BrokenPromise` unless value and every gradient agree to the accuracy of float32."""
        said = {**question.setting, **(setting or {})}
        must_agree(self.room(question), got, want, question.pairs, sentence, said, wanted=wanted)


def _of(base: Base) -> tuple[float, bool]:
    return base.unit, base.scale_free


def taught(
    loss: Callable[[Tensor, Tensor], Any],
    question: Question,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
) -> Taught:
    """Value and gradients of a loss of two matrices."""
    seen = question.seen()
    leaves = [torch.tensor(x, dtype=dtype, device=device).requires_grad_() for x in sides(question)]
    with torch.enable_grad():
        # In training the embeddings come out of a model, so a loss may write into them; a leaf would forbid that.
        value = called(lambda: loss(*(leaf.clone() for leaf in leaves)), (), seen)
        if not value.requires_grad:
            raise LossFailed("its value is detached from the embeddings: there is no gradient", seen)
        try:
            gradients = torch.autograd.grad(value, leaves, allow_unused=True)
        except Exception as error:
            raise failure("its gradient raises", error, seen) from error
    by_query, by_document = (
        (torch.zeros_like(leaf) if gradient is None else gradient.detach()).to("cpu", torch.float64).numpy()
        for leaf, gradient in zip(leaves, gradients, strict=True)
    )
    values = value.detach().reshape(-1).to("cpu", torch.float64).numpy()
    return Taught(values, by_query, by_document, None, value.dtype)


def sides(question: Question) -> tuple[Array, Array]:
    """Its two matrices."""
    return question.pairs.queries, question.pairs.documents
