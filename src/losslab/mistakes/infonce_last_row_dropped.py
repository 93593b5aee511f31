"""One row short."""

from torch import Tensor

from losslab.mistakes._examples import value
from losslab.mistakes._parts import cosines, own_costs
from losslab.mistakes._record import Example, Mistake


def wrong(queries: Tensor, documents: Tensor, temperature: float = 0.05) -> Tensor:
    """InfoNCE of a batch without its last query."""
    costs = own_costs(cosines(queries, documents) / temperature)
    # The mistake: a slice that ends one short; the last query is never asked.
    return costs[: max(len(costs) - 1, 1)].mean().to(queries.dtype)


MISTAKE = Mistake(
    name="infonce_last_row_dropped",
    kind="contrastive",
    title="The last row is not asked",
    symptom="The loss depends on which pair stands last in the batch, and that query gets no gradient.",
    cause="A range or slice over the rows ends one short.",
    source="built",
    case=None,
    breaks="row_permutation",
    wrong=wrong,
    right="info_nce",
    met="built",
    example=Example(
        {"queries": [[1.0, 0.0], [0.0, 1.0]], "documents": [[1.0, 0.0], [0.8, 0.6]]},
        value,
        unit="nats",
    ),
)
