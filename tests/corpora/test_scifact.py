"""SciFact from a folder: its known counts and leak; and one clear line where a folder or the hub is wrong."""

import gzip
import shutil
import time
from pathlib import Path

import numpy as np
import pytest

from losslab.corpora import scifact
from losslab.corpora.models import Unavailable
from losslab.retrieval import evaluate


@pytest.fixture(scope="module")
def corpus(scifact_folder):
    return scifact.load(scifact_folder)


@pytest.fixture
def small(tmp_path):
    """A folder of the same layout: 3 documents, 4 queries."""
    folder = tmp_path / "scifact"
    folder.mkdir()
    documents = [f'{{"_id": "{i}", "title": "T{i}", "text": "text {i}"}}\n' for i in (10, 20, 30)]
    queries = [f'{{"_id": "{i}", "text": "claim {i}"}}\n' for i in (1, 2, 3, 4)]
    for name, lines in (("corpus", documents), ("queries", queries)):
        with gzip.open(folder / f"{name}.jsonl.gz", "wt", encoding="utf-8") as file:
            file.writelines(lines)
    header = "query-id\tcorpus-id\tscore\n"
    (folder / "qrels_train.tsv").write_text(f"{header}1\t10\t1\n1\t20\t1\n2\t20\t1\n3\t30\t1\n", encoding="utf-8")
    (folder / "qrels_test.tsv").write_text(f"{header}4\t10\t1\n", encoding="utf-8")
    return folder


ROWS = {"corpus.jsonl.gz": 3, "queries.jsonl.gz": 4, "qrels_train.tsv": 4, "qrels_test.tsv": 1}


def add_embeddings(folder, **changes):
    rng = np.random.default_rng(0)
    arrays = {"corpus": rng.normal(size=(3, 5)), "queries": rng.normal(size=(4, 5))}
    arrays |= {"corpus_ids": np.array([10, 20, 30]), "query_ids": np.array([1, 2, 3, 4])} | changes
    np.savez(folder / "minilm_f16.npz", **arrays)


def test_the_known_counts(corpus):
    assert (len(corpus.document_ids), len(corpus.query_ids)) == (5183, 1109)
    assert (len(corpus.rows("train")), len(corpus.rows("test"))) == (809, 300)
    assert sum(len(right) for right in corpus.relevant("test")) == 339
    assert corpus.queries.shape == (1109, 384)
    assert corpus.documents.shape == (5183, 384)


def test_disjoint_training_pairs_share_no_document_with_the_test(corpus):
    rows, documents = corpus.training_pairs()
    assert (len(set(rows.tolist())), len(rows)) == (537, 609)
    assert not set(documents.tolist()) & {int(d) for right in corpus.relevant("test") for d in right}
    everything, _ = corpus.training_pairs(disjoint=False)
    assert (len(set(everything.tolist())), len(everything)) == (809, 919)
    for row, document in zip(rows[:50], documents[:50], strict=True):
        judged = corpus.qrels["train"][corpus.query_ids[row]]
        assert corpus.document_ids[document] in judged


def test_the_leak(corpus):
    leak = corpus.leak()
    assert leak.sharing_document.sum() == 196
    assert leak.near_query.sum() == 117
    assert str(leak).startswith("Of 300 test queries, 196 share")
    one = int(np.flatnonzero(leak.sharing_document)[0])
    right = set(corpus.qrels["test"][corpus.query_ids[corpus.rows("test")[one]]])
    assert any(right & set(judged) for judged in corpus.qrels["train"].values())


def test_minilm_scores_what_was_published(corpus):
    """0.6451 at all dimensions, and 0.6349 at the first 256 (published)."""
    rows, right = corpus.rows("test"), corpus.relevant("test")
    for dims, want in ((384, 0.6451), (256, 0.6349)):
        queries, documents = corpus.queries[rows][:, :dims], corpus.documents[:, :dims]
        documents = documents / documents.norm(dim=1, keepdim=True)
        assert evaluate(queries, documents, right, ["nDCG@10"])["nDCG@10"].mean() == pytest.approx(want, abs=5e-5)


def test_a_small_folder_by_hand(small):
    add_embeddings(small)
    corpus = scifact._read(small, ROWS)
    assert corpus.document_texts == ["T10 text 10", "T20 text 20", "T30 text 30"]
    assert corpus.query_texts[3] == "claim 4"
    assert corpus.qrels["train"] == {"1": {"10": 1.0, "20": 1.0}, "2": {"20": 1.0}, "3": {"30": 1.0}}
    assert [right.tolist() for right in corpus.relevant("train")] == [[0, 1], [1], [2]]
    assert [each.tolist() for each in corpus.training_pairs()] == [[1, 2], [1, 2]]  # claim 1 shares document 10
    assert [each.tolist() for each in corpus.training_pairs(disjoint=False)] == [[0, 0, 1, 2], [0, 1, 1, 2]]
    assert corpus.leak().sharing_document.tolist() == [True]
    assert ((corpus.queries.norm(dim=1) - 1).abs() < 1e-6).all()
    with pytest.raises(ValueError, match="train or test, got 'dev'"):
        corpus.rows("dev")


def test_without_stored_vectors_the_texts_are_encoded(small, tiny_model, monkeypatch):
    from losslab.corpora.encoders import Encoder

    monkeypatch.setattr(scifact, "Encoder", lambda: Encoder(tiny_model, precision="float32"))
    corpus = scifact._read(small, ROWS)
    assert corpus.queries.shape == (4, 16)
    assert corpus.documents.shape == (3, 16)


def write(name, text):
    return lambda folder: (folder / name).write_text(text, encoding="utf-8")


def cut(name):
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:-12])


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: (folder / "qrels_test.tsv").unlink(), r"qrels_test\.tsv is missing; a SciFact folder holds"),
        (cut("corpus.jsonl.gz"), r"corpus\.jsonl\.gz \(.* bytes\) cannot be read"),
        (write("queries.jsonl.gz", "no gzip"), r"queries\.jsonl\.gz \(7 bytes\) cannot be read"),
        (write("qrels_test.tsv", "query-id\tscore\n4\t1\n"), "has no column 'corpus-id'"),
        (write("qrels_test.tsv", "query-id\tcorpus-id\tscore\n4\t10\t1\n4\t20\t1\n"), "has 2 rows, SciFact has 1"),
        (write("qrels_test.tsv", "query-id\tcorpus-id\tscore\n4\t99\t1\n"), "judges query 4 and document 99"),
        (write("qrels_test.tsv", "query-id\tcorpus-id\tscore\n3\t30\t1\n"), "query '3' is judged in both splits"),
        (lambda folder: add_embeddings(folder, query_ids=np.arange(4)), "query_ids are not those of the texts"),
        (lambda folder: add_embeddings(folder, corpus=np.ones((2, 5))), "corpus must have one row for each of 3"),
        (lambda folder: add_embeddings(folder, queries=np.full((4, 5), np.nan)), "queries has values that are not"),
        (lambda folder: (add_embeddings(folder), cut("minilm_f16.npz")(folder)), r"is no whole \.npz file"),
    ],
)
def test_a_damaged_folder_is_one_line(small, damage, message):
    damage(small)
    with pytest.raises(ValueError, match=message) as caught:
        scifact._read(small, ROWS)
    assert str(small) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_another_data_set_is_refused(small):
    with pytest.raises(ValueError, match="has 3 rows, SciFact has 5,183"):
        scifact.load(small)


def test_reading_leaves_nothing_behind(small, tmp_path, own_cache, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setattr("tempfile.tempdir", None)
    (tmp_path / "tmp").mkdir()
    before = set(small.iterdir())
    scifact._read(small, ROWS)
    assert list((tmp_path / "tmp").iterdir()) == []
    assert set(small.iterdir()) == before
    assert not own_cache.exists()


def test_the_environment_names_the_folder(scifact_folder, monkeypatch):
    monkeypatch.setenv("LOSSLAB_DATA_DIR", str(scifact_folder.parent))
    monkeypatch.setattr(scifact, "_read", lambda folder: folder)
    assert scifact.load() == scifact_folder


@pytest.mark.parametrize(
    ("answer", "message"),
    [(404, "answered 404"), (503, "answered 503"), ("hang", "was silent for 0.5 s")],
)
def test_a_hub_that_fails_is_one_line_and_leaves_nothing(hub, own_cache, monkeypatch, answer, message):
    monkeypatch.delenv("LOSSLAB_DATA_DIR", raising=False)
    server = hub(answer)
    start = time.perf_counter()
    with pytest.raises(Unavailable, match=message) as caught:
        scifact.load(timeout=0.5)
    assert time.perf_counter() - start < 5
    assert server.asked == [f"/api/datasets/BeIR/scifact/revision/{scifact.CORPUS_REVISION}"]
    assert "set LOSSLAB_DATA_DIR" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not own_cache.exists()


class FakeDatasets:
    """What `datasets.load_dataset` would give from the hub, from a folder; fails at the n-th call if told to."""

    utils = scifact._datasets().utils
    DownloadConfig = staticmethod(lambda **_: None)

    def __init__(self, folder, fail_at=None):
        self.folder, self.fail_at, self.calls, self.real = folder, fail_at, [], scifact._datasets()

    def load_dataset(self, name, part=None, *, split, **options):
        if name in ("json", "csv"):
            return self.real.load_dataset(name, split=split, **options)
        self.calls.append((name, part, split, options["revision"]))
        if len(self.calls) == self.fail_at:
            raise OSError("connection lost\nand a long story")
        kind, file = ("csv", f"qrels_{split}.tsv") if part is None else ("json", f"{part}.jsonl.gz")
        extra = {"delimiter": "\t"} if kind == "csv" else {}
        path = str(self.folder / file)
        return self.real.load_dataset(
            kind, data_files=path, split="train", cache_dir=options["cache_dir"], keep_in_memory=True, **extra
        )


@pytest.mark.parametrize("fail_at", [1, 2, 4])
def test_a_hub_that_breaks_off_leaves_nothing(hub, own_cache, small, monkeypatch, fail_at):
    hub(b"{}")
    fake = FakeDatasets(small, fail_at)
    monkeypatch.setattr(scifact, "_datasets", lambda: fake)
    monkeypatch.delenv("LOSSLAB_DATA_DIR", raising=False)
    with pytest.raises(Unavailable, match=r"could not be fetched from the hub: connection lost; set") as caught:
        scifact.load(timeout=5)
    assert "\n" not in str(caught.value)
    assert [path for path in own_cache.rglob("*") if path.name not in ("losslab", "scifact")] == []


def test_what_the_hub_gives_is_kept_in_the_same_layout(hub, own_cache, small, monkeypatch):
    server = hub(b"{}")
    fake = FakeDatasets(small)
    read = scifact._read
    monkeypatch.setattr(scifact, "_datasets", lambda: fake)
    monkeypatch.setattr(scifact, "_read", lambda folder: read(folder, ROWS))
    monkeypatch.delenv("LOSSLAB_DATA_DIR", raising=False)
    corpus = scifact.load(timeout=5)
    assert corpus.document_texts == read(small, ROWS).document_texts
    assert corpus.qrels == read(small, ROWS).qrels
    assert [call[:3] for call in fake.calls] == [
        ("BeIR/scifact", "corpus", "corpus"),
        ("BeIR/scifact", "queries", "queries"),
        ("BeIR/scifact-qrels", None, "train"),
        ("BeIR/scifact-qrels", None, "test"),
    ]
    assert {call[3] for call in fake.calls} == {scifact.CORPUS_REVISION, scifact.QRELS_REVISION}
    (kept,) = (own_cache / "losslab" / "scifact").iterdir()
    assert {path.name for path in kept.iterdir()} == set(ROWS)
    asked = len(server.asked)
    scifact.load(timeout=5)
    assert len(fake.calls) == 4
    assert len(server.asked) == asked


def test_the_folder_of_a_copy_is_found_too(scifact_folder, tmp_path, monkeypatch):
    """A folder without embeddings still has its texts."""
    copy = tmp_path / "data" / "scifact"
    shutil.copytree(scifact_folder, copy, ignore=shutil.ignore_patterns("*.npz"))
    monkeypatch.setenv("LOSSLAB_DATA_DIR", str(Path(tmp_path / "data")))
    corpus = scifact.load()
    assert corpus._stored is None
    assert len(corpus.document_texts) == 5183
