# ruff: noqa: E501  # a case a line
"""Joining modules: what comes out runs, and what cannot be joined is refused by name."""

import re
from pathlib import Path

import pytest

from losslab.figures import ComposeError, bundle, compose, stylesheet
from losslab.figures.compose import JS

FIGURES = [
    "averaging",
    "descent",
    "false_negatives",
    "flip",
    "forces",
    "ghosts",
    "gradient_shares",
    "norm_bias",
    "number_formats",
    "score_gap",
    "score_matrix",
    "sweep",
    "ties",
    "token_batch",
    "truncation",
    "underflow",
    "units",
    "weight",
]


@pytest.fixture
def modules(tmp_path):
    """Write modules into a folder; return it."""

    def write(**texts):
        for name, text in texts.items():
            (tmp_path / f"{name}.js").write_text(text, encoding="utf-8")
        return tmp_path

    return write


def run(browser, script, *, module=False):
    """Run a script or module in a page and return `globalThis.out`."""
    page = browser.new_page()
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    try:
        if module:
            page.evaluate(
                """async (text) => {
                  const url = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
                  globalThis.out = (await import(url)).default;
                }""",
                script,
            )
        else:
            page.add_script_tag(content=script)
        assert not errors
        return page.evaluate("globalThis.out")
    finally:
        page.close()


SHARED = """\
// a comment that need not travel
/** nor this,
 *  export const nothing = 0; */
export const base = 40;
let calls = 0;
export function more(n) { calls += 1; return base + n + (calls - 1); }
export async function later() {}
export class Thing {}
"""


def test_modules_become_one_that_runs(browser, modules):
    folder = modules(
        shared=SHARED,
        middle='import { base } from "./shared.js";\nconst calls = "my own";\nexport let half = base / 2;\n',
        fig="import {\n  more as plus,\n  base,\n} from \"./shared.js\";\nimport { half } from './middle.js';\n"
        "const more = plus(2);\nexport default [more, base, half];\n",
    )
    text = compose("fig", folder=folder)
    assert run(browser, text, module=True) == [42, 40, 20]
    assert not re.search(r"^import\b", text, re.MULTILINE)
    assert text.count("export") == 1
    assert "comment" not in text
    assert text.count("let calls = 0") == 1  # a module that two others import is there once


def test_bundle_is_one_classic_script(browser, modules):
    one = 'import { more } from "./shared.js";\nexport default { render: () => more(0) };\n'
    folder = modules(shared=SHARED, one=one, two=one)
    text = bundle(["two", "one", "one"], folder=folder)
    assert text == bundle(["one", "two"], folder=folder)
    assert text.count("let calls = 0") == 1
    assert not re.search(r"\b(?:import|export)\b", text)
    # Both figures share the state of the module that both import: 40, then 41.
    out = "globalThis.out = [losslab.figures.one.render(), losslab.figures.two.render(), Object.keys(losslab.figures)];"
    assert run(browser, text + out) == [40, 41, ["one", "two"]]


def test_bundles_add_up(browser, modules):
    folder = modules(one="export default 1;\n", two="export default 2;\n")
    script = bundle("one", folder=folder) + bundle("two", folder=folder) + "globalThis.out = losslab.figures;"
    assert run(browser, script) == {"one": 1, "two": 2}


def test_real_figures_compose(browser):
    for name in FIGURES:
        page = browser.new_page()
        kind = page.evaluate(
            """async (text) => {
              const url = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
              return typeof (await import(url)).default.render;
            }""",
            compose(name),
        )
        page.close()
        assert kind == "function"
    script = bundle(FIGURES) + "globalThis.out = Object.keys(losslab.figures);"
    assert run(browser, script) == FIGURES
    assert script.count("function pen(") == 1


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ({}, r"asked for the module 'fig', which is not in .*; there are: none"),
        ({"fig": 'import { a } from "./gone.js";\nexport default a;\n'}, r"fig\.js imports the module 'gone', .*there are: fig"),
        ({"fig": 'import { a, b, c } from "./x.js";\nexport default a;\n', "x": "export const a = 1, b = 2;\n"},
         r"fig\.js imports 'b', 'c' from \./x\.js, which exports: a"),
        ({"fig": 'import { a } from "./x.js";\nexport default a;\n', "x": 'import { b } from "./y.js";\nexport const a = b;\n',
          "y": 'import { a } from "./x.js";\nexport const b = a;\n'}, r"import each other: fig\.js -> x\.js -> y\.js -> x\.js"),
        ({"fig": "export const a = 1;\n"}, r"fig\.js has no default export"),
        ({"fig": "export default 1;\nexport default 2;\n"}, r"fig\.js has 2 default exports"),
        ({"fig": 'import x from "./x.js";\nexport default x;\n'}, r"fig\.js: cannot compose 'import x from"),
        ({"fig": 'import * as x from "./x.js";\nexport default x;\n'}, r"fig\.js: cannot compose 'import \* as x"),
        ({"fig": 'import { x } from "https://elsewhere.example/x.js";\nexport default x;\n'}, r"fig\.js: cannot compose"),
        ({"fig": "export default import('./x.js');\n"}, r"fig\.js: cannot compose"),
        ({"fig": "export { a };\nexport default 1;\n"}, r"fig\.js: cannot compose 'export \{ a \};'"),
        ({"fig": 'import { "a b" as c } from "./x.js";\nexport default c;\n'}, r"fig\.js: cannot read '\"a b\" as c'"),
    ],
)  # fmt: skip
def test_what_cannot_be_joined_is_refused_by_name(modules, texts, message):
    folder = modules(**texts)
    with pytest.raises(ComposeError, match=message):
        compose("fig", folder=folder)
    with pytest.raises(ComposeError, match=message):
        bundle(["fig"], folder=folder)


@pytest.mark.parametrize("name", ["../kit", "a/b", "", "kit.js"])
def test_a_name_is_no_path(name):
    with pytest.raises(ComposeError, match=r"is not in js/; there are: .*kit"):
        compose(name)


def test_every_module_is_used():
    text = bundle(FIGURES)
    for path in JS.glob("*.js"):
        assert f"const ${path.stem} = (() => {{" in text, f"{path.name} is imported by no figure"


def test_no_source_asks_another_host():
    for path in Path(JS).iterdir():
        found = re.findall(r"https?://[^\s\"'`)]+", path.read_text(encoding="utf-8"))
        assert set(found) <= {"http://www.w3.org/1999/xhtml", "http://www.w3.org/2000/svg"}, path.name
    assert "@import" not in stylesheet()
    assert "url(" not in stylesheet()


def test_stylesheet_has_no_comments_and_balances():
    css = stylesheet()
    assert "/*" not in css
    assert css.count("{") == css.count("}")
