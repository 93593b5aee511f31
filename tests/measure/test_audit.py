"""The audit finds what is installed and explains what is broken; committed rows come out again where that is cheap."""

import json
import sys
from collections import Counter
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from types import ModuleType

import pytest
import torch

from losslab.contracts import CONTRACTS, Counterexample, contracts_of
from losslab.measure import audit, read
from losslab.measure.audit_sentences import SENTENCES, UNDRIVEN, Sentence

for needed in ("sentence_transformers", "pytorch_metric_learning", "torchmetrics", "transformers"):
    pytest.importorskip(needed)

MEASURED = Path(__file__).parents[2] / "data" / "measured" / "audit.csv"
CE, ST = "sentence_transformers.cross_encoder.losses:", "sentence_transformers.sentence_transformer.losses:"
PML, HF = "pytorch_metric_learning.losses:", "transformers.loss.loss_utils:"


@pytest.fixture(scope="module")
def rows():
    return read(MEASURED)[0]


@pytest.fixture(scope="module")
def found():
    return audit.discover()


def test_every_installed_loss_has_its_rows(rows, found):
    assert {(row["library"], row["version"], row["loss"], row["kind"]) for row in rows} == {
        (one.library, one.version, one.name, one.kind) for one in found
    }
    for kind, contracts in ((kind, {contract.id for contract in contracts_of(kind)}) for kind in CONTRACTS):
        ways = {(one.name, options) for one in found if one.kind == kind for options in audit.options_of(one.name)}
        seen = Counter((row["loss"], row["options"], row["promise"]) for row in rows if row["kind"] == kind)
        assert seen == Counter((*way, promise) for way in ways for promise in contracts)
    undriven = Counter(row["loss"] for row in rows if not row["kind"])
    assert undriven == Counter(one.name for one in found if not one.kind)


def test_losses_that_must_be_driven_are(found):
    """Named once, so that a change of a package's layout does not quietly empty the audit."""
    kinds = {one.name: one.kind for one in found}
    for name in ("ListMLELoss", "PListMLELoss", "ListNetLoss", "RankNetLoss", "LambdaLoss", "ADRMSELoss"):
        assert kinds[CE + name] == "listwise"
    for name in ("MultipleNegativesRankingLoss", "CachedMultipleNegativesRankingLoss", "GISTEmbedLoss"):
        assert kinds[ST + name] == "contrastive"
    for name in ("NTXentLoss", "SupConLoss", "MultiSimilarityLoss", "TripletMarginLoss", "CircleLoss"):
        assert kinds[PML + name] == "contrastive"
    assert kinds[f"{ST}MatryoshkaLoss"] == "matryoshka"
    for name in (f"{HF}ForCausalLMLoss", f"{HF}ForMaskedLMLoss", "torch.nn.functional:cross_entropy"):
        assert kinds[name] == "token"
    assert kinds["torchmetrics.text:Perplexity"] == "token"
    assert kinds[f"{PML}ArcFaceLoss"] == ""


def test_a_loss_of_a_later_version_shows_up(monkeypatch):
    class LossOfTomorrow(torch.nn.Module):
        def forward(self, embeddings, labels):
            return embeddings.sum() + labels.sum()

    class SchemeOfTomorrow(torch.nn.Module):
        def forward(self, gain):
            return gain

    module = ModuleType("library_of_tomorrow")
    module.LossOfTomorrow, module.SchemeOfTomorrow = LossOfTomorrow, SchemeOfTomorrow
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(audit, "LIBRARIES", [("torch", lambda: [module], audit._is_embedding_loss)])
    (one,) = audit.discover()
    assert one.name == "library_of_tomorrow:LossOfTomorrow"
    (row,) = audit.rows_of(one)
    assert (row["verdict"], row["reason"]) == ("not driven", audit.UNEXPLAINED)


def test_nothing_committed_is_unexplained(rows):
    assert {row["verdict"] for row in rows} <= {
        "kept",
        "broken",
        "by design",
        "exempt",
        "unchecked",
        "error",
        "not driven",
    }
    for row in rows:
        assert audit.UNEXPLAINED not in row["reason"], row
        if row["verdict"] in ("broken", "by design", "error", "not driven", "exempt", "unchecked"):
            assert row["reason"], row
        if row["verdict"] in ("broken", "by design"):
            assert row["counterexample"], row
            assert json.loads(row["found"])["sentence"] in row["counterexample"], row


def test_a_broken_promise_without_a_sentence_is_unexplained():
    row = audit._row({"loss": f"{CE}ListMLELoss"}, promise="shift_invariance", verdict="broken")
    assert audit.explained(row)["reason"] == audit.UNEXPLAINED
    assert audit.explained(row)["verdict"] == "broken"
    kept = audit._row({"loss": f"{CE}ListMLELoss"}, promise="tie_order", verdict="kept", reason="a remark")
    assert audit.explained(kept) == kept


def test_a_sentence_tells_a_design_from_a_bug(monkeypatch):
    told = Sentence(("a:*",), ("one",), True, "It is meant so.", "No report found in a/b.")
    monkeypatch.setattr(audit, "SENTENCES", (told,))
    row = audit._row({"loss": "a:B"}, promise="one", verdict="broken")
    assert audit.explained(row) == row | {
        "verdict": "by design",
        "reason": "It is meant so.",
        "upstream": "No report found in a/b.",
    }
    failed = row | {"verdict": "error", "reason": "it raises"}
    assert audit.explained(failed)["verdict"] == "error"
    assert audit.explained(failed)["reason"] == "It is meant so. What was seen: it raises."
    monkeypatch.setattr(audit, "SENTENCES", (replace(told, design=False),))
    assert audit.explained(failed)["verdict"] == "broken"
    monkeypatch.setattr(audit, "SENTENCES", (told, told))
    with pytest.raises(ValueError, match="2 sentences are about one of a:B"):
        audit.explained(row)


def test_the_committed_rows_say_what_the_sentences_say(rows):
    for row in rows:
        if row["verdict"] == "not driven":
            assert row["reason"] == audit.why_undriven(row["loss"])
        elif row["verdict"] in ("broken", "by design", "error"):
            sentence = audit.sentence_on(row["loss"], row["promise"], row["options"])
            assert row["reason"].startswith(sentence.because)
            assert row["upstream"] == sentence.upstream
            assert row["verdict"] in (("by design", "error") if sentence.design else ("broken",))


def test_no_sentence_is_about_nothing(rows):
    """Neither a sentence, nor a loss or promise that one names."""
    told = [row for row in rows if row["verdict"] in ("broken", "by design", "error")]
    for sentence in SENTENCES:
        about = [row for row in told if sentence.about(row["loss"], row["promise"], row["options"])]
        for patterns, column in (
            (sentence.losses, "loss"),
            (sentence.promises, "promise"),
            (sentence.options, "options"),
        ):
            for pattern in patterns:
                assert any(fnmatchcase(row[column], pattern) for row in about), (pattern, sentence)


def test_no_reason_for_not_driving_is_about_nothing(found):
    undriven = [one.name for one in found if not one.kind]
    used = {next(pattern for pattern in UNDRIVEN if fnmatchcase(name, pattern)) for name in undriven}
    assert used == set(UNDRIVEN)


@pytest.mark.parametrize(
    ("name", "options", "promises"),
    [
        (f"{CE}ListMLELoss", "", ["padding_gradient", "extreme_logits"]),
        (f"{CE}ListNetLoss", "", ["short_lists"]),
        (f"{ST}MultipleNegativesRankingLoss", "", ["blind", "one_pair", "scale"]),
        (f"{ST}CachedGISTEmbedLoss", "margin=1e-06", ["duplicates"]),
        (f"{ST}GISTEmbedLoss", "", ["duplicates"]),
        (f"{PML}NTXentLoss", "", ["blind", "rows"]),
        (f"{PML}AngularLoss", "", ["scale"]),
        (f"{PML}HistogramLoss", "n_bins=21", ["one_pair"]),
        (f"{PML}SelfSupervisedLoss", "loss=NTXentLoss()", ["scale"]),
        ("torchmetrics.text:Perplexity", "", ["uniform", "underflow"]),
        (f"{HF}ForMaskedLMLoss", "", ["padding", "gradients"]),
        ("transformers.trainer_pt_utils:LabelSmoother", "epsilon=0.0", ["forbidden"]),
        ("torch.nn.functional:cross_entropy", "", ["uniform", "underflow"]),
    ],
)
def test_committed_rows_come_out_again(rows, found, name, options, promises):
    (one,) = (one for one in found if one.name == name)
    again = audit.rows_of(one, options, only=promises)
    assert len(again) == len(promises)
    for now in again:
        (before,) = (r for r in rows if (r["loss"], r["options"], r["promise"]) == (name, options, now["promise"]))
        assert (before["verdict"], before["reason"]) == (now["verdict"], now["reason"])


def test_options_are_read_as_they_are_written():
    read_ = audit.read_options(f"{CE}LambdaLoss", "k=3, sigma=1e-06, weighting_scheme=LambdaRankScheme(), name='x'")
    assert (read_["k"], read_["sigma"], read_["name"]) == (3, 1e-6, "x")
    assert type(read_["weighting_scheme"]).__name__ == "LambdaRankScheme"
    assert audit.read_options(f"{CE}LambdaLoss", "") == {}


def test_a_loss_that_cannot_be_made_says_why(found):
    (ranked,) = (one for one in found if one.name == f"{PML}RankedListLoss")
    (row,) = audit.rows_of(ranked, "")
    assert row["verdict"] == "not driven"
    assert "margin" in row["reason"]


def test_the_run_gives_every_loss_and_way_its_rows(monkeypatch, found):
    few = [one for one in found if one.name in (f"{HF}fixed_cross_entropy", f"{PML}ArcFaceLoss")]
    monkeypatch.setattr(audit, "discover", lambda: few)
    said = []
    got = list(audit.audit(said.append, workers=1))
    assert [row["promise"] for row in got if row["kind"] == "token"] == [c.id for c in contracts_of("token")]
    assert all(tuple(row) == audit.COLUMNS for row in got)
    assert len(said) == 2
    assert "1 not driven" in said[0]


def test_a_counterexample_is_shown_as_text():
    assert audit.shown(None) == ""
    assert audit.shown(Counterexample("It broke.")) == "It broke."
