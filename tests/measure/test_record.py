"""Results are written whole or not at all, and say how they came about."""

import csv
import hashlib
import json
import math
from pathlib import Path

import pytest
import torch

import losslab
from losslab.measure import Measurement, measure, read, record


def measurement(rows, columns=("width", "value"), **settings):
    def collect(progress):
        for number, row in enumerate(rows):
            progress(f"row {number}")
            if isinstance(row, BaseException):
                raise row
            yield row

    return Measurement("two-numbers", "Two numbers", columns, collect, settings)


GOOD = [{"width": 2, "value": 0.1 + 0.2}, {"width": 3, "value": math.inf}]


def quiet(_):
    pass


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_result_is_a_long_csv_and_its_record(tmp_path):
    lines = []
    path = measure(measurement(GOOD, seed=7), tmp_path / "new" / "folder", lines.append)
    assert path == tmp_path / "new" / "folder" / "two_numbers.csv"
    assert path.read_text(encoding="utf-8") == "width,value\n2,0.30000000000000004\n3,inf\n"
    told = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    assert told["name"] == "two-numbers"
    assert told["command"] == "losslab measure two-numbers"
    assert told["settings"] == {"seed": 7}
    assert told["rows"] == 2
    assert told["versions"]["torch"] == torch.__version__
    assert told["versions"]["losslab"] == losslab.__version__
    assert told["device"] == "cpu"
    assert told["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert {"date", "seconds", "python", "platform", "processor", "threads", "load", "title", "columns"} <= set(told)
    assert lines == ["row 0", "row 1"]
    assert read(path) == ([{"width": "2", "value": "0.30000000000000004"}, {"width": "3", "value": "inf"}], told)


def test_a_cell_of_several_lines_is_one_row(tmp_path):
    path = measure(measurement([{"width": "two\nlines", "value": 1.0}]), tmp_path, quiet)
    rows, told = read(path)
    assert rows == [{"width": "two\nlines", "value": "1.0"}]
    assert told["rows"] == 1


def test_numbers_survive_to_the_last_digit(tmp_path):
    values = torch.rand(50, dtype=torch.float64).tolist()
    path = measure(measurement([{"width": 1, "value": value} for value in values]), tmp_path, quiet)
    with path.open(encoding="utf-8", newline="") as file:
        assert [float(row["value"]) for row in csv.DictReader(file)] == values


@pytest.mark.parametrize("end", [RuntimeError("no network"), KeyboardInterrupt()], ids=["failure", "interruption"])
def test_what_ends_early_leaves_the_old_result(tmp_path, end):
    measure(measurement(GOOD), tmp_path, quiet)
    before = files(tmp_path)
    with pytest.raises(type(end)):
        measure(measurement([{"width": 9, "value": 9.0}, end]), tmp_path, quiet)
    assert files(tmp_path) == before


def test_a_full_disk_leaves_the_old_result_and_no_scraps(tmp_path, monkeypatch):
    measure(measurement(GOOD), tmp_path, quiet)
    before = files(tmp_path)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        measure(measurement([{"width": 9, "value": 9.0}]), tmp_path, quiet)
    assert files(tmp_path) == before


def test_a_torn_pair_is_recognised(tmp_path, monkeypatch):
    path = measure(measurement(GOOD), tmp_path, quiet)
    write = record.replace_file

    def stops_after_the_csv(target, content):
        if target.suffix == ".json":
            raise KeyboardInterrupt
        write(target, content)

    monkeypatch.setattr(record, "replace_file", stops_after_the_csv)
    with pytest.raises(KeyboardInterrupt):
        measure(measurement([{"width": 9, "value": 9.0}]), tmp_path, quiet)
    with pytest.raises(
        ValueError, match=r"two_numbers\.csv is not the file that two_numbers\.json describes; run: losslab"
    ):
        read(path)


def test_an_edited_number_is_recognised(tmp_path):
    path = measure(measurement(GOOD), tmp_path, quiet)
    path.write_text(path.read_text(encoding="utf-8").replace("0.3", "0.4"), encoding="utf-8")
    with pytest.raises(ValueError, match="is not the file"):
        read(path)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "no rows"),
        ([{"width": 2}], r"row 1 has the columns \['width'\]; expected \['value', 'width'\]"),
        ([GOOD[0], {**GOOD[0], "extra": 1}], "row 2 has the columns"),
    ],
)
def test_rows_must_fit_the_columns(tmp_path, rows, message):
    with pytest.raises(ValueError, match=message):
        measure(measurement(rows), tmp_path / "out", quiet)
    assert not (tmp_path / "out").exists()


def test_others_may_read_the_files(tmp_path):
    path = measure(measurement(GOOD), tmp_path, quiet)
    assert path.stat().st_mode & 0o777 == 0o644
    assert path.with_suffix(".json").stat().st_mode & 0o777 == 0o644
