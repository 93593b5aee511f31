"""Perplexity of a corpus that comes in batches: the same number however it is cut, ordered and padded."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import torch
from torch import Tensor

from losslab.language import units
from losslab.language._inputs import Targets, check_logits, read_targets, seen
from losslab.language.result import TEXT_UNITS, Result
from losslab.language.token_nll import each_nll

#: Logits that are held in float64 at once: 34 MB.
CELLS = 2**22
#: Values of a list of the wrong length that a message repeats.
SHOWN = 8


@dataclass
class _Text:
    """Sums of one text."""

    name: str
    nll: float = 0.0
    tokens: int = 0
    counts: tuple[int, ...] = (0, 0, 0)


class Evaluator:
    """Add batches in any split, order and padding; `result` is the corpus's value.

    Every token counts alike: sums and counts are kept, never means of batches. A token's value is computed in float64,
    from logits of any type, and so are all sums.

    Parameters
    ----------
    tokenizer
        Name of what cut the texts into tokens; travels with the number.
    vocabulary
        Tokens that the model chooses from; by default as many as the first logits have. It must be the same throughout.
    base
        Of the logarithm in ``result().per_token``: e for nats, 2 for bits.
    ignore_index
        Label that is not counted.

    Raises
    ------
    ValueError
        ``tokenizer`` is no name, ``vocabulary`` below 1 or ``base`` not above 1.
    """

    def __init__(
        self, *, tokenizer: str, vocabulary: int | None = None, base: float = math.e, ignore_index: int = -100
    ) -> None:
        if not isinstance(tokenizer, str) or not tokenizer.strip():
            raise ValueError(f"tokenizer must be a name, which then travels with the number, got {tokenizer!r}")
        if vocabulary is not None and (
            isinstance(vocabulary, bool) or not isinstance(vocabulary, int) or vocabulary < 1
        ):
            raise ValueError(f"vocabulary must be a whole number of at least 1, got {vocabulary!r}")
        self.tokenizer, self.vocabulary, self.ignore_index = tokenizer, vocabulary, ignore_index
        self.base = units.check_base(base)
        self._texts: dict[Hashable, _Text] = {}
        self._known: tuple[bool, ...] | None = None  # which of bytes, characters and words are given

    def add(
        self,
        logits: Tensor,  # (B, T, V)
        labels: Tensor,  # (B, T)
        mask: Tensor | None = None,  # (B, T) bool
        *,
        shift: bool = True,
        ids: Sequence[Hashable] | None = None,
        texts: Sequence[str] | None = None,
        n_bytes: Sequence[int] | None = None,
        n_characters: Sequence[int] | None = None,
        n_words: Sequence[int] | None = None,
    ) -> None:
        """Add a batch; or, if something is wrong with it, nothing.

        Parameters
        ----------
        logits, labels, mask, shift
            As for `losslab.language.token_nll`.
        ids
            One a row; rows with the same are parts of one text, in this batch or another. By default each row is a text
            of its own.
        texts
            One a row: what its counted tokens spell, from which bytes, characters and words are counted. Where nothing
            predicts a text's first token (no start token before it), leave that token's text out.
        n_bytes, n_characters, n_words
            One a row: those counts, instead of ``texts``. Given always or never.

        Raises
        ------
        ValueError
            As for `token_nll`, though a batch or text without a target is no error here: it is counted and named. And
            if the vocabulary is not that of earlier batches, or counts are missing, of another number than rows, or
            were not given before.
        """
        check_logits(logits)
        size, length, vocabulary = logits.shape
        if self.vocabulary is not None and vocabulary != self.vocabulary:
            raise ValueError(
                f"logits must be over the {self.vocabulary:,} tokens of the vocabulary so far, got {seen(logits)}; "
                "use an evaluator for each model"
            )
        targets = read_targets(
            (size, length),
            vocabulary,
            logits.device,
            labels,
            mask,
            shift=shift,
            ignore_index=self.ignore_index,
            validate=True,
        )
        nll = _in_float64(logits[:, :-1] if shift else logits, targets)
        self._take(nll, targets.counted.cpu(), ids, self._counts(size, texts, n_bytes, n_characters, n_words))
        self.vocabulary = vocabulary

    def add_nll(
        self,
        nll: Tensor,  # (B, S)
        counted: Tensor | None = None,  # (B, S) bool
        *,
        ids: Sequence[Hashable] | None = None,
        texts: Sequence[str] | None = None,
        n_bytes: Sequence[int] | None = None,
        n_characters: Sequence[int] | None = None,
        n_words: Sequence[int] | None = None,
    ) -> None:
        """Add targets whose negative log-likelihood in nats is known, as ``reduction="none"`` gives it.

        ``counted`` is True where a target counts, by default everywhere; what stands elsewhere does not matter. Needs
        ``Evaluator(vocabulary=…)``, as there are no logits to tell. Otherwise as `add`.
        """
        if self.vocabulary is None:
            raise ValueError("vocabulary is not known without logits; name it: Evaluator(vocabulary=…)")
        if not isinstance(nll, Tensor) or not nll.is_floating_point() or nll.ndim != 2 or not len(nll):
            raise ValueError(f"nll must be a floating-point tensor of shape (texts, targets), got {seen(nll)}")
        if counted is None:
            counted = torch.ones_like(nll, dtype=torch.bool)
        if not isinstance(counted, Tensor) or counted.dtype != torch.bool or counted.shape != nll.shape:
            raise ValueError(
                f"counted must be a bool tensor of shape {tuple(nll.shape)}, True = counts, got {seen(counted)}"
            )
        nll, counted = nll.detach().cpu().double(), counted.cpu()
        wrong = ((nll < 0) | nll.isnan()) & counted
        if wrong.any():
            text, place = wrong.nonzero()[0].tolist()
            raise ValueError(
                f"nll must be at least 0 where it counts, got {nll[text, place].item()} at [{text}, {place}]; of a "
                "log-likelihood, pass minus that, and where nothing is predicted set counted to False"
            )
        nll = nll.masked_fill(~counted, 0)
        self._take(nll, counted, ids, self._counts(len(nll), texts, n_bytes, n_characters, n_words))

    def merge(self, other: Evaluator) -> None:
        """Take over what another evaluator has added, under the same conditions; parts of one text by id join.

        Raises
        ------
        ValueError
            Tokenizer, vocabulary, base or ignore index differ, or one knows bytes and the other does not.
        """
        if not isinstance(other, Evaluator) or other is self:
            raise ValueError("an evaluator is merged with another Evaluator")
        for name in ("tokenizer", "vocabulary", "base", "ignore_index"):
            ours, theirs = getattr(self, name), getattr(other, name)
            if ours != theirs and not (name == "vocabulary" and None in (ours, theirs)):
                raise ValueError(f"evaluators of one {name} can be merged, got {ours!r} and {theirs!r}")
        if other._known is not None:
            self._agree(other._known)
        for key, text in other._texts.items():
            self._text(key if not isinstance(key, _Row) else _Row(), text.nll, text.tokens, text.counts)
        self.vocabulary = self.vocabulary or other.vocabulary

    def result(self) -> Result:
        """Of all that was added so far; more can be added afterwards.

        Raises
        ------
        ValueError
            No token is counted: there is no perplexity of nothing.
        """
        scored = [text for text in self._texts.values() if text.tokens]
        left_out = tuple(text.name for text in self._texts.values() if not text.tokens)
        if not scored or self.vocabulary is None:
            raise ValueError(
                f"no token is counted, of {len(self._texts)} texts added: a perplexity of nothing does not exist; "
                "texts of one token need a start token before them"
            )
        means = [text.nll / text.tokens for text in scored]
        known = self._known or (False, False, False)
        counts = [sum(text.counts[i] for text in scored) if known[i] else None for i in range(len(TEXT_UNITS))]
        return Result(
            nll=math.fsum(text.nll for text in scored),
            tokens=sum(text.tokens for text in scored),
            texts=len(scored),
            without_target=left_out,
            n_bytes=counts[0],
            n_characters=counts[1],
            n_words=counts[2],
            tokenizer=self.tokenizer,
            vocabulary=self.vocabulary,
            base=self.base,
            text_nll=math.fsum(means),
            text_perplexity=sum(units.perplexity(mean) for mean in means),
        )

    def _take(
        self,
        nll: Tensor,
        counted: Tensor,
        ids: Sequence[Hashable] | None,
        counts: tuple[tuple[bool, ...], list[tuple[int, ...]]],
    ) -> None:
        """Look at the last of what is given, and add the rows."""
        keys = None if ids is None else _one_a_row("ids", ids, len(nll), "one")
        for row, key in enumerate(keys or ()):
            try:
                hash(key)
            except TypeError:
                raise ValueError(f"ids[{row}] must be hashable, a name or a number, got {key!r}") from None
        known, numbers = counts
        self._agree(known)
        sums, tokens = nll.sum(1).tolist(), counted.sum(1).tolist()
        for row in range(len(nll)):
            self._text(_Row() if keys is None else keys[row], sums[row], tokens[row], numbers[row])

    def _text(self, key: Hashable, nll: float, tokens: int, counts: tuple[int, ...]) -> None:
        """Add a part of a text to it."""
        if key not in self._texts:
            name = f"text {len(self._texts) + 1}" if isinstance(key, _Row) else str(key)
            self._texts[key] = _Text(name)
        text = self._texts[key]
        text.nll += nll
        text.tokens += tokens
        text.counts = tuple(ours + more for ours, more in zip(text.counts, counts, strict=True))

    def _counts(
        self, size: int, texts: Sequence[str] | None, *given: Sequence[int] | None
    ) -> tuple[tuple[bool, ...], list[tuple[int, ...]]]:
        """Which counts are given, and each row's bytes, characters and words, 0 where not."""
        if texts is not None:
            if any(column is not None for column in given):
                raise ValueError("texts are counted here; give either texts or counts")
            spelt = _one_a_row("texts", texts, size, "one")
            for row, text in enumerate(spelt):
                if not isinstance(text, str):
                    raise ValueError(f"texts[{row}] must be a str, got {type(text).__name__}; decode bytes first")
            found = [units.count_text(text) for text in spelt]
            return (True,) * 3, [(f.n_bytes, f.n_characters, f.n_words) for f in found]
        columns: list[list[int]] = []
        for name, column in zip(TEXT_UNITS.values(), given, strict=True):
            values = [0] * size if column is None else _one_a_row(name, column, size, "one whole number")
            for row, value in enumerate(values):
                if isinstance(value, bool) or not isinstance(value, Integral) or value < 0:
                    raise ValueError(f"{name}[{row}] must be a whole number of at least 0, got {value!r}")
            columns.append([int(value) for value in values])
        return tuple(column is not None for column in given), list(zip(*columns, strict=True))

    def _agree(self, known: tuple[bool, ...]) -> None:
        """Refuse counts of some batches only: their sum would not be the corpus's."""
        if self._known is not None and self._known != known:
            names = [name for name, a, b in zip(TEXT_UNITS.values(), self._known, known, strict=True) if a != b]
            raise ValueError(f"{', '.join(names)} must be given with every batch or with none; some had it, some not")
        self._known = known


class _Row:
    """Key of a row that is a text of its own."""


def _one_a_row(name: str, given: Any, size: int, what: str) -> list[Any]:  # noqa: ANN401
    """What is given for each row, as a list; of tensors and arrays the plain numbers, as equal ones have one hash."""
    if isinstance(given, (str, bytes)):
        raise ValueError(f"{name} must hold {what} a row, {size}, got one {type(given).__name__}; write a list")
    values = given.tolist() if hasattr(given, "tolist") else given
    if not isinstance(values, Sequence):
        raise ValueError(f"{name} must hold {what} a row, {size}, got {given!r}; write a list")
    if len(values) != size:
        shown = f": {values!r}" if len(values) <= SHOWN else ""
        raise ValueError(f"{name} must hold {what} a row, {size}, got {len(values)}{shown}")
    return [value.item() if isinstance(value, Tensor) and not value.ndim else value for value in values]


def _in_float64(logits: Tensor, targets: Targets) -> Tensor:
    """Values of all targets, (B, S) float64 on the CPU; few logits at a time, moved from a device without float64."""
    logits = logits.detach()
    nll = torch.zeros(targets.counted.shape, dtype=torch.float64)
    if logits.device.type == "mps":
        logits, targets = logits.cpu(), Targets(targets.labels.cpu(), targets.counted.cpu(), targets.shift)
    for texts, places in _blocks(*logits.shape):
        block = targets.block(texts, places)
        nll[texts, places] = each_nll(logits[texts, places].double(), block, validate=True).cpu()
    return nll


def _blocks(texts: int, positions: int, vocabulary: int) -> Iterator[tuple[slice, slice]]:
    """Cut a batch into blocks of at most `CELLS` logits, or of one position where the vocabulary is larger."""
    if not positions:
        return
    width = max(1, min(positions, CELLS // vocabulary))
    height = max(1, CELLS // (positions * vocabulary)) if width == positions else 1
    for text in range(0, texts, height):
        for place in range(0, positions, width):
            yield slice(text, text + height), slice(place, place + width)
