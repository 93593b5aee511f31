"""Nats called bits."""

import math

from losslab.mistakes._record import Example, Function, Mistake


def wrong(log_likelihood: float, n_bytes: int) -> float:
    """Bits per byte of a text, from its log-likelihood in nats."""
    # The mistake: the log-likelihood is in nats, and a nat is 1 / ln 2 = 1.44 bits.
    return -log_likelihood / n_bytes


def right(log_likelihood: float, n_bytes: int) -> float:
    """Bits per byte of a text, from its log-likelihood in nats."""
    return -log_likelihood / n_bytes / math.log(2)


def two_to_the_bits_is_the_perplexity(bits_per_byte: Function, seed: int = 0) -> str | None:
    """Look for a text where 2 to the bits per byte is not its perplexity per byte."""
    for n_bytes in (1, 20, 100 + seed):
        log_likelihood = -0.5 * n_bytes
        perplexity, told = math.exp(-log_likelihood / n_bytes), 2 ** bits_per_byte(log_likelihood, n_bytes)
        if abs(told - perplexity) > 1e-9 * perplexity:
            return f"{log_likelihood} nats in {n_bytes} bytes: perplexity {perplexity:.6g}, 2 to the bits {told:.6g}"
    return None


def show(bits_per_byte: Function, *, log_likelihood: float, n_bytes: int) -> dict[str, float]:
    """The number and what it says of the perplexity."""
    bits = bits_per_byte(log_likelihood, n_bytes)
    return {"bits per byte": bits, "perplexity per byte, as 2 to that": 2**bits}


MISTAKE = Mistake(
    name="bpb_log_base",
    kind="function",
    title="Nats called bits",
    symptom="Bits per byte are too small by a factor of 0.693.",
    cause="A log-likelihood in nats is divided by bytes but not by ln 2.",
    source="EleutherAI/lm-evaluation-harness#242",
    case="bpb-log-base",
    breaks="2 to the bits per byte is the perplexity per byte",
    wrong=wrong,
    right=right,
    property=two_to_the_bits_is_the_perplexity,
    topic="perplexity",
    example=Example({"log_likelihood": -10.0, "n_bytes": 20}, show),
)
