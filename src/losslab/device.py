"""Where computations run."""

import os

import torch


def pick_device() -> torch.device:
    """The device that ``LOSSLAB_DEVICE`` names (cpu, cuda or mps); unset, the best one there is.

    Raises
    ------
    ValueError
        If the name is none of the three, or this machine has no such device.
    """
    here = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    name = os.environ.get("LOSSLAB_DEVICE") or next(name for name, present in here.items() if present)
    if name not in here:
        raise ValueError(f"LOSSLAB_DEVICE must be cpu, cuda or mps, got {name!r}")
    if not here[name]:
        raise ValueError(
            f"LOSSLAB_DEVICE is {name!r}, but torch sees no such device here; unset it to use what there is"
        )
    return torch.device(name)
