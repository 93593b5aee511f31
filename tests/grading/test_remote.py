"""What comes back from a student's process is looked at before it is believed; then a local function gives the same."""

import struct

import numpy as np
import pytest
import torch

from in_process import running
from losslab.contracts.checking import KINDS, check_one, contracts_of
from losslab.grading.inside import Encoder
from losslab.grading.remote import Other, RemoteFunction, Tensor, decode, exception, text_of
from losslab.grading.sandbox import Ended
from two_labs import LAB, MODULE, NOT_NORMALISED, RIGHT


def there_and_back(value):
    encode = Encoder()
    tagged = encode(value)
    return decode(tagged, encode.blob.getvalue())


@pytest.mark.parametrize(
    "value",
    [None, True, False, 0, -(10**299), 0.1, float("inf"), "", "ü\n", [], [1, [2.5, None]], (1, "a"), {"a": [True]}],
)
def test_plain_values_come_back_as_they_are(value):
    got = there_and_back(value)
    assert got == value
    assert type(got) is type(value)


def test_not_a_number_comes_back_as_one():
    assert np.isnan(there_and_back(float("nan")))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "bool", "uint8", "int32", "int64"])
def test_tensors_come_back_bit_for_bit(dtype):
    tensor = (torch.arange(6).reshape(2, 3) / 3).to(getattr(torch, dtype))
    got = there_and_back(tensor)
    assert torch.equal(got.torch(), tensor)
    assert got.torch().dtype == tensor.dtype
    assert np.array_equal(got.numpy(), tensor.double().numpy())
    assert there_and_back(torch.zeros(0, 3)).torch().shape == (0, 3)


def test_arrays_in_any_order_come_back():
    array = np.arange(6.0).reshape(2, 3).T
    assert np.array_equal(there_and_back(array).numpy(), array)
    assert there_and_back(np.float32(2.5)).numpy() == 2.5


class Liar(float):
    def __eq__(self, other):
        return True

    __hash__ = float.__hash__


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (Liar(1.0), "Liar"),
        (1j, "complex"),
        (object(), "object"),
        (torch.zeros(2, dtype=torch.complex64), "tensor of complex64"),
        (torch.eye(2).to_sparse(), "tensor of float32"),
        (np.array(["a"]), "array of str32"),
        ({1: 2}, "dict"),
        (10**300, "int of more than 300 digits"),
        (b"x", "bytes"),
        (lambda: 1, "function"),
    ],
)
def test_of_anything_else_only_the_types_name_comes_back(value, name):
    assert there_and_back(value) == Other(name)


def test_lists_in_lists_end_somewhere():
    endless = []
    endless.append(endless)
    depth, found = 0, there_and_back(endless)
    while isinstance(found, list):
        depth, found = depth + 1, found[0]
    assert found == Other("list")
    assert depth == 24


@pytest.mark.parametrize(
    "forged",
    [
        None,
        7,
        [],
        ["x"],
        ["n", 1],
        ["b", 1],
        ["i", 1],
        ["i", "1e9"],
        ["i", "1" * 400],
        ["i", "__import__('os')"],
        ["f", "1"],
        ["f", 1],
        ["s", ["a"]],
        ["l", "ab"],
        ["d", [["a"]]],
        ["d", [[1, ["n"]]]],
        ["a", "float32", [2], 0, 4],
        ["a", "float32", [1], -4, 4],
        ["a", "float32", [1], 8, 4],
        ["a", "float32", [True], 0, 4],
        ["a", "float32", [-1], 0, -4],
        ["a", "float32", [2**50], 0, 2**52],
        ["a", "float32", [1] * 17, 0, 4],
        ["a", "object", [1], 0, 8],
        ["a", "complex64", [1], 0, 8],
        ["a", "bool", [4], 0, 4],
        ["a", "float32", "1", 0, 4],
        ["a", "float32", [1], 0.0, 4],
        ["a", ["float32"], [1], 0, 4],
    ],
)
def test_what_no_honest_process_sends_is_refused(forged):
    with pytest.raises(Ended, match="it answered with"):
        decode(forged, struct.pack("<2f", 1.0, 2.0))


def test_lists_deeper_than_any_are_refused():
    forged = ["n"]
    for _ in range(40):
        forged = ["l", [forged]]
    with pytest.raises(Ended):
        decode(forged, b"")


def test_words_are_made_fit_for_a_page():
    assert text_of("a\n\x1b[31mb\x00\ud800" + "c" * 900, 20) == "a [31mb cccccccccccc"
    assert text_of(7) == ""


# A function


def test_errors_say_type_message_and_line():
    student = running(LAB, "def f(x):\n    y = x + 1\n    raise KeyError('no ' + str(float(y)))\n")
    error = student.call("f", [1]).error
    assert str(error) == "KeyError: 'no 2.0' (cell 1, line 3)"
    assert error.types[:3] == ("KeyError", "LookupError", "Exception")


def test_arguments_are_tensors_in_a_notebook_and_lists_in_a_module(monkeypatch):
    code = "def kind(x):\n    return [type(x).__name__, str(getattr(x, 'dtype', ''))]\n"
    assert running(LAB, code).call("kind", [np.zeros((2, 2), np.float32)]).value == ["Tensor", "torch.float32"]
    import sys

    monkeypatch.delitem(sys.modules, "torch")
    assert running(MODULE, "def same(x):\n    return x\n").call("same", [[[1, 2.5]]]).value == [[1, 2.5]]


def test_gradients_are_autograds():
    student = running(LAB, RIGHT)
    random = np.random.default_rng(0)
    arrays = [random.normal(size=(3, 4)), random.normal(size=(5, 4))]
    answer = student.call("info_nce", arrays, {"temperature": 0.2}, [0, 1])
    leaves = [torch.tensor(x, requires_grad=True) for x in arrays]
    q, d = (torch.nn.functional.normalize(x, dim=1) for x in leaves)
    torch.nn.functional.cross_entropy(q @ d.T / 0.2, torch.arange(3)).backward()
    for got, leaf in zip(answer.gradients, leaves, strict=True):
        np.testing.assert_allclose(got.numpy(), leaf.grad.numpy(), rtol=1e-10)


def test_a_function_may_write_into_its_input_and_leave_one_unused():
    student = running(LAB, "def f(x, y):\n    x *= 2\n    return x.sum()\n")
    answer = student.call("f", [np.ones(2, np.float32), np.ones(3, np.float32)], {}, [0, 1])
    assert [g.numpy().tolist() for g in answer.gradients] == [[2, 2], [0, 0, 0]]


def test_no_gradient_is_said():
    student = running(LAB, "def f(x):\n    return x.detach().sum()\n\ndef g(x):\n    return 1.0\n")
    assert student.call("f", [np.ones(2, np.float32)], {}, [0]).gradients is None
    assert student.call("g", [np.ones(2, np.float32)], {}, [0]).gradients is None


def remote(source, function="info_nce"):
    student = running(LAB, source)
    return RemoteFunction(student, function, student.signature(function))


def local(source, function="info_nce"):
    space = {}
    exec(LAB.prelude + source, space)
    return space[function]


ONE_BREAKS = RIGHT.replace("/ temperature", "/ temperature / 2")


@pytest.mark.parametrize("source", [RIGHT, NOT_NORMALISED, ONE_BREAKS], ids=["right", "not normalised", "too soft"])
def test_contracts_judge_it_as_they_judge_the_function_itself(source):
    kind = KINDS["contrastive"]
    conventions = kind.conventions(temperature=0.5)
    for contract in contracts_of("contrastive"):
        if contract.id == "device":
            continue
        results = [
            check_one(contract, kind.subject(function, conventions, None), 3, 8)
            for function in (remote(source), local(source))
        ]
        assert results[0].to_dict() == results[1].to_dict(), contract.id


def test_a_value_without_gradient_stays_one():
    function = remote("def info_nce(queries):\n    return queries.detach().sum()\n")
    assert not function(torch.ones(2, requires_grad=True)).requires_grad


def test_an_error_of_the_backward_pass_is_raised_there():
    source = """\
class Broken(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.sum()
    @staticmethod
    def backward(ctx, g):
        raise RuntimeError("no way back")

def info_nce(x):
    return Broken.apply(x)
"""
    value = remote(source)(torch.ones(2, requires_grad=True))
    with pytest.raises(Exception, match="no way back"):
        value.backward()


def test_only_the_gradient_of_the_sum_is_known():
    x = torch.ones(3, requires_grad=True)
    value = remote("def info_nce(x):\n    return x * x\n")(x)
    (gradient,) = torch.autograd.grad(3 * value.sum(), x, retain_graph=True)
    assert gradient.tolist() == [6, 6, 6]
    with pytest.raises(RuntimeError, match="only the gradient of the sum"):
        torch.autograd.grad(value[0], x)


def test_a_student_cannot_be_excused_for_a_missing_operation():
    source = "def info_nce(queries, documents):\n    raise NotImplementedError('\"x\" not implemented for Half')\n"
    with pytest.raises(Exception, match='"x" not implemented: for') as caught:
        remote(source)(torch.ones(1, 2), torch.ones(1, 2))
    assert type(caught.value).__name__ == "NotImplementedError"
    assert not isinstance(caught.value, NotImplementedError)


def test_its_signature_has_names_and_no_values():
    function = remote("def info_nce(queries, documents, *, temperature=0.7):\n    pass\n")
    assert str(function.__signature__) == "(queries, documents, *, temperature=Ellipsis)"


def test_what_is_no_function_has_no_signature():
    assert running(LAB, "info_nce = 3").signature("info_nce") is None
    assert running(LAB, "").signature("info_nce") is None


@pytest.mark.parametrize(
    "parameters",
    [
        None,
        "abc",
        [["x", 1]],
        [["x y", 1, True]],
        [["x", 9, True]],
        [["x", 4, False], ["y", 0, False]],
        [[[], 1, True]],
    ],
)
def test_a_forged_signature_is_none_to_speak_of(parameters):
    from losslab.grading.remote import _signature

    assert len(_signature({"found": "function", "parameters": parameters}).parameters) == 0


def test_a_tensor_of_bfloat16_has_the_numbers_of_float32():
    assert Tensor("bfloat16", (2,), struct.pack("<2H", 0x3F80, 0xC000)).numpy().tolist() == [1.0, -2.0]


def test_an_exception_is_called_as_theirs_was():
    error = running(LAB, "def f():\n    raise IndexError('x')\n").call("f").error
    assert repr(exception(error)) == "IndexError('x (cell 1, line 2)')"
