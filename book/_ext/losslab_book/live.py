"""Live figures on static pages: no kernel, no request to another host, and a still twin where there is no JavaScript.

A figure in a chapter is an anywidget. Its output carries the model's id, a picture of its first state (the twin) and
a sentence that says what the picture shows. Here the three become one node. For a browser it is an empty place that a
small script of ours (``static/host.js``) fills by calling the figure's own ``render``, with the twin inside
``<noscript>``: it weighs nothing where scripts run. For EPUB it is the twin; for LaTeX ``paper`` draws the
twin again; for plain text it is the sentence.

All figures of the book are one classic script with a name made from its content: cached once, and read from
``file://`` too.
"""

from __future__ import annotations

import html
import importlib.util
import json
import posixpath
import re
from collections import defaultdict
from pathlib import Path
from typing import Any
from urllib.parse import quote

from docutils import nodes
from myst_nb.sphinx_ import NbMetadataCollector
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.writers.html5 import HTML5Translator

from losslab_book import assets
from losslab_book.problems import report, where

VIEW = "application/vnd.jupyter.widget-view+json"
STATE = "application/vnd.jupyter.widget-state+json"
TWIN = "image/svg+xml"
WORDS = "text/plain"

_NOT_OURS = {"layout", "tabbable", "tooltip", "comm"}  # what ipywidgets adds to every model


class LiveFigure(nodes.General, nodes.Element):
    """A figure's place on a page: name, model number, title, words, state as JSON, and the twin as its only child."""


def widget_states(env: BuildEnvironment, docname: str) -> dict[str, dict[str, Any]]:
    """Return model id -> model, of all widgets that the page's cells created (shown or not)."""
    _, options = NbMetadataCollector.get_js_files(env, docname).get("ipywidgets_state", (None, {}))
    return json.loads(options["body"])["state"] if options else {}


def is_figure(model: dict[str, Any]) -> bool:
    """Tell whether a widget model is one of losslab's figures: an anywidget that says which drawing it wants."""
    state = model.get("state", {})
    return model.get("model_module") == "anywidget" and isinstance(state.get("figure"), str) and bool(state["figure"])


def _traits(model: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in model["state"].items() if not k.startswith("_") and k not in _NOT_OURS}


def _settle(app: Sphinx, document: nodes.document) -> None:
    """Turn every widget output of a page that was just read into a `LiveFigure`."""
    docname = app.env.docname
    states = widget_states(app.env, docname)
    names: set[str] = set()
    numbers: dict[str, int] = {}
    for bundle in list(
        document.findall(lambda n: isinstance(n, nodes.container) and n.get("nb_element") == "mime_bundle")
    ):
        parts = {part["mime_type"]: part for part in bundle.children}
        if VIEW not in parts:
            continue
        text = parts[VIEW].astext()
        model_id = json.loads(text[text.index(">") + 1 : text.rindex("</script>")])["model_id"]
        model = states.get(model_id)
        if model is None or not is_figure(model):
            continue  # the guard names it
        place = where(app, docname, bundle)
        name, traits = model["state"]["figure"], _traits(model)
        words = parts[WORDS].astext().strip() if WORDS in parts else ""
        _check(app, place, name, model, traits, words, TWIN in parts)
        names.add(name)
        first = model_id not in numbers
        number = numbers.setdefault(model_id, len(numbers) + 1)
        figure = LiveFigure(
            name=name,
            number=number,
            words=words,
            title_text=str(traits.get("title") or ""),
            state=json.dumps(traits, sort_keys=True, separators=(",", ":"), ensure_ascii=False),
            first=first,
            framed=isinstance(bundle.parent, nodes.figure),
        )
        if TWIN in parts and (image := next(parts[TWIN].findall(nodes.image), None)):
            image["alt"] = words
            figure += image.deepcopy()
        parts[VIEW].children = []
        parts[VIEW] += figure
    _names(app.env)[docname] = names


def _check(
    app: Sphinx, place: str, name: str, model: dict[str, Any], traits: dict[str, Any], words: str, twin: bool
) -> None:
    if len(words) < 20 or re.match(r"[\w.]+\(", words):
        report(
            app,
            place,
            f"the figure {name!r} has no text description (text/plain: {words!r}); let describe() say what it shows",
        )
    if not twin:
        report(app, place, f"the figure {name!r} has no still twin; its output needs {TWIN}")
    if not str(traits.get("title") or "").strip():
        report(app, place, f"the figure {name!r} has no title; give its trait `title` a few words")
    if model.get("buffers") or "IPY_MODEL_" in json.dumps(traits):
        report(
            app,
            place,
            f"the figure {name!r} has traits that are no plain JSON (buffers, widgets): use numbers, texts, lists",
        )
    if not all(_finite(value) for value in traits.values()):
        report(
            app,
            place,
            f"the figure {name!r} has a trait that is NaN or infinite, which JSON cannot say; use None or drop it",
        )


def _finite(value: Any) -> bool:  # noqa: ANN401
    if isinstance(value, float):
        return value - value == 0
    if isinstance(value, dict):
        return all(_finite(v) for v in value.values())
    return all(_finite(v) for v in value) if isinstance(value, list) else True


# --- the node, for each kind of output ---


def _visit_html(self: HTML5Translator, node: LiveFigure) -> None:
    twin = _twin_tag(self, node)
    if not assets.is_site(self.builder.app):
        self.body.append(f'<div class="ll-still-figure">{twin}</div>')
        raise nodes.SkipNode
    esc = html.escape
    title = esc(node["title_text"] or node["name"])
    tag = "div" if node["framed"] else "figure"
    role = ' role="group"' if node["framed"] else ""
    data = f'<script type="application/json">{_json_in_html(node["state"])}</script>' if node["first"] else ""
    caption = "" if node["framed"] else f"<figcaption>{title}</figcaption>"
    self.body.append(
        f'<{tag} class="ll-figure" data-figure="{esc(node["name"])}" data-model="{node["number"]}"{role}'
        f' aria-label="{title}">'
        f'{data}<div class="ll-place"></div>'
        f'<noscript>{twin}<p class="ll-words">{esc(node["words"])}</p></noscript>'
        f"{caption}</{tag}>\n"
    )
    raise nodes.SkipNode


def _twin_tag(self: HTML5Translator, node: LiveFigure) -> str:
    if not node.children:
        return ""
    uri = node.children[0]["uri"]
    address = posixpath.join(self.builder.imgpath, quote(self.builder.images.get(uri, posixpath.basename(uri))))
    box = _svg_box(Path(self.builder.srcdir) / uri.lstrip("/"))
    size = f' width="{box[0]}" height="{box[1]}"' if box else ""
    return f'<img class="ll-twin" loading="lazy" src="{html.escape(address)}" alt="{html.escape(node["words"])}"{size}>'


def _svg_box(path: Path) -> tuple[int, int] | None:
    head = path.read_text(encoding="utf-8", errors="replace")[:4000] if path.is_file() else ""
    match = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', head)
    return (round(float(match[1])), round(float(match[2]))) if match else None


def _json_in_html(text: str) -> str:
    return text.replace("<", "\\u003c")


def _visit_words(self: Any, node: LiveFigure) -> None:  # noqa: ANN401  # text, man, texinfo
    self.visit_paragraph(paragraph := nodes.paragraph("", node["words"]))
    self.visit_Text(paragraph.children[0])
    self.depart_Text(paragraph.children[0])
    self.depart_paragraph(paragraph)
    raise nodes.SkipNode


def _visit_latex(self: Any, node: LiveFigure) -> None:  # noqa: ANN401  # where an output has no picture for LaTeX
    self.body.append(self.encode(node["words"]))
    raise nodes.SkipNode


# --- which figures the book has, and what the browser gets for them ---


def _names(env: BuildEnvironment) -> dict[str, set[str]]:
    if not hasattr(env, "losslab_figures"):
        env.losslab_figures = defaultdict(set)  # type: ignore[attr-defined]
    return env.losslab_figures  # type: ignore[attr-defined, no-any-return]


def _purge(_app: Sphinx, env: BuildEnvironment, docname: str) -> None:
    _names(env).pop(docname, None)


def _publish(app: Sphinx, env: BuildEnvironment) -> None:
    names = sorted(set().union(*_names(env).values()))
    if not names or not assets.is_site(app):
        return
    script, sheet = _compose(app, names)
    app.losslab_live = (  # type: ignore[attr-defined]
        assets.put(app, "figures.js", script),
        assets.put(app, "host.js", (assets.HERE / "host.js").read_bytes()),
        assets.put(app, "figures.css", sheet),
    )


def _compose(app: Sphinx, names: list[str]) -> tuple[str, str]:
    """Ask the library for script and style sheet; keep the answer, since importing the library takes a while."""
    spec = importlib.util.find_spec("losslab.figures")
    if spec is None or not spec.submodule_search_locations:
        return "", ""
    sources = sorted(
        p for p in Path(spec.submodule_search_locations[0]).rglob("*") if p.suffix in {".js", ".css", ".py"}
    )
    key = assets.short_hash(*(p.read_bytes() for p in sources), " ".join(names).encode())
    kept = Path(app.doctreedir) / "losslab-figures.json"
    if kept.is_file() and (answer := json.loads(kept.read_text(encoding="utf-8")))["key"] == key:
        return answer["script"], answer["sheet"]
    from losslab.figures import bundle, stylesheet

    script, sheet = bundle(names), stylesheet()
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps({"key": key, "script": script, "sheet": sheet}), encoding="utf-8")
    return script, sheet


def _load(app: Sphinx, pagename: str, _template: str, context: dict[str, Any], _doctree: nodes.document | None) -> None:
    """Refer to the figures from the pages that show one, and take MyST-NB's own copy of the widgets' state off."""
    assets.drop(context, lambda f: getattr(f, "attributes", {}).get("type") == STATE)
    if _names(app.env).get(pagename) and hasattr(app, "losslab_live"):
        script, host, sheet = app.losslab_live
        app.add_css_file(sheet, priority=850)
        app.add_js_file(script, loading_method="defer", priority=850)
        app.add_js_file(host, loading_method="defer", priority=851)


def setup(app: Sphinx) -> None:
    """Connect the parts above."""
    words = (_visit_words, None)
    app.add_node(LiveFigure, html=(_visit_html, None), latex=(_visit_latex, None), text=words, man=words, texinfo=words)
    app.connect("env-purge-doc", _purge)
    app.connect("doctree-read", _settle, priority=400)  # before Sphinx collects the images of a page
    app.connect("env-updated", _publish)
    app.connect("html-page-context", _load, priority=800)
