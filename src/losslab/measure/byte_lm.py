"""A byte-level GRU, trained on docstrings in under a minute, beside baselines that only count bytes.

``python -m losslab.measure.byte_lm`` trains the model that is shipped (seed 0) and writes ``data/byte_lm``;
``losslab measure byte-lm`` trains it with every seed, and evaluates those and the shipped one.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch.optim.lr_scheduler import OneCycleLR

from losslab.corpora.files import replace_file
from losslab.language import Evaluator, Result, byte_model, chunked_token_nll
from losslab.language.byte_model import START, TOKENIZER, VOCABULARY, ByteModel
from losslab.measure.record import Measurement, Progress, Row, Value, surroundings

SEEDS = (0, 1, 2)
STEPS, BATCH, WINDOW, RATE = 240, 48, 96, 8e-3
#: Texts of apidocs' test split that are scored, drawn once, and how many characters of each.
HELD_OUT, LONGEST, DRAWN_BY = 100, 1500, 0
SMOOTHING = 0.1  # added to each count of the baselines
Bytes = NDArray[np.int64]


def stream(texts: Sequence[str]) -> Bytes:
    """Texts one after another, a start token before each, (N,)."""
    return np.concatenate([[START, *text.encode("utf-8", "surrogatepass")] for text in texts]).astype(np.int64)


def train(
    tokens: Bytes, seed: int, *, steps: int = STEPS, batch: int = BATCH, progress: Progress = lambda _: None
) -> ByteModel:
    """Train on windows drawn from a stream of tokens, each from an empty state.

    Parameters
    ----------
    tokens
        (N,) as `stream` gives.
    seed
        Of the weights' start and of the windows.
    """
    torch.manual_seed(seed)
    windows = torch.Generator().manual_seed(seed)
    data, model = torch.from_numpy(tokens), ByteModel()
    optimiser = torch.optim.Adam(model.parameters(), lr=RATE)
    schedule = OneCycleLR(optimiser, RATE, total_steps=steps)
    for step in range(steps):
        starts = torch.randint(len(data) - WINDOW, (batch, 1), generator=windows)
        ids = data[starts + torch.arange(WINDOW + 1)]
        optimiser.zero_grad()
        loss = chunked_token_nll(model.hidden(ids), model.output.weight, ids, bias=model.output.bias)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        if step % 50 == 49:
            progress(f"seed {seed}, step {step + 1} of {steps}: {float(loss.detach()):.3f} nats a byte")
    return model.eval()


def as_shipped(model: ByteModel) -> ByteModel:
    """Return the model with its weights rounded to float16, as the checkpoint stores them."""
    rounded = ByteModel()
    rounded.load_state_dict({name: weight.half().float() for name, weight in model.state_dict().items()})
    return rounded.eval()


def unigram(tokens: Bytes) -> NDArray[np.float64]:
    """Log-probability of each token after each, (V, V), that does not depend on the one before."""
    counts = np.bincount(tokens, minlength=VOCABULARY) + SMOOTHING
    return np.tile(np.log(counts / counts.sum()), (VOCABULARY, 1))


def bigram(tokens: Bytes) -> NDArray[np.float64]:
    """Log-probability of each token after each, (V, V), by how often it came there; the unigram where nothing did."""
    single = np.exp(unigram(tokens)[0])
    pairs = np.bincount(tokens[:-1] * VOCABULARY + tokens[1:], minlength=VOCABULARY**2)
    counts = pairs.reshape(VOCABULARY, VOCABULARY) + SMOOTHING * VOCABULARY * single
    logs: NDArray[np.float64] = np.log(counts / counts.sum(1, keepdims=True))
    return logs


def evaluate_table(table: NDArray[np.float64], texts: Sequence[str]) -> Result:
    """Perplexity of texts under log-probabilities of each token after each, (V, V)."""
    found, scores = Evaluator(tokenizer=TOKENIZER), torch.from_numpy(table)
    for text in texts:
        ids, mask = byte_model.encode([text])
        found.add(scores[ids], ids, mask, texts=[text])
    return found.result()


@cache
def texts_of(split: str) -> tuple[str, ...]:
    """Summary and body of apidocs' pairs of one split, as they are in the libraries installed here."""
    from losslab.corpora import apidocs

    corpus = apidocs.load()
    pairs = [corpus.text(int(i)) for i in corpus.rows(cast(apidocs.Split, split))]
    return tuple("\n\n".join(pair) for pair in pairs if pair is not None)


def held_out() -> dict[str, list[str]]:
    """Return the texts that are scored, by name: docstrings that were not trained on, and our own sentences."""
    found = texts_of("test")
    chosen = np.sort(np.random.default_rng(DRAWN_BY).permutation(len(found))[:HELD_OUT])
    return {"apidocs test": [found[i][:LONGEST] for i in chosen], "own prose": byte_model.prose()}


NUMBERS: Mapping[str, Callable[[Result], float]] = {
    "nats per byte": lambda r: r.nats_per_token,
    "bits per byte": lambda r: r.bits_per_byte,
    "perplexity per byte": lambda r: r.perplexity,
    "bits per character": lambda r: r.bits_per_character,
    "perplexity per character": lambda r: 2**r.bits_per_character,
    "bits per word": lambda r: r.bits_per_word,
    "perplexity per word": lambda r: r.word_perplexity,
    "mean of texts' perplexities": lambda r: r.mean_of_texts,
    "bytes": lambda r: float(r.tokens),
    "characters": lambda r: float(r.n_characters or 0),
    "words": lambda r: float(r.n_words or 0),
    "texts": lambda r: float(r.texts),
}


def collect(progress: Progress) -> Iterator[Row]:
    """Every model on every set of texts."""
    progress("docstrings of the training split")
    tokens, sets = stream(texts_of("train")), held_out()
    for name, table in (("unigram", unigram(tokens)), ("bigram", bigram(tokens))):
        yield from _rows(name, None, sets, lambda texts, table=table: evaluate_table(table, texts))  # type: ignore[misc]
    uniform = np.zeros((VOCABULARY, VOCABULARY))
    yield from _rows("uniform", None, sets, lambda texts: evaluate_table(uniform, texts))
    for seed in SEEDS:
        model, seconds = trained(seed, progress)
        yield _row("GRU", seed, "apidocs train", "seconds to train", seconds)
        rounded = as_shipped(model)
        yield from _rows("GRU", seed, sets, lambda texts, model=rounded: byte_model.evaluate(model, texts))  # type: ignore[misc]
    yield _row("GRU", None, "apidocs train", "bytes", float((tokens != START).sum()))
    yield _row("GRU", None, "apidocs train", "parameters", float(sum(p.numel() for p in model.parameters())))
    shipped = byte_model.load()
    yield from _rows("GRU, shipped", 0, sets, lambda texts: byte_model.evaluate(shipped, texts))


@cache
def trained(seed: int, progress: Progress) -> tuple[ByteModel, float]:
    """Train with one seed, and say how many seconds that took."""
    tokens, start = stream(texts_of("train")), time.perf_counter()
    model = train(tokens, seed, progress=progress)
    return model, time.perf_counter() - start


def ship(folder: Path, progress: Progress) -> None:
    """Train with seed 0 and write checkpoint and record into ``folder``, beside the prose that is there."""
    model, seconds = trained(SEEDS[0], progress)
    checkpoint = byte_model.as_checkpoint(model)
    contents = {byte_model.CHECKPOINT: checkpoint, byte_model.PROSE: (folder / byte_model.PROSE).read_bytes()}
    record = {
        "sha256": {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()},
        "settings": {**MEASUREMENT.settings, "seed": SEEDS[0]},
        "training bytes": int((stream(texts_of("train")) != START).sum()),
        "seconds": round(seconds, 1),
        **surroundings(),
    }
    replace_file(folder / byte_model.CHECKPOINT, checkpoint)
    replace_file(folder / byte_model.RECORD, (json.dumps(record, indent=2, ensure_ascii=False) + "\n").encode())


def _rows(
    model: str, seed: int | None, sets: Mapping[str, list[str]], score: Callable[[list[str]], Result]
) -> Iterator[Row]:
    for name, texts in sets.items():
        result = score(texts)
        assert math.isfinite(result.nll)
        for metric, number in NUMBERS.items():
            yield _row(model, seed, name, metric, number(result))


def _row(model: str, seed: int | None, texts: str, metric: str, value: Value) -> Row:
    return {"model": model, "seed": seed, "texts": texts, "metric": metric, "value": value}


MEASUREMENT = Measurement(
    name="byte-lm",
    title="A byte-level GRU trained on docstrings: perplexity per byte, character and word, beside counting baselines",
    columns=("model", "seed", "texts", "metric", "value"),
    collect=collect,
    settings={
        "seeds": list(SEEDS),
        "steps": STEPS,
        "batch": BATCH,
        "window": WINDOW,
        "rate": RATE,
        "embedding": byte_model.EMBEDDING,
        "hidden": byte_model.HIDDEN,
        "held out": HELD_OUT,
        "longest": LONGEST,
        "smoothing": SMOOTHING,
    },
)

if __name__ == "__main__":
    ship(byte_model.find_folder(), lambda line: print(line, flush=True))
