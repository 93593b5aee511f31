"""Training objectives, one a file: pure functions on tensors."""

from losslab.losses import false_negatives
from losslab.losses.graded_info_nce import graded_info_nce
from losslab.losses.gradient_cached import gradient_cached
from losslab.losses.info_nce import info_nce
from losslab.losses.list_mle import list_mle
from losslab.losses.list_net import list_net
from losslab.losses.matryoshka import matryoshka
from losslab.losses.multi_positive_info_nce import multi_positive_info_nce
from losslab.losses.p_list_mle import p_list_mle
from losslab.losses.step_statistics import StepStatistics, step_statistics

__all__ = [
    "StepStatistics",
    "false_negatives",
    "graded_info_nce",
    "gradient_cached",
    "info_nce",
    "list_mle",
    "list_net",
    "matryoshka",
    "multi_positive_info_nce",
    "p_list_mle",
    "step_statistics",
]
