"""The contestants of the speed measurement compute the same thing, and its instruments measure."""

import pytest
import torch
from sentence_transformers.cross_encoder.losses import PListMLELoss

from losslab.measure.list_mle_speed import Batch, compare, contestants, peak_bytes, tensor_lines


@pytest.fixture(scope="module")
def batch():
    return Batch(lists=6, shortest=2, longest=12)  # at most 16 wide, where the class's sort keeps ties in order


def test_both_forms_hold_the_same_lists(batch):
    assert torch.equal(batch.logits[batch.mask], batch.flat)
    assert torch.equal(batch.padded_labels[batch.mask], torch.cat(batch.label_list))
    assert [len(d) for d in batch.documents] == batch.mask.sum(1).tolist()


@pytest.mark.parametrize("order", ["labels", "given"])
def test_all_contestants_give_one_value_and_one_gradient(batch, order):
    results = []
    for (_, of), (step, leaf) in contestants(batch).items():
        if of == order:
            leaf.grad = None
            value = step()
            value.backward()
            gradient = leaf.grad if leaf.ndim == 1 else leaf.grad[batch.mask]
            results.append((value.item(), gradient.clone()))
    assert len(results) == 5
    for value, gradient in results[1:]:
        assert value == pytest.approx(results[0][0], rel=1e-6)
        torch.testing.assert_close(gradient, results[0][1], rtol=1e-5, atol=1e-7)


def test_peak_counts_what_lives_at_once():
    leaf = torch.zeros(1000, requires_grad=True)  # 4000 bytes, there before and not counted

    def step():
        return (leaf * 2).exp().sum()

    # Forward, twice the leaf and its exp; backward, exp's result and the gradient before it: 2 of 4000 bytes at once.
    assert 2 * 4000 <= peak_bytes(step, leaf) < 2.5 * 4000


def test_tensor_lines_of_something_else_are_refused():
    class Other:
        def forward(self, inputs):
            return inputs

    with pytest.raises(ValueError, match=r"Other\.forward has no line"):
        tensor_lines(Other)


def test_tensor_lines_are_the_installed_ones():
    lines = tensor_lines(PListMLELoss)
    assert lines.__code__.co_filename == "<PListMLELoss tensor lines>"
    assert not {"preprocess", "docs_list", "pairs"} & {*lines.__code__.co_names, *lines.__code__.co_varnames}
    assert "logcumsumexp" in lines.__code__.co_names


def test_every_ratio_is_of_the_values_beside_it(batch):
    table = {(r["implementation"], r["order"], r["metric"]): r["value"] for r in compare(batch, runs=2)}
    for name, order in contestants(batch):
        for metric, share in (
            ("median time", "losslab's time as a share of this"),
            ("peak allocation", "losslab's peak as a share of this"),
        ):
            expected = table["losslab", order, metric] / table[name, order, metric]
            assert table[name, order, share] == pytest.approx(expected)
        assert table[name, order, "shortest time"] <= table[name, order, "median time"]
        assert table[name, order, "peak allocation"] > 0
