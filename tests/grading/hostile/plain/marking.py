"""What the attacks on plain Python are after."""

import math

from losslab.grading import Item, Lab, Values


def draw(random, size):
    return {"values": [float(value) for value in random.uniform(0.5, 3, size + 1)]}


def total(values):
    found = 0.0
    for value in values:
        found += value
    return found


def perplexity(values):
    return math.exp(total(values) / len(values))


LAB = Lab(
    name="plain",
    title="Plain",
    chapter="perplexity",
    minutes=20,
    form="module",
    items=[
        Item("beside", "Sum", 1, 1, Values("total", draw, total, cases=2, rtol=1e-9)),
        Item("stolen", "Perplexity", 4, 2, Values("perplexity", draw, perplexity, cases=2, rtol=1e-9, partial=True)),
    ],
)
