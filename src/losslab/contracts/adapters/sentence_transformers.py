"""The real list losses of sentence-transformers, driven with the logits you give them.

A loss of the library wants a cross-encoder, queries and documents, and computes the logits itself. Here a stand-in for
the cross-encoder looks them up: each "document" is the position of its logit. The library's own forward pass does all
the rest, packing and padding included, so only real documents are handed to it and the width is whatever it makes of
them. Works for 5.4 and later (``inputs = [queries, documents]``, ``labels`` a list of tensors).
"""

from __future__ import annotations

import copy
import inspect
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from losslab.contracts.model import Conventions

PACKAGE = "sentence_transformers.cross_encoder.losses"
EMBEDDING_PACKAGES = (
    "sentence_transformers.sentence_transformer.losses",
    "sentence_transformers.sparse_encoder.losses",
)
#: Of a batch of pairs with a similarity label each, which is one list: their scores are its logits.
PAIR_LIST_LOSSES = ("CoSENTLoss", "SparseCoSENTLoss")
LIST_LOSSES = ("ListMLELoss", "PListMLELoss", "ListNetLoss", "RankNetLoss", "LambdaLoss", "ADRMSELoss")
PAIRWISE = ("LambdaLoss",)  # and RankNetLoss, which is one


class FixedLogits(torch.nn.Module):
    """Stands in for a CrossEncoder: documents are positions, and their scores the logits held here, (D,)."""

    num_labels = 1

    def __init__(self, logits: Tensor) -> None:
        super().__init__()
        self.logits = logits

    @property
    def device(self) -> torch.device:
        """Where the logits are."""
        return self.logits.device

    def preprocess(self, pairs: list[tuple[str, int]], **_: Any) -> dict[str, Tensor]:  # noqa: ANN401
        """Positions of the documents of (query, position) pairs, (P,)."""
        return {"positions": torch.tensor([position for _, position in pairs], dtype=torch.long, device=self.device)}

    def forward(self, features: dict[str, Tensor]) -> dict[str, Tensor]:
        """Their logits, (P, 1)."""
        return {"scores": self.logits[features["positions"]].unsqueeze(1)}


@dataclass(frozen=True)
class SentenceTransformersLoss:
    """A list loss of sentence-transformers in the call form of contracts."""

    library_loss: torch.nn.Module
    conventions: Conventions
    name: str

    def __call__(self, logits: Tensor, labels: Tensor, mask: Tensor | None = None) -> Tensor:
        """Value of a batch. logits, labels (B, N); mask (B, N) bool, True = a document."""
        real = torch.ones_like(logits, dtype=torch.bool) if mask is None else mask
        documents: list[list[int]] = []
        for row in real.tolist():
            first = sum(map(len, documents))
            documents.append(list(range(first, first + sum(row))))
        loss = copy.copy(self.library_loss)  # its model is replaced for this call only
        loss._modules = dict(loss._modules)
        loss.model = FixedLogits(logits[real])
        queries = [f"query {i}" for i in range(len(documents))]
        value = loss([queries, documents], [row[keep] for row, keep in zip(labels, real, strict=True)])
        assert isinstance(value, Tensor)
        return value


@dataclass(frozen=True)
class PairListLoss(SentenceTransformersLoss):
    """A loss that ranks the pairs of a batch by their labels: all lists that were put into it are one."""

    def __call__(self, logits: Tensor, labels: Tensor, mask: Tensor | None = None) -> Tensor:
        """Value of a batch. logits, labels (B, N); mask (B, N) bool, True = a pair."""
        real = torch.ones_like(logits, dtype=torch.bool) if mask is None else mask
        loss: Any = copy.copy(self.library_loss)
        loss.similarity_fct = lambda first, _: first[:, 0]
        scores = logits[real].unsqueeze(1)
        value = loss.compute_loss_from_embeddings([scores, scores], labels[real])
        assert isinstance(value, Tensor)
        return value


def is_sentence_transformers_loss(loss: object) -> bool:
    """Whether this is one of the library's list losses, class or instance, or derived from one of cross-encoders'."""
    return _is_one_of(LIST_LOSSES, loss) or _ranks_pairs(loss)


def _ranks_pairs(loss: object) -> bool:
    """The class itself, not one derived from it, which has another similarity."""
    cls = loss if isinstance(loss, type) else type(loss)
    return cls.__name__ in PAIR_LIST_LOSSES and cls.__module__.startswith(EMBEDDING_PACKAGES)


def _is_one_of(names: tuple[str, ...], loss: object) -> bool:
    """By name, so that the library need not be imported to say no."""
    cls = loss if isinstance(loss, type) else type(loss)
    return any(base.__name__ in names and base.__module__.startswith(PACKAGE) for base in cls.__mro__)


def sentence_transformers_loss(loss: Any, **options: Any) -> SentenceTransformersLoss:  # noqa: ANN401
    """Wrap a list loss of sentence-transformers, with the conventions it follows attached.

    Parameters
    ----------
    loss
        ``ListMLELoss``, ``PListMLELoss``, ``ListNetLoss``, ``RankNetLoss``, ``LambdaLoss``, ``ADRMSELoss`` of
        cross-encoders, ``CoSENTLoss``, ``SparseCoSENTLoss`` of pairs of embeddings: the class, or an instance (its
        model is left alone and not used).
    **options
        The class's own arguments, such as ``respect_input_order=False``.

    Raises
    ------
    TypeError
        If it is no such loss, or options are given for an instance.

    Notes
    -----
    Declared: order "given" under ``respect_input_order=True``, the default of ListMLELoss and PListMLELoss. The losses
    that average over queries count every query they are given; the pairwise ones count no query but pairs, to which
    a list of one document adds none.
    """
    if not is_sentence_transformers_loss(loss):
        raise TypeError(
            f"loss must be one of sentence-transformers' {', '.join(LIST_LOSSES + PAIR_LIST_LOSSES)}, got {loss!r}"
        )
    if isinstance(loss, type):
        instance = loss(FixedLogits(torch.zeros(0)), **options)
    elif options:
        raise TypeError(f"options are for a class; this is an instance already, got {', '.join(options)}")
    else:
        instance = loss
    cls = type(instance)
    given = bool(getattr(instance, "respect_input_order", False))
    pairwise = _is_one_of(PAIRWISE, cls) or _ranks_pairs(cls)
    conventions = Conventions("given" if given else "labels", count_short_lists=not pairwise)
    default = inspect.signature(cls.__init__).parameters
    shown = {k: v for k, v in options.items() if k not in default or default[k].default is not v}
    arguments = ", ".join(f"{k}={_short(v)}" for k, v in shown.items())
    return (PairListLoss if _ranks_pairs(cls) else SentenceTransformersLoss)(
        instance, conventions, f"{cls.__name__}({arguments})" if arguments else cls.__name__
    )


def _short(value: object) -> str:
    return type(value).__name__ + "()" if isinstance(value, torch.nn.Module) else repr(value)
