"""Ghost documents: how the length of somebody else's list changes what our query teaches."""

from __future__ import annotations

import traitlets
from matplotlib.figure import Figure as Canvas

from losslab.figures import _parts as parts
from losslab.figures._listwise import Outcome, list_mle
from losslab.figures._numbers import num, percent, plural, up_or_down
from losslab.figures._sheet import TEXT, Sheet, measure, spread
from losslab.figures.base import Figure, Tenth, Whole


class GhostDocuments(Figure):
    """One query of two documents in a batch with a longer one: choices, pushes and loss, with the bug and without.

    Attributes
    ----------
    width : int
        Documents in the other query's list, which is the width of the padded batch; 2 to 12.
    fixed : bool
        False: empty slots are summed, then masked (the bug). True: masked before the sum.
    logit_b : float
        Our query's logit for document B, −1 to 2, in tenths; A's is 1.5.
    """

    NAME = "ghosts"
    TITLE = "Ghost documents"

    width = Whole(6, 2, parts.MOST).tag(sync=True)
    fixed = traitlets.Bool(False).tag(sync=True)
    logit_b = Tenth(0.3, -1.0, 2.0).tag(sync=True)

    def _now_and_right(self) -> tuple[Outcome, Outcome]:
        logits, padding = (parts.LOGIT_A, self.logit_b), self.width - 2
        return list_mle(logits, padding, self.fixed), list_mle(logits, padding, masked=True)

    def describe(self) -> str:
        """Return in words what the figure now shows."""
        now, right = self._now_and_right()
        padding, loss = self.width - 2, num(now.loss, 3)
        push_a, push_b = (up_or_down(-g) for g in now.gradient)
        pushed = f"A is pushed {push_a} and B {push_b}"
        if not padding:
            return f"With lists of equal length nothing is padded: the loss is {loss}, {pushed}, mask or no mask."
        if self.fixed:
            same = "as with no padding at all"
            return f"Padded to {self.width}, masked before the sum: the loss stays {loss}, {pushed}, {same}."
        first, second = (percent(choice.ghosts, 0) for choice in now.choices)
        hold = "hold" if padding > 1 else "holds"
        ghosts = f"{plural(padding, 'ghost')} {hold} {first} of choice 1 and {second} of choice 2"
        flipped = now.gradient[1] * right.gradient[1] < 0
        effect = f"B is pushed {push_b} "
        effect += f"instead of {up_or_down(-right.gradient[1])}" if flipped else "by the wrong amount"
        return f"Padded to {self.width}: {ghosts}, the loss reads {loss} instead of {num(right.loss, 3)}, and {effect}."

    def twin(self) -> Canvas:
        """Return the still twin of the current state."""
        now, right = self._now_and_right()
        logits, padding = (parts.LOGIT_A, self.logit_b), self.width - 2
        sheet = Sheet(height=634)
        slots = parts.Slots(sheet.width, gutter=130)
        counted = f"adds {'0' if self.fixed else 'exp(1e-16) = 1'} to the sums below"
        y = slots.ours(sheet, 2, logits, self.width, self.fixed, "logits of A and B", counted) + 18
        y = slots.other(sheet, y, self.width) + 40
        for i, choice in enumerate(now.choices):
            slots.head(sheet, y, f"Choice {i + 1}", f"{parts.NAMES[i]} should win")
            self._bar(sheet, slots, y, i, padding)
            sheet.text(sheet.width, y + 16, "−ln(share)", colour="muted", anchor="end")
            sheet.text(sheet.width, y + 35, num(choice.cost), size=TEXT, strong=True, anchor="end")
            y += 72
        y += 14
        docs = [
            parts.Push(name, look, -a, -b)
            for name, look, a, b in zip(parts.NAMES, parts.LOOKS, now.gradient, right.gradient, strict=True)
        ]
        parts.pushes(sheet, 0, y, sheet.width * 0.44, docs, (1.1, -0.75), (1, 0.5, 0, -0.5))
        parts.loss_picture(
            sheet,
            sheet.width * 0.53,
            y,
            sheet.width * 0.47,
            losses={w: list_mle(logits, w - 2, masked=False).loss for w in range(2, parts.MOST + 1)},
            width=self.width,
            loss=now.loss,
            right=right.loss,
            ticks=range(2, parts.MOST + 1, 2),
            note="sum of both choices",
            wrong_name="ghosts summed",
            right_name=f"masked: {num(right.loss)}",
            highest=4,
        )
        return sheet.canvas

    def _bar(self, sheet: Sheet, slots: parts.Slots, y: float, turn: int, padding: int) -> None:
        """Draw one choice as a bar of probability, each share named below it."""
        choice = self._now_and_right()[0].choices[turn]
        x, inner = slots.gutter, sheet.width - slots.gutter - 108
        labels: list[tuple[float, str, bool]] = []
        for j, share in enumerate((*choice.shares, choice.ghosts)):
            length = share * inner
            sheet.rect(x, y + 0.5, length, 27, parts.LOOKS[j] if j < 2 else "ghost-solid-hatched")
            name = parts.NAMES[j] if j < 2 else plural(padding, "ghost")
            if share:
                labels.append((x + length / 2, f"{name} {percent(share)}", j == turn))
            x += length
        centres = spread([(c, measure(t, strong=True)) for c, t, _ in labels], slots.gutter, slots.gutter + inner)
        for centre, (_, text, strong) in zip(centres, labels, strict=True):
            sheet.text(centre, y + 45, text, strong=strong, anchor="middle")
