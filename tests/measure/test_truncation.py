"""The truncation measurement: published values met, the pair of models compared with care, committed rows again."""

import http.server
import json
import threading
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
import torch

from losslab.corpora import scifact
from losslab.corpora.encoders import Encoder
from losslab.corpora.models import Unavailable
from losslab.measure import read, truncation
from losslab.measure.truncation import NESTED, PLAIN, Hosted, Task, fetch, mismatches, published, verdict
from losslab.retrieval import Interval, evaluate, paired_bootstrap

DATA = Path(__file__).parents[2] / "data"
MINILM = "all-MiniLM-L6-v2"


@pytest.fixture(scope="module")
def committed():
    return read(DATA / "measured" / "truncation.csv")[0]


def one(table, **conditions):
    wanted = {"centred": "no", "renormalised": "yes", "seed": "", **{k: str(v) for k, v in conditions.items()}}
    (row,) = [row for row in table if wanted.items() <= row.items()]
    return row


# published values


def test_published_values_are_met_to_four_places(committed):
    """Full size, five prefixes and five PCAs of MiniLM; the numbers were published by others, see data/published."""
    prefix = {384: 0.6451, 256: 0.6349, 128: 0.6016, 64: 0.4841, 32: 0.3371, 16: 0.1580}
    pca = {256: 0.6370, 128: 0.6107, 64: 0.5404, 32: 0.4530, 16: 0.2960}
    for reduction, values in (("prefix", prefix), ("PCA", pca)):
        for dim, value in values.items():
            conditions = {"reduction": reduction, "dim": dim, "centred": "yes" if reduction == "PCA" else "no"}
            row = one(committed, corpus="SciFact", model=MINILM, metric="ndcg@10", **conditions)
            assert round(float(row["value"]), 4) == value == float(row["published"])
            assert row["verdict"] == "equal to four places"


def test_prefix_against_random_comes_out_as_published(committed):
    table = truncation._table("scifact_prefix_vs_random")
    rows = [row for row in table if row["model"] == MINILM]
    assert len(rows) == 5
    for row in rows:
        conditions = {"corpus": "SciFact", "reduction": "prefix", "dim": row["dim"]}
        ours = one(committed, metric="ndcg@10 over random dims", **conditions)
        lo, hi = float(ours["lo"]), float(ours["hi"])
        assert ("tie" if lo <= 0 <= hi else "not") == row["verdict"]
        assert float(ours["value"]) == pytest.approx(float(row["diff"]), abs=3e-4)  # embeddings stored in float16
        assert (lo, hi) == pytest.approx((float(row["lo"]), float(row["hi"])), abs=3e-4)  # the same draws throughout


def test_no_published_value_is_contradicted(committed):
    judged = [row for row in committed if row["published"]]
    assert len(judged) == 21
    assert {row["verdict"] for row in judged} <= {"equal to four places", "within the interval"}
    # nothing was published of other settings
    assert all(row["corpus"] == "SciFact" and row["renormalised"] == "yes" and not row["seed"] for row in judged)


def test_every_published_cell_has_a_place():
    found = published()
    assert len(found) == 20 + 17 + 2 * 17 + 3 * 6  # prefix and full, PCA; random and difference; retention
    assert found[NESTED.name, "prefix", 64, "ndcg@10 over random dims"] == (0.0287, 4)
    assert found[NESTED.name, "prefix", 64, "retention"] == (pytest.approx(0.553), 3)
    assert found[NESTED.name, "prefix", 64, f"retention over {PLAIN.name}"] == (pytest.approx(0.082), 3)


@pytest.mark.parametrize(
    ("ours", "value", "places", "want"),
    [
        (Interval(0.64508, 0.6, 0.7), 0.6451, 4, "equal to four places"),
        (Interval(0.64504, 0.6, 0.7), 0.6451, 4, "within the interval"),
        (Interval(0.64508, 0.6, 0.7), 0.71, 4, "different"),
        (Interval(0.5534, 0.5, 0.6), 0.553, 3, "equal to three places"),
    ],
)
def test_verdicts(ours, value, places, want):
    assert verdict(ours, value, places) == want


# committed rows again


def again(task, dims, **chosen):
    found = task.sweep(dims, **chosen)
    return list(truncation.rows_of(task, found))


def held(rows, committed, *, at_least):
    checked = 0
    for now in rows:
        key = {name: "" if now[name] is None else str(now[name]) for name in list(now)[:8]}
        (before,) = [row for row in committed if key.items() <= row.items()]
        for end in ("value", "lo", "hi"):
            if now[end] is not None:
                assert float(before[end]) == pytest.approx(now[end], abs=2e-4), key
                checked += 1
    assert checked >= at_least


def test_apidocs_comes_out_again(committed):
    chosen = {"kinds": ("prefix", "random-dims", "svd", "pca"), "renormalise": (True, False)}
    held(again(truncation.apidocs_task(), [16, 64], **chosen), committed, at_least=100)


def test_scifact_comes_out_again(committed, scifact_folder):
    data = scifact.load(scifact_folder)
    kinds = ("prefix", "pca", "random-dims")
    held(again(truncation.scifact_task(data), [32], kinds=kinds), committed, at_least=40)


def test_the_two_corpora_disagree_on_pca_and_agree_on_svd(committed):
    """What the chapter tells: at 128 dims PCA loses to the prefix on apidocs; SVD loses nowhere, on either."""
    pca = one(committed, corpus="apidocs", reduction="PCA", centred="yes", dim=128, metric="ndcg@10 over prefix")
    assert float(pca["hi"]) < 0
    for corpus in ("apidocs", "SciFact"):
        svd = [r for r in committed if r["reduction"] == "SVD" and r["metric"] == "ndcg@10 over prefix"]
        below = [r for r in svd if r["corpus"] == corpus and r["renormalised"] == "yes" and int(r["dim"]) <= 192]
        assert len(below) == 10
        assert all(float(row["lo"]) > 0 for row in below)


# the pair of models


LETTERS = "abcdefghijklmnopqrst"


@pytest.fixture
def small(monkeypatch):
    """SciFact's shape with texts that a model of letters can tell apart, and half of what matters late in the text."""
    monkeypatch.setattr(truncation, "DIMS", (4, 8, 16))
    monkeypatch.setattr(truncation, "RESAMPLES", 50)
    monkeypatch.setattr(truncation, "published", lambda: {(PLAIN.name, "prefix", 8, "retention"): (0.5, 3)})
    random = np.random.default_rng(0)
    texts = [" ".join(random.choice(list(LETTERS), 20)) for _ in range(40)]
    return scifact.SciFact(
        query_ids=[f"q{i}" for i in range(12)],
        query_texts=[f"{texts[i][:15]} {texts[i][20:29]}" for i in range(12)],
        document_ids=[f"d{i}" for i in range(40)],
        document_texts=texts,
        qrels={"train": {}, "test": {f"q{i}": {f"d{i}": 1.0} for i in range(12)}},
        _stored=None,
    )


@pytest.fixture(scope="session")
def two_folders(make_tiny_model):
    """The same weights twice; one configuration reads 32 tokens, the other 6."""
    return make_tiny_model(max_seq_length=6), make_tiny_model(max_seq_length=32)


@pytest.fixture
def pair(two_folders):
    models = [Hosted(name, f"nobody/{name}", "0", 24) for name in (PLAIN.name, NESTED.name)]
    return dict(zip(models, two_folders, strict=True))


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("HF_ENDPOINT", raising=False)
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def run_pair(small, pair, monkeypatch):
    said, real = [], Encoder.encode
    monkeypatch.setattr(Encoder, "encode", lambda self, texts: said.append("encoding") or real(self, texts))
    return list(truncation.pair_rows(small, pair, said.append)), said


def test_mismatches_are_reported_before_anything_is_encoded(small, pair, monkeypatch):
    _, said = run_pair(small, pair, monkeypatch)
    first = said.index("encoding")
    differing = [line for line in said[:first] if " differs: " in line]
    assert "max_length" in differing[0]  # where this version of the library keeps it
    assert f"6 in {PLAIN.name}, 32 in {NESTED.name}" in differing[0]
    set_to = [line for line in said[:first] if "is set to max_seq_length 24" in line]
    assert len(set_to) == 2
    assert said.count("encoding") == 4


def test_the_same_weights_come_out_the_same_whatever_their_configurations(small, pair, monkeypatch):
    rows, _ = run_pair(small, pair, monkeypatch)
    by_model = {}
    for row in rows:
        if "over mpnet" not in row["metric"]:
            by_model.setdefault(row["model"], []).append({k: v for k, v in row.items() if k not in ("model", *JUDGED)})
    assert by_model[PLAIN.name] == by_model[NESTED.name]
    between = [row for row in rows if row["metric"] == f"retention over {PLAIN.name}"]
    assert [row["dim"] for row in between] == [4, 8, 16]
    assert all(row["value"] == row["lo"] == row["hi"] == 0 for row in between)
    (judged,) = [row for row in rows if row["published"] is not None]
    assert (judged["model"], judged["dim"], judged["metric"]) == (PLAIN.name, 8, "retention")
    assert judged["verdict"] in ("equal to three places", "within the interval", "different")


JUDGED = ("published", "verdict")


def test_the_guard_sees_models_that_keep_their_own_lengths(small, two_folders, monkeypatch):
    """Planted: each model reads as many tokens as its configuration says."""
    models = [Hosted(PLAIN.name, "nobody/a", "0", 6), Hosted(NESTED.name, "nobody/b", "0", 32)]
    with pytest.raises(AssertionError):
        test_the_same_weights_come_out_the_same_whatever_their_configurations(
            small, dict(zip(models, two_folders, strict=True)), monkeypatch
        )


def test_retention_against_the_plain_bootstrap():
    """One model that never loses anything: then the difference is 1 less the other's retention."""
    generator = torch.Generator().manual_seed(0)
    rows = torch.nn.functional.normalize(torch.randn(60, 16, generator=generator, dtype=torch.float64), dim=1)
    asked = torch.nn.functional.normalize(
        rows[:20] + 0.25 * torch.randn(20, 16, generator=generator, dtype=torch.float64), dim=1
    )
    relevant = [np.array([i]) for i in range(20)]
    task = Task("SciFact", "x", asked, rows, relevant)
    found = task.sweep([4, 16], kinds=("prefix",), centre=(False,), renormalise=(True,))
    four, whole = found.settings
    assert (four.dim, whole.dim) == (4, 16)
    ((got,),) = [truncation.retention_differences(found, found, [four])]
    assert (got.estimate, got.lo, got.hi) == (0, 0, 0)
    still = type(found)(found.metric, found.full, (four,), found.full[:, None])  # at 4 dims as good as whole
    (got,) = truncation.retention_differences(still, found, [four])
    want = paired_bootstrap(found.of(four), found.full, statistic="ratio", resamples=truncation.RESAMPLES, seed=0)
    assert (got.estimate, got.lo, got.hi) == pytest.approx((1 - want.estimate, 1 - want.hi, 1 - want.lo))
    assert found.full == pytest.approx(evaluate(asked, rows, relevant, ["nDCG@10"])["nDCG@10"])


def test_settings_of_any_depth_are_compared(tmp_path):
    for name, tokens, layers in (("a", 75, 12), ("b", 384, 12), ("c", 384, 6)):
        (tmp_path / name / "1_Pooling").mkdir(parents=True)
        (tmp_path / name / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": tokens}))
        (tmp_path / name / "config.json").write_text(
            json.dumps({"layers": layers, "task": {"glue": {"alpha": tokens}}})
        )
        (tmp_path / name / "tokenizer.json").write_text(json.dumps(name))
    (tmp_path / "b" / "1_Pooling" / "config.json").write_text(json.dumps({"mean": True}))
    lines = mismatches({name: tmp_path / name for name in ("a", "b")})
    assert lines == [
        "sentence_bert_config.json: max_seq_length differs: 75 in a, 384 in b",
        "1_Pooling/config.json: mean differs: absent in a, true in b",
        "config.json: task.glue.alpha differs: 75 in a, 384 in b",
    ]
    assert mismatches(dict.fromkeys(("a", "b"), tmp_path / "a")) == []
    assert "config.json: layers differs: 12 in b, 6 in c" in mismatches({name: tmp_path / name for name in ("b", "c")})


# the hub


class Hub:
    """As much of a hub as serves one model: its commits, its list of files, the files."""

    def __init__(self, folder, repository, commits):
        hub, self.asked = self, []
        files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        listing = {"id": repository, "sha": commits[0], "siblings": [{"rfilename": name} for name in files]}
        listing |= {"private": False, "gated": False, "tags": [], "downloads": 0, "likes": 0}
        tree = [{"type": "file", "path": name, "oid": "0" * 40, "size": len(each)} for name, each in files.items()]
        told = [
            {"id": each, "title": "x", "message": "", "authors": [], "date": "2024-05-01T00:00:00.000Z"}
            for each in commits
        ]

        class Handler(http.server.BaseHTTPRequestHandler):
            def answer(self, body):
                hub.asked.append(self.path)
                path = self.path.partition("?")[0]
                content = None
                if "/commits/" in path:
                    content = json.dumps(told).encode()
                elif "/tree/" in path:
                    content = json.dumps(tree).encode()
                elif path.startswith(f"/api/models/{repository}"):
                    content = json.dumps(listing).encode()
                elif "/resolve/" in path:
                    content = files.get(path.partition(f"/resolve/{commits[1]}/")[2])
                self.send_response(404 if content is None else 200)
                content = content or b""
                self.send_header("Content-Length", str(len(content)))
                self.send_header("ETag", f'"{sha256(content).hexdigest()}"')
                self.send_header("X-Repo-Commit", commits[1])
                self.end_headers()
                if body:
                    self.wfile.write(content)

            def do_HEAD(self):
                self.answer(False)

            def do_GET(self):
                self.answer(True)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.address = f"http://127.0.0.1:{self.server.server_address[1]}"


COMMITS = ["f" * 40, "8d633e39" + "a" * 32, "0" * 40]


@pytest.fixture
def hub(two_folders, monkeypatch, tmp_path):
    from huggingface_hub import constants

    serving = Hub(two_folders[0], PLAIN.repository, COMMITS)
    monkeypatch.setenv("HF_ENDPOINT", serving.address)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    yield serving
    serving.server.shutdown()
    serving.server.server_close()


def test_a_model_comes_from_the_hub_at_the_published_commit(hub, two_folders):
    folder = fetch(PLAIN)
    assert COMMITS[1] in str(folder)
    assert (folder / "model.safetensors").read_bytes() == (two_folders[0] / "model.safetensors").read_bytes()
    assert mismatches({"fetched": folder, "saved": two_folders[0]}) == []
    assert any(f"/resolve/{COMMITS[1]}/" in path for path in hub.asked)


def test_a_commit_that_is_not_there_is_one_line(hub):
    with pytest.raises(Unavailable, match="has 0 commits that begin with 12345678"):
        fetch(Hosted(PLAIN.name, PLAIN.repository, "12345678", 128))
    assert hub.asked


@pytest.mark.usefixtures("hub")
@pytest.mark.parametrize("why", ["offline", "not there", "nobody listens"])
def test_without_the_hub_one_line_says_what_is_left_out(why, small, monkeypatch):
    if why == "offline":
        monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    elif why == "nobody listens":
        monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    else:
        monkeypatch.setattr(truncation, "PLAIN", Hosted(PLAIN.name, "nobody/nothing", "0", 128))
    small.__dict__["queries"], small.__dict__["documents"] = torch.eye(16)[:12], torch.eye(16).repeat(3, 1)[:40]
    monkeypatch.setattr(scifact, "load", lambda: small)
    monkeypatch.setattr(truncation, "apidocs_task", lambda: truncation.scifact_task(small))
    said = []
    rows = list(truncation.collect(said.append))
    assert {row["model"] for row in rows} == {MINILM}
    assert len(said) == 3
    assert said[2].startswith(f"{PLAIN.name} and {NESTED.name} are left out: ")
    assert "\n" not in said[2]


def test_without_scifact_one_line_says_so(small, monkeypatch):
    small.__dict__["queries"], small.__dict__["documents"] = torch.eye(16)[:12], torch.eye(16).repeat(3, 1)[:40]

    def gone():
        raise Unavailable("not here")

    monkeypatch.setattr(scifact, "load", gone)
    monkeypatch.setattr(truncation, "apidocs_task", lambda: truncation.scifact_task(small))
    said = []
    assert list(truncation.collect(said.append))
    assert said[1:] == ["SciFact is left out: not here"]
