"""GradCache: a large batch's exact gradient with the memory of a small one, for encoders whose batch fits no memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor

from losslab.losses._lists import seen
from losslab.losses._pairs import check_chunk

#: A tensor, or a tuple or dict of tensors (and tuples and dicts), all with one row an item.
Inputs = Any


def gradient_cached(
    encode: Callable[[Any], Tensor],
    inputs: Inputs,
    loss: Callable[..., Tensor],
    *,
    chunk_size: int,
) -> Tensor:
    r"""Loss of a whole batch, whose ``backward()`` runs the encoder again on one chunk at a time.

    In-batch negatives need all embeddings at once, but not all activations. Forward: embed chunk by chunk without a
    graph, then compute the loss on the embeddings E. Backward: take :math:`\partial L / \partial E` from the loss
    alone; then embed each chunk once more, now with a graph, and push its rows of it through,

    .. math:: \frac{\partial L}{\partial \theta} = \sum_{\text{chunks } c}
              \Big( \frac{\partial E_c}{\partial \theta} \Big)^{\!\top} \frac{\partial L}{\partial E_c},

    so that only one chunk's activations are ever held. The second pass sees the same random numbers (the generators of
    the CPU and of every GPU) and the same autocast settings, so dropout drops the same.

    Parameters
    ----------
    encode : callable
        ``encode(chunk) -> (n, d)``; called with consecutive rows of an input, in the form in which that was given. Must
        depend on nothing but chunk, parameters and random numbers: batch normalisation would see chunks, not batches.
    inputs : tensor, tuple or dict of tensors; or a list of those
        A list has one entry an argument of ``loss``: ``[queries, documents]``. Each entry is cut along the first
        dimension of its tensors.
    loss : callable
        ``loss(embeddings, …) -> scalar``, such as `info_nce`; with parameters of its own if it likes.
    chunk_size : int
        Items to embed at a time.

    Returns
    -------
    Tensor
        The scalar loss. ``backward()`` adds to ``.grad`` of the encoder's parameters what the uncached loss would. As
        the parameters are found only then, ``torch.autograd.grad(loss, parameters)`` cannot see them. Without gradient
        (``torch.no_grad()``, nothing to train) it is the plain value.

    Raises
    ------
    ValueError
        If ``chunk_size`` is below 1, an entry holds no tensors or of different lengths, ``encode`` does not give one
        vector an item, or ``loss`` is no scalar.

    References
    ----------
    Gao, Zhang, Han and Callan, "Scaling deep contrastive learning batch size under memory limited setup", RepL4NLP
    2021, section 3.
    """
    check_chunk(chunk_size)
    columns = inputs if isinstance(inputs, list) else [inputs]
    if not columns:
        raise ValueError("inputs must have at least one entry, got an empty list")
    embeddings = [_embed(encode, column, chunk_size) for column in columns]
    value = loss(*embeddings)
    if not isinstance(value, Tensor) or value.numel() != 1:
        raise ValueError(f"loss must give one number for the whole batch, got {seen(value)}; reduce it")
    return value


def _embed(encode: Callable[[Any], Tensor], column: Inputs, chunk_size: int) -> Tensor:
    """Embeddings of one column, (n, d), that embed again when their gradient comes."""
    length = _length(column)
    chunks = [_cut(column, slice(first, first + chunk_size)) for first in range(0, length, chunk_size)]
    moments: list[_Moment] = []
    parts: list[Tensor] = []
    for chunk in chunks:
        moments.append(_Moment())
        with torch.no_grad():
            part = encode(chunk)
        expected = min(chunk_size, length - chunk_size * len(parts))
        if not isinstance(part, Tensor) or part.ndim != 2 or len(part) != expected:
            raise ValueError(f"encode must give one vector an item, ({expected}, dimensions), got {seen(part)}")
        parts.append(part)
    whole = torch.cat(parts)
    if not torch.is_grad_enabled():
        return whole

    def again(gradient: Tensor) -> None:
        for chunk, moment, rows in zip(chunks, moments, torch.split(gradient, chunk_size), strict=True):
            with moment.again(), torch.enable_grad():
                part = encode(chunk)
            if part.requires_grad:
                torch.autograd.backward(part, rows.to(part.dtype))

    anchor = torch.zeros((), device=whole.device, requires_grad=True)  # what makes autograd call backward
    embedded: Tensor = _Again.apply(anchor, whole, again)  # type: ignore[no-untyped-call]
    return embedded


class _Again(torch.autograd.Function):
    """The embeddings as they are; their gradient goes to a function."""

    @staticmethod
    def forward(ctx: Any, anchor: Tensor, embeddings: Tensor, again: Callable[[Tensor], None]) -> Tensor:  # noqa: ANN401, ARG004
        ctx.again = again
        return embeddings.clone()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, None, None]:  # noqa: ANN401
        ctx.again(gradient)
        return None, None, None


class _Moment:
    """The random generators and autocast settings of now, to return to."""

    def __init__(self) -> None:
        self.cpu = torch.get_rng_state()
        self.gpus = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
        self.mps = torch.mps.get_rng_state() if torch.backends.mps.is_available() else None
        self.autocast = {
            kind: (torch.is_autocast_enabled(kind), torch.get_autocast_dtype(kind))
            for kind in ("cpu", "cuda")
            if kind == "cpu" or torch.cuda.is_available()
        }

    @contextmanager
    def again(self) -> Iterator[None]:
        """Be there; afterwards, back where one was."""
        with ExitStack() as stack:
            stack.enter_context(torch.random.fork_rng(devices=range(len(self.gpus))))
            torch.set_rng_state(self.cpu)
            if self.gpus:
                torch.cuda.set_rng_state_all(self.gpus)
            if self.mps is not None:
                stack.callback(torch.mps.set_rng_state, torch.mps.get_rng_state())
                torch.mps.set_rng_state(self.mps)
            for kind, (enabled, dtype) in self.autocast.items():
                stack.enter_context(torch.autocast(kind, dtype=dtype, enabled=enabled, cache_enabled=False))
            yield


def _tensors(column: Inputs) -> Iterator[Tensor]:
    if isinstance(column, Tensor):
        yield column
    elif isinstance(column, tuple):
        for value in column:
            yield from _tensors(value)
    elif isinstance(column, dict):
        yield from _tensors(tuple(column.values()))
    else:
        raise ValueError(f"inputs must be tensors, or tuples or dicts of tensors, got {seen(column)} among them")


def _length(column: Inputs) -> int:
    """Items in a column."""
    shapes = [tuple(tensor.shape) for tensor in _tensors(column)]
    lengths = {shape[0] if shape else None for shape in shapes}
    if len(lengths) != 1 or not (length := lengths.pop()):
        raise ValueError(f"inputs must have one row an item in all tensors of an entry, and an item, got {shapes}")
    return length


def _cut(column: Inputs, rows: slice) -> Inputs:
    """Some items of a column, in its form."""
    if isinstance(column, Tensor):
        return column[rows]
    if isinstance(column, dict):
        return {key: _cut(value, rows) for key, value in column.items()}
    return tuple(_cut(value, rows) for value in column)
