"""The matryoshka mistakes give the numbers that were reported for them, or that follow by hand; and are caught."""

import inspect
import math

import pytest
import torch

from losslab.losses import matryoshka
from losslab.measure.mistake_sweep import catch
from losslab.mistakes import MISTAKES, get

NESTED = [mistake for mistake in MISTAKES.values() if mistake.kind == "matryoshka"]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("mistake", NESTED, ids=lambda mistake: mistake.name)
def test_the_contract_it_names_catches_it(mistake, seed):
    verdict, text = catch(mistake, seed)
    assert verdict == "broken", text


@pytest.mark.parametrize("mistake", NESTED, ids=lambda mistake: mistake.name)
def test_its_signature_is_the_call_form(mistake):
    parameters = inspect.signature(mistake.wrong).parameters
    assert list(parameters) == ["base_loss", "dims", "weights"]
    assert parameters["weights"].default is None


#: Mistakes of manners are another function on any input, or on any second one.
SHOWN_ANYWHERE = ("mrl_cuts_in_place", "mrl_random_size")


@pytest.mark.parametrize(
    "mistake", [one for one in NESTED if one.name not in SHOWN_ANYWHERE], ids=lambda mistake: mistake.name
)
def test_where_it_cannot_show_it_is_the_nested_loss(mistake):
    """Float64, a loss of cosines, sizes largest first, nothing beyond the largest prefix, no exception."""
    queries, documents = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(0)).double()

    def cosines(a, b):
        a, b = (x / x.norm(dim=1, keepdim=True) for x in (a, b))
        return torch.nn.functional.cross_entropy(a @ b.T / 0.1, torch.arange(3))

    class Module(torch.nn.Module):
        def forward(self, a, b):
            return cosines(a, b)

    dims = [4, 2] if mistake.name != "mrl_mean_over_dims" else [4]
    got = mistake.wrong(Module(), dims)(queries, documents).item()
    assert got == pytest.approx(matryoshka(cosines, dims)(queries, documents).item(), rel=1e-9)


def test_a_truncated_dot_product_ranks_the_other_document_first():
    mistake = get("mrl-not-renormalised")
    inputs = mistake.example.inputs
    query, a, b = (inputs[name][: inputs["dims"]] for name in ("query", "document_a", "document_b"))
    dots = [sum(x * y for x, y in zip(query, d, strict=True)) for d in (a, b)]
    cosines = [dot / (math.hypot(*query) * math.hypot(*d)) for dot, d in zip(dots, (a, b), strict=True)]
    assert list(mistake.example.of(mistake.wrong).values()) == pytest.approx(dots, rel=1e-12)
    assert list(mistake.example.of(matryoshka).values()) == pytest.approx(cosines, rel=1e-12)
    assert dots == pytest.approx([0.36, 0.48])
    assert cosines == pytest.approx([1.0, 0.8])


def test_the_full_size_of_a_dot_product_loss():
    example = get("mrl-forces-cosine").example
    assert example.of(matryoshka)["loss"] == pytest.approx(math.log1p(math.exp(-3)), rel=1e-12)
    by_cosine = math.log1p(math.exp(-1 / math.sqrt(5)))
    assert example.of(get("mrl-forces-cosine").wrong)["loss"] == pytest.approx(by_cosine, rel=1e-12)


def test_a_perfect_student_pays_at_the_smaller_size():
    mistake = get("mrl-labels-sliced")
    assert list(mistake.example.of(mistake.wrong).values()) == pytest.approx([0, (1 - 0.6) ** 2])
    assert list(mistake.example.of(matryoshka).values()) == [0, 0]


def test_sizes_in_ascending_order_are_all_the_smallest():
    mistake = get("mrl-dim-order")
    whole = math.log1p(math.exp(-1))  # two perfect pairs at right angles
    first = math.log(2)  # 0.6 and 0.8 both point the same way in one dimension
    assert list(mistake.example.of(mistake.wrong).values()) == pytest.approx([whole + first, 2 * first], rel=1e-12)
    assert list(mistake.example.of(matryoshka).values()) == pytest.approx([whole + first] * 2, rel=1e-12)


def test_inner_products_depend_on_the_origin():
    """With all components: what the mean takes is <c, y>, here 3 times the first coordinate, and it decides."""
    mistake = get("pca-inner-product")
    assert list(mistake.example.of(mistake.right).values()) == pytest.approx([10.8, 7.2])
    assert list(mistake.example.of(mistake.wrong).values()) == pytest.approx([-1.2, 1.2])
