"""The score gap: pushes as torch has them for one positive and for two, and what the figure draws and says."""

import math
import re

import pytest
import torch

from losslab.figures import FigureError, ScoreGap

STATES = [
    (0.05, 0.7, 0.65, 0.75),
    (1.0, 0.7, 0.65, 0.75),
    (0.02, 0.6, 0.64, 0.55),
    (0.1, 0.5, 0.5, 0.5),
    (0.3, 0.1, 0.9, 0.2),
    (0.07, 0.0, 1.0, 0.97),
]


def oracle(cosines, temperature):
    """Loss, gradient by each logit, and the gradient with the twin labelled right, by torch in float64."""
    found = []
    for right in ([0], [0, 2]):
        z = (torch.tensor(cosines, dtype=torch.float64) / temperature).requires_grad_()
        loss = z.logsumexp(0) - z[right].logsumexp(0)
        loss.backward()
        found.append((loss.item(), z.grad.tolist()))
    (loss, now), (_, aim) = found
    return loss, now, aim


def test_pushes_are_torchs(host):
    hosted = host(ScoreGap(), reduced_motion="reduce")
    for temperature, *cosines in STATES:
        hosted.put(temperature=temperature, **dict(zip(("positive", "negative", "mislabelled"), cosines, strict=True)))
        loss, now, aim = oracle(cosines, temperature)
        assert hosted.number("loss") == pytest.approx(loss, abs=5.1e-4)
        for name, g, right in zip(("positive", "negative", "twin"), now, aim, strict=True):
            assert hosted.number(f"push-{name}-now") == pytest.approx(g, abs=5.1e-5)
            assert hosted.number(f"push-{name}-right") == pytest.approx(right, abs=5.1e-5)
        share = float(hosted.text("share-twin").strip("<>%")) / 100
        assert share == pytest.approx(now[2] / (now[1] + now[2]), abs=6e-4)
        assert [push.now for push in hosted.figure._pushes()] == pytest.approx([-g for g in now], abs=1e-12)
        assert [push.aim for push in hosted.figure._pushes()] == pytest.approx([-g for g in aim], abs=1e-12)


def test_the_gap_of_a_twentieth():
    """0.05 of cosine: 0.05 logits at τ = 1, and 1.00 at τ = 0.05."""
    assert (
        "the gap between 0.70 and 0.65 is 0.05 logits: the positive is 1.05 times" in ScoreGap(temperature=1).describe()
    )
    said = ScoreGap().describe()
    assert f"is 1.00 logits: the positive is {math.e:.2f} times as likely" in said
    assert f"takes {1 / (1 + math.exp(-2)):.1%} of the push on negatives" in said  # 0.10 above the negative: 2 logits


def test_the_limits_are_said():
    figure = ScoreGap(temperature=0.005, positive=1.0, negative=0.0, mislabelled=0.5)
    assert "is 200.00 logits: the positive is >100,000 times" in figure.describe()
    assert "takes 100.0% of the push" in figure.describe()
    figure.mislabelled = 0.04
    assert "takes >99.9% of the push" in figure.describe()  # e^8 to 1 is not all
    figure.negative = 1.0
    figure.positive = 0.0
    assert "is −200.00 logits: the positive is <0.01 times" in figure.describe()


def test_the_twin_is_pushed_the_wrong_way(host):
    hosted = host(ScoreGap())
    assert hosted.text("push-twin-flip-name") == "wrong way"
    assert hosted.page.query_selector('[data-key="push-negative-flip"]') is None


@pytest.mark.parametrize(
    ("traits", "message"),
    [
        ({"positive": 1.01}, "ScoreGap: positive must be a finite number from 0 to 1, not 1.01"),
        ({"negative": -0.1}, "ScoreGap: negative must be a finite number from 0 to 1, not -0.1"),
        ({"mislabelled": math.inf}, "ScoreGap: mislabelled must be a finite number from 0 to 1, not inf"),
        ({"mislabelled": None}, "mislabelled must be a finite number from 0 to 1, not None"),
        ({"temperature": 0}, "ScoreGap: temperature must be one of 0.005"),
        ({"temperature": True}, "not True"),
    ],
)
def test_a_bad_value_is_named(traits, message):
    with pytest.raises(FigureError, match=re.escape(message)):
        ScoreGap(**traits)
