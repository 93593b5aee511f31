# ruff: noqa: E501  # scripts in one text
"""False negatives: counts, losses and shares against a slow count and torch, masks, and what is refused."""

import gzip
import json
import math
import re

import numpy as np
import pytest
import torch

from losslab.figures import FalseNegatives, FigureError

MASKS = [("none", 0.7, 0.0), ("exact", 0.7, 0.0), ("threshold", 0.6, 0.0), ("threshold", 0.2, 0.0), ("guide", 0.7, 0.0)]
MASKS += [("guide", 0.7, 0.01), ("guide", 0.7, 0.3), ("guide", 0.7, -0.1)]


@pytest.fixture
def figure(false_data):
    return FalseNegatives(**false_data)


def oracle(data, width, mask, threshold, margin):
    """Loss, right loss and the push on right answers, document by document and by torch in float64."""
    allowed, wrong = [], []
    for j in range(width - 1):
        cosine, guide = round(float(data["cosines"][j]), 4), round(float(data["guides"][j]), 4)
        wrong.append(data["kinds"][j] != "")
        limit = round(data["positive_guide"] - margin, 4)
        out = {
            "none": False,
            "exact": data["kinds"][j] in ("duplicate", "summary"),
            "threshold": cosine > threshold,
            "guide": guide > limit,
        }
        allowed.append(not out[mask])

    def loss_of(keep):
        scores = [data["positive"], *(round(float(c), 4) for c, k in zip(data["cosines"], keep, strict=False) if k)]
        z = torch.tensor(scores, dtype=torch.float64, requires_grad=True)
        loss = torch.nn.functional.cross_entropy(z[None] / 0.05, torch.tensor([0]))
        loss.backward()
        return loss.item(), z.grad[1:].tolist()

    loss, push = loss_of(allowed)
    right, _ = loss_of([not w for w in wrong])
    falls = [w for w, a in zip(wrong, allowed, strict=True) if a]
    stolen = sum(p for p, w in zip(push, falls, strict=True) if w) / sum(push) if push else 0.0
    rightly = sum(w and not a for w, a in zip(wrong, allowed, strict=True))
    wrongly = sum(not w and not a for w, a in zip(wrong, allowed, strict=True))
    return loss, right, stolen, sum(wrong), rightly, wrongly


def test_numbers_are_those_of_torch_under_every_mask(figure, false_data, host):
    hosted = host(figure)
    for width in (2, 16, 128, 256):
        for mask, threshold, margin in MASKS:
            hosted.put(width=width, mask=mask, threshold=threshold, margin=margin)
            loss, right, stolen, found, rightly, wrongly = oracle(false_data, width, mask, threshold, margin)
            state = (width, mask, threshold, margin)
            assert hosted.number("loss") == pytest.approx(loss, abs=5.01e-5), state
            assert float(hosted.text("loss-note").split()[-1]) == pytest.approx(right, abs=5.01e-5), state
            if hosted.text("share") != "no negative left":
                assert hosted.number("share") == pytest.approx(100 * stolen, abs=0.51), state
            assert hosted.text("false-title") == f"Right answers here: {found}", state
            assert hosted.text("false-note") == f"{rightly} masked", state
            assert hosted.text("true-note") == (f"{wrongly} lost" if wrongly else "none lost"), state
            assert hosted.says() == figure.describe(), state


def test_random_rows_agree_with_torch(host):
    random = np.random.default_rng(7)
    for _ in range(3):
        pool = int(random.integers(5, 90))
        data = {
            "query": "q",
            "positive": round(float(random.uniform(-0.2, 1)), 4),
            "positive_guide": round(float(random.uniform(0, 1)), 4),
            "names": [f"d{j}" for j in range(pool)],
            "cosines": random.uniform(-1, 1, pool).round(4),
            "guides": random.uniform(-1, 1, pool).round(4),
            "kinds": random.choice(["", "", "", "duplicate", "summary", "near"], pool).tolist(),
            "rate": 0.2,
            "widths": [2, 4],
            "measured": [0.1, 0.2],
            "low": [0.1, 0.1],
            "high": [0.2, 0.3],
        }
        figure = FalseNegatives(**data)
        hosted = host(figure)
        for mask, threshold, margin in MASKS:
            hosted.put(width=pool + 1, mask=mask, threshold=threshold, margin=margin)
            loss, right, *_ = oracle(data, pool + 1, mask, threshold, margin)
            assert hosted.number("loss") == pytest.approx(loss, abs=5.01e-5)
            assert float(hosted.text("loss-note").split()[-1]) == pytest.approx(right, abs=5.01e-5)
            assert hosted.says() == figure.describe()


def test_the_margin_trap(false_data):
    """At margin 0 a duplicate of the positive ties with it, and a tie stays in; a wide margin takes true negatives too."""
    figure = FalseNegatives(**false_data, width=256, mask="guide")
    kept = [j for j in range(255) if figure.kinds[j] == "d" and not figure._masked(j)]
    assert kept == [2, 201]
    assert "removes 0 of them and 0 true negatives" in figure.describe()
    figure.margin = 0.01
    assert "removes 2 of them and 0 true negatives" in figure.describe()
    figure.margin = 0.5
    wide = figure._outcome()
    assert wide.tally(wrong=True) == 5
    assert wide.tally(wrong=False) > 10
    figure.mask = "exact"
    same = sum(kind in "ds" for kind in figure.kinds[:255])  # the positive's text again, or the query's
    assert same > 2
    assert f"Masking exact duplicates removes {same} of them and 0 true negatives" in figure.describe()


def test_the_formula_is_drawn(figure, host):
    hosted = host(figure)
    hosted.put(width=128)
    ticks = {}
    for text in hosted.page.query_selector_all('[data-key^="chance-y-tick-"]'):
        ticks[float(text.text_content().rstrip("%")) / 100] = text.evaluate(
            "n => new DOMMatrix(getComputedStyle(n).transform).f - 4.5"
        )
    (a, ya), (b, yb) = sorted(ticks.items())[0], sorted(ticks.items())[-1]
    mark = hosted.page.query_selector('[data-key="chance-mark"]').evaluate("n => Number(n.getAttribute('cy'))")
    shown = a + (mark - ya) * (b - a) / (yb - ya)
    assert shown == pytest.approx(1 - (1 - figure.rate) ** 127, abs=2e-4)
    assert f"an average query: {127 * figure.rate:.3f}" in figure.describe()


def test_only_the_slider_of_the_mask_is_open(figure, host):
    hosted = host(figure)
    for mask, closed in {
        "none": [True, True],
        "exact": [True, True],
        "threshold": [False, True],
        "guide": [True, False],
    }.items():
        hosted.put(mask=mask)
        got = [hosted.page.get_by_role("slider", name=name).is_disabled() for name in ("Threshold", "Guide’s margin")]
        assert got == closed, mask
    hosted.put(mask="threshold")
    slider = hosted.page.get_by_role("slider", name="Threshold")
    slider.focus()
    hosted.page.keyboard.press("ArrowLeft")
    assert hosted.get("threshold") == [pytest.approx(0.69)]


def test_a_mask_that_leaves_nothing_says_so(host):
    data = {
        "query": "q",
        "positive": 0.9,
        "positive_guide": 0.9,
        "names": ["a", "b"],
        "cosines": [0.8, 0.7],
        "guides": [0.8, 0.7],
    }
    data |= {"kinds": "d-", "rate": 0, "widths": [2, 3], "measured": [0, 0], "low": [0, 0], "high": [0, 0]}
    figure = FalseNegatives(**data, width=3, mask="threshold", threshold=0.3)
    assert figure.describe().endswith("no negative is left, and nothing is taught.")
    hosted = host(figure)
    assert hosted.says() == figure.describe()
    assert hosted.text("share") == "no negative left"
    figure.svg()


def test_a_full_pool_is_light_and_fast(host, record_property):
    random = np.random.default_rng(0)
    words = [
        "numpy",
        "scipy",
        "torch",
        "linalg",
        "sparse",
        "special",
        "nn",
        "functional",
        "sort",
        "solve",
        "norm",
        "fft",
    ]
    names = [".".join(random.choice(words, 4)) + f".f{j}" for j in range(1023)]
    cosines = np.clip(random.normal(0.15, 0.12, 1023), -0.3, 0.9)
    figure = FalseNegatives(
        query="numpy.sort", label="Return a sorted copy.", positive=0.7, positive_guide=0.8, names=names, cosines=cosines,
        guides=np.clip(cosines + random.normal(0, 0.1, 1023), -1, 1), kinds=random.choice(["", "near"], 1023, p=[0.99, 0.01]).tolist(),
        rate=4e-4, widths=[16, 1024], measured=[0.1, 0.2], low=[0.1, 0.2], high=[0.1, 0.2], width=1024,
    )  # fmt: skip
    hosted = host(figure)
    state = json.dumps(hosted.page.evaluate("state"))
    assert len(gzip.compress(state.encode())) <= 40_000
    assert "1,024 documents" in hosted.page.text_content(".ll-controls")
    took = hosted.page.evaluate("""() => { const times = [];
      for (let i = 0; i < 20; i++) { const start = performance.now(); model.set('mask', i % 2 ? 'guide' : 'none'); times.push(performance.now() - start); }
      return times.sort((a, b) => a - b)[10]; }""")
    record_property("measured", f"false_negatives at 1,024: redraw p50 {took:.1f} ms")
    assert took <= 16


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cosines": [0.5]}, "names, cosines, guides and kinds must hold one entry for each of 1 to 1023 documents, not names 255, cosines 1, guides 255, kinds 255"),
        ({"kinds": ["copy"] * 255}, "kinds must be of ['duplicate', 'summary', 'near', ''], not 'copy'"),
        ({"kinds": "x" * 255}, "kinds must be made of d, s, n and -, not 'x'"),
        ({"cosines": [1.5] * 255}, "cosines must be from -1 to 1, not 1.5"),
        ({"guides": [math.nan] * 255}, "guides[0] must be a finite number, not nan"),
        ({"query": " "}, "query must be the query's name, not empty"),
        ({"positive": 2}, "positive must be a number from -1 to 1, not 2"),
        ({"positive": math.nan}, "positive must be a number from -1 to 1, not nan"),
        ({"rate": -0.1}, "rate must be a number from 0 to 1, not -0.1"),
        ({"widths": [32, 16]}, "widths must be two or more, ascending, from 2 on, not [32, 16]"),
        ({"measured": [0.1]}, "measured, low and high must hold one entry for each of the 5 widths"),
        ({"low": [0.9] * 5}, "low ≤ measured ≤ high must hold at every width, all from 0 to 1"),
        ({"width": 512}, "width must be one of [2, 3, 4"),
        ({"mask": "all"}, "mask must be one of ['none', 'exact', 'threshold', 'guide'], not 'all'"),
        ({"threshold": 0.1}, "threshold must be a number from 0.2 to 1, not 0.1"),
        ({"margin": "wide"}, "margin must be a number from -0.1 to 0.5, not 'wide'"),
        ({"temperature": 0}, "temperature must be a number from 0.001 to 10, not 0"),
    ],
)  # fmt: skip
def test_bad_values_are_named(false_data, change, message):
    with pytest.raises(FigureError, match=re.escape(message)):
        FalseNegatives(**{**false_data, **change})


def test_measured_data_are_needed_and_given_once(figure, false_data):
    with pytest.raises(TypeError, match="FalseNegatives shows what was measured and needs query, names, kinds"):
        FalseNegatives()
    with pytest.raises(TypeError, match=r"needs guides$"):
        FalseNegatives(**{key: value for key, value in false_data.items() if key != "guides"})
    with pytest.raises(FigureError, match="cosines is given once"):
        figure.cosines = [0.1] * 255
    with pytest.raises(FigureError, match="rate is given once"):
        figure.rate = 0.5
    tensors = {key: torch.tensor(false_data[key]) for key in ("cosines", "guides")}
    assert FalseNegatives(**{**false_data, **tensors}).describe() == figure.describe()
