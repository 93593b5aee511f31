"""The installed list losses of sentence-transformers under the contracts: what they keep, and where they break."""

import pytest
import torch

from losslab.contracts import Conventions, check, oracles
from losslab.contracts.adapters import (
    FixedLogits,
    callable_loss,
    is_sentence_transformers_loss,
    sentence_transformers_loss,
)

losses = pytest.importorskip("sentence_transformers.cross_encoder.losses")


@pytest.mark.parametrize(("cls", "objective"), [("ListMLELoss", "list_mle"), ("PListMLELoss", "p_list_mle")])
def test_respecting_the_input_order_they_keep_everything(cls, objective):
    report = check(sentence_transformers_loss(getattr(losses, cls)), against=objective, examples=30)
    verdicts = {result.contract: result.verdict for result in report.results}
    assert report, str(report)
    assert {contract for contract, verdict in verdicts.items() if verdict == "exempt"} == {"permutation", "tie_order"}
    assert "unchecked" not in verdicts.values()
    assert report["precision"].reason.startswith("given float64 it answers in float32")


@pytest.mark.parametrize("cls", ["ListMLELoss", "PListMLELoss"])
def test_sorting_by_labels_they_break_ties_anew_beside_seventeen_documents(cls):
    loss = sentence_transformers_loss(getattr(losses, cls), respect_input_order=False)
    report = check(loss, only=["padding_invariance", "batch_invariance", "permutation", "tie_order"])
    assert report.broken == ("padding_invariance", "tie_order"), str(report)
    for contract in report.broken:
        counterexample = report[contract].counterexample
        assert counterexample.setting["beside it"].startswith("a list of 17 documents")
        assert len(counterexample.queries[0]) == 2
        assert len(set(counterexample.queries[0].labels)) == 1
        assert counterexample.direction == "changed"


def test_the_published_tie_example_flips_between_sixteen_and_seventeen():
    loss = sentence_transformers_loss(losses.ListMLELoss, respect_input_order=False)
    logits, labels = [0.2, 1.0, -1.0], [0.0, 1.0, 0.0]
    stable, _ = oracles.list_mle(logits, labels)
    swapped, _ = oracles.list_mle([0.2, 1.0, -1.0], [0.0, 2.0, 1.0])
    for width, right in ((3, stable), (16, stable), (17, swapped)):
        filler = [0.0] * width
        batch = torch.zeros(2, width)
        batch[0, :3] = torch.tensor(logits)
        relevance = torch.ones(2, width)
        relevance[0, :3] = torch.tensor(labels)
        mask = torch.ones(2, width, dtype=torch.bool)
        mask[0, 3:] = False
        value = 2 * loss(batch, relevance, mask).item() - oracles.list_mle(filler, filler)[0]
        assert value == pytest.approx(right, abs=2e-5)


@pytest.mark.parametrize(
    ("cls", "options"),
    [
        ("RankNetLoss", {}),
        ("LambdaLoss", {}),
        ("LambdaLoss", {"weighting_scheme": "NDCGLoss2Scheme"}),
        ("LambdaLoss", {"weighting_scheme": "LambdaRankScheme"}),
        ("LambdaLoss", {"weighting_scheme": "NDCGLoss1Scheme"}),
        ("ADRMSELoss", {}),
    ],
)
def test_pairwise_losses_keep_the_direction_and_lose_the_weight(cls, options):
    options = {name: getattr(losses, scheme)() for name, scheme in options.items()}
    loss = sentence_transformers_loss(getattr(losses, cls), **options)
    report = check(loss, only=["padding_invariance", "batch_invariance", "permutation"], examples=30)
    assert report.broken == ("batch_invariance",), str(report)
    counterexample = report["batch_invariance"].counterexample
    assert counterexample.direction == "kept"
    assert counterexample.cosine == pytest.approx(1, abs=1e-5)
    assert abs(counterexample.factor - 1) > 0.05
    assert [len(query) for query in counterexample.queries] == [2, 3]


def test_ranknet_weighs_a_query_by_its_pairs():
    report = check(sentence_transformers_loss(losses.RankNetLoss), only=["batch_invariance"])
    # One pair beside three: a quarter of the batch, where it should be half.
    assert report["batch_invariance"].counterexample.factor == pytest.approx(0.5, rel=1e-5)


def test_lambda_loss_changes_with_tied_logits_beside_seventeen_documents():
    report = check(sentence_transformers_loss(losses.LambdaLoss), only=["tie_order"])
    counterexample = report["tie_order"].counterexample
    assert counterexample.setting["beside it"].startswith("a list of 17 documents")
    (query,) = counterexample.queries
    assert len(set(query.logits)) < len(query)


def test_list_net_is_list_net_but_for_empty_lists():
    loss = sentence_transformers_loss(losses.ListNetLoss)
    report = check(loss, against="list_net", examples=30)
    assert report.broken == ("short_lists",), str(report)
    assert len(report["short_lists"].counterexample.queries[1]) == 0


def test_fixed_logits_are_differentiated_through_the_real_class():
    logits = torch.tensor([[1.5, 0.3, torch.nan], [0.0, 0.0, 0.0]], requires_grad=True)
    labels = torch.tensor([[2.0, 1.0, torch.nan], [1.0, 1.0, 1.0]])
    mask = torch.tensor([[True, True, False], [True, True, True]])
    loss = sentence_transformers_loss(losses.ListMLELoss)
    loss(logits, labels, mask).backward()
    right = [oracles.list_mle(*rows)[1] for rows in (([1.5, 0.3], [2, 1]), ([0, 0, 0], [1, 1, 1]))]
    assert logits.grad[0].tolist() == pytest.approx([right[0][0] / 2, right[0][1] / 2, 0.0], abs=1e-6)
    assert logits.grad[1].tolist() == pytest.approx([g / 2 for g in right[1]], abs=1e-6)


def test_an_instance_keeps_its_model_and_options():
    model = FixedLogits(torch.zeros(3))
    instance = losses.ListMLELoss(model, respect_input_order=False)
    loss = sentence_transformers_loss(instance)
    loss(torch.zeros(1, 2), torch.tensor([[1.0, 0.0]]))
    assert instance.model is model
    assert loss.conventions.order == "labels"
    with pytest.raises(TypeError, match="options are for a class"):
        sentence_transformers_loss(instance, respect_input_order=True)


def test_conventions_are_attached():
    def declared(cls, **options):
        return sentence_transformers_loss(cls, **options).conventions

    assert declared(losses.ListMLELoss) == Conventions(order="given", count_short_lists=True)
    assert declared(losses.PListMLELoss, respect_input_order=False) == Conventions(count_short_lists=True)
    assert declared(losses.ListNetLoss) == Conventions(count_short_lists=True)
    assert declared(losses.RankNetLoss) == Conventions()
    assert declared(losses.LambdaLoss) == Conventions()
    assert sentence_transformers_loss(losses.LambdaLoss, k=5).name == "LambdaLoss(k=5)"


def test_only_the_librarys_losses_are_taken():
    assert is_sentence_transformers_loss(losses.RankNetLoss)
    assert not is_sentence_transformers_loss(torch.nn.CrossEntropyLoss)
    assert not is_sentence_transformers_loss(losses.BinaryCrossEntropyLoss)  # of the library, but takes no lists
    with pytest.raises(TypeError, match=r"must be one of sentence-transformers' ListMLELoss, .*CrossEntropyLoss"):
        sentence_transformers_loss(torch.nn.CrossEntropyLoss)


def test_a_class_is_adapted_by_check_itself():
    report = check(losses.ListNetLoss, only=["shift_invariance"], examples=10)
    assert report
    assert report.loss == "ListNetLoss"


def test_callable_loss_declares_conventions_and_a_name():
    loss = callable_loss(lambda z, y, m: z.sum(), order="given", reduction="sum", name="mine")  # noqa: ARG005
    assert loss.conventions == Conventions(order="given", reduction="sum")
    assert loss.name == "mine"
    assert callable_loss(torch.nn.Identity()).name == "Identity"
    with pytest.raises(TypeError, match="must be callable, got int"):
        callable_loss(3)
