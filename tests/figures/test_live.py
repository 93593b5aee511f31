# ruff: noqa: E501  # scripts in one text
"""Live figures in a real browser: what they say, how they are reached, how they look, how fast they answer."""

import re

import pytest
from axe_playwright_python.sync_playwright import Axe

from losslab import figures
from losslab.figures import GhostDocuments

WIDE = "DejaVu Sans, sans-serif"  # about as wide as a text face gets: what fits in it fits in all
ROOMS = (320, 358, 390, 480, 599, 600, 680, 760)

GEOMETRY = """() => {
  const drawing = document.querySelector('#figure svg[role=img]'), box = drawing.getBoundingClientRect(), bad = [];
  const marks = [...drawing.querySelectorAll('[data-key]')].map((node) => ({ key: node.dataset.key, node, r: node.getBoundingClientRect() }));
  const texts = marks.filter(({ node }) => node.tagName === 'text' && node.textContent);
  const solid = marks.filter(({ key }) => /-(is|aim|flip)$|-now$/.test(key) && !texts.some((text) => text.key === key));
  const meet = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top + 3 < b.bottom - 3 && b.top + 3 < a.bottom - 3;
  texts.forEach((text, i) => {
    const px = parseFloat(getComputedStyle(text.node).fontSize);
    if (px < 12) bad.push(`${text.key} is ${px}px`);
    const { left, right, top, bottom } = text.r;
    if (left < box.left - 1 || right > box.right + 1 || bottom > box.bottom + 1 || top < box.top - 2) bad.push(`${text.key} leaves`);
    for (const other of [...texts.slice(i + 1), ...solid])
      if (meet(text.r, other.r) && text.key !== `${other.key}-name`) bad.push(`${text.key} meets ${other.key}`);
  });
  for (const node of document.querySelectorAll('#figure label, #figure legend, #figure p, #figure button, #figure span')) {
    const px = parseFloat(getComputedStyle(node).fontSize), { left, right } = node.getBoundingClientRect();
    if (px < 12) bad.push(`${node.textContent} is ${px}px`);
    if (left < box.left - 4 || right > box.right + 4) bad.push(`${node.textContent} leaves`);
  }
  const over = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  if (over > 0) bad.push(`the page scrolls ${over}px sideways`);
  const says = document.querySelector('#figure .ll-says');
  return { bad, says: Math.round(says.getBoundingClientRect().height), top: Math.round(box.top) };
}"""

SWEEP = f"""(states) => {{
  const look = {GEOMETRY}, bad = [], heights = new Set();
  for (const state of states) {{
    for (const key in state) model.set(key, state[key]);
    const got = look();
    heights.add(`${{got.says}} ${{got.top}}`);
    for (const what of got.bad) bad.push(`${{JSON.stringify(state)}}: ${{what}}`);
  }}
  return {{ bad, heights: [...heights] }};
}}"""

CONTRAST = """() => {
  const light = (rgb) => {
    const [r, g, b] = rgb.map((v) => ((v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const rgb = (text) => text.match(/[\\d.]+/g).slice(0, 3).map(Number);
  const ratio = (a, b) => { const [x, y] = [light(rgb(a)), light(rgb(b))].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
  const page = getComputedStyle(document.body).backgroundColor, found = [];
  const boxes = [...document.querySelectorAll('#figure svg[role=img] rect')].filter((r) => getComputedStyle(r).fill.startsWith('rgb'));
  for (const text of document.querySelectorAll('#figure svg[role=img] text')) {
    const { left, width, top, height } = text.getBoundingClientRect(), x = left + width / 2, y = top + height / 2;
    const under = boxes.filter((r) => { const q = r.getBoundingClientRect(); return q.left < x && x < q.right && q.top < y && y < q.bottom; });
    const ground = under.length ? getComputedStyle(under.at(-1)).fill : page;
    found.push([ratio(getComputedStyle(text).fill, ground), text.dataset.key]);
  }
  for (const node of document.querySelectorAll('#figure label, #figure legend, #figure button, #figure .ll-live, #figure .ll-value'))
    found.push([ratio(getComputedStyle(node).color, page), node.textContent]);
  return found.sort((a, b) => a[0] - b[0]).slice(0, 3);
}"""


def test_page_and_python_say_the_same_in_every_state(make, states, host):
    figure = make()
    hosted = host(figure)
    assert hosted.says() == figure.describe()
    seen = set()
    for state in states(figure):
        hosted.put(**state)
        assert hosted.says() == figure.describe(), state
        seen.add(hosted.says())
    assert len(seen) > 10  # and it does not always say the same


# Which control has the focus after so many tabs, the keys to press there, and what the trait then is.
KEYS = {
    "descent": [
        ("step", [("ArrowRight", 1), ("End", 200), ("Home", 0), ("ArrowRight", 1)]),
        ("step", []),  # the button that plays
        ("step", [("Enter", 2), ("Space", 3)]),  # the one that takes one step
        ("step", [("Enter", 0)]),  # and the one that goes back
        ("pairs", [("ArrowRight", 9), ("Home", 2), ("ArrowUp", 3), ("End", 12)]),
        ("temperature", [("ArrowLeft", 0.16), ("Home", 0.05), ("End", 1.0), ("ArrowLeft", 0.7)]),
        ("surface", [("ArrowLeft", "circle"), ("ArrowRight", "sphere")]),
        ("shared", [("ArrowRight", True), ("ArrowLeft", False)]),
        ("seed", [("ArrowRight", 2), ("End", 30), ("Home", 1), ("ArrowRight", 2)]),
    ],
    "forces": [
        ("temperature", [("ArrowLeft", 0.07), ("ArrowRight", 0.1), ("Home", 0.02), ("End", 1.0), ("ArrowLeft", 0.7)]),
        ("normalize", [("ArrowDown", False), ("ArrowUp", True), ("ArrowDown", False)]),
        ("lengths", [("End", [1.4, 0.9, 0.7, 1.3, 1.0, 0.6, 1.1]), ("ArrowLeft", [1.3, 0.9, 0.7, 1.3, 1.0, 0.6, 1.1])]),
        ("arrows", [("ArrowDown", "forces"), ("ArrowUp", "shares")]),
    ],
    "ghosts": [
        ("width", [("ArrowRight", 7), ("ArrowLeft", 6), ("End", 12), ("ArrowRight", 12), ("Home", 2), ("ArrowUp", 3)]),
        ("fixed", [("ArrowDown", True), ("ArrowUp", False), ("ArrowRight", True)]),
        ("logit_b", [("ArrowLeft", 0.2), ("ArrowRight", 0.3), ("End", 2), ("Home", -1)]),
    ],
    "flip": [("width", [("ArrowRight", 7), ("Home", 2), ("ArrowRight", 3), ("End", 12)])],
    "ties": [("width", [("ArrowLeft", 16), ("ArrowRight", 17), ("End", 40), ("Home", 3), ("ArrowRight", 4)])],
    "gradient_shares": [
        ("temperature", [("ArrowRight", 0.06), ("ArrowLeft", 0.05), ("End", 1.0), ("Home", 0.005), ("ArrowUp", 0.006)]),
        ("width", [("ArrowLeft", 128), ("Home", 8), ("ArrowRight", 16), ("End", 256), ("ArrowDown", 128)]),
        ("query", [("ArrowDown", 1), ("ArrowUp", 0), ("End", 1)]),
    ],
    "number_formats": [
        ("temperature", [("ArrowRight", 0.016), ("ArrowLeft", 0.014), ("End", 1.0), ("Home", 0.005)]),
        ("positive", [("ArrowRight", 0.701), ("ArrowLeft", 0.7), ("Home", 0.1), ("End", 1.0)]),
        ("gap", [("ArrowRight", 0.002), ("Home", 0.0001), ("End", 0.05)]),
    ],
    "score_gap": [
        ("temperature", [("ArrowLeft", 0.04), ("End", 1.0), ("Home", 0.005), ("ArrowRight", 0.006)]),
        ("positive", [("ArrowRight", 0.71), ("Home", 0.0), ("End", 1.0)]),
        ("negative", [("ArrowRight", 0.66), ("ArrowLeft", 0.65)]),
        ("mislabelled", [("ArrowLeft", 0.74), ("End", 1.0), ("Home", 0.0)]),
    ],
    "false_negatives": [
        ("width", [("ArrowLeft", 96), ("Home", 2), ("ArrowRight", 3), ("End", 256)]),
        ("mask", [("ArrowRight", "exact"), ("ArrowRight", "threshold"), ("ArrowRight", "guide")]),
        ("margin", [("ArrowRight", 0.01), ("Home", -0.1), ("End", 0.5), ("ArrowLeft", 0.49)]),
    ],
    "score_matrix": [
        ("source", [("ArrowRight", "random"), ("ArrowLeft", "real")]),
        ("colour", [("ArrowRight", "share"), ("ArrowLeft", "cosine")]),
        ("width", [("ArrowLeft", 16), ("End", 64), ("Home", 2), ("ArrowRight", 4), ("ArrowUp", 8)]),
        ("row", [("ArrowRight", 2), ("End", 8), ("ArrowLeft", 7), ("Home", 1)]),
        ("temperature", [("ArrowRight", 0.07), ("Home", 0.01), ("End", 1.0), ("ArrowLeft", 0.5)]),
        ("dimension", [("ArrowLeft", 32), ("Home", 2), ("ArrowRight", 4), ("End", 64)]),
    ],
    "sweep": [
        ("panel", [("ArrowRight", "SciFact"), ("ArrowLeft", "apidocs, same examples"), ("ArrowRight", "SciFact")]),
        ("at", [("ArrowRight", 256.0), ("Home", 16.0), ("ArrowUp", 32.0), ("End", 1024.0), ("ArrowLeft", 512.0)]),
    ],
    "truncation": [
        ("dim", [("ArrowRight", 96), ("Home", 4), ("ArrowUp", 8), ("End", 384), ("ArrowLeft", 320)]),
        ("set", [("ArrowDown", "SciFact, MiniLM"), ("ArrowUp", "apidocs, MiniLM"), ("ArrowDown", "SciFact, MiniLM")]),
        ("kinds", [("Space", ["SVD", "PCA"]), ("Space", ["random dims", "SVD", "PCA"])]),
        ("kinds", [("Space", ["random dims", "random rotation", "SVD", "PCA"])]),
        ("kinds", [("Space", ["random dims", "random rotation", "PCA"])]),
        ("kinds", [("Space", ["random dims", "random rotation"])]),
        ("renormalised", [("ArrowRight", False), ("ArrowLeft", True), ("ArrowRight", False)]),
        ("centred", [("ArrowRight", True), ("ArrowLeft", False), ("ArrowRight", True)]),
        ("scale", [("ArrowRight", "retention"), ("ArrowLeft", "score")]),
        ("axis", [("ArrowRight", "fraction"), ("ArrowLeft", "dimensions")]),
    ],
    "norm_bias": [
        ("dim", [("ArrowRight", 8), ("Home", 4), ("End", 64), ("ArrowLeft", 32)]),
        ("renormalised", [("ArrowRight", True), ("ArrowLeft", False)]),
        ("query", [("ArrowDown", 1), ("ArrowDown", 2), ("ArrowUp", 1)]),
    ],
    "averaging": [
        ("average", [("ArrowDown", "texts"), ("End", "perplexities"), ("Home", "tokens"), ("ArrowDown", "batches")]),
        ("batch", [("ArrowRight", 3), ("End", 8), ("Home", 1), ("ArrowUp", 2)]),
        ("seed", [("ArrowRight", 1), ("End", 20), ("ArrowLeft", 19), ("Home", 0)]),
    ],
    "underflow": [
        ("gap", [("ArrowLeft", 103.5), ("ArrowRight", 104.0), ("Home", 1.0), ("ArrowUp", 1.25), ("End", 800.0)]),
        ("others", [("ArrowRight", 10), ("End", 100000), ("ArrowLeft", 10000), ("Home", 1)]),
        ("format", [("ArrowRight", "bfloat16"), ("ArrowRight", "float16"), ("ArrowRight", "float64")]),
    ],
    "token_batch": [
        ("extra", [("ArrowLeft", 5), ("Home", 0), ("ArrowRight", 1), ("End", 6)]),
        ("side", [("ArrowRight", "left"), ("ArrowLeft", "right"), ("ArrowRight", "left")]),
        ("shift", [("ArrowRight", "twice"), ("ArrowRight", "none"), ("ArrowRight", "once")]),
        ("mask", [("ArrowRight", "labels"), ("ArrowRight", "wrong")]),
        ("numerator", [("ArrowRight", True), ("ArrowLeft", False)]),
        ("denominator", [("ArrowRight", False), ("ArrowRight", True)]),
    ],
    "units": [
        ("unit", [("ArrowRight", "characters"), ("End", "words"), ("ArrowLeft", "BPE-8k"), ("Home", "bytes")]),
        ("model", [("ArrowRight", "subword model"), ("ArrowLeft", "byte model"), ("ArrowRight", "subword model")]),
        ("base", [("ArrowRight", "bits"), ("ArrowLeft", "nats")]),
        ("power", [("ArrowRight", "2"), ("ArrowRight", "mean"), ("ArrowRight", "e"), ("ArrowRight", "2")]),
    ],
    "weight": [
        ("loss", [("ArrowDown", "LambdaLoss"), ("ArrowDown", "ListMLE"), ("ArrowUp", "LambdaLoss")]),
        (
            "width",
            [("ArrowLeft", 24), ("ArrowLeft", 12), ("Home", 3), ("ArrowRight", 6), ("End", 40), ("ArrowLeft", 24)],
        ),
    ],
}


def test_keyboard_alone_reaches_everything(make, host):
    figure = make()
    hosted = host(figure)
    press = hosted.page.keyboard.press
    first = hosted.get(*(trait for trait, _ in KEYS[figure.figure]))
    for trait, steps in KEYS[figure.figure]:
        press("Tab")
        outline = hosted.page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline == "solid", f"{trait} shows no focus"
        for key, value in steps:
            press(key)
            assert hosted.get(trait) == [pytest.approx(value) if isinstance(value, float) else value], (trait, key)
            setattr(figure, trait, hosted.get(trait)[0])  # the page never reaches what Python would refuse
            assert hosted.says() == figure.describe()
    assert hosted.page.evaluate("saved") > 2  # every change is handed on to the kernel
    press("Tab")
    assert hosted.page.evaluate("document.activeElement.textContent") == "Reset"
    press("Enter")
    assert hosted.get(*(trait for trait, _ in KEYS[figure.figure])) == first
    for _ in range(1 + hosted.page.locator("#figure .ll-handle").count()):
        press("Tab")
    assert hosted.page.evaluate("document.querySelector('#figure').contains(document.activeElement)") is False


# The trait of a figure's first slider, and what the slider says of it, where that is not the width.
FIRST = dict.fromkeys(("gradient_shares", "number_formats", "score_gap"), ("temperature", "τ = {:g}"))
FIRST["descent"] = ("step", "{}")
FIRST["forces"] = ("temperature", "{:g}")
FIRST["averaging"] = ("batch", lambda figure: f"{figure.batch} text{'s' * (figure.batch > 1)}")
FIRST["underflow"] = ("gap", "{:g} below")
FIRST["norm_bias"] = ("dim", lambda figure: f"{figure.dim} of {figure.dims[-1]}")
FIRST["truncation"] = ("dim", lambda figure: re.search(r"[\d,]+ of [\d,]+", figure.describe())[0])
FIRST |= {"score_matrix": ("width", "{:,} pairs"), "sweep": ("at", "{:,.0f}")}
FIRST |= {
    "token_batch": ("extra", "{} columns"),
    "units": ("unit", lambda figure: f"{len(figure._unit(figure.unit)['spans'])} {figure.unit}"),
}


def test_controls_follow_traits(make, states, host):
    figure = make()
    hosted = host(figure)
    hosted.put(**states(figure)[1])
    for state in (states(figure)[-1], states(figure)[0]):
        hosted.put(**state)
        slider = hosted.page.locator("#figure input[type=range]").first
        trait, says = FIRST.get(figure.figure, ("width", "{} documents"))
        expected = says(figure) if callable(says) else says.format(getattr(figure, trait))
        assert slider.get_attribute("aria-valuetext") == expected
        shown = hosted.page.locator("#figure .ll-value").first.text_content()
        assert shown == slider.get_attribute("aria-valuetext")
        for name in ("fixed", "loss"):
            if name in state:
                checked = hosted.page.locator("#figure input[type=radio]:checked + *, #figure label:has(:checked)")
                words = {False: "the bug", True: "fixed"}.get(state[name], state[name])
                assert words in checked.first.text_content()


def test_names_roles_and_ids(make, host):
    figure = make()
    hosted = host(figure)
    facts = hosted.page.evaluate("""() => {
      const all = (selector) => [...document.querySelectorAll('#figure ' + selector)];
      return {
        group: document.querySelector('#figure [role=group]').getAttribute('aria-label'),
        drawing: all('svg[role=img]').map((node) => node.getAttribute('aria-label')),
        live: all('[aria-live=polite][aria-atomic=true]').map((node) => node.textContent),
        unlabelled: all('input').filter((node) => !node.labels.length || !node.labels[0].textContent.trim()).length,
        radios: all('input[type=radio]').filter((node) => !node.closest('fieldset')?.querySelector('legend')?.textContent).length,
        unspoken: all('input[type=range]').filter((node) => !/\\d/.test(node.getAttribute('aria-valuetext'))).length,
        small: all('input, button').filter((node) => (['radio', 'checkbox'].includes(node.type) ? node.labels[0] : node).getBoundingClientRect().height < 23.5).length,
        exposed: all('.ll-unseen:not([aria-hidden=true])').length,
      };
    }""")
    assert facts["group"] == figure.title
    assert len(facts["drawing"]) == 1
    assert len(facts["drawing"][0]) > 40
    assert facts["live"] == [figure.describe()]
    assert [facts[key] for key in ("unlabelled", "radios", "unspoken", "small", "exposed")] == [0] * 5


def test_axe_finds_nothing(make, host):
    hosted = host(make())
    results = Axe().run(
        hosted.page, options={"rules": {name: {"enabled": False} for name in ("page-has-heading-one", "region")}}
    )
    assert results.response["violations"] == []
    assert len(results.response["passes"]) > 10


def test_two_on_one_page_and_none_left_behind(make, host):
    hosted = host(make())
    counted = hosted.page.evaluate("""async () => {
      const el = document.createElement('div');
      document.querySelector('main').append(el);
      const off = losslab.figures[model.get('figure')].render({ model, el });
      await new Promise((done) => setTimeout(done, 100));
      const ids = [...document.querySelectorAll('[id]')].map((node) => node.id);
      const radios = new Set([...document.querySelectorAll('input[type=radio]')].map((node) => node.name)).size;
      const drawn = el.querySelectorAll('svg[role=img] text').length;
      off();
      model.set('width', model.get('widths')?.[0] ?? 9);
      return { same: ids.length - new Set(ids).size, ids: ids.length, drawn, left: el.childElementCount, radios };
    }""")
    assert (counted["same"], counted["left"]) == (0, 0)
    assert counted["drawn"] > 20
    assert counted["ids"] >= 3
    assert counted["radios"] % 2 == 0  # groups of radios do not mix


def test_module_asks_its_host_for_nothing_else(make, host):
    """The protocol of anywidget is all that is used, so whatever speaks it can host a figure."""
    hosted = host(make())
    used = hosted.page.evaluate("""async () => {
      const used = new Set();
      const strict = new Proxy(model, { get(target, name) { used.add(name); return target[name]; } });
      const el = document.createElement('div');
      const off = losslab.figures[model.get('figure')].render({ model: strict, el });
      document.querySelector('main').append(el);  // some hosts put it into the page only afterwards
      const places = (root) => [...root.querySelectorAll('svg[role=img] text')].map((node) => node.dataset.key + node.style.transform);
      const same = () => JSON.stringify(places(el)) === JSON.stringify(places(document.querySelector('#figure')));
      for (let i = 0; i < 50; i++) await new Promise((done) => setTimeout(done, i > 1 && same() ? 0 : 100));
      const alike = same();
      el.querySelector('.ll-reset').click();
      off();
      return { used: [...used].sort(), same: alike };
    }""")
    assert used == {"used": ["get", "off", "on", "save_changes", "set"], "same": True}


@pytest.mark.parametrize("font", ["Arial, sans-serif", WIDE])
def test_nothing_touches_leaves_or_jumps(make, states, host, font):
    figure = make()
    hosted = host(figure, font=font, reduced_motion="reduce", width=800)
    some = [state for state in states(figure) if state.get("logit_b", 0.3) in (-1.0, 0.3, 2.0)]
    for room in ROOMS:
        hosted.room(room)
        got = hosted.page.evaluate(SWEEP, some)
        assert got["bad"] == [], (room, got["bad"][:5])
        assert len(got["heights"]) == 1, (room, got["heights"])  # the drawing starts where it started


def test_page_never_scrolls_sideways(make, host):
    for width in (360, 390, 760, 1280):
        hosted = host(make(), width=width)
        assert hosted.page.evaluate(GEOMETRY)["bad"] == []
        hosted.context.close()


def test_the_sweep_sees_what_it_should(host):
    """Planted faults: a text on another, a text outside, small type, a page that is too wide."""
    hosted = host(GhostDocuments(), reduced_motion="reduce")
    assert hosted.page.evaluate(GEOMETRY)["bad"] == []
    for fault, found in (
        ("node.style.transform = document.querySelector('[data-key=ours-note]').style.transform", "meets"),
        ("node.style.transform = 'translate(-30px, 100px)'", "leaves"),
        ("node.style.fontSize = '11px'", "is 11px"),
        ("document.body.style.width = '900px'", "scrolls"),
    ):
        hosted.page.evaluate(f"() => {{ const node = document.querySelector('[data-key=other-name]'); {fault} }}")
        assert any(found in bad for bad in hosted.page.evaluate(GEOMETRY)["bad"]), fault
    ratios = hosted.page.evaluate(CONTRAST)
    hosted.page.evaluate("document.querySelector('[data-key=ours-1-name]').style.fill = '#84bdf6'")
    assert min(ratios)[0] >= 4.5
    assert hosted.page.evaluate(CONTRAST)[0][1] == "ours-1-name"
    assert hosted.page.evaluate(CONTRAST)[0][0] < 4.5


@pytest.mark.parametrize(("theme", "scheme"), [("", "light"), ("", "dark"), ("light", "dark"), ("dark", "light")])
def test_contrast_in_both_themes(make, states, host, theme, scheme):
    figure = make()
    hosted = host(figure, color_scheme=scheme, reduced_motion="reduce")
    if theme:
        hosted.page.evaluate("theme => { document.documentElement.dataset.theme = theme }", theme)
    for state in states(figure)[:: len(states(figure)) // 4]:
        hosted.put(**state)
        for ratio, what in hosted.page.evaluate(CONTRAST):
            assert ratio >= 4.5, (state, what)
    dark = (theme or scheme) == "dark"
    ink = hosted.page.evaluate("getComputedStyle(document.querySelector('.ll-fig')).color")
    assert ink == ("rgb(206, 214, 221)" if dark else "rgb(34, 40, 50)")


def test_motion_is_short_and_only_for_those_who_want_it(make, states, host):
    for wish, seconds in (("reduce", "0s"), ("no-preference", "0.18s")):
        figure = make()
        hosted = host(figure, reduced_motion=wish)
        assert hosted.page.query_selector("#figure svg.ll-still") is not None  # the first drawing does not move
        hosted.put(**states(figure)[-1])
        style = "node => [getComputedStyle(node).transitionDuration, getComputedStyle(node).animationName]"
        duration, animation = hosted.page.eval_on_selector("#figure svg[role=img] > path[data-key]", style)
        assert duration.split(", ")[0] == seconds
        if wish == "reduce":
            assert animation == "none"


SPEED = """async ([selector, values]) => {
  const input = document.querySelector(selector), drawing = document.querySelector('#figure svg[role=img]');
  const change = (i) => { input.value = values[i % values.length]; input.dispatchEvent(new Event('input', { bubbles: true })); };
  const frame = () => new Promise(requestAnimationFrame);
  const p95 = (times) => times.sort((a, b) => a - b)[Math.ceil(0.95 * times.length) - 1];
  const draws = [], frames = [], empty = [];
  for (let i = 0; i < 150; i++) {
    const start = performance.now();
    change(i);
    const drawn = performance.now() - start;
    if (i >= 30) draws.push(drawn);
    if (i % 10 === 0) await frame();
  }
  for (let i = 0; i < 120; i++) {
    await new Promise((done) => setTimeout(done, (i * 7) % 16)); // at any moment within a frame
    const start = performance.now();
    if (i % 2) change((i - 1) / 2);
    await frame();
    drawing.getBoundingClientRect();
    (i % 2 ? frames : empty).push(performance.now() - start);
  }
  await new Promise((done) => setTimeout(done, 400));
  let later = 0;
  const watch = new MutationObserver((records) => (later += records.length));
  change(60); // another value than the last
  watch.observe(document.querySelector('#figure'), { subtree: true, childList: true, attributes: true, characterData: true });
  await new Promise((done) => setTimeout(done, 400));
  return { draw: p95(draws), frame: p95(frames), empty: p95(empty), later };
}"""


@pytest.mark.timing
def test_redraw_is_within_a_frame(make, host, slowness, record_property):
    """From the input event to the last DOM change, p95, and to the next frame; at the widest setting.

    Where a busy machine is late with a frame in which nothing changed, a frame with a redraw may be 4 ms later than that.
    All milliseconds are those of a quiet machine, see `REFERENCE`.
    """
    figure = make()
    hosted = host(figure)
    last = {"ghosts": (12, 11), "flip": (12, 11), "ties": (37, 36), "weight": (4, 3), "gradient_shares": (12, 11)}
    last = {
        **last,
        "forces": (4, 5),
        "descent": (120, 121),
        "number_formats": (12, 11),
        "score_gap": (12, 11),
        "score_matrix": (5, 4),
    }
    last = {
        **last,
        "false_negatives": (15, 14),
        "sweep": (5, 4),
        "underflow": (180, 179),
        "averaging": (7, 6),
        "token_batch": (6, 5),
        "units": (4, 3),
        "truncation": (12, 11),
        "norm_bias": (4, 3),
    }[figure.figure]
    rounds = []
    for attempt in range(6):  # the machine may be busy with something else: the best of six, some seconds apart
        hosted.page.wait_for_timeout(3000 * (attempt > 0))
        before = slowness(hosted.page)
        got = hosted.page.evaluate(SPEED, ["#figure input[type=range]", list(last)])
        slow = (before + slowness(hosted.page)) / 2
        if figure.figure != "score_matrix":  # whose map follows from its worker
            assert got["later"] == 0  # the input event's own handler does all of it
        rounds.append((got["draw"], got["frame"], max(20, got["empty"] + 4 * slow), slow))
        draw, frame, limit, slow = rounds[-1]
        if draw <= 4 * slow and frame <= limit:
            break
    said = f"redraw p95 {draw:.1f} ms, next frame p95 {frame:.1f} ms (slow {slow:.2f})"
    record_property("measured", f"{figure.figure}: {said}")
    assert draw <= 4 * slow, rounds
    assert frame <= limit, rounds


def test_a_slow_redraw_is_seen(host, slowness):
    """Planted fault: something that listens to the slider takes 6 ms of a quiet machine, and something writes to the
    page a frame later.
    """
    hosted = host(figures.Flip())
    slow = slowness(hosted.page)
    script = """(late) => {
      model.on("change:width", () => { const end = performance.now() + late; while (performance.now() < end); });
      model.on("change:width", () => requestAnimationFrame(() => document.querySelector("#figure").append("")));
    }"""
    hosted.page.evaluate(script, 6 * slow)
    got = hosted.page.evaluate(SPEED, ["#figure input[type=range]", [12, 11]])
    assert got["draw"] > 4 * slow
    assert got["later"] > 0


def test_hero_is_compact(host):
    hosted = host(figures.Flip(), width=792)
    heights = hosted.page.evaluate("document.querySelector('.ll-fig').getBoundingClientRect().height")
    assert heights <= 380
