"""PCA before inner products, with its mean subtracted."""

import torch
from torch import Tensor

from losslab.mistakes._examples import tensor
from losslab.mistakes._record import Example, Function, Mistake


def wrong(queries: Tensor, documents: Tensor, mean: Tensor, basis: Tensor) -> Tensor:
    """Inner products after PCA, (Q, d), (N, d), (d,), (d, m) -> (Q, N)."""
    # The mistake: <x - c, y - c> is not <x, y>; each document loses <c, y>, which no query asked for.
    return ((queries - mean) @ basis) @ ((documents - mean) @ basis).T


def right(queries: Tensor, documents: Tensor, mean: Tensor, basis: Tensor) -> Tensor:  # noqa: ARG001
    """The same, counted from the origin, as inner products are."""
    return (queries @ basis) @ (documents @ basis).T


def all_components_keep_the_ranking(reduce: Function, seed: int = 0) -> str | None:
    """Look for a query whose best document changes though no dimension is given up, few documents first."""
    generator = torch.Generator().manual_seed(seed)
    for n in [n for n in range(2, 6) for _ in range(20)]:
        drawn = torch.randint(-4, 5, (n + 1, 2), generator=generator).double() / 2
        query, documents = drawn[:1], drawn[1:]
        basis = torch.linalg.svd(documents - documents.mean(0)).Vh.T
        full, reduced = (query @ documents.T)[0], reduce(query, documents, documents.mean(0), basis)[0]
        best, second = full.topk(2).values.tolist()
        found = int(full.argmax())
        if best > second and reduced.max() > reduced[found] + 1e-9:
            scores = ", ".join(f"{x:.3g}" for x in reduced.tolist())
            return (
                f"query {query[0].tolist()}, documents {documents.tolist()}: scores {full.tolist()} become [{scores}]"
            )
    return None


def show(
    reduce: Function, *, query: list[float], documents: list[list[float]], mean: list[float], basis: list[list[float]]
) -> dict[str, float]:
    """Score of each document."""
    scores = reduce(tensor([query]), tensor(documents), tensor(mean), tensor(basis))[0].tolist()
    return {f"score of document {i + 1}": score for i, score in enumerate(scores)}


MISTAKE = Mistake(
    name="pca_inner_product",
    kind="function",
    title="PCA before inner products",
    symptom="Recall falls badly with PCA and inner-product search, even with all components kept.",
    cause="PCA subtracts the mean, and inner products, unlike distances, depend on the origin.",
    source="facebookresearch/faiss#2636",
    case="pca-inner-product",
    breaks="keeping all components keeps the ranking",
    wrong=wrong,
    right=right,
    property=all_components_keep_the_ranking,
    topic="matryoshka",
    example=Example(
        {
            "query": [3.0, 1.2],
            "documents": [[4.0, -1.0], [2.0, 1.0]],
            "mean": [3.0, 0.0],
            "basis": [[1.0, 0.0], [0.0, 1.0]],
        },
        show,
        note="No dimension is given up: the ranking changes because the origin has moved.",
    ),
)
