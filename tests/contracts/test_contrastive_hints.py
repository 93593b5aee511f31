"""What a report says to do about a loss that only needs a declaration."""

import subprocess
import sys

import torch
from torch.nn.functional import cross_entropy, normalize

import losslab
from losslab.losses import info_nce


def both_directions(queries, documents):
    """CLIP's loss: it needs as many documents as queries."""
    scores = normalize(queries, dim=1) @ normalize(documents, dim=1).T / 0.05
    targets = torch.arange(len(scores))
    return (cross_entropy(scores, targets) + cross_entropy(scores.T, targets)) / 2


def test_a_loss_in_both_directions_is_told_what_to_declare():
    report = losslab.check(both_directions, kind="contrastive", only=["rows"])
    assert not report
    assert "declare symmetric=True" in report["rows"].reason
    assert losslab.check(both_directions, kind="contrastive", symmetric=True, only=["blind", "scale", "symmetry"])


def test_a_loss_of_one_value_a_query_is_told_what_to_declare():
    def rows(queries, documents):
        scores = normalize(queries, dim=1) @ normalize(documents, dim=1).T / 0.05
        return cross_entropy(scores, torch.arange(len(queries)), reduction="none")

    report = losslab.check(rows, kind="contrastive", only=["blind"])
    assert "declare reduction='none'" in report["blind"].reason
    assert losslab.check(rows, kind="contrastive", reduction="none", only=["blind", "scale"])


def test_a_learnt_temperature_is_told_how():
    noise = torch.randn(2, 3, 4)
    try:
        info_nce(*noise, temperature=torch.tensor(0.05))
    except ValueError as error:
        assert "pass normalize=False, temperature=1" in str(error)  # noqa: PT017
    else:
        raise AssertionError("a tensor was taken for a number")


def test_the_module_is_the_command():
    listed = subprocess.run([sys.executable, "-m", "losslab", "measure", "--list"], capture_output=True, text=True)
    assert listed.returncode == 0, listed.stderr
    assert "batch-width" in listed.stdout
