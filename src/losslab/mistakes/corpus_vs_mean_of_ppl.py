"""A mean of perplexities called the corpus's."""

from collections.abc import Sequence

import torch
from torch import Tensor

from losslab.mistakes._examples import tensor
from losslab.mistakes._record import Example, Function, Mistake


def wrong(costs: Sequence[Tensor]) -> float:
    """Perplexity of a corpus, from the token costs of each of its texts."""
    # The mistake, if it is called the corpus's: each text counts the same, however short, and exp is taken before.
    return torch.stack([text.mean().exp() for text in costs]).mean().item()


def right(costs: Sequence[Tensor]) -> float:
    """Perplexity of a corpus, from the token costs of each of its texts."""
    return torch.cat(list(costs)).mean().exp().item()


def where_texts_are_cut_does_not_matter(perplexity: Function, seed: int = 0) -> str | None:
    """Look for a text whose perplexity changes when it is filed as two texts."""
    generator = torch.Generator().manual_seed(seed)
    for n in (2, 3, 5, 9):
        costs = torch.rand(n, generator=generator, dtype=torch.float64) * 3
        whole, cut = perplexity([costs]), perplexity([costs[:1], costs[1:]])
        if abs(whole - cut) > 1e-9 * whole:
            return f"costs {[round(x, 3) for x in costs.tolist()]}: {whole:.6g} as one text, {cut:.6g} as two"
    return None


def show(perplexity: Function, *, costs: list[list[float]]) -> float:
    """Perplexity of texts with these token costs in nats."""
    return float(perplexity([tensor(text) for text in costs]))


MISTAKE = Mistake(
    name="corpus_vs_mean_of_ppl",
    kind="function",
    title="A mean of perplexities",
    symptom="Two libraries report different perplexities for the same losses.",
    cause="The mean of each text's perplexity is another number than the perplexity of all tokens.",
    source="meta-pytorch/torcheval#154",
    case="corpus-vs-mean-of-ppl",
    breaks="where a corpus is cut into texts changes nothing",
    wrong=wrong,
    right=right,
    property=where_texts_are_cut_does_not_matter,
    topic="perplexity",
    example=Example({"costs": [[0.1, 0.2, 0.1], [0.3, 0.5, 0.1, 0.4, 0.2]]}, show, what="perplexity"),
)
