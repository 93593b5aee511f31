"""A loss of any kind, followed forward and backward on the fake CUDA device."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from losslab.contracts.fake_device import FakeCuda, MixedDevicesError, residents_of
from losslab.contracts.model import BrokenPromise, Counterexample, Unchecked
from losslab.contracts.subject import first_line
from losslab.contracts.watched import unwatched

NOTE = "on a fake CUDA device (there is no GPU here)"


def follow(loss: Callable[..., Any], call: Callable[[Callable[[Tensor], Tensor]], Any], seen: Counterexample) -> None:
    """Run ``call(put)``, where ``put`` puts an input on the device, and the value's backward pass.

    Raises
    ------
    BrokenPromise
        If anything is made, or the value returned, on another device. ``seen`` holds the input to show.
    Unchecked
        If the fake device cannot follow the loss.
    """
    loss = unwatched(loss)
    if isinstance(loss, torch.jit.ScriptFunction | torch.jit.ScriptModule):
        raise Unchecked("it is compiled by torch.jit, which a fake CUDA device cannot look into; run it on a GPU")
    fake = FakeCuda(residents_of(loss))
    try:
        with torch.enable_grad(), fake:
            value = call(lambda tensor: fake.put(tensor.clone() if tensor.requires_grad else tensor))
            if not fake.holds(value):
                raise MixedDevicesError("its value comes back on cpu")
            value.sum().backward()
    except MixedDevicesError as mixed:
        sentence = f"With all its inputs on a GPU, {mixed}{where(mixed)}."
        setting = {"device": "cuda, a fake one (there is no GPU here)"}
        raise BrokenPromise(replace(seen, sentence=sentence, setting=setting)) from mixed
    except Exception as error:
        raise Unchecked(f"a fake CUDA device could not follow it{where(error)}: {first_line(error)}") from error


def where(error: BaseException) -> str:
    """The last line outside torch and this package that an error went through."""
    inside = (str(Path(torch.__file__).parent), str(Path(__file__).parent))
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith(inside)]
    if not frames:
        return ""
    return f" in {Path(frames[-1].filename).name}, line {frames[-1].lineno}: {(frames[-1].line or '').strip()}"
