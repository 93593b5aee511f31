"""Every control that a page shows does what it says."""

import pytest

from books import page_names


@pytest.fixture
def page(address, reader):
    one = reader()
    page = one.open(address + "book/status.html")
    yield page
    assert one.errors == []


@pytest.fixture
def phone(address, reader):
    return reader(viewport={"width": 390, "height": 844}).open(address + "book/status.html")


def test_theme_switch_goes_round_and_is_remembered(page, address):
    seen = []
    for _ in range(3):
        page.locator(".theme-switch-button").click()
        seen.append(page.evaluate("[document.documentElement.dataset.mode, document.documentElement.dataset.theme]"))
    assert {mode for mode, _ in seen} == {"light", "dark", "auto"}
    assert {theme for _, theme in seen} == {"light", "dark"}
    while page.evaluate("document.documentElement.dataset.mode") != "dark":
        page.locator(".theme-switch-button").click()
    page.goto(address + "book/index.html")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


# Every control of a figure, used once: which of them changed nothing that a reader could see or hear?
IDLE = """async () => {
  const idle = [];
  const settle = async () => { for (let i = 0; i < 4; i++) await new Promise(requestAnimationFrame); };
  for (const figure of document.querySelectorAll(".ll-figure[data-live]")) {
    const all = (selector) => figure.querySelectorAll(selector);
    const shown = () => figure.querySelector(".ll-live").textContent + figure.querySelector("svg[role=img]").innerHTML;
    const tell = (control, kind) => control.dispatchEvent(new Event(kind, { bubbles: true }));
    const use = async (control, act) => {
      const before = shown();
      act(control);
      await settle();
      const name = control.labels?.[0]?.textContent || control.ariaLabel || control.textContent;
      if (shown() === before) idle.push(`${figure.dataset.figure}: ${name}`);
    };
    for (const slider of all("input[type=range]:not(:disabled)"))
      await use(slider, () => {
        slider.value = slider.valueAsNumber === Number(slider.max) ? slider.min : slider.max;
        tell(slider, "input");
      });
    for (const radio of all("input[type=radio]:not(:checked):not(:disabled)")) await use(radio, () => radio.click());
    for (const select of all("select"))
      await use(select, () => {
        select.selectedIndex = select.options.length - 1;
        tell(select, "change");
      });
    await use(figure.querySelector(".ll-reset"), (button) => button.click());
  }
  return { idle, figures: document.querySelectorAll(".ll-figure[data-live]").length };
}"""


@pytest.mark.parametrize("name", page_names())
def test_no_control_of_a_figure_does_nothing(address, reader, name):
    one = reader()
    page = one.open(address + name)
    for figure in page.locator(".ll-figure").all():
        figure.scroll_into_view_if_needed()
    found = page.evaluate(IDLE)
    assert found["idle"] == []
    assert found["figures"] == page.locator(".ll-figure").count()
    assert one.errors == []


def test_an_idle_control_is_found(address, reader):
    """The guard above can fail: a slider without a figure behind it."""
    page = reader().open(address + "book/padding.html")
    page.locator(".ll-figure").first.scroll_into_view_if_needed()
    slider = "Object.assign(document.createElement('input'), { type: 'range', ariaLabel: 'planted' })"
    page.evaluate(f"document.querySelector('.ll-figure[data-live]').append({slider})")
    assert [what for what in page.evaluate(IDLE)["idle"] if "planted" in what]


def test_figures_follow_the_theme(address, reader):
    page = reader().open(address + "book/padding.html")
    ink = "getComputedStyle(document.querySelector('.ll-fig text')).fill"
    light = page.evaluate(ink)
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    assert page.evaluate(ink) != light


def test_search_opens_by_key_and_finds(page):
    page.keyboard.press("Control+k")
    page.locator("#pst-search-dialog input").fill("ghost")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search.html?q=ghost*")
    result = page.locator("#search-results a[href*='padding.html']").first
    result.wait_for()
    assert "ghost" in result.text_content().lower()


def test_search_button_opens_the_dialog(page):
    page.locator(".search-button__button:visible").first.click()
    assert page.locator("#pst-search-dialog").is_visible()
    page.keyboard.press("Escape")
    assert not page.locator("#pst-search-dialog").is_visible()


def test_sidebar_hides_and_comes_back(page):
    sidebar = page.locator("#pst-primary-sidebar")
    for shown in (False, True):
        page.locator(".primary-toggle").click()
        page.wait_for_timeout(400)
        assert sidebar.is_visible() is shown


def test_fullscreen(page):
    page.locator(".btn-fullscreen-button").click()
    page.wait_for_function("document.fullscreenElement !== null")


def test_downloads_lead_somewhere(page):
    page.get_by_role("button", name="Download this page").click()
    links = page.locator(".dropdown-download-buttons a")
    assert links.count() >= 1
    for link in links.all():
        assert link.is_visible()
        assert page.request.get(link.evaluate("a => a.href")).status == 200
    page.evaluate("window.print = () => { window.printed = true }")
    page.locator(".dropdown-download-buttons .btn-download-pdf-button").click()
    assert page.evaluate("window.printed")


def test_menus_open_on_a_phone(phone):
    phone.locator(".primary-toggle").click()
    assert phone.locator("#pst-primary-sidebar-modal").get_by_role("link", name="Status").is_visible()
    phone.keyboard.press("Escape")
    phone.locator(".secondary-toggle").click()
    assert phone.locator("#pst-secondary-sidebar-modal").get_by_role("link", name="Libraries").is_visible()


def test_every_icon_is_in_the_font(page):
    """A glyph that the cut-down font lacks would be as wide as whatever stands in for it, from another font."""
    widths = page.evaluate(
        """() => [...document.querySelectorAll("[class*='fa-']")].filter((i) => i.getClientRects().length).map((i) => {
          const code = getComputedStyle(i, "::before").content.replaceAll('"', "");
          return [i.className, code.length, document.fonts.check(`900 16px "Font Awesome 6 Free"`, code)];
        })"""
    )
    assert widths
    assert [w for w in widths if w[1] != 1 or not w[2]] == []


def test_a_wide_box_scrolls_alone_and_takes_the_focus(little, reader):
    page = reader(viewport={"width": 390, "height": 844}).open(little.address + "figures.html")
    page.wait_for_function("document.querySelectorAll('[aria-label$=\"scrolls sideways\"]').length >= 2")
    for name in ("Formula, scrolls sideways", "Table, scrolls sideways"):
        box = page.get_by_label(name).first
        box.focus()
        assert box.evaluate("b => b === document.activeElement && b.scrollWidth > b.clientWidth")
        page.keyboard.press("ArrowRight")
        page.wait_for_function("b => b.scrollLeft > 0", arg=box.element_handle())


def test_a_formula_is_seen_from_its_beginning(little, reader):
    page = reader(viewport={"width": 390, "height": 844}).open(little.address + "figures.html")
    inside = page.evaluate(
        """() => { const box = document.querySelector("div.math"), ink = box.querySelector(".katex-html .base");
          return ink.getBoundingClientRect().left - box.getBoundingClientRect().left; }"""
    )
    assert inside >= -1


def test_answers_fold_without_a_script(little, reader):
    page = reader(java_script_enabled=False).open(little.address + "figures.html")
    fold = page.locator("details.ll-fold")
    answer = fold.get_by_text("It is folded")
    assert not answer.is_visible()
    fold.locator("summary").focus()
    page.keyboard.press("Enter")
    assert answer.is_visible()
    assert fold.locator("summary .katex").count() == 1


def test_pages_without_javascript_read_well(address, reader):
    page = reader(java_script_enabled=False).open(address + "book/padding.html")
    assert page.locator("article h1").is_visible()
    assert page.locator("html").get_attribute("data-theme") == "light"
    assert page.locator(".ll-figure img").count() == page.locator(".ll-figure").count() > 0
