"""losslab: what a training loss really teaches."""

__version__ = "0.1.0"
