"""Pairs on a circle or a sphere that descend InfoNCE: the same numbers as ``js/descend.js``, from the same seed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import cos, log, pi, sin, sqrt

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

LAST = 200  # steps of a run
RATE = 0.01  # learning rate, on the sum over queries


@dataclass(frozen=True)
class Run:
    """A whole run: T + 1 states of N queries and N documents on the unit circle (d = 2) or sphere (d = 3).

    Attributes
    ----------
    queries, documents
        (T + 1, N, d); where two pairs share a positive the first two documents are one point.
    loss
        Mean over queries, nats, (T + 1,).
    alignment
        Mean squared distance of a query and its positive, (T + 1,).
    uniformity
        ln of the mean of exp(−2 ‖x − y‖²) over pairs of different queries, and over pairs of different documents, and
        of both the mean, (T + 1,): Wang & Isola, "Understanding Contrastive Representation Learning through Alignment
        and Uniformity on the Hypersphere", ICML 2020.
    """

    queries: Floats
    documents: Floats
    loss: Floats
    alignment: Floats
    uniformity: Floats


def floor_of(pairs: int, *, shared: bool) -> float:
    """Return what the mean loss cannot fall below: (2/N) ln 2 where two of N pairs share a positive, and else 0."""
    return 2 / pairs * log(2) if shared else 0.0


def uniforms(seed: int, count: int) -> list[float]:
    """Return `count` numbers from 0 up to 1 that depend on `seed` alone: a linear congruential generator."""
    state, found = seed, []
    for n in range(count + 8):
        state = (state * 1664525 + 1013904223) % 4294967296
        if n >= 8:
            found.append(state / 4294967296)
    return found


def start_of(pairs: int, dimension: int, seed: int, *, shared: bool) -> tuple[Floats, Floats]:
    """Return queries and documents before the first step, (N, d) each, spread over the circle or sphere at random."""
    points = []
    draws = iter(uniforms(seed, 4 * pairs))
    for u, v in zip(draws, draws, strict=True):
        turn, height = 2 * pi * u, 2 * v - 1
        wide = 1.0 if dimension == 2 else sqrt(1 - height * height)
        points.append([wide * cos(turn), wide * sin(turn), height][:dimension])
    queries, documents = np.array(points[:pairs]), np.array(points[pairs:])
    if shared:
        documents[1] = documents[0]
    return queries, documents


def slopes(queries: Floats, documents: Floats, temperature: float, *, shared: bool) -> tuple[float, Floats, Floats]:
    """Return the mean loss, and the gradient of the sum over queries by queries and documents, (N, d) each.

    InfoNCE in one direction: each query's softmax goes over all N columns. A shared document is one point, whose
    gradient is the sum over both of its columns.
    """
    logits = queries @ documents.T / temperature
    most = logits.max(axis=1, keepdims=True)
    powers = np.exp(logits - most)
    totals = powers.sum(axis=1, keepdims=True)
    loss = float((most[:, 0] + np.log(totals[:, 0]) - np.diagonal(logits)).mean())
    by_score = (powers / totals - np.eye(len(queries))) / temperature
    by_documents = by_score.T @ queries
    if shared:
        by_documents[:2] = by_documents[0] + by_documents[1]
    return loss, by_score @ documents, by_documents


def _moved(points: Floats, gradient: Floats) -> Floats:
    """Take one step along the surface: the gradient without its part along the point, then back to length 1."""
    along = (gradient * points).sum(axis=1, keepdims=True)
    there = points - RATE * (gradient - along * points)
    return np.asarray(there / np.sqrt((there * there).sum(axis=1, keepdims=True)))


def uniformity(points: Floats) -> float:
    """Return ln of the mean of exp(−2 ‖x − y‖²) over pairs of different points."""
    first, second = np.triu_indices(len(points), k=1)
    gaps = ((points[first] - points[second]) ** 2).sum(axis=1)
    return float(np.log(np.exp(-2 * gaps).mean()))


@lru_cache(maxsize=64)
def descend(pairs: int, surface: str, temperature: float, seed: int, shared: bool) -> Run:
    """Return the run that these settings lead to."""
    queries, documents = start_of(pairs, 2 if surface == "circle" else 3, seed, shared=shared)
    states, numbers = [], []
    for _ in range(LAST + 1):
        loss, by_queries, by_documents = slopes(queries, documents, temperature, shared=shared)
        states.append((queries, documents))
        aligned = float(((queries - documents) ** 2).sum(axis=1).mean())
        numbers.append((loss, aligned, (uniformity(queries) + uniformity(documents)) / 2))
        queries, documents = _moved(queries, by_queries), _moved(documents, by_documents)
    columns = np.array(numbers).T
    return Run(np.array([q for q, _ in states]), np.array([d for _, d in states]), *columns)
