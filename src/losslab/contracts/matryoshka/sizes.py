"""What is asked at each size, and how sizes add up."""

from __future__ import annotations

import copy
from contextlib import suppress
from dataclasses import replace
from functools import cache

import numpy as np
import torch
from hypothesis import strategies as st

from losslab.contracts.contrastive.subject import Array, Taught
from losslab.contracts.matryoshka import bases
from losslab.contracts.matryoshka.bases import Base, PlannedError
from losslab.contracts.matryoshka.subject import MatryoshkaSubject, Question, taught
from losslab.contracts.model import BrokenPromise, Contract, Draw, Exempt, Exemption, LossFailed, Pairs
from losslab.contracts.wording import show

FIRST = (1.0, -1.0, 0.5, 2.0)  # what may stand first: no prefix is then without direction
OTHERS = (0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0)
WEIGHTS = st.sampled_from([1.0, 2.0, 0.5, 3.0])
FACTORS = st.sampled_from([1.0, 2.0, 0.5, 4.0, 100.0, 0.01])
#: Unit vectors without rounding to speak of, whose prefixes are shorter than 1.
UNIT = {2: ((0.6, 0.8), (0.8, -0.6), (1.0, 0.0)), 3: ((0.6, 0.8, 0.0), (0.48, 0.6, 0.64), (0.0, 0.0, 1.0))}


@cache
def matrices(rows: int, size: int) -> st.SearchStrategy[Array]:
    """So many vectors, (rows, size), with something in their first dimension."""
    row = st.tuples(st.sampled_from(FIRST), *[st.sampled_from(OTHERS)] * (size - 1))
    return st.lists(row, min_size=rows, max_size=rows).map(lambda found: np.array(found).reshape(rows, size))


SIZES = st.sampled_from([2, 3])
ROWS = st.sampled_from([2, 1, 3])


@cache
def some_of(largest: int, fewest: int = 1) -> st.SearchStrategy[tuple[int, ...]]:
    """At least so many distinct sizes up to the largest, ascending or descending."""
    chosen = st.lists(st.integers(1, largest), min_size=fewest, max_size=largest, unique=True)
    return chosen.map(tuple)


@cache
def weights_of(count: int) -> st.SearchStrategy[tuple[float, ...]]:
    """As many weights."""
    return st.lists(WEIGHTS, min_size=count, max_size=count).map(tuple)


def asked(
    loss: MatryoshkaSubject, draw: Draw, *, below: bool = False, fewest: int = 1, telling: bool = False
) -> Question:
    """Random embeddings, as many queries as documents; some sizes, with ``below`` all below the full one.

    With ``telling``, where small errors would show: a low temperature, more than one pair, prefixes of two dimensions.
    """
    base = (loss.bases[0] if telling else draw(st.sampled_from(loss.bases)))()
    rows, size = (3, 3) if telling else (draw(ROWS), draw(SIZES))
    pairs = Pairs(draw(matrices(rows, size)), draw(matrices(rows, size)))
    dims = draw(some_of(size - 1 if below else size, min(fewest, size - 1) if below else fewest))
    weights = draw(weights_of(len(dims))) if loss.takes_weights else None
    return Question(pairs, dims, weights, base)


def alone(question: Question, base: Base) -> Taught:
    """The base loss, of the embeddings as they are."""
    return taught(base, question)


def full_size(loss: MatryoshkaSubject, draw: Draw) -> None:
    """Ask about the full size alone: that is the base loss."""
    loss.must_know_its_base()
    question = asked(loss, draw)
    question = replace(question, dims=(question.size,), weights=None)
    assert question.base is not None
    loss.compare(
        loss.run(question),
        alone(question, question.base),
        question,
        "Asked about the full size alone, it is not the base loss.",
    )


FULL_SIZE = Contract(
    "full_size",
    "the full size is the base loss",
    "Asked about the full size alone, value and gradients are the base loss's own, whether that looks at cosines, dot "
    "products or distances.",
    full_size,
    under="A loss that is nested already is compared with the base loss that against= names.",
)


def prefixes(loss: MatryoshkaSubject, draw: Draw) -> None:
    """Ask about one smaller size: the base loss of unit prefixes, worked out in float64."""
    loss.must_know_its_base()
    question = asked(loss, draw, below=True)
    question = replace(question, dims=question.dims[:1], weights=None)
    base, (dim,) = question.base, question.dims

    def of_unit_prefixes(queries: torch.Tensor, documents: torch.Tensor) -> torch.Tensor:
        cut = [x[:, :dim] / torch.linalg.vector_norm(x[:, :dim], dim=1, keepdim=True) for x in (queries, documents)]
        assert base is not None
        value: torch.Tensor = base(*cut)
        return value

    loss.compare(
        loss.run(question),
        taught(of_unit_prefixes, question, torch.float64),
        question,
        f"At size {dim} it is not the base loss of the first {_dimensions(dim)}, renormalised.",
    )


PREFIXES = Contract(
    "prefixes",
    "a smaller size is the base loss of unit prefixes",
    "Asked about one size below the full one, value and gradients are those of the base loss for the first dimensions "
    "of every vector, divided by their length.",
    prefixes,
    under="A loss that is nested already is compared with the base loss that against= names.",
)


def scale(loss: MatryoshkaSubject, draw: Draw) -> None:
    """Make every vector longer or shorter, each by a factor of its own: prefixes are unit vectors all the same."""
    question = asked(loss, draw, below=True)
    pairs, rows = question.pairs, len(question.pairs.queries)
    by_query, by_document = (
        np.array(draw(st.lists(FACTORS, min_size=rows, max_size=rows))).reshape(rows, 1) for _ in range(2)
    )
    scaled = replace(question, pairs=Pairs(pairs.queries * by_query, pairs.documents * by_document))
    before = loss.plain(question)
    factors = {"queries": by_query, "documents": by_document}
    longer = [f"{side} times {', '.join(map(show, factor.ravel().tolist()))}" for side, factor in factors.items()]
    loss.compare(
        loss.run(scaled),
        Taught(before.values, before.queries / by_query, before.documents / by_document),
        scaled,
        f"With {' and '.join(longer)}, it teaches something else, though no direction has changed.",
        {"before": ", ".join(pairs.lines())},
        wanted="as before",
    )


SCALE = Contract(
    "scale",
    "below the full size, lengths do not matter",
    "Below the full size, multiplying each vector by a number above 0 of its own changes neither the value nor, up to "
    "that number, its gradient. A loss that normalises whole vectors before it cuts them keeps this, too: whether the "
    "prefixes themselves are unit vectors is for the contract prefixes to say.",
    scale,
)


def prefix_only(loss: MatryoshkaSubject, draw: Draw) -> None:
    """Change what lies beyond the largest size asked about: it is not there."""
    question = asked(loss, draw, below=True)
    pairs, most = question.pairs, max(question.dims)
    before = loss.plain(question)
    shift = draw(st.sampled_from([1.0, -3.0, 8.0]))
    queries, documents = pairs.queries.copy(), pairs.documents.copy()
    by_query, by_document = before.queries.copy(), before.documents.copy()
    for row, gradient in ((queries, by_query), (documents, by_document)):
        row[:, most:] += shift
        gradient[:, most:] = 0
    other = replace(question, pairs=Pairs(queries, documents))
    loss.compare(
        loss.run(other),
        Taught(before.values, by_query, by_document),
        other,
        f"Only the first {_dimensions(most)} were asked about, and what lies beyond has an effect.",
        {"before": ", ".join(pairs.lines())},
        wanted="as before",
    )


PREFIX_ONLY = Contract(
    "prefix_only",
    "what is cut off has no effect",
    "Dimensions beyond the largest size asked about change neither value nor gradients, and get gradient 0.",
    prefix_only,
)


def sum_over_dims(loss: MatryoshkaSubject, draw: Draw) -> None:
    """Ask about several sizes, and about each alone."""
    question = asked(loss, draw, fewest=2)
    parts = [loss.plain(replace(question, dims=(dim,), weights=None)) for dim in question.dims]
    how = "weighted " if question.weights is not None else ""
    loss.compare(
        loss.run(question),
        loss.combined(parts, question.weight),
        question,
        f"Sizes {', '.join(map(str, question.dims))} together are not the {how}{loss.conventions.combine} of each.",
        {"each alone": ", ".join(show(float(part.values[0])) for part in parts)},
    )


SUM_OVER_DIMS = Contract(
    "sum_over_dims",
    "sizes add up",
    "Value and gradients for several sizes are the weighted sum of those for each size alone.",
    sum_over_dims,
    under="combine='mean' asks for the sum over the weights' sum. Weights are given if the signature names them.",
)


def dims_order(loss: MatryoshkaSubject, draw: Draw) -> None:
    """Name the same sizes, with the same weights, in another order."""
    question = asked(loss, draw, fewest=2)
    descending = sorted(zip(question.dims, question.weight, strict=True), reverse=True)
    dims, weights = zip(*descending, strict=True)
    first = replace(question, dims=dims, weights=weights if question.weights is not None else None)
    loss.compare(
        loss.run(question),
        loss.plain(first),
        question,
        "In another order than largest first, the same sizes teach something else.",
        {"before": ", ".join(f"{name} {text}" for name, text in first.setting.items() if name != "base loss")},
        wanted="as before",
    )


DIMS_ORDER = Contract(
    "dims_order",
    "the order of the sizes does not matter",
    "The same sizes, each with its weight, teach the same in whatever order they are named.",
    dims_order,
)


def perfect_student(loss: MatryoshkaSubject, draw: Draw) -> None:
    """A student that is its teacher, unit vector by unit vector."""
    if loss.form == "plain":
        loss.must_know_its_base()
    base = copy.copy(loss.against) or bases.distance()
    if not base.embedding_labels:
        raise Exempt(f"its base loss, {base.name}, has no teacher to be equal to")
    rows, size = draw(st.sampled_from([1, 2])), draw(SIZES)
    vectors = np.array(draw(st.lists(st.sampled_from(UNIT[size]), min_size=rows, max_size=rows)))
    dims = draw(some_of(size))
    if not np.abs(vectors[:, : min(dims)]).sum(1).all():
        return  # a prefix that is all 0 has no direction
    question = Question(Pairs(vectors, vectors.copy()), dims, None, base)
    nothing = Taught(np.zeros(1), np.zeros_like(vectors), np.zeros_like(vectors))
    loss.compare(loss.run(question), nothing, question, "A student that is its teacher is charged for something.")


PERFECT_STUDENT = Contract(
    "perfect_student",
    "a perfect student pays nothing at any size",
    "Where the labels are embeddings, a student whose unit vectors are its teacher's has loss 0 and gradient 0 at "
    "every size: labels are cut and renormalised as the student is.",
    perfect_student,
    (Exemption("embedding_labels", False, "it takes no labels that are embeddings"),),
    under="Asked of mean squared error; of a loss that is nested already if against= names a base loss with a teacher.",
)


def restored(loss: MatryoshkaSubject, draw: Draw) -> None:
    """Let it fail in the middle, then ask again, it and the base loss by itself."""
    if loss.form == "plain":
        restored_after_a_wrong_size(loss, draw)
        return
    question = asked(loss, draw, fewest=2)
    base = question.base
    assert base is not None
    before_alone = alone(question, base)
    made = loss.made(question)
    before = loss.run(question, made=made)
    call = draw(st.integers(1, len(question.dims)))
    base.raises_in = call
    try:
        loss.run(question, made=made)
    except LossFailed as failed:
        if not isinstance(failed.__cause__, PlannedError):
            raise
        raised = True
    else:
        raised = base.raises_in > 0  # it was not called so often: nothing was swallowed
    finally:
        base.raises_in = None
    setting = {"exception": f"raised by the base loss in its call {call}"}
    if not raised:
        said = "The base loss raised, and the exception was swallowed: what it gave instead is no loss."
        raise BrokenPromise(replace(question.seen(said), setting={**question.setting, **setting}))
    by_itself = Base(base.name, getattr(made, "base_loss", base), base.unit, scale_free=base.scale_free)
    said = "After an exception in the middle, the base loss by itself teaches something else."
    loss.compare(alone(question, by_itself), before_alone, question, said, setting, wanted="as before")
    said = "After an exception in the middle, it teaches something else."
    loss.compare(loss.run(question, made=made), before, question, said, setting, wanted="as before")


def restored_after_a_wrong_size(loss: MatryoshkaSubject, draw: Draw) -> None:
    """All that can be done to a loss without a base of its own: ask about a size that is not there."""
    question = asked(loss, draw)
    before = loss.plain(question)
    with suppress(LossFailed):
        loss.run(replace(question, dims=(*question.dims, question.size + 1), weights=None))
    said = "After it was asked about a size above the full one, it teaches something else."
    loss.compare(loss.run(question), before, question, said, wanted="as before")


RESTORED = Contract(
    "restored",
    "an exception leaves nothing behind",
    "When the base loss raises, the exception comes out; afterwards the base loss by itself and the nested loss are "
    "what they were.",
    restored,
    under="A loss that is nested already is asked about a size above the full one instead.",
)


def _dimensions(count: int) -> str:
    return "dimension" if count == 1 else f"{count} dimensions"
