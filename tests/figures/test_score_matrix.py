# ruff: noqa: E501  # scripts in one text
"""The score matrix: exact arithmetic on both sides, pixels and losses against torch, and who waits for whom."""

import base64
import gzip
import json
import math
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
import torch

from losslab import figures
from losslab.figures import FigureError, ScoreMatrix, _directions
from losslab.figures.score_matrix import SEED, TEMPERATURES

READY = "(start) => document.querySelector('.ll-canvas').dataset.shows?.startsWith(start)"


@pytest.fixture
def figure(score_data):
    return ScoreMatrix(**score_data)


def losses_of(queries, documents, dimension, temperature):
    """Per-row cross-entropy by torch in float64, on the first entries made unit length again."""
    q, p = (
        torch.nn.functional.normalize(torch.tensor(rows[:, :dimension], dtype=torch.float64))
        for rows in (queries, documents)
    )
    scores = q @ p.T
    rows = torch.nn.functional.cross_entropy(scores / temperature, torch.arange(len(q)), reduction="none")
    return scores.numpy(), rows.numpy()


def test_one_byte_an_entry_moves_a_cosine_by_less_than_it_says(score_data):
    random = np.random.default_rng(3)
    for rows in (
        np.asarray(score_data["queries"]),
        random.standard_normal((128, 384)),
        random.standard_normal((128, 384)) * 1e-9,
    ):
        others = np.roll(rows, 1, axis=0) + 0.1 * rows
        exact, _ = losses_of(rows, others, 384, 1)
        kept = _directions.cosines(_directions.quantised(rows), _directions.quantised(others), 384)
        error = np.abs(kept - exact)
        unit = [np.abs(x / np.linalg.norm(x, axis=1, keepdims=True)).max() for x in (rows, others)]
        assert np.sqrt((error**2).mean()) < max(unit) / 127 * math.sqrt(1 / 6)
        if rows.shape[1] == 384:
            assert error.max() < 0.003
        rough = np.rint(rows / np.abs(rows).max(axis=1, keepdims=True) * 7).astype(
            np.int8
        )  # planted: four bits an entry
        rough = np.abs(_directions.cosines(rough, _directions.quantised(others), 384) - exact)
        assert np.sqrt((rough**2).mean()) > max(unit) / 127 * math.sqrt(1 / 6)


def test_the_data_are_light_enough_for_a_page():
    random = np.random.default_rng(0)
    figure = ScoreMatrix(random.standard_normal((128, 384)), random.standard_normal((128, 384)))
    assert len(gzip.compress(figure.embeddings.encode())) <= 110_000


def test_page_and_python_have_the_same_numbers(figure, host):
    page = host(figure).page
    got = page.evaluate(
        """async ([embeddings, pairs, entries, seed]) => {
          const { randomPairs, rowCosines, unpack } = await import("/directions.js");
          const text = (rows) => { let s = ""; for (const v of rows) s += String.fromCharCode(v & 255); return btoa(s); };
          const real = unpack(embeddings, pairs, entries), random = randomPairs(1024, entries, seed);
          return {
            bytes: [real, random].map(({ queries, documents }) => [text(queries), text(documents)]),
            rows: [2, 16, entries].map((dims) => [...rowCosines(random, 700, 1024, dims)]),
          };
        }""",
        [figure.embeddings, figure.pairs, figure.entries, SEED],
    )
    random = _directions.random_pairs(1024, figure.entries, SEED)
    for mine, theirs in zip((figure._pairs, random), got["bytes"], strict=True):
        for rows, text in zip(mine, theirs, strict=True):
            assert rows.tobytes() == base64.b64decode(text)
    for dims, row in zip((2, 16, figure.entries), got["rows"], strict=True):
        exact, _ = losses_of(random[0].astype(float), random[1].astype(float), dims, 1)
        assert np.abs(np.array(row) - exact[700]).max() < 1e-14


def test_random_directions_point_anywhere():
    queries, documents = _directions.random_pairs(1024, 384, SEED)
    flat = _directions.cosines(queries, documents, 2)
    assert np.abs(flat).mean() == pytest.approx(2 / math.pi, abs=0.003)  # of two even angles
    for dims in (2, 16, 64, 384):
        found = _directions.cosines(queries, documents, dims)
        assert found.std() == pytest.approx(1 / math.sqrt(dims), rel=0.01)
        assert abs(found.mean()) < 3 / math.sqrt(dims) / 100
        assert np.isfinite(found).all()
    assert not np.array_equal(queries, documents)


ENGINE = """async ({ n, d, dims, queries, documents, wishes }) => {
  const { startEngine } = await import("/painter.js");
  const shades = Uint32Array.from({ length: 256 }, (_, i) => i), answers = [];
  let heard;
  const engine = startEngine([{ name: "given", n, d, dims, queries: Int8Array.from(queries), documents: Int8Array.from(documents) }], (done) => heard(done));
  for (const wish of wishes) {
    const answer = new Promise((done) => (heard = done));
    engine.wish({ ...wish, source: "given", shades });
    const { pixels, ...rest } = await answer;
    answers.push({ ...rest, pixels: [...new Uint32Array(pixels)] });
  }
  engine.end();
  return answers;
}"""


def pixels_of(scores, rows, wish):
    """What each pixel should show, cell by cell: the highest of its cells, on a scale of 0 to 255."""
    width, side, t = wish["width"], wish["side"], wish["temperature"]
    values = np.empty((width, width))
    for i in range(width):
        for j in range(width):
            if wish["share"]:
                p = math.exp((scores[i, j] - scores[i, i]) / t - rows[i])
                values[i, j] = math.log(p * width) / math.log(width) if p > 0 else -math.inf
            else:
                values[i, j] = (scores[i, j] + 1) / 2
    owner = [
        max(0, math.ceil((k + 1) * side / width) - 1) for k in range(width)
    ]  # the one pixel that a cell belongs to
    shown = np.full((side, side), -math.inf)
    for y in range(side):
        for x in range(side):
            if side >= width:
                shown[y, x] = values[y * width // side, x * width // side]
    if side < width:
        for i in range(width):
            for j in range(width):
                shown[owner[i], owner[j]] = max(shown[owner[i], owner[j]], values[i, j])
    return np.clip(shown, 0, 1) * 255


@pytest.mark.parametrize("worker", [True, False])
def test_losses_and_pixels_are_right(figure, host, worker):
    hosted = host(figure)
    if not worker:
        hosted.page.evaluate("() => { globalThis.Worker = class { constructor() { throw new Error('forbidden'); } }; }")
    random = np.random.default_rng(5)
    n, d, dims = 100, 24, [2, 8, 24]
    queries = random.integers(-127, 128, (n, d))
    documents = np.clip(queries + random.integers(-60, 60, (n, d)), -127, 127)
    wishes = [
        {"id": f"{width}-{dims}-{t}-{share}-{side}", "width": width, "dimension": dims, "temperature": t, "share": share, "side": side}
        for width, dims, t, share, side in (
            (2, 24, 0.05, False, 40), (2, 24, 1.0, True, 41), (7, 2, 0.05, False, 40), (33, 8, 0.01, True, 40),
            (64, 24, 0.05, True, 64), (100, 24, 0.05, False, 33), (100, 8, 0.2, True, 33), (100, 24, 0.07, True, 70), (16, 8, 0.5, False, 30),
        )
    ]  # fmt: skip
    given = {
        "n": n,
        "d": d,
        "dims": dims,
        "queries": queries.ravel().tolist(),
        "documents": documents.ravel().tolist(),
        "wishes": wishes,
    }
    for wish, answer in zip(wishes, hosted.page.evaluate(ENGINE, given), strict=True):
        width = wish["width"]
        scores, rows = losses_of(
            queries[:width].astype(float), documents[:width].astype(float), wish["dimension"], wish["temperature"]
        )
        assert answer["loss"] == pytest.approx(rows.mean(), rel=1e-5, abs=1e-5), wish
        assert answer["correct"] == pytest.approx((scores.argmax(axis=1) == np.arange(width)).mean()), wish
        shown, right = np.array(answer["pixels"]).reshape(wish["side"], -1), pixels_of(scores, rows, wish)
        assert np.abs(shown - right).max() <= 0.51, wish
        if wish["side"] < width:  # planted: the mean of the cells would be seen
            cells = np.abs(shown - pixels_of(scores - 0.05, rows, {**wish, "share": False})).max()
            assert cells > 0.51


def test_the_drawn_losses_are_those_of_torch(figure, host):
    hosted = host(figure)
    pairs = {"real": figure._pairs, "random": _directions.random_pairs(1024, figure.entries, SEED)}
    for source, width, t, dims, row in (
        ("real", 32, 0.05, 64, 5),
        ("random", 1024, 0.05, 64, 1000),
        ("random", 1024, 1.0, 2, 3),
    ):
        hosted.put(source=source, width=width, temperature=t, dimension=dims, row=row)
        _, rows = losses_of(*(rows[:width].astype(float) for rows in pairs[source]), dims, t)
        assert hosted.number("loss") == pytest.approx(rows[row - 1], abs=5.01e-4)
        hosted.page.wait_for_function(READY, arg=f"{source} {width} {dims} {t:g} ")
        found = float(re.search(r"mean ([\d.]+)", hosted.text("mean"))[1])
        assert found == pytest.approx(rows.mean(), abs=6e-4)
        assert f"mean {found:.3f}" in next(
            n.text for n in ET.fromstring(figure.svg()).iter() if n.text and "mean " in n.text
        )
    assert hosted.page.evaluate("performance.getEntriesByType('resource').length") <= 2


def test_loss_starts_at_ln_b_when_directions_are_orthogonal(score_data):
    """What the figure is for: at τ = 1 random directions cost ln B, the more exactly the more dimensions they have."""
    figure = ScoreMatrix(**score_data, source="random", temperature=1.0)
    figure.width = 1024
    off = []
    for dims in (2, 16, 64):
        figure.dimension = dims
        mean, _ = figure._batch_now
        off.append(abs(mean - math.log(1024)))
    assert off == sorted(off, reverse=True)
    assert off[-1] < 0.02


def canvas(page):
    """The pixels of the map, and where a cell's middle is in them."""
    size, pixels = page.evaluate("""() => {
      const map = document.querySelector('.ll-canvas');
      const copy = new OffscreenCanvas(map.width, map.height).getContext('2d', { willReadFrequently: true });
      copy.drawImage(map, 0, 0);
      return [map.width, [...copy.getImageData(0, 0, map.width, map.height).data]];
    }""")
    return np.array(pixels, dtype=np.uint8).reshape(size, size, 4)


def colour(page, name):
    text = page.evaluate(
        """(name) => { const p = document.querySelector('.ll-fig').appendChild(document.createElement('i'));
        p.style.color = `var(--ll-${name})`; const c = getComputedStyle(p).color; p.remove(); return c; }""",
        name,
    )
    return [int(v) for v in re.findall(r"\d+", text)[:3]]


def test_a_change_of_theme_paints_anew(host):
    unit = np.eye(8, 16)
    hosted = host(ScoreMatrix(unit, unit, width=8, dimension=16), color_scheme="light")
    page = hosted.page
    hosted.page.wait_for_function(READY, arg="real 8")
    seen = []
    for change in (
        "",
        "document.documentElement.dataset.theme = 'dark'",
        "document.documentElement.dataset.theme = 'light'",
    ):
        before = page.get_attribute(".ll-canvas", "data-shows")
        if change:
            page.evaluate(change)
            page.wait_for_function(
                "(before) => document.querySelector('.ll-canvas').dataset.shows !== before", arg=before
            )
        pixels = canvas(page)
        cell = len(pixels) // 8
        for (i, j), name in {(3, 3): "map-high", (3, 4): "map-middle"}.items():
            got = pixels[i * cell + cell // 2, j * cell + cell // 2, :3].astype(int)
            assert np.abs(got - colour(page, name)).max() <= 2, (change, name)
        seen.append(pixels[0, -1, :3].tolist())
    assert seen[0] == seen[2] != seen[1]
    page.emulate_media(color_scheme="dark")
    page.evaluate("delete document.documentElement.dataset.theme")
    page.wait_for_function("() => document.querySelector('.ll-canvas').dataset.shows.split(' ').at(-1) > 2")


def test_the_map_is_where_its_frame_is(figure, host):
    hosted = host(figure)
    for room in (320, 480, 600, 760):
        hosted.room(room)
        got = hosted.page.evaluate("""() => ['.ll-canvas', '[data-key="map-edge"]'].map((name) => {
          const { left, top, width } = document.querySelector(name).getBoundingClientRect(); return [left, top, width]; })""")
        assert got[0] == pytest.approx(got[1], abs=1.1), room


def test_a_row_is_picked_on_the_map(figure, host):
    hosted = host(figure)
    box = hosted.page.evaluate(
        "(() => { const { left, top, width } = document.querySelector('.ll-canvas').getBoundingClientRect(); return [left, top, width]; })()"
    )
    at = lambda row: (box[0] + 0.3 * box[2], box[1] + (row - 0.5) * box[2] / 32)  # noqa: E731
    hosted.page.mouse.click(*at(20))
    assert hosted.get("row") == [20]
    figure.row = 20
    assert hosted.says() == figure.describe()
    hosted.page.mouse.down()
    hosted.page.mouse.move(*at(27), steps=4)
    hosted.page.mouse.up()
    assert hosted.get("row") == [27]
    hosted.page.mouse.move(*at(3))  # not held: nothing
    hosted.page.mouse.click(box[0] + box[2] + 60, box[1] + 20)  # beside the map: nothing
    assert hosted.get("row") == [27]


def test_a_narrower_source_takes_width_and_row_along(figure, host):
    hosted = host(figure)
    hosted.page.get_by_label("random directions").check()
    hosted.put(source="random", width=1024, row=1000)
    hosted.page.get_by_label("a real batch").check()
    figure.source = "real"
    most = figure.pairs
    assert hosted.get("width", "row") == [most, most] == [figure.width, figure.row]
    assert hosted.says() == figure.describe()
    slider = hosted.page.get_by_role("slider", name="Batch width")
    slider.focus()
    hosted.page.keyboard.press("Home")
    assert hosted.get("width", "row") == [2, 2]
    figure.width = 2
    assert figure.row == 2
    assert hosted.page.get_by_role("slider", name="Row").get_attribute("max") == "2"


def test_an_old_picture_is_marked_until_the_new_one_is_there(figure, host):
    hosted = host(figure)
    hosted.page.wait_for_function(READY, arg="real 32")
    marked = hosted.page.evaluate("""() => {
      model.set('temperature', 0.2);
      const map = document.querySelector('.ll-canvas');
      return [map.className, document.querySelector('[data-key="map-pending"]')?.textContent, map.width > 1];
    }""")
    assert marked == ["ll-canvas ll-pending", "computing …", True]
    hosted.page.wait_for_function(READY, arg="real 32 64 0.2")
    assert hosted.page.get_attribute(".ll-canvas", "class") == "ll-canvas"
    assert hosted.page.query_selector('[data-key="map-pending"]') is None


@pytest.mark.parametrize(
    "forbid",
    [
        "delete globalThis.Worker",
        "globalThis.Worker = class { constructor() { throw new DOMException('no', 'SecurityError'); } }",
        "globalThis.Worker = class { postMessage() {} terminate() {} set onerror(f) { setTimeout(() => f(new Event('error', { cancelable: true })), 30); } }",
    ],
)
def test_without_a_worker_the_page_does_it(figure, host, forbid):
    with_worker, without = host(figure), host(figure)
    without.page.add_init_script(forbid)
    without.page.reload()
    for hosted in (with_worker, without):
        hosted.page.wait_for_function(READY, arg="real 32")
    assert np.array_equal(canvas(with_worker.page), canvas(without.page))
    assert [len(hosted.page.workers) for hosted in (with_worker, without)] == [1, 0]
    without.put(source="random", width=256)
    without.page.wait_for_function(READY, arg="random 256")


def test_from_a_file_there_is_a_worker_too(figure, host, tmp_path):
    hosted = host(figure)
    (tmp_path / "page.html").write_text(hosted.html, encoding="utf-8")
    hosted.page.unroute("**/*")
    hosted.page.goto((tmp_path / "page.html").as_uri())
    hosted.page.wait_for_function(READY, arg="real 32")
    assert len(hosted.page.workers) == 1


def test_taking_it_off_ends_the_worker(figure, host):
    hosted = host(figure)
    hosted.page.wait_for_function(READY, arg="real 32")
    hosted.page.evaluate("off()")
    hosted.page.wait_for_timeout(100)
    assert hosted.page.workers == []
    hosted.page.evaluate("model.set('temperature', 0.5)")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"queries": np.ones((4, 3))}, "queries are (4, 3) and documents"),
        ({"queries": np.ones(4)}, "queries must be 2 to 128 rows of 2 to 4096 numbers, not of shape (4,)"),
        ({"queries": np.ones((129, 4))}, "not of shape (129, 4)"),
        ({"documents": [["a", "b"], ["c", "d"]]}, "documents must be an array of numbers"),
        ({"queries": np.array([[1.0, 2], [math.nan, 1]])}, "queries[1] holds what is not finite"),
        ({"queries": np.array([[1.0, 2], [0, 0]])}, "queries[1] is all zeros: it has no direction"),
        ({"names": ["one"]}, "texts, one a pair, or none, not 1"),
        ({"names": [""] * 64}, "names must be"),
        ({"source": "both"}, 'source must be "real" or "random", not \'both\''),
        ({"width": 3}, "width must be one of [2, 4, 8, 16, 32, 64] with real vectors, not 3"),
        ({"width": 128}, "width must be one of [2, 4, 8, 16, 32, 64] with real vectors, not 128"),
        ({"width": 2048}, "width must be an int from 2 to 1024, not 2048"),
        ({"temperature": 0.06}, f"temperature must be one of {list(TEMPERATURES)}, not 0.06"),
        ({"dimension": 100}, "dimension must be one of [2, 4, 8, 16, 32, 64], not 100"),
        ({"row": 33}, "row must be an int from 1 to 32, the width of the batch, not 33"),
        ({"row": 0}, "row must be an int from 1 to 1024, not 0"),
        ({"colour": "red"}, 'colour must be "cosine" or "share", not \'red\''),
    ],
)  # fmt: skip
def test_bad_values_are_named(score_data, change, message):
    with pytest.raises(FigureError, match=re.escape(message)):
        ScoreMatrix(**{**score_data, **change})


def test_the_batch_is_given_once(figure, score_data):
    with pytest.raises(FigureError, match="names is given once"):
        figure.names = ["x"] * 64
    with pytest.raises(FigureError, match="pairs is given once"):
        figure.pairs = 4
    with pytest.raises(Exception, match="read-only"):
        figure.embeddings = "AAAA"
    tensors = {key: torch.tensor(np.asarray(score_data[key])) for key in ("queries", "documents")}
    assert ScoreMatrix(**{**score_data, **tensors}).describe() == figure.describe()
    unnamed = ScoreMatrix(score_data["queries"], score_data["documents"])
    assert "the query and its own document" in unnamed.describe()
    assert "document " in unnamed.describe()


LATENCY = """async (values) => {
  const input = document.querySelectorAll('#figure input[type=range]')[2], map = document.querySelector('.ll-canvas');
  const times = [], handlers = [];
  let longest = 0, last = performance.now(), ticking = true;
  (function tick() { const now = performance.now(); longest = Math.max(longest, now - last); last = now; if (ticking) setTimeout(tick, 0); })();
  await new Promise((done) => setTimeout(done, 700));
  const idle = longest; // how long the page waits on this machine when it has nothing to do
  longest = 0;
  for (let i = 0; i < 12; i++) {
    const before = map.dataset.shows, start = performance.now();
    input.value = values[i % values.length];
    input.dispatchEvent(new Event('input', { bubbles: true }));
    handlers.push(performance.now() - start);
    while (map.dataset.shows === before) await new Promise((done) => setTimeout(done, 1));
    times.push(performance.now() - start);
  }
  ticking = false;
  const middle = (list) => list.sort((a, b) => a - b)[6];
  return { map: middle(times), handler: middle(handlers), longest, idle };
}"""


@pytest.mark.timing
def test_a_thousand_rows_appear_at_once(figure, host, record_property):
    """At 1,024 wide, warm: the row within the event, the map within 150 ms of it, and no long task on the page."""
    hosted = host(figure)
    hosted.put(source="random", width=1024, row=900)
    hosted.page.wait_for_function(READY, arg="random 1024", timeout=60_000)
    rounds = []
    for _ in range(4):  # the machine may be busy with something else: the best of four
        got = hosted.page.evaluate(LATENCY, [2, 5, 8])
        rounds.append(got)
        if got["map"] <= 150 and got["handler"] <= 16 and got["longest"] <= 50 + got["idle"]:
            break
    record_property("measured", f"score_matrix at 1,024: {json.dumps({k: round(v, 1) for k, v in got.items()})} ms")
    assert got["map"] <= 150, rounds
    assert got["handler"] <= 16, rounds
    assert got["longest"] <= 50 + got["idle"], rounds


@pytest.mark.timing
def test_without_a_worker_input_is_not_blocked(figure, host, record_property):
    hosted = host(figure)
    hosted.page.add_init_script("delete globalThis.Worker")
    hosted.page.reload()
    hosted.put(source="random", width=1024, row=900)
    hosted.page.wait_for_function(READY, arg="random 1024", timeout=120_000)
    rounds = []
    for _ in range(4):
        got = hosted.page.evaluate(LATENCY, [2, 5, 8])
        rounds.append(got)
        if got["handler"] <= 16 and got["longest"] <= 50 + got["idle"]:
            break
    report = json.dumps({k: round(v, 1) for k, v in got.items()})
    record_property("measured", f"score_matrix at 1,024, no worker: {report} ms")
    assert got["handler"] <= 16, rounds
    assert got["longest"] <= 50 + got["idle"], rounds


@pytest.mark.timing
def test_a_page_that_does_it_all_at_once_is_seen(figure, host):
    """Planted fault: slices that wait for nothing, so that the page computes a whole map in one task."""
    hosted = host(figure)
    hosted.page.add_init_script(
        "delete globalThis.Worker; globalThis.requestIdleCallback = (slice) => queueMicrotask(slice)"
    )
    hosted.page.reload()
    hosted.put(source="random", width=1024, row=900)
    hosted.page.wait_for_function(READY, arg="random 1024", timeout=120_000)
    got = hosted.page.evaluate(LATENCY, [2, 5, 8])
    assert got["longest"] > 50 + got["idle"] or got["handler"] > 16, got


def test_module_and_bundle_hold_no_address_of_a_script():
    for text in (figures.compose("score_matrix"), figures.bundle(["score_matrix"])):
        assert "importScripts" not in text
        assert "http" not in text.replace("http://www.w3.org/", "")
