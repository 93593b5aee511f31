"""The promises of a token loss, ``loss(logits (B, T, V), labels (B, T))``, in the order of a report.

Labels are the input ids, and the loss shifts them once; or, declared ``shift=False``, they are given shifted.
`targets`: which row is judged by which token, and what is no target. `values`: values known beforehand, gradients, sums
of parts. `formats`: numbers and devices. Each promise is one function that draws texts, runs the loss, and says what
should have come out.
"""

from losslab.contracts.token.formats import DEVICE, EXTREMES
from losslab.contracts.token.targets import (
    BATCHING,
    IGNORED_LABELS,
    MASK,
    NO_TARGET,
    PADDING,
    PADDING_SIDE,
    SHIFT,
)
from losslab.contracts.token.values import (
    ACCUMULATION,
    BASE,
    FORBIDDEN,
    GRADIENTS,
    OBJECTIVE,
    ROW_SHIFT,
    UNDERFLOW,
    UNIFORM,
)

TOKEN = (
    SHIFT,
    UNIFORM,
    BASE,
    ROW_SHIFT,
    PADDING,
    PADDING_SIDE,
    IGNORED_LABELS,
    MASK,
    BATCHING,
    ACCUMULATION,
    NO_TARGET,
    UNDERFLOW,
    FORBIDDEN,
    GRADIENTS,
    EXTREMES,
    DEVICE,
    OBJECTIVE,
)
