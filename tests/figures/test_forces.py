# ruff: noqa: E501  # scripts in one text
"""Forces on the circle: formulas against torch, points moved by mouse, finger and keyboard, and what is refused."""

import math
import random
import re

import numpy as np
import pytest
import torch

from losslab.figures import FigureError, Forces
from losslab.figures._pulls import pulls

TEMPERATURES = (0.02, 0.05, 0.1, 0.3, 1.0)


def cases(count=60):
    generator = random.Random(3)
    for n in range(count):
        many = generator.randint(3, 10)
        angles = [generator.randrange(360) for _ in range(many)]
        lengths = [generator.randint(2, 14) / 10 for _ in range(many)]
        yield angles, lengths, generator.choice(TEMPERATURES), n % 2 == 0
    yield [0, 0, 180], [1.4, 1.4, 1.4], 0.02, True  # the positive has won: p = 1 − e^−100
    yield [0, 180, 0, 0], [1.4, 1.4, 1.4, 1.4], 0.02, False  # and has lost
    yield [10] * 8, [1.0] * 8, 0.02, True


def oracle(angles, lengths, temperature, normalize):
    """Loss, −τ ∂L/∂q document by document, and −τ ∂L/∂q, by autograd on the lines of the library's code."""
    radians = torch.deg2rad(torch.tensor(angles, dtype=torch.float64))
    points = torch.stack([radians.cos(), radians.sin()], dim=1)
    points = points * (1.0 if normalize else torch.tensor(lengths, dtype=torch.float64)[:, None])
    query, documents = points[0].clone().requires_grad_(), points[1:]

    def scores(q):
        return documents @ (torch.nn.functional.normalize(q, dim=0) if normalize else q)

    z = scores(query) / temperature
    loss = torch.nn.functional.cross_entropy(z[None], torch.tensor([0]))
    (by_score,) = torch.autograd.grad(loss, z, retain_graph=True)
    loss.backward()
    return loss.item(), -by_score[:, None] * documents, -temperature * query.grad, points[0]


def test_both_agree_with_torch(host):
    page = host(Forces()).page
    inputs = [list(case) for case in cases()]
    answers = page.evaluate(
        """async (inputs) => {
          const { pulls } = await import("/pulls.js");
          return inputs.map(([angles, lengths, temperature, normalize]) => {
            const got = pulls({ angles, lengths, temperature, normalize });
            return { loss: got.loss, forces: got.forces, step: got.step, portions: got.portions, units: got.units, unitStep: got.unitStep, turn: got.turn, stretch: got.stretch };
          });
        }""",
        inputs,
    )
    for case, answer in zip(inputs, answers, strict=True):
        angles, lengths, temperature, normalize = case
        loss, forces, step, query = oracle(*case)
        python = pulls(angles, lengths, temperature, normalize=normalize)
        across = torch.tensor([-query[1], query[0]]) / query.norm()
        for value in (answer["loss"], python.row.loss):
            assert value == pytest.approx(loss, abs=1e-12, rel=1e-12), case
        for mine in (answer["forces"], python.forces):
            assert np.asarray(mine) == pytest.approx(forces.numpy(), abs=1e-12), case
        assert answer["step"] == pytest.approx(step.tolist(), abs=1e-12), case
        for turn, stretch in ((answer["turn"], answer["stretch"]), python.step):
            assert turn == pytest.approx((step @ across).item(), abs=1e-12), case
            assert stretch == pytest.approx((step @ query / query.norm()).item(), abs=1e-12), case
        pushes = forces[1:].norm(dim=1)
        if pushes.sum() > 1e-9:  # not where float64 has nothing left to compare with
            for mine in (answer["portions"], python.portions):
                assert np.asarray(mine)[1:] == pytest.approx((pushes / pushes.sum()).numpy(), abs=1e-9), case
            for mine in (answer["units"], python.units):
                assert np.asarray(mine) == pytest.approx((forces / pushes.sum()).numpy(), abs=1e-7), case
            assert answer["unitStep"] == pytest.approx((step / pushes.sum()).tolist(), abs=1e-7), case
        assert math.isclose(sum(answer["portions"]), 1, rel_tol=1e-12)


def test_the_comparison_sees_a_missing_projection():
    """Planted fault: a unit query pushed along itself, as if its length could change."""
    case = ([0, 40, 300, 90], [1.0] * 4, 0.1, True)
    _, _, step, query = oracle(*case)
    unprojected = pulls(*case[:3], normalize=False).step
    assert abs(step @ query) < 1e-12
    assert abs(unprojected[1]) > 0.01


def test_cosine_sees_no_length_and_the_dot_product_does():
    angles, lengths = [60, 80, 20, 200], [0.5, 0.5, 1.0, 0.8]
    longer = [1.4, *lengths[1:]]
    cosine = [pulls(angles, r, 0.2, normalize=True).row.loss for r in (lengths, longer)]
    dot = [pulls(angles, r, 0.2, normalize=False).row for r in (lengths, longer)]
    assert cosine[0] == cosine[1]
    assert dot[0].rank == 2  # 1.0 cos 40° beats 0.5 cos 20°: the longer vector wins
    assert pulls(angles, lengths, 0.2, normalize=True).row.rank == 1
    won = [pulls(angles, [r, 1.4, 1.0, 0.8], 0.2, normalize=False).row.loss for r in (0.5, 0.8, 1.1, 1.4)]
    assert won == sorted(won, reverse=True)  # the positive leads: scaling the query alone lowers the loss


def middle(hosted, key):
    box = hosted.page.locator(f'#figure [data-point="{key}"]').bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def circle(hosted):
    """Middle and radius of the unit circle on the page."""
    box = hosted.page.locator('#figure [data-key="circle"]').bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, box["width"] / 2


def spot(hosted, degrees, length=1.0):
    x, y, r = circle(hosted)
    return x + length * r * math.cos(math.radians(degrees)), y - length * r * math.sin(math.radians(degrees))


def held_to(hosted):
    """Give Python the page's traits, where they are checked, and hold the page to what Python says."""
    for name in ("angles", "lengths", "temperature", "normalize", "chosen"):
        setattr(hosted.figure, name, hosted.get(name)[0])
    assert hosted.says() == hosted.figure.describe()


@pytest.mark.parametrize("width", [390, 792])
def test_handles_stand_on_their_points(host, width):
    hosted = host(Forces(), width=width, reduced_motion="reduce")
    for state in ({}, {"normalize": False}, {"angles": [5, 95, 185, 275, 45, 135, 225]}):
        hosted.put(**state)
        for k in range(7):
            box = hosted.page.locator(f'#figure [data-key="point-{k}-now"]').bounding_box()
            x, y = middle(hosted, k)
            assert (x, y) == pytest.approx((box["x"] + box["width"] / 2, box["y"] + box["height"] / 2), abs=0.6)
            assert hosted.page.locator(f'[data-point="{k}"]').bounding_box()["width"] >= 24
            if hosted.figure.normalize:
                assert (x, y) == pytest.approx(spot(hosted, hosted.figure.angles[k]), abs=1)


def test_points_are_dragged_with_the_mouse(host):
    hosted = host(Forces())
    mouse = hosted.page.mouse
    x, y = middle(hosted, 3)
    mouse.move(x + 5, y - 4)  # not its very middle: it does not jump
    mouse.down()
    assert hosted.get("angles") == [hosted.figure.angles]
    assert hosted.page.evaluate("document.querySelector('.ll-fig').classList.contains('ll-held')")
    ex, ey = spot(hosted, 300, 1.3)  # off the circle: it stays on it
    mouse.move((x + ex) / 2 + 5, (y + ey) / 2 - 4)
    mouse.move(ex + 5, ey - 4)
    assert hosted.get("angles", "chosen") == [[62, 97, 28, 300, 170, 215, 320], 3]
    assert hosted.get("lengths") == [hosted.figure.lengths]
    assert middle(hosted, 3) == pytest.approx(spot(hosted, 300), abs=1)
    mouse.up()
    assert not hosted.page.evaluate("document.querySelector('.ll-fig').classList.contains('ll-held')")
    mouse.move(x, y)  # let go is let go
    assert hosted.get("angles")[0][3] == 300
    held_to(hosted)
    hosted.put(normalize=False)
    x, y = middle(hosted, 0)
    mouse.move(x, y)
    mouse.down()
    mouse.move(*spot(hosted, 200, 0.5))
    assert [hosted.get("angles")[0][0], hosted.get("lengths")[0][0]] == [200, 0.5]
    mouse.move(*spot(hosted, 90, 4.0))  # far outside: the longest there is
    assert [hosted.get("angles")[0][0], hosted.get("lengths")[0][0]] == [90, 1.4]
    mouse.move(*spot(hosted, 90, 0.01))
    assert hosted.get("lengths")[0][0] == 0.2
    mouse.up()
    held_to(hosted)
    assert hosted.page.locator("#figure label", has_text="Length of the query").count() == 1
    hosted.page.get_by_role("button", name="Reset").click()
    assert hosted.get("angles", "lengths", "normalize", "chosen") == [
        list(Forces().angles),
        list(Forces().lengths),
        True,
        0,
    ]


def test_points_are_dragged_with_a_finger_and_the_page_scrolls_elsewhere(host):
    hosted = host(Forces(), width=390, has_touch=True)
    hosted.page.evaluate("document.querySelector('.ll-stage').scrollIntoView()")
    session = hosted.context.new_cdp_session(hosted.page)

    def touch(kind, *points):
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x, "y": y} for x, y in points]})

    start, end = middle(hosted, 1), spot(hosted, 250)
    touch("touchStart", start)
    for part in (0.3, 0.6, 1):
        touch("touchMove", (start[0] + part * (end[0] - start[0]), start[1] + part * (end[1] - start[1])))
    touch("touchEnd")
    hosted.page.wait_for_function("model.get('angles')[1] === 250")
    held_to(hosted)
    assert hosted.page.eval_on_selector(".ll-handle", "node => getComputedStyle(node).touchAction") == "none"
    assert hosted.page.eval_on_selector(".ll-stage", "node => getComputedStyle(node).touchAction") == "auto"


def test_points_are_moved_by_keyboard(host):
    hosted = host(Forces())
    handle = hosted.page.locator('#figure [data-point="1"]')
    assert handle.get_attribute("role") == "slider"
    assert handle.get_attribute("aria-valuetext") == "positive at 97°"
    handle.focus()
    press = hosted.page.keyboard.press
    for key, degrees in [
        ("ArrowRight", 98), ("ArrowUp", 99), ("ArrowLeft", 98), ("ArrowDown", 97), ("Shift+ArrowRight", 102), ("Shift+ArrowDown", 97),
        ("PageUp", 112), ("PageDown", 97), ("End", 180), ("Home", 0), ("ArrowLeft", 359), ("PageUp", 14), ("a", 14),
    ]:  # fmt: skip
        press(key)
        assert hosted.get("angles")[0][1] == degrees, key
        assert handle.get_attribute("aria-valuenow") == str(degrees)
        held_to(hosted)
    assert handle.get_attribute("aria-valuetext") == "positive at 14°"
    hosted.put(normalize=False)
    assert handle.get_attribute("aria-valuetext") == "positive at 14°, length 0.9"
    for key, length in [
        ("Shift+ArrowUp", 1.0),
        ("Shift+ArrowRight", 1.1),
        ("Shift+ArrowDown", 1.0),
        ("Shift+ArrowLeft", 0.9),
    ]:
        press(key)
        assert (hosted.get("lengths")[0][1], hosted.get("angles")[0][1]) == (length, 14), key
        held_to(hosted)
    for _ in range(12):
        press("Shift+ArrowDown")
    assert hosted.get("lengths")[0][1] == 0.2
    press("Tab")
    assert hosted.get("chosen") == [2]  # what comes into focus is what the length slider is about
    slider = hosted.page.get_by_label("Length of negative A")
    assert slider.input_value() == "0.7"
    slider.focus()
    press("End")
    assert hosted.get("lengths")[0][2] == 1.4
    outline = hosted.page.locator('#figure [data-point="4"]')
    outline.focus()
    press("ArrowUp")
    assert outline.evaluate("node => getComputedStyle(node).outlineStyle") == "solid"


def test_shares_and_numbers_are_those_of_the_formula(host):
    hosted = host(Forces())
    for state in ({}, {"temperature": 0.5}, {"normalize": False}):
        hosted.put(**state)
        figure = hosted.figure
        loss, forces, _, _ = oracle(figure.angles, figure.lengths, figure.temperature, figure.normalize)
        assert hosted.number("loss") == pytest.approx(loss, abs=5.01e-5)
        pushes = forces[1:].norm(dim=1)
        for j, part in enumerate((pushes / pushes.sum()).tolist(), start=1):
            assert hosted.number(f"row-{j}-part-text") == pytest.approx(100 * part, abs=0.501)
        shown = sum(hosted.number(f"row-{j}-p-text") for j in range(6))
        assert shown == pytest.approx(100, abs=0.31)


def test_arrows_are_as_long_as_their_shares(host):
    """In "shares" an arrow's length is its share; in "forces" it is τ |∂L/∂q|: measured on the drawn path."""
    hosted = host(Forces(), reduced_motion="reduce")
    length = """key => {
      const points = document.querySelector(`[data-key="${key}"]`).getAttribute("d").match(/-?[\\d.]+/g).map(Number);
      const [ax, ay, , , , , tx, ty] = points, [bx, by] = points.slice(-2);
      return Math.hypot(tx - (ax + bx) / 2, ty - (ay + by) / 2);
    }"""
    for arrows in ("shares", "forces"):
        hosted.put(arrows=arrows, temperature=0.2)
        now = pulls(hosted.figure.angles, hosted.figure.lengths, 0.2, normalize=True)
        right = [math.hypot(*v) for v in (now.units if arrows == "shares" else now.forces)]
        drawn = [hosted.page.evaluate(length, f"arrow-{j}") for j in range(3)]
        assert drawn[1] / drawn[0] == pytest.approx(right[1] / right[0], abs=0.01)
        assert drawn[2] / drawn[0] == pytest.approx(right[2] / right[0], abs=0.01)


def test_labels_keep_clear_of_points(host):
    """Names in the plane touch no point, wherever the points are (as long as they do not crowd)."""
    hosted = host(Forces(), reduced_motion="reduce", width=390)
    generator = random.Random(5)
    for _ in range(30):
        angles = [(generator.randrange(40) + 50 * k) % 360 for k in range(7)]
        generator.shuffle(angles)
        hosted.put(angles=angles, temperature=generator.choice(TEMPERATURES), normalize=generator.random() < 0.5)
        bad = hosted.page.evaluate("""() => {
          const box = (node) => node.getBoundingClientRect(), all = (query) => [...document.querySelectorAll(query)];
          const meet = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top + 3 < b.bottom - 3 && b.top + 3 < a.bottom - 3;
          const names = all('[data-key^=word-], [data-key$=-name]').filter((node) => /^(word|arrow|step)/.test(node.dataset.key));
          const points = all('rect[data-key$=-now]');
          return names.flatMap((name) => points.filter((point) => meet(box(name), box(point))).map((point) => name.textContent + point.dataset.key));
        }""")
        assert bad == [], angles


@pytest.mark.parametrize(
    ("traits", "message"),
    [
        ({"temperature": 0.04}, "Forces: temperature must be one of 0.02, 0.03, 0.05"),
        ({"temperature": math.nan}, "Forces: temperature must be one of 0.02, 0.03, 0.05, 0.07, 0.1, 0.16, 0.2, 0.3, 0.5, 0.7, 1.0, not nan"),
        ({"temperature": True}, "Forces: temperature must be one of"),
        ({"arrows": "long"}, "Forces: arrows must be one of 'shares', 'forces', not 'long'"),
        ({"chosen": 7}, "Forces: chosen must be a point from 0 to 6, not 7"),
        ({"angles": [0, 360, 20]}, "Forces: angles must be whole degrees from 0 to 359, not 360"),
        ({"angles": [0, 1.5, 20]}, "Forces: angles[1] must be an int of 0 or more, not 1.5"),
        ({"angles": [0, 20]}, "Forces: angles must be of a query, a positive and 1 to 8 negatives, not 2 numbers"),
        ({"lengths": [1.0] * 6}, "Forces: lengths must hold one number for each of the 7 angles, not 6"),
        ({"lengths": [1.0] * 6 + [1.5]}, "Forces: lengths must be from 0.2 to 1.4, not 1.5"),
        ({"lengths": [math.inf] * 7}, "Forces: lengths[0] must be a finite number, not inf"),
    ],
)  # fmt: skip
def test_a_bad_value_is_named(traits, message):
    with pytest.raises(FigureError, match=re.escape(message)):
        Forces(**traits)


def test_other_numbers_of_negatives(host):
    few = Forces(angles=[10, 30, 200])
    assert few.lengths == [0.8, 0.9, 0.7]
    assert "the 1 negative counts as 1.0" in few.describe()
    hosted = host(few)
    assert hosted.says() == few.describe()
    with pytest.raises(
        FigureError, match=re.escape("angles must stay 3 numbers, not 4; build another figure for more")
    ):
        few.angles = [10, 30, 200, 220]
    assert few.angles == [10, 30, 200]
    many = host(Forces(angles=[0, 40, 80, 120, 160, 200, 240, 280, 320, 359], lengths=[0.75] * 10), width=390)
    assert many.page.locator("#figure .ll-handle").count() == 10
    assert many.figure.lengths[0] == 0.8


@pytest.mark.timing
def test_a_drag_is_drawn_within_a_frame(host, slowness, record_property):
    """From the pointer's event to the last change of the page, p95 of 200 moves of two traits each: a quarter of a frame."""
    hosted = host(Forces(normalize=False))
    script = """() => {
      const grip = document.querySelector('[data-point="0"]'), box = grip.getBoundingClientRect(), times = [];
      const at = (type, x, y) => grip.dispatchEvent(new PointerEvent(type, { pointerId: 1, clientX: x, clientY: y, bubbles: true }));
      grip.setPointerCapture = () => {};
      at("pointerdown", box.x + 18, box.y + 18);
      for (let i = 0; i < 230; i++) {
        const start = performance.now();
        at("pointermove", box.x - 120 + 100 * Math.cos(i / 9), box.y + 90 + 100 * Math.sin(i / 9));
        if (i >= 30) times.push(performance.now() - start);
      }
      at("pointerup", 0, 0);
      return times.sort((a, b) => a - b)[Math.ceil(0.95 * times.length) - 1];
    }"""
    rounds = []
    for attempt in range(6):  # the machine may be busy with something else
        hosted.page.wait_for_timeout(3000 * (attempt > 0))
        before = slowness(hosted.page)
        rounds.append((hosted.page.evaluate(script), (before + slowness(hosted.page)) / 2))
        took, slow = rounds[-1]
        if took <= 4 * slow:
            break
    record_property("measured", f"forces: a move of a dragged point redraw p95 {took:.1f} ms (slow {slow:.2f})")
    assert took <= 4 * slow, rounds
