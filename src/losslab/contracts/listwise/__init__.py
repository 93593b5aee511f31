"""The promises of a listwise loss, ``loss(logits (B, N), labels (B, N), mask (B, N) bool)``, in the order of a report.

`batch`: what stands around a query. `order`: which document comes where. `values`: numbers and their formats.
`device`: where it runs. Each promise is one function that draws an input, runs the loss, and says what should have
come out; a `Contract` gives it its name, its sentence and its exemptions.
"""

from losslab.contracts.listwise.batch import BATCH_INVARIANCE, PADDING_GRADIENT, PADDING_INVARIANCE, SHORT_LISTS
from losslab.contracts.listwise.device import DEVICE
from losslab.contracts.listwise.order import PERMUTATION, TIE_ORDER
from losslab.contracts.listwise.values import EXTREME_LOGITS, OBJECTIVE, PRECISION, SHIFT_INVARIANCE

LISTWISE = (
    PADDING_INVARIANCE,
    BATCH_INVARIANCE,
    PADDING_GRADIENT,
    SHORT_LISTS,
    PERMUTATION,
    TIE_ORDER,
    SHIFT_INVARIANCE,
    EXTREME_LOGITS,
    PRECISION,
    DEVICE,
    OBJECTIVE,
)
