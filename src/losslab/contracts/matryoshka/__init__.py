"""The promises of a nested loss, one asked at several sizes of the same embeddings, in the order of a report.

Two call forms: ``wrap(base_loss, dims, weights=None)``, which gives a ``loss(queries (B, d), documents (M, d))``; and a
loss that is nested already, ``loss(queries, documents, dims=…)``. `sizes`: what is asked at each size, and how sizes
add up. `formats`: numbers and devices. `bases`: the losses that a wrapper is tried on.
"""

from losslab.contracts.matryoshka.formats import DEVICE, EXTREMES, PRECISION
from losslab.contracts.matryoshka.sizes import (
    DIMS_ORDER,
    FULL_SIZE,
    PERFECT_STUDENT,
    PREFIX_ONLY,
    PREFIXES,
    RESTORED,
    SCALE,
    SUM_OVER_DIMS,
)

MATRYOSHKA = (
    FULL_SIZE,
    PREFIXES,
    SCALE,
    PREFIX_ONLY,
    SUM_OVER_DIMS,
    DIMS_ORDER,
    PERFECT_STUDENT,
    RESTORED,
    EXTREMES,
    PRECISION,
    DEVICE,
)
