"""What tests of several parts share."""

import os
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
)


@pytest.fixture(scope="session")
def browser():
    """The one browser of a test process: Playwright can be started only once in it."""
    path = shutil.which("chromium")
    if path is None:
        pytest.fail("the page tests need Chromium: install it so that 'chromium' is on the PATH (see .ci/run)")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=FLAGS.split())
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def make_tiny_model(tmp_path_factory):
    """Save a BERT of random weights with a vocabulary of letters: ``make_tiny_model(max_seq_length=32, width=16)``."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    from transformers import BertConfig, BertModel, BertTokenizerFast

    def make(max_seq_length=32, width=16):
        folder = tmp_path_factory.mktemp("tiny")
        letters = [chr(code) for code in range(ord("a"), ord("z") + 1)]
        vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *(f"##{letter}" for letter in letters)]
        torch.manual_seed(0)
        config = BertConfig(
            vocab_size=len(vocabulary),
            hidden_size=width,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=2 * width,
            max_position_embeddings=64,
        )
        BertModel(config).save_pretrained(folder / "bert")
        tokenizer = BertTokenizerFast(vocab={token: number for number, token in enumerate(vocabulary)})
        tokenizer.save_pretrained(folder / "bert")
        transformer = Transformer(str(folder / "bert"), max_seq_length=max_seq_length)
        SentenceTransformer(modules=[transformer, Pooling(width)], device="cpu").save_pretrained(str(folder / "model"))
        return folder / "model"

    return make


@pytest.fixture(scope="session")
def tiny_model(make_tiny_model):
    """Folder with such a model of 16 dimensions that reads 32 tokens."""
    return make_tiny_model()


@pytest.fixture(scope="session")
def scifact_folder():
    """Folder with SciFact: in LOSSLAB_DATA_DIR, else beside the checkout; absent, a skip, and under CI a failure."""
    named = os.environ.get("LOSSLAB_DATA_DIR")
    folder = (Path(named) if named else Path(__file__).resolve().parents[2] / "shared" / "data") / "scifact"
    if not folder.is_dir():
        message = f"SciFact is not at {folder}; set LOSSLAB_DATA_DIR to a folder that has scifact"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    return folder


def pytest_terminal_summary(terminalreporter):
    """Print what tests measured: ``request.node.user_properties.append(("measured", "…"))``."""
    for report in terminalreporter.getreports("passed") + terminalreporter.getreports("failed"):
        for name, value in report.user_properties:
            if name == "measured":
                terminalreporter.write_line(f"measured: {value}")
