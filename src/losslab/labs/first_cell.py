"""The first cell of every student notebook: the same code, with the lab's name and the address of losslab filled in."""

from __future__ import annotations

TEMPLATE = """\
# Run this cell first; there is nothing to change in it. It installs losslab where it is missing (Colab), without
# touching torch or numpy, and says what the lab runs on.
# What you write is marked by itself: with math, torch, np, F, Tensor and device, and without what other locked cells
# define.
import importlib.metadata
import importlib.util
import pathlib
import subprocess
import sys
import tempfile

ADDRESS = {address!r}
if importlib.util.find_spec("losslab") is None:
    here = pathlib.Path.cwd().resolve()
    checkout = next((f for f in (here, *here.parents) if (f / "src" / "losslab" / "labs").is_dir()), None)
    source = str(checkout) if checkout else ADDRESS
    if not source:
        raise ModuleNotFoundError(
            "losslab is not installed in this Python, and this notebook lies in no checkout of it. "
            "Install it (pip install FOLDER_OF_LOSSLAB), restart the kernel, and run this cell again."
        )
    kept = [p for p in ("torch", "numpy") if importlib.util.find_spec(p)]  # these stay at the version they have
    with tempfile.TemporaryDirectory() as folder:
        pins = pathlib.Path(folder, "kept.txt")
        pins.write_text("".join(f"{{p}}=={{importlib.metadata.version(p)}}\\n" for p in kept))
        pip = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check"]
        done = subprocess.run([*pip, "--constraint", str(pins), source], capture_output=True, text=True)
    if done.returncode:
        print((done.stdout + done.stderr)[-2000:])
        raise RuntimeError("losslab could not be installed, see above; without a network it has to be there already")
    importlib.invalidate_caches()

from losslab import labs

device = labs.setup({name!r})
"""


def first_cell(name: str, address: str) -> str:
    """Code of the first cell of lab ``name``; ``address`` is what pip installs where there is no checkout, or empty."""
    return TEMPLATE.format(name=name, address=address).rstrip("\n")
