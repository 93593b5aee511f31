"""What a lab's notebook imports: where it runs, whether a function is right, what it draws, and live controls.

Nothing here knows a right answer; each lab brings its own targets. `release` makes the student copies, `command` is
``losslab labs``.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from losslab.labs.start import LABS, setup

if TYPE_CHECKING:
    from losslab.labs.checks import agrees, promises
    from losslab.labs.controls import Live, live
    from losslab.labs.pictures import Picture, picture

__all__ = ["LABS", "Live", "Picture", "agrees", "live", "picture", "promises", "setup"]

FOUND_IN = {
    "Live": "controls",
    "Picture": "pictures",
    "agrees": "checks",
    "live": "controls",
    "picture": "pictures",
    "promises": "checks",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401
    """Import the rest on first use: it draws with matplotlib, and to list the labs or to say `--help` does not."""
    if name in FOUND_IN:
        return getattr(importlib.import_module(f"{__name__}.{FOUND_IN[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
