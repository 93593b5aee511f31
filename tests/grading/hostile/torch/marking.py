"""What the attacks with torch are after."""

import math

from losslab.grading import Item, Lab, Values


def draw_scale(random, size):
    return {"x": random.normal(size=size), "factor": 2.5}


def scale(x, factor):
    return x * factor


def draw_batch(random, size):
    shape = (size + 1, 3)
    return {"queries": random.normal(size=shape), "documents": random.normal(size=shape), "temperature": 0.5}


def info_nce(queries, documents, temperature):
    losses = 0.0
    for i in range(len(queries)):
        scores = [float(sum(q * d for q, d in zip(queries[i], x, strict=True))) / temperature for x in documents]
        losses += math.log(sum(math.exp(score) for score in scores)) - scores[i]
    return losses / len(queries)


LAB = Lab(
    name="torch",
    title="Torch",
    chapter="infonce",
    minutes=20,
    items=[
        Item("beside", "Scale", 1, 1, Values("scale", draw_scale, scale, cases=2)),
        Item(
            "stolen",
            "InfoNCE",
            4,
            2,
            Values(
                "info_nce", draw_batch, info_nce, gradients=("queries",), cases=2, rtol=1e-4, atol=1e-4, partial=True
            ),
        ),
    ],
)
