# ruff: noqa: E501  # scripts in one text
"""Who gets the gradient: shares, effective number and limits as torch has them, and what the figure draws and says."""

import math
import re

import numpy as np
import pytest
import torch

from losslab.figures import FigureError, GradientShares
from losslab.figures._contrastive import info_nce_row
from losslab.figures._temperature import FINE, TEMPERATURES

ROWS = """async (cases) => {
  const { infoNceRow } = await import("/contrastive.js");
  return cases.map(([scores, t]) => {
    const row = infoNceRow(scores, 0, t);
    return { ...row, probabilities: [...row.probabilities], gradient: [...row.gradient], shares: [...row.shares] };
  });
}"""


def oracle(scores, temperature):
    """InfoNCE of the first score against all, by torch's cross-entropy and autograd in float64."""
    s = torch.tensor(scores, dtype=torch.float64, requires_grad=True)
    loss = torch.nn.functional.cross_entropy((s / temperature)[None], torch.tensor([0]))
    loss.backward()
    pushes = s.grad[1:]
    return loss.item(), s.grad.tolist(), (pushes / pushes.sum()).tolist()


def test_both_rows_are_torchs(host, shares_data):
    random = np.random.default_rng(3)
    cases = [
        (random.uniform(-1, 1, int(random.integers(8, 257))).round(4).tolist(), TEMPERATURES[k])
        for k in random.integers(0, len(TEMPERATURES), 150)
    ]
    cases += [([1.0] * 8, 0.05), ([0.5, *[0.4] * 7], 1.0), ([-1.0, *[1.0] * 7], 0.005)]
    answers = host(GradientShares(**shares_data)).page.evaluate(ROWS, cases)
    for (scores, t), live in zip(cases, answers, strict=True):
        loss, gradient, shares = oracle(scores, t)
        twin = info_nce_row(scores, 0, t)
        entropy = -sum(s * math.log(s) for s in shares if s > 0)
        for got_loss, got_gradient, got_shares, got_effective in [
            (live["loss"], live["gradient"], live["shares"], live["effective"]),
            (twin.loss, twin.gradient, twin.shares, twin.effective),
        ]:
            assert got_loss == pytest.approx(loss, rel=1e-9, abs=1e-12)
            assert list(got_gradient) == pytest.approx(gradient, rel=1e-6, abs=1e-9)
            if sum(gradient[1:]) > 1e-6:  # below, torch's own quotient is noise
                assert list(got_shares)[1:] == pytest.approx(shares, rel=1e-6, abs=1e-9)
                assert got_effective == pytest.approx(math.exp(entropy), rel=1e-6)


def test_stops_are_the_same_on_the_page(host, shares_data):
    page = host(GradientShares(**shares_data)).page
    live = page.evaluate(
        """async () => { const { TEMPERATURES, FINE } = await import("/temperature.js"); return { TEMPERATURES, FINE }; }"""
    )
    assert live["TEMPERATURES"] == list(TEMPERATURES)
    assert live["FINE"] == list(FINE)


def shown_share(hosted, key):
    text = hosted.text(key).replace("<0.1%", "0.03%").replace(">99.9%", "99.97%")
    return float(text.rstrip("%")) / 100


def test_what_is_drawn_is_what_torch_computes(host, shares_data):
    figure = GradientShares(**shares_data)
    hosted = host(figure, reduced_motion="reduce")
    for query, t, width in [(0, 0.05, 256), (1, 0.02, 256), (1, 0.3, 128), (0, 1.0, 8), (1, 0.07, 16)]:
        hosted.put(query=query, temperature=t, width=width)
        negatives = np.round(shares_data["negatives"][query], 4)[: width - 1]
        loss, gradient, shares = oracle([shares_data["positives"][query], *negatives], t)
        order = np.argsort(-negatives, kind="stable")
        assert hosted.number("loss") == pytest.approx(loss, abs=5.1e-4)
        assert hosted.number("push") == pytest.approx(-gradient[0], rel=6e-3, abs=5.1e-3)
        assert shown_share(hosted, "share-hard") == pytest.approx(shares[order[0]], abs=6e-4)
        wrong = shares_data["mislabelled"][query]
        named = list(order[:10])
        if wrong < len(negatives):
            assert shown_share(hosted, "share-wrong") == pytest.approx(shares[wrong], abs=6e-4)
            if wrong not in named:
                named[-1] = wrong
        else:
            assert hosted.page.query_selector('[data-key="share-wrong"]') is None
        for place, j in enumerate(named):
            key = f"bar-{place}" if order[place] == j else "bar-stray"
            assert shown_share(hosted, key) == pytest.approx(shares[j], abs=6e-4), (query, t, width, place)
            assert hosted.number(f"{key}-cosine") == pytest.approx(negatives[j], abs=5.1e-4)
        if width > 11:
            assert shown_share(hosted, "bar-rest") == pytest.approx(1 - sum(shares[j] for j in named), abs=6e-4)
        assert hosted.text("chance-note").startswith(
            f"rank {1 + sum(negatives > shares_data['positives'][query])} of {width}"
        )


def test_limits(shares_data):
    """As τ falls one negative takes everything; as it grows all take the same."""
    negatives = np.round(shares_data["negatives"][1], 4)
    cold = info_nce_row([0.64, *negatives], 0, 1e-4)
    warm = info_nce_row([0.64, *negatives], 0, 1e4)
    assert (cold.shares.max(), cold.effective) == (pytest.approx(1), pytest.approx(1))
    assert (warm.shares.max(), warm.effective) == (pytest.approx(1 / 255, rel=1e-3), pytest.approx(255, rel=1e-3))
    assert cold.shares.argmax() == 1 + negatives.argmax()


def test_what_it_says(shares_data):
    figure = GradientShares(**shares_data, temperature=0.05)
    negatives = np.round(shares_data["negatives"][0], 4)
    _, _, shares = oracle([0.71, *negatives], 0.05)
    top = sum(sorted(shares)[-10:])
    said = figure.describe()
    assert (
        f"the hardest of 255 negatives, {shares_data['names'][0][3]}, gets {shares[3]:.1%} of the gradient on negatives and the 10 hardest together {top:.1%}"
        in said
    )
    assert said.endswith("It is really right, and is pushed away all the same.")
    figure.query, figure.width = 1, 32
    assert figure.describe().endswith("The negative that is really right has not joined this batch.")
    figure.width = 128
    assert "is really right, and is pushed away with" in figure.describe()
    plain = GradientShares(**{**shares_data, "mislabelled": [-1, -1]})
    assert "really right" not in plain.describe()


def test_a_page_carries_only_the_names_it_can_show(shares_data):
    figure = GradientShares(**shares_data)
    kept = [sum(map(bool, row)) for row in figure.names]
    assert all(20 <= n <= 60 for n in kept)
    assert [figure.names[i][j] for i, j in ((0, 3), (1, 41))] == [
        shares_data["names"][i][j] for i, j in ((0, 3), (1, 41))
    ]
    assert figure.negatives[1][41] == 0.36
    figure.names = shares_data["names"]  # the same again changes nothing
    with pytest.raises(FigureError, match="negatives is given once"):
        figure.negatives = np.zeros((2, 255))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda _: {"queries": []}, "queries must be 1 to 12 texts, each once, not []"),
        (lambda _: {"queries": ["x" * 91, "y"]}, "queries must have 90 characters at most, not 91"),
        (lambda _: {"positives": [0.5]}, "positives must hold one entry for each of the 2 queries, not 1"),
        (lambda _: {"positives": [0.5, 1.5]}, "positives[1] must be a cosine, from -1 to 1, not 1.5"),
        (lambda _: {"positives": [0.5, math.nan]}, "positives[1] must be a finite number, not nan"),
        (lambda d: {"negatives": d["negatives"][:, :6]}, "negatives must be 7 to 255 a query, not 6"),
        (lambda d: {"negatives": [d["negatives"][0], d["negatives"][1][:-1]]}, "negatives[1] must hold 255 cosines, as for the first query, not 254"),
        (lambda d: {"names": [d["names"][0], d["names"][1][:-1]]}, "names[1] must hold 255 names, one a negative, not 254"),
        (lambda _: {"names": [[""] * 255] * 2}, "is empty, but that negative is among the hardest of a batch"),
        (lambda _: {"mislabelled": [3, 255]}, "mislabelled must be 2 indices from -1 (none) to 254, not [3, 255]"),
        (lambda _: {"widths": [8, 512]}, "widths must ascend from 8 or more to 256 at most, not [8, 512]"),
        (lambda _: {"query": 2}, "query must be from 0 to 1, not 2"),
        (lambda _: {"width": 100}, "width must be one of [8, 16, 32, 64, 128, 256], not 100"),
        (lambda _: {"temperature": 0}, "GradientShares: temperature must be one of 0.005, 0.006, 0.007"),
        (lambda _: {"temperature": -0.05}, "not -0.05"),
    ],
)  # fmt: skip
def test_what_disagrees_is_refused(shares_data, change, message):
    with pytest.raises(FigureError, match=re.escape(message)):
        GradientShares(**{**shares_data, **change(shares_data)})


def test_it_needs_data():
    with pytest.raises(
        TypeError, match="GradientShares shows what was measured and needs queries, positives, negatives, names"
    ):
        GradientShares()


def test_a_selected_state_must_exist(shares_data):
    figure = GradientShares(**shares_data)
    for trait, value in (("query", 5), ("width", 9), ("temperature", 0.033)):
        before = getattr(figure, trait)
        with pytest.raises(FigureError):
            setattr(figure, trait, value)
        assert getattr(figure, trait) == before
