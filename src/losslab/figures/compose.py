"""Join our ES modules into what a host can run: one module for anywidget, or one classic script for static pages.

The sources under ``js/`` are plain ES modules, so they can be read, linted and tested as they stand. anywidget wants a
figure as *one* module, and a page opened from ``file://`` may run no module at all. Each source therefore becomes one
scope, a function that returns what it exports, after the scopes it imports from. Names of two modules cannot meet.

What is understood: ``import {a, b as c} from "./x.js"`` and ``export`` before ``const``, ``let``, ``function``,
``class`` or ``default``, each starting a line. Whatever else imports or exports is refused by name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

JS = Path(__file__).parent / "js"

_COMMENT = re.compile(r"^[ \t]*/\*.*?\*/[ \t]*\n|^[ \t]*//[^\n]*\n", re.DOTALL | re.MULTILINE)
_IMPORT = re.compile(r"^import\s*\{([^{}]*)\}\s*from\s*([\"'])\./([\w-]+)\.js\2;?[ \t]*\n", re.MULTILINE)
_DEFAULT = re.compile(r"^export\s+default\s+", re.MULTILINE)
_EXPORT = re.compile(r"^export\s+(?=(?:const|let|(?:async\s+)?function\*?|class)\s+([\w$]+))", re.MULTILINE)
_BINDING = re.compile(r"([\w$]+)(?:\s+as\s+([\w$]+))?")
_LEFT_OVER = re.compile(r"^(?:import|export)\b[^\n]*|\bimport\s*\([^\n]*|\bimport\.meta\b[^\n]*", re.MULTILINE)


class ComposeError(ValueError):
    """A module that is missing, a cycle, or a name that nobody exports; the message says which file."""


@dataclass(frozen=True)
class _Module:
    imports: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]  # (module, ((its name, name here), ...)), ...
    exports: tuple[str, ...]
    body: str


def _read(name: str, folder: Path, asked_by: str | None) -> _Module:
    path = folder / f"{name}.js"
    if not re.fullmatch(r"[\w-]+", name) or not path.is_file():
        there = ", ".join(sorted(p.stem for p in folder.glob("*.js"))) or "none"
        asker = f"{asked_by}.js imports" if asked_by else "asked for"
        raise ComposeError(f"{asker} the module {name!r}, which is not in {folder.name}/; there are: {there}")
    text = _COMMENT.sub("", path.read_text(encoding="utf-8").replace("\r\n", "\n"))

    imports: list[tuple[str, tuple[tuple[str, str], ...]]] = []
    for bindings, _, source in _IMPORT.findall(text):
        pairs = []
        for item in filter(None, (part.strip() for part in bindings.split(","))):
            match = _BINDING.fullmatch(item)
            if match is None:
                raise ComposeError(f"{name}.js: cannot read {item!r} in its import from ./{source}.js")
            pairs.append((match[1], match[2] or match[1]))
        imports.append((source, tuple(pairs)))
    body = _IMPORT.sub("", text)

    exports = _EXPORT.findall(body)
    body = _EXPORT.sub("", body)
    body, defaults = _DEFAULT.subn("const $default = ", body)
    if defaults > 1:
        raise ComposeError(f"{name}.js has {defaults} default exports; one module has one")
    if defaults:
        exports.append("default")
    if left_over := _LEFT_OVER.search(body):
        raise ComposeError(f"{name}.js: cannot compose {left_over[0].strip()!r}; see the forms in {__name__}")
    return _Module(tuple(imports), tuple(exports), body.strip("\n"))


def _variable(name: str) -> str:
    return "$" + name.replace("-", "_")


def _scopes(names: Iterable[str], folder: Path) -> str:
    """Return every module that `names` need, once each, as scopes in an order in which all imports are ready."""
    modules: dict[str, _Module] = {}
    placed: list[str] = []

    def place(name: str, above: tuple[str, ...]) -> None:
        if name in above:
            raise ComposeError("modules import each other: " + " -> ".join(f"{n}.js" for n in (*above, name)))
        if name in placed:
            return
        module = modules.setdefault(name, _read(name, folder, above[-1] if above else None))
        for source, pairs in module.imports:
            place(source, (*above, name))
            if missing := [theirs for theirs, _ in pairs if theirs not in modules[source].exports]:
                has = ", ".join(modules[source].exports) or "nothing"
                raise ComposeError(
                    f"{name}.js imports {', '.join(map(repr, missing))} from ./{source}.js, which exports: {has}"
                )
        placed.append(name)

    for name in names:
        place(name, ())
        if "default" not in modules[name].exports:
            raise ComposeError(f"{name}.js has no default export, so it is no figure")

    scopes = []
    for name in placed:
        module = modules[name]
        lines = [f"const {_variable(name)} = (() => {{"]
        for source, pairs in module.imports:
            taken = ", ".join(theirs if theirs == ours else f"{theirs}: {ours}" for theirs, ours in pairs)
            lines.append(f"const {{ {taken} }} = {_variable(source)};")
        given = ", ".join("default: $default" if export == "default" else export for export in module.exports)
        lines += [module.body, f"return {{ {given} }};", "})();"]
        scopes.append("\n".join(lines))
    return "\n".join(scopes)


def compose(name: str, *, folder: Path = JS) -> str:
    """Return the figure `name` and all that it imports as the one ES module that anywidget wants.

    Parameters
    ----------
    name : str
        The file's name without ``.js``; it is also the figure's `figure` trait.
    folder : Path
        Where the modules are.

    Raises
    ------
    ComposeError
        If a module is missing, has no default export, imports a name that nobody exports, or imports itself.
    """
    return f"{_scopes([name], folder)}\nexport default {_variable(name)}.default;\n"


def bundle(names: Iterable[str], *, folder: Path = JS) -> str:
    """Return one classic script that puts each figure at ``globalThis.losslab.figures[name]``, shared modules once.

    It holds no import and no export, so a page may load it with ``<script src>`` from ``file://`` too. Each entry is
    the figure's default export, ``{render({model, el})}``, in anywidget's own form. Bundles on one page add up.

    Parameters
    ----------
    names : iterable of str
        Figures, by the names that `compose` takes. Order and repetition do not change the script.
    folder : Path
        Where the modules are.

    Raises
    ------
    ComposeError
        As for `compose`.
    """
    figures = sorted(set([names] if isinstance(names, str) else names))
    entries = ", ".join(f"{json.dumps(name)}: {_variable(name)}.default" for name in figures)
    return "\n".join(
        [
            "(() => {",
            '"use strict";',
            _scopes(figures, folder),
            f"Object.assign(((globalThis.losslab ??= {{}}).figures ??= {{}}), {{ {entries} }});",
            "})();\n",
        ]
    )


def stylesheet(*, folder: Path = JS) -> str:
    """Return the one style sheet of all live figures, without its comments."""
    css = (folder / "figure.css").read_text(encoding="utf-8").replace("\r\n", "\n")
    return re.sub(r"\n{2,}", "\n", re.sub(r"[ \t]*/\*.*?\*/", "", css, flags=re.DOTALL)).lstrip("\n")
