"""The nested loss against its formula, at every precision, around several base losses, and what it refuses."""

import functools
import itertools
import math
import pickle

import numpy as np
import pytest
import torch

import exact_contrastive as exact
from losslab.contracts.fake_device import CUDA, FakeCuda
from losslab.device import pick_device
from losslab.losses import graded_info_nce, info_nce, matryoshka, multi_positive_info_nce

DEVICE = pick_device()
# Value relative to itself, gradient to its largest entry. Half results are rounded twice: the base loss answers
# in half about the full size, and so does the sum.
TOLERANCE = {
    torch.float64: (1e-12, 1e-12),
    torch.float32: (1e-6, 1e-5),
    torch.bfloat16: (1e-6 + 2 * 2**-8, 1e-5 + 2 * 2**-8),
    torch.float16: (1e-6 + 2 * 2**-11, 1e-5 + 2 * 2**-11),
}
each_dtype = pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
DOT = functools.partial(info_nce, normalize=False, temperature=2.0)


def normal(*shape, seed=0, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def nested_info_nce(queries, documents, dims, weights, *, normalize=True, temperature=0.05):
    """The formula: at each size the objective of the prefixes, scores being cosines, but dot products at full size."""
    size, value = queries.shape[1], 0.0
    gradients = [torch.zeros_like(x, dtype=torch.float64) for x in (queries, documents)]
    for dim, weight in zip(dims, weights, strict=True):
        cosines = normalize or dim < size  # the dot product of unit prefixes is their cosine
        rows, by = exact.info_nce(queries[:, :dim], documents[:, :dim], normalize=cosines, temperature=temperature)
        value += weight * float(sum(rows) / len(rows))
        for total, part in zip(gradients, by, strict=True):
            total[:, :dim] += weight * part
    return value, gradients


def distance(student, labels):
    """Mean squared error, the usual distillation."""
    return (student - labels).square().mean()


def nested_distance(student, teacher, dims):
    """Sum over sizes of the mean squared difference of unit prefixes, whole vectors as they are; plain loops."""
    value, size = 0.0, len(student[0])
    gradient = [[0.0] * size for _ in student]
    for dim in dims:
        for i, (s, t) in enumerate(zip(student, teacher, strict=True)):
            lengths = [1.0 if dim == size else math.sqrt(math.fsum(x * x for x in row[:dim])) for row in (s, t)]
            u, v = ([x / n for x in row[:dim]] for row, n in zip((s, t), lengths, strict=True))
            value += math.fsum((a - b) ** 2 for a, b in zip(u, v, strict=True)) / (len(student) * dim)
            by_unit = [2 * (a - b) / (len(student) * dim) for a, b in zip(u, v, strict=True)]
            along = 0.0 if dim == size else math.fsum(g * a for g, a in zip(by_unit, u, strict=True))
            for k in range(dim):
                gradient[i][k] += (by_unit[k] - along * u[k]) / lengths[0]
    return value, gradient


def close(value, gradients, truth, dtype):
    expected, expected_gradients = truth
    by_value, by_gradient = TOLERANCE[dtype]
    assert value.dtype == dtype
    assert value.item() == pytest.approx(expected, rel=by_value)
    for got, want in zip(gradients, expected_gradients, strict=True):
        assert got.dtype == dtype
        assert (got.cpu().double() - want).abs().max() <= by_gradient * want.abs().max()


def run(loss, *embeddings, **keywords):
    leaves = [x.to(DEVICE).requires_grad_() for x in embeddings]
    value = loss(*leaves, **keywords)
    return value, torch.autograd.grad(value, leaves)


# --- Against the formula


@each_dtype
@pytest.mark.parametrize("normalize", [True, False], ids=["cosines", "dot products"])
@pytest.mark.parametrize(
    ("dims", "weights"), [((6, 3, 2), None), ((2, 5), (0.25, 3.0)), ((6,), (2.0,)), ((1, 2, 3, 4, 5, 6), None)]
)
def test_value_and_gradients_equal_the_formula(dtype, normalize, dims, weights):
    queries, documents = normal(5, 6, dtype=dtype), normal(7, 6, seed=1, dtype=dtype)
    base = functools.partial(info_nce, temperature=0.5) if normalize else DOT
    got = run(matryoshka(base, dims, weights), queries, documents)
    temperature = 0.5 if normalize else 2.0
    given = weights or (1.0,) * len(dims)
    truth = nested_info_nce(queries, documents, dims, given, normalize=normalize, temperature=temperature)
    close(*got, truth, dtype)


@each_dtype
@pytest.mark.parametrize("by_keyword", [True, False])
def test_embedding_labels_are_cut_and_renormalised(dtype, by_keyword):
    student, teacher = normal(4, 5, dtype=dtype), normal(4, 5, seed=1, dtype=dtype)
    loss = matryoshka(distance, [5, 3, 1], embedding_labels="labels")
    leaf = student.to(DEVICE).requires_grad_()
    value = loss(leaf, labels=teacher.to(DEVICE)) if by_keyword else loss(leaf, teacher.to(DEVICE))
    expected, by_student = nested_distance(student.tolist(), teacher.tolist(), [5, 3, 1])
    close(value, torch.autograd.grad(value, leaf), (expected, [torch.tensor(by_student, dtype=torch.float64)]), dtype)


@each_dtype
def test_a_perfect_student_costs_nothing_at_any_size(dtype):
    teacher = normal(3, 8, dtype=dtype)
    loss = matryoshka(distance, [8, 4, 2, 1], embedding_labels=["labels"])
    value, (gradient,) = run(functools.partial(loss, labels=teacher.clone().to(DEVICE)), teacher)
    assert value.item() == 0
    assert not gradient.any()


def test_the_lengths_of_the_rows_do_not_matter_below_full_size():
    queries, documents = normal(4, 6), normal(4, 6, seed=1)
    loss = matryoshka(DOT, [4, 2])
    scaled = loss(queries * torch.tensor([[1e-30], [1.0], [7.0], [1e30]]).double(), 1e200 * documents)
    assert scaled.item() == pytest.approx(loss(queries, documents).item(), rel=1e-12)
    assert matryoshka(DOT, [6])(queries, 2 * documents).item() != pytest.approx(DOT(queries, documents).item(), rel=0.1)


def test_the_full_size_is_the_base_loss_itself():
    seen_by_base = []

    def base(queries, documents, labels):
        seen_by_base.append((queries, documents, labels))
        return (queries @ documents.T).sum()

    queries, documents, labels = normal(2, 3), normal(2, 3, seed=1), normal(2, 3, seed=2)
    matryoshka(base, [2, 3], embedding_labels=["labels"])(queries, documents, labels=labels)
    assert all(a is b for a, b in zip(seen_by_base[0], (queries, documents, labels), strict=True))
    assert [x[0].shape[1] for x in seen_by_base] == [3, 2]


def test_dimensions_beyond_the_largest_size_are_not_touched():
    queries, documents = normal(4, 6), normal(4, 6, seed=1)
    value, gradients = run(matryoshka(info_nce, [2, 4]), queries, documents)
    for gradient in gradients:
        assert gradient[:, :4].abs().min() > 0
        assert not gradient[:, 4:].any()
    changed = [torch.cat([x[:, :4], torch.full((4, 2), torch.nan)], 1) for x in (queries, documents)]
    assert run(matryoshka(info_nce, [2, 4]), *changed)[0].item() == value.item()


def test_the_order_of_the_sizes_does_not_matter_to_the_last_bit():
    queries, documents = normal(4, 6, dtype=torch.float32), normal(4, 6, seed=1, dtype=torch.float32)
    pairs = [(6, 0.3), (4, 1.7), (2, 0.1), (1, 5.0)]
    values = set()
    for order in itertools.permutations(pairs):
        values.add(matryoshka(info_nce, *zip(*order, strict=True))(queries, documents).item())
    assert len(values) == 1


def test_a_size_of_weight_0_is_not_computed():
    asked = []
    loss = matryoshka(lambda q, d: asked.append(q.shape[1]) or (q * d).sum(), np.array([2, 3, 1]), [1, 0, 2.0])
    loss(normal(2, 3), normal(2, 3))
    assert asked == [2, 1]


# --- Around other losses of ours


def test_keywords_reach_the_base_loss_and_grades_are_not_cut():
    """Grades of as many columns as the embeddings have: guessed from the shape, they would be taken for embeddings."""
    queries, documents, grades = normal(3, 5), normal(5, 5, seed=1), torch.arange(15).reshape(3, 5).double()
    got = matryoshka(graded_info_nce, [5, 2])(queries, documents, labels=grades, temperature=0.3)
    by_hand = graded_info_nce(queries, documents, grades, temperature=0.3)
    by_hand += graded_info_nce(queries[:, :2], documents[:, :2], grades, temperature=0.3)
    assert got.item() == pytest.approx(by_hand.item(), rel=1e-12)
    right = torch.eye(3, 5, dtype=torch.bool)
    positives = matryoshka(multi_positive_info_nce, [5, 2])(queries, documents, positives=right)
    assert positives.item() == pytest.approx(matryoshka(info_nce, [5, 2])(queries, documents).item(), rel=1e-9)


def test_hard_negatives_are_cut_and_their_padding_stays_harmless():
    queries, documents, hard = normal(3, 6), normal(3, 6, seed=1), normal(3, 2, 6, seed=2)
    mask = torch.tensor([[True, False], [True, True], [False, False]])
    hard[~mask] = torch.nan
    loss = matryoshka(info_nce, [6, 2])
    leaves = [x.requires_grad_() for x in (queries, documents, hard)]
    value = loss(queries, documents, hard_negatives=hard, hard_mask=mask)
    gradients = torch.autograd.grad(value, leaves)
    clean = torch.where(mask[..., None], hard, 1.0).detach()
    by_hand = sum(
        info_nce(queries[:, :m], documents[:, :m], hard_negatives=clean[..., :m], hard_mask=mask) for m in (6, 2)
    )
    assert value.item() == pytest.approx(by_hand.item(), rel=1e-12)
    assert all(gradient.isfinite().all() for gradient in gradients)
    assert not gradients[2][~mask].any()
    assert loss(queries, documents, hard_negatives=None).item() == loss(queries, documents).item()


def test_one_value_a_query_stays_one_value_a_query():
    queries, documents = normal(3, 4), normal(3, 4, seed=1)
    rows = matryoshka(info_nce, [4, 2])(queries, documents, reduction="none")
    assert rows.shape == (3,)
    assert rows.mean().item() == pytest.approx(matryoshka(info_nce, [4, 2])(queries, documents).item(), rel=1e-12)


def test_a_gradient_check():
    for base in (info_nce, DOT, distance):
        leaves = tuple(normal(3, 4, seed=seed).requires_grad_() for seed in (0, 1))
        assert torch.autograd.gradcheck(matryoshka(base, [4, 3, 1], [1, 2, 0.5]), leaves)


def test_parameters_of_a_module_are_trained_and_nothing_of_it_changed():
    class Scaled(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = torch.nn.Parameter(torch.tensor(3.0, dtype=torch.float64))

        def forward(self, queries, documents):
            return info_nce(queries * self.scale, documents, normalize=False, temperature=1.0)

    module = Scaled()
    before, forward = dict(vars(module)), module.forward
    matryoshka(module, [4, 2])(normal(3, 4), normal(3, 4, seed=1)).backward()
    assert module.scale.grad.abs() > 0
    assert dict(vars(module)) == before
    assert module.forward == forward


def test_an_exception_of_the_base_loss_passes_with_a_note_and_leaves_nothing_behind():
    def base(queries, documents):
        if queries.shape[1] == 2:
            raise RuntimeError("no more")
        return info_nce(queries, documents)

    queries, documents = normal(3, 4), normal(3, 4, seed=1)
    with pytest.raises(RuntimeError, match="no more") as caught:
        matryoshka(base, [4, 2])(queries, documents)
    assert caught.value.__notes__ == ["raised by the base loss of matryoshka, asked about the first 2 dimensions"]
    assert (
        matryoshka(base, [4, 3])(queries, documents).item() == matryoshka(info_nce, [3, 4])(queries, documents).item()
    )


def test_a_prefix_without_direction_is_left_to_the_base_loss():
    queries = torch.tensor([[0.0, 0.0, 1.0], [1.0, 2.0, 0.0]], dtype=torch.float64)
    value, gradients = run(matryoshka(DOT, [2]), queries, normal(2, 3))
    assert value.isfinite()
    assert all(gradient.isfinite().all() for gradient in gradients)
    with pytest.raises(ValueError, match="no zero vector where normalize=True, got one at row 0") as caught:
        matryoshka(info_nce, [3, 2])(queries, normal(2, 3))
    assert "first 2 dimensions" in caught.value.__notes__[0]


@each_dtype
def test_nothing_is_made_on_another_device(dtype):
    with FakeCuda() as fake, torch.no_grad():
        queries, documents = fake.put(normal(3, 4, dtype=dtype)), fake.put(normal(5, 4, seed=1, dtype=dtype))
        assert matryoshka(info_nce, [4, 2], [1, 0.5])(queries, documents).device == CUDA


def test_extreme_lengths_in_half_precision():
    queries, documents = normal(3, 4), normal(3, 4, seed=1)
    for dtype, factor in ((torch.float16, 2.0**-6), (torch.float16, 2.0**12), (torch.bfloat16, 2.0**120)):
        plain = [x.to(dtype) for x in (queries, documents)]
        value, gradients = run(matryoshka(DOT, [2]), *(x * factor for x in plain))
        assert value.item() == matryoshka(DOT, [2])(*plain).item()
        assert all(gradient.isfinite().all() for gradient in gradients)


def test_it_says_what_it_is_and_can_be_stored():
    loss = matryoshka(info_nce, (4, 2), embedding_labels="labels")
    assert (loss.base_loss, loss.dims, loss.weights, loss.embedding_labels) == (
        info_nce,
        (4, 2),
        (1.0, 1.0),
        ("labels",),
    )
    assert pickle.loads(pickle.dumps(loss)) == loss


# --- Refusals

BAD = {
    "no dims": ({"dims": []}, r"dims must hold at least one size, got none"),
    "a number": ({"dims": 4}, r"dims must be a sequence of whole numbers, got 4; for one size write \[4\]"),
    "a word": ({"dims": "42"}, r"dims must be a sequence of whole numbers, got '42'"),
    "a fraction": ({"dims": [4, 2.0]}, r"dims must be whole numbers, got 2.0 in \[4, 2.0\]"),
    "a truth": ({"dims": [True]}, r"dims must be whole numbers, got True"),
    "below 1": ({"dims": [4, 0]}, r"dims must be at least 1, got 0 in \[4, 0\]"),
    "negative": ({"dims": [-2]}, r"dims must be at least 1, got -2"),
    "repeated": ({"dims": [4, 2, 4]}, r"dims must name each size once, got 4 more than once in \[4, 2, 4\]"),
    "too few weights": ({"weights": [1.0]}, r"weights must be as many as dims, 2, got 1: \[1.0\]"),
    "a negative weight": ({"weights": [1, -0.5]}, r"weights must be finite numbers of at least 0, got -0.5"),
    "a nan weight": ({"weights": [1, math.nan]}, r"weights must be finite numbers of at least 0, got nan"),
    "an endless weight": ({"weights": [1, math.inf]}, r"weights must be finite numbers of at least 0, got inf"),
    "a word for a weight": ({"weights": [1, "2"]}, r"weights must be finite numbers of at least 0, got '2'"),
    "one weight": ({"weights": 1.0}, r"weights must be a sequence of numbers, one a dimension, got 1.0"),
    "all weights 0": ({"weights": [0, 0]}, r"weights must not all be 0, got \[0, 0\]"),
    "a mapping": ({"dims": {4: 1.0, 2: 0.5}}, r"dims must be a sequence of whole numbers, got \{4: 1.0, .* as weights"),
    "no order": ({"dims": {4, 2}, "weights": [1, 2]}, r"dims must be in an order if weights are given, got a set"),
    "a tensor of one": ({"dims": torch.tensor(4)}, r"dims must be a sequence of whole numbers, got tensor\(4\)"),
    "a tensor of fractions": ({"dims": torch.tensor([4.0, 2.0])}, r"dims must be whole numbers, got 4.0"),
    "a mapping of weights": ({"weights": {4: 1, 2: 2}}, r"weights must be a sequence .* in the order of dims"),
    "a set of weights": ({"weights": {1, 2}}, r"weights must be a sequence of numbers, .* got \{1, 2\}"),
    "no labels": (
        {"embedding_labels": None},
        r"embedding_labels must be names of keywords, got NoneType; leave it out",
    ),
    "a number for labels": ({"embedding_labels": 3}, r"embedding_labels must be names of keywords, got int"),
    "labels themselves": ({"embedding_labels": [3]}, r"embedding_labels must be names of keywords, got \(3,\)"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_settings_are_named(case):
    change, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        matryoshka(**{"base_loss": info_nce, "dims": [4, 2], **change})


def test_a_base_loss_must_be_callable():
    with pytest.raises(TypeError, match="base_loss must be callable, got str"):
        matryoshka("info_nce", [2])


CALLS = {
    "too large": ((normal(2, 3), normal(2, 3)), {}, r"dims must be at most the embeddings' 3 dimensions, got 4"),
    "grades by position": (
        (normal(2, 4), normal(5, 4), normal(2, 5)),
        {},
        r"embeddings\[2\] must have the first embeddings' 4 dimensions, got float64 of shape \(2, 5\).* by keyword",
    ),
    "classes by position": (
        (normal(2, 4), torch.arange(2)),
        {},
        r"embeddings\[1\] must be a floating-point tensor of shape \(..., dimensions\), got int64 of shape \(2,\)",
    ),
    "labels of another size": (
        (normal(2, 4), normal(2, 4)),
        {"labels": normal(2, 6)},
        r"labels must have the first embeddings' 4 dimensions, got float64 of shape \(2, 6\)",
    ),
    "labels under another name": (
        (normal(2, 4), normal(2, 4)),
        {"teacher": normal(2, 4)},
        r"embedding_labels has 'labels', so every call must pass labels=…, got the keywords: teacher",
    ),
    "nothing": ((), {}, r"embeddings must be given, as positional arguments; got none"),
}


@pytest.mark.parametrize("case", CALLS)
def test_bad_calls_are_named(case):
    embeddings, keywords, message = CALLS[case]
    with pytest.raises(ValueError, match=message):
        matryoshka(info_nce, [4, 2], embedding_labels="labels")(*embeddings, **keywords)


def test_labels_by_position_are_where_the_base_loss_has_them():
    student, teacher = normal(2, 4), normal(2, 4, seed=1)
    by_keyword = matryoshka(distance, [4, 2], embedding_labels="labels")(student, labels=teacher)
    module = matryoshka(torch.nn.MSELoss(), [4, 2], embedding_labels="target")
    assert module(student, teacher).item() == by_keyword.item() == module(student, target=teacher).item()
    with pytest.raises(ValueError, match=r"every call must pass teacher=…, got the keywords: none"):
        matryoshka(distance, [4, 2], embedding_labels="teacher")(student, teacher)


def test_sizes_and_weights_may_come_as_tensors():
    loss = matryoshka(info_nce, torch.tensor([4, 2]), torch.tensor([1.0, 0.5]))
    assert (loss.dims, loss.weights) == ((4, 2), (1.0, 0.5))
    assert matryoshka(info_nce, [torch.tensor(4), 2]).dims == (4, 2)
    assert set(matryoshka(info_nce, {4, 2}).dims) == {4, 2}
    sizes = {4: 1.0, 2: 0.5}
    assert matryoshka(info_nce, sizes.keys(), sizes.values()).weights == (1.0, 0.5)


def test_a_base_loss_must_give_a_tensor():
    with pytest.raises(ValueError, match="base_loss must return a tensor, got float at 3 dimensions"):
        matryoshka(lambda q, d: 1.0, [2, 3])(normal(2, 3), normal(2, 3))  # noqa: ARG005
