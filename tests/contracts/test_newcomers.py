"""Losses as people have them lying about: other names and arguments, other ways to fail, and what is said of them."""

# ruff: noqa: ARG001  (losses that ignore what they are given)

import time

import pytest
import torch
from torch.nn.functional import cross_entropy, normalize

from losslab.contracts import Contract, check
from losslab.contracts.named import NotALossError


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


def triplet(anchor, positive, negative):
    return in_batch(anchor, positive) + negative.sum()


def test_a_third_argument_that_nobody_gives_is_named_before_anything_is_checked():
    with pytest.raises(NotALossError, match=r"triplet needs a third argument, negative, .* \(queries, documents\)"):
        check(triplet, "contrastive")
    with pytest.raises(NotALossError, match=r"margined needs a third argument, margin, "):
        check(margined, "contrastive", only=["blind", "no_state"])
    with pytest.raises(NotALossError, match=r"other needs a third argument, weights, .*\(logits, labels\)"):
        check(other, "token")
    assert check(triplet, "contrastive", options={"negative": torch.zeros(2)}, only=["blind"], examples=3)


def margined(queries, documents, margin):
    return in_batch(queries, documents) + margin


def other(logits, labels, weights):
    return masked(logits, labels, weights)


# --- contracts of one's own, and arguments of the wrong type


def dividing(loss, draw):
    return 1 / 0


def test_a_contract_of_ones_own_that_raises_is_in_error_and_the_others_go_on():
    own = Contract("dividing", "it divides", "It divides.", dividing)
    report = check(in_batch, "contrastive", extra=[own], only=["dividing", "blind"], examples=3)
    assert verdicts(report) == {"blind": "kept", "dividing": "error"}
    said = "the body of the contract 'dividing' raised ZeroDivisionError: division by zero"
    assert report["dividing"].reason == said
    assert not report


@pytest.mark.parametrize(
    ("wrong", "error", "said"),
    [
        ({"extra": [3], "only": ["blind"]}, TypeError, "extra must hold Contracts, got 3"),
        ({"extra": dividing}, TypeError, "extra must be a list of Contracts, got <function dividing"),
        ({"extra": 3}, TypeError, "extra must be a list of Contracts, got 3"),
        ({"budget": "x"}, TypeError, "budget must be a number of seconds above 0, or None for no limit, got 'x'"),
        ({"budget": True}, TypeError, "budget must be a number of seconds"),
        ({"options": [1]}, TypeError, "options must name keywords with their values, .*got \\[1\\]"),
        ({"seed": 1.5}, TypeError, "seed must be a whole number, got 1.5"),
        ({"seed": True}, TypeError, "seed must be a whole number, got True"),
        ({"examples": 2.5}, TypeError, "examples must be a whole number, got 2.5"),
        ({"only": []}, ValueError, "only must name at least one contract, got \\[\\]"),
        ({"only": 3}, TypeError, "only must hold ids of contracts, got 3"),
    ],
)
def test_an_argument_of_the_wrong_type_is_named(wrong, error, said):
    with pytest.raises(error, match=said):
        check(in_batch, "contrastive", **wrong)


# --- hints


def square(queries, documents):
    scores = queries @ documents.T
    return (scores - scores.T).square().mean() + in_batch(queries, documents)


def as_float(queries, documents):
    return in_batch(queries, documents).item()


def one_too_few(queries, documents):
    if len(queries) < 2:
        raise ValueError("the size of a batch must be 2 at least")
    return in_batch(queries, documents)


@pytest.mark.parametrize(("loss", "helps"), [(square, True), (as_float, False), (one_too_few, False)])
def test_more_documents_are_blamed_only_for_an_error_about_shapes(loss, helps):
    report = check(loss, "contrastive", examples=10)
    reasons = [result.reason for result in report.results if result.verdict == "error"]
    assert reasons
    assert any("more_documents=False" in reason for reason in reasons) is helps


# --- what was not tried


def test_what_the_budget_left_untried_does_not_count_as_kept():
    def slow(queries, documents):
        time.sleep(0.2)
        return in_batch(queries, documents)

    report = check(slow, "contrastive", budget=0.5)
    assert report.untried
    assert not report.broken
    assert not report
    assert f"({len(report.untried)} never tried: the budget was too small)" in report.summary
    assert check(in_batch, "contrastive", only=["blind"], examples=3)


def test_a_narrow_page_stacks_its_rows():
    page = check(in_batch, "contrastive", only=["blind"], examples=3).to_html()
    assert page.count("@media(max-width:600px)") == 1


# --- what else is said


def remembering():
    seen = []

    def loss(queries, documents):
        seen.append(1)
        return in_batch(queries, documents) * (1 + 0.1 * len(seen))

    return loss


def test_a_loss_with_state_is_remarked_on_above_all_rows():
    report = check(remembering(), "contrastive", only=["no_state", "blind"], examples=3)
    said = "a call leaves something behind (no_state)"
    assert said in " ".join(report.notes)
    assert said not in " ".join(check(in_batch, "contrastive", only=["no_state"], examples=3).notes)


def test_the_code_of_a_lambda_keeps_its_imports_apart():
    report = check(lambda queries, documents: in_batch(queries, documents) + 1, "contrastive", only=["blind"])
    assert "import torch\n\nloss = my_loss" in report["blind"].counterexample.code()


def in_its_format(queries, documents):
    scores = normalize(queries, dim=1) @ normalize(documents, dim=1).T / 0.05
    return cross_entropy(scores, torch.arange(len(queries), device=queries.device))


def wrong_in_all(queries, documents):
    return in_batch(queries.bfloat16().float() if queries.dtype != torch.float64 else queries, documents)


def test_half_precision_alone_is_told_from_float32_being_wrong_too():
    said = "float32 is right: only half precision is computed in itself; compute in float32"
    report = check(in_its_format, "contrastive", only=["precision"])
    assert report.broken == ("precision",)
    assert report["precision"].reason.startswith(said)
    report = check(wrong_in_all, "contrastive", only=["precision"])
    assert report.broken == ("precision",)
    assert said not in report["precision"].reason


def test_the_code_prints_the_gradient_that_is_named():
    def dot_products(queries, documents, tau=0.1):
        return cross_entropy(queries @ documents.T / tau, torch.arange(len(queries)))

    found = check(dot_products, "contrastive", only=["scale"])["scale"].counterexample
    assert any(q.name == "gradient of query 1" for q in found.quantities)
    assert 'print("gradient of query 1:", queries.grad[0].tolist()' in found.code()
