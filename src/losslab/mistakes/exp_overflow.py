"""A perplexity that ends the run."""

import math
import sys

from losslab.mistakes._record import Example, Function, Mistake

LARGEST = math.log(sys.float_info.max)  # 709.78 nats


def wrong(mean_nats: float) -> float:
    """Perplexity of a mean cost in nats."""
    # The mistake: math.exp raises above 709.78, which an untrained or broken model reaches.
    return math.exp(mean_nats)


def right(mean_nats: float) -> float:
    """Perplexity of a mean cost in nats; infinity if it is no float, so keep the cost too."""
    return math.exp(mean_nats) if mean_nats < LARGEST else math.inf


def every_cost_has_a_perplexity(perplexity: Function, seed: int = 0) -> str | None:
    """Look for a finite mean cost for which there is an error instead of a number."""
    for mean in (0.0, 2.0, 700.0, 1000.0 + seed):
        try:
            perplexity(mean)
        except OverflowError as error:
            return f"mean cost {mean}: {type(error).__name__}: {error}"
    return None


def show(perplexity: Function, *, mean_nats: float) -> float | str:
    """The number, or the name of the error."""
    try:
        return float(perplexity(mean_nats))
    except OverflowError as error:
        return type(error).__name__


MISTAKE = Mistake(
    name="exp_overflow",
    kind="function",
    title="A perplexity that ends the run",
    symptom="Training dies with an OverflowError while it logs.",
    cause="The exponential of a mean cost above 709.78 nats is no float, and math.exp raises.",
    source="facebookresearch/fairseq#1833",
    case="exp-overflow",
    breaks="every finite cost has a perplexity",
    wrong=wrong,
    right=right,
    property=every_cost_has_a_perplexity,
    topic="perplexity",
    example=Example({"mean_nats": 1000.0}, show, what="perplexity"),
)
