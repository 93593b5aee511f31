# ruff: noqa: E501  # scripts in one text
"""Averaging: every average against sums over single tokens, the reach over orders, and what is refused."""

import math
import re
from itertools import pairwise

import numpy as np
import pytest
import torch

from losslab.figures import Averaging, FigureError
from losslab.figures._averages import ORDERS, orders_of, perplexity_of, weights_of
from losslab.figures.averaging import AVERAGES

SCRIPT = """async (cases) => {
  const { ordersOf, perplexityOf, weightsOf } = await import("/averages.js");
  return cases.map(([average, tokens, means, seed, batch]) => {
    const order = ordersOf(tokens.length)[seed], weights = weightsOf(average, tokens, order, batch);
    return [order, weights, perplexityOf(average, means, weights)];
  });
}"""


@pytest.fixture
def figure(averaging_data):
    return Averaging(**averaging_data)


def oracle(nll, average, order, batch):
    """Every average token by token, by torch in float64, as an evaluation loop takes it."""
    texts = [torch.as_tensor(np.asarray(nll[i]), dtype=torch.float64) for i in order]
    if average == "tokens":
        return torch.cat(texts).mean().exp().item()
    if average == "texts":
        return torch.stack([text.mean() for text in texts]).mean().exp().item()
    if average == "perplexities":
        return torch.stack([text.mean().exp() for text in texts]).mean().item()
    means = [torch.cat(texts[k : k + batch]).mean() for k in range(0, len(texts), batch)]
    return torch.stack(means).mean().exp().item()


def accumulated(nll, order, batch):
    """exp of what gradient accumulation descends where every micro-batch takes its own mean and divides by their number."""
    steps = [order[k : k + batch] for k in range(0, len(order), batch)]
    total = 0.0
    for step in steps:
        losses = np.concatenate([nll[i] for i in step])
        total += losses.sum() / len(losses) / len(steps)
    return math.exp(total)


def random_cases():
    random = np.random.default_rng(3)
    for n in (3, 4, 5, 8, 12):
        nll = [random.gamma(1.5, random.uniform(0.3, 2), random.integers(1, 90)) for _ in range(n)]
        for batch in range(1, n + 1):
            for seed in (0, 1, 13, 20):
                yield nll, batch, seed


def test_every_average_is_the_one_over_single_tokens(host, figure):
    given, right = [], []
    for nll, batch, seed in random_cases():
        order = orders_of(len(nll))[seed]
        tokens, means = [len(row) for row in nll], [float(row.mean()) for row in nll]
        for average in AVERAGES:
            given.append([average, tokens, means, seed, batch])
            right.append((order, weights_of(average, tokens, order, batch), oracle(nll, average, order, batch)))
    answers = host(figure).page.evaluate(SCRIPT, given)
    for case, (order, weights, perplexity), answer in zip(given, right, answers, strict=True):
        assert answer[0] == order
        assert answer[1] == pytest.approx(weights, abs=1e-15)
        assert sum(weights) == pytest.approx(1)
        assert answer[2] == pytest.approx(perplexity, rel=1e-12), case
        assert perplexity_of(case[0], case[2], weights) == pytest.approx(perplexity, rel=1e-12), case


def test_the_mean_of_batch_means_is_what_accumulation_descends():
    for nll, batch, seed in random_cases():
        order = orders_of(len(nll))[seed]
        assert oracle(nll, "batches", order, batch) == pytest.approx(accumulated(nll, order, batch), rel=1e-12)


def test_what_is_drawn_is_that_average(figure, averaging_data, host):
    hosted = host(figure, reduced_motion="reduce")
    nll = averaging_data["nll"]
    for batch, seed in ((1, 0), (2, 0), (3, 5), (5, 20), (8, 9)):
        order = orders_of(8)[seed]
        for average in AVERAGES:
            hosted.put(average=average, batch=batch, seed=seed)
            assert hosted.says() == figure.describe()
            value = oracle(nll, average, order, batch)
            assert hosted.number("perplexity") == pytest.approx(value, abs=5.1e-4)
            for one in AVERAGES:
                assert hosted.number(f"average-{one}") == pytest.approx(oracle(nll, one, order, batch), abs=5.1e-4)
            assert float(hosted.text("averages-right-name").split()[-1]) == pytest.approx(
                oracle(nll, "tokens", order, 1), abs=5.1e-4
            )


def test_areas_are_the_losses(figure, averaging_data, host):
    """Of the lower bars: width as the tokens, height as the mean, and so area as the sum of a text's losses."""
    hosted = host(figure, reduced_motion="reduce")
    boxes = hosted.page.evaluate("""() => [...Array(8).keys()].map((i) => ["is", "should"].map((key) => {
      const bar = document.querySelector(`[data-key="${key}-bar-${i}"]`); return ["width", "height"].map((name) => Number(bar.getAttribute(name))); }))""")
    sums = [float(row.sum()) for row in averaging_data["nll"]]
    sizes = [len(row) for row in averaging_data["nll"]]
    room = sum(width + 1 for _, (width, _) in boxes)
    for (_, (width, height)), total, size in zip(boxes, sums, sizes, strict=True):
        if size > 50:
            assert (width + 1) / room == pytest.approx(size / sum(sizes), rel=1e-2)
        assert height / boxes[0][1][1] == pytest.approx((total / size) / (sums[0] / sizes[0]), rel=1e-4)
    weights = weights_of("batches", sizes, list(range(8)), 2)
    wide = sum(width + 1 for (width, _), _ in boxes)
    assert [(width + 1) / wide for (width, _), _ in boxes] == pytest.approx(weights, abs=6e-3)


def test_the_right_one_stands_still_and_the_others_move(figure, averaging_data):
    """Over every order and every batch size, the model and its losses unchanged."""
    seen = {average: set() for average in AVERAGES}
    for seed in range(ORDERS):
        for batch in range(1, 9):
            for average in AVERAGES:
                seen[average].add(round(figure._value(average, batch, seed), 9))
    assert [len(seen[average]) for average in ("tokens", "texts", "perplexities")] == [1, 1, 1]
    assert len(seen["batches"]) > 60
    order = orders_of(8)[4]
    nll = averaging_data["nll"]
    one_batch, single = oracle(nll, "batches", order, 8), oracle(nll, "batches", order, 1)
    assert one_batch == pytest.approx(oracle(nll, "tokens", order, 8))  # one batch of all texts is right
    assert single == pytest.approx(oracle(nll, "texts", order, 1))
    figure.average, figure.batch = "batches", 8
    assert "as over all 3,506 tokens." in figure.describe()
    low, high = figure._spans[2]
    values = [oracle(nll, "batches", one, 3) for one in orders_of(8)]
    assert (low, high) == pytest.approx((min(values), max(values)), rel=1e-6)


def test_orders_are_orders():
    for n in range(3, 13):
        orders = orders_of(n)
        assert len(orders) == ORDERS
        assert orders[0] == list(range(n))
        assert all(sorted(order) == orders[0] for order in orders)
        assert all(order != orders[0] for order in orders[1:])
        assert all(a != b for a, b in pairwise(orders))


def test_the_comparison_sees_equal_weights():
    """Planted faults: weights by text where they should be by token, and a last batch that weighs by its size."""
    nll, order = [np.full(90, 0.5), np.full(10, 3.0), np.full(10, 3.0)], [0, 1, 2]
    right = oracle(nll, "batches", order, 2)
    tokens, means = [90, 10, 10], [0.5, 3.0, 3.0]
    assert perplexity_of("batches", means, weights_of("batches", tokens, order, 2)) == pytest.approx(right)
    assert perplexity_of("batches", means, weights_of("texts", tokens, order, 2)) != pytest.approx(right, rel=0.05)
    assert perplexity_of("batches", means, weights_of("tokens", tokens, order, 2)) != pytest.approx(right, rel=0.05)


def test_every_control_acts_in_every_state(figure, host):
    hosted = host(figure, reduced_motion="reduce")
    shown = "document.querySelector('.ll-live').textContent + document.querySelector('svg[role=img]').innerHTML"
    for average in AVERAGES:
        for batch in (1, 4, 8):
            for seed in (0, 20):
                state = {"average": average, "batch": batch, "seed": seed}
                hosted.put(**state)
                before = hosted.page.evaluate(shown)
                others = [{"average": one} for one in AVERAGES if one != average]
                for other in (*others, {"batch": 8 if batch < 8 else 1}, {"seed": 20 - seed}):
                    hosted.put(**other)
                    assert hosted.page.evaluate(shown) != before, (state, other)
                    hosted.put(**state)


def test_losses_come_as_arrays_tensors_or_means(averaging_data, figure):
    nll = [torch.tensor(row) for row in averaging_data["nll"]]
    assert Averaging(names=averaging_data["names"], nll=nll).means == figure.means
    means = [float(np.mean(row)) for row in averaging_data["nll"]]
    sizes = [len(row) for row in averaging_data["nll"]]
    same = Averaging(names=averaging_data["names"], tokens=np.array(sizes), means=np.array(means))
    assert (same.tokens, same.means, same.describe()) == (figure.tokens, figure.means, figure.describe())
    flat = Averaging(names=["a", "b", "c"], nll=[[0.0], [0.0, 0.0], [0.0]])
    assert "perplexity 1.000, as over all 4 tokens." in flat.describe()
    flat.svg()


def test_twelve_texts_fit(host):
    random = np.random.default_rng(0)
    names = [f"torch.nn.functional.scaled_dot_product_attention_{i}" for i in range(12)]
    figure = Averaging(names=names, nll=[random.gamma(2, 3, n) for n in np.geomspace(1, 9000, 12).astype(int)])
    hosted = host(figure, width=390)
    for average in AVERAGES:
        hosted.put(average=average, batch=5, seed=3)
        assert hosted.says() == figure.describe()
        figure.svg()
    assert hosted.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0


GOOD = {"names": ["a", "b", "c"], "tokens": [5, 2, 9], "means": [1.0, 2.0, 0.5]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"names": ["a", "b"]}, "Averaging: names, tokens and means must hold one entry for each of 3 to 12 texts, not names 2, tokens 3, means 3"),
        ({"names": ["a", " ", "c"]}, "names must name every text, not leave one empty"),
        ({"tokens": [5, 0, 9]}, "tokens must be 1 or more; leave out texts of which nothing was scored"),
        ({"tokens": [5, 2.5, 9]}, "tokens[1] must be an int of 0 or more, not 2.5"),
        ({"means": [1.0, math.inf, 2.0]}, "means[1] must be a finite number, not inf"),
        ({"means": [1.0, -0.5, 2.0]}, "means must be from 0 to 20 nats, not -0.5"),
        ({"means": [1.0, 25, 2.0]}, "means must be from 0 to 20 nats, not 25.0"),
        ({"average": "median"}, "Averaging: average must be one of 'tokens', 'batches', 'texts', 'perplexities', not 'median'"),
        ({"batch": 4}, "batch must be an int from 1 to 3, the number of texts, not 4"),
        ({"batch": 0}, "Averaging: batch must be an int from 1 to 12, not 0"),
        ({"seed": 21}, "Averaging: seed must be an int from 0 to 20, not 21"),
        ({"tokens": None, "means": None, "nll": [[1.0], [], [2.0]]}, "nll[1] has no token; leave out texts of which nothing was scored"),
        ({"tokens": None, "means": None, "nll": [[1.0], [-0.1], [2.0]]}, "nll[1] must be losses of 0 or more, not -0.1"),
        ({"tokens": None, "means": None, "nll": [[1.0], [math.nan], [2.0]]}, "nll[1][0] must be a finite number, not nan"),
    ],
)  # fmt: skip
def test_bad_values_are_named(change, message):
    with pytest.raises(FigureError, match=re.escape(message)):
        Averaging(**{key: value for key, value in {**GOOD, **change}.items() if value is not None})


def test_data_are_needed_and_given_once():
    with pytest.raises(TypeError, match="Averaging shows what was measured and needs names, tokens, means"):
        Averaging()
    with pytest.raises(TypeError, match="takes nll or tokens and means, not nll and tokens and means"):
        Averaging(**GOOD, nll=[[1.0], [1.0], [1.0]])
    figure = Averaging(**GOOD)
    with pytest.raises(FigureError, match="tokens is given once"):
        figure.tokens = [1, 1, 1]


def test_the_twin_and_its_words(averaging_data):
    for average in AVERAGES:
        figure = Averaging(**averaging_data, average=average, batch=3, seed=2)
        assert figure.svg() == Averaging(**averaging_data, average=average, batch=3, seed=2).svg()
        assert figure._repr_mimebundle_()[1]["image/svg+xml"]["alt"] == figure.describe()
