"""What each step of the lab must do, and what it is worth. Right values are worked out here in decimal arithmetic."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from typing import Any

import numpy as np

from losslab.grading import Item, Lab, Raises, Values

Row = list[float]


def log_share(logits: Row, token: int) -> Decimal:
    """Logarithm of a token's share of all exponentials, to 60 digits: nothing over- or underflows."""
    with localcontext() as context:
        context.prec = 60
        total = sum((Decimal(z).exp() for z in logits), start=Decimal(0))
        return (Decimal(logits[token]).exp() / total).ln()


def costs(logits: list[Row], ids: list[int], shift: int) -> Row:
    """Cost of each predicted token of one text."""
    return [float(-log_share(logits[t], ids[t + shift])) for t in range(len(ids)) if t + shift < len(ids)]


def log_softmax(logits: Row) -> Row:
    """Every token's log-probability."""
    return [float(log_share(logits, token)) for token in range(len(logits))]


def log_of_softmax(logits: Row) -> Row:
    """The same, and -inf where a float has no room for the probability."""
    return [value if value > math.log(math.ulp(0.0)) else -math.inf for value in log_softmax(logits)]


def loss_at(logits: Row, token: int) -> float:
    """Cost of one token."""
    return float(-log_share(logits, token))


def mean(losses: Row) -> float:
    """Sum over number, in decimals."""
    return float(sum(map(Decimal, losses), start=Decimal(0)) / len(losses))


def perplexity(nats: float) -> float:
    """exp, and inf beyond the largest float."""
    with localcontext() as context:
        context.prec = 60
        exact = Decimal(nats).exp()
    return math.inf if exact > Decimal(np.finfo(np.float64).max) else float(exact)


def share_of_uniform(nats: float, size: int) -> float:
    """exp(nats) / size."""
    with localcontext() as context:
        context.prec = 60
        return float(Decimal(nats).exp() / size)


def text_losses(logits: list[Row], ids: list[int], shift: int = 1) -> Row:
    """Costs of one text."""
    return costs(logits, ids, shift)


def batch_losses(logits: list[list[Row]], ids: list[list[int]], mask: list[list[bool]]) -> Row:
    """Costs of tokens that are predicted from tokens, text after text."""
    found = []
    for rows, text, real in zip(logits, ids, mask, strict=True):
        for t, cost in enumerate(costs(rows, text, 1), start=1):
            if real[t - 1] and real[t]:
                found.append(cost)
    return found


def bits(nats: float) -> float:
    """Nats over the nats in a bit."""
    with localcontext() as context:
        context.prec = 60
        return float(Decimal(nats) / Decimal(2).ln())


# Inputs. They grow with ``size``: the first that goes wrong is the smallest. Two decimals, because students read them.


def _row(random: np.random.Generator, tokens: int, spread: float = 2.0) -> Row:
    return [round(float(z), 2) for z in random.normal(0, spread, tokens)]


def near(random: np.random.Generator, size: int) -> dict[str, Any]:
    """Ordinary logits."""
    return {"logits": _row(random, size)}


def far(random: np.random.Generator, size: int) -> dict[str, Any]:
    """Logits around -1000 or 1000, or one of each."""
    around = (1000.0, -1000.0, 0.0)[size % 3]
    row = [round(around + z, 2) for z in _row(random, size + 1)]
    return {"logits": row if around else [-1000.0, *row[1:], 1000.0]}


def apart(random: np.random.Generator, size: int) -> dict[str, Any]:
    """Tokens just below the others, or so far below that a float has no room for them."""
    gap = round(float(random.uniform(1, 600) if size % 2 else random.uniform(760, 2000)), 1)
    row = _row(random, size)
    return {"logits": [*row, round(min(row) - gap, 2)]}


def one_token(random: np.random.Generator, size: int) -> dict[str, Any]:
    """A row and the token that came; every third time one that nobody expected."""
    row = _row(random, size, 2.0 if size % 3 else 900.0)
    return {"logits": row, "token": int(random.integers(size))}


def some_losses(random: np.random.Generator, size: int) -> dict[str, Any]:
    """Costs of a text."""
    return {"losses": [round(float(x), 3) for x in random.exponential(2, size)]}


def no_losses(random: np.random.Generator, size: int) -> dict[str, Any]:  # noqa: ARG001
    """A text in which nothing was predicted."""
    return {"losses": []}


def a_mean(random: np.random.Generator, size: int) -> dict[str, Any]:
    """A mean cost, every third beyond what a float's exponential can hold."""
    return {"nats": round(float(random.uniform(0, 8) if size % 3 else random.uniform(720, 5000)), 3)}


def some_nats(random: np.random.Generator, size: int) -> dict[str, Any]:
    """A cost."""
    return {"nats": round(float(random.uniform(0, 3 * size)), 3)}


def a_mean_and_size(random: np.random.Generator, size: int) -> dict[str, Any]:
    """A mean cost and a vocabulary."""
    return {"nats": round(float(random.uniform(0, 12)), 3), "size": int(random.integers(1, 2 ** (size + 3)))}


def _text(random: np.random.Generator, tokens: int, vocabulary: int) -> tuple[list[Row], list[int]]:
    return [_row(random, vocabulary) for _ in range(tokens)], random.integers(vocabulary, size=tokens).tolist()


def text(random: np.random.Generator, size: int) -> dict[str, Any]:
    """A text of one token, of two, ..."""
    logits, ids = _text(random, size, int(random.integers(2, 5)))
    return {"logits": logits, "ids": ids}


def text_and_shift(random: np.random.Generator, size: int) -> dict[str, Any]:
    """A text to be read unshifted, or shifted twice."""
    return text(random, size + 1) | {"shift": 0 if size % 2 else 2}


def padded(random: np.random.Generator, size: int, *, left: bool = False) -> dict[str, Any]:
    """One text of three slots, the last of them padding; then batches of several lengths."""
    texts, width, vocabulary = (size + 1) // 2, 2 + (size + 1) // 2, int(random.integers(2, 4))
    logits, ids, mask = [], [], []
    for at in range(texts):
        rows, line = _text(random, width, vocabulary)
        length = width if at else int(random.integers(1, width))  # the first text is always padded
        logits.append(rows)
        ids.append(line)
        mask.append([(width - 1 - t if left else t) < length for t in range(width)])
    return {"logits": logits, "ids": ids, "mask": mask}


def padded_left(random: np.random.Generator, size: int) -> dict[str, Any]:
    """The same, with the padding in front."""
    return padded(random, size, left=True)


TIGHT = {"rtol": 1e-9, "atol": 1e-12}

LAB = Lab(
    name="perplexity",
    title="Perplexity in plain Python",
    chapter="perplexity-plain",
    minutes=50,
    form="module",
    items=[
        Item(
            "log-softmax",
            "log-probabilities",
            2,
            1,
            Values(
                "log_softmax", near, log_softmax, **TIGHT, what="The logit less the log of the sum of all exponentials."
            ),
        ),
        Item(
            "log-softmax-far",
            "logits of any size",
            2,
            1,
            Values("log_softmax", far, log_softmax, **TIGHT, what="Logits near -1000 and 1000 are no trouble."),
        ),
        Item(
            "wrong-order",
            "the wrong order, to see it",
            2,
            2,
            Values(
                "log_of_softmax",
                apart,
                log_of_softmax,
                rtol=1e-6,
                atol=1e-6,
                what="The logarithm of the probability, and -inf where that has become 0.",
            ),
        ),
        Item(
            "cost",
            "the cost of a token",
            2,
            3,
            Values(
                "loss_at",
                one_token,
                loss_at,
                **TIGHT,
                what="The negative log-probability of the token that came, in nats.",
            ),
        ),
        Item(
            "mean",
            "the mean",
            1,
            4,
            Values("mean", some_losses, mean, **TIGHT, what="The sum of the costs over the number of tokens."),
        ),
        Item(
            "mean-of-nothing",
            "no token, no mean",
            1,
            4,
            Raises("mean", no_losses, accepts=some_losses, what="The mean of no tokens is refused."),
        ),
        Item(
            "perplexity",
            "perplexity",
            2,
            5,
            Values(
                "perplexity",
                a_mean,
                perplexity,
                **TIGHT,
                what="The exponential of the mean cost, and inf where a float cannot hold it.",
            ),
        ),
        Item(
            "uniform",
            "beside a model that knows nothing",
            1,
            6,
            Values(
                "share_of_uniform",
                a_mean_and_size,
                share_of_uniform,
                **TIGHT,
                what="Perplexity as a share of V, which is the perplexity of equal scores.",
            ),
        ),
        Item(
            "shift",
            "row t predicts token t + 1",
            2,
            7,
            Values(
                "text_losses",
                text,
                text_losses,
                **TIGHT,
                what="T rows and T tokens give T - 1 costs: row t is asked for token t + 1.",
            ),
        ),
        Item(
            "shift-others",
            "any other shift, to see it",
            1,
            7,
            Values(
                "text_losses",
                text_and_shift,
                text_losses,
                **TIGHT,
                what="The argument shift is used: shift=0 and shift=2 are let through.",
            ),
        ),
        Item(
            "mask",
            "padding is neither summed nor counted",
            2,
            8,
            Values(
                "batch_losses",
                padded,
                batch_losses,
                **TIGHT,
                what="A prediction counts if it is of a token, and is left out of the list otherwise.",
            ),
        ),
        Item(
            "mask-left",
            "padding in front",
            1,
            8,
            Values(
                "batch_losses",
                padded_left,
                batch_losses,
                **TIGHT,
                what="With padding in front, the first token is predicted from padding and does not count.",
            ),
        ),
        Item(
            "bits",
            "bits",
            1,
            9,
            Values("bits", some_nats, bits, **TIGHT, what="Nats over ln 2."),
        ),
        Item("open-question", "open question: two vocabularies", 3, 9),
        Item("reflection", "reflection: which would you have caught?", 2, 9),
    ],
)

#: What a good answer says, for whoever marks by hand.
ANSWERS = {
    "open-question": """
The numbers cannot be compared: each is a mean over its own tokens, and a token of the first is several bytes long. Ask
both for the total cost in nats, the number of bytes of the text, and which tokens were counted (first token, padding,
end of text). Then divide total nats by ln 2 and by the number of bytes: bits per byte have one denominator for both.
With about four bytes a token the first spends log2(12) / 4 bits a byte and the second log2(12), four times as much.
""",
    "reflection": """
An answer names a sign for each line: inf or nan for the log; a loss far above log V, or far too good, for the shift; a
perplexity that moves with the batch size for the mask; a constant factor of 1.44 for the base. The mask flatters, so
nobody looks for it: compute a text alone and beside a longer one, and compare.
""",
}
