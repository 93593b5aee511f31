"""A perplexity with all that it depends on: what was counted, in which unit, under which tokenizer and base."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from html import escape
from typing import Literal

from losslab.language import units

Unit = Literal["token", "byte", "character", "word"]
#: Units of text, which mean the same under any tokenizer, and where their count stands.
TEXT_UNITS = {"byte": "n_bytes", "character": "n_characters", "word": "n_words"}
STYLE = (
    ".ll-result{border-collapse:collapse;text-align:start}.ll-result caption{text-align:start}"
    ".ll-result :is(th,td){text-align:start;vertical-align:top;padding:.25em .6em;border-top:1px solid currentColor}"
)
NAMED = 5  # texts without a target that are shown by name


@dataclass(frozen=True)
class Result:
    """What an `Evaluator` found on a corpus.

    Two results are ordered by their mean a token (``a < b``), and `compare` gives their difference; both refuse results
    of different tokenizers, vocabularies or bases. ``a + b`` is the result of both corpora together.

    Attributes
    ----------
    nll
        Sum over all counted tokens, in nats.
    tokens
        Tokens counted: the denominator.
    texts
        Texts with at least one of them.
    without_target
        Names of the texts that have none: they are in no sum, no count and no mean.
    n_bytes, n_characters, n_words
        Of the texts with a target; None = not given.
    tokenizer
        What cut the texts into tokens.
    vocabulary
        How many tokens the model chooses from.
    base
        Of the logarithm in `per_token`: e for nats, 2 for bits. Nothing else depends on it.
    text_nll, text_perplexity
        Sums over the texts of each one's mean, and of its exponential.
    """

    nll: float
    tokens: int
    texts: int
    without_target: tuple[str, ...]
    n_bytes: int | None
    n_characters: int | None
    n_words: int | None
    tokenizer: str
    vocabulary: int
    base: float
    text_nll: float
    text_perplexity: float

    @property
    def nats_per_token(self) -> float:
        """Mean over tokens, in nats. It stays finite where the perplexity is too large for a float."""
        return self.nll / self.tokens

    @property
    def per_token(self) -> float:
        """Mean over tokens, in the result's own base."""
        return self.nats_per_token if self.base == math.e else self.nats_per_token / math.log(self.base)

    @property
    def perplexity(self) -> float:
        """Of a token: exp of the mean over all tokens, each counted alike whatever text it is in. The corpus's value.

        Above a mean of 709.78 nats it is inf.
        """
        return units.perplexity(self)

    @property
    def bits_per_token(self) -> float:
        """Mean over tokens, in bits."""
        return units.bits_per_token(self)

    @property
    def bits_per_byte(self) -> float:
        """Total in bits over the bytes of the texts. ValueError if these were not given."""
        return units.bits_per_byte(self)

    @property
    def bits_per_character(self) -> float:
        """Total in bits over the characters of the texts. ValueError if these were not given."""
        return units.bits_per_character(self)

    @property
    def bits_per_word(self) -> float:
        """Total in bits over the words of the texts. ValueError if these were not given."""
        return units.bits_per_word(self)

    @property
    def word_perplexity(self) -> float:
        """Of a word: exp of the total over the words of the texts. ValueError if these were not given."""
        return units.word_perplexity(self)

    @property
    def mean_of_texts(self) -> float:
        """Mean over texts of each text's own perplexity: a short text counts as much as a long one.

        Another number than `perplexity`, and what some libraries report under that name.
        """
        return self.text_perplexity / self.texts

    @property
    def mean_text_nll(self) -> float:
        """Mean over texts of each text's mean a token, in nats: a short text counts as much as a long one."""
        return self.text_nll / self.texts

    @property
    def unit(self) -> str:
        """Of `per_token`, in words."""
        return f"{base_name(self.base)} per token"

    def in_base(self, base: float) -> Result:
        """Return the same result with `per_token` in another base; no other number changes."""
        return replace(self, base=units.check_base(base))

    def per(self, unit: Unit) -> float:
        """Bits per token, byte, character or word.

        Raises
        ------
        ValueError
            There is no such unit, or its count was not given.
        """
        if unit == "token":
            return self.bits_per_token
        if unit not in TEXT_UNITS:
            raise ValueError(f"a unit must be token, byte, character or word, got {unit!r}")
        return {
            "byte": units.bits_per_byte,
            "character": units.bits_per_character,
            "word": units.bits_per_word,
        }[unit](self)

    def __add__(self, other: Result) -> Result:
        """Results of two workers, on different texts under the same conditions, as one."""
        if not isinstance(other, Result):
            return NotImplemented
        _refuse_different(self, other, "be added", "evaluate both with one model and tokenizer")
        return replace(
            self,
            nll=self.nll + other.nll,
            tokens=self.tokens + other.tokens,
            texts=self.texts + other.texts,
            without_target=self.without_target + other.without_target,
            text_nll=self.text_nll + other.text_nll,
            text_perplexity=self.text_perplexity + other.text_perplexity,
            n_bytes=_sum("n_bytes", self.n_bytes, other.n_bytes),
            n_characters=_sum("n_characters", self.n_characters, other.n_characters),
            n_words=_sum("n_words", self.n_words, other.n_words),
        )

    def __lt__(self, other: Result) -> bool:
        """Whether this one is the smaller, and so the better, a token."""
        return self._difference(other) < 0

    def __gt__(self, other: Result) -> bool:
        """Whether this one is the larger, and so the worse, a token."""
        return self._difference(other) > 0

    def __le__(self, other: Result) -> bool:
        """Whether this one is not the larger a token."""
        return self._difference(other) <= 0

    def __ge__(self, other: Result) -> bool:
        """Whether this one is not the smaller a token."""
        return self._difference(other) >= 0

    def _difference(self, other: object) -> float:
        if not isinstance(other, Result):
            raise TypeError(f"a Result is compared with a Result, got {type(other).__name__}")
        return compare(self, other).difference

    def __str__(self) -> str:
        """For a reader: the number, then everything that it depends on."""
        left_out = f"; {self._left_out()}" if self.without_target else ""
        return (
            f"perplexity {self.perplexity:.4g} a token ({self.per_token:.4g} {base_name(self.base)}), "
            f"{self.tokens:,} tokens of {_number(self.texts, 'text')}{left_out}; "
            f"tokenizer {self.tokenizer}, vocabulary {self.vocabulary:,}"
            + (f"; {self.bits_per_byte:.4g} bits per byte of {self.n_bytes:,}" if self.n_bytes else "")
        )

    def _left_out(self) -> str:
        """Say which texts have no target."""
        names = ", ".join(self.without_target[:NAMED])
        more = f" and {len(self.without_target) - NAMED} more" if len(self.without_target) > NAMED else ""
        return f"{_number(len(self.without_target), 'text')} without a target left out: {names}{more}"

    def _repr_html_(self) -> str:
        rows = [
            ("Perplexity per token", f"{self.perplexity:.4g}", f"{self.tokens:,} tokens"),
            ("Mean per token", f"{self.per_token:.4g} {base_name(self.base)}", "each token counts alike"),
        ]
        for unit, name in TEXT_UNITS.items():
            count = getattr(self, name)
            if count:
                rows.append((f"Bits per {unit}", f"{self.per(unit):.4g}", f"{count:,} {unit}s"))  # type: ignore[arg-type]
        rows.append(("Mean of texts' perplexities", f"{self.mean_of_texts:.4g}", _number(self.texts, "text")))
        if self.without_target:
            rows.append(("Left out", _number(len(self.without_target), "text"), self._left_out()))
        cells = "".join(
            f'<tr><th scope="row">{escape(head)}</th><td>{escape(value)}</td><td>{escape(of)}</td></tr>'
            for head, value, of in rows
        )
        return (
            f'<style>{STYLE}</style><table class="ll-result"><caption>Tokenizer <code>{escape(self.tokenizer)}</code>, '
            f"vocabulary {self.vocabulary:,}</caption><thead><tr>"
            + "".join(f'<th scope="col">{head}</th>' for head in ("Number", "Value", "Over"))
            + f"</tr></thead><tbody>{cells}</tbody></table>"
        )


@dataclass(frozen=True)
class Comparison:
    """Two results in one unit.

    Attributes
    ----------
    unit
        What both are divided by.
    ours, theirs
        Bits a unit.
    """

    unit: Unit
    ours: float
    theirs: float

    @property
    def difference(self) -> float:
        """``ours - theirs`` in bits a unit; below 0, ours is better. 0 where both are inf."""
        return 0.0 if self.ours == self.theirs else self.ours - self.theirs

    @property
    def perplexity_ratio(self) -> float:
        """Perplexity a unit, ours over theirs: below 1, ours is better."""
        try:
            return math.pow(2, self.difference)
        except OverflowError:
            return math.inf

    def __str__(self) -> str:
        """For a reader."""
        return f"{self.ours:.4g} against {self.theirs:.4g} bits per {self.unit}: {self.difference:+.4g}"


def compare(ours: Result, theirs: Result, *, per: Unit = "token") -> Comparison:
    """Set two results side by side, if that means anything.

    Parameters
    ----------
    ours, theirs
        What two evaluations gave.
    per
        "token" needs the same tokenizer, vocabulary and base. "byte", "character" and "word" hold under any of these,
        but need the same text: the same number of bytes (characters, words).

    Raises
    ------
    ValueError
        They cannot be compared; says why, and what would do instead.
    """
    for result in (ours, theirs):
        if not isinstance(result, Result):
            raise ValueError(f"results to compare must be Results, got {type(result).__name__}")
    if per == "token":
        offer = (
            "a token is not the same thing for both; bits per byte are comparable: compare(ours, theirs, per='byte')"
        )
        if ours.n_bytes is None or theirs.n_bytes is None:
            offer += ", once both know their bytes, from Evaluator.add(texts=…)"
        if (ours.tokenizer, ours.vocabulary) == (theirs.tokenizer, theirs.vocabulary):
            offer = f"convert one with in_base({theirs.base:.6g}), or compare bits per byte"
        _refuse_different(ours, theirs, "be compared per token", offer)
    elif per in TEXT_UNITS:
        counts = [getattr(result, TEXT_UNITS[per]) for result in (ours, theirs)]
        if None not in counts and counts[0] != counts[1]:
            raise ValueError(
                f"results over {counts[0]:,} and {counts[1]:,} {per}s are not of the same text, so bits per {per} "
                "cannot be compared; evaluate both on the same texts (a first token that nothing predicts is in "
                "neither: put a start token before it, or leave its text out of both)"
            )
    return Comparison(per, ours.per(per), theirs.per(per))


def base_name(base: float) -> str:
    """What a logarithm's unit is called."""
    return {math.e: "nats", 2.0: "bits", 10.0: "decimal digits"}.get(base, f"logarithms to base {base:g}")


def _refuse_different(ours: Result, theirs: Result, what: str, offer: str) -> None:
    reasons = []
    if ours.tokenizer != theirs.tokenizer:
        reasons.append(f"tokenizers {ours.tokenizer} and {theirs.tokenizer}")
    if ours.vocabulary != theirs.vocabulary:
        reasons.append(f"vocabularies of {ours.vocabulary:,} and {theirs.vocabulary:,} tokens")
    if ours.base != theirs.base:
        reasons.append(f"units, {ours.unit} and {theirs.unit}")
    if reasons:
        raise ValueError(f"results of different {'; '.join(reasons)} cannot {what}: {offer}")


def _sum(name: str, ours: int | None, theirs: int | None) -> int | None:
    if (ours is None) != (theirs is None):
        raise ValueError(f"one result knows {name} and the other does not; give both evaluators texts, or neither")
    return None if ours is None or theirs is None else ours + theirs


def _number(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")
