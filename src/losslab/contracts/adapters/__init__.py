"""Real libraries' losses, behind the call forms that contracts know."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from losslab.contracts.adapters.callables import callable_loss
from losslab.contracts.adapters.cross_encoder import in_batch_cross_encoder_loss, is_in_batch_cross_encoder_loss
from losslab.contracts.adapters.embedding_losses import StoredEmbeddings, embedding_loss, is_embedding_loss
from losslab.contracts.adapters.matryoshka import is_matryoshka_library_loss, matryoshka_library_loss
from losslab.contracts.adapters.metric_learning import is_metric_learning_loss, metric_learning_loss
from losslab.contracts.adapters.sentence_transformers import (
    FixedLogits,
    is_sentence_transformers_loss,
    sentence_transformers_loss,
)
from losslab.contracts.adapters.token_losses import is_token_library_loss, token_library_loss


def is_contrastive_library_loss(loss: object) -> bool:
    """Whether a library's contrastive loss, class or instance, that an adapter knows."""
    return is_embedding_loss(loss) or is_in_batch_cross_encoder_loss(loss) or is_metric_learning_loss(loss)


def contrastive_library_loss(loss: Any, /, **options: Any) -> Callable[..., Any]:  # noqa: ANN401
    """Wrap it in the call form ``loss(queries (B, d), documents (M, d))``, its conventions attached."""
    if is_metric_learning_loss(loss):
        return metric_learning_loss(loss, **options)
    return (in_batch_cross_encoder_loss if is_in_batch_cross_encoder_loss(loss) else embedding_loss)(loss, **options)


__all__ = [
    "FixedLogits",
    "StoredEmbeddings",
    "callable_loss",
    "contrastive_library_loss",
    "embedding_loss",
    "in_batch_cross_encoder_loss",
    "is_contrastive_library_loss",
    "is_embedding_loss",
    "is_in_batch_cross_encoder_loss",
    "is_matryoshka_library_loss",
    "is_metric_learning_loss",
    "is_sentence_transformers_loss",
    "is_token_library_loss",
    "matryoshka_library_loss",
    "metric_learning_loss",
    "sentence_transformers_loss",
    "token_library_loss",
]
