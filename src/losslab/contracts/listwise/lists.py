"""Random lists. Everything shrinks to few documents and small round numbers."""

from __future__ import annotations

import math

from hypothesis import strategies as st

from losslab.contracts.model import Query

SORT_SWITCHES = 17  # from this width on, torch's default sort on CPU no longer keeps ties in order


def halves(largest: int) -> st.SearchStrategy[float]:
    """Multiples of 1/2 up to ``largest`` either way; exact in every number format up to there."""
    return st.integers(-2 * largest, 2 * largest).map(lambda k: k / 2)


def logits(
    largest: int, documents: int | None = None, fewest: int = 2, most: int = 5
) -> st.SearchStrategy[list[float]]:
    """Logits, no two the same: what becomes of equal ones is `tie_order`'s business alone."""
    fewest, most = (documents, documents) if documents is not None else (fewest, most)
    return st.lists(halves(largest), min_size=fewest, max_size=most, unique=True)


@st.composite
def lists(draw: st.DrawFn, *, fewest: int = 2, most: int = 5, tied: bool = False, largest: int = 4) -> Query:
    """A list whose labels are all different or, with ``tied``, may be equal."""
    drawn = draw(logits(largest, fewest=fewest, most=most))
    top = 2 if tied else len(drawn)
    labels = draw(st.lists(st.integers(0, top), min_size=len(drawn), max_size=len(drawn), unique=not tied))
    return Query(tuple(drawn), tuple(float(y) for y in labels))


@st.composite
def tied_lists(draw: st.DrawFn) -> Query:
    """A list with equal labels, or with equal logits of documents that the labels tell apart."""
    equal_logits = draw(st.booleans())
    query = draw(lists(tied=not equal_logits))
    values = list(query.logits if equal_logits else query.labels)
    a = draw(st.integers(1, len(query) - 1))
    values[a] = values[draw(st.integers(0, a - 1))]
    return Query(tuple(values), query.labels) if equal_logits else Query(query.logits, tuple(values))


def untied(query: Query) -> Query:
    """The same list with every tie resolved in favour of the document that stands first."""
    n = len(query)
    order = sorted(range(n), key=lambda i: (query.labels[i], -i))
    labels = [0.0] * n
    for rank, i in enumerate(order):
        labels[i] = float(rank)
    return Query(tuple(z - i / 16 for i, z in enumerate(query.logits)), tuple(labels))


@st.composite
def widths(draw: st.DrawFn, documents: int) -> int:
    """A width that leaves a list of so many documents at least one empty slot; often one that changes torch's sort."""
    beyond = draw(st.integers(0, 3))  # three times in four
    return draw(st.integers(SORT_SWITCHES, 40) if beyond else st.integers(documents + 1, SORT_SWITCHES - 1))


GARBAGE = (0.0, 1.0, -1e30, 1e30, math.inf, -math.inf, math.nan)


def fills() -> st.SearchStrategy[tuple[float, float]]:
    """What empty slots hold, in the logits and in the labels."""
    return st.tuples(st.sampled_from(GARBAGE), st.sampled_from(GARBAGE))
