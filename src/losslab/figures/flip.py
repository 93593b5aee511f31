"""The flip: somebody else's list grows, and one document of ours is pushed the wrong way."""

from __future__ import annotations

from matplotlib.figure import Figure as Canvas

from losslab.figures import _parts as parts
from losslab.figures._listwise import list_mle
from losslab.figures._numbers import num, plural, signed, up_or_down
from losslab.figures._sheet import TEXT, Sheet, linear
from losslab.figures.base import Figure, Whole

_LOGITS = (parts.LOGIT_A, 0.3)
_RIGHT = list_mle(_LOGITS, 0, masked=True)
_COLUMN = 156  # px for the arrows


class Flip(Figure):
    """One slider: the other query's list. What it does to our query's document B, and to our query's loss.

    Attributes
    ----------
    width : int
        Documents in the other query's list, which is the width of the padded batch; 2 to 12.
    """

    NAME = "flip"
    TITLE = "The flip"

    width = Whole(6, 2, parts.MOST).tag(sync=True)

    def describe(self) -> str:
        """Return in words what the figure now shows."""
        padding = self.width - 2
        now = list_mle(_LOGITS, padding, masked=False)
        loss, push, aim = num(now.loss), up_or_down(-now.gradient[1]), up_or_down(-_RIGHT.gradient[1])
        beside = f"Beside a list of {self.width} our query "
        if not padding:
            return f"{beside}needs no padding: the loss reads {loss}, and B is pushed {push}, as it should be."
        slots = f"has {plural(padding, 'empty slot')}. The loss counts {'them' if padding > 1 else 'it'}:"
        return (
            f"{beside}{slots} it reads {loss} instead of {num(_RIGHT.loss)}, and B is pushed {push} instead of {aim}."
        )

    def twin(self) -> Canvas:
        """Return the still twin of the current state."""
        now = list_mle(_LOGITS, self.width - 2, masked=False)
        sheet = Sheet(height=234)
        loss_left, left = sheet.width - 136, sheet.width - 136 - 36 - _COLUMN
        slots = parts.Slots(left - 36, gutter=0)
        y = slots.other(sheet, 0, self.width) + 24
        slots.ours(sheet, y, _LOGITS, self.width, False, "never changes", "counted as a document")

        right, middle, zero = left + _COLUMN, left + 72, 138
        doc = parts.Push("B", parts.LOOKS[1], -now.gradient[1], -_RIGHT.gradient[1])
        sheet.text(left, 14, "Push on B", size=TEXT, strong=True)
        sheet.line([(left, zero), (right, zero)], "zero")
        scale = linear((0.8, 0), (58, zero))
        parts.pair(sheet, doc, middle, scale, size=1.6)
        sheet.text(middle + 8, scale(doc.aim) + 22, "should be", colour="right")
        sheet.text(left, 208, "gradient", colour="muted")
        colour = "wrong" if doc.flips else "ink"
        sheet.text(right, 208, signed(-doc.now), size=TEXT, strong=True, colour=colour, anchor="end")
        sheet.text(left, 228, "should be", colour="muted")
        sheet.text(right, 228, signed(-doc.aim), size=TEXT, colour="right", anchor="end")

        verdict = parts.number(sheet, loss_left, 0, now.loss, _RIGHT.loss, "Loss (nats)")
        sx, sy = linear((2, parts.MOST), (loss_left + 8, sheet.width - 8)), linear((3.4, 0), (104, 200))
        sheet.line([(loss_left, sy(0)), (sheet.width, sy(0))], "zero")
        losses = {w: list_mle(_LOGITS, w - 2, masked=False).loss for w in range(2, parts.MOST + 1)}
        parts.curve(sheet, sx, sy, losses, self.width, now.loss, _RIGHT.loss, verdict, dot=2.5)
        for x, text in ((sx(2), "2"), (loss_left + 68, "documents"), (sx(parts.MOST), str(parts.MOST))):
            sheet.text(x, 222, text, colour="muted", anchor="middle")
        return sheet.canvas
