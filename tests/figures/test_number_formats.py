# ruff: noqa: E501  # scripts in one text
"""Number formats: rounding as torch and exact fractions have it, and what the figure draws and says of it."""

import math
import re
from fractions import Fraction

import numpy as np
import pytest
import torch

from losslab.figures import FigureError, NumberFormats
from losslab.figures._formats import BF16, FP16, FP32

TORCH = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}
SCRIPT = """async ([name, values]) => {
  const formats = await import("/formats.js"), format = formats[name.toUpperCase()];
  const show = (v) => (Object.is(v, -0) ? "-0" : String(v));
  return values.map((v) => [show(formats.round(Number(v), format)), show(formats.spacing(Number(v), format))]);
}"""


def float32_values():
    """Values that float32 holds, so that torch rounds once: random ones of every size, and all the borders."""
    random = np.random.default_rng(0)
    bits = random.integers(0, 2**32, 4000, dtype=np.uint64).astype(np.uint32)
    values = [float(v) for v in bits.view(np.float32) if np.isfinite(v)]
    values += random.uniform(-200, 200, 2000).astype(np.float32).tolist()
    values += (random.uniform(1, 2, 1500) * 2.0 ** random.integers(-26, 17, 1500)).astype(np.float32).tolist()
    edges = [
        0.0,
        -0.0,
        1.0,
        65504,
        65519.996,
        65520,
        65536,
        6.1035e-5,
        5.96e-8,
        2.98e-8,
        2.9802322e-8,
        2.9802326e-8,
        1e-45,
        3.4028235e38,
        3.3961775e38,
        3.3895314e38,
        1.1754944e-38,
        9.2e-41,
        4.6e-41,
        math.inf,
        -math.inf,
    ]
    values += [float(np.float32(sign * v)) for v in edges for sign in (1, -1)]
    for e in range(-30, 17):  # halfway between neighbours, and one float32 to either side of it
        for k in (0, 1, 2, 3, 62, 63, 127):
            for half in (2.0**e * (1 + (k + 0.5) / 128), 2.0**e * (1 + (k + 0.5) / 1024)):
                values += [float(np.nextafter(np.float32(half), np.float32(way))) for way in (0, 1e9)] + [half]
    return values


def numbers(texts):
    return [[float(a), float(b)] for a, b in texts]


def same(a, b):
    return a == b and math.copysign(1, a) == math.copysign(1, b)


@pytest.mark.parametrize("form", [BF16, FP16, FP32], ids=lambda form: form.name)
def test_rounding_is_torchs(form, host):
    values = float32_values()
    rights = torch.tensor(values, dtype=torch.float32).to(TORCH[form.name]).double().tolist()
    answers = numbers(
        host(NumberFormats()).page.evaluate(SCRIPT, [form.name, [repr(v).replace("inf", "Infinity") for v in values]])
    )
    for value, right, (live, _) in zip(values, rights, answers, strict=True):
        assert same(live, right), (value, live, right)
        assert same(form.round(value), right), (value, form.round(value), right)
    overflows = sum(math.isinf(r) and math.isfinite(v) for v, r in zip(values, rights, strict=True))
    assert (overflows > 0) is (form is not FP32)  # what float32 holds cannot overflow it


@pytest.mark.parametrize("form", [BF16, FP16], ids=lambda form: form.name)
def test_a_double_is_rounded_once(form, host):
    """Next to a tie, a detour through float32 lands on the tie and then on the wrong side; an exact search does not."""
    random, values = np.random.default_rng(1), []
    for _ in range(400):
        unit = Fraction(2) ** (int(random.integers(-6, 8)) - form.bits + 1)
        tie = (int(random.integers(2 ** (form.bits - 1), 2**form.bits)) + Fraction(1, 2)) * unit
        values += [
            float(tie),
            float(tie + unit / 2**35),
            float(tie - unit / 2**35),
            float(tie * Fraction(random.uniform(0.9, 1.1))),
        ]
    answers = numbers(host(NumberFormats()).page.evaluate(SCRIPT, [form.name, [repr(v) for v in values]]))
    strays = 0
    for value, (live, spacing) in zip(values, answers, strict=True):
        unit = Fraction(form.spacing(value))
        assert spacing == float(unit)
        below = Fraction(value) // unit
        right = float(min((below, below + 1), key=lambda k: (abs(k * unit - Fraction(value)), k % 2)) * unit)
        assert live == form.round(value) == right, (value, live, right)
        strays += torch.tensor(value, dtype=torch.float32).to(TORCH[form.name]).item() != right
    assert strays > 100  # the detour does go wrong here, so the test would see it


def test_spacing_is_the_way_to_the_next_number():
    for form in (BF16, FP16, FP32):
        for value in (50.0, 0.7, 199.99, 1.0, 2.0**-20, 64.0):
            here = torch.tensor(form.round(value), dtype=TORCH[form.name])
            if form.round(value) > value:
                continue  # rounded into the next binade
            step = torch.nextafter(here, torch.tensor(math.inf, dtype=here.dtype)).double() - here.double()
            assert step.item() == form.spacing(value), (form.name, value)
    assert (BF16.spacing(50), FP16.spacing(50), FP32.spacing(50)) == (0.25, 0.03125, 2.0**-18)
    assert [form.top for form in (BF16, FP16, FP32)] == [torch.finfo(TORCH[n]).max for n in ("bf16", "fp16", "fp32")]


def test_what_is_drawn_is_what_torch_makes_of_the_logits(host):
    figure = NumberFormats()
    hosted = host(figure, reduced_motion="reduce")
    for temperature, positive, gap in [
        (0.014, 0.7, 0.001),
        (0.01, 0.5, 0.0005),
        (0.05, 0.9, 0.02),
        (1.0, 0.123, 0.0001),
        (0.005, 1.0, 0.05),
    ]:
        hosted.put(temperature=temperature, positive=positive, gap=gap)
        exact = torch.tensor([positive, round(positive - gap, 4)], dtype=torch.float64) / temperature
        for name, dtype in TORCH.items():
            high, low = exact.to(dtype).double().tolist()
            said = hosted.text(f"row-{name}-verdict")
            if high == low:
                assert said.startswith("both ")
                assert float(said.removeprefix("both ")) == pytest.approx(high, rel=1e-5)
            else:
                assert float(said.removesuffix(" apart")) == pytest.approx(high - low, rel=1e-4, abs=1e-6)
            odds = hosted.text(f"row-{name}-odds")
            assert float(re.search(r"odds ([\d.]+)", odds)[1]) == pytest.approx(
                math.exp(high - low), rel=1e-3, abs=1e-3
            )
        assert hosted.number("fact-gap") == pytest.approx((exact[0] - exact[1]).item(), abs=5.1e-4)


def test_bf16_loses_what_fp16_keeps():
    said = NumberFormats().describe()
    assert said == (
        "At τ = 0.014 cosines of 0.7000 and 0.6990 are logits of 50.000 and 49.929, 0.0714 apart. bf16 steps by 0.25 there: "
        "both become 50, and it can no longer tell them apart. fp16 steps by 0.03125 there and puts them 0.0625 apart."
    )
    assert "would not let the scale above 100" not in NumberFormats(temperature=0.01).describe()
    assert "would not let the scale above 100" in NumberFormats(temperature=0.008).describe()


@pytest.mark.parametrize(
    ("traits", "message"),
    [
        ({"temperature": 0.0}, "NumberFormats: temperature must be one of 0.005, 0.006"),
        ({"temperature": 0.033}, "not 0.033"),
        ({"temperature": math.nan}, "temperature must be one of"),
        ({"positive": 1.5}, "NumberFormats: positive must be a finite number from 0.1 to 1, not 1.5"),
        ({"positive": "0.5"}, "positive must be a finite number from 0.1 to 1, not '0.5'"),
        (
            {"gap": 0.003},
            "NumberFormats: gap must be one of 0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, not 0.003",
        ),
    ],
)
def test_a_bad_value_is_named(traits, message):
    with pytest.raises(FigureError, match=re.escape(message)):
        NumberFormats(**traits)


def test_a_cosine_is_kept_where_the_slider_can_stand():
    assert NumberFormats(positive=0.70049).positive == 0.7
