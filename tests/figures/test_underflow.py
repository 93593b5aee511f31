# ruff: noqa: E501  # scripts in one text
"""Underflow: every loss as torch computes it in that format, where each format fails, and what the figure draws and says."""

import math
import re

import numpy as np
import pytest
import torch

from losslab.figures import FigureError, Underflow
from losslab.figures._rounded_loss import KINDS, bits_left, exact_loss, loss_of
from losslab.figures.underflow import GAPS, OTHERS

SCRIPT = """async (cases) => {
  const { KINDS, bitsLeft, exactLoss, lossOf } = await import("/rounded_loss.js");
  return cases.map(([gap, others, name]) => {
    const { p, wrong, right } = lossOf(gap, others, KINDS[name]);
    return [p, wrong, right, exactLoss(gap, others), bitsLeft(p, KINDS[name])].map(String);
  });
}"""


def oracle(gap, others, name):
    """The probability of the right token and its loss in both orders, by torch in that format, the right one upcast."""
    dtype = getattr(torch, name)
    z = torch.zeros(others + 1, dtype=dtype)
    z[others // 2] = -gap
    p = torch.softmax(z, 0)[others // 2]
    wide = z if name == "float64" else z.float()  # in float16 torch's own sum is inf beyond 65,504 tokens
    return p.item(), -p.log().item(), -torch.log_softmax(wide, 0)[others // 2].to(dtype).item()


def cases(name, number=500):
    """Random gaps that the format holds and where it has something to lose, and all stops beyond them."""
    random = np.random.default_rng(len(name))
    reach = {"float64": (1, 780), "float32": (1, 108), "bfloat16": (1, 100), "float16": (1, 20)}[name]
    for n in range(number):
        gap = torch.tensor(random.uniform(*reach)).to(getattr(torch, name)).item()
        yield gap, (1, 10, 100, 1000)[n % 4], name
    yield from ((gap, others, name) for gap in GAPS[::7] for others in (1, 10, 1000))


@pytest.mark.parametrize("name", list(KINDS))
def test_both_orders_are_torchs(name, host):
    given = list(cases(name))
    answers = host(Underflow()).page.evaluate(SCRIPT, given)
    exactly = infinite = subnormal = 0
    for case, answer in zip(given, answers, strict=True):
        gap, others, _ = case
        p, wrong, right = oracle(*case)
        live = [float(text.replace("Infinity", "inf")) for text in answer]
        twin = loss_of(gap, others, KINDS[name])
        for mine, wrong_, right_ in (live[:3], (twin.p, twin.wrong, twin.right)):
            step = 2.0 ** max(KINDS[name].least, math.floor(math.log2(p or 1e-300)) - KINDS[name].bits + 1)
            assert abs(mine - p) <= 2 * step if p else mine == 0, (case, mine, p)  # two units of the format at most
            if mine == p:
                assert wrong_ == pytest.approx(wrong, rel=2**-22 if name == "float32" else 1e-12), case
            assert right_ == pytest.approx(right, rel=2**-22 if name == "float32" else 2.0 ** (1 - KINDS[name].bits)), (
                case
            )
        assert live[3] == pytest.approx(exact_loss(gap, others), rel=1e-14)
        assert int(live[4]) == bits_left(live[0], KINDS[name])
        exactly += live[0] == p
        infinite += math.isinf(live[1])
        subnormal += 0 < live[4] < KINDS[name].bits
    assert exactly >= (1 if name.endswith("16") else 0.5) * len(given)  # 16 bits leave no room for another exp
    assert infinite > 20
    assert subnormal > 5


def test_the_right_order_is_right():
    """Against 80-digit arithmetic: log-softmax is off by no more than the format's last digit, up to the last stop."""
    from decimal import Decimal, getcontext

    getcontext().prec = 80
    for name, kind in KINDS.items():
        for gap in (1.0, 10.25, 88.5, 104.0, 200.0, 744.0, 800.0):
            for others in OTHERS:
                exact = float(Decimal(gap) + (Decimal(others) + (-Decimal(gap)).exp()).ln())
                assert loss_of(gap, others, kind).right == pytest.approx(exact, rel=2.0 ** (1 - kind.bits)), (name, gap)
                assert exact_loss(gap, others) == pytest.approx(exact, rel=1e-15)


@pytest.mark.parametrize(
    ("name", "normal", "last"),
    [("float16", 14 * math.log(2), 25 * math.log(2)), ("bfloat16", 126 * math.log(2), 134 * math.log(2)),
     ("float32", 126 * math.log(2), 150 * math.log(2)), ("float64", 1022 * math.log(2), 1075 * math.log(2))],
)  # fmt: skip
def test_where_each_format_fails(name, normal, last):
    """Full up to the smallest normal number, infinite from half the smallest number on (IEEE 754), in between fewer bits."""
    kind = KINDS[name]
    tiny = torch.finfo(getattr(torch, name))
    assert 2.0**kind.low == tiny.smallest_normal
    assert 2.0**kind.least == tiny.smallest_normal * tiny.eps
    assert bits_left(loss_of(normal - 0.01, 1, kind).p, kind) == kind.bits
    assert bits_left(loss_of(normal + 0.8, 1, kind).p, kind) == kind.bits - 2
    assert loss_of(last - 0.01, 1, kind).p == 2.0**kind.least
    assert loss_of(last + 0.01, 1, kind).wrong == math.inf
    assert loss_of(last + 0.01, 1, kind).right == pytest.approx(last + 0.01, rel=2.0 ** (1 - kind.bits))


def test_every_stop_is_held_by_every_format():
    for name in KINDS:
        assert torch.tensor(GAPS, dtype=torch.float64).to(getattr(torch, name)).double().tolist() == list(GAPS)
    assert list(GAPS) == sorted(set(GAPS))


def test_one_token_ruins_a_text(host):
    """100 tokens, one of them 200 nats below the rest and 99 certain: e² = 7.389, and in float32 by log(softmax) inf."""
    figure = Underflow(gap=200.0)
    nll = torch.zeros(100, dtype=torch.float64)
    nll[62] = torch.nn.functional.cross_entropy(torch.tensor([[-200.0, 0.0]], dtype=torch.float64), torch.tensor([0]))
    assert nll.mean().exp().item() == pytest.approx(math.e**2)
    assert "perplexity ∞ instead of 7.389" in figure.describe()
    hosted = host(figure)
    assert (hosted.text("perplexity"), hosted.text("text-should")) == ("∞", "perplexity 7.389")
    hosted.put(format="float64")
    assert hosted.text("perplexity") == "7.389"
    assert hosted.text("loss-note") == "as it should be"
    more = Underflow(gap=200.0, rest=2.5)
    assert f"instead of {math.exp((200 + 99 * 2.5) / 100):.3f}" in more.describe()


def test_what_is_drawn_is_what_torch_makes_of_it(host):
    hosted = host(Underflow(), reduced_motion="reduce")
    for gap, others, name in [
        (104.0, 1, "float32"),
        (102.5, 1, "float32"),
        (12.0, 10, "float16"),
        (16.5, 1, "float16"),
        (92.5, 1, "bfloat16"),
        (740.0, 1, "float64"),
        (3.25, 1000, "float32"),
    ]:
        hosted.put(gap=gap, others=others, format=name)
        assert hosted.says() == hosted.figure.describe()
        for row in KINDS:
            _, wrong, _ = oracle(gap, others, row)
            shown = hosted.text(f"reach-{row}")
            assert shown == "∞" if math.isinf(wrong) else float(shown) == pytest.approx(wrong, abs=5.1e-4), (gap, row)
        p, wrong, right = oracle(gap, others, name)
        assert hosted.text("loss") == ("∞" if math.isinf(wrong) else f"{wrong:.3f}")
        if hosted.text("loss-note") != "as it should be":
            assert float(hosted.text("loss-note").removeprefix("should be ")) == pytest.approx(right, abs=5.1e-4)
        kept = hosted.text("kept").replace("−", "-")
        assert float(kept) == pytest.approx(p, rel=0.05), (gap, kept)


def test_marks_stand_where_the_axis_says(host):
    """The point of the wrong order, read off the drawn ticks, is the drawn number; at 0 it is on the lane of ∞."""
    hosted = host(Underflow(), reduced_motion="reduce")
    hosted.put(gap=103.0)
    level = """() => { const f = (key) => { const n = document.querySelector(`[data-key="${key}"]`); return [Number(n.textContent), new DOMMatrix(getComputedStyle(n).transform).f - 4.5]; };
      return [f("level-0"), f("level-3"), Number(document.querySelector('[data-key="wrong-now"]').getAttribute("cy"))]; }"""
    (a, ya), (b, yb), at = hosted.page.evaluate(level)
    assert a + (at - ya) * (b - a) / (yb - ya) == pytest.approx(oracle(103.0, 1, "float32")[1], abs=0.02)
    hosted.put(gap=104.0)
    lane = hosted.page.get_attribute('[data-key="lane"]', "d")
    assert hosted.page.get_attribute('[data-key="wrong-now"]', "cy") == re.search(r" ([\d.]+)H", lane)[1]
    assert lane.split(" ")[1].split("H")[0] in hosted.page.get_attribute('[data-key="orders-wrong"]', "d")


def test_the_comparison_sees_a_missing_rounding():
    """Planted faults: a probability that is never rounded, and one whose subnormals are flushed to 0."""
    exact = -math.log(math.exp(-103.0))
    assert abs(exact - oracle(103.0, 1, "float32")[1]) > 0.1
    assert loss_of(103.0, 1, KINDS["float64"]).wrong != pytest.approx(oracle(103.0, 1, "float32")[1], rel=1e-4)
    assert oracle(95.0, 1, "float32")[0] > 0  # flushed, this would be 0


@pytest.mark.parametrize(
    ("traits", "message"),
    [
        ({"gap": 104.3}, "Underflow: gap must be one of 1.0, 1.25"),
        ({"gap": math.nan}, "not nan"),
        ({"gap": "104"}, "not '104'"),
        ({"others": 2}, "Underflow: others must be one of 1, 10, 100, 1000, 10000, 100000, not 2"),
        ({"others": True}, "not True"),
        ({"format": "fp8"}, "Underflow: format must be one of 'float64', 'float32', 'bfloat16', 'float16', not 'fp8'"),
        ({"rest": -1}, "Underflow: rest must be a finite number from 0 to 20, not -1"),
        ({"rest": math.inf}, "rest must be a finite number from 0 to 20, not inf"),
    ],
)
def test_a_bad_value_is_named(traits, message):
    with pytest.raises(FigureError, match=re.escape(message)):
        Underflow(**traits)


def test_every_control_acts_in_every_state(host):
    """Whatever is set, moving any one control changes what is drawn or said."""
    hosted = host(Underflow(), reduced_motion="reduce")
    shown = "document.querySelector('.ll-live').textContent + document.querySelector('svg[role=img]').innerHTML"
    for gap in (1.0, 19.75, 800.0):
        for others in (1, 100000):
            for name in KINDS:
                hosted.put(gap=gap, others=others, format=name)
                before = hosted.page.evaluate(shown)
                for other in (
                    {"gap": 800.0 if gap < 800 else 1.0},
                    {"others": 1 if others > 1 else 10},
                    *({"format": one} for one in KINDS if one != name),
                ):
                    hosted.put(**other)
                    assert hosted.page.evaluate(shown) != before, (gap, others, name, other)
                    hosted.put(gap=gap, others=others, format=name)


def test_the_twin_and_its_words():
    for traits in (
        {},
        {"gap": 1.0},
        {"gap": 12.0, "format": "float16", "others": 10},
        {"gap": 800.0, "format": "float64"},
    ):
        figure = Underflow(**traits)
        picture = figure.svg()
        assert figure.describe().replace("’", "'")[:30] in picture.replace("’", "'")
        assert picture == Underflow(**traits).svg()
        assert figure._repr_mimebundle_()[1]["image/svg+xml"]["alt"] == figure.describe()
