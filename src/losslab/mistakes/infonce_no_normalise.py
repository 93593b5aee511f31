"""Dot products where cosines were meant."""

from torch import Tensor

from losslab.mistakes._parts import own_costs
from losslab.mistakes._record import Mistake


def wrong(queries: Tensor, documents: Tensor, temperature: float = 0.05) -> Tensor:
    """InfoNCE whose temperature the model can change by itself."""
    # The mistake: no normalisation; embeddings twice as long divide the temperature by four.
    logits = queries.double() @ documents.double().T / temperature
    return own_costs(logits).mean().to(queries.dtype)


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
)
