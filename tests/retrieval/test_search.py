"""Exact search against a full sort, ties included."""

import numpy as np
import pytest
import torch

from losslab.retrieval import search


def by_full_sort(queries, documents, ids, k):
    """Best first; equal scores by id, the larger string first."""
    found = []
    for query in queries.tolist():
        scores = [sum(a * b for a, b in zip(query, document, strict=True)) for document in documents.tolist()]
        order = sorted(range(len(scores)), key=lambda row: (scores[row], ids[row]), reverse=True)
        found.append(order[:k])
    return found


@pytest.mark.parametrize("seed", range(30))
def test_search_is_a_full_sort_cut_off(seed):
    rng = np.random.default_rng(seed)
    queries = torch.from_numpy(rng.integers(-1, 2, (int(rng.integers(1, 6)), 3)).astype(np.float32))
    documents = torch.from_numpy(rng.integers(-1, 2, (int(rng.integers(1, 60)), 3)).astype(np.float32))
    ids = [f"d{number}" for number in rng.permutation(999)[: len(documents)]]
    k = int(rng.integers(1, 12))
    scores, rows = search(queries, documents, k, document_ids=ids, chunk_size=2)
    assert rows.tolist() == by_full_sort(queries, documents, ids, k)
    assert torch.equal(scores, (queries @ documents.T).gather(1, rows))


def test_default_ids_are_row_numbers_as_strings():
    _, rows = search(torch.ones(1, 2), torch.ones(12, 2), 12)
    assert rows[0].tolist() == [9, 8, 7, 6, 5, 4, 3, 2, 11, 10, 1, 0]


def test_half_precision_is_searched_in_float32():
    torch.manual_seed(0)
    queries, documents = torch.randn(3, 16).bfloat16(), torch.randn(50, 16).bfloat16()
    scores, rows = search(queries, documents, 5)
    assert scores.dtype == torch.float32
    assert torch.equal(rows, search(queries.float(), documents.float(), 5)[1])


@pytest.mark.parametrize("k", [0, -1, 1.5, True, "3"])
def test_k_must_be_a_whole_number_from_1(k):
    with pytest.raises(ValueError, match="k must be a whole number of at least 1"):
        search(torch.ones(1, 2), torch.ones(3, 2), k)


@pytest.mark.parametrize(
    ("queries", "documents", "options", "message"),
    [
        (torch.ones(1, 2), torch.full((3, 2), torch.nan), {}, "documents has 3 rows that are not finite"),
        (torch.ones(1, 2), torch.ones(0, 2), {}, "documents is empty"),
        (torch.ones(1, 2), torch.ones(3, 2), {"document_ids": ["a", "a", "b"]}, "distinct, but 'a'"),
        (torch.ones(1, 2), torch.ones(3, 4), {}, "width 2 but documents have width 4"),
        ([[1.0]], torch.ones(3, 1), {}, "queries must be floating-point rows"),
    ],
)
def test_bad_input_is_named(queries, documents, options, message):
    with pytest.raises(ValueError, match=message):
        search(queries, documents, 2, **options)


@pytest.mark.parametrize("scale", [1e-38, 1e-30, 1e-22, 1e18])
def test_a_ranking_does_not_depend_on_the_scale(scale):
    """The smallest scores are no numbers of the format, and come back as 0."""
    torch.manual_seed(0)
    queries, documents = torch.randn(3, 16), torch.randn(50, 16)
    want = search(queries, documents, 7)
    scores, rows = search(queries * scale, documents * scale, 7)
    assert torch.equal(rows, want[1])
    assert torch.allclose(scores.double(), want[0].double() * scale**2, rtol=1e-5, atol=1e-43)


@pytest.mark.parametrize("scale", [1e20, 1e25, 1e38])
def test_scores_beyond_the_format_are_named(scale):
    with pytest.raises(ValueError, match=r"queries has norms up to 1.*documents up to 1.41e\+.*torch.float32; rescale"):
        search(torch.eye(3)[:2] * scale, (torch.eye(3) + torch.eye(3).roll(1, 0)) * scale)
    assert search(torch.eye(3) / scale, torch.eye(3) * scale, 1)[0].flatten().tolist() == pytest.approx([1, 1, 1])
