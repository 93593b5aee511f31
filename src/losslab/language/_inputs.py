"""What every token loss needs: checked labels, and which tokens are counted.

Shapes: B texts, T positions, V tokens in the vocabulary, S targets a text: T - 1 where the loss shifts, else T.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

Reduction = Literal["mean", "sum", "none"]
INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


@dataclass(frozen=True)
class Targets:
    """What is to be predicted, and where it counts."""

    labels: Tensor  # (B, S) int64, 0 where not counted
    counted: Tensor  # (B, S) bool
    shift: bool
    first: tuple[int, int] = (0, 0)  # text and target that these begin with, where they are a block of more

    def block(self, texts: slice, places: slice) -> Targets:
        """Cut out a block."""
        return Targets(self.labels[texts, places], self.counted[texts, places], self.shift, (texts.start, places.start))


def read_targets(
    positions: tuple[int, int],
    vocabulary: int,
    device: torch.device,
    labels: object,
    mask: object,
    *,
    shift: bool,
    ignore_index: int,
    validate: bool,
) -> Targets:
    """Shift labels and mask, once, and find out which targets count.

    A target counts where its label is not the ignore index and, given a mask, both it and the position that predicts it
    are real. Shapes and types are always checked; ``validate=False`` skips what has to look at values.
    """
    for name, flag in (("shift", shift), ("validate", validate)):
        if not isinstance(flag, bool):
            raise ValueError(f"{name} must be True or False, got {flag!r}")
    if isinstance(ignore_index, bool) or not isinstance(ignore_index, int):
        raise ValueError(f"ignore_index must be a whole number, got {ignore_index!r}")
    if not isinstance(labels, Tensor) or labels.dtype not in INTEGERS:
        raise ValueError(f"labels must be a tensor of whole numbers, one a position, got {seen(labels)}")
    if labels.shape != positions:
        hint = "pad texts of different lengths to one, and labels to the same with the ignore index"
        if labels.shape == (positions[0], positions[1] - 1):
            hint = "labels shifted beforehand go with shift=False and logits[:, :-1]"
        raise ValueError(f"labels must have the shape {positions} of the positions, got {seen(labels)}; {hint}")
    _check_device("labels", labels, device)
    if mask is not None:
        if not isinstance(mask, Tensor) or mask.dtype != torch.bool or mask.shape != positions:
            raise ValueError(
                f"mask must be a bool tensor of shape {positions}, True = a real token, got {seen(mask)}; "
                "attention_mask.bool() will do"
            )
        _check_device("mask", mask, device)
    targets = labels[:, 1:] if shift else labels
    counted = targets != ignore_index
    if isinstance(mask, Tensor):
        real = mask[:, 1:] if shift else mask
        if validate:
            _check_agreement(targets, counted, real, shift=shift, ignore_index=ignore_index)
        counted = counted & real
        if shift:  # under left padding, the first real token would be predicted from padding
            counted = counted & mask[:, :-1]
    found = Targets(targets.long().masked_fill(~counted, 0), counted, shift)
    if validate:
        _check_labels(found, vocabulary, ignore_index)
    return found


def check_some_counted(targets: Targets) -> None:
    """Refuse a batch without a single target: its mean does not exist."""
    if not targets.counted.numel():
        raise ValueError(
            f"a text of one token has nothing to predict once labels are shifted, got {len(targets.counted)} of them; "
            "put a start token before each, or leave them out"
        )
    if not targets.counted.any():
        raise ValueError(
            f"no token is counted: all {targets.counted.numel()} targets are ignored or masked, in labels of "
            f"{len(targets.counted)} texts; drop the batch, or check ignore_index and mask"
        )


def check_reduction(reduction: str) -> None:
    """Refuse what is not one of the three."""
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"reduction must be 'mean', 'sum' or 'none', got {reduction!r}")


def check_logits(logits: object) -> None:
    """Refuse what is not a batch of real-valued scores, one a token of the vocabulary."""
    if not isinstance(logits, Tensor) or not logits.is_floating_point() or logits.ndim != 3:
        hint = "; for a single text, logits[None] and labels[None]" if getattr(logits, "ndim", 0) == 2 else ""
        raise ValueError(
            f"logits must be a floating-point tensor of shape (texts, positions, vocabulary), got {seen(logits)}{hint}"
        )
    if not logits.numel():
        raise ValueError(f"logits must not be empty, got {seen(logits)}; drop the batch")


def reduce_tokens(nll: Tensor, counted: Tensor, reduction: Reduction) -> Tensor:
    """Reduce values that are 0 where not counted; a mean is over the counted alone."""
    if reduction == "none":
        return nll
    return nll.sum() if reduction == "sum" else nll.sum() / counted.sum()


def refuse_row(row: Tensor, name: str) -> None:
    """Raise if one position's logits, (V,), are no scores: NaN, +inf, or nothing but -inf."""
    for value, wrong in (("nan", row.isnan()), ("inf", row == torch.inf)):
        if wrong.any():
            token = int(wrong.nonzero()[0])
            raise ValueError(
                f"{name} must be numbers below +inf, got {value} for token {token}; -inf forbids a token, and where "
                "nothing is predicted set the label to the ignore index"
            )
    if (row == -torch.inf).all():
        raise ValueError(f"{name} are -inf for all {len(row)} tokens: every token is forbidden, so none has a chance")


def seen(value: object) -> str:
    """What an error message says about a value."""
    if isinstance(value, Tensor):
        return f"{str(value.dtype).removeprefix('torch.')} of shape {tuple(value.shape)}"
    if isinstance(value, (list, tuple)) and value and all(isinstance(part, Tensor) for part in value):
        return f"a {type(value).__name__} of tensors of shapes {', '.join(str(tuple(part.shape)) for part in value)}"
    return type(value).__name__


def _check_device(name: str, tensor: Tensor, device: torch.device) -> None:
    if tensor.device != device:
        raise ValueError(f"{name} is on {tensor.device} but the logits are on {device}; move it there")


def _check_agreement(targets: Tensor, wanted: Tensor, real: Tensor, *, shift: bool, ignore_index: int) -> None:
    """Refuse a text that marks some targets with the ignore index but not one that the mask calls padding."""
    wrong = wanted & ~real & (~wanted).any(1, keepdim=True)
    if wrong.any():
        text, place = wrong.nonzero()[0].tolist()
        raise ValueError(
            f"mask disagrees with ignore_index: mask[{text}, {place + shift}] is False, padding, but the label there "
            f"is {int(targets[text, place])}, while other labels of the text are {ignore_index}; mark padding in both, "
            "or in one alone"
        )


def _check_labels(targets: Targets, vocabulary: int, ignore_index: int) -> None:
    """Refuse counted labels that are no token; what is not counted is 0 here."""
    wrong = (targets.labels < 0) | (targets.labels >= vocabulary)
    if wrong.any():
        place = wrong.nonzero()[0].tolist()
        label = int(targets.labels[tuple(place)])
        hint = f"; if it marks padding, pass ignore_index={label}" if label < 0 else ""
        raise ValueError(
            f"labels must lie in the vocabulary, from 0 to {vocabulary - 1}, or be {ignore_index}, got "
            f"labels[{place[0]}, {place[1] + targets.shift}] = {label}{hint}"
        )
