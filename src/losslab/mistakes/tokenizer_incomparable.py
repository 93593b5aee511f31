"""Perplexities of different tokenizers compared."""

import math

from losslab.mistakes._record import Example, Function, Mistake


def wrong(nats: float, tokens: int, n_bytes: int) -> float:  # noqa: ARG001
    """What a text costs, to compare models by: perplexity per token."""
    # The mistake: who cuts a text into fewer tokens divides the same cost by less.
    return math.exp(nats / tokens)


def right(nats: float, tokens: int, n_bytes: int) -> float:  # noqa: ARG001
    """What a text costs, to compare models by: bits per byte."""
    return nats / n_bytes / math.log(2)


def the_same_likelihood_is_the_same_number(cost: Function, seed: int = 0) -> str | None:
    """Look for a text that two tokenizers' models find equally likely, and that costs two numbers."""
    for nats, n_bytes in ((12.0, 24), (30.0 + seed, 50)):
        first, second = cost(nats, n_bytes // 4, n_bytes), cost(nats, n_bytes // 6, n_bytes)
        if abs(first - second) > 1e-9 * first:
            cut = f"in {n_bytes // 4} tokens {first:.6g}, in {n_bytes // 6} {second:.6g}"
            return f"{nats} nats for {n_bytes} bytes: {cut}"
    return None


def show(cost: Function, *, nats: float, n_bytes: int, tokens: list[int]) -> dict[str, float]:
    """What one text costs, by how many tokens it is cut into."""
    return {f"in {n} tokens": cost(nats, n, n_bytes) for n in tokens}


MISTAKE = Mistake(
    name="tokenizer_incomparable",
    kind="function",
    title="Tokens are no unit",
    symptom="A larger vocabulary has a worse perplexity on the same text at the same likelihood.",
    cause="The cost of a text is divided by its number of tokens, which the tokenizer decides.",
    source="ggml-org/llama.cpp#7111",
    case="tokenizer-incomparable",
    breaks="the same likelihood is the same number under any tokenizer",
    wrong=wrong,
    right=right,
    property=the_same_likelihood_is_the_same_number,
    topic="perplexity",
    example=Example(
        {"nats": 12.0, "n_bytes": 24, "tokens": [6, 4]},
        show,
        note="Wrong is perplexity per token, right is bits per byte: one text, one likelihood, one number.",
    ),
)
