"""Pairs of directions as whole numbers, as ``js/directions.js`` has them: dot products of them are exact."""

from __future__ import annotations

from base64 import b64encode

import numpy as np
from numpy.typing import NDArray

SPREAD = 40  # standard deviation of the entries of random directions
LARGEST = 127

Bytes = NDArray[np.int8]
Floats = NDArray[np.float64]


def quantised(vectors: NDArray[np.floating]) -> Bytes:
    """Return each row as whole numbers from −127 to 127, its largest entry being one of the two.

    The row's scale, max |x| / 127, is not kept: a cosine knows no length. Rounding moves each entry by at most half of
    that scale, as if at random. A cosine of two rows of length 1 then moves by about max |x| / 127 · √(1/6), which is
    0.0006 for rows of 384 normal entries.

    Parameters
    ----------
    vectors : array of float, shape (n, d)
        Finite, and no row all zero.
    """
    largest = np.abs(vectors).max(axis=1, keepdims=True)
    rows = np.rint(vectors / largest * LARGEST).astype(np.int8)
    return _pointing(rows, np.where(vectors[:, 0] < 0, -1, 1))


def _pointing(rows: Bytes, signs: NDArray[np.int_] | int) -> Bytes:
    """Let the first two entries of every row, the shortest prefix that is shown, point somewhere."""
    rows[:, 0] = np.where((rows[:, 0] == 0) & (rows[:, 1] == 0), signs, rows[:, 0])
    return rows


def packed(queries: Bytes, documents: Bytes) -> str:
    """Return both matrices, row by row, in base64: n × d bytes of queries, then as many of documents."""
    return b64encode(queries.tobytes() + documents.tobytes()).decode("ascii")


def _normal_table() -> Bytes:
    """Return the normal distribution on whole numbers as 65,536 entries, which 16 random bits look up."""
    numbers = np.arange(-LARGEST, LARGEST + 1)
    mass = np.exp(-(numbers.astype(float) ** 2) / (2 * SPREAD**2))
    ends = np.floor(65536 * np.cumsum(mass) / mass.sum() + 0.5).astype(int)
    return np.repeat(numbers, np.diff(ends, prepend=0)).astype(np.int8)


def _mixed(h: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return 32 well-mixed bits of each number: the finaliser of MurmurHash3."""
    h = (h ^ (h >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    h = (h ^ (h >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return h ^ (h >> np.uint32(16))


def random_pairs(n: int, d: int, seed: int) -> tuple[Bytes, Bytes]:
    """Return `n` queries and `n` documents that point anywhere, independently: int8, (n, d) each."""
    bits = _mixed((np.arange(n * d, dtype=np.uint64) + seed).astype(np.uint32))
    table, numbers = _normal_table(), np.empty(2 * n * d, dtype=np.int8)
    numbers[0::2] = table[bits & np.uint32(65535)]
    numbers[1::2] = table[bits >> np.uint32(16)]
    rows = _pointing(numbers.reshape(2 * n, d), 1)
    return rows[:n], rows[n:]


def cosines(queries: Bytes, documents: Bytes, dimension: int) -> Floats:
    """Return the cosine of each query with each document, from the first `dimension` entries: (n, m) of float64."""
    a, b = (rows[:, :dimension].astype(np.float64) for rows in (queries, documents))
    squares = (a * a).sum(axis=1)[:, None] * (b * b).sum(axis=1)
    found: Floats = (a @ b.T) / np.sqrt(squares)  # all of it in whole numbers below 2**53, but for the root
    return found
