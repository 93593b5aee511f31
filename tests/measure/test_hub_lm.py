"""A causal model from a folder, in bits per byte; and one line where the hub is out of reach."""

import math

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from torch.nn import functional
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

from losslab.corpora import models as pinned_models
from losslab.language import byte_model, compare
from losslab.measure import hub_lm

TEXTS = ["A loss keeps promises, or it does not.", "Ein Café.", "Padding pads."]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A tiny random GPT-2 with a byte-level tokenizer of 300 tokens."""
    path = tmp_path_factory.mktemp("tiny")
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer, bpe.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    bpe.train_from_iterator(
        byte_model.prose()[:40],
        trainers.BpeTrainer(vocab_size=300, special_tokens=["<s>"], initial_alphabet=alphabet, show_progress=False),
    )
    PreTrainedTokenizerFast(tokenizer_object=bpe, bos_token="<s>").save_pretrained(path)
    torch.manual_seed(0)
    config = GPT2Config(vocab_size=300, n_positions=64, n_embd=16, n_layer=1, n_head=2, bos_token_id=0, eos_token_id=0)
    GPT2LMHeadModel(config).save_pretrained(path)
    return path


def test_bits_per_byte_by_hand(folder):
    tokenizer, model = PreTrainedTokenizerFast.from_pretrained(folder), GPT2LMHeadModel.from_pretrained(folder).eval()
    nats = 0.0
    for text in TEXTS:
        ids = torch.tensor([[0, *tokenizer(text)["input_ids"]]])
        with torch.inference_mode():
            nats += functional.cross_entropy(model(ids).logits[0, :-1], ids[0, 1:], reduction="sum").item()
    result = hub_lm.evaluate(folder, TEXTS, name="tiny", context=64)
    n_bytes = sum(len(text.encode()) for text in TEXTS)
    assert result.n_bytes == n_bytes
    assert result.bits_per_byte == pytest.approx(nats / math.log(2) / n_bytes, rel=1e-5)
    windowed = hub_lm.evaluate(folder, TEXTS, name="tiny", context=6, stride=3)
    assert (windowed.tokens, windowed.n_bytes, windowed.texts) == (result.tokens, n_bytes, 3)
    assert windowed.bits_per_byte != result.bits_per_byte  # less to go by


def test_it_meets_the_byte_model_in_bits_per_byte_alone(folder):
    theirs = hub_lm.evaluate(folder, TEXTS, name="tiny", context=64)
    ours = byte_model.evaluate(byte_model.ByteModel(2, 2), TEXTS)
    with pytest.raises(ValueError, match="different tokenizers tiny and UTF-8 bytes"):
        compare(theirs, ours)
    assert compare(theirs, ours, per="byte").unit == "byte"


def test_without_the_hub_it_says_so_in_one_line(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert hub_lm.main(["someone/some-model", "0" * 40, "0" * 64]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("the model someone/some-model is not here and HF_HUB_OFFLINE is set; ")
    assert said.err.count("\n") == 1


def test_other_weights_are_refused(monkeypatch, capsys, folder, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    kept = tmp_path / "losslab" / "models" / "tiny-00000000"
    kept.parent.mkdir(parents=True)
    kept.symlink_to(folder)
    assert hub_lm.main(["someone/tiny", "0" * 40, "0" * 64]) == 1
    assert "expected 000000000000…: truncated, or other weights" in capsys.readouterr().err
    sha256 = pinned_models.sha256_of(folder / pinned_models.WEIGHTS)
    monkeypatch.setattr(byte_model, "prose", lambda: TEXTS)
    monkeypatch.setattr(byte_model, "load", lambda: byte_model.ByteModel(2, 2))
    assert hub_lm.main(["someone/tiny", "0" * 40, sha256]) == 0
    assert " bits per byte: " in capsys.readouterr().out.splitlines()[-1]
