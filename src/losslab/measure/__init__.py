"""Long measurements: ``losslab measure NAME`` writes ``data/measured/NAME.csv`` and a record beside it."""

from __future__ import annotations

import importlib

from losslab.measure.record import Measurement, Progress, Row, measure, read

#: Measurement by name, and the module whose ``MEASUREMENT`` it is; imported only when asked for.
NAMES = {
    "listmle-versions": "losslab.measure.listmle_versions",
    "listwise-weight": "losslab.measure.listwise_weight",
    "listwise-ties": "losslab.measure.listwise_ties",
    "mistake-sweep": "losslab.measure.mistake_sweep",
    "audit": "losslab.measure.audit",
    "search-effort": "losslab.measure.search_effort",
    "lab-feedback": "losslab.measure.lab_feedback",
    "grading-speed": "losslab.measure.grading_speed",
    "list-mle-speed": "losslab.measure.list_mle_speed",
    "info-nce-speed": "losslab.measure.info_nce_speed",
    "temperature": "losslab.measure.temperature",
    "batch-width": "losslab.measure.batch_width",
    "false-negatives": "losslab.measure.false_negatives",
    "scifact-leak": "losslab.measure.scifact_leak",
    "logit-resolution": "losslab.measure.logit_resolution",
    "truncation": "losslab.measure.truncation",
    "sequence-length": "losslab.measure.sequence_length",
    "truncation-speed": "losslab.measure.truncation_speed",
    "matryoshka-pair": "losslab.measure.matryoshka_pair",
    "token-nll-memory": "losslab.measure.token_nll_memory",
    "perplexity-peers": "losslab.measure.perplexity_peers",
    "byte-lm": "losslab.measure.byte_lm",
}


def get(name: str) -> Measurement:
    """Return the measurement called ``name``.

    Raises
    ------
    ValueError
        There is none of that name.
    """
    if name not in NAMES:
        raise ValueError(f"no measurement is called {name!r}; there are {', '.join(NAMES)}")
    measurement: Measurement = importlib.import_module(NAMES[name]).MEASUREMENT
    return measurement


__all__ = ["NAMES", "Measurement", "Progress", "Row", "get", "measure", "read"]
