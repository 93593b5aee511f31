"""The sweep covers every contract, times every catch, and what is committed of it keeps to its limits."""

import pytest

from losslab.contracts import CONTRACTS, contracts_of
from losslab.measure import mistake_sweep
from losslab.measure.command import default_folder
from losslab.measure.mistake_sweep import (
    ALLOWED,
    RIGHT_SEEDS,
    SEEDS,
    caught_by,
    library_losses,
    mistake_rows,
    must_cover_every_contract,
    right_losses,
    slowest,
)
from losslab.measure.record import read
from losslab.mistakes import MISTAKES


@pytest.fixture(scope="module")
def committed(request):
    rows, record = read(default_folder(request.config.rootpath) / "mistake_sweep.csv")
    return rows, record["settings"]


def test_every_contract_catches_a_mistake():
    must_cover_every_contract()
    for (kind, contract), mistakes in caught_by().items():
        assert contract in {one.id for one in contracts_of(kind, objective=True)}
        assert {MISTAKES[name].met for name in mistakes} == set(mistakes.values()) <= {"public", "built"}
        assert all((MISTAKES[name].source == "built") == (met == "built") for name, met in mistakes.items())
    assert {kind for kind, _ in caught_by()} == set(CONTRACTS)


def test_a_contract_that_nothing_breaks_stops_the_sweep(monkeypatch):
    without = {name: mistake for name, mistake in MISTAKES.items() if mistake.breaks != "prefix_only"}
    monkeypatch.setattr(mistake_sweep, "MISTAKES", without)
    with pytest.raises(ValueError, match="no mistake breaks matryoshka prefix_only: "):
        next(iter(mistake_sweep.sweep(print)))


def test_a_mistake_is_put_to_its_contract_and_timed():
    (row,) = mistake_rows("infonce_positive_twice", 1)
    assert 0 < row.pop("seconds") < ALLOWED
    assert row == {
        "subject": "infonce_positive_twice",
        "kind": "contrastive",
        "contract": "one_pair",
        "met": "built",
        "seed": 0,
        "expected": "broken",
        "verdict": "broken",
    }


def test_a_property_judges_what_is_right_as_well():
    wrong, right = mistake_rows("gather_layout", 1)
    assert (wrong["subject"], wrong["expected"], wrong["verdict"]) == ("gather_layout", "broken", "broken")
    assert (right["subject"], right["expected"], right["verdict"]) == ("gather_layout.right", "kept", "kept")


def test_the_last_line_names_the_slowest_and_counts_what_went_wrong():
    def row(subject, expected, verdict, seconds):
        return {"subject": subject, "expected": expected, "verdict": verdict, "seconds": seconds}

    rows = [
        row("a", "broken", "broken", 0.5),
        row("b", "broken", "kept", 2.25),
        row("c", "kept", "exempt", 9.0),
        row("d", "kept", "broken", 9.0),
        row("e", "kept", "unchecked", 9.0),
    ]
    assert slowest(rows) == "2 times a mistake, 1 missed; 3 times something right, 2 flagged; slowest b, 2.25 s of 5"


def test_losses_of_wheels_are_their_objectives():
    pytest.importorskip("sentence_transformers")
    pytest.importorskip("transformers")
    for name, loss in library_losses().items():
        assert loss.check("objective", 0) == "kept", name


def test_every_mistake_was_caught_on_every_seed_in_the_time_allowed(committed):
    rows, settings = committed
    assert settings["seeds"] == SEEDS == 20
    assert settings["seconds allowed for a catch"] == ALLOWED == 5
    caught = [row for row in rows if row["expected"] == "broken"]
    for name, mistake in MISTAKES.items():
        seeds = [row for row in caught if row["subject"] == name]
        assert sorted(int(row["seed"]) for row in seeds) == list(range(SEEDS)), name
        assert {row["verdict"] for row in seeds} == {"broken"}, name
        assert max(float(row["seconds"]) for row in seeds) <= ALLOWED, name
        assert {(row["contract"], row["met"]) for row in seeds} == {(mistake.breaks, mistake.met)}


def test_nothing_right_was_flagged_on_any_seed(committed):
    rows, settings = committed
    assert settings["seeds of right losses"] == RIGHT_SEEDS == 20
    right = [row for row in rows if row["expected"] == "kept"]
    assert {row["verdict"] for row in right} <= {"kept", "exempt"}
    losses = right_losses()
    assert {row["subject"] for row in right} >= {
        *losses,
        "cross_entropy",
        "ListMLELoss",
        "MultipleNegativesRankingLoss",
    }
    for name, loss in losses.items():
        for contract in contracts_of(loss.kind, objective=loss.against is not None):
            seeds = sum(row["subject"] == name and row["contract"] == contract.id for row in right)
            assert seeds == (RIGHT_SEEDS if contract.random else 1), (name, contract.id)
