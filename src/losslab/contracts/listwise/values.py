"""Numbers: shifts, extremes, precision, and whether it is the objective it says it is."""

from __future__ import annotations

import math

import numpy as np
import torch
from hypothesis import strategies as st

from losslab.contracts import closeness
from losslab.contracts.agreement import must_agree
from losslab.contracts.listwise.lists import drawn_width, lists, whole
from losslab.contracts.listwise.once import does_not_mind_being_moved, once
from losslab.contracts.model import (
    BrokenPromise,
    Contract,
    Counterexample,
    Draw,
    NoKernel,
    Quantity,
    Query,
)
from losslab.contracts.subject import Outcome, Subject
from losslab.contracts.wording import show

HALF_FORMATS = (torch.bfloat16, torch.float16)
ANY_FORMAT = st.sampled_from([torch.float32, *HALF_FORMATS])
STRETCHES = st.sampled_from([1.0, 10.0, 100.0])
FEW_STRETCHES = st.sampled_from([1.0, 10.0])
LONG = st.sampled_from([20, 200, 1100])  # documents


def name_of_format(dtype: torch.dtype) -> str:
    """float32 rather than torch.float32."""
    return str(dtype).removeprefix("torch.")


def shift_invariance(loss: Subject, draw: Draw) -> None:
    """Add one number to every logit of a list: only differences count."""
    query = draw(lists(tied=True))
    by = float(draw(whole(-500, 500)))
    shifted = Query(tuple(z + by for z in query.logits), query.labels)
    # Mostly padded: what fills the empty slots may be negligible only as long as the logits lie near 0.
    width = drawn_width(draw, len(query)) if draw(whole(0, 3)) else 0
    padded = {"width": f"{width} ({width - len(query)} empty)"} if width else {}
    must_agree(
        loss,
        loss.run([shifted], width=width),
        loss.run([query], width=width),
        [shifted],
        f"Adding {show(by)} to every logit changes what the list teaches.",
        {"shift": f"{show(by)}, from {query}", **padded},
    )


SHIFT_INVARIANCE = Contract(
    "shift_invariance",
    "only differences of logits count",
    "Adding the same number to every logit of a list changes neither value nor gradient.",
    shift_invariance,
    most=40,
)


def extreme_logits(loss: Subject, draw: Draw) -> None:
    """Logits as large as a training run gone astray makes them: finite, and right."""
    query = draw(lists(tied=True))
    stretch = draw(STRETCHES)
    centre = round(draw(whole(-10, 10)) / 10 * (1000 - stretch * max(map(abs, query.logits))))
    extreme = Query(tuple(z * stretch + centre for z in query.logits), query.labels)
    got = loss.run([extreme])
    setting = {"number format": "float32"}
    if not (np.isfinite(got.values).all() and np.isfinite(got.gradients[0]).all()):
        exact = reference(loss, extreme) or Outcome(np.array([math.nan]), (np.full(len(query), math.nan),))
        raise BrokenPromise(
            Counterexample(
                "Value or gradient is not finite.",
                (extreme,),
                setting,
                (
                    Quantity("loss", float(got.values[0]), float(exact.values[0])),
                    Quantity("gradient", closeness.as_tuple(got.gradients[0]), closeness.as_tuple(exact.gradients[0])),
                ),
            )
        )
    exact_or_none = reference(loss, extreme)
    if exact_or_none is not None:
        must_agree(loss, got, exact_or_none, [extreme], "Far from 0 the loss is wrong.", setting)


def reference(loss: Subject, query: Query) -> Outcome | None:
    """The loss itself in float64, its largest logit moved to 0 if it does not mind being moved; None if not finite.

    What spoils extreme logits in float32, an overflow or a small constant inside a logarithm, spoils them in float64
    too, but not near 0.
    """
    top = max(query.logits) if does_not_mind_being_moved(loss) else 0.0
    exact = loss.run([Query(tuple(z - top for z in query.logits), query.labels)], dtype=torch.float64)
    return exact if np.isfinite(exact.values).all() and np.isfinite(exact.gradients[0]).all() else None


EXTREME_LOGITS = Contract(
    "extreme_logits",
    "extreme logits are no trouble",
    "For logits from -1000 to 1000 value and gradient are finite and equal to what float64 gives.",
    extreme_logits,
    most=30,
)


def precision(loss: Subject, draw: Draw) -> None:
    """Float32, bfloat16 and float16 against the same loss in float64 on the same, already rounded inputs."""
    drawn = draw(lists(most=16, tied=True, top=3))
    jitter = draw(whole(0, 255))
    query = Query(tuple(z + ((jitter * (i + 1)) % 256) / 1024 for i, z in enumerate(drawn.logits)), drawn.labels)
    format_ = draw(ANY_FORMAT)
    rounded = Query(tuple(torch.tensor(query.logits, dtype=format_).tolist()), query.labels)
    exact = loss.run([rounded], dtype=torch.float64)
    if exact.dtype != torch.float64:
        loss.note(f"given float64 it answers in {name_of_format(exact.dtype)}, so that is what it was compared with")
    try:
        got = loss.run([rounded], dtype=format_)
    except NoKernel as missing:
        loss.note(f"{name_of_format(format_)} not compared: {missing.problem}")
        return
    must_agree(
        loss,
        got,
        exact,
        [rounded],
        f"In {name_of_format(format_)} it is further from float64 than the format's rounding explains.",
        {"number format": name_of_format(format_)},
        half=format_ if format_ in HALF_FORMATS else None,
    )


PRECISION = Contract(
    "precision",
    "float32 is enough",
    "On the same inputs float32 agrees with float64 to 1e-6 of the value and 1e-5 of the gradient's largest entry; "
    "bfloat16 and float16 add only their own rounding.",
    precision,
    most=40,
)


def objective(loss: Subject, draw: Draw) -> None:
    """Value and gradient of one list against the slow float64 loop of the objective it claims to be."""
    if draw(whole(0, 9)) == 9:
        n = draw(LONG)  # weights such as 2^n leave float32 here
        query = Query(tuple(round(2 * math.sin(i), 2) for i in range(n)), tuple(float(n - i) for i in range(n)))
        value, gradient = once(loss, ("objective", n), lambda: loss.against(query, loss.conventions))
    else:
        query = draw(lists(tied=True))
        stretch = draw(FEW_STRETCHES)  # a constant inside a logarithm shows once a document leads by 20
        query = Query(tuple(z * stretch for z in query.logits), query.labels)
        value, gradient = loss.against(query, loss.conventions)
    must_agree(
        loss,
        loss.run([query]),
        Outcome(np.array([value]), (np.asarray(gradient),)),
        [query],
        "It is not the objective it is compared with.",
    )


OBJECTIVE = Contract(
    "objective",
    "it is the objective it claims to be",
    "Value and gradient equal those of the objective named in against=, computed in float64.",
    objective,
    under="The objective ranks the list by labels or as given, as the loss declares.",
    most=40,
)
