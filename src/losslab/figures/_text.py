"""A text in bytes, characters, words and the tokens of somebody's tokenizer, all by offsets in its UTF-8."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import exp, log
from numbers import Integral, Real
from typing import Any

from losslab.figures._amounts import power as raised

OWN = ("bytes", "characters", "words")
MOST_BYTES = 160  # as many boxes as a phone has room for

Unit = dict[str, Any]  # name, vocabulary (0: not known), spans [[start, end), ...] in bytes
Model = dict[str, Any]  # name, unit, nats


def spans_of(text: str) -> dict[str, list[list[int]]]:
    """Return where the bytes, the characters (code points) and the words (what white space parts) of a text are."""
    ends = [0]
    for character in text:
        ends.append(ends[-1] + len(character.encode()))
    words = [[ends[found.start()], ends[found.end()]] for found in re.finditer(r"\S+", text)]
    return {
        "bytes": [[i, i + 1] for i in range(ends[-1])],
        "characters": [list(pair) for pair in pairwise(ends)],
        "words": words,
    }


def read_text(text: object) -> str:
    """Return `text`, or raise a ValueError that says why it cannot be shown."""
    if not isinstance(text, str) or not text.split():
        raise ValueError(f"text must hold a word, not {text!r}")
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise ValueError(f"text must be whole characters: {text[error.start]!r} at {error.start} is none") from None
    if size > MOST_BYTES:
        raise ValueError(f"text must be of {MOST_BYTES} bytes or fewer, not {size}")
    if strange := [c for c in text if not c.isprintable() and c not in "\n\t"]:
        raise ValueError(f"text must be printable, not {strange[0]!r}")
    return text


def read_tokenizer(place: str, given: object, text: str) -> Unit:
    """Return a tokenizer's unit, or raise a ValueError that names what is wrong at `place`."""
    if not isinstance(given, Mapping):
        raise ValueError(f"{place} must be a dict with name, vocabulary and pieces or ends, not {given!r}")
    if strange := sorted(set(given) - {"name", "vocabulary", "pieces", "ends"}):
        raise ValueError(f"{place} has {strange[0]!r}; it takes name, vocabulary and pieces or ends")
    name, vocabulary = given.get("name"), given.get("vocabulary")
    if not isinstance(name, str) or not name.strip() or name in OWN:
        raise ValueError(f"{place} must have a name other than {', '.join(OWN)}, not {name!r}")
    if not isinstance(vocabulary, Integral) or isinstance(vocabulary, bool) or vocabulary < 2:
        raise ValueError(f"{place} must have a vocabulary, an int of 2 or more, not {vocabulary!r}")
    if ("pieces" in given) == ("ends" in given):
        raise ValueError(f"{place} must have either pieces or ends")
    ends = _ends_of_pieces(place, given["pieces"], text) if "pieces" in given else _ends(place, given["ends"], text)
    return {"name": name, "vocabulary": int(vocabulary), "spans": [list(pair) for pair in pairwise([0, *ends])]}


def _ends_of_pieces(place: str, pieces: object, text: str) -> list[int]:
    if isinstance(pieces, str | bytes) or not isinstance(pieces, Sequence) or not pieces:
        raise ValueError(f"{place}: pieces must be a list of texts or bytes, not {pieces!r}")
    whole, at, ends = text.encode(), 0, []
    for i, piece in enumerate(pieces):
        part = piece.encode() if isinstance(piece, str) else piece
        if not isinstance(part, bytes) or not part or whole[at : at + len(part)] != part:
            there = whole[at : at + 12].decode(errors="replace")
            raise ValueError(
                f"{place}: pieces[{i}] must go on with the text at byte {at} ({there!r}), not be {piece!r}"
            )
        at += len(part)
        ends.append(at)
    if at != len(whole):
        raise ValueError(f"{place}: pieces must reach the end of the text, {len(whole)} bytes, not {at}")
    return ends


def _ends(place: str, ends: Any, text: str) -> list[int]:  # noqa: ANN401
    ends = ends.tolist() if hasattr(ends, "tolist") else ends
    size = len(text.encode())
    good = isinstance(ends, Sequence) and all(isinstance(e, Integral) and not isinstance(e, bool) for e in ends)
    if not good or not ends or list(ends) != sorted(set(ends)) or ends[0] < 1 or ends[-1] != size:
        raise ValueError(f"{place}: ends must ascend from 1 or more to the text's {size} bytes, not {ends!r}")
    return [int(e) for e in ends]


def read_models(given: object, units: Sequence[Unit]) -> list[Model]:
    """Return two models, or raise a ValueError that names what is wrong."""
    if not isinstance(given, Sequence) or isinstance(given, str) or len(given) != 2:
        raise ValueError(f"models must be two dicts with name, unit and nats, not {given!r}")
    known, read = [unit["name"] for unit in units], []
    for i, one in enumerate(given):
        if not isinstance(one, Mapping) or set(one) != {"name", "unit", "nats"}:
            raise ValueError(f"models[{i}] must be a dict with name, unit and nats, not {one!r}")
        name, unit, nats = one["name"], one["unit"], one["nats"]
        if not isinstance(name, str) or not name.strip() or len(name) > 24:
            raise ValueError(f"models[{i}] must have a name of 1 to 24 characters, not {name!r}")
        if unit not in known:
            raise ValueError(f"models[{i}] must have a unit that is one of {known}, not {unit!r}")
        cost = float(nats) if isinstance(nats, Real) and not isinstance(nats, bool) else 0.0
        if not 0 < cost <= 1e6:  # a NaN lies nowhere
            raise ValueError(f"models[{i}] must have nats, the whole text's, above 0 and at most 1e6, not {nats!r}")
        read.append({"name": name, "unit": unit, "nats": cost})
    if read[0]["name"] == read[1]["name"]:
        raise ValueError(f"models must have two names, not {read[0]['name']!r} twice")
    return read


def pieces(text: str, spans: Sequence[Sequence[int]]) -> list[str]:
    """Return the pieces of a text as shown: what is no whole character is written in hexadecimal."""
    whole, shown = text.encode(), []
    for start, end in spans:
        part = whole[start:end]
        try:
            shown.append(part.decode().replace(" ", "␣").replace("\n", "↵").replace("\t", "⇥"))
        except UnicodeDecodeError:
            shown.append(part.hex(" ").upper())
    return shown


def noun(unit: Unit, count: int = 1) -> str:
    """Return what a unit is called, one of it or `count`."""
    name = str(unit["name"])
    if name in OWN:
        return name[:-1] if count == 1 else name
    return f"token{'' if count == 1 else 's'} of {name}"


def reading(nats: float, count: int, base: str, power: str) -> float:
    """Return a total over `count` units in nats or bits: as it is, or as the power of e or 2."""
    mean = nats / count / (log(2) if base == "bits" else 1)
    return mean if power == "mean" else raised(mean) if power == "e" else raised(mean, 2.0)


def perplexity(nats: float, count: int) -> float:
    """Return e to the mean, infinity where no double holds it."""
    return exp(nats / count) if nats / count < 709 else raised(nats / count)
