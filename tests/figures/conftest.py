# ruff: noqa: E501  # a page in one text
"""A page that hosts a figure as a static page does, and figures with real measurements in them."""

import json
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest

from losslab import figures
from losslab.measure.listwise_ties import tie_profile
from losslab.measure.listwise_weight import measure_weight

JS = Path(figures.__file__).parent / "js"

# Work of the kind that a redraw is, which no figure has a part in: milliseconds of 2,000 numbers written to the page.
REFERENCE = """() => {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg"), times = [];
  document.body.append(svg);
  const lines = Array.from({ length: 200 }, () => svg.appendChild(document.createElementNS(svg.namespaceURI, "line")));
  for (let i = 0; i < 60; i++) {
    const start = performance.now();
    for (let j = 0; j < 10; j++)
      for (const [k, line] of lines.entries()) line.setAttribute("x1", (Math.exp(Math.sin(i + j + k)) * 100).toFixed(2));
    if (i >= 20) times.push(performance.now() - start);
  }
  svg.remove();
  return times.sort((a, b) => a - b)[20];
}"""
QUIET = 1.0  # what it takes on the machine that the bounds are for; others were seen to take twice as long
HOST = "http://figures.test/"  # no such host: every request to it is answered from disk, below

PAGE = """\
<!doctype html><html lang="en"><meta charset="utf-8"><title>A figure</title><link rel="icon" href="data:,">
<style>
  :root { color-scheme: light dark; } [data-theme=light] { color-scheme: light; } [data-theme=dark] { color-scheme: dark; }
  body { margin: 0; background: light-dark(#ffffff, #14181e); color: light-dark(#222832, #ced6dd); font: 16px/1.65 %(font)s; }
  main { max-width: 760px; margin: 0 auto; padding: 16px; }
  %(css)s
</style>
<main><div id="figure"></div></main>
<script>%(script)s</script>
<script>
  const state = %(state)s, bus = new EventTarget();
  globalThis.saved = 0;
  globalThis.model = {  // what anywidget gives a figure, and no more
    get: (name) => state[name],
    set(name, value) { if (state[name] !== value) { state[name] = value; bus.dispatchEvent(new Event("change:" + name)); } },
    save_changes() { saved += 1; },
    on: (name, react) => bus.addEventListener(name, react),
    off: (name, react) => bus.removeEventListener(name, react),
  };
  globalThis.off = losslab.figures[state.figure].render({ model, el: document.querySelector("#figure") });
</script>
"""


def pytest_collection_modifyitems(items):
    for item in items:
        if Path(__file__).parent in Path(item.path).parents:
            item.add_marker(pytest.mark.xdist_group("figures"))  # one browser, one JupyterLab, one set of measurements


def traits_of(figure):
    """What a static page is given: the figure's public synced traits."""
    hidden = {"layout", "tabbable", "tooltip"}
    return {name: getattr(figure, name) for name in figure.keys if not name.startswith("_") and name not in hidden}


class Hosted:
    """A figure on a page of its own, and what the page complained about."""

    def __init__(self, browser, figure, *, width=792, font="Arial, sans-serif", **context):
        self.figure = figure
        self.context = browser.new_context(viewport={"width": width, "height": 900}, **context)
        self.page = self.context.new_page()
        self.problems = []
        self.page.on("console", lambda message: self.problems.append(message.text))
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.route("**/*", self._answer)
        state = json.dumps(traits_of(figure)).replace("</", "<\\/")
        parts = {"css": figures.stylesheet(), "script": figures.bundle([figure.figure]), "state": state, "font": font}
        self.html = PAGE % parts
        self.page.goto(HOST)
        self.page.wait_for_selector("#figure svg text")

    def _answer(self, route):
        path = route.request.url.removeprefix(HOST)
        if path == "":
            route.fulfill(body=self.html, content_type="text/html")
        elif (JS / path).is_file():
            route.fulfill(body=(JS / path).read_text(encoding="utf-8"), content_type="text/javascript")
        else:
            self.problems.append(f"asked for {route.request.url}")
            route.abort()

    def put(self, **traits):
        """Set traits in Python, where they are checked, and then on the page."""
        for name, value in traits.items():
            setattr(self.figure, name, value)
        self.page.evaluate("s => { for (const k in s) model.set(k, s[k]) }", traits)

    def get(self, *names):
        return self.page.evaluate("names => names.map((name) => model.get(name))", list(names))

    def says(self):
        return self.page.text_content(".ll-live")

    def text(self, key):
        return self.page.text_content(f'#figure [data-key="{key}"]')

    def number(self, key):
        return float(self.text(key).replace("−", "-").rstrip("%"))

    def room(self, width):
        """Give the figure this many px and wait until it has drawn itself anew."""
        self.page.evaluate("w => { document.querySelector('#figure').style.width = w + 'px' }", width)
        self.page.wait_for_selector(f'#figure svg[role=img][width="{width}"]')


@pytest.fixture
def host(browser):
    """Put a figure on a page; the test fails on whatever the page complains about."""
    opened = []

    def open_page(figure, **options):
        opened.append(Hosted(browser, figure, **options))
        return opened[-1]

    yield open_page
    problems = [problem for hosted in opened for problem in hosted.problems]
    for hosted in opened:
        hosted.context.close()
    assert not problems


@pytest.fixture(scope="session")
def tie_data():
    """One query measured in the installed ListMLELoss, told to sort by label, beside lists of 3 to 40 documents."""
    profile = tie_profile(logits=(0.2, 1.0, -1.0), labels=(0.0, 1.0, 0.0), widths=range(3, 41))
    return {
        "widths": [tie.width for tie in profile],
        "losses": [tie.loss for tie in profile],
        "gradients": [list(tie.gradient) for tie in profile],
        "orders": [list(tie.order) for tie in profile],
        "labels": [0.0, 1.0, 0.0],
        "logits": [0.2, 1.0, -1.0],
    }


@pytest.fixture(scope="session")
def weight_data():
    """One query's gradient under five installed losses, alone and beside lists of several widths."""
    names, widths = ["ListMLE", "ListNet", "ADR-MSE", "RankNet", "LambdaLoss"], [3, 6, 12, 24, 40]
    measured = {(m.loss, m.width): m for m in measure_weight(widths=widths, seeds=1, losses=names)}
    return {
        "names": names,
        "widths": widths,
        "alone": [list(measured[name, 3].alone) for name in names],
        "gradients": [[list(measured[name, width].in_batch) for width in widths] for name in names],
    }


@pytest.fixture(scope="session")
def shares_data():
    """Two queries with 255 negatives each, as close as those of a small encoder; the first one's hardest is really right."""
    random = np.random.default_rng(0)
    negatives = np.clip(random.normal(0.12, 0.11, (2, 255)), -0.3, 0.62)
    negatives[0, 3], negatives[1, 41] = 0.73, 0.36
    name = [
        "numpy.argsort",
        "torch.topk",
        "scipy.sparse.linalg.spsolve_triangular",
        "matplotlib.axes.Axes.get_xticklabels",
    ]
    return {
        "queries": [
            "Return the indices that would sort an array.",
            "Compute ranking metrics, averaged over all of the queries.",
        ],
        "positives": [0.71, 0.64],
        "negatives": negatives,
        "names": [[f"{name[(i + j) % 4]} {j}" for j in range(255)] for i in range(2)],
        "mislabelled": [3, 41],
    }


@pytest.fixture(scope="session")
def score_data():
    """64 pairs of a few topics, as close as those of a small encoder: own documents at about 0.6, others of a topic at 0.4."""
    random = np.random.default_rng(2)
    topics = random.normal(size=(9, 64))[random.integers(0, 9, 64)]
    subjects = topics + random.normal(size=(64, 64))
    words = ["numpy.cumsum", "scipy.linalg.solve_triangular", "torch.nn.functional.scaled_dot_product_attention"]
    return {
        "queries": subjects + 0.9 * random.normal(size=(64, 64)),
        "documents": subjects + 0.9 * random.normal(size=(64, 64)),
        "names": [f"{words[i % 3]}_{i}" for i in range(64)],
    }


@pytest.fixture(scope="session")
def false_data():
    """One query and 255 other documents, five of them right answers to it, and counts of them in batches up to 256 wide."""
    random = np.random.default_rng(4)
    cosines = np.clip(random.normal(0.15, 0.12, 255), -0.3, 0.6)
    guides = np.clip(cosines + random.normal(0.05, 0.08, 255), -0.3, 0.75)
    kinds = [""] * 255
    right = [
        (2, "duplicate", 0.71, 0.9),
        (9, "summary", 0.73, 0.84),
        (40, "near", 0.66, 0.8),
        (100, "summary", 0.58, 0.71),
    ]
    for j, kind, cosine, guide in [*right, (201, "duplicate", 0.71, 0.9)]:
        kinds[j], cosines[j], guides[j] = kind, cosine, guide
    cosines[12], guides[12] = 0.68, 0.86  # a true negative that is hard for both
    names = ["numpy.ma.MaskedArray.argsort", "scipy.sparse.linalg.spsolve_triangular", "torch.topk", "numpy.sort"]
    widths, rate = [16, 32, 64, 128, 256], 0.0007
    chance = [1 - (1 - 0.6 * rate) ** (width - 1) for width in widths]
    return {
        "query": "matplotlib.axes.Axes.get_xticklabels",
        "label": "Get the tick labels of the axis, as texts that can be set.",
        "positive": 0.72,
        "positive_guide": 0.9,
        "names": [f"{names[j % 4]}_{j}" for j in range(255)],
        "cosines": cosines,
        "guides": guides,
        "kinds": kinds,
        "rate": rate,
        "widths": widths,
        "measured": chance,
        "low": [0.4 * p for p in chance],
        "high": [1.5 * p for p in chance],
    }


@pytest.fixture(scope="session")
def sweep_data():
    """Retrieval by batch width: five curves whose ends nearly coincide, and two with gaps, one of them a lone point."""

    def around(name, values, reach, **more):
        low = [None if v is None else v - reach for v in values]
        high = [None if v is None else v + reach for v in values]
        return {"name": name, "values": values, "low": low, "high": high, **more}

    return {
        "title": "Held-out retrieval by batch width",
        "x": [16, 32, 64, 128, 256, 512, 1024],
        "x_label": "batch width",
        "log": True,
        "y_label": "nDCG@10 of the held-out queries",
        "note": "95% intervals over queries, mean of three seeds",
        "panel_label": "Corpus and budget",
        "panels": {
            "apidocs, same examples": [
                around("none masked", [0.55, 0.56, 0.571, 0.578, 0.58, 0.581, 0.5805], 0.02, tone="wrong"),
                around("same text masked", [0.551, 0.562, 0.574, 0.581, 0.585, 0.584, 0.5815], 0.021),
                around("near-duplicates masked", [0.55, 0.563, 0.575, 0.583, 0.587, 0.588, 0.582], 0.019),
                around("frozen MiniLM", [0.468] * 7, 0.02, dashed=True),
                {"name": "ln B + c", "values": [0.56, 0.57, 0.573, 0.577, 0.579, 0.58, 0.581], "dashed": True},
            ],
            "SciFact": [
                around("none masked", [0.65, 0.66, 0.671, 0.668, 0.661, 0.65, None], 0.04, tone="wrong"),
                around("same text masked", [0.651, None, 0.664, 0.66, None, 0.652, None], 0.04),
            ],
        },
    }


@pytest.fixture(scope="session")
def batch_data():
    """Three texts in a batch and what a bigram model of their letters makes of them, which never looks at padding but at its end."""
    texts = ["sort an array", "mean of rows", "clip"]
    counts = np.full((256, 256), 0.02)
    for text in [*texts, "return a sorted copy", "the mean of the rows", "clip an array"]:
        for a, b in pairwise(text.encode()):
            counts[a, b] += 1
    logs = np.log(counts / counts.sum(1, keepdims=True))
    built = figures.TokenBatch.from_model(texts, lambda batch: logs[np.array(batch)], pad=0)
    return {"texts": texts, "right": built.right, "left": built.left}


@pytest.fixture(scope="session")
def units_data():
    """A text with characters of two and three bytes, two tokenizers that cut it, one within a character, and two models."""
    coarse = ["Return", " the", " na", "ïve", " sum", " of", " x", " –", " a", " 1", "-D", " array", " –", " along", " axis."]  # fmt: skip
    fine = ["Re", "turn", " the", " n", "a", "ï", "ve", " s", "um", " of", " x", " ", b"\xe2\x80", b"\x93", " a", " 1", "-D"]  # fmt: skip
    fine += [" arr", "ay", " –", " al", "ong", " ax", "is", "."]
    return {
        "text": "Return the naïve sum of x – a 1-D array – along axis.",
        "tokenizers": [
            {"name": "BPE-8k", "vocabulary": 8000, "pieces": coarse},
            {"name": "BPE-1k", "vocabulary": 1000, "pieces": fine},
        ],
        "models": [
            {"name": "byte model", "unit": "bytes", "nats": 96.4},
            {"name": "subword model", "unit": "BPE-8k", "nats": 77.2},
        ],
    }


@pytest.fixture(scope="session")
def truncation_data():
    """Three sets: two with all reductions in all settings, one of them with published values too, and one of those alone."""
    dims = [4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 320, 384]
    halves = {"prefix": 40, "random dims": 44, "random rotation": 42, "SVD": 25, "PCA": 22}

    def curve(top, half, size, sizes):
        reach = size**1.6 / (size**1.6 + half**1.6)
        return [round(top * d**1.6 / (d**1.6 + half**1.6) / reach, 4) for d in sizes]

    def measured(name, top, published=False):
        runs = []
        for kept, kind, centred in product((True, False), halves, (False, True)):
            if centred != (kind == "PCA") and kind in ("SVD", "PCA"):
                continue
            values = curve(top * (0.92 if centred else 1), halves[kind] * (1 if kept else 1.5), 384, dims)
            base = curve(top, halves["prefix"] * (1 if kept else 1.5), 384, dims)
            raw = curve(top, halves["prefix"] * 1.5, 384, dims)
            run = {"kind": kind, "centred": centred, "renormalised": kept, "values": values}
            run |= {"low": [max(0, v - 0.03) for v in values], "high": [v + 0.03 for v in values]}
            run |= {"keep_low": [v / top - 0.04 for v in values], "keep_high": [v / top + 0.04 for v in values]}
            if kind != "prefix" or centred:
                gap = [round(v - b, 4) for v, b in zip(values, base, strict=True)]
                run |= {"gap": gap, "gap_low": [g - 0.012 if g else 0 for g in gap]}
                run |= {"gap_high": [g + 0.012 if g else 0 for g in gap]}
            elif kept:
                gain = [round(v - r, 4) for v, r in zip(values, raw, strict=True)]
                run |= {"gain": gain, "gain_low": [g - 0.01 if g else 0 for g in gain]}
                run |= {"gain_high": [g + 0.01 if g else 0 for g in gain]}
            if kind.startswith("random"):
                run |= {"least": [max(0, v - 0.015) for v in values], "most": [v + 0.015 for v in values]}
            if published and kept and (kind, centred) in (("prefix", False), ("PCA", True)):
                run["published"] = [v if d in (16, 64, 256) else None for v, d in zip(values, dims, strict=True)]
            runs.append(run)
        return {"name": name, "size": 384, "dims": dims, "runs": runs}

    sizes = [16, 64, 256, 768]
    alone = [
        {"kind": kind, "centred": kind == "PCA", "renormalised": True, "published": curve(0.32, half, 768, sizes)}
        for kind, half in (("prefix", 90), ("PCA", 50))
    ]
    only = {"name": "SciFact, mpnet-base-nli-matryoshka", "size": 768, "dims": sizes, "runs": alone}
    return {"sets": [measured("apidocs, MiniLM", 0.52), measured("SciFact, MiniLM", 0.6451, published=True), only]}


@pytest.fixture(scope="session")
def embeddings():
    """120 queries and 300 documents of 12 topics in 64 dimensions, of length 1, whose first dimensions vary most in length."""
    random = np.random.default_rng(5)
    topics = random.normal(size=(12, 64))
    of = random.integers(0, 12, 300)
    documents = topics[of] + 0.8 * random.normal(size=(300, 64))
    documents[:, :8] *= random.lognormal(0, 0.5, (300, 1))
    queries = documents[:120] + 0.9 * random.normal(size=(120, 64))
    return [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (queries, documents)]


@pytest.fixture(scope="session")
def norm_data(embeddings):
    """Three queries with their candidates, all traits worked out from embeddings."""
    queries, documents = embeddings
    words = [
        "numpy.cumsum",
        "scipy.sparse.linalg.spsolve_triangular",
        "torch.nn.functional.scaled_dot_product_attention",
    ]
    figure = figures.NormBias.from_embeddings(
        queries,
        documents,
        dims=[4, 8, 16, 32],
        shown=[3, 50, 7],
        query_names=["numpy.argsort", "sklearn.linear_model.LogisticRegression.predict_log_proba", "torch.topk"],
        texts=[
            "Return the indices that would sort an array, along the axis that is given.",
            "Predict.",
            "The largest.",
        ],
        document_names=[f"{words[j % 3]}_{j}" for j in range(300)],
        relevant=[[3], [50, 299, 17], []],
    )
    hidden = {"figure", "title", "query", "dim", "renormalised"}
    return {name: value for name, value in traits_of(figure).items() if name not in hidden}


@pytest.fixture(scope="session")
def averaging_data():
    """Eight texts of 19 to 1,204 tokens; the shorter a text, the higher its losses."""
    random = np.random.default_rng(8)
    sizes = [1204, 38, 412, 877, 61, 255, 19, 640]
    names = ["numpy.argsort", "numpy.e", "scipy.linalg.svd", "torch.nn.functional.cross_entropy"]
    names += ["pandas.NA", "json.loads", "math.tau", "re.compile"]
    return {"names": names, "nll": [random.gamma(2, 0.45 + 3 / size**0.5, size) for size in sizes]}


@pytest.fixture(
    params=[
        "ghosts",
        "false_negatives",
        "flip",
        "ties",
        "weight",
        "forces",
        "descent",
        "gradient_shares",
        "number_formats",
        "score_gap",
        "score_matrix",
        "sweep",
        "underflow",
        "averaging",
        "token_batch",
        "units",
        "truncation",
        "norm_bias",
    ]
)
def make(
    request,
    tie_data,
    weight_data,
    shares_data,
    score_data,
    false_data,
    sweep_data,
    batch_data,
    units_data,
    truncation_data,
    norm_data,
    averaging_data,
):
    """Build a figure, each in turn, in its first state or with other traits."""
    data = {"ties": tie_data, "weight": weight_data, "gradient_shares": shares_data, "score_matrix": score_data}
    data = {
        **data,
        "false_negatives": false_data,
        "sweep": sweep_data,
        "token_batch": batch_data,
        "units": units_data,
        "truncation": truncation_data,
        "norm_bias": norm_data,
        "averaging": averaging_data,
    }.get(request.param, {})
    kinds = [
        figures.GhostDocuments,
        figures.FalseNegatives,
        figures.Flip,
        figures.TieOrder,
        figures.WeightAndDirection,
        figures.Forces,
        figures.Descent,
        figures.GradientShares,
        figures.NumberFormats,
        figures.ScoreGap,
        figures.ScoreMatrix,
        figures.Sweep,
        figures.Underflow,
        figures.Averaging,
        figures.Truncation,
        figures.NormBias,
        figures.TokenBatch,
        figures.Units,
    ]
    kind = next(kind for kind in kinds if request.param == kind.NAME)
    return lambda **traits: kind(**data, **traits)


# Stops of the temperature, both scores, both kinds of arrow, and points in places that differ.
FORCES = [
    {"temperature": t, "normalize": k % 3 > 0, "arrows": ("shares", "forces")[k % 2], "chosen": k % 7}
    for k, t in enumerate((0.02, 0.03, 0.05, 0.07, 0.1, 0.16, 0.2, 0.3, 0.5, 0.7, 1.0))
] + [
    {"angles": angles, "lengths": lengths, "temperature": t, "normalize": normalize, "arrows": "shares"}
    for angles in ([0, 20, 40, 130, 180, 270, 330], [300, 90, 250, 340, 20, 160, 200])
    for lengths in ([1.4] * 7, [0.6, 1.0, 1.4, 0.8, 1.2, 1.1, 0.7])
    for t, normalize in ((0.02, False), (0.3, False), (0.1, True))
]


def states(figure):
    """Every state of a figure that its controls can reach, but for the score of B, of which five stand for all."""
    if figure.figure == "ghosts":
        return [
            {"width": width, "fixed": fixed, "logit_b": b}
            for width in range(2, 13)
            for fixed in (False, True)
            for b in (-1.0, 0.3, 0.8, 1.1, 2.0)
        ]
    if figure.figure == "flip":
        return [{"width": width} for width in range(2, 13)]
    if figure.figure == "descent":
        some = [
            (0, 2, "circle", 1.0, 1, False),
            (200, 2, "circle", 0.1, 2, True),
            (1, 12, "circle", 0.05, 3, False),
            (200, 12, "circle", 0.3, 4, True),
            (100, 7, "circle", 0.16, 5, True),
            (0, 12, "sphere", 0.2, 6, True),
            (30, 12, "sphere", 0.07, 7, False),
            (200, 12, "sphere", 0.1, 8, True),
            (60, 8, "sphere", 0.5, 9, True),
            (120, 5, "sphere", 0.7, 30, False),
            (40, 3, "sphere", 1.0, 11, True),
            (200, 8, "sphere", 0.2, 1, False),
        ]
        names = ("step", "pairs", "surface", "temperature", "seed", "shared")
        return [dict(zip(names, state, strict=True)) for state in some]
    if figure.figure == "forces":
        return FORCES
    if figure.figure == "ties":
        return [{"width": width} for width in figure.widths]
    if figure.figure == "false_negatives":
        some = [
            (128, "none", 0.7, 0.0),
            (256, "none", 0.7, 0.0),
            (2, "none", 0.7, 0.0),
            (3, "exact", 0.7, 0.0),
            (256, "exact", 0.7, 0.0),
            (16, "threshold", 0.7, 0.0),
            (256, "threshold", 0.2, 0.0),
            (4, "threshold", 0.2, 0.5),
            (256, "guide", 0.7, 0.0),
            (256, "guide", 0.7, 0.01),
            (64, "guide", 0.7, -0.1),
            (192, "guide", 0.7, 0.5),
        ]
        return [dict(zip(("width", "mask", "threshold", "margin"), state, strict=True)) for state in some]
    if figure.figure == "score_matrix":
        some = [
            ("real", 32, 0.05, 64, 1, "cosine"),
            ("real", 64, 0.05, 64, 64, "share"),
            ("real", 64, 1.0, 2, 31, "cosine"),
            ("real", 2, 0.01, 16, 2, "share"),
            ("real", 16, 0.01, 2, 9, "share"),
            ("random", 2, 0.05, 2, 1, "cosine"),
            ("random", 1024, 0.05, 64, 1024, "cosine"),
            ("random", 1024, 1.0, 64, 1, "share"),
            ("random", 1024, 0.01, 2, 512, "share"),
            ("random", 128, 0.2, 8, 77, "cosine"),
            ("real", 8, 0.3, 32, 8, "share"),
            ("real", 32, 0.02, 4, 17, "cosine"),
        ]
        names = ("source", "width", "temperature", "dimension", "row", "colour")
        return [dict(zip(names, state, strict=True)) for state in some]
    if figure.figure == "gradient_shares":
        some = [
            (0, 0.005, 256),
            (0, 0.05, 256),
            (0, 0.16, 8),
            (0, 1.0, 64),
            (1, 0.006, 256),
            (1, 0.04, 256),
            (1, 0.1, 128),
        ]
        some += [(1, 0.3, 16), (1, 1.0, 8), (1, 1.0, 256), (0, 0.1, 32), (1, 0.014, 64)]
        return [{"query": query, "temperature": t, "width": width} for query, t, width in some]
    if figure.figure == "number_formats":
        some = [
            (0.005, 1.0, 0.05),
            (0.005, 0.999, 0.0001),
            (0.014, 0.7, 0.001),
            (0.014, 0.777, 0.02),
            (0.01, 0.125, 0.05),
        ]
        some += [(0.05, 0.7, 0.05), (0.05, 0.333, 0.0002), (0.125, 0.9, 0.005), (0.3, 0.55, 0.01), (1.0, 0.123, 0.0001)]
        return [{"temperature": t, "positive": positive, "gap": gap} for t, positive, gap in [*some, (1.0, 0.1, 0.05)]]
    if figure.figure == "score_gap":
        some = [(0.05, 0.7, 0.65, 0.75), (1.0, 0.7, 0.65, 0.75), (0.005, 0.7, 0.65, 0.69), (0.005, 1.0, 0.0, 0.5)]
        some += [
            (0.005, 0.0, 1.0, 1.0),
            (0.01, 0.9, 0.91, 0.2),
            (0.1, 0.5, 0.5, 0.5),
            (0.3, 0.1, 0.9, 0.9),
            (1.0, 0.0, 1.0, 0.0),
        ]
        some += [(0.02, 0.6, 0.64, 0.55), (0.16, 1.0, 0.99, 0.98)]
        names = ("temperature", "positive", "negative", "mislabelled")
        return [dict(zip(names, state, strict=True)) for state in some]
    if figure.figure == "averaging":
        some = [
            ("batches", 2, 0),
            ("tokens", 2, 0),
            ("texts", 3, 4),
            ("perplexities", 8, 20),
            ("batches", 1, 7),
            ("batches", 3, 1),
            ("batches", 3, 2),
            ("batches", 4, 20),
            ("batches", 5, 9),
            ("batches", 7, 12),
            ("batches", 8, 3),
            ("perplexities", 3, 11),
        ]
        return [dict(zip(("average", "batch", "seed"), state, strict=True)) for state in some]
    if figure.figure == "underflow":
        some = [
            (104.0, 1, "float32"),
            (1.0, 1, "float64"),
            (12.0, 10, "float16"),
            (1.0, 100000, "float16"),
            (17.25, 1, "float16"),
            (88.5, 1, "bfloat16"),
            (92.5, 1, "bfloat16"),
            (200.0, 1, "float32"),
            (102.0, 10, "float32"),
            (744.0, 1, "float64"),
            (800.0, 100000, "float64"),
            (800.0, 1, "float16"),
        ]
        return [dict(zip(("gap", "others", "format"), state, strict=True)) for state in some]
    if figure.figure == "token_batch":
        some = [
            (6, "right", "once", "both", False, True, 1, 4),
            (6, "right", "once", "both", False, False, 1, 1),
            (0, "left", "none", "labels", True, False, 2, 3),
            (3, "left", "once", "labels", False, False, 3, 13),
            (6, "left", "twice", "wrong", False, False, 3, 19),
            (6, "left", "once", "both", False, False, 2, 8),
            (5, "right", "twice", "wrong", True, False, 1, 2),
            (1, "right", "none", "both", True, True, 3, 14),
            (6, "left", "once", "wrong", False, True, 3, 1),
            (2, "left", "twice", "both", True, True, 1, 5),
            (4, "right", "twice", "labels", False, False, 2, 16),
            (6, "right", "none", "wrong", False, False, 2, 12),
            (0, "right", "once", "wrong", False, True, 3, 10),
        ]
        names = ("extra", "side", "shift", "mask", "numerator", "denominator", "row", "place")
        return [dict(zip(names, state, strict=True)) for state in some]
    if figure.figure == "units":
        ways = [("nats", "e"), ("bits", "2"), ("nats", "2"), ("bits", "e"), ("nats", "mean"), ("bits", "mean")]
        return [
            {"unit": unit["name"], "model": model["name"], "base": base, "power": power}
            for unit in figure.units
            for model in figure.models
            for base, power in ways
        ]
    if figure.figure == "truncation":
        every = list(figures.Truncation.KINDS)
        published = figure.sets[-1]["name"]
        some = [
            (0, 64, every[:1], False, True, "score", "dimensions"),
            (0, 64, every, False, True, "score", "dimensions"),
            (0, 4, every, True, False, "score", "dimensions"),
            (0, 384, every, True, True, "retention", "fraction"),
            (0, 384, every, False, False, "score", "fraction"),
            (1, 8, every, True, False, "retention", "fraction"),
            (1, 128, every, False, False, "retention", "dimensions"),
            (1, 32, [], False, True, "score", "dimensions"),
            (1, 16, every[2:], False, True, "score", "fraction"),
            (1, 384, every, True, True, "score", "dimensions"),
            (2, 64, every, True, False, "score", "dimensions"),
            (2, 768, every, False, True, "retention", "fraction"),
            (2, 4, every, False, True, "score", "dimensions"),
        ]
        names = ("set", "dim", "kinds", "centred", "renormalised", "scale", "axis")
        sets = [one["name"] for one in figure.sets[:2]] + [published]
        return [dict(zip(names, (sets[state[0]], *state[1:]), strict=True)) for state in some]
    if figure.figure == "norm_bias":
        return [
            {"query": query, "dim": dim, "renormalised": renormalised}
            for query, dim, renormalised in product(range(len(figure.queries)), figure.dims, (False, True))
        ]
    if figure.figure == "sweep":
        return [{"panel": panel["name"], "at": x} for panel in figure.panels for x in figure.x]
    return [{"loss": loss, "width": width} for loss in figure.names for width in figure.widths]


@pytest.fixture(name="states")
def _states():
    return states


@pytest.fixture
def slowness():
    """How many times as slow as that machine a page's browser is just now; never less than 1."""
    return lambda page: max(1.0, page.evaluate(REFERENCE) / QUIET)
