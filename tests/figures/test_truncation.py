# ruff: noqa: E501  # scripts in one text
"""Truncation: curves where the numbers are, differences to the right prefix, verdicts, switches that cannot act are closed, rows refused by name."""

import copy
import json
import re
import xml.etree.ElementTree as ET
from itertools import product

import numpy as np
import pytest

from losslab.figures import FigureError, Truncation
from losslab.figures.truncation import COLUMNS, sets_from

SVG = "{http://www.w3.org/2000/svg}"
KINDS = list(Truncation.KINDS)
ALL = {"kinds": KINDS}

# Points of every path, in px of the drawing; middles of marks; ticks with their numbers.
MARKS = """() => {
  const found = {};
  for (const node of document.querySelectorAll('#figure svg[role=img] path[data-key]')) {
    const { x, y, width, height } = node.getBBox();
    found[node.dataset.key] = { x: x + width / 2, y: y + height / 2, top: y, bottom: y + height, d: node.getAttribute('d') };
  }
  return found;
}"""


def points(d):
    return [tuple(map(float, p.split())) for stretch in d.split("M")[1:] for p in stretch.rstrip("Z").split("L")]


def ruler(hosted, marks, prefix):
    """From value to px, by two grid lines and the numbers beside them."""
    ticks = [key for key in marks if re.fullmatch(rf"{prefix}grid-\d+", key)]
    found = []
    for key in (ticks[0], ticks[-1]):
        text = hosted.text(key.replace("grid", "tick"))
        share = 100 if text.endswith("%") else 1
        found.append((float(text.replace("−", "-").rstrip("%")) / share, marks[key]["y"]))
    (v0, y0), (v1, y1) = found
    return lambda v: y0 + (v - v0) * (y1 - y0) / (v1 - v0)


def run_of(one, kind, centred=False, renormalised=True):
    return next(
        run
        for run in one["runs"]
        if (run["kind"], run["centred"], run["renormalised"]) == (kind, centred, renormalised)
    )


@pytest.fixture
def figure(truncation_data):
    return Truncation(**truncation_data)


SETTINGS = [*product((False, True), (True, False), ("score", "retention"), ("dimensions", "fraction"))]


@pytest.mark.parametrize(("centred", "renormalised", "scale", "axis"), SETTINGS)
def test_curves_stand_at_the_numbers(host, figure, truncation_data, centred, renormalised, scale, axis):
    state = {"kinds": KINDS, "centred": centred, "renormalised": renormalised, "scale": scale, "axis": axis}
    hosted = host(figure, reduced_motion="reduce")
    hosted.put(**state)
    marks = hosted.page.evaluate(MARKS)
    one = truncation_data["sets"][0]
    full = run_of(one, "prefix")["values"][-1]
    upper, lower = ruler(hosted, marks, ""), ruler(hosted, marks, "gap-")
    wanted = {"base": run_of(one, "prefix", False, renormalised)}
    wanted |= {"centred": run_of(one, "prefix", True, renormalised)} if centred else {}
    wanted |= {} if renormalised else {"right": run_of(one, "prefix")}
    for kind in KINDS:
        moved = kind == "PCA" or (kind != "SVD" and centred)
        wanted[kind.replace(" ", "-")] = run_of(one, kind, moved, renormalised)
    drawn = {key[4:-5] for key in marks if key.startswith("top-") and key.endswith("-line")}
    assert drawn == set(wanted)
    places = [float(x) for x in re.findall(r"M([\d.]+) ", marks["stops"]["d"])]
    across = one["dims"] if axis == "fraction" else np.log(one["dims"])
    slope = np.diff(places) / np.diff(across)
    assert slope == pytest.approx([slope[0]] * 12, rel=1e-3)
    assert len(set(np.round(places, 1))) == 13
    for key, run in wanted.items():
        values = [v / full if scale == "retention" else v for v in run["values"]]
        assert points(marks[f"top-{key}-line"]["d"]) == [
            pytest.approx((x, upper(v)), abs=0.12) for x, v in zip(places, values, strict=True)
        ], key
        if key == "base":
            assert "gap-base-line" not in marks
            continue
        far = "gain" if key == "right" else "gap"
        assert points(marks[f"gap-{key}-line"]["d"]) == [
            pytest.approx((x, lower(v)), abs=0.12) for x, v in zip(places, run[far], strict=True)
        ], key
        band = points(marks[f"gap-{key}-band"]["d"])
        ends = [*zip(places, run[f"{far}_high"], strict=True), *zip(places[::-1], run[f"{far}_low"][::-1], strict=True)]
        assert band == [pytest.approx((x, lower(v)), abs=0.12) for x, v in ends], key
        # the difference drawn below is that of the curves drawn above
        base = wanted["base"]["values"]
        assert run[far] == pytest.approx([a - b for a, b in zip(run["values"], base, strict=True)], abs=1e-9)


def test_bands_are_the_interval_of_the_prefix_and_the_range_of_draws(host, figure, truncation_data):
    hosted = host(figure, reduced_motion="reduce")
    hosted.put(**ALL)
    marks = hosted.page.evaluate(MARKS)
    upper, one = ruler(hosted, marks, ""), truncation_data["sets"][0]
    for key, run, (low, high) in (
        ("base", run_of(one, "prefix"), ("low", "high")),
        ("random-dims", run_of(one, "random dims"), ("least", "most")),
    ):
        ys = [y for _, y in points(marks[f"top-{key}-band"]["d"])]
        assert ys == pytest.approx([upper(v) for v in [*run[high], *run[low][::-1]]], abs=0.12)
    assert marks["top-SVD-band"]["d"] == "M0 0"
    hosted.put(scale="retention")
    marks = hosted.page.evaluate(MARKS)
    upper, run = ruler(hosted, marks, ""), run_of(one, "prefix")
    ys = [y for _, y in points(marks["top-base-band"]["d"])]
    assert ys == pytest.approx([upper(v) for v in [*run["keep_high"], *run["keep_low"][::-1]]], abs=0.12)


def test_what_others_published_is_ringed_or_dashed(host, figure, truncation_data):
    hosted = host(figure, reduced_motion="reduce")
    hosted.put(set="SciFact, MiniLM", **ALL)
    marks = hosted.page.evaluate(MARKS)
    assert marks["top-base-published"]["d"].count("M") == marks["top-PCA-published"]["d"].count("M") == 3
    assert "top-SVD-published" not in marks
    assert "rings: published" in hosted.text("note-0")
    hosted.put(set="SciFact, mpnet-base-nli-matryoshka", dim=64)
    dash = "k => getComputedStyle(document.querySelector(`[data-key='${k}']`)).strokeDasharray"
    assert hosted.page.evaluate(dash, "top-base-line") == "6px, 4px"
    assert hosted.text("base-interval") == "published"
    value = truncation_data["sets"][2]["runs"][0]["published"][1]
    assert hosted.text("base") == f"{value:.3f}"
    assert hosted.text("gap-none") == "no paired differences here"
    assert "rings" not in hosted.text("note-0")
    assert "NaN" not in hosted.page.inner_html("#figure svg[role=img]")


def small(gap=None, low=None, high=None, **more):
    """Two sizes and two curves, the second's difference and interval at the first size as given."""
    prefix = {"kind": "prefix", "centred": False, "renormalised": True, "values": [0.3, 0.5]}
    svd = {"kind": "SVD", "centred": False, "renormalised": True, "values": [0.34, 0.5]}
    if gap is not None:
        svd |= {"gap": [gap, 0.0], "gap_low": [low, 0.0], "gap_high": [high, 0.0]}
    return {"name": "tiny", "size": 8, "dims": [4, 8], "runs": [prefix, svd | more]}


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (0.01, 0.07, "SVD 0.340 (+0.040 [+0.010, +0.070], better)"),
        (-0.01, 0.07, "SVD 0.340 (+0.040 [−0.010, +0.070] holds 0)"),
        (0.00001, 0.07, "SVD 0.340 (+0.040 [0.000, +0.070], better)"),  # rounding never turns a verdict
        (0.0, 0.07, "SVD 0.340 (+0.040 [0.000, +0.070] holds 0)"),
    ],
)
def test_verdicts_are_those_of_the_interval(host, low, high, said):
    figure = Truncation(sets=[small(0.04, low, high)], kinds=["SVD"], dim=4)
    assert figure.describe() == (
        f"tiny, 4 of 8 dimensions: the prefix scores 0.300 in nDCG@10, 60.0% of full size. Difference to it: {said}."
    )
    hosted = host(figure)
    assert hosted.says() == figure.describe()
    bold = "ll-strong" in hosted.page.get_attribute("[data-key='SVD-gap']", "class")
    assert bold == ("better" in said)
    figure.dim = 8
    assert figure.describe().endswith("Difference to it: SVD 0.500 (the same).")


def test_a_worse_one_and_one_without_an_interval():
    worse = small()
    worse["runs"][1] |= {"values": [0.25, 0.5], "gap": [-0.05, 0], "gap_low": [-0.09, 0], "gap_high": [-0.00002, 0]}
    assert (
        Truncation(sets=[worse], kinds=["SVD"], dim=4).describe().endswith("SVD 0.250 (−0.050 [−0.090, 0.000], worse).")
    )
    assert Truncation(sets=[small()], kinds=["SVD"], dim=4).describe().endswith("Difference to it: SVD 0.340.")
    assert Truncation(sets=[small()], kinds=[], dim=4).describe().endswith("60.0% of full size.")
    kept = Truncation(sets=[small()], kinds=["SVD"], dim=4, scale="retention")
    assert "the prefix keeps 60.0% of nDCG@10 0.500. Difference to it: SVD 68.0%." in kept.describe()


def test_random_numbers_read_the_same_in_python_and_on_the_page(host):
    random = np.random.default_rng(11)
    for _ in range(3):
        dims = sorted(random.choice(np.arange(1, 300), 5, replace=False).tolist())
        runs = []
        for kept, (kind, centred) in product(
            (True, False), [("prefix", False), ("prefix", True), ("random dims", False), ("SVD", False), ("PCA", True)]
        ):
            values = random.uniform(0.01, 1, 5).round(4)
            base = values if (kind, centred) == ("prefix", False) else np.array(runs[0 if kept else 5]["values"])
            gap, reach = values - base, random.uniform(0, 0.3, 5)
            run = {"kind": kind, "centred": centred, "renormalised": kept, "values": values.tolist()}
            if (kind, centred) != ("prefix", False):
                run |= {"gap": gap, "gap_low": gap - reach, "gap_high": gap + reach}
            runs.append(run | {"low": values - 0.01, "high": values + 0.02})
        figure = Truncation(sets=[{"name": "random", "size": dims[-1], "dims": dims, "runs": runs}])
        hosted = host(figure)
        for dim, centred, kept, scale in product(dims, (False, True), (False, True), ("score", "retention")):
            hosted.put(dim=int(dim), centred=centred, renormalised=kept, scale=scale)
            assert hosted.says() == figure.describe()


def test_only_what_can_act_is_open(host, figure):
    """A set measured in one way closes the switches, and a reduction that is not there its box."""
    hosted = host(figure)
    page = hosted.page

    def closed():
        group = lambda name: page.get_by_role("group", name=name)  # noqa: E731
        radios = [group(n).locator("input").first.is_disabled() for n in ("Renormalised after", "Centred before")]
        return radios, [page.get_by_label(kind, exact=True).is_disabled() for kind in KINDS]

    assert closed() == ([False, False], [False] * 4)
    hosted.put(centred=True, renormalised=False)
    assert closed() == ([False, False], [False] * 4)
    hosted.put(set="SciFact, mpnet-base-nli-matryoshka")
    assert closed() == ([True, True], [True, True, True, False])
    assert page.get_by_role("group", name="Renormalised after").get_by_label("yes").is_checked()  # as it is shown
    assert page.get_by_role("group", name="Centred before").get_by_label("no").is_checked()
    assert hosted.says() == figure.describe()
    assert "not renormalised" not in hosted.says()


def test_every_open_control_does_something_in_every_state(host, figure, states):
    hosted = host(figure)
    shown = "() => document.querySelector('.ll-live').textContent + document.querySelector('#figure svg[role=img]').innerHTML"
    for state in states(figure):
        hosted.put(**state)
        for selector in ("input[type=checkbox]:not(:disabled)", "input[type=radio]:not(:checked):not(:disabled)"):
            for i in range(hosted.page.locator(f"#figure {selector}").count()):
                hosted.page.evaluate("s => { for (const k in s) model.set(k, s[k]) }", state)
                before = hosted.page.evaluate(shown)
                node = hosted.page.locator(f"#figure {selector}").nth(i)
                node.click()
                assert hosted.page.evaluate(shown) != before, (state, selector, i)
        hosted.page.evaluate("s => { for (const k in s) model.set(k, s[k]) }", state)


def test_a_set_without_the_size_reads_its_nearest(host, figure):
    hosted = host(figure)
    hosted.put(set="SciFact, mpnet-base-nli-matryoshka", dim=96)
    assert hosted.says().startswith("SciFact, mpnet-base-nli-matryoshka, 64 of 768 dimensions")
    assert hosted.page.locator("#figure .ll-value").first.text_content() == "64 of 768"
    hosted.page.locator("#figure input[type=range]").focus()
    hosted.page.keyboard.press("ArrowRight")
    assert hosted.get("dim") == [256]


def test_a_pointer_takes_the_nearest_size(host, figure):
    hosted = host(figure, reduced_motion="reduce")
    hosted.page.set_viewport_size({"width": 792, "height": 2000})
    marks = hosted.page.evaluate(MARKS)
    places = [float(x) for x in re.findall(r"M([\d.]+) ", marks["stops"]["d"])]
    box = hosted.page.locator("#figure svg[role=img]").bounding_box()
    hosted.page.mouse.click(box["x"] + places[3] + 4, box["y"] + marks["grid-1"]["y"])
    assert hosted.get("dim") == [24]
    hosted.page.mouse.click(box["x"] + places[8] - 4, box["y"] + marks["gap-grid-1"]["y"])
    assert hosted.get("dim") == [128]


def test_wrong_is_solid_and_right_is_dashed(host, figure):
    hosted = host(figure, reduced_motion="reduce")
    look = "k => { const s = getComputedStyle(document.querySelector(`[data-key='${k}']`)); return [s.strokeDasharray, s.stroke]; }"
    assert hosted.page.evaluate(look, "top-base-line") == ["none", "rgb(26, 90, 158)"]
    hosted.put(renormalised=False)
    assert hosted.page.evaluate(look, "top-base-line") == ["none", "rgb(179, 66, 11)"]
    assert hosted.page.evaluate(look, "top-right-line") == ["6px, 4px", "rgb(10, 107, 88)"]
    assert "not renormalised" in hosted.says()
    assert "Difference to it: renormalised 0." in hosted.says()


def test_the_twin_shows_the_same(figure, states):
    for state in states(figure):
        for name, value in state.items():
            setattr(figure, name, value)
        texts = [node.text for node in ET.fromstring(figure.svg()).iter(f"{SVG}text")]
        now = figure._outcome()
        for curve in now.curves:
            assert curve.name in texts
            assert set(filter(None, figure._reading(curve, now.i, now.full))) <= set(texts)
        assert figure.describe() in figure.svg().replace("&gt;", ">")


def rows_from(data):
    """The rows that `losslab measure truncation` would write of the fixture's first two sets."""
    rows = []
    for one in data["sets"][:2]:
        corpus, model = one["name"].split(", ")
        for run in one["runs"]:
            start = {"corpus": corpus, "model": model, "reduction": run["kind"]}
            start |= {key: "yes" if run[key] else "no" for key in ("centred", "renormalised")}
            for i, dim in enumerate(one["dims"]):

                def add(metric, value, lo="", hi="", seed="", published="", start=start, dim=dim):
                    cells = {"dim": str(dim), "seed": seed, "metric": metric, "value": value, "lo": lo, "hi": hi}
                    rows.append(start | {k: str(v) for k, v in cells.items()} | {"published": published, "verdict": ""})

                published = run.get("published", [None] * 13)[i]
                add("ndcg@10", run["values"][i], run["low"][i], run["high"][i], published=published or "")
                add("retention", run["values"][i] / 0.5, run["keep_low"][i], run["keep_high"][i])
                add("recall@100", 0.5)
                if "gap" in run:
                    add("ndcg@10 over prefix", run["gap"][i], run["gap_low"][i], run["gap_high"][i])
                if "gain" in run:
                    add("ndcg@10 over not renormalised", run["gain"][i], run["gain_low"][i], run["gain_high"][i])
                if "least" in run:
                    for seed, value in enumerate((run["least"][i], run["values"][i], run["most"][i])):
                        add("ndcg@10", value, seed=str(seed))
    return rows


def test_rows_become_the_same_figure(truncation_data):
    made = Truncation.from_rows(rows_from(truncation_data), dim=32)
    given = Truncation(sets=truncation_data["sets"][:2], dim=32)
    assert [one["name"] for one in made.sets] == ["apidocs, MiniLM", "SciFact, MiniLM"]
    assert made.sets == given.sets
    assert made.describe() == given.describe()
    assert len(json.dumps(made.sets)) < 45_000
    only = Truncation.from_rows(rows_from(truncation_data), names={("SciFact", "MiniLM"): "SciFact"})
    assert [one["name"] for one in only.sets] == ["SciFact"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: [row.pop("lo") for row in rows], "Truncation: row 1 has no column lo; it has corpus, model"),
        (lambda rows: rows[0].update(reduction="ICA"), "row 1: reduction must be one of prefix, random dims, random rotation, SVD, PCA, not 'ICA'"),
        (lambda rows: rows[3].update(dim="half"), "row 4: dim must be a finite number or empty, not 'half'"),
        (lambda rows: rows[3].update(dim="0"), "row 4: dim must be a whole number from 1 on, not '0'"),
        (lambda rows: rows[0].update(centred="maybe"), "row 1: centred must be yes or no, not 'maybe'"),
        (lambda rows: rows[0].update(value="nan"), "row 1: value must be a finite number or empty, not 'nan'"),
        (lambda rows: rows.append(dict(rows[0])), "apidocs, MiniLM: prefix at 4: ndcg@10 comes twice"),
        (lambda rows: [row.update(dim="400") for row in rows if row["reduction"] == "SVD" and row["dim"] == "384"], "SVD was measured at 400 dimensions, the prefix at 4, 8, 16"),
        (lambda rows: rows.__delitem__(slice(1, None)) or rows[0].update(renormalised="no"), "has no prefix that is renormalised and not centred"),
        (lambda rows: [row.update(metric="mrr") for row in rows], "no rows of ndcg@10 or ndcg@10 over prefix"),
        (lambda rows: [row.update(value="0.3") for row in rows if row["metric"] == "ndcg@10 over prefix"], "so gap is not 0.3"),
    ],
)  # fmt: skip
def test_bad_rows_are_named(truncation_data, change, message):
    rows = rows_from(truncation_data)
    change(rows)
    with pytest.raises(FigureError, match=re.escape(message)):
        Truncation.from_rows(rows)


def test_rows_of_a_set_that_is_asked_for_must_be_there(truncation_data):
    with pytest.raises(FigureError, match="no rows of BEIR, MiniLM"):
        sets_from(rows_from(truncation_data), {("BEIR", "MiniLM"): "BEIR"})
    assert set(COLUMNS) <= set(rows_from(truncation_data)[0])


def change_run(**new):
    return lambda one: one["runs"][1].update(new)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda one: one.update(size=16), "must be measured at its full size, 16, not up to 8"),
        (lambda one: one.update(dims=[8, 4]), "must have two or more dims, whole, ascending, from 1 on, not [8, 4]"),
        (lambda one: one.update(name=""), "sets[0]['name'] must be a text of 1 to 40 characters, not ''"),
        (lambda one: one.pop("size"), "sets[0] must be a dict with name, size, dims and runs"),
        (lambda one: one["runs"].pop(0), "(tiny) needs the prefix, neither centred nor without renormalising"),
        (lambda one: one["runs"][0].update(values=[0.3, None]), "(tiny) needs the prefix at full size, 8, and above 0"),
        (lambda one: one["runs"].append(one["runs"][1]), "(tiny) has SVD twice"),
        (change_run(kind="ICA"), "runs[1]: kind must be one of prefix, random dims, random rotation, SVD, PCA, not 'ICA'"),
        (change_run(centred=1), "runs[1]: centred must be True or False, not 1"),
        (change_run(centred=True), "runs[1]: SVD is never centred"),
        (change_run(kind="PCA"), "runs[1]: PCA is always centred"),
        (change_run(values=[0.3]), "(SVD): values must hold 2 numbers, one for each of the dims, not 1"),
        (change_run(values=[0.3, float("nan")]), "(SVD): values[1] must be a finite number or None, not nan"),
        (change_run(values=None), "(SVD) must hold a value, measured or published"),
        (change_run(spread=[1, 2]), "has 'spread', which is none of values, low"),
        (change_run(low=[0.3, 0.4]), "(SVD): low ≤ high must hold, or neither be given, at index 0, not 0.3, None"),
        (change_run(least=[0.4, 0.4], most=[0.3, 0.5]), "least ≤ most must hold, or neither be given, at index 0, not 0.4, 0.3"),
        (change_run(gap=[0.1, 0.0]), "SVD at 4 is 0.34, prefix 0.3, so gap is not 0.1"),
        (change_run(renormalised=False, gap=[0.1, 0.0]), "SVD, not renormalised has gap, the difference to the prefix, which is not there"),
        (change_run(gain=[0.1, 0.0]), "SVD has gain, the difference to the same without renormalising, which is not there"),
    ],
)  # fmt: skip
def test_a_bad_set_is_named(change, message):
    one = copy.deepcopy(small())
    change(one)
    with pytest.raises(FigureError, match=re.escape(message)):
        Truncation(sets=[one])


def test_bad_states_are_named_and_data_are_given_once(figure, truncation_data):
    with pytest.raises(TypeError, match="Truncation shows what was measured and needs sets"):
        Truncation()
    with pytest.raises(FigureError, match="sets must be a list of 1 to 6 sets of runs"):
        Truncation(sets=[])
    with pytest.raises(FigureError, match="sets must each have a name of its own"):
        Truncation(sets=[small(), small()])
    with pytest.raises(FigureError, match="sets is given once"):
        figure.sets = truncation_data["sets"][:1]
    for trait, value, message in (
        ("set", "BEIR", "set must be one of 'apidocs, MiniLM'"),
        ("dim", 5, "dim must be one of 4, 8, 16"),
        ("kinds", ["ICA"], "kinds must be of random dims, random rotation, SVD, PCA, not 'ICA'"),
        ("scale", "mrr", "scale must be one of 'score', 'retention', not 'mrr'"),
        ("axis", "log", "axis must be one of 'dimensions', 'fraction', not 'log'"),
    ):
        before = getattr(figure, trait)
        with pytest.raises(FigureError, match=re.escape(message)):
            setattr(figure, trait, value)
        assert getattr(figure, trait) == before
    figure.kinds = ["PCA", "SVD"]
    assert figure.kinds == ["SVD", "PCA"]  # in one order, whatever was ticked first
    assert Truncation(**truncation_data).dim == 64  # a sixth of 384
