"""Real libraries' losses, behind the one call form that contracts know."""

from losslab.contracts.adapters.callables import callable_loss
from losslab.contracts.adapters.sentence_transformers import (
    FixedLogits,
    is_sentence_transformers_loss,
    sentence_transformers_loss,
)

__all__ = ["FixedLogits", "callable_loss", "is_sentence_transformers_loss", "sentence_transformers_loss"]
