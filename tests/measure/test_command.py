"""``losslab measure``: one clear line for whatever goes wrong, and nothing half written."""

import pytest

import losslab.measure
from losslab.cli import main
from losslab.measure import NAMES, Measurement, command


def run(*arguments):
    return main(["measure", *map(str, arguments)])


@pytest.fixture
def invented(monkeypatch):
    """Replace what `get` finds by measurements of our own."""

    def install(**collects):
        found = {name: Measurement(name, "Invented", ("value",), collect) for name, collect in collects.items()}
        monkeypatch.setattr(losslab.measure, "NAMES", dict.fromkeys(found, ""))
        monkeypatch.setattr(losslab.measure, "get", found.__getitem__)

    return install


def test_list_names_them_all_with_a_title(capsys):
    assert run("--list") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(NAMES)
    assert all(len(line.split()) > 3 for line in lines)


def test_every_measurement_goes_by_its_name():
    for name in NAMES:
        assert losslab.measure.get(name).name == name


def test_result_and_progress(invented, tmp_path, capsys):
    def collect(progress):
        progress("half way")
        yield {"value": 1}

    invented(one=collect)
    assert run("one", "--out", tmp_path) == 0
    told = capsys.readouterr()
    assert told.out == f"{tmp_path / 'one.csv'}\n"
    assert "half way" in told.err
    assert (tmp_path / "one.csv").read_text(encoding="utf-8") == "value\n1\n"
    assert (tmp_path / "one.json").exists()


def test_all_runs_all(invented, tmp_path):
    invented(one=lambda _: [{"value": 1}], two=lambda _: [{"value": 2}])
    assert run("--all", "--out", tmp_path) == 0
    assert {path.name for path in tmp_path.iterdir()} == {"one.csv", "one.json", "two.csv", "two.json"}


@pytest.mark.parametrize("arguments", [(), ("no-such-thing",)])
def test_a_wrong_call_is_one_line_and_2(arguments, capsys):
    assert run(*arguments) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert "listmle-versions" in lines[0] or "--list" in lines[0]


@pytest.mark.parametrize(("end", "status"), [(RuntimeError("no network"), 1), (KeyboardInterrupt(), 130)])
def test_a_failure_is_one_line_and_leaves_the_old_result(invented, tmp_path, capsys, end, status):
    def collect(_):
        yield {"value": 9}
        raise end

    (tmp_path / "one.csv").write_text("value\n1\n", encoding="utf-8")
    invented(one=collect)
    assert run("one", "--out", tmp_path) == status
    (line,) = capsys.readouterr().err.splitlines()
    assert "is as it was" in line
    assert status != 1 or "RuntimeError: no network" in line
    assert [path.name for path in tmp_path.iterdir()] == ["one.csv"]
    assert (tmp_path / "one.csv").read_text(encoding="utf-8") == "value\n1\n"


def test_the_folder_is_that_of_the_checkout_one_stands_in(tmp_path):
    (tmp_path / "data" / "measured").mkdir(parents=True)
    (tmp_path / "book" / "deep").mkdir(parents=True)
    (tmp_path / "pyproject.toml").touch()
    for start in (tmp_path, tmp_path / "book" / "deep"):
        assert command.default_folder(start) == tmp_path / "data" / "measured"


def test_outside_a_checkout_out_must_be_named(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run("listwise-ties") == 2
    assert "--out DIR" in capsys.readouterr().err
