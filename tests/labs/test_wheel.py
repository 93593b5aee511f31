"""The wheel carries the corpus that labs load, and losslab finds it where pip puts it."""

import os
import subprocess
import sys
import zipfile

import pytest

pytestmark = pytest.mark.xdist_group("colab")

PROGRAM = """
import losslab
from losslab.corpora import apidocs
corpus = apidocs.load()
print(losslab.__file__, apidocs.find_folder(), len(corpus), tuple(corpus.queries.shape), sep="\\n")
"""


def test_wheel_holds_what_is_needed_and_nothing_else_of_data(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    data = [name for name in names if ".data/" in name]
    assert sorted(name.rsplit("/", 1)[1] for name in data) == [
        "README.md",
        "embeddings.npz",
        "pairs.csv",
        "record.json",
    ]
    assert all(name.endswith("/share/losslab/data/apidocs/" + name.rsplit("/", 1)[1]) for name in data)
    for needed in ("losslab/labs/checks.py", "losslab/figures/style.mplstyle", "losslab/py.typed"):
        assert needed in names


def test_corpus_is_read_from_an_installed_wheel(wheel, tmp_path):
    prefix = tmp_path / "prefix"
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-index",
        "--no-deps",
        "--ignore-installed",
        "--no-compile",
    ]
    subprocess.run([*pip, "--disable-pip-version-check", "--prefix", prefix, wheel], check=True)
    site = next(prefix.glob("lib/python3*/site-packages"))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LOSSLAB")}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=environment | {"PYTHONPATH": str(site)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    package, folder, pairs, shape = done.stdout.splitlines()
    assert package == str(site / "losslab" / "__init__.py")
    assert folder == str(prefix / "share" / "losslab" / "data" / "apidocs")
    assert (pairs, shape) == ("4947", "(4947, 384)")
