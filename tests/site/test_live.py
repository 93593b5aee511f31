"""Figures on static pages: hosted without a kernel, sharing a model, failing alone, and still without JavaScript."""

import json
import math
import re

import pytest

from losslab_book import live

SLIDER = "The other query’s list"


def ghosts(width: int, a: float = 1.5, b: float = 0.3) -> tuple[float, float]:
    """Loss, and gradient of the lower document, of two documents and width - 2 slots whose exp(1e-16) is summed."""
    slots = (width - 2) * math.exp(1e-16)
    first, second = math.exp(a) + math.exp(b) + slots, math.exp(b) + slots
    return math.log(first) - a + math.log(second) - b, math.exp(b) / first + math.exp(b) / second - 1


def number(view, key: str) -> float:
    return float(view.locator(f'[data-key="{key}"]').text_content().replace("−", "-").replace("+", ""))


def test_one_model_for_two_views_and_another_for_the_third(little, reader):
    page = reader().open(little.address + "figures.html")
    first, second, third = (page.locator(".ll-figure").nth(i) for i in range(3))
    assert number(second, "loss") == pytest.approx(ghosts(6)[0], abs=5e-5)
    first.get_by_label(SLIDER).focus()
    page.keyboard.press("End")
    assert number(first, "loss") == number(second, "loss") == pytest.approx(ghosts(12)[0], abs=5e-5)
    assert number(third, "loss") == pytest.approx(ghosts(3)[0], abs=5e-5)


def test_page_carries_traits_once_and_no_kernel_machinery(little):
    html = little.read("figures.html")
    states = [json.loads(s) for s in re.findall(r'<script type="application/json">(.*?)</script>', html)]
    assert [state["width"] for state in states] == [6, 3]
    assert not re.search(r"require(\.min)?\.js|html-manager|embed-amd|vnd\.jupyter\.widget|_esm|mathjax", html, re.I)
    host = next((little.html / "_static" / "losslab").glob("host.*.js"))
    assert host.stat().st_size < 4096


def test_scripts_are_deferred_hashed_and_only_where_there_is_a_figure(little):
    html, plain = little.read("figures.html"), little.read("index.html")
    assert re.search(r'<script defer="defer" src="_static/losslab/figures\.[0-9a-f]{10}\.js', html)
    assert "losslab/figures." not in plain
    assert "losslab/host." not in plain
    assert "katex" in html
    assert "katex" not in plain


def test_a_broken_figure_says_so_shows_its_twin_and_leaves_the_others(little, reader):
    one = reader()
    html = little.read("figures.html").replace('data-figure="ghosts"', 'data-figure="nosuch"', 1)
    one.page.route("**/figures.html", lambda route: route.fulfill(body=html, content_type="text/html"))
    page = one.open(little.address + "figures.html")
    broken, whole = page.locator(".ll-figure").nth(0), page.locator(".ll-figure").nth(1)
    assert "cannot answer" in broken.get_by_role("alert").text_content()
    broken.locator("img").scroll_into_view_if_needed()
    page.wait_for_function("document.querySelector('.ll-figure img').naturalWidth > 0")
    assert number(whole, "loss") == pytest.approx(ghosts(6)[0], abs=5e-5)


def test_without_the_bundle_every_figure_shows_its_twin(little, reader):
    one = reader()
    one.page.route("**/losslab/figures.*.js*", lambda route: route.abort())
    page = one.open(little.address + "figures.html")
    assert page.get_by_role("alert").count() == 3
    assert page.locator(".ll-figure img").count() == 3


def test_without_javascript_the_twin_stands_there_with_its_words(little, reader):
    page = reader(java_script_enabled=False).open(little.address + "figures.html")
    figure = page.locator(".ll-figure").first
    twin = figure.locator("img")
    twin.scroll_into_view_if_needed()
    assert twin.is_visible()
    assert twin.bounding_box()["height"] > 200
    words = twin.get_attribute("alt")
    assert "2.163" in words or "2.1627" in words
    assert figure.locator(".ll-words").text_content() == words
    assert page.locator(".theme-switch-button, .search-button__button").locator("visible=true").count() == 0


def test_the_twin_weighs_nothing_where_scripts_run(little, reader):
    one = reader()
    page = one.open(little.address + "figures.html")
    page.mouse.wheel(0, 20_000)
    page.wait_for_timeout(300)
    twins = set(re.findall(r'class="ll-twin"[^>]*src="_images/([^"]+)"', little.read("figures.html")))
    assert twins
    assert not [url for url in one.requests if url.rsplit("/", 1)[-1] in twins]


def test_every_figure_has_a_name_and_a_caption(little, reader):
    page = reader().open(little.address + "figures.html")
    for figure in page.get_by_role("figure").all():
        assert figure.get_attribute("aria-label")
        assert figure.locator("figcaption").text_content().strip()


def test_figures_also_work_from_a_file(little, reader):
    one = reader()
    page = one.open((little.html / "figures.html").as_uri())
    page.locator(".ll-figure").first.get_by_label(SLIDER).focus()
    page.keyboard.press("Home")
    assert number(page.locator(".ll-figure").first, "loss") == pytest.approx(ghosts(2)[0], abs=5e-5)
    assert one.errors == []


@pytest.mark.parametrize("value", [float("nan"), [1.0, float("inf")], {"a": [float("-inf")]}])
def test_traits_that_json_cannot_say_are_seen(value):
    assert not live._finite(value)


@pytest.mark.parametrize("value", [1, 0.5, "nan", [1, [2.0]], {"a": None}, True])
def test_traits_that_json_can_say_pass(value):
    assert live._finite(value)
