"""From a negative log-likelihood to the numbers that are reported: per token, byte, character or word, in any base.

A mean over tokens is turned into another unit by its denominator: the total stays, what it is divided by changes.
Functions take what `token_nll` gives, as a number or a tensor of one, or a `Result`, which brings its own counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Union

from torch import Tensor

if TYPE_CHECKING:
    from losslab.language.result import Result

Number = Union[float, Tensor, "Result"]
#: Mean NLL in nats from which the perplexity is above the largest float64: exp gives inf, the mean itself is kept.
LARGEST_MEAN = math.log(1.7976931348623157e308)


@dataclass(frozen=True)
class TextCounts:
    """How long texts are, in units that no tokenizer has a say in.

    Attributes
    ----------
    n_bytes
        Of their UTF-8 encoding.
    n_characters
        Unicode code points.
    n_words
        What stands between white space.
    """

    n_bytes: int
    n_characters: int
    n_words: int


def count_text(text: str) -> TextCounts:
    """Bytes (UTF-8), characters (code points) and words (between white space) of a text."""
    if not isinstance(text, str):
        raise ValueError(f"text must be a str, got {type(text).__name__}; decode bytes first")
    return TextCounts(len(text.encode("utf-8", "surrogatepass")), len(text), len(text.split()))


def perplexity(nll: Number, *, base: float = math.e) -> float:
    """Number of equally likely tokens that would leave one as uncertain: ``base ** nll``.

    Parameters
    ----------
    nll
        Mean negative log-likelihood a token, in nats; or a `Result`.
    base
        Of the logarithm that ``nll`` is in: 2 for bits.

    Returns
    -------
    float
        At least 1; V for a model that gives all V tokens the same score. Above a mean of 709.78 nats it is inf, which
        float64 has no larger number for; report the mean then.

    Raises
    ------
    ValueError
        ``nll`` is negative or NaN, or ``base`` is not above 1.
    """
    nats = _mean(nll, base)
    return math.exp(nats) if nats <= LARGEST_MEAN else math.inf


def bits_per_token(nll: Number, *, base: float = math.e) -> float:
    """Mean negative log-likelihood a token in bits: nats / ln 2. ``2 ** bits`` is the perplexity."""
    return _mean(nll, base) / math.log(2)


def nats_per_token(nll: Number, *, base: float = math.e) -> float:
    """Mean negative log-likelihood a token in nats, from one in another base (2: from bits)."""
    return _mean(nll, base)


def bits_per_byte(nll: Number, n_bytes: int | None = None, *, base: float = math.e) -> float:
    """Total negative log-likelihood in bits, over the bytes of the text: comparable between tokenizers.

    Parameters
    ----------
    nll
        **Sum** of the negative log-likelihood over the tokens of the text; or a `Result`, which knows its bytes.
    n_bytes
        UTF-8 bytes that the counted tokens spell. The first token of a text, if nothing predicts it, is not among them.
    base
        Of the logarithm that ``nll`` is in.

    Raises
    ------
    ValueError
        ``nll`` is negative or NaN, ``n_bytes`` below 1 or not known, or ``base`` not above 1.
    """
    return _total(nll, n_bytes, base, "n_bytes", lambda r: r.n_bytes) / math.log(2)


def bits_per_character(nll: Number, n_characters: int | None = None, *, base: float = math.e) -> float:
    """Total negative log-likelihood in bits, over the characters of the text; otherwise as `bits_per_byte`."""
    return _total(nll, n_characters, base, "n_characters", lambda r: r.n_characters) / math.log(2)


def bits_per_word(nll: Number, n_words: int | None = None, *, base: float = math.e) -> float:
    """Total negative log-likelihood in bits, over the words of the text; otherwise as `bits_per_byte`."""
    return _total(nll, n_words, base, "n_words", lambda r: r.n_words) / math.log(2)


def word_perplexity(nll: Number, n_words: int | None = None, *, base: float = math.e) -> float:
    """Perplexity a word: exp of the total negative log-likelihood over the words of the text, however cut into tokens.

    From a perplexity P a token, it is P ** (tokens / words).
    """
    nats = _total(nll, n_words, base, "n_words", lambda r: r.n_words)
    return math.exp(nats) if nats <= LARGEST_MEAN else math.inf


def per_unit(nll: Number, *, tokens: int, units: int, base: float = math.e) -> float:
    """Turn a mean a token into a mean a unit (byte, character, word), in nats: times tokens / units.

    ``exp`` of it is the perplexity a unit.
    """
    return _mean(nll, base) * _count(tokens, "tokens") / _count(units, "units")


def check_base(base: float) -> float:
    """Return the base of a logarithm as a float; refuse what is no finite number above 1."""
    if isinstance(base, bool) or not isinstance(base, Real) or not math.isfinite(base) or base <= 1:
        raise ValueError(f"base must be a finite number above 1, got {base!r}: e gives nats, 2 bits, 10 decimal digits")
    return float(base)


def check_nll(value: object, name: str = "nll") -> float:
    """Return a negative log-likelihood as a float; refuse what cannot be one."""
    if isinstance(value, Tensor):
        if value.numel() != 1:
            raise ValueError(f"{name} must be one number, got a tensor of shape {tuple(value.shape)}; reduce it")
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ValueError(f"{name} must be a number, got {value!r}")
    number = float(value)
    if math.isnan(number):
        raise ValueError(f"{name} must be a number, got nan: no token was counted, or logits were nan")
    if number < 0:
        raise ValueError(f"{name} must not be negative, got {number}; of a log-likelihood, pass minus that")
    return number


def _mean(nll: Number, base: float) -> float:
    """A mean a token, in nats."""
    check_base(base)
    from losslab.language.result import Result

    if isinstance(nll, Result):
        return nll.nats_per_token
    return check_nll(nll) * (1.0 if base == math.e else math.log(base))


def _total(nll: Number, count: int | None, base: float, name: str, known: Callable[[Result], int | None]) -> float:
    """Total over a count, in nats."""
    check_base(base)
    from losslab.language.result import Result

    if isinstance(nll, Result):
        count = known(nll) if count is None else count
        total = nll.nll
    else:
        total = check_nll(nll) * (1.0 if base == math.e else math.log(base))
    if count is None:
        what = "the result does not know its own: give texts to Evaluator.add" if isinstance(nll, Result) else "give it"
        raise ValueError(f"{name} is what the total is divided by; {what}")
    return total / _count(count, name)


def _count(count: object, name: str) -> int:
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise ValueError(f"{name} must be a whole number of at least 1, got {count!r}")
    return count
