"""Values known beforehand, and what scaling, temperature and swapping the sides do to them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from hypothesis import strategies as st

from losslab.contracts.contrastive.agreement import must_agree, off, total, value_broken
from losslab.contracts.contrastive.batches import SPACES, batches, embeddings, up_to
from losslab.contracts.contrastive.subject import Array, ContrastiveSubject, Taught
from losslab.contracts.model import BrokenPromise, Contract, Counterexample, Draw, Exempt, Exemption, Pairs, Quantity
from losslab.contracts.wording import show, show_all

WITHIN = Exemption("within", True, "queries and documents among themselves are candidates too")


def scale(loss: ContrastiveSubject, draw: Draw) -> None:
    """Make all queries, and all documents, longer or shorter: only directions count."""
    pairs = draw(batches(further=bool(loss.conventions.more_documents)))
    by_queries, by_documents = (draw(FACTORS) for _ in range(2))
    scaled = Pairs(pairs.queries * by_queries, pairs.documents * by_documents)
    factors = {"all queries": by_queries, "all documents": by_documents}
    longer = [f"{side} times {show(factor)}" for side, factor in factors.items() if factor != 1]
    before = loss.plain(pairs)
    must_agree(
        loss,
        loss.run(scaled),
        Taught(before.values, before.queries / by_queries, before.documents / by_documents),
        scaled,
        f"With {' and '.join(longer) or 'nothing changed'} it teaches something else.",
        {"before": ", ".join(pairs.lines())},
        wanted="as before",
    )


FACTORS = st.sampled_from([1.0, 2.0, 0.5, 4.0, 100.0, 0.01])

SCALE = Contract(
    "scale",
    "only directions count",
    "Multiplying all queries by one number above 0, and all documents by another, changes neither the value nor, up to "
    "those factors, the gradients.",
    scale,
    (Exemption("normalize", False, "scores are dot products, so the embeddings' lengths count"),),
)


def blind(loss: ContrastiveSubject, draw: Draw) -> None:
    """A model to which all documents look alike can only guess among M."""
    dimensions, b = draw(SPACES), draw(up_to(3, 1))
    m = b + (draw(up_to(3, 0)) if loss.conventions.more_documents else 0)
    (vector,) = draw(embeddings(1, dimensions))
    if loss.conventions.duplicates == "masked" and not loss.takes("negatives"):
        # Equal documents would be masked as copies; documents at right angles to every query look alike as well.
        queries, documents = np.zeros((b, dimensions + 1)), np.zeros((m, dimensions + 1))
        queries[:, -1] = 1.0
        documents[:, :2] = [(1.0, float(j)) for j in range(m)]
        pairs, alike = Pairs(queries, documents), "All scores are 0"
    else:
        pairs, alike = Pairs(np.tile(vector, (b, 1)), np.tile(vector, (m, 1))), "All embeddings are equal"
    got, want = total(loss, loss.run(pairs)), math.log(m)
    if off(got, want, loss.rooms(pairs)[0]):
        raise value_broken(
            f"{alike}, and the loss is not that of guessing among {m}.",
            pairs,
            Quantity("loss" if loss.conventions.reduction == "mean" else "loss a query", got, want),
            {"should be": f"ln {m}"},
        )


BLIND = Contract(
    "blind",
    "a blind model pays ln M",
    "If all M documents look alike to a query, it pays ln M, the price of guessing among M.",
    blind,
    (WITHIN,),
)


def one_pair(loss: ContrastiveSubject, draw: Draw) -> None:
    """Nothing to tell the positive from: nothing is paid and nothing taught."""
    dimensions = draw(SPACES)
    pairs = Pairs(draw(embeddings(1, dimensions)), draw(embeddings(1, dimensions)))
    nothing = Taught(np.zeros(1), np.zeros((1, dimensions)), np.zeros((1, dimensions)))
    must_agree(loss, loss.run(pairs), nothing, pairs, "One pair alone has nothing to tell its positive from.")


ONE_PAIR = Contract(
    "one_pair",
    "one pair alone pays nothing",
    "One query with its positive and no other document pays 0 and gets no gradient.",
    one_pair,
)


def score_gradients(loss: ContrastiveSubject, draw: Draw) -> None:
    """Set every score by itself, read every score's gradient, and add up."""
    b = draw(up_to(3, 1))
    m = b + (draw(up_to(2, 0)) if loss.conventions.more_documents else 0)
    if m == 1:
        return
    drawn = draw(st.lists(st.sampled_from([0, 1, -1, 2, -2]), min_size=b * m, max_size=b * m))
    scores = np.array(drawn, dtype=float).reshape(b, m) / 4
    pairs = with_scores(scores)
    gradient = by_score(loss.plain(pairs).documents, scores)
    _, room = loss.rooms(pairs)
    room *= m * 2
    if loss.conventions.symmetric:
        if abs(gradient.sum()) > room:
            raise _unbalanced("all scores", float(gradient.sum()), gradient.reshape(-1), scores.reshape(-1), pairs)
        return
    for i in range(b):
        whose = f"query {i + 1}'s scores" if b > 1 else "the query's scores"
        if abs(gradient[i].sum()) > room:
            raise _unbalanced(whose, float(gradient[i].sum()), gradient[i], scores[i], pairs)
        pulled = [j for j in range(m) if j != i and gradient[i, j] < -room]
        if pulled and not loss.conventions.graded:
            raise BrokenPromise(
                Counterexample(
                    f"Document {pulled[0] + 1}, a negative of query {i + 1}, is pulled towards it.",
                    (),
                    {"scores": show_all(scores[i].tolist())},
                    (Quantity(f"gradient by its score {scores[i, pulled[0]]}", float(gradient[i, pulled[0]]), 0.0),),
                    pairs=pairs,
                    wanted="at least",
                )
            )


def _unbalanced(whose: str, got: float, gradient: Array, scores: Array, pairs: Pairs) -> BrokenPromise:
    return value_broken(
        f"The gradients by {whose} do not sum to 0.",
        pairs,
        Quantity(f"sum of the gradients by {whose}", got, 0.0),
        {"scores": show_all(scores.tolist()), "their gradients": show_all(gradient.tolist())},
    )


def with_scores(scores: Array) -> Pairs:
    """Unit vectors with these scores (B, M): a basis vector a query, a slack coordinate to make up the length."""
    b, m = scores.shape
    slack = np.sqrt(1 - (scores**2).sum(axis=0))
    return Pairs(np.eye(b, b + 1), np.concatenate([scores, slack[None]]).T.reshape(m, b + 1))


def by_score(by_document: Array, scores: Array) -> Array:
    """Gradients by the scores (B, M), from those by the documents of `with_scores`.

    Along a document's own direction a normalised loss has no gradient: document j's gradient lacks (g_j s_j) d_j, which
    the slack coordinate, whose own score nothing depends on, shows.
    """
    slack = np.sqrt(1 - (scores**2).sum(axis=0))
    lacking = -by_document[:, -1] / slack
    return np.asarray(by_document[:, :-1].T + lacking * scores)


SCORE_GRADIENTS = Contract(
    "score_gradients",
    "push and pull are equal",
    "The gradients by a query's scores sum to 0, what pulls the positive pushing the negatives; no negative is pulled.",
    score_gradients,
    (WITHIN,),
    under="Of a symmetric loss only the sum over all scores is asked for; graded labels may pull any document.",
)


TEMPERATURES = st.sampled_from([1000.0, 10000.0, 0.1, 0.02, 0.01, 0.001])


def temperature_limits(loss: ContrastiveSubject, draw: Draw) -> None:
    """Hot, it is the mean negative that counts; cold, the hardest."""
    loss.must_take("temperature")
    more = bool(loss.conventions.more_documents)  # with two negatives, the mean and the hardest are two things
    pairs = draw(batches(further=more, least_further=2) if more else batches(further=False, fewest=2))
    temperature = draw(TEMPERATURES)
    scores = loss.scores(pairs)
    m = len(pairs.documents)
    ways = [scores, scores.T] if loss.conventions.symmetric else [scores]
    got = total(loss, loss.run(pairs, temperature=temperature))
    room, _ = loss.rooms(pairs, temperature)
    spread = float(scores.max() - scores.min())
    if temperature >= 1000:
        want = math.log(m) + float(np.mean([np.mean(s.mean(axis=1) - own(s)) for s in ways])) / temperature
        room += (spread / temperature) ** 2
        said, sum_of = "high", "ln M, and the mean difference of scores over the temperature"
    else:
        want = float(np.mean([np.mean(s.max(axis=1) - own(s)) for s in ways])) / temperature
        room += math.log(m)
        said, sum_of = "low", "how far the hardest document is ahead over the temperature, and at most ln M more"
    if off(got, want, room):
        raise value_broken(
            f"At a {said} temperature the loss is wrong.",
            pairs,
            Quantity("loss" if loss.conventions.reduction == "mean" else "loss a query", got, want),
            {"temperature": show(temperature), "should be": sum_of},
        )


def own(scores: Array) -> Array:
    """Each row's score of its own positive: (B,)."""
    return np.asarray(scores[np.arange(len(scores)), np.arange(len(scores))])


TEMPERATURE_LIMITS = Contract(
    "temperature_limits",
    "hot it guesses, cold it is a hinge",
    "At a high temperature the loss goes to ln M plus the mean difference of scores over the temperature; at a low "
    "one, to how far the hardest negative is ahead of the positive, over the temperature.",
    temperature_limits,
    (WITHIN, Exemption("graded", True, "there is no one positive to be ahead of")),
)


def symmetry(loss: ContrastiveSubject, draw: Draw) -> None:
    """Call the queries documents and the documents queries."""
    options: dict[str, Any] = {}
    if not loss.conventions.symmetric:
        if not loss.takes("symmetric"):
            raise Exempt("declared symmetric=False: queries choose among documents, not the other way round")
        options = {"symmetric": True}
        loss.note("with symmetric=True")
    pairs = draw(batches(further=False, fewest=2))
    before = loss.plain(pairs, **options)
    swapped = Pairs(pairs.documents, pairs.queries)
    must_agree(
        loss,
        loss.run(swapped, **options),
        Taught(before.values, before.documents, before.queries),
        swapped,
        "With queries and documents swapped it teaches something else.",
        wanted="as before",
    )


SYMMETRY = Contract(
    "symmetry",
    "both sides are treated alike",
    "A symmetric loss of as many documents as queries is the same with the two swapped.",
    symmetry,
    under="Asked of a loss declared symmetric, or with symmetric=True if it has that keyword.",
)
