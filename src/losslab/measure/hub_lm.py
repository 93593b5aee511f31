"""A language model of the hub over the same texts, in bits per byte: the one unit in which it meets the byte model.

``python -m losslab.measure.hub_lm NAME REVISION SHA256`` fetches the model once, at that revision and with those
weights, and prints its result beside the byte model's. It needs the hub, so no chapter and no test rests on it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import torch

from losslab.corpora.models import WEIGHTS, Pinned, Unavailable, locate
from losslab.language import Evaluator, Result, byte_model, compare, windows

FILES = ("config.json", "tokenizer.json", "tokenizer_config.json", WEIGHTS)
CONTEXT = 512  # tokens that go into the model at once


def pinned(name: str, revision: str, sha256: str) -> Pinned:
    """Describe a causal model on the hub down to its weights, for `losslab.corpora.models.locate`."""
    return Pinned(name=name, revision=revision, sha256=sha256, files=FILES, max_seq_length=CONTEXT)


def evaluate(
    folder: Path, texts: Sequence[str], *, name: str, context: int = CONTEXT, stride: int | None = None
) -> Result:
    """Perplexity of texts under a causal model of transformers that lies in a folder.

    Every text stands behind the model's start token (or its end token, if it has no other), so that all its bytes are
    predicted and none is given away. Texts longer than ``context`` go through in windows, see `windows`.

    Raises
    ------
    ValueError
        The tokenizer has neither a start nor an end token.
    """
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    model = AutoModelForCausalLM.from_pretrained(folder, local_files_only=True, dtype=torch.float32).eval()  # type: ignore[no-untyped-call]
    start = tokenizer.eos_token_id if tokenizer.bos_token_id is None else tokenizer.bos_token_id
    if start is None:
        raise ValueError(f"the tokenizer of {name} has no start or end token, so a text's first token has no score")
    found = Evaluator(tokenizer=name)
    for number, text in enumerate(texts, start=1):
        ids = torch.tensor([start, *tokenizer(text, add_special_tokens=False)["input_ids"]])
        for window in windows(len(ids), context=context, stride=stride):
            some = ids[window.start : window.stop][None]
            labels = some.clone()
            labels[:, : window.scored - window.start] = found.ignore_index
            with torch.inference_mode():
                logits = model(some).logits
            # The text's bytes come with its first window; together the windows score all of it.
            found.add(logits, labels, ids=[f"text {number}"], texts=[text if window.scored == 1 else ""])
    return found.result()


def main(arguments: Sequence[str] | None = None) -> int:
    """Print both models' results over our own sentences, and their comparison; 1 if the model cannot be had."""
    parser = argparse.ArgumentParser(prog="python -m losslab.measure.hub_lm", description=__doc__)
    for name in ("name", "revision", "sha256"):
        parser.add_argument(name)
    given = parser.parse_args(arguments)
    try:
        folder = locate(pinned(given.name, given.revision, given.sha256))
    except (Unavailable, ValueError) as problem:
        print(problem, file=sys.stderr)
        return 1
    texts = byte_model.prose()
    theirs = evaluate(folder, texts, name=given.name)
    ours = byte_model.evaluate(byte_model.load(), texts)
    print(theirs, ours, compare(theirs, ours, per="byte"), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
