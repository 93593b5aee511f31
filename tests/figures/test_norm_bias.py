# ruff: noqa: E501  # scripts in one text
"""Norm bias: ranks and lengths against a slow count, lines of equal score, what is said, and what is refused."""

import copy
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
import torch
from scipy.stats import pearsonr, rankdata

from losslab.figures import FigureError, NormBias
from losslab.figures.norm_bias import equal

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def figure(norm_data):
    return NormBias(**norm_data)


def slow(queries, documents, q, dim):
    """Lengths, cosines and both rankings of all documents for one query, document by document in float64."""
    ask = queries[q][:dim]
    lengths = np.array([np.sqrt(sum(v * v for v in row[:dim])) for row in documents])
    cosines = np.array(
        [float(np.dot(ask, row[:dim])) / np.sqrt(ask @ ask) / n for row, n in zip(documents, lengths, strict=True)]
    )
    return lengths, cosines, rankdata(-cosines, "min"), rankdata(-(np.round(lengths * cosines, 12)), "min")


def test_traits_are_those_of_a_slow_count(embeddings, figure):
    queries, documents = embeddings
    assert figure.dims == [4, 8, 16, 32, 64]  # the full size is added
    for k, q in enumerate((3, 50, 7)):
        rows = [int(name.rsplit("_", 1)[1]) for name in figure.names[k]]
        first = set()
        for d, dim in enumerate(figure.dims):
            lengths, cosines, fair, raw = slow(queries, documents, q, dim)
            assert figure.mean_norm[d] == pytest.approx(lengths.mean(), abs=6e-5)
            assert figure.norms[k][d] == pytest.approx(lengths[rows], abs=6e-5)
            assert figure.cosines[k][d] == pytest.approx(cosines[rows], abs=6e-5)
            assert figure.by_cosine[k][d] == fair[rows].tolist()
            if dim < 64:  # all of length 1 there
                assert figure.by_inner[k][d] == raw[rows].tolist()
            first |= {int(j) for ranks in (fair, raw) for j in np.flatnonzero(ranks <= 5)}
        assert figure.by_inner[k][-1] == figure.by_cosine[k][-1]
        assert first <= set(rows)  # whoever is listed at some size is there
        assert len(rows) >= 36
    assert [[figure.names[k][j].rsplit("_", 1)[1] for j in one] for k, one in enumerate(figure.relevant)] == [
        ["3"],
        ["17", "50", "299"],
        [],
    ]


def test_the_summary_is_that_of_a_slow_count(embeddings, figure):
    queries, documents = embeddings
    for d, dim in enumerate(figure.dims[:4]):
        tops, found = [], []
        for q in range(len(queries)):
            lengths, _, fair, raw = slow(queries, documents, q, dim)
            relative = lengths / lengths.mean()
            tops.append([relative[ranks <= 10].mean() for ranks in (raw, fair)])
            if (fair != raw).any():
                found.append(pearsonr(fair - raw, relative).statistic)
        assert [figure.top_inner[d], figure.top_cosine[d]] == pytest.approx(np.mean(tops, axis=0), abs=2e-4)
        assert figure.correlation[d] == pytest.approx(np.mean(found), abs=1e-3)
        assert figure.top_inner[d] > figure.top_cosine[d]  # the bias is there to be seen
    assert figure.correlation[-1] is None
    assert figure.top_inner[-1] == figure.top_cosine[-1] == 1
    assert (figure.documents, figure.asked) == (300, 120)


def test_equal_scores_share_the_better_rank():
    documents = np.eye(12)[:, [0, 1, 2, 3]] + 0.5
    documents[1] = documents[0]
    made = NormBias.from_embeddings(
        np.array([[2.0, 1, 1, 1]]), documents, dims=[2], shown=[0], query_names=["q"], texts=[""],
        document_names=[f"d{j}" for j in range(12)], relevant=[[0]], candidates=12,
    )  # fmt: skip
    for ranks in (made.by_cosine[0], made.by_inner[0]):
        assert all(row[0] == row[1] for row in ranks)


def test_page_and_python_agree_on_who_rose(host, figure, states):
    hosted = host(figure, reduced_motion="reduce")
    for state in states(figure):
        hosted.put(**state)
        now = figure._outcome()
        key = lambda doc: doc.fair if figure.renormalised else doc.raw  # noqa: E731
        order = sorted(now.docs, key=lambda doc: (key(doc), doc.place))
        assert [hosted.text(f"doc-{i}-rank") for i in range(5)] == [str(key(doc)) for doc in order[:5]]
        for i, doc in enumerate(order[:5]):
            note = hosted.text(f"doc-{i}-note")
            assert note.startswith(f"length {doc.length:.2f} · cosine {doc.cosine:.2f}"), (state, note)
            wrong = "ll-is-wrong" in hosted.page.get_attribute(f"[data-key='doc-{i}-note']", "class")
            assert wrong == (not figure.renormalised and doc.fair > doc.raw)
        assert hosted.says() == figure.describe()


PLACES = """() => {
  const circle = (key) => { const n = document.querySelector(`[data-key='${key}']`); return [Number(n.getAttribute('cx')), Number(n.getAttribute('cy'))]; };
  const path = (key) => document.querySelector(`[data-key='${key}']`).getAttribute('d');
  const tick = (key) => { const n = document.querySelector(`[data-key='${key}']`), { e, f } = new DOMMatrix(getComputedStyle(n).transform); return [e, f]; };
  const ticks = (start) => [...document.querySelectorAll(`[data-key^='${start}-tick-']`)].map((n) => [Number(n.textContent.replace('−', '-')), ...tick(n.dataset.key)]);
  return { raw: circle('raw'), fair: circle('fair'), border: path('border-raw'), flat: path('border-fair'), line: path('equal-4'), x: ticks('x'), y: ticks('y') };
}"""


def points(d):
    return np.array([tuple(map(float, p.split())) for p in d[1:].split("L")])


def between(first, last):
    """From px to value, by two ticks."""
    (v0, p0), (v1, p1) = first, last
    return lambda px: v0 + (px - p0) * (v1 - v0) / (p1 - p0)


@pytest.mark.parametrize("room", [390, 760])
def test_lines_hold_documents_of_one_score(host, figure, room):
    hosted = host(figure, reduced_motion="reduce")
    hosted.room(room)
    for query in (0, 1):
        hosted.put(query=query, dim=8)
        got = hosted.page.evaluate(PLACES)
        to_x = between(*((value, px) for value, px, _ in (got["x"][0], got["x"][-1])))
        to_y = between(*((value, py - 4.5) for value, _, py in (got["y"][0], got["y"][-1])))
        now = figure._outcome()
        for key, doc in (("raw", now.raw[0]), ("fair", now.fair[0])):
            assert to_x(got[key][0]) == pytest.approx(doc.length, abs=0.01)
            assert to_y(got[key][1]) == pytest.approx(doc.cosine, abs=0.01)
        line = points(got["line"])
        assert to_x(line[:, 0]) * to_y(line[:, 1]) == pytest.approx(0.5, abs=0.01)  # the fifth: 0.1, 0.2, …
        border = points(got["border"])
        products = to_x(border[:, 0]) * to_y(border[:, 1])
        assert products == pytest.approx(now.raw[0].score, abs=0.015)
        assert max(doc.score for doc in now.docs) <= now.raw[0].score + 1e-3  # nobody is beyond it
        assert np.ptp(points(got["flat"])[:, 1]) == 0
        assert max(doc.cosine for doc in now.docs) == pytest.approx(now.fair[0].cosine, abs=1e-4)
        hosted.put(renormalised=True)
        got = hosted.page.evaluate(PLACES)
        assert got["border"] == "M0 0"
        assert np.ptp(points(got["line"])[:, 1]) == 0
        hosted.put(renormalised=False)


def test_lines_of_equal_score_on_random_planes():
    random = np.random.default_rng(3)
    for _ in range(200):
        xs, ys = (0.0, random.uniform(0.5, 2)), (random.choice([0.0, 0.2]), random.uniform(0.4, 1))
        score = random.uniform(0.01, 1.5)
        for x, y in equal(score, xs, ys, flat=False):
            assert x * y == pytest.approx(score)
            assert xs[0] <= x <= xs[1] + 1e-9
            assert ys[0] - 1e-9 <= y <= ys[1] + 1e-9
        flat = equal(score, xs, ys, flat=True)
        assert {y for _, y in flat} == ({score} if ys[0] <= score <= ys[1] else set())


def tiny(norms, cosines, **more):
    """One query and as many documents as there are norms, at one size below the full one."""
    names = [f"d{j}" for j in range(len(norms))]
    inner = np.multiply(norms, cosines)
    ranks = [rankdata(-np.array(v), "min").astype(int).tolist() for v in (cosines, inner)]
    full = [[1.0] * len(norms)]
    return {
        "queries": ["q"], "texts": ["what"], "dims": [2, 4], "names": [names], "relevant": [[1]],
        "norms": [[list(norms), *full]], "cosines": [[list(cosines), list(cosines)]],
        "by_cosine": [[ranks[0], ranks[0]]], "by_inner": [[ranks[1], ranks[0]]], "mean_norm": [0.5, 1.0],
        "documents": 20, "asked": 7, "top_inner": [1.25, 1.0], "top_cosine": [0.99, 1.0], "correlation": [0.5, None],
        "dim": 2, **more,
    }  # fmt: skip


END = "Over 7 queries, the ten best by inner product are 1.25 times as long as the mean, by cosine 0.99, and ranks gained go with length (correlation 0.50)."


@pytest.mark.parametrize(
    ("norms", "cosines", "renormalised", "said"),
    [
        ([0.75, 0.5], [0.6, 0.8], False, "not renormalised: d0 is first for q and only 2nd by cosine: its prefix is 1.50 times as long as the mean. By cosine the first is d1."),
        ([0.75, 0.5], [0.6, 0.8], True, "renormalised: d1 is first for q; without it, d0 would be, 2nd by cosine: its prefix is 1.50 times as long as the mean."),
        ([0.5, 0.4, 0.6], [0.9, 0.6, 0.5], False, "d0 is first for q either way, but d2 rises from 3rd to 2nd: its prefix is 1.20 times as long as the mean."),
        ([0.5, 0.4, 0.6], [0.9, 0.6, 0.5], True, "d0 is first for q; without it, d2 would rise from 3rd to 2nd: its prefix is 1.20 times as long as the mean."),
        ([0.5, 0.5], [0.9, 0.6], False, "d0 is first for q, and no document of the five best is there for its length."),
    ],
)  # fmt: skip
def test_what_it_says(host, norms, cosines, renormalised, said):
    figure = NormBias(**tiny(norms, cosines), renormalised=renormalised)
    start = f"At 2 of 4 dimensions, {'' if renormalised else 'not '}renormalised: "
    assert figure.describe() == f"{start}{said.split('renormalised: ')[-1]} {END}"
    assert host(figure).says() == figure.describe()
    figure.dim = 4
    assert figure.describe().endswith("and no rank is gained.")


def test_what_is_below_zero_is_counted(host):
    hosted = host(NormBias(**tiny([0.5, 0.5, 0.6], [0.9, -0.2, -0.4])))
    assert hosted.text("below") == "2 below 0"
    assert hosted.page.locator("[data-key=answers]").get_attribute("d") == "M0 0"  # the right one is there


def test_wrong_is_solid_and_right_is_outlined(host, figure):
    hosted = host(figure, reduced_motion="reduce")
    state = next(
        {"query": q, "dim": d}
        for q in range(3)
        for d in figure.dims
        if not NormBias(**{k: getattr(figure, k) for k in DATA}, query=q, dim=d)._outcome().same
    )
    hosted.put(**state)
    style = "k => { const s = getComputedStyle(document.querySelector(`[data-key='${k}']`)); return [s.fill, s.stroke, s.strokeDasharray]; }"
    wrong, right, page = "rgb(179, 66, 11)", "rgb(10, 107, 88)", "rgb(255, 255, 255)"
    assert hosted.page.evaluate(style, "raw")[0] == wrong
    assert hosted.page.evaluate(style, "fair")[:2] == [page, right]
    assert hosted.page.evaluate(style, "border-raw")[1:] == [wrong, "none"]
    assert hosted.page.evaluate(style, "border-fair")[1:] == [right, "6px, 4px"]


def test_a_pointer_on_the_lower_plot_takes_the_nearest_size(host, figure):
    hosted = host(figure, reduced_motion="reduce")
    hosted.page.set_viewport_size({"width": 792, "height": 2000})
    d = hosted.page.get_attribute("[data-key=stops]", "d")
    places = [tuple(map(float, p.split("v")[0].split())) for p in d.split("M")[1:]]
    box = hosted.page.locator("#figure svg[role=img]").bounding_box()
    hosted.page.mouse.click(box["x"] + places[3][0] + 5, box["y"] + places[3][1] - 40)
    assert hosted.get("dim") == [figure.dims[3]]


def test_the_twin_shows_the_same(figure, states):
    for state in states(figure):
        for name, value in state.items():
            setattr(figure, name, value)
        texts = [node.text for node in ET.fromstring(figure.svg()).iter(f"{SVG}text")]
        now = figure._outcome()
        first = (now.fair if figure.renormalised else now.raw)[0]
        assert any(text.startswith(f"length {first.length:.2f} · cosine {first.cosine:.2f}") for text in texts)
        assert {f"{figure.top_inner[now.at]:.2f} × mean", "first by cosine:"} <= set(texts)
        assert figure.queries[figure.query].endswith(texts[0].lstrip("…"))


DATA = ["queries", "texts", "dims", "names", "relevant", "norms", "cosines", "by_cosine", "by_inner", "mean_norm"]
DATA += ["documents", "asked", "top_inner", "top_cosine", "correlation"]


def put(*path, value):
    def change(data):
        for key in path[:-1]:
            data = data[key]
        data[path[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (put("queries", value=[]), "queries must be 1 to 12 names, none of them empty, not []"),
        (put("queries", value=[" "]), "queries must be 1 to 12 names, none of them empty"),
        (put("dims", value=[4, 2]), "dims must be two or more, ascending, from 1 on, not [4, 2]"),
        (put("texts", value=[]), "texts must hold one entry for each of the 1 queries, not 0"),
        (put("top_inner", value=[1.0]), "top_inner must hold one number for each of the 2 dims, not 1"),
        (put("mean_norm", value=[0, 1]), "mean_norm must be lengths above 0, not 0"),
        (put("correlation", value=[2, None]), "correlation[0] must be a number from -1 to 1, or None, not 2"),
        (put("names", value=[["d0"]]), "names[0] (q) must be 2 to 120 candidates, not 1"),
        (put("relevant", value=[[2]]), "relevant[0] (q) must be places below 2, not 2"),
        (put("norms", 0, 0, value=[0.5]), "norms[0] (q) must be 2 rows of 2 numbers, a dim and a candidate, not rows of [1, 2]"),
        (put("norms", 0, 0, value=[0.0, 0.5]), "norms[0] (q) at 2 must be above 0, not 0.0"),
        (put("norms", 0, 0, 0, value=float("nan")), "norms[0][0][0] must be a finite number, not nan"),
        (put("cosines", 0, 0, value=[1.2, 0.1]), "cosines[0] (q) at 2 must be from -1 to 1, not 1.2"),
        (put("by_cosine", 0, 0, value=[1, 2]), "by_cosine[0] (q) at 2 is not the order of the scores: d0 (rank 1, 0.6000) before d1 (rank 2, 0.8000)"),
        (put("by_inner", 0, 0, value=[2, 1]), "by_inner[0] (q) at 2 is not the order of the scores: d1 (rank 1, 0.4000) before d0 (rank 2, 0.4500)"),
        (put("by_inner", 0, 0, value=[0, 1]), "by_inner[0] (q) at 2 must be ranks from 1 to 20"),
        (put("documents", value=1), "documents must be an int from 2 to 1000000000, not 1"),
        (put("query", value=1), "query must be an int from 0 to 0, not 1"),
        (put("dim", value=3), "dim must be one of 2, 4, not 3"),
    ],
)  # fmt: skip
def test_bad_values_are_named(change, message):
    data = copy.deepcopy(tiny([0.75, 0.5], [0.6, 0.8]))
    change(data)
    with pytest.raises(FigureError, match=re.escape(message)):
        NormBias(**data)


def given(embeddings, **changes):
    queries, documents = embeddings
    rest = {"dims": [4], "shown": [0], "query_names": ["q"], "texts": ["t"], "relevant": [[0]]}
    names = [f"d{j}" for j in range(300)]
    return {"queries": queries, "documents": documents, "document_names": names, **rest, **changes}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"queries": np.ones((3, 5))}, "queries and documents must have one width, and be 1 and 10 at least, not (3, 5) and (300, 64)"),
        ({"queries": np.full((3, 64), np.nan)}, "queries must be rows of finite numbers, not of shape (3, 64)"),
        ({"documents": np.ones(64)}, "documents must be rows of finite numbers, not of shape (64,)"),
        ({"documents": np.eye(300)[:, :64]}, "document 4 has length 0 at 4 dimensions"),
        ({"document_names": ["d"]}, "document_names must be 300, one for each document, not 1"),
        ({"relevant": []}, "relevant must hold one entry for each of the 1 shown, not 0"),
        ({"relevant": [[300]]}, "relevant must be rows of the 300 documents, not 300"),
        ({"shown": [120]}, "shown must be rows of the 120 queries, not 120"),
        ({"dims": [65]}, "dims must be from 1 to 64, not 65"),
        ({"dims": [0]}, "dims must be from 1 to 64, not 0"),
        ({"candidates": 1}, "candidates must be from 2 to 120, not 1"),
    ],
)  # fmt: skip
def test_bad_embeddings_are_named(embeddings, changes, message):
    with pytest.raises(FigureError, match=re.escape(message)):
        NormBias.from_embeddings(**given(embeddings, **changes))


def test_measured_data_are_needed_and_given_once(figure, norm_data, embeddings):
    with pytest.raises(TypeError, match="NormBias shows what was measured and needs queries, texts"):
        NormBias()
    with pytest.raises(FigureError, match="norms is given once"):
        figure.norms = [[[1.0]]]
    assert figure.dim == 4  # a twelfth of 64 is nearer to 4 than to 8
    tensors = [torch.tensor(rows) for rows in embeddings]
    made = NormBias.from_embeddings(**given(tensors))
    assert made.describe() == NormBias.from_embeddings(**given(embeddings)).describe()
    assert not figure.renormalised  # it begins with what goes wrong
    assert NormBias(**norm_data).describe() == figure.describe()
