"""Live figures: anywidgets that need no kernel, each with a description in words and a still twin.

Every figure is an `anywidget.AnyWidget` whose own module draws native, labelled controls. With a kernel its traits sync
both ways; without one, `bundle` gives a page all it needs.
"""

from losslab.figures._sheet import style
from losslab.figures.averaging import Averaging
from losslab.figures.base import Figure, FigureError
from losslab.figures.compose import ComposeError, bundle, compose, stylesheet
from losslab.figures.descent import Descent
from losslab.figures.false_negatives import FalseNegatives
from losslab.figures.flip import Flip
from losslab.figures.forces import Forces
from losslab.figures.ghosts import GhostDocuments
from losslab.figures.gradient_shares import GradientShares
from losslab.figures.norm_bias import NormBias
from losslab.figures.number_formats import NumberFormats
from losslab.figures.score_gap import ScoreGap
from losslab.figures.score_matrix import ScoreMatrix
from losslab.figures.sweep import Sweep
from losslab.figures.ties import TieOrder
from losslab.figures.token_batch import TokenBatch
from losslab.figures.truncation import Truncation
from losslab.figures.underflow import Underflow
from losslab.figures.units import Units
from losslab.figures.weight import WeightAndDirection

__all__ = [
    "Averaging",
    "ComposeError",
    "Descent",
    "FalseNegatives",
    "Figure",
    "FigureError",
    "Flip",
    "Forces",
    "GhostDocuments",
    "GradientShares",
    "NormBias",
    "NumberFormats",
    "ScoreGap",
    "ScoreMatrix",
    "Sweep",
    "TieOrder",
    "TokenBatch",
    "Truncation",
    "Underflow",
    "Units",
    "WeightAndDirection",
    "bundle",
    "compose",
    "style",
    "stylesheet",
]
