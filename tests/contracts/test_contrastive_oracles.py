"""The slow contrastive loops against other sources: hand computation, torch's cross-entropy, finite differences."""

import math

import pytest
import torch

from losslab.contracts import ContrastiveConventions, Pairs, check, oracles

QUERIES = [[1.0, 0.5, -1.0], [0.2, -0.4, 2.0]]
DOCUMENTS = [[0.5, 1.0, 0.0], [1.0, -1.0, 0.3], [-0.7, 0.1, 1.0]]
CONVENTIONS = [
    ContrastiveConventions(0.5),
    ContrastiveConventions(0.3, normalize=False),
    ContrastiveConventions(0.2, symmetric=True),
]


def by_torch(queries, documents, conventions, positives=None, labels=None):
    """Values (B,), from torch's own functions in float64."""
    if conventions.normalize:
        queries, documents = (torch.nn.functional.normalize(x, dim=1) for x in (queries, documents))
    logits = queries @ documents.T / conventions.temperature
    if labels is not None:
        return torch.nn.functional.cross_entropy(logits, labels.softmax(1), reduction="none")
    if positives is not None:
        return logits.logsumexp(1) - logits.masked_fill(~positives, -torch.inf).logsumexp(1)
    values = torch.nn.functional.cross_entropy(logits, torch.arange(len(logits)), reduction="none")
    if conventions.symmetric:
        back = torch.nn.functional.cross_entropy(logits.T, torch.arange(len(logits)), reduction="none")
        values = (values + back) / 2
    return values


def agree(oracle, conventions, targets=None, documents=DOCUMENTS, **torch_targets):
    q, d = (torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in (QUERIES, documents))
    right = by_torch(q, d, conventions, **torch_targets)
    gradients = torch.autograd.grad(right.sum(), (q, d))
    values, *slow = oracle(QUERIES, documents, conventions, targets)
    assert values == pytest.approx(right.tolist(), rel=1e-13)
    for mine, theirs in zip(slow, gradients, strict=True):
        for row, other in zip(mine, theirs.tolist(), strict=True):
            assert row == pytest.approx(other, abs=1e-13)


@pytest.mark.parametrize("conventions", CONVENTIONS, ids=str)
def test_info_nce_is_torchs_cross_entropy(conventions):
    agree(oracles.info_nce, conventions, documents=DOCUMENTS[:2] if conventions.symmetric else DOCUMENTS)


def test_multiple_positives_and_graded_labels():
    positives = torch.tensor([[True, False, True], [False, True, False]])
    agree(oracles.info_nce, CONVENTIONS[0], positives.tolist(), positives=positives)
    labels = torch.tensor([[2.0, 0.0, 1.0], [0.0, 1.0, 1.0]], dtype=torch.float64)
    agree(oracles.graded_info_nce, CONVENTIONS[0], labels.tolist(), labels=labels)


def test_two_documents_by_hand():
    conventions = ContrastiveConventions(0.5)
    values, by_query, _ = oracles.info_nce([[2.0, 0.0]], [[0.6, 0.8], [3.0, 0.0]], conventions)
    assert values == pytest.approx([math.log1p(math.exp((1 - 0.6) / 0.5))], rel=1e-14)
    p = 1 / (1 + math.exp((1 - 0.6) / 0.5))  # the positive's share; along the query nothing, across it (p - 1) 0.8
    assert by_query[0] == pytest.approx([0.0, (p - 1) * 0.8 / 0.5 / 2], abs=1e-14)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_an_objective_is_reduced_as_declared(reduction):
    import numpy as np

    conventions = ContrastiveConventions(0.5, reduction=reduction)
    rows = oracles.info_nce(QUERIES, DOCUMENTS, conventions)[0]
    against = oracles.resolve_contrastive("info_nce")
    values, by_query, _ = against(Pairs(np.array(QUERIES), np.array(DOCUMENTS)), conventions, None)
    assert values == pytest.approx({"mean": [sum(rows) / 2], "sum": [sum(rows)], "none": rows}[reduction])
    whole = oracles.info_nce(QUERIES, DOCUMENTS, conventions)[1]
    assert by_query[0] == pytest.approx([g / (2 if reduction == "mean" else 1) for g in whole[0]])


def test_any_loss_can_be_the_objective():
    def mine(queries, documents):
        return by_torch(queries, documents, ContrastiveConventions()).mean()

    assert check(mine, "contrastive", against=mine, only=["objective"], examples=10)
    assert not check(lambda q, d: 2 * mine(q, d), "contrastive", against=mine, only=["objective"], examples=10)
