"""Perplexity in plain Python: nine functions, from a row of scores to bits per token.

Write one function after the other and run

    python perplexity.py

after each. It checks what is written, shows the smallest case in which yours differs, and draws yours against what it
should be (`python perplexity.py 3` draws step 3 again). Nothing but the standard library is needed. Beside it lies a
notebook, live.ipynb, with controls that drive this file while you write it. Time: about 50 minutes.

A language model takes what it has read and gives every token of its vocabulary a score, a logit. Everything here is
about what becomes of those scores on their way to one number. At four places there is a second way to write the line:
it runs, it raises nothing, and the number is believable. By the end you will have seen all four on one data set.

Shapes: V is the size of the vocabulary, T the length of a text in tokens. A row of logits is a list of V floats; a text
has T rows and T token numbers, and row t was computed after reading token t.
"""

# What it is worth:
#
# | step | what counts | points | marked |
# |---|---|---:|---|
# | 1 | log-probabilities | 2 | by tests you do not see |
# | 1 | logits of any size | 2 | by tests you do not see |
# | 2 | the wrong order, to see it | 2 | by tests you do not see |
# | 3 | the cost of a token | 2 | by tests you do not see |
# | 4 | the mean | 1 | by tests you do not see |
# | 4 | no token, no mean | 1 | by tests you do not see |
# | 5 | perplexity | 2 | by tests you do not see |
# | 6 | beside a model that knows nothing | 1 | by tests you do not see |
# | 7 | row t predicts token t + 1 | 2 | by tests you do not see |
# | 7 | any other shift, to see it | 1 | by tests you do not see |
# | 8 | padding is neither summed nor counted | 2 | by tests you do not see |
# | 8 | padding in front | 1 | by tests you do not see |
# | 9 | bits | 1 | by tests you do not see |
# | 9 | open question: two vocabularies | 3 | by hand |
# | 9 | reflection: which would you have caught? | 2 | by hand |
# | | together | 25 | 20 of them by tests |

from __future__ import annotations

import linecache
import math
import sys

# ---------------------------------------------------------------------------------------------------------------------
# Step 1. The log-probability of a token is its logit less the logarithm of the sum of all exponentials.
#
# exp(1000) is more than a float can hold. Subtract the largest logit from all of them first: then no exponential is
# above 1 and one is exactly 1, so that the sum is at least 1 and its logarithm exists. Never form a probability.
# ---------------------------------------------------------------------------------------------------------------------


def log_softmax(logits: list[float]) -> list[float]:
    """Log-probability of every token, V floats, from V logits; right at any logits, -1000 and 1000 included."""
    raise NotImplementedError("Step 1 is not written yet: log_softmax")


# ---------------------------------------------------------------------------------------------------------------------
# Step 2. Now the wrong order, on purpose: first the probability, then its logarithm.
#
# Subtract the largest logit here too, so that nothing overflows. What is lost is at the other end: a token far below
# the rest gets probability 0.0, and math.log(0.0) raises. Do what most libraries do instead: write -math.inf and go on.
# ---------------------------------------------------------------------------------------------------------------------


def log_of_softmax(logits: list[float]) -> list[float]:
    """Logarithm of every token's probability, V floats; -inf where the probability has become 0.0."""
    raise NotImplementedError("Step 2 is not written yet: log_of_softmax")


# ---------------------------------------------------------------------------------------------------------------------
# Step 3. What a prediction costs: -log p(the token that came). Certain and right costs 0.
#
# The other tokens count only because all probabilities sum to 1. Use step 1.
# ---------------------------------------------------------------------------------------------------------------------


def loss_at(logits: list[float], token: int) -> float:
    """Cost in nats of one token: V logits, and the number of the token that came."""
    raise NotImplementedError("Step 3 is not written yet: loss_at")


# ---------------------------------------------------------------------------------------------------------------------
# Step 4. The mean over tokens. Under a sum, every long text would look bad.
#
# The mean of nothing does not exist: raise a ValueError, and say in it what is missing.
# ---------------------------------------------------------------------------------------------------------------------


def mean(losses: list[float]) -> float:
    """Mean cost per token, in nats; a ValueError if there is no token."""
    raise NotImplementedError("Step 4 is not written yet: mean")


# ---------------------------------------------------------------------------------------------------------------------
# Step 5. Perplexity: how many equally likely tokens would leave you as uncertain as this mean does.
#
# math.exp(1000) raises an OverflowError. The perplexity there is infinite as far as a float can tell: return math.inf.
# ---------------------------------------------------------------------------------------------------------------------


def perplexity(nats: float) -> float:
    """Perplexity of a mean cost in nats; inf where a float cannot hold it."""
    raise NotImplementedError("Step 5 is not written yet: perplexity")


# ---------------------------------------------------------------------------------------------------------------------
# Step 6. The anchor of the scale. A model that gives every token the same score has perplexity V, whatever the text.
#
# So a perplexity means something only beside V. Return it as a share of V: 1 is a model that has learned nothing, and
# above 1 is worse than nothing.
# ---------------------------------------------------------------------------------------------------------------------


def share_of_uniform(nats: float, size: int) -> float:
    """Perplexity of a mean cost, divided by that of a model that knows nothing about a vocabulary of this size."""
    raise NotImplementedError("Step 6 is not written yet: share_of_uniform")


# ---------------------------------------------------------------------------------------------------------------------
# Step 7. The shift. Row t was computed after reading token t; what it predicts is token t + 1.
#
# So the last row has nothing left to predict, and nobody predicted the first token: T rows give T - 1 costs, and a text
# of one token gives none. shift=1 is right. Let other values through, 0 and 2: you will want to see what they give.
# ---------------------------------------------------------------------------------------------------------------------


def text_losses(logits: list[list[float]], ids: list[int], shift: int = 1) -> list[float]:
    """Cost of every token that was predicted: T rows of V logits and T token numbers give T - shift costs."""
    raise NotImplementedError("Step 7 is not written yet: text_losses")


# ---------------------------------------------------------------------------------------------------------------------
# Step 8. The mask. The texts of a batch are filled up to the length of the longest, and the padding is no text.
#
# mask holds True at a token and False at padding, which may stand on either side. A prediction counts if what it
# predicts is a token, and if the row that predicts it was computed after reading one. Leave the others out of the list
# altogether: a 0 in their place would still be counted in the mean, and flatter it. mask=None counts everything, to be
# seen.
# ---------------------------------------------------------------------------------------------------------------------


def batch_losses(
    logits: list[list[list[float]]], ids: list[list[int]], mask: list[list[bool]] | None = None
) -> list[float]:
    """Costs of all counted tokens of a batch, text after text, in one list: B texts, each as in step 7 with shift 1."""
    raise NotImplementedError("Step 8 is not written yet: batch_losses")


# ---------------------------------------------------------------------------------------------------------------------
# Step 9. Deep learning counts in nats, compression in bits: 2 ** bits(x) is exp(x).
# ---------------------------------------------------------------------------------------------------------------------


def bits(nats: float) -> float:
    """The same cost in bits."""
    raise NotImplementedError("Step 9 is not written yet: bits")


# ---------------------------------------------------------------------------------------------------------------------
# Two questions, marked by hand. Write a few sentences between the quotes.
# ---------------------------------------------------------------------------------------------------------------------

# Open question. Two teams report a perplexity of 12 on the same text. One has a vocabulary of 32,000 tokens, the other
# of 256 bytes. Which model is better, what would you ask them for, and what would you compute from it?
OPEN_QUESTION = """
Write your answer here.
"""

# Reflection. Which of the four wrong lines (the log, the shift, the mask, the base) would you have caught in your own
# work, by what sign? Which would you not have caught, and what will you check from now on?
REFLECTION = """
Write your answer here.
"""


# ---------------------------------------------------------------------------------------------------------------------
# Below this line there is nothing to write: the checks. They need no right answers to compare with: each step has a
# property that only the right function has, or a case that can be worked out by hand.
# ---------------------------------------------------------------------------------------------------------------------

WIDTH = 44  # characters of the longest bar


class Different(Exception):  # noqa: N818
    """A case in which a function does not give what it should."""


def same(yours: object, target: object) -> bool:
    """Whether two numbers, or two lists of them, agree to nine digits."""
    if isinstance(target, list):
        return isinstance(yours, list) and len(yours) == len(target) and all(map(same, yours, target))
    if isinstance(yours, bool) or not isinstance(yours, (int, float)):
        return False
    return yours == target or math.isclose(yours, target, rel_tol=1e-9, abs_tol=1e-12)


def written(value: object) -> str:
    """A number or a list of them, short."""
    if isinstance(value, list):
        return "[" + ", ".join(map(written, value)) + "]"
    return f"{value:.5g}" if isinstance(value, float) else repr(value)


def expect(call: str, yours: object, target: object, why: str) -> None:
    """Go on if yours is the target, otherwise stop with this case."""
    if not same(yours, target):
        raise Different(f"{call}\n      yours   {written(yours)}\n      target  {written(target)}\n      {why}")


def check_log_softmax() -> None:
    """Differences of logits stay, and the probabilities sum to 1: nothing else has both properties."""
    some = [
        [0.0],
        [0.0, 0.0],
        [2.0, 1.0],
        [0.5, -1.0, 3.0],
        [1000.0, 999.0],
        [-1000.0, -1001.0, -1002.0],
        [0.0, -1000.0],
    ]
    for logits in some:
        found, call = log_softmax(list(logits)), f"log_softmax({logits})"
        if not isinstance(found, list) or len(found) != len(logits):
            raise Different(f"{call} should be a list of {len(logits)} floats, yours is {found!r}")
        gaps = [z - logits[0] for z in logits]
        expect(
            call + ", less its first",
            [z - found[0] for z in found],
            gaps,
            "Logits and their logarithms of probability differ alike.",
        )
        expect(call + ", sum of exp", math.fsum(map(math.exp, found)), 1.0, "Probabilities sum to 1.")


def check_log_of_softmax() -> None:
    """The same as step 1 as long as a float can hold the probability, and -inf after that."""
    for gap in (0.0, 1.0, 10.0, 600.0):
        expect(
            f"log_of_softmax([0.0, {-gap}])",
            log_of_softmax([0.0, -gap]),
            [-math.log1p(math.exp(-gap)), -gap - math.log1p(math.exp(-gap))],
            "Here a float holds the probability, so both orders agree.",
        )
    coin = "Subtract the largest logit here as well."
    expect("log_of_softmax([1000.0, 1000.0])", log_of_softmax([1000.0, 1000.0]), [-math.log(2)] * 2, coin)
    for gap in (746.0, 1000.0):
        why = "The probability is 0.0 here; the step asks for -math.inf."
        expect(f"log_of_softmax([0.0, {-gap}])", log_of_softmax([0.0, -gap]), [0.0, -math.inf], why)


def check_loss_at() -> None:
    """Two tokens: the cost is log(1 + exp(gap)), which has a closed form."""
    for logits, token, target, why in (
        ([5.0], 0, 0.0, "One token in the vocabulary: nothing to be uncertain of."),
        ([0.0, 0.0], 1, math.log(2), "A coin."),
        ([2.0, 0.0], 0, math.log1p(math.exp(-2.0)), "The likelier token came: cheap."),
        ([2.0, 0.0], 1, 2.0 + math.log1p(math.exp(-2.0)), "The other came: 2 nats dearer."),
        ([0.0, 1000.0], 0, 1000.0, "Dear, but finite: no probability may be formed on the way."),
    ):
        expect(f"loss_at({logits}, {token})", loss_at(logits, token), target, why)


def check_mean() -> None:
    """A text repeated has the mean of the text."""
    expect("mean([3.0])", mean([3.0]), 3.0, "The mean of one.")
    expect("mean([1.0, 2.0, 6.0])", mean([1.0, 2.0, 6.0]), 3.0, "9 nats over 3 tokens.")
    expect("mean([1.0, 2.0, 6.0] * 4)", mean([1.0, 2.0, 6.0] * 4), 3.0, "The same text four times: no dearer a token.")
    try:
        nothing = mean([])
    except ValueError:
        return
    except ZeroDivisionError:
        raise Different("mean([]) should raise a ValueError that says what is missing; yours divides by zero") from None
    raise Different(f"mean([]) should raise a ValueError; yours gives {nothing!r}")


def check_perplexity() -> None:
    """A fair choice among n has perplexity n."""
    expect("perplexity(0.0)", perplexity(0.0), 1.0, "Certain: one option.")
    for n in (2, 6, 50000):
        expect(f"perplexity(log {n})", perplexity(math.log(n)), float(n), f"As uncertain as a fair choice among {n}.")
    expect("perplexity(1000.0)", perplexity(1000.0), math.inf, "More than a float can hold.")


def check_share_of_uniform() -> None:
    """The uniform model is at 1, whatever the vocabulary; a certain one at 1 / V."""
    for size in (1, 2, 27, 50257):
        why = "A model that gives every token the same score."
        expect(f"share_of_uniform(log {size}, {size})", share_of_uniform(math.log(size), size), 1.0, why)
    expect("share_of_uniform(0.0, 4)", share_of_uniform(0.0, 4), 0.25, "Perplexity 1 out of 4.")
    expect("share_of_uniform(log 8, 4)", share_of_uniform(math.log(8), 4), 2.0, "Twice as bad as knowing nothing.")


def check_text_losses() -> None:
    """A model that knows the next token pays nothing for it."""
    sure = [[9.0, 0.0, 0.0], [0.0, 9.0, 0.0], [0.0, 0.0, 9.0]]  # rows that expect token 0, 1 and 2
    low = math.log1p(2 * math.exp(-9.0))
    expect("text_losses(rows, [1]), a text of one token", text_losses([sure[0]], [1]), [], "Nothing was predicted.")
    rows = [sure[1], sure[2], sure[0]]
    why = "Each row expects the next token, and is right twice."
    expect("text_losses(rows that expect 1, 2, 0; ids 0, 1, 2)", text_losses(rows, [0, 1, 2]), [low, low], why)
    why = "Each row expects the token just read, and is wrong about the next."
    expect("text_losses(rows that expect 0, 1, 2; ids 0, 1, 2)", text_losses(sure, [0, 1, 2]), [9 + low, 9 + low], why)
    why = "Asked for the token it is reading, the same model looks perfect."
    expect("the same with shift=0", text_losses(sure, [0, 1, 2], shift=0), [low] * 3, why)
    why = "One row and one label are left."
    expect(
        "text_losses(rows that expect 0, 1, 2; ids 2, 1, 0; shift=2)", text_losses(sure, [2, 1, 0], shift=2), [low], why
    )


def check_batch_losses() -> None:
    """A text costs the same alone and beside a longer one."""
    low = math.log1p(math.exp(-1.0))
    rows, ids = [[[0.0, 1.0]] * 3], [[0, 1, 0]]
    expect("batch_losses(rows, ids), all counted", batch_losses(rows, ids), [low, 1 + low], "As in step 7.")
    for mask, target, why in (
        ([True, True, False], [low], "Padding on the right: mask[t + 1] has to be True, what is predicted is a token."),
        (
            [False, True, True],
            [1 + low],
            "Padding on the left: mask[t] has to be True, too; that row has read a token.",
        ),
        ([True, False, False], [], "One token, and nothing that it could predict."),
    ):
        expect(f"batch_losses(rows, ids, [{mask}])", batch_losses(rows, ids, [mask]), target, why)
    ids, rows, mask = example(THREE)
    target = by_hand(ids, [len(text) for text in THREE])
    expect(
        "mean over the tokens of three texts", mean(batch_losses(rows, ids, mask)), target, "Alone and together alike."
    )


def check_bits() -> None:
    """2 ** bits is exp(nats)."""
    expect("bits(log 2)", bits(math.log(2)), 1.0, "A coin is one bit.")
    expect("2 ** bits(3.0)", 2 ** bits(3.0), math.exp(3.0), "The same perplexity from either base.")


# A model small enough to see: it reads one letter and counts what followed it in six sentences, padding included.
TEXTS = [
    "the cat sat on the mat",
    "a cat ate the rat",
    "the rat sat",
    "a mat",
    "that cat ran at the rat on the mat",
    "rat",
]
THREE = ["a cat sat", "the rat", "the cat ran at the rat on the mat"]
PAD = "_"
VOCABULARY = [*sorted(set("".join(TEXTS))), PAD]


def counts() -> list[list[float]]:
    """How often each letter followed each, and a little for what was never seen."""
    found = [[0.1] * len(VOCABULARY) for _ in VOCABULARY]
    width = max(map(len, TEXTS))
    for text in TEXTS:
        line = [VOCABULARY.index(token) for token in text.ljust(width, PAD)]
        for t in range(width - 1):
            found[line[t]][line[t + 1]] += 1
    return found


def example(texts: list[str]) -> tuple[list[list[int]], list[list[list[float]]], list[list[bool]]]:
    """A padded batch: token numbers, logits of the small model, and the mask."""
    width, seen = max(map(len, texts)), counts()
    ids = [[VOCABULARY.index(token) for token in text.ljust(width, PAD)] for text in texts]
    rows = [[[math.log(count) for count in seen[token]] for token in line] for line in ids]
    return ids, rows, [[t < len(text) for t in range(width)] for text in texts]


def by_hand(ids: list[list[int]], lengths: list[int], shift: int = 1) -> float:
    """Mean cost of the first tokens of each line: from counts, not from logits."""
    seen, logs = counts(), []
    for b, length in enumerate(lengths):
        for t in range(length - shift):
            row = seen[ids[b][t]]
            logs.append(math.log(row[ids[b][t + shift]] / math.fsum(row)))
    return -math.fsum(logs) / len(logs)


def shifted(shift: int) -> float:
    """Perplexity of one text by step 7."""
    ids, rows, _ = example(["the cat sat"])
    return perplexity(mean(text_losses(rows[0], ids[0], shift)))


def three_texts(how: int) -> float:
    """Perplexity of three texts by step 8, with the padding treated in one of three ways."""
    ids, rows, mask = example(THREE)
    kept, everything = batch_losses(rows, ids, mask), batch_losses(rows, ids)
    return perplexity({0: mean(kept), 1: mean(everything), 2: math.fsum(kept) / len(everything)}[how])


def three_texts_by_hand(how: int) -> float:
    """The same, without your functions."""
    ids, _, _ = example(THREE)
    lengths, width = [len(text) for text in THREE], len(ids[0])
    kept, everything = by_hand(ids, lengths), by_hand(ids, [width] * 3)
    share = (sum(lengths) - 3) / (3 * (width - 1))
    return math.exp({0: kept, 1: everything, 2: kept * share}[how])


SIDES = {f"{n} sides": n for n in (2, 4, 8, 16)}

# Name, check, and a picture: its title, inputs by label, yours and the target as functions of the input.
STEPS = (
    (
        "log_softmax",
        check_log_softmax,
        "log-probability of a token that lies so far below the only other",
        {f"{gap:g}": gap for gap in (0.0, 1.0, 2.0, 4.0, 8.0)},
        lambda gap: log_softmax([0.0, -gap])[1],
        lambda gap: -gap - math.log1p(math.exp(-gap)),
    ),
    (
        "log_of_softmax",
        check_log_of_softmax,
        "log-probability in the wrong order; | is the right one. From 746 on the bar runs off",
        {f"{gap:g} below": gap for gap in (10.0, 700.0, 740.0, 744.0, 746.0, 1000.0)},
        lambda gap: log_of_softmax([0.0, -gap])[1],
        lambda gap: -gap - math.log1p(math.exp(-gap)),
    ),
    (
        "loss_at",
        check_loss_at,
        "cost in nats of a token that lies so far above the only other",
        {f"{gap:+g}": gap for gap in (-4.0, -2.0, 0.0, 2.0, 4.0)},
        lambda gap: loss_at([gap, 0.0], 0),
        lambda gap: math.log1p(math.exp(-gap)),
    ),
    (
        "mean",
        check_mean,
        "mean cost in nats of a text, repeated",
        {"once": 1, "twice": 2, "four times": 4},
        lambda times: mean([1.0, 2.0, 6.0] * times),
        lambda _: 3.0,
    ),
    ("perplexity", check_perplexity, "perplexity of a fair die", SIDES, lambda n: perplexity(math.log(n)), float),
    (
        "share_of_uniform",
        check_share_of_uniform,
        "a cost of 2 nats beside a model that knows nothing, by size of the vocabulary",
        {f"V = {size}": size for size in (2, 4, 8, 32)},
        lambda size: share_of_uniform(2.0, size),
        lambda size: math.exp(2.0) / size,
    ),
    (
        "text_losses",
        check_text_losses,
        f"perplexity of 'the cat sat', vocabulary of {len(VOCABULARY)}",
        {"not shifted": 0, "right": 1, "shifted twice": 2},
        shifted,
        lambda shift: math.exp(by_hand(example(["the cat sat"])[0], [11], shift)),
    ),
    (
        "batch_losses",
        check_batch_losses,
        "perplexity of three texts, two of them padded",
        {"masked": 0, "padding counted": 1, "padding costs 0, but counts": 2},
        three_texts,
        three_texts_by_hand,
    ),
    ("bits", check_bits, "a fair die in bits", SIDES, lambda n: bits(math.log(n)), lambda n: float(n.bit_length() - 1)),
)


def picture(step: int, *, failed: bool = False) -> None:
    """Bars of # for yours from the line at 0, to the left if below it, and a | where each should end."""
    _, _, title, inputs, yours, target = STEPS[step - 1]
    rows = []
    for label, value in inputs.items():
        try:
            rows.append((label, float(yours(value)), target(value)))
        except NotImplementedError:
            raise
        except Exception as error:  # a first draft may raise anything; the other bars are drawn
            rows.append((label, type(error).__name__, target(value)))
    ends = [v for row in rows for v in row[1:] if isinstance(v, float) and math.isfinite(v)]
    low, high = min([0.0, *ends]), max([0.0, *ends])
    unit = WIDTH / ((high - low) or 1.0)
    zero = round(-low * unit) + 2 * any(own == -math.inf for _, own, _ in rows)
    wide = max(len(label) for label, _, _ in rows)
    print(f"\n    Step {step}: {title}\n    {'':{wide}}  # yours, | target, : zero")
    if failed:
        print(f"    {'':{wide}}  These are other inputs than the case below.")
    for label, own, goal in rows:
        line = [" "] * (WIDTH + 5)
        if isinstance(own, float) and not math.isnan(own):
            end = zero + round(own * unit) if math.isfinite(own) else (len(line) if own > 0 else 0)
            for place in range(min(zero, end), max(zero + 1, end + 1) if end > zero else zero):
                line[place : place + 1] = "#" if place < len(line) else ""
        line[zero] = ":"
        line[zero + round(goal * unit)] = "|"
        said = f"{own:.4g}" if isinstance(own, float) else own
        print(
            f"    {label:>{wide}}  {''.join(line)}  {said}"
            + ("" if said == f"{goal:.4g}" else f"  (target {goal:.4g})")
        )


def raised(error: Exception) -> str:
    """What was raised, the call of this file that led to it, and the line, with what went in."""
    said, trace, own = f"raised {type(error).__name__}: {error}", error.__traceback__, None
    while trace is not None:
        code = trace.tb_frame.f_code
        if own is None and code.co_name in [name for name, *_ in STEPS]:  # the step, as the check called it
            given = code.co_varnames[: code.co_argcount]
            words = ", ".join(f"{name}={trace.tb_frame.f_locals.get(name)!r}" for name in given)
            own = f"{code.co_name}({words if len(words) < 200 else words[:200] + ' ...'})"
        if code.co_filename == __file__:
            line = trace.tb_lineno
        trace = trace.tb_next
    if own is None:
        return said
    return f"{own}\n      {said}\n      line {line}: {linecache.getline(__file__, line).strip()}"


def six_numbers() -> None:
    """One data set and six believable numbers, all of them from your functions."""
    ids, rows, mask = example(TEXTS)
    right, everything = batch_losses(rows, ids, mask), batch_losses(rows, ids)
    texts = [(rows[b][: len(text)], ids[b][: len(text)]) for b, text in enumerate(TEXTS)]
    print("\n    One data set, six perplexities. Cover the left column: which would you have sent back?\n")
    for name, nats in (
        ("right", mean(right)),
        ("padding counted", mean(everything)),
        ("padding costs 0, but counts", math.fsum(right) / len(everything)),
        ("not shifted", mean([cost for text in texts for cost in text_losses(*text, shift=0)])),
        ("bits raised to e", bits(mean(right))),
        ("mean of the texts' means", mean([mean(text_losses(*text)) for text in texts])),
    ):
        print(f"    {name:28} {perplexity(nats):8.3f}")


def check() -> int:
    """Go through the steps up to the first that is not right yet; return how many are right."""
    for step, (name, run, *_) in enumerate(STEPS, start=1):
        try:
            run()
        except NotImplementedError as missing:
            if step > 1:
                picture(step - 1)
            print(f"\n○ {missing}")
            return step - 1
        except Exception as error:  # whatever a first draft raises is said in one line
            picture(step, failed=True)
            said = str(error) if isinstance(error, Different) else raised(error)
            print(f"\n✗ Step {step}, {name}: {said}")
            return step - 1
        print(f"✓ Step {step}, {name}")
    picture(len(STEPS))
    six_numbers()
    return len(STEPS)


if __name__ == "__main__":
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # an old console may not have the marks
    if not sys.argv[1:]:
        sys.exit(check() < len(STEPS))
    if sys.argv[1] not in map(str, range(1, len(STEPS) + 1)):
        sys.exit(print(f"There are steps 1 to {len(STEPS)}, and no step {sys.argv[1]}.") or 2)
    try:
        picture(int(sys.argv[1]))  # python perplexity.py 3: the picture of step 3 again
    except NotImplementedError as missing:
        sys.exit(print(f"○ {missing}") or 1)
