"""The InfoNCE lab: its oracles are right, and its inputs tell every listed wrong answer from the solution."""

import json
import math
import runpy

import numpy as np
import pytest
import torch

import losslab
from losslab import losses
from losslab.grading import Promises, Raises, Values, load_lab
from losslab.labs.release import make_copy

pytestmark = pytest.mark.xdist_group("lab-infonce")

THROUGH_SCORES = {"scores", "loss", "cold", "promises", "query-gradient"}
#: Items that each answer loses. What a later function builds on an earlier one is lost with it.
LOST = {
    "scores-dot-products": THROUGH_SCORES,
    "scores-pairs-only": THROUGH_SCORES,
    "scores-whole-matrix": THROUGH_SCORES - {"promises"},  # one number times everything is divided away here, too
    "loss-exponentials": {"cold"},
    "loss-columns": {"loss", "cold", "promises"},
    "loss-sum": {"loss", "cold", "promises"},
    "loss-without-positive": {"loss", "cold", "promises"},
    "loss-multiplied": {"loss", "cold"},  # sound at another temperature than it says
    "loss-detached": {"loss", "promises"},
    "temperature-unchecked": {"refusal"},
    "start-only-guessing": {"start"},
    "start-deviation": {"start"},
    "gradient-no-mean": {"score-gradient", "query-gradient"},
    "gradient-no-temperature": {"score-gradient", "query-gradient"},
    "gradient-downhill": {"score-gradient", "query-gradient"},
    "query-unprojected": {"query-gradient"},
    "query-length": {"query-gradient"},
}


@pytest.fixture(scope="module")
def items(labs_folder):
    return {item.id: item.check for item in load_lab(labs_folder / "infonce").items if item.check is not None}


@pytest.fixture(scope="module")
def wrong(labs_folder):
    return {name: source for name, _, source in runpy.run_path(str(labs_folder / "infonce" / "wrong.py"))["WRONG"]}


@pytest.fixture(scope="module")
def solution(labs_folder):
    """Code of the five functions."""
    cells = json.loads(make_copy(labs_folder / "infonce", solved=True))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["metadata"].get("nbgrader", {}).get("solution")][:5]


def tensors(case, **options):
    return {name: torch.tensor(v, **options) if isinstance(v, np.ndarray) else v for name, v in case.items()}


def cases_of(check, seed=7):
    random = np.random.default_rng(seed)
    return [check.draw(random, size) for size in range(1, check.cases + 1)]


def earned(check, space):
    """Whether the functions in ``space`` pass an item, judged here and not in the sandbox."""
    function = space[check.function]
    if isinstance(check, Promises):
        with torch.enable_grad():
            return bool(losslab.check(function, check.kind, only=check.contracts, examples=check.examples))
    for case in cases_of(check):
        given = tensors(case, dtype=torch.float32)
        try:
            leaves = [given[name].requires_grad_() for name in getattr(check, "gradients", ())]
            found = function(**given)
            if leaves:
                torch.autograd.grad(found.sum(), leaves)
        except ValueError:
            if isinstance(check, Raises):
                continue
            return False
        except (RuntimeError, IndexError):
            return False
        if isinstance(check, Raises):
            return False
        rounded = {
            name: v.astype(np.float32).astype(float) if isinstance(v, np.ndarray) else v for name, v in case.items()
        }
        should = np.asarray(check.oracle(**rounded))
        got = np.asarray(torch.as_tensor(found).detach())
        allowed = check.atol + check.rtol * np.abs(should).max()
        if got.shape != should.shape or not (np.abs(got - should) <= allowed).all():
            return False
    return True


def run(*sources):
    space = {"math": math, "np": np, "torch": torch, "F": torch.nn.functional, "Tensor": torch.Tensor}
    for source in sources:
        exec(source, space)
    return space


def test_the_solution_passes_every_item(items, solution):
    space = run(*solution)
    assert {name for name, check in items.items() if not earned(check, space)} == set()


def test_every_listed_answer_is_tested(wrong):
    assert list(wrong) == list(LOST)


@pytest.mark.parametrize("name", LOST)
def test_a_wrong_answer_loses_what_it_should(name, items, solution, wrong):
    space = run(*solution, wrong[name])
    assert {item for item, check in items.items() if not earned(check, space)} == LOST[name]


def test_oracles_are_the_librarys_loss_and_autograds_gradients(items):
    for case in [case for name in ("loss", "cold") for case in cases_of(items[name])]:
        should = losses.info_nce(**tensors(case)).item()
        assert items["loss"].oracle(**case) == pytest.approx(should, rel=1e-9, abs=1e-12)
    for case in cases_of(items["query-gradient"]):
        given = tensors(case)
        leaf = given["queries"].requires_grad_()
        (should,) = torch.autograd.grad(losses.info_nce(**given), leaf)
        np.testing.assert_allclose(items["query-gradient"].oracle(**case), should, rtol=1e-8, atol=1e-12)
    for case in cases_of(items["score-gradient"]):
        given = tensors(case)
        leaf = given["scores"].requires_grad_()
        loss = torch.nn.functional.cross_entropy(leaf / case["temperature"], torch.arange(len(leaf)))
        (should,) = torch.autograd.grad(loss, leaf)
        np.testing.assert_allclose(items["score-gradient"].oracle(**case), should, rtol=1e-8, atol=1e-12)


def test_the_start_by_hand(items):
    """ln 1 is 0; one dimension at temperature 1 adds half a nat; and e documents would cost one."""
    start = items["start"].oracle
    assert start(1, 1, 1.0) == 0.5
    assert start(1, 50, 0.1) == pytest.approx(1.0)
    assert start(8, 10**9, 1.0) == pytest.approx(3 * math.log(2))


def test_inputs_hold_what_they_are_for(items):
    cold = cases_of(items["cold"])
    overflow = math.log(torch.finfo(torch.float32).max)
    for case in cold:
        q, d = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (case["queries"], case["documents"]))
        assert (q @ d.T).max() / case["temperature"] > overflow
    assert [case["temperature"] <= 0 for case in cases_of(items["refusal"])] == [True] * 3
    lengths = np.concatenate([np.linalg.norm(case["queries"], axis=1) for case in cases_of(items["loss"])])
    assert lengths.min() < 0.5
    assert lengths.max() > 5
    assert any(len(case["documents"]) > len(case["queries"]) for case in cases_of(items["loss"]))
    assert isinstance(items["loss"], Values)
