"""Every page of the built book, in a real browser."""

import gzip
import math

import pytest
from axe_playwright_python.sync_playwright import Axe

from books import page_names

PAGES = page_names()
UNFOLD = """() => {
  for (const fold of document.querySelectorAll("details")) fold.open = true;
  return new Promise(requestAnimationFrame).then(() => Promise.all(document.getAnimations().map((a) => a.finished)));
}"""
LIMIT = 400_000  # bytes, gzip -9, everything that a first visit loads


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", [*PAGES, "search.html"])
def test_page_is_quiet_and_accessible(address, reader, name, scheme):
    one = reader(color_scheme=scheme)
    page = one.open(address + name)
    assert one.errors == []
    assert [url for url in one.requests if not url.startswith((address, "data:", "blob:"))] == []
    assert page.evaluate("document.documentElement.dataset.theme") == scheme
    page.evaluate(UNFOLD)
    found = Axe().run(page).response["violations"]
    assert [(v["id"], [n["html"][:200] for n in v["nodes"]]) for v in found] == []


@pytest.mark.parametrize("name", [*PAGES, "search.html"])
def test_page_fits_a_phone(address, reader, name):
    one = reader(viewport={"width": 390, "height": 844})
    page = one.open(address + name)
    page.evaluate(UNFOLD)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    small = page.evaluate(SMALL_TEXT)
    assert small == [], "text under 12 px"
    assert [v["id"] for v in Axe().run(page).response["violations"]] == []


SMALL_TEXT = """() => {
  const walker = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT), small = [];
  for (let node; (node = walker.nextNode());) {
    const parent = node.parentElement;
    if (!node.textContent.trim() || !parent.getClientRects().length) continue;
    if (parent.closest(".katex, noscript, script, style")) continue;
    if (parseFloat(getComputedStyle(parent).fontSize) < 12) small.push(node.textContent.trim().slice(0, 40));
  }
  return small;
}"""


@pytest.mark.parametrize("name", [*PAGES, "search.html"])
def test_page_reads_from_a_file(real, reader, name):
    one = reader()
    page = one.open((real.site / name).as_uri())
    assert one.errors == []
    assert [url for url in one.requests if not url.startswith(("file:", "data:", "blob:"))] == []
    figures = page.locator(".ll-figure")
    assert page.locator(".ll-figure[data-live] svg").count() >= figures.count()


@pytest.mark.parametrize("name", PAGES)
def test_page_weight(address, browser, name, measure, request):
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    bodies = {}
    page.on("response", lambda r: bodies.__setitem__(r.url, len(gzip.compress(r.body(), 9))))
    page.goto(address + name, wait_until="networkidle")
    context.close()
    total = sum(bodies.values())
    measure(request.node, f"{name} weighs {total / 1000:.0f} KB on a first visit ({len(bodies)} files)")
    assert total <= LIMIT


def ghosts(width: int, a: float = 1.5, b: float = 0.3) -> tuple[float, float]:
    """Loss, and gradient of the lower document, of two documents and width - 2 slots whose exp(1e-16) is summed."""
    slots = (width - 2) * math.exp(1e-16)
    first, second = math.exp(a) + math.exp(b) + slots, math.exp(b) + slots
    return math.log(first) - a + math.log(second) - b, math.exp(b) / first + math.exp(b) / second - 1


def number(figure, key: str) -> float:
    return float(figure.locator(f'[data-key="{key}"]').text_content().replace("−", "-").replace("+", ""))


def test_the_padding_chapter_answers_the_keyboard(address, reader):
    page = reader().open(address + "book/padding.html")
    figure = page.locator('.ll-figure[data-figure="ghosts"]').first
    slider = figure.get_by_label("The other query’s list")
    slider.focus()
    page.keyboard.press("Home")
    seen = {}
    for width in range(2, 7):
        loss, gradient = ghosts(width)
        assert number(figure, "loss") == pytest.approx(loss, abs=5.1e-5)
        assert number(figure, "push-1-now") == pytest.approx(gradient, abs=5.1e-5)
        seen[width] = number(figure, "loss")
        page.keyboard.press("ArrowRight")
    assert [seen[w] for w in (2, 3, 4, 6)] == [0.2633, 0.9759, 1.4671, 2.1627]  # the numbers that the book is about
    assert ghosts(2)[1] > 0 > ghosts(3)[1]  # and the flip
    page.keyboard.press("Home")
    assert number(figure, "push-1-now") > 0


REDRAW = """async ([name, label]) => {
  const figure = document.querySelector(`.ll-figure[data-figure="${name}"]`);
  const slider = [...figure.querySelectorAll("label")].find((l) => l.textContent.includes(label)).control;
  const times = { redraw: [], frame: [], idle: [] };
  for (let i = 0; i < 120; i++) {
    let start = performance.now();
    await new Promise(requestAnimationFrame);
    times.idle.push(performance.now() - start);
    slider.value = String(Number(slider.max) - (i % 2)); // the widest setting and its neighbour
    start = performance.now();
    slider.dispatchEvent(new Event("input", { bubbles: true }));
    times.redraw.push(performance.now() - start);
    await new Promise(requestAnimationFrame);
    times.frame.push(performance.now() - start);
  }
  for (const name in times) times[name] = times[name].slice(20).sort((a, b) => a - b)[95];
  return times;
}"""


@pytest.mark.timing
def test_a_redraw_fits_into_a_frame(address, reader, measure, request):
    """p95 from input event to redrawn, and to the next frame, which is late by itself on a busy machine."""
    page = reader().open(address + "book/padding.html")
    best = {"redraw": float("inf")}
    for _ in range(6):  # other work on the machine only ever adds: one undisturbed run shows what the figure needs
        run = page.evaluate(REDRAW, ["ghosts", "other query"])
        run["late"] = max(1, run["idle"] / 17)  # an idle frame takes 1/60 s
        best = min(best, run, key=lambda one: one["redraw"])
        if run["redraw"] <= 4 and run["frame"] <= 20:
            best = run
            break
    redraw, frame, idle, late = (best[name] for name in ("redraw", "frame", "idle", "late"))
    measure(request.node, f"ghosts, widest: redraw p95 {redraw:.1f} ms, next frame {frame:.1f} ms (idle {idle:.1f} ms)")
    assert redraw <= 4 * late
    assert frame <= max(20, idle + 8 * late)
