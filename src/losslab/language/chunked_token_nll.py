"""Cross-entropy of the next token from hidden states: the logits of all tokens never exist at once."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import softplus

from losslab.language._inputs import (
    Reduction,
    check_reduction,
    check_some_counted,
    read_targets,
    reduce_tokens,
    refuse_row,
    seen,
)

#: Logits held at once unless told otherwise: 134 MB in float32, 262 tokens of a vocabulary of 128,000.
CELLS = 2**25


def chunked_token_nll(
    hidden: Tensor,  # (B, T, d)
    weight: Tensor,  # (V, d)
    labels: Tensor,  # (B, T)
    *,
    bias: Tensor | None = None,  # (V,)
    chunk_size: int | None = None,
    shift: bool = True,
    mask: Tensor | None = None,  # (B, T) bool
    ignore_index: int = -100,
    reduction: Reduction = "mean",
    validate: bool = True,
) -> Tensor:
    r"""`token_nll` of the logits ``hidden @ weight.T + bias``, ``chunk_size`` tokens at a time, forward and backward.

    With a large vocabulary the logits are by far the largest tensor of a training step: B × T × V numbers, and as many
    again for their softmax and their gradient. Here only chunk_size × V exist at a time. For "mean" and "sum" the
    gradient by a chunk's logits is known as soon as they are,

    .. math:: \frac{\partial L_t}{\partial x_{tv}} = p_{tv} \text{ for } v \ne y, \qquad
              \frac{\partial L_t}{\partial x_{ty}} = -\sum_{v \ne y} p_{tv},

    so it is pushed on to ``hidden``, ``weight`` and ``bias`` there and then, and no logit is computed twice: the
    backward pass only multiplies by what comes from above. For "none" each token's factor is unknown until then, and
    the logits are computed once more.

    Parameters
    ----------
    hidden : (B, T, d) floating
        What the model puts into its output layer. Only counted positions are computed; what stands in others, NaN
        included, does not matter and gets gradient exactly 0.
    weight : (V, d) floating
        Of the output layer, in the type of ``hidden``.
    bias : (V,) floating, optional
        Of the output layer.
    chunk_size : int, optional
        Tokens whose logits are held at once; by default as many as make 2**25 logits, 134 MB in float32.
    labels, shift, mask, ignore_index, reduction, validate
        As for `token_nll`. Bad values are found in the logits, so ``validate=False`` skips those checks too.

    Returns
    -------
    Tensor
        As `token_nll` gives: in the type of ``hidden``, float32 for half precision, which is computed in float32
        (autocast or not; ``weight`` is then copied once). It can be differentiated once, not twice.

    Raises
    ------
    ValueError
        As for `token_nll`; and if ``hidden``, ``weight`` and ``bias`` do not fit each other or ``chunk_size`` is no
        whole number of at least 1.

    References
    ----------
    Wijmans et al., "Cut your losses in large-vocabulary language models", ICLR 2025 (the problem); Hsu et al., "Liger
    kernel: efficient Triton kernels for LLM training", 2024, section 3.2 (gradients computed in the forward pass).
    """
    _check_layer(hidden, weight, bias)
    check_reduction(reduction)
    vocabulary = len(weight)
    if chunk_size is None:
        chunk_size = max(1, CELLS // vocabulary)
    if isinstance(chunk_size, bool) or not isinstance(chunk_size, int) or chunk_size < 1:
        raise ValueError(f"chunk_size must be a whole number of at least 1, got {chunk_size!r}; try 256")
    positions = (hidden.shape[0], hidden.shape[1])
    targets = read_targets(
        positions, vocabulary, hidden.device, labels, mask, shift=shift, ignore_index=ignore_index, validate=validate
    )
    if validate:
        check_some_counted(targets)
    rows = (hidden[:, :-1] if shift else hidden)[targets.counted]  # (n, d), the counted positions alone
    job = _Job(
        targets.labels[targets.counted],
        targets.counted.nonzero(),
        chunk_size,
        at_once=reduction != "none" and torch.is_grad_enabled(),
        validate=validate,
    )
    values = _Chunked.apply(rows, weight, bias, job)  # type: ignore[no-untyped-call]
    if job.at_once:
        total: Tensor = values
        return total / len(rows) if reduction == "mean" else total
    nll = values.new_zeros(targets.counted.shape).masked_scatter(targets.counted, values)
    return reduce_tokens(nll, targets.counted, reduction)


@dataclass(frozen=True)
class _Job:
    """What to compute, apart from the tensors that can be differentiated by."""

    labels: Tensor  # (n,)
    places: Tensor  # (n, 2) text and position of each row, for messages
    chunk_size: int
    at_once: bool  # sum up, and compute the gradients with it
    validate: bool


class _Chunked(torch.autograd.Function):
    """Sum over n counted positions with its gradients; or one value a position, (n,), its gradient computed later."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, weight: Tensor, bias: Tensor | None, job: _Job) -> Tensor:  # noqa: ANN401
        ctx.job, ctx.dtypes = job, [None if t is None else t.dtype for t in (rows, weight, bias)]
        with _plain(rows):
            if not job.at_once:
                ctx.save_for_backward(rows, weight, bias)
                return _run(rows, weight, bias, job, None, (False, False, False))[0]
            ones = torch.ones(len(rows), dtype=_working(rows), device=rows.device)
            nll, *gradients = _run(rows, weight, bias, job, ones, ctx.needs_input_grad[:3])
        ctx.save_for_backward(*gradients)
        return nll.sum()

    @staticmethod
    def backward(ctx: Any, above: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401
        if torch.is_grad_enabled():  # only under create_graph; going on would drop the second derivative silently
            raise RuntimeError("chunked_token_nll can be differentiated once, not twice; do without create_graph")
        with _plain(above):
            if ctx.job.at_once:
                gradients = [None if g is None else g * above for g in ctx.saved_tensors]
            else:
                rows, weight, bias = ctx.saved_tensors
                _, *gradients = _run(rows, weight, bias, ctx.job, above, ctx.needs_input_grad[:3])
        kept = zip(gradients, ctx.dtypes, strict=True)
        return (*(None if g is None else g.to(dtype) for g, dtype in kept), None)


def _run(
    rows: Tensor,  # (n, d)
    weight: Tensor,  # (V, d)
    bias: Tensor | None,  # (V,)
    job: _Job,
    above: Tensor | None,  # (n,) what each position's gradient is to be multiplied by; None: no gradients
    needed: tuple[bool, ...],
) -> tuple[Tensor, Tensor | None, Tensor | None, Tensor | None]:
    """Values (n,), and the gradients asked for, by rows, weight and bias."""
    dtype = _working(rows)
    rows, weight = rows.to(dtype), weight.to(dtype)
    nll = rows.new_empty(len(rows))
    by_rows = torch.empty_like(rows) if needed[0] else None
    by_weight = torch.zeros_like(weight) if needed[1] else None
    by_bias = torch.zeros_like(weight[:, 0]) if needed[2] else None
    buffer = rows.new_empty(min(job.chunk_size, len(rows)), len(weight))
    for first in range(0, len(rows), job.chunk_size):
        part = slice(first, min(first + job.chunk_size, len(rows)))
        logits = buffer[: part.stop - first]  # one buffer for all chunks: allocators hold on to what they gave
        if bias is None:
            torch.mm(rows[part], weight.T, out=logits)
        else:
            torch.addmm(bias.to(dtype), rows[part], weight.T, out=logits)
        _to_gradient(logits, nll, job, part, above)
        if by_rows is not None:
            torch.mm(logits, weight, out=by_rows[part])
        if by_weight is not None:
            by_weight.addmm_(logits.T, rows[part])
        if by_bias is not None:
            by_bias += logits.sum(0)
    return nll, by_rows, by_weight, by_bias


def _to_gradient(logits: Tensor, nll: Tensor, job: _Job, part: slice, above: Tensor | None) -> None:
    """Write a chunk's values to ``nll`` and turn its logits, (k, V), into the gradient by them, in place."""
    label = job.labels[part, None]
    own = logits.gather(1, label)
    # As in token_nll: the token against all others, so that no digit is lost where it is almost certain.
    logits.scatter_(1, label, torch.finfo(logits.dtype).min)
    peak = logits.amax(1, keepdim=True)
    if job.validate:
        _check_values(logits, own, peak, job, part)
    total = logits.sub_(peak).exp_().sum(1, keepdim=True)
    against = (peak - own) + total.log()
    nll[part] = softplus(against, threshold=50.0)[:, 0]
    if above is not None:
        share = against.sigmoid() * above[part, None]
        logits.mul_(share / total).scatter_(1, label, -share)


def _check_values(logits: Tensor, own: Tensor, peak: Tensor, job: _Job, part: slice) -> None:
    """Refuse logits that are no scores; they show in the row's largest and in the label's."""
    lowest = torch.finfo(logits.dtype).min
    odd = ~(peak < torch.inf) | ~(own < torch.inf) | ((peak == lowest) & (own == -torch.inf))
    if odd.any():
        row = int(odd[:, 0].nonzero()[0])
        text, position = job.places[part][row].tolist()
        refuse_row(
            logits[row].scatter(0, job.labels[part][row, None], own[row]),
            f"logits of hidden[{text}, {position}]",
        )


def _check_layer(hidden: object, weight: object, bias: object) -> None:
    """Refuse hidden states and an output layer that do not go together."""
    if not isinstance(hidden, Tensor) or not hidden.is_floating_point() or hidden.ndim != 3:
        raise ValueError(f"hidden must be a floating-point tensor of shape (texts, positions, d), got {seen(hidden)}")
    if not hidden.numel():
        raise ValueError(f"hidden must not be empty, got {seen(hidden)}; drop the batch")
    if not isinstance(weight, Tensor) or weight.ndim != 2 or weight.shape[1] != hidden.shape[2] or not len(weight):
        raise ValueError(
            f"weight must be a tensor of shape (vocabulary, {hidden.shape[2]}), as wide as hidden, got {seen(weight)}"
        )
    if bias is not None and (not isinstance(bias, Tensor) or bias.shape != (len(weight),)):
        raise ValueError(f"bias must be a tensor of shape ({len(weight)},), one a token, got {seen(bias)}")
    for name, tensor in (("weight", weight), ("bias", bias)):
        if isinstance(tensor, Tensor) and tensor.dtype != hidden.dtype:
            raise ValueError(f"{name} must have the type of hidden, got {tensor.dtype} beside {hidden.dtype}; convert")
        if isinstance(tensor, Tensor) and tensor.device != hidden.device:
            raise ValueError(f"{name} is on {tensor.device} but hidden is on {hidden.device}; move it there")


def _working(tensor: Tensor) -> torch.dtype:
    """Type to compute in: float32, or float64 for float64."""
    return torch.float64 if tensor.dtype == torch.float64 else torch.float32


def _plain(tensor: Tensor) -> AbstractContextManager[object]:
    """No autocast: it would turn the matrix products back into half precision."""
    kind = tensor.device.type
    return torch.autocast(kind, enabled=False) if torch.is_autocast_enabled(kind) else nullcontext()
