"""Losses as people have them lying about: other names, other arguments, other ways to fail, and what is said of them."""

# ruff: noqa: ARG001  (losses that ignore what they are given)

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy, normalize

from losslab.contracts import check


def in_batch(queries, documents, temperature=0.05):
    scores = normalize(queries.float(), dim=1) @ normalize(documents.float(), dim=1).T / temperature
    return cross_entropy(scores, torch.arange(len(queries), device=queries.device))


def verdicts(report):
    return {result.contract: result.verdict for result in report.results}


# --- names and arguments


def to_positives(anchors, positives):
    return in_batch(anchors, positives)


def to_labels(queries, labels):
    return in_batch(queries, labels)


def to_negatives(hard_negatives, negatives):
    return in_batch(hard_negatives, negatives)


@pytest.mark.parametrize("loss", [to_positives, to_labels, to_negatives])
def test_what_the_two_embeddings_are_called_makes_them_no_options(loss):
    report = check(loss, "contrastive", against="info_nce", examples=5)
    assert report, str(report)
    assert not report.conventions.graded
    assert report["duplicates"].verdict == "exempt"


def masked(logits, labels, mask):
    padding = ~mask.bool()
    labels = labels.masked_fill(padding, -100)
    targets = labels[:, 1:].masked_fill(padding[:, :-1], -100)
    summed = cross_entropy(logits[:, :-1].float().flatten(0, 1), targets.flatten(), reduction="sum")
    return summed / (targets != -100).sum().clamp(min=1)


def attended(logits, labels, attention_mask):
    assert attention_mask.dtype == torch.int64
    return masked(logits, labels, attention_mask)


@pytest.mark.parametrize("loss", [masked, attended])
def test_a_mask_without_a_default_is_always_given(loss):
    report = check(loss, "token", examples=5)
    assert "error" not in verdicts(report).values(), str(report)
    assert report["shift"].verdict == "kept"
