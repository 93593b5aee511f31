"""Pages: what a student reads about their work, and what the instructor reads about all of it.

A page is one file without scripts, in the reader's colours; whatever a student wrote is text in it and nothing else.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from html import escape as escape_html
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from losslab.grading import Feedback, ItemMark
    from losslab.grading.batch import Batch, Record
    from losslab.grading.lab import Item, Lab

ANSWER_LIMIT = 20_000  # characters of one answer
LOG_LIMIT = 4000  # characters of a student's own output that are shown

STYLE = """
:root { color-scheme: light dark; --text: light-dark(#1b1f24, #e6e8eb); --soft: light-dark(#57606a, #a5adb6);
  --page: light-dark(#ffffff, #14171b); --box: light-dark(#f3f5f7, #20252b); --line: light-dark(#c9d0d7, #47505a);
  --right: light-dark(#0b6b57, #58cfb2); --wrong: light-dark(#a8360c, #ff9d73); --bar: light-dark(#2f6fb0, #6fb0ee); }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 52rem; padding: 1rem; font: 1rem/1.5 system-ui, sans-serif; color: var(--text);
  background: var(--page); overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; line-height: 1.2; } h2 { font-size: 1.15rem; margin: 0 0 .3rem; }
.total { font-size: 1.25rem; } .soft { color: var(--soft); }
section { border: 1px solid var(--line); border-left-width: .4rem; border-radius: .4rem;
  padding: .8rem; margin: 1rem 0; }
section.right { border-left-color: var(--right); } section.wrong { border-left-color: var(--wrong); }
section.hand { border-left-style: dashed; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; background: var(--box); border-radius: .3rem; padding: .6rem;
  margin: .5rem 0 0; font-size: .875rem; }
table { border-collapse: collapse; width: 100%; } caption { text-align: left; font-weight: 600; padding: .3rem 0; }
.wide table { width: auto; min-width: 100%; } .wide th, .wide td { white-space: nowrap; overflow-wrap: normal; }
.wide th:first-child, .wide td:first-child { min-width: 9rem; max-width: 14rem; white-space: normal;
  overflow-wrap: anywhere; position: sticky; left: 0; background: var(--page); }
.wide th, .wide td { padding-right: .8rem; }
th, td { text-align: left; vertical-align: top; padding: .25rem .5rem .25rem 0; border-bottom: 1px solid var(--line); }
td.count, th.count { text-align: right; white-space: nowrap; } a { color: inherit; }
.bar { display: block; height: 1rem; background: var(--bar); min-width: 1px; }
.wide { overflow-x: auto; }
@media print { body { max-width: none; } }
"""


def escape(text: str) -> str:
    """Text as HTML, without control characters: a page must not hold them, and a terminal would obey them."""
    return escape_html("".join(c if c.isprintable() or c in "\n\t" else "\ufffd" for c in text))


def by_item(lab: Lab, record: Record) -> Iterator[tuple[Item, ItemMark | None]]:
    """Every item of a lab with its points, in the order of the rubric; None where the grader failed."""
    marks = {mark.id: mark for mark in record.mark.items}
    for item in lab.items:
        yield item, marks.get(item.id)


def number(value: float) -> str:
    """Points as people write them: at most two decimals, none that are zero."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def verdict(item: Item, mark: ItemMark | None, given: Mapping[str, float]) -> str:
    """How an item went, in words."""
    out_of = f"of {number(item.points)} {'point' if item.points == 1 else 'points'}"
    if item.check is None:
        return f"{number(given[item.id])} {out_of}" if item.id in given else f"to be marked by hand, {out_of}"
    return f"not marked, {out_of}" if mark is None or mark.points is None else f"{number(mark.points)} {out_of}"


def heading(item: Item) -> str:
    """An item's title with the step that it belongs to: two steps can have items of one title."""
    return f"Step {item.step} · {item.title}"


def as_text(lab: Lab, record: Record, given: Mapping[str, float]) -> str:
    """The page in plain text, for a column of comments."""
    if record.mark.status == "grader-failure":
        return "Not marked yet: the grader failed."
    lines = [f"Cannot be marked: {record.mark.unreadable}."] if record.mark.unreadable else []
    for item, mark in by_item(lab, record):
        lines.append(f"{heading(item)}: {verdict(item, mark, given)}")
        if mark and item.check is not None and mark.feedback:
            lines += [str(each) for each in mark.feedback if not each.kept]
    return "\n".join(lines)


def page(lab: Lab, record: Record, given: Mapping[str, float]) -> str:
    """What one student reads: points, and what is broken with the smallest input that shows it."""
    student = record.submission.student
    parts = [f"<h1>{escape(lab.title)}</h1>", f"<p>{escape(student)}</p>"]
    if record.mark.status == "grader-failure":
        parts.append("<p class='total'>Not marked yet: the grader failed. This says nothing about your work.</p>")
        return document(f"{lab.title}: {student}", parts)
    parts.append(
        f"<p class='total'><strong>{number(record.mark.points or 0)} of {number(lab.points)} points</strong></p>"
    )
    if record.mark.unreadable:
        parts.append(f"<p>✗ Cannot be marked: {escape(record.mark.unreadable)}.</p>")
    if lab.manual_points:
        parts.append(f"<p class='soft'>Besides, {number(lab.manual_points)} points are given by hand.</p>")
    for item, mark in by_item(lab, record):
        if item.check is None:
            kind, word = "hand", "marked by hand" if item.id in given else "to be marked by hand"
        elif mark is not None and mark.points == item.points:
            kind, word = "right", "✓ right"
        else:
            kind, word = "wrong", "✗ not yet" if not mark or not mark.points else "◐ in part"
        said = verdict(item, mark, given)
        parts.append(f"<section class='{kind}'><h2>{escape(heading(item))}</h2>")
        parts.append(f"<p>{word if word not in said else ''}{': ' if word not in said else ''}{escape(said)}</p>")
        if mark and item.check is not None and mark.feedback:
            parts += [_said(each) for each in mark.feedback]
        parts.append("</section>")
    if record.mark.log:
        log = record.mark.log
        shown = log if len(log) <= LOG_LIMIT else f"{log[:LOG_LIMIT]}\n… {len(log) - LOG_LIMIT:,} characters more"
        parts.append(f"<details><summary>What your code printed</summary><pre>{escape(shown)}</pre></details>")
    return document(f"{lab.title}: {student}", parts)


def _said(said: Feedback) -> str:
    """One promise: kept or not, and the input that shows it."""
    lines = "\n".join(f"{head:<10} {text}" for head, text in said.lines)
    shown = f"<pre>{escape(lines)}</pre>" if lines else ""
    return f"<p>{'✓' if said.kept else '✗'} {escape(said.sentence)}</p>{shown}"


def answers(lab: Lab, record: Record, written: Mapping[str, str] | None) -> str:
    """What one student wrote to be marked by hand, for the instructor; ``written`` is None where it cannot be read."""
    student = record.submission.student
    parts = [f"<h1>{escape(lab.title)}: to mark by hand</h1>", f"<p>{escape(student)}</p>"]
    for item in lab.items:
        if item.check is not None:
            continue
        parts.append(
            f"<section class='hand'><h2>{escape(item.title)} ({escape(item.id)}, of {number(item.points)})</h2>"
        )
        text = "" if written is None else written.get(item.id, "")
        if not text:
            why = (
                "What was handed in cannot be read." if written is None else "There is no answer in what was handed in."
            )
            parts.append(f"<p>{why}</p>")
        else:
            shown = text if len(text) <= ANSWER_LIMIT else f"{text[:ANSWER_LIMIT]}\n… {len(text) - ANSWER_LIMIT:,} more"
            parts.append(f"<pre>{escape(shown)}</pre>")
        parts.append("</section>")
    return document(f"{lab.title}: {student}, to mark by hand", parts)


def index(lab: Lab, batch: Batch, by_hand: Mapping[str, Mapping[str, float]], seed: int) -> str:
    """What the instructor reads: failures of the grader, how the marks lie, what is broken most often, everybody."""
    marked = [record for record in batch.records if record.mark.status != "grader-failure"]
    parts = [f"<h1>{escape(lab.title)}</h1>"]
    parts.append(
        f"<p>{len(marked)} marked, {len(batch.failures) + len(batch.problems)} not marked because of a failure, "
        f"{max(len(batch.missing) - len(batch.problems), 0)} not marked yet. "
        f"Seed {seed}: with it every mark can be given again.</p>"
    )
    if batch.failures or batch.problems:
        parts.append("<section class='wrong'><h2>Failures of the grader, no mark given</h2><ul>")
        parts += [
            f"<li>{escape(record.submission.student)}<pre>{escape(record.mark.log[-LOG_LIMIT:])}</pre></li>"
            for record in batch.failures
        ]
        parts += [f"<li>{escape(problem)}</li>" for problem in batch.problems]
        parts.append("</ul></section>")
    unreadable = [record for record in marked if record.mark.unreadable]
    if unreadable:
        parts.append(f"<section class='wrong'><h2>{len(unreadable)} cannot be read, 0 points</h2><ul>")
        parts += [
            f"<li>{escape(record.submission.student)}: {escape(record.mark.unreadable)}</li>" for record in unreadable
        ]
        parts.append("</ul></section>")
    if read := [record for record in marked if not record.mark.unreadable]:
        parts += _distribution(lab, read)
        parts += _broken(lab, read)
    parts.append("<div class='wide' tabindex='0' role='region' aria-label='Points of everybody'>")
    parts.append("<table><caption>Everybody</caption><thead><tr><th>Student</th>")
    parts.append(f"<th class='count'>checks ({number(lab.points)})</th>")
    if lab.manual_points:
        parts.append("<th>to mark by hand</th>")
    parts += [f"<th class='count'>{escape(item.id)} ({number(item.points)})</th>" for item in lab.items]
    parts.append("</tr></thead><tbody>")
    for record in batch.records:
        link = f"feedback/{escape(record.submission.key)}.html"
        parts.append(f"<tr><td><a href='{link}'>{escape(record.submission.student)}</a></td>")
        given = by_hand.get(record.submission.student, {})
        total: list[float] = []
        cells = []
        for item, mark in by_item(lab, record):
            value = given.get(item.id) if item.check is None else mark.points if mark else None
            if item.check is not None and value is not None:
                total.append(value)
            empty = "by hand" if item.check is None else "–"
            cells.append(f"<td class='count'>{empty if value is None else number(value)}</td>")
        parts.append(f"<td class='count'>{'no mark' if not total else number(math.fsum(total))}</td>")
        if lab.manual_points:
            answers = f"answers/{escape(record.submission.key)}.html"
            parts.append(f"<td><a href='{answers}'>answers</a></td>")
        parts += [*cells, "</tr>"]
    parts.append("</tbody></table></div>")
    return document(lab.title, parts)


def _distribution(lab: Lab, marked: list[Record]) -> list[str]:
    """How many have how many points, in ten steps or fewer."""
    totals = [record.mark.points or 0.0 for record in marked]
    steps = max(1, min(10, round(lab.points)))
    counts = Counter(min(int(total / lab.points * steps) if lab.points else 0, steps - 1) for total in totals)
    full = sum(total >= lab.points for total in totals)
    ordered = sorted(totals)
    middle = (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2
    most = max(counts.values())
    parts = [
        "<table><caption>Points from the checks</caption>",
        "<thead><tr><th>points</th><th class='count'>students</th><th>share</th></tr></thead><tbody>",
    ]
    for step in range(steps):
        low, high = (number(lab.points * edge / steps) for edge in (step, step + 1))
        count = counts.get(step, 0)
        ending = f"{low} to {high}" if step == steps - 1 else f"{low} to below {high}"
        bar = f"<span class='bar' style='width:{100 * count / most:.0f}%'></span>" if count else ""
        parts.append(f"<tr><td>{ending}</td><td class='count'>{count}</td><td style='width:50%'>{bar}</td></tr>")
    parts.append("</tbody></table>")
    parts.append(f"<p>Median {number(middle)} of {number(lab.points)}; {full} of {len(totals)} have all points.</p>")
    return parts


def _broken(lab: Lab, marked: list[Record]) -> list[str]:
    """What is broken most often: the item, and what most of those are told who break it."""
    told: dict[str, Counter[str]] = {}
    examples: dict[str, str] = {}
    count: Counter[str] = Counter()
    for record in marked:
        for mark in record.mark.items:
            if mark.points is not None and mark.points < mark.out_of:
                count[mark.id] += 1
                for said in mark.feedback:
                    if not said.kept:
                        # "off by 2.672" and "off by 0.013" are one thing to be told
                        kind = re.sub(r"-?\d+(?:\.\d+)?e[+-]?\d+|-?\d+\.\d+", "…", said.sentence)
                        examples.setdefault(kind, said.sentence)
                        told.setdefault(mark.id, Counter())[kind] += 1
    if not count:
        return ["<p>No promise is broken.</p>"]
    titles = {item.id: heading(item) for item in lab.items}
    parts = [
        "<table><caption>Broken most often</caption>",
        "<thead><tr><th class='count'>students</th><th>item</th><th>told most often</th></tr></thead><tbody>",
    ]
    for item, students in count.most_common():
        kind, times = next(iter(told.get(item, Counter()).most_common(1)), ("", 0))
        sentence = examples.get(kind, "") if times == 1 else kind
        shown = f"{escape(sentence[:300])} <span class='soft'>({times}×)</span>" if sentence else ""
        title = escape(titles.get(item, item))
        parts.append(f"<tr><td class='count'>{students}</td><td>{title}</td><td>{shown}</td></tr>")
    parts.append("</tbody></table>")
    return parts


def document(title: str, parts: list[str]) -> str:
    """A whole page around these parts; nothing in it is fetched or run."""
    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        "<meta http-equiv='Content-Security-Policy' content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>{escape(title)}</title><style>{STYLE}</style></head>\n<body><main>\n"
        + "\n".join(parts)
        + "\n</main></body></html>\n"
    )
