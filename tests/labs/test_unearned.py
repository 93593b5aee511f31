"""Answers that know nothing of a step earn nothing for it: refusing everything, 0, what went in, a mean, zeros."""

import ast
import json

import pytest

from in_process import running
from losslab.grading import load_lab
from losslab.labs.release import make_copy

SEED = 11
# Of the answers below. Numbers, lists of them and tensors are gone through in the order in which they stand.
PARTS = '''
def _numbers(x):
    if isinstance(x, (bool, int, float)):
        return [float(x)]
    if isinstance(x, (list, tuple)):
        return [number for one in x for number in _numbers(one)]
    return [x.to(torch.get_default_dtype()).mean()] if hasattr(x, "mean") else []


def _mean(*inputs):
    """Of all tensors; where there is none, of all numbers."""
    found = _numbers([one for one in inputs if hasattr(one, "mean")]) or _numbers(inputs)
    return sum(found) / max(len(found), 1)


def _zeros(x):
    """The same, with 0 for every number; by torch's operations, so that gradients are 0 and not missing."""
    if isinstance(x, dict):
        return {name: _zeros(one) for name, one in x.items()}
    if isinstance(x, (list, tuple)):
        return type(x)(_zeros(one) for one in x)
    if isinstance(x, (bool, int, float, str)):
        return type(x)()
    return (x * 0).nan_to_num() if x.is_floating_point() else x * 0


def _like(right, *inputs):
    """Zeros in the shape of what is right; 0.0 where that is an error."""
    try:
        return _zeros(right(*inputs))
    except ValueError:
        return 0.0
'''
#: What is written in place of a step. ``INPUTS`` are its arguments, ``_right`` is the solution.
DEGENERATE = {
    "refuses": 'raise ValueError("no")',
    "zero": "return 0.0",
    "first argument": "return FIRST",
    "mean": "return _mean(INPUTS)",
    "zeros": "return _like(_right, INPUTS)",
}
#: Items that an answer earns because it is right there, and why.
EARNED = {
    ("perplexity", "mean", "mean"): "the step is to take the mean of the numbers that go in",
}


def solutions(folder):
    """The source of a lab's solution, and the syntax tree of each of its functions."""
    made = make_copy(folder, solved=True).decode()
    if folder.joinpath("lab.md").is_file():
        cells = [cell for cell in json.loads(made)["cells"] if cell["metadata"].get("nbgrader", {}).get("solution")]
        made = "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    return made, {node.name: node for node in ast.parse(made).body if isinstance(node, ast.FunctionDef)}


def in_place_of(node, body):
    """A function of the same signature, with this body; the right one is at hand as ``_right``."""
    names = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
    body = body.replace("INPUTS", ", ".join(names)).replace("FIRST", names[0])
    return f"{PARTS}\n_right = {node.name}\n\ndef {node.name}({ast.unparse(node.args)}):\n    {body}\n"


@pytest.mark.parametrize("answer", DEGENERATE)
def test_what_knows_nothing_earns_nothing(lab, answer, labs_folder):
    described, (source, functions) = load_lab(labs_folder / lab), solutions(labs_folder / lab)
    earned = set()
    for name in described.functions:
        student = running(described, source + in_place_of(functions[name], DEGENERATE[answer]))
        for item in described.items:
            if item.check is not None and item.check.function == name and item.check.judge(student, SEED).share > 0:
                earned.add(item.id)
    assert earned == {item for where, how, item in EARNED if (where, how) == (lab, answer)}


def test_the_solution_earns_all_the_same_way(lab, labs_folder):
    """So that what is earned above is not nothing for want of running."""
    described, (source, _) = load_lab(labs_folder / lab), solutions(labs_folder / lab)
    student = running(described, source + PARTS)
    checks = [item.check for item in described.items if item.check is not None]
    assert [check.judge(student, SEED).share for check in checks] == [1.0] * len(checks)
