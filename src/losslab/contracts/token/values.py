"""Values known beforehand: of guessing, of a given lead, of probabilities too small for a float; and gradients."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from hypothesis import strategies as st

from losslab.contracts.model import BrokenPromise, Contract, Counterexample, Draw, Exempt, Quantity, Texts
from losslab.contracts.token.agreement import broken, must_agree, off, rooms
from losslab.contracts.token.subject import NUMBER_OF_TARGETS, Taught, TokenSubject, behind, count
from losslab.contracts.token.texts import ids, padded, texts, up_to
from losslab.contracts.wording import show


def unit_of(base: float) -> str:
    """What a loss with this base is counted in."""
    return {math.e: "nats", 2.0: "bits"}.get(base, f"logarithms to base {show(base)}")


def uniform(loss: TokenSubject, draw: Draw) -> None:
    """A model that has learned nothing."""
    words, tokens = draw(up_to(5, 2)), draw(up_to(4, 2))
    level = float(draw(st.sampled_from([0, 1, -3])))
    text = Texts(np.full((1, tokens, words), level), np.array([draw(ids(tokens, words))], dtype=np.int64))
    base = loss.conventions.base
    got = loss.run(text, gradients=False)
    n = count(text) if loss.conventions.reduction == "sum" else 1
    want, log = n * math.log(words), {math.e: "ln", 2.0: "log2"}.get(base, f"log (base {show(base)}) of")
    if off(loss.nats(got.raw, base), want, rooms(loss, text)[0]):
        should = str(words) if loss.perplexity else f"{log} {words}" + (f", {n} times" if n > 1 else "")
        raise BrokenPromise(
            Counterexample(
                f"All {words} tokens are equally likely, and the {loss.noun} is not that of guessing among {words}.",
                (),
                {"should be": should},
                (Quantity(loss.noun, got.raw, loss.said(want, base)),),
                texts=loss.seen(text),
            )
        )


UNIFORM = Contract(
    "uniform",
    "guessing among V costs ln V",
    "If all logits of a row are equal, the loss is ln V in nats, log2 V in bits, and the perplexity V.",
    uniform,
)


def base(loss: TokenSubject, draw: Draw) -> None:
    """The right tokens fall further behind: the loss rises by as much, in the declared unit."""
    low = float(draw(up_to(8)))
    high = low + draw(up_to(8))
    declared = loss.conventions.base
    raw = [loss.run(behind(gap), gradients=False).raw for gap in (low, high)]
    nats = [loss.nats(value, declared) for value in raw]
    n = count(behind(low)) if loss.conventions.reduction == "sum" else 1
    exact = [n * (gap + math.log1p(math.exp(-gap))) for gap in (low, high)]
    if not off(nats[1] - nats[0], exact[1] - exact[0], 4 * rooms(loss, behind(high))[0]):
        return
    sentence = f"Every right token falls behind by {show(high)} instead of {show(low)}, and the {loss.noun} does not "
    sentence += "rise by what that costs."
    if loss.base != declared:
        sentence += (
            f" It rises by as much in {unit_of(loss.base)}: if that is its unit, declare base={show(loss.base)}."
        )
    raise BrokenPromise(
        Counterexample(
            sentence,
            (),
            {"unit": "perplexity" if loss.perplexity else unit_of(declared)},
            tuple(
                Quantity(f"{loss.noun} at {show(gap)} behind", value, loss.said(want, declared))
                for gap, value, want in zip((low, high), raw, exact, strict=True)
            ),
            texts=loss.seen(behind(high)),
        )
    )


BASE = Contract(
    "base",
    "a nat is a nat",
    "A right token whose logit is far behind and falls a further g behind costs g nats more, in the declared unit.",
    base,
)


def row_shift(loss: TokenSubject, draw: Draw) -> None:
    """Add a number to all logits of a row: only differences count."""
    (text,) = draw(texts())
    by = np.array(draw(st.lists(up_to(500, -500), min_size=text.labels.size, max_size=text.labels.size)), dtype=float)
    shifted = Texts(text.logits + by[None, :, None], text.labels)
    before = loss.plain(text)
    said = [show(x) for x in (by if loss.conventions.shift else by[:-1])]
    must_agree(
        loss,
        loss.run(shifted),
        before,
        shifted,
        "A number added to all logits of a row changes what the text teaches.",
        {"added, row by row": ", ".join(said)},
        wanted="as before",
    )


ROW_SHIFT = Contract(
    "row_shift",
    "only differences of logits count",
    "Adding the same number to all logits of a row changes neither value nor gradient.",
    row_shift,
)


def underflow(loss: TokenSubject, draw: Draw) -> None:
    """The right token's probability is too small for a float; its logarithm is not."""
    (text,) = draw(texts(fewest=4 if loss.perplexity else 2, most=5))
    gap = draw(st.sampled_from([110.0, 200.0] if loss.perplexity else [110.0, 200.0, 1000.0]))
    logits = text.logits.copy()
    at = draw(up_to(text.labels.shape[1] - 2, 0))
    right = text.labels[0, at + 1]
    logits[0, at] = 0.0
    logits[0, at, right] = -gap
    far = Texts(logits, text.labels)
    want, got = loss.exact(far), loss.run(far)
    sentence = f"One right token is {show(gap)} behind: its probability, e^-{show(gap)}, is 0 as a float32, "
    sentence += f"and its logarithm is about -{show(gap)} all the same."
    must_agree(loss, got, want, far, sentence)


UNDERFLOW = Contract(
    "underflow",
    "a vanishing probability has a logarithm",
    "Where the right token is 110, 200 or 1000 behind and its probability is 0 as a float, value and gradient are "
    "finite and right.",
    underflow,
    under="Of a perplexity, 110 and 200: the rest of the text keeps it within float32.",
)


def forbidden(loss: TokenSubject, draw: Draw) -> None:
    """A logit of -inf for a token that is not the right one: as if it were merely hopeless."""
    (text,) = draw(texts(few_words=3))
    words = text.logits.shape[2]
    hopeless, never = text.logits.copy(), text.logits.copy()
    at = draw(up_to(text.labels.shape[1] - 2, 0))
    wrong = (text.labels[0, at + 1] + draw(up_to(words - 1))) % words
    hopeless[0, at, wrong], never[0, at, wrong] = -10000.0, -math.inf
    before = loss.plain(Texts(hopeless, text.labels))
    banned = Texts(never, text.labels)
    got = loss.run(banned)
    must_agree(
        loss,
        got,
        before,
        banned,
        f"Token {wrong} is forbidden at one place, where another is right, and that is no longer the loss of a token "
        "that is merely hopeless.",
        {"before": "logit -10000 in place of -inf"},
        wanted="as before",
    )


FORBIDDEN = Contract(
    "forbidden",
    "a forbidden token is no trouble",
    "A logit of -inf for a token that is not the right one is legal: value and gradient are those of a hopeless token.",
    forbidden,
)


def gradients(loss: TokenSubject, draw: Draw) -> None:
    """Softmax minus one-hot over the number of targets, and 0 at what is no target."""
    parts = draw(texts(number=draw(up_to(2))))
    batch = padded(parts, max(part.labels.shape[1] for part in parts) + draw(up_to(1, 0)))
    got = loss.plain(batch)
    if got.gradient is None:
        raise Exempt("it gives no gradient")
    must_agree(
        loss,
        got,
        loss.exact(batch),
        batch,
        "The gradient is not softmax minus one-hot" + (", by target." if loss.conventions.reduction == "mean" else "."),
        of_value=False,
    )


GRADIENTS = Contract(
    "gradients",
    "the gradient is softmax minus one-hot",
    "The gradient of a target's row is its softmax minus 1 at the right token, divided by the number of targets; every "
    "other row's is 0.",
    gradients,
    under="reduction='sum' asks for it undivided, base= for it in that unit; of a perplexity it is the logarithm's.",
)


def accumulation(loss: TokenSubject, draw: Draw) -> None:
    """A batch in two micro-batches, whose values and gradients are added up."""
    if loss.perplexity:
        raise Exempt("it returns a perplexity, and those of parts do not add up")
    keyword = next((name for name in NUMBER_OF_TARGETS if loss.takes(name)), None)
    summed = loss.conventions.reduction == "sum"
    if keyword is None and not summed:
        raise Exempt(
            "it offers no way: a mean of micro-batches' means weighs their tokens unequally; reduction='sum', or a "
            f"keyword such as {NUMBER_OF_TARGETS[0]}, would be one"
        )
    parts = draw(texts(number=2, most=5))
    batch = padded(parts)
    counts = [count(part) for part in parts]
    n = sum(counts)
    options: dict[str, Any] = {keyword: n} if keyword is not None and not summed else {}
    micro = [loss.run(part, **options) for part in parts]
    value = sum(taught.value for taught in micro)
    gradient = np.zeros(batch.logits.shape)
    for i, taught in enumerate(micro):
        if taught.gradient is not None:
            gradient[i, : taught.gradient.shape[1]] = taught.gradient[0]
    got = Taught(value, gradient, loss.said(value))
    want = loss.plain(batch)
    told = f", each told {keyword}={n}," if options else ""
    sentence = f"Micro-batches of {counts[0]} and {counts[1]} targets{told} do not add up to the whole batch."
    if options and not off(value, sum(loss.plain(part).value for part in parts), rooms(loss, batch)[0]):
        sentence = f"It takes {keyword} and ignores it: {sentence[0].lower()}{sentence[1:]}"
    setting = {f"{loss.noun} of micro-batch {i}": show(taught.raw) for i, taught in enumerate(micro, 1)}
    must_agree(loss, got, want, batch, sentence, setting)


ACCUMULATION = Contract(
    "accumulation",
    "micro-batches add up",
    "Told how many targets the whole batch has, micro-batches' values and gradients sum to those of the whole batch.",
    accumulation,
    under="Asked of a loss with a keyword num_items_in_batch, num_items, num_tokens or total_tokens, and of sums.",
)


def objective(loss: TokenSubject, draw: Draw) -> None:
    """Value and gradient against the slow float64 loops of the objective it claims to be."""
    parts = draw(texts(number=draw(up_to(2))))
    batch = padded(parts)
    given = loss.seen(batch)
    raw, by_logits = loss.against(given, loss.conventions)
    scale = 1.0 if loss.perplexity else math.log(loss.conventions.base)
    gradient = np.zeros(batch.logits.shape)
    gradient[:, : given.logits.shape[1]] = np.array(by_logits) * scale
    want = Taught(raw * scale, gradient, loss.said(raw * scale, loss.conventions.base))
    got = loss.run(batch)
    got = Taught(loss.nats(got.raw, loss.conventions.base), got.gradient, got.raw, got.dtype)
    if off(got.value, want.value, rooms(loss, batch)[0]):
        raise broken(loss, got, want, batch, "It is not the objective it is compared with.")
    must_agree(loss, got, want, batch, "It is not the objective it is compared with.")


OBJECTIVE = Contract(
    "objective",
    "it is the objective it claims to be",
    "Value and gradient equal those of the objective named in against=, computed in float64.",
    objective,
    under="With the labels, the reduction and the base that the loss declares; of a perplexity, its logarithm.",
)
