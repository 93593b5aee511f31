"""Every contrastive contract goes red on a loss with just that fault, on a small input; right losses do not."""

import functools
import math

import numpy as np
import pytest
import torch

import planted_contrastive as planted
from losslab import mistakes
from losslab.contracts import CONTRACTS, ContrastiveConventions, Pairs, check, parametrize_with_contracts
from losslab.contracts.contrastive.values import by_score, with_scores

# What the fault breaks, all of it and nothing else. Where more than one contract is named, each sees the same thing
# from its own side: what is paid for guessing is also what a hot loss goes to, and what a further document adds to.
BREAKS = {
    "guessing costs nothing": {"blind", "more_negatives", "duplicates", "hard_negatives", "temperature_limits"},
    "one more": {"blind", "one_pair", "temperature_limits"},
    "learned rows dropped": {"rows", "more_negatives", "temperature_limits", "extremes"},
    "last row dropped": {"rows", "row_permutation", "duplicates", "hard_negatives", "temperature_limits"},
    "not normalised": {"scale", "temperature_limits"},
    "limited": {"score_gradients", "temperature_limits"},
    "mask ignored": {"duplicates"},
    "padding counts": {"hard_negatives"},
    "offset ignored": {"positive_offset"},
    "rows twice": {"symmetry"},
    "temperature ignored": {"temperature_limits"},
    "chunks alone": {"chunked"},
    "plain exponentials": {"temperature_limits", "extremes"},
    "native half": {"extremes", "precision"},
    "cpu targets": {"device"},
}
# Seen on some inputs only, and rightly: dot products of long embeddings are known less well than cosines are, and a
# row may be learned in float32 that is not in float64.
SOMETIMES = {"not normalised": {"precision", "extremes"}, "learned rows dropped": {"precision"}}
# The promises of every kind, and a built mistake with the right value but for what it does besides.
BAD_MANNERS = {
    "inputs_unchanged": "infonce_normalises_in_place",
    "no_state": "infonce_lengths_kept",
    "random_state": "infonce_reseeds",
    "settings": "infonce_gradients_on",
}
# What changes from call to call is seen by whatever asks twice: such a mistake breaks more than its own promise.
SEEN_ELSEWHERE = {"no_state"}


def test_every_contract_has_a_fault_planted():
    planted_for = set.union(*BREAKS.values()) | BAD_MANNERS.keys()
    assert planted_for == {contract.id for contract in CONTRACTS["contrastive"]} - {"objective"}


@pytest.fixture(scope="module")
def reports():
    """One report a fault, made when first asked for."""
    return functools.cache(lambda fault: check(planted.with_fault(fault), "contrastive", examples=15))


@pytest.mark.parametrize("fault", BREAKS)
def test_a_fault_breaks_just_its_contracts(reports, fault):
    report = reports(fault)
    assert set(report.broken) - SOMETIMES.get(fault, set()) == BREAKS[fault], str(report)
    assert not report
    assert all(result.verdict in ("kept", "broken") for result in report.results), str(report)


@pytest.mark.parametrize("contract", BAD_MANNERS)
def test_bad_manners_break_their_promise(contract):
    wrong = mistakes.get(BAD_MANNERS[contract]).wrong
    report = check(wrong, "contrastive", examples=15, only=[contract] if contract in SEEN_ELSEWHERE else None)
    assert report.broken == (contract,), str(report)
    assert len(str(report[contract].counterexample)) < 900, str(report)


def test_objective_goes_red_where_only_the_weights_are_off():
    report = check(planted.with_fault("weights off"), "contrastive", against="info_nce", only=["objective"])
    assert report.broken == ("objective",), str(report)
    counterexample = report["objective"].counterexample
    assert counterexample.direction == "kept"
    assert counterexample.factor == pytest.approx(1.001, abs=1e-4)


RIGHT = {
    "as it is": planted.info_nce,
    "no keywords": planted.plain,
    "summed, both directions": functools.partial(planted.info_nce, reduction="sum", symmetric=True),
    "dot products, one value a query": functools.partial(
        planted.info_nce, normalize=False, temperature=1.0, reduction="none"
    ),
}


@parametrize_with_contracts(RIGHT.values(), "contrastive", seeds=range(2), against="info_nce", examples=12)
def test_right_losses_are_never_flagged(loss, contract):
    contract(loss)


def counterexample_of(reports, fault, contract):
    return reports(fault)[contract].counterexample


def test_a_blind_model_shrinks_to_as_few_documents_as_show_it(reports):
    counterexample = counterexample_of(reports, "guessing costs nothing", "blind")
    assert counterexample.pairs.documents.tolist() == [[1, 0], [1, 0]]
    assert counterexample.pairs.queries.tolist() == [[1, 0]]
    (value,) = counterexample.quantities
    assert value.got == pytest.approx(0, abs=1e-6)
    assert value.should == pytest.approx(math.log(2), rel=1e-12)
    assert counterexample.setting == {"should be": "ln 2"}


def test_one_pair_names_what_is_paid(reports):
    counterexample = counterexample_of(reports, "one more", "one_pair")
    assert counterexample.sentence == "One pair alone has nothing to tell its positive from. The gradients are right."
    assert counterexample.quantities[0].got == pytest.approx(math.log(2), rel=1e-6)
    assert counterexample.quantities[0].should == 0


def test_relational_contracts_say_as_before(reports):
    counterexample = counterexample_of(reports, "not normalised", "scale")
    text = str(counterexample)
    assert "as before" in text
    assert "should be" not in text
    assert "before: queries [" in text
    assert counterexample.sentence.startswith("With all ")
    assert max(counterexample.pairs.queries.shape) <= 3


def test_a_fall_is_told_as_at_least(reports):
    counterexample = counterexample_of(reports, "guessing costs nothing", "more_negatives")
    assert counterexample.sentence == "One further document lowers the loss."
    (value,) = counterexample.quantities
    assert value.got < value.should
    assert counterexample.lines()[-1][0] == "at least"


def test_unbalanced_scores_are_shown_with_their_gradients(reports):
    counterexample = counterexample_of(reports, "limited", "score_gradients")
    assert "do not sum to 0" in counterexample.sentence
    assert counterexample.setting.keys() == {"scores", "their gradients"}
    assert counterexample.quantities[0].should == 0
    assert abs(counterexample.quantities[0].got) > 1e-3


def test_padding_is_shown_as_padding(reports):
    counterexample = counterexample_of(reports, "padding counts", "hard_negatives")
    assert counterexample.sentence.startswith("Padding among the hard negatives is not without effect.")
    assert any("padding [" in text for _, text in counterexample.lines())
    assert counterexample.to_dict()["pairs"]["hard_mask"]


def test_device_names_operation_file_and_line(reports):
    sentence = counterexample_of(reports, "cpu targets", "device").sentence
    assert "gets tensors on cuda:0 and on cpu in planted_contrastive.py, line " in sentence


def test_a_copy_is_masked_by_the_keyword_or_by_the_loss_itself():
    def sees_copies(queries, documents):
        copies = (documents[: len(queries), None] == documents[None]).all(-1).fill_diagonal_(False)
        return planted.info_nce(queries, documents, negatives=~copies)

    assert check(planted.plain, "contrastive", only=["duplicates"])["duplicates"].verdict == "exempt"
    assert "(2 / B) ln 2" in check(planted.plain, "contrastive", only=["duplicates"])["duplicates"].reason
    broken = check(planted.plain, "contrastive", only=["duplicates"], duplicates="masked")
    assert broken.broken == ("duplicates",)
    assert broken["duplicates"].counterexample.quantities[0].got == pytest.approx(math.log(2), rel=1e-6)
    masked = check(sees_copies, "contrastive", only=["duplicates", "blind"], duplicates="masked", examples=20)
    assert [result.verdict for result in masked.results] == ["kept", "kept"]


def test_the_floor_of_two_equal_pairs_is_what_the_exemption_says():
    for b in (2, 4, 7):
        rows = torch.eye(b)
        rows[1] = rows[0]
        assert planted.plain(rows, rows).item() == pytest.approx(2 / b * math.log(2), abs=1e-6)


def test_scores_set_one_by_one_are_the_scores_and_their_gradients_are_read_back():
    scores = np.array([[0.5, -0.25, 0.0], [0.25, 0.5, -0.5]])
    pairs = with_scores(scores)
    assert pairs.queries @ pairs.documents.T == pytest.approx(scores)
    assert np.linalg.norm(pairs.documents, axis=1) == pytest.approx(np.ones(3))
    leaf = torch.tensor(scores, requires_grad=True)
    torch.nn.functional.cross_entropy(leaf / 0.05, torch.arange(2)).backward()
    for normalize in (True, False):
        documents = torch.tensor(pairs.documents, requires_grad=True)
        planted.info_nce(torch.tensor(pairs.queries), documents, normalize=normalize).backward()
        assert by_score(documents.grad.numpy(), scores) == pytest.approx(leaf.grad.numpy(), abs=1e-12)


def test_a_negative_that_is_pulled_is_named():
    def wrong_way(queries, documents):
        return planted.plain(queries, documents[torch.arange(len(documents)).flip(0)])

    counterexample = check(wrong_way, "contrastive", only=["score_gradients"])["score_gradients"].counterexample
    assert counterexample.sentence == "Document 2, a negative of query 1, is pulled towards it."


def declared(loss, **given):
    return check(loss, "contrastive", only=["device"], **given).conventions


def test_conventions_are_read_from_signature_partial_and_module_and_overruled():
    class Module(torch.nn.Module):
        temperature = 0.2
        scale = torch.nn.Parameter(torch.ones(()))

        def forward(self, queries, documents):
            return planted.info_nce(queries, documents, temperature=self.temperature)

    assert declared(planted.plain) == ContrastiveConventions()
    assert declared(planted.info_nce) == ContrastiveConventions()
    both = functools.partial(planted.info_nce, symmetric=True, temperature=0.1)
    assert declared(both) == ContrastiveConventions(0.1, symmetric=True, more_documents=False)
    assert declared(both, temperature=0.3).temperature == 0.3
    assert declared(Module()).temperature == 0.2
    assert declared(planted.plain, reduction="mean", normalize=False).normalize is False


def test_conventions_show_in_the_report_and_exempt():
    report = check(planted.plain, "contrastive", normalize=False, only=["scale", "device"])
    assert "not normalised" in str(report)
    assert "declared normalize=False: scores are dot products" in report["scale"].reason
    assert report.to_dict()["conventions"]["normalize"] is False
    assert ContrastiveConventions(symmetric=True).more_documents is False


def test_wrong_conventions_are_named():
    with pytest.raises(ValueError, match="temperature must be a finite number above 0, got 0"):
        check(planted.plain, "contrastive", temperature=0)
    with pytest.raises(TypeError, match="normalize must be True or False, got 1"):
        ContrastiveConventions(normalize=1)
    with pytest.raises(ValueError, match="duplicates must be one of negatives, masked, got 'kept'"):
        ContrastiveConventions(duplicates="kept")
    with pytest.raises(TypeError, match="unknown convention, 'order'; a contrastive loss has temperature, normalize"):
        check(planted.plain, "contrastive", order="given")
    with pytest.raises(ValueError, match=r"against must be a callable or one of info_nce, .*got 'list_mle'"):
        check(planted.plain, "contrastive", against="list_mle")


def test_a_loss_that_cannot_be_judged_is_in_error_once():
    report = check(lambda queries, documents: (queries @ documents.T).sum(1), "contrastive", only=["blind", "one_pair"])
    assert [result.verdict for result in report.results] == ["error", "error"]
    assert report["blind"].reason == "it returns a tensor of shape (1,), not a scalar (or declare reduction='none')"
    assert "as for blind" in str(report)
    detached = check(lambda q, d: planted.plain(q, d).detach(), "contrastive", only=["blind"])
    assert detached["blind"].reason == "its value is detached from the embeddings: there is no gradient"


def test_text_and_html_of_a_report(reports):
    report = reports("padding counts")
    text, html = str(report), report._repr_html_()
    assert text.isascii()
    assert max(map(len, text.splitlines())) <= 80
    assert "went in    queries [" in text
    assert 'data-contract="hard_negatives" data-verdict="broken"' in html
    assert "hard negatives of query 1" in html


def test_pairs_are_shown_short():
    many = Pairs(np.ones((1, 2)), np.arange(40.0).reshape(20, 2))
    assert "... 14 more ..." in many.lines()[1]
    assert many.to_dict()["documents"][0] == [0, 1]


@pytest.mark.parametrize("seed", range(2))
def test_the_same_seed_gives_the_same_report(seed):
    first, second = (
        check(planted.with_fault("limited"), "contrastive", seed=seed, only=["score_gradients", "temperature_limits"])
        for _ in range(2)
    )
    assert first.to_dict() == second.to_dict()


@pytest.mark.timing
def test_a_whole_check_takes_seconds():
    import time

    start = time.process_time()
    assert check(planted.info_nce, "contrastive", against="info_nce")
    assert time.process_time() - start < 10
