"""Exact search, reductions, retrieval metrics query by query, and how sure their difference is."""

from losslab.retrieval.bootstrap import Interval, bootstrap_mean, paired_bootstrap
from losslab.retrieval.evaluation import evaluate, evaluate_scores
from losslab.retrieval.exact_search import search
from losslab.retrieval.metrics import Ties
from losslab.retrieval.reductions import KINDS, Reduction, fit

__all__ = [
    "KINDS",
    "Interval",
    "Reduction",
    "Ties",
    "bootstrap_mean",
    "evaluate",
    "evaluate_scores",
    "fit",
    "paired_bootstrap",
    "search",
]
