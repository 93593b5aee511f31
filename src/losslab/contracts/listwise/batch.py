"""What stands around a query: empty slots, other queries, lists too short to rank."""

from __future__ import annotations

import numpy as np
import torch

from losslab.contracts import closeness
from losslab.contracts.agreement import broken, compare, must_agree
from losslab.contracts.listwise.lists import FILLS, YES_OR_NO, drawn_width, lists, whole
from losslab.contracts.listwise.once import filler, value_of_filler
from losslab.contracts.model import BrokenPromise, Contract, Counterexample, Draw, Quantity, Query
from losslab.contracts.subject import Outcome, Subject
from losslab.contracts.wording import show


def padding_invariance(loss: Subject, draw: Draw) -> None:
    """Alone, then with empty slots behind it, then beside a longer list: a query teaches the same."""
    query = draw(lists(tied=True))
    width, fill = drawn_width(draw, len(query)), draw(FILLS)
    alone = loss.alone(query)
    must_agree(
        loss,
        loss.run([query], width=width, fill=fill),
        alone,
        [query],
        f"In a matrix of width {width} the same list teaches something else.",
        around(width, fill, len(query)),
    )
    beside_a_longer_list(loss, query, alone, width)


PADDING_INVARIANCE = Contract(
    "padding_invariance",
    "padding changes nothing",
    "Padding does not change what a query teaches: value and gradient are the same at any width, whatever the empty "
    "slots hold.",
    padding_invariance,
    under="Beside another list only the direction of the gradient is asked for; its weight is batch_invariance's.",
    most=30,
)


def batch_invariance(loss: Subject, draw: Draw) -> None:
    """A batch teaches what its queries teach alone, each with the same weight."""
    queries = [draw(lists()) for _ in range(draw(whole(2, 3)))]
    alone = [loss.alone(query) for query in queries]
    must_agree(
        loss,
        loss.run(queries),
        loss.combine(queries, alone),
        queries,
        f"A batch of {len(queries)} is not the {loss.conventions.reduction} of its queries."
        if loss.conventions.reduction != "none"
        else f"A query's value changes in a batch of {len(queries)}.",
    )


BATCH_INVARIANCE = Contract(
    "batch_invariance",
    "a batch is its queries",
    "A batch's value is the mean over its counted queries, and each query's gradient is its gradient alone divided by "
    "their number.",
    batch_invariance,
    under="reduction='sum' asks for the sum, with each gradient unchanged; 'none' for each query's own value.",
    most=30,
)


def padding_gradient(loss: Subject, draw: Draw) -> None:
    """Whatever an empty slot holds, nothing is taught there."""
    queries = [draw(lists(tied=True))]
    width, fill = drawn_width(draw, len(queries[0])), draw(FILLS)
    outcome = loss.run(queries, width=width, fill=fill)
    taught = {slot: gradient for slot, gradient in outcome.padding.items() if gradient != 0}  # nan is not 0 either
    if taught:
        (_, column), gradient = next(iter(taught.items()))
        raise BrokenPromise(
            Counterexample(
                f"Slot {column + 1} of {width} is empty, yet it gets a gradient.",
                tuple(queries),
                around(width, fill, len(queries[0])),
                (Quantity(f"gradient at slot {column + 1}", gradient, 0.0),),
            )
        )


PADDING_GRADIENT = Contract(
    "padding_gradient",
    "no gradient at padding",
    "The gradient at an empty slot is exactly 0, whatever the slot holds, nan included.",
    padding_gradient,
    most=40,
)


def short_lists(loss: Subject, draw: Draw) -> None:
    """Lists with no or one document, beside one that can be ranked, add nothing."""
    query = draw(lists())
    short = [draw(lists(fewest=0, most=1)) for _ in range(draw(whole(1, 2)))]
    queries = [*short, query] if draw(YES_OR_NO) else [query, *short]
    nothing = Outcome(np.zeros(1), (np.zeros(1),))
    alone = [
        loss.alone(q) if len(q) >= 2 else Outcome(nothing.values, (nothing.gradients[0][: len(q)],)) for q in queries
    ]
    counted = "be counted" if loss.conventions.count_short_lists else "not be counted"
    sizes = " and ".join("an empty list" if not len(q) else "a list of one document" for q in short)
    must_agree(
        loss,
        loss.run(queries),
        loss.combine(queries, alone),
        queries,
        f"Beside {sizes}, which should add 0 and {counted}, the batch teaches something else.",
    )


SHORT_LISTS = Contract(
    "short_lists",
    "short lists add nothing",
    "A list of no or one document contributes 0 and no gradient, and is not counted in the mean.",
    short_lists,
    under="count_short_lists=True asks that they be counted; under 'sum' and 'none' there is no mean to count in.",
    most=30,
)


def around(width: int, fill: tuple[float, float], documents: int) -> dict[str, str]:
    """The setting of a padded list, in words."""
    return {"width": f"{width} ({width - documents} empty), holding logit {show(fill[0])}, label {show(fill[1])}"}


def beside_a_longer_list(loss: Subject, query: Query, alone: Outcome, width: int) -> None:
    """A list of ``width`` documents stands in the same batch; how much the query counts there is not asked.

    Losses that never see an empty slot, because a library packs the batch for them, are reached only this way.
    """
    queries = [query, filler(width)]
    batch = loss.run(queries)
    share = loss.count(queries) if loss.conventions.reduction == "mean" else 1
    value = float(batch.values[0])
    if loss.conventions.reduction != "none":
        value = value * share - value_of_filler(loss, width)
    got = Outcome(np.array([value]), (batch.gradients[0] * share,))

    room = 2 * closeness.room(queries, loss.scale, torch.float32)  # the value is a difference of larger ones
    value_error = abs(value - alone.values[0]) / (room + closeness.VALUE * abs(batch.values[0]) * share)
    gradient = compare(got.gradients[0], alone.gradients[0], closeness.room([query], loss.scale, torch.float32))
    if gradient.direction == "kept":
        as_loud = gradient.factor is not None and abs(gradient.factor - 1) <= closeness.SAME_DIRECTION
        if value_error <= 1 or not as_loud:
            return
    elif gradient.direction is None and np.linalg.norm(got.gradients[0]) <= 100 * room:
        return  # too little is taught to tell a direction by (a gradient that is not finite is never little)
    raise broken(
        got,
        alone,
        [query],
        [gradient],
        [value_error],
        f"Beside a list of {width} documents the same list teaches something else.",
        {"beside it": f"a list of {width} documents, logits 0, labels 1"},
    )
