"""The installed token losses of three libraries under the contracts: what they keep, and where they break."""

import json
import math

import pytest
import torch
from torch.nn.functional import cross_entropy

from losslab import cli
from losslab.contracts import TokenConventions, check
from losslab.contracts.adapters import is_token_library_loss, token_library_loss
from losslab.language import token_nll

loss_utils = pytest.importorskip("transformers.loss.loss_utils")
metrics = pytest.importorskip("torchmetrics.text")
functional = pytest.importorskip("torchmetrics.functional.text")
CAUSAL = "transformers.loss.loss_utils:ForCausalLMLoss"


def verdicts(report):
    return {result.contract: result.verdict for result in report.results}


def exempt(report):
    return {contract for contract, verdict in verdicts(report).items() if verdict == "exempt"}


@pytest.mark.parametrize("seed", range(5))
def test_right_losses_are_never_flagged(seed):
    for loss in (token_nll, CAUSAL, cross_entropy):
        report = check(loss, "token", against="token_nll", seed=seed, examples=12)
        assert report, str(report)
        assert "unchecked" not in verdicts(report).values()


def test_the_causal_loss_shifts_and_adds_up():
    report = check(CAUSAL, "token", against="token_nll", only=["shift", "accumulation", "mask", "extremes"])
    assert report.conventions == TokenConventions()
    assert report.loss == "ForCausalLMLoss"
    assert exempt(report) == {"mask"}  # the attention mask never reaches it: padding must be in the labels
    given = token_library_loss(loss_utils.ForCausalLMLoss, shift=False)
    assert given.conventions == TokenConventions(shift=False)
    assert check(given, "token", only=["shift", "accumulation", "padding"], examples=15)


def test_the_causal_loss_has_no_number_for_one_token():
    loss = token_library_loss(loss_utils.ForCausalLMLoss)
    assert loss(torch.zeros(1, 1, 3), torch.zeros(1, 1, dtype=torch.long)).isnan()
    logits, labels = torch.zeros(1, 3, 3), torch.full((1, 3), -100)
    assert loss(logits, labels).isnan()
    assert loss(logits, labels, num_items_in_batch=4) == 0  # a part of a batch may be without a target


def test_padding_whose_labels_are_ids_is_judged_by_the_causal_loss():
    logits = torch.zeros(1, 4, 2)
    logits[0, 2, 0] = 9.0
    labels = torch.tensor([[0, 1, 0, 0]])
    attention_mask = torch.tensor([[1, 1, 0, 0]])
    loss = loss_utils.ForCausalLMLoss
    value = loss(logits, labels, vocab_size=2, attention_mask=attention_mask).item()  # takes it, and drops it
    assert value == pytest.approx((2 * math.log(2) + math.log1p(math.exp(-9))) / 3, rel=1e-5)
    marked = labels.masked_fill(attention_mask == 0, -100)
    assert loss(logits, marked, vocab_size=2).item() == pytest.approx(math.log(2))


def test_cross_entropy_is_for_shifted_labels():
    report = check(cross_entropy, "token", against="token_nll", examples=15)
    assert report.conventions == TokenConventions(shift=False)
    assert exempt(report) == {"mask", "accumulation"}
    wrong = check(lambda z, y: cross_entropy(z.flatten(0, 1), y.flatten()), "token", only=["shift"])
    assert "check(..., shift=False)" in wrong["shift"].counterexample.sentence
    summed = token_library_loss(torch.nn.CrossEntropyLoss, reduction="sum", ignore_index=-1)
    assert summed.conventions == TokenConventions(shift=False, reduction="sum", ignore_index=-1)
    kept = check(summed, "token", only=["accumulation", "batching", "ignored"], examples=15)
    assert set(verdicts(kept).values()) == {"kept"}


def test_perplexity_forms_the_probability_first():
    loss = token_library_loss(metrics.Perplexity, ignore_index=-100)
    assert loss.conventions == TokenConventions(shift=False, returns="perplexity")
    report = check(loss, "token", against="token_nll", examples=20)
    assert report.broken == ("underflow", "extremes"), str(report)
    value = report["underflow"].counterexample.quantities[0]
    assert value.got == math.inf
    assert math.isfinite(value.should)
    assert "unchecked" not in verdicts(report).values()
    assert exempt(report) == {"mask", "accumulation"}


@pytest.mark.parametrize(
    ("dtype", "last_finite", "first_infinite"), [(torch.float32, 103, 104), (torch.float16, 17, 18)]
)
def test_where_its_perplexity_becomes_infinite(dtype, last_finite, first_infinite):
    """The probability of a token so far behind is below half the format's smallest number."""
    loss = token_library_loss(metrics.Perplexity)

    def one_far_behind(gap):
        """100 tokens, one of them so far behind, the others all but certain: e^(gap / 100) to four digits."""
        logits = torch.zeros(1, 100, 2, dtype=dtype)
        logits[..., 1] = -40.0
        labels = torch.zeros(1, 100, dtype=torch.long)
        logits[0, 0] = torch.tensor([-gap, 0.0])
        return loss(logits, labels).item()

    smallest = math.log(torch.finfo(dtype).smallest_normal * torch.finfo(dtype).eps / 2)
    assert last_finite < -smallest < first_infinite
    assert math.isfinite(one_far_behind(last_finite))
    assert one_far_behind(first_infinite) == math.inf


def test_a_text_whose_right_perplexity_is_e_squared():
    logits = torch.zeros(1, 100, 2)
    logits[..., 1] = -40.0
    logits[0, 0] = torch.tensor([-200.0, 0.0])
    labels = torch.zeros(1, 100, dtype=torch.long)
    assert token_library_loss(metrics.Perplexity)(logits, labels).item() == math.inf
    assert token_nll(logits, labels, shift=False).exp().item() == pytest.approx(math.e**2, rel=1e-6)


@pytest.mark.parametrize("name", ["torchmetrics.text:Perplexity", "torchmetrics.functional.text:perplexity"])
def test_a_class_or_function_is_told_what_to_ignore(name):
    report = check(name, "token", examples=3)
    assert "error" not in verdicts(report).values(), str(report)
    assert set(report.broken) <= {"underflow", "extremes"}
    assert report.loss == f"{name.split(':')[1]}(ignore_index=-100)"
    report = check(name, "token", ignore_index=-7, only=["padding", "ignored"], examples=8)
    assert set(verdicts(report).values()) == {"kept"}, str(report)
    assert report.loss == f"{name.split(':')[1]}(ignore_index=-7)"
    as_it_is = token_library_loss(metrics.Perplexity, ignore_index=None)
    assert as_it_is.library_metric.ignore_index is None
    assert check(as_it_is, "token", only=["padding"], examples=8)["padding"].verdict == "error"


def test_an_instance_must_have_been_told_what_to_ignore():
    report = check(metrics.Perplexity(), "token", only=["shift", "padding"])
    assert verdicts(report) == {"shift": "kept", "padding": "error"}
    assert "IndexError: index -100 is out of bounds" in report["padding"].reason
    assert "labels of what is no target are ignore_index" in report["padding"].reason


def test_perplexity_weighs_tokens_across_updates():
    generator = torch.Generator().manual_seed(0)
    batches = [(torch.randn(1, n, 4, generator=generator), torch.randint(0, 4, (1, n))) for n in (1, 3, 8)]
    metric = metrics.Perplexity()
    for logits, labels in batches:
        metric.update(logits, labels)
    costs = torch.cat([cross_entropy(z[0], y[0], reduction="none") for z, y in batches])
    assert metric.compute().item() == pytest.approx(costs.mean().exp().item(), rel=1e-5)


def test_the_function_is_the_class():
    loss = token_library_loss(functional.perplexity, ignore_index=-100)
    assert loss.name == "perplexity(ignore_index=-100)"
    report = check(loss, "token", only=["padding", "batching", "underflow", "device"], examples=15)
    assert report.broken == ("underflow",)


def test_on_plain_logits_all_of_them_are_one():
    generator = torch.Generator().manual_seed(1)
    logits, labels = torch.randn(3, 6, 5, generator=generator), torch.randint(0, 5, (3, 6), generator=generator)
    labels[0, 4:] = -100
    shifted = (logits[:, :-1], labels[:, 1:])
    right = token_nll(logits, labels).item()
    assert token_library_loss(loss_utils.ForCausalLMLoss)(logits, labels).item() == pytest.approx(right, rel=1e-6)
    assert token_library_loss(cross_entropy)(*shifted).item() == pytest.approx(right, rel=1e-6)
    metric = token_library_loss(metrics.Perplexity, ignore_index=-100)
    assert math.log(metric(*shifted).item()) == pytest.approx(right, rel=1e-6)


def test_an_instance_is_left_alone():
    metric = metrics.Perplexity(ignore_index=-1)
    metric.update(torch.zeros(1, 2, 3), torch.tensor([[0, -1]]))
    loss = token_library_loss(metric)
    assert loss.conventions.ignore_index == -1
    loss(torch.zeros(1, 4, 3), torch.zeros(1, 4, dtype=torch.long))
    assert metric.count == 1
    for instance in (metric, torch.nn.CrossEntropyLoss()):
        with pytest.raises(TypeError, match="options are for a class or a function"):
            token_library_loss(instance, ignore_index=-100)


def test_only_the_losses_named_are_taken():
    assert is_token_library_loss(torch.nn.CrossEntropyLoss)
    assert is_token_library_loss(metrics.Perplexity)
    assert not is_token_library_loss(loss_utils.ForQuestionAnsweringLoss)
    assert not is_token_library_loss(token_nll)
    assert not is_token_library_loss(torch.nn.functional.nll_loss)
    with pytest.raises(TypeError, match="loss must be transformers' ForCausalLMLoss, torchmetrics' Perplexity or"):
        token_library_loss(token_nll)


def test_the_command_drives_them(capsys):
    arguments = ["check", "torchmetrics.text:Perplexity", "--kind", "token", "--set", "ignore_index=-100"]
    assert cli.main([*arguments, "--only", "underflow"]) == 1
    assert "perplexity inf" in capsys.readouterr().out
    assert cli.main(["check", CAUSAL, "--kind", "token", "--only", "shift", "--against", "token_nll"]) == 0
    capsys.readouterr()
    wrong = ["check", CAUSAL, "--kind", "token", "--only", "shift", "--shift", "false", "--json"]
    assert cli.main(wrong) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["conventions"]["shift"] is False
    assert "check(..., shift=True)" in report["results"][0]["counterexample"]["sentence"]
    ours = ["check", "losslab.language:token_nll", "--kind", "token", "--only", "uniform", "--declare", "base=2"]
    assert cli.main(ours) == 1
    assert "log2 2" in capsys.readouterr().out
