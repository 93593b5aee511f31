"""The chapters' kernels run two at a time; what fails is reported in full, and what ran is not run again."""

import json
import re
from html import unescape

from books import CODE_PAGE, small_book

CELL = """
```{{code-cell}} ipython3
import json, os, time
from pathlib import Path

start = time.time()
time.sleep(2)
spans = {{"start": start, "end": time.time(), "threads": os.environ.get("OMP_NUM_THREADS")}}
with Path("../{name}.jsonl").open("a") as file:
    print(json.dumps(spans), file=file)
{more}
```
"""


def chapters(**more):
    texts = {"index": "# A small book\n"}
    for name in ("one", "two"):
        texts[f"book/{name}"] = f"{CODE_PAGE}\n# {name}\n{CELL.format(name=name, more=more.get(name, ''))}"
    return texts


def spans(book, name):
    return [json.loads(line) for line in (book.root / f"{name}.jsonl").read_text().splitlines()]


def test_two_chapters_run_side_by_side_and_then_are_kept(tmp_path):
    book = small_book(tmp_path / "book", chapters())
    first = book.build()
    assert first.code == 0, first.log[-3000:]
    ((one,), (two,)) = (spans(book, name) for name in ("one", "two"))
    assert one["start"] < two["end"]
    assert two["start"] < one["end"]
    assert one["threads"] == two["threads"] is not None
    again = book.build()
    assert again.code == 0, again.log[-3000:]
    assert [len(spans(book, name)) for name in ("one", "two")] == [1, 1]


def test_a_chapter_that_fails_is_named_and_the_other_is_kept(tmp_path):
    book = small_book(tmp_path / "book", chapters(two="raise ValueError('planted')"))
    failed = book.build()
    assert failed.code == 1
    assert "planted" in failed.log
    assert "two.md" in failed.log
    book.write("book/two", chapters()["book/two"])
    mended = book.build()
    assert mended.code == 0, mended.log[-3000:]
    assert len(spans(book, "one")) == 1  # it ran before the other failed, and is kept


SLOW = """
```{code-cell} ipython3
import sys, time
from IPython.display import HTML, display

for piece in ("one", " line", "\\n", "  another", "\\n"):
    print(piece, end="", flush=True)
    print("aside ", end="", flush=True, file=sys.stderr)
    time.sleep(0.1)
display(HTML("<p>shown</p>"))
print("the last", flush=True)
```

```{code-cell} ipython3
import losslab
from losslab.contracts import checking

checking.BUDGET = 1e-3  # as if the machine were slow
print("limit:", losslab.check("losslab.losses:list_mle", kind="listwise", only=["tie_order"], examples=1).budget)
```
"""


def test_a_slow_machine_gives_the_same_page(tmp_path):
    book = small_book(tmp_path / "book", {"index": "# A small book\n", "page": f"{CODE_PAGE}\n# A page\n{SLOW}"})
    built = book.build()
    assert built.code == 0, built.log[-3000:]
    page = book.read("page.html")
    printed = [
        unescape(re.sub("<[^>]+>", "", text))
        for text in re.findall(r'<div class="output [^"]*highlight[^>]*>(.*?)</pre>', page, re.DOTALL)
    ]
    assert printed == ["one line\n  another\nthe last\n", "aside " * 4 + "aside\n", "limit: None\n"]
