"""Which row is judged by which token: the shift, padding, ignored labels, masks, and texts with nothing to predict."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from hypothesis import strategies as st

from losslab.contracts.model import (
    IGNORED,
    BrokenPromise,
    Contract,
    Counterexample,
    Draw,
    Exempt,
    Exemption,
    LossFailed,
    Quantity,
    Texts,
)
from losslab.contracts.token.agreement import broken, must_agree, off, rooms
from losslab.contracts.token.subject import Taught, TokenSubject, count
from losslab.contracts.token.texts import fills, padded, real, texts, up_to
from losslab.contracts.wording import show

# Five tokens whose rows judge every token differently, so that a value tells which row was judged by which.
TELLING = Texts(
    np.array(
        [[[0.0, 2.0, -1.0, 1.0], [3.0, 0.0, 1.5, 2.0], [0.5, -2.0, 4.0, 0.0], [2.5, 1.0, 0.0, 5.0], [1, 7, 4, 0]]]
    ),
    np.array([[2, 1, 0, 3, 1]]),
)


def shift(loss: TokenSubject, draw: Draw) -> None:
    """Change what nothing predicts, and what predicts nothing; then the first and the last target."""
    (text,) = draw(texts(fewest=3, most=4, uneven=True))
    words = text.logits.shape[2]
    before = loss.run(text, gradients=False)
    other = (text.labels[0] + draw(up_to(words - 1, 1))) % words
    ends = Texts(text.logits.copy(), text.labels.copy())
    ends.logits[0, -1] = ends.logits[0, -1][::-1] + np.arange(words)
    ends.labels[0, 0] = other[0]
    changes = [(ends, False)] if loss.conventions.shift else []  # else these are not given to the loss at all
    for place in (1, -1):
        changed = Texts(text.logits, text.labels.copy())
        changed.labels[0, place] = other[place]
        changes.append((changed, True))
    for changed, matters in changes:
        after = loss.run(changed, gradients=False)
        room = 2 * rooms(loss, changed)[0]
        if off(after.value, before.value, room) != matters:
            shown, got = max((text, before), (changed, after), key=lambda case: _error(loss, *case))
            raise broken(loss, got, loss.exact(shown), shown, f"{misread(loss)} {UNTOLD if matters else TOLD}".strip())


TOLD = "What nothing predicts, the first label, or what predicts nothing, the last row, changes the value."
UNTOLD = "A target can be exchanged for another token without any change of the value."


def _error(loss: TokenSubject, text: Texts, got: Taught) -> float:
    error = abs(got.value - loss.exact(text).value)
    return math.inf if math.isnan(error) else error


def misread(loss: TokenSubject) -> str:
    """Which label its rows are judged by, and what to declare, if it can be told from a telling text."""
    given = loss.given(TELLING)
    rows, labels = given.logits[0], given.labels[0]
    try:
        value = loss.run(TELLING, gradients=False).value
    except LossFailed:
        return ""
    for ahead, sentence in SHIFTS[loss.conventions.shift].items():
        pairs = [(t, t + ahead) for t in range(len(rows)) if 0 <= t + ahead < len(rows)]
        costs = [float(np.log(np.exp(rows[t]).sum()) - rows[t, labels[u]]) for t, u in pairs]
        want = sum(costs) * loss.weight(len(costs))
        if not off(value, want, rooms(loss, TELLING)[0]):
            return sentence
    return ""


SHIFTS = {
    True: {
        0: "It does not shift: each row is judged by the token it has just read. The loss seems to expect labels that "
        "are shifted already: if so, check(..., shift=False).",
        2: "It shifts twice: each row is judged by the token after the next.",
        -1: "It shifts the wrong way: each row is judged by the token before the one it has just read.",
    },
    False: {
        1: "It shifts labels that are shifted already: each row is judged by the token after the next. The loss seems "
        "to expect the input ids: if so, check(..., shift=True).",
        -1: "It shifts labels the wrong way: each row is judged by the token it has just read.",
    },
}

SHIFT = Contract(
    "shift",
    "a row is judged by the next token",
    "Row t of the logits is judged by token t + 1, once shifted: the last row and the first label change nothing, and "
    "every other label does.",
    shift,
    under="shift=False: labels are given shifted, and row t is judged by label t.",
)


def padding(loss: TokenSubject, draw: Draw) -> None:
    """A text alone, and with positions behind it whose label is no target."""
    (text,) = draw(texts())
    extra, fill = draw(up_to(3)), draw(fills(text.logits.shape[2]))
    width = text.labels.shape[1] + extra
    wide = padded([text], width, fill=fill)
    with_mask = loss.mask_keyword is not None and draw(st.booleans())
    if with_mask:
        wide = Texts(wide.logits, wide.labels, real([text], width))
    alone = loss.plain(text)
    got, want = loss.run(wide), moved(loss, alone, wide, 0)
    sentence = f"With {_positions(extra)} of padding behind it the same text teaches something else."
    sentence += still_in(loss, got, want, count(wide), count(wide) + extra)
    must_agree(loss, got, want, wide, sentence, _before(loss, text), wanted="as before")


def moved(loss: TokenSubject, alone: Taught, wide: Texts, start: int) -> Taught:
    """What a text taught alone, where it stands in a padded batch."""
    return loss.whole(wide, [(alone, max(1, count(wide)), 0, start)])


def _positions(n: int) -> str:
    return "one position" if n == 1 else f"{n} positions"


def _before(loss: TokenSubject, text: Texts) -> Mapping[str, str]:
    return {"before": ", ".join(loss.seen(text).lines())}


def still_in(loss: TokenSubject, got: Taught, want: Taught, right: int, wrong: int) -> str:
    """Whether the value is what comes of a count that is too large, in words."""
    if loss.conventions.reduction == "mean" and right and math.isfinite(got.value) and want.value > 1e-3:
        ratio = got.value / want.value
        if abs(ratio * wrong / right - 1) < 1e-4:
            return f" It divides by {wrong}, not by the {right} that are targets."
    return ""


PADDING = Contract(
    "padding",
    "padding changes nothing",
    "However many positions whose label is no target follow a text, and whatever their logits are, value and gradient "
    "stay the same, and nothing is taught there.",
    padding,
    under="A loss with a keyword mask or attention_mask is also asked with it.",
)


def padding_side(loss: TokenSubject, draw: Draw) -> None:
    """The padding before the text rather than behind it."""
    parts = draw(texts(number=draw(up_to(2))))
    fill = draw(fills(parts[0].logits.shape[2]))
    width = max(part.labels.shape[1] for part in parts) + draw(up_to(2))
    right, left = padded(parts, width, fill=fill), padded(parts, width, left=True, fill=fill)
    by_mask, setting = False, {}
    if loss.mask_keyword is not None:
        by_mask = draw(st.booleans())  # by the mask alone: labels at padding are ids
        masks = [real(parts, width, left=side) for side in (False, True)]
        right, left = Texts(right.logits, right.labels, masks[0]), Texts(left.logits, left.labels, masks[1])
        if by_mask:
            right, left = ids_at_padding(right, parts), ids_at_padding(left, parts, left=True)
            setting["padding"] = f"told by {loss.mask_keyword} alone"
    before = loss.plain(right)
    sentence = "With the padding on the left the same text teaches something else."
    if len(parts) > 1:
        sentence = "With the padding on the left the same texts teach something else."
    gradient = None
    if before.gradient is not None:
        gradient = np.zeros(left.logits.shape)
        for i, part in enumerate(parts):
            n = part.labels.shape[1]
            gradient[i, width - n :] = before.gradient[i, :n]
    want = Taught(before.value, gradient, before.raw)
    must_agree(loss, loss.run(left), want, left, sentence, setting, wanted="as before")


def ids_at_padding(batch: Texts, parts: list[Texts], *, left: bool = False) -> Texts:
    """The same with token 0 as the label at padding, as a tokenizer leaves it, so that the mask alone tells."""
    labels = np.where(batch.labels == IGNORED, 0, batch.labels)
    for i, part in enumerate(parts):
        n = part.labels.shape[1]
        labels[i, slice(-n, None) if left else slice(0, n)] = part.labels[0]
    return Texts(batch.logits, labels, batch.mask)


PADDING_SIDE = Contract(
    "padding_side",
    "left or right padding is one",
    "Padded on the left, texts teach what they teach padded on the right. Their first token is then no target either: "
    "only padding stands before it.",
    padding_side,
    under="Without a mask the labels say so. With one, the loss must know it by the mask alone as well.",
)


def ignored(loss: TokenSubject, draw: Draw) -> None:
    """Some tokens of a text are no targets: what is left is the mean of the others, each asked alone."""
    (text,) = draw(texts(fewest=3, most=5))
    n = text.labels.shape[1] - 1
    kept = draw(st.lists(st.booleans(), min_size=n, max_size=n))
    if all(kept) or not any(kept):
        kept = [True, *[False] * (n - 1)]
    some = Texts(text.logits, text.labels.copy())
    some.labels[0, 1:] = np.where(kept, text.labels[0, 1:], IGNORED)
    parts = []
    for t in np.flatnonzero(kept):
        alone = Texts(text.logits[:, t : t + 2], text.labels[:, t : t + 2])
        parts.append((loss.plain(alone), 1, 0, int(t)))
    want, got = loss.whole(some, parts), loss.run(some)
    sentence = "With some tokens ignored it is not the " + (
        "mean of the others." if loss.conventions.reduction == "mean" else "sum of the others."
    )
    must_agree(loss, got, want, some, sentence + still_in(loss, got, want, sum(kept), n))


IGNORED_LABELS = Contract(
    "ignored",
    "ignored tokens leave sum and count",
    "A token whose label is the ignore index is in neither numerator nor denominator: the value is the mean over the "
    "targets that are left, and the ignored positions get no gradient.",
    ignored,
    under="reduction='sum' asks for their sum.",
)


def mask(loss: TokenSubject, draw: Draw) -> None:
    """Padding told by the mask, not by the labels, which are ids there too."""
    if loss.mask_keyword is None:
        raise Exempt("it takes no mask: what is no target, it is told by the labels alone")
    parts = draw(texts(number=draw(up_to(2))))
    fill = draw(fills(parts[0].logits.shape[2]))
    width = max(part.labels.shape[1] for part in parts) + draw(up_to(2))
    by_label = padded(parts, width, fill=fill)
    by_mask = ids_at_padding(Texts(by_label.logits, by_label.labels, real(parts, width)), parts)
    before, got = loss.plain(by_label), loss.run(by_mask)
    total = int(by_mask.labels[:, 1:].size)
    sentence = f"Padding that the labels do not tell but {loss.mask_keyword}= does teaches something."
    sentence += still_in(loss, got, before, count(by_mask), total)
    must_agree(loss, got, before, by_mask, sentence, wanted="as before")


MASK = Contract(
    "mask",
    "a mask says what ignored labels say",
    "What the mask calls padding is in neither numerator nor denominator, whatever label stands there.",
    mask,
)


def no_target(loss: TokenSubject, draw: Draw) -> None:
    """A text of one token, or with all labels ignored: alone it has no loss, and beside another it adds none."""
    long, other = draw(texts(number=2))
    one_token = loss.conventions.shift and draw(st.booleans())
    tokens = 1 if one_token else long.labels.shape[1]
    labels = np.where(np.arange(tokens) == 0, long.labels[:, :tokens], IGNORED)
    nothing = Texts(long.logits[:, :tokens], labels)
    said = "A text of one token" if one_token else "A text without a target"
    try:
        alone = loss.run(nothing, gradients=False)
    except LossFailed:
        pass  # it refuses, which is right
    else:
        if math.isfinite(alone.value):
            raise BrokenPromise(
                Counterexample(
                    f"{said} has nothing to predict, and yet a {loss.noun}.",
                    (),
                    {},
                    (Quantity(loss.noun, alone.raw, math.nan),),
                    texts=loss.seen(nothing),
                )
            )
    order = [nothing, other] if draw(st.booleans()) else [other, nothing]
    batch = padded(order)
    want = loss.whole(batch, [(loss.plain(other), count(other), order.index(other), 0)])
    got = loss.run(batch)
    sentence = f"{said}, which has nothing to predict, counts beside another."
    must_agree(loss, got, want, batch, sentence)


NO_TARGET = Contract(
    "no_target",
    "no target, no number",
    "A text with nothing to predict has no loss: alone it gives an error or nan, never a finite number, and beside "
    "another text it does not count.",
    no_target,
    (Exemption("reduction", "sum", "the sum over no targets is 0"),),
)


def batching(loss: TokenSubject, draw: Draw) -> None:
    """Two or three texts in any order: the mean over all their tokens."""
    parts = draw(texts(number=draw(up_to(3, 2)), most=5))
    batch = padded(parts)
    alone = [loss.plain(part) for part in parts]
    counts = [count(part) for part in parts]
    want = loss.whole(batch, [(taught, n, i, 0) for i, (taught, n) in enumerate(zip(alone, counts, strict=True))])
    got = loss.run(batch)
    mean = loss.conventions.reduction == "mean"
    sentence = f"A batch of {len(parts)} texts is not the {'mean over all its tokens' if mean else 'sum of its texts'}."
    room = rooms(loss, batch)[0]
    if mean:
        n = len(parts)
        means = loss.whole(batch, [(taught, 1, i, 0) for i, taught in enumerate(alone)])
        same_slope = (
            got.gradient is None or means.gradient is None or np.allclose(got.gradient, means.gradient, 0, 1e-5)
        )
        if not off(got.value, means.value, room) and same_slope and len(set(counts)) > 1:
            sentence = "It is the mean of its texts' means, in which the tokens of a short text count more."
        elif loss.perplexity and not off(got.raw, sum(taught.raw for taught in alone) / n, room * max(1.0, got.raw)):
            sentence = "It is the mean of its texts' perplexities, not the perplexity of all their tokens."
        elif not off(got.value, sum(t.value * c for t, c in zip(alone, counts, strict=True)), room):
            sentence = "It is the sum over its tokens: if that is what it should be, declare reduction='sum'."
    setting = {f"text {i} alone": show(taught.raw) for i, taught in enumerate(alone, 1)}
    must_agree(loss, got, want, batch, sentence, setting)


BATCHING = Contract(
    "batching",
    "a batch is its tokens",
    "A batch's value is the mean over all its tokens, each with the same weight whatever text it is in and in "
    "whatever order the texts stand.",
    batching,
    under="reduction='sum' asks for the sum.",
)
