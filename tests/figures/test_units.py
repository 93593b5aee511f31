# ruff: noqa: E501  # scripts in one text
"""Units: counts against Python, numbers against logarithms and powers, two models, what is refused."""

import math
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from losslab.figures import FigureError, Units
from losslab.figures._amounts import amount, power, wrapped
from losslab.figures._text import pieces
from losslab.figures._text import reading as reads

BASES, POWERS = ("nats", "bits"), ("mean", "e", "2")


@pytest.fixture
def figure(units_data):
    return Units(**units_data)


def pieces_shown(hosted):
    return [node.text_content() for node in hosted.page.query_selector_all('[data-key^="piece-"][data-key$="-text"]')]


def slow(nats, n, base, way):
    """The number by its definition: log of that base, then the power."""
    mean = nats / n if base == "nats" else nats / n * math.log2(math.e)
    return {"mean": mean, "e": math.e**mean, "2": 2**mean}[way]


def test_numbers_are_quotients_logarithms_and_powers(figure, units_data, host):
    hosted = host(figure)
    text = units_data["text"]
    counts = {
        "bytes": len(text.encode()),
        "characters": len(text),
        "words": len(text.split()),
        "BPE-8k": len(units_data["tokenizers"][0]["pieces"]),
        "BPE-1k": len(units_data["tokenizers"][1]["pieces"]),
    }
    assert counts["bytes"] == counts["characters"] + 5  # ï has two bytes, each dash three
    order = [unit["name"] for unit in figure.units]
    assert order == sorted(counts, key=lambda name: -counts[name])
    for model in units_data["models"]:
        for base in BASES:
            for way in POWERS:
                for name in order:
                    hosted.put(model=model["name"], base=base, power=way, unit=name)
                    want = amount(slow(model["nats"], counts[name], base, way))
                    assert hosted.text("value") == want, (model, base, way, name)
                    assert hosted.says() == figure.describe()
                    for i, row in enumerate(order):
                        assert hosted.text(f"row-{i}") == amount(slow(model["nats"], counts[row], base, way))
                        assert hosted.text(f"row-{i}-count") == str(counts[row])
                    bits = model["nats"] / math.log(2) / counts["bytes"]
                    assert hosted.text("same-value") == amount(bits)
                    right = slow(model["nats"], counts[name], "nats", "e")
                    mixed = (base, way) in (("nats", "2"), ("bits", "e"))
                    assert (hosted.page.query_selector('[data-key="value-should"]') is not None) == mixed
                    if mixed:
                        assert hosted.text("value-should") == f"should be {amount(right)}"
                    elif way != "mean":
                        assert want == amount(right)  # bits and nats lead to one perplexity


def test_pieces_are_the_text(figure, units_data, host):
    hosted = host(figure, width=1000)
    text = units_data["text"]
    for unit in figure.units:
        hosted.put(unit=unit["name"])
        assert pieces_shown(hosted) == pieces(text, unit["spans"]), unit["name"]
    shown = {"bytes": [], "characters": [c.replace(" ", "␣") for c in text], "words": text.split()}
    for byte in text.encode():
        shown["bytes"].append(chr(byte).replace(" ", "␣") if byte < 128 else f"{byte:02X}")
    for name, want in shown.items():
        hosted.put(unit=name)
        assert pieces_shown(hosted) == want
    hosted.put(unit="BPE-1k")
    assert pieces_shown(hosted)[12:14] == ["E2 80", "93"]


def test_random_texts_of_many_scripts(host):
    random = np.random.default_rng(11)
    letters = list("abc def\n\t.,éßñ–“”世界мирe\u0301")
    for _ in range(4):
        text = "x" + "".join(random.choice(letters, int(random.integers(8, 40)))) + "y"
        whole = text.encode()
        ends = sorted({*random.integers(1, len(whole), 9).tolist(), len(whole)})
        models = [
            {"name": "A", "unit": "bytes", "nats": float(random.uniform(20, 300))},
            {"name": "B", "unit": "cut", "nats": float(random.uniform(20, 300))},
        ]
        figure = Units(
            text=text, tokenizers=[{"name": "cut", "vocabulary": 500, "ends": np.array(ends)}], models=models
        )
        hosted = host(figure)
        counts = {"bytes": len(whole), "characters": len(text), "words": len(text.split()), "cut": len(ends)}
        for name, n in counts.items():
            hosted.put(unit=name)
            assert hosted.text("value") == amount(math.exp(models[0]["nats"] / n))
            assert len(pieces_shown(hosted)) == n
            assert hosted.says() == figure.describe()
        cut = [whole[a:b] for a, b in zip([0, *ends], ends, strict=False)]
        assert b"".join(cut) == whole
        hosted.put(unit="cut")
        for part, shown in zip(cut, pieces_shown(hosted), strict=True):
            try:
                want = part.decode().replace(" ", "␣").replace("\n", "↵").replace("\t", "⇥")
            except UnicodeDecodeError:
                want = " ".join(f"{byte:02X}" for byte in part)
            assert shown == want


def test_known_numbers():
    """10 nats over 20 bytes are 0.7213 bits a byte, 2 to which is e to half a nat; 12 nats over 6 and over 4 tokens read 7.39 and 20.1."""
    assert reads(10, 20, "bits", "mean") == pytest.approx(0.7213475204)
    assert reads(10, 20, "bits", "2") == pytest.approx(1.6487212707)
    assert reads(10, 20, "nats", "mean") == 0.5  # what is called bits where nobody divides by ln 2
    text = "abcdefghijklmnopqrstuvwx"
    cuts = [
        {"name": name, "vocabulary": v, "ends": list(range(step, 25, step))}
        for name, v, step in (("A6", 100, 4), ("B4", 1000, 6))
    ]
    figure = Units(
        text=text,
        tokenizers=cuts,
        models=[{"name": "A", "unit": "A6", "nats": 12}, {"name": "B", "unit": "B4", "nats": 12}],
    )
    assert figure.describe() == (
        "A spends 12.0 nats on 6 tokens of A6: 2.00 nats per token of A6, a perplexity of 7.39. "
        "By perplexity per own token A is better (7.39 against 20.1); in bits per byte the two are level at 0.72."
    )
    figure.power = "2"
    assert "2 to the power of nats reads 4.00, but the perplexity is 7.39." in figure.describe()


def test_perplexity_and_bits_per_byte_may_disagree(figure, host):
    hosted = host(figure)
    assert "By perplexity per own token byte model looks better" in hosted.says()
    assert "in bits per byte subword model is" in hosted.says()
    assert hosted.text("own-0-mark") == "looks better"
    assert hosted.text("bits-1-mark") == "is better"
    own = [math.exp(96.4 / 58), math.exp(77.2 / 15)]
    bits = [96.4 / 58 / math.log(2), 77.2 / 58 / math.log(2)]
    assert [hosted.text(f"own-{i}") for i in (0, 1)] == [amount(v) for v in own]
    assert [hosted.text(f"bits-{i}") for i in (0, 1)] == [amount(v) for v in bits]
    wide = [
        hosted.page.query_selector(f'[data-key="bits-{i}-bar"]').evaluate("n => Number(n.getAttribute('width'))")
        for i in (0, 1)
    ]
    assert wide[1] / wide[0] == pytest.approx(bits[1] / bits[0])


def test_where_they_agree_nothing_looks_otherwise(units_data, host):
    models = [{"name": "A", "unit": "bytes", "nats": 60.0}, {"name": "B", "unit": "BPE-8k", "nats": 77.2}]
    hosted = host(Units(**{**units_data, "models": models}))
    assert "By perplexity per own token A is better" in hosted.says()
    assert "in bits per byte A is better" in hosted.says()
    assert hosted.text("own-0-mark") == "lower"
    assert hosted.page.query_selector('[data-key="own-0-mark"]').get_attribute("class").endswith("ll-is-other")


def test_parts_of_the_total_are_equal_and_as_many_as_units(figure, host):
    hosted = host(figure)
    for unit in figure.units:
        hosted.put(unit=unit["name"], model="byte model")
        n = len(unit["spans"])
        cuts = [float(x) for x in re.findall(r"M([\d.]+) ", hosted.page.get_attribute('[data-key="total-cuts"]', "d"))]
        assert len(cuts) == n - 1
        assert cuts == pytest.approx([760 * i / n for i in range(1, n)], abs=0.06)
    hosted.put(model="subword model")
    width = float(hosted.page.get_attribute('[data-key="total"]', "width"))
    assert width == pytest.approx(760 * 77.2 / 96.4 - 1)


def test_the_drawing_below_the_text_keeps_its_place(figure, host):
    hosted = host(figure, reduced_motion="reduce")
    for room in (358, 760):
        hosted.room(room)
        places = set()
        for unit in figure.units:
            hosted.put(unit=unit["name"])
            places.add(hosted.page.get_attribute('[data-key="total"]', "y"))
        assert len(places) == 1


def test_no_switch_is_idle(figure, host):
    hosted = host(figure)
    shown = "document.querySelector('.ll-live').textContent + document.querySelector('#figure svg[role=img]').innerHTML"
    names = {
        "unit": [u["name"] for u in figure.units],
        "model": ["byte model", "subword model"],
        "base": BASES,
        "power": POWERS,
    }
    for unit in names["unit"]:
        for base in BASES:
            for way in POWERS:
                state = {"unit": unit, "model": "byte model", "base": base, "power": way}
                hosted.put(**state)
                before = hosted.page.evaluate(shown)
                for name, options in names.items():
                    for value in options:
                        if value != state[name]:
                            hosted.page.evaluate("([k, v]) => model.set(k, v)", [name, value])
                            assert hosted.page.evaluate(shown) != before, (state, name, value)
                    hosted.page.evaluate("([k, v]) => model.set(k, v)", [name, state[name]])


def test_numbers_without_end_are_said(units_data, host):
    models = [{"name": "A", "unit": "words", "nats": 900_000}, {"name": "B", "unit": "bytes", "nats": 0.01}]
    figure = Units(**{**units_data, "models": models})
    hosted = host(figure)
    assert hosted.text("value") == "∞"
    assert hosted.says() == figure.describe()
    figure.svg()


def test_amounts_are_the_same_on_the_page(host):
    hosted = host(
        Units(text="a b", models=[{"name": "A", "unit": "bytes", "nats": 1}, {"name": "B", "unit": "words", "nats": 2}])
    )
    values = [
        0.0004,
        0.0994,
        0.0996,
        0.5,
        9.994,
        9.996,
        31.44,
        99.94,
        99.96,
        999.4,
        12_345.6,
        999_999.4,
        999_999.6,
        9.96e6,
        2.04e11,
        3.1e99,
        1e300,
    ]
    got = hosted.page.evaluate(
        "async (values) => { const { amount } = await import('/amounts.js'); return values.map(amount); }", values
    )
    assert got == [amount(v) for v in values]
    assert amount(0.0004) == "0.000"
    assert [amount(v) for v in (7.389, 20.0855, 999_999.6, 2.04e11, math.inf)] == [
        "7.39",
        "20.1",
        "1.0 × 10⁶",
        "2.0 × 10¹¹",
        "∞",
    ]
    assert power(800.0) == math.inf == power(2000.0, 2.0)
    assert power(3.0, 2.0) == 8.0
    assert wrapped("one two three", 1) == ["one", "two", "three"]
    assert wrapped("one two three", 1000) == ["one two three"]


def test_the_twin_shows_its_state(units_data):
    svg = "{http://www.w3.org/2000/svg}"
    for unit, base, way in (("bytes", "nats", "e"), ("BPE-1k", "bits", "e"), ("words", "bits", "mean")):
        figure = Units(**units_data, unit=unit, base=base, power=way)
        root = ET.fromstring(figure.svg())
        texts = [node.text for node in root.iter(f"{svg}text")]
        n = len(figure._unit(unit)["spans"])
        assert amount(slow(96.4, n, base, way)) in texts
        assert f"{amount(slow(96.4, n, base, 'mean'))} {base} each" in texts
        for piece in pieces(units_data["text"], figure._unit(unit)["spans"]):
            assert piece in texts
        assert ("no perplexity" in texts) == ((base, way) == ("bits", "e"))
        assert root.attrib["aria-label"] == f"Per what, and in what. {figure.describe()}"


GIVEN = {
    "text": "naïve sum",
    "models": [{"name": "A", "unit": "bytes", "nats": 9.0}, {"name": "B", "unit": "words", "nats": 8.0}],
}


def cut(**change):
    return {"tokenizers": [{"name": "T", "vocabulary": 9, "pieces": ["na", "ïve", " sum"], **change}]}


def models(**change):
    return {"models": [{**GIVEN["models"][0], **change}, GIVEN["models"][1]]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"text": "  "}, "text must hold a word, not '  '"),
        ({"text": 3}, "text must hold a word, not 3"),
        ({"text": "a\ud800b"}, r"text must be whole characters: '\ud800' at 1 is none"),
        ({"text": "é" * 81}, "text must be of 160 bytes or fewer, not 162"),
        ({"text": "a\x07"}, r"text must be printable, not '\x07'"),
        (cut(pieces=["na", "ive", " sum"]), "tokenizers[0]: pieces[1] must go on with the text at byte 2 ('ïve sum'), not be 'ive'"),
        (cut(pieces=["na", "ïve"]), "tokenizers[0]: pieces must reach the end of the text, 10 bytes, not 6"),
        (cut(pieces=["na", "", "ïve sum"]), "pieces[1] must go on with the text at byte 2"),
        (cut(pieces="naïve sum"), "pieces must be a list of texts or bytes, not 'naïve sum'"),
        (cut(ends=[1, 10]), "tokenizers[0] must have either pieces or ends"),
        ({"tokenizers": [{"name": "T", "vocabulary": 9, "ends": [1, 9]}]}, "ends must ascend from 1 or more to the text's 10 bytes, not [1, 9]"),
        ({"tokenizers": [{"name": "T", "vocabulary": 9, "ends": [4, 2, 10]}]}, "ends must ascend"),
        ({"tokenizers": [{"name": "T", "vocabulary": 9, "ends": [1.5, 10]}]}, "ends must ascend"),
        (cut(name="words"), "tokenizers[0] must have a name other than bytes, characters, words, not 'words'"),
        (cut(vocabulary=1), "tokenizers[0] must have a vocabulary, an int of 2 or more, not 1"),
        (cut(vocabulary=True), "an int of 2 or more, not True"),
        (cut(size=3), "tokenizers[0] has 'size'; it takes name, vocabulary and pieces or ends"),
        ({"tokenizers": ["T"]}, "tokenizers[0] must be a dict with name, vocabulary and pieces or ends, not 'T'"),
        ({"tokenizers": cut()["tokenizers"] * 2}, "tokenizers must have a name each, not ['T', 'T']"),
        ({"tokenizers": cut()["tokenizers"] * 4}, "tokenizers must be up to three, not 4"),
        ({"models": GIVEN["models"][:1]}, "models must be two dicts with name, unit and nats"),
        (models(unit="T"), "models[0] must have a unit that is one of ['bytes', 'characters', 'words'], not 'T'"),
        (models(nats=0), "models[0] must have nats, the whole text's, above 0 and at most 1e6, not 0"),
        (models(nats=math.nan), "above 0 and at most 1e6, not nan"),
        (models(nats="9"), "above 0 and at most 1e6, not '9'"),
        (models(name=""), "models[0] must have a name of 1 to 24 characters, not ''"),
        (models(name="B"), "models must have two names, not 'B' twice"),
        (models(bits=3), "models[0] must be a dict with name, unit and nats, not"),
        ({"unit": "tokens"}, "unit must be one of ['bytes', 'characters', 'words'], not 'tokens'"),
        ({"model": "C"}, "model must be one of ['A', 'B'], not 'C'"),
        ({"base": 2}, "base must be one of 'nats', 'bits', not 2"),
        ({"power": "10"}, "power must be one of 'mean', 'e', '2', not '10'"),
    ],
)  # fmt: skip
def test_bad_values_are_named(change, message):
    Units(**GIVEN)
    with pytest.raises(FigureError, match=re.escape(message)):
        Units(**{**GIVEN, **change})


def test_data_are_needed_and_given_once(figure, units_data):
    with pytest.raises(TypeError, match=r"Units shows what was measured and needs text, models$"):
        Units()
    with pytest.raises(FigureError, match="text is given once; build another figure"):
        figure.text = "another"
    with pytest.raises(FigureError, match="models is given once"):
        figure.models = [*units_data["models"][::-1]]
    with pytest.raises(Exception, match="read-only"):
        figure.units = []


def test_a_planted_fault_is_seen(figure):
    """Characters for bytes: the mistake that a text of ASCII hides."""
    text = figure.text
    assert figure._bits_per_byte(figure.models[0]) == pytest.approx(96.4 / len(text.encode()) / math.log(2))
    assert abs(96.4 / len(text) / math.log(2) - figure._bits_per_byte(figure.models[0])) > 0.05
