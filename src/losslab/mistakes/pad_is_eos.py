"""The end of a text masked as padding."""

import torch
from torch import Tensor

from losslab.mistakes._record import Example, Function, Mistake


def wrong(ids: Tensor, mask: Tensor, pad: int) -> Tensor:  # noqa: ARG001
    """Labels of a padded batch, -100 at padding: ids (B, T), mask (B, T) bool -> (B, T)."""
    # The mistake: where the end-of-text token pads too, the real end of every text is masked with the padding.
    return ids.masked_fill(ids == pad, -100)


def right(ids: Tensor, mask: Tensor, pad: int) -> Tensor:  # noqa: ARG001
    """Labels of a padded batch, -100 at padding: ids (B, T), mask (B, T) bool -> (B, T)."""
    return ids.masked_fill(~mask, -100)


def real_tokens_stay(make_labels: Function, seed: int = 0) -> str | None:
    """Look for a batch, padded with its end-of-text token 0, in which a real token is no label."""
    generator = torch.Generator().manual_seed(seed)
    for longest in (2, 3, 5):
        lengths = torch.randint(1, longest + 1, (2, 1), generator=generator)
        places = torch.arange(longest + 1)
        ids = torch.randint(1, 4, (2, longest + 1), generator=generator).masked_fill(places >= lengths, 0)
        labels = make_labels(ids, places <= lengths, 0)  # one 0 behind each text is its end
        if (labels[places <= lengths] == -100).any():
            return f"ids {ids.tolist()}, of which {(lengths + 1).flatten().tolist()} are real: labels {labels.tolist()}"
    return None


def show(make_labels: Function, *, ids: list[list[int]], lengths: list[int], pad: int) -> dict[str, list[int]]:
    """Labels of each text."""
    mask = torch.arange(len(ids[0])) < torch.tensor(lengths)[:, None]
    labels = make_labels(torch.tensor(ids), mask, pad).tolist()
    return {f"labels of text {i}": row for i, row in enumerate(labels, 1)}


MISTAKE = Mistake(
    name="pad_is_eos",
    kind="function",
    title="The end is padding",
    symptom="The model never learns to stop, and the end of a text is not in its perplexity.",
    cause="The padding token is the end-of-text token, and labels are masked by id.",
    source="huggingface/transformers#23530",
    case="pad-is-eos",
    breaks="every real token is a label",
    wrong=wrong,
    right=right,
    property=real_tokens_stay,
    topic="perplexity",
    example=Example(
        {"ids": [[1, 2, 0, 0, 0], [1, 2, 3, 2, 0]], "lengths": [3, 5], "pad": 0},
        show,
        note="Token 0 ends a text, and pads it. The model is never asked for it.",
    ),
)
