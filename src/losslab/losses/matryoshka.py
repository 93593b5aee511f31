"""Matryoshka: one loss asked at several sizes, so that the first dimensions of an embedding can stand for all of it."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import torch
from torch import Tensor

from losslab.losses._lists import seen
from losslab.losses._pairs import fine_dtype

#: Keywords that hold embeddings in every loss here.
EMBEDDINGS = ("queries", "documents", "hard_negatives")


def matryoshka(
    base_loss: Callable[..., Tensor],
    dims: Iterable[int],
    weights: Iterable[float] | None = None,
    *,
    embedding_labels: str | Collection[str] = (),
) -> Matryoshka:
    r"""Make a loss of embeddings into the weighted sum of itself over prefixes of the embeddings.

    With :math:`\hat x_{1:m}` the first m dimensions of x, divided by their length,

    .. math:: L = \sum_{m \in \text{dims}} c_m \, L_m, \qquad
              L_m = \ell(\hat q_{1:m}, \hat d_{1:m}) \text{ for } m < d, \qquad L_d = \ell(q, d)

    where :math:`\ell` is the base loss. A prefix of a unit vector is shorter than 1, each vector's by another factor,
    so prefixes are renormalised, as they will be when they are searched. At full size there is nothing to cut: the base
    loss gets the very tensors that were passed in, normalises them if it is one that does, and is otherwise left to its
    dot products or distances.

    Parameters
    ----------
    base_loss : callable
        ``base_loss(*embeddings, **keywords) -> tensor``: `info_nce` or any other loss of ours, a module, a lambda. It
        is called once a dimension and never changed; parameters of its own are yours to optimise.
    dims : iterable of int
        Sizes m, from 1 to the embeddings' size, each once, in any order: the result is the same to the last bit. Put
        the full size among them, or nothing trains it. A set has no order, and goes without weights.
    weights : iterable of float, optional
        :math:`c_m`, one a dimension in the order of ``dims``, at least 0 and not all 0; a size of weight 0 is not
        computed. Left out: 1 each, as in the paper.
    embedding_labels : str or collection of str
        Names of keywords of ``base_loss`` whose values are embeddings too, (..., d): a teacher's vectors in a
        distillation. They are cut and renormalised with the others, so that a student equal to its teacher has loss 0
        at every size. Never guessed from a shape: a (B, M) matrix of grades may well have M = d. Each is to be passed
        with every call, so that none goes uncut under another name. ``queries``, ``documents`` and ``hard_negatives``
        always are embeddings.

    Returns
    -------
    Matryoshka
        ``loss(*embeddings, **keywords)``. Positional arguments are embeddings, (..., d) floating, all of one size d,
        and are cut: ``loss(queries, documents)``, or ``loss(student, teacher)`` around a mean squared error. Keywords
        reach the base loss as they are, but for those that are embeddings: ``loss(queries, documents, labels=grades)``.
        The value has the base loss's shape (scalar, or (B,) for its reduction="none") and the embeddings' dtype, and is
        summed in float64. Prefixes of half-precision embeddings reach the base loss in float32: as halves, their
        lengths would be off by the format's rounding.

    Raises
    ------
    TypeError
        If ``base_loss`` cannot be called.
    ValueError
        If ``dims`` is empty, repeats a size, or holds anything but whole numbers of at least 1; if ``weights`` are not
        as many, negative, not finite or all 0; if either is a mapping, or without order where order counts; if
        ``embedding_labels`` are no names. On a call: if a dimension is above the embeddings' size, an argument is no
        embedding of that size, one of ``embedding_labels`` is missing, or the base loss gives no tensor. What the base
        loss itself raises passes, with a note of the size that it was asked at.

    Notes
    -----
    A prefix that is all 0 has no direction and stays 0; a row that is not finite, padding perhaps, stays as it is. What
    becomes of them is up to the base loss.

    References
    ----------
    Kusupati et al., "Matryoshka representation learning", NeurIPS 2022, equation 1.

    Examples
    --------
    >>> import torch
    >>> from losslab.losses import info_nce, matryoshka
    >>> queries, documents = torch.eye(4), torch.eye(4) + 0.1
    >>> loss = matryoshka(info_nce, dims=[4, 2])
    >>> loss(queries[:2], documents[:2]).shape
    torch.Size([])
    """
    if not callable(base_loss):
        raise TypeError(f"base_loss must be callable, got {type(base_loss).__name__}; give it a function or a module")
    if isinstance(dims, (set, frozenset)) and weights is not None:
        raise ValueError(f"dims must be in an order if weights are given, got a {type(dims).__name__}; write a list")
    sizes = checked_dims(dims)
    if isinstance(embedding_labels, Tensor) or not isinstance(embedding_labels, (str, Iterable)):
        raise ValueError(
            f"embedding_labels must be names of keywords, got {seen(embedding_labels)}; leave it out if none are, "
            "and pass the labels themselves with each call"
        )
    named = (embedding_labels,) if isinstance(embedding_labels, str) else tuple(embedding_labels)
    if any(not isinstance(name, str) for name in named):
        raise ValueError(f"embedding_labels must be names of keywords, got {named!r}; pass the labels with each call")
    return Matryoshka(base_loss, sizes, checked_weights(weights, sizes), named)


@dataclass(frozen=True)
class Matryoshka:
    """What `matryoshka` makes of a loss.

    Attributes
    ----------
    base_loss
        The loss it sums, as it was given.
    dims, weights
        Sizes in the order given, and what each counts.
    embedding_labels
        Keywords, besides `EMBEDDINGS`, that are cut.
    """

    base_loss: Callable[..., Tensor]
    dims: tuple[int, ...]
    weights: tuple[float, ...]
    embedding_labels: tuple[str, ...] = ()

    def __call__(self, *embeddings: Tensor, **keywords: Any) -> Tensor:  # noqa: ANN401
        """Value of a batch. embeddings (..., d) each; keywords of the base loss."""
        named = [name for name in keywords if name in (*EMBEDDINGS, *self.embedding_labels)]
        named = [name for name in named if keywords[name] is not None]
        size, dtype = self._check(embeddings, {name: keywords[name] for name in named})
        self._check_labels(embeddings, keywords)
        total: Tensor | None = None
        # Widened once for all sizes, so that their gradients are added up before they are rounded to the type.
        fine = [tensor.to(fine_dtype(tensor)) for tensor in embeddings]
        fine_named = {name: keywords[name].to(fine_dtype(keywords[name])) for name in named}
        served = dtype if dtype.itemsize >= 4 else torch.float32
        # Largest first, whatever the order given: so the sum is rounded, and random numbers are drawn, always alike.
        for dim, weight in sorted(zip(self.dims, self.weights, strict=True), reverse=True):
            if not weight:
                continue
            if dim == size:
                value = self._base(dim, embeddings, keywords)
            else:
                cut = [unit_prefix(tensor, dim).to(served) for tensor in fine]
                cut_named = {name: unit_prefix(tensor, dim).to(served) for name, tensor in fine_named.items()}
                value = self._base(dim, cut, keywords | cut_named)
            term = value.to(fine_dtype(value)) * weight
            total = term if total is None else total + term
        assert total is not None
        return total.to(dtype)

    def _base(self, dim: int, embeddings: Sequence[Tensor], keywords: dict[str, Any]) -> Tensor:
        try:
            value = self.base_loss(*embeddings, **keywords)
        except Exception as error:
            error.add_note(f"raised by the base loss of matryoshka, asked about the first {dim} dimensions")
            raise
        if not isinstance(value, Tensor):
            raise ValueError(f"base_loss must return a tensor, got {seen(value)} at {dim} dimensions")
        return value

    def _check(self, embeddings: Sequence[Tensor], named: dict[str, Tensor]) -> tuple[int, torch.dtype]:
        """Size and type of the embeddings, all of which must be such."""
        given = {f"embeddings[{i}]": tensor for i, tensor in enumerate(embeddings)} | named
        if not given:
            raise ValueError("embeddings must be given, as positional arguments; got none")
        size, dtype = 0, torch.float32
        for name, tensor in given.items():
            if not isinstance(tensor, Tensor) or not tensor.is_floating_point() or tensor.ndim < 2:
                raise ValueError(
                    f"{name} must be a floating-point tensor of shape (..., dimensions), got {seen(tensor)}; "
                    "positional arguments are embeddings: pass labels, masks and the like by keyword"
                )
            if not size:
                size, dtype = tensor.shape[-1], tensor.dtype
            if tensor.shape[-1] != size:
                raise ValueError(
                    f"{name} must have the first embeddings' {size} dimensions, got {seen(tensor)}; positional "
                    "arguments are embeddings: pass labels, masks and the like by keyword"
                )
        if max(self.dims) > size:
            raise ValueError(
                f"dims must be at most the embeddings' {size} dimensions, got {max(self.dims)}; leave that size out"
            )
        return size, dtype

    def _check_labels(self, embeddings: Sequence[Tensor], keywords: dict[str, Any]) -> None:
        """Refuse a call without one of the labels declared: under another name, it would not be cut."""
        missing = [name for name in self.embedding_labels if name not in keywords]
        if not missing:
            return
        by_position = _names_by_position(self.base_loss, len(embeddings))
        if missing := [name for name in missing if name not in by_position]:
            given = ", ".join(keywords) or "none"
            raise ValueError(
                f"embedding_labels has {missing[0]!r}, so every call must pass {missing[0]}=…, got the keywords: "
                f"{given}; name there what the base loss calls them, or leave it out"
            )


def _names_by_position(base_loss: Callable[..., Any], count: int) -> list[str]:
    """What a loss calls its first arguments, as far as its signature says."""
    try:
        found = inspect.signature(base_loss.forward if isinstance(base_loss, torch.nn.Module) else base_loss)
    except (TypeError, ValueError):
        return []
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [name for name, parameter in found.parameters.items() if parameter.kind in positional][:count]


def unit_prefix(embeddings: Tensor, dim: int) -> Tensor:
    """First ``dim`` dimensions of every vector, divided by their length: (..., d) -> (..., dim).

    A zero prefix, or one that is not finite, comes back as it is, and nothing of it reaches other rows' gradients.
    """
    prefix = embeddings[..., :dim]
    # By the largest entry first: the square of a short or long vector's length may be no number of the format.
    largest = prefix.detach().abs().amax(-1, keepdim=True)
    usable = largest.isfinite() & (largest > 0)
    safe = (prefix / largest.where(usable, 1)).where(usable, 1.0)
    lengths: Tensor = torch.linalg.vector_norm(safe, dim=-1, keepdim=True)
    return (safe / lengths).where(usable, prefix)


def checked_dims(dims: Iterable[int]) -> tuple[int, ...]:
    """Sizes as plain whole numbers, refused if empty, repeated or below 1."""
    if isinstance(dims, Mapping):
        raise ValueError(
            f"dims must be a sequence of whole numbers, got {dims!r}; give its values as weights, in order"
        )
    if isinstance(dims, (str, bytes)) or not _iterable(dims):
        raise ValueError(f"dims must be a sequence of whole numbers, got {dims!r}; for one size write [{dims!r}]")
    found = tuple(map(_number, dims))
    if not found:
        raise ValueError("dims must hold at least one size, got none; the embeddings' full size alone is the base loss")
    for dim in found:
        if isinstance(dim, bool) or not isinstance(dim, Integral):
            raise ValueError(f"dims must be whole numbers, got {dim!r} in {list(found)}")
        if dim < 1:
            raise ValueError(f"dims must be at least 1, got {dim} in {list(found)}")
    sizes = tuple(int(dim) for dim in found)
    if repeated := sorted({dim for dim in sizes if sizes.count(dim) > 1}):
        raise ValueError(
            f"dims must name each size once, got {repeated[0]} more than once in {list(sizes)}; "
            "to count a size more, give it a weight"
        )
    return sizes


def checked_weights(weights: Iterable[float] | None, dims: Sequence[int]) -> tuple[float, ...]:
    """One weight a size, refused if negative, not finite or all 0."""
    if weights is None:
        return (1.0,) * len(dims)
    if isinstance(weights, (str, bytes, Mapping, set, frozenset)) or not _iterable(weights):
        raise ValueError(
            f"weights must be a sequence of numbers, one a dimension, got {weights!r}; list them in the order of dims"
        )
    found = tuple(map(_number, weights))
    if len(found) != len(dims):
        raise ValueError(f"weights must be as many as dims, {len(dims)}, got {len(found)}: {list(found)}")
    for weight in found:
        if isinstance(weight, bool) or not isinstance(weight, Real) or not math.isfinite(weight) or weight < 0:
            raise ValueError(f"weights must be finite numbers of at least 0, got {weight!r} in {list(found)}")
    if not any(found):
        raise ValueError(f"weights must not all be 0, got {list(found)}; there would be nothing to learn")
    return tuple(float(weight) for weight in found)


def _iterable(value: object) -> bool:
    """Whether there is something in it to go through: a tensor says so even of a single number."""
    return isinstance(value, Iterable) and getattr(value, "ndim", 1) > 0


def _number(value: Any) -> Any:  # noqa: ANN401
    """A tensor of one fixed number as that number; all else as it is."""
    return value.item() if isinstance(value, Tensor) and not value.ndim and not value.requires_grad else value
