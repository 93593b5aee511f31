"""A mean over all pairs of the batch, where long lists have nearly all of them."""

import torch
from torch import Tensor
from torch.nn.functional import softplus

from losslab.mistakes._examples import one_list, tensor
from losslab.mistakes._parts import mean_over_lists, real
from losslab.mistakes._record import Example, Function, Mistake


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


def show(loss: Function, *, logits: list[float], labels: list[float], documents_of_the_other: int) -> float:
    """Gradient of a query alone over its gradient beside one with so many documents, all with different labels."""
    n, width = len(logits), documents_of_the_other
    z = tensor([[*logits, *[0.0] * (width - n)], [0.0] * width]).requires_grad_()
    y = tensor([[*labels, *[0.0] * (width - n)], list(range(width))])
    mask = torch.stack([torch.arange(width) < n, torch.ones(width, dtype=torch.bool)])
    (together,) = torch.autograd.grad(loss(z, y, mask), z)
    return one_list(loss, logits, labels)[1][0] / together[0, 0].item()


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
    example=Example(
        {"logits": [1.0, 0.0], "labels": [1, 0], "documents_of_the_other": 40},
        show,
        what="how many times smaller the gradient is in the batch than alone",
        note="A mean over two queries halves it.",
    ),
)
