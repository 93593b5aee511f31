"""`losslab check` as users run it, and what it says when it cannot."""

# ruff: noqa: ARG001  (a fixture may only change the folder one stands in)

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from losslab import cli
from losslab.contracts.named import NotALossError, import_loss

MODULE = '''
"""Losses a user might stand beside."""
import planted

answer = 42
right = planted.list_mle
wrong = planted.with_fault("absolute logits")

def raising(logits, labels, mask):
    raise ValueError("two\\nlines")

class NeedsAModel:
    def __init__(self, model):
        self.model = model
'''


@pytest.fixture
def beside(tmp_path, monkeypatch):
    """Stand in a folder that holds mine.py."""
    (tmp_path / "mine.py").write_text(MODULE)
    (tmp_path / "broken_module.py").write_text("import no_such_package_at_all")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [p for p in sys.path if p])
    yield tmp_path
    for name in ("mine", "broken_module"):
        sys.modules.pop(name, None)


def run(*arguments, cwd):
    """The installed command in a process of its own."""
    command = [str(Path(sys.executable).with_name("losslab")), "check", *arguments]
    support = str(Path(__file__).parents[1] / "support")
    return subprocess.run(
        command, capture_output=True, text=True, cwd=cwd, env={**os.environ, "PYTHONPATH": support}, check=False
    )


def test_command_on_a_right_and_a_wrong_loss_of_the_current_folder(beside):
    done = run("mine:wrong", "--only", "shift_invariance", cwd=beside)
    assert done.returncode == 1
    assert done.stderr == ""
    assert "BROKEN     shift_invariance" in done.stdout
    assert sorted(p.name for p in beside.iterdir() if p.name != "__pycache__") == ["broken_module.py", "mine.py"]

    done = run("mine:right", "--against", "list_mle", "--only", "objective", "--only", "device", "--json", cwd=beside)
    assert done.returncode == 0, done.stdout
    report = json.loads(done.stdout)
    assert report["ok"]
    assert report["against"] == "list_mle"
    assert {result["verdict"] for result in report["results"]} == {"kept"}


def test_a_module_that_does_not_exist_is_one_line_and_exit_2(beside):
    done = run("no_such_module:loss", cwd=beside)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("losslab check: there is no module 'no_such_module'")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["mine:nothing"], "module 'mine' has no 'nothing'"),
        (["mine:answer"], "'mine:answer' is not callable but of type int"),
        (["mine:raising"], "mine:raising cannot be judged: it raises ValueError: two"),
        (["mine:NeedsAModel"], "NeedsAModel is a class and cannot be made without arguments"),
        (["mine"], "a loss is named package.module:name or folder/file.py:name, got 'mine'"),
        (["broken_module:loss"], "module 'broken_module' needs 'no_such_package_at_all', which is not installed"),
        (["mine:right", "--kind", "graphs"], "kind must be one of listwise, contrastive, "),
        (["mine:right", "--against", "map"], "against must be a callable or one of list_mle, p_list_mle, list_net"),
        (["mine:right", "--only", "x"], "only names no listwise contract: x"),
        (["mine.deeper:right"], "there is no module 'mine.deeper'"),
        (["mine:right", "--set", "temperature=2"], "cannot be judged: it raises TypeError"),
    ],
)
def test_what_cannot_be_checked_is_one_line_and_exit_2(beside, capsys, arguments, said):
    assert cli.main(["check", *arguments]) == 2
    out, error = capsys.readouterr()
    assert out == ""
    assert error.startswith("losslab check: ")
    assert said in error
    assert error.count("\n") == 1


def test_wrong_usage_is_exit_2(beside, capsys):
    for arguments in (["check"], ["check", "mine:right", "--order", "random"], ["check", "mine:right", "--set", "x"]):
        with pytest.raises(SystemExit) as stopped:
            cli.main(arguments)
        assert stopped.value.code == 2
    assert "expected NAME=VALUE, got 'x'" in capsys.readouterr().err


def test_declared_conventions_reach_the_report(beside, capsys):
    arguments = ["check", "mine:right", "--only", "tie_order", "--json"]
    assert cli.main([*arguments, "--order", "given", "--count-short-lists", "--reduction", "sum", "--seed", "3"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["conventions"] == {"order": "given", "count_short_lists": True, "reduction": "sum"}
    assert report["seed"] == 3
    assert report["results"][0]["verdict"] == "exempt"


def test_keywords_set_on_the_command_line_are_bound_and_declared(beside, capsys):
    arguments = ["check", "mine:right", "--set", "reduction=sum", "--only", "batch_invariance", "--json"]
    assert cli.main(arguments) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["loss"] == "list_mle(reduction='sum')"
    assert report["conventions"]["reduction"] == "sum"


def test_a_class_of_sentence_transformers_is_driven_by_the_adapter(beside, capsys):
    pytest.importorskip("sentence_transformers")
    name = "sentence_transformers.cross_encoder.losses:ListMLELoss"
    assert cli.main(["check", name, "--only", "batch_invariance", "--only", "permutation"]) == 0
    assert "ranked as given" in capsys.readouterr().out
    assert cli.main(["check", name, "--set", "respect_input_order=false", "--only", "tie_order"]) == 1
    out = capsys.readouterr().out
    assert out.startswith("ListMLELoss(respect_input_order=False): 1 broken")
    assert cli.main(["check", name, "--set", "no_such_option=1"]) == 2
    assert "no_such_option" in capsys.readouterr().err


def test_every_subcommand_is_joined(capsys):
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    out = capsys.readouterr().out
    assert "check" in out
    assert "measure" in out


def test_a_path_that_leads_nowhere_is_named():
    with pytest.raises(NotALossError, match=r"there is no file '\./mine/losses\.py'"):
        import_loss("./mine/losses.py:right")
    with pytest.raises(NotALossError, match=r"there is no file '\./mine/losses'; does it end in \.py\?"):
        import_loss("./mine/losses:right")
