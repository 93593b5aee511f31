"""Dot products where cosines were meant."""

from torch import Tensor

from losslab.mistakes._examples import tensor
from losslab.mistakes._parts import own_costs
from losslab.mistakes._record import Example, Function, Mistake


def wrong(queries: Tensor, documents: Tensor, temperature: float = 0.05) -> Tensor:
    """InfoNCE whose temperature the model can change by itself."""
    # The mistake: no normalisation; embeddings twice as long divide the temperature by four.
    logits = queries.double() @ documents.double().T / temperature
    return own_costs(logits).mean().to(queries.dtype)


def show(
    loss: Function,
    *,
    queries: list[list[float]],
    documents: list[list[float]],
    temperature: float,
    factors: list[int],
) -> dict[str, float]:
    """Loss of embeddings that are so many times as long."""
    q, d = tensor(queries), tensor(documents)
    return {f"embeddings times {k}": loss(k * q, k * d, temperature=temperature).item() for k in factors}


MISTAKE = Mistake(
    name="infonce_no_normalise",
    kind="contrastive",
    title="Not normalised",
    symptom="The loss falls while no ranking changes: the embeddings only grow.",
    cause="Scores are dot products, so the length of the embeddings acts as a temperature of its own.",
    source="moein-shariatnia/OpenAI-CLIP#16",
    case="infonce-no-normalise",
    breaks="scale",
    wrong=wrong,
    right="info_nce",
    example=Example(
        {
            "queries": [[3.0, 0.0], [0.0, 3.0]],
            "documents": [[2.0, 1.0], [1.0, 2.0]],
            "temperature": 1.0,
            "factors": [1, 2],
        },
        show,
        unit="nats",
    ),
)
