"""Documents gathered process by process, and targets that expect all positives first."""

import itertools
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from losslab.mistakes._examples import tensor
from losslab.mistakes._parts import cosines, own_costs
from losslab.mistakes._record import Example, Function, Mistake


def among(queries: Tensor, documents: Tensor, rank: int, temperature: float) -> Tensor:
    """InfoNCE of process ``rank``'s queries, (b, d), whose positives are its b rows of the first W b documents."""
    b = len(queries)
    targets = torch.arange(rank * b, (rank + 1) * b, device=queries.device)
    return cross_entropy(cosines(queries, documents) / temperature, targets)


def wrong(queries: Tensor, positives: Tensor, negatives: Tensor, rank: int, temperature: float = 0.05) -> Tensor:
    """InfoNCE of one process's queries, (b, d), among all processes' documents, (W, b, d) twice -> scalar."""
    # The mistake: of two processes with two pairs each, the rows are P P N N P P N N, and targets 2 and 3 negatives.
    documents = torch.cat([positives, negatives], 1).flatten(0, 1)
    return among(queries, documents, rank, temperature)


def right(queries: Tensor, positives: Tensor, negatives: Tensor, rank: int, temperature: float = 0.05) -> Tensor:
    """InfoNCE of one process's queries, with the positives of all processes gathered before any negative."""
    documents = torch.cat([positives.flatten(0, 1), negatives.flatten(0, 1)])
    return among(queries, documents, rank, temperature)


def processes_are_one_batch(loss: Function, seed: int = 0) -> str | None:
    """Look for a batch on several processes, fewest first, whose mean loss or gradient is not that of one process."""
    generator = torch.Generator().manual_seed(seed)
    for world, b in itertools.product((2, 3), (1, 2)):
        given = torch.randn(3, world, b, 2, generator=generator, dtype=torch.float64).requires_grad_()
        queries, positives, negatives = given
        values = torch.stack([loss(queries[rank], positives, negatives, rank, 0.5) for rank in range(world)])
        documents = torch.cat([positives.flatten(0, 1), negatives.flatten(0, 1)])
        whole = own_costs(cosines(queries.flatten(0, 1), documents) / 0.5).mean()
        gradients = [torch.autograd.grad(value, given, retain_graph=True)[0] for value in (values.mean(), whole)]
        if abs(values.mean() - whole) > 1e-9 or (gradients[0] - gradients[1]).abs().max() > 1e-9:
            each = ", ".join(f"{value:.4g}" for value in values.tolist())
            return f"{world} processes with b = {b} pay {each}, mean {values.mean():.4g}; one process, {whole:.4g}"
    return None


def show(
    loss: Function,
    *,
    queries: Sequence[list[list[float]]],
    positives: list[list[list[float]]],
    negatives: list[list[list[float]]],
) -> dict[str, float]:
    """Loss of each process at temperature 1."""
    documents = tensor(positives), tensor(negatives)
    return {f"loss on rank {rank}": loss(tensor(q), *documents, rank, 1.0).item() for rank, q in enumerate(queries)}


PAIRS = [[[1.0, 0.0], [0.0, 1.0]], [[-1.0, 0.0], [0.0, -1.0]]]

MISTAKE = Mistake(
    name="gather_layout",
    kind="function",
    title="Gathered process by process",
    symptom="With hard negatives on several GPUs, queries are pulled towards negatives on every process but the first.",
    cause="Each process's positives and negatives are gathered together, and the targets count positives only.",
    source="huggingface/sentence-transformers#3453",
    case="gather-layout",
    breaks="the mean over processes is the loss of one process",
    wrong=wrong,
    right=right,
    property=processes_are_one_batch,
    topic="batch",
    example=Example(
        {"queries": PAIRS, "positives": PAIRS, "negatives": [[[1.0, 1.0], [-1.0, 1.0]], [[1.0, -1.0], [-1.0, -1.0]]]},
        show,
        unit="nats",
        note="Two processes with two pairs each, and a hard negative for each pair.",
    ),
)
