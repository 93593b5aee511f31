"""Which pair stands where, and who else is in the batch."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from losslab.contracts.contrastive.agreement import must_agree, value_broken
from losslab.contracts.contrastive.batches import batches, embeddings, up_to
from losslab.contracts.contrastive.subject import ContrastiveSubject, Taught, permuted
from losslab.contracts.model import Contract, Draw, Exemption, Pairs, Quantity
from losslab.contracts.wording import show


def row_permutation(loss: ContrastiveSubject, draw: Draw) -> None:
    """Rotate the pairs, and turn the further documents round: the same is taught to the same."""
    pairs = draw(batches(further=bool(loss.conventions.more_documents), fewest=2))
    b, m = len(pairs.queries), len(pairs.documents)
    by = draw(up_to(b - 1, 1))
    rows = [(i + by) % b for i in range(b)]
    columns = [*rows, *reversed(range(b, m))]
    before = loss.plain(pairs)
    values = before.values[rows] if len(before.values) > 1 else before.values
    must_agree(
        loss,
        loss.run(permuted(pairs, rows, columns)),
        Taught(values, before.queries[rows], before.documents[columns]),
        permuted(pairs, rows, columns),
        f"The same pairs in another order, pair {rows[0] + 1} first, teach something else.",
        {"before": ", ".join(pairs.lines())},
        wanted="as before",
    )


ROW_PERMUTATION = Contract(
    "row_permutation",
    "the order of the pairs does not matter",
    "Putting the pairs, and the further documents, in another order leaves the value as it is and moves each gradient "
    "along with its embedding.",
    row_permutation,
)


def rows(loss: ContrastiveSubject, draw: Draw) -> None:
    """A batch is its queries, each asked alone among all the documents."""
    loss.must_take_more_documents()
    pairs = draw(batches(fewest=2, least_further=1))
    reduced = loss.conventions.reduction
    cold = loss.takes("temperature") and loss.conventions.normalize and draw(st.booleans())
    temperature = 0.02 if cold else None  # what is learned to the last digit is then as common as what is not
    options: dict[str, Any] = {"temperature": temperature} if cold else {}
    must_agree(
        loss,
        loss.run(pairs, **options),
        loss.row_by_row(pairs, **options),
        pairs,
        f"The batch is not the {reduced} of its queries, each asked alone among the same documents."
        if reduced != "none"
        else "A query's value is another when it is asked alone among the same documents.",
        {"temperature": show(temperature)} if temperature else {},
        temperature=temperature,
    )


ROWS = Contract(
    "rows",
    "a batch is its queries",
    "A batch's value is the mean of its queries' values, each query asked alone among the same documents, and so are "
    "the gradients.",
    rows,
    (
        Exemption("symmetric", True, "documents choose among the queries, so queries cannot be asked alone"),
        Exemption("more_documents", False, "it needs a positive for every query and no further document"),
        Exemption("within", True, "the other queries are negatives, so a query alone has fewer"),
    ),
    under="reduction='sum' asks for the sum, 'none' for each query's own value.",
)


def more_negatives(loss: ContrastiveSubject, draw: Draw) -> None:
    """A further document is one more to tell the positive from: no value falls."""
    loss.must_take_more_documents()
    pairs = draw(batches(most=2))
    extra = draw(embeddings(draw(up_to(2, 1)), pairs.queries.shape[1]))
    more = Pairs(pairs.queries, np.concatenate([pairs.documents, extra]))
    before, after = loss.plain(pairs).values, loss.run(more).values
    room, _ = loss.rooms(more)
    lowest = before - room - 1e-6 * np.abs(before)
    worst = int(np.argmin(np.where(np.isnan(after), -np.inf, after - before)))
    if not after[worst] >= lowest[worst]:
        said = "One further document lowers" if len(extra) == 1 else "Two further documents lower"
        raise value_broken(
            f"{said} the loss.",
            more,
            Quantity("loss", float(after[worst]), float(before[worst])),
            {"further": "the last document" if len(extra) == 1 else "the last two documents"},
            "at least",
        )


MORE_NEGATIVES = Contract(
    "more_negatives",
    "more negatives are no easier",
    "A further document, a negative of every query, never lowers the loss.",
    more_negatives,
    (
        Exemption("more_documents", False, "there is no further document"),
        Exemption("symmetric", True, "there is no further document"),
        Exemption("graded", True, "a further document takes a share of the target"),
    ),
)


def positive_offset(loss: ContrastiveSubject, draw: Draw) -> None:
    """The same documents, some of the further ones moved to the front, and the loss told how many."""
    loss.must_take("positive_offset")
    pairs = draw(batches(least_further=1))
    b, m = len(pairs.queries), len(pairs.documents)
    by = draw(up_to(m - b, 1))
    columns = [*range(b, b + by), *range(b), *range(b + by, m)]
    before = loss.plain(pairs)
    must_agree(
        loss,
        loss.run(permuted(pairs, range(b), columns), positive_offset=by),
        Taught(before.values, before.queries, before.documents[columns]),
        permuted(pairs, range(b), columns),
        f"With {by} of the further documents in front of the positives, and positive_offset={by}, it teaches "
        "something else.",
        {"positive_offset": str(by)},
        wanted="as before",
    )


POSITIVE_OFFSET = Contract(
    "positive_offset",
    "the positive is found where it stands",
    "With positive_offset=k, document i + k is query i's positive, and nothing else changes.",
    positive_offset,
    (Exemption("more_documents", False, "there is no further document to stand in front"),),
)
