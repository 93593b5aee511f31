"""What a loss is checked under: what is said of it, what is read from it, and what is only assumed."""

import functools
import math

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy, normalize

import losslab
from losslab.contracts.model import ContrastiveConventions, TokenConventions


def cosines(queries, documents):
    return normalize(queries, dim=1) @ normalize(documents, dim=1).T


def in_batch(logits):
    return cross_entropy(logits, torch.arange(len(logits)))


def by_tau(queries, documents, tau=0.1):
    return in_batch(cosines(queries, documents) / tau)


def by_temp(queries, documents, *, temp=0.1):
    return in_batch(cosines(queries, documents) / temp)


def by_scale(queries, documents, scale=10):
    return in_batch(cosines(queries, documents) * scale)


def by_temperature(queries, documents, temperature=1):
    return in_batch(cosines(queries, documents) / temperature)


def without_a_word(queries, documents):
    return in_batch(cosines(queries, documents) / 0.1)


class Scaled(nn.Module):
    def __init__(self, scale=10.0, logit_scale=3.0):
        super().__init__()
        self.scale = scale
        self.logit_scale = logit_scale  # as often as not a logarithm: nothing is read from it

    def forward(self, queries, documents):
        return in_batch(cosines(queries, documents) * self.scale)


@pytest.mark.parametrize(
    ("loss", "temperature", "where"),
    [
        (by_tau, 0.1, "its parameter tau"),
        (by_temp, 0.1, "its parameter temp"),
        (by_scale, 0.1, "its parameter scale"),
        (functools.partial(by_tau, tau=0.2), 0.2, "the keyword tau"),
        (functools.partial(by_scale, scale=4), 0.25, "the keyword scale"),
        (Scaled(), 0.1, "its attribute scale"),
        (by_temperature, 1, None),
        (functools.partial(by_temperature, temperature=2), 2, None),
    ],
)
def test_the_temperature_is_read_whatever_it_is_called(loss, temperature, where):
    report = losslab.check(loss, "contrastive", against="info_nce", only=["objective"], examples=10)
    assert report.conventions.temperature == pytest.approx(temperature)
    assert report["objective"].verdict == "kept"
    said = [remark for remark in report.remarks if remark.startswith("temperature=")]
    assert said == ([] if where is None else [f"temperature={temperature} was read from {where}"])
    assert not any("assumed" in remark and "temperature" in remark for remark in report.remarks)


def test_what_nobody_said_is_called_assumed_and_can_be_pasted():
    asked = {"against": "info_nce", "only": ["objective"], "examples": 10}
    report = losslab.check(without_a_word, "contrastive", **asked)
    assert report["objective"].verdict == "broken"
    (remark,) = (remark for remark in report.remarks if remark.startswith("assumed"))
    keywords = remark.partition(": ")[2].partition(";")[0]
    assumed = eval(f"dict({keywords})")  # they are meant to be pasted
    assert ContrastiveConventions(**assumed) == ContrastiveConventions()
    assert set(assumed) == set(ContrastiveConventions().to_dict())
    for shown in (str(report), report._repr_html_(), report.to_json()):
        assert "assumed, as neither the call nor the loss says" in " ".join(shown.split())
    told = losslab.check(without_a_word, "contrastive", **asked, **{**assumed, "temperature": 0.1})
    assert told["objective"].verdict == "kept"
    assert told.remarks == ()


def test_a_token_loss_in_nats_says_so_in_words_that_can_be_pasted():
    def nll(logits, labels, ignore_index=-7):  # noqa: ARG001
        return cross_entropy(logits[:, :-1].reshape(-1, logits.shape[-1]), labels[:, 1:].reshape(-1), None, None, -7)

    report = losslab.check(nll, "token", only=["uniform"], examples=3)
    assert report.conventions.ignore_index == -7
    (remark,) = report.remarks
    assert "base=math.e" in remark
    assert "ignore_index" not in remark
    assumed = eval(f"dict({remark.partition(': ')[2].partition(';')[0]})", {"math": math})
    assert TokenConventions(**assumed) == TokenConventions()


def test_a_default_that_no_convention_has_is_not_read():
    def loss(queries, documents, reduction="batchmean", temperature=None, tau=0.0, normalised="l2"):  # noqa: ARG001
        return in_batch(cosines(queries, documents) / 0.05)

    report = losslab.check(loss, "contrastive", only=["blind"], examples=3)
    assert report.conventions == ContrastiveConventions()
    (remark,) = report.remarks
    assert all(f"{name}=" in remark for name in ("reduction", "temperature", "normalize"))
    with pytest.raises(ValueError, match="reduction must be one of mean, sum, none, got 'batchmean'"):
        losslab.check(functools.partial(loss, reduction="batchmean"), "contrastive", only=["blind"])


def test_its_own_name_goes_before_others():
    def loss(queries, documents, scale=100.0, temperature=0.1):  # noqa: ARG001
        return in_batch(cosines(queries, documents) / temperature)

    assert losslab.check(loss, "contrastive", only=["blind"], examples=3).conventions.temperature == 0.1


@pytest.mark.parametrize("name", ["list_mle", "p_list_mle"])
def test_a_loss_whose_signature_says_all_leaves_nothing_to_be_assumed(name):
    report = losslab.check(f"losslab.losses:{name}", "listwise", only=["no_state"], examples=2)
    assert report.remarks == ()
