"""The shipped corpus: whole, consistent, split cleanly, fast to read; and what happens when it is not whole."""

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from losslab.corpora import apidocs, build_apidocs
from losslab.corpora.harvest import Harvest, Pair, harvest, look_up
from losslab.retrieval import evaluate

SHIPPED = Path(__file__).parents[2] / "data" / "apidocs"


@pytest.fixture(scope="module")
def corpus():
    return apidocs.load()


@pytest.fixture
def copy(tmp_path):
    return Path(shutil.copytree(SHIPPED, tmp_path / "apidocs"))


def test_rows_belong_together(corpus):
    n = len(corpus)
    assert n == corpus.record["pairs"] > 3000
    assert corpus.names == sorted(set(corpus.names))
    for tensor in (corpus.queries, corpus.documents):
        assert tensor.shape == (n, 384)
        assert tensor.dtype == torch.float32
        assert (tensor.norm(dim=1) - 1).abs().max() < 1e-6
    for labels in (corpus.split, corpus.component, corpus.summary_group, corpus.document_group):
        assert labels.shape == (n,)
    assert (corpus.queries * corpus.documents).sum(1).mean() > 0.4  # the right rows beside each other
    assert (corpus.queries * corpus.documents.roll(1, 0)).sum(1).mean() < 0.4


def test_nothing_near_crosses_the_splits(corpus):
    split = np.array([apidocs.SPLITS.index(name) for name in corpus.split])
    for vectors in (corpus.queries, corpus.documents):
        for start in range(0, len(corpus), 500):
            near = (vectors[start : start + 500] @ vectors.T).numpy() > apidocs.NEAR + 1e-6
            rows, columns = np.nonzero(near)
            assert (split[rows + start] == split[columns]).all()
    for groups in (corpus.summary_group, corpus.document_group, corpus.component):
        for number in np.unique(groups):
            assert len(set(corpus.split[groups == number])) == 1


def test_the_split_is_the_hash_of_a_components_first_name(corpus):
    first = {}
    for i, number in enumerate(corpus.component):
        first.setdefault(int(number), i)
    for number, i in first.items():
        place = int(hashlib.sha256(corpus.names[i].encode()).hexdigest()[:16], 16) / 16**16
        want = "train" if place < 0.6 else "validation" if place < 0.75 else "test"
        assert set(corpus.split[corpus.component == number]) == {want}
    shares = [(corpus.split == name).mean() for name in apidocs.SPLITS]
    np.testing.assert_allclose(shares, [0.6, 0.15, 0.25], atol=0.03)


def test_components_are_joined_by_the_labels_alone(corpus):
    """Once more from the labels and cosines, by spreading the smallest row number until nothing changes."""
    near = (corpus.queries @ corpus.queries.T > apidocs.NEAR) | (corpus.documents @ corpus.documents.T > apidocs.NEAR)
    near |= torch.from_numpy(corpus.summary_group[:, None] == corpus.summary_group)
    joined = near.numpy()
    label = np.arange(len(corpus))
    while True:
        spread = np.array([label[row].min() for row in joined])
        if (spread == label).all():
            break
        label = spread
    assert len(np.unique(label)) == len(np.unique(corpus.component))
    assert len(np.unique(np.stack([label, corpus.component]), axis=1).T) == len(np.unique(label))


def test_nearest_cosines_are_those_of_the_shipped_vectors(corpus):
    rows = np.arange(0, len(corpus), 37)
    for vectors, given in ((corpus.queries, corpus.nearest_query), (corpus.documents, corpus.nearest_document)):
        cosines = vectors[rows] @ vectors.T
        cosines[np.arange(len(rows)), rows] = -1
        np.testing.assert_allclose(cosines.max(1).values.numpy(), given[rows], atol=1e-4)


def test_positives_share_the_summary_or_the_text_of_one_that_does(corpus):
    counts = np.bincount(corpus.summary_group)
    chosen = [*range(0, len(corpus), 101), int(np.flatnonzero(counts[corpus.summary_group] == counts.max())[0])]
    for i in chosen:
        same = corpus.summary_group == corpus.summary_group[i]
        want = np.flatnonzero(np.isin(corpus.document_group, corpus.document_group[same]))
        np.testing.assert_array_equal(corpus.positives(i), want)
        assert i in want
        assert set(corpus.split[want]) == {corpus.split[i]}
    assert len(corpus.positives(chosen[-1])) == corpus.relevant([chosen[-1]])[0].size > 5


def test_relevant_counts_in_places_of_the_documents_searched(corpus):
    rows = corpus.rows("validation")
    found = corpus.relevant(rows, rows)
    for place in range(0, len(rows), 29):
        np.testing.assert_array_equal(rows[found[place]], corpus.positives(rows[place]))


def test_minilm_finds_the_right_document_far_better_than_chance(corpus):
    rows = corpus.rows("test")
    found = evaluate(corpus.queries[rows], corpus.documents[rows], corpus.relevant(rows, rows), ["nDCG@10"])
    assert 0.5 < found["nDCG@10"].mean() < 0.75
    shifted = evaluate(
        corpus.queries[rows].roll(1, 0), corpus.documents[rows], corpus.relevant(rows, rows), ["nDCG@10"]
    )
    assert shifted["nDCG@10"].mean() < 0.2


def test_text_is_read_from_the_libraries_here(corpus):
    i = corpus.names.index("scipy.signal.welch")
    summary, body = corpus.text(i)
    assert summary in " ".join(__import__("scipy.signal").signal.welch.__doc__.split())
    assert "Parameters" in body


def test_all_texts_are_here_at_the_pinned_versions(corpus):
    missing = corpus.missing()
    if all(then == now for then, now in missing.versions.values()):
        assert (missing.gone, missing.changed) == (0, 0), [n for i, n in enumerate(corpus.names) if not corpus.text(i)]
        assert str(missing) == f"All {len(corpus):,} texts are here, word for word."
    else:
        assert f"{missing.gone:,} are missing" in str(missing)
        assert missing.gone + missing.changed < len(corpus) / 2


def test_other_versions_are_counted_and_everything_else_works(copy, monkeypatch):
    """As if scipy were another version: one text changed, one name gone, one library not there."""
    corpus = apidocs.load(copy)
    by_package = {
        package: [n for n in corpus.names if n.startswith(f"{package}.")] for package in apidocs.DISTRIBUTIONS
    }

    def other_version(name):
        if name == by_package["scipy"][0]:
            return Pair(name, "Other text than before.", "Other.")
        if name == by_package["scipy"][1] or name.startswith("sklearn."):
            return None
        return texts.get(name)

    texts = {pair.name: pair for pair in harvest(("numpy", "scipy", "torch", "matplotlib")).pairs}
    monkeypatch.setattr(apidocs, "look_up", other_version)
    monkeypatch.setattr(apidocs, "installed", lambda package: {"scipy": "9.9", "sklearn": None}.get(package, "same"))
    missing = corpus.missing()
    assert missing.changed_by_package == {"scipy": 1}
    assert missing.gone_by_package == {"scipy": 1, "sklearn": len(by_package["sklearn"])}
    assert missing.total - missing.gone - missing.changed == len(corpus) - 2 - len(by_package["sklearn"])
    sentence = str(missing)
    assert "1 read differently" in sentence
    assert "scipy is 9.9, not " in sentence
    assert "scikit-learn is not installed" in sentence
    assert corpus.text(corpus.names.index(by_package["scipy"][0])) is None
    assert corpus.text(corpus.names.index(by_package["scipy"][1])) is None
    assert corpus.text(corpus.names.index("numpy.linalg.solve")) is not None
    assert len(corpus.relevant(corpus.rows("test"))) == len(corpus.rows("test"))


@pytest.mark.parametrize("name", ["embeddings.npz", "pairs.csv"])
@pytest.mark.parametrize("damage", ["truncate", "flip", "remove"])
def test_a_damaged_file_is_named_in_one_line(copy, name, damage):
    path = copy / name
    content = path.read_bytes()
    if damage == "truncate":
        path.write_bytes(content[: len(content) // 2])
    elif damage == "flip":
        path.write_bytes(content[:5000] + bytes([content[5000] ^ 1]) + content[5001:])
    else:
        path.unlink()
    with pytest.raises((ValueError, FileNotFoundError)) as caught:
        apidocs.load(copy)
    message = str(caught.value)
    assert str(path) in message
    assert "\n" not in message
    assert "check data/apidocs out again" in message
    assert ("missing" if damage == "remove" else "SHA-256") in message


@pytest.mark.parametrize("content", ["", "{}", '{"sha256": {}}', "[1]", None])
def test_a_damaged_record_is_named_in_one_line(copy, content):
    if content is None:
        (copy / "record.json").unlink()
    else:
        (copy / "record.json").write_text(content, encoding="utf-8")
    with pytest.raises((ValueError, FileNotFoundError), match=r"record\.json is (damaged|missing); check"):
        apidocs.load(copy)


def test_the_folder_may_be_named_and_must_exist(copy, tmp_path, monkeypatch):
    monkeypatch.setenv("LOSSLAB_DATA_DIR", str(copy.parent))
    assert apidocs.find_folder() == copy
    monkeypatch.setenv("LOSSLAB_DATA_DIR", str(tmp_path / "nowhere"))
    with pytest.raises(ValueError, match=r"LOSSLAB_DATA_DIR is .*no folder"):
        apidocs.load()


def test_wrong_rows_and_splits_are_named(corpus):
    with pytest.raises(ValueError, match=f"row from 0 to {len(corpus) - 1}, got {len(corpus)}"):
        corpus.positives(len(corpus))
    with pytest.raises(ValueError, match="row from 0"):
        corpus.text(-1)
    with pytest.raises(ValueError, match="train, validation, test, got 'dev'"):
        corpus.rows("dev")


def test_no_text_is_shipped(corpus):
    table = (SHIPPED / "pairs.csv").read_text(encoding="utf-8")
    assert {path.name for path in SHIPPED.iterdir() if not path.name.startswith(".")} == {
        "README.md",
        "embeddings.npz",
        "pairs.csv",
        "record.json",
    }
    for i in range(0, len(corpus), 400):
        text = corpus.text(i)
        assert text is None or text[0] not in table
    assert sum(path.stat().st_size for path in SHIPPED.iterdir()) < 10 << 20


def test_the_card_says_what_the_record_says(corpus):
    card, record = (SHIPPED / "README.md").read_text(encoding="utf-8"), corpus.record
    numbers = [record["pairs"], record["components"], record["sharing_summary"], record["sharing_document"]]
    numbers += [*record["by_split"].values(), record["largest_component"], record["aliases_left_out"]]
    for number in numbers:
        assert f"{number:,}" in card, number
    for cosines, near in ((corpus.nearest_query, 0.9), (corpus.nearest_document, 0.9), (corpus.nearest_query, 0.99)):
        assert f"{100 * (cosines > near).mean():.0f} %" in card
    assert record["revision"][:8] in card


def test_loading_needs_neither_scipy_nor_sklearn():
    code = (
        "import sys; import losslab.corpora.apidocs as a; a.load(); "
        "print([m for m in ('scipy', 'sklearn', 'matplotlib', 'transformers', 'datasets') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=SHIPPED)
    assert done.stdout.strip() == "[]"


@pytest.mark.timing
def test_loading_takes_less_than_half_a_second(request):
    import time

    times = []
    for _ in range(3):
        start = time.perf_counter()
        apidocs.load()
        times.append(time.perf_counter() - start)
    request.node.user_properties.append(("measured", f"apidocs.load(): {min(times):.2f} s"))
    assert min(times) < 0.5


def test_building_again_from_the_same_vectors_gives_the_same_labels(corpus, tmp_path, monkeypatch):
    """The builder on a slice of numpy, with the shipped vectors standing in for the encoder."""
    pairs = [pair for pair in harvest(("numpy",)).pairs if pair.name in corpus.names]
    rows = [corpus.names.index(pair.name) for pair in pairs]
    vectors = {}
    for pair, row in zip(pairs, rows, strict=True):
        vectors[pair.summary], vectors[pair.body] = corpus.queries[row], corpus.documents[row]

    class Shipped:
        sha256, max_seq_length, precision = corpus.record["weights_sha256"], 256, "float32"

        def encode(self, texts):
            return torch.stack([vectors[text] for text in texts])

    monkeypatch.setattr(build_apidocs, "harvest", lambda: Harvest(tuple(pairs), aliases=0, failed=()))
    monkeypatch.setattr(build_apidocs, "unstable_names", lambda _: {pairs[0].name})
    build_apidocs.build(tmp_path / "out", Shipped())
    again = apidocs.load(tmp_path / "out")
    assert again.names == [corpus.names[row] for row in rows[1:]]
    assert torch.allclose(again.documents, corpus.documents[rows[1:]], atol=1e-4)
    assert again.record["unstable_left_out"] == [pairs[0].name]
    same = corpus.component[rows[1:]]
    for number in np.unique(again.component):  # fewer pairs join fewer, never others
        assert len(set(same[again.component == number])) == 1
    assert json.loads((tmp_path / "out" / "record.json").read_text(encoding="utf-8"))["pairs"] == len(pairs) - 1
    build_apidocs.build(tmp_path / "twice", Shipped())
    for name in ("pairs.csv", "embeddings.npz"):
        assert (tmp_path / "twice" / name).read_bytes() == (tmp_path / "out" / name).read_bytes()


def test_a_docstring_that_changes_between_processes_is_found():
    stable = look_up("numpy.linalg.qr")
    pairs = [Pair("numpy.linalg.solve", "Not what it says.", "Not at all."), stable]
    assert build_apidocs.unstable_names(pairs) == {"numpy.linalg.solve"}
