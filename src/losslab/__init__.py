"""losslab: what a training loss really teaches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from losslab.contracts import check

__version__ = "0.1.0"
__all__ = ["__version__", "check"]


def __getattr__(name: str) -> Any:  # noqa: ANN401
    """Import `check` on first use: it needs torch, and a figure page does not."""
    if name == "check":
        from losslab.contracts import check

        return check
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
