"""Training objectives, one a file: pure functions on tensors."""

from losslab.losses.info_nce import info_nce
from losslab.losses.list_mle import list_mle
from losslab.losses.list_net import list_net
from losslab.losses.p_list_mle import p_list_mle

__all__ = ["info_nce", "list_mle", "list_net", "p_list_mle"]
