"""The student is renormalised, the teacher only cut."""

from collections.abc import Callable, Sequence

from torch import Tensor

from losslab.mistakes._examples import tensor
from losslab.mistakes._parts import as_served, weighted
from losslab.mistakes._record import Example, Function, Mistake


def wrong(
    base_loss: Callable[..., Tensor], dims: Sequence[int], weights: Sequence[float] | None = None
) -> Callable[[Tensor, Tensor], Tensor]:
    """The base loss summed over prefixes; embeddings that are labels are cut and not renormalised."""
    labels = getattr(base_loss, "embedding_labels", False)

    def loss(queries: Tensor, documents: Tensor) -> Tensor:
        size, total = queries.shape[-1], queries.new_zeros(())
        for dim, weight in weighted(dims, weights):
            # The mistake: a teacher's prefix keeps its length, at which no unit vector of a student can arrive.
            cut = documents[..., :dim] if labels else as_served(documents, dim, size)
            total = total + weight * base_loss(as_served(queries, dim, size), cut)
        return total

    return loss


def distance(student: Tensor, teacher: Tensor) -> Tensor:
    """Mean squared error; its labels are embeddings."""
    return (student - teacher).square().mean()


distance.embedding_labels = True  # type: ignore[attr-defined]


def show(wrap: Function, *, vector: list[float], sizes: list[int]) -> dict[str, float]:
    """What a student pays that is its teacher, at each size."""
    perfect = tensor([vector])
    return {f"size {dim}": wrap(distance, [dim])(perfect, perfect.clone()).item() for dim in sizes}


MISTAKE = Mistake(
    name="mrl_labels_sliced",
    kind="matryoshka",
    title="The teacher is only cut",
    symptom="A student equal to its teacher pays nothing at full size and something at every smaller one.",
    cause="Labels that are embeddings are sliced beside a student whose prefixes are renormalised.",
    source="huggingface/sentence-transformers (6.2.0)",
    case=None,
    breaks="perfect_student",
    wrong=wrong,
    right="matryoshka",
    example=Example({"vector": [0.6, 0.8], "sizes": [2, 1]}, show),
)
