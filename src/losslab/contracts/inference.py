"""Which kind of loss it is, if nobody says: by what it declares, by its parameters' names, or by what it answers."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from losslab.contracts.model import (
    ContrastiveConventions,
    Conventions,
    MatryoshkaConventions,
    TokenConventions,
)
from losslab.contracts.subject import first_line, parameters_of
from losslab.contracts.watched import undisturbed, warnings_once

FORMS = {
    "listwise": "loss(logits (B, N), labels (B, N), mask (B, N) bool)",
    "contrastive": "loss(queries (B, d), documents (M, d))",
    "token": "loss(logits (B, T, V), labels (B, T))",
    "matryoshka": "wrap(base_loss, dims, weights=None)",
}
DECLARED = {
    Conventions: "listwise",
    ContrastiveConventions: "contrastive",
    TokenConventions: "token",
    MatryoshkaConventions: "matryoshka",
}

# What parameters are called, in lower case.
LOGITS = {"logits", "scores", "predictions", "preds", "outputs", "y_pred"}
LABELS = {"labels", "targets", "target", "relevance", "y_true", "input_ids", "token_ids", "tokens"}
MASK = {"mask", "document_mask", "documents_mask", "valid", "padding_mask"}
OF_TOKENS = {
    *("attention_mask", "num_items_in_batch", "num_items", "num_tokens", "total_tokens", "ignore_index", "vocab_size"),
    *("shift", "shift_labels", "input_ids", "token_ids"),
}
QUERIES = {"queries", "query", "q", "anchors", "anchor", "query_embeddings", "anchor_embeddings", "queries_embeddings"}
DOCUMENTS = {
    *("documents", "document", "docs", "d", "positives", "positive", "passages", "keys", "candidates"),
    *("document_embeddings", "positive_embeddings", "documents_embeddings"),
}


class NotALossError(ValueError):
    """What was named, or given, cannot be called as a loss; the message says what to do."""


@dataclass(frozen=True)
class Inferred:
    """A kind, and what it was inferred from, in words."""

    kind: str
    why: str

    def __str__(self) -> str:
        return f"kind: {self.kind}, inferred from {self.why}"


def infer(loss: Callable[..., Any], name: str, among: Sequence[str] = tuple(FORMS)) -> Inferred:
    """The kind of a loss that no adapter knows, one of those it may be.

    Raises
    ------
    NotALossError
        If it answers as no kind, or as several; the message says how to name the kind.
    """
    for conventions, kind in DECLARED.items():
        if isinstance(getattr(loss, "conventions", None), conventions):
            return Inferred(kind, "the conventions it declares")
    parameters = parameters_of(loss)
    names = [n for n, p in parameters.items() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    kinds = by_names(parameters)
    if len(kinds) == 1:
        return Inferred(kinds[0], f"its parameters ({', '.join(names[:3])}{', ...' if len(names) > 3 else ''})")
    kinds = [kind for kind in kinds or among if kind in among]
    if len(kinds) == 1:
        return Inferred(kinds[0], "what is asked of it: no other kind has such contracts, objective or conventions")
    kinds = [kind for kind in kinds if kind in PROBES]
    answers = {kind: answer(loss, kind) for kind in kinds or PROBES}
    for wanted in ("teaches", "answers"):
        found = [kind for kind, said in answers.items() if said == wanted]
        if len(found) == 1:
            return Inferred(found[0], f"what it answers: of {', '.join(answers)}, only {FORMS[found[0]]} runs")
        if len(found) == 2 and "token" in found:  # float labels, too: it only looks like the other
            return Inferred("token", f"what it answers: {FORMS['token']} runs, with whole numbers as labels")
        if found:
            break
    options = " or ".join(f"kind={kind!r}" for kind in found or FORMS)
    shell = f"--kind {(found or ['listwise'])[0]}"
    if found:
        raise NotALossError(
            f"the kind of {name} cannot be inferred: it answers as {' and as '.join(found)}; say which, {options} "
            f"({shell} in a shell)"
        )
    tried = "; ".join(f"as {FORMS[kind]} {said}" for kind, said in answers.items())
    raise NotALossError(
        f"the kind of {name} cannot be inferred: {tried}; if it is one of these all the same, say {options} ({shell} "
        "in a shell)"
    )


def by_names(parameters: Mapping[str, inspect.Parameter]) -> Sequence[str]:
    """The kinds that parameters of these names may be of; none if the names do not say."""
    names = [name.lower() for name in parameters]
    if "dims" in names:
        return ["matryoshka"]
    first, second, third = [*names, "", "", ""][:3]
    if first in QUERIES and second in DOCUMENTS:
        return ["contrastive"]
    if first in LOGITS and second in LABELS:
        if OF_TOKENS & set(names):
            return ["token"]
        if third in MASK:
            required = list(parameters.values())[2].default is inspect.Parameter.empty
            return ["listwise"] if required else ["listwise", "token"]
        needed = [p for p in parameters.values() if p.default is p.empty and p.kind is not p.VAR_POSITIONAL]
        if len(needed) <= 2:
            return ["token"]
    return []


def _lists() -> tuple[Tensor, ...]:
    logits = torch.tensor([[0.0, 1.0, 2.0, 0.0], [1.0, 0.5, -1.0, 2.0]])
    labels = torch.tensor([[2.0, 1.0, 0.0, 0.0], [0.0, 1.0, 3.0, 2.0]])
    return logits, labels, torch.tensor([[True, True, True, False], [True] * 4])


def _pairs() -> tuple[Tensor, ...]:
    return torch.tensor([[1.0, 0.5, -1.0], [0.0, 1.0, 2.0]]), torch.tensor([[0.5, 1.0, 0.0], [1.0, 1.0, -1.0]])


def _texts() -> tuple[Tensor, ...]:
    logits = torch.tensor([[[0.0, 1.0, 2.0, -1.0, 0.5], [1.0, 0.0, -1.0, 0.5, 2.0], [2.0, 1.0, 0.0, 0.5, -1.0]]])
    return logits.expand(2, 3, 5), torch.tensor([[0, 2, 1], [4, 3, 0]])


#: Tiny inputs of each form; no two of a rank and type that one loss would take for the other.
PROBES: dict[str, Callable[[], tuple[Tensor, ...]]] = {"listwise": _lists, "contrastive": _pairs, "token": _texts}


def answer(loss: Callable[..., Any], kind: str) -> str:
    """``"teaches"`` if it gives a value with a gradient, ``"answers"`` if any number, else what it does, in words."""
    if kind not in PROBES:
        return "is not tried"
    first, *others = PROBES[kind]()
    leaves = [x.detach().clone().requires_grad_() for x in (first, *others) if x.is_floating_point()][
        : 2 if kind == "contrastive" else 1
    ]
    rest = others[1:] if kind == "contrastive" else others
    with warnings_once(), undisturbed(), torch.enable_grad():
        try:
            value = loss(*(x.clone() for x in leaves), *rest)
        except (Exception, SystemExit) as error:
            return f"it raises {first_line(error)}"
        if isinstance(value, int | float):
            return "answers"
        if not isinstance(value, Tensor):
            return f"it returns {type(value).__name__}"
        with suppress(Exception):
            gradients = torch.autograd.grad(value.sum(), leaves, allow_unused=True)
            if value.numel() <= len(first) and any(g is not None and bool(g.any()) for g in gradients):
                return "teaches"
    return "answers" if value.numel() <= len(first) else f"it returns a tensor of shape {tuple(value.shape)}"
