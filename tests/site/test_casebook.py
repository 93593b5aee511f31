"""The casebook in a real browser: found by symptom, by topic, by address; and a build that fails where it would lie."""

from dataclasses import replace

import pytest
import yaml

from books import ROOT, small_book
from losslab.mistakes import get
from losslab_book import casebook

PAGE = (ROOT / "book" / "casebook.md").read_text(encoding="utf-8")
STUB = "# A chapter\n\nSee [an entry](casebook.md#{entry}).\n"
CHAPTERS = {page: STUB.format(entry="no-shift") for _, page in casebook.TOPICS.values()}


@pytest.fixture(scope="module")
def cases(tmp_path_factory, serving):
    """A book of the casebook and of chapters that point at it."""
    book = small_book(tmp_path_factory.mktemp("cases"), {"book/casebook": PAGE, **CHAPTERS})
    result = book.build()
    assert result.code == 0, result.log[-3000:]
    book.address = serving(book.html) + "book/"
    return book


@pytest.fixture
def page(cases, reader):
    one = reader()
    yield one.open(cases.address + "casebook.html")
    assert one.errors == []
    assert all(address.startswith(cases.address.removesuffix("book/")) for address in one.requests)


def left(page):
    """Ids of the entries that are shown."""
    page.wait_for_timeout(50)
    return page.evaluate("[...document.querySelectorAll('section.ll-case')].filter((e) => !e.hidden).map((e) => e.id)")


def count(page):
    return page.locator("#ll-cases-left").inner_text()


def test_a_symptom_in_plain_words_finds_its_entries(page):
    everything = left(page)
    assert count(page) == f"All {len(everything)} entries."
    page.fill("#ll-cases-words", "perplexity is suddenly inf")
    found = left(page)
    assert "log-of-softmax" in found
    assert 0 < len(found) < len(everything) / 2
    assert count(page).startswith(f"{len(found)} of {len(everything)} entries.")
    page.fill("#ll-cases-words", "inf")
    assert {"listmle-overflow", "log-of-softmax", "exp-overflow"} <= set(left(page))
    assert "infonce-symmetric" not in left(page)  # InfoNCE is no number
    page.fill("#ll-cases-words", "my loss is suddenly nan")
    found = left(page)
    assert {"listmle-nan-gradient", "plistmle-one-document", "token-zero-times-inf"} <= set(found)
    assert len(found) < len(everything) / 4
    assert all("nan" in page.locator(f"#{one}").inner_text().lower() for one in found)
    assert count(page) == f"{len(found)} of {len(everything)} entries. No entry has “suddenly”; left out."
    page.fill("#ll-cases-words", "zebra")
    assert left(page) == []
    assert "No entry has “zebra”." in count(page)


def test_a_topic_leaves_its_entries_alone(page):
    page.select_option("#ll-cases-topic", "matryoshka")
    found = left(page)
    assert {"mrl-not-renormalised", "pca-inner-product"} <= set(found)
    assert "no-shift" not in found
    page.fill("#ll-cases-words", "centring")
    assert set(left(page)) < set(found)


def test_the_keyboard_alone(page):
    page.focus("#ll-cases-words")
    page.keyboard.type("underflow")
    some = left(page)
    assert some
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "ll-cases-topic"
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert len(left(page)) > len(some)
    assert page.input_value("#ll-cases-words") == ""


def test_a_link_shows_its_entry_whatever_was_sought(page):
    page.select_option("#ll-cases-topic", "matryoshka")
    assert "no-shift" not in left(page)
    page.evaluate("location.hash = '#no-shift'")
    page.wait_for_timeout(100)
    assert page.locator("#no-shift").is_visible()
    assert page.evaluate("Math.abs(document.getElementById('no-shift').getBoundingClientRect().top) < innerHeight")


def test_an_address_leads_to_its_entry(cases, reader):
    one = reader(viewport={"width": 390, "height": 800})
    page = one.open(cases.address + "perplexity.html")
    page.locator("article a[href='casebook.html#no-shift']").click()
    page.wait_for_url("**/casebook.html#no-shift")
    page.wait_for_function("document.querySelector('#ll-cases-left').textContent.startsWith('All')")
    assert 0 <= page.evaluate("document.getElementById('no-shift').getBoundingClientRect().top") < 400
    page.select_option("#ll-cases-topic", "matryoshka")
    assert "no-shift" not in left(page)
    for move in (page.go_back, page.go_forward):
        page.wait_for_load_state("networkidle")  # who leaves earlier breaks off what is still on its way
        move()
    page.wait_for_load_state("networkidle")
    assert page.locator("#no-shift").is_visible()
    assert one.errors == []


def test_chapters_link_to_an_entry(cases):
    html = cases.read("book/perplexity.html")
    assert 'href="casebook.html#no-shift"' in html


def test_without_javascript_everything_stands_there(cases, reader):
    one = reader(java_script_enabled=False)
    page = one.open(cases.address + "casebook.html")
    assert page.locator("section.ll-case").count() > 60
    assert all(entry.is_visible() for entry in page.locator("section.ll-case").all())
    assert not page.locator("form.ll-cases").is_visible()
    assert one.errors == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_does_not_scroll_sideways(cases, reader, scheme):
    one = reader(viewport={"width": 390, "height": 800}, color_scheme=scheme)
    page = one.open(cases.address + "casebook.html")
    for details in page.locator(".ll-case-code").all():
        details.evaluate("(e) => { e.open = true; }")
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
    assert one.errors == []


PLANT = """\
from dataclasses import replace

from losslab.mistakes import MISTAKES

MISTAKES["no_shift"] = replace(MISTAKES["no_shift"], example=None)


def setup(app):
    return {}
"""


def test_a_link_to_no_entry_and_a_case_without_numbers_fail_the_build(tmp_path):
    texts = {"book/casebook": PAGE, **CHAPTERS, "book/padding": STUB.format(entry="no-such-case")}
    book = small_book(tmp_path, texts)
    (tmp_path / "plant.py").write_text(PLANT, encoding="utf-8")
    config = yaml.safe_load((tmp_path / "_config.yml").read_text(encoding="utf-8"))
    config["sphinx"]["local_extensions"]["plant"] = str(tmp_path)
    (tmp_path / "_config.yml").write_text(yaml.safe_dump(config), encoding="utf-8")
    result = book.build()
    assert result.code != 0
    faults = result.log[result.log.index("not fit to publish") :]
    assert "book/padding.md: the casebook has no entry 'no-such-case'" in faults
    assert "losslab.mistakes.no_shift: it has the case 'no-shift' and no example" in faults


def test_a_case_without_numbers_is_named():
    with pytest.raises(casebook.CaseError, match="no example"):
        casebook.entry("no-shift", replace(get("no_shift"), example=None))
    with pytest.raises(casebook.CaseError, match="shows no difference"):
        casebook.entry("no-shift", replace(get("no_shift"), wrong=casebook._right(get("no_shift"))))
    with pytest.raises(casebook.CaseError, match=r"its topic must be one of contrastive, .*, got 'cooking'"):
        casebook.entry("no-shift", replace(get("no_shift"), topic="cooking"))
    with pytest.raises(casebook.CaseError, match="it breaks 'shifts', and no token contract is called so"):
        casebook.entry("no-shift", replace(get("no_shift"), breaks="shifts"))
    with pytest.raises(casebook.CaseError, match="an entry 'no-shift' already"):
        casebook.identify([get("no_shift")] * 2)


def test_of_two_mistakes_with_one_case_the_second_goes_by_its_name():
    anchors = casebook.identify([get("listmle_overflow"), get("listmle_epsilon")])
    assert {anchor: mistake.name for anchor, mistake in anchors.items()} == {
        "listmle-overflow": "listmle_overflow",
        "listmle-epsilon": "listmle_epsilon",
    }


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (0.26328246733, "0.2633"),
        (5.1528e-9, "5.153 × 10⁻⁹"),
        ([-0.5, 2], "(−0.5, 2)"),
        (780.9999999, "781"),
        (-1.85e-17, "0"),
        (float("-inf"), "−inf"),
        (float("nan"), "nan"),
        ("OverflowError", "OverflowError"),
    ],
)
def test_numbers_as_a_reader_sees_them(value, written):
    assert casebook.number(value) == written
