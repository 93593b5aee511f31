"""Make ``data/apidocs``: ``python -m losslab.corpora.build_apidocs [--out DIR] [--model FOLDER]``.

Harvests the installed libraries, encodes what is not in the embedding store yet, labels, splits, and writes
``pairs.csv``, ``embeddings.npz`` and ``record.json``. The same versions and embeddings give the same bytes.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import io
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from losslab.corpora.apidocs import COLUMNS, DISTRIBUTIONS, NEAR, SPLITS, Split, group, installed, text_hash, unit_rows
from losslab.corpora.encoders import Encoder
from losslab.corpora.files import as_npz, replace_file
from losslab.corpora.harvest import Pair, harvest
from losslab.corpora.models import MINILM, Unavailable

SHARES = {"train": 0.60, "validation": 0.15, "test": 0.25}
BLOCK = 1024  # rows of the cosine matrix held at a time


def build(folder: Path, encoder: Encoder) -> dict[str, object]:
    """Write the three files into ``folder``; return the record."""
    found = harvest()
    unstable = unstable_names(found.pairs)
    pairs = [pair for pair in found.pairs if pair.name not in unstable]
    half = {
        "queries": encoder.encode([pair.summary for pair in pairs]).half().numpy(),
        "documents": encoder.encode([pair.body for pair in pairs]).half().numpy(),
    }
    queries, documents = unit_rows(half["queries"]), unit_rows(half["documents"])  # as a reader will see them
    summaries = group([pair.summary for pair in pairs])
    (near_query, query_edges), (near_document, document_edges) = neighbours(queries), neighbours(documents)
    component = components(len(pairs), [*same(summaries), *query_edges, *document_edges])
    splits = assign([pair.name for pair in pairs], component)
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(COLUMNS)
    for i, pair in enumerate(pairs):
        hashes = (text_hash(pair.summary), text_hash(pair.body))
        cosines = (f"{near_query[i]:.4f}", f"{near_document[i]:.4f}")
        writer.writerow((pair.name, *hashes, splits[i], component[i], *cosines))
    contents = {"pairs.csv": table.getvalue().encode(), "embeddings.npz": as_npz(**half)}
    bodies = group([pair.body for pair in pairs])
    record: dict[str, object] = {
        "pairs": len(pairs),
        "by_package": dict(sorted(Counter(pair.name.split(".")[0] for pair in pairs).items())),
        "by_split": {split: splits.count(split) for split in SPLITS},
        "components": len(set(component.tolist())),
        "largest_component": int(np.bincount(component).max()),
        "sharing_summary": shared(summaries),
        "sharing_document": shared(bodies),
        "aliases_left_out": found.aliases,
        "unstable_left_out": sorted(unstable),
        "modules_failed": dict(found.failed),
        "versions": {package: installed(package) for package in DISTRIBUTIONS},
        "model": MINILM.name,
        "revision": MINILM.revision,
        "weights_sha256": encoder.sha256,
        "max_seq_length": encoder.max_seq_length,
        "precision": encoder.precision,
        "near": NEAR,
        "command": "python -m losslab.corpora.build_apidocs",
        "sha256": {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()},
    }
    for name, content in contents.items():
        replace_file(folder / name, content)
    replace_file(folder / "record.json", (json.dumps(record, indent=2) + "\n").encode())
    return record


def unstable_names(pairs: Sequence[Pair]) -> set[str]:
    """Names whose docstring reads differently in another process.

    A set printed in hash order, an example run anew with every import, a library that rewrites another one's docstring:
    so in two other processes, with other hash seeds, the second with the packages in the opposite order.
    """
    packages = sorted({pair.name.split(".")[0] for pair in pairs})
    there: set[str] = set()
    for seed, order in (("1", packages), ("2", packages[::-1])):
        code = (
            "import json; from losslab.corpora.harvest import harvest; from losslab.corpora.apidocs import text_hash; "
            f"found = harvest({order!r}).pairs; "
            "print(json.dumps({pair.name: [text_hash(pair.summary), text_hash(pair.body)] for pair in found}))"
        )
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        other = json.loads(done.stdout)
        there |= {p.name for p in pairs if other.get(p.name) != [text_hash(p.summary), text_hash(p.body)]}
    return there


def neighbours(vectors: Tensor, threshold: float = NEAR) -> tuple[NDArray[np.float32], list[tuple[int, int]]]:
    """Each row's largest cosine with another row, (N,), and all pairs i < j above the threshold."""
    largest = torch.empty(len(vectors))
    edges: list[tuple[int, int]] = []
    for start in range(0, len(vectors), BLOCK):
        cosines = vectors[start : start + BLOCK] @ vectors.T
        rows = torch.arange(len(cosines))
        cosines[rows, rows + start] = -1
        largest[start : start + BLOCK] = cosines.max(1).values
        above = (cosines > threshold).nonzero()
        edges += [(int(i) + start, int(j)) for i, j in above if int(i) + start < int(j)]
    return largest.numpy(), edges


def same(groups: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Each row joined to the first of its group."""
    first: dict[int, int] = {}
    return [(first.setdefault(int(number), row), row) for row, number in enumerate(groups)]


def components(n: int, edges: Sequence[tuple[int, int]]) -> NDArray[np.int64]:
    """Number the connected components of n rows in the order of their first row, (n,)."""
    parent = list(range(n))

    def root(row: int) -> int:
        while parent[row] != row:
            parent[row] = parent[parent[row]]  # halves the path each time it is walked
            row = parent[row]
        return row

    for one, other in edges:
        a, b = sorted((root(one), root(other)))
        parent[b] = a
    return group([str(root(row)) for row in range(n)])


def assign(names: Sequence[str], component: NDArray[np.int64]) -> list[Split]:
    """Split of each row: where the hash of its component's first name falls between 0 and 1."""
    first: dict[int, Split] = {}
    for name, number in zip(names, component, strict=True):
        first.setdefault(int(number), split_of(name))
    return [first[int(number)] for number in component]


def split_of(name: str) -> Split:
    """Train below 0.6, validation up to 0.75, test above, by the first 8 bytes of the name's SHA-256."""
    place = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") / 2**64
    if place < SHARES["train"]:
        return "train"
    return "validation" if place < SHARES["train"] + SHARES["validation"] else "test"


def shared(groups: NDArray[np.int64]) -> int:
    """Rows that are not alone in their group."""
    sizes = np.bincount(groups)
    return int(sizes[sizes > 1].sum())


def main(argv: Sequence[str] | None = None) -> int:
    """Build, print where; 1 with one line if the model cannot be had or a file is damaged."""
    parser = argparse.ArgumentParser(prog="python -m losslab.corpora.build_apidocs", description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("data/apidocs"), help="folder to write (default: %(default)s)")
    parser.add_argument("--model", type=Path, help="local folder with MiniLM; by default the package or the hub")
    parser.add_argument("--precision", choices=("float32", "bfloat16"), default="float32")
    arguments = parser.parse_args(argv)
    try:
        source = arguments.model or MINILM.name
        sha256 = MINILM.sha256 if arguments.model else None
        encoder = Encoder(source, sha256=sha256, max_seq_length=MINILM.max_seq_length, precision=arguments.precision)
        record = build(arguments.out, encoder)
    except (Unavailable, ValueError, OSError) as problem:
        print(f"build_apidocs: {problem}", file=sys.stderr)
        return 1
    print(f"{record['pairs']} pairs in {arguments.out}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
