"""The contrastive loss under test: called on embeddings, answering with values and gradients, or with what is wrong."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from losslab.contracts.model import ContrastiveConventions, Counterexample, Exempt, LossFailed, Pairs
from losslab.contracts.subject import called, failure, options_of
from losslab.contracts.wording import show

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

# Badly ranked: each query's positive is orthogonal to it and its negative the same as it.
PROBE = Pairs(np.eye(2), np.eye(2)[::-1].copy())
#: What to do about a loss that fails when there are more documents than queries.
MORE_DOCUMENTS = (
    "; it was given more documents than queries: if it needs as many of both, declare symmetric=True (for a loss in "
    "both directions) or more_documents=False"
)


@dataclass(frozen=True, eq=False)
class Taught:
    """What a batch taught.

    Attributes
    ----------
    values
        (1,), or (B,) under reduction="none".
    queries, documents, hard
        Gradients by the embeddings, shaped as these are.
    """

    values: Array
    queries: Array
    documents: Array
    hard: Array | None = None
    dtype: torch.dtype = torch.float64

    @property
    def gradients(self) -> list[Array]:
        """All of them."""
        return [self.queries, self.documents, *([] if self.hard is None else [self.hard])]

    @property
    def finite(self) -> bool:
        """Whether values and gradients all are."""
        return all(np.isfinite(x).all() for x in (self.values, *self.gradients))


@dataclass
class ContrastiveSubject:
    """A loss, its declared conventions, and remarks made while checking it."""

    loss: Any
    conventions: ContrastiveConventions
    against: Any = None
    notes: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        """Say something about the contract being checked; the same remark is kept once."""
        if text not in self.notes:
            self.notes.append(text)

    @cached_property
    def _parameters(self) -> Mapping[str, inspect.Parameter]:
        return options_of(self.loss)

    def takes(self, keyword: str) -> bool:
        """Whether the loss's signature names this keyword, beside the two arguments that it is given by position."""
        return keyword in self._parameters

    def must_take(self, keyword: str) -> None:
        """Exempt a loss without this keyword."""
        if not self.takes(keyword):
            raise Exempt(f"it takes no {keyword}")

    def must_take_more_documents(self) -> None:
        """Exempt a loss that has as many documents as queries, or whose queries and documents mix."""
        if not self.conventions.more_documents or self.conventions.symmetric:
            raise Exempt("it is about one direction and further documents, and this loss has none such")

    @cached_property
    def unit(self) -> float:
        """Its largest gradient entry on a plain, badly ranked batch of unit vectors: 1 / temperature, or so.

        Rounding is judged against it.
        """
        taught = self.plain(PROBE)
        unit = max(float(np.abs(gradient).max()) for gradient in taught.gradients)
        if unit == 0:
            raise LossFailed("its gradient is 0 on a badly ranked batch", Counterexample("", pairs=PROBE))
        return unit * (2 if self.conventions.reduction == "mean" else 1)

    def rooms(self, pairs: Pairs, temperature: float | None = None) -> tuple[float, float]:
        """Absolute room for float32's rounding: of a value, of a gradient's entry.

        A score is known to a few ulps of 1 (of the dot product's largest term, if not normalised), a logit to that over
        the temperature; a gradient is a mean of embeddings, weighted to the accuracy of the logits.
        """
        lengths = np.linalg.norm(np.concatenate([pairs.queries, pairs.documents]), axis=1)
        largest, smallest = float(lengths.max()), float(lengths.min())
        unit = self.unit * (self.conventions.temperature / temperature if temperature else 1.0)
        logit = max(1.0, unit * (1.0 if self.conventions.normalize else largest**2))
        entry = unit * (1 / smallest if self.conventions.normalize else largest)
        room = ULPS * torch.finfo(torch.float32).eps * logit
        return room * self._rows(pairs), room * entry

    def _rows(self, pairs: Pairs) -> int:
        return len(pairs.queries) if self.conventions.reduction == "sum" else 1

    def plain(self, pairs: Pairs, **options: Any) -> Taught:  # noqa: ANN401
        """What a batch teaches that another is compared with, so it must be finite."""
        taught = self.run(pairs, **options)
        if not taught.finite:
            value = show(float(taught.values.sum()))
            what = "value" if not np.isfinite(taught.values).all() else "gradient"
            raise LossFailed(
                f"its {what} is not finite on plain embeddings: the loss is {value}", Counterexample("", pairs=pairs)
            )
        return taught

    def run(
        self,
        pairs: Pairs,
        *,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
        targets: Sequence[Sequence[float]] | Array | None = None,
        negatives: Mask | None = None,
        **options: Any,  # noqa: ANN401
    ) -> Taught:
        """Value and gradients of a batch.

        ``negatives`` and ``options`` are keywords of the loss. ``targets`` (B, M) are its ``positives`` or ``labels``,
        if it takes such; left out, document i is query i's one positive.
        """
        seen = Counterexample("", pairs=pairs)
        leaves, options = self.inputs(pairs, dtype, device, targets, negatives, options)
        with torch.enable_grad():
            # In training the embeddings come out of a model, so a loss may write into them; a leaf would forbid that.
            call = functools.partial(self._call, [leaf.clone() for leaf in leaves], options)
            shape = (len(pairs.queries),) if self.conventions.reduction == "none" else ()
            try:
                value = called(call, shape, seen)
            except LossFailed as failed:
                if len(pairs.documents) > len(pairs.queries) > 1 and about_shapes(failed.__cause__):
                    failed.problem += MORE_DOCUMENTS
                raise
            if not value.requires_grad:
                raise LossFailed("its value is detached from the embeddings: there is no gradient", seen)
            try:
                gradients = torch.autograd.grad(value.sum(), leaves, allow_unused=True)
            except Exception as error:
                raise failure("its gradient raises", error, seen) from error
        arrays = [
            (torch.zeros_like(leaf) if gradient is None else gradient.detach()).to("cpu", torch.float64).numpy()
            for leaf, gradient in zip(leaves, gradients, strict=True)
        ]
        hard = arrays[2] if len(arrays) > 2 else None
        values = value.detach().reshape(-1).to("cpu", torch.float64).numpy()
        return Taught(values, arrays[0], arrays[1], hard, value.dtype)

    def inputs(
        self,
        pairs: Pairs,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
        targets: Sequence[Sequence[float]] | Array | None = None,
        negatives: Mask | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[list[Tensor], dict[str, Any]]:
        """Embeddings to differentiate by, queries and documents first, and the keywords to call the loss with."""
        options = dict(options or {})
        embeddings = [pairs.queries, pairs.documents, *([] if pairs.hard is None else [pairs.hard])]
        leaves = [torch.tensor(x, dtype=dtype, device=device).requires_grad_() for x in embeddings]
        if pairs.real is not None and self.takes("hard_mask"):
            options["hard_mask"] = torch.tensor(pairs.real, device=device)
        if negatives is not None:
            options["negatives"] = torch.tensor(negatives, device=device)
        one_positive = np.eye(len(pairs.queries), len(pairs.documents))
        for keyword, of_dtype in (("positives", torch.bool), ("labels", dtype)):
            if self.takes(keyword) and (targets is not None or self._requires(keyword)):
                given = one_positive if targets is None else np.asarray(targets)
                options[keyword] = torch.tensor(given, device=device).to(of_dtype)
        return leaves, options

    def _requires(self, keyword: str) -> bool:
        parameter = self._parameters[keyword]
        return parameter.default is parameter.empty

    def _call(self, embeddings: list[Tensor], options: dict[str, Any]) -> Any:  # noqa: ANN401
        queries, documents, *hard = embeddings
        return self.loss(queries, documents, **({"hard_negatives": hard[0]} if hard else {}), **options)

    def weight(self, queries: int) -> float:
        """What one query's value counts in a batch of so many."""
        return 1 / queries if self.conventions.reduction == "mean" else 1.0

    def row_by_row(self, pairs: Pairs, allowed: Mask | None = None, **options: Any) -> Taught:  # noqa: ANN401
        """What a batch should teach if each query were asked alone, among all documents or those ``allowed`` (B, M).

        A query's hard negatives stand behind the documents, as documents of its own.
        """
        b, m = len(pairs.queries), len(pairs.documents)
        values = np.zeros(b)
        by_query, by_document = np.zeros_like(pairs.queries), np.zeros_like(pairs.documents)
        by_hard = None if pairs.hard is None else np.zeros_like(pairs.hard)
        for i in range(b):
            columns = [i, *(j for j in range(m) if j != i and (allowed is None or allowed[i, j]))]
            documents = pairs.documents[columns]
            kept = np.zeros(0, dtype=int)
            if pairs.hard is not None:
                kept = np.arange(pairs.hard.shape[1]) if pairs.real is None else np.flatnonzero(pairs.real[i])
                documents = np.concatenate([documents, pairs.hard[i, kept]])
            alone = self.plain(Pairs(pairs.queries[i : i + 1], documents), **options)
            values[i], by_query[i] = alone.values[0], alone.queries[0]
            by_document[columns] += alone.documents[: len(columns)]
            if by_hard is not None:
                by_hard[i, kept] = alone.documents[len(columns) :]
        weight = self.weight(b)
        return Taught(
            values if self.conventions.reduction == "none" else values.sum(keepdims=True) * weight,
            by_query * weight,
            by_document * weight,
            None if by_hard is None else by_hard * weight,
        )

    def scores(self, pairs: Pairs) -> Array:
        """Cosines, or dot products if it does not normalise, in float64: (B, M)."""
        q, d = pairs.queries, pairs.documents
        if self.conventions.normalize:
            q, d = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (q, d))
        return np.asarray(q @ d.T)


def about_shapes(error: BaseException | None) -> bool:
    """Whether a loss that raised this was at odds with the numbers of rows it was given."""
    said = str(error).lower() if isinstance(error, RuntimeError | ValueError | IndexError | AssertionError) else ""
    return any(word in said for word in ("size", "shape", "dimension", "must match", "out of bounds", "same number"))


ULPS = 16.0  # of the largest logit


def permuted(pairs: Pairs, queries: Sequence[int], documents: Sequence[int]) -> Pairs:
    """The batch with its rows in another order."""
    return replace(pairs, queries=pairs.queries[list(queries)], documents=pairs.documents[list(documents)])
