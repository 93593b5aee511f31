# ruff: noqa: E501  # scripts in one text
"""The formulas of the live figures, in JavaScript and in Python, against torch in float64."""

import math
import random
from itertools import pairwise

import pytest
import torch

from losslab.figures import Flip, GhostDocuments
from losslab.figures._listwise import list_mle as python_list_mle
from losslab.figures._numbers import brief, fixed, listed, num, percent, plural, signed

PUBLISHED = {2: 0.2633, 3: 0.9759, 4: 1.4671, 6: 2.1627}  # loss of our query by width, to four digits


def oracle(logits, padding, masked):
    """ListMLE with the mask applied too late or in time: the lines of the library's code, by torch in float64."""
    z = torch.tensor(logits, dtype=torch.float64, requires_grad=True)
    row = torch.cat([z, torch.full((padding,), 1e-16, dtype=torch.float64)])
    if masked:
        row = row[: len(logits)]
    normalisers = row.flip(0).logcumsumexp(0).flip(0)[: len(logits)]
    loss = (normalisers - z).sum()
    loss.backward()
    return loss.item(), z.grad.tolist()


def cases():
    generator = random.Random(0)
    for n in range(300):
        spread = generator.choice([1, 8, 60])
        logits = [generator.uniform(-spread, spread) for _ in range(generator.randint(1, 7))]
        yield logits, n % 6, n % 2 == 0
    yield [900.0, -900.0], 1, False
    yield [-900.0, 900.0, 0.0], 3, True
    yield [0.0], 0, True
    yield [1e-16, 1e-16], 10, False


def off(value, right):
    return abs(value - right) / max(1, abs(right))


def test_both_agree_with_torch(host):
    inputs = list(cases())
    page = host(Flip()).page
    answers = page.evaluate(
        """async (inputs) => {
          const { listMle } = await import("/listwise.js");
          return inputs.map(([logits, padding, masked]) => listMle(logits, padding, masked));
        }""",
        inputs,
    )
    for (logits, padding, masked), answer in zip(inputs, answers, strict=True):
        loss, gradient = oracle(logits, padding, masked)
        python = python_list_mle(logits, padding, masked)
        assert off(answer["loss"], loss) <= 1e-12, (logits, padding, masked)
        assert off(python.loss, loss) <= 1e-12, (logits, padding, masked)
        for mine, twin, right in zip(answer["gradient"], python.gradient, gradient, strict=True):
            assert abs(mine - right) <= 1e-12, (logits, padding, masked)
            assert abs(twin - right) <= 1e-12, (logits, padding, masked)
        for choice, twin in zip(answer["choices"], python.choices, strict=True):
            assert math.isclose(sum(choice["shares"]) + choice["ghosts"], 1, abs_tol=1e-12)
            assert choice["shares"] == pytest.approx(twin.shares, abs=1e-12)
            assert choice["ghosts"] == pytest.approx(twin.ghosts, abs=1e-12)
        assert math.isclose(sum(choice["cost"] for choice in answer["choices"]), answer["loss"], abs_tol=1e-9)


def test_the_comparison_sees_a_late_mask():
    """Planted fault: had the formula masked in time where it should be late, the oracle would say so."""
    loss, _ = oracle([1.5, 0.3], 1, masked=False)
    assert off(python_list_mle([1.5, 0.3], 1, masked=True).loss, loss) > 0.1


def test_published_numbers_are_drawn(host):
    flip, ghosts = host(Flip()), host(GhostDocuments())
    for width, loss in PUBLISHED.items():
        for figure in (flip, ghosts):
            figure.put(width=width)
            assert figure.number("loss") == loss
    signs = {}
    for width in range(2, 13):
        ghosts.put(width=width)
        flip.put(width=width)
        right_loss, right = oracle([1.5, 0.3], width - 2, masked=False)
        assert abs(ghosts.number("loss") - right_loss) <= 5.01e-5
        assert [ghosts.number(f"push-{i}-now") for i in range(2)] == pytest.approx(right, abs=5.01e-5)
        assert flip.number("b-now") == ghosts.number("push-1-now")
        signs[width] = right[1] > 0
        shown = flip.page.query_selector('[data-key="push-b-flip"]') is None
        assert shown == signs[width]
    assert signs == {width: width == 2 for width in range(2, 13)}  # down at 2, as it should be, and up from 3 on
    ghosts.put(fixed=True)
    assert ghosts.number("loss") == PUBLISHED[2]


NUMBERS = [
    0,
    -0.0,
    0.5,
    1.5,
    2.5,
    -0.5,
    0.00004,
    -0.00004,
    0.12345,
    1.005,
    9.995,
    99.95,
    178.667,
    -1.05207,
    1e-9,
    88.888,
]


def test_numbers_are_printed_alike(host):
    page = host(Flip()).page
    numbers = NUMBERS + [random.Random(1).uniform(-3, 3) for _ in range(200)]
    answers = page.evaluate(
        """async (numbers) => {
          const kit = await import("/kit.js");
          return {
            numbers: numbers.map((n) => [n.toFixed(2), kit.num(n), kit.num(n, 1), kit.signed(n), kit.percent(n), kit.percent(n, 0), kit.brief(n)]),
            words: [[0, "ghost"], [1, "ghost"], [2, "ghost"]].map(([n, noun]) => kit.plural(n, noun)),
            lists: [["A"], ["A", "B"], ["A", "B", "C"]].map(kit.listed),
          };
        }""",
        numbers,
    )
    for n, answer in zip(numbers, answers["numbers"], strict=True):
        right = [fixed(n, 2), num(n), num(n, 1), signed(n), percent(n), percent(n, 0), brief(n)]
        assert answer[1:] == right[1:], n
        assert float(answer[0]) == float(right[0]), n
    assert answers["words"] == [plural(n, "ghost") for n in range(3)] == ["0 ghosts", "1 ghost", "2 ghosts"]
    assert answers["lists"] == [listed("A"), listed("AB"), listed("ABC")] == ["A", "A and B", "A, B and C"]
    assert (num(-1.5), signed(1.5), signed(-1e-9), percent(0.5)) == ("−1.5000", "+1.5000", "0.0000", "50.0%")


def test_axes_and_labels(host):
    page = host(Flip()).page
    answer = page.evaluate(
        """async () => {
          const { linear, logarithmic, spread } = await import("/kit.js");
          const log = logarithmic([1000, 1], [0, 300]), labels = [[10, 30], [12, 30], [14, 30], [95, 30]];
          return { line: linear([0, 2], [10, 30])(1.5), log: [1000, 100, 10, 1].map(log),
                   centres: spread(labels.map(([x, width]) => ({ x, width })), 0, 200, 5) };
        }"""
    )
    assert answer["line"] == 25
    assert answer["log"] == pytest.approx([0, 100, 200, 300])
    centres = answer["centres"]
    assert centres[0] >= 15
    assert all(b - a >= 35 - 1e-9 for a, b in pairwise(centres))
