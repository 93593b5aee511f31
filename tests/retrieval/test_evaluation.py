"""Metrics against a slow loop, against hand computation, against ir-measures and against scikit-learn."""

import time
from itertools import permutations
from math import log2

import ir_measures
import numpy as np
import pytest
import scipy.sparse
import torch
from sklearn.metrics import ndcg_score
from torch.utils._python_dispatch import TorchDispatchMode

from losslab.retrieval import evaluate, evaluate_scores, exact_search
from losslab.retrieval import evaluation as module

METRICS = ("ndcg@1", "ndcg@10", "ndcg", "rr", "rr@1", "rr@10", "r@5", "r@100")
FORMULAS = ("ndcg@1", "ndcg@3", "ndcg", "mrr@1", "mrr@2", "mrr", "recall@1", "recall@3", "recall")


def random_run(seed, levels=None):
    """Scores (Q, N) on a few levels, gains (Q, N) with a right document in every row, distinct ids."""
    rng = np.random.default_rng(seed)
    queries, documents = int(rng.integers(1, 8)), int(rng.integers(2, 130))
    scores = rng.integers(0, levels or rng.integers(2, 12), (queries, documents)).astype(np.float32) / 4
    gains = rng.integers(0, 4, (queries, documents)) * (rng.random((queries, documents)) < rng.choice([0.1, 0.5, 1]))
    gains[np.arange(queries), rng.integers(0, documents, queries)] = 2
    ids = [f"d{number}" for number in rng.permutation(1000)[:documents]]
    return scores, gains, ids


def one_ranking(metric, ranked_gains):
    """A metric of one query from the gains in ranked order: the definition, in a loop."""
    name, _, cut = metric.partition("@")
    k = int(cut) if cut else len(ranked_gains)
    if name == "ndcg":
        dcg = sum(gain / log2(rank + 1) for rank, gain in enumerate(ranked_gains[:k], start=1))
        best = sorted(ranked_gains, reverse=True)[:k]
        return dcg / sum(gain / log2(rank + 1) for rank, gain in enumerate(best, start=1))
    if name == "mrr":
        return next((1 / rank for rank, gain in enumerate(ranked_gains[:k], start=1) if gain > 0), 0.0)
    return sum(gain > 0 for gain in ranked_gains[:k]) / sum(gain > 0 for gain in ranked_gains)


@pytest.mark.parametrize("seed", range(40))
def test_ties_by_id_are_those_of_ir_measures(seed):
    scores, gains, ids = random_run(seed)
    if seed % 2:
        ids = [str(row) for row in range(len(ids))]  # the default ids, as a run file would have them
    names = [f"q{row}" for row in range(len(scores))]
    qrels = {
        name: {ids[column]: int(gains[row, column]) for column in np.flatnonzero(gains[row])}
        for row, name in enumerate(names)
    }
    run = {name: dict(zip(ids, scores[row].tolist(), strict=True)) for row, name in enumerate(names)}
    got = evaluate_scores(scores, qrels, METRICS, query_ids=names, document_ids=None if seed % 2 else ids)
    measures = [ir_measures.parse_measure(name.replace("ndcg", "nDCG").replace("r", "R")) for name in METRICS[3:]]
    measures += [ir_measures.parse_measure(name.replace("ndcg", "nDCG")) for name in METRICS[:3]]
    seen = 0
    for found in ir_measures.iter_calc(measures, qrels, run):
        name = str(found.measure).lower()
        assert got[name][names.index(found.query_id)] == pytest.approx(found.value, abs=1e-9), name
        seen += 1
    assert seen == len(METRICS) * len(names)


@pytest.mark.parametrize("seed", range(40))
def test_averaged_ties_are_those_of_scikit_learn(seed):
    scores, gains, _ = random_run(seed)
    got = evaluate_scores(scores, gains, ("nDCG@1", "nDCG@10", "nDCG"), ties="average")
    for name, k in (("nDCG@1", 1), ("nDCG@10", 10), ("nDCG", None)):
        want = [ndcg_score(gains[row : row + 1], scores[row : row + 1], k=k) for row in range(len(scores))]
        np.testing.assert_allclose(got[name], want, rtol=0, atol=1e-12)


@pytest.mark.parametrize("seed", range(12))
def test_averaged_ties_are_the_mean_over_every_order_of_the_tied(seed):
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 3, (1, 6)).astype(np.float64)
    gains = rng.integers(0, 3, (1, 6))
    gains[0, rng.integers(6)] = 1
    got = evaluate_scores(scores, gains, FORMULAS, ties="average")
    orders = [
        order for order in permutations(range(6)) if all(np.diff(scores[0, list(order)]) <= 0)
    ]  # all rankings that the scores allow
    for metric in FORMULAS:
        want = np.mean([one_ranking(metric, gains[0, list(order)].tolist()) for order in orders])
        assert got[metric][0] == pytest.approx(want, abs=1e-12), metric


@pytest.mark.parametrize("ties", ["docid", "average"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_embeddings_without_ties_against_a_loop(ties, dtype):
    torch.manual_seed(0)
    queries, documents = torch.randn(9, 5, dtype=dtype), torch.randn(40, 5, dtype=dtype)
    right = [sorted(np.random.default_rng(row).choice(40, 1 + row % 4, replace=False).tolist()) for row in range(9)]
    got = evaluate(queries, documents, right, FORMULAS, ties=ties)
    for row in range(9):
        order = sorted(range(40), key=lambda column: -float(queries[row] @ documents[column]))
        gains = [float(column in right[row]) for column in order]
        for metric in FORMULAS:
            assert got[metric][row] == pytest.approx(one_ranking(metric, gains), abs=1e-12), metric


def test_a_hand_computed_query():
    # ranks 1 to 4 hold gains 0, 3, 0, 1: DCG = 3 / log2(3) + 1 / log2(5), ideal = 3 + 1 / log2(3)
    got = evaluate_scores(np.array([[4.0, 3.0, 2.0, 1.0]]), [{1: 3, 3: 1}], ("nDCG@10", "MRR@10", "recall@2"))
    assert got["nDCG@10"][0] == pytest.approx((3 / log2(3) + 1 / log2(5)) / (3 + 1 / log2(3)))
    assert got["MRR@10"][0] == 0.5
    assert got["recall@2"][0] == 0.5


def test_equal_scores_rank_the_larger_id_first_but_the_smaller_for_a_cut_reciprocal_rank():
    scores = np.zeros((1, 3))
    got = evaluate_scores(scores, [[0]], ("MRR", "MRR@3", "nDCG"), document_ids=["9", "10", "100"])
    assert got["MRR"][0] == 1  # as strings, "9" is the largest
    assert got["MRR@3"][0] == 1 / 3
    assert got["nDCG"][0] == 1
    assert evaluate_scores(scores, [[0]], ("MRR",))["MRR"][0] == 1 / 3  # default ids 0, 1, 2


def test_a_document_that_was_not_retrieved_comes_last():
    got = evaluate_scores(np.array([[1.0, -np.inf, 0.5]]), [[1]], ("MRR",))
    assert got["MRR"][0] == 1 / 3


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("ties", ["docid", "average"])
def test_every_form_of_relevance_and_both_ways_to_rank_agree(seed, ties, monkeypatch):
    scores, gains, ids = random_run(seed)
    names = [f"q{row}" for row in range(len(scores))]
    row, column = np.nonzero(gains)
    values = gains[row, column]
    forms = [
        gains,
        torch.from_numpy(gains),
        torch.sparse_coo_tensor(np.stack([row, column]), values, gains.shape, check_invariants=True),
        scipy.sparse.csr_matrix(gains),
        scipy.sparse.coo_array(gains),
        [{int(c): float(gains[r, c]) for c in np.flatnonzero(gains[r])} for r in range(len(gains))],
        {name: {ids[c]: int(g) for c, g in enumerate(gains[r])} for r, name in enumerate(names)},  # zeros count nothing
    ]
    want = evaluate_scores(scores, forms[0], METRICS, ties=ties, document_ids=ids)
    for form in forms[1:]:
        got = evaluate_scores(scores, form, METRICS, ties=ties, query_ids=names, document_ids=ids)
        for metric in METRICS:
            np.testing.assert_array_equal(got[metric], want[metric])
    for few in (0, 10**9):  # all by sorting, all by counting
        monkeypatch.setattr(module, "FEW", few)
        got = evaluate_scores(scores, gains, METRICS, ties=ties, document_ids=ids, chunk_size=2)
        for metric in METRICS:
            np.testing.assert_array_equal(got[metric], want[metric])


def test_index_arrays_of_numpy_and_torch_and_lists_agree():
    torch.manual_seed(1)
    queries, documents = torch.randn(4, 3), torch.randn(10, 3)
    right = [[1], [2, 3], [9], [0, 5, 7]]
    want = evaluate(queries, documents, right)
    for form in ([np.array(one) for one in right], [torch.tensor(one) for one in right]):
        got = evaluate(queries.numpy(), documents.numpy(), form)
        assert all((got[name] == want[name]).all() for name in want)


class Largest(TorchDispatchMode):
    """Keep the size of the largest tensor that any operation returned."""

    numbers = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for one in result if isinstance(result, (tuple, list)) else [result]:
            if isinstance(one, torch.Tensor):
                self.numbers = max(self.numbers, one.numel())
        return result


@pytest.mark.parametrize("chunk_size", [7, 64, None])
@pytest.mark.parametrize("few", [0, 10**9])
def test_scores_are_held_one_chunk_at_a_time(chunk_size, few, monkeypatch):
    monkeypatch.setattr(module, "FEW", few)
    if chunk_size is None:
        monkeypatch.setattr(exact_search, "CHUNK_BYTES", 4 * 1000 * 16)
    torch.manual_seed(2)
    queries, documents = torch.randn(100, 4), torch.randn(1000, 4)
    right = [[row, row + 1, 500 + row] for row in range(100)]
    want = evaluate(queries, documents, right)
    with Largest() as largest:
        got = evaluate(queries, documents, right, chunk_size=chunk_size)
    assert largest.numbers == (chunk_size or 16) * 1000
    for name in want:
        np.testing.assert_allclose(got[name], want[name], atol=1e-12)


Q = torch.tensor([[1.0, 0, 0, 2], [0, 1, 0, 1], [0, 0, 1, 3]])
D = torch.tensor([[1.0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [1, 1, 1, 1]])
RIGHT = [[0], [1], [2]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"queries": Q.index_fill(0, torch.tensor([1]), torch.nan)}, r"queries has 1 rows .* row 1"),
        ({"documents": D.index_fill(0, torch.tensor([4]), torch.inf)}, r"documents has 1 rows .* row 4"),
        ({"documents": D[:0]}, "documents is empty"),
        ({"queries": Q[:0], "relevant": []}, "queries is empty"),
        ({"documents": D[:, :3]}, "width 4 but documents have width 3"),
        ({"queries": Q[0]}, r"queries must be floating-point rows .* \(4,\)"),
        ({"queries": Q.int()}, "int32"),
        ({"relevant": RIGHT[:2]}, "each of the 3 queries, got 2"),
        ({"relevant": [[0], [], [1]]}, "no right document for 1 of 3 queries, the first is query 1"),
        ({"relevant": [[0], {1: 0}, [1]]}, "no right document for 1 of 3 queries"),
        ({"relevant": [[0], [5], [1]]}, r"relevant\[1\] names document 5, but there are 5"),
        ({"relevant": [[0], [-1], [1]]}, r"relevant\[1\] names document -1"),
        ({"relevant": [[0], [1.5], [1]]}, r"relevant\[1\] must be a list of whole row numbers"),
        ({"relevant": [[0], ["1"], [1]]}, r"relevant\[1\] must be a list of whole row numbers"),
        ({"relevant": [[0], [True], [1]]}, r"relevant\[1\] must be a list of whole row numbers"),
        ({"relevant": [0, 1, 2]}, r"relevant\[0\] must be a list"),
        ({"relevant": [[0], [1, 1], [1]]}, "document 1 twice for query 1"),
        ({"relevant": [[0], {1: -1.0}, [1]]}, "gains must be finite and not negative, got -1.0 for query 1"),
        ({"relevant": np.full((3, 5), np.nan)}, "gains must be finite"),
        ({"relevant": np.ones((5, 3))}, r"shape \(3, 5\), got \(5, 3\)"),
        ({"relevant": "abc"}, "got str"),
        ({"relevant": {"0": {"0": 1}, "1": {"7": 1}, "2": {"0": 1}}}, "document '7' for query '1'"),
        ({"relevant": {"0": {"0": 1}, "x": {"1": 1}}}, "not among the 3 query_ids, e.g. 'x'"),
        ({"relevant": {"0": {"0": 1}, "1": {"1": 1}}}, "no right document for 1 of 3"),
    ],
)
def test_bad_input_is_named(change, message):
    with pytest.raises(ValueError, match=message):
        evaluate(**{"queries": Q, "documents": D, "relevant": RIGHT, **change})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metrics": ["nDCG@0"]}, "at least 1, got 'nDCG@0'"),
        ({"metrics": ["MRR@-3"]}, "at least 1"),
        ({"metrics": ["nDCG@1.5"]}, "whole k"),
        ({"metrics": ["map@10"]}, "nDCG@k, MRR@k or recall@k"),
        ({"metrics": []}, "at least one"),
        ({"ties": "random"}, '"docid" or "average", got \'random\''),
        ({"chunk_size": 0}, "chunk_size must be at least 1, got 0"),
        ({"document_ids": ["a", "b"]}, "document_ids must hold one id for each of the 5 rows, got 2"),
        ({"document_ids": ["a", "b", "c", "b", "e"]}, "document_ids must be distinct, but 'b'"),
        ({"document_ids": [1, 2, 3, 4, 5]}, r"document_ids must be strings, got 1 \(int\)"),
        ({"query_ids": ["a", "a", "b"]}, "query_ids must be distinct, but 'a'"),
        ({"query_ids": ["a"]}, "query_ids must hold one id for each of the 3 rows"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        evaluate(Q, D, RIGHT, **options)


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        (np.array([[0.0, np.nan]]), "NaN or .inf in 1 rows, the first is row 0"),
        (np.array([[0.0, np.inf]]), "NaN or .inf"),
        (np.zeros((1, 0)), "not empty"),
        (np.zeros((1, 2), dtype=int), "floating-point"),
        (np.zeros(2), r"\(2,\)"),
    ],
)
def test_bad_scores_are_named(scores, message):
    with pytest.raises(ValueError, match=message):
        evaluate_scores(scores, [[0]])


@pytest.mark.timing
def test_a_sweep_takes_a_tenth_of_the_time_of_other_libraries(request):
    rng = np.random.default_rng(0)
    queries, documents, cuts = 3500, 200, (1, 10, 100)
    scores = rng.integers(0, 50, (queries, documents)).astype(np.float32) / 4
    gains = np.zeros((queries, documents), dtype=np.int64)
    gains[np.arange(queries), rng.integers(0, documents, queries)] = 1
    gains[np.arange(queries), rng.integers(0, documents, queries)] = 2
    ids, names = [f"d{column}" for column in range(documents)], [f"q{row}" for row in range(queries)]
    qrels = {n: {ids[c]: int(gains[r, c]) for c in np.flatnonzero(gains[r])} for r, n in enumerate(names)}
    run = {name: dict(zip(ids, scores[row].tolist(), strict=True)) for row, name in enumerate(names)}
    measures = [kind @ k for kind in (ir_measures.nDCG, ir_measures.RR, ir_measures.R) for k in cuts]
    theirs = {
        "ir-measures": lambda: ir_measures.calc_aggregate(measures, qrels, run),
        "scikit-learn": lambda: [ndcg_score(gains, scores, k=k) for k in cuts],
    }
    ours = {
        "ir-measures": lambda: evaluate_scores(scores, gains, [str(m) for m in measures], document_ids=ids),
        "scikit-learn": lambda: evaluate_scores(scores, gains, [f"nDCG@{k}" for k in cuts], ties="average"),
    }
    for library, other in theirs.items():
        fast, slow = [], []
        for _ in range(3):  # side by side, so that whatever else the machine does slows both
            for work, times in ((ours[library], fast), (other, slow)):
                start = time.perf_counter()
                work()
                times.append(time.perf_counter() - start)
        share = min(fast) / min(slow)
        request.node.user_properties.append(("measured", f"metric sweep, share of {library}'s time: {share:.3f}"))
        assert share <= 0.1, library
