"""Every mistake is caught by what it names, every right loss keeps every contract, and the catalogue is in order."""

import ast
import dataclasses
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import losslab.language
import losslab.losses
import losslab.mistakes
from losslab.contracts import check, contracts_of
from losslab.contracts.checking import KINDS
from losslab.measure.mistake_sweep import OBJECTIVES, catch, our_loss, right_losses
from losslab.mistakes import MISTAKES, get

SEEDS = range(3)
LISTWISE = [mistake for mistake in MISTAKES.values() if mistake.kind == "listwise"]
TOKEN = [mistake for mistake in MISTAKES.values() if mistake.kind == "token"]
CONTRASTIVE = [mistake for mistake in MISTAKES.values() if mistake.kind == "contrastive"]
FUNCTIONS = [mistake for mistake in MISTAKES.values() if mistake.kind == "function"]
RIGHT = right_losses()
FOLDER = Path(losslab.mistakes.__file__).parent


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES)
def test_every_mistake_is_caught(mistake, seed):
    verdict, text = catch(mistake, seed)
    assert verdict == "broken", f"{mistake.breaks} says {verdict}: {text}"
    assert any(character.isdigit() for character in text), "a counterexample shows numbers"


# The sweep has every contract search as long as users do; here contrastive ones, which are many, search for less.
EXAMPLES = {"listwise": None, "contrastive": 10, "matryoshka": 10, "token": 15}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", RIGHT)
def test_every_right_loss_keeps_every_contract(name, seed):
    right = RIGHT[name]
    report = check(right.loss, right.kind, seed=seed, examples=EXAMPLES[right.kind], budget=None, **right.declares)
    assert report, str(report)
    assert "unchecked" not in {result.verdict for result in report.results}, str(report)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("mistake", FUNCTIONS, ids=lambda mistake: mistake.name)
def test_every_right_function_keeps_its_property(mistake, seed):
    assert mistake.property(mistake.right, seed=seed) is None


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", [name for name, right in RIGHT.items() if right.against])
def test_every_right_loss_is_its_objective(name, seed):
    assert RIGHT[name].check("objective", seed) == "kept"


def test_every_loss_of_ours_is_there():
    assert {*losslab.losses.__all__, *losslab.language.__all__} >= {
        name for names in OBJECTIVES.values() for name in names
    }
    assert {right.kind for right in RIGHT.values()} == set(KINDS)


def test_a_right_loss_is_not_taken_for_a_mistake():
    for name in ("listmle_padding", "plistmle_rank0", "infonce_grad_accum", "infonce_dup_floor", "no_shift"):
        innocent = dataclasses.replace(get(name), wrong=right_of(get(name)))
        assert catch(innocent)[0] == "kept", name


def right_of(mistake):
    return our_loss(mistake.right) if isinstance(mistake.right, str) else mistake.right


@pytest.mark.parametrize("mistake", LISTWISE, ids=lambda mistake: mistake.name)
def test_where_it_cannot_show_it_is_the_same_objective(mistake):
    """No padding, moderate float64 logits, distinct labels in descending order: only wrong weights are left to show."""
    logits = torch.tensor([[0.3, -0.2, 0.9, 0.1], [1.0, 0.4, -0.5, 0.2]], dtype=torch.float64)
    labels = torch.tensor([[3.0, 2.0, 1.0, 0.0]] * 2, dtype=torch.float64)
    wrong, right = mistake.wrong(logits, labels).item(), right_of(mistake)(logits, labels).item()
    if mistake.name == "plistmle_rank0":
        assert wrong != pytest.approx(right, rel=1e-2)
    else:
        assert wrong == pytest.approx(right, rel=1e-6)


# Those that show on three plain pairs as well: what they leave out, or count twice, is there in any batch.
EVERYWHERE = {
    "infonce_last_row_dropped",
    "infonce_positive_twice",
    "infonce_mean_denominator",
    "infonce_clamped_scores",
}


@pytest.mark.parametrize("mistake", CONTRASTIVE, ids=lambda mistake: mistake.name)
def test_on_three_plain_pairs_it_is_info_nce(mistake):
    """Unit vectors in float64, as many documents as queries, a moderate temperature, each value different."""
    angles = torch.tensor([0.0, 0.5, 1.1], dtype=torch.float64)
    queries = torch.stack([angles.cos(), angles.sin()], 1)
    documents = torch.stack([(angles + 0.2).cos(), (angles + 0.2).sin()], 1)
    wrong = mistake.wrong(queries, documents).item()
    if mistake.name == "infonce_symmetric":
        right = losslab.losses.info_nce(queries, documents).item()
        assert right != pytest.approx(losslab.losses.info_nce(queries, documents, symmetric=True).item(), rel=1e-3)
    elif isinstance(mistake.right, str):
        right = losslab.losses.info_nce(queries, documents).item()
    else:
        right = mistake.right(queries, documents).item()
    assert (wrong == pytest.approx(right, rel=1e-6)) == (mistake.name not in EVERYWHERE)


# Those that show on one plain text as well: they judge by other tokens, or by something other than cross-entropy.
ON_ANY_TEXT = {
    *("no_shift", "double_shift", "double_softmax"),
    *("token_target_left_out", "token_quiet_softmax", "token_label_smoothing"),
}


@pytest.mark.parametrize("mistake", TOKEN, ids=lambda mistake: mistake.name)
def test_on_two_plain_texts_of_a_length_it_is_cross_entropy(mistake):
    """No padding, moderate float64 logits: only what is wrong everywhere shows."""
    logits = torch.sin(torch.arange(24.0, dtype=torch.float64)).reshape(2, 4, 3)
    labels = torch.tensor([[0, 2, 1, 0], [1, 1, 2, 0]])
    right = torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten()).item()
    assert (mistake.wrong(logits, labels).item() == pytest.approx(right, rel=1e-9)) == (mistake.name not in ON_ANY_TEXT)
    assert right_of(mistake)(logits, labels).item() == pytest.approx(right, rel=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_each_contract_has_a_mistake_that_only_it_need_catch(kind):
    named = {mistake.breaks for mistake in MISTAKES.values() if mistake.kind == kind}
    assert {contract.id for contract in contracts_of(kind, objective=True)} == named


def test_one_module_a_mistake_named_after_it():
    modules = {path.stem for path in FOLDER.glob("*.py") if not path.stem.startswith("_")}
    assert modules == set(MISTAKES)


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES)
def test_its_record_is_complete(mistake):
    for text in (mistake.title, mistake.symptom, mistake.cause, mistake.source, mistake.breaks):
        assert text.strip() == text != ""
    assert mistake.symptom.endswith(".")
    assert mistake.cause.endswith(".")
    assert (mistake.source == "built") == (mistake.met == "built")
    assert mistake.source == "built" or re.match(r"[\w.-]+/[\w.-]+(#\d+$| \()", mistake.source)
    assert (mistake.url() is None) == ("#" not in mistake.source)
    assert (mistake.property is None) == (mistake.kind != "function")
    assert (mistake.against is None) == (mistake.breaks != "objective")
    assert not isinstance(mistake.right, str) or mistake.right in [*losslab.losses.__all__, *losslab.language.__all__]


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES)
def test_it_is_small_and_shows_itself(mistake):
    source = (FOLDER / f"{mistake.name}.py").read_text(encoding="utf-8")
    assert len(re.findall("# The (?:mistake|choice)", source)) == 1, "one commented line shows it"
    functions = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)]
    lines = sum(len({line.lineno for line in ast.walk(f) if isinstance(line, ast.stmt)}) for f in functions)
    assert lines <= 40, f"{lines} statements"


def test_mistakes_know_torch_and_nothing_of_ours():
    code = (
        "import sys, losslab.mistakes;"
        "print([m for m in sys.modules if m.startswith('losslab.') and not m.startswith('losslab.mistakes')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_get():
    assert get("listmle-padding") is get("listmle_padding") is MISTAKES["listmle_padding"]
    with pytest.raises(ValueError, match="no mistake is called 'listmle_pad'; there are listmle_padding, "):
        get("listmle_pad")


def test_urls():
    assert get("listmle_padding").url() == "https://github.com/huggingface/sentence-transformers/issues/3827"
    assert get("listmle_tied_sort").url() is None


def test_every_signature_is_the_call_form():
    for mistake in LISTWISE:
        parameters = inspect.signature(mistake.wrong).parameters
        assert list(parameters) == ["logits", "labels", "mask"]
        assert parameters["mask"].default is None
    for mistake in CONTRASTIVE:
        parameters = list(inspect.signature(mistake.wrong).parameters.values())
        assert [p.name for p in parameters[:2]] == ["queries", "documents"]
        assert all(p.default is not p.empty for p in parameters[2:])
    for mistake in TOKEN:
        parameters = list(inspect.signature(mistake.wrong).parameters.values())
        assert [p.name for p in parameters[:2]] == ["logits", "labels"]
        assert all(p.default is None for p in parameters[2:])
