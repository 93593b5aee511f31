"""The fake CUDA device refuses what a real one refuses, lets through what it lets through, and follows real losses."""

import pytest
import torch
from torch.nn import functional

import planted
from losslab.contracts import Conventions, check
from losslab.contracts.fake_device import CUDA, FakeCuda, MixedDevicesError, residents_of
from losslab.contracts.listwise.device import on_the_accelerator
from losslab.contracts.model import BrokenPromise
from losslab.contracts.subject import Subject
from losslab.losses import list_mle, list_net, p_list_mle

ROWS = torch.zeros(2, dtype=torch.long)
MIXED = {
    "add": lambda z: z + torch.ones(2, 3),
    "radd": lambda z: torch.ones(2, 3) + z,
    "in place": lambda z: z.clone().add_(torch.ones(3)),
    "masked_fill": lambda z: z.masked_fill(torch.zeros(2, 3, dtype=torch.bool), 0),
    "gather": lambda z: z.gather(1, torch.zeros(2, 1, dtype=torch.long)),
    "where": lambda z: torch.where(z > 0, z, torch.zeros(2, 3)),
    "cat": lambda z: torch.cat([z, torch.zeros(2, 1)], 1),
    "stack": lambda z: torch.stack([z, torch.zeros(2, 3)]),
    "matmul": lambda z: z @ torch.ones(3, 1),
    "cross entropy": lambda z: functional.cross_entropy(z, ROWS),
    "put": lambda z: z.clone().index_put_((ROWS, ROWS), torch.ones(2)),
    "set at indices": lambda z: z.clone().__setitem__((ROWS, ROWS), torch.ones(2)),
    "cpu indexed by gpu": lambda z: torch.arange(3.0)[z.argmax(1)],
    "numpy": lambda z: z.detach().numpy(),
    "moved half way": lambda z: z.cpu() + z,
}
FINE = {
    "a number": lambda z: z + 1,
    "no dimension": lambda z: torch.where(z > 0, z, torch.tensor(0.0)),
    "made there": lambda z: z + torch.ones(2, 3, device=z.device),
    "made like it": lambda z: z + torch.zeros_like(z) + z.new_ones(3),
    "moved there": lambda z: z + torch.ones(2, 3).to(z.device) + torch.ones(3).to(z) + torch.ones(3).type_as(z),
    "moved by name": lambda z: z + torch.ones(2, 3).to("cuda") + torch.ones(3).cuda() + torch.ones(3).to(device=0),
    "moved and cast": lambda z: z + torch.ones(2, 3, dtype=torch.float64).to(z.device, torch.float32),
    "moved without waiting": lambda z: z + torch.ones(3).to(z.device, non_blocking=True),
    "indexed by cpu": lambda z: z[ROWS, ROWS],
    "copied in": lambda z: z.clone().copy_(torch.ones(2, 3)),
    "slice set from cpu": lambda z: z.clone().__setitem__((slice(None), 0), torch.ones(2)),
    "inverted mask": lambda z: z.masked_fill(~(z > 0), 0),
    "named tuple": lambda z: z.sort(1).values + z.max(1, keepdim=True).values,
    "looks at data": lambda z: z if torch.isfinite(z).all() and z.tolist() else z + torch.ones(3),
    "asks where it is": lambda z: z + (0 if z.is_cuda and not z.is_cpu and z.get_device() == 0 else torch.ones(3)),
}


@pytest.mark.parametrize("name", MIXED)
def test_two_devices_are_refused(name):
    with FakeCuda() as fake, pytest.raises(MixedDevicesError):
        MIXED[name](fake.put(torch.zeros(2, 3)))


@pytest.mark.parametrize("name", FINE)
def test_one_device_is_let_through_and_the_result_stays_there(name):
    with FakeCuda() as fake:
        result = FINE[name](fake.put(torch.zeros(2, 3)))
        assert result is None or (fake.holds(result) and result.device == CUDA)


def test_what_leaves_the_device_is_on_the_cpu_again():
    with FakeCuda() as fake:
        z = fake.put(torch.zeros(2, 3))
        for result in (z.cpu(), z.to("cpu"), torch.zeros_like(z, device="cpu"), torch.tensor(z.tolist())):
            assert result.device.type == "cpu"
            assert torch.equal(result + torch.ones(3), torch.ones(2, 3))


def test_a_gradient_comes_back_to_the_leaf():
    leaf = torch.tensor([[1.5, 0.3]], requires_grad=True)
    with FakeCuda() as fake:
        labels, mask = torch.tensor([[2.0, 1.0]]), torch.ones(1, 2, dtype=torch.bool)
        planted.list_mle(fake.put(leaf.clone()), fake.put(labels), fake.put(mask)).backward()
    p = 1 / (1 + torch.exp(torch.tensor(1.2)))
    assert torch.allclose(leaf.grad, torch.stack([-p, p]))


def test_a_modules_parameters_live_where_it_is_moved_to():
    class Weighted(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("weights", torch.ones(40))
            self.loose = torch.ones(40)  # a plain attribute stays on the CPU when the module is moved

        def forward(self, logits, labels, mask):
            weights = self.loose if self.training else self.weights
            return planted.list_mle(logits * weights[: logits.shape[1]], labels, mask)

    module = Weighted()
    assert check(module.eval(), only=["device"])
    assert check(lambda z, y, m: module(z, y, m), only=["device"])
    assert check(module.train(), only=["device"]).broken == ("device",)
    assert {id(t) for t in residents_of(module)} == {id(module.weights)}


def test_a_move_may_say_how_to_copy_as_modules_do():
    with FakeCuda() as fake:
        there = fake.put(torch.ones(1, 2))
        assert fake.holds(torch.ones(2).to(there.device, None, True))
        assert torch.ones(2).to(there.device, torch.float64, False).dtype == torch.float64


def test_our_losses_run_there_checks_and_all():
    for loss in (list_mle, p_list_mle, list_net):
        result = check(loss, only=["device"])["device"]
        assert result.verdict == "kept"
        assert result.reason == "on a fake CUDA device (there is no GPU here)"


def test_a_value_that_comes_back_on_the_cpu_is_a_broken_promise():
    result = check(lambda z, y, m: planted.list_mle(z.cpu(), y.cpu(), m.cpu()), only=["device"])["device"]
    assert result.verdict == "broken"
    assert "its value comes back on cpu" in result.counterexample.sentence


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_what_it_cannot_follow_is_unchecked_and_says_why():
    def special_kernel(logits, labels, mask):
        if logits.is_cuda:
            raise AssertionError("Torch not compiled with CUDA enabled")
        return planted.list_mle(logits, labels, mask)

    report = check(special_kernel, only=["device"])
    assert report["device"].verdict == "unchecked"
    assert report["device"].reason.startswith("a fake CUDA device could not follow it in test_fake_device.py, line ")
    assert "Torch not compiled with CUDA enabled" in report["device"].reason

    compiled = torch.jit.script(scriptable)
    result = check(compiled, only=["device"])["device"]
    assert result.verdict == "unchecked"
    assert "compiled by torch.jit" in result.reason


def scriptable(logits: torch.Tensor, labels: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return ((logits - labels) * mask).pow(2).sum()


def test_an_accelerator_is_compared_with_the_cpu():
    right = Subject(planted.list_mle, Conventions())
    on_the_accelerator(right, torch.device("cpu"))
    assert right.notes == ["on cpu"]

    calls = iter(range(100))
    unsteady = Subject(lambda z, y, m: planted.list_mle(z, y, m) * (1 + 0.01 * next(calls)), Conventions())
    with pytest.raises(BrokenPromise, match="teaches something else than on the CPU"):
        on_the_accelerator(unsteady, torch.device("cpu"))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here; the fake device stands in")
def test_a_real_gpu_is_used_where_there_is_one():
    for loss in (list_mle, p_list_mle, list_net):
        assert check(loss, only=["device"])["device"].reason == "on cuda"
    assert check(planted.with_fault("cpu weights"), only=["device"]).broken == ("device",)
