"""Library losses behind adapters give what their formula gives, in value and gradient, and are left as they were."""

import inspect
import itertools
import math

import pytest
import torch
from torch import nn
from torch.nn import functional

from losslab.contracts.adapters import (
    contrastive_library_loss,
    is_contrastive_library_loss,
    is_sentence_transformers_loss,
    is_token_library_loss,
    sentence_transformers_loss,
    token_library_loss,
)

cross = pytest.importorskip("sentence_transformers.cross_encoder.losses")
dense = pytest.importorskip("sentence_transformers.sentence_transformer.losses")
sparse = pytest.importorskip("sentence_transformers.sparse_encoder.losses")
late = pytest.importorskip("sentence_transformers.multi_vector_encoder.losses")
metric = pytest.importorskip("pytorch_metric_learning.losses")
hugging = pytest.importorskip("transformers.loss.loss_utils")
trainer = pytest.importorskip("transformers.trainer_pt_utils")

B = 4
PAIRS = range(B)


def embeddings(seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(B, 5, generator=generator, dtype=torch.float64, requires_grad=True) for _ in range(2)]


def cosine(x, y):
    return (x * y).sum() / (x.norm() * y.norm())


def choose(score):
    """-log softmax of each query's own document, as a loop."""
    total = 0
    for i in PAIRS:
        total = total + torch.log(sum(torch.exp(score(i, j)) for j in PAIRS)) - score(i, i)
    return total / B


def of_cosines(scale, after=lambda x: x):
    return lambda q, d: choose(lambda i, j: scale * after(cosine(q[i], d[j])))


def of_products(q, d):
    return choose(lambda i, j: q[i] @ d[j])


def both_ways(q, d):
    return (of_cosines(20)(q, d) + of_cosines(20)(d, q)) / 2


def mega_batch(q, d):
    total = 0
    for i in PAIRS:
        hardest = max(cosine(q[i], d[j]) for j in PAIRS if j != i)
        total = total + functional.relu(0.8 - cosine(q[i], d[i])) + functional.relu(hardest - 0.3)
    return total / B


def triplets(q, d):
    """Of one set of 2 B, each with its pair: positives' distance less negatives'."""
    rows, n = torch.cat([q, d]), 2 * B
    for a in range(n):
        p = (a + B) % n
        others = [k for k in range(n) if k % B != a % B]
        yield (rows[a] - rows[p]).norm(), [(rows[a] - rows[k]).norm() for k in others]


def hardest_triplets(q, d):
    return sum(functional.relu(p - min(ns) + 5) for p, ns in triplets(q, d)) / (2 * B)


def hardest_softly(q, d):
    return sum(torch.log1p(torch.exp(p - min(ns))) for p, ns in triplets(q, d)) / (2 * B)


def all_triplets(q, d):
    costs = [functional.relu(p - n + 5) for p, ns in triplets(q, d) for n in ns]
    kept = [cost for cost in costs if cost > 1e-16]
    return sum(kept) / len(kept)


def margin_triplets(q, d):
    """PyTorch-metric-learning's, of unit vectors; its reducer leaves out triplets that cost nothing."""
    q, d = (x / x.norm(dim=1, keepdim=True) for x in (q, d))
    costs = [(q[i] - d[i]).norm() - (q[i] - d[j]).norm() + 0.05 for i in PAIRS for j in PAIRS if i != j]
    kept = [cost for cost in costs if cost > 0]
    return sum(kept) / len(kept)


def pairs_apart(q, d):
    """ContrastiveLoss: what pairs are apart, and what others are short of 1; each mean over what is above 0."""
    q, d = (x / x.norm(dim=1, keepdim=True) for x in (q, d))
    own = [(q[i] - d[i]).norm() for i in PAIRS]
    short = [1 - (q[i] - d[j]).norm() for i in PAIRS for j in PAIRS if i != j]
    kept = [x for x in short if x > 0]
    return sum(own) / len(own) + (sum(kept) / len(kept) if kept else 0)


def two_views(q, d):
    """SimCLR: each of 2 B among all others, its pair the right one."""
    rows, n, total = torch.cat([q, d]), 2 * B, 0
    for a in range(n):
        scores = {k: cosine(rows[a], rows[k]) / 0.07 for k in range(n) if k != a}
        total = total + torch.logsumexp(torch.stack(list(scores.values())), 0) - scores[(a + B) % n]
    return total / n


FORMULAS = {
    "symmetric": (dense.MultipleNegativesSymmetricRankingLoss, {}, both_ways),
    "symmetric, cached": (dense.CachedMultipleNegativesSymmetricRankingLoss, {"mini_batch_size": 3}, both_ways),
    "sparse": (sparse.SparseMultipleNegativesRankingLoss, {}, of_products),
    "late interaction": (late.MultiVectorMultipleNegativesRankingLoss, {}, of_products),
    "late interaction, cached": (late.CachedMultiVectorMultipleNegativesRankingLoss, {}, of_products),
    "cross-encoder": (cross.MultipleNegativesRankingLoss, {}, of_cosines(10, torch.sigmoid)),
    "cross-encoder, cached": (
        cross.CachedMultipleNegativesRankingLoss,
        {"mini_batch_size": 3},
        of_cosines(10, torch.sigmoid),
    ),
    "cross-encoder, plain": (cross.MultipleNegativesRankingLoss, {"activation_fn": None, "scale": 7}, of_cosines(7)),
    "mega batch": (dense.MegaBatchMarginLoss, {"mini_batch_size": 3}, mega_batch),
    "mega batch, whole": (dense.MegaBatchMarginLoss, {"use_mini_batched_version": False}, mega_batch),
    "hard triplets": (dense.BatchHardTripletLoss, {}, hardest_triplets),
    "soft triplets": (dense.BatchHardSoftMarginTripletLoss, {}, hardest_softly),
    "all triplets": (dense.BatchAllTripletLoss, {}, all_triplets),
    "pml triplets": (metric.TripletMarginLoss, {}, margin_triplets),
    "pml pairs": (metric.ContrastiveLoss, {}, pairs_apart),
    "pml views": (metric.SelfSupervisedLoss, {"loss": metric.NTXentLoss()}, two_views),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_a_contrastive_adapter_gives_what_the_formula_gives(name):
    cls, options, formula = FORMULAS[name]
    loss = contrastive_library_loss(cls, **options)
    for seed in range(3):
        inputs = embeddings(seed)
        # the library's own shortcuts, x² + y² - 2xy and x / max(|x|, ε), cost digits even in float64
        got, want = loss(*inputs), formula(*inputs)
        assert got.item() == pytest.approx(want.item(), rel=1e-5)
        for g, w in zip(torch.autograd.grad(got, inputs), torch.autograd.grad(want, inputs), strict=True):
            assert torch.allclose(g, w, rtol=1e-4, atol=1e-6)
    assert loss.name.startswith(cls.__name__)


def test_the_cached_guided_loss_is_the_plain_one():
    plain, cached = (contrastive_library_loss(c) for c in (dense.GISTEmbedLoss, dense.CachedGISTEmbedLoss))
    inputs = embeddings()
    assert cached(*inputs).item() == pytest.approx(plain(*inputs).item(), rel=1e-12)
    assert cached(*inputs, chunk_size=3).item() == pytest.approx(plain(*inputs).item(), rel=1e-12)
    for g, w in zip(*(torch.autograd.grad(loss(*inputs), inputs) for loss in (cached, plain)), strict=True):
        assert torch.allclose(g, w, rtol=1e-10)


def test_pairs_with_scores_are_one_list():
    logits = torch.tensor([[0.3, -0.2, 0.1], [0.2, 0.4, 0.0]], dtype=torch.float64)
    labels = torch.tensor([[2.0, 0.0, 1.0], [1.0, 0.0, 7.0]], dtype=torch.float64)
    mask = torch.tensor([[True, True, True], [True, True, False]])
    scored = [(z, y) for z, y in zip(logits[mask].tolist(), labels[mask].tolist(), strict=True)]
    wrong = [math.exp(20 * (z2 - z1)) for (z1, y1), (z2, y2) in itertools.product(scored, scored) if y1 > y2]
    for cls in (dense.CoSENTLoss, sparse.SparseCoSENTLoss):
        assert sentence_transformers_loss(cls)(logits, labels, mask).item() == pytest.approx(math.log(1 + sum(wrong)))


def test_losses_of_tokens_are_one_cross_entropy():
    generator = torch.Generator().manual_seed(1)
    logits, labels = torch.randn(2, 4, 5, generator=generator), torch.randint(0, 5, (2, 4), generator=generator)
    labels[0, 3] = -100
    costs = [
        math.log(sum(math.exp(x) for x in row)) - row[label]
        for rows, ids in zip(logits.double().tolist(), labels.tolist(), strict=True)
        for row, label in zip(rows, ids, strict=True)
        if label != -100
    ]
    as_they_stand = [functional.cross_entropy, hugging.ForMaskedLMLoss, hugging.ForTokenClassification]
    as_they_stand += [hugging.fixed_cross_entropy, nn.CrossEntropyLoss]
    as_they_stand += [getattr(functional, name) for name in ("linear_cross_entropy",) if hasattr(functional, name)]
    for function in as_they_stand:
        loss = token_library_loss(function)
        assert loss(logits, labels).item() == pytest.approx(sum(costs) / len(costs), rel=1e-6), function
        assert loss.conventions.shift is False
        if "num_items_in_batch" in inspect.signature(loss).parameters:
            assert loss(logits, labels, num_items_in_batch=14).item() == pytest.approx(sum(costs) / 14, rel=1e-6)


def test_the_label_smoother_shifts_and_smooths():
    logits, labels = torch.tensor([[[1.0, 0.0, -1.0], [0.5, 0.5, 2.0]]]), torch.tensor([[0, 2]])
    total = math.log(math.e + 1 + math.exp(-1))
    own, every = total + 1, total - 0  # of label 2 under the first row; of all three labels, mean of -log p
    for epsilon in (0.0, 0.1):
        loss = token_library_loss(trainer.LabelSmoother, epsilon=epsilon)
        assert loss.conventions.shift is True
        assert loss(logits, labels).item() == pytest.approx((1 - epsilon) * own + epsilon * every, rel=1e-6)
    assert token_library_loss(trainer.LabelSmoother(ignore_index=-7)).conventions.ignore_index == -7


def test_what_is_no_loss_of_these_kinds_is_not_taken():
    for cls in (metric.ArcFaceLoss, metric.ProxyNCALoss, metric.VICRegLoss, dense.TripletLoss, cross.MSELoss):
        assert not is_contrastive_library_loss(cls)
    assert is_contrastive_library_loss(metric.SignalToNoiseRatioContrastiveLoss)  # derived from one that is
    assert not is_sentence_transformers_loss(dense.AnglELoss)  # CoSENTLoss with another similarity
    assert not is_token_library_loss(hugging.ForSequenceClassificationLoss)
    for instance, wrap in (
        (metric.NTXentLoss(), contrastive_library_loss),
        (trainer.LabelSmoother(), token_library_loss),
    ):
        with pytest.raises(TypeError, match="options are for a class"):
            wrap(instance, temperature=1.0)
    with pytest.raises(TypeError, match="has no option temperature; there are num_negatives"):
        contrastive_library_loss(cross.MultipleNegativesRankingLoss, temperature=1.0)
