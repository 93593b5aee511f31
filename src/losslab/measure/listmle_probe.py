"""Ask one installed sentence-transformers what its list losses make of a few small lists.

Run as ``python -m losslab.measure.listmle_probe`` it prints the rows as JSON, for the version first on ``sys.path``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import partial

from losslab.measure.fixed_logits import run_real
from losslab.measure.record import Row

WIDTHS = (2, 3, 4, 6, 12, 16, 17, 40)

#: Question, our query's logits and labels, and whether somebody else's list of growing width stands beside it.
QUERIES: tuple[tuple[str, tuple[float, ...], tuple[float, ...], bool], ...] = (
    ("padding", (1.5, 0.3), (2, 1), True),
    ("tie order", (0.2, 1.0, -1.0), (0, 1, 0), True),
    ("overflow", (2, 0), (2, 1), False),
    ("overflow", (90, 88), (2, 1), False),
    ("overflow", (1000, 998), (2, 1), False),
    ("overflow", (-23, -25), (2, 1), False),
    ("overflow", (-30, -32), (2, 1), False),
    ("overflow", (-1000, -1002), (2, 1), False),
)


def probe() -> Iterator[Row]:
    """Loss and gradient of each query by class, order and width, as a query's own: not halved by the batch of two.

    Beside our query stands a list of ``width`` documents with logits 0 and distinct labels. Its own loss, measured
    alone, is taken off the doubled batch loss; in float32 that leaves about 1e-5 at width 40.
    """
    from sentence_transformers import __version__
    from sentence_transformers.cross_encoder import losses

    for name in ("ListMLELoss", "PListMLELoss"):
        for respect in (True, False):
            make_loss = partial(getattr(losses, name), respect_input_order=respect)
            for question, logits, labels, beside in QUERIES:
                for width in [w for w in WIDTHS if w >= len(logits)] if beside else [len(logits)]:
                    if beside:
                        other, other_labels = [0.0] * width, list(range(width, 0, -1))
                        batch, gradients = run_real(make_loss, [logits, other], [labels, other_labels])
                        value = 2 * batch - run_real(make_loss, [other], [other_labels])[0]
                        gradient = [2 * entry for entry in gradients[0]]
                    else:
                        value, (gradient,) = run_real(make_loss, [logits], [labels])
                    conditions = {
                        "version": __version__,
                        "loss": name,
                        "respect_input_order": respect,
                        "question": question,
                        "logits": _spaced(logits),
                        "labels": _spaced(labels),
                        "width": width,
                    }
                    yield {**conditions, "quantity": "loss", "document": None, "value": value}
                    for document, entry in enumerate(gradient, start=1):
                        yield {**conditions, "quantity": "gradient", "document": document, "value": entry}


def _spaced(numbers: Sequence[float]) -> str:
    return " ".join(f"{number:g}" for number in numbers)


if __name__ == "__main__":
    print(json.dumps(list(probe())))
