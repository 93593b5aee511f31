"""The installed contrastive losses of two libraries under the contracts: what they keep, and where they break."""

import json
import math

import pytest
import torch

from losslab import cli
from losslab.contracts import ContrastiveConventions, check, oracles
from losslab.contracts.adapters import contrastive_library_loss, is_contrastive_library_loss

library = pytest.importorskip("sentence_transformers.sentence_transformer.losses")
metric = pytest.importorskip("pytorch_metric_learning.losses")
NAME = "sentence_transformers.sentence_transformer.losses:"


def verdicts(report):
    return {result.contract: result.verdict for result in report.results}


def test_multiple_negatives_ranking_is_info_nce():
    report = check(NAME + "MultipleNegativesRankingLoss", "contrastive", against="info_nce", examples=12)
    assert report, str(report)
    assert report.loss == "MultipleNegativesRankingLoss"
    assert report.conventions == ContrastiveConventions(0.05)
    exempt = {contract for contract, verdict in verdicts(report).items() if verdict == "exempt"}
    assert exempt == {"duplicates", "hard_negatives", "positive_offset", "symmetry", "chunked"}


def test_both_directions_are_declared_and_kept():
    options = {"directions": ("query_to_doc", "doc_to_query"), "partition_mode": "per_direction", "scale": 10.0}
    loss = contrastive_library_loss(library.MultipleNegativesRankingLoss, **options)
    assert loss.conventions == ContrastiveConventions(0.1, symmetric=True)
    report = check(loss, "contrastive", against="info_nce", only=["symmetry", "objective", "blind"], examples=12)
    assert report, str(report)
    assert set(verdicts(report).values()) == {"kept"}


def test_the_cached_loss_is_the_plain_one_in_any_chunks():
    only = ["blind", "one_pair", "row_permutation", "chunked", "precision", "objective"]
    report = check(
        library.CachedMultipleNegativesRankingLoss, "contrastive", against="info_nce", only=only, examples=12
    )
    assert report, str(report)
    assert set(verdicts(report).values()) == {"kept"}
    queries, documents = torch.randn(4, 3).double().requires_grad_(), torch.randn(6, 3).double().requires_grad_()
    plain = contrastive_library_loss(library.MultipleNegativesRankingLoss)
    cached = contrastive_library_loss(library.CachedMultipleNegativesRankingLoss)
    right = torch.autograd.grad(plain(queries, documents), (queries, documents))
    for size in (1, 2, 3, 4):
        gradients = torch.autograd.grad(3 * cached(queries, documents, chunk_size=size), (queries, documents))
        for got, want in zip(gradients, right, strict=True):
            assert torch.allclose(got, 3 * want, rtol=0, atol=1e-13)


def test_a_guide_without_a_margin_lets_exact_copies_through():
    broken = check(library.GISTEmbedLoss, "contrastive", only=["duplicates", "row_permutation", "scale"], examples=15)
    assert broken.broken == ("duplicates",), str(broken)
    assert broken.conventions.duplicates == "masked"
    assert broken.conventions.within
    (value,) = broken["duplicates"].counterexample.quantities
    assert value.got == pytest.approx(math.log(2), rel=1e-5)
    assert value.should == pytest.approx(0, abs=1e-5)


def test_a_guide_with_a_margin_and_documents_alone_is_info_nce_without_copies():
    options = {"margin": 1e-6, "contrast_anchors": False, "contrast_positives": False}
    loss = contrastive_library_loss(library.GISTEmbedLoss, **options)
    assert loss.conventions == ContrastiveConventions(0.01, duplicates="masked")
    only = ["blind", "one_pair", "rows", "score_gradients", "duplicates", "temperature_limits", "objective"]
    report = check(loss, "contrastive", against="info_nce", only=only, examples=12)
    assert report, str(report)
    assert set(verdicts(report).values()) == {"kept"}


def test_nt_xent_saturates_and_takes_a_single_pair_for_none():
    only = ["blind", "one_pair", "rows", "row_permutation", "scale", "temperature_limits", "objective"]
    report = check(metric.NTXentLoss, "contrastive", against="info_nce", only=only, examples=30)
    assert report.broken == ("blind", "temperature_limits", "objective"), str(report)
    single = report["blind"].counterexample
    assert single.pairs.documents.shape == (2, 2)
    assert single.quantities[0].got == 0
    saturated = report["temperature_limits"].counterexample
    (value,) = saturated.quantities
    assert value.got < value.should - 10
    # Each query pays what it should or, at most, the logarithm of the smallest float.
    largest = -math.log(torch.finfo(torch.float32).tiny)
    assert value.got <= largest + 1e-3


def test_sup_con_leaves_learned_rows_out_of_its_mean():
    only = ["row_permutation", "rows", "scale", "one_pair"]
    report = check(metric.SupConLoss, "contrastive", only=only, examples=30)
    assert report.broken == ("rows",), str(report)
    counterexample = report["rows"].counterexample
    assert counterexample.factor == pytest.approx(len(counterexample.pairs.queries), rel=0.01)


def test_where_nothing_saturates_all_of_them_are_info_nce():
    generator = torch.Generator().manual_seed(0)
    queries, documents = (torch.randn(n, 5, generator=generator).double() for n in (4, 6))
    for cls in (library.MultipleNegativesRankingLoss, metric.NTXentLoss, metric.SupConLoss):
        loss = contrastive_library_loss(cls)
        right = oracles.info_nce(queries.tolist(), documents.tolist(), ContrastiveConventions(0.5))[0]
        assert loss(queries, documents, temperature=0.5).item() == pytest.approx(sum(right) / 4, rel=1e-12)
        assert loss.library_loss is not None


def test_instances_keep_their_model_and_options():
    instance = metric.NTXentLoss(temperature=0.3)
    loss = contrastive_library_loss(instance)
    loss(torch.randn(2, 3), torch.randn(3, 3), temperature=0.1)
    assert instance.temperature == 0.3
    assert loss.conventions.temperature == pytest.approx(0.3)
    plain = library.MultipleNegativesRankingLoss(torch.nn.Identity(), scale=5.0)
    wrapped = contrastive_library_loss(plain)
    wrapped(torch.randn(2, 3), torch.randn(3, 3), temperature=0.1)
    assert isinstance(plain.model, torch.nn.Identity)
    assert plain.scale == 5.0
    for given in (instance, plain):
        with pytest.raises(TypeError, match="options are for a class"):
            contrastive_library_loss(given, temperature=0.1)
    with pytest.raises(TypeError, match="GISTEmbedLoss has no option scale"):
        contrastive_library_loss(library.GISTEmbedLoss, scale=3)


def test_only_the_losses_named_are_taken():
    assert is_contrastive_library_loss(metric.SupConLoss)
    assert not is_contrastive_library_loss(metric.ArcFaceLoss)
    assert not is_contrastive_library_loss(torch.nn.CrossEntropyLoss())
    with pytest.raises(TypeError, match=r"must be one of sentence-transformers' MultipleNegatives.*CrossEntropyLoss"):
        contrastive_library_loss(torch.nn.CrossEntropyLoss)


def test_the_command_drives_them(capsys):
    arguments = ["check", "pytorch_metric_learning.losses:NTXentLoss", "--kind", "contrastive", "--only", "blind"]
    assert cli.main(arguments) == 1
    assert "BROKEN     blind" in capsys.readouterr().out
    arguments = ["check", NAME + "MultipleNegativesRankingLoss", "--kind", "contrastive", "--set", "scale=5"]
    assert cli.main([*arguments, "--only", "one_pair", "--json", "--declare", "duplicates=masked"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["loss"] == "MultipleNegativesRankingLoss(scale=5)"
    assert report["conventions"]["temperature"] == 0.2
    assert report["conventions"]["duplicates"] == "masked"
