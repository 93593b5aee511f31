"""A lab of two functions in plain Python, quick to mark, and ways to hand it in."""

import json
import textwrap
from pathlib import Path

MARKING = """
import math

from losslab.grading import Item, Lab, Raises, Values


def draw_values(random, size):
    return {"values": [float(value) for value in random.uniform(0, 5, size + 1)]}


def perplexity(values):
    total = 0.0
    for value in values:
        total += value
    return math.exp(total / len(values))


def draw_total(random, size):
    return {"values": [int(value) for value in random.integers(1, 100, size)]}


def total(values):
    found = 0
    for value in values:
        found += value
    return found


LAB = Lab(
    name="small",
    title="A small lab",
    chapter="perplexity",
    minutes=20,
    form="module",
    items=[
        Item("total", "Add up", 1, 1, Values("total", draw_total, total, cases=4, what="total adds all values up")),
        Item(
            "perplexity", "Perplexity", 4, 2,
            Values("perplexity", draw_values, perplexity, cases=4, what="perplexity is exp of the mean", partial=False),
        ),
        Item("why", "Why the mean?", 2, 3),
    ],
)
"""

TOTAL = "def total(values):\n    return sum(values)\n\n\n"
PERPLEXITY = "import math\n\n\ndef perplexity(values):\n    return math.exp(sum(values) / len(values))\n"
RIGHT = TOTAL + PERPLEXITY
WRONG = TOTAL + "def perplexity(values):\n    return 2 ** (sum(values) / len(values))\n"


def write_lab(folder, marking=MARKING):
    """A lab's folder at this place."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "marking.py").write_text(marking, encoding="utf-8")
    return folder


def hand_in(folder, **sources):
    """A folder of modules, one a student."""
    folder.mkdir(parents=True, exist_ok=True)
    for student, source in sources.items():
        (folder / f"{student}.py").write_text(textwrap.dedent(source), encoding="utf-8")
    return folder


def notebook(*cells):
    """A notebook with these code cells, as text."""
    made = [
        {
            "cell_type": "code",
            "id": f"cell{i}",
            "metadata": {},
            "execution_count": None,
            "outputs": [],
            "source": source,
        }
        for i, source in enumerate(cells)
    ]
    return json.dumps({"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


def tree(folder):
    """Every file below a folder with its bytes."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(Path(folder).rglob("*")) if p.is_file()}
