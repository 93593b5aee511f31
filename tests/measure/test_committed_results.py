"""The committed results belong together, hold what the book says of them, and come out again where that is cheap."""

import importlib.metadata
import json
import math
from pathlib import Path

import pytest

from losslab.measure import NAMES, get, read
from losslab.measure.listmle_probe import probe
from losslab.measure.listmle_versions import VERSIONS, first_fixed
from losslab.measure.listwise_ties import flips, tie_profile, tied_scores_profile
from losslab.measure.listwise_weight import measure_weight
from losslab.mistakes import MISTAKES

MEASURED = Path(__file__).parents[2] / "data" / "measured"
INSTALLED = importlib.metadata.version("sentence-transformers")


def rows(stem, **conditions):
    wanted = {column: str(value) for column, value in conditions.items()}
    return [row for row in read(MEASURED / f"{stem}.csv")[0] if wanted.items() <= row.items()]


def number(stem, **conditions):
    (row,) = rows(stem, **conditions)
    return float(row["value"])


@pytest.mark.parametrize("name", NAMES)
def test_every_measurement_has_its_pair_of_files_and_its_card(name):
    measurement = get(name)
    table, told = read(MEASURED / f"{measurement.stem}.csv")
    assert told["name"] == name
    assert tuple(told["columns"]) == measurement.columns == tuple(table[0])
    assert told["rows"] == len(table)
    assert told["settings"] == json.loads(json.dumps(measurement.settings))
    card = (MEASURED / "README.md").read_text(encoding="utf-8")
    assert f"## {measurement.stem}\n" in card
    assert all(
        f"`{column}`" in card.partition(f"## {measurement.stem}\n")[2].partition("\n## ")[0] for column in table[0]
    )


# listmle-versions


def test_the_installed_version_answers_as_it_did():
    committed = rows("listmle_versions", version=INSTALLED)
    again = list(probe())
    assert len(committed) == len(again) > 200
    for before, now in zip(committed, again, strict=True):
        for column in before:
            if column != "value":
                assert before[column] == ("" if now[column] is None else str(now[column]))
        assert float(before["value"]) == pytest.approx(now["value"], rel=1e-5, abs=3e-5), before


@pytest.mark.parametrize(
    ("version", "published"), [("5.5.1", (0.2633, 0.9759, 1.4671, 2.1627)), ("6.2.0", (0.2633,) * 4)]
)
def test_padding_before_and_after(version, published):
    for respect in (True, False):
        conditions = {"version": version, "loss": "ListMLELoss", "question": "padding", "respect_input_order": respect}
        for width, value in zip((2, 3, 4, 6), published, strict=True):
            assert number("listmle_versions", **conditions, width=width, quantity="loss") == pytest.approx(
                value, abs=1e-4
            )
        second = [number("listmle_versions", **conditions, width=w, quantity="gradient", document=2) for w in (2, 3)]
        assert second == pytest.approx([0.2315, -0.2280 if version == "5.5.1" else 0.2315], abs=1e-4)


def as_measured(table):
    """Rows of the versions, typed as the probe gives them."""
    return [
        {**row, "width": int(row["width"]), "respect_input_order": row["respect_input_order"] == "True"}
        for row in table
        if row["version"]
    ]


def test_first_fixed_versions_follow_from_the_rows():
    table = rows("listmle_versions")
    measured = as_measured(table)
    again = {(row["question"], row["loss"]): row["value"] or "" for row in first_fixed(measured, VERSIONS)}
    committed = {(row["question"], row["loss"]): row["value"] for row in table if not row["version"]}
    assert again == committed
    assert committed["padding", "ListMLELoss"] == "5.7.0"


def test_a_version_that_relapses_is_not_fixed():
    """The guard of `first_fixed`: plant the bug again in the last version."""
    measured = as_measured(rows("listmle_versions", question="padding"))
    for row in measured:
        if row["version"] == VERSIONS[-1] and row["width"] == 40 and row["quantity"] == "loss":
            row["value"] = float(row["value"]) + 0.01
    assert next(first_fixed(measured, VERSIONS))["value"] is None


# listwise-weight


def test_weights_come_out_again():
    for now in measure_weight(widths=(3, 12), seeds=20, losses=("ListMLE", "RankNet", "ADR-MSE")):
        for quantity, value in (("cosine", now.cosine), ("ratio", now.ratio)):
            conditions = {"loss": now.loss, "width": now.width, "quantity": quantity, "statistic": "median"}
            assert number("listwise_weight", **conditions) == pytest.approx(value, rel=1e-5)


def test_direction_is_kept_and_weight_lost():
    for row in rows("listwise_weight", quantity="cosine"):
        assert float(row["value"]) == pytest.approx(1, abs=1e-9), row
    for loss in ("ListMLE", "PListMLE", "ListNet"):
        for row in rows("listwise_weight", loss=loss, quantity="ratio"):
            assert float(row["value"]) == pytest.approx(2, rel=1e-6), row
    for width in (3, 6, 12, 40):  # ADR-MSE: a mean over 3 + width documents, of which 3 are ours
        ratio = number("listwise_weight", loss="ADR-MSE", quantity="ratio", statistic="median", width=width)
        assert ratio == pytest.approx((3 + width) / 3, rel=1e-6)
    for loss in (
        "RankNet",
        "LambdaLoss",
        "LambdaRank",
    ):  # a mean over pairs: at most 3 + 40 * 39 / 2, of which 3 are ours
        for row in rows("listwise_weight", loss=loss, quantity="ratio", width=40):
            assert 100 < float(row["value"]) <= (3 + 780) / 3


# listwise-ties


def listmle(*logits):
    """ListMLE of documents as they stand, by hand."""
    return sum(math.log(sum(map(math.exp, logits[i:]))) - logits[i] for i in range(len(logits)))


@pytest.mark.parametrize("width", [3, 16, 17, 40])
def test_the_order_read_off_the_sort_explains_the_loss(width):
    logits = (0.2, 1.0, -1.0)
    (tie,) = tie_profile(logits, widths=[width])
    assert tie.loss == pytest.approx(listmle(*(logits[i] for i in tie.order)), abs=1e-6)
    committed = number("listwise_ties", loss="ListMLELoss", width=width, quantity="loss")
    assert committed == pytest.approx(tie.loss, abs=1e-6)
    for document in (1, 2, 3):
        conditions = {"loss": "ListMLELoss", "width": width, "document": document}
        assert number("listwise_ties", **conditions, quantity="gradient") == pytest.approx(
            tie.gradient[document - 1], abs=1e-6
        )
        assert number("listwise_ties", **conditions, quantity="rank") == tie.order.index(document - 1) + 1


def test_distinct_labels_keep_everything_at_any_width():
    narrow, wide = tie_profile((0.2, 1.0, -1.0), (2, 1, 0), widths=[3, 40])
    assert narrow.order == wide.order == (0, 1, 2)
    assert narrow.loss == pytest.approx(wide.loss, abs=1e-6)


def test_width_below_the_list_is_refused():
    with pytest.raises(ValueError, match="widths must be at least the query's length 3, got 2"):
        tie_profile(widths=[2])


def test_tied_scores_come_out_again():
    for tie in tied_scores_profile(widths=[4, 17]):
        committed = number("listwise_ties", loss="LambdaLoss", width=tie.width, quantity="loss")
        assert committed == pytest.approx(tie.loss, abs=1e-6)


def test_flips_come_out_again():
    for quantity, value in flips(width=17).items():
        assert number("listwise_ties", width=17, quantity=quantity) == pytest.approx(value, abs=1e-3)
    unchanged = {"mean cosine": 1, "min cosine": 1, "flipped": 0, "changed": 0}
    assert flips(width=16) == pytest.approx(unchanged, abs=1e-6)
    assert flips(width=17)["flipped"] > 0.1


# list-mle-speed and mistake-sweep: long, so only what was committed is looked at


def test_list_mle_is_as_fast_as_promised():
    share = {"order": "labels", "metric": "losslab's time as a share of this"}
    assert number("list_mle_speed", implementation="ListMLELoss", **share) <= 0.5
    assert number("list_mle_speed", implementation="ListMLELoss, tensor lines", **share) <= 1.25
    peak = {"order": "labels", "metric": "losslab's peak as a share of this"}
    assert number("list_mle_speed", implementation="ListMLELoss", **peak) <= 1


def test_every_verdict_of_the_sweep_was_expected():
    table = rows("mistake_sweep")
    assert len(table) > 1000
    right = {("broken", "broken"), ("kept", "kept"), ("kept", "exempt")}  # exempt: what a loss does not offer
    unexpected = [row for row in table if (row["expected"], row["verdict"]) not in right]
    assert not unexpected
    assert len({row["subject"] for row in table if row["expected"] == "broken"}) == len(MISTAKES)
