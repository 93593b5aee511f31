"""One model, one set of texts, many perplexities: what libraries, and mistakes with them, make of the same logits.

The shipped byte-level model scores a few of this project's own sentences in one padded batch. Every row names what was
called, on which labels, what came out, and why it is not the right value, if it is not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from losslab.language import Evaluator, Result, byte_model, token_nll
from losslab.language.byte_model import START, TOKENIZER, VOCABULARY, ByteModel
from losslab.measure.record import Measurement, Progress, Row

TEXTS, IGNORED = 8, -100
#: Nats by which one byte's logit is lowered for the rows about underflow; float32 has no probability below exp(-104).
GAP = 200.0
RIGHT = "the right value"


@dataclass(frozen=True)
class Batch:
    """Texts as a model sees them, and what it says: ids, mask (B, T) and logits (B, T, V), all rows of one batch."""

    ids: Tensor
    mask: Tensor
    logits: Tensor

    @property
    def labels(self) -> Tensor:
        """Ids, with the ignore index at padding."""
        return self.ids.masked_fill(~self.mask, IGNORED)

    def shifted(self, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Logits and labels such that position t goes with position t."""
        return self.logits[:, :-1], labels[:, 1:]

    @property
    def ahead(self) -> Tensor:
        """Labels shifted beforehand, as wide as the logits: the last position predicts nothing."""
        return functional.pad(self.labels[:, 1:], (0, 1), value=IGNORED)


def score(model: ByteModel, texts: list[str], *, side: str = "right", padding: int = 0, skip: bool = True) -> Batch:
    """Run the model over texts in one batch; with ``skip`` it passes over padding, as an attention mask makes it."""
    ids, mask = byte_model.encode(texts, side=side, padding=padding)
    with torch.inference_mode():
        logits = model(ids, mask if skip else None)
    return Batch(ids, mask, logits.clone())


def reference(batch: Batch) -> Result:
    """Perplexity of a batch's texts, each alone and unpadded."""
    found = Evaluator(tokenizer=TOKENIZER)
    for logits, ids, mask in zip(batch.logits, batch.ids, batch.mask, strict=True):
        found.add(logits[None, mask], ids[None, mask])
    return found.result()


def with_one_unlikely_byte(batch: Batch) -> Batch:
    """Lower the logit of the first text's second byte by `GAP`."""
    logits = batch.logits.clone()
    logits[0, 1, batch.ids[0, 2]] -= GAP
    return Batch(batch.ids, batch.mask, logits)


def torchmetrics_perplexity(logits: Tensor, labels: Tensor, ignore_index: int | None = IGNORED) -> float:
    """Perplexity as the class of torchmetrics gives it."""
    from torchmetrics.text import Perplexity

    metric = Perplexity(ignore_index=ignore_index)
    metric.update(logits, labels)
    return float(metric.compute())


def transformers_loss(logits: Tensor, labels: Tensor) -> float:
    """Loss as the function behind every causal model of transformers gives it."""
    from transformers.loss.loss_utils import ForCausalLMLoss

    return float(ForCausalLMLoss(logits, labels, VOCABULARY))


def cross_entropy(logits: Tensor, labels: Tensor, **options: str) -> Tensor:
    """PyTorch's, positions flattened."""
    return functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORED, **options)  # type: ignore[arg-type]


Way = tuple[str, str, Callable[[], float], str]


def ways(model: ByteModel, texts: list[str]) -> Iterator[Way]:
    """Library, how it was called, the perplexity, and why it differs from the right value ("" = it does not)."""
    batch = score(model, texts)
    wider, left = score(model, texts, padding=100), score(model, texts, side="left", padding=10)
    padded = batch.ids  # what stands at padding is the start token, a token like any other
    logits, labels = batch.shifted(batch.labels)
    one = with_one_unlikely_byte(batch)
    targets = int((labels != IGNORED).sum())

    def evaluator(of: Batch) -> float:
        found = Evaluator(tokenizer=TOKENIZER)
        found.add(of.logits, of.ids, of.mask)
        return found.result().perplexity

    def evaluator_by_twos() -> float:
        found = Evaluator(tokenizer=TOKENIZER)
        for start in range(0, len(texts), 2):
            some = score(model, texts[start : start + 2], padding=start)
            found.add(some.logits, some.ids, some.mask)
        return found.result().perplexity

    def each_text(combine: Callable[[Tensor], Tensor]) -> float:
        losses = [cross_entropy(logits[i : i + 1], labels[i : i + 1]) for i in range(len(texts))]
        return float(combine(torch.stack(losses)))

    def total() -> float:
        return float(cross_entropy(logits, labels, reduction="sum"))

    ours = "losslab"
    yield ours, "Evaluator, each text alone", lambda: reference(batch).perplexity, ""
    yield ours, "Evaluator, the padded batch and its mask", lambda: evaluator(batch), ""
    yield ours, "Evaluator, padded by 100 more", lambda: evaluator(wider), ""
    yield ours, "Evaluator, padded on the left", lambda: evaluator(left), ""
    yield ours, "Evaluator, batches of two", evaluator_by_twos, ""
    yield ours, "exp(token_nll), mask", lambda: math.exp(token_nll(batch.logits, batch.ids, mask=batch.mask)), ""
    yield ours, "exp(token_nll), labels -100 at padding", lambda: math.exp(token_nll(batch.logits, batch.labels)), ""
    yield ours, "one byte less likely by 200 nats", lambda: evaluator(one), "other logits: one byte costs 200 nats more"

    peer = "transformers ForCausalLMLoss"
    by = "exp, labels = ids with -100 at padding"
    yield peer, by, lambda: math.exp(transformers_loss(batch.logits, batch.labels)), ""
    yield (
        peer,
        "exp, labels = ids, padding kept",
        lambda: math.exp(transformers_loss(batch.logits, padded)),
        "padding is scored: in the numerator and the denominator",
    )
    yield (
        peer,
        "the same, padded by 100 more",
        lambda: math.exp(transformers_loss(wider.logits, wider.ids)),
        "the same; the value moves with the padding",
    )
    yield (
        peer,
        "exp, labels shifted beforehand",
        lambda: math.exp(transformers_loss(batch.logits, batch.ahead)),
        "shifted twice: asked for the byte after the next",
    )
    yield (
        peer,
        "exp, padded on the left, -100 at padding",
        lambda: math.exp(transformers_loss(left.logits, left.labels)),
        "the start token of each text is scored too, predicted from padding",
    )
    yield (
        peer,
        "exp of the mean loss of single texts",
        lambda: math.exp(
            sum(transformers_loss(batch.logits[i : i + 1], batch.labels[i : i + 1]) for i in range(len(texts)))
            / len(texts)
        ),
        "a mean of means: a byte of a short text weighs more",
    )
    yield (
        peer,
        "exp, one byte less likely by 200 nats",
        lambda: math.exp(transformers_loss(one.logits, one.labels)),
        ("other logits: as losslab on them"),
    )

    peer = "torchmetrics Perplexity"
    yield peer, "shifted, ignore_index=-100", lambda: torchmetrics_perplexity(logits, labels), ""
    yield (
        peer,
        "shifted, -100 at padding, no ignore_index",
        lambda: torchmetrics_perplexity(logits, labels, None),
        "-100 is an index from the end: padding is scored as token 157, with no error",
    )
    yield (
        peer,
        "shifted, padding kept, no ignore_index",
        lambda: torchmetrics_perplexity(logits, padded[:, 1:], None),
        "padding is scored: in the numerator and the denominator",
    )
    yield (
        peer,
        "shifted, padding kept, ignore_index = the padding's id",
        lambda: torchmetrics_perplexity(logits, padded[:, 1:], START),
        "",
    )
    yield (
        peer,
        "not shifted, ignore_index=-100",
        lambda: torchmetrics_perplexity(batch.logits, batch.labels),
        "it does not shift: asked for the byte that it is reading",
    )
    yield (
        peer,
        "shifted, given probabilities",
        lambda: torchmetrics_perplexity(logits.softmax(-1), labels),
        "softmax twice: all bytes look almost alike",
    )
    yield (
        peer,
        "shifted, one byte less likely by 200 nats",
        lambda: torchmetrics_perplexity(*one.shifted(one.labels)),
        "softmax, then the logarithm: exp(-200) is 0 in float32",
    )

    peer = "F.cross_entropy"
    yield peer, "exp, shifted, -100 at padding", lambda: math.exp(cross_entropy(logits, labels)), ""
    yield (
        peer,
        "exp, not shifted",
        lambda: math.exp(cross_entropy(batch.logits, batch.labels)),
        "asked for the byte that it is reading",
    )
    yield (
        peer,
        "exp(sum / all positions)",
        lambda: math.exp(total() / labels.numel()),
        "padding in the denominator alone: it flatters",
    )
    yield (
        peer,
        "exp of the mean of texts' losses",
        lambda: math.exp(each_text(torch.mean)),
        "a mean of means: a byte of a short text weighs more",
    )
    yield (
        peer,
        "mean of texts' perplexities",
        lambda: each_text(lambda losses: losses.exp().mean()),
        "a mean of perplexities: a short text counts as much as a long one",
    )
    yield (
        peer,
        "2 ** nats",
        lambda: 2 ** (total() / targets),
        "the wrong base: nats are not bits",
    )
    yield (
        peer,
        "exp(bits)",
        lambda: math.exp(total() / targets / math.log(2)),
        "the wrong base: bits are not nats",
    )
    yield (
        peer,
        "exp, shifted, on softmax(logits)",
        lambda: math.exp(cross_entropy(logits.softmax(-1), labels)),
        "softmax twice: all bytes look almost alike",
    )


def measure_ways(model: ByteModel, texts: list[str], progress: Progress = lambda _: None) -> Iterator[Row]:
    """Every way's perplexity, and its ratio to the right one."""
    right = reference(score(model, texts)).perplexity
    for library, call, compute, why in ways(model, texts):
        progress(f"{library}: {call}")
        value = compute()
        yield {
            "library": library,
            "call": call,
            "perplexity": value,
            "over the right one": value / right,
            "why": why or RIGHT,
        }


def collect(progress: Progress) -> Iterator[Row]:
    """Some of our own sentences, under the shipped model."""
    yield from measure_ways(byte_model.load(), byte_model.prose()[:TEXTS], progress)


MEASUREMENT = Measurement(
    name="perplexity-peers",
    title="The same logits through losslab, transformers, torchmetrics and cross-entropy, right and with mistakes",
    columns=("library", "call", "perplexity", "over the right one", "why"),
    collect=collect,
    settings={"texts": TEXTS, "gap": GAP},
)
