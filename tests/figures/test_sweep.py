# ruff: noqa: E501  # scripts in one text
"""Sweeps: marks where the numbers are, gaps where nothing was measured, names apart, ticks that are round."""

import math
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
import torch
from matplotlib.ticker import MaxNLocator

from losslab.figures import FigureError, Sweep
from losslab.figures._series import TONES, axis, beside
from losslab.figures.sweep import named, runs, wrap

SVG = "{http://www.w3.org/2000/svg}"

# Where every mark stands, in the pixels of the drawing: the middle of a path's box, its ends, and where paths start and go.
MARKS = """() => {
  const drawing = document.querySelector('#figure svg[role=img]'), found = {};
  for (const node of drawing.querySelectorAll('path[data-key]')) {
    const { x, y, width, height } = node.getBBox();
    found[node.dataset.key] = { x: x + width / 2, y: y + height / 2, top: y, bottom: y + height, left: x, right: x + width, width, d: node.getAttribute('d') };
  }
  return found;
}"""
LABELS = """() => [...document.querySelectorAll('#figure text[data-key]')].map((node) => {
  const { x, y } = new DOMMatrix(getComputedStyle(node).transform).transformPoint({ x: 0, y: 0 });
  return [node.dataset.key, x, y, node.textContent];
})"""


def steady(n, value, reach=0.02, **more):
    return {"name": "steady", "values": [value] * n, "low": [value - reach] * n, "high": [value + reach] * n, **more}


def small(**changes):
    series = [
        {"name": "up", "values": [0.2, 0.4, 0.5], "low": [0.1, 0.35, 0.45], "high": [0.25, 0.5, 0.6]},
        {"name": "flat", "values": [0.8, 0.8, 0.8], "dashed": True},
    ]
    traits = {"x": [1, 10, 100], "x_label": "scale s", "y_label": "score", "log": True, "panels": {"one": series}}
    return {**traits, **changes}


def points(d):
    """The corners of a path of straight lines, each stretch on its own."""
    stretches = [stretch.rstrip("Z").split("L") for stretch in d.split("M")[1:]]
    return [[tuple(map(float, point.split())) for point in stretch] for stretch in stretches]


def rulers(hosted, figure):
    """From value to px and back, by two grid lines and the numbers beside them; from x to px, by the marks of the axis."""
    marks = hosted.page.evaluate(MARKS)
    labels = {key: text for key, _, _, text in hosted.page.evaluate(LABELS)}
    ticks = sorted(int(key.removeprefix("tick-")) for key in labels if key.startswith("tick-"))
    scale = 100 if figure.percent else 1
    (v0, y0), (v1, y1) = (
        (float(labels[f"tick-{i}"].replace("−", "-").rstrip("%")) / scale, marks[f"grid-{i}"]["y"])
        for i in (ticks[0], ticks[-1])
    )
    places = [float(x) for x in re.findall(r"M([\d.]+) ", marks["stops"]["d"])]
    return marks, lambda v: y0 + (v - v0) * (y1 - y0) / (v1 - v0), places


@pytest.mark.parametrize("room", [320, 480, 760])
def test_marks_stand_at_the_numbers(host, sweep_data, room):
    figure = Sweep(**sweep_data)
    hosted = host(figure, reduced_motion="reduce")
    hosted.room(room)
    for panel in sweep_data["panels"]:
        for at in (16, 128, 1024):
            hosted.put(panel=panel, at=at)
            marks, y_of, places = rulers(hosted, figure)
            steps = np.diff(places)
            assert steps == pytest.approx([steps[0]] * 6, abs=0.01)  # doublings on a logarithmic axis
            now = sweep_data["x"].index(at)
            assert marks["at"]["x"] == pytest.approx(places[now], abs=0.01)
            for i, one in enumerate(sweep_data["panels"][panel]):
                there = [k for k, v in enumerate(one["values"]) if v is not None]
                drawn = [point for stretch in points(marks[f"s{i}-line"]["d"]) for point in stretch]
                assert drawn == [pytest.approx((places[k], y_of(one["values"][k])), abs=0.02) for k in there]
                assert marks[f"s{i}-marks"]["d"].count("M") == len(there)
                value = one["values"][now]
                assert (f"s{i}-now" in marks) == (value is not None), (panel, at, i)
                if value is None:
                    continue
                mark = marks[f"s{i}-now"]
                lean = {3: -0.15 * 6, 4: 0.15 * 6}.get(
                    figure.looks[figure._shown()[0]][i][1], 0
                )  # triangles: box above centre
                assert mark["y"] == pytest.approx(y_of(value) + lean, abs=0.02)
                if "low" in one:
                    whisker = marks[f"s{i}-whisker"]
                    assert whisker["x"] == pytest.approx(mark["x"], abs=0.02)
                    assert whisker["top"] == pytest.approx(y_of(one["high"][now]), abs=0.02)
                    assert whisker["bottom"] == pytest.approx(y_of(one["low"][now]), abs=0.02)
                else:
                    assert f"s{i}-whisker" not in marks


def test_bands_are_the_intervals(host):
    figure = Sweep(**small())
    hosted = host(figure, reduced_motion="reduce")
    marks, y_of, places = rulers(hosted, figure)
    (band,) = points(marks["s0-band"]["d"])
    one = small()["panels"]["one"][0]
    there, back = list(zip(places, one["high"], strict=True)), list(zip(places, one["low"], strict=True))[::-1]
    assert band == [pytest.approx((x, y_of(v)), abs=0.02) for x, v in there + back]
    assert marks["s1-band"]["width"] == 0  # no interval, no band


def test_what_was_not_measured_is_a_gap(host, sweep_data):
    figure = Sweep(**sweep_data, panel="SciFact", at=32)
    hosted = host(figure, reduced_motion="reduce")
    marks, y_of, places = rulers(hosted, figure)
    assert [len(run) for run in points(marks["s1-line"]["d"])] == [1, 2, 1]  # at 16, from 64 to 128, at 512
    assert [len(run) for run in points(marks["s1-band"]["d"])] == [4]  # there and back, from 64 to 128
    alone = sorted({float(x) for x in re.findall(r"M([\d.]+) ", marks["s1-alone"]["d"])})
    assert alone == pytest.approx([places[0] - 3, places[5] - 3], abs=0.01)  # a lone point keeps its interval
    assert marks["s1-alone"]["bottom"] == pytest.approx(y_of(0.651 - 0.04), abs=0.02)
    assert [len(run) for run in points(marks["s0-line"]["d"])] == [6]
    assert hosted.text("s1") == "not measured"
    assert (
        hosted.says() == "SciFact at batch width 32: none masked 0.660 [0.620, 0.700]; same text masked (not measured)."
    )
    hosted.put(at=1024)
    assert hosted.says() == figure.describe() == "SciFact at batch width 1,024: nothing was measured."
    assert "null" not in hosted.page.text_content("#figure")
    assert "NaN" not in hosted.page.inner_html("#figure")


def test_names_stand_at_the_ends_of_their_lines_and_apart(host, sweep_data):
    figure = Sweep(**sweep_data)
    hosted = host(figure, reduced_motion="reduce")
    for panel, series in sweep_data["panels"].items():
        hosted.put(panel=panel)
        marks, _, _ = rulers(hosted, figure)
        names = {key: (x, y, text) for key, x, y, text in hosted.page.evaluate(LABELS) if key.endswith("-name")}
        ends = {i: points(marks[f"s{i}-line"]["d"])[-1][-1] for i in range(len(series))}
        by_end = sorted(ends, key=lambda i: ends[i][1])
        by_name = sorted(ends, key=lambda i: names[f"s{i}-name"][1])
        assert by_end == by_name  # from top to bottom as the lines end
        heights = [names[f"s{i}-name"][1] for i in by_name]
        assert min(np.diff(heights)) >= 36  # two lines of text each
        for i, one in enumerate(series):
            x, y, text = names[f"s{i}-name"]
            assert text == one["name"]
            assert x > max(end[0] for end in ends.values())
            leader = points(marks[f"s{i}-leader"]["d"])[0]
            assert leader[0] == pytest.approx((ends[i][0] + 8, ends[i][1]), abs=0.02)  # from the line's end …
            assert leader[-1] == pytest.approx((x - 5, y - 4), abs=1.01)  # … to its name
    one = Sweep(**small())
    hosted = host(one, reduced_motion="reduce")
    marks, y_of, _ = rulers(hosted, one)
    places = {key: y for key, _, y, _ in hosted.page.evaluate(LABELS)}
    assert [places["s0-name"], places["s1-name"]] == [pytest.approx(y_of(v), abs=4) for v in (0.5, 0.8)]  # none pushed


def test_a_narrow_figure_lists_names_below(host, sweep_data):
    hosted = host(Sweep(**sweep_data), reduced_motion="reduce", width=390)
    marks = hosted.page.evaluate(MARKS)
    places = {key: y for key, _, y, _ in hosted.page.evaluate(LABELS)}
    assert all(places[f"s{i}-name"] > marks["foot"]["y"] + 40 for i in range(5))
    assert all(f"s{i}-sample" in marks and f"s{i}-key" in marks and f"s{i}-leader" not in marks for i in range(5))


def test_marks_that_would_cover_each_other_stand_side_by_side(host, sweep_data):
    figure = Sweep(**sweep_data)
    hosted = host(figure, reduced_motion="reduce")
    for at in sweep_data["x"]:
        hosted.put(at=at)
        marks, _, _ = rulers(hosted, figure)
        large = [marks[key] for key in sorted(marks) if re.fullmatch(r"s\d-now", key)]
        assert len(large) == 5
        for i, a in enumerate(large):
            for b in large[i + 1 :]:
                apart = (
                    a["right"] < b["left"] + 2
                    or b["right"] < a["left"] + 2
                    or a["bottom"] < b["top"]
                    or b["bottom"] < a["top"]
                )
                assert apart, at
            assert a["left"] >= marks["foot"]["left"] - 1
            assert a["right"] <= marks["foot"]["right"] + 1
    assert beside([(10, 30), (20, 40), None, (100, 120)]) == [(-0.5, 0.5), (0.5, 0.5), (0, 0), (0, 0)]
    assert beside([(10, 30), (20, 40), (35, 50)]) == [
        (-1, 1),
        (0, 1),
        (1, 1),
    ]  # first and last meet by way of the one between
    assert beside([None, None]) == [(0, 0), (0, 0)]


@pytest.mark.parametrize("at", [1, 10, 100])
def test_marks_side_by_side_are_evenly_apart(host, at):
    three = [steady(3, 0.5 + i / 100) | {"name": name} for i, name in enumerate("abc")]
    page = host(Sweep(**small(panels={"one": three}, at=at)), reduced_motion="reduce").page
    marks = page.evaluate(MARKS)
    assert np.diff([marks[f"s{i}-now"]["x"] for i in range(3)]) == pytest.approx([16, 16], abs=0.02)
    if at == 10:
        assert marks["s1-now"]["x"] == pytest.approx(marks["at"]["x"], abs=0.02)


def test_series_differ_by_more_than_colour(sweep_data):
    figure = Sweep(**sweep_data)
    for panel, looks in zip(figure.panels, figure.looks, strict=True):
        tones, shapes = zip(*looks, strict=True)
        assert len(set(tones)) == len(set(shapes)) == len(panel["series"])
    (first, second) = (
        {one["name"]: look for one, look in zip(p["series"], looks, strict=True)}
        for p, looks in zip(figure.panels, figure.looks, strict=True)
    )
    assert all(first[name] == second[name] for name in second)  # a name looks the same in every panel
    assert first["none masked"][0] == "wrong"
    assert first["frozen MiniLM"][0] == "muted"
    many = {f"panel {i}": [{"name": f"{i} {j}", "values": [j, 1]} for j in range(5)] for i in range(6)}
    for looks in Sweep(x=[1, 2], x_label="x", y_label="y", panels=many).looks:
        assert sorted(tone for tone, _ in looks) == sorted(TONES[:5])
        assert [shape for _, shape in looks] == [0, 1, 2, 3, 4]
    greedy = [
        {"name": name, "values": [0, 1], "tone": tone} for name, tone in (("a", None), ("b", "best"), ("c", "wrong"))
    ]
    assert [tone for tone, _ in Sweep(x=[1, 2], x_label="x", y_label="y", panels={"p": greedy}).looks[0]] == [
        "plum",
        "best",
        "wrong",
    ]


def test_dashes_and_hollow_points_mark_a_reference(host):
    page = host(Sweep(**small()), reduced_motion="reduce").page
    style = "key => { const s = getComputedStyle(document.querySelector(`[data-key=${key}]`)); return [s.strokeDasharray, s.fill, s.stroke]; }"
    (solid, _, blue), (dashed, _, grey) = page.evaluate(style, "s0-line"), page.evaluate(style, "s1-line")
    assert (solid, dashed) == ("none", "6px, 4px")
    assert page.evaluate(style, "s0-marks")[1] == blue
    assert page.evaluate(style, "s1-marks")[1:] == ["rgb(255, 255, 255)", grey]
    assert blue != grey


def test_ticks_are_round_and_the_axis_holds_everything():
    random = np.random.default_rng(0)
    for _ in range(400):
        numbers = (random.uniform(-1, 1, 6) * 10.0 ** random.integers(-4, 5) + random.choice([0, 0.5, 300])).tolist()
        found = axis(numbers)
        (low, high), ticks = found["ends"], found["ticks"]
        values, texts = [tick for tick, _ in ticks], [text for _, text in ticks]
        assert low <= min(numbers) + 1e-12
        assert high >= max(numbers) - 1e-12
        assert 2 <= len(ticks) <= 8
        assert low - 1e-9 <= values[0] < values[-1] <= high + 1e-9
        assert len(set(texts)) == len(texts)
        assert [float(text.replace("−", "-")) for text in texts] == pytest.approx(
            values
        )  # what is written is where it stands
        step = np.diff(values)
        assert step == pytest.approx([step[0]] * len(step), rel=1e-6)
        mantissa = step[0] / 10.0 ** math.floor(math.log10(step[0]) + 1e-9)
        assert min(abs(mantissa - nice) for nice in (1, 2, 2.5, 5)) < 1e-6
        steps = MaxNLocator(nbins=6, steps=[1, 2, 2.5, 5, 10]).tick_values(min(numbers), max(numbers))
        assert (
            step[0] == pytest.approx(np.diff(steps)[0]) or step[0] < np.diff(steps)[0] * 2.6
        )  # as matplotlib has it, or finer
    assert [text for _, text in axis([0.02, 0.31], percent=True)["ticks"]] == [
        "0%",
        "5%",
        "10%",
        "15%",
        "20%",
        "25%",
        "30%",
    ]
    assert axis([0.02, 0.31], percent=True)["ends"] == [0, 0.31]
    flat = axis([0.5, 0.5])  # a tenth to either side
    assert flat["ends"] == pytest.approx([0.45, 0.55])
    assert [text for _, text in flat["ticks"]] == ["0.46", "0.48", "0.50", "0.52", "0.54"]
    assert axis([0.0])["ends"] == [-1, 1]


def test_panels_share_an_axis_or_have_their_own():
    apart = {"low": [steady(2, 0.2)], "high": [steady(2, 0.9)]}
    both = Sweep(x=[1, 2], x_label="x", y_label="y", panels=apart)
    assert both.axes[0] == both.axes[1]
    assert both.axes[0]["ends"] == pytest.approx([0.18, 0.92], abs=0.08)
    each = Sweep(x=[1, 2], x_label="x", y_label="y", panels=apart, shared=False)
    assert [axis_["ends"] for axis_ in each.axes] == [
        pytest.approx([v - 0.02, v + 0.02], abs=0.004) for v in (0.2, 0.9)
    ]


def test_stops_are_named_where_there_is_room():
    assert named([0, 40, 80, 120], [20] * 4) == [0, 1, 2, 3]
    assert named([0, 20, 40, 100], [20] * 4) == [0, 2, 3]
    assert named([0, 40, 75, 100], [20] * 4) == [0, 1, 3]  # the last is named in any case
    assert runs(6, lambda i: i not in (0, 3)) == [[1, 2], [4, 5]]
    assert wrap("one two", 1, size=13) == ["one", "two"]
    assert wrap("one two", 500, size=13) == ["one two"]


def test_what_it_says():
    figure = Sweep(**small(), at=10)
    assert figure.describe() == "one at s = 10: up 0.400 [0.350, 0.500]; flat 0.800."
    figure.at = 100
    assert "up 0.500 [0.450, 0.600]" in figure.describe()
    shares = Sweep(**small(percent=True, x_label="scale"))
    assert shares.describe() == "one at scale 10: up 40.0% [35.0, 50.0]; flat 80.0%."
    assert Sweep(**small(digits=1)).describe() == "one at s = 10: up 0.4 [0.3, 0.5]; flat 0.8."  # 0.35 is below 7/20
    big = Sweep(**small(x=[0.00001, 1024, 2_000_000]))
    assert big.x_text == ["1e-05".replace("-", "−"), "1,024", "2,000,000"]
    assert Sweep(**small(x=[-1, 0, 0.5], log=False)).x_text == ["−1", "0", "0.5"]
    assert Sweep(**small(x_text=["none", "some", "all"])).describe().startswith("one at s = some:")


def test_a_pointer_takes_the_nearest_x(host, sweep_data):
    figure = Sweep(**sweep_data, at=16)
    hosted = host(figure, reduced_motion="reduce")
    marks, _, places = rulers(hosted, figure)
    box = hosted.page.locator("#figure svg[role=img]").bounding_box()
    middle = box["y"] + marks["at"]["y"]
    hosted.page.mouse.move(box["x"] + places[4] + 9, middle)
    assert hosted.get("at") == [16]  # looking is not choosing
    hosted.page.mouse.down()
    assert hosted.get("at") == [256]
    hosted.page.mouse.move(box["x"] + places[2] - 12, middle)
    assert hosted.get("at") == [64]
    hosted.page.mouse.up()
    hosted.page.mouse.move(box["x"] + places[6], middle)
    assert hosted.get("at") == [64]
    figure.at = 64
    assert hosted.says() == figure.describe()
    hosted.page.mouse.click(box["x"] + places[6], box["y"] + 4)  # on the title
    assert hosted.get("at") == [64]


def test_one_panel_needs_no_choice_and_many_make_a_list(host):
    page = host(Sweep(**small())).page
    assert (page.locator("#figure input[type=radio]").count(), page.locator("#figure select").count()) == (0, 0)
    series = small()["panels"]["one"]
    figure = Sweep(**small(panels={f"a panel with a long name {i}": series for i in range(6)}, panel_label="Data"))
    hosted = host(figure)
    assert hosted.page.locator("#figure select option").all_text_contents() == [p["name"] for p in figure.panels]
    hosted.page.select_option("#figure select", "a panel with a long name 4")
    assert hosted.get("panel") == ["a panel with a long name 4"]
    assert hosted.says().startswith("a panel with a long name 4 at s = 10")


def test_the_twin_shows_the_same(sweep_data):
    for state in ({}, {"panel": "SciFact", "at": 32}):
        figure = Sweep(**sweep_data, **state)
        texts = [node.text for node in ET.fromstring(figure.svg()).iter(f"{SVG}text")]
        now, (_, panel) = figure.x.index(figure.at), figure._shown()
        for one in panel["series"]:
            assert one["name"] in texts
            for text in filter(None, figure._reading(one, now)):
                assert text in texts
        assert {
            "nDCG@10 of the held-out queries",
            "batch width (log scale)",
            "1,024",
            f"at batch width {figure.at:g}",
        } <= set(texts)
    long = [{"name": f"a name that takes all the room there is {i}", "values": [1, 2, 3]} for i in range(2)]
    below = Sweep(**small(panels={"one": [{**one, "name": one["name"][-40:]} for one in long]}))
    assert float(ET.fromstring(below.svg()).attrib["height"]) > 0


def test_arrays_are_taken_and_kept_as_lists():
    values, low, high = np.array([0.2, 0.4, 0.5]), torch.tensor([0.125, 0.25, 0.5]), np.array([0.25, 0.5, 0.6])
    figure = Sweep(
        **small(x=np.array([1, 10, 100]), panels={"one": [{"name": "up", "values": values, "low": low, "high": high}]})
    )
    assert figure.panels[0]["series"][0] == {
        "name": "up",
        "values": [0.2, 0.4, 0.5],
        "low": [0.125, 0.25, 0.5],
        "high": [0.25, 0.5, 0.6],
        "dashed": False,
        "tone": None,
    }
    assert figure.x == [1.0, 10.0, 100.0]


UP = small()["panels"]["one"][0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": [1]}, "Sweep: x must be 2 to 40 numbers, ascending, not [1.0]"),
        ({"x": [1, 1, 2]}, "x must be 2 to 40 numbers, ascending, not [1.0, 1.0, 2.0]"),
        ({"x": [0, 10, 100]}, "x must be above 0 for a logarithmic axis, not 0"),
        ({"x": [1, math.nan, 2]}, "x[1] must be a finite number, not nan"),
        ({"x": [1, 1.0000001, 2]}, "x_text must be 3 different texts of 1 to 12 characters, one for each x, not ['1', '1', '2']"),
        ({"x_text": ["1", "2"]}, "x_text must be 3 different texts"),
        ({"x_label": ""}, "x_label must be a text of 1 to 40 characters, not ''"),
        ({"y_label": "y" * 61}, "y_label must be a text of 1 to 60 characters"),
        ({"note": "n" * 91}, "note must be a text of 0 to 90 characters"),
        ({"digits": 7}, "digits must be an int from 0 to 6, not 7"),
        ({"at": 5}, "at must be one of 1, 10, 100, not 5"),
        ({"at": None}, "at must be a finite number, not None"),
        ({"panel": "two"}, "panel must be one of 'one', not 'two'"),
        ({"panels": [UP]}, "panels must map the name of each panel to its list of series, not [{"),
        ({"panels": {}}, "panels must be 1 to 6, named in 1 to 30 characters, not []"),
        ({"panels": {f"{i}": [UP] for i in range(7)}}, "panels must be 1 to 6, named in 1 to 30 characters, not ['0', '1'"),
        ({"panels": {"": [UP]}}, "panels must be 1 to 6, named in 1 to 30 characters, not ['']"),
        ({"panels": {"one": []}}, "panels['one'] must be a list of 1 to 5 series, not []"),
        ({"panels": {"one": [UP] * 6}}, "panels['one'] must be a list of 1 to 5 series"),
        ({"panels": {"one": [UP, UP]}}, "panels['one'] must be series with different names, not ['up', 'up']"),
        ({"panels": {"one": [{"name": "up"}]}}, "panels['one'][0] must be a dict with name, values and perhaps low, high, dashed, tone"),
        ({"panels": {"one": [{**UP, "colour": "red"}]}}, "panels['one'][0] must be a dict with name, values"),
        ({"panels": {"one": [{**UP, "name": ""}]}}, "panels['one'][0]['name'] must be a text of 1 to 40 characters, not ''"),
        ({"panels": {"one": [{**UP, "dashed": 1}]}}, "panels['one'][0]['dashed'] must be True or False, not 1"),
        ({"panels": {"one": [{**UP, "tone": "red"}]}}, "panels['one'][0]['tone'] must be one of best, plum, ink, ghost, muted, wrong, right, not 'red'"),
        ({"panels": {"one": [{"name": "up", "values": [1, 2]}]}}, "panels['one'], up: values must be 3, one for each x, not 2"),
        ({"panels": {"one": [{"name": "up", "values": [1, math.nan, 2]}]}}, "['values'][1] must be a finite number, or None where nothing was measured, not nan"),
        ({"panels": {"one": [{"name": "up", "values": [None] * 3}]}}, "['values'] must hold a number at one x at least, not [None, None, None]"),
        ({"panels": {"one": [{"name": "up", "values": "123"}]}}, "panels['one'][0]['values'] must be a list, not '123'"),
        ({"panels": {"one": [{**UP, "low": [0, 0]}]}}, "panels['one'][0]['low'] must hold 3 numbers, one a value, not 2"),
        ({"panels": {"one": [{**UP, "low": [0.1, 0.45, 0.45]}]}}, "panels['one'][0] must have low ≤ value ≤ high, or neither low nor high, at index 1, not low 0.45, value 0.4, high 0.5"),
        ({"panels": {"one": [{**UP, "high": None}]}}, "at index 0, not low 0.1, value 0.2, high None"),
        ({"panels": {"one": [{**UP, "values": [None, 0.4, 0.5]}]}}, "at index 0, not low 0.1, value None, high 0.25"),
    ],
)  # fmt: skip
def test_a_bad_value_is_named(change, message):
    with pytest.raises(FigureError, match=re.escape(message)):
        Sweep(**small(**change))


def test_it_needs_data_and_keeps_it():
    with pytest.raises(TypeError, match="Sweep shows what was measured and needs x, x_label, y_label, panels"):
        Sweep()
    figure = Sweep(**small())
    figure.panels = small()["panels"]  # the same again changes nothing
    for trait, value in (("panels", {"one": [UP]}), ("x", [1, 2, 3]), ("percent", True), ("y_label", "other")):
        with pytest.raises(FigureError, match=f"Sweep: {trait} is given once; build another figure for other data"):
            setattr(figure, trait, value)
    for trait, value in (("at", 11), ("panel", "two")):
        before = getattr(figure, trait)
        with pytest.raises(FigureError, match=f"{trait} must be one of"):
            setattr(figure, trait, value)
        assert getattr(figure, trait) == before
