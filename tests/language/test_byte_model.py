"""The byte model: its texts, its padding, its files."""

import json
import math
import shutil

import pytest
import torch

from losslab.language import Evaluator, byte_model
from losslab.language.byte_model import START, VOCABULARY, ByteModel

TEXTS = ["a", "Zwei Wörter.", "", "Something longer than the others."]


@pytest.fixture(scope="module")
def model():
    """Untrained: what is tested here holds for any weights."""
    torch.manual_seed(0)
    return ByteModel(6, 10).double().eval()


def test_texts_become_bytes_behind_a_start_token():
    ids, mask = byte_model.encode(["é", "abc"], padding=1)
    assert ids.tolist() == [[START, 0xC3, 0xA9, START, START], [START, 97, 98, 99, START]]
    assert mask.tolist() == [[True, True, True, False, False], [True, True, True, True, False]]
    ids, mask = byte_model.encode(["é", "abc"], side="left")
    assert ids.tolist() == [[START, START, 0xC3, 0xA9], [START, 97, 98, 99]]
    assert mask.tolist() == [[False, True, True, True], [True, True, True, True]]
    assert byte_model.encode([""])[0].tolist() == [[START]]


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("padding", [0, 7])
def test_padding_does_not_reach_the_states(model, side, padding):
    ids, mask = byte_model.encode(TEXTS, side=side, padding=padding)
    with torch.inference_mode():
        together = model(ids, mask)
        assert together.shape == (*ids.shape, VOCABULARY)
        for row, text in enumerate(TEXTS):
            alone = model(byte_model.encode([text])[0])[0]
            assert torch.allclose(together[row, mask[row]], alone, rtol=1e-12, atol=1e-14)


def test_without_the_mask_left_padding_does_reach_them(model):
    """The fault planted: the guard above would see it."""
    ids, mask = byte_model.encode(TEXTS, side="left")
    with torch.inference_mode():
        assert not torch.allclose(model(ids)[1, mask[1]], model(ids, mask)[1, mask[1]], atol=1e-3)


def test_every_byte_is_counted_once(model):
    result = byte_model.evaluate(model, TEXTS, batch_size=3, names=list("wxyz"))
    assert result.tokens == result.n_bytes == sum(len(t.encode()) for t in TEXTS)
    assert (result.without_target, result.texts) == (("y",), 3)
    assert result.n_characters == result.n_bytes - 1
    assert result.bits_per_token == result.bits_per_byte
    alone = Evaluator(tokenizer=byte_model.TOKENIZER)
    for text in TEXTS:
        ids, _ = byte_model.encode([text])
        alone.add(model(ids), ids, texts=[text])
    assert alone.result().perplexity == pytest.approx(result.perplexity, rel=1e-12)


def test_what_was_saved_is_what_is_loaded(model, tmp_path):
    checkpoint = byte_model.as_checkpoint(model)
    assert checkpoint == byte_model.as_checkpoint(model)
    (tmp_path / byte_model.CHECKPOINT).write_bytes(checkpoint)
    write_record(tmp_path)
    loaded = byte_model.load(tmp_path)
    for name, weight in loaded.state_dict().items():
        assert weight.dtype == torch.float32
        assert torch.equal(weight, model.state_dict()[name].half().float())
    assert not loaded.training


def write_record(folder):
    import hashlib

    content = (folder / byte_model.CHECKPOINT).read_bytes()
    record = {"sha256": {byte_model.CHECKPOINT: hashlib.sha256(content).hexdigest()}}
    (folder / byte_model.RECORD).write_text(json.dumps(record))


def test_what_is_shipped_is_small_and_whole():
    folder = byte_model.find_folder()
    assert (folder / byte_model.CHECKPOINT).stat().st_size < 1_500_000
    model = byte_model.load()
    parameters = sum(p.numel() for p in model.parameters())
    assert parameters == pytest.approx(313_000, rel=2e-3)  # what the docstring says
    result = byte_model.evaluate(model, byte_model.prose()[:20])
    assert 2 < result.perplexity < 12  # 257 untrained; a unigram model of English has about 20


def test_our_own_sentences_are_lines_of_text():
    lines = byte_model.prose()
    assert len(lines) > 100
    assert all(len(line) > 10 and line[0].isupper() and line[-1] in ".?!" for line in lines)


@pytest.fixture
def copy(tmp_path):
    return shutil.copytree(byte_model.find_folder(), tmp_path / "byte_lm")


def test_damaged_files_are_named(copy):
    path = copy / byte_model.CHECKPOINT
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(
        ValueError, match=r"byte_gru.npz \([\d,]+ bytes\) is damaged or was changed: .* check data/byte_lm"
    ):
        byte_model.load(copy)
    (copy / byte_model.PROSE).write_text("Other words.\n")
    with pytest.raises(ValueError, match=r"prose.txt \(13 bytes\) is damaged or was changed"):
        byte_model.prose(copy)
    path.unlink()
    with pytest.raises(FileNotFoundError, match=r"byte_gru.npz is missing; check data/byte_lm out again"):
        byte_model.load(copy)
    (copy / byte_model.RECORD).write_text("{}")
    with pytest.raises(ValueError, match=r"record.json is damaged"):
        byte_model.load(copy)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"texts": []}, r"texts must be a sequence of at least one str, got \[\]"),
        ({"texts": "abc"}, r"texts must be a sequence of at least one str, got 'abc'"),
        ({"side": "both"}, r"side must be 'right' or 'left' .* got 'both' and 0"),
        ({"padding": -1}, r"padding at least 0, got 'right' and -1"),
    ],
)
def test_bad_batches_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        byte_model.encode(**{"texts": ["a"]} | options)


def test_an_untrained_model_is_about_as_good_as_uniform(model):
    result = byte_model.evaluate(model, TEXTS)
    assert result.nats_per_token == pytest.approx(math.log(VOCABULARY), rel=0.05)
