"""Real token losses and perplexities, driven in the call form of contracts, ``loss(logits (B, T, V), labels (B, T))``.

transformers' losses of language models, torchmetrics' perplexity and PyTorch's cross-entropy, each as it is: an adapter
only arranges arguments, and says what the library's function expects of labels.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from losslab.contracts.model import TokenConventions

CAUSAL = "ForCausalLMLoss"
FUSED = "linear_cross_entropy"
PERPLEXITIES = ("Perplexity", "perplexity")


@dataclass(frozen=True)
class CausalLMLoss:
    """``transformers.loss.loss_utils.ForCausalLMLoss``, which shifts labels itself unless they come as shift_labels."""

    library_loss: Callable[..., Any]
    conventions: TokenConventions
    name: str

    def __call__(self, logits: Tensor, labels: Tensor, *, num_items_in_batch: int | None = None) -> Tensor:
        """Value of a batch. logits (B, T, V), labels (B, T)."""
        shifted = {} if self.conventions.shift else {"shift_labels": labels}
        value = self.library_loss(
            logits,
            labels,
            vocab_size=logits.shape[-1],
            num_items_in_batch=num_items_in_batch,
            ignore_index=self.conventions.ignore_index,
            **shifted,
        )
        assert isinstance(value, Tensor)
        return value


@dataclass(frozen=True)
class TokenLoss:
    """A loss of transformers over labels as they stand: row t of the logits meets label t.

    ``arrange`` calls it with logits (B, T, V), labels (B, T) and the number of targets, or None.
    """

    library_loss: Callable[..., Any]
    conventions: TokenConventions
    name: str
    arrange: Callable[..., Any]

    def __call__(self, logits: Tensor, labels: Tensor, *, num_items_in_batch: int | None = None) -> Tensor:
        """Value of a batch. logits (B, T, V), labels (B, T), shifted beforehand unless it is declared to shift."""
        value = self.arrange(self.library_loss, self.conventions, logits, labels, num_items_in_batch)
        assert isinstance(value, Tensor)
        return value


def _masked(loss: Any, told: TokenConventions, logits: Tensor, labels: Tensor, items: int | None) -> Any:  # noqa: ANN401
    return loss(logits, labels, logits.shape[-1], num_items_in_batch=items, ignore_index=told.ignore_index)


def _classes(loss: Any, told: TokenConventions, logits: Tensor, labels: Tensor, items: int | None) -> Any:  # noqa: ANN401
    config = SimpleNamespace(num_labels=logits.shape[-1])
    return loss(logits, labels, config, num_items_in_batch=items, ignore_index=told.ignore_index)


def _flat(loss: Any, told: TokenConventions, logits: Tensor, labels: Tensor, items: int | None) -> Any:  # noqa: ANN401
    return loss(logits.flatten(0, 1), labels.flatten(), items, told.ignore_index)


def _smoothed(loss: Any, told: TokenConventions, logits: Tensor, labels: Tensor, items: int | None) -> Any:  # noqa: ANN401
    return loss({"logits": logits}, labels, shift_labels=told.shift, num_items_in_batch=items)


#: transformers' token losses besides the causal one, and how each is called.
ARRANGED = {
    "ForMaskedLMLoss": _masked,
    "ForTokenClassification": _classes,
    "fixed_cross_entropy": _flat,
    "LabelSmoother": _smoothed,
}


@dataclass(frozen=True)
class PerplexityMetric:
    """torchmetrics' perplexity, class or function; each call is a metric of its own, reset before it.

    ``again`` makes it anew with another ``ignore_index``, unless its caller has said which.
    """

    library_metric: Callable[..., Any]
    conventions: TokenConventions
    name: str
    options: dict[str, Any] = field(default_factory=dict)
    again: Callable[[int], PerplexityMetric] | None = None

    def declared(self, conventions: TokenConventions) -> PerplexityMetric:
        """Tell it to ignore the label that is declared to be no target, if its caller has not."""
        if self.again is None or conventions.ignore_index == self.conventions.ignore_index:
            return self
        return self.again(conventions.ignore_index)

    def __call__(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Perplexity of a batch. logits (B, T, V), labels (B, T), shifted beforehand."""
        metric: Any = self.library_metric
        if isinstance(metric, torch.nn.Module):
            if metric.device != logits.device:  # a copy is moved, and the original stays where it is
                metric = copy.copy(metric)
                metric._defaults = dict(metric._defaults)
                metric = metric.to(logits.device)
            metric.reset()
        value = metric(logits, labels, **self.options)
        assert isinstance(value, Tensor)
        return value


@dataclass(frozen=True)
class FusedCrossEntropy:
    """``torch.nn.functional.linear_cross_entropy``: the logits are its input, and its weight is the identity."""

    library_loss: Callable[..., Any]
    conventions: TokenConventions
    name: str
    options: dict[str, Any] = field(default_factory=dict)

    def __call__(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Value of a batch. logits (B, T, V), labels (B, T), shifted beforehand."""
        weight = torch.eye(logits.shape[-1], dtype=logits.dtype, device=logits.device)
        value = self.library_loss(logits.flatten(0, 1), weight, labels.flatten(), **self.options)
        assert isinstance(value, Tensor)
        return value


@dataclass(frozen=True)
class FlatCrossEntropy:
    """``torch.nn.functional.cross_entropy`` or ``CrossEntropyLoss`` over all positions of a batch in one row."""

    library_loss: Callable[..., Any]
    conventions: TokenConventions
    name: str
    options: dict[str, Any] = field(default_factory=dict)

    def __call__(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Value of a batch. logits (B, T, V), labels (B, T), shifted beforehand."""
        value = self.library_loss(logits.flatten(0, 1), labels.flatten(), **self.options)
        assert isinstance(value, Tensor)
        return value


def _cross_entropy_module(loss: object) -> bool:
    return isinstance(loss, torch.nn.CrossEntropyLoss) or (
        isinstance(loss, type) and issubclass(loss, torch.nn.CrossEntropyLoss)
    )


def _is_causal(loss: object) -> bool:
    return getattr(loss, "__name__", "") == CAUSAL and str(getattr(loss, "__module__", "")).startswith("transformers.")


def _arranged(loss: object) -> str:
    """The name under which a loss of transformers, class, instance or function, stands in `ARRANGED`; "" if in none."""
    named = loss if hasattr(loss, "__name__") else type(loss)
    name, module = getattr(named, "__name__", ""), str(getattr(named, "__module__", ""))
    return name if name in ARRANGED and module.startswith("transformers.") else ""


def _is_fused(loss: object) -> bool:
    return getattr(loss, "__name__", "") == FUSED and loss is getattr(torch.nn.functional, FUSED, None)


def _is_perplexity(loss: object) -> bool:
    """By name, so that the library need not be imported to say no."""
    kinds = loss.__mro__ if isinstance(loss, type) else (loss, *type(loss).__mro__)
    return any(
        getattr(kind, "__name__", "") in PERPLEXITIES and str(kind.__module__).startswith("torchmetrics.")
        for kind in kinds
    )


def is_token_library_loss(loss: object) -> bool:
    """Whether an adapter here knows it: a function, class or instance of one of the three libraries."""
    return (
        loss is torch.nn.functional.cross_entropy
        or _cross_entropy_module(loss)
        or _is_causal(loss)
        or _is_fused(loss)
        or bool(_arranged(loss))
        or _is_perplexity(loss)
    )


AnyTokenLoss = CausalLMLoss | TokenLoss | PerplexityMetric | FlatCrossEntropy | FusedCrossEntropy


def token_library_loss(loss: Any, **options: Any) -> AnyTokenLoss:  # noqa: ANN401
    """Wrap it in the call form of token losses, its conventions attached.

    Parameters
    ----------
    loss
        ``ForCausalLMLoss``, ``ForMaskedLMLoss``, ``ForTokenClassification`` or ``fixed_cross_entropy`` of
        ``transformers.loss.loss_utils``; ``transformers.trainer_pt_utils.LabelSmoother``, class or instance;
        ``torchmetrics.text.Perplexity``, class or instance, or ``torchmetrics.functional.text.perplexity``;
        ``torch.nn.functional.cross_entropy`` or ``linear_cross_entropy``; or ``torch.nn.CrossEntropyLoss``, class or
        instance. An instance is copied.
    **options
        Its own arguments, such as ``ignore_index=-1``. Of transformers' causal loss, ``shift=False`` hands it the
        labels as its ``shift_labels``. torchmetrics' perplexity, class or function, ignores nothing unless told; left
        out, it is told the declared ``ignore_index``, -100 by default, and its name says so. None leaves it as it is
        by itself, and an instance stays as it was made.

    Raises
    ------
    TypeError
        If it is none of these, or options are given for an instance.

    Notes
    -----
    Declared: transformers' causal loss shifts, and its label smoother is told to; the others are given shifted labels;
    torchmetrics returns a perplexity.
    """
    if not is_token_library_loss(loss):
        raise TypeError(
            f"loss must be transformers' {CAUSAL}, torchmetrics' Perplexity or torch's cross_entropy, or one of "
            f"transformers' {', '.join(ARRANGED)}, or torch's {FUSED}, got {loss!r}"
        )
    chosen = not _is_perplexity(loss) or "ignore_index" in options or not _can_be_told(loss)
    return _wrapped(loss, options) if chosen else _told(loss, options, TokenConventions().ignore_index)


def _can_be_told(loss: object) -> bool:
    """Whether it is a class or a function, which take options, not an instance."""
    return isinstance(loss, type) or hasattr(loss, "__code__")


def _told(loss: Any, options: dict[str, Any], ignore_index: int) -> PerplexityMetric:  # noqa: ANN401
    """A perplexity told what to ignore, by us and not by its caller, so that another declaration can change it."""
    made = _wrapped(loss, options | {"ignore_index": ignore_index})
    assert isinstance(made, PerplexityMetric)
    return replace(made, again=partial(_told, loss, options))


def _wrapped(loss: Any, options: dict[str, Any]) -> AnyTokenLoss:  # noqa: ANN401
    if options and not _can_be_told(loss):
        raise TypeError(f"options are for a class or a function; this is an instance, got {', '.join(options)}")
    name = getattr(loss, "__name__", type(loss).__name__)
    shown = ", ".join(f"{option}={value!r}" for option, value in options.items())
    name = f"{name}({shown})" if shown else name
    if _is_causal(loss):
        return CausalLMLoss(loss, TokenConventions(**options), name)
    if arranged := _arranged(loss):
        called = loss(**options) if isinstance(loss, type) else loss
        index = getattr(called, "ignore_index", options.get("ignore_index", TokenConventions().ignore_index))
        told = TokenConventions(shift=arranged == "LabelSmoother", ignore_index=index)
        return TokenLoss(called, told, name, ARRANGED[arranged])
    if _is_fused(loss):
        ignored = {"ignore_index": options["ignore_index"]} if "ignore_index" in options else {}
        told = TokenConventions(shift=False, reduction=options.get("reduction", "mean"), **ignored)
        return FusedCrossEntropy(loss, told, name, options)
    made: Any = loss
    if isinstance(loss, type):
        made, options = loss(**options), {}
    elif not _can_be_told(loss):
        made = copy.deepcopy(loss)
    found = getattr(made, "ignore_index", options.get("ignore_index"))
    ignored = {} if found is None else {"ignore_index": found}
    if _is_perplexity(loss):
        return PerplexityMetric(made, TokenConventions(shift=False, returns="perplexity", **ignored), name, options)
    reduction = getattr(made, "reduction", options.get("reduction", "mean"))
    return FlatCrossEntropy(made, TokenConventions(shift=False, reduction=reduction, **ignored), name, options)
