"""Inputs a search takes: counted against a contract whose count is known, and the committed rows hold together."""

from dataclasses import replace
from pathlib import Path

import pytest

from losslab.contracts import CONTRACTS
from losslab.contracts.checking import KINDS
from losslab.contracts.model import BrokenPromise
from losslab.measure import read, search_effort
from losslab.measure.search_effort import inputs_until_caught, missed, needed, steps, width
from losslab.mistakes import MISTAKES

MEASURED = Path(__file__).parents[2] / "data" / "measured" / "search_effort.csv"


@pytest.fixture(scope="module")
def committed():
    return read(MEASURED)


def test_every_mistake_that_a_contract_must_catch_is_there(committed):
    rows, record = committed
    asked = {name for name, mistake in MISTAKES.items() if mistake.kind in KINDS}
    assert {row["mistake"] for row in rows} == asked
    assert len(rows) == len(asked) * record["settings"]["seeds"]
    for row in rows:
        mistake = MISTAKES[row["mistake"]]
        assert (row["kind"], row["contract"], row["met"]) == (mistake.kind, mistake.breaks, mistake.met)
        assert needed(row) >= 1


@pytest.mark.parametrize(
    "name", ["listmle_padding", "infonce_mean_denominator", "token_half_sum", "mrl_scaled_scores", "listmle_half_sum"]
)
def test_counted_again_it_is_the_same(committed, name):
    said = {int(row["seed"]): needed(row) for row in committed[0] if row["mistake"] == name}
    assert [inputs_until_caught(name, seed) for seed in range(3)] == [said[seed] for seed in range(3)]


@pytest.mark.parametrize("fifth", [1, 5])
def test_it_counts_inputs(monkeypatch, fifth):
    """A contract that lets the first few pass, whatever they are."""
    mistake = MISTAKES["listmle_padding"]
    (broken,) = [c for c in CONTRACTS["listwise"] if c.id == mistake.breaks]
    asked = []

    def body(loss, draw):
        asked.append(None)
        try:
            broken.body(loss, draw)
        except BrokenPromise:
            if len(asked) >= fifth:
                raise

    slow = replace(broken, body=body)
    monkeypatch.setattr(search_effort, "contracts_of", lambda *_, **__: [slow])
    assert inputs_until_caught("listmle_padding", 0) == fifth
    assert len(asked) == fifth  # and then it stops: nothing is shrunk


def test_a_mistake_that_nothing_catches_has_no_number(monkeypatch):
    wrong = MISTAKES["listmle_padding"]
    right = replace(wrong, wrong=MISTAKES["listmle_tied_sort"].right)
    if isinstance(right.wrong, str):
        import losslab.losses

        right = replace(wrong, wrong=getattr(losslab.losses, right.wrong))
    monkeypatch.setitem(MISTAKES, "listmle_padding", right)
    assert inputs_until_caught("listmle_padding", 0) is None


def test_steps_only_get_simpler_and_end_in_what_a_check_shows():
    import losslab

    mistake = MISTAKES["listmle_tied_sort"]
    tried, kept = steps("listmle_tied_sort", seed=1)
    numbers = [number for number, _ in kept]
    assert numbers == sorted(set(numbers))
    assert numbers[-1] <= tried
    documents = [sum(map(len, found.queries)) for _, found in kept]
    assert documents == sorted(documents, reverse=True)
    shown = losslab.check(mistake.wrong, "listwise", only=[mistake.breaks], seed=1)[mistake.breaks].counterexample
    assert len(kept[-1][1].queries[0]) == len(shown.queries[0])
    assert width(kept[-1][1]) == width(shown) == 17


def test_share_that_was_missed():
    rows = [{"inputs": 1}, {"inputs": "3"}, {"inputs": None}, {"inputs": 9}]
    assert [missed(rows, n) for n in (1, 2, 3, 9)] == [0.75, 0.75, 0.5, 0.25]
