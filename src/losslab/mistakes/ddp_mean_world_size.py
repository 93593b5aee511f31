"""A gather without gradients, averaged over processes once more."""

import torch
from torch import Tensor

from losslab.mistakes._examples import tensor
from losslab.mistakes._parts import own_costs
from losslab.mistakes._record import Example, Function, Mistake


def on_rank(weights: Tensor, queries: Tensor, documents: Tensor, rank: int) -> Tensor:
    """InfoNCE of the whole batch on one process, (k, d), (W, b, k) twice -> scalar.

    The other processes' embeddings have come by a gather that carries no gradient.
    """
    q, d = (
        torch.cat([own @ weights if r == rank else (own @ weights).detach() for r, own in enumerate(texts)])
        for texts in (queries, documents)
    )
    return own_costs(q @ d.T).mean()


def averaged(weights: Tensor, queries: Tensor, documents: Tensor, times: float) -> Tensor:
    """What DistributedDataParallel leaves in every process: the mean of their gradients, (k, d)."""
    losses = [times * on_rank(weights, queries, documents, rank) for rank in range(len(queries))]
    return torch.stack([torch.autograd.grad(loss, weights)[0] for loss in losses]).mean(0)


def wrong(weights: Tensor, queries: Tensor, documents: Tensor) -> Tensor:
    """Gradient of a step on W processes, (k, d), (W, b, k) twice -> (k, d)."""
    # The mistake: each process has its own texts' share of the gradient; a mean of W shares is the sum divided by W.
    return averaged(weights, queries, documents, 1.0)


def right(weights: Tensor, queries: Tensor, documents: Tensor) -> Tensor:
    """Gradient of a step on W processes, each loss multiplied by W."""
    return averaged(weights, queries, documents, float(len(queries)))


def whole(weights: Tensor, queries: Tensor, documents: Tensor) -> Tensor:
    """Gradient of the same batch in one process."""
    q, d = (texts.flatten(0, 1) @ weights for texts in (queries, documents))
    return torch.autograd.grad(own_costs(q @ d.T).mean(), weights)[0]


def the_step_is_that_of_one_process(step: Function, seed: int = 0) -> str | None:
    """Look for a batch on several processes, fewest first, whose step has another length or direction than on one."""
    generator = torch.Generator().manual_seed(seed)
    for world in (1, 2, 3, 4):
        weights = torch.randn(2, 2, generator=generator, dtype=torch.float64).requires_grad_()
        queries, documents = torch.randn(2, world, 2, 2, generator=generator, dtype=torch.float64)
        got, want = step(weights, queries, documents), whole(weights, queries, documents)
        if (got - want).abs().max() > 1e-9:
            return f"on {world} processes the step is {got.norm():.4g} long, on one {want.norm():.4g}"
    return None


def show(step: Function, *, weight: float, queries: list[float], documents: list[float]) -> float:
    """Gradient of a model of one weight, a query and a document a process."""
    texts = (tensor(numbers).reshape(-1, 1, 1) for numbers in (queries, documents))
    return float(step(tensor([[weight]]).requires_grad_(), *texts).item())


MISTAKE = Mistake(
    name="ddp_mean_world_size",
    kind="function",
    title="Averaged once too often",
    symptom="The more processes, the smaller the steps; elsewhere a loss is multiplied by their number, unexplained.",
    cause="A gather without gradients leaves each process its share; averaging over W processes divides by W again.",
    source="texttron/tevatron#30",
    case="ddp-mean-world-size",
    breaks="the step is that of one process",
    wrong=wrong,
    right=right,
    property=the_step_is_that_of_one_process,
    topic="batch",
    example=Example(
        {"weight": 1.0, "queries": [1.0, -1.0], "documents": [1.0, -1.0]},
        show,
        what="gradient",
        note="Two processes, each with one query and its document, a number long, embedded by one weight.",
    ),
)
