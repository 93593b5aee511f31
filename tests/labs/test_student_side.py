"""What a notebook calls: checks that show the smallest input that breaks them, pictures, and controls."""

import base64
import math
import re
import sys
from itertools import pairwise
from types import ModuleType

import ipywidgets
import nbclient
import nbformat
import numpy as np
import pytest
import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from torch.nn.functional import cross_entropy, normalize

from losslab import check, labs
from losslab.labs import pictures


def right(queries, documents, temperature=0.05):
    scores = normalize(queries, dim=1) @ normalize(documents, dim=1).T
    return cross_entropy(scores / temperature, torch.arange(len(queries)))


def unnormalised(queries, documents, temperature=0.05):
    return cross_entropy(queries @ documents.T / temperature, torch.arange(len(queries)))


def unwritten(queries, documents, temperature=0.05):
    raise NotImplementedError("Step 2 is not written yet: info_nce")


def square(x):
    return x**2


def abs_of(x):
    return abs(x)


CASES = [{"x": torch.tensor(values, dtype=torch.float64)} for values in ([0.0], [1.0], [2.0, 3.0])]


@pytest.fixture(autouse=True)
def no_check_has_failed():
    pictures.noted("", "", kept=True)


def test_setup_says_where_it_runs(capsys, monkeypatch):
    monkeypatch.setenv("LOSSLAB_DEVICE", "cpu")
    assert labs.setup("infonce") == torch.device("cpu")
    said = capsys.readouterr().out
    assert f"torch {torch.__version__}" in said
    assert f"numpy {np.__version__}" in said
    assert "Computing on cpu" in said
    with pytest.raises(ValueError, match=r"name must be one of the labs infonce, .*got 'infonces'"):
        labs.setup("infonces")


def test_setup_uses_the_gpu_there_is(monkeypatch, capsys):
    monkeypatch.delenv("LOSSLAB_DEVICE", raising=False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda _: "a card")
    assert labs.setup("infonce") == torch.device("cuda")
    assert "Computing on cuda (a card)" in capsys.readouterr().out


def test_setup_turns_colabs_widget_manager_on(monkeypatch, capsys):
    called = []
    for name in ("google", "google.colab", "google.colab.output"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    sys.modules["google.colab.output"].enable_custom_widget_manager = lambda: called.append(True)
    labs.setup("infonce")
    assert called == [True]
    assert "Colab: live cells are switched on." in capsys.readouterr().out


def test_promises_are_said_one_a_line(capsys):
    assert labs.promises(right, "contrastive", ["blind", "scale"]) is True
    assert capsys.readouterr().out.splitlines() == [
        "✓ blind: a blind model pays ln M",
        "✓ scale: only directions count",
    ]


def test_broken_promise_comes_with_its_smallest_input(capsys):
    assert labs.promises(unnormalised, "contrastive", ["blind", "scale"]) is False
    said = capsys.readouterr().out
    assert said.startswith("✓ blind")
    assert "✗ scale: Multiplying all queries by one number above 0" in said
    assert re.search(r"went in +queries \[", said)
    assert re.search(r"came out +", said)


def test_unwritten_function_says_so_instead_of_being_judged(capsys):
    """One line and no traceback, also where the target is made of an earlier step."""
    one = [{"queries": torch.ones(1, 2), "documents": torch.ones(1, 2)}]
    assert labs.promises(unwritten, "contrastive", ["blind"]) is False
    assert labs.agrees(unwritten, right, one) is False
    assert labs.agrees(right, unwritten, one) is False
    assert capsys.readouterr().out == "○ Step 2 is not written yet: info_nce\n" * 3


def in_pairs_only(queries, documents, temperature=0.05):
    if len(queries) != len(documents):
        raise ValueError("queries and documents must have one shape")
    return right(queries, documents, temperature)


def test_a_student_is_not_told_to_declare_anything(capsys):
    """A step says what its function must do; what else a loss might promise is no way out of it."""
    assert labs.promises(in_pairs_only, "contrastive", ["blind", "rows"]) is False
    said = capsys.readouterr().out
    assert "declare" not in said
    assert "it was given more documents than queries." in " ".join(said.split())
    elsewhere = check(in_pairs_only, "contrastive", only=["rows"])
    assert "declare" in elsewhere.results[0].reason


def test_a_cell_that_calls_an_unwritten_step_says_so_and_the_notebook_goes_on():
    """And so do the cells that need what it would have made; every other error stays what it is."""
    cells = [
        "from losslab import labs\nlabs.setup('infonce')",
        "def info_nce(x):\n    raise NotImplementedError('Step 2 is not written yet: info_nce')",
        "price = info_nce(1)\nlabs.picture([price], [1.0])",
        "price + 1",
        "labs.agrees(info_nce, lambda x: x, [{'x': 1}]);",
        "prize",
        "raise NotImplementedError('of another kind')",
        "def info_nce(x):\n    return x",
        "price = info_nce(2)\nprint(price)",
        "del price",
        "price",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code) for code in cells])
    nbclient.NotebookClient(notebook, timeout=120, allow_errors=True).execute()
    said = [[one.get("text", one.get("ename")) for one in cell.outputs] for cell in notebook.cells][1:]
    due = ["○ Step 2 is not written yet: info_nce\n"]
    assert said == [[], due, due, due, ["NameError"], ["NotImplementedError"], [], ["2\n"], [], ["NameError"]]


def test_agreeing_functions_are_said_to_agree(capsys):
    assert labs.agrees(square, lambda x: x * x, CASES, gradients=["x"]) is True
    assert capsys.readouterr().out == "✓ square: value and gradient agree with the target on 3 inputs\n"


@pytest.mark.parametrize(
    ("function", "lines"),
    [
        (
            lambda x: 2 * x**2,
            [r"✗ <lambda>: the result differs", r"went in +x \[1\]", r"came out +\[2\]", r"should be +\[1\]"],
        ),
        (lambda x: x.detach() ** 2, ["its result has no gradient"]),
        (
            lambda x: x**2 + 0 * x.detach() + x - x.detach(),
            ["the gradient by x differs", r"x \[0\]", r"\[1\]", r"\[0\]"],
        ),
        (lambda x: (x**2).sum(), ["another shape", r"shape \(\)", r"shape \(1,\)"]),
        (lambda **_: None, ["is there a return"]),
        (lambda x: x / 0 * 0, ["differs", r"\[nan\]"]),
        (lambda **_: 1 / 0, ["raised ZeroDivisionError: division by zero", r"went in +x \[0\]"]),
        (lambda x: x.mul_(x), ["RuntimeError"]),
    ],
)
def test_disagreement_is_shown_on_the_first_input(function, lines, capsys):
    assert labs.agrees(function, square, CASES, gradients=["x"]) is False
    said = capsys.readouterr().out
    for line in lines:
        assert re.search(line, said), said


def test_a_function_cannot_change_the_targets_inputs():
    assert labs.agrees(lambda x: x.zero_(), square, CASES[1:]) is False
    assert torch.equal(CASES[1]["x"], torch.tensor([1.0], dtype=torch.float64))


def test_numbers_words_tuples_and_dictionaries_are_compared(capsys):
    assert labs.agrees(lambda n: (n, "ab" * n), lambda n: (float(n), "ab" * n), [{"n": 1}, {"n": 2}])
    assert not labs.agrees(lambda n: (n, "ab"), lambda n: (n, "ab" * n), [{"n": 1}, {"n": 2}])
    assert "result 2 differs" in capsys.readouterr().out
    assert not labs.agrees(lambda n: {"a": n}, lambda n: {"a": n, "b": n}, [{"n": 1}])
    assert "returns a, and b is missing" in capsys.readouterr().out


def test_wrong_calls_are_refused():
    with pytest.raises(ValueError, match="inputs must hold at least one case"):
        labs.agrees(square, square, [])
    with pytest.raises(ValueError, match="gradients names 'y', which is no tensor among the inputs"):
        labs.agrees(square, square, CASES, gradients=["y"])


@pytest.mark.parametrize("kind", ["curve", "bars", "map"])
def test_pictures_say_what_they_show(kind):
    target = np.arange(6.0).reshape(2, 3) if kind == "map" else np.arange(6.0)
    same = labs.picture(target, target, kind=kind, title="Six")
    assert str(same) == "Six: yours and target lie on each other, 6 values."
    yours = target.copy()
    yours.flat[4] = 7
    shown = labs.picture(
        torch.tensor(yours), target.tolist(), kind=kind, title="Six", xlabel="place", names=("mine", "right")
    )
    where = "row 2, column 2" if kind == "map" else "place 4"
    assert str(shown) == f"Six: furthest apart at {where}, where mine is 7 and right 4."
    html = shown._repr_mimebundle_()["text/html"]
    assert html.startswith(f'<img alt="{shown}"')
    svg = base64.b64decode(re.search(r"base64,([^\"]+)", html)[1]).decode()
    for words in ("Six", "mine", "right", "mine − right"):
        assert words in svg
    assert (
        shown.to_html()
        == labs.picture(yours, target, kind=kind, title="Six", xlabel="place", names=("mine", "right")).to_html()
    )
    broken = labs.picture(target * math.nan, target, kind=kind, title="Six")
    assert str(broken) == "Six: of 6 values of yours 6 are not finite."
    assert broken.to_html()


def test_yours_and_target_differ_by_more_than_colour():
    lines = labs.picture([1.0, 2.0], [1.0, 3.0]).figure.axes[0].lines
    assert len({line.get_linestyle() for line in lines}) == len({line.get_marker() for line in lines}) == 2
    bars = labs.picture([1.0], [3.0], kind="bars").figure.axes[0].patches
    assert [bar.get_facecolor()[3] for bar in bars] == [1, 0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[1.0]], [[1.0]]), r"a curve needs numbers in 1 dimension.*got shape \(1, 1\)"),
        (([], []), "at least one"),
        (([1.0], ["a"]), "target must be numbers"),
    ],
)
def test_targets_of_the_wrong_shape_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        labs.picture(*arguments)


@pytest.mark.parametrize(
    ("yours", "line"),
    [
        ([1.0], "Two: nothing to draw, mine has shape (1,), target (2,)."),
        (["a", "b"], "Two: nothing to draw, mine must be numbers, got list."),
        (None, "Two: nothing to draw, mine must be numbers, got NoneType."),
    ],
)
def test_what_cannot_be_drawn_is_said_in_one_line(yours, line):
    shown = labs.picture(yours, [1.0, 2.0], title="Two", names=("mine", "target"))
    assert shown._repr_mimebundle_() == {"text/plain": line}
    assert line in labs.live(lambda: shown).shown.value


def test_a_picture_after_a_failed_check_says_that_it_draws_other_inputs():
    note = "The check of square fails on other inputs than these."
    only_at_two = [{"x": 2.0}]
    assert not labs.agrees(square, abs_of, only_at_two)
    shown = labs.picture([1.0], [1.0], title="At one")
    assert str(shown) == f"At one: yours and target lie on each other, 1 values. {note}"
    assert shown.figure.get_suptitle() == f"At one\n{note}"
    assert labs.agrees(square, square, only_at_two)
    assert note in str(labs.picture([1.0], [1.0]))  # another check of it that holds does not make up for that one
    assert labs.agrees(abs_of, abs_of, only_at_two)
    assert note not in str(labs.picture([1.0], [1.0]))


def test_the_narrow_panel_has_room_for_its_labels():
    """No two labels of an axis touch, at ten to twelve bars with words of ten letters."""
    for count in (10, 11, 12):
        words = [f"word {i:05}" for i in range(count)]
        figure = labs.picture(np.ones(count), np.ones(count), kind="bars", x=words).figure
        FigureCanvasAgg(figure).draw()
        for axes in figure.axes:
            labels = [one for one in axes.get_xticklabels() if one.get_text()]
            places = [axes.transData.transform((x, 0))[0] for x in axes.get_xticks()]
            assert len(labels) >= 4
            size = labels[0].get_fontsize() * figure.dpi / 72
            turned = math.sin(math.radians(labels[0].get_rotation()))
            assert all(b - a > size / turned for a, b in pairwise(places))


def test_unknown_kind_and_missing_places_are_refused():
    with pytest.raises(ValueError, match="kind must be one of curve, bars, map, got 'pie'"):
        labs.picture([1.0], [1.0], kind="pie")
    with pytest.raises(ValueError, match="x has 1 places for 2 values"):
        labs.picture([1.0, 2.0], [1.0, 2.0], x=[0])


def test_controls_start_where_draw_says_and_call_it_at_every_change():
    calls = []

    def draw(batch_width=8, temperature=0.5, mask=True, source="b", rows=4):
        calls.append((batch_width, temperature, mask, source, rows))
        return f"{batch_width} < rows"

    live = labs.live(
        draw, batch_width=(2, 64), temperature=(0.1, 1.0, 0.1), mask=False, source=["a", "b"], rows=[2, 4, 8]
    )
    assert calls == [(8, 0.5, True, "b", 4)]
    kinds = [
        ipywidgets.IntSlider,
        ipywidgets.FloatSlider,
        ipywidgets.Checkbox,
        ipywidgets.Dropdown,
        ipywidgets.SelectionSlider,
    ]
    assert [type(control) for control in live.controls.values()] == kinds
    assert [control.description for control in live.controls.values()] == [
        "batch width",
        "temperature",
        "mask",
        "source",
        "rows",
    ]
    live.controls["batch_width"].value = 9
    live.controls["mask"].value = False
    live.controls["rows"].value = 8
    assert calls[1:] == [(9, 0.5, True, "b", 4), (9, 0.5, False, "b", 4), (9, 0.5, False, "b", 8)]
    assert "9 &lt; rows" in live.shown.value


def test_a_live_cell_shows_pictures_figures_and_words():
    figure = Figure()
    figure.subplots().set(title="A title", xlabel="x", ylabel="y")
    live = labs.live(lambda: (labs.picture([1.0], [1.0]), figure, "words"))
    assert live.shown.value.count("<img") == 2
    assert 'alt="A title. y by x"' in live.shown.value
    assert live.shown.value.endswith(">words</pre>")


def test_a_live_cell_outlives_unwritten_and_broken_functions():
    def draw(state="unwritten"):
        if state == "unwritten":
            unwritten(None, None)
        return {"broken": lambda: 1 / 0, "nothing": lambda: None, "fine": lambda: "fine"}[state]()

    live = labs.live(draw, state=["unwritten", "broken", "nothing", "fine"])
    assert live.shown.value == "<p><strong>○ Step 2 is not written yet: info_nce</strong></p>"
    said = []
    for state in ("broken", "nothing", "fine"):
        live.controls["state"].value = state
        said.append(re.sub("<[^>]+>", "", live.shown.value))
    assert said == ["ZeroDivisionError: division by zero", "nothing was returned to show", "fine"]


@pytest.mark.parametrize(
    ("controls", "message"),
    [
        ({"height": (1, 2)}, "draw has no parameter 'height'; it has width"),
        ({"width": (4, 2)}, "width needs min < max"),
        ({"width": (1, 4, 0)}, "width needs min < max"),
        ({"width": [3, 5]}, r"width starts at 2, which is not among its choices \[3, 5\]"),
        ({"width": "abc"}, "width must be a tuple"),
        ({"width": []}, "width must be a tuple"),
    ],
)
def test_wrong_controls_are_refused(controls, message):
    with pytest.raises(ValueError, match=message):
        labs.live(lambda width=2: str(width), **controls)
