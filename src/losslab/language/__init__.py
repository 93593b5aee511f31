"""What a language model's loss means: token losses, units, and a perplexity that batching cannot change."""

from losslab.language.chunked_token_nll import chunked_token_nll
from losslab.language.evaluator import Evaluator
from losslab.language.result import Comparison, Result, compare
from losslab.language.token_nll import token_nll
from losslab.language.units import (
    TextCounts,
    bits_per_byte,
    bits_per_character,
    bits_per_token,
    bits_per_word,
    count_text,
    nats_per_token,
    per_unit,
    perplexity,
    word_perplexity,
)
from losslab.language.windows import Window, windows

__all__ = [
    "Comparison",
    "Evaluator",
    "Result",
    "TextCounts",
    "Window",
    "bits_per_byte",
    "bits_per_character",
    "bits_per_token",
    "bits_per_word",
    "chunked_token_nll",
    "compare",
    "count_text",
    "nats_per_token",
    "per_unit",
    "perplexity",
    "token_nll",
    "windows",
    "word_perplexity",
]
