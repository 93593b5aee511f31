# ruff: noqa: E501  # scripts in one text
"""A padded batch of texts: every way to score it against slow loops over logits and torch, the cell chosen, what is refused."""

import itertools
import math
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
import torch

from losslab.figures import FigureError, TokenBatch
from losslab.figures._amounts import amount
from losslab.figures.token_batch import ticks

WAYS = list(
    itertools.product(
        ("right", "left"), ("none", "once", "twice"), ("both", "labels", "wrong"), (False, True), (False, True)
    )
)
NAMES = ("side", "shift", "mask", "numerator", "denominator")
PAD = 3


@pytest.fixture
def figure(batch_data):
    return TokenBatch(**batch_data)


class Model:
    """A recurrent network of random weights over four tokens; it reads whatever stands before, padding too."""

    def __init__(self, seed):
        torch.manual_seed(seed)
        self.look = torch.nn.Embedding(4, 5)
        self.body = torch.nn.GRU(5, 6, batch_first=True)
        self.head = torch.nn.Linear(6, 4)

    def __call__(self, batch):
        with torch.no_grad():
            hidden, _ = self.body(3 * self.look(torch.tensor(batch)))
            return torch.log_softmax(3 * self.head(hidden).double(), -1)


def slow(model, texts, width, side, shift, mask, numerator, denominator):
    """Sum and count over one batch, prediction by prediction from the logits of the whole batch."""
    ids = [["abc".index(letter) for letter in text] for text in texts]
    pads = [[PAD] * (width - len(row)) for row in ids]
    batch = [row + pad if side == "right" else pad + row for row, pad in zip(ids, pads, strict=True)]
    real = [[i != PAD for i in row] for row in batch]
    taken = [row[::-1] if mask == "wrong" else row for row in real]  # padding on the other side
    logs, total, count = model(batch), 0.0, 0
    step = ("none", "once", "twice").index(shift)
    for r, row in enumerate(batch):
        for p in range(width - step):
            keep = taken[r][p + step] and (mask == "labels" or taken[r][p])
            if keep or numerator:
                total -= logs[r, p, row[p + step]].item()
            if keep or denominator:
                count += 1
    return total, count


def truth(model, texts):
    """Corpus perplexity of the texts, each scored alone: no batch, no padding, no mask."""
    total = count = 0
    for text in texts:
        ids = torch.tensor(["abc".index(letter) for letter in text])
        total += torch.nn.functional.nll_loss(model([ids.tolist()])[0, :-1], ids[1:], reduction="sum").item()
        count += len(text) - 1
    return math.exp(total / count)


def test_every_way_to_score_agrees_with_loops_over_logits(host):
    random = np.random.default_rng(3)
    for seed in range(2):
        model = Model(seed)
        texts = ["".join(random.choice(list("abc"), n)) for n in ((9, 4, 6), (3, 11))[seed]]
        ids = [["abc".index(letter) for letter in text] for text in texts]
        figure = TokenBatch.from_model(texts, model, pad=PAD, ids=ids, most=3)
        hosted = host(figure)
        right = truth(model, texts)
        for n, way in enumerate(WAYS):
            extra = n % 4
            hosted.put(extra=extra, **dict(zip(NAMES, way, strict=True)))
            total, count = slow(model, texts, max(map(len, texts)) + extra, *way)
            how = re.fullmatch(r"exp\(([\d.]+) nats summed ÷ (\d+) counted\)", hosted.text("ppl-how"))
            assert float(how[1]) == pytest.approx(total, abs=0.011), way
            assert int(how[2]) == count, way
            assert hosted.text("ppl") == amount(math.exp(figure._score(extra).mean)), way
            assert figure._score(extra).mean == pytest.approx(total / count, abs=1e-4), way
            assert math.exp(figure._score(extra).right_mean) == pytest.approx(right, rel=1e-4)
            assert hosted.text("ppl-should").endswith(f"= {amount(math.exp(figure._score(extra).right_mean))}")
            assert hosted.says() == figure.describe(), way


def test_the_right_way_is_the_truth_at_every_width():
    """A model that skips the padding: side and amount of padding move nothing. One that reads it is told on."""
    model, texts = Model(5), ["abcabcab", "cab", "baacb"]
    ids = [["abc".index(letter) for letter in text] for text in texts]

    def skipping(batch):
        out = torch.zeros(len(batch), len(batch[0]), 4, dtype=torch.float64)
        for r, row in enumerate(batch):
            start = next(i for i, token in enumerate(row) if token != PAD)
            out[r, start:] = model([row[start:]])[0]
        return out

    right = truth(model, texts)
    for score, reads in ((skipping, False), (model, True)):
        figure = TokenBatch.from_model(texts, score, pad=PAD, ids=ids, most=4, denominator=False)
        for side in ("right", "left"):
            figure.side = side
            for extra in range(5):
                figure.extra = extra
                told = figure.describe()
                if side == "left" and reads:
                    assert told.startswith("A model that reads the pads: perplexity reads "), told
                    continue
                assert math.exp(figure._score(extra).mean) == pytest.approx(right, rel=1e-4)
                assert told.endswith(f"perplexity is {amount(right)}, as for each text alone."), told


def simple(**traits):
    """Costs that can be added by hand: 1 nat a token, 6 a pad; two columns more at most."""

    def table(side, width):
        rows = []
        for long in (6, 3):
            real = [q < long if side == "right" else q >= width - long for q in range(width)]
            rows.append([1.0 if one else 6.0 for one in real])
        return [rows] * 3

    return TokenBatch(
        texts=["abcdef", "xyz"], right=table("right", 10), left=[table("left", 6 + e) for e in range(5)], **traits
    )


def test_known_numbers_of_padding():
    """Seven real predictions of 1 nat; at width 10 four pads follow the long text and seven the short one, at 6 nats each."""
    right = math.e
    for numerator, denominator, mean in (
        (False, False, 1),
        (True, True, (7 + 66) / 18),
        (False, True, 7 / 18),
        (True, False, (7 + 66) / 7),
    ):
        figure = simple(numerator=numerator, denominator=denominator)
        assert figure._score(4).mean == pytest.approx(mean)
        assert math.exp(figure._score(4).right_mean) == pytest.approx(right)
    assert simple().describe() == (
        "Pads in the denominator only: perplexity reads 1.48 instead of 2.72, and the model looks better than it is."
    )
    assert simple(numerator=True, denominator=False).describe() == (
        f"Pads in the numerator only: perplexity reads {math.exp(73 / 7):,.0f} instead of 2.72, and the model looks worse than it is."
    )
    leak = simple(side="left", mask="labels", denominator=False)
    assert leak._score(4).count == 9  # the first token of both texts, predicted from a pad
    assert leak.describe() == "A mask of the label alone: perplexity reads 2.72, as it should, which is chance."
    wrong = simple(side="left", mask="wrong", denominator=False, extra=4)
    assert "A mask for padding on the right: perplexity reads" in wrong.describe()
    # Of ten places it keeps the first six and three: three pads and two letters of the long text, two pads of the short one.
    assert (wrong._score(4).sum, wrong._score(4).count) == (3 * 6 + 2 * 1 + 2 * 6, 7)


def test_the_first_state_shows_numbers_that_flatter(figure, host):
    hosted = host(figure)
    assert (figure.extra, figure.denominator) == (6, True)
    assert "looks better than it is" in hosted.says()
    assert hosted.text("ppl-verdict") == "too low: it flatters"
    told = [float(re.search(r"reads ([\d.]+)", hosted.says())[1])]
    for extra in range(5, -1, -1):
        hosted.put(extra=extra)
        told.append(float(re.search(r"reads ([\d.]+)", hosted.says())[1]))
    assert told == sorted(told)  # the wider somebody else's text, the better the model looks


def marks(hosted, kind):
    """How many boxes the path of one kind of padding holds, over all rows."""
    paths = hosted.page.query_selector_all(f'[data-key$="-pads-{kind}"]')
    return sum(max(0, path.get_attribute("d").count("Z")) for path in paths)


def test_marks_are_what_is_summed_and_counted(figure, host):
    hosted = host(figure)
    for way in WAYS[::5] + WAYS[1::7]:
        hosted.put(extra=4, **dict(zip(NAMES, way, strict=True)))
        cells = [cell for row in figure._score(4).rows for cell in row]
        pads = [cell for cell in cells if cell.token is None]
        assert marks(hosted, "counted") == sum(cell.counted for cell in pads), way
        assert marks(hosted, "left-out") == sum(not cell.counted for cell in pads), way
        assert marks(hosted, "bars-summed") == sum(cell.summed for cell in pads), way
        looks = [
            tile.get_attribute("class")
            for tile in hosted.page.query_selector_all('[data-key$="-tile"]:not([data-key^=key])')
        ]
        real = [cell for cell in cells if cell.token is not None]
        assert looks.count("ll-good ll-thick") == sum(cell.counted and cell.aim is not None for cell in real), way
        assert looks.count("ll-good ll-counted-wrong") == sum(cell.counted and cell.aim is None for cell in real), way
        assert looks.count("ll-right-outline ll-dashed ll-thick") == sum(
            not cell.counted and cell.aim is not None for cell in real
        ), way
        bars = hosted.page.query_selector_all('[data-key^="cell-"][data-key$="-bar"]')
        high = sum(
            float(bar.get_attribute("height")) for bar in bars if bar.get_attribute("class") in ("ll-best", "ll-wrong")
        )
        most = max(itertools.chain(*itertools.chain(*itertools.chain(*figure.left)), *itertools.chain(*figure.right)))
        own = [cell for cell in real if cell.summed and not cell.pads]
        assert high == pytest.approx(sum(max(1, cell.nll * 52 / most) for cell in own), abs=0.01), way


def test_the_curve_is_the_number_at_every_width(figure, host):
    hosted = host(figure, reduced_motion="reduce")
    for way in WAYS[::11]:
        hosted.put(**dict(zip(NAMES, way, strict=True)))
        at = {}
        for text in hosted.page.query_selector_all('[data-key^="curve-y-tick-"]'):
            y = text.evaluate("n => new DOMMatrix(getComputedStyle(n).transform).f - 4.5")
            at[float(text.get_attribute("data-key").removeprefix("curve-y-tick-"))] = y
        (a, ya), (b, yb) = min(at.items()), max(at.items())
        if a == b:
            continue
        for extra in range(7):
            y = float(hosted.page.get_attribute(f'[data-key="curve-{extra}"]', "cy"))
            assert a + (y - ya) * (b - a) / (yb - ya) == pytest.approx(figure._score(extra).mean, abs=1e-4), (
                way,
                extra,
            )


def test_ticks_are_round_few_and_between():
    for low, high in ((0.1, 0.9), (1.2, 6.1), (0.4, 30.0), (-2, 0.5), (3.0, 3.5)):
        got = ticks(low, high)
        assert 1 <= len(got) <= 5
        for at, text in got:
            assert low <= at <= high
            if "10" not in text or "," in text:
                assert float(text.replace(",", "")) == pytest.approx(math.exp(at), rel=1e-3)
    assert ticks(9.3, 14.0)[-1][1] == "10⁶"


def test_the_cell_says_what_meets_what(figure, host):
    hosted = host(figure)

    def words():
        return [node.text_content() for node in hosted.page.query_selector_all('[data-key^="chosen-"]')]

    told = " ".join(words())
    assert (
        told
        == f"“t”, place 4 of text 1: {figure.right[1][0][3]:.2f} nats The logits of place 3, after “r”, meet the label of place 4. Summed and counted, as it should be."
    )
    hosted.put(row=3, place=6)  # a pad after "clip"
    assert "A pad, place 6 of text 3" in " ".join(words())
    assert words()[-1] == "Counted, not summed; it should be neither."
    hosted.put(shift="none", row=1, place=1)
    assert "The logits of place 1, after “s”, meet that very label." in " ".join(words())
    assert words()[-1] == "Summed and counted; it should be neither."
    hosted.put(shift="once")
    assert words()[-1] == "Neither summed nor counted, as it should be."
    hosted.put(shift="twice", place=2)
    assert "Its logits are sought where the text has not begun." in " ".join(words())
    assert hosted.page.query_selector('[data-key="meets"]') is None


def test_a_cell_is_reached_by_keys_and_by_pointer(figure, host):
    hosted = host(figure)
    grip = hosted.page.get_by_role("slider", name="Text 1: place")
    grip.focus()
    for key, want in [
        ("ArrowRight", [1, 5]),
        ("ArrowDown", [2, 5]),
        ("End", [2, 19]),
        ("ArrowRight", [2, 19]),
        ("Home", [2, 1]),
    ]:
        hosted.page.keyboard.press(key)
        assert hosted.get("row", "place") == want, key
    assert hosted.page.evaluate("document.activeElement.getAttribute('aria-valuetext')").startswith(
        "1: “m”, place 1 of text 2"
    )
    for _ in range(4):
        hosted.page.keyboard.press("ArrowUp")
    assert hosted.get("row", "place") == [1, 1]
    tile = hosted.page.query_selector('[data-key="cell-2-2-tile"]').bounding_box()
    hosted.page.mouse.click(tile["x"] + 5, tile["y"] + 5)
    assert hosted.get("row", "place") == [3, 3]
    hosted.page.mouse.click(4, tile["y"])  # beside the batch
    assert hosted.get("row", "place") == [3, 3]
    box = hosted.page.query_selector(".ll-handle").bounding_box()
    hosted.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    hosted.page.mouse.down()
    hosted.page.mouse.move(box["x"] + 200, box["y"] - 150, steps=4)
    hosted.page.mouse.up()
    assert hosted.get("row")[0] < 3
    assert hosted.get("place")[0] > 3
    hosted.page.get_by_role("button", name="Reset").click()
    assert hosted.get("row", "place") == [1, 4]


def test_a_place_beyond_a_narrower_batch_is_its_last(figure, host):
    hosted = host(figure)
    hosted.put(place=19)
    hosted.put(extra=0)
    assert "place 13 of text 1" in hosted.text("chosen-head")
    assert "place 13 of text 1" in figure._words(figure._score(0))[0]
    hosted.page.query_selector(".ll-handle").focus()
    hosted.page.keyboard.press("ArrowLeft")
    assert hosted.get("place") == [12]


def test_no_switch_is_idle(figure, host):
    """In every state, each other choice that is offered changes what is drawn or said; the mask is offered only while it is asked."""
    hosted = host(figure)
    shown = "document.querySelector('.ll-live').textContent + document.querySelector('#figure svg[role=img]').innerHTML"
    values = {
        "side": ("right", "left"),
        "shift": ("none", "once", "twice"),
        "mask": ("both", "labels", "wrong"),
        "numerator": (False, True),
        "denominator": (False, True),
    }
    for extra in (0, 6):
        for way in WAYS:
            state = dict(zip(NAMES, way, strict=True))
            hosted.put(extra=extra, **state)
            before = hosted.page.evaluate(shown)
            asked = not (state["numerator"] and state["denominator"])
            assert hosted.page.evaluate("[...document.querySelectorAll('fieldset')].map((f) => f.disabled)") == [
                False,
                False,
                not asked,
                False,
                False,
            ]
            for name, options in values.items():
                if name == "mask" and not asked:
                    continue
                for value in options:
                    if value != state[name]:
                        hosted.page.evaluate("([k, v]) => model.set(k, v)", [name, value])
                        assert hosted.page.evaluate(shown) != before, (extra, state, name, value)
                hosted.page.evaluate("([k, v]) => model.set(k, v)", [name, state[name]])


def test_planted_faults_are_seen(batch_data):
    """The slow loop above is not what the figure computes: each fault in the figure's sums would differ from it."""
    model, texts = Model(0), ["abcabcabc", "cab"]
    ids = [["abc".index(letter) for letter in text] for text in texts]
    figure = TokenBatch.from_model(texts, model, pad=PAD, ids=ids, most=3)
    total, count = slow(model, texts, 12, "right", "once", "both", False, True)
    assert figure._score(3).mean == pytest.approx(total / count, abs=1e-4)
    for way in WAYS:
        if way != ("right", "once", "both", False, True) and way != ("right", "once", "labels", False, True):
            other, n = slow(model, texts, 12, *way)
            assert abs(other / n - total / count) > 1e-3, way
    shifted = [[[0.0, *row[:-1]] for row in table] for table in batch_data["right"]]  # a column late
    late = TokenBatch(**{**batch_data, "right": shifted})
    assert late.describe() != TokenBatch(**batch_data).describe()


def test_the_twin_shows_its_state(batch_data):
    svg = "{http://www.w3.org/2000/svg}"
    for way in WAYS[::9]:
        figure = TokenBatch(**batch_data, **dict(zip(NAMES, way, strict=True)))
        root = ET.fromstring(figure.svg())
        texts = [node.text for node in root.iter(f"{svg}text")]
        batch = figure._score(6)
        assert amount(math.exp(batch.mean)) in texts
        assert (
            f"should be exp({batch.right_sum:.2f} ÷ {batch.right_count}) = {amount(math.exp(batch.right_mean))}"
            in texts
        )
        assert figure._rule() in texts
        assert root.attrib["aria-label"] == f"What a perplexity counts. {figure.describe()}"
        for letter in "sortanaymeanfwclip":
            assert letter in texts


SHORT = {"texts": ["abcdef", "xyz"], "right": np.ones((3, 2, 7)), "left": [np.ones((3, 2, 6)), np.ones((3, 2, 7))]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"texts": ["abcdef"]}, "texts must be two to four, not 1"),
        ({"texts": ["abcdef", "x\ny"]}, r"texts must be printable characters, one a token, not 'x\ny'"),
        ({"texts": ["abcdef", "xy"]}, "texts must be of 3 tokens or more, the longest at least 3 more than the shortest, not [6, 2]"),
        ({"texts": ["abcdef", "wxyz"]}, "the longest at least 3 more than the shortest, not [6, 4]"),
        ({"left": []}, "left must hold one table for each of 1 to 19 numbers of added columns, so that no batch is wider than 24, not 0"),
        ({"left": [np.ones((3, 2, 6 + e)) for e in range(20)]}, "so that no batch is wider than 24, not 20"),
        ({"right": np.ones((3, 2, 6))}, "right must have shape (3, 2, 7): shifts, texts, places"),
        ({"right": np.ones((2, 2, 7))}, "right must have shape (3, 2, 7)"),
        ({"left": [np.ones((3, 2, 6)), np.ones((3, 2, 6))]}, "left[1] must have shape (3, 2, 7)"),
        ({"right": -np.ones((3, 2, 7))}, "right must be costs in nats of 0 or more, not -1.0"),
        ({"right": np.full((3, 2, 7), math.nan)}, "right[0][0][0] must be a finite number, not nan"),
        ({"extra": 2}, "extra must be from 0 to 1, not 2"),
        ({"row": 3}, "row must be from 1 to 2, not 3"),
        ({"place": 0}, "place must be an int from 1 to 24, not 0"),
        ({"side": "top"}, "side must be one of 'right', 'left', not 'top'"),
        ({"shift": 1}, "shift must be one of 'none', 'once', 'twice', not 1"),
        ({"mask": True}, "mask must be one of 'both', 'labels', 'wrong', not True"),
    ],
)  # fmt: skip
def test_bad_values_are_named(change, message):
    TokenBatch(**SHORT)
    with pytest.raises(FigureError, match=re.escape(message)):
        TokenBatch(**{**SHORT, **change})


def test_a_bad_model_is_named():
    texts = ["abcdef", "xyz"]

    def build(log_probs, **more):
        return TokenBatch.from_model(texts, log_probs, pad=0, **more)

    def of(value, shape=(256,)):
        return lambda batch: np.full((len(batch), len(batch[0]), *shape), value)

    assert (
        build(of(-math.log(256)), denominator=False).describe().endswith("perplexity is 256, as for each text alone.")
    )
    with pytest.raises(FigureError, match=re.escape("log_probs must return shape (2, 12, V), not (2, 12)")):
        build(of(-1.0, ()))
    for value in (math.nan, -math.inf, 2.5):
        with pytest.raises(FigureError, match=f"log_probs must be finite and at most 0, not {value}"):
            build(of(value))
    with pytest.raises(FigureError, match=re.escape("'abcdef' must have one token a character, not 2 of 6")):
        build(of(-1.0), ids=[[1, 2], [1, 2, 3]])


def test_measured_data_are_needed_and_given_once(batch_data, figure):
    with pytest.raises(TypeError, match=r"TokenBatch shows what was measured and needs texts, right, left$"):
        TokenBatch()
    with pytest.raises(FigureError, match="texts is given once; build another figure"):
        figure.texts = ["abc", "abcdef"]
    arrays = {
        "texts": batch_data["texts"],
        "right": np.array(batch_data["right"]),
        "left": [torch.tensor(t) for t in batch_data["left"]],
    }
    assert TokenBatch(**arrays).describe() == figure.describe()
