"""Losses of strangers: what they do wrong besides the value, what is assumed of them, and declarations, time, code."""

# ruff: noqa: ARG001  (losses that ignore what they are given)

import io
import json
import random
import re
import subprocess
import sys
import time
import warnings
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy, normalize

import losslab
import planted
from losslab import cli, mistakes
from losslab.contracts import CONTRACTS, check, contracts_of
from losslab.contracts.fake_device import FakeCuda
from losslab.contracts.inference import NotALossError
from losslab.contracts.manners import MANNERS
from losslab.contracts.named import find_loss, import_loss
from losslab.contracts.parametrize import parametrize_with_contracts
from losslab.contracts.watched import SETTINGS, random_states, same_state

MANNERS_IDS = [contract.id for contract in MANNERS]
SOME = ["blind", "scale", *MANNERS_IDS]


def in_batch(queries, documents):
    scores = normalize(queries.float(), dim=1) @ normalize(documents.float(), dim=1).T / 0.05
    return cross_entropy(scores, torch.arange(len(queries), device=queries.device))


def verdicts(report):
    return {result.contract: result.verdict for result in report.results}


# --- bad input: each is said, and the other promises go on


def vector(queries, documents):
    return in_batch(queries, documents).expand(len(queries) + 5)


def number(queries, documents):
    return in_batch(queries, documents).item()


def nan(queries, documents):
    return in_batch(queries, documents) * float("nan")


def detached(queries, documents):
    return in_batch(queries, documents).detach()


def needs_three(queries, documents):
    if len(queries) < 3:
        raise ValueError("batches of fewer than 3 are not supported")
    return in_batch(queries, documents)


def leaving(queries, documents):
    raise SystemExit(3)


@pytest.mark.parametrize(
    ("loss", "said", "kept"),
    [
        (vector, r"it returns a tensor of shape \(\d+,\), not a scalar", set(MANNERS_IDS)),
        (number, "it returns a float, not a tensor", set(MANNERS_IDS)),
        (nan, "not finite", set(MANNERS_IDS)),
        (detached, "its value is detached from the embeddings", set(MANNERS_IDS)),
        (leaving, "it raises SystemExit: 3", ()),
        (needs_three, "it raises ValueError: batches of fewer than 3 are not supported", ()),
    ],
)
def test_what_is_wrong_with_a_loss_is_said_and_the_other_promises_go_on(loss, said, kept):
    report = check(loss, "contrastive", only=SOME, examples=8)
    assert not report
    assert {result.contract for result in report.results} == set(SOME)
    assert re.search(
        said, " ".join(r.reason + (r.counterexample.sentence if r.counterexample else "") for r in report.results)
    )
    assert {name for name, verdict in verdicts(report).items() if verdict == "kept"} >= set(kept)


def writing(queries, documents):
    documents.mul_(2)
    return in_batch(queries, documents)


def remembering():
    seen = []

    def loss(queries, documents):
        seen.append(1)
        return in_batch(queries, documents) * (1 + 0.1 * len(seen))

    return loss


def dropping(queries, documents):
    return in_batch(nn.functional.dropout(queries, 0.5), documents)


def numpy_noise(queries, documents):
    return in_batch(queries, documents) * (1 + 0.01 * float(np.random.rand()))  # noqa: NPY002


def python_noise(queries, documents):
    random.random()
    return in_batch(queries, documents)


def printing(queries, documents):
    print("here I am")
    return in_batch(queries, documents)


def setting_dtype(queries, documents):
    torch.set_default_dtype(torch.float64)
    return in_batch(queries, documents)


def setting_gradients(queries, documents):
    value = in_batch(queries, documents)
    torch.set_grad_enabled(True)
    return value


def setting_threads(queries, documents):
    torch.set_num_threads(3)
    return in_batch(queries, documents)


def setting_errors(queries, documents):
    np.seterr(divide="raise")
    return in_batch(queries, documents)


@pytest.mark.parametrize(
    ("loss", "contract", "said"),
    [
        (writing, "inputs_unchanged", "It writes into its documents"),
        (remembering(), "no_state", "a call leaves something behind"),
        (dropping, "random_state", "random"),
        (numpy_noise, "random_state", "Its value is random"),
        (python_noise, "random_state", "moves the global random state of random"),
        (printing, "settings", "It prints: here I am"),
        (setting_dtype, "settings", "It changes the default dtype of the whole process from float32 to float64"),
        (setting_gradients, "settings", "It changes the gradient mode of the whole process from False to True"),
        (setting_threads, "settings", "It changes the number of threads of the whole process from 1 to 3"),
        (setting_errors, "settings", "It changes the NumPy's error handling of the whole process"),
    ],
)
@pytest.mark.parametrize("seed", range(2))
def test_bad_manners_are_named_and_leave_the_process_as_it_was(loss, contract, said, seed, capfd):
    kept = random_states(), [setting.read() for setting in SETTINGS]
    report = check(loss, only=SOME, examples=8, seed=seed)
    assert [name for name in report.broken if name in MANNERS_IDS] == [contract], str(report)
    assert said in report[contract].counterexample.sentence
    assert any(c.isdigit() for c in str(report[contract].counterexample))
    assert "error" not in verdicts(report).values(), str(report)
    states, settings = random_states(), [setting.read() for setting in SETTINGS]
    assert all(same_state(states[name], state) for name, state in kept[0].items())
    assert settings == kept[1]
    assert capfd.readouterr() == ("", "")


def test_a_random_loss_is_compared_with_itself_under_one_seed():
    def noisy(queries, documents):
        return in_batch(queries, documents) * (1 + 0.1 * torch.rand(()))

    report = check(noisy, only=["row_permutation", "scale", "rows", *MANNERS_IDS], examples=10)
    assert report.broken == ("random_state",), str(report)
    assert any("its value is random" in remark for remark in report.remarks)
    assert "its value is random" in " ".join(str(report).split())


def test_a_right_loss_has_manners():
    for loss in (planted.list_mle, in_batch, "torch.nn.functional:cross_entropy", "losslab.losses:matryoshka"):
        report = check(loss, only=MANNERS_IDS)
        assert set(verdicts(report).values()) == {"kept"}, str(report)


def test_an_interrupt_passes_through_and_restores_everything():
    def interrupted(queries, documents):
        torch.set_default_dtype(torch.float64)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        check(interrupted, "contrastive", only=["blind"])
    assert torch.get_default_dtype() == torch.float32


def test_a_warning_is_shown_once():
    def warning(queries, documents):
        warnings.warn("old-fashioned", UserWarning, stacklevel=1)
        return in_batch(queries, documents)

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        assert check(warning, only=["blind", *MANNERS_IDS], examples=5)
    assert [str(w.message) for w in seen] == ["old-fashioned"]


# --- what is assumed


def positional(a, b):
    return in_batch(a, b)


def tokens(x, y):
    return cross_entropy(x[:, :-1].flatten(0, 1), y[:, 1:].flatten())


def lists(x, y, z):
    return planted.list_mle(x, y, z)


def optional_lists(logits, labels, mask=None):
    return planted.list_mle(logits, labels, torch.ones_like(labels, dtype=torch.bool) if mask is None else mask)


def optional_tokens(logits, labels, mask=None):
    return tokens(logits, labels)


def masked_tokens(logits, labels, attention_mask=None):
    return tokens(logits, labels)


def wrap(base, dims):
    return lambda q, d: sum(base(q[:, :m], d[:, :m]) for m in dims)


class Module(nn.Module):
    def forward(self, query, passages):
        return in_batch(query, passages)


@pytest.mark.parametrize(
    ("loss", "kind", "why"),
    [
        (planted.pairwise, "listwise", "its parameters (logits, labels, mask)"),
        (lambda logits, labels: tokens(logits, labels), "token", "its parameters (logits, labels)"),
        (masked_tokens, "token", "its parameters (logits"),
        (in_batch, "contrastive", "its parameters (queries, documents)"),
        (Module(), "contrastive", "its parameters (query, passages)"),
        (Module, "contrastive", "its parameters (query, passages)"),
        (wrap, "matryoshka", "its parameters (base, dims)"),
        (positional, "contrastive", "what it answers"),
        (tokens, "token", "what it answers"),
        (lists, "listwise", "what it answers"),
        (optional_lists, "listwise", "what it answers: of listwise, token"),
        (optional_tokens, "token", "what it answers: loss(logits (B, T, V)"),
        (nn.CrossEntropyLoss(), "token", "what it is, CrossEntropyLoss of torch"),
        ("losslab.losses:info_nce", "contrastive", "its parameters (queries, documents, temperature, ...)"),
    ],
)
def test_the_kind_is_inferred_and_the_report_says_from_what(loss, kind, why):
    report = check(loss, only=["settings"])
    assert report.kind == kind
    remark, *others = report.remarks
    assert remark.startswith(f"kind: {kind}, inferred from {why}")
    assert " ".join(remark.split()) in " ".join(str(report).split())
    assert report.to_dict()["remarks"] == [remark, *others]
    assert check(loss, kind, only=["settings"]).remarks == tuple(others)


def test_what_is_asked_of_it_helps_where_it_does_not_say():
    def loss(x, y, z=None):
        return (x.float() * 0).sum()

    assert check(loss, against="token_nll", only=["uniform"]).kind == "token"
    assert check(loss, only=["tie_order"]).kind == "listwise"
    assert check(loss, only=["settings"], symmetric=True).kind == "contrastive"


def test_a_kind_that_cannot_be_inferred_is_asked_for():
    with pytest.raises(NotALossError, match=r"answers as listwise and as contrastive and as token; say which.*--kind"):
        check(lambda *x: x[0].sum(), only=["settings"])
    with pytest.raises(NotALossError, match=r"cannot be inferred: as loss\(logits .*it raises .*--kind listwise"):
        check(lambda x: x.sum(), only=["settings"])


def test_every_library_loss_says_its_kind():
    pytest.importorskip("sentence_transformers")
    pytest.importorskip("pytorch_metric_learning")
    for name, kind in (
        ("sentence_transformers.cross_encoder.losses:ListNetLoss", "listwise"),
        ("sentence_transformers.sentence_transformer.losses:MultipleNegativesRankingLoss", "contrastive"),
        ("sentence_transformers.sentence_transformer.losses:MatryoshkaLoss", "matryoshka"),
        ("pytorch_metric_learning.losses:NTXentLoss", "contrastive"),
    ):
        report = check(name, only=["inputs_unchanged", "no_state"])
        assert report.kind == kind
        assert "inferred from what it is" in report.remarks[0]
        assert report, str(report)


FILE = """
import torch
from beside import half
from torch.nn.functional import cross_entropy, normalize


class Scaled(torch.nn.Module):
    def __init__(self, scale=20.0, offset=0.0):
        super().__init__()
        self.scale, self.offset = scale, offset

    def forward(self, queries, documents):
        scores = self.scale * normalize(queries.float(), dim=1) @ normalize(documents.float(), dim=1).T
        return cross_entropy(scores, torch.arange(len(queries))) + self.offset


def my_loss(queries, documents):
    return Scaled()(queries, documents) + 2 * half - 1
"""


@pytest.fixture
def losses(tmp_path, monkeypatch):
    """A folder losses/ with my.py and what that imports, and one stands above it."""
    folder = tmp_path / "losses"
    folder.mkdir()
    (folder / "my.py").write_text(FILE)
    (folder / "beside.py").write_text("half = 0.5\n")
    (folder / "failing.py").write_text("1 / 0\n")
    (folder / "lacking.py").write_text("import no_such_package_at_all\n")
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    sys.modules.pop("beside", None)


def test_a_loss_in_a_file_relative_or_absolute_function_or_class(losses):
    path = list(sys.path)
    for name in ("losses/my.py:my_loss", "./losses/my.py:my_loss", f"{losses}/losses/my.py:my_loss"):
        assert check(name, only=["blind"])["blind"].verdict == "kept"
    report = check("losses/my.py:Scaled", options={"offset": 0.25}, only=["blind"])
    assert report.broken == ("blind",)
    assert sys.path == path
    (losses / "losses" / "my.py").write_text(FILE.replace("half - 1", "half"))  # edited: the file is read again
    assert check("losses/my.py:my_loss", only=["blind"]).broken == ("blind",)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("losses/my.py:nothing", "file 'losses/my.py' has no 'nothing'"),
        ("losses/none.py:loss", "there is no file 'losses/none.py'"),
        ("losses/failing.py:loss", "cannot be imported: ZeroDivisionError"),
        ("losses/lacking.py:loss", "needs 'no_such_package_at_all'"),
        ("losses/my.py", "a loss is named package.module:name or folder/file.py:name"),
        ("losses/my.txt:loss", "there is no file"),
    ],
)
def test_a_file_that_cannot_be_used_is_named(losses, name, said):
    with pytest.raises(NotALossError, match=re.escape(said)):
        import_loss(name)


# --- broken by design


def test_a_promise_broken_by_design_is_shown_and_does_not_count():
    off = planted.with_fault("absolute logits")
    only = ["shift_invariance", "permutation"]
    assert check(off, only=only, examples=10).broken == ("shift_invariance",)
    report = check(off, only=only, examples=10, allow={"shift_invariance": "lengths are\n penalised on purpose"})
    assert report
    assert report.broken == ()
    result = report["shift_invariance"]
    assert result.verdict == "by design"
    assert result.counterexample.quantities
    assert "by design: lengths are penalised on purpose" in result.reason
    text = str(report)
    assert "by design  shift_invariance" in text
    assert "lengths are penalised on purpose" in text
    assert "should be" in text
    assert "lengths are penalised on purpose" in report._repr_html_()
    assert report.summary == "1 kept, 1 by design"
    assert report.to_dict()["ok"] is True


def test_a_declaration_that_is_not_needed_is_said():
    report = check(planted.list_mle, only=["shift_invariance"], allow={"shift_invariance": "a whim"})
    assert report["shift_invariance"].verdict == "kept"
    assert "the declaration is not needed" in report["shift_invariance"].reason


def test_wrong_declarations_are_named():
    with pytest.raises(ValueError, match="allow names no listwise contract: 'scale'; there are padding_invariance"):
        check(planted.list_mle, allow={"scale": "why"})
    with pytest.raises(ValueError, match="allow must give a reason for 'permutation'"):
        check(planted.list_mle, allow={"permutation": " "})
    with pytest.raises(ValueError, match="allow must name contracts with their reasons"):
        check(planted.list_mle, allow=["permutation"])


# --- time


def test_a_slow_loss_ends_in_time_with_what_could_be_checked():
    def slow(queries, documents):
        time.sleep(0.15)
        return in_batch(queries, documents)

    started = time.perf_counter()
    report = check(slow, budget=3.0)
    assert time.perf_counter() - started < 3.0 + 2.0
    assert report.budget_spent
    found = verdicts(report)
    assert "kept" in found.values()
    unchecked = [r for r in report.results if r.verdict == "unchecked"]
    assert unchecked
    assert {r.reason for r in unchecked} == {"the budget of 3 s was spent"}
    assert any("inputs: the budget of 3 s was spent" in r.reason for r in report.results if r.verdict == "kept")
    assert "another run may find more or less" in " ".join(str(report).split())


def test_a_slow_wrong_loss_is_caught_in_time():
    def slow(queries, documents):
        time.sleep(0.1)
        return in_batch(queries, documents) + 1.0

    report = check(slow, budget=3.0)
    assert "blind" in report.broken
    assert report["blind"].counterexample.quantities


def test_a_budget_that_is_not_spent_changes_nothing():
    off = planted.with_fault("absolute logits")
    asked = {"only": ["shift_invariance", "no_state"], "examples": 10}
    results = [check(off, budget=b, **asked).to_dict()["results"] for b in (60.0, None)]
    assert results[0] == results[1]
    assert not check(off, only=["shift_invariance"]).budget_spent
    for wrong in (0, -1.0):
        with pytest.raises(ValueError, match="budget must be a number of seconds above 0"):
            check(off, budget=wrong)


def test_where_a_check_does_not_say_the_environment_does(monkeypatch, capsys):
    asked = {"only": ["shift_invariance"], "examples": 3}
    right = "losslab.losses:list_mle"
    for named, budget in (("", 9.0), ("none", None), (" None", None), ("2.5", 2.5)):
        monkeypatch.setenv("LOSSLAB_CHECK_BUDGET", named)
        assert check(right, **asked).budget == budget
        assert check(right, budget=4.0, **asked).budget == 4.0
        assert check(right, budget=None, **asked).budget is None
    assert command(right, "--only", "shift_invariance", "--budget", "none", "--json") == 0
    assert json.loads(capsys.readouterr().out)["budget"] is None
    for wrong in ("soon", "0", "-1", "nan"):
        monkeypatch.setenv("LOSSLAB_CHECK_BUDGET", wrong)
        message = f"LOSSLAB_CHECK_BUDGET must be a number of seconds above 0, or none for no limit, got '{wrong}'"
        with pytest.raises(ValueError, match=re.escape(message)):
            check(right, **asked)
        assert command(right) == 2
        assert message in capsys.readouterr().err


# --- code


def run_code(code, on_gpu=False):
    """What a counterexample's program prints when it is pasted alone."""
    out = io.StringIO()
    settings = [setting.read() for setting in SETTINGS]
    try:
        with redirect_stdout(out), warnings.catch_warnings():
            if on_gpu:
                with FakeCuda():
                    exec(code, {"__name__": "pasted"})
            else:
                exec(code, {"__name__": "pasted"})
    finally:
        for setting, value in zip(SETTINGS, settings, strict=True):
            setting.write(value)
    return out.getvalue().splitlines()


LINE = re.compile(r"(?P<name>.+?): (?P<got>\S.*?) (?:should be|as before|at least): (?P<should>.+)")
ONE_EACH = {(m.kind, m.breaks): m for m in mistakes.MISTAKES.values() if m.kind != "function"}


def as_numbers(text):
    return np.array(eval(text, {"nan": float("nan"), "inf": float("inf")}), dtype=float)


@pytest.mark.parametrize(("kind", "contract"), ONE_EACH, ids=["-".join(one) for one in ONE_EACH])
def test_code_runs_by_itself_and_shows_the_wrong_and_the_right_number(kind, contract):
    mistake = ONE_EACH[kind, contract]
    report = check(mistake.wrong, kind, against=mistake.against, only=[contract], examples=10, **mistake.declares)
    found = report[contract].counterexample
    code = found.code()
    assert code == report.code()[contract] == report.to_dict()["results"][0]["counterexample"]["code"]
    assert f"from losslab.mistakes.{mistake.name} import wrong" in code
    assert "losslab" not in code.replace(f"losslab.mistakes.{mistake.name}", ""), "torch only"
    printed = run_code(code, on_gpu=contract == "device")
    if contract == "device":
        assert printed
        assert "on cuda:0 and on cpu" in printed[0]
        return
    if (kind, contract) == ("listwise", "settings"):  # a loss that prints
        assert printed == [re.search(r"It prints: (.*)", found.sentence)[1]]
        return
    shown = {m["name"]: (m["got"], m["should"]) for m in map(LINE.fullmatch, printed) if m}
    assert shown, printed
    assert any(got != should for got, should in shown.values())
    for quantity in found.quantities:
        if quantity.name in shown and contract not in ("settings", "no_state", "random_state", "restored"):
            got, should = map(as_numbers, shown[quantity.name])
            assert got == pytest.approx(np.array(quantity.got), rel=1e-4, abs=1e-4, nan_ok=True)
            assert should == pytest.approx(np.array(quantity.should), rel=1e-5, abs=1e-9, nan_ok=True)
    first = found.quantities[0]
    assert first.name in shown or contract in ("settings", "restored")
    if contract != "settings":
        different = [
            not np.allclose(*map(as_numbers, pair), rtol=1e-7, atol=1e-12, equal_nan=True) for pair in shown.values()
        ]
        assert any(different), printed


def test_code_says_what_to_import_where_it_cannot():
    def mine(queries, documents):
        return in_batch(queries, documents) + 1

    code = check(mine, only=["blind"])["blind"].counterexample.code()
    assert "# mine: import it here, or paste this below it" in code
    out = io.StringIO()
    with redirect_stdout(out):
        exec(code, {"mine": mine})
    assert re.match(r"loss: 1\.0 should be: 0\.0", out.getvalue()), out.getvalue()
    code = check(lambda queries, documents: in_batch(queries, documents) + 1, only=["blind"]).code()["blind"]
    assert "loss = my_loss  # put yours here" in code


def test_code_of_a_loss_by_name_with_options_and_of_a_library_class(losses):
    code = check("losses/my.py:Scaled", options={"offset": 0.25}, only=["blind"]).code()["blind"]
    assert "loss = find_loss('losses/my.py:Scaled', {'offset': 0.25}, kind='contrastive')" in code
    assert run_code(code) == ["loss: 0.25 should be: 0.0"]
    code = check("planted:list_mle", options={"fault": "absolute logits"}, only=["shift_invariance"]).code()
    (line,) = [line for line in code["shift_invariance"].splitlines() if line.startswith("loss =")]
    assert line == "loss = partial(list_mle, fault='absolute logits')"
    assert run_code(code["shift_invariance"])[0].startswith("loss: ")


# --- reports


def test_html_is_a_page_that_stands_alone():
    html = check(planted.with_fault("absolute logits"), only=["shift_invariance", "settings"]).to_html()
    assert html.startswith("<!DOCTYPE html>")
    assert html.count("<table") == 1
    assert "<title>" in html
    assert 'lang="en"' in html
    assert "<details><summary>as code</summary>" in html
    assert f"torch {torch.__version__.split('+')[0]}" in html
    assert not re.search(r"<script|http|src=|@import|<link", html)


def test_json_has_versions_and_the_same_seed_gives_the_same(tmp_path):
    first, second = (check(in_batch, only=["blind"], seed=4).to_dict() for _ in range(2))
    assert first == second
    assert first["versions"]["torch"].startswith(torch.__version__.split("+")[0])
    assert {"python", "losslab", "numpy"} <= set(first["versions"])
    assert first["budget"] == 9.0
    assert first["budget_spent"] is False


def command(*arguments):
    return cli.main(["check", *arguments])


def test_command_writes_files_and_takes_what_check_takes(losses, capsys):
    name = "losses/my.py:Scaled"
    wrong = ["--set", "offset=0.25", "--only", "blind"]
    assert command(name, *wrong, "--html", "report.html", "--json", "report.json", "--code") == 1
    out = capsys.readouterr().out
    assert "BROKEN     blind" in out
    assert "kind: contrastive, inferred from its parameters" in out
    assert "\n# --- blind\n" in out
    assert Path("report.html").read_text().startswith("<!DOCTYPE html>")
    assert json.loads(Path("report.json").read_text())["results"][0]["verdict"] == "broken"
    assert sorted(p.name for p in losses.iterdir()) == ["losses", "report.html", "report.json"]
    assert command(name, *wrong, "--allow", "blind=paid for twice", "--budget", "5", "--examples", "3") == 0
    assert "by design: paid for twice" in capsys.readouterr().out
    assert command("--json", name, "--only", "blind") == 0
    assert json.loads(capsys.readouterr().out)["ok"] is True
    for arguments, said in (
        ([name, "--allow", "blond=why"], "allow names no contrastive contract: 'blond'"),
        ([name, "--html", "nowhere/report.html"], "nowhere/report.html cannot be written: nowhere is no folder"),
        ([name, "--json", "losses/"], "losses cannot be written: it is a folder"),
        ([name, "--device", "tpu"], "device must be cpu, cuda or mps, got 'tpu'"),
    ):
        assert command(*arguments) == 2
        assert said in capsys.readouterr().err
    for arguments in ([name, "--budget", "0"], [name, "--allow", "blind"], [name, "--examples", "1.5"]):
        with pytest.raises(SystemExit) as stopped:
            command(*arguments)
        assert stopped.value.code == 2


# --- devices


def test_a_device_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match="device is 'cuda', but torch sees no such device here"):
        check(in_batch, device="cuda")
    with pytest.raises(ValueError, match="device must be cpu, cuda or mps, got 'gpu'"):
        check(in_batch, device="gpu")


def test_on_the_cpu_when_asked():
    report = check(in_batch, only=["blind", "device"], device="cpu")
    assert report
    assert report.device == "cpu"
    assert "on cpu" in str(report)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")
def test_on_a_gpu_when_asked():
    report = check(in_batch, only=["blind", "scale", "device", *MANNERS_IDS], device="cuda")
    assert report, str(report)
    assert check(mistakes.get("infonce_cpu_targets").wrong, only=["blind"], device="cuda")["blind"].verdict == "error"


# --- as tests


def test_parametrize_infers_each_kind_and_marks_what_is_by_design():
    mark = parametrize_with_contracts([planted.list_mle, in_batch], only=["settings", "no_state"])
    cases = [case.values for case in mark.args[1]]
    assert [case.kind for _, case in cases] == ["listwise"] * 2 + ["contrastive"] * 2
    mark = parametrize_with_contracts(
        [planted.with_fault("absolute logits")], only=["shift_invariance"], allow={"shift_invariance": "on purpose"}
    )
    ((loss, contract),) = [case.values for case in mark.args[1]]
    with pytest.raises(pytest.xfail.Exception, match="by design: on purpose"):
        contract(loss)


def test_every_kind_has_the_manners_and_a_mistake_for_each():
    for kind in CONTRACTS:
        assert set(MANNERS_IDS) <= {contract.id for contract in contracts_of(kind)}
        for contract in MANNERS_IDS:
            assert ONE_EACH[kind, contract].met == "built"


def test_find_loss_without_a_kind():
    assert find_loss("losslab.losses:list_mle") is losslab.losses.list_mle


def test_the_whole_process_survives(tmp_path):
    code = (
        "import losslab\n"
        "def loss(queries, documents):\n    raise SystemExit(3)\n"
        "print(bool(losslab.check(loss, only=['blind', 'settings'])))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.stdout == "False\n", done.stderr
    assert done.returncode == 0
