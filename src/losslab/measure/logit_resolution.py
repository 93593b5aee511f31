"""What bfloat16 and float16 can tell apart among real logits, by temperature."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from losslab.measure.record import Measurement, Progress, Row, Value

TEMPERATURES = (0.005, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.2, 0.5, 1.0)
FORMATS = {"bfloat16": torch.bfloat16, "float16": torch.float16, "float32": torch.float32}
#: Where rounding happens: to the logits, once they are divided; or to the cosines already, as a matrix product under
#: autocast gives them, and then again to the quotient.
ROUTES = ("logits", "cosines")
WIDTH, SEED = 1024, 0
HARDEST = 10


def resolve(cosines: Tensor, temperature: float, dtype: torch.dtype, route: str = "logits") -> dict[str, float]:
    """Round a batch's logits to a number format and see what is lost.

    Parameters
    ----------
    cosines
        (B, B) float64, positives on the diagonal.
    temperature
        The cosines are divided by it.
    dtype
        Number format.
    route
        One of `ROUTES`.

    Returns
    -------
    dict of str to float
        ``spacing``: distance of neighbouring numbers at the largest logit; ``tied with the positive``: share of queries
        with a negative that scored otherwise than the positive and now scores the same; ``hardest merged``: of each
        query's ten hardest negatives, the share of neighbours that differed and now are equal; ``loss error``: mean
        absolute error of a query's loss in nats, ``loss error max`` the largest; ``gradient error``: largest error of
        an entry of the gradient by the logits.
    """
    exact = cosines / temperature
    if route == "logits":
        rounded = exact.to(dtype)
    elif route == "cosines":
        rounded = cosines.to(dtype) / temperature  # the quotient stays in the format
    else:
        raise ValueError(f"route must be one of {', '.join(ROUTES)}, got {route!r}")
    seen = rounded.double()
    size = len(cosines)
    positive = torch.eye(size, dtype=torch.bool)
    tied = (seen == seen.diagonal()[:, None]) & (exact != exact.diagonal()[:, None]) & ~positive
    order = exact.masked_fill(positive, -torch.inf).argsort(dim=1, descending=True)[:, :HARDEST]
    hard, hard_seen = exact.gather(1, order), seen.gather(1, order)
    differ = hard[:, 1:] != hard[:, :-1]
    merged = differ & (hard_seen[:, 1:] == hard_seen[:, :-1])
    errors = (_losses(seen) - _losses(exact)).abs()
    top = exact.max().to(dtype)
    return {
        "spacing": float(torch.nextafter(top, torch.full_like(top, torch.inf)).double() - top.double()),
        "tied with the positive": float(tied.any(1).double().mean()),
        "hardest merged": float(merged.sum() / differ.sum()),
        "loss error": float(errors.mean()),
        "loss error max": float(errors.max()),
        "gradient error": float((exact.softmax(1) - seen.softmax(1)).abs().max()),
    }


def _losses(logits: Tensor) -> Tensor:
    """InfoNCE of each row in float64, nats: only the logits were rounded, not the loss."""
    return logits.logsumexp(1) - logits.diagonal()


def batch(width: int = WIDTH, seed: int = SEED) -> Tensor:
    """Cosines of a random batch of apidocs, (width, width) float64."""
    from losslab.corpora import apidocs

    corpus = apidocs.load()
    rows = torch.randperm(len(corpus.names), generator=torch.Generator().manual_seed(seed))[:width]
    return corpus.queries[rows].double() @ corpus.documents[rows].double().T


def collect(progress: Progress) -> Iterator[Row]:
    """Every temperature, format and route, on one batch."""
    progress(f"a batch of {WIDTH} pairs of apidocs")
    cosines = batch()
    for temperature in TEMPERATURES:
        for name, dtype in FORMATS.items():
            for route in ROUTES:
                conditions: dict[str, Value] = {"temperature": temperature, "format": name, "rounded": route}
                for metric, value in resolve(cosines, temperature, dtype, route).items():
                    yield {**conditions, "metric": metric, "value": value}


MEASUREMENT = Measurement(
    name="logit-resolution",
    title="What bfloat16 and float16 can tell apart among the logits of a real batch, by temperature",
    columns=("temperature", "format", "rounded", "metric", "value"),
    collect=collect,
    settings={"corpus": "apidocs", "batch": WIDTH, "seed": SEED, "hardest": HARDEST},
)
