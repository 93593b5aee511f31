"""Random texts. Everything shrinks to few tokens, few words and small round logits."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import cache

import numpy as np
from hypothesis import strategies as st

from losslab.contracts.model import IGNORED, Texts
from losslab.contracts.token.subject import Array

VOCABULARIES = st.sampled_from([2, 3, 4])
STEPS = (0.0, 1.0, -1.0, 2.0, -2.0, 0.5)


@cache
def rows(tokens: int, words: int, *, uneven: bool = False) -> st.SearchStrategy[Array]:
    """So many rows of logits, (T, V); with ``uneven``, no two logits of a row equal."""
    every = [row for row in itertools.product(STEPS, repeat=words) if not uneven or len(set(row)) == words]
    every.sort(key=lambda row: sum(map(STEPS.index, row)))  # draws shrink to the first
    drawn = st.lists(st.sampled_from(every), min_size=tokens, max_size=tokens)
    return drawn.map(lambda lists: np.array(lists).reshape(tokens, words))


@cache
def ids(tokens: int, words: int) -> st.SearchStrategy[list[int]]:
    """So many tokens out of a vocabulary."""
    return st.lists(up_to(words - 1, 0), min_size=tokens, max_size=tokens)


@cache
def up_to(most: int, fewest: int = 1) -> st.SearchStrategy[int]:
    """A number of things. Made once: it costs more to make a strategy than to draw from it."""
    return st.integers(fewest, most)


@cache
def texts(
    *, fewest: int = 2, most: int = 4, number: int = 1, few_words: int = 2, uneven: bool = False
) -> st.SearchStrategy[list[Texts]]:
    """So many texts over one vocabulary, each a batch of its own, of ``fewest`` to ``most`` tokens."""

    @st.composite
    def drawn(draw: st.DrawFn) -> list[Texts]:
        words = max(few_words, draw(VOCABULARIES))
        lengths = [draw(up_to(most, fewest)) for _ in range(number)]
        return [
            Texts(draw(rows(n, words, uneven=uneven))[None], np.array([draw(ids(n, words))], dtype=np.int64))
            for n in lengths
        ]

    return drawn()


def padded(parts: Sequence[Texts], width: int = 0, *, left: bool = False, fill: Array | None = None) -> Texts:
    """One batch of several texts, padded to the longest or, if larger, to ``width``.

    At padding the label is ``IGNORED`` and the logits are ``fill``, (V,). Padded on the left, a text's first token is
    no target either: only padding stands before it.
    """
    width = max([width, *(part.labels.shape[1] for part in parts)])
    words = parts[0].logits.shape[2]
    logits = np.tile(np.zeros(words) if fill is None else fill, (len(parts), width, 1))
    labels = np.full((len(parts), width), IGNORED, dtype=np.int64)
    for i, part in enumerate(parts):
        n = part.labels.shape[1]
        place = slice(width - n, width) if left else slice(0, n)
        logits[i, place], labels[i, place] = part.logits[0], part.labels[0]
        if left and n < width:
            labels[i, width - n] = IGNORED
    return Texts(logits, labels)


def real(parts: Sequence[Texts], width: int = 0, *, left: bool = False) -> np.typing.NDArray[np.bool_]:
    """The mask of the same batch: (B, T)."""
    width = max([width, *(part.labels.shape[1] for part in parts)])
    lengths = np.array([part.labels.shape[1] for part in parts])[:, None]
    places = np.arange(width)[None]
    return np.asarray(places >= width - lengths if left else places < lengths)


@cache
def fills(words: int) -> st.SearchStrategy[Array]:
    """What the logits of padding hold: nothing to tell, or a model sure of one word."""
    one = np.eye(1, words)[0]
    return st.sampled_from([0 * one, 30 * one, 30 * one[::-1], 60 * one])
