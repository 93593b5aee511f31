"""Which document comes where: in the input, and among equals."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from hypothesis import strategies as st

from losslab.contracts import closeness
from losslab.contracts.agreement import must_agree
from losslab.contracts.listwise.batch import around, beside_a_longer_list
from losslab.contracts.listwise.lists import TIED_LISTS, drawn_width, lists, orders, untied
from losslab.contracts.listwise.values import HALF_FORMATS, name_of_format
from losslab.contracts.model import BrokenPromise, Contract, Counterexample, Draw, Exemption, NoKernel, Quantity, Query
from losslab.contracts.subject import Outcome, Subject
from losslab.device import pick_device


def permutation(loss: Subject, draw: Draw) -> None:
    """Move logits and labels together: the value stays, and each document keeps its gradient."""
    query = draw(lists(tied=True))
    moved = keep_ties_in_order(query, draw(orders(len(query))))
    permuted = Query(tuple(query.logits[i] for i in moved), tuple(query.labels[i] for i in moved))
    alone = loss.alone(query)
    should = Outcome(alone.values, (alone.gradients[0][list(moved)],))
    must_agree(
        loss,
        loss.run([permuted]),
        should,
        [permuted],
        "The same documents in another order teach something else.",
        {"before": str(query)},
    )


def keep_ties_in_order(query: Query, moved: list[int]) -> tuple[int, ...]:
    """The permutation, changed so that documents with equal labels stay in the order they were given in."""
    moved = list(moved)
    for label in set(query.labels):
        places = [place for place, i in enumerate(moved) if query.labels[i] == label]
        for place, i in zip(places, sorted(moved[place] for place in places), strict=True):
            moved[place] = i
    return tuple(moved)


PERMUTATION = Contract(
    "permutation",
    "documents may come in any order",
    "Moving logits and labels together changes nothing: same value, and every document keeps its gradient (documents "
    "with equal labels staying in their order).",
    permutation,
    (Exemption("order", "given", "documents are ranked as they stand, so another order is another ranking to learn"),),
    most=30,
)


OTHER_FORMATS = st.sampled_from([torch.float64, *HALF_FORMATS])


def tie_order(loss: Subject, draw: Draw) -> None:
    """Between equal labels, or equal logits, the same document comes first at any width, in any format, anywhere."""
    query = draw(TIED_LISTS)
    width = drawn_width(draw, len(query))
    format_ = draw(OTHER_FORMATS)

    def asked_twice(query: Query, alone: Outcome) -> None:
        must_agree(loss, loss.alone(query), alone, [query], "Asked twice, it answers differently.")

    def padded(query: Query, alone: Outcome) -> None:
        got = loss.run([query], width=width)
        sentence = f"In a matrix of width {width} ties are put in another order."
        must_agree(loss, got, alone, [query], sentence, around(width, (0.0, 0.0), len(query)))

    def beside(query: Query, alone: Outcome) -> None:
        beside_a_longer_list(loss, query, alone, width)

    def in_another_format(query: Query, alone: Outcome) -> None:
        try:
            got = loss.run([query], dtype=format_)
        except NoKernel as missing:
            loss.note(f"{name_of_format(format_)} not compared: {missing.problem}")
            return
        must_rank_alike(loss, query, got, alone, f"in {name_of_format(format_)}")

    def on_the_device(query: Query, alone: Outcome) -> None:
        device = pick_device()
        if device.type != "cpu":
            got = loss.run([query], device=device)
            must_rank_alike(loss, query, got, alone, f"on {device.type}")

    alone = loss.alone(query)
    for changes in (asked_twice, padded, beside, in_another_format, on_the_device):
        try:
            changes(query, alone)
        except BrokenPromise:
            if not matters_without_ties(loss, changes, query):
                raise


def matters_without_ties(loss: Subject, changes: Callable[[Query, Outcome], None], query: Query) -> bool:
    """Whether the change matters even to the same list with its ties resolved, so that ties are not what is wrong."""
    resolved = untied(query)
    try:
        changes(resolved, loss.alone(resolved))
    except BrokenPromise:
        return True
    return False


TIE_ORDER = Contract(
    "tie_order",
    "ties keep one order",
    "Equal labels (and equal logits) are put in the same order at any width, in any number format, on any device.",
    tie_order,
    (Exemption("order", "given", "documents are ranked as they stand, so there are no ties to resolve"),),
)


def must_rank_alike(loss: Subject, query: Query, got: Outcome, want: Outcome, where: str) -> None:
    """Two gradients may differ by a coarse format's rounding, not by what another order of ties makes of them."""
    right = want.gradients[0]
    if np.abs(got.gradients[0] - right).max() <= 0.1 * np.abs(right).max() + 0.02 * loss.scale:
        return
    raise BrokenPromise(
        Counterexample(
            f"Ties are put in another order {where}.",
            (query,),
            {"compared": f"float32 on cpu, and {where}"},
            (
                Quantity("loss", float(got.values[0]), float(want.values[0])),
                Quantity("gradient", closeness.as_tuple(got.gradients[0]), closeness.as_tuple(right)),
            ),
        )
    )
