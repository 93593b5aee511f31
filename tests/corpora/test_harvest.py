"""What becomes of a docstring, and what is harvested from five real libraries."""

import subprocess
import sys
import types

import pytest

from losslab.corpora import harvest as module
from losslab.corpora.harvest import MODULES, harvest, look_up, split_docstring

BODY = (
    "One two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen."
    + " And more." * 8
)
SUMMARY = "Return the sum of two things."


def cut(docstring):
    pair = split_docstring("a.b", docstring)
    return pair and (pair.summary, pair.body)


def test_summary_is_the_first_paragraph_on_one_line_and_body_the_rest():
    docstring = f"""Return the sum
        of two things.

        First   paragraph:
            indented. {BODY}


        Second.
        """
    summary, body = cut(docstring)
    assert summary == SUMMARY
    assert body.startswith("First   paragraph:\n    indented. One")
    assert body.endswith("\n\nSecond.")


@pytest.mark.parametrize(
    "lead",
    [
        "add(x1, x2, /, out=None, *, where=True)\n\n",
        "add(input, other, *, out=None) -> Tensor\n\n",
        "add(input, other, *, out=None) -> (Tensor, LongTensor)\n",
        "add(a)\nadd(a, b)\n\n",
        "add(a,\n    b=(1, 2))\n\n",
        "dtype(dtype, align=False, **kwargs)\n--\n\n",
    ],
)
def test_a_leading_signature_is_no_summary(lead):
    assert cut(f"{lead}{SUMMARY}\n\n{BODY}") == (SUMMARY, BODY)


def test_a_sentence_that_begins_like_a_call_is_kept():
    sentence = "cos(x) - 1 for use when x is small."
    assert cut(f"{sentence}\n\n{BODY}")[0] == sentence


@pytest.mark.parametrize(
    "docstring", [None, "", SUMMARY, f"Return the sum.\n\n{BODY}", f"{SUMMARY}\n\nToo short.", "add(x\n\nnever closed"]
)
def test_too_little_is_no_pair(docstring):
    assert cut(docstring) is None


@pytest.fixture
def library(monkeypatch):
    """An invented library, harvested in place of the real ones."""

    def documented(name, summary=SUMMARY, body=BODY):
        def function():
            pass

        function.__name__, function.__module__ = name, "invented"
        function.__doc__ = f"{summary}\n\n{body}"
        return function

    class Thing:
        __doc__ = f"A thing of some kind.\n\n{BODY} Class."
        method = documented("method", "Do what the thing does.")
        _hidden = documented("_hidden", "Do what nobody should see.")
        number = 3

    Thing.__module__ = "invented"
    invented = types.ModuleType("invented")
    invented.first = documented("first")
    invented.also_first = invented.first
    invented.same_summary = documented("same_summary", body=f"{BODY} Other.")
    invented._hidden = documented("_hidden", "Do what nobody should see.")
    invented.Thing = Thing
    invented.borrowed = harvest
    invented.constant = 3
    monkeypatch.setitem(sys.modules, "invented", invented)
    monkeypatch.setattr(module, "MODULES", {"invented": ("invented", "invented.broken")})
    return invented


@pytest.mark.usefixtures("library")
def test_public_names_and_members_once_each_in_order_and_failures_counted():
    found = harvest(("invented",))
    assert [pair.name for pair in found.pairs] == [
        "invented.Thing",
        "invented.Thing.method",
        "invented.also_first",
        "invented.same_summary",
    ]
    assert found.aliases == 1  # first
    assert found.failed == (("invented.broken", "ModuleNotFoundError"),)


def test_a_noisy_import_is_quiet_and_a_raising_one_is_counted(tmp_path, monkeypatch, capfd):
    code = (
        "import sys, warnings\nprint('out')\nprint('err', file=sys.stderr)\nwarnings.warn('old', DeprecationWarning)\n"
    )
    (tmp_path / "noisy.py").write_text(code, encoding="utf-8")
    (tmp_path / "raising.py").write_text(f"{code}raise RuntimeError('no')\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(module, "MODULES", {"noisy": ("noisy", "raising")})
    assert harvest(("noisy",)).failed == (("raising", "RuntimeError"),)
    assert capfd.readouterr() == ("", "")


def test_looking_up_finds_what_harvesting_found_and_nothing_else(library):
    for pair in harvest(("invented",)).pairs:
        assert look_up(pair.name) == pair
    del library.same_summary
    assert look_up("invented.same_summary") is None
    assert look_up("invented.constant") is None
    assert look_up("no_such_library.thing") is None


def test_an_unknown_package_is_named():
    with pytest.raises(ValueError, match="among numpy, scipy, torch, sklearn, matplotlib, got pandas"):
        harvest(("numpy", "pandas"))


def test_the_real_libraries_are_harvested_in_silence():
    code = (
        "import json, sys; from losslab.corpora.harvest import harvest; h = harvest(); "
        "json.dump([[p.name for p in h.pairs], h.failed], sys.stdout)"
    )
    done = subprocess.run([sys.executable, "-W", "default", "-c", code], capture_output=True, text=True, check=True)
    assert not done.stderr
    names, failed = __import__("json").loads(done.stdout)
    assert failed == []
    assert names == sorted(names)
    assert len(names) == len(set(names)) > 3000
    assert {name.split(".")[0] for name in names} == set(MODULES)
    for left_out in ("torch.cuda.", "torch.FloatTensor", "numpy.ma.MaskedArray.", "torch.FloatStorage"):
        assert not [name for name in names if name.startswith(left_out)]
    for known in (
        "numpy.linalg.solve",
        "scipy.signal.welch",
        "torch.nn.Linear",
        "sklearn.metrics.ndcg_score",
        "matplotlib.use",
    ):
        assert known in names
