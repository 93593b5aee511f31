"""What no reader may meet makes the build fail, and the message names the page and what to do.

* A control that is dead on a static page: a widget that is not one of losslab's figures needs Python behind it.
* Anything that a page would load from another host. Links that a reader clicks are fine.
* A picture without a text alternative. (Figures without one: ``live``. Memory addresses in outputs: ``reproducible``.)
* A formula that KaTeX could not set, and a file that a page refers to and the site lacks.

A cell that raises fails the build too; that is ``nb_execution_raise_on_error`` in ``_config.yml``.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from docutils import nodes
from sphinx.application import Sphinx

from losslab_book import assets
from losslab_book.live import is_figure, widget_states
from losslab_book.math import ERROR_COLOUR
from losslab_book.problems import raise_all, report, where

_CSS_ADDRESS = re.compile(r"url\(\s*[\"']?([^\"')]+)|@import\s+[\"']([^\"']+)", re.IGNORECASE)
_SCRIPT_ADDRESS = re.compile(
    r"(?:\bimport\s*\(|\bfrom\b|\bimport\b|\bimportScripts\s*\(|\bfetch\s*\(|\.src\s*=)\s*[\"'`]((?:https?:)?//[^\"'`]+)"
    r"|[\"'`]((?:https?:)?//[^\"'`\s]+\.(?:m?js|css|wasm|woff2?)(?:\?[^\"'`]*)?)[\"'`]"
)
_LOADING_LINKS = {
    "stylesheet",
    "preload",
    "prefetch",
    "modulepreload",
    "preconnect",
    "dns-prefetch",
    "icon",
    "manifest",
    "apple-touch-icon",
}
_LOADING = {
    "script": ("src",),
    "img": ("src", "srcset"),
    "iframe": ("src", "srcdoc"),
    "source": ("src", "srcset"),
    "video": ("src", "poster"),
    "audio": ("src",),
    "track": ("src",),
    "embed": ("src",),
    "object": ("data",),
    "input": ("src",),
    "image": ("href", "xlink:href"),
    "use": ("href", "xlink:href"),
}
DEAD_CONTROL = "needs Python and would be dead on a static page; draw it inside a figure of losslab.figures"
DEAD_FORM = "an HTML output holds a form control, which nothing answers; draw it inside a figure of losslab.figures"
NO_WORDS = "has no text alternative; put `mystnb: {image: {alt: …}}` on the cell, or `:alt:` on a file's directive"
ELSEWHERE = "from another host; pages must work offline, so ship the file with the book or do without"


def _dead_controls(app: Sphinx, document: nodes.document) -> None:
    """Name every widget of a page that would stand there without Python behind it."""
    docname = app.env.docname
    strangers = {
        model["model_name"].removesuffix("Model")
        for model in widget_states(app.env, docname).values()
        if not is_figure(model) and not _is_mere_look(model)
    }
    if strangers:
        report(
            app, where(app, docname), f"{', '.join(sorted(strangers))}: {DEAD_CONTROL}, or show its result as an output"
        )
    for output in document.findall(nodes.raw):
        if "output" in output.get("classes", []) and re.search(r"<(?:input|select|button|textarea)\b", output.astext()):
            report(app, where(app, docname, output), DEAD_FORM)


def _is_mere_look(model: dict[str, Any]) -> bool:
    """Layouts and styles belong to other widgets and show nothing themselves."""
    return model["model_name"] == "LayoutModel" or model["model_name"].endswith("StyleModel")


class _Page(HTMLParser):
    """Collects what a page loads, its pictures, and its faults."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.loads: list[tuple[str, str]] = []
        self.pictures: list[dict[str, str]] = []
        self.math_errors: list[str] = []
        self._raw = ""
        self._in_error = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self._raw = (
            tag
            if tag in {"script", "style"}
            and given.get("type", "text/javascript").endswith(("javascript", "module", "css"))
            else ""
        )
        for name in _LOADING.get(tag, ()):
            if name in given:
                parts = re.split(r"\s+[\d.]+[wx]\s*,?\s*", given[name]) if name == "srcset" else [given[name]]
                self.loads += [(tag, part) for part in parts if part]
        if tag == "link" and _LOADING_LINKS.intersection(given.get("rel", "").lower().split()):
            self.loads.append((f"link rel={given['rel']}", given.get("href", "")))
        if "style" in given:
            self.loads += [("style attribute", address) for address in css_addresses(given["style"])]
        if tag == "img":
            self.pictures.append(given)
        if "katex-error" in given.get("class", ""):
            self.math_errors.append(given.get("title", ""))
        elif ERROR_COLOUR in given.get("style", "") or ERROR_COLOUR in given.get("mathcolor", ""):
            self._in_error = tag

    def handle_endtag(self, tag: str) -> None:
        if tag == self._raw:
            self._raw = ""

    def handle_data(self, data: str) -> None:
        if self._in_error:
            self.math_errors.append(f"it does not know {data.strip()}")
            self._in_error = ""
        if self._raw == "style":
            self.loads += [("style", address) for address in css_addresses(data)]
        elif self._raw == "script":
            self.loads += [("script text", m[1] or m[2]) for m in _SCRIPT_ADDRESS.finditer(data)]


def css_addresses(text: str) -> Iterator[str]:
    """Yield every address that a style sheet loads."""
    for match in _CSS_ADDRESS.finditer(re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)):
        yield (match[1] or match[2]).strip()


def is_elsewhere(address: str) -> bool:
    """Tell whether loading `address` from a page of ours would ask another host.

    >>> [is_elsewhere(a) for a in ("//other.example/x.js", "https://a.example", "../_static/x.js", "data:image/png,")]
    [True, True, False, False]
    """
    parts = urlsplit(address.strip())
    return bool(parts.netloc) or parts.scheme in {"http", "https", "ftp", "ws", "wss"}


def _site(app: Sphinx, error: Exception | None) -> None:
    """Read the finished site as a browser would."""
    if error is not None:
        return
    if assets.is_site(app):
        root = Path(app.outdir)
        _remove_stale_pages(app, root)
        with _kept(Path(app.doctreedir) / "losslab_pages.json") as found:
            for path in sorted(root.rglob("*.html")):
                if "_static" not in path.relative_to(root).parts:
                    _check_page(app, root, path, found)
        for path in sorted((root / "_static").rglob("*.css")):
            _check_addresses(
                app, root, path, [("style sheet", a) for a in css_addresses(path.read_text(encoding="utf-8"))]
            )
        for path in sorted(root.rglob("*.svg")):
            text = path.read_text(encoding="utf-8", errors="replace")
            found = [("image", a) for a in css_addresses(text)]
            found += [
                ("image", a)
                for a in re.findall(r"<(?:image|use|script|feImage)\b[^>]*?\b(?:xlink:)?href=\"([^\"]*)\"", text)
            ]
            _check_addresses(app, root, path, [(what, a) for what, a in found if is_elsewhere(a)])
    raise_all(app)


def _remove_stale_pages(app: Sphinx, root: Path) -> None:
    """Remove pages that an earlier build made of sources that are gone."""
    made = {app.builder.get_target_uri(d) for d in app.env.found_docs} | {"index.html", "search.html", "genindex.html"}
    for path in root.rglob("*.html"):
        name = path.relative_to(root).as_posix()
        if app.builder.name == "html" and name not in made and not name.startswith("_"):
            path.unlink()


@contextmanager
def _kept(path: Path) -> Iterator[Callable[[bytes], dict[str, Any]]]:
    """What `_Page` finds in a text, read again only if the text, or this file, is another than in the build before.

    After an edit of a sentence the other pages are as they were, and reading them all is a fifth of that build.
    """
    try:
        before: dict[str, dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        before = {}
    now: dict[str, dict[str, Any]] = {}
    how = Path(__file__).read_bytes()

    def find(text: bytes) -> dict[str, Any]:
        key = hashlib.sha256(how + text).hexdigest()
        if key not in before:
            page = _Page()
            page.feed(text.decode())
            before[key] = {"loads": page.loads, "pictures": page.pictures, "math_errors": page.math_errors}
        now[key] = before[key]
        return now[key]

    yield find
    path.write_text(json.dumps(now), encoding="utf-8")


def _check_page(app: Sphinx, root: Path, path: Path, find: Callable[[bytes], dict[str, Any]]) -> None:
    found = find(path.read_bytes())
    _check_addresses(app, root, path, found["loads"])
    name = _source(app, root, path)
    for picture in found["pictures"]:
        words, source = picture.get("alt", "").strip(), picture.get("src", "")
        decorative = picture.get("role") in {"presentation", "none"} or picture.get("aria-hidden") == "true"
        if not decorative and (not words or words == source or Path(words).name == Path(unquote(source)).name):
            report(app, name, f"the picture {Path(source).name!r} {NO_WORDS}")
    for message in found["math_errors"]:
        report(app, name, f"KaTeX cannot set a formula: {message}")


def _check_addresses(app: Sphinx, root: Path, path: Path, loads: list[tuple[str, str]]) -> None:
    name = _source(app, root, path)
    for what, address in loads:
        if is_elsewhere(address):
            report(app, name, f"{what} loads {address} {ELSEWHERE}")
        elif what != "script text" and not _is_there(root, path, address):
            report(app, name, f"{what} refers to {address}, which is not in the site")


def _is_there(root: Path, path: Path, address: str) -> bool:
    parts = urlsplit(address)
    if parts.scheme or not parts.path:
        return True
    target = root / parts.path.lstrip("/") if parts.path.startswith("/") else path.parent / unquote(parts.path)
    return target.exists()


def _source(app: Sphinx, root: Path, path: Path) -> str:
    name = path.relative_to(root).as_posix()
    docname = name.removesuffix(".html")
    return where(app, docname) if docname in app.env.found_docs else name


def setup(app: Sphinx) -> None:
    """Connect the parts above."""
    app.connect("doctree-read", _dead_controls)
    app.connect("build-finished", _site, priority=950)
