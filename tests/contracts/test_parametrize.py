"""`parametrize_with_contracts` inside pytest: one case a loss and contract, failing with the counterexample."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import planted
from losslab.contracts import CONTRACTS, parametrize_with_contracts

CASES = """
import functools
import planted
from losslab.contracts import parametrize_with_contracts

wrong = functools.partial(planted.list_mle, fault="absolute logits")
given = functools.partial(planted.list_mle, order="given")

@parametrize_with_contracts([planted.list_mle, wrong, given], only=["shift_invariance", "tie_order"], seeds=(0, 1))
def test_promises(loss, contract):
    contract(loss)
"""


def test_cases_pass_fail_and_skip_one_by_one(tmp_path):
    (tmp_path / "test_mine.py").write_text(CASES)
    support = str(Path(planted.__file__).parent)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-v", "-rsf", "-p", "no:cacheprovider", "test_mine.py"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": support},
        check=False,
    )
    lines = done.stdout.splitlines()

    def outcome(case):
        return next(line.split()[1] for line in lines if line.startswith(f"test_mine.py::test_promises[{case}]"))

    assert outcome("list_mle-shift_invariance") == "PASSED", done.stdout
    assert outcome("list_mle-tie_order") == "PASSED"
    assert any("absolute logits')-shift_invariance] FAILED" in line for line in lines), done.stdout
    assert "1 failed, 4 passed, 1 skipped" in lines[-1]
    assert any("declared order='given'" in line for line in lines)
    assert "Adding 1 to every logit changes what the list teaches." in done.stdout
    assert any(line.startswith("  should be loss ") for line in lines)
    assert "Traceback" not in done.stdout


def test_one_case_for_every_loss_and_contract():
    mark = parametrize_with_contracts([planted.list_mle, "losslab.losses:list_net"])
    ids = [case.id for case in mark.args[1]]
    properties = [contract.id for contract in CONTRACTS["listwise"] if contract.id != "objective"]
    assert ids == [f"{loss}-{c}" for loss in ("list_mle", "losslab.losses:list_net") for c in properties]


def test_objective_is_a_case_only_with_something_to_compare_with():
    mark = parametrize_with_contracts([planted.list_mle], against="list_mle", only=["objective"])
    (case,) = mark.args[1]
    loss, contract = case.values
    contract(loss)
    with pytest.raises(pytest.fail.Exception, match=r"objective: Value and gradient equal[\s\S]*should be loss"):
        contract(planted.with_fault("weights off"))
    with pytest.raises(ValueError, match="at least one seed"):
        parametrize_with_contracts([planted.list_mle], seeds=())
