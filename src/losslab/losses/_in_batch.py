"""InfoNCE of a batch and its gradient, computed by blocks of rows: what `info_nce` stands on.

Write x_ij for a query's score divided by the temperature and G for the gradient by x. Three things keep its digits:

- A row of G sums to zero, so documents may be counted from any centre c: ``sum_j G_ij d_j = sum_j G_ij (d_j - c)``.
  At the start of a training all vectors are alike, and without this the difference of two nearly equal ones would be
  all that float32 leaves. The same holds for scores: ``q_i . c`` shifts a whole row and drops out of its softmax.
- A positive's cell of G is ``-sum of the negatives'``, not ``p - 1``, which cancels once the positive has won.
- A row's loss is ``log1p(sum over negatives)`` where the positive leads, not a difference of logs, for the same reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from losslab.losses._pairs import check_norms, fine_dtype

#: Cells of the score matrix that are worked on at once where it is kept whole: 8 MB in float32, a cache's worth.
BLOCK_CELLS = 2**21
#: Rows that are normalised at once, in float64, so that no whole float64 copy of the embeddings is ever held.
ROWS = 512
#: In float32 a score near 1 is off by some 1e-7, and a logit by 1 / temperature as much. From this temperature up, and
#: for at least so many cells, that stays within 1e-5 of a gradient; everything else is computed in float64.
LOWEST_TEMPERATURE, FEWEST_CELLS = 0.04, 2**15
#: Mean cosine up to which float32 normalises well enough: what remains beside the centre is then 0.3 long and keeps six
#: digits. And lengths, from the inverse of this up to it, whose squares float32 holds.
MOST_ALIKE, LONGEST = 0.9, 1e12


@dataclass(frozen=True)
class Options:
    """What is asked for, apart from the tensors."""

    temperature: float
    offset: int
    symmetric: bool
    normalize: bool
    chunk_size: int | None
    validate: bool

    @property
    def mild(self) -> bool:
        """Whether logits lie at most 2 / LOWEST_TEMPERATURE = 50 apart: exp(50) is far from any type's limits."""
        return self.normalize and self.temperature >= LOWEST_TEMPERATURE

    def dtype(self, queries: Tensor, documents: Tensor) -> torch.dtype:
        """Type to compute scores in."""
        if self.mild and queries.dtype != torch.float64 and len(queries) * len(documents) >= FEWEST_CELLS:
            return torch.float32
        return fine_dtype(queries)


@dataclass
class Centred:
    """Embeddings as they enter the scores: ``scale * factor * embeddings = rows + centre``.

    Queries that point far enough apart are not counted from a centre: theirs costs a shift of every column.
    """

    rows: Tensor  # (n, d)
    centre: Tensor | None  # (d,) in fine precision; None: 0
    factor: Tensor | None  # (n,) 1 / norm and 0 for a zero vector; None: not normalised


def centred(embeddings: Tensor, scale: float, dtype: torch.dtype, options: Options, name: str) -> Centred:
    """Check, normalise, scale, and count from the mean of the first few; float64 in between, a block at a time."""
    fine, centre = fine_dtype(embeddings), None
    # Elsewhere than on a CPU, having to look at a value costs more than float64 does.
    quick = quickly_centred(embeddings, scale, name) if dtype != fine and embeddings.device.type == "cpu" else None
    if quick is not None:
        return quick
    rows, factors = Gathered(len(embeddings)), []
    for part in blocks(len(embeddings), ROWS):
        some = cut(embeddings, part).to(fine)
        lengths = some.new_full((len(some),), scale)
        if options.normalize or options.validate:
            norms = torch.linalg.vector_norm(some, dim=1)
            if options.validate:
                check_norms(name, norms, normalize=options.normalize, first=part.start)
            if options.normalize:
                factor = inverse(norms)
                factors.append(factor.to(dtype))
                lengths *= factor
        if centre is None:
            centre = mean_of_few(some, lengths)
        rows.put(part, torch.addcmul(-centre, some, lengths[:, None]).to(dtype))
    assert centre is not None
    return Centred(rows.tensor(), centre, whole(factors) if factors else None)


def quickly_centred(embeddings: Tensor, scale: float, name: str) -> Centred | None:
    """Normalise and so on in float32 alone; None where that would not do, or something is wrong with the values."""
    some = embeddings.float()
    norms = torch.linalg.vector_norm(some, dim=1)
    least, most = (float(end) for end in norms.aminmax())
    if not 1 / LONGEST < least <= most < LONGEST:
        return None
    factor = norms.reciprocal()
    lengths = factor * scale
    centre = mean_of_few(some, lengths)
    if float(centre.dot(centre)) > MOST_ALIKE * scale**2:
        return None
    if name == "queries":  # alike as little as this, they need no centre
        return Centred(some * lengths[:, None], None, factor)
    return Centred(torch.addcmul(-centre, some, lengths[:, None]), centre.to(fine_dtype(embeddings)), factor)


def mean_of_few(embeddings: Tensor, lengths: Tensor) -> Tensor:
    """Mean of the first 32 rows times these lengths."""
    few = embeddings[:32]
    return torch.mv(few.T, lengths[:32]).div_(len(few))


def whole(parts: Sequence[Tensor]) -> Tensor:
    """Blocks of rows put together."""
    return parts[0] if len(parts) == 1 else torch.cat(list(parts))


class Gathered:
    """A matrix from blocks of rows: never held twice, and not copied where one block is all."""

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self.all: Tensor | None = None

    def put(self, part: slice, block: Tensor) -> None:
        """Add these rows; the first block says how wide they are."""
        if self.all is None:
            self.all = block if len(block) == self.rows else block.new_empty(self.rows, *block.shape[1:])
        if self.all is not block:
            self.all[part] = block

    def tensor(self) -> Tensor:
        """The matrix."""
        assert self.all is not None
        return self.all


def inverse(norms: Tensor) -> Tensor:
    """1 / norm, and 0 where that is 0."""
    return norms.reciprocal().masked_fill_(norms == 0, 0)


def cut(rows: Tensor, part: slice) -> Tensor:
    """These rows; where they are all, without the cost of a view."""
    return rows if part.stop - part.start == len(rows) else rows[part]


def through_norm(gradient: Tensor, embeddings: Tensor, factor: Tensor | None, scale: Tensor | None = None) -> Tensor:
    """Gradient by embeddings, given that by unit rows: what lies along them drops out. ``gradient`` is used up.

    ``scale`` is one number a row that the gradient still lacks.
    """
    if factor is None:
        return gradient if scale is None else gradient.mul_(scale[..., None])
    embeddings = embeddings.to(gradient.dtype)
    along = torch.linalg.vecdot(embeddings, gradient).mul_(factor).mul_(factor)
    gradient.addcmul_(embeddings, along[..., None], value=-1)
    return gradient.mul_((factor if scale is None else factor * scale)[..., None])


def blocks(rows: int, size: int) -> Iterator[slice]:
    """Slices of at most ``size`` rows."""
    for first in range(0, rows, size):
        yield slice(first, min(first + size, rows))


class Batch:
    """A batch made ready: rows centred in the working type, and what is needed to score any block of queries."""

    def __init__(
        self,
        queries: Tensor,
        documents: Tensor,
        negatives: Tensor | None,
        hard: Tensor | None,
        hard_mask: Tensor | None,
        options: Options,
    ) -> None:
        self.options, self.negatives, self.hard, self.hard_mask = options, negatives, hard, hard_mask
        self.queries, self.documents = queries, documents
        self.chunk: Tensor | None = None
        self.dtype = options.dtype(queries, documents)
        self.q = centred(queries, 1 / options.temperature, self.dtype, options, "queries")
        self.d = centred(documents, 1.0, self.dtype, options, "documents")
        # What the centres add to a score: the queries' to a whole column, (M,), the documents' to a whole row.
        self.by_document = None if self.q.centre is None else self.d.rows @ self.q.centre.to(self.dtype)
        own = slice(options.offset, options.offset + len(queries))
        pairs = [(part, slice(part.start + own.start, part.stop + own.start)) for part in blocks(len(queries), ROWS)]
        dots = [torch.linalg.vecdot(cut(self.q.rows, q), cut(self.d.rows, d)) for q, d in pairs]
        self.positives = whole(dots)  # (B,)
        if self.by_document is not None:
            self.positives += cut(self.by_document, own)
        if options.symmetric:  # only columns notice what is added to a row
            self.by_query = self.q.rows @ self.from_documents.to(self.dtype)
            if self.q.centre is not None:
                self.by_query += self.q.centre.dot(self.from_documents).to(self.dtype)
            self.column_positives = self.positives + self.by_query

    @property
    def from_documents(self) -> Tensor:
        """The documents' centre, (d,), in fine precision."""
        assert self.d.centre is not None
        return self.d.centre

    def set_aside(self) -> list[Tensor | None]:
        """Let go of all that is large, for autograd to hold as long as it has to, and give it."""
        large = [self.queries, self.documents, self.negatives, self.hard, self.hard_mask, self.q.rows, self.d.rows]
        self.take_back([None] * len(large))
        self.chunk = None
        return large

    def take_back(self, large: list[Any]) -> None:
        """Undo `set_aside`."""
        self.queries, self.documents, self.negatives, self.hard, self.hard_mask, self.q.rows, self.d.rows = large

    @property
    def block_rows(self) -> int:
        """Rows of a block."""
        return self.options.chunk_size or max(1, BLOCK_CELLS // len(self.documents))

    def scores(self, part: slice) -> Tensor:
        """Logits of some queries against all documents, (n, M): -inf at positives and at negatives not allowed."""
        out = None
        if self.options.chunk_size is not None:  # one buffer for all chunks: allocators hold on to what they gave
            if self.chunk is None:
                self.chunk = self.d.rows.new_empty(part.stop - part.start, len(self.d.rows))
            out = self.chunk[: part.stop - part.start]
        queries, documents = cut(self.q.rows, part), self.d.rows.T
        if self.by_document is None:
            scores = torch.mm(queries, documents, out=out)
        else:
            scores = torch.addmm(self.by_document, queries, documents, out=out)
        if self.negatives is not None:
            scores.masked_fill_(~self.negatives[part], -torch.inf)
        scores.diagonal(part.start + self.options.offset).fill_(-torch.inf)
        return scores

    def hard_block(self, part: slice) -> tuple[Tensor, Tensor, Tensor | None, Tensor]:
        """Hard negatives of some queries: as given with holes cleared, from c, 1 / norm, and logits (n, H)."""
        assert self.hard is not None
        fine, mask = self.from_documents.dtype, None if self.hard_mask is None else self.hard_mask[part]
        given = self.hard[part].to(fine)
        if mask is not None:
            given = given.masked_fill(~mask[..., None], 0)
        norms = torch.linalg.vector_norm(given, dim=-1)
        if self.options.validate:
            check_norms("hard_negatives", norms, normalize=self.options.normalize, first=part.start, used=mask)
        factor = inverse(norms) if self.options.normalize else None
        unit = given if factor is None else given * factor[..., None]
        rows = (unit - self.from_documents).to(self.dtype)
        logits = torch.einsum("nd,nhd->nh", self.whole_queries(part), rows)
        if mask is not None:
            logits = logits.masked_fill(~mask, -torch.inf)
        return given, rows, factor, logits

    def whole_queries(self, part: slice) -> Tensor:
        """Scaled queries with their centre, (n, d)."""
        rows = cut(self.q.rows, part)
        return rows if self.q.centre is None else rows + self.q.centre.to(self.dtype)


@dataclass
class Softmax:
    """The sums of one direction, one entry a pair: what a softmax over each row (or column) leaves behind."""

    peak: Tensor  # largest logit, the positive's among them; or the positive's, where no other can be far above it
    rest: Tensor  # sum over negatives of exp(logit - peak)
    positive: Tensor  # the positive's logit

    @property
    def total(self) -> Tensor:
        """Sum over all candidates."""
        if self.peak is self.positive:
            return self.rest + 1
        return self.rest + (self.positive - self.peak).exp()

    def losses(self) -> Tensor:
        """-log p(positive)."""
        if self.peak is self.positive:
            return self.rest.log1p()
        behind = self.positive - self.peak
        return torch.log1p(self.rest + behind.expm1()) - behind


class InBatch(torch.autograd.Function):
    """Losses of all pairs, (B,). Keeps the score matrix, or computes it again in backward where chunks are asked for.

    With ``chunk_size`` nothing larger than chunk_size x M is held. It can be differentiated once.
    """

    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401
        queries: Tensor,
        documents: Tensor,
        hard: Tensor | None,
        negatives: Tensor | None,
        hard_mask: Tensor | None,
        options: Options,
    ) -> Tensor:
        with plain(queries):
            batch = Batch(queries, documents, negatives, hard, hard_mask, options)
            b, kept = len(queries), None
            if options.chunk_size is None and any(ctx.needs_input_grad[:3]):
                kept = batch.scores(slice(0, b))
            columns, sums = None, []
            if options.symmetric:
                columns = Softmax(
                    batch.column_positives.clone(), torch.zeros_like(batch.column_positives), batch.column_positives
                )
            for part in blocks(b, batch.block_rows):
                scores = batch.scores(part) if kept is None else cut(kept, part)
                if columns is not None:
                    _sum_columns(columns, scores + batch.by_query[part, None])
                    scores = scores.clone()
                sums.append(_sum_rows(batch, scores, batch.hard_block(part)[3] if hard is not None else None, part))
            peaks, rests = zip(*sums, strict=True)
            rows = Softmax(batch.positives if options.mild else whole(peaks), whole(rests), batch.positives)
            if kept is not None and columns is None:
                kept.diagonal(options.offset).copy_(-rows.rest)
            values = rows.losses() if columns is None else (rows.losses() + columns.losses()) / 2
        ctx.save_for_backward(kept, *batch.set_aside())
        ctx.batch, ctx.rows, ctx.columns = batch, rows, columns
        return values

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401
        if torch.is_grad_enabled():  # only under create_graph; going on would drop the second derivative silently
            raise RuntimeError("info_nce can be differentiated once, not twice; call backward without create_graph")
        kept, *large = ctx.saved_tensors
        ctx.batch.take_back(large)
        with plain(grad):
            gradients = _gradients(ctx.batch, kept, ctx.rows, ctx.columns, grad)
        ctx.batch.set_aside()
        return (*gradients, None, None, None)


def _sum_rows(batch: Batch, scores: Tensor, hard: Tensor | None, part: slice) -> tuple[Tensor, Tensor]:
    """Peak and rest of a block of rows. ``scores`` become exp(score - peak)."""
    peak = cut(batch.positives, part)
    if not batch.options.mild:
        peak = torch.maximum(peak, scores.amax(1))
        if hard is not None and hard.shape[1]:
            peak = torch.maximum(peak, hard.amax(1))
    rest = scores.sub_(peak[:, None]).exp_().sum(1)
    if hard is not None:
        rest += (hard - peak[:, None]).exp_().sum(1)
    return peak, rest


def _sum_columns(columns: Softmax, scores: Tensor) -> None:
    """Add a block of rows to the sums of all columns. ``scores`` is used up."""
    peak = torch.maximum(columns.peak, scores.amax(0))
    columns.rest.mul_((columns.peak - peak).exp_()).add_(scores.sub_(peak).exp_().sum(0))
    columns.peak.copy_(peak)


def _gradients(
    batch: Batch, kept: Tensor | None, rows: Softmax, columns: Softmax | None, grad: Tensor
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Gradients by queries, documents and hard negatives."""
    grad = grad.to(batch.dtype)
    by_queries = Gathered(len(grad))
    by_documents = torch.empty_like(batch.d.rows)
    by_hard = None if batch.hard is None else torch.empty_like(batch.hard)
    column_sums = None if batch.by_document is None else torch.empty_like(batch.by_document)  # of G, (M,)
    by_row = grad / rows.total
    done = kept is not None and columns is None  # what is kept are the cells themselves
    for part in blocks(len(grad), len(grad) if done else batch.block_rows):
        scores = batch.scores(part) if kept is None else cut(kept, part)
        # G is weights[:, None] * cells; the weights go to where there are fewest numbers
        if columns is None:
            weights, cells = cut(by_row, part), scores
            if not done:
                cells.sub_(rows.peak[part, None]).exp_()
                cells.diagonal(part.start + batch.options.offset).copy_(-rows.rest[part])
        else:
            weights, cells = torch.ones_like(by_row[part]), _both_ways(batch, scores, rows, columns, grad, part)
        raw = torch.mm(cells, batch.d.rows)
        add = 1 if part.start else 0  # to what the blocks before have left
        by_documents.addmm_(cells.T, cut(batch.q.rows, part) * weights[:, None], beta=add)
        if column_sums is not None:
            column_sums.addmv_(cells.T, weights, beta=add)
        row_sums = None if columns is None else cells.sum(1, dtype=batch.from_documents.dtype)
        if batch.hard is not None and by_hard is not None:
            given, hard_rows, factor, logits = batch.hard_block(part)
            share = (logits - rows.peak[part, None]).exp_()
            if columns is not None:
                share *= (by_row[part] / 2)[:, None]
            raw += torch.einsum("nh,nhd->nd", share, hard_rows)
            pushed = ((share * weights[:, None])[..., None] * batch.whole_queries(part)[:, None]).to(given.dtype)
            by_hard[part] = through_norm(pushed, given, factor).to(by_hard.dtype)
            row_sums = None if row_sums is None else row_sums + share.sum(1)
        if row_sums is not None:  # in one direction alone they are 0
            raw.addcmul_(row_sums[:, None].to(raw.dtype), batch.from_documents.to(raw.dtype))
        factor = None if batch.q.factor is None else cut(batch.q.factor, part)
        raw = through_norm(raw, cut(batch.queries, part), factor, weights * (1 / batch.options.temperature))
        by_queries.put(part, raw.to(batch.queries.dtype))
    if column_sums is not None and batch.q.centre is not None:
        by_documents.addcmul_(column_sums[:, None], batch.q.centre.to(batch.dtype))
    for part in blocks(len(by_documents), ROWS):
        factor = None if batch.d.factor is None else cut(batch.d.factor, part)
        through_norm(cut(by_documents, part), cut(batch.documents, part), factor)
    result = by_documents.to(batch.documents.dtype)
    return by_queries.tensor(), result, by_hard


def _both_ways(batch: Batch, scores: Tensor, rows: Softmax, columns: Softmax, grad: Tensor, part: slice) -> Tensor:
    """Rows of G where each pair's loss is the mean of its row's and its column's."""
    by_row, by_column = grad[part] / (2 * rows.total[part]), grad / (2 * columns.total)
    cells = (scores - rows.peak[part, None]).exp_().mul_(by_row[:, None])
    shifted = scores + batch.by_query[part, None]
    cells += shifted.sub_(columns.peak).exp_().mul_(by_column)
    own = by_row * rows.rest[part] + by_column[part] * columns.rest[part]
    cells.diagonal(part.start).copy_(-own)
    return cells


def plain(tensor: Tensor) -> AbstractContextManager[object]:
    """No autocast: it would turn the matrix products back into half precision."""
    kind = tensor.device.type
    return torch.autocast(kind, enabled=False) if torch.is_autocast_enabled(kind) else nullcontext()
