"""Every token contract goes red on a loss with just that fault, on a small input; right losses do not."""

import functools
import json
import math

import numpy as np
import pytest
import torch

import planted_token as planted
from losslab import mistakes
from losslab.contracts import CONTRACTS, Texts, TokenConventions, check, parametrize_with_contracts
from losslab.contracts.token.subject import TokenSubject, costs, targets

# What the fault breaks. Where a fault makes single costs wrong, every contract that knows a cost beforehand sees it.
BREAKS = {
    "no shift": {
        *("shift", "padding_side", "ignored", "batching", "accumulation", "no_target"),
        *("underflow", "forbidden", "gradients", "extremes"),
    },
    "guessing is free": {"uniform", "underflow", "extremes"},
    "bits": {"uniform", "base"},
    "quiet": {"uniform", "base", "row_shift", "underflow", "gradients", "extremes"},
    "width": {"padding", "ignored", "batching", "accumulation", "no_target", "gradients"},
    "right padding assumed": {"padding_side"},
    "ignored not known": {"ignored"},
    "mask ignored": {"mask", "padding_side"},
    "mean of texts": {"batching", "accumulation", "gradients"},
    "number ignored": {"accumulation"},
    "no target is 0": {"no_target"},
    "probability first": {"underflow", "extremes"},
    "one-hot sum": {"forbidden"},
    "frozen normaliser": {"gradients", "underflow", "extremes"},
    "half sum": {"row_shift", "extremes"},
    "cpu index": {"device"},
}
# The promises of every kind, and a built mistake with the right value but for what it does besides.
BAD_MANNERS = {
    "inputs_unchanged": "token_writes_labels",
    "no_state": "token_targets_kept",
    "random_state": "token_random_order",
    "settings": "token_silences",
}
# What changes from call to call is seen by whatever asks twice: such a mistake breaks more than its own promise.
SEEN_ELSEWHERE = {"no_state"}


def test_every_contract_has_a_fault_planted():
    planted_for = set.union(*BREAKS.values()) | BAD_MANNERS.keys()
    assert planted_for == {contract.id for contract in CONTRACTS["token"]} - {"objective"}


@pytest.fixture(scope="module")
def reports():
    """One report a fault, made when first asked for."""
    return functools.cache(lambda fault: check(planted.with_fault(fault), "token", examples=20))


@pytest.mark.parametrize("fault", BREAKS)
def test_a_fault_breaks_just_its_contracts(reports, fault):
    report = reports(fault)
    assert set(report.broken) == BREAKS[fault], str(report)
    assert not report
    assert all(result.verdict in ("kept", "broken") for result in report.results), str(report)


@pytest.mark.parametrize("contract", BAD_MANNERS)
def test_bad_manners_break_their_promise(contract):
    wrong = mistakes.get(BAD_MANNERS[contract]).wrong
    report = check(wrong, "token", examples=20, only=[contract] if contract in SEEN_ELSEWHERE else None)
    assert report.broken == (contract,), str(report)
    assert len(str(report[contract].counterexample)) < 900, str(report)


def test_objective_goes_red_where_only_the_weights_are_off():
    report = check(planted.with_fault("weights off"), "token", against="token_nll", only=["objective"])
    assert report.broken == ("objective",), str(report)
    value = report["objective"].counterexample.quantities[0]
    assert value.got == pytest.approx(1.0001 * value.should, rel=1e-6)


RIGHT = {
    "as it is": planted.token_nll,
    "no keywords": planted.plain,
    "shifted labels": functools.partial(planted.token_nll, shift=False),
    "summed": functools.partial(planted.token_nll, reduction="sum"),
    "in bits": functools.partial(planted.token_nll, base=2.0),
}


@parametrize_with_contracts(RIGHT.values(), "token", seeds=range(3), against="token_nll", examples=15)
def test_right_losses_are_never_flagged(loss, contract):
    contract(loss)


@pytest.mark.parametrize("seed", range(3))
def test_a_right_perplexity_that_is_a_plain_number_is_never_flagged(seed):
    report = check(planted.perplexity, "token", against="token_nll", returns="perplexity", seed=seed)
    assert report, str(report)
    assert report["gradients"].verdict == "exempt"
    assert "it gives no gradient, so only values are compared" in report["padding"].reason


def counterexample_of(reports, fault, contract):
    return reports(fault)[contract].counterexample


def test_a_shift_is_told_by_name(reports):
    sentence = counterexample_of(reports, "no shift", "shift").sentence
    assert sentence.startswith("It does not shift: each row is judged by the token it has just read.")
    assert "check(..., shift=False)" in sentence
    twice = check(planted.with_fault("shifts twice"), "token", only=["shift"])["shift"].counterexample
    assert twice.sentence.startswith("It shifts twice: each row is judged by the token after the next.")
    again = check(planted.plain, "token", only=["shift"], shift=False)["shift"].counterexample
    assert again.sentence.startswith("It shifts labels that are shifted already")
    assert "check(..., shift=True)" in again.sentence

    def backwards(logits, labels):
        return planted.token_nll(logits[:, 1:], labels[:, :-1], shift=False)

    assert "It shifts the wrong way" in check(backwards, "token", only=["shift"])["shift"].counterexample.sentence


def test_a_loss_for_shifted_labels_is_kept_where_that_is_declared():
    loss = functools.partial(planted.token_nll, shift=False)
    assert check(loss, "token", only=["shift"]).conventions.shift is False
    forgotten = check(lambda logits, labels: loss(logits, labels), "token", only=["shift"])
    assert forgotten.broken == ("shift",)
    declared = check(lambda logits, labels: loss(logits, labels), "token", only=["shift", "ignored"], shift=False)
    assert [result.verdict for result in declared.results] == ["kept", "kept"]


def test_bits_are_told_by_name(reports):
    text = str(counterexample_of(reports, "bits", "base"))
    assert "It rises by as much in bits: if that is its unit, declare base=2." in text
    value = counterexample_of(reports, "bits", "uniform").quantities[0]
    assert (value.got, value.should) == (pytest.approx(1), pytest.approx(math.log(2)))
    assert check(planted.with_fault("bits"), "token", only=["uniform", "base"], base=2)


def test_a_count_too_large_is_told(reports):
    sentence = counterexample_of(reports, "width", "padding").sentence
    assert "It divides by 2, not by the 1 that are targets." in sentence


def test_a_mean_of_means_is_told(reports):
    counterexample = counterexample_of(reports, "mean of texts", "batching")
    assert counterexample.sentence.startswith("It is the mean of its texts' means, in which the tokens of a short text")
    assert {"text 1 alone", "text 2 alone"} <= counterexample.setting.keys()

    def mean_of_perplexities(logits, labels):
        return sum(planted.token_nll(z[None], y[None]).exp() for z, y in zip(logits, labels, strict=True)) / len(labels)

    report = check(mean_of_perplexities, "token", only=["batching", "uniform"], returns="perplexity")
    assert report.broken == ("batching",)
    assert "mean of its texts' perplexities" in report["batching"].counterexample.sentence
    summed = check(functools.partial(planted.token_nll, reduction="sum"), "token", only=["batching"], reduction="mean")
    assert "declare reduction='sum'" in summed["batching"].counterexample.sentence


def test_an_ignored_number_of_targets_is_told(reports):
    sentence = counterexample_of(reports, "number ignored", "accumulation").sentence
    assert sentence.startswith("It takes num_items_in_batch and ignores it: micro-batches of 1 and 1 targets")
    exempt = check(planted.plain, "token", only=["accumulation", "mask"])
    assert "a mean of micro-batches' means weighs their tokens unequally" in exempt["accumulation"].reason
    assert "it takes no mask" in exempt["mask"].reason


def test_a_text_without_a_target_shows_what_it_was_given(reports):
    counterexample = counterexample_of(reports, "no target is 0", "no_target")
    (value,) = counterexample.quantities
    assert value.got == 0
    assert math.isnan(value.should)
    assert counterexample.to_dict()["quantities"][0]["should"] == "nan"
    assert counterexample.texts.labels.size <= 2


def test_an_error_and_nan_are_both_right_for_no_target():
    def refuses(logits, labels):
        if not (labels[:, 1:] != -100).any():
            raise ValueError("no target")
        return planted.plain(logits, labels)

    for loss in (refuses, planted.plain):
        assert check(loss, "token", only=["no_target"])["no_target"].verdict == "kept"
    summed = check(functools.partial(planted.token_nll, reduction="sum"), "token", only=["no_target"])
    assert summed["no_target"].reason == "declared reduction='sum': the sum over no targets is 0"


def test_underflow_shows_what_should_have_come(reports):
    counterexample = counterexample_of(reports, "probability first", "underflow")
    value = counterexample.quantities[0]
    assert value.got == math.inf
    assert value.should == pytest.approx(110)
    assert counterexample.texts.logits.tolist() == [[[-110, 0], [0, 0]]]
    assert "its probability, e^-110, is 0 as a float32" in counterexample.sentence


def test_counterexamples_are_small_and_readable(reports):
    for fault, contracts in BREAKS.items():
        for contract in contracts - {"device"}:
            counterexample = counterexample_of(reports, fault, contract)
            b, t, v = counterexample.texts.logits.shape
            assert b <= 3, (fault, contract)
            assert t <= 6, (fault, contract)
            assert v <= 5, (fault, contract)
            assert len(str(counterexample)) < 900, str(counterexample)


def test_masks_and_shifted_labels_are_shown_as_given(reports):
    counterexample = counterexample_of(reports, "mask ignored", "mask")
    assert any(", mask [1, " in text for _, text in counterexample.lines())
    assert counterexample.to_dict()["texts"]["mask"][0][0] is True
    shown = check(planted.with_fault("no shift"), "token", only=["shift"], shift=False)
    assert shown.results[0].verdict == "kept"
    ones = functools.partial(planted.token_nll, shift=False, fault="bits")
    texts = check(ones, "token", only=["uniform"])["uniform"].counterexample.texts
    assert texts.labels.shape == (1, 1)


def test_device_names_operation_file_and_line(reports):
    sentence = counterexample_of(reports, "cpu index", "device").sentence
    assert "gets tensors on cuda:0 and on cpu in planted_token.py, line " in sentence


def test_an_attention_mask_and_another_ignore_index_are_understood():
    def loss(logits, labels, attention_mask=None):
        assert attention_mask is None or attention_mask.dtype == torch.int64
        mask = None if attention_mask is None else attention_mask.bool()
        return planted.token_nll(logits, labels.masked_fill(labels == -1, -100), mask)

    report = check(loss, "token", ignore_index=-1, examples=15)
    assert report, str(report)
    assert report["mask"].verdict == "kept"


def test_the_right_costs_are_those_of_torch():
    generator = torch.Generator().manual_seed(0)
    logits = 5 * torch.randn(3, 5, 4, generator=generator).double()
    labels = torch.randint(0, 4, (3, 5), generator=generator)
    labels[0, 3:], labels[1, 1] = -100, -100
    mask = torch.ones(3, 5, dtype=torch.bool)
    mask[2, :2] = False
    batch = Texts(logits.numpy(), labels.numpy(), mask.numpy())
    wanted = labels[:, 1:].clone()
    wanted[2, :2] = -100  # the second is padding, the third is predicted from padding
    leaf = logits.clone().requires_grad_()
    each = torch.nn.functional.cross_entropy(leaf[:, :-1].transpose(1, 2), wanted, reduction="none")
    (gradient,) = torch.autograd.grad(each.sum(), leaf)
    cost, slope = costs(batch)
    assert cost == pytest.approx(each.detach().numpy(), abs=1e-12)
    assert slope == pytest.approx(gradient[:, :-1].numpy(), abs=1e-12)
    assert (targets(batch)[1] == (wanted != -100).numpy()).all()
    assert TokenSubject(planted.plain, TokenConventions()).exact(batch).value == pytest.approx(
        cost.sum() / int((wanted != -100).sum()), rel=1e-12
    )


def test_wrong_conventions_are_named():
    with pytest.raises(ValueError, match="base must be a finite number above 1, got 1"):
        check(planted.plain, "token", base=1)
    with pytest.raises(TypeError, match="shift must be True or False, got 1"):
        TokenConventions(shift=1)
    with pytest.raises(ValueError, match="ignore_index must be below 0, got 0"):
        TokenConventions(ignore_index=0)
    with pytest.raises(ValueError, match="returns must be one of loss, perplexity, got 'nats'"):
        check(planted.plain, "token", returns="nats")
    with pytest.raises(ValueError, match="a perplexity is that of a mean"):
        TokenConventions(returns="perplexity", reduction="sum")
    with pytest.raises(TypeError, match="unknown convention, 'order'; a token loss has shift, ignore_index"):
        check(planted.plain, "token", order="given")
    with pytest.raises(ValueError, match=r"against must be a callable or one of token_nll, .*got 'list_mle'"):
        check(planted.plain, "token", against="list_mle")


def test_a_loss_that_cannot_be_judged_is_told_what_to_do():
    def one_a_token(logits, labels):
        return torch.nn.functional.cross_entropy(logits[:, :-1].transpose(1, 2), labels[:, 1:], reduction="none")

    reason = check(one_a_token, "token", only=["ignored"])["ignored"].reason
    assert reason.startswith("it returns a tensor of shape (1, ")
    assert reason.endswith(", not a scalar: reduce it to a mean or a sum")
    detached = check(lambda z, y: planted.plain(z, y).detach(), "token", only=["ignored"])
    assert detached["ignored"].reason == "its value is detached from the logits: there is no gradient"
    unflattened = check(lambda z, y: torch.nn.functional.cross_entropy(z, y), "token", only=["row_shift"])
    assert "flatten both, or move V to the second place" in unflattened["row_shift"].reason


def test_another_loss_can_be_the_objective():
    def other(logits, labels):
        return torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())

    assert check(planted.plain, "token", against=other, only=["objective"])
    smooth = functools.partial(torch.nn.functional.cross_entropy, label_smoothing=0.1)
    report = check(
        planted.plain,
        "token",
        against=lambda z, y: smooth(z[:, :-1].flatten(0, 1), y[:, 1:].flatten()),
        only=["objective"],
    )
    assert report.broken == ("objective",)


def test_the_report_says_what_was_declared(reports):
    report = reports("width")
    text, html = str(report), report._repr_html_()
    assert text.isascii()
    assert max(map(len, text.splitlines())) <= 80
    assert "labels are the input ids, it shifts, label -100 ignored, mean over" in text
    assert 'data-contract="padding" data-verdict="broken"' in html
    assert json.loads(report.to_json())["conventions"]["base"] == pytest.approx(math.e)
    assert "in bits" in str(TokenConventions(base=2))
    assert "returned as perplexity" in str(TokenConventions(returns="perplexity"))


@pytest.mark.parametrize("seed", range(2))
def test_the_same_seed_gives_the_same_report(seed):
    first, second = (
        check(planted.with_fault("width"), "token", seed=seed, only=["padding", "ignored"]) for _ in range(2)
    )
    assert first.to_dict() == second.to_dict()


def test_padded_texts_keep_their_numbers():
    from losslab.contracts.token.texts import padded, real

    parts = [Texts(np.ones((1, n, 2)), np.arange(n)[None]) for n in (1, 3)]
    left = padded(parts, 4, left=True)
    assert left.labels.tolist() == [[-100, -100, -100, -100], [-100, -100, 1, 2]]
    assert real(parts, 4, left=True).tolist() == [[False, False, False, True], [False, True, True, True]]
    assert padded(parts).labels.tolist() == [[0, -100, -100], [0, 1, 2]]
    assert real(parts).tolist() == [[True, False, False], [True, True, True]]


@pytest.mark.timing
def test_a_whole_check_takes_seconds():
    import time

    start = time.process_time()
    assert check(planted.token_nll, "token", against="token_nll")
    assert time.process_time() - start < 5
