# ruff: noqa: E501  # a case a line
"""Figures as Python objects: what they take, what they say, and how they are shown where no script runs."""

import math
import re
import subprocess
import sys
import xml.etree.ElementTree as ET

import matplotlib
import numpy as np
import pytest
import torch

from losslab import figures
from losslab.figures import FigureError, Flip, GhostDocuments, TieOrder, WeightAndDirection
from losslab.figures._sheet import STYLE, WIDTH, measure, palette

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize(
    ("trait", "value", "message"),
    [
        ("width", 13, "GhostDocuments: width must be an int from 2 to 12, not 13"),
        ("width", 1, "GhostDocuments: width must be an int from 2 to 12, not 1"),
        ("width", 4.0, "width must be an int from 2 to 12, not 4.0"),
        ("width", True, "width must be an int from 2 to 12, not True"),
        ("width", "4", "width must be an int from 2 to 12, not '4'"),
        ("logit_b", 2.5, r"logit_b must be a finite number from -1.0 to 2.0, not 2.5"),
        ("logit_b", math.nan, "logit_b must be a finite number from -1.0 to 2.0, not nan"),
        ("logit_b", None, "logit_b must be a finite number from -1.0 to 2.0, not None"),
    ],
)
def test_a_bad_value_is_named(trait, value, message):
    with pytest.raises(FigureError, match=re.escape(message)):
        GhostDocuments(**{trait: value})
    figure = GhostDocuments()
    before = getattr(figure, trait)
    with pytest.raises(ValueError, match=re.escape(message)):
        setattr(figure, trait, value)
    assert getattr(figure, trait) == before


def test_good_values_are_kept():
    figure = GhostDocuments(width=np.int64(5), logit_b=torch.tensor(0.5).item(), fixed=True)
    assert (figure.width, figure.logit_b, figure.fixed) == (5, 0.5, True)
    figure.logit_b = 1  # an int is a number
    assert figure.logit_b == 1.0
    figure.logit_b = 0.1 + 0.2  # where the slider can stand
    assert figure.logit_b == 0.3


def test_name_and_title():
    assert [kind().figure for kind in (GhostDocuments, Flip)] == ["ghosts", "flip"]
    assert GhostDocuments().title == "Ghost documents"
    assert GhostDocuments(title="Padding").title == "Padding"
    with pytest.raises(Exception, match="read-only"):
        GhostDocuments().figure = "flip"


def test_the_module_is_the_composed_one(make):
    figure = make()
    assert figure._esm == figures.compose(figure.figure)
    assert figure._css == figures.stylesheet()
    assert "figure" in figure.keys


def test_measured_figures_need_data(tie_data, weight_data):
    with pytest.raises(
        TypeError, match=r"TieOrder shows what was measured and needs widths, losses, gradients, orders"
    ):
        TieOrder()
    with pytest.raises(TypeError, match=r"WeightAndDirection shows what was measured and needs gradients$"):
        WeightAndDirection(**{key: value for key, value in weight_data.items() if key != "gradients"})
    del tie_data


def altered(data, **changes):
    return {**data, **changes}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: {"widths": d["widths"][::-1]}, "widths must be two or more, ascending"),
        (lambda d: {"widths": d["widths"][:1]}, "widths must be two or more, ascending, not [3]"),
        (lambda d: {"losses": d["losses"][:-1]}, "losses must hold one entry for each of the 38 widths, not 37"),
        (lambda d: {"losses": [math.nan, *d["losses"][1:]]}, "losses[0] must be a finite number, not nan"),
        (lambda _: {"losses": 3.0}, "losses must be a list, not 3.0"),
        (lambda d: {"gradients": [[0.1, 0.2], *d["gradients"][1:]]}, "gradients at width 3 must be 3 numbers, one a document"),
        (lambda d: {"gradients": [["a", 0, 0], *d["gradients"][1:]]}, "gradients[0][0] must be a finite number, not 'a'"),
        (lambda d: {"orders": [[0, 1, 2], *d["orders"][1:]]}, "orders at width 3 must rank documents 0 to 2 by label, best first"),
        (lambda d: {"orders": [[1, 1, 2], *d["orders"][1:]]}, "orders at width 3 must rank documents 0 to 2"),
        (lambda d: {"orders": [[1, 0, -2], *d["orders"][1:]]}, "orders[0][2] must be an int of 0 or more, not -2"),
        (lambda _: {"labels": [1.0]}, "labels must be of 2 or 3 documents, not 1"),
        (lambda _: {"logits": [1.0]}, "logits must be 3 numbers, one a label, not 1"),
        (lambda _: {"width": 2}, "width must be one of [3, 4, 5"),
    ],
)  # fmt: skip
def test_tables_that_disagree_are_refused(tie_data, change, message):
    with pytest.raises(FigureError, match=re.escape(message)):
        TieOrder(**altered(tie_data, **change(tie_data)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda _: {"names": ["A"] * 5}, "names must be 1 to 8 losses, each once"),
        (lambda _: {"names": []}, "names must be 1 to 8 losses, each once"),
        (lambda _: {"widths": [3]}, "widths must be two or more, ascending, not [3]"),
        (lambda d: {"alone": d["alone"][1:]}, "alone must hold one entry for each of the 5 names, not 4"),
        (lambda d: {"gradients": [row[1:] for row in d["gradients"]]}, "gradients of ListMLE must hold one entry for each of the 5 widths"),
        (lambda d: {"alone": [[0.0] * 3, *d["alone"][1:]]}, "the gradient of ListMLE at alone must be 3 numbers, not all 0"),
        (lambda _: {"weights": [[2.0] * 5] * 5}, "weights of ADR-MSE at width"),
        (lambda _: {"cosines": [[0.5] * 5] * 5}, "cosines of ListMLE at width 3 is 0.5, its gradients give"),
        (lambda _: {"weights": [[2.0] * 4] * 5}, "weights must be 5 rows of 5 numbers"),
        (lambda _: {"loss": "Hinge"}, "loss must be one of ['ListMLE', 'ListNet', 'ADR-MSE', 'RankNet', 'LambdaLoss'], not 'Hinge'"),
        (lambda _: {"width": 4}, "width must be one of [3, 6, 12, 24, 40], not 4"),
    ],
)  # fmt: skip
def test_gradients_that_disagree_are_refused(weight_data, change, message):
    with pytest.raises(FigureError, match=re.escape(message)):
        WeightAndDirection(**altered(weight_data, **change(weight_data)))


def test_a_state_that_was_not_measured_cannot_be_selected(tie_data, weight_data):
    ties, weight = TieOrder(**tie_data), WeightAndDirection(**weight_data)
    with pytest.raises(FigureError, match="width must be one of"):
        ties.width = 41
    with pytest.raises(FigureError, match="loss must be one of"):
        weight.loss = "Hinge"
    assert (ties.width, weight.loss) == (17, "RankNet")


def test_measured_data_are_given_once(tie_data, weight_data):
    ties, weight = TieOrder(**tie_data), WeightAndDirection(**weight_data)
    with pytest.raises(FigureError, match="TieOrder: losses is given once; build another figure for other data"):
        ties.losses = [loss + 1 for loss in tie_data["losses"]]
    with pytest.raises(FigureError, match="WeightAndDirection: weights is given once"):
        weight.weights = [[2.0] * 5] * 5
    ties.losses = tie_data["losses"]  # the same again changes nothing
    assert ties.losses == tie_data["losses"]


def test_measurements_may_be_arrays(tie_data, weight_data):
    arrays = {key: np.asarray(value) for key, value in tie_data.items()}
    assert TieOrder(**arrays).describe() == TieOrder(**tie_data).describe()
    tensors = {key: torch.tensor(weight_data[key]) for key in ("alone", "gradients")}
    assert WeightAndDirection(**altered(weight_data, **tensors)).weights[0] == pytest.approx([2.0] * 5, abs=1e-4)


def test_weights_and_cosines_are_worked_out(weight_data):
    figure = WeightAndDirection(**weight_data)
    for row, name in enumerate(weight_data["names"]):
        for at, width in enumerate(weight_data["widths"]):
            alone, batch = torch.tensor(weight_data["alone"][row]), torch.tensor(weight_data["gradients"][row][at])
            assert figure.weights[row][at] == pytest.approx((alone.norm() / batch.norm()).item(), rel=1e-5), (
                name,
                width,
            )
            cosine = torch.nn.functional.cosine_similarity(alone, batch, dim=0).item()
            assert figure.cosines[row][at] == pytest.approx(cosine, abs=1e-5)


def test_what_they_say_of_the_findings(tie_data, weight_data):
    ties = TieOrder(**tie_data)
    assert ties.width == 17  # the first width at which something is wrong
    assert ties.describe() == (
        "Beside a list of 17 the sort moves A and C, which tie: it ranks B, C, A instead of B, A, C, "
        "the loss reads 1.9237 instead of 0.7237, and C is pushed up instead of down."
    )
    ties.width = 16
    assert "leaves tied documents as they were given" in ties.describe()
    weight = WeightAndDirection(**weight_data, width=40)
    assert (
        "RankNet beside a list of 40: our query’s gradient keeps its direction (cosine 1.0000) but is"
        in weight.describe()
    )
    weight.loss = "ListMLE"
    assert weight.describe().endswith("is 2.00 times smaller than alone, as a mean over both queries would make it.")
    turned = WeightAndDirection(names=["X"], widths=[3, 4], alone=[[1, 0]], gradients=[[[0.5, 0], [0, 0.25]]])
    assert "loses its direction (cosine 0.0000) and is 4.00 times smaller" in turned.describe()


def test_display_carries_view_twin_and_words(make):
    figure = make()
    data, metadata = figure._repr_mimebundle_()
    assert data["application/vnd.jupyter.widget-view+json"]["model_id"] == figure.model_id
    assert data["text/plain"] == figure.describe()
    assert data["image/svg+xml"] == figure.svg()
    assert metadata["image/svg+xml"]["alt"] == figure.describe()


def bounds(text):
    """Where a text of a twin stands: left, right, baseline."""
    style = dict(part.split(": ", 1) for part in text.attrib["style"].split("; "))
    size, strong = float(style["font-size"].removesuffix("px")), style.get("font-weight") == "700"
    x, y = float(text.attrib["x"]), float(text.attrib["y"])
    wide = measure(text.text, size, strong=strong)
    left = x - {"start": 0, "middle": wide / 2, "end": wide}[style["text-anchor"]]
    return left, left + wide, y, size


def test_twins_are_legible_and_stay_inside(make, states):
    for state in states(make())[::17]:
        figure = make(**state)
        root = ET.fromstring(figure.svg())
        width, height = (float(root.attrib[side]) for side in ("width", "height"))
        assert width == WIDTH
        assert root.attrib["viewBox"] == f"0 0 {width:g} {height:g}"
        assert root.attrib["role"] == "img"
        assert figure.describe() in root.attrib["aria-label"]
        assert root.find(f"{SVG}title").text == figure.title
        assert root.find(f"{SVG}desc").text == figure.describe()
        assert root.find(f".//{SVG}image") is None  # vector, all of it
        marks = [(text.text, *bounds(text)) for text in root.iter(f"{SVG}text")]
        assert len(marks) > 15
        for i, (text, left, right, y, size) in enumerate(marks):
            assert size >= 12, text
            assert left >= -1, (state, text)
            assert right <= width + 1, (state, text)
            assert 0.76 * size <= y <= height - 2, (state, text)
            for other, left2, right2, y2, size2 in marks[i + 1 :]:
                apart = right < left2 or right2 < left or y < y2 - 0.75 * size2 or y2 < y - 0.75 * size
                assert apart, (state, text, other)


def test_a_twin_shows_its_state():
    texts = [node.text for node in ET.fromstring(GhostDocuments(width=3).svg()).iter(f"{SVG}text")]
    share = 1 / (math.exp(1.5) + math.exp(0.3) + 1)
    for text in ("0.9759", "wrong way", f"1 ghost {share:.1%}", "masked: 0.2633", "−0.2280", "+0.2315"):
        assert text in texts
    texts = [node.text for node in ET.fromstring(GhostDocuments(width=3, fixed=True).svg()).iter(f"{SVG}text")]
    assert "as it should be" in texts
    assert "wrong way" not in texts


def test_twins_are_the_same_bytes_in_another_process(tmp_path):
    code = "from losslab.figures import GhostDocuments, Flip; print(GhostDocuments(width=5).svg(), Flip().svg())"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    here = f"{GhostDocuments(width=5).svg()} {Flip().svg()}"
    assert run.stdout.strip() == here.strip()
    assert not re.search(r"https?://(?!www\.w3\.org/)", here)
    assert "Matplotlib" not in here
    assert not re.search(r"20\d\d-\d\d-\d\d", here)


def test_drawing_a_twin_leaves_matplotlib_as_it_was():
    before = dict(matplotlib.rcParams)
    GhostDocuments().svg()
    assert dict(matplotlib.rcParams) == before


def test_style_has_the_colours_of_the_style_sheet():
    style = dict(re.findall(r"^([\w.]+): ([0-9a-f]{6})$", STYLE.read_text(encoding="utf-8"), re.MULTILINE))
    named = {
        "text.color": "ink",
        "axes.edgecolor": "muted",
        "axes.labelcolor": "muted",
        "xtick.color": "muted",
        "ytick.color": "muted",
        "grid.color": "grid",
        "hatch.color": "ghost",
        "figure.facecolor": "page",
        "axes.facecolor": "page",
        "savefig.facecolor": "page",
    }
    assert style == {key: palette()[name].removeprefix("#") for key, name in named.items()}
    with figures.style():
        cycle = matplotlib.rcParams["axes.prop_cycle"].by_key()["color"]
    assert [f"#{colour.removeprefix('#')}" for colour in cycle] == [
        palette()[n] for n in ("best", "wrong", "right", "ghost", "muted")
    ]
