"""One corpus, one number: whatever the batches; and what two numbers have to share before they are compared."""

import dataclasses
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

import exact_language as exact
from losslab.contracts.fake_device import FakeCuda
from losslab.device import pick_device
from losslab.language import Evaluator, Result, chunked_token_nll, compare, evaluator, perplexity, token_nll

DEVICE = pick_device()
VOCABULARY, IGNORED = 11, -100
LENGTHS = (1, 9, 2, 4, 14, 1, 3)  # two of them have nothing to predict


def corpus(dtype=torch.float64):
    """Logits (T, V) and labels (T,) of texts."""
    noise = torch.Generator().manual_seed(0)
    return [
        (
            (3 * torch.randn(n, VOCABULARY, generator=noise, dtype=torch.float64)).to(dtype),
            torch.randint(VOCABULARY, (n,), generator=noise),
        )
        for n in LENGTHS
    ]


def slow(dtype=torch.float64):
    """Mean NLL a token, and mean over texts of NLL and perplexity, in decimals."""
    each = []
    for logits, labels in corpus(dtype):
        places = exact.counted([labels.tolist()])
        each.append([float(exact.token(logits[t].double().tolist(), label)[0]) for _, t, label in places])
    flat = [value for text in each for value in text]
    means = [sum(text) / len(text) for text in each if text]
    return sum(flat) / len(flat), sum(means) / len(means), sum(map(math.exp, means)) / len(means)


def pad(texts, side, amount, filler, labelled):
    """A batch from texts, padded to the longest and ``amount`` more."""
    width = max(len(labels) for _, labels in texts) + amount
    logits = torch.full((len(texts), width, VOCABULARY), filler, dtype=texts[0][0].dtype)
    labels = torch.full((len(texts), width), IGNORED if labelled else 3)
    mask = torch.zeros(len(texts), width, dtype=torch.bool)
    for row, (some, ids) in enumerate(texts):
        places = slice(0, len(ids)) if side == "right" else slice(width - len(ids), width)
        logits[row, places], labels[row, places], mask[row, places] = some, ids, True
    return logits.to(DEVICE), labels.to(DEVICE), mask.to(DEVICE)


def evaluate(texts, **options):
    found = Evaluator(tokenizer="letters", **options)
    for logits, labels in texts:
        found.add(logits[None].to(DEVICE), labels[None].to(DEVICE))
    return found.result()


batches = st.lists(st.tuples(st.integers(1, 4), st.sampled_from(["left", "right"]), st.integers(0, 5)), min_size=7)


@settings(max_examples=60, deadline=None)
@given(
    order=st.permutations(range(len(LENGTHS))),
    batches=batches,
    labelled=st.booleans(),
    filler=st.sampled_from([0.0, math.nan, 50.0]),
    dtype=st.sampled_from([torch.float64, torch.float32, torch.bfloat16, torch.float16]),
    workers=st.integers(1, 3),
    cells=st.sampled_from([1, VOCABULARY * 3, VOCABULARY * 20, 2**22]),
)
def test_any_split_order_side_and_amount_of_padding(order, batches, labelled, filler, dtype, workers, cells):
    texts = corpus(dtype)
    found = [Evaluator(tokenizer="letters", vocabulary=VOCABULARY) for _ in range(workers)]
    start, default = 0, evaluator.CELLS
    evaluator.CELLS = cells
    try:
        for turn, (size, side, amount) in enumerate(batches):
            rows = order[start : start + size]
            if rows:
                logits, labels, mask = pad([texts[i] for i in rows], side, amount, filler, labelled)
                found[turn % workers].add(logits, labels, mask)
            start += size
    finally:
        evaluator.CELLS = default
    for other in found[1:]:
        found[0].merge(other)
    result = found[0].result()
    mean, mean_text, mean_of_texts = slow(dtype)
    assert result.nats_per_token == pytest.approx(mean, rel=1e-9)
    assert result.perplexity == pytest.approx(math.exp(mean), rel=1e-9)
    assert result.mean_text_nll == pytest.approx(mean_text, rel=1e-9)
    assert result.mean_of_texts == pytest.approx(mean_of_texts, rel=1e-9)
    assert (result.tokens, result.texts, len(result.without_target)) == (sum(LENGTHS) - 7, 5, 2)


def test_means_of_batches_would_be_caught():
    """The fault planted: two ways to split, averaged batch by batch, lie apart by far more than the bound above."""
    texts = [text for text in corpus() if len(text[1]) > 1]
    values = []
    for cut in (1, 3):
        means = [token_nll(*pad(part, "right", 0, 0.0, True)[:2]).item() for part in (texts[:cut], texts[cut:])]
        values.append(sum(means) / 2)
    assert abs(values[0] - values[1]) > 1e-3


def test_parts_of_a_text_join_under_its_id():
    (logits, labels), (other, ids) = corpus()[4], corpus()[1]
    whole = evaluate([(logits, labels), (other, ids)])
    found = Evaluator(tokenizer="letters")
    found.add(logits[None, :6], labels[None, :6], ids=["long"])
    found.add(other[None], ids[None], ids=["short"])
    later = Evaluator(tokenizer="letters")
    later.add(logits[None, 5:], labels[None, 5:], ids=["long"])  # one token of overlap: the last target predicts again
    found.merge(later)
    result = found.result()
    assert result.texts == 2
    assert result.tokens == whole.tokens
    assert result.mean_of_texts == pytest.approx(whole.mean_of_texts, rel=1e-12)
    assert result.perplexity == pytest.approx(whole.perplexity, rel=1e-12)


def test_texts_without_a_target_are_named_and_their_bytes_not_counted():
    found = Evaluator(tokenizer="letters")
    logits, labels = torch.zeros(3, 2, 4), torch.zeros(3, 2).long()
    mask = torch.tensor([[1, 1], [1, 0], [0, 0]]).bool()
    found.add(logits, labels, mask, ids=["a", "b", "c"], texts=["é b", "xyz", ""])
    found.add(logits[:1, :1], labels[:1, :1], ids=["d"], texts=["q"])
    result = found.result()
    assert result.without_target == ("b", "c", "d")
    assert (result.texts, result.tokens, result.n_bytes, result.n_characters, result.n_words) == (1, 1, 4, 3, 2)
    assert result.perplexity == pytest.approx(4)
    assert "3 texts without a target left out: b, c, d" in str(result)
    nothing = Evaluator(tokenizer="letters")
    nothing.add(logits[:1, :1], labels[:1, :1])
    with pytest.raises(ValueError, match="no token is counted, of 1 texts added: a perplexity of nothing"):
        nothing.result()
    found.add(logits[:, :1], labels[:, :1], texts=["", "", ""])
    assert found.result().without_target[3:] == ("text 5", "text 6", "text 7")


# --- Known losses


def with_nll(rows, **options):
    """Evaluate rows of given values, of any lengths."""
    found = Evaluator(tokenizer="letters", vocabulary=9, **options)
    for row in rows:
        found.add_nll(torch.tensor([row], dtype=torch.float64))
    return found.result()


def test_the_corpus_and_the_mean_of_its_texts():
    result = with_nll([[0.1, 0.2, 0.1], [0.3, 0.5, 0.1, 0.4, 0.2]])
    assert result.perplexity == pytest.approx(1.2680749968)
    assert result.mean_of_texts == pytest.approx(1.2462448097)


def test_tokens_weigh_alike_under_accumulation():
    result = with_nll([[4.0], [1.0, 1.0, 1.0]])
    assert result.nats_per_token == pytest.approx(1.75)
    assert result.mean_text_nll == pytest.approx(2.5)


def test_units_of_a_result():
    found = Evaluator(tokenizer="letters", vocabulary=9, base=2)
    found.add_nll(torch.full((1, 6), 2.0), n_bytes=[24], n_characters=[12], n_words=[3])
    result = found.result()
    assert result.bits_per_byte == pytest.approx(0.7213475204)
    assert result.per("byte") == result.bits_per_byte
    assert result.bits_per_token == result.per_token == result.per("token") == pytest.approx(2 / math.log(2))
    assert result.bits_per_character == result.per("character") == pytest.approx(1 / math.log(2))
    assert result.word_perplexity == pytest.approx(math.exp(4))
    assert result.bits_per_word == result.per("word") == pytest.approx(4 / math.log(2))
    assert result.unit == "bits per token"
    assert result.in_base(math.e).per_token == pytest.approx(2)
    assert result.in_base(10).per_token == pytest.approx(2 / math.log(10))
    assert result.in_base(10).perplexity == result.perplexity == perplexity(result) == pytest.approx(math.exp(2))


def test_one_number_too_large_for_a_float():
    result = with_nll([[1000.0], [1.0]])
    assert result.nats_per_token == 500.5
    assert result.mean_of_texts == math.inf
    assert with_nll([[1000.0]]).perplexity == math.inf
    assert with_nll([[math.inf, 1.0]]).perplexity == math.inf


def test_from_the_chunked_loss():
    noise = torch.Generator().manual_seed(0)
    hidden, weight = torch.randn(2, 5, 3, generator=noise), torch.randn(VOCABULARY, 3, generator=noise)
    labels = torch.randint(VOCABULARY, (2, 5), generator=noise)
    labels[0, 3:] = IGNORED
    found = Evaluator(tokenizer="letters", vocabulary=VOCABULARY)
    found.add_nll(chunked_token_nll(hidden, weight, labels, reduction="none"), labels[:, 1:] != IGNORED)
    other = Evaluator(tokenizer="letters")
    other.add(hidden @ weight.T, labels)
    assert found.result().perplexity == pytest.approx(other.result().perplexity, rel=1e-6)
    assert found.result().tokens == other.result().tokens == 6


def test_what_does_not_count_may_be_anything():
    found = Evaluator(tokenizer="letters", vocabulary=9)
    found.add_nll(torch.tensor([[1.0, math.nan], [-3.0, 2.0]]), torch.tensor([[True, False], [False, True]]))
    assert found.result().nats_per_token == 1.5


def test_labels_shifted_beforehand():
    logits, labels = corpus()[4]
    found = Evaluator(tokenizer="letters")
    found.add(logits[None, :-1], labels[None, 1:], shift=False)
    assert found.result().nll == pytest.approx(evaluate([(logits, labels)]).nll, rel=1e-14)


def test_a_gpu_is_left_once_it_is_reduced():
    with FakeCuda() as fake, torch.no_grad():
        found = Evaluator(tokenizer="letters")
        for logits, labels in corpus(torch.float32):
            found.add(fake.put(logits[None]), fake.put(labels[None]), fake.put(torch.ones(1, len(labels)).bool()))
        result = found.result()
    assert result.nats_per_token == pytest.approx(slow(torch.float32)[0], rel=1e-9)


def test_a_long_corpus_is_summed_without_drift():
    """A million tokens in float32 logits: summed in float32, the mean would be off by far more than 1e-9."""
    found = Evaluator(tokenizer="letters", vocabulary=9)
    values = torch.rand(1000, 1000, generator=torch.Generator().manual_seed(1), dtype=torch.float64) * 0.1 + 3
    for part in values.split(10):
        found.add_nll(part)
    assert found.result().nll == pytest.approx(math.fsum(values.flatten().tolist()), rel=1e-13)
    drifted = 0.0
    for row in values.float():
        drifted = (torch.tensor(drifted) + row.sum()).item()
    assert abs(drifted - found.result().nll) > 1e-9 * drifted


# --- Results beside each other


def small(**changes):
    return dataclasses.replace(with_nll([[1.0, 2.0], [3.0]]), **changes)


def test_results_of_two_workers_add_up():
    texts = [[1.0, 2.0], [3.0, 0.5, 0.1], [4.0]]
    both = with_nll(texts[:1]) + with_nll(texts[1:])
    whole = with_nll(texts)
    for name in ("nll", "tokens", "texts", "text_nll", "text_perplexity", "perplexity", "mean_of_texts"):
        assert getattr(both, name) == pytest.approx(getattr(whole, name), rel=1e-14), name
    one, two = small(n_bytes=3, without_target=("a",)), small(n_bytes=4, without_target=("b",))
    assert (one + two).n_bytes == 7
    assert (one + two).without_target == ("a", "b")
    with pytest.raises(ValueError, match="one result knows n_bytes and the other does not"):
        one + small()
    with pytest.raises(ValueError, match=r"different vocabularies of 9 and 10 tokens cannot be added: evaluate both"):
        one + small(vocabulary=10)


def test_results_under_the_same_conditions_are_ordered():
    better, worse = with_nll([[1.0]]), with_nll([[1.0, 1.5]])
    assert better < worse
    assert worse > better
    assert better <= worse
    assert not better >= worse
    said = compare(worse, better)
    assert said.difference == pytest.approx(0.25 / math.log(2))
    assert said.perplexity_ratio == pytest.approx(math.exp(0.25))
    assert str(said) == "1.803 against 1.443 bits per token: +0.3607"
    infinite = with_nll([[math.inf]])
    assert compare(infinite, infinite).difference == 0
    assert compare(infinite, better).perplexity_ratio == math.inf
    with pytest.raises(TypeError, match="a Result is compared with a Result, got float"):
        assert better < 3.0


REFUSED = {
    "tokenizer": (
        {"tokenizer": "words"},
        r"different tokenizers letters and words cannot be compared per token: .* compare\(ours, theirs, per='byte'\)$",
    ),
    "vocabulary": ({"vocabulary": 50257}, r"different vocabularies of 9 and 50,257 tokens cannot .*bits per byte"),
    "base": (
        {"base": 2.0},
        r"different units, nats per token and bits per token cannot .* with in_base\(2\), or compare bits per byte",
    ),
    "all": ({"tokenizer": "words", "vocabulary": 3}, r"tokenizers letters and words; vocabularies of 9 and 3 tokens"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_different_conditions_are_refused_with_an_offer(case):
    change, message = REFUSED[case]
    ours, theirs = small(n_bytes=12), small(n_bytes=12, **change)
    for attempt in (lambda: compare(ours, theirs), lambda: ours < theirs, lambda: ours >= theirs):
        with pytest.raises(ValueError, match=message):
            attempt()
    assert compare(ours, theirs, per="byte").difference == 0  # what was offered does work


def test_bits_per_byte_need_the_same_bytes():
    ours = small(n_bytes=12, tokenizer="words")
    with pytest.raises(ValueError, match=r"results over 12 and 1,300 bytes are not of the same text"):
        compare(ours, small(n_bytes=1300), per="byte")
    with pytest.raises(ValueError, match=r"n_bytes .* does not know its own: give texts to Evaluator.add"):
        compare(ours, small(), per="byte")
    with pytest.raises(ValueError, match=r"once both know their bytes, from Evaluator.add"):
        compare(ours, small())
    with pytest.raises(ValueError, match="a unit must be token, byte, character or word, got 'line'"):
        compare(ours, ours, per="line")
    with pytest.raises(ValueError, match="results to compare must be Results, got float"):
        compare(ours, 3.0)


def test_a_result_is_read():
    found = Evaluator(tokenizer="<letters>")
    found.add(torch.zeros(2, 3, 8), torch.zeros(2, 3).long(), texts=["ab c", "defg"])
    result = found.result()
    assert str(result) == (
        "perplexity 8 a token (2.079 nats), 4 tokens of 2 texts; tokenizer <letters>, vocabulary 8; "
        "1.5 bits per byte of 8"
    )
    html = result._repr_html_()
    assert "<code>&lt;letters&gt;</code>, vocabulary 8" in html
    for cell in ("Bits per byte</th><td>1.5", "Mean of texts&#x27; perplexities</th><td>8", "Bits per word</th><td>4"):
        assert cell in html
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.nll = 0.0
    assert isinstance(result, Result)


# --- What is refused

LOGITS, LABELS = torch.zeros(2, 3, 8), torch.zeros(2, 3).long()
BAD = {
    "another vocabulary": ((torch.zeros(2, 3, 9), LABELS), {}, r"over the 8 tokens .* so far, got .* \(2, 3, 9\)"),
    "labels short": ((LOGITS, LABELS[:, 1:]), {}, r"labels must have the shape \(2, 3\)"),
    "labels of one token, short": ((LOGITS[:, :1], LABELS), {}, r"labels must have the shape \(2, 1\)"),
    "label outside": ((LOGITS, LABELS + 8), {}, r"from 0 to 7, or be -100, got labels\[0, 1\] = 8"),
    "nan": ((LOGITS * math.nan, LABELS), {}, r"logits\[0, 0\] must be numbers below \+inf, got nan"),
    "ids": ((LOGITS, LABELS), {"ids": ["a"]}, r"ids must hold one a row, 2, got 1"),
    "one text": ((LOGITS, LABELS), {"texts": "ab"}, r"texts must hold one a row, 2, got one str"),
    "texts and counts": ((LOGITS, LABELS), {"texts": ["a", "b"], "n_bytes": [1, 1]}, r"give either texts or counts"),
    "counts": ((LOGITS, LABELS), {"n_bytes": [1]}, r"n_bytes must hold one whole number a row, 2, got 1: \[1\]"),
    "a count": ((LOGITS, LABELS), {"n_bytes": 3}, r"n_bytes must hold one whole number a row, 2, got 3; write a list"),
    "half a count": ((LOGITS, LABELS), {"n_bytes": [1, 1.5]}, r"n_bytes\[1\] must be a whole number of .*, got 1.5"),
    "a negative count": (
        (LOGITS, LABELS),
        {"n_words": np.array([1, -1])},
        r"n_words\[1\] must be .* at least 0, got -1",
    ),
    "a generator": ((LOGITS, LABELS), {"texts": (t for t in "ab")}, r"texts must hold one a row, 2, got <generator"),
    "bytes": ((LOGITS, LABELS), {"texts": ["a", b"b"]}, r"texts\[1\] must be a str, got bytes; decode bytes first"),
    "a list for an id": ((LOGITS, LABELS), {"texts": ["a", "b"], "ids": ["a", [2]]}, r"ids\[1\] must be hashable"),
    "a word for shift": ((LOGITS, LABELS), {"shift": "no"}, r"shift must be True or False, got 'no'"),
    "one id": ((LOGITS, LABELS), {"ids": 3}, r"ids must hold one a row, 2, got 3; write a list"),
    "no counts": ((LOGITS, LABELS), {}, r"n_bytes, n_characters, n_words must be given with every batch or with none"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_batches_are_named_and_change_nothing(case):
    given, options, message = BAD[case]
    found = Evaluator(tokenizer="letters")
    found.add(LOGITS, LABELS, texts=["ab", "cd"])
    before = found.result()
    with pytest.raises(ValueError, match=message):
        found.add(*given, **options)
    assert found.result() == before


def test_nan_is_found_where_it_stands_in_a_batch_that_is_cut(monkeypatch):
    monkeypatch.setattr(evaluator, "CELLS", 8)
    logits = LOGITS.clone()
    logits[1, 1, 5] = math.nan
    with pytest.raises(ValueError, match=r"logits\[1, 1\] must be numbers below \+inf, got nan for token 5"):
        Evaluator(tokenizer="letters").add(logits, LABELS)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Evaluator(tokenizer=""), r"tokenizer must be a name, which then travels with the number, got ''"),
        (lambda: Evaluator(tokenizer="a", vocabulary=0), r"vocabulary must be a whole number of at least 1, got 0"),
        (lambda: Evaluator(tokenizer="a", base=1.0), r"base must be a finite number above 1, got 1.0"),
        (lambda: Evaluator(tokenizer="a").result(), r"no token is counted, of 0 texts added"),
        (lambda: Evaluator(tokenizer="a").add_nll(torch.ones(1, 2)), r"vocabulary is not known without logits"),
        (
            lambda: with_nll([[1.0, -2.0]]),
            r"nll must be at least 0 where it counts, got -2.0 at \[0, 1\]; of a log-like",
        ),
        (lambda: with_nll([[math.nan]]), r"nll must be at least 0 where it counts, got nan at \[0, 0\]"),
        (lambda: with_nll([[[1.0]]]), r"nll must be a floating-point tensor of shape \(texts, targets\), got"),
    ],
)
def test_bad_calls_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_evaluators_of_different_conditions_do_not_merge():
    ours = Evaluator(tokenizer="letters", vocabulary=8)
    with pytest.raises(ValueError, match="an evaluator is merged with another Evaluator"):
        ours.merge(ours)
    for change, message in (
        ({"tokenizer": "words"}, "one tokenizer can be merged, got 'letters' and 'words'"),
        ({"base": 2}, "one base can be merged"),
        ({"ignore_index": 0}, "one ignore_index can be merged, got -100 and 0"),
        ({"vocabulary": 9}, "one vocabulary can be merged, got 8 and 9"),
    ):
        with pytest.raises(ValueError, match=message):
            ours.merge(Evaluator(**{"tokenizer": "letters"} | change))


def test_cross_entropy_agrees():
    logits, labels = corpus()[4]
    want = functional.cross_entropy(logits[:-1], labels[1:]).item()
    assert evaluate([(logits, labels)]).nats_per_token == pytest.approx(want, rel=1e-12)


def test_ids_are_looked_at_before_anything_is_added():
    logits, labels = torch.zeros(2, 5, 3), torch.zeros(2, 5, dtype=torch.long)
    found = Evaluator(tokenizer="t")
    with pytest.raises(ValueError, match=r"ids\[1\] must be hashable, a name or a number, got \[2\]"):
        found.add(logits, labels, ids=["a", [2]], texts=["xxxx", "xxxx"])
    with pytest.raises(ValueError, match="ids must hold one a row, 2, got 3"):
        found.add(logits, labels, ids=3)
    found.add(logits, labels, ids=["a", "b"])  # without texts: the failed call decided nothing
    assert found.result().tokens == 8


def test_ids_may_be_a_tensor_of_numbers():
    logits, labels = torch.zeros(2, 5, 3), torch.zeros(2, 5, dtype=torch.long)
    found = Evaluator(tokenizer="t")
    for ids in (torch.tensor([1, 1]), np.array([1, 1]), [1, 1], list(torch.tensor([1, 1]))):
        found.add(logits, labels, ids=ids)
    assert found.result().texts == 1


@pytest.mark.parametrize("many", [np.array, torch.tensor, lambda counts: list(np.array(counts)), tuple])
def test_counts_may_be_an_array_of_whole_numbers(many):
    found = Evaluator(tokenizer="t", vocabulary=3)
    found.add_nll(torch.ones(2, 4), n_bytes=many([3, 4]))
    assert found.result().n_bytes == 7
    assert type(found.result().n_bytes) is int


def test_a_failing_call_of_add_nll_changes_nothing():
    found = Evaluator(tokenizer="t", vocabulary=3)
    with pytest.raises(ValueError, match=r"ids\[1\] must be hashable"):
        found.add_nll(torch.ones(2, 4), ids=["a", {}], n_bytes=[1, 1])
    found.add_nll(torch.ones(2, 4))
    assert (found.result().tokens, found.result().texts, found.result().n_bytes) == (8, 2, None)
