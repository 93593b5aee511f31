"""Long texts in windows: every token but the first is scored once, with enough before it."""

import pytest
import torch

from losslab.language import Evaluator, Window, windows


@pytest.mark.parametrize("tokens", [0, 1, 2, 3, 7, 8, 9, 20, 31])
@pytest.mark.parametrize(("context", "stride"), [(2, 1), (8, None), (8, 1), (8, 4), (5, 3)])
def test_every_token_once_with_enough_context(tokens, context, stride):
    found = list(windows(tokens, context=context, stride=stride))
    scored = [t for w in found for t in range(w.scored, w.stop)]
    assert scored == list(range(1, tokens))
    least = context - (context - 1 if stride is None else stride)
    for w in found:
        assert 0 <= w.start < w.scored < w.stop <= w.start + context
        assert w.scored - w.start >= min(least, w.scored)


def test_by_hand():
    assert list(windows(6, context=4, stride=2)) == [Window(0, 4, 1), Window(2, 6, 4)]
    assert list(windows(7, context=4)) == [Window(0, 4, 1), Window(3, 7, 4)]


def test_a_model_with_a_short_memory_scores_the_same_in_windows():
    """A bigram model needs one token before: in windows it gives the text's value, and its tokens."""
    table = torch.randn(5, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    ids = torch.randint(5, (23,), generator=torch.Generator().manual_seed(1))
    whole = Evaluator(tokenizer="digits")
    whole.add(table[ids][None], ids[None])
    parts = Evaluator(tokenizer="digits")
    for window in windows(23, context=6, stride=3):
        some = ids[window.start : window.stop]
        labels = some.clone()
        labels[: window.scored - window.start] = -100
        parts.add(table[some][None], labels[None], ids=["text"])
    assert parts.result().tokens == whole.result().tokens == 22
    assert parts.result().texts == 1
    assert parts.result().nll == pytest.approx(whole.result().nll, rel=1e-13)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"context": 1}, "context must be at least 2 tokens, one to read and one to predict, got 1"),
        ({"context": 4, "stride": 4}, "stride must lie from 1 to context - 1 = 3, got 4"),
        ({"context": 4, "stride": 0}, "stride must lie from 1 to context - 1 = 3, got 0"),
        ({"context": 4.5}, "context must be a whole number, got 4.5"),
        ({"context": 4, "stride": True}, "stride must be a whole number, got True"),
        ({"context": 4, "tokens": "9"}, "tokens must be a whole number, got '9'"),
        ({"context": None}, "context must be a whole number, got None"),
        ({"context": 4, "tokens": -1}, "tokens must not be negative, got -1"),
    ],
)
def test_bad_windows_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        windows(**{"tokens": 9} | options)  # at once, not when they are gone through
