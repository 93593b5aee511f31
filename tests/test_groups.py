"""Tests that share something costly, a built book or a browser, run in one process: `xdist_group`.

pytest 9.2.0 with pytest-xdist 3.8.0 put them anywhere and said nothing, so that every book was built twice.
"""

import re
import subprocess
import sys

TESTS = """\
import time

import pytest


@pytest.mark.parametrize("number", range(6))
@pytest.mark.xdist_group("together")
def test_together(number):
    time.sleep(0.1)


@pytest.mark.parametrize("number", range(6))
def test_anywhere(number):
    time.sleep(0.1)
"""


def test_a_group_runs_in_one_process(tmp_path):
    for name in ("one", "two"):
        (tmp_path / f"test_{name}.py").write_text(TESTS, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-n", "2", "--dist", "loadgroup", "-v", "-p", "no:cacheprovider"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    ran = {
        name: re.findall(rf"^\[(gw\d)\].*::test_{name}\[", run.stdout, re.MULTILINE)
        for name in ("together", "anywhere")
    }
    assert len(ran["together"]) == len(ran["anywhere"]) == 12
    assert len(set(ran["together"])) == 1
    assert len(set(ran["anywhere"])) == 2, "so this run had two processes to choose from"
