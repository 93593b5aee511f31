"""The page in plain Python: standard library only, and every function right on logits it has not seen."""

import ast
import math
import sys
import types
from pathlib import Path

import jupytext
import pytest
import torch

PAGE = Path(__file__).parents[2] / "book" / "perplexity-plain.md"


@pytest.fixture(scope="module")
def cells():
    """The cells that a reader sees, in order."""
    notebook = jupytext.read(PAGE)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return [cell.source for cell in code if "remove-cell" not in cell.metadata.get("tags", [])]


@pytest.fixture(scope="module")
def page(cells):
    """The page's own names, after all its visible cells ran."""
    module = types.ModuleType("page")
    for source in cells:
        exec(compile(source, PAGE.name, "exec"), module.__dict__)
    return module


def logits(rows=50, size=12, scale=30.0, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return scale * torch.randn(rows, size, generator=generator, dtype=torch.float64)


def test_only_the_standard_library(cells):
    imported = {
        alias.name
        for source in cells
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    assert imported
    assert imported <= sys.stdlib_module_names


@pytest.mark.parametrize("scale", [1.0, 30.0, 1000.0])
def test_log_softmax_and_the_loss_are_those_of_torch(page, scale):
    for row in logits(scale=scale):
        expected = torch.log_softmax(row, 0)
        assert page.log_softmax(row.tolist()) == pytest.approx(expected.tolist(), rel=1e-12, abs=1e-12)
        assert page.loss_at(row.tolist(), 3) == pytest.approx(-expected[3].item(), rel=1e-12, abs=1e-12)


def test_the_wrong_order_is_right_until_it_underflows(page):
    for row in logits(scale=1.0):
        assert page.log_of_softmax(row.tolist()) == pytest.approx(torch.log_softmax(row, 0).tolist(), rel=1e-9)
    assert page.log_of_softmax([0.0, -746.0])[1] == -math.inf
    assert page.log_softmax([0.0, -746.0])[1] == -746.0


def test_mean_perplexity_and_bits(page):
    losses = logits(1, 400, 1.0)[0].abs()
    mean = page.mean(losses.tolist())
    assert mean == pytest.approx(losses.mean().item(), rel=1e-14)
    assert page.perplexity(mean) == pytest.approx(losses.mean().exp().item(), rel=1e-14)
    assert 2 ** page.bits(mean) == pytest.approx(math.exp(mean), rel=1e-12)
    assert page.perplexity(709.7) < math.inf == page.perplexity(1000.0)
    with pytest.raises(ValueError, match="losses is empty"):
        page.mean([])


def test_uniform_is_the_size_of_the_vocabulary(page):
    for size in (2, 12, 50_257):
        assert page.perplexity(page.loss_at([0.3] * size, 1)) == pytest.approx(size, rel=1e-10)


@pytest.mark.parametrize("shift", [0, 1, 2])
def test_every_shift_scores_what_it_says(page, shift):
    ids = page.padded(["the cat sat"])[0]
    rows = torch.tensor(page.model(ids), dtype=torch.float64)
    end = len(ids) - shift
    expected = torch.nn.functional.cross_entropy(rows[:end], torch.tensor(ids[shift:]), reduction="none")
    assert page.losses_of(ids, shift) == pytest.approx(expected.tolist(), rel=1e-12)


def test_only_the_masked_value_does_not_depend_on_the_batch(page):
    texts = ["a cat sat", "the rat", "the cat ran at the rat on the mat"]
    alone = [cost for text in texts for cost in page.corpus_losses([text])]
    assert page.corpus_losses(texts) == pytest.approx(alone, rel=1e-14)
    assert page.mean(page.corpus_losses(texts, masked=False)) < page.mean(alone)
