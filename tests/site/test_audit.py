"""The audit's page: every committed row is told, bugs first, and it can be read on a phone and without a mouse."""

import shutil
from collections import Counter
from html import escape, unescape

import pytest
from axe_playwright_python.sync_playwright import Axe

from books import ROOT, small_book
from losslab.measure import read
from losslab_book import audit

PAGE = (ROOT / "book" / "audit.md").read_text(encoding="utf-8")
ROWS = read(ROOT / "data" / "measured" / "audit.csv")[0]
MADE_UP = [
    {
        "library": "lib",
        "version": "1",
        "loss": "sentence_transformers.cross_encoder.losses:SomeLoss",
        "options": "k=<3>",
        "kind": "listwise",
        "promise": promise,
        "verdict": verdict,
        "reason": reason,
        "upstream": "",
        "counterexample": counterexample,
    }
    for promise, verdict, reason, counterexample in (
        ("padding", "kept", "", ""),
        ("scale", "by design", "It is meant <so>.", "went in 1 < 2"),
        ("rows", "by design", "It is meant <so>.", "went in 3"),
        ("device", "unchecked", "no device", ""),
        ("order", "broken", "A slip.", "came out nan"),
    )
] + [{**dict.fromkeys(audit.VERDICTS, ""), "library": "lib", "version": "1", "loss": "a.b:Other", "options": ""}]
MADE_UP[-1] |= {
    "kind": "",
    "promise": "",
    "verdict": "not driven",
    "reason": "It wants a teacher.",
    "counterexample": "",
}


@pytest.fixture(scope="module")
def book(tmp_path_factory, serving):
    root = tmp_path_factory.mktemp("audit")
    made = small_book(root, {"book/audit": PAGE, "book/casebook": "# Casebook\n\nNothing here.\n"})
    shutil.copy(ROOT / "book" / "references.bib", root / "book" / "references.bib")
    result = made.build()
    assert result.code == 0, result.log[-3000:]
    made.address = serving(made.html) + "book/audit.html"
    return made


def test_every_verdict_stands_in_the_table_of_its_loss(book, reader):
    page = reader().open(book.address)
    for way in audit.by_loss(row for row in ROWS if row["verdict"] != "not driven"):
        row = page.locator(f"tr#{audit.anchor(way[0])}")
        assert row.count() == 1
        keeps, breaks = (cell.evaluate("e => e.textContent") for cell in row.locator("td").all())
        for one in way:
            assert one["promise"] in (breaks if one["verdict"] in audit.TOLD else keeps)
            if one["verdict"] in audit.TOLD:
                assert one["reason"] in breaks
                assert one["counterexample"] in breaks
    told = page.locator(".ll-audit-bugs").evaluate("e => e.textContent")
    assert all(row["reason"] in told for row in ROWS if row["verdict"] == "broken")
    left_out = page.locator(".ll-audit-undriven").evaluate("e => e.textContent")
    for row in ROWS:
        if row["verdict"] == "not driven":
            assert row["reason"] in left_out
            assert audit.name_of(row) in left_out


def test_the_counts_are_those_of_the_file(book, reader):
    page = reader().open(book.address)
    shown = page.locator(".ll-audit-summary tbody tr").all()
    for ((library, version), same), row in zip(audit.by_library(ROWS), shown, strict=True):
        assert row.locator("th").inner_text().split() == [library, version]
        got = [int(cell) for cell in row.locator("td").all_inner_texts()]
        verdicts = Counter(row["verdict"] for row in same)
        driven = {row["loss"] for row in same if row["kind"]}
        assert got == [len({row["loss"] for row in same}), len(driven), *(verdicts[one] for one in audit.VERDICTS)]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_reads_it_all_without_scrolling_sideways(book, reader, scheme):
    one = reader(viewport={"width": 390, "height": 844}, color_scheme=scheme)
    page = one.open(book.address)
    page.evaluate("document.querySelectorAll('.ll-audit details').forEach((e) => { e.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    wide = "(es) => es.filter((e) => e.scrollWidth > e.clientWidth + 1).length"
    assert page.locator(".ll-audit-part, .ll-audit pre").evaluate_all(wide) == 0
    assert [(v["id"], v["nodes"][0]["html"][:200]) for v in Axe().run(page).response["violations"]] == []
    assert one.errors == []


def test_a_desktop_reads_it_too(book, reader):
    page = reader().open(book.address)
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280
    assert [(v["id"], v["nodes"][0]["html"][:200]) for v in Axe().run(page).response["violations"]] == []
    page.locator(".ll-audit-bugs a").first.click()
    target = page.evaluate("location.hash")
    assert page.locator(f"tr{target}").count() == 1


def test_what_shares_a_sentence_stands_together():
    html = audit.losses(("lib", "1"), MADE_UP)
    assert html.count(escape("It is meant <so>.")) == 1
    assert "2 counterexamples" in html
    assert html.index("A slip.") < html.index("It is meant")  # bugs first
    assert "<so>" not in html
    assert "went in 1 < 2" in unescape(html)
    assert "<3>" not in html
    assert audit.tally(MADE_UP) == "1 kept, 2 by design, 1 broken, 1 unchecked, 1 not driven"
    assert "It wants a teacher." in audit.undriven(MADE_UP)
    assert "A slip." in audit.bugs(MADE_UP)
    assert "It is meant" not in audit.bugs(MADE_UP)


def test_a_file_that_is_not_its_records_and_an_unknown_part_fail_the_build(tmp_path):
    measured = tmp_path / "copy" / "data" / "measured"
    shutil.copytree(ROOT / "src" / "losslab", tmp_path / "copy" / "src" / "losslab")
    measured.mkdir(parents=True)
    for name in ("audit.csv", "audit.json"):
        shutil.copy(ROOT / "data" / "measured" / name, measured / name)
    with (measured / "audit.csv").open("a", encoding="utf-8") as file:
        file.write("edited by hand\n")
    page = "# Audit\n\n```{losslab-audit} summary\n```\n\n```{losslab-audit} rumours\n```\n"
    torn = small_book(tmp_path / "book", {"book/audit": page})
    shutil.copy(ROOT / "book" / "references.bib", tmp_path / "book" / "book" / "references.bib")
    torn.env["PYTHONPATH"] = f"{ROOT / 'book' / '_ext'}:{tmp_path / 'copy' / 'src'}"
    result = torn.build()
    assert result.code != 0
    assert "audit.csv is not the file that audit.json describes" in result.log
    assert "losslab-audit has the parts summary, bugs, undriven, losses; got 'rumours'" in result.log
