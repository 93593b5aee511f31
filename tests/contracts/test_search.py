"""The search is deterministic, leaves hypothesis as it was, and ends on the smallest input."""

import dataclasses
import importlib
import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import strategies as st

from losslab.contracts import CONTRACTS, Conventions, closeness
from losslab.contracts.agreement import compare
from losslab.contracts.model import BrokenPromise, Counterexample, Query
from losslab.contracts.search import search

providers = importlib.import_module("hypothesis.internal.conjecture.providers")


def drawn(seed):
    seen = []
    search(lambda draw: seen.append(draw(st.integers(0, 10**6))), seed_value=seed, examples=40)
    return seen


def test_a_seed_means_the_same_inputs_whatever_else_is_imported(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    before = drawn(3)
    assert before == drawn(3)
    assert before != drawn(4)
    (tmp_path / "module_with_a_constant.py").write_text("limit = 271828\n")
    importlib.import_module("module_with_a_constant")
    assert drawn(3) == before
    assert sorted(p.name for p in tmp_path.iterdir() if p.name != "__pycache__") == ["module_with_a_constant.py"]


def test_hypothesis_is_left_as_it_was():
    before = (providers._get_local_constants, providers.CONSTANTS_CACHE)
    with pytest.raises(BrokenPromise):
        search(fail, seed_value=0, examples=10)
    assert (providers._get_local_constants, providers.CONSTANTS_CACHE) == before


def fail(draw):
    number = draw(st.integers(0, 1000))
    if number >= 17:
        raise BrokenPromise(Counterexample(str(number)))


def test_the_smallest_input_is_what_is_raised():
    for seed in range(5):
        with pytest.raises(BrokenPromise) as found:
            search(fail, seed_value=seed, examples=60)
        assert found.value.counterexample.sentence == "17"


def test_contracts_are_named_and_say_what_they_promise():
    contracts = CONTRACTS["listwise"]
    assert len({contract.id for contract in contracts}) == len(contracts)
    fields = {field.name for field in dataclasses.fields(Conventions)}
    for contract in contracts:
        assert contract.promise.endswith(".")
        assert contract.promise.count(". ") == 0, "one sentence"
        assert contract.exemption(Conventions()) is None
        assert {exemption.convention for exemption in contract.exemptions} <= fields


def test_room_for_rounding_grows_with_logits_list_and_unit_and_shrinks_with_epsilon():
    small, large = Query((1.0, 0.0), (1.0, 0.0)), Query((-1000.0, 0.0), (1.0, 0.0))
    room = closeness.room([small], 1.0, torch.float32)
    assert room < 2e-6
    assert closeness.room([large], 1.0, torch.float32) == pytest.approx(1000 * room)
    assert closeness.room([Query((0.5,) * 20, (0.0,) * 20)], 1.0, torch.float32) == pytest.approx(10 * room)
    assert closeness.room([small], 7.0, torch.float32) == pytest.approx(7 * room)
    assert closeness.room([small], 1.0, torch.float64) < 1e-8 * room


def test_directions_and_weights():
    right = np.array([1.0, -0.5, -0.5])
    kept = compare(0.25 * right, right, 1e-6)
    assert (kept.direction, kept.factor) == ("kept", 0.25)
    assert compare(-right, right, 1e-6).direction == "changed"
    assert compare(np.array([1.0, -0.51, -0.49]), right, 1e-6).direction == "changed"
    assert compare(1e-9 * right, right, 1e-6).direction is None  # too small to point anywhere
    broken = compare(np.array([np.nan, 0.0, 0.0]), right, 1e-6)
    assert (broken.direction, broken.error) == (None, np.inf)
    assert compare(right * (1 + 1e-6), right, 1e-9).error < 1


def test_half_precision_allows_its_own_rounding_and_no_more():
    right = np.array([0.3, -0.7])
    rounded = torch.tensor(right).to(torch.bfloat16).double().numpy()
    next_one = np.nextafter(rounded.astype(np.float32), 2.0).astype(float) + 2.0**-8
    assert closeness.gradient_error(rounded, right, 1e-6, torch.bfloat16) <= 1
    assert closeness.gradient_error(rounded, right, 1e-6) > 1
    assert closeness.gradient_error(next_one, right, 1e-6, torch.bfloat16) > 1
    huge = np.array([7e4, 1.0])
    assert closeness.gradient_error(np.array([np.inf, 1.0]), huge, 1.0, torch.float16) <= 1
    assert closeness.gradient_error(np.array([-np.inf, 1.0]), huge, 1.0, torch.float16) == np.inf


def test_importing_losslab_does_not_import_torch():
    program = "import sys, losslab; sys.exit('torch' in sys.modules or 'hypothesis' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
