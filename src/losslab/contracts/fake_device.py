"""A CUDA device for machines without one: tensors that say they are there, and an error where real ones would refuse.

A tensor here has its data on the CPU but answers "cuda:0" when asked for its device, and so does all that is computed
from it. Every call of a torch function passes through `FakeCuda`, which knows the rules of a machine with two
devices: what to make where, what may be moved, and that an operation refuses tensors of both, numbers of no dimension
apart. Because the data is there, a loss may look at it, and it can be differentiated; PyTorch's own fake tensors
(``FakeTensorMode``) have none, so they can follow neither, nor ``~mask`` on a build of PyTorch without CUDA.

What it cannot show: kernels that behave differently on a real GPU, and what compiled code does inside.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from types import FunctionType, MethodType
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode, resolve_name

CUDA = torch.device("cuda", 0)


class MixedDevicesError(RuntimeError):
    """An operation got tensors of two devices, or asked for something that tensors on a GPU cannot give."""


class OnCuda(Tensor):
    """A tensor that counts as being on the fake device. It is one only inside `FakeCuda`."""

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]


class FakeCuda(TorchFunctionMode):
    """While active, torch has a CUDA device. ``residents`` are tensors that live on it: a module's parameters."""

    def __init__(self, residents: Iterable[Tensor] = ()) -> None:
        super().__init__()
        self.residents = {id(tensor): tensor for tensor in residents}

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,  # noqa: ANN401
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401
        """Run one torch function by the rules of a machine with two devices."""
        kwargs = dict(kwargs or {})
        if func in ANSWERS:
            return ANSWERS[func](self.holds(args[0])) if self.holds(args[0]) else func(*args, **kwargs)
        name = getattr(func, "__name__", "")
        if name in ("numpy", "__array__") and self.holds(args[0]):
            raise MixedDevicesError("can't convert cuda:0 device type tensor to numpy; use .cpu() to copy it first")
        here = [self.holds(t) for t in _tensors((args, kwargs))]
        there = any(here)
        if name == "cuda":  # calling it would look for the real one
            return self.put(args[0] if self.holds(args[0]) else args[0].clone())
        if name in MOVES:
            there, args, kwargs = self._moved(name, args, kwargs)
        elif kwargs.get("device") is not None:
            there = _is_cuda(kwargs["device"])
            kwargs["device"] = "cpu"
            self._refuse_to_mix(func, (args, kwargs))
        elif name == "__getitem__":
            there = self.holds(args[0])
            self._refuse_foreign_index(args[0], args[1])
        elif name == "__setitem__":
            self._refuse_foreign_index(args[0], args[1])
            if any(True for _ in _tensors(args[1])) or isinstance(args[1], list):
                self._refuse_to_mix(func, (args[0], args[2]))
        elif name == "copy_":
            there = self.holds(args[0])
        else:
            self._refuse_to_mix(func, (args, kwargs))
        return _each_tensor(func(*args, **kwargs), self.put if there else self._take)

    def put(self, tensor: Tensor) -> Tensor:
        """The tensor, on the fake device."""
        return tensor if self.holds(tensor) else tensor.as_subclass(OnCuda)

    def holds(self, tensor: object) -> bool:
        """Whether a tensor is on the fake device."""
        return isinstance(tensor, OnCuda) or id(tensor) in self.residents

    def _take(self, tensor: Tensor) -> Tensor:
        return tensor.as_subclass(Tensor) if isinstance(tensor, OnCuda) else tensor

    def _moved(
        self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[bool, tuple[Any, ...], dict[str, Any]]:
        """Where ``to``, ``cpu`` or ``type_as`` puts the tensor, and the call without the move."""
        there = name != "cpu" and self.holds(args[0])
        rest: list[Any] = []
        for i, a in enumerate(args):
            if i and isinstance(a, Tensor):
                there = self.holds(a)
            if i and name == "to" and _names_a_device(a):
                there = _is_cuda(a)
            elif (
                not i or name != "to" or not (a is None or isinstance(a, bool))
            ):  # no dtype; how to copy, which is as good
                rest.append(a)
        if kwargs.get("device") is not None:
            there = _is_cuda(kwargs.pop("device"))
        if isinstance(kwargs.get("other"), Tensor):
            there = self.holds(kwargs["other"])
        if name == "to" and len(rest) == 1 and not kwargs:
            kwargs["copy"] = there != self.holds(args[0])  # a move copies; no move gives the tensor itself
        return there, tuple(rest), kwargs

    def _refuse_to_mix(self, func: Callable[..., Any], arguments: object) -> None:
        tensors = list(_tensors(arguments))
        if any(map(self.holds, tensors)) and any(not self.holds(t) and t.ndim > 0 for t in tensors):
            name = resolve_name(func) or getattr(func, "__name__", repr(func))
            raise MixedDevicesError(f"{name.removeprefix('torch.')} gets tensors on cuda:0 and on cpu")

    def _refuse_foreign_index(self, tensor: Tensor, index: object) -> None:
        if not self.holds(tensor) and any(self.holds(i) and i.ndim > 0 for i in _tensors(index)):
            raise MixedDevicesError("a tensor on cpu is indexed with one on cuda:0")


ANSWERS: dict[Any, Callable[[bool], Any]] = {
    Tensor.device.__get__: lambda _: CUDA,
    Tensor.is_cuda.__get__: lambda _: True,  # type: ignore[attr-defined]
    Tensor.is_cpu.__get__: lambda _: False,  # type: ignore[attr-defined]
    Tensor.get_device: lambda _: 0,
}
MOVES = ("to", "cpu", "type_as")


def residents_of(loss: object, depth: int = 4) -> Iterator[Tensor]:
    """Parameters and buffers of the modules inside a callable: whoever moves the loss to a GPU moves these along."""
    if isinstance(loss, torch.nn.Module):
        yield from loss.parameters()
        yield from loss.buffers()
        return
    inside: list[object] = []
    if isinstance(loss, functools.partial):
        inside = [loss.func, *loss.args, *loss.keywords.values()]
    elif isinstance(loss, MethodType):
        inside = [loss.__self__]
    elif isinstance(loss, FunctionType):
        inside = [cell.cell_contents for cell in loss.__closure__ or () if _filled(cell)]
        used = (loss.__globals__.get(name) for name in loss.__code__.co_names)
        inside += [value for value in used if isinstance(value, torch.nn.Module)]
    elif hasattr(loss, "__dict__") and not isinstance(loss, type):
        inside = list(vars(loss).values())
    for part in inside if depth else ():
        yield from residents_of(part, depth - 1)


def _filled(cell: Any) -> bool:  # noqa: ANN401
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def _tensors(value: object) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _tensors(part)
    elif isinstance(value, dict):
        yield from _tensors(list(value.values()))


def _each_tensor(value: Any, change: Callable[[Tensor], Tensor]) -> Any:  # noqa: ANN401
    if isinstance(value, Tensor):
        return change(value)
    if type(value) in (list, tuple):
        return type(value)(_each_tensor(part, change) for part in value)
    if isinstance(value, tuple):  # torch.return_types.sort and its kind: made from one sequence, read by name
        return type(value)([_each_tensor(part, change) for part in value])
    return value


def _names_a_device(value: object) -> bool:
    return isinstance(value, (str, torch.device)) or (isinstance(value, int) and not isinstance(value, bool))


def _is_cuda(device: Any) -> bool:  # noqa: ANN401
    return isinstance(device, int) or torch.device(device).type == "cuda"  # torch reads a bare index as a GPU's
