"""Random lists. Everything shrinks to few documents and small round numbers."""

from __future__ import annotations

import math
from functools import cache

from hypothesis import strategies as st

from losslab.contracts.model import Draw, Query

SORT_SWITCHES = 17  # from this width on, torch's default sort on CPU no longer keeps ties in order


@cache
def whole(fewest: int, most: int) -> st.SearchStrategy[int]:
    """Whole numbers. Made once, as all here: it costs more to make a strategy than to draw from it."""
    return st.integers(fewest, most)


@cache
def documents(largest: int, top: int) -> st.SearchStrategy[tuple[float, float]]:
    """A document's logit, a multiple of 1/2 up to ``largest`` either way, exact in every format, and its label."""
    return st.tuples(whole(-2 * largest, 2 * largest).map(lambda k: k / 2), whole(0, top).map(float))


def _logit(document: tuple[float, float]) -> float:
    return document[0]


def _label(document: tuple[float, float]) -> float:
    return document[1]


@cache
def lists(
    *, fewest: int = 2, most: int = 5, tied: bool = False, largest: int = 4, top: int = 2
) -> st.SearchStrategy[Query]:
    """A list whose labels are all different or, with ``tied``, up to ``top`` and perhaps equal.

    No two logits are the same: what becomes of equal ones is `tie_order`'s business alone. Logit and label are drawn
    document by document, so that a smaller list is the same one without a document.
    """
    document = documents(largest, top if tied else most)
    different = (_logit,) if tied else (_logit, _label)
    drawn = st.lists(document, min_size=fewest, max_size=most, unique_by=different)
    return drawn.map(lambda found: Query(tuple(z for z, _ in found), tuple(y for _, y in found)))


@st.composite
def _tied_lists(draw: st.DrawFn) -> Query:
    equal_logits = draw(YES_OR_NO)
    query = draw(lists(tied=not equal_logits))
    values = list(query.logits if equal_logits else query.labels)
    a = draw(whole(1, len(query) - 1))
    values[a] = values[draw(whole(0, a - 1))]
    return Query(tuple(values), query.labels) if equal_logits else Query(query.logits, tuple(values))


YES_OR_NO = st.booleans()
#: A list with equal labels, or with equal logits of documents that the labels tell apart.
TIED_LISTS = _tied_lists()


@cache
def orders(documents: int) -> st.SearchStrategy[list[int]]:
    """The places of so many documents, in any order."""
    return st.permutations(range(documents))


def untied(query: Query) -> Query:
    """The same list with every tie resolved in favour of the document that stands first."""
    n = len(query)
    order = sorted(range(n), key=lambda i: (query.labels[i], -i))
    labels = [0.0] * n
    for rank, i in enumerate(order):
        labels[i] = float(rank)
    return Query(tuple(z - i / 16 for i, z in enumerate(query.logits)), tuple(labels))


def drawn_width(draw: Draw, documents: int) -> int:
    """A width that leaves a list of so many documents at least one empty slot; often one that changes torch's sort."""
    beyond = draw(whole(0, 3))  # three times in four
    return draw(whole(SORT_SWITCHES, 40) if beyond else whole(documents + 1, SORT_SWITCHES - 1))


GARBAGE = (0.0, 1.0, -1e30, 1e30, math.inf, -math.inf, math.nan)
#: What empty slots hold, in the logits and in the labels.
FILLS = st.tuples(st.sampled_from(GARBAGE), st.sampled_from(GARBAGE))
