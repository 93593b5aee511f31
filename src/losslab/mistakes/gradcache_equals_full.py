"""Embedded twice, with other dropout the second time."""

import torch
from torch import Tensor
from torch.nn.functional import dropout

from losslab.mistakes._parts import cosines, own_costs
from losslab.mistakes._record import Example, Function, Mistake


def encode(texts: Tensor, weights: Tensor) -> Tensor:
    """A model with dropout: (n, k), (k, d) -> (n, d)."""
    return dropout(texts, 0.5) @ weights


def cached(texts: Tensor, weights: Tensor, chunk_size: int, *, remember: bool) -> tuple[float, Tensor]:
    """InfoNCE of B queries and, below them, their B documents; embeddings first, then the model, in chunks."""
    starts, states, embedded = range(0, len(texts), chunk_size), [], []
    for chunk in (texts[start : start + chunk_size] for start in starts):
        states.append(torch.get_rng_state())
        embedded.append(encode(chunk, weights).detach())
    leaves = torch.cat(embedded).requires_grad_()
    value = own_costs(cosines(*leaves.chunk(2)) / 0.5).mean()
    (by_embedding,) = torch.autograd.grad(value, leaves)
    gradient = torch.zeros_like(weights)
    for start, state in zip(starts, states, strict=True):
        chunk, above = texts[start : start + chunk_size], by_embedding[start : start + chunk_size]
        # The mistake, with remember=False: new dropout, so these are not the embeddings the gradients belong to.
        torch.set_rng_state(state if remember else torch.get_rng_state())
        gradient += torch.autograd.grad(encode(chunk, weights), weights, above)[0]
    return value.item(), gradient


def wrong(texts: Tensor, weights: Tensor, chunk_size: int) -> tuple[float, Tensor]:
    """Value and gradient by the model's weights, the random state not kept."""
    return cached(texts, weights, chunk_size, remember=False)


def right(texts: Tensor, weights: Tensor, chunk_size: int) -> tuple[float, Tensor]:
    """Value and gradient by the model's weights."""
    return cached(texts, weights, chunk_size, remember=True)


def show(step: Function, *, chunk_size: int, seed: int) -> dict[str, float]:
    """Slope of the value along a random direction, by central differences on one random state, and by the gradient."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        texts, weights, direction = torch.randn(6, 8).double(), torch.randn(8, 3).double(), torch.randn(8, 3).double()
        state, values = torch.get_rng_state(), []
        for h in (1e-5, -1e-5, 0.0):
            torch.set_rng_state(state)
            value, gradient = step(texts, (weights + h * direction).requires_grad_(), chunk_size)
            values.append(value)
        return {
            "slope of the value, measured": (values[0] - values[1]) / 2e-5,
            "slope by the gradient": (gradient * direction).sum().item(),
        }


def it_is_its_own_derivative(step: Function, seed: int = 0) -> str | None:
    """Look for a step whose gradient is not that of its value."""
    slopes = {size: show(step, chunk_size=size, seed=seed).values() for size in (1, 2, 3)}
    found = [
        f"in chunks of {size} the value rises by {measured:.4g} a step, the gradient says {told:.4g}"
        for size, (measured, told) in slopes.items()
        if abs(measured - told) > 1e-6 * max(1.0, abs(measured))
    ]
    return found[0] if found else None


MISTAKE = Mistake(
    name="gradcache_equals_full",
    kind="function",
    title="Another dropout the second time",
    symptom="The cached loss reports the value of the plain one and trains on another gradient.",
    cause="The second forward pass draws new dropout masks, so cached gradients meet embeddings they do not belong to.",
    source="huggingface/sentence-transformers#3862",
    case="gradcache-equals-full",
    breaks="the gradient is that of the value",
    wrong=wrong,
    right=right,
    property=it_is_its_own_derivative,
    topic="batch",
    example=Example(
        {"chunk_size": 2, "seed": 0},
        show,
        note="Six random texts of eight numbers, half of which dropout takes away each time.",
    ),
)
