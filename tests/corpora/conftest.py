"""A model small enough to make on the spot, a hub that misbehaves, and SciFact where there is one."""

import http.server
import os
import threading
from pathlib import Path

import pytest

HERE = Path(__file__).resolve()


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    """No test reads or writes the user's cache, or is told by the user's settings where the hub is."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("HF_ENDPOINT", raising=False)
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return tmp_path / "cache"


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory):
    """A folder with a BERT of 16 dimensions, random weights, and a vocabulary of letters."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    from transformers import BertConfig, BertModel, BertTokenizerFast

    folder = tmp_path_factory.mktemp("tiny")
    letters = [chr(code) for code in range(ord("a"), ord("z") + 1)]
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *(f"##{letter}" for letter in letters)]
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
    )
    BertModel(config).save_pretrained(folder / "bert")
    BertTokenizerFast(vocab={token: number for number, token in enumerate(vocabulary)}).save_pretrained(folder / "bert")
    transformer = Transformer(str(folder / "bert"), max_seq_length=32)
    SentenceTransformer(modules=[transformer, Pooling(16)], device="cpu").save_pretrained(str(folder / "model"))
    return folder / "model"


class Hub:
    """A server on this machine. ``answers``: path ending -> bytes, a status, "hang" or "break"; else the default."""

    def __init__(self, default):
        self.answers, self.default, self.asked = {}, default, []
        self.release = threading.Event()
        hub = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                hub.asked.append(self.path)
                chosen = [answer for end, answer in hub.answers.items() if self.path.endswith(end)]
                answer = chosen[0] if chosen else hub.default
                if answer == "hang":
                    hub.release.wait(30)
                    return
                content = answer if isinstance(answer, bytes) else b"half"
                self.send_response(answer if isinstance(answer, int) else 200)
                self.send_header("Content-Length", str(len(content) + (answer == "break")))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.address = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.release.set()
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def hub(monkeypatch):
    """Start a hub that the library takes for the real one: ``hub(default)``."""
    started = []

    def start(default):
        started.append(Hub(default))
        monkeypatch.setenv("HF_ENDPOINT", started[-1].address)
        return started[-1]

    yield start
    for one in started:
        one.close()


@pytest.fixture(scope="session")
def scifact_folder():
    """Folder with SciFact: in LOSSLAB_DATA_DIR, else beside the checkout; absent, a skip, and under CI a failure."""
    named = os.environ.get("LOSSLAB_DATA_DIR")
    folder = (Path(named) if named else HERE.parents[2].parent / "shared" / "data") / "scifact"
    if not folder.is_dir():
        message = f"SciFact is not at {folder}; set LOSSLAB_DATA_DIR to a folder that has scifact"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    return folder
