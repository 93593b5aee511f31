"""Which documents are negatives: copies of the positive, hard negatives, padding."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import strategies as st

from losslab.contracts.contrastive.agreement import must_agree
from losslab.contracts.contrastive.batches import batches, embeddings, up_to
from losslab.contracts.contrastive.subject import ContrastiveSubject, Taught
from losslab.contracts.model import Contract, Draw, Exempt, Exemption, Pairs


def duplicates(loss: ContrastiveSubject, draw: Draw) -> None:
    """A copy of one query's positive among the further documents: that query does not see it, the others do."""
    by_mask = loss.takes("negatives")
    if loss.conventions.duplicates == "negatives" and not by_mask:
        raise Exempt(
            "declared duplicates='negatives': it is told nothing of copies, so a copy of a positive is pushed away "
            "like any document, and two equal pairs among B cost at least (2 / B) ln 2"
        )
    if not loss.conventions.more_documents:
        raise Exempt("declared more_documents=False: there is no further document to be a copy")
    alone_only = loss.conventions.within or loss.conventions.symmetric
    pairs = draw(batches(most=1 if alone_only else 2, least_further=1))
    b, m = len(pairs.queries), len(pairs.documents)
    of = draw(up_to(b - 1, 0))
    copied = Pairs(pairs.queries, np.concatenate([pairs.documents, pairs.documents[of : of + 1]]))
    allowed = np.ones((b, m + 1), dtype=bool)
    allowed[of, m] = False
    got = loss.run(copied, negatives=allowed if by_mask else None)
    if alone_only:
        before = loss.plain(pairs)
        nothing = np.zeros((1, pairs.documents.shape[1]))
        want = Taught(before.values, before.queries, np.concatenate([before.documents, nothing]))
    else:
        want = loss.row_by_row(copied, allowed)
    seen = "although negatives= masks it there" if by_mask else "although it is to be masked"
    must_agree(
        loss,
        got,
        want,
        copied,
        f"Document {m + 1} is a copy of query {of + 1}'s positive and is one of its negatives, {seen}.",
        {"negatives": f"all but document {m + 1} for query {of + 1}"} if by_mask else {},
    )


DUPLICATES = Contract(
    "duplicates",
    "a copy of the positive is no negative",
    "A second copy of a query's positive is not pushed away from that query: the query pays as if the copy were not "
    "there.",
    duplicates,
    under="With a keyword negatives= the copy is masked by it; else the loss must find it by itself or declare that "
    "copies are negatives.",
)


def hard_negatives(loss: ContrastiveSubject, draw: Draw) -> None:
    """Hard negatives of one query each, with padding that holds anything: as if each query were asked alone."""
    loss.must_take("hard_negatives")
    pairs = draw(batches(most=2))
    b, dimensions = pairs.queries.shape
    width = draw(up_to(2, 1))
    hard = draw(embeddings(b * width, dimensions)).reshape(b, width, dimensions).copy()
    real = np.ones((b, width), dtype=bool)
    if loss.takes("hard_mask"):
        real = np.array(draw(st.lists(st.booleans(), min_size=b * width, max_size=b * width))).reshape(b, width)
        hard[~real] = draw(st.sampled_from([0.0, 1.0, 1e30, math.inf, -math.inf, math.nan]))
    given = Pairs(pairs.queries, pairs.documents, hard, real if loss.takes("hard_mask") else None)
    must_agree(
        loss,
        loss.run(given),
        loss.row_by_row(given),
        given,
        "The hard negatives are not each one more document for its own query alone."
        if real.all()
        else "Padding among the hard negatives is not without effect.",
    )


HARD_NEGATIVES = Contract(
    "hard_negatives",
    "hard negatives are their query's own",
    "A hard negative counts as one more document for its own query and for no other; a padded slot counts for nothing "
    "and gets no gradient, whatever it holds, nan included.",
    hard_negatives,
    (
        Exemption("symmetric", True, "documents choose among the queries, so queries cannot be asked alone"),
        Exemption("more_documents", False, "it takes no further document to compare with"),
    ),
)
