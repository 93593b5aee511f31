"""Arrows in any direction, and labels that find room beside what they name: as ``js/vectors.js``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import atan2, ceil, cos, hypot, pi, sin

from losslab.figures._sheet import Point

Box = tuple[float, float, float, float]  # left, top, right, bottom


def vector(start: Point, end: Point, width: float) -> list[Point]:
    """Return the corners of an arrow whose shaft is `width` px wide; too short for its head, it is all head."""
    (x0, y0), (x1, y1) = start, end
    long = hypot(x1 - x0, y1 - y0) or 1e-9
    ux, uy = (x1 - x0) / long, (y1 - y0) / long
    head = min(long, 3.4 * width)
    shaft, wing, neck = width / 2, 1.5 * head / 3.4, long - head
    corners = [(0, shaft), (neck, shaft), (neck, wing), (long, 0), (neck, -wing), (neck, -shaft), (0, -shaft)]
    return [(x0 + ux * a - uy * b, y0 + uy * a + ux * b) for a, b in corners]


def along(start: Point, end: Point, half: float = 6) -> list[Box]:
    """Return boxes along a line, for labels to keep clear of."""
    (x0, y0), (x1, y1) = start, end
    parts = max(1, ceil(hypot(x1 - x0, y1 - y0) / 12))
    middles = [(x0 + (x1 - x0) * i / parts, y0 + (y1 - y0) * i / parts) for i in range(parts + 1)]
    return [(x - half, y - half, x + half, y + half) for x, y in middles]


@dataclass(frozen=True)
class Label:
    """A label that wants to stand beside (x, y) in the direction (dx, dy), `clear` px away, and is `width` wide."""

    x: float
    y: float
    dx: float
    dy: float
    clear: float
    width: float
    height: float = 16


def _overlap(a: Box, b: Box) -> float:
    return max(0.0, min(a[2], b[2]) - max(a[0], b[0])) * max(0.0, min(a[3], b[3]) - max(a[1], b[1]))


def besides(labels: Sequence[Label], taken: Sequence[Box], bounds: Box) -> list[Point]:
    """Return middles for labels: each, in turn, where it covers least, near what it names, most in its direction."""
    there, found = list(taken), []
    for label in labels:
        best: Box = (0, 0, 0, 0)
        least = float("inf")
        w, h = label.width / 2, label.height / 2
        for ring in range(4):
            for k in range(16):
                side = (1 if k % 2 else -1) * ceil(k / 2) * pi / 8
                angle = atan2(label.dy, label.dx) + side
                c, s = cos(angle), sin(angle)
                reach = label.clear + ring * 14 + min(w / max(abs(c), 1e-6), h / max(abs(s), 1e-6))
                mx = min(max(label.x + c * reach, bounds[0] + w), bounds[2] - w)
                my = min(max(label.y + s * reach, bounds[1] + h), bounds[3] - h)
                box = (mx - w, my - h, mx + w, my + h)
                cost = ring * 30 + abs(side) * 8 + sum(10 * _overlap(box, other) for other in there)
                if cost < least:
                    least, best = cost, box
        there.append(best)
        found.append(((best[0] + best[2]) / 2, (best[1] + best[3]) / 2))
    return found
