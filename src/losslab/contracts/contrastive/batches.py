"""Random embeddings. Everything shrinks to few rows of small round numbers."""

from __future__ import annotations

import itertools
from functools import cache

import numpy as np
from hypothesis import strategies as st

from losslab.contracts.contrastive.subject import Array
from losslab.contracts.model import Pairs

DIMENSIONS = (2, 3)


def _grid(dimensions: int) -> list[tuple[float, ...]]:
    """Vectors of multiples of 1/2 up to 2, without 0; few and small numbers first, since draws shrink to those."""
    steps = [0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0]
    vectors = [v for v in itertools.product(steps, repeat=dimensions) if any(v)]
    return sorted(vectors, key=lambda v: (sum(steps.index(x) for x in v), tuple(-x for x in v)))


GRID = {dimensions: _grid(dimensions) for dimensions in DIMENSIONS}


@cache
def embeddings(rows: int, dimensions: int, *, unique: bool = False) -> st.SearchStrategy[Array]:
    """So many vectors of the grid: (rows, dimensions)."""
    drawn = st.lists(st.sampled_from(GRID[dimensions]), min_size=rows, max_size=rows, unique=unique)
    return drawn.map(lambda vectors: np.array(vectors).reshape(rows, dimensions))


@cache
def up_to(most: int, fewest: int = 1) -> st.SearchStrategy[int]:
    """A number of things. Made once: it costs more to make a strategy than to draw from it."""
    return st.integers(fewest, most)


SPACES = st.sampled_from(DIMENSIONS)


@cache
def batches(
    *, further: bool = True, fewest: int = 1, most: int = 3, least_further: int = 0
) -> st.SearchStrategy[Pairs]:
    """Queries and documents, no two documents equal; with ``further``, up to two documents more than queries."""

    @st.composite
    def drawn(draw: st.DrawFn) -> Pairs:
        dimensions = draw(SPACES)
        b = draw(up_to(most, fewest))
        m = b + (draw(up_to(2, least_further)) if further else 0)
        return Pairs(draw(embeddings(b, dimensions)), draw(embeddings(m, dimensions, unique=True)))

    return drawn()
