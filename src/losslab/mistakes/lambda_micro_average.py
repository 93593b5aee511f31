"""A mean over all pairs of the batch, where long lists have nearly all of them."""

from torch import Tensor
from torch.nn.functional import softplus

from losslab.mistakes._parts import mean_over_lists, real
from losslab.mistakes._record import Mistake


def pair_costs(logits: Tensor, labels: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """RankNet: log(1 + exp(z_j - z_i)) where i should precede j, 0 elsewhere, and which pairs those are: (B, N, N)."""
    mask = real(mask, logits)
    logits, labels = logits.double().masked_fill(~mask, 0), labels.masked_fill(~mask, 0)
    precedes = (labels[:, :, None] > labels[:, None, :]) & mask[:, :, None] & mask[:, None, :]
    return softplus(logits[:, None, :] - logits[:, :, None]).masked_fill(~precedes, 0), precedes


def wrong(logits: Tensor, labels: Tensor, mask: Tensor | None = None) -> Tensor:
    """RankNet averaged over pairs: a list of 40 has 780 times the say of a list of 2."""
    costs, pairs = pair_costs(logits, labels, mask)
    # The mistake, or the design: one mean over all pairs, so each query's weight is its number of pairs.
    return (costs.sum() / pairs.sum().clamp(min=1)).to(logits.dtype)


def right(logits: Tensor, labels: Tensor, mask: Tensor | None = None) -> Tensor:
    """RankNet averaged over queries: each query's mean over its own pairs."""
    costs, pairs = pair_costs(logits, labels, mask)
    per_list = costs.sum((1, 2)) / pairs.sum((1, 2)).clamp(min=1)
    return mean_over_lists(per_list, real(mask, logits), logits.dtype)


MISTAKE = Mistake(
    name="lambda_micro_average",
    kind="listwise",
    title="A mean over pairs",
    symptom="A two-document query's gradient shrinks 781 times beside one list of 40, and keeps its direction.",
    cause="The mean is taken over all pairs of the batch, and a list of n documents has up to n(n-1)/2 of them.",
    source="huggingface/sentence-transformers (cross_encoder/losses/lambda_loss.py; by design, no report found)",
    case="lambda-micro-average",
    breaks="batch_invariance",
    wrong=wrong,
    right=right,
)
