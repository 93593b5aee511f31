"""The start of a lab: where it runs, said in one line."""

from __future__ import annotations

import platform
import sys
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version

import torch

from losslab.device import pick_device
from losslab.labs.unwritten import show_in_one_line

#: The labs, in the order of their chapters.
LABS = ("infonce", "temperature", "false-negatives", "padding", "matryoshka", "perplexity")


def setup(name: str) -> torch.device:
    """Say what a lab runs on, and let live cells work on Colab. Installs nothing.

    From here on, cells that call a step that is not written yet say so in one line.

    Parameters
    ----------
    name
        The lab's, one of `LABS`.

    Returns
    -------
    torch.device
        Where its tensors belong: what ``LOSSLAB_DEVICE`` names, else the best device there is.

    Raises
    ------
    ValueError
        There is no such lab, or no such device here.
    """
    if name not in LABS:
        raise ValueError(f"name must be one of the labs {', '.join(LABS)}, got {name!r}")
    device = pick_device()
    where = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine() or "unknown processor"
    versions = ", ".join(f"{package} {_version(package)}" for package in ("losslab", "torch", "numpy"))
    print(f"Lab {name}: {versions}, Python {platform.python_version()}.")
    print(f"Computing on {device.type} ({where}).")
    if enable_widgets_on_colab():
        print("Colab: live cells are switched on.")
    show_in_one_line()
    return device


def enable_widgets_on_colab() -> bool:
    """Turn on Colab's support for widgets that are not its own; False where this is not Colab."""
    if "google.colab" not in sys.modules:
        try:
            import_module("google.colab")
        except ImportError:
            return False
    import_module("google.colab.output").enable_custom_widget_manager()
    return True


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:  # a checkout that was put on the path without being installed
        return str(getattr(import_module(package), "__version__", "(not installed)"))
