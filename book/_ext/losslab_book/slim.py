"""A page loads what it uses. The theme's defaults weigh two megabytes; this is what they lose and why.

* Font Awesome as a script (half a megabyte), although its web font draws the same icons; of the font, all glyphs that
  no page and no style rule shows, and their thousand and a half CSS rules.
* thebe, which connects to a kernel that a static book does not have.
* The search index and its tools on pages that do not search: the search box leads to the search page, which has them.
* Scripts and style sheets of extensions on pages where they find nothing to do.
* Source maps, and fonts and logos that nothing refers to.
"""

from __future__ import annotations

import logging
import re
from io import BytesIO
from pathlib import Path
from typing import Any

import pydata_sphinx_theme
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config

from losslab_book import assets

THEME = Path(pydata_sphinx_theme.__file__).parent / "theme" / "pydata_sphinx_theme" / "static"
NOTICE = (
    "/*! pydata-sphinx-theme (BSD-3-Clause), with Bootstrap (MIT) and Font Awesome Free (MIT, SIL OFL 1.1, CC BY 4.0), "
    "without the rules that this book does not use */"
)
FONTS = "vendor/fontawesome/webfonts"
FAMILIES = ("fa-solid-900", "fa-regular-400", "fa-brands-400")

# file name part -> what must be in a page for the file to be of use there
USEFUL = {
    "thebe": None,
    "sphinx-thebe": None,
    "THEBE_JS_URL": None,
    "design-tabs": 'class="sd-tab-set',
    "sphinx-design": 'class="sd-',
    "copybutton": 'class="highlight',
    "clipboard": 'class="highlight',
    "mystnb": 'class="cell',
    "pygments": 'class="highlight',
    "sbt-webpack": None,
}
DEAD = [
    "**/*.map",
    "scripts/fontawesome.js*",
    "vendor/fontawesome/webfonts/*.ttf",
    "images/logo_*",
    "*webpack-macros.html",
    "locales",
    "sphinx-thebe*",
    "togglebutton*",
    "_sphinx_javascript_frameworks_compat.js",
    "jquery*",
    "underscore*",
    "plus.png",
    "minus.png",
    "katex-math.css",
]
_FA_RULE = re.compile(r"((?:\.fa-[\w-]+:before,?)+)\{content:\"\\([0-9a-f]+)\"\}")


def _configure(_app: Sphinx, config: Config) -> None:
    config.templates_path.insert(0, str(Path(__file__).parent / "templates"))


def _page(
    app: Sphinx, _pagename: str, _template: str, context: dict[str, Any], _doctree: nodes.document | None
) -> None:
    if not assets.is_site(app):
        return
    body = context.get("body", "")
    if 'class="citation' in body:  # docutils gives references roles that are deprecated, or not for what they stand on
        body = context["body"] = body.replace(' role="doc-biblioentry"', "").replace(
            '<div role="list" class="c', '<div class="c'
        )
    assets.drop(context, lambda f: not _of_use(assets.address(f), body))
    context["losslab_script_key"] = pydata_sphinx_theme.__version__


def _of_use(address: str, body: str) -> bool:
    for part, sign in USEFUL.items():
        if part in address:
            return sign is not None and sign in body
    return True


def _clean(app: Sphinx, error: Exception | None) -> None:
    if error is not None or not assets.is_site(app):
        return
    static = Path(app.outdir) / "_static"
    for pattern in DEAD:
        for path in sorted(static.glob(pattern), reverse=True):
            if path.is_file():
                path.unlink()
            elif path.is_dir():
                _remove(path)
    _icons(app, static)
    for script in [*static.glob("scripts/*.js"), *static.glob("*.js")]:
        text = script.read_text(encoding="utf-8")
        script.write_text(re.sub(r"\n?//# sourceMappingURL=\S+\s*$", "\n", text), encoding="utf-8")
    assets.sweep(app)


def _remove(folder: Path) -> None:
    for path in sorted(folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    folder.rmdir()


def _icons(app: Sphinx, static: Path) -> None:
    """Cut the theme's style sheet and icon fonts down to the icons in use."""
    sheet = (THEME / "styles" / "pydata-sphinx-theme.css").read_text(encoding="utf-8")
    pages = "\n".join(p.read_text(encoding="utf-8") for p in sorted(Path(app.outdir).rglob("*.html")))
    scripts = (static / "scripts" / "pydata-sphinx-theme.js").read_text(encoding="utf-8")
    own = "\n".join(p.read_text(encoding="utf-8") for p in sorted((static / assets.FOLDER).glob("*.css")))
    shown = set(re.findall(r"fa-[\w-]+", pages + scripts))

    glyphs: set[int] = set()

    def rule(match: re.Match[str]) -> str:
        names = [n for n in re.findall(r"\.(fa-[\w-]+):before", match[1]) if n in shown]
        if not names:
            return ""
        glyphs.add(int(match[2], 16))
        return ",".join(f".{n}:before" for n in names) + f'{{content:"\\{match[2]}"}}'

    slim = _FA_RULE.sub(rule, sheet)
    glyphs |= {int(code, 16) for code in re.findall(r"[\"'\s]\\([ef][0-9a-f]{3})\b", slim + own)}
    slim = re.sub(r",url\([^)]*\.ttf\) format\(\"truetype\"\)", "", slim)
    slim = re.sub(r"/\*# sourceMappingURL=.*?\*/", "", slim)
    slim = re.sub(r"/\*!?.*?\*/", "", slim, flags=re.DOTALL)
    data = f"{NOTICE}\n{slim.strip()}\n".encode()
    _write(static / "styles" / "pydata-sphinx-theme.css", data)
    _stamp(app, assets.short_hash(data))
    for name in FAMILIES:
        _write(static / FONTS / f"{name}.woff2", _subset(app, name, sorted(glyphs)))


def _stamp(app: Sphinx, key: str) -> None:
    """Write into every page which edition of the theme's style sheet it means, so that no browser shows yesterday's."""
    for page in sorted(Path(app.outdir).rglob("*.html")):
        text = page.read_text(encoding="utf-8")
        _write(page, re.sub(r"(/pydata-sphinx-theme\.css)(?:\?v=\w+)?", rf"\g<1>?v={key}", text).encode())


def _subset(app: Sphinx, name: str, glyphs: list[int]) -> bytes:
    """Return the font with these glyphs alone; kept beside the doctrees, since the same glyphs give the same font."""
    source = (THEME / FONTS / f"{name}.woff2").read_bytes()
    key = assets.short_hash(source, repr(glyphs).encode(), b"1")
    kept = Path(app.doctreedir) / f"{name}.{key}.woff2"
    if kept.is_file():
        return kept.read_bytes()
    logging.getLogger("fontTools").setLevel(logging.WARNING)
    from fontTools import subset
    from fontTools.ttLib import TTFont

    font = TTFont(BytesIO(source), recalcTimestamp=False)
    options = subset.Options(
        flavor="woff2", layout_features=[], hinting=False, desubroutinize=True, notdef_outline=False
    )
    subsetter = subset.Subsetter(options)
    subsetter.populate(unicodes=glyphs)
    subsetter.subset(font)
    font.flavor = "woff2"
    out = BytesIO()
    font.save(out)
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_bytes(out.getvalue())
    return out.getvalue()


def _write(path: Path, data: bytes) -> None:
    if not path.is_file() or path.read_bytes() != data:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def _front_page(app: Sphinx, error: Exception | None) -> None:
    """Lead from the site's address to the book's first page, which is one folder down."""
    first = app.config.root_doc
    if error is None and app.builder.name == "html" and "/" in first:
        target = app.builder.get_target_uri(first)
        title = app.config.html_title
        _write(
            Path(app.outdir) / "index.html",
            f'<!DOCTYPE html>\n<html lang="en">\n<meta charset="utf-8">\n<title>{title}</title>\n'
            f'<meta http-equiv="refresh" content="0; url={target}">\n<link rel="canonical" href="{target}">\n'
            f'<main><h1>{title}</h1><p><a href="{target}">Open the book</a></p></main>\n</html>\n'.encode(),
        )


class _NoOverwrite(logging.Filter):
    """Sphinx tells each time that it copies the theme's own files over those that we cut; nobody need know."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Keep everything else."""
        return "will overwrite data" not in str(record.msg)


def setup(app: Sphinx) -> None:
    """Connect the parts above; disconnect thebe, which Jupyter Book loads unasked."""
    logging.getLogger("sphinx.sphinx.util.osutil").addFilter(_NoOverwrite())
    for listeners in app.events.listeners.values():
        for listener in [one for one in listeners if one.handler.__module__.startswith("sphinx_thebe")]:
            app.disconnect(listener.id)
    app.connect("config-inited", _configure)
    app.connect("html-page-context", _page, priority=950)
    app.connect("build-finished", _front_page, priority=800)
    app.connect("build-finished", _clean, priority=900)
