"""The promises of a contrastive loss, ``loss(queries (B, d), documents (M, d))``, in the order of a report.

Document i is the positive of query i; the others, further rows included, are its negatives. `rows`: which pair stands
where. `values`: values known beforehand. `negatives`: which documents are negatives. `formats`: numbers, devices,
chunks and the objective. Each promise is one function that draws a batch, runs the loss, and says what should have come
out.
"""

from losslab.contracts.contrastive.formats import CHUNKED, DEVICE, EXTREMES, OBJECTIVE, PRECISION
from losslab.contracts.contrastive.negatives import DUPLICATES, HARD_NEGATIVES
from losslab.contracts.contrastive.rows import MORE_NEGATIVES, POSITIVE_OFFSET, ROW_PERMUTATION, ROWS
from losslab.contracts.contrastive.values import (
    BLIND,
    ONE_PAIR,
    SCALE,
    SCORE_GRADIENTS,
    SYMMETRY,
    TEMPERATURE_LIMITS,
)

CONTRASTIVE = (
    BLIND,
    ONE_PAIR,
    ROWS,
    ROW_PERMUTATION,
    SCALE,
    SCORE_GRADIENTS,
    MORE_NEGATIVES,
    DUPLICATES,
    HARD_NEGATIVES,
    POSITIVE_OFFSET,
    SYMMETRY,
    TEMPERATURE_LIMITS,
    CHUNKED,
    EXTREMES,
    PRECISION,
    DEVICE,
    OBJECTIVE,
)
